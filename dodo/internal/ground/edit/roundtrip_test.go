package edit_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"localmcp/dodo/internal/ground/edit"
)

// lines makes a text of lines from a few words, so that much is alike.
func lines(r *rand.Rand, n int) []string {
	words := []string{"a", "b", "}", "", "-- x", "++ y", "@@ -1 +1 @@", "\\ z", " in", "\tx", "é", "lone \r cr"}
	out := make([]string, n)
	for i := range out {
		out[i] = words[r.IntN(len(words))]
		if r.IntN(3) == 0 {
			out[i] += fmt.Sprint(r.IntN(40))
		}
	}
	return out
}

// join joins lines by the ends of a kind: LF, CRLF or mixed; the last may have none.
func join(r *rand.Rand, list []string, kind int) string {
	var b strings.Builder
	for i, l := range list {
		b.WriteString(l)
		switch {
		case i == len(list)-1 && r.IntN(3) == 0:
		case kind == 1 || kind == 2 && i%2 == 0:
			b.WriteString("\r\n")
		default:
			b.WriteString("\n")
		}
	}
	return b.String()
}

// change edits some lines.
func change(r *rand.Rand, list []string) []string {
	out := append([]string(nil), list...)
	for range 1 + r.IntN(5) {
		at := r.IntN(len(out) + 1)
		switch r.IntN(3) {
		case 0:
			out = append(out[:at], append(lines(r, 1+r.IntN(3)), out[at:]...)...)
		case 1:
			out = append(out[:at], out[min(len(out), at+1+r.IntN(3)):]...)
		case 2:
			if at < len(out) {
				out[at] += "!"
			}
		}
	}
	return out
}

// A patch made by one program gives with ours what it was made from; so it does by the
// library, as long as that can read it.
func TestRoundTripLibrary(t *testing.T) {
	tried, refused := 0, 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 1))
		list := lines(r, r.IntN(30))
		kind := int(seed) % 3
		before, after := join(r, list, kind), join(r, change(r, list), kind)
		if before == after {
			continue
		}
		patch := udiff.Unified("a/f", "b/f", before, after)
		got, notes, err := apply(patch, []byte(before))
		if err != nil || string(got) != after || len(notes) > 0 {
			t.Fatalf("seed %d: %v %q\n%q\n%q\n%q\n%s", seed, err, notes, before, after, got, patch)
		}
		files, _, err := gitdiff.Parse(strings.NewReader(patch))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var theirs bytes.Buffer
		if err := gitdiff.Apply(&theirs, strings.NewReader(before), files[0]); err != nil || theirs.String() != after {
			t.Fatalf("seed %d: library: %v", seed, err)
		}
		// The same with wrong counts, as models type them: the right text or a refusal.
		if strings.Contains(patch, "@@ -0,0") {
			continue
		}
		for _, form := range []string{"@@ -$1,99 +1,99 @@", "@@ -$1 +1 @@", "@@ -$1,2 +1,2 @@"} {
			got, notes, err := apply(header.ReplaceAllString(patch, form), []byte(before))
			if err != nil {
				refused++
			} else if tried++; string(got) != after {
				t.Fatalf("seed %d, %s: %q, want %q %q\n%s", seed, form, got, after, notes, patch)
			}
		}
	}
	if refused > tried/20 {
		t.Errorf("%d patches with wrong counts were refused, %d applied", refused, tried)
	}
}

var header = regexp.MustCompile(`(?m)^@@ -(\d+)\S* \S+ @@`)

// What git diff writes, ours applies; what ours shows, git applies.
func TestRoundTripGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	run := func(args ...string) (string, error) {
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "PATH=" + os.Getenv("PATH"), "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	write := func(name, s string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		list := lines(r, r.IntN(40))
		kind := int(seed) % 3
		before, after := join(r, list, kind), join(r, change(r, list), kind)
		if before == after {
			continue
		}
		write("before", before)
		write("after", after)
		context := fmt.Sprintf("-U%d", 1+r.IntN(4))
		patch, _ := run("diff", "--no-index", "--text", context, "before", "after")
		patch = strings.ReplaceAll(patch, "b/after", "b/before")
		got, notes, err := apply(patch, []byte(before))
		if err != nil || string(got) != after || len(notes) > 0 {
			t.Fatalf("seed %d: %v %q\nbefore %q\nafter %q\ngot %q\n%s", seed, err, notes, before, after, got, patch)
		}
		shown, cut := edit.Diff("before", []byte(before), []byte(after), 1<<20)
		if cut {
			t.Fatal("cut")
		}
		write("patch", shown)
		if out, err := run("apply", "--whitespace=nowarn", "patch"); err != nil {
			t.Fatalf("seed %d: git apply: %s\n%s", seed, out, shown)
		}
		if b, _ := os.ReadFile(filepath.Join(dir, "before")); string(b) != after {
			t.Fatalf("seed %d: git apply gives %q, want %q", seed, b, after)
		}
	}
}

// Whatever the bytes are: no panic, an answer, and sections that have a name and an action;
// and what a patch does to a file it does again.
func FuzzPatch(f *testing.F) {
	for _, s := range []string{
		names + "@@ -1,2 +1,2 @@\n a\n-b\n+x\n", names + "@@\n a\n-b\n+x\n", "diff --git a/f b/f\nnew file mode 100644\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n",
		"--- \"a/\\303\\244\"\n+++ \"b/\\303\\244\"\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "--- a/f\r\n+++ b/f\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n",
		"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", names + "@@ -1,9 +1,9 @@\n a\n\n-b\n+x\n\n\n-- \n2.43\n",
	} {
		f.Add([]byte(s), []byte("a\nb\n"))
	}
	f.Fuzz(func(t *testing.T, patch, file []byte) {
		files, err := edit.ParsePatch(patch)
		if err != nil {
			return
		}
		if len(files) == 0 {
			t.Fatal("no section and no error")
		}
		for _, p := range files {
			if p.Path == "" || p.Line < 1 {
				t.Fatalf("%+v", p)
			}
			before := file
			if p.Action == edit.Create {
				before = nil
			}
			once, _, err := p.Apply(before, edit.Options{MaxBytes: 1 << 20})
			if err != nil {
				continue
			}
			if len(once) > len(before)+2*len(patch)+4 {
				t.Fatalf("%d bytes from %d and a patch of %d", len(once), len(before), len(patch))
			}
			if again, _, err := p.Apply(before, edit.Options{}); err != nil || !bytes.Equal(once, again) {
				t.Fatalf("twice: %v", err)
			}
		}
	})
}

// From any text to any other and back.
func FuzzRoundTrip(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc")
	f.Add("a\r\nb\n", "\r\n\r")
	f.Add("\ufeffa", "a")
	f.Fuzz(func(t *testing.T, before, after string) {
		patch, cut := edit.Diff("f", []byte(before), []byte(after), 1<<20)
		if cut || patch == "" || strings.HasPrefix(patch, "Binary") {
			return
		}
		if strings.HasPrefix(before, "\xff\xfe") || strings.HasPrefix(before, "\xfe\xff") || strings.HasPrefix(after, "\xff\xfe") || strings.HasPrefix(after, "\xfe\xff") {
			return // shown as text, so the patch says nothing about the encoding
		}
		got, notes, err := apply(patch, []byte(before))
		if err != nil || len(notes) > 0 {
			t.Fatalf("%v %q\n%s", err, notes, patch)
		}
		want := after
		if strings.HasPrefix(before, "\ufeff") != strings.HasPrefix(after, "\ufeff") {
			return // a mark is not text: the diff does not show it
		}
		if string(got) != want {
			t.Fatalf("%q to %q: got %q\n%s", before, after, got, patch)
		}
	})
}
