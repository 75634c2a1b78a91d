package edit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/ground/edit"
)

func TestDiff(t *testing.T) {
	for name, c := range map[string]struct {
		path          string
		before, after []byte
		want          string
	}{
		"change":      {"d/f", []byte("a\nb\nc\n"), []byte("a\nx\nc\n"), "--- a/d/f\n+++ b/d/f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
		"create":      {"f", nil, []byte("a\n"), "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"},
		"delete":      {"f", []byte("a"), nil, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n"},
		"nothing":     {"f", []byte("a\n"), []byte("a\n"), ""},
		"CRLF":        {"f", []byte("a\r\n"), []byte("b\r\n"), "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\r\n+b\r\n"},
		"UTF-16":      {"f", []byte("\xff\xfea\x00"), []byte("\xff\xfe\xac\x20"), "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+€\n\\ No newline at end of file\n"},
		"binary":      {"f", []byte("\xff"), []byte("a"), "Binary files a/f and b/f differ\n"},
		"a bad name":  {"a\n\"\x1b", []byte("a\n"), []byte("b\n"), "--- \"a/a\\012\\\"\\033\"\n+++ \"b/a\\012\\\"\\033\"\n@@ -1 +1 @@\n-a\n+b\n"},
		"far changes": {"f", []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), []byte("x\n2\n3\n4\n5\n6\n7\n8\ny\n"), "--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, cut := edit.Diff(c.path, c.before, c.after, 0); cut || got != c.want {
				t.Errorf("%t\n%s", cut, got)
			}
		})
	}
}

// Many small changes of a long file are shown one by one, not as one large one.
func TestDiffOfManyChanges(t *testing.T) {
	var before, after strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&before, "line %d\n", i)
		if i%10 == 5 {
			fmt.Fprintf(&after, "LINE %d\n", i)
		} else {
			fmt.Fprintf(&after, "line %d\n", i)
		}
	}
	got, cut := edit.Diff("f", []byte(before.String()), []byte(after.String()), 1<<20)
	if removed := strings.Count(got, "\n-line"); cut || removed != 500 {
		t.Errorf("%d lines removed", removed)
	}
}

func TestDiffIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	random := func(n int, words int) []byte {
		var b strings.Builder
		for b.Len() < n {
			fmt.Fprintf(&b, "%d\n", r.IntN(words))
		}
		return []byte(b.String())
	}
	for name, c := range map[string][2][]byte{
		"unrelated":    {random(300<<10, 1<<30), random(300<<10, 1<<30)},
		"all alike":    {random(90<<10, 10), random(90<<10, 10)},
		"two lines":    {random(90<<10, 2), random(90<<10, 2)},
		"one long one": {[]byte(strings.Repeat("a", 1<<20)), []byte(strings.Repeat("b", 1<<20))},
		"a shuffle":    {[]byte(strings.Repeat("a\nb\nc\n", 16000)), []byte(strings.Repeat("c\nb\na\n", 16000))},
	} {
		start := time.Now()
		got, cut := edit.Diff("f", c[0], c[1], 0)
		d := time.Since(start)
		t.Logf("%s: %v", name, d)
		if !cut || len(got) > edit.MaxDiff || !strings.HasSuffix(got, "\n") {
			t.Errorf("%s: %d bytes, cut %t", name, len(got), cut)
		}
		if d > 20*time.Second {
			t.Errorf("%s took %v", name, d)
		}
	}
	if got, cut := edit.Diff("f", make([]byte, 2<<20), []byte("a"), 0); got != "" || !cut {
		t.Errorf("a large file: %d bytes, %t", len(got), cut)
	}
}
