package source

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// File is a history file open for one coherent read: it shows the bytes it had when
// it was opened and not those that were added since. It is safe for use by one
// goroutine.
type File struct {
	*io.SectionReader // from the first byte to the size at opening
	ID                safefile.Identity
	SeenNS            int64 // when ID was taken, nanoseconds since 1970 UTC

	tree *Tree
	rel  string
	f    *os.File
}

// OpenFile opens a file of the tree. The fault is [Changed] when it is no regular
// file any more (fs.ErrNotExist when it is gone) and [ReadOrParse] otherwise.
func (t *Tree) OpenFile(rel string) (*File, error) {
	seen := time.Now().UnixNano() // before the look: a change between the two must not be trusted
	f, id, err := t.dir().Open(rel)
	switch {
	case gone(err):
		return nil, fault.Wrap(Changed, err, "%s is gone", t.Describe(rel)).WithHint("ask again: the next look finds what took its place")
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.Wrap(ReadOrParse, err, "%s cannot be read: permission denied", t.Describe(rel)).WithHint("give yourself permission to read it")
	case err != nil:
		return nil, fault.Wrap(ReadOrParse, err, "%s cannot be opened", t.Describe(rel)).WithHint("look at the disk it is on")
	}
	whole := &File{ID: id, SeenNS: seen, tree: t, rel: rel, f: f}
	whole.SectionReader = io.NewSectionReader(full{f, id.Size}, 0, id.Size)
	return whole, nil
}

// full is a file that must not end before its size: a short read must not look like
// the end of a conversation.
type full struct {
	f    *os.File
	size int64
}

func (r full) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.f.ReadAt(p, off)
	if err == io.EOF && off+int64(n) < r.size {
		err = fault.Wrap(Changed, io.ErrUnexpectedEOF, "the file was cut while it was read").WithHint("ask again")
	}
	return n, err
}

// Verify is called when everything was read. untouched means that what was read is
// what was there all the time. Otherwise the file has grown or was touched: the
// caller reads again what it used and compares. The fault is [Changed] when the name
// leads to another file or the file has shrunk.
func (f *File) Verify() (untouched bool, err error) {
	for _, look := range []func() (safefile.Info, error){
		func() (safefile.Info, error) { return safefile.StatFile(f.f) },
		func() (safefile.Info, error) { return f.tree.dir().Stat(f.rel) },
	} {
		st, err := look()
		if err != nil || st.Type != safefile.Regular || !st.SameFile(f.ID) || st.Size < f.ID.Size {
			return false, fault.Wrap(Changed, err, "%s was replaced or cut while it was read", f.tree.Describe(f.rel)).WithHint("ask again")
		}
		untouched = st.Identity == f.ID
	}
	return untouched, nil
}

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }

func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, safefile.ErrNotDirectory)
}
