package search

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// An automaton is an expression over bytes: what a [walker] makes states of. Of bytes from
// 128 on it knows only that some rune of them may fit: it takes one or more of them for
// any rune an instruction takes beyond ASCII. So it says yes for every line that matches,
// and for a line of ASCII alone it says yes only then.
type automaton struct {
	prog    *syntax.Prog
	class   [256]uint8 // bytes that no instruction tells apart have the same
	one     []byte     // a byte of each class
	takes   [][]bool   // by instruction and class; nil where no rune is taken
	words   bool       // it asks for word boundaries
	starts  bool       // it asks for the start of a line
	feed    uint8      // the class of the line feed
	cr      uint8      // the class of a CR within a line
	isCR    uint8      // what a CR has in class: only the byte behind it tells what it is
	beyond  uint8      // the class of bytes from 128 on
	classes int        // columns of a row: the classes, and isCR
}

func newAutomaton(prog *syntax.Prog) *automaton {
	a := &automaton{prog: prog, takes: make([][]bool, len(prog.Inst))}
	takes := make([][utf8.RuneSelf + 1]bool, len(prog.Inst))
	for pc := range prog.Inst {
		inst := &prog.Inst[pc]
		switch inst.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			for r := range rune(utf8.RuneSelf) {
				takes[pc][r] = r != '\n' && inst.MatchRune(r)
			}
			takes[pc][utf8.RuneSelf] = takesBeyond(inst)
			a.takes[pc] = []bool{}
		case syntax.InstEmptyWidth:
			arg := syntax.EmptyOp(inst.Arg)
			a.words = a.words || arg&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0
			a.starts = a.starts || arg&(syntax.EmptyBeginLine|syntax.EmptyBeginText) != 0
		}
	}
	// Two bytes are of one class when every instruction takes both or none.
	columns := map[string]uint8{}
	column := make([]byte, len(prog.Inst)+1)
	for c := range utf8.RuneSelf + 1 {
		for pc := range takes {
			column[pc] = 0
			if takes[pc][c] {
				column[pc] = 1
			}
		}
		column[len(takes)] = 0
		switch {
		case c == '\n':
			column[len(takes)] = 1
		case c == '\r':
			column[len(takes)] = 4
		case c == utf8.RuneSelf:
			column[len(takes)] = 2
		case a.words && syntax.IsWordChar(rune(c)):
			column[len(takes)] = 3
		}
		k, known := columns[string(column)]
		if !known {
			k = uint8(len(columns))
			columns[string(column)] = k
			a.one = append(a.one, byte(c))
			for pc := range takes {
				if a.takes[pc] != nil {
					a.takes[pc] = append(a.takes[pc], takes[pc][c])
				}
			}
		}
		if c < utf8.RuneSelf {
			a.class[c] = k
		} else {
			for b := utf8.RuneSelf; b < 256; b++ {
				a.class[b] = k
			}
		}
	}
	a.feed, a.cr, a.beyond = a.class['\n'], a.class['\r'], a.class[utf8.RuneSelf]
	a.isCR = uint8(len(a.one))
	a.class['\r'] = a.isCR
	a.classes = len(a.one) + 1
	return a
}

// takesBeyond reports whether an instruction takes a rune from 128 on.
func takesBeyond(inst *syntax.Inst) bool {
	switch inst.Op {
	case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	if len(inst.Rune) == 1 {
		r := inst.Rune[0]
		if r >= utf8.RuneSelf {
			return true
		}
		if syntax.Flags(inst.Arg)&syntax.FoldCase != 0 {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				if f >= utf8.RuneSelf {
					return true
				}
			}
		}
		return false
	}
	return len(inst.Rune) > 0 && inst.Rune[len(inst.Rune)-1] >= utf8.RuneSelf
}

// What stood before a place.
const (
	afterFeed = iota // the start of a line
	afterWord
	afterOther
)

// A walker walks texts with the states of an automaton. It makes states as it meets them,
// up to a bound, and belongs to one goroutine.
type walker struct {
	*automaton
	next   []int32 // by state and class: the first index of the next state's row, or below
	sets   [][]uint32
	before []uint8
	rows   map[string]int32
	first  int32 // the state at the start of a line
	made   int   // states made so far
	walked int   // bytes walked so far
	tired  bool  // making states took more than walking with them: matching is quicker

	stack []uint32
	seen  []uint32 // by instruction: the turn that saw it
	turn  uint32
	key   []byte
	set   []uint32
}

// What stands in a row instead of a next state.
const (
	unknown = -1
	hit     = -2 // a match ends before the byte
	look    = -3 // of isCR: at the end of a line the CR is no part of it, else it is of class cr
)

// statesMax bounds the states that are kept; when there are more, all are forgotten.
const statesMax = 1024

func newWalker(a *automaton) *walker {
	w := &walker{automaton: a, seen: make([]uint32, len(a.prog.Inst))}
	w.clear()
	return w
}

func (w *walker) clear() {
	w.next, w.sets, w.before, w.rows = w.next[:0], w.sets[:0], w.before[:0], map[string]int32{}
	w.first = w.row(nil, afterFeed)
}

// find walks from the start of a line until a match has ended, and returns the position
// after its end, which is on the same line or is the line feed behind it; -1 when there is
// none. The last line of data ends with data; a CR at the end of a line is passed over. What it says means nothing once it is tired.
func (w *walker) find(data []byte, from int) int {
	at := w.first
	class, next := &w.class, w.next
	for i := from; i < len(data); i++ {
		k := class[data[i]]
		t := next[int(at)+int(k)]
		if t < 0 {
			if t == look {
				if i+1 == len(data) || data[i+1] == '\n' {
					continue
				}
				k = w.cr
				t = next[int(at)+int(k)]
			}
			if t == unknown {
				t = w.step(at, k)
				next = w.next
			}
			if t == hit {
				w.walked += i - from
				return i
			}
			if w.made*(len(w.prog.Inst)+20) > 1<<20+w.walked+i-from {
				w.tired = true
				return -1
			}
		}
		at = t
	}
	w.walked += len(data) - from
	t := w.next[int(at)+int(w.feed)]
	if t == unknown {
		t = w.step(at, w.feed)
	}
	if t == hit {
		return len(data)
	}
	return -1
}

// step finds what a byte of a class leads to.
func (w *walker) step(at int32, class uint8) int32 {
	state := int(at) / w.classes
	before := w.before[state]
	one := w.one[class]
	word := class != w.beyond && syntax.IsWordChar(rune(one))
	var given syntax.EmptyOp
	if before == afterFeed {
		given |= syntax.EmptyBeginLine | syntax.EmptyBeginText
	}
	if class == w.feed {
		given |= syntax.EmptyEndLine | syntax.EmptyEndText
	}
	if w.words && word != (before == afterWord) {
		given |= syntax.EmptyWordBoundary
	} else {
		given |= syntax.EmptyNoWordBoundary
	}
	matched := w.close(w.sets[state], given, class)
	t := int32(hit)
	if !matched {
		now := uint8(afterOther)
		switch {
		case class == w.feed:
			w.set = w.set[:0]
			if w.starts {
				now = afterFeed
			}
		case w.words && word:
			now = afterWord
		}
		if len(w.sets) >= statesMax {
			set := slices.Clone(w.set)
			w.clear()
			return w.row(set, now)
		}
		t = w.row(w.set, now)
	}
	w.next[int(at)+int(class)] = t
	return t
}

// close follows the instructions of a set and of a match that begins here, as far as no
// byte is needed, and gathers in w.set where a byte of the class leads. It reports whether
// a match has ended.
func (w *walker) close(set []uint32, given syntax.EmptyOp, class uint8) bool {
	w.turn++
	w.set = w.set[:0]
	w.stack = append(append(w.stack[:0], uint32(w.prog.Start)), set...)
	for len(w.stack) > 0 {
		pc := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		if w.seen[pc] == w.turn {
			continue
		}
		w.seen[pc] = w.turn
		inst := &w.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			w.stack = append(w.stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			w.stack = append(w.stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^given == 0 {
				w.stack = append(w.stack, inst.Out)
			}
		case syntax.InstFail:
		default:
			if w.takes[pc][class] {
				w.set = append(w.set, inst.Out)
				if class == w.beyond {
					w.set = append(w.set, pc)
				}
			}
		}
	}
	slices.Sort(w.set)
	w.set = slices.Compact(w.set)
	return false
}

// row returns the row of a state and makes it if need be.
func (w *walker) row(set []uint32, before uint8) int32 {
	w.key = append(w.key[:0], before)
	for _, pc := range set {
		w.key = binary.AppendUvarint(w.key, uint64(pc))
	}
	if at, known := w.rows[string(w.key)]; known {
		return at
	}
	at := int32(len(w.next))
	for range w.classes - 1 {
		w.next = append(w.next, unknown)
	}
	w.next = append(w.next, look)
	w.sets = append(w.sets, slices.Clone(set))
	w.before = append(w.before, before)
	w.rows[string(w.key)] = at
	w.made++
	return at
}
