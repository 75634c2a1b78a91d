package index_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// What the file system says of the files beside the index has a code and says what to do.
func TestFilesBesideTheIndexThatCannotBeUsed(t *testing.T) {
	dir := private(t)
	s := open(t, dir)
	check := func(what string, err error) {
		t.Helper()
		if f := fault.From(err); f == nil || f.Code != sqlitedb.Unusable || f.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	pointer := filepath.Join(dir, "current")
	if err := os.Mkdir(pointer, 0o700); err != nil {
		t.Fatal(err)
	}
	check("a pointer that is a directory", s.Read(t.Context(), func(*index.Snapshot) error { return nil }))
	if err := os.Remove(pointer); err != nil {
		t.Fatal(err)
	}
	var unit *index.Unit
	publish(t, s, func(b *index.Batch) (err error) {
		_, unit, err = put(b, evidence.Pi, "a", doc{text: "words"})
		return err
	})
	inTheWay := filepath.Join(dir, "build-"+strconv.Itoa(os.Getpid())+".sqlite", "x")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	check("a rebuild", s.Rebuild(t.Context(), func(*index.Batch) error { return nil }))
	_, err = s.Erase(t.Context(), []index.Unit{*unit}, func(*index.Unit, *index.Span) bool { return true })
	check("an erasure", err)
	if f := fault.From(err); !strings.Contains(f.Msg, "traces") || !strings.Contains(f.Hint, "mooncite rebuild") {
		t.Errorf("what is left is not said: %s; %s", f.Msg, f.Hint)
	}
	read(t, s, func(snap *index.Snapshot) {
		if got := found(t, snap, query("words", index.Any())); len(got) > 0 {
			t.Errorf("erased text is found: %v", got)
		}
	})
}
