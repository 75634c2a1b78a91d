package engine_test

import (
	"context"
	"testing"
	"time"

	"localmcp/mooncite/internal/corpus"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/source"
)

// benchBytes keeps the benchmarks' history small enough for every run.
const benchBytes = 100_000_000

// history writes an invented history and gives an engine's places over it.
func history(tb testing.TB, bytes int64) (places source.Places, stats corpus.Stats, home string) {
	tb.Helper()
	home = tb.TempDir()
	stats, err := corpus.Write(context.Background(), corpus.Config{Home: home, Bytes: bytes, Seed: corpus.Seed})
	if err != nil {
		tb.Fatal(err)
	}
	places, err = source.PlacesOf(map[string]string{"HOME": home})
	if err != nil {
		tb.Fatal(err)
	}
	return places, stats, home
}

func BenchmarkRebuild(b *testing.B) {
	places, stats, _ := history(b, benchBytes)
	b.SetBytes(stats.Bytes)
	for b.Loop() {
		e, err := engine.Open(context.Background(), places, engine.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := e.Rebuild(context.Background(), nil); err != nil {
			b.Fatal(err)
		}
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecall asks the corpus's queries one after another.
func BenchmarkRecall(b *testing.B) {
	places, _, home := history(b, benchBytes)
	time.Sleep(2100 * time.Millisecond) // younger files are compared byte by byte
	e, err := engine.Open(context.Background(), places, engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	if err := e.Refresh(context.Background(), nil); err != nil {
		b.Fatal(err)
	}
	_, queries, err := corpus.Load(home)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := e.Recall(context.Background(), engine.RecallIn{Query: queries[i%len(queries)].Query}); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
