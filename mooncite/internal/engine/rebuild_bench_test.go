package engine_test

import (
	"context"
	"testing"

	"localmcp/mooncite/internal/corpus"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/source"
)

// benchBytes keeps the benchmarks' history small enough for every run.
const benchBytes = 20_000_000

// history writes an invented history and gives an engine's places over it.
func history(tb testing.TB, bytes int64) (source.Places, corpus.Stats) {
	tb.Helper()
	home := tb.TempDir()
	stats, err := corpus.Write(context.Background(), corpus.Config{Home: home, Bytes: bytes, Seed: corpus.Seed})
	if err != nil {
		tb.Fatal(err)
	}
	places, err := source.PlacesOf(map[string]string{"HOME": home})
	if err != nil {
		tb.Fatal(err)
	}
	return places, stats
}

func BenchmarkRebuild(b *testing.B) {
	places, stats := history(b, benchBytes)
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
