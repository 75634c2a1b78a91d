package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"localmcp/dodo/internal/door/surface"
	"localmcp/internal/mcpserve"
)

// BenchmarkStart is what a server does before it answers, in parts.
func BenchmarkStart(b *testing.B) {
	b.Run("catalogue", func(b *testing.B) {
		for b.Loop() {
			_ = services{}.catalogue()
		}
	})
	b.Run("surface", func(b *testing.B) {
		ops := services{}.catalogue()
		for b.Loop() {
			surface.Tools(surface.Full, ops, nil)
		}
	})
	b.Run("schemas", func(b *testing.B) {
		for b.Loop() {
			for _, o := range surface.Tools(surface.Full, services{}.catalogue(), nil).Ops() {
				_ = o.InputSchema()
			}
		}
	})
	b.Run("server", func(b *testing.B) {
		set := surface.Tools(surface.Full, services{}.catalogue(), nil)
		for b.Loop() {
			mcpserve.New(mcpserve.Options{Name: "dodo", Version: "1", Set: set})
		}
	})
	b.Run("installation", func(b *testing.B) {
		dir := b.TempDir()
		work := filepath.Join(dir, "work")
		if err := os.Mkdir(work, 0o755); err != nil {
			b.Fatal(err)
		}
		p := &program{env: map[string]string{"HOME": dir, "DODO_CONFIG_DIR": filepath.Join(dir, "state")}}
		log := slog.New(slog.NewTextHandler(io.Discard, nil))
		for b.Loop() {
			in, err := p.install(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			s, err := in.serve(context.Background(), opening{root: work, surface: surface.Full, log: log})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.end(context.Background()); err != nil {
				b.Fatal(err)
			}
			in.close(log)
		}
	})
}
