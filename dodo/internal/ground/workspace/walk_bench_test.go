package workspace

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"localmcp/internal/safefile"
)

// BenchmarkWalk lists the standard library's sources, some 15,000 files, beside what find
// takes for the same.
func BenchmarkWalk(b *testing.B) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip(err)
	}
	root, err := filepath.EvalSymlinks(strings.TrimSpace(string(out)))
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
	b.Run("reading all", func(b *testing.B) {
		pool := sync.Pool{New: func() any { return new([]byte) }}
		for b.Loop() {
			must(b, tr.Walk(context.Background(), WalkOptions{Workers: 2}, func(v Visit) error {
				if v.Type == safefile.Regular {
					buf := pool.Get().(*[]byte)
					data, _, _, err := v.LoadText(*buf, 8<<20)
					if err == nil {
						*buf = data
					}
					pool.Put(buf)
				}
				return nil
			}))
		}
	})
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("find", root).Run(); err != nil {
				b.Skip(err)
			}
		}
	})
}
