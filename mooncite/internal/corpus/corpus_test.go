package corpus_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"localmcp/mooncite/internal/corpus"
	"localmcp/mooncite/internal/evidence"
)

const size = 4_000_000

func write(t *testing.T, cfg corpus.Config) (string, corpus.Stats) {
	t.Helper()
	if cfg.Home == "" {
		cfg.Home = t.TempDir()
	}
	st, err := corpus.Write(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Home, st
}

// shared is one corpus for the tests that only read it.
var shared = sync.OnceValues(func() (string, error) {
	home, err := os.MkdirTemp("", "corpus-test-*")
	if err != nil {
		return "", err
	}
	_, err = corpus.Write(context.Background(), corpus.Config{Home: home, Bytes: size})
	return home, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if home, err := shared(); err == nil {
		os.RemoveAll(home)
	}
	os.Exit(code)
}

func load(t *testing.T) (string, corpus.Stats, []corpus.Query) {
	t.Helper()
	home, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	st, queries, err := corpus.Load(home)
	if err != nil {
		t.Fatal(err)
	}
	return home, st, queries
}

// each calls f with every file of a HOME, in a fixed order.
func each(t *testing.T, home string, f func(rel string, data []byte)) {
	t.Helper()
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(home, path)
		f(filepath.ToSlash(rel), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func sum(t *testing.T, home string) [32]byte {
	h := sha256.New()
	each(t, home, func(rel string, data []byte) { h.Write([]byte(rel)); h.Write(data) })
	return [32]byte(h.Sum(nil))
}

func TestSameSeedSameBytes(t *testing.T) {
	a, _ := write(t, corpus.Config{Bytes: 1_000_000})
	b, _ := write(t, corpus.Config{Bytes: 1_000_000, Seed: corpus.Seed})
	c, _ := write(t, corpus.Config{Bytes: 1_000_000, Seed: 5})
	if sum(t, a) != sum(t, b) {
		t.Error("the same seed gave other bytes")
	}
	if sum(t, a) == sum(t, c) {
		t.Error("another seed gave the same bytes")
	}
}

func TestShape(t *testing.T) {
	home, st, queries := load(t)
	if st.Bytes < size*95/100 || st.Bytes > size*105/100 {
		t.Errorf("wrote %d bytes, asked for %d", st.Bytes, size)
	}
	var seen corpus.Stats
	seen.Origins = map[evidence.Origin]corpus.OriginStats{}
	count := func(o evidence.Origin, n, records int) {
		s := seen.Origins[o]
		s.Bytes += int64(n)
		s.Files++
		s.Records += records
		seen.Origins[o] = s
		seen.Bytes += int64(n)
		seen.Files++
		seen.Records += records
	}
	places := map[string]evidence.Origin{".claude": evidence.Claude, ".codex": evidence.Codex, ".pi": evidence.Pi, ".omp": evidence.OMP}
	subs := 0
	each(t, home, func(rel string, data []byte) {
		top, _, _ := strings.Cut(rel, "/")
		switch {
		case rel == corpus.Export:
			var all []struct {
				Mapping map[string]struct{ Message jsontext.Value }
			}
			if err := json.Unmarshal(data, &all, json.MatchCaseInsensitiveNames(true)); err != nil {
				t.Fatalf("%s: %v", rel, err)
			}
			messages := 0
			for _, c := range all {
				messages += len(c.Mapping) - 1
			}
			count(evidence.ChatGPT, len(data), messages)
		case strings.HasSuffix(rel, ".jsonl"):
			lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
			for i, line := range lines {
				if v := jsontext.Value(line); !v.IsValid() || v.Kind() != '{' {
					t.Fatalf("%s line %d is no JSON object", rel, i+1)
				}
			}
			if top == ".omp" {
				if len(lines[0]) != 255 || !bytes.HasPrefix(lines[0], []byte(`{"type":"title","v":1,`)) {
					t.Errorf("%s: title line of %d bytes", rel, len(lines[0])+1)
				}
				if strings.Count(rel, "/") == 5 {
					subs++
				}
			}
			count(places[top], len(data), len(lines))
		}
	})
	if diff := cmp.Diff(seen.Origins, st.Origins); diff != "" {
		t.Errorf("what is on disk (-) is not what was told (+):\n%s", diff)
	}
	if seen.Bytes != st.Bytes || seen.Files != st.Files || seen.Records != st.Records {
		t.Errorf("totals: on disk %d, %d, %d; told %d, %d, %d", seen.Bytes, seen.Files, seen.Records, st.Bytes, st.Files, st.Records)
	}
	if subs == 0 {
		t.Error("no OMP sub-agent")
	}
	for o, part := range map[evidence.Origin]float64{evidence.Claude: .45, evidence.Codex: .25, evidence.Pi: .15, evidence.OMP: .05, evidence.ChatGPT: .10} {
		if got := float64(st.Origins[o].Bytes) / size; got < part-.03 || got > part+.03 {
			t.Errorf("%s has %.0f %% of the bytes", o, 100*got)
		}
	}
	if len(queries) != corpus.QueryCount {
		t.Errorf("%d queries", len(queries))
	}
}

// words is text as a word index sees it: lower case, one space between words.
func words(s []byte) string {
	s = bytes.ReplaceAll(s, []byte(`\n`), []byte(" "))
	f := bytes.FieldsFunc(bytes.ToLower(s), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r < 0x80 })
	return " " + string(bytes.Join(f, []byte(" "))) + " "
}

func TestPlanted(t *testing.T) {
	home, st, _ := load(t)
	if len(st.Planted) < 20 {
		t.Fatalf("%d planted phrases", len(st.Planted))
	}
	all := map[string]string{}
	each(t, home, func(rel string, data []byte) {
		if strings.HasSuffix(rel, ".jsonl") || rel == corpus.Export {
			all[rel] = words(data)
		}
	})
	origins := map[evidence.Origin]int{}
	times := map[int]int{}
	for _, p := range st.Planted {
		origins[p.Origin]++
		times[p.Time.Year()*2+(int(p.Time.Month())-1)/6]++
		want := 1
		if p.Origin == evidence.Codex {
			want = 2
		}
		for rel, text := range all {
			n := strings.Count(text, words([]byte(p.Text)))
			if rel == p.Path && n != want || rel != p.Path && n != 0 {
				t.Errorf("%q stands %d times in %s", p.Text, n, rel)
			}
		}
		if n := len(strings.Fields(p.Text)); n < 6 || n > 9 {
			t.Errorf("%q has %d words", p.Text, n)
		}
	}
	if len(origins) != 5 {
		t.Errorf("origins with planted phrases: %v", origins)
	}
	if len(times) < 3 {
		t.Errorf("half years with planted phrases: %v", times)
	}
}

func TestQueries(t *testing.T) {
	home, st, queries := load(t)
	var text bytes.Buffer
	each(t, home, func(rel string, data []byte) {
		if rel != corpus.QueriesFile {
			text.Write(data)
		}
	})
	planted := map[string]bool{}
	for _, p := range st.Planted {
		planted[p.Text] = true
	}
	kinds, asked := map[string]int{}, 0
	for _, q := range queries {
		kinds[q.Kind]++
		switch {
		case q.Kind == "needle" && (q.Expect != q.Query || !bytes.Contains(text.Bytes(), []byte("Ticket "+q.Query+"."))):
			t.Errorf("needle %q is not in the text", q.Query)
		case q.Kind == "phrase" && q.Expect != "":
			asked++
			if !planted[q.Expect] || q.Query != `"`+q.Expect+`"` {
				t.Errorf("%q expects %q, which is not planted", q.Query, q.Expect)
			}
		case q.Kind == "miss" && bytes.Contains(text.Bytes(), []byte(strings.Fields(q.Query)[0]+" ")):
			t.Errorf("%q is in the text", q.Query)
		}
	}
	for _, k := range corpus.Kinds {
		if kinds[k] != corpus.QueryCount/len(corpus.Kinds) {
			t.Errorf("%d queries of kind %s", kinds[k], k)
		}
	}
	if asked != 10 {
		t.Errorf("%d queries for planted phrases", asked)
	}
}

func TestOneOriginAlone(t *testing.T) {
	home, st := write(t, corpus.Config{Bytes: 2_000_000, Only: evidence.ChatGPT})
	loaded, _, err := corpus.Load(home)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(st, loaded); diff != "" {
		t.Errorf("stored description differs:\n%s", diff)
	}
	if len(st.Origins) != 1 || st.Files != 1 || st.Bytes < 1_900_000 || st.Bytes > 2_100_000 || len(st.Planted) < 20 {
		t.Errorf("wrote %+v", st)
	}
}

func TestTooSmall(t *testing.T) {
	if _, err := corpus.Write(context.Background(), corpus.Config{Home: t.TempDir(), Bytes: 1000}); err == nil {
		t.Error("a corpus without room for its phrases was written")
	}
	for seed := range uint64(3) {
		write(t, corpus.Config{Bytes: corpus.MinBytes, Seed: seed + 1})
	}
}

func TestAppend(t *testing.T) {
	home, _ := write(t, corpus.Config{Bytes: 1_000_000})
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	for _, o := range []evidence.Origin{evidence.Claude, evidence.Codex, evidence.Pi, evidence.OMP} {
		path, err := corpus.Largest(home, o)
		if err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"zyxa", "zyxb"} {
			if err := corpus.Append(path, o, word, at); err != nil {
				t.Fatalf("%s: %v", o, err)
			}
		}
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		added, ok := bytes.CutPrefix(after, before)
		lines := bytes.Split(added, []byte("\n"))
		if !ok || len(lines) != 3 || !bytes.Contains(lines[1], []byte(" zyxb ")) {
			t.Fatalf("%s: appended %q", o, added)
		}
		var first, second struct {
			UUID       string `json:"uuid"`
			ID         string `json:"id"`
			ParentUUID string `json:"parentUuid"`
			ParentID   string `json:"parentId"`
			Timestamp  string `json:"timestamp"`
		}
		if err := json.Unmarshal(lines[0], &first); err != nil {
			t.Fatalf("%s: %v", o, err)
		}
		if err := json.Unmarshal(lines[1], &second); err != nil {
			t.Fatalf("%s: %v", o, err)
		}
		if second.ParentUUID != first.UUID || second.ParentID != first.ID || second.Timestamp != "2026-01-02T03:04:05.006Z" {
			t.Errorf("%s: second record %+v behind first %+v", o, second, first)
		}
	}
}

func TestAddConversation(t *testing.T) {
	home, _ := write(t, corpus.Config{Bytes: 1_000_000})
	path := filepath.Join(home, filepath.FromSlash(corpus.Export))
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := corpus.AddConversation(home, "zyxc", time.Unix(1_800_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !jsontext.Value(after).IsValid() || !bytes.HasSuffix(after, before[1:]) || !bytes.Contains(after, []byte(" zyxc ")) {
		t.Error("the export is not the old one with a conversation before it")
	}
	rest, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.part"))
	if err != nil || len(rest) > 0 {
		t.Errorf("left behind: %v, %v", rest, err)
	}
}
