package index_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
)

func rebuild(t *testing.T, s *index.Store) {
	t.Helper()
	held, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	if err := s.Rebuild(t.Context(), func(*index.Batch) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// Readers that meet the moment at which another index comes into force read that one.
func TestReadsWhileIndexesChange(t *testing.T) {
	s := open(t, private(t))
	rebuild(t, s)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := s.Read(t.Context(), func(*index.Snapshot) error { return nil }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 40 {
		rebuild(t, s)
	}
	close(stop)
	all.Wait()
}

// An index that somebody removed is damage, not an empty index.
func TestRemovedIndexIsNotMadeAnew(t *testing.T) {
	dir := private(t)
	s := open(t, dir)
	publish(t, s, func(b *index.Batch) error {
		_, _, err := put(b, evidence.Pi, "a", doc{text: "words"})
		return err
	})
	files, err := filepath.Glob(filepath.Join(dir, "index-*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	err = open(t, dir).Read(t.Context(), func(*index.Snapshot) error { return nil })
	if fault.From(err).Code != sqlitedb.Damaged || errors.Is(err, sqlitedb.ErrClosed) {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "index-*")); len(left) != 0 {
		t.Errorf("made: %v", left)
	}
}
