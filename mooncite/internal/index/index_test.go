package index_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/lexis"
	"localmcp/mooncite/internal/transcript"
)

type nothing struct{}

func (nothing) Session(evidence.Origin, string, string) bool { return false }
func (nothing) Evidence(string) bool                         { return false }
func (nothing) Empty() bool                                  { return true }

// A doc is one span to put in.
type doc struct {
	text    string
	role    evidence.Role
	project string
	time    int64
	hidden  bool
}

func open(t testing.TB, dir string) *index.Store {
	t.Helper()
	s, err := index.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func private(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// put stores documents as one new source and unit.
func put(b *index.Batch, o evidence.Origin, name string, docs ...doc) (*index.Source, *index.Unit, error) {
	src := &index.Source{Origin: o, Root: strings.Repeat("ab", 32), Rel: name, Present: true, Info: transcript.Info{Session: name}}
	unit := &index.Unit{Session: name}
	fill := b.Unit(src, unit, nil, nothing{})
	for i, d := range docs {
		if err := add(fill, i, d); err != nil {
			return nil, nil, err
		}
	}
	if _, err := fill.Finish(nil); err != nil {
		return nil, nil, err
	}
	if err := b.PutSource(src); err != nil {
		return nil, nil, err
	}
	return src, unit, b.PutUnit(unit)
}

func add(fill *index.Filler, i int, d doc) error {
	rec := &transcript.Record{Line: int64(i + 1), Start: int64(i * 100), End: int64(i*100 + 99), Digest: sha256.Sum256([]byte(d.text))}
	role := d.role
	if role == "" {
		role = evidence.User
	}
	return fill.Add(rec, &transcript.Entry{ID: fmt.Sprint("e", i), Session: "s", Project: d.project, Kind: "message", Time: d.time,
		Spans: []transcript.Span{{Text: d.text, Role: role, Hidden: d.hidden}}})
}

func publish(t testing.TB, s *index.Store, f func(b *index.Batch) error) {
	t.Helper()
	held, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	if err := s.Publish(t.Context(), false, f); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, s *index.Store, f func(*index.Snapshot)) {
	t.Helper()
	if err := s.Read(t.Context(), func(snap *index.Snapshot) error { f(snap); return nil }); err != nil {
		t.Fatal(err)
	}
}

func query(text string, filter index.Filter) *index.Query {
	var tk lexis.Tokenizer
	return &index.Query{Terms: tk.Query(text), Phrase: tk.Tokens(text), Filter: filter, Want: 10, Enough: 10}
}

// found gives the texts of a search's candidates that are inside its filter, sorted.
func found(t testing.TB, s *index.Snapshot, q *index.Query) []string {
	t.Helper()
	f, err := s.Search(q)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range f.Candidates {
		sp, text := span(t, s, c.Doc)
		if sp != nil && !sp.Hidden && within(&q.Filter, sp.Time) {
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return out
}

// span reads a span with its text; nil when there is none.
func span(t testing.TB, s *index.Snapshot, doc int64) (*index.Span, string) {
	t.Helper()
	sp, err := s.Span(doc)
	if err != nil {
		t.Fatal(err)
	}
	if sp == nil {
		return nil, ""
	}
	text, err := sp.Text()
	if err != nil {
		t.Fatal(err)
	}
	return sp, text
}

func within(f *index.Filter, ms int64) bool {
	if f.After == evidence.NoTime && f.Before == evidence.NoTime {
		return true
	}
	return ms != evidence.NoTime && (f.After == evidence.NoTime || ms >= f.After) && (f.Before == evidence.NoTime || ms <= f.Before)
}

func TestPublish(t *testing.T) {
	dir := private(t)
	a, b := open(t, dir), open(t, dir) // as two processes
	read(t, a, func(s *index.Snapshot) {
		if s != nil || a.Exists() || a.Size() != 0 {
			t.Error("there is an index before the first publication")
		}
	})
	publish(t, a, func(x *index.Batch) error {
		_, _, err := put(x, evidence.Pi, "one", doc{text: "alpha words"}, doc{text: "beta words"})
		return err
	})
	var number int64
	for _, s := range []*index.Store{a, b} {
		read(t, s, func(s *index.Snapshot) {
			number = s.Number()
			if got := found(t, s, query("alpha", index.Any())); s.SpanCount() != 2 || !slices.Equal(got, []string{"alpha words"}) {
				t.Errorf("%d spans, %q", s.SpanCount(), got)
			}
		})
	}
	// What fails leaves no trace.
	broken := errors.New("broken")
	held, err := a.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if other, err := b.TryLock(); err == nil && other != nil {
		t.Error("two hold the lock")
	}
	if err := a.Publish(t.Context(), false, func(x *index.Batch) error {
		if _, _, err := put(x, evidence.Pi, "two", doc{text: "gamma words"}); err != nil {
			return err
		}
		return broken
	}); !errors.Is(err, broken) {
		t.Error(err)
	}
	held.Unlock()
	read(t, b, func(s *index.Snapshot) {
		if s.Number() != number || s.SpanCount() != 2 || len(s.Sources()) != 1 || found(t, s, query("gamma", index.Any())) != nil {
			t.Errorf("a failed publication shows: %d spans", s.SpanCount())
		}
	})
	publish(t, b, func(x *index.Batch) error {
		_, _, err := put(x, evidence.OMP, "two", doc{text: "gamma words"})
		return err
	})
	read(t, a, func(s *index.Snapshot) {
		if s.Number() == number || s.SpanCount() != 3 || s.SourceAt(evidence.OMP, strings.Repeat("ab", 32), "two") == nil {
			t.Errorf("%d spans", s.SpanCount())
		}
	})
}

func TestRebuild(t *testing.T) {
	dir := private(t)
	a, b := open(t, dir), open(t, dir)
	publish(t, a, func(x *index.Batch) error {
		_, _, err := put(x, evidence.Pi, "one", doc{text: "alpha words"})
		return err
	})
	numbers := map[int64]bool{}
	note := func(s *index.Store) {
		t.Helper()
		read(t, s, func(s *index.Snapshot) {
			if numbers[s.Number()] {
				t.Errorf("publication %d is there twice", s.Number())
			}
			numbers[s.Number()] = true
		})
	}
	note(b)
	if err := os.WriteFile(filepath.Join(dir, "build-99.sqlite-wal"), []byte("left by a crash"), 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := a.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := a.Rebuild(t.Context(), func(x *index.Batch) error {
		if _, _, err := put(x, evidence.Pi, "one", doc{text: "beta words"}); err != nil {
			return err
		}
		return broken
	}); !errors.Is(err, broken) {
		t.Error(err)
	}
	read(t, b, func(s *index.Snapshot) {
		if found(t, s, query("alpha", index.Any())) == nil {
			t.Error("a failed rebuild took the last good state away")
		}
	})
	for i := range 3 {
		if err := a.Rebuild(t.Context(), func(x *index.Batch) error {
			_, _, err := put(x, evidence.Pi, "one", doc{text: fmt.Sprint("gamma words ", i)})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		note(b)
		read(t, b, func(s *index.Snapshot) {
			if found(t, s, query("alpha", index.Any())) != nil || found(t, s, query("gamma", index.Any())) == nil {
				t.Error("the other store does not see the rebuilt index")
			}
		})
	}
	held.Unlock()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "build-") || strings.HasPrefix(e.Name(), "index-") && !strings.HasPrefix(e.Name(), "index-4.sqlite") {
			t.Errorf("%s is left", e.Name())
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", e.Name(), info.Mode())
		}
	}
	publish(t, b, func(x *index.Batch) error {
		_, _, err := put(x, evidence.Pi, "two", doc{text: "delta"})
		return err
	})
	note(a)
}

// holders are the files of a directory that hold a text.
func holders(t testing.TB, dir, text string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestErase(t *testing.T) {
	dir := private(t)
	s := open(t, dir)
	var units []index.Unit
	for i := range 6 { // several segments, and pages that were written more than once
		publish(t, s, func(x *index.Batch) error {
			_, u, err := put(x, evidence.Pi, fmt.Sprint("file", i), doc{text: "the zanzibarium word"}, doc{text: "kept quinceboard words"}, doc{text: "hidden zanzibarium too", hidden: true})
			units = append(units, *u)
			return err
		})
	}
	publish(t, s, func(x *index.Batch) error { return x.DropUnit(units[5].ID) })
	if holders(t, dir, "zanzibarium") == nil {
		t.Fatal("the word is not in the file: the test proves nothing")
	}
	held, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	n, err := s.Erase(t.Context(), units[:5], func(_ *index.Unit, sp *index.Span) bool { return sp.Entry != "e1" })
	if err != nil || n != 5 {
		t.Fatal(n, err)
	}
	if names := holders(t, dir, "zanzibarium"); names != nil {
		t.Errorf("the word is still in %v", names)
	}
	read(t, s, func(s *index.Snapshot) {
		if found(t, s, query("zanzibarium", index.Any())) != nil || len(found(t, s, query("quinceboard", index.Any()))) != 5 {
			t.Error("the wrong spans were erased")
		}
		gone := 0
		for _, u := range units[:5] {
			if err := s.EachSpan(u.ID, func(sp *index.Span) bool {
				if sp.Gone {
					gone++
					if sp.Size != 0 {
						t.Error("an erased span has a size")
					}
				}
				return true
			}); err != nil {
				t.Error(err)
			}
		}
		if gone != 10 || s.SpanCount() != 12-5-1 && s.SpanCount() != 12-5 {
			t.Errorf("%d gone, %d spans", gone, s.SpanCount())
		}
	})
}

func TestDropAndDiscard(t *testing.T) {
	s := open(t, private(t))
	var src *index.Source
	var unit *index.Unit
	publish(t, s, func(x *index.Batch) (err error) {
		src, unit, err = put(x, evidence.Pi, "one", doc{text: "alpha words"}, doc{text: "beta words"})
		return err
	})
	publish(t, s, func(x *index.Batch) error {
		own := *src
		u := *unit
		fill := x.Unit(&own, &u, nil, nothing{})
		for i := range 200 { // more than a block
			if err := add(fill, 10+i, doc{text: fmt.Sprint("discarded words ", i)}); err != nil {
				return err
			}
		}
		return fill.Discard()
	})
	read(t, s, func(s *index.Snapshot) {
		if found(t, s, query("discarded", index.Any())) != nil || len(found(t, s, query("words", index.Any()))) != 2 {
			t.Error("what was discarded is found")
		}
		if n, err := s.Count(&index.Filter{Units: []int64{unit.ID}, After: evidence.NoTime, Before: evidence.NoTime}); n != 2 || err != nil {
			t.Errorf("%d %v", n, err)
		}
	})
	publish(t, s, func(x *index.Batch) error { return x.DropSource(src, []index.Unit{*unit}) })
	read(t, s, func(s *index.Snapshot) {
		if s.SpanCount() != 0 || len(s.Sources()) != 0 || found(t, s, query("alpha", index.Any())) != nil {
			t.Error("a dropped source shows")
		}
	})
	// Document numbers are never given twice.
	var next *index.Unit
	publish(t, s, func(x *index.Batch) (err error) {
		_, next, err = put(x, evidence.Pi, "two", doc{text: "gamma"})
		return err
	})
	read(t, s, func(s *index.Snapshot) {
		if err := s.EachSpan(next.ID, func(sp *index.Span) bool {
			if sp.Doc <= 2 {
				t.Errorf("document %d was given before", sp.Doc)
			}
			return true
		}); err != nil {
			t.Error(err)
		}
	})
}

func TestRelabel(t *testing.T) {
	s := open(t, private(t))
	var unit *index.Unit
	publish(t, s, func(x *index.Batch) (err error) {
		var docs []doc
		for i := range 150 {
			docs = append(docs, doc{text: fmt.Sprint("word ", i)})
		}
		_, unit, err = put(x, evidence.Pi, "one", docs...)
		return err
	})
	off := func() (entries []string) {
		read(t, s, func(s *index.Snapshot) {
			if _, err := s.Span(1); err != nil { // into the cache
				t.Error(err)
			}
			if err := s.EachSpan(unit.ID, func(sp *index.Span) bool {
				if sp.Off {
					entries = append(entries, sp.Entry)
				}
				return true
			}); err != nil {
				t.Error(err)
			}
		})
		return entries
	}
	if got := off(); got != nil {
		t.Errorf("%q", got)
	}
	var runs []int64
	read(t, s, func(s *index.Snapshot) { runs, _ = s.Runs(unit.ID) })
	publish(t, s, func(x *index.Batch) error {
		return x.Relabel(runs, func(entry string) bool { return entry == "e0" || entry == "e149" })
	})
	if got := off(); !slices.Equal(got, []string{"e0", "e149"}) {
		t.Errorf("%q", got)
	}
	read(t, s, func(s *index.Snapshot) { // what was cached is not served
		if sp, err := s.Span(1); err != nil || sp == nil || !sp.Off {
			t.Errorf("%+v %v", sp, err)
		}
	})
}

// A damaged block is a clear fault with the way out, never a panic.
func TestDamagedBlock(t *testing.T) {
	dir := private(t)
	s := open(t, dir)
	publish(t, s, func(x *index.Batch) error {
		_, _, err := put(x, evidence.Pi, "one", doc{text: strings.Repeat("alpha words ", 50)})
		return err
	})
	s.Close()
	for name, statement := range map[string]string{
		"text": "UPDATE blocks SET text = x'0102030405'", "no text": "UPDATE blocks SET text = x''", "kind of text": "UPDATE blocks SET text = x'ff'", "short text": "UPDATE blocks SET text = x'0061'",
		"meta": "UPDATE blocks SET meta = x'01ff00ff'", "no meta": "UPDATE blocks SET meta = x''", "count": "UPDATE blocks SET count = 9", "counters": "UPDATE sources SET counts = 'x', pub = pub + 1",
	} {
		t.Run(name, func(t *testing.T) {
			bad := private(t)
			if err := os.CopyFS(filepath.Join(bad, "copy"), os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			bad = filepath.Join(bad, "copy")
			if err := os.Chmod(bad, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, e := range must(os.ReadDir(bad)) {
				if err := os.Chmod(filepath.Join(bad, e.Name()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			spoil(t, filepath.Join(bad, "index-1.sqlite"), statement)
			s := open(t, bad)
			err := s.Read(t.Context(), func(snap *index.Snapshot) error {
				f, err := snap.Search(query("alpha", index.Any()))
				if err != nil || len(f.Candidates) == 0 {
					return fmt.Errorf("search: %v, %w", f, err)
				}
				sp, err := snap.Span(f.Candidates[0].Doc)
				if err == nil && sp != nil {
					_, err = sp.Text()
				}
				return err
			})
			if !errors.Is(err, sqlitedb.Damaged) {
				t.Errorf("%v", err)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func spoil(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sqlitedb.Open(t.Context(), path, sqlitedb.Options{ApplicationID: 0x6d6f6f6e, Migrations: []string{""}})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), func(c *sqlitedb.Conn) error {
		_, err := c.Exec(t.Context(), statement)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// A catalog that was brought up step by step equals one that was read whole.
func TestCatalogSteps(t *testing.T) {
	dir := private(t)
	s := open(t, dir)
	r := rand.New(rand.NewPCG(5, 6))
	type kept struct {
		src  *index.Source
		unit *index.Unit
	}
	var all []kept
	for step := range rounds(30) {
		publish(t, s, func(x *index.Batch) error {
			if len(all) > 3 && r.IntN(3) == 0 {
				i := r.IntN(len(all))
				k := all[i]
				all = slices.Delete(all, i, i+1)
				return x.DropSource(k.src, []index.Unit{*k.unit})
			}
			if len(all) > 0 && r.IntN(3) == 0 {
				k := all[r.IntN(len(all))]
				k.src.Info.Title = fmt.Sprint("title ", step)
				return x.PutSource(k.src)
			}
			src, unit, err := put(x, evidence.Origins()[r.IntN(5)], fmt.Sprint("file", step), doc{text: fmt.Sprint("word ", step), project: fmt.Sprint("project:p-", r.IntN(3)), time: r.Int64N(1 << 42)})
			all = append(all, kept{src, unit})
			return err
		})
		whole := open(t, dir)
		read(t, s, func(a *index.Snapshot) {
			read(t, whole, func(b *index.Snapshot) {
				if diff := cmp.Diff(b.Sources(), a.Sources()); diff != "" || a.Number() != b.Number() || a.SpanCount() != b.SpanCount() {
					t.Fatalf("step %d: %d and %d spans\n%s", step, a.SpanCount(), b.SpanCount(), diff)
				}
			})
		})
		whole.Close()
	}
}
