package privdir

import (
	"errors"
	"fmt"
	"io"

	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// CheckFile judges a private file in a private directory: regular, the user's own,
// one hard link, no right for anyone else. A missing one gives fs.ErrNotExist
// inside an [Unusable] fault.
func CheckFile(dir *safefile.Root, name, what string) error {
	st, err := dir.Stat(name)
	path := dir.Path() + "/" + name
	if err != nil {
		return unusable(path, what, err)
	}
	j := newJudge(what)
	const hint = "move the file away and start again"
	switch {
	case st.Type != safefile.Regular:
		return j.refuse(path, "%s is not a regular file", what).WithHint(hint)
	case st.UID != j.uid:
		return j.refuse(path, "%s belongs to another user", what).WithHint(hint)
	case st.Hard != 1:
		return j.refuse(path, "%s has a second name (hard link)", what).WithHint(hint)
	case st.Mode&othersUse != 0:
		return j.refuse(path, "%s is open to other users (mode %04o)", what, st.Mode).
			WithHint("close it with chmod 600 on the file")
	}
	return nil
}

// ReadConfig reads a configuration file of at most max bytes from a directory that
// [OpenConfig] opened. It is refused with [Unsafe] when another user could change
// it, and with [Unusable] when it is too large, no regular file, or was changed while
// it was read. A missing one gives fs.ErrNotExist inside an [Unusable] fault.
func ReadConfig(dir *safefile.Root, name, what string, max int64) ([]byte, error) {
	path := dir.Path() + "/" + name
	f, id, err := dir.Open(name)
	if err != nil {
		if errors.Is(err, safefile.ErrNotRegular) {
			return nil, fault.Wrap(Unusable, &At{Path: path, Err: err}, "%s is not a regular file", what).
				WithHint("put a regular file in its place; links are not followed")
		}
		return nil, unusable(path, what, err)
	}
	defer f.Close()
	st, err := safefile.StatFile(f)
	if err != nil {
		return nil, unusable(path, what, err)
	}
	if err := newJudge(what).config(step{path, st}); err != nil {
		return nil, err
	}
	if id.Size > max {
		return nil, fault.Wrap(Unusable, &At{Path: path}, "%s is larger than %s", what, size(max)).
			WithHint("make it smaller")
	}
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, unusable(path, what, err)
	}
	after, err := safefile.StatFile(f)
	if err != nil {
		return nil, unusable(path, what, err)
	}
	if after.Identity != id || int64(len(data)) != id.Size {
		return nil, fault.Wrap(Unusable, &At{Path: path}, "%s was changed while it was read", what).
			WithHint("try again")
	}
	return data, nil
}

func size(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
