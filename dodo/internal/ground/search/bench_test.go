package search

import (
	"context"
	"os"
	"sync"
	"testing"

	"localmcp/dodo/internal/ground/workspace"
)

func BenchmarkScan(b *testing.B) {
	tr, err := workspace.Open(os.Getenv("BTREE"), workspace.Options{AllowUnsafe: true})
	if err != nil {
		b.Fatal(err)
	}
	defer tr.Close()
	for _, q := range []string{`func (s \*Server)`, `ErrUnexpectedEOF`, `\bfunc\s+\w+\(ctx`, `context\.With(Cancel|Timeout)\(`, `(?i)deadlock`, `[a-z]+_[0-9]{4}`, `(TODO|FIXME|XXX)\(\w+\)`} {
		b.Run(q, func(b *testing.B) {
			for b.Loop() {
				p, err := compile(q, false, false)
				if err != nil {
					b.Fatal(err)
				}
				f, err := scan(context.Background(), tr, &query{pattern: p, paths: []workspace.Path{{}}, ignored: true, fileMax: 8 << 20, show: 50, texts: true, candidates: candidatesMax}, new(sync.Pool))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(f.total), "lines")
				b.ReportMetric(float64(f.scanned), "files")
				b.ReportMetric(float64(f.binary), "bin")
				b.ReportMetric(float64(f.closed+f.large), "no")
			}
		})
	}
}
