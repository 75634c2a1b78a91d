package workspace

import (
	"io"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// coherentTries is how often a file that changes while it is read is read anew.
const coherentTries = 3

// Read reads a file whole, as it was at one moment. One of more than max bytes gives
// FILE_TOO_LARGE without being read; max 0 means the tree's own limit. One that does not
// hold still gives FILE_CHANGED. What it cannot tell from one state is what several calls write
// within one tick of the file system's clock, and what is written through a memory map.
func (t *Tree) Read(p Path, max int64) ([]byte, Info, error) {
	if max <= 0 {
		max = t.maxFile
	}
	for range coherentTries {
		data, in, again, err := t.readOnce(p, max)
		if err != nil || !again {
			return data, in, err
		}
	}
	return nil, Info{}, fault.New(contract.FileChanged, "the file is being written while it is read").
		WithHint("try again in a moment").With("path", p.Shown()).Retry()
}

func (t *Tree) readOnce(p Path, max int64) (data []byte, in Info, again bool, err error) {
	f, err := t.Open(p)
	if err != nil {
		return nil, Info{}, false, err
	}
	defer f.Close()
	if f.Info.Size > max {
		return nil, Info{}, false, tooLarge(p, f.Info.Size, max)
	}
	// A write that is under way has set the time of the last change when it began: only one that
	// begins from here on makes a difference that can be seen.
	safefile.AwaitWrite(f.File)
	if still, err := t.unchanged(p, f); err != nil || !still {
		return nil, Info{}, !still, err
	}
	data = make([]byte, f.Info.Size+1)
	n, err := io.ReadFull(f, data)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, Info{}, false, t.lookup(p, err)
	}
	still, err := t.unchanged(p, f)
	if err != nil {
		return nil, Info{}, false, err
	}
	return data[:n], f.Info, int64(n) != f.Info.Size || !still, nil
}

// unchanged reports whether an open file is what it was when it was opened.
func (t *Tree) unchanged(p Path, f *File) (bool, error) {
	now, err := safefile.StatFile(f.File)
	if err != nil {
		return false, t.lookup(p, err)
	}
	return infoOf(now).Same(f.Info), nil
}

func tooLarge(p Path, size, max int64) error {
	return fault.New(contract.FileTooLarge, "the file has %d bytes; at most %d are taken at once", size, max).
		WithHint("read a part of it: lines, tailLines, or byteOffset with maxBytes").
		With("path", p.Shown()).With("size", size).With("limit", max)
}
