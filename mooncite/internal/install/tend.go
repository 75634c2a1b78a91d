package install

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"localmcp/internal/safefile"
)

// Codex writes all of its mcp_servers anew when one is added or removed, and comments and
// spacing of the others are lost. config.toml is a file that people write by hand, so what
// Codex did to anything but our table is taken back.

const codexConfig = "config.toml"

var codexTable = []byte("[mcp_servers." + serverName + "]")

// tended runs a change of Codex's and gives the file the bytes that keep makes of those
// before and those after. Where that is not possible the file stays as Codex wrote it,
// which means the same.
func (c *codex) tended(change func() error, keep func(before, after []byte) ([]byte, bool)) error {
	path := filepath.Join(c.dir("CODEX_HOME", ".codex"), codexConfig)
	before, _ := os.ReadFile(path) // there may be none
	failed := change()             // what has failed may have written all the same
	after, err := os.ReadFile(path)
	if err != nil {
		return failed // Codex keeps it elsewhere
	}
	if want, ok := keep(before, after); ok && !bytes.Equal(want, after) {
		_ = rewrite(path, after, want)
	}
	return failed
}

// rewrite replaces the content of a file that is still what it was a moment ago. A link,
// as dotfile managers make them, stays one.
func rewrite(path string, was, data []byte) error {
	end, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	st, err := os.Stat(end)
	if err != nil {
		return err
	}
	dir, err := safefile.OpenRoot(filepath.Dir(end), safefile.RefuseLinks)
	if err != nil {
		return err
	}
	defer dir.Close()
	if now, err := os.ReadFile(end); err != nil || !bytes.Equal(now, was) {
		return fs.ErrInvalid // somebody else writes to it
	}
	return dir.WriteFileAtomic(filepath.Base(end), data, st.Mode().Perm())
}

// withTable is before with the table that after has.
func withTable(before, after []byte) ([]byte, bool) {
	from, to, ok := table(after)
	if _, _, twice := table(before); !ok || twice {
		return nil, false
	}
	want := bytes.Clone(before)
	if n := len(want); n > 0 {
		if want[n-1] != '\n' {
			want = append(want, '\n')
		}
		want = append(want, '\n')
	}
	want = append(want, bytes.TrimRight(after[from:to], "\n")...)
	return append(want, '\n'), true
}

// withoutTable is before without its table, and without the empty line above that when
// nothing follows.
func withoutTable(before, after []byte) ([]byte, bool) {
	from, to, ok := table(before)
	if _, _, still := table(after); !ok || still {
		return nil, false
	}
	head, rest := before[:from], before[to:]
	if len(rest) == 0 { // what was the end of the file is so again
		if short := bytes.TrimSuffix(head, []byte("\n")); bytes.HasSuffix(short, []byte("\n")) {
			head = short
		}
	}
	return append(bytes.Clone(head), rest...), true
}

// table finds our table: from its header to the next one, which it must not be a part of.
// Tables below ours, such as its env, are not expected and give up.
func table(text []byte) (from, to int, ok bool) {
	from = -1
	for at := 0; at < len(text); {
		end := at + bytes.IndexByte(text[at:], '\n') + 1
		if end == at {
			end = len(text)
		}
		line := bytes.TrimSpace(text[at:end])
		switch {
		case bytes.Equal(line, codexTable):
			if from >= 0 {
				return 0, 0, false
			}
			from, to = at, len(text)
		case bytes.HasPrefix(line, codexTable[:len(codexTable)-1]):
			return 0, 0, false
		case from >= 0 && to == len(text) && (bytes.HasPrefix(line, []byte("[")) || bytes.HasPrefix(line, []byte("#"))):
			to = at
		}
		at = end
	}
	return from, to, from >= 0
}
