package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
)

// FuzzPath gives any text to the guard as a path: it is refused, or it is an ordinary way
// to something inside that is not closed.
func FuzzPath(f *testing.F) {
	base := f.TempDir()
	files(f, base, map[string]string{
		"w/a/b": "open", "w/.env": "closed", "w/.git/config": "closed", "w/a/.GIT/x": "closed", "w/state/db": "closed", "w/a/x.PEM": "closed", "out/f": "closed",
	})
	for name, to := range map[string]string{"l": "../out", "a/l": "../../out/f", "m": "/", "s": ".env"} {
		must(f, os.Symlink(to, filepath.Join(base, "w", name)))
	}
	tr := tree(f, filepath.Join(base, "w"), Options{Hidden: []string{filepath.Join(base, "w/state")}})
	for _, s := range []string{
		"a/b", ".", "./a//b/", "../out/f", "l/f", "a/l", "m/etc/passwd", "s", ".env", ".Env", ".git/config", "a/.git/x", "a/x.pem", "a/X.PEM ", "state/db", "STATE/db",
		`a\b`, "~", "C:x", "./~x", ".//c:x", "a\x00", "/a", "a/\xff", "\u202e", ".g\u200dit/config", ".git::$INDEX_ALLOCATION/config", strings.Repeat("a/", 70), strings.Repeat("é", 1025),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePath(s)
		if err != nil {
			if !errors.Is(err, contract.PathDenied) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		if again, err := ParsePath(p.String()); err != nil || again != p {
			t.Fatalf("%q is %q, and that is %q, %v", s, p, again, err)
		}
		if utf8.RuneCountInString(p.rel) > maxPathChars || strings.Count(p.rel, "/") >= maxPathSegments || strings.ContainsAny(p.rel, "\x00\\") || filepath.IsAbs(p.rel) {
			t.Fatalf("%q became %q", s, p.rel)
		}
		if !p.IsRoot() && p.Parent().Join(p.Base()) != p {
			t.Fatalf("%q is not its parent's %q", p, p.Base())
		}
		denied := tr.Access(p)
		for part := range strings.SplitSeq(p.rel, "/") {
			if part == ".." || part == "." || part == "" && !p.IsRoot() {
				t.Fatalf("%q became %q", s, p.rel)
			}
			if low := strings.ToLower(part); denied == nil && (low == ".git" || low == ".env" || strings.HasSuffix(low, ".pem")) {
				t.Fatalf("%q is reachable", p)
			}
		}
		data, _, err := tr.Read(p, 0)
		if denied != nil && err == nil || string(data) == "closed" {
			t.Fatalf("%q was read: %q (%v)", s, data, denied)
		}
		if list, err := tr.ReadDir(p, true); denied != nil && err == nil {
			t.Fatalf("%q was listed: %v", s, list)
		}
		if d, _, err := tr.Parent(p, false); err == nil {
			if denied != nil {
				t.Fatalf("the directory of %q was opened", s)
			}
			d.Close()
		}
	})
}
