package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"localmcp/mooncite/internal/evidence"
)

func TestExcerpt(t *testing.T) {
	line := strings.Repeat("words ", 20) + "\n"
	long := strings.Repeat(line, 30) + "the amber lantern is here\n" + strings.Repeat(line, 30)
	at := strings.Index(long, "amber")
	from, to := excerpt(long, at, excerptBytes)
	if long[from-1] != '\n' || !strings.HasPrefix(long[from:to], "the amber lantern") || to-from != excerptBytes {
		t.Errorf("%q", long[from:to])
	}
	// A line that began too far before does not count.
	flat := strings.Repeat("x ", 2000) + "amber" + strings.Repeat(" x", 2000)
	at = strings.Index(flat, "amber")
	if from, to = excerpt(flat, at, excerptBytes); from != at-matchReach || to != from+excerptBytes {
		t.Errorf("[%d,%d) for %d", from, to, at)
	}
	// Near the end the excerpt is as long all the same.
	if from, to = excerpt(flat, len(flat)-5, excerptBytes); to != len(flat) || to-from != excerptBytes {
		t.Errorf("[%d,%d) of %d", from, to, len(flat))
	}
	if from, to = excerpt("short", 3, excerptBytes); from != 0 || to != 5 {
		t.Errorf("[%d,%d)", from, to)
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add("some text\nof lines", 5, 8)
	f.Add(strings.Repeat("日本語", 400), 301, 1024)
	f.Fuzz(func(t *testing.T, text string, at, limit int) {
		text = strings.ToValidUTF8(text, "")
		at = max(-1, min(at, len(text)))
		limit = max(4, min(limit, 4096))
		from, to := excerpt(text, at, limit)
		if from < 0 || to < from || to > len(text) || to-from > limit+utf8.UTFMax || !utf8.ValidString(text[from:to]) {
			t.Fatalf("[%d,%d) of %d bytes, limit %d", from, to, len(text), limit)
		}
		if at >= 0 && limit >= lineReach+utf8.UTFMax && at < len(text) && (at < from || at >= to) {
			t.Errorf("the match at %d is not in [%d,%d)", at, from, to)
		}
	})
}

func TestFold(t *testing.T) {
	for _, c := range []struct {
		text, needle string
		at           int
	}{
		{"One  two\r\n\tTHREE", "two three", 5}, {"start art", "art", 6}, {"start", "art", -1}, {"日本語", "本", 3}, {"İstanbul ÄRGER", "ärger", 10},
		{"C++ and C", "c", 0}, {"abc C++", "c++", 4}, {"", "x", -1}, {"x", "", -1}, {"a_b", "b", 2},
	} {
		f := folded(c.text)
		if got := f.find(c.needle); got != c.at {
			t.Errorf("%q in %q at %d, want %d", c.needle, c.text, got, c.at)
		}
	}
}

func FuzzEcho(f *testing.F) {
	f.Add("Mooncite recall: matches; conclusive=true; x")
	f.Add(`[{"type":"text","text":"Mooncite status: ready; x"}]`)
	f.Add(strings.Repeat("日", 1400) + "Mooncite")
	f.Add("Evidence for “" + strings.Repeat("x", 3000))
	f.Fuzz(func(t *testing.T, text string) {
		got := isEcho(text)
		if got && isEcho("I wonder. "+strings.NewReplacer("\n", " ", `\n`, " ", `\u{a}`, " ", `\u{d}`, " ", `"text"`, "text", "\t", " ").Replace(text)) {
			t.Errorf("a sentence in one line is an echo: %q", text)
		}
		if !strings.ContainsAny(text, "Me{\"“") && got {
			t.Errorf("%q is an echo", text)
		}
	})
}

func FuzzParseQuery(f *testing.F) {
	for _, q := range []string{"alpha beta", `"exact phrase"`, "“x”", "C++", "=>", "日本語 issue化", "a\nb\x00\xff", strings.Repeat("w ", 300)} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		w := parseQuery(query)
		if len(w.terms) > 64 {
			t.Errorf("%d terms", len(w.terms))
		}
		j := newJudge(w)
		defer j.close()
		h := &hit{text: query}
		j.weigh(h, 0, false)
		j.locate(h)
		if h.at < -1 || h.at > len(query) {
			t.Errorf("the match is at %d of %d", h.at, len(query))
		}
		// What is asked for stands in a text that is the question.
		if !w.quoted && len(w.terms) > 0 && (h.coverage < 1 || !h.strong()) {
			t.Errorf("%q does not answer itself: coverage %v, terms %q", query, h.coverage, w.names())
		}
	})
}

func FuzzPlanRecall(f *testing.F) {
	f.Add("q", "project:a-0123456789abcdef", "2031-05-01T10:00:00Z", "2031-05-01T10:00:00.123456+02:00", "user", "pi", "newest", makeCursor(5, 5))
	f.Add("q", "x", "1969-12-31T23:59:59.9Z", "0001-01-01T00:00:00Z", "", "", "", "")
	f.Fuzz(func(t *testing.T, query, project, after, before, role, origin, order, cursor string) {
		p, meaning := planRecall(RecallIn{Query: query, Limit: 5, Project: project, After: after, Before: before, Role: role, SourceOrigin: origin, Order: order, Cursor: cursor})
		if (p == nil) == (meaning == "") {
			t.Fatalf("%v, %q", p, meaning)
		}
		if p == nil {
			return
		}
		if p.offset < 0 || p.offset >= reach || p.first < 1 || p.first > maxLimit {
			t.Errorf("offset %d, first %d", p.offset, p.first)
		}
		if a, b := p.filter.After, p.filter.Before; a != evidence.NoTime && b != evidence.NoTime && a > b {
			t.Errorf("bounds %d, %d", a, b)
		}
	})
}

// Ranking and folding are stable and lose nothing but what they count.
func TestFoldCopiesCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		hits := randomHits(r, 1+r.IntN(30))
		n := len(hits)
		rank(hits)
		total := 0
		for _, h := range foldCopies(hits) {
			total += 1 + h.copies + h.twins
		}
		if total != n {
			t.Fatalf("%d hits became %d", n, total)
		}
	}
	if got := fmt.Sprint(makeCursor(5, 20)); got == "" {
		t.Error("no cursor")
	}
}
