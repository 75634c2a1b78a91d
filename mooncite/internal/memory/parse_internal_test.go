package memory

import (
	"strings"
	"testing"
	"unicode/utf8"

	"localmcp/mooncite/internal/evidence"
)

func TestParseSetting(t *testing.T) {
	for text, want := range map[string]Setting{
		`{"version":1,"enabled":true}`:            {true, true},
		`{"enabled": false, "version": 1}` + "\n": {false, true},
		"":                                      {},
		"null":                                  {},
		"{}":                                    {},
		"[]":                                    {},
		`{"version":1}`:                         {},
		`{"enabled":true}`:                      {},
		`{"version":2,"enabled":true}`:          {},
		`{"version":1,"enabled":"true"}`:        {},
		`{"version":1,"enabled":1}`:             {},
		`{"version":1,"enabled":null}`:          {},
		`{"version":1.5,"enabled":true}`:        {},
		`{"version":1,"enabled":true,"more":1}`: {},
		`{"version":1,"enabled":false,"enabled":true}`:             {},
		`{"version":1,"Enabled":true}`:                             {},
		`{"version":1,"enabled":true} x`:                           {},
		`{"version":1,"enabled":true}{"version":1,"enabled":true}`: {},
		"\ufeff" + `{"version":1,"enabled":true}`:                  {},
	} {
		got, err := parseSetting([]byte(text))
		if got != want || (err == nil) != want.Configured {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func FuzzParseSetting(f *testing.F) {
	f.Add([]byte(`{"version":1,"enabled":true}`))
	f.Add([]byte(`{"version":1,"enabled":true`))
	f.Add([]byte(`{"version":1e0,"enabled":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseSetting(data)
		if err != nil && got != (Setting{}) {
			t.Errorf("%q is on with the fault %v", data, err)
		}
		if got.Enabled && !strings.Contains(string(data), "true") {
			t.Errorf("%q is on", data)
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add("  a\r\nb\tc ", true)
	f.Add("a\u202eb", false)
	f.Add("\xff", true)
	f.Add(strings.Repeat("é", 50), false)
	f.Fuzz(func(t *testing.T, text string, lines bool) {
		x := field{"text", 64, lines}
		got, err := x.clean(text)
		if err != nil {
			if got != "" {
				t.Errorf("%q with %v", got, err)
			}
			return
		}
		if got == "" || len(got) > 64 || !utf8.ValidString(got) || strings.TrimSpace(got) != got {
			t.Errorf("%q gives %q", text, got)
		}
		if evidence.Visible(got) != got || !lines && strings.ContainsAny(got, "\n\t") {
			t.Errorf("%q gives %q, which is not shown as it is", text, got)
		}
		if again, err := x.clean(got); again != got || err != nil {
			t.Errorf("%q becomes %q, %v", got, again, err)
		}
	})
}

func FuzzID(f *testing.F) {
	f.Add(newID(memoryPrefix))
	f.Add(newID(candidatePrefix))
	f.Add("mooncite-memory:00000000-0000-4000-8000-00000000000G")
	f.Fuzz(func(t *testing.T, s string) {
		for _, p := range []string{memoryPrefix, candidatePrefix} {
			if isID(p, s) && (len(s) != len(p)+36 || s != strings.ToLower(s) || evidence.Visible(s) != s || strings.ContainsAny(s, " \n'\"%")) {
				t.Errorf("%q is an id", s)
			}
		}
		if isID(memoryPrefix, s) && isID(candidatePrefix, s) {
			t.Errorf("%q is both", s)
		}
	})
}

func TestIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := newID(memoryPrefix)
		if !isID(memoryPrefix, id) || isID(candidatePrefix, id) || seen[id] {
			t.Fatalf("%s", id)
		}
		seen[id] = true
	}
	const good = "mooncite-memory:00000000-0000-4000-8000-000000000000"
	for _, bad := range []string{"", memoryPrefix, good[1:], good + "0", strings.ToUpper(good), strings.Replace(good, "-4000", "-1000", 1), strings.Replace(good, "-8000", "-7000", 1), strings.Replace(good, "-0000-", "_0000-", 1), " " + good, good + "\n"} {
		if isID(memoryPrefix, bad) {
			t.Errorf("%q is an id", bad)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(makeCursor(5))
	f.Add("bWVtb3J5Oi01")
	f.Add("=")
	f.Fuzz(func(t *testing.T, s string) {
		at, ok := parseCursor(s)
		if ok && s != "" && (at < 1 || at > maxRanked || makeCursor(at) != s) {
			t.Errorf("%q is %d", s, at)
		}
	})
}

// Any query can be asked of the database: no character of it means anything to FTS5.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{`"a" OR b*`, "NEAR(a b)", "a:b ^c", "C++", "日本語 mixed", "x\x00y", strings.Repeat("w ", 300), "'; DROP TABLE memories; --"} {
		f.Add(q)
	}
	s := New("", "", nil, nil)
	f.Fuzz(func(t *testing.T, query string) {
		for i, term := range s.terms(query) {
			for _, n := range needles(&term) {
				if n == "" || strings.ContainsAny(n, `"*^:()`) || i >= maxTerms {
					t.Errorf("%q asks for %q", query, n)
				}
			}
			if len(needles(&term)) == 0 {
				t.Errorf("%q: nothing shows %+v", query, term)
			}
		}
	})
}

func TestCutText(t *testing.T) {
	for _, c := range []struct {
		text string
		max  int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"日本", 4, "日"}, {"é", 1, ""}, {"", 0, ""}} {
		if got := cutText(c.text, c.max); got != c.want {
			t.Errorf("%q at %d: %q", c.text, c.max, got)
		}
	}
}

// The states in their order, and which of them hide a memory.
func TestWorse(t *testing.T) {
	order := []string{"deauthorized", "content_mismatch", "context_mismatch", "unavailable", "last_good", "indexed", ""}
	for i, a := range order {
		for j, b := range order {
			if got := worse(a, b); got != order[min(i, j)] {
				t.Errorf("%q and %q: %q", a, b, got)
			}
		}
		if quarantines(a) != (i < 4) {
			t.Errorf("%q", a)
		}
	}
	if quarantines(notBacked) {
		t.Error("what has no evidence of its own is quarantined")
	}
}

// How an inspection's finding and the index make up an anchor's state, and what is
// remembered of it.
func TestDiagnose(t *testing.T) {
	full := strings.Repeat("ab", 32)
	saved := evidence.Anchor{ID: "x", Origin: evidence.Claude, Root: "r", Session: "s", Record: full, Span: "t", Role: "user", Kind: "k"}
	now := saved
	now.Record = full[:32]
	other, moved := now, now
	other.Span = "u"
	moved.Project = "p"
	for name, c := range map[string]struct {
		observed        string
		now             evidence.Resolution
		outcome, record string
		state, remember string
	}{
		"all is well":                        {"", evidence.Resolution{Anchor: &now}, "verified", full, "indexed", ""},
		"well again":                         {"content_mismatch", evidence.Resolution{Anchor: &now}, "verified", full, "indexed", ""},
		"behind its source, but well":        {"deauthorized", evidence.Resolution{Anchor: &now, LastGood: true}, "verified", full, "last_good", ""},
		"another record":                     {"", evidence.Resolution{Anchor: &now}, "verified", "ff" + full[2:], "content_mismatch", "content_mismatch"},
		"stale":                              {"", evidence.Resolution{Anchor: &now}, "stale", "", "content_mismatch", "content_mismatch"},
		"stale while it is read":             {"", evidence.Resolution{Anchor: &now, LastGood: true, Pending: true}, "stale", "", "unavailable", ""},
		"missing":                            {"", evidence.Resolution{Anchor: &now, LastGood: true}, "missing", "", "unavailable", ""},
		"missing, and known to be wrong":     {"context_mismatch", evidence.Resolution{Anchor: &now, LastGood: true}, "missing", "", "context_mismatch", "context_mismatch"},
		"unreadable while it is read":        {"content_mismatch", evidence.Resolution{Anchor: &now, Pending: true}, "unavailable", "", "content_mismatch", "content_mismatch"},
		"another text":                       {"", evidence.Resolution{Anchor: &other}, "verified", full, "content_mismatch", "content_mismatch"},
		"another place":                      {"", evidence.Resolution{Anchor: &moved}, "verified", full, "context_mismatch", "context_mismatch"},
		"another place, and worse before":    {"content_mismatch", evidence.Resolution{Anchor: &moved}, "verified", full, "content_mismatch", "content_mismatch"},
		"withdrawn":                          {"", evidence.Resolution{Withdrawn: true}, "excluded", "", "deauthorized", "deauthorized"},
		"not in the index":                   {"", evidence.Resolution{}, "unavailable", "", "unavailable", ""},
		"not in the index, and wrong before": {"content_mismatch", evidence.Resolution{}, "unavailable", "", "content_mismatch", "content_mismatch"},
	} {
		a := anchor{Anchor: saved, context: saved.Context(), observed: c.observed}
		state, remember := a.diagnose(c.now, evidence.Proof{Outcome: c.outcome, Record: c.record})
		if state != c.state || remember != c.remember {
			t.Errorf("%s: %s, to remember %q; want %s, %q", name, state, remember, c.state, c.remember)
		}
	}
	// Parent, branch and compaction change as a conversation goes on.
	grown := now
	grown.Parent, grown.Branch, grown.Compaction = "y", "off_branch", "pre_compaction"
	a := anchor{Anchor: saved, context: saved.Context()}
	if got := a.stateOf(evidence.Resolution{Anchor: &grown}); got != indexed {
		t.Errorf("growth: %s", got)
	}
	for what, change := range map[string]func(*evidence.Anchor){
		"origin": func(x *evidence.Anchor) { x.Origin = evidence.Codex }, "root": func(x *evidence.Anchor) { x.Root = "q" }, "session": func(x *evidence.Anchor) { x.Session = "q" },
		"project": func(x *evidence.Anchor) { x.Project = "q" }, "role": func(x *evidence.Anchor) { x.Role = "tool" }, "kind": func(x *evidence.Anchor) { x.Kind = "q" },
	} {
		x := now
		change(&x)
		if got := a.stateOf(evidence.Resolution{Anchor: &x}); got != contextMismatch {
			t.Errorf("another %s: %s", what, got)
		}
	}
}
