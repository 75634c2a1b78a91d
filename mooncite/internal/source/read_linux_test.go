package source_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"localmcp/internal/fault"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/source"
)

func TestCoherentRead(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, file string)
		untouched bool
		refused   bool
		short     bool
	}{
		"nothing": {func(*testing.T, string) {}, true, false, false},
		"grown": {func(t *testing.T, file string) {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			f.WriteString("more")
			f.Close()
		}, false, false, false},
		"touched": {func(t *testing.T, file string) {
			must(t, os.Chtimes(file, time.Time{}, time.Unix(1, 0)))
		}, false, false, false},
		"cut":     {func(t *testing.T, file string) { must(t, os.Truncate(file, 3)) }, false, true, true},
		"removed": {func(t *testing.T, file string) { must(t, os.Remove(file)) }, false, true, false},
		"replaced": {func(t *testing.T, file string) {
			must(t, os.WriteFile(file+"2", []byte("0123456789"), 0o600))
			must(t, os.Rename(file+"2", file))
		}, false, true, false},
		"linked": {func(t *testing.T, file string) {
			must(t, os.Rename(file, file+"2"))
			must(t, os.Symlink(file+"2", file))
		}, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := testenv.NewHome(t)
			tree := claudeTree(t, h)
			file := h.Write(t, ".claude/projects/p/x.jsonl", "0123456789")
			f, err := tree.OpenFile("p/x.jsonl")
			must(t, err)
			defer f.Close()
			c.meanwhile(t, file)
			got, err := io.ReadAll(f)
			if c.short != errors.Is(err, source.Changed) || !c.short && string(got) != "0123456789" {
				t.Errorf("read %q, %v", got, err)
			}
			untouched, err := f.Verify()
			if untouched != c.untouched || c.refused != errors.Is(err, source.Changed) {
				t.Errorf("untouched %v, %v", untouched, err)
			}
		})
	}
}

func TestOpenFileRefuses(t *testing.T) {
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	h.Write(t, ".claude/projects/p/x.jsonl", "")
	h.Write(t, "secret.jsonl", "")
	must(t, os.Symlink(h.Path("secret.jsonl"), h.Path(".claude/projects/p/ln.jsonl")))
	must(t, os.Symlink(h.Dir, h.Path(".claude/projects/out")))
	must(t, unix.Mkfifo(h.Path(".claude/projects/p/fifo.jsonl"), 0o600))
	for rel, code := range map[string]fault.Code{
		"p/ln.jsonl": source.Changed, "out/secret.jsonl": source.Changed, "p/fifo.jsonl": source.Changed, "p": source.Changed,
		"p/none.jsonl": source.Changed, "../../secret.jsonl": source.ReadOrParse,
	} {
		_, err := tree.OpenFile(rel)
		if f := fault.From(err); err == nil || f.Code != code || strings.Contains(f.Msg, h.Dir) || strings.Contains(f.Msg, "/") {
			t.Errorf("%s: %v (%q)", rel, f.Code, f.Msg)
		}
	}
	if _, err := tree.OpenFile("p/none.jsonl"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestReadingLeavesNoTrace(t *testing.T) {
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	file := h.Write(t, ".claude/projects/p/x.jsonl", "0123456789")
	old := time.Now().Add(-72 * time.Hour)
	must(t, os.Chtimes(file, old, old))
	f, err := tree.OpenFile("p/x.jsonl")
	must(t, err)
	_, err = io.ReadAll(f)
	must(t, err)
	f.Close()
	var st unix.Stat_t
	must(t, unix.Stat(file, &st))
	if st.Atim.Nano() != old.UnixNano() {
		t.Error("the access time moved")
	}
}

func TestDescribeShowsNoPath(t *testing.T) {
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	got := tree.Describe("-home-me-secret-project/x\n.jsonl")
	if !regexp.MustCompile(`^claude-code x\\u\{a\}\.jsonl \([0-9a-f]{8}\)$`).MatchString(got) {
		t.Errorf("%q", got)
	}
}
