package git

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzParseState: whatever a status is made of, every entry has a path and two letters, and
// what is parsed before a cut stays as it is.
func FuzzParseState(f *testing.F) {
	f.Add([]byte("# branch.oid (initial)\x00# branch.head main\x001 .M N... 100644 100644 100644 aaa bbb a b\x00? x\ny\x00"), 20)
	f.Add([]byte("2 R. N... 100644 100644 100644 a b R100 new\x00old\x00u UU N... 1 2 3 4 a b c x\x00# branch.ab +1 -2\x00"), 5)
	f.Add([]byte("2 R. N... 100644 100644 100644 a b R100 new\x00"), 3)
	f.Add([]byte("! ignored\x00? \x001\x00# \x00"), 1)
	f.Fuzz(func(t *testing.T, out []byte, cut int) {
		s := parseState(out)
		for _, e := range s.entries {
			if e.path == "" || len(e.xy) != 2 || strings.IndexByte(e.path, 0) >= 0 || !strings.Contains("12u?", string(e.kind)) {
				t.Fatalf("%+v", e)
			}
			if e.kind == '?' && (e.staged() || !e.pending()) {
				t.Fatalf("%+v", e)
			}
		}
		if cut < 0 || cut > len(out) {
			return
		}
		for i, e := range parseState(out[:cut]).entries {
			if i >= len(s.entries) || s.entries[i] != e {
				t.Fatalf("cut at %d: %+v", cut, e)
			}
		}
	})
}

// FuzzParseRaw: what is not of the form is refused, and the rest has all that is asked of it.
func FuzzParseRaw(f *testing.F) {
	f.Add([]byte(":100644 100644 aaa bbb M\x00a\x00:000000 100644 000 bbb A\x00b\nc\x00"))
	f.Add([]byte(":100644 100644 aaa bbb R100\x00a\x00b\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		list, ok := parseRaw(out)
		if !ok {
			return
		}
		for _, d := range list {
			if d.path == "" || d.status == 0 {
				t.Fatalf("%+v", d)
			}
		}
	})
}

// FuzzSplit: sections are what the patch is made of, and names never come from thin air.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-diff --git a/y b/y\n+rename to z\n"))
	f.Add([]byte("diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\ndiff --cc a\nindex\n"))
	f.Add([]byte(`diff --git "a/\303\274\n" "b/\303\274\n"` + "\nBinary files differ\n"))
	f.Add([]byte("* Unmerged path x\ndiff --git a/a b/a b/a b/a\n"))
	f.Fuzz(func(t *testing.T, patch []byte) {
		var all []byte
		for _, s := range split(patch) {
			all = append(all, s...)
			if names, ok := s.names(); ok {
				for _, n := range names {
					if n == "" {
						t.Fatalf("%q: %q", s, names)
					}
				}
			}
		}
		if !bytes.HasSuffix(patch, all) {
			t.Fatalf("%q became %q", patch, all)
		}
	})
}

// FuzzQuote: what is written for git is read back as it was.
func FuzzQuote(f *testing.F) {
	f.Add("a\nb")
	f.Add(`"x\`)
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || !strings.HasPrefix(quote(name), `"`) {
			return
		}
		if got, ok := unquote(quote(name)); !ok || got != name {
			t.Fatalf("%q: %q", name, got)
		}
	})
}
