package index_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/lexis"
)

// A known document, for the naive search that the index is compared with.
type known struct {
	doc
	id     int64
	origin evidence.Origin
	unit   int64
	tokens string
}

// rareCap is how many documents a term has at most that brings them all.
const rareCap = 256

func (k *known) passes(f *index.Filter, project string) bool {
	return (f.Role == "" || f.Role == k.role) && (f.Origin == "" || f.Origin == k.origin) && (f.Project == 0 || project == k.project) &&
		(f.Units == nil || slices.Contains(f.Units, k.unit)) && within(f, k.time)
}

// has reports whether a document holds a term, by its tokens.
func (k *known) has(t *lexis.Term) bool {
	return !t.Exact && strings.Contains(k.tokens, " "+strings.Join(t.Tokens, " ")+" ") || t.Whole != "" && strings.Contains(k.tokens, " "+t.Whole+" ")
}

// vocabulary has words of falling frequency: a few in most documents, many in few.
func vocabulary(r *rand.Rand) string {
	if r.IntN(3) == 0 {
		return []string{"harbor", "the", "of", "build", "parseConfigFile", "日本語", "C++", "snake_case"}[int(8*r.Float64()*r.Float64())]
	}
	return fmt.Sprintf("w%dx", int(400*r.Float64()*r.Float64()*r.Float64()))
}

// borders are times at which days, months, years and the era change.
var borders = func() (all []int64) {
	for _, s := range []string{"1970-01-01", "1969-12-01", "1969-12-31", "1960-02-29", "2024-02-29", "2024-03-01", "2031-05-01", "2031-12-31", "2032-01-01"} {
		t, err := time.Parse(time.DateOnly, s)
		if err != nil {
			panic(err)
		}
		all = append(all, t.UnixMilli())
	}
	return all
}()

func instant(r *rand.Rand) int64 {
	b := borders[r.IntN(len(borders))]
	switch r.IntN(4) {
	case 0:
		return b
	case 1:
		return b - 1
	case 2:
		return b + r.Int64N(48*3600*1000) - 24*3600*1000
	}
	return b + r.Int64N(40*24*3600*1000)
}

func fill(t *testing.T, s *index.Store, r *rand.Rand, files, per int) (all []*known, projects map[string]int64) {
	t.Helper()
	var tk lexis.Tokenizer
	roles := []evidence.Role{evidence.User, evidence.Assistant, evidence.Tool, evidence.Unknown}
	for from := 0; from < files; from += 5 {
		publish(t, s, func(x *index.Batch) error {
			for i := from; i < min(files, from+5); i++ {
				o := evidence.Origins()[r.IntN(5)]
				var docs []doc
				for range per {
					var words []string
					for range 1 + r.IntN(12) {
						words = append(words, vocabulary(r))
					}
					d := doc{text: strings.Join(words, " "), role: roles[r.IntN(4)], project: fmt.Sprint("project:p-", r.IntN(4)), time: evidence.NoTime}
					if r.IntN(8) > 0 {
						d.time = instant(r)
					}
					docs = append(docs, d)
				}
				_, unit, err := put(x, o, fmt.Sprint("file", i), docs...)
				if err != nil {
					return err
				}
				for _, d := range docs {
					tokens, _ := tk.Document(nil, d.text)
					all = append(all, &known{doc: d, id: int64(len(all) + 1), origin: o, unit: unit.ID, tokens: " " + string(tokens) + " "})
				}
			}
			return nil
		})
	}
	projects = map[string]int64{}
	read(t, s, func(s *index.Snapshot) {
		for i := range 4 {
			name := fmt.Sprint("project:p-", i)
			projects[name] = s.Project(name)
		}
	})
	return all, projects
}

func randomFilter(r *rand.Rand, projects map[string]int64, units int64) (f index.Filter, project string) {
	f = index.Any()
	if r.IntN(4) == 0 {
		f.Role = []evidence.Role{evidence.User, evidence.Assistant, evidence.Tool, evidence.Unknown}[r.IntN(4)]
	}
	if r.IntN(4) == 0 {
		f.Origin = evidence.Origins()[r.IntN(5)]
	}
	if r.IntN(4) == 0 {
		project = fmt.Sprint("project:p-", r.IntN(4))
		f.Project = projects[project]
	}
	if r.IntN(6) == 0 {
		f.Units = []int64{1 + r.Int64N(units), 1 + r.Int64N(units)}
	}
	switch r.IntN(4) {
	case 0:
		f.After = instant(r)
	case 1:
		f.Before = instant(r)
	case 2:
		f.After, f.Before = instant(r), instant(r)
		if f.After > f.Before {
			f.After, f.Before = f.Before, f.After
		}
	}
	return f, project
}

// The index finds what a naive search over all documents finds, under any filter.
func TestSearchAgainstOracle(t *testing.T) {
	s := open(t, private(t))
	r := rand.New(rand.NewPCG(11, 12))
	const files = 30
	all, projects := fill(t, s, r, files, 45)
	var tk lexis.Tokenizer
	read(t, s, func(s *index.Snapshot) {
		for i, k := range all { // the oracle and the index number alike
			if sp, text := span(t, s, int64(i+1)); sp == nil || text != k.text {
				t.Fatalf("document %d is %q, want %q", i+1, text, k.text)
			}
		}
		for range rounds(200) {
			f, project := randomFilter(r, projects, files)
			var inside []*known
			for _, k := range all {
				if k.passes(&f, project) {
					inside = append(inside, k)
				}
			}
			if n, err := s.Count(&f); err != nil || n != int64(len(inside)) {
				t.Fatalf("Count(%+v) is %d, want %d (%v)", f, n, len(inside), err)
			}
			var words []string
			for range 1 + r.IntN(4) {
				words = append(words, vocabulary(r))
			}
			text := strings.Join(words, " ")
			if r.IntN(3) == 0 && len(inside) > 0 { // a piece of a document
				w := strings.Fields(inside[r.IntN(len(inside))].text)
				n := 1 + r.IntN(min(4, len(w)))
				from := r.IntN(len(w) - n + 1)
				text = strings.Join(w[from:from+n], " ")
			}
			q := query(text, f)
			found, err := s.Search(q)
			if err != nil {
				t.Fatal(err)
			}
			got := map[int64]index.Candidate{}
			for _, c := range found.Candidates {
				if _, twice := got[c.Doc]; twice {
					t.Fatalf("%q: document %d is there twice", text, c.Doc)
				}
				got[c.Doc] = c
			}
			phrase := " " + strings.Join(tk.Tokens(text), " ") + " "
			holders := 0 // of the phrase; unless only they answer, four for each candidate wanted are enough
			for _, k := range inside {
				if strings.Contains(strings.SplitN(k.tokens, "⸺", 2)[0]+" ", phrase) {
					holders++
				}
			}
			enough := !q.Exact && holders > 4*q.Want
			for _, k := range inside {
				c, in := got[k.id]
				rare, any := true, false
				for i := range q.Terms {
					has := k.has(&q.Terms[i])
					any = any || has
					if has && in && (c.Terms|c.Maybe)>>i&1 == 0 && found.Docs[i] <= rareCap && found.Docs[i] > 0 {
						t.Errorf("%q: term %q is not known of document %d", text, q.Terms[i].Text, k.id)
					}
					if in && !has && c.Terms>>i&1 == 1 {
						t.Errorf("%q: document %d is said to hold %q: %q", text, k.id, q.Terms[i].Text, k.text)
					}
					if found.Docs[i] <= rareCap && !has {
						rare = false
					}
				}
				holds := len(q.Phrase) > 1 && strings.Contains(strings.SplitN(k.tokens, "⸺", 2)[0]+" ", phrase)
				switch {
				case rare && any && slices.ContainsFunc(found.Docs, func(n int64) bool { return n <= rareCap }) && !in:
					t.Errorf("%q, %+v: document %d holds all rare terms and is no candidate: %q", text, f, k.id, k.text)
				case found.Complete && any && !in:
					t.Errorf("%q, %+v: complete without document %d: %q", text, f, k.id, k.text)
				case holds && !enough && !in:
					t.Errorf("%q, %+v: document %d holds the phrase and is no candidate: %q", text, f, k.id, k.text)
				case holds && !enough && !c.Phrase && !c.Look && (len(q.Terms) > 1 || c.Terms|c.Maybe == 0): // one term is the phrase
					t.Errorf("%q: the phrase is not known of document %d", text, k.id)
				}
			}
			// Nothing from outside the filter but the days that its bounds cut.
			for d := range got {
				k := all[d-1]
				wide := f
				wide.After, wide.Before = evidence.NoTime, evidence.NoTime
				if !k.passes(&wide, project) {
					t.Errorf("%q, %+v: document %d is outside", text, f, d)
				}
			}
		}
	})
}

// The orders of time give the first documents that a naive sort gives.
func TestTimeOrderAgainstOracle(t *testing.T) {
	s := open(t, private(t))
	r := rand.New(rand.NewPCG(21, 22))
	const files = 20
	all, projects := fill(t, s, r, files, 40)
	read(t, s, func(s *index.Snapshot) {
		for range rounds(150) {
			f, project := randomFilter(r, projects, files)
			q := query(vocabulary(r)+" "+vocabulary(r), f)
			q.Want, q.Enough = 1+r.IntN(20), 1+r.IntN(20)
			q.Order = []index.Order{index.Newest, index.Oldest}[r.IntN(2)]
			found, err := s.Search(q)
			if err != nil {
				t.Fatal(err)
			}
			got := map[int64]bool{}
			for _, c := range found.Candidates {
				got[c.Doc] = true
			}
			var every, any []*known
			for _, k := range all {
				if !k.passes(&f, project) {
					continue
				}
				n := 0
				for i := range q.Terms {
					if k.has(&q.Terms[i]) {
						n++
					}
				}
				if n == len(q.Terms) {
					every = append(every, k)
				}
				if n > 0 {
					any = append(any, k)
				}
			}
			want := every
			if len(every) < q.Enough {
				want = any
			}
			slices.SortStableFunc(want, func(a, b *known) int {
				if none := cmp.Compare(b2i(a.time == evidence.NoTime), b2i(b.time == evidence.NoTime)); none != 0 {
					return none
				}
				if q.Order == index.Newest {
					return cmp.Compare(b.time, a.time)
				}
				return cmp.Compare(a.time, b.time)
			})
			for i, k := range want[:min(len(want), q.Want)] {
				if !got[k.id] {
					t.Errorf("%v order %d, %+v: document %d is number %d in time and no candidate", q.Terms, q.Order, f, k.id, i)
				}
			}
			if found.Complete {
				for _, k := range any {
					if !got[k.id] && len(every) < q.Enough {
						t.Errorf("%v: complete without document %d", q.Terms, k.id)
					}
				}
			}
		}
	})
}

// rounds is how many random cases there is time for.
func rounds(n int) int {
	if underRace {
		return n / 10
	}
	return n
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Hidden text is found by its words and counted nowhere; damaged text is found under
// filters that nobody can check it against.
func TestHidden(t *testing.T) {
	s := open(t, private(t))
	publish(t, s, func(x *index.Batch) error {
		_, _, err := put(x, evidence.Pi, "one", doc{text: "alpha words", time: 5}, doc{text: "middle marzipan", hidden: true, role: evidence.Tool, time: 5},
			doc{text: "damaged quince", hidden: true, role: evidence.Unknown, time: evidence.NoTime})
		return err
	})
	read(t, s, func(s *index.Snapshot) {
		candidates := func(text string, f index.Filter) int {
			n := 0
			for _, order := range []index.Order{index.ByStrength, index.Newest} {
				q := query(text, f)
				q.Order = order
				found, err := s.Search(q)
				if err != nil {
					t.Fatal(err)
				}
				n += len(found.Candidates)
			}
			return n
		}
		any, user, later, omp := index.Any(), index.Any(), index.Any(), index.Any()
		user.Role, later.After, omp.Origin = evidence.User, 1000, evidence.OMP
		if n, err := s.Count(&any); n != 1 || err != nil || s.SpanCount() != 1 {
			t.Errorf("%d spans, %v", n, err)
		}
		for _, c := range []struct {
			text string
			f    index.Filter
			want int
		}{{"marzipan", any, 2}, {"quince", any, 2}, {"marzipan", user, 0}, {"quince", user, 2}, {"quince", later, 2}, {"quince", omp, 0}} {
			if got := candidates(c.text, c.f); got != c.want {
				t.Errorf("%s, %+v: %d candidates, want %d", c.text, c.f, got, c.want)
			}
		}
	})
}

// Entries are found by their raw ids in every form they are stored in.
func TestOfEntry(t *testing.T) {
	s := open(t, private(t))
	publish(t, s, func(x *index.Batch) error {
		_, _, err := put(x, evidence.Pi, "one", doc{text: "alpha"}, doc{text: "beta"})
		return err
	})
	read(t, s, func(s *index.Snapshot) {
		for entry, want := range map[string]int{"e0": 1, "e1": 1, "e2": 0, "": 0, "e": 0} {
			docs, err := s.OfEntry(entry, 10)
			if err != nil || len(docs) != want {
				t.Errorf("%q: %v %v", entry, docs, err)
			}
		}
	})
}
