package search

import (
	"bytes"
	"math/bits"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A needle is a run of bytes that can be looked for quickly: at each position one of a
// set. The pivot is the position whose bytes are rarest in source text; they are looked
// for first.
type needle struct {
	sets   []byteSet
	pivot  int
	rare   [2]byte // the bytes at the pivot
	paired bool    // there are two of them
}

type byteSet [4]uint64

func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

func (s *byteSet) len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

func (s *byteSet) bytes() []byte {
	var list []byte
	for c := range 256 {
		if s.has(byte(c)) {
			list = append(list, byte(c))
		}
	}
	return list
}

// share is how many of [frequencyUnit] bytes of source text are in the set.
func (s *byteSet) share() int {
	n := 0
	for _, c := range s.bytes() {
		n += frequency(c)
	}
	return n
}

// Bounds of what is written out of an expression: alternatives, bytes of all of them, and
// bytes of one that is looked for, which each stop may compare.
const (
	alternativesMax = 16
	needleBytesMax  = 2048
	needleLenMax    = 32
)

// A union is alternatives, each a run of byte sets. Nil is none known; one empty
// alternative is the empty run.
type union [][]byteSet

func (u union) size() int {
	n := 0
	for _, a := range u {
		n += len(a)
	}
	return n
}

// times is what an alternative of u and then one of v make; nil when that is too much.
func (u union) times(v union) union {
	if u == nil || v == nil || len(u)*len(v) > alternativesMax || u.size()*len(v)+v.size()*len(u) > needleBytesMax {
		return nil
	}
	var out union
	for _, a := range u {
		for _, b := range v {
			out = append(out, slices.Concat(a, b))
		}
	}
	return out
}

func (u union) plus(v union) union {
	if u == nil || v == nil || len(u)+len(v) > alternativesMax || u.size()+v.size() > needleBytesMax {
		return nil
	}
	return slices.Concat(u, v)
}

var nothing = union{{}}

// A need is what is known of the matches of a part of an expression.
type need struct {
	exact union // the matches are among these, whole
	bare  bool  // and are just these: no condition on what stands around
	inner union // each match has one of these in it; the best found
}

// Costs in nanoseconds, from measurements: of a byte walked by the automaton, of a byte
// passed over by the search for one byte, of a stop there, of a line that is looked at.
const (
	costWalk = 1.6
	costPass = 0.04
	costStop = 4
	costLine = 90
)

// required finds the needles of an expression. whole tells that the place of one is a match.
func required(re *syntax.Regexp) (list []needle, whole bool) {
	n := needs(re)
	best := cheaper(n.inner, n.exact)
	if whole = n.bare && n.exact != nil && cost(n.exact) <= costWalk; whole {
		best = n.exact
	}
	if best == nil || cost(best) > costWalk {
		return nil, false
	}
	whole = whole && !mayEnd(best)
	for _, sets := range best {
		w, _ := newNeedle(sets)
		if len(sets) > needleLenMax {
			start := min(max(w.pivot-needleLenMax/2, 0), len(sets)-needleLenMax)
			w.sets, w.pivot, whole = sets[start:start+needleLenMax], w.pivot-start, false
		}
		list = append(list, w)
	}
	return list, whole
}

// mayEnd reports whether a needle has a CR in it, which counts only within a line.
func mayEnd(u union) bool {
	return slices.ContainsFunc(u, func(sets []byteSet) bool {
		return slices.ContainsFunc(sets, func(s byteSet) bool { return s.has('\r') })
	})
}

// cost is what looking for the needles takes for a byte.
func cost(u union) float64 {
	sum := 0.0
	for _, sets := range u {
		w, ok := newNeedle(sets)
		if !ok {
			return 1e9
		}
		stops := float64(w.sets[w.pivot].share()) / frequencyUnit
		found := 1.0
		for i := range sets {
			found *= float64(sets[i].share()) / frequencyUnit
		}
		sum += costPass + stops*costStop + found*costLine
		if w.paired {
			sum += costPass
		}
	}
	return sum
}

func cheaper(u, v union) union {
	if u == nil || v != nil && cost(v) < cost(u) {
		return v
	}
	return u
}

// newNeedle chooses the pivot. Without a position of one or two bytes there is no needle.
func newNeedle(sets []byteSet) (needle, bool) {
	best := -1
	for i := range sets {
		if n := sets[i].len(); n == 0 || n > 2 {
			continue
		}
		if best < 0 || sets[i].share() < sets[best].share() {
			best = i
		}
	}
	if best < 0 {
		return needle{}, false
	}
	b := sets[best].bytes()
	return needle{sets: sets, pivot: best, rare: [2]byte{b[0], b[len(b)-1]}, paired: len(b) == 2}, true
}

// needs walks an expression.
func needs(re *syntax.Regexp) need {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return need{exact: nothing, bare: true}
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return need{exact: nothing}
	case syntax.OpLiteral:
		fold := re.Flags&syntax.FoldCase != 0
		return sequence(len(re.Rune), func(i int) need {
			u := runeSets(re.Rune[i], fold)
			return need{exact: u, bare: u != nil && (!fold || re.Rune[i] < utf8.RuneSelf)}
		})
	case syntax.OpCharClass:
		if len(re.Rune) == 0 || re.Rune[len(re.Rune)-1] >= utf8.RuneSelf {
			return need{}
		}
		var s byteSet
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				s.add(byte(r))
			}
		}
		return need{exact: union{{s}}, bare: true}
	case syntax.OpCapture:
		return needs(re.Sub[0])
	case syntax.OpQuest:
		sub := needs(re.Sub[0])
		return need{exact: sub.exact.plus(nothing), bare: sub.bare}
	case syntax.OpPlus:
		sub := needs(re.Sub[0])
		return need{inner: cheaper(sub.inner, sub.exact)}
	case syntax.OpConcat:
		return sequence(len(re.Sub), func(i int) need { return needs(re.Sub[i]) }, re.Sub...)
	case syntax.OpAlternate:
		all := need{exact: union{}, bare: true, inner: union{}}
		for _, part := range re.Sub {
			sub := needs(part)
			all.exact, all.bare = all.exact.plus(sub.exact), all.bare && sub.bare
			all.inner = all.inner.plus(cheaper(sub.inner, sub.exact))
		}
		return all
	}
	return need{}
}

// sequence joins parts. A part that is not known ends a run and another begins after it;
// one that repeats ends the run with its first time and begins another with its last.
func sequence(n int, part func(int) need, subs ...*syntax.Regexp) need {
	all := need{exact: nothing, bare: true}
	run := nothing
	for i := range n {
		p := part(i)
		all.bare = all.bare && p.bare
		all.exact = all.exact.times(p.exact)
		if p.exact != nil {
			if longer := run.times(p.exact); longer != nil {
				run = longer
				continue
			}
			all.inner, run = cheaper(all.inner, run), p.exact
			continue
		}
		if len(subs) > 0 && subs[i].Op == syntax.OpPlus {
			if sub := needs(subs[i].Sub[0]); sub.exact != nil {
				if longer := run.times(sub.exact); longer != nil {
					run = longer
				}
				all.inner, run = cheaper(all.inner, run), sub.exact
				continue
			}
		}
		all.inner = cheaper(cheaper(all.inner, run), p.inner)
		run = nothing
	}
	all.inner = cheaper(all.inner, run)
	return all
}

// runeSets are the bytes of a rune, or of what it folds to when all have as many.
func runeSets(r rune, fold bool) union {
	var b [utf8.UTFMax]byte
	sets := make([]byteSet, utf8.EncodeRune(b[:], r))
	if r == utf8.RuneError {
		return nil // a byte that is no text matches it too
	}
	for f := r; ; {
		if utf8.EncodeRune(b[:], f) != len(sets) {
			return nil
		}
		for i := range sets {
			sets[i].add(b[i])
		}
		if f = unicode.SimpleFold(f); !fold || f == r {
			return union{sets}
		}
	}
}

// A finder looks for one needle in one text.
type finder struct {
	*needle
	data []byte
	at   int    // where the needle was found last, or len(data)
	next [2]int // where each byte of the pivot is next
}

// reset begins with a text.
func (f *finder) reset(data []byte) {
	f.data, f.at, f.next = data, -1, [2]int{-1, -1}
}

// find returns the first place of the needle from a position on; len(data) when there is none.
func (f *finder) find(from int) int {
	if f.at >= from {
		return f.at
	}
	for i := from + f.pivot; ; i++ {
		first := f.stop(i, 0)
		if f.paired {
			first = min(first, f.stop(i, 1))
		}
		i = first
		start := i - f.pivot
		if start+len(f.sets) > len(f.data) {
			f.at = len(f.data)
			return f.at
		}
		if f.here(start) {
			f.at = start
			return start
		}
	}
}

// stop is the next place of a byte of the pivot from a position on.
func (f *finder) stop(from, which int) int {
	if f.next[which] < from {
		f.next[which] = len(f.data)
		if from < len(f.data) {
			if i := bytes.IndexByte(f.data[from:], f.rare[which]); i >= 0 {
				f.next[which] = from + i
			}
		}
	}
	return f.next[which]
}

func (f *finder) here(start int) bool {
	for i, c := range f.data[start : start+len(f.sets)] {
		if !f.sets[i].has(c) {
			return false
		}
	}
	return true
}
