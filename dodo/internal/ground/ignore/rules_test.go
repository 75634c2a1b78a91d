package ignore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/ground/ignore"
)

// The hard cases, each with the answer, and with git beside it.
func TestHardCases(t *testing.T) {
	cases := []struct {
		rules, path string
		ignored     bool
	}{
		{"[!x]", "a", true},
		{"[!x]", "x", false},
		{"[^x]", "a", true},
		{"[^x]", "x", false},
		{"f[[:digit:]]", "f7", true},
		{"f[[:digit:]]", "fa", false},
		{"f[[:nosuch:]]", "fa", false},
		{"f[[:digit:]", "f:", false},
		{"[]]", "]", true},
		{"[]-]", "-", true},
		{"[!]a]", "b", true},
		{"[!]a]", "]", false},
		{"[a-]", "-", true},
		{"[a-c-e]", "d", false},
		{"[a-c-e]", "-", true},
		{`[\]]`, "]", true},
		{`[\\-^]`, "]", true},
		{"[[:]x", "[x", true},
		{"[c-a]", "b", false},
		{"[", "[", false},
		{"a[b", "a[b", false},
		{"dir/**/", "dir/sub/", true},
		{"dir/**/", "dir/file", false},
		{"dir/**/", "dir/", false},
		{"dir/**/", "dir/sub/file", true},
		{"dir/**", "dir/file", true},
		{"dir/**", "dir/", false},
		{"**/foo", "foo", true},
		{"**/foo", "a/b/foo", true},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{`a/**\/b`, "a/b", false},
		{`a/**\/b`, "a/x/b", true},
		{"foo**/bar", "foobar", true}, // git compares "foo", then matches "**/bar"
		{"foo*/bar", "foox/y/bar", false},
		{"x**y/bar", "xa/y/bar", false},
		{"***", "a", true},
		{"foo", "a/foo", true},
		{"/foo", "a/foo", false},
		{"/foo", "foo", true},
		{"a/foo", "b/a/foo", false},
		{"//foo", "foo", false},
		{"foo//", "foo/", false},
		{"foo/", "foo", false},
		{"foo/", "foo/", true},
		{"foo/", "foo/x/y", true},
		{"/", "a", false},
		{"!", "a", false},
		{"foo ", "foo", true},
		{"foo\\ ", "foo ", true},
		{"foo\\ ", "foo", false},
		{"foo\\  ", "foo ", true},
		{"foo\t", "foo", false},
		{"foo\r\n", "foo", true},
		{"foo\r\r\n", "foo", false},
		{"foo \r\n", "foo", true},
		{" foo", " foo", true},
		{"#foo", "#foo", false},
		{`\#foo`, "#foo", true},
		{`\!foo`, "!foo", true},
		{"!foo\nfoo", "foo", true},
		{"foo\n!foo", "foo", false},
		{"!!foo", "!foo", false},
		{"d\n!d/keep", "d/keep", true},
		{"d/*\n!d/keep", "d/keep", false},
		{"/*\n!/d\n/d/*\n!/d/keep", "d/keep", false},
		{"/*\n!/d\n/d/*\n!/d/keep", "d/other", true},
		{"\xef\xbb\xbffoo", "foo", true},
		{"foo\x00bar", "foo", true},
		{`foo\`, "foo", false},
		{`foo\`, `foo\`, false},
		{`f\oo`, "foo", true},
		{`\a`, "a", true},
		{"*.c", "a/b.c", true},
		{"*.c/", "b.c", false},
		{"a/*.c", "a/b/x.c", false},
		{"a?b", "a/b", false},
		{"x/a[/]b", "x/a/b", false},
		{"caf?", "café", false}, // é is two bytes
		{"caf??", "café", true},
		{"*ab*ab", "xabyab", true},
		{"*ab*ab", "xab", false},
	}
	for i, c := range cases {
		name, dir := strings.CutSuffix(c.path, "/")
		rules := stack{ignore.Parse([]byte(c.rules), "")}
		if got := rules.ignored(name, dir); got != c.ignored {
			t.Errorf("%d: rules %q path %q: ignored is %v, want %v", i, c.rules, c.path, got, c.ignored)
		}
	}
	t.Run("git", func(t *testing.T) {
		for _, c := range cases {
			r := newRepository(t)
			r.plant(t, c.path)
			r.write(t, ".gitignore", c.rules)
			name := strings.TrimSuffix(c.path, "/")
			if got := r.ignored(t, []string{name})[name]; got != c.ignored {
				t.Errorf("rules %q path %q: git says %v, the table says %v", c.rules, c.path, got, c.ignored)
			}
			os.RemoveAll(r.dir)
		}
	})
}

// Every class of bytes, for every byte a name can have below 128.
func TestClassesAsGit(t *testing.T) {
	r := newRepository(t)
	var paths []string
	for c := byte(1); c < 128; c++ {
		if c != '/' {
			paths = append(paths, "n"+string(rune(c)))
		}
	}
	r.plant(t, paths...)
	for _, class := range []string{"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit"} {
		r.compare(t, map[string]string{"": "n[[:" + class + ":]]\n"}, paths)
	}
}

// Random rules in files of several directories over a random tree.
func TestRandomAsGit(t *testing.T) {
	r := newRepository(t)
	rounds := 120
	if testing.Short() {
		rounds = 20
	}
	for seed := range rounds {
		rnd := rand.New(rand.NewPCG(7, uint64(seed)))
		entries, err := os.ReadDir(r.dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != ".git" {
				if err := os.RemoveAll(filepath.Join(r.dir, e.Name())); err != nil {
					t.Fatal(err)
				}
			}
		}
		paths, dirs := randomTree(rnd)
		r.plant(t, paths...)
		files := map[string]string{"": randomRules(rnd)}
		for _, d := range dirs {
			if rnd.IntN(3) == 0 {
				files[d] = randomRules(rnd)
			}
		}
		if r.compare(t, files, paths); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

var parts = []string{"a", "b", "ab", "aab", "foo", "bar", "a b", "x ", "[", "]", "a]", "é", `a\b`, "#x", "!x", "-", "A", "1", "a.c", "b.o", "\xff"}

func randomTree(rnd *rand.Rand) (paths, dirs []string) {
	level := []string{""}
	for depth := range 4 {
		var next []string
		for _, above := range level {
			for range 2 + rnd.IntN(4) {
				p := above + parts[rnd.IntN(len(parts))]
				if slices.Contains(paths, p) || slices.Contains(paths, p+"/") {
					continue
				}
				if depth < 3 && rnd.IntN(2) == 0 && len(next) < 8 {
					paths, dirs, next = append(paths, p+"/"), append(dirs, p), append(next, p+"/")
				} else {
					paths = append(paths, p)
				}
			}
		}
		level = next
	}
	return paths, dirs
}

func randomRules(rnd *rand.Rand) string {
	pieces := []string{"*", "*", "**", "?", "/", "/", "/", "**/", "/**", "/**/", "[ab]", "[!a]", "[^b]", "[]]", "[a-c]", "[[:alpha:]]", "[[:digit:]b]", "[-a]",
		"[", `\`, `\*`, `\/`, "!", "#", " ", `\ `, "\t", "\r", "***", "[a", "[z-a]", `[\]]`, "[[:foo:]]", "[[:]"}
	var b strings.Builder
	for range 1 + rnd.IntN(6) {
		if rnd.IntN(4) == 0 {
			b.WriteByte('!')
		}
		for range 1 + rnd.IntN(5) {
			if rnd.IntN(2) == 0 {
				b.WriteString(parts[rnd.IntN(len(parts))])
			} else {
				b.WriteString(pieces[rnd.IntN(len(pieces))])
			}
		}
		b.WriteString([]string{"\n", "\n", "\n", "/\n", "\r\n", " \n"}[rnd.IntN(6)])
	}
	return b.String()
}

func TestBaseAndOrder(t *testing.T) {
	root, sub := ignore.Parse([]byte("*.log\n/sub/x\n"), ""), ignore.Parse([]byte("!keep.log\n/y\n"), "sub")
	rules := stack{nil, root, sub}
	for path, want := range map[string]bool{
		"a.log": true, "keep.log": true, "sub/keep.log": false, "sub/x": true, "sub/y": true, "y": false,
		"subway/y": false, "sub/z/y": false, "sub/z/keep.log": false,
	} {
		if got := rules.ignored(path, false); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if _, decided := rules.match("sub", true); decided {
		t.Error("a rule decided about the directory it stands in")
	}
}

func TestFolding(t *testing.T) {
	r := ignore.ParseFold([]byte("ID_rsa*\n[S]ecret/\n.Env\nx/Y\n*.PEM\n"), "")
	for path, want := range map[string]bool{
		"id_RSA.pub": true, "a/.ENV": true, "X/y": true, "a.pem": true, "a.Pem": true, "b.pam": false, "İd_rsa": false,
	} {
		if got, _ := r.Match(path, false); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if got, _ := r.Match("SECRET", true); !got {
		t.Error("a class of a folding rule takes one case only")
	}
}

// A pattern of a stranger's file must not hold the walk up.
func TestMatchIsBounded(t *testing.T) {
	patterns := []string{
		strings.Repeat("*a", 200) + "b",
		"/" + strings.Repeat("**/a/", 150) + "b",
		"/" + strings.Repeat("**/*a*", 80) + "/b",
		strings.Repeat(`**\/`, 120) + "b",
	}
	path := strings.TrimSuffix(strings.Repeat(strings.Repeat("a", 120)+"/a/", 40), "/")
	start := time.Now()
	for _, p := range patterns {
		ignore.Parse([]byte(p), "").Match(path, false)
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("%d matches took %v", len(patterns), d)
	}
}

func FuzzRulesAsGit(f *testing.F) {
	for _, rules := range []string{"[!x]\n", "a/**/b/\n!a/b", "*.c\r\n\\ \n", "foo**/bar", "[[:alpha:]-z]*/", `**\/x`} {
		f.Add(rules, "a/b/foo.c", false)
		f.Add(rules, "foo/x/bar", true)
	}
	r := newRepository(f)
	f.Fuzz(func(t *testing.T, rules, path string, dir bool) {
		if len(path) > 200 || strings.Contains(path, "\x00") {
			return
		}
		for part := range strings.SplitSeq(path, "/") {
			if part == "" || part == "." || part == ".." || len(part) > 100 || strings.HasPrefix(strings.ToLower(part), ".git") {
				return
			}
		}
		if dir {
			path += "/"
		}
		defer os.RemoveAll(filepath.Join(r.dir, strings.Split(path, "/")[0]))
		r.plant(t, path)
		r.compare(t, map[string]string{"": rules}, []string{path})
	})
}

func BenchmarkMatch(b *testing.B) {
	var rules strings.Builder
	for i := range 40 {
		fmt.Fprintf(&rules, "name%d\n*.ext%d\n/dir%d/*.log\n", i, i, i)
	}
	r := ignore.Parse([]byte(rules.String()), "")
	for b.Loop() {
		r.Match("some/where/in/the/tree/file.go", false)
	}
}
