package change_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// lines makes a text of about n bytes that compresses like source.
func lines(n, seed int) string {
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "\tvalue%d := compute(%d, %q)\n", r.IntN(1000), r.Int(), fmt.Sprintf("%x", r.Uint64()))
	}
	return b.String()[:n]
}

// bare is what an editor does that loses nothing: write, fsync, rename, fsync of the directory.
func bare(t testing.TB, dir string, data []byte) {
	f, err := os.OpenFile(filepath.Join(dir, "temp"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	must(t, err)
	_, err = f.Write(data)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
	must(t, os.Rename(filepath.Join(dir, "temp"), filepath.Join(dir, "file")))
	d, err := os.Open(dir)
	must(t, err)
	must(t, d.Sync())
	must(t, d.Close())
}

// edits alternates bare replacements and edits of a file of 10 KB, and returns the medians.
func (w *world) edits(n int) (plain, journaled time.Duration) {
	text := lines(10<<10, 1)
	w.write("file.go", "counter 0\n"+text)
	dir := realTemp(w.t)
	var a, b []time.Duration
	for i := range n {
		start := time.Now()
		bare(w.t, dir, []byte(text))
		a = append(a, time.Since(start))
		start = time.Now()
		w.call("edit_file", obj{"path": "file.go", "edits": []obj{{"find": fmt.Sprintf("counter %d\n", i), "replace": fmt.Sprintf("counter %d\n", i+1)}}})
		b = append(b, time.Since(start))
	}
	slices.Sort(a)
	slices.Sort(b)
	return a[n/2], b[n/2]
}

// BenchmarkEdit prints what a journaled edit costs, as a multiple of the bare replacement of
// the same run. The goal is 3.5.
func BenchmarkEdit(b *testing.B) {
	w := newWorld(b)
	plain, journaled := w.edits(max(b.N, 20))
	b.ReportMetric(float64(plain.Microseconds()), "bare-µs")
	b.ReportMetric(float64(journaled.Microseconds()), "edit-µs")
	b.ReportMetric(float64(journaled)/float64(plain), "ratio")
}
