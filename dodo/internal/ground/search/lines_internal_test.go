package search

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// found is the lines of a text that match, as "start:match", by one way of looking.
func found(m *matcher, text string) []string {
	var list []string
	m.reset([]byte(text))
	for from := 0; ; {
		l, ok := m.next(context.Background(), from)
		if !ok {
			return list
		}
		list = append(list, fmt.Sprint(l.start, ":", m.locate(context.Background(), l)))
		from = l.end + 1
	}
}

// plainly matches every line with package regexp and the query as it was given.
func plainly(re *regexp.Regexp, text string) []string {
	var list []string
	at := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		if line == "" {
			break
		}
		if loc := re.FindStringIndex(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")); loc != nil {
			list = append(list, fmt.Sprint(at, ":", loc[0]))
		}
		at += len(line)
	}
	return list
}

// eachWay checks that all ways of looking find what package regexp finds. It is false for a
// query that is refused.
func eachWay(t *testing.T, query, text string, literal, fold bool) bool {
	t.Helper()
	p, err := compile(query, literal, fold)
	if err != nil {
		return false
	}
	q := query
	if literal {
		q = regexp.QuoteMeta(q)
	}
	if fold {
		q = "(?i)" + q
	}
	want := plainly(regexp.MustCompile(q), text)
	ways := map[string]*matcher{"needles": newMatcher(p), "walk": newMatcher(p), "slow": newMatcher(p), "tired": newMatcher(p)}
	ways["walk"].finders = nil
	ways["slow"].finders, ways["slow"].walk = nil, nil
	ways["tired"].walk.made = 1 << 40
	for name, m := range ways {
		if diff := cmp.Diff(want, found(m, text)); diff != "" {
			t.Errorf("%s: query %q (literal %v, fold %v), text %q: (-regexp +search)\n%s", name, query, literal, fold, text, diff)
		}
	}
	return true
}

var queries = []string{
	"func", `func (s \*Server)`, `\bfunc\s+\w+\(ctx`, `context\.With(Cancel|Timeout)\(`, "(?i)deadlock", "[a-z]+_[0-9]{4}", `(TODO|FIXME|XXX)\(\w+\)`,
	"^", "$", "^$", "", "x*", "a|b*", `\b`, `\B`, `^\s*$`, `(?i)task`, `(?i)ſ`, "(?i)straße", "é", "[é]", "(?i)É", ".", "(?s).", "[^a]", `[^\n]b`, `\w+$`,
	`\Afoo\z`, "foo$", `colou?r`, "(a|ab)(c|bcd)", "(?i)k", `\x{FFFD}`, "a.c", "a..c", `\d{3}-\d{4}`, "a{2,5}b", "(foo|bar|baz|qux)+z", `\pL\pN`, "[[:upper:]]{3}", `(?m)^x`,
	"(?-s)a.b", `"[^"]*"`, `(?:)`, `(ab)*c`, `a+b+`, `(?i)[k-m]x`, "(x+x+)+y", "[]a]", `\Qa.b\E`, `\s`, `a\b.`, `(?U)a+`, `\r`, `\r$`, `^\r`, `o\r`, `foo\s`, `[^\r]$`, `\s$`, `o$`, `.$`,
}

const prose = "func main() {\r\nfunc (s *Server) x\n\n\tcontext.WithTimeout(ctx)\nDeadLock deadlocK \u212a\nabc_1234 TODO(me) XXX(y)\n \nfoo\nfoo bar\nxfoo\r\ncaf\u00e9 \u00c9t\u00e9 stra\u00dfe \u017f\nabcd\n\xff\xfeab\xc3c\na\xffc a\u00e9c\nlast K task TASK\ncolor colour 555-1234 aaab\n\"q\" ]x}"

func TestQueries(t *testing.T) {
	for _, q := range queries {
		for _, text := range []string{prose, prose + "\n", "", "\n", "\n\n", "x", "ab\n" + strings.Repeat("y", 5000) + "foo\n", "\xff", "a\nfoo", "foo\r\nbar\r\n\r\n", "foo\r\r\n\rfoo\r\nfo\ro\n\r\r", "\r", "a\r", "foo\n\r"} {
			for _, fold := range []bool{false, true} {
				for _, literal := range []bool{false, true} {
					if !eachWay(t, q, text, literal, fold) {
						t.Fatalf("%q of the table is refused (literal %v)", q, literal)
					}
				}
			}
		}
	}
}

func FuzzQueries(f *testing.F) {
	for _, q := range queries {
		f.Add(q, prose, false, false)
	}
	f.Add("a.b", prose, true, true)
	f.Fuzz(func(t *testing.T, query, text string, literal, fold bool) {
		if len(query) > 100 || len(text) > 1000 {
			return
		}
		if tree, err := syntax.Parse(query, syntax.Perl); !literal && (err != nil || strings.Contains(tree.String(), "(?-m:")) {
			return
		}
		eachWay(t, query, text, literal, fold)
	})
}

// What is looked for first, and whether that is all there is to it.
func TestNeedles(t *testing.T) {
	for query, want := range map[string]string{
		"ErrUnexpectedEOF":              "ErrUnexpectedEOF whole",
		`func (s \*Server)`:             "func s *Server whole",
		`\bfunc\s+\w+\(ctx`:             "[0-9A-Z_a-z](ctx",
		`context\.With(Cancel|Timeout)`: "context.WithCancel|context.WithTimeout whole",
		"(?i)deadlock":                  "[Dd][Ee][Aa][Dd][Ll][Oo][Cc]",
		"[a-z]+_[0-9]{4}":               "[a-z]_[0-9][0-9][0-9][0-9]",
		`(TODO|FIXME|XXX)\(\w+\)`:       "TODO([0-9A-Z_a-z]|FIXME([0-9A-Z_a-z]|XXX([0-9A-Z_a-z]",
		"foo.*barrier":                  "barrier",
		"colou?r":                       "colour|color whole",
		"[a-z]+":                        "",
		"a*":                            "",
		`^$`:                            "",
		"(?i)k":                         "",
		"(abc|x*)":                      "",
		"^foobar$":                      "foobar",
	} {
		p, err := compile(query, false, false)
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, n := range p.needles {
			parts = append(parts, n.String())
		}
		got := strings.Join(parts, "|")
		if p.whole {
			got += " whole"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}

// A long needle is looked for by a part of it, so that no text makes each of its bytes be
// compared with all of the needle.
func TestLongNeedle(t *testing.T) {
	long := strings.Repeat("a", 500)
	eachWay(t, long, strings.Repeat("a", 499)+"b"+strings.Repeat("a", 501)+"\n"+long+"\nx", true, false)
	p, err := compile(long, true, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.needles) != 1 || len(p.needles[0].sets) != needleLenMax || p.whole {
		t.Errorf("%v, whole %v", p.needles, p.whole)
	}
	text := bytes.Repeat([]byte(strings.Repeat("a", 499)+"b"), 8<<20/500)
	m := newMatcher(p)
	m.reset(text)
	start := time.Now()
	if _, ok := m.next(context.Background(), 0); ok {
		t.Error("found what is not there")
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("8 MiB took %v", d)
	}
}

// String shows the sets as an expression would.
func (n needle) String() string {
	var b strings.Builder
	for _, s := range n.sets {
		list := s.bytes()
		if len(list) == 1 {
			b.WriteByte(list[0])
			continue
		}
		b.WriteByte('[')
		for i := 0; i < len(list); i++ {
			j := i
			for j+1 < len(list) && list[j+1] == list[j]+1 {
				j++
			}
			b.WriteByte(list[i])
			if j > i+1 {
				b.WriteByte('-')
			}
			if j > i {
				b.WriteByte(list[j])
			}
			i = j
		}
		b.WriteByte(']')
	}
	return b.String()
}

// An expression and a text made to make as many states as can be must not cost more than a
// small multiple of what package regexp takes.
func TestTiredWalker(t *testing.T) {
	p, err := compile("[ab]*a[ab]{60}c", false, false)
	if err != nil {
		t.Fatal(err)
	}
	m := newMatcher(p)
	m.finders = nil
	text, rnd := make([]byte, 1<<17), rand.New(rand.NewPCG(1, 2))
	for i := range text {
		text[i] = "ab"[rnd.IntN(2)]
	}
	m.reset(text)
	if _, ok := m.next(context.Background(), 0); ok {
		t.Error("found what is not there")
	}
	text[1<<16-61], text[1<<16] = 'a', 'c' // after the walker has given up
	if l, ok := m.next(context.Background(), 0); !ok || l.match != 0 {
		t.Errorf("the line is not found: %v %v", l, ok)
	}
	if !m.walk.tired {
		t.Error("the walker did not give up")
	}
}

// A match that takes long ends when the call does.
func TestStops(t *testing.T) {
	p, err := compile(`(\pL{1,90}y){9}[^\pL]`, false, false)
	if err != nil {
		t.Fatal(err)
	}
	m := newMatcher(p)
	m.reset(bytes.Repeat([]byte("äöxy"), 1<<18))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, ok := m.next(ctx, 0); ok {
		t.Error("found what is not there")
	}
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("it went on for %v", d)
	}
}

func TestColumn(t *testing.T) {
	text := []byte("a\u00e9\U0001F600\xffb")
	var got []int
	for at := range text {
		if slices.Contains([]int{0, 1, 3, 7, 8}, at) {
			got = append(got, column(text, at))
		}
	}
	if diff := cmp.Diff([]int{1, 2, 3, 5, 6}, got); diff != "" {
		t.Error(diff)
	}
}
