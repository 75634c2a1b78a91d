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
// hold still gives FILE_CHANGED.
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
	data = make([]byte, f.Info.Size+1)
	n, err := io.ReadFull(f, data)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, Info{}, false, t.lookup(p, err)
	}
	after, err := safefile.StatFile(f.File)
	if err != nil {
		return nil, Info{}, false, t.lookup(p, err)
	}
	return data[:n], f.Info, int64(n) != f.Info.Size || !infoOf(after).Same(f.Info), nil
}

func tooLarge(p Path, size, max int64) error {
	return fault.New(contract.FileTooLarge, "the file has %d bytes; at most %d are taken at once", size, max).
		WithHint("read a part of it: lines, tailLines, or byteOffset with maxBytes").
		With("path", p.Shown()).With("size", size).With("limit", max)
}
