package workspace

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
)

// BenchmarkWalk lists the standard library's sources, some 15,000 files, beside what find
// takes for the same.
func BenchmarkWalk(b *testing.B) {
	root := runtime.GOROOT()
	if root == "" {
		b.Skip("the tree of the standard library is not known")
	}
	root, err := filepath.EvalSymlinks(root)
	must(b, err)
	tr := tree(b, root, Options{})
	var files atomic.Int64
	count := func(Visit) error { files.Add(1); return nil }
	for _, o := range []WalkOptions{{Ignored: true}, {Ignored: true, Workers: 2}, {}} {
		b.Run("workers="+strconv.Itoa(o.Workers)+" ignored="+strconv.FormatBool(o.Ignored), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				files.Store(0)
				must(b, tr.Walk(context.Background(), o, count))
			}
			b.ReportMetric(float64(files.Load()), "entries")
		})
	}
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("find", root).Run(); err != nil {
				b.Skip(err)
			}
		}
	})
}
