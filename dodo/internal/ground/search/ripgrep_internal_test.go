package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/ground/workspace"
)

// ripgrep is the command line of rg for the files that a search looks at.
func ripgrep(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("rg"); err != nil {
		t.Skip("ripgrep is not installed")
	}
	return exec.Command("rg", append([]string{"--no-config", "--no-ignore", "--hidden", "--no-messages", "--max-filesize", "8388608"}, args...)...)
}

// rgLines is what rg finds below a directory, as "path:line:column".
func rgLines(t testing.TB, dir string, args ...string) []string {
	t.Helper()
	cmd := ripgrep(t, append(append([]string{"--json", "-j2"}, args...), ".")...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("rg %q: %v", args, err)
	}
	list := []string{}
	for line := range bytes.Lines(out) {
		type text struct {
			Text  *string
			Bytes []byte
		}
		var m struct {
			Type string
			Data struct {
				Path, Lines text
				LineNumber  int `json:"line_number"`
				Submatches  []struct{ Start int }
			}
		}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		if m.Type != "match" || hasNUL(t, filepath.Join(dir, *m.Data.Path.Text)) {
			continue
		}
		if m.Data.Lines.Text != nil {
			m.Data.Lines.Bytes = []byte(*m.Data.Lines.Text)
		}
		at := 0
		if len(m.Data.Submatches) > 0 {
			at = m.Data.Submatches[0].Start
		}
		list = append(list, fmt.Sprintf("%s:%d:%d", filepath.ToSlash(filepath.Clean(*m.Data.Path.Text)), m.Data.LineNumber, column(m.Data.Lines.Bytes, at)))
	}
	slices.Sort(list)
	return list
}

// hasNUL reports whether the text of a file has a NUL: ripgrep shows what it found before it
// came upon it, and a search here does not.
func hasNUL(t testing.TB, name string) bool {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	w := worker{buffers: new(buffers)}
	return bytes.IndexByte(w.decode(raw), 0) >= 0
}

// ourLines is what a search finds there.
func ourLines(t testing.TB, tree *workspace.Tree, query string, literal, fold bool) []string {
	t.Helper()
	f := searchAll(t, tree, query, literal, fold, 1<<20)
	list := []string{}
	for _, file := range f.files {
		for _, m := range file.matches {
			list = append(list, fmt.Sprintf("%s:%d:%d", file.path, m.line, m.column))
		}
	}
	slices.Sort(list)
	return list
}

func searchAll(t testing.TB, tree *workspace.Tree, text string, literal, fold bool, show int) *finding {
	t.Helper()
	p, err := compile(text, literal, fold)
	if err != nil {
		t.Fatal(err)
	}
	q := &query{pattern: p, paths: []workspace.Path{{}}, ignored: true, fileMax: 8 << 20, show: show, texts: true, candidates: candidatesMax}
	f, err := scan(context.Background(), tree, q, new(sync.Pool))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func openTree(t testing.TB, root string) *workspace.Tree {
	t.Helper()
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := workspace.Open(root, workspace.Options{AllowUnsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

// randomText is lines of words that the queries are about, in one of the forms files have.
// broken ones are not UTF-8. With crlf some lines end so, else a CR stands within lines:
// ripgrep takes it for an end there too when it takes it for one at all.
func randomText(rnd *rand.Rand, broken, crlf bool) []byte {
	words := []string{"func", "func (s *Server) x", "needle", "Needle", "NEEDLE", "TODO(me)", "XXX(a)", "foo", "foobar", "foo bar", "abc_1234", "caf\u00e9", "\u00c9t\u00e9",
		"\U0001F600", "a.b", "(x)", "\t", "  ", "", "context.WithTimeout(", "0", "ab", "aab", "\r"}
	end := "\n"
	if crlf {
		words[len(words)-1], end = "\t", "\r\n"
	}
	var b bytes.Buffer
	for range rnd.IntN(30) {
		for range rnd.IntN(5) {
			b.WriteString(words[rnd.IntN(len(words))] + " ")
			if broken && rnd.IntN(3) == 0 {
				b.WriteString([]string{"\xff", "\xc3", "\xe2\x82", "\xed\xa0\x80"}[rnd.IntN(4)])
			}
		}
		if rnd.IntN(300) == 0 {
			b.WriteString(strings.Repeat("long ", 30000))
		}
		b.WriteString([]string{"\n", "\n", end, end, "\n" + end}[rnd.IntN(5)])
	}
	if rnd.IntN(3) == 0 {
		b.WriteString("last needle without end")
	}
	text := b.Bytes()
	if len(text) == 0 {
		return text // of a mark alone, ripgrep says that there is a line
	}
	switch rnd.IntN(8) {
	case 0:
		return append([]byte("\xef\xbb\xbf"), text...)
	case 1:
		if broken {
			return append(text, 0)
		}
		wide := []byte{0xff, 0xfe}
		for _, u := range utf16.Encode([]rune(string(text))) {
			wide = append(wide, byte(u), byte(u>>8))
		}
		return wide
	case 2:
		return slices.Insert(text, rnd.IntN(len(text)+1), 0)
	}
	return text
}

func randomFiles(t testing.TB, seed uint64, broken, crlf bool) string {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 3))
	root := t.TempDir()
	for i := range 60 {
		dir := filepath.Join(root, []string{".", "sub", "sub/.hidden", "node_modules", "a b"}[rnd.IntN(5)])
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), randomText(rnd, broken, crlf), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// On the same files, lines and columns are those that ripgrep finds.
func TestAsRipgrep(t *testing.T) {
	// What is about words, digits and white space knows ASCII only here.
	ascii := []string{`\bfunc\b`, `\bfunc\s+\w*`, `(TODO|FIXME|XXX)\(\w+\)`, `\d{3}`, `^\s*$`, `\w+$`, `\Bo`, `[[:upper:]]{3}`}
	common := []string{`func \(s \*Server\)`, "needle", "foo(bar)?", "[a-z]+_[0-9]{4}", "^foo", "foo$", "^$", "", "x*", "a|needle", "caf.", "^.{3,5}$", "[^a-z ]",
		"without end$", `a+b`, `(?i)needle`, `\.`, "é", `\p{Lu}t`, "(?i)É"}
	for seed := range uint64(4) {
		crlf := seed%2 == 1
		root := randomFiles(t, seed, false, crlf)
		tree := openTree(t, root)
		check := func(query string, literal, fold bool, args ...string) {
			t.Helper()
			if crlf {
				args = append(args, "--crlf")
			}
			if diff := cmp.Diff(rgLines(t, root, append(args, "-e", query)...), ourLines(t, tree, query, literal, fold)); diff != "" {
				t.Errorf("%q: (-rg +ours)\n%.2000s", query, diff)
			}
		}
		for _, q := range ascii {
			check(q, false, false, "--no-unicode")
		}
		for _, q := range common {
			check(q, false, false)
		}
		for _, q := range []string{"needle", "a.b", "(x)", "é", "caf\u00e9", " ", "e", "\U0001F600", "foo bar", "*"} {
			check(q, true, false, "-F")
			check(q, true, true, "-F", "-i")
		}
		if !crlf { // with --crlf it may not be asked for
			check(`\r`, false, false)
		}
	}
	root := randomFiles(t, 9, true, false)
	tree := openTree(t, root)
	for _, q := range []string{"needle", "foo bar", "[a-z]+_[0-9]{4}", "é", "(TODO|XXX)", "^foo", "end$"} {
		if diff := cmp.Diff(rgLines(t, root, "-e", q), ourLines(t, tree, q, false, false)); diff != "" {
			t.Errorf("%q, where files are not UTF-8: (-rg +ours)\n%.2000s", q, diff)
		}
	}
}

// With more files than are looked at, those that are come first by path, always the same.
func TestCandidates(t *testing.T) {
	root := t.TempDir()
	for i := range 60 {
		name := filepath.Join(root, fmt.Sprintf("d%d/s-%d", i%7, i%3), fmt.Sprint("f", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("hit\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree := openTree(t, root)
	var all []string
	err := tree.Walk(context.Background(), workspace.WalkOptions{}, func(v workspace.Visit) error {
		if strings.Contains(v.Path.Base(), "f") {
			all = append(all, v.Path.String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile("hit", true, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 25, 59, 60} {
		f, err := scan(context.Background(), tree, &query{pattern: p, paths: []workspace.Path{{}}, fileMax: 1 << 20, show: 100, candidates: n}, new(sync.Pool))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range f.files {
			got = append(got, m.path.String())
		}
		if diff := cmp.Diff(all[:n], got); diff != "" || f.cut != (n < 60) || f.scanned != n {
			t.Errorf("%d: cut %v, scanned %d (-want +got)\n%s", n, f.cut, f.scanned, diff)
		}
	}
}

// What is kept while searching is the first that is wanted, whatever the order files come in.
func TestKeepsTheFirst(t *testing.T) {
	root := t.TempDir()
	for i := range 3000 {
		name := filepath.Join(root, fmt.Sprintf("%02d", i%40), fmt.Sprintf("f%04d", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("hit\nhit\nhit\n"), fs.FileMode(0o644)); err != nil {
			t.Fatal(err)
		}
	}
	f := searchAll(t, openTree(t, root), "hit", true, false, 10)
	var got []string
	for _, m := range f.files {
		got = append(got, m.path.String())
	}
	if diff := cmp.Diff([]string{"00/f0000", "00/f0040", "00/f0080", "00/f0120"}, got); diff != "" || f.total != 9000 || f.with != 3000 {
		t.Errorf("%d lines in %d files (-want +got)\n%s", f.total, f.with, diff)
	}
}
