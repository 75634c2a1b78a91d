package sandbox_test

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/workspace"
)

// BenchmarkTrue is what the walls cost: `true` with and without them by turns, in
// milliseconds, the medians of what was run.
func BenchmarkTrue(b *testing.B) {
	w := newWorld(b)
	w.box.Probe(b.Context())
	var plain, walled []time.Duration
	for b.Loop() {
		begun := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		plain = append(plain, time.Since(begun))
		begun = time.Now()
		p, err := w.place.Start(b.Context(), sandbox.Spec{Args: []string{"/bin/true"}, Dir: w.root})
		if err != nil {
			b.Fatal(err)
		}
		if e := p.Wait(); e.Code != 0 {
			b.Fatal(e)
		}
		walled = append(walled, time.Since(begun))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(plain), "plain-ms")
	b.ReportMetric(median(walled), "walled-ms")
	b.ReportMetric(median(walled)-median(plain), "more-ms")
}

// BenchmarkGoroot is one start where the workspace is the Go distribution, whose secret paths
// are looked for each time.
func BenchmarkGoroot(b *testing.B) {
	w := newWorld(b)
	out, err := exec.Command("go", "env", "GOROOT").Output()
	must(b, err)
	tree, err := workspace.Open(strings.TrimSpace(string(out)), workspace.Options{AllowUnsafe: true})
	must(b, err)
	defer tree.Close()
	place := w.box.Place(tree.Root(), w.root, func(ctx context.Context) (sandbox.Kept, error) {
		k, err := tree.Kept(ctx)
		return sandbox.Kept{Secrets: k.Secrets, Git: k.Git}, err
	})
	w.box.Probe(b.Context())
	var all []time.Duration
	for b.Loop() {
		begun := time.Now()
		p, err := place.Start(b.Context(), sandbox.Spec{Args: []string{"/bin/true"}, Dir: tree.Root(), ReadOnly: true})
		must(b, err)
		p.Wait()
		all = append(all, time.Since(begun))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(all), "walled-ms")
}

// BenchmarkTwoHundred is 200 starts of `true`, 8 at a time.
func BenchmarkTwoHundred(b *testing.B) {
	w := newWorld(b)
	w.box.Probe(b.Context())
	for b.Loop() {
		var all sync.WaitGroup
		places := make(chan struct{}, 8)
		for range 200 {
			places <- struct{}{}
			all.Go(func() {
				defer func() { <-places }()
				p, err := w.place.Start(b.Context(), sandbox.Spec{Args: []string{"/bin/true"}, Dir: w.root})
				if err != nil {
					b.Error(err)
					return
				}
				p.Wait()
			})
		}
		all.Wait()
	}
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Microseconds()) / 1000
}
