package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"localmcp/mooncite/internal/evidence"
)

// keys are invented keys of each published shape. They are put together here so that
// no scanner takes this file for a leak.
var keys = map[string][]string{
	"private key":         {"-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("MIIEowIBAAKCAQEA", 4)+"\n", 25) + "7Q==\n" + "-----END RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\\nMIIEvQ\\n-----END PRIVATE KEY-----"},
	"aws key":             {"AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "IOSFODNN7EXAMPLE"},
	"aws secret":          {"aws_secret_access_key = " + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AWS_SECRET_ACCESS_KEY=" + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
	"github token":        {"ghp_" + strings.Repeat("a1B2", 9), "gho_" + strings.Repeat("x", 36), "github_pat_" + strings.Repeat("Ab1_", 20)},
	"gitlab token":        {"glpat-" + strings.Repeat("x1Y-", 6)},
	"anthropic key":       {"sk-ant-" + "api03-" + strings.Repeat("aB3_", 22)},
	"openai key":          {"sk-" + strings.Repeat("aB3d", 12), "sk-proj-" + strings.Repeat("aB3-", 30)},
	"google key":          {"AIza" + strings.Repeat("Sy4k_", 7)},
	"slack token":         {"xoxb-" + "1234567890-abcdefGHIJ"},
	"slack hook":          {"hooks.slack.com/services/" + "T00000000/B00000000/" + strings.Repeat("X", 24)},
	"stripe key":          {"sk_live_" + strings.Repeat("4eC3", 6), "rk_live_" + strings.Repeat("4eC3", 6)},
	"npm token":           {"npm_" + strings.Repeat("a1B2", 9)},
	"pypi token":          {"pypi-" + strings.Repeat("AgEIcHlwaS5vcmc", 5)},
	"sendgrid key":        {"SG." + strings.Repeat("a", 22) + "." + strings.Repeat("b", 43)},
	"hugging face token":  {"hf_" + strings.Repeat("aBcD", 9)},
	"twilio key":          {"SK" + strings.Repeat("0123abcd", 4)},
	"json web token":      {"eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + "SflKxwRJSMeKKF2QT4fw"},
	"password in address": {"postgres://" + "amber:lantern9@db.example:5432/x"},
	"bearer token":        {"Bearer " + strings.Repeat("abc.DEF-", 5)},
}

func TestMaskShapes(t *testing.T) {
	for _, k := range secretShapes {
		if keys[k.kind] == nil {
			t.Errorf("no example of %s", k.kind)
		}
	}
	for kind, all := range keys {
		for _, key := range all {
			rest := ""
			if kind == "password in address" {
				rest = key[strings.IndexByte(key, '@')+1:]
			}
			for _, around := range [][2]string{{"", ""}, {"the key is ", " and more"}, {`{"k":"`, `"}`}, {"日本語 ", "\n"}, {"X=", ";"}} {
				text := around[0] + key + around[1]
				got, n := masked(text, 0, len(text))
				if n != 1 || got != around[0]+"[masked: "+kind+"]"+rest+around[1] {
					t.Errorf("%s: %q gives %q (%d)", kind, text, got, n)
				}
			}
		}
	}
}

// Text that only resembles a key stays.
func TestMaskLeavesText(t *testing.T) {
	for _, text := range []string{
		"sk-short", "the task-force and disk-space", "AKIA is a prefix", "http://example.org:8080/path@2x", "git@github.com:amber/lantern.git", "Bearer of bad news",
		"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", "https://user@example.org/", "eyJ is how a token begins", "3f2a" + strings.Repeat("0", 36),
	} {
		if got, n := masked(text, 0, len(text)); got != text || n != 0 {
			t.Errorf("%q gives %q", text, got)
		}
	}
}

// Wherever a piece of text is cut, no part of a key at its borders is shown.
func TestMaskAtBorders(t *testing.T) {
	for kind, all := range keys {
		key := all[0]
		text := strings.Repeat("plain words ", 40) + key + strings.Repeat(" plain words", 40)
		start, end := 480, 480+len(key)
		if kind == "password in address" {
			end = start + strings.IndexByte(key, '@') + 1
		}
		for from := 0; from < len(text); from += 41 {
			for _, to := range []int{from + 1, from + 5, from + 60, from + 1024, len(text)} {
				if to > len(text) {
					continue
				}
				got, n := masked(text, from, to)
				touches := from < end && to > start && to > from
				if (n == 1) != touches {
					t.Fatalf("%s: [%d,%d) of a key at [%d,%d): masked %d: %q", kind, from, to, start, end, n, got)
				}
				if !touches && got != text[from:to] {
					t.Fatalf("%s: [%d,%d) changed", kind, from, to)
				}
			}
		}
	}
}

func TestMaskCounts(t *testing.T) {
	a, b := keys["npm token"][0], keys["aws key"][0]
	text := a + " " + b + " " + a
	if got, n := masked(text, 0, len(text)); n != 3 || got != "[masked: npm token] [masked: aws key] [masked: npm token]" {
		t.Errorf("%q, %d", got, n)
	}
	// A key inside another is one.
	text = "Authorization: Bearer " + keys["anthropic key"][0]
	if got, n := masked(text, 0, len(text)); n != 1 || strings.Contains(got, "sk-ant") {
		t.Errorf("%q, %d", got, n)
	}
}

func FuzzMask(f *testing.F) {
	for _, all := range keys {
		f.Add("before ", all[0], " after", 3, 40)
	}
	f.Fuzz(func(t *testing.T, before, key, after string, from, n int) {
		text := before + key + after
		from = max(0, min(from, len(text)))
		to := max(from, min(from+max(0, n), len(text)))
		got, count := masked(text, from, to)
		if count == 0 && got != text[from:to] {
			t.Errorf("changed without a count: %q", got)
		}
		if count > 0 != strings.Contains(got, "[masked: ") && !strings.Contains(text, "[masked: ") {
			t.Errorf("%d masked in %q", count, got)
		}
		// What is masked in the whole text is not shown in a piece of it.
		for _, s := range secrets(text) {
			if len(text) <= secretReach && s.from >= from && s.to <= to && s.to-s.from > 16 && strings.Count(text, text[s.from:s.to]) == 1 && strings.Contains(got, text[s.from:s.to]) {
				t.Errorf("%q shows %q", got, text[s.from:s.to])
			}
		}
	})
}

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
