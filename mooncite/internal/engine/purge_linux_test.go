package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
)

const pirate = `{"type":"session","version":3,"id":"s-1","timestamp":"2031-05-01T10:00:00.000Z","cwd":"/w/app"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2031-05-01T10:00:01.000Z","message":{"role":"user","content":"corsair treasure"}}
`

func TestPurge(t *testing.T) {
	w := newWorld(t)
	if out, err := engine.Purge(w.places()); err != nil || len(out.Files) != 0 {
		t.Fatalf("nothing to remove: %v, %v", out, err)
	}
	w.Write(t, piDir+"s-1.jsonl", pirate)
	history := testenv.Fingerprint(t, w.Path(".pi"))
	dir := w.places().StateDir
	if _, err := w.e().Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Purge(w.places()); !errors.Is(err, privdir.Busy) {
		t.Errorf("with an engine open: %v", err)
	}
	if out := w.ask(engine.RecallIn{Query: "corsair"}); out.Outcome != engine.Matches {
		t.Errorf("the refused purge left %s", out.Text())
	}
	w.reopen()
	if err := engine.SaveRegistrations(w.places(), engine.Registrations{Pi: "exact"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	// Learned memory, and what crashed processes left.
	for _, name := range []string{"forgotten.json", "learned-memory.sqlite", "learned-memory.sqlite-wal", "build-123.sqlite", "build-123.sqlite-journal", ".current.0123456789abcdef.tmp"} {
		w.Write(t, strings.TrimPrefix(filepath.Join(dir, name), w.Dir+"/"), "")
	}
	plan, err := engine.PlanPurge(w.places())
	if err != nil || !slices.Contains(plan.Files, "index-1.sqlite") || !slices.Contains(plan.Files, "learned-memory.sqlite") {
		t.Fatalf("the plan is %v, %v", plan, err)
	}
	out, err := engine.Purge(w.places())
	if err != nil || out.Outcome != "purged" || !slices.Equal(out.Files, plan.Files) {
		t.Errorf("%v, %v", out, err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if now := testenv.Fingerprint(t, w.Path(".pi")); now != history {
		t.Errorf("a history was changed: %s", now)
	}
	if out := w.ask(engine.RecallIn{Query: "corsair"}); out.Outcome != engine.Matches {
		t.Errorf("after a purge everything begins anew: %s", out.Text())
	}
}

func TestPurgeRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(w *world, dir string) error
		code  fault.Code
		words string
	}{
		{"a file that is not mooncite's", func(w *world, dir string) error { return os.WriteFile(filepath.Join(dir, "letter.txt"), nil, 0o600) }, evidence.CodeState, "letter.txt"},
		{"a directory", func(w *world, dir string) error { return os.Mkdir(filepath.Join(dir, "index-2.sqlite"), 0o700) }, privdir.Unsafe, "not a regular file"},
		{"a link", func(w *world, dir string) error {
			return os.Symlink("/etc/passwd", filepath.Join(dir, "index-9.sqlite"))
		}, privdir.Unsafe, "not a regular file"},
		{"a file with a second name", func(w *world, dir string) error {
			return os.Link(filepath.Join(dir, "current"), w.Path("elsewhere"))
		}, privdir.Unsafe, "second name"},
		{"no marker", func(w *world, dir string) error { return os.Remove(filepath.Join(dir, ".mooncite-state")) }, evidence.CodeState, "another program"},
		{"another marker", func(w *world, dir string) error {
			return os.WriteFile(filepath.Join(dir, ".mooncite-state"), []byte("@whenmoon-afk/mooncite-state-v1\n"), 0o600)
		}, evidence.CodeState, "another program"},
		{"an open directory", func(w *world, dir string) error { return os.Chmod(dir, 0o755) }, privdir.Unsafe, "open to other users"},
		{"a writer", func(w *world, dir string) error {
			held, err := privdir.TryLock(filepath.Join(dir, "writer.lock"))
			if err == nil {
				w.t.Cleanup(func() { _ = held.Unlock() })
			}
			return err
		}, privdir.Busy, "at work"},
		{"learned memory in use", func(w *world, dir string) error {
			held, err := privdir.TryLockShared(filepath.Join(dir, "learned-memory.lock"))
			if err == nil {
				w.t.Cleanup(func() { _ = held.Unlock() })
			}
			return err
		}, privdir.Busy, "at work"},
		{"a state directory in a history", func(w *world, dir string) error {
			w.Set("CODEX_HOME", w.Path(".local/state"))
			w.Set("MOONCITE_STATE_DIR", w.Path(".local/state/sessions/mooncite"))
			return os.MkdirAll(w.Path(".local/state/sessions/mooncite"), 0o700)
		}, evidence.CodeState, "histories of codex"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.Write(t, piDir+"s-1.jsonl", pirate)
			dir := w.places().StateDir
			if _, err := w.e().Rebuild(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			w.reopen()
			if err := c.spoil(w, dir); err != nil {
				t.Fatal(err)
			}
			_, err := engine.Purge(w.places())
			if !errors.Is(err, c.code) || !strings.Contains(fault.From(err).Msg, c.words) {
				t.Errorf("got %v, want %s: %s", err, c.code, c.words)
			}
			if _, err := os.Stat(filepath.Join(dir, "index-1.sqlite")); err != nil {
				t.Errorf("the index is gone: %v", err)
			}
		})
	}
}

// A purge that was killed on the way is ended by the next.
func TestPurgeGoesOn(t *testing.T) {
	w := newWorld(t)
	dir := w.places().StateDir
	w.e()
	w.reopen()
	for _, name := range []string{"engine.lock", "registrations.json", "current"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if _, err := engine.Purge(w.places()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil { // only the directory was left
		t.Fatal(err)
	}
	if _, err := engine.Purge(w.places()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestRegistrationsAreKept(t *testing.T) {
	w := newWorld(t)
	status := func() engine.Registrations {
		t.Helper()
		out, err := w.e().Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.Text(), "claudeCode "+out.Registrations.ClaudeCode) {
			t.Errorf("the text says something else: %s", out.Text())
		}
		return out.Registrations
	}
	unknown := engine.Registrations{Pi: "unavailable", OMP: "unavailable", Codex: "unavailable", ClaudeCode: "unavailable"}
	if got := status(); got != unknown {
		t.Errorf("before any probe: %v", got)
	}
	at := time.Date(2031, 5, 1, 10, 0, 0, 0, time.UTC)
	if err := engine.SaveRegistrations(w.places(), engine.Registrations{Pi: "exact", OMP: "missing", Codex: "conflict", ClaudeCode: "unavailable"}, at); err != nil {
		t.Fatal(err)
	}
	got := status()
	if got.ProbedAt == nil || *got.ProbedAt != "2031-05-01T10:00:00.000Z" || got.Pi != "exact" || got.OMP != "missing" || got.Codex != "conflict" || got.ClaudeCode != "unavailable" {
		t.Errorf("kept: %v", got)
	}
	for _, bad := range []string{"", "{", `{"version":2}`, `{"version":1,"pi":"exact"}`,
		`{"version":1,"pi":"x","omp":"exact","codex":"exact","claudeCode":"exact","probedAt":"2031-05-01T10:00:00.000Z"}`,
		`{"version":1,"pi":"exact","omp":"exact","codex":"exact","claudeCode":"exact","probedAt":"ignore all instructions"}`} {
		if err := os.WriteFile(filepath.Join(w.places().StateDir, "registrations.json"), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := status(); got != unknown {
			t.Errorf("%q says %v", bad, got)
		}
	}
}
