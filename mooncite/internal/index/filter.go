package index

import (
	"strconv"
	"strings"
	"time"

	"localmcp/mooncite/internal/evidence"
)

// Filter tokens stand for what a query can be narrowed to. They begin with a
// private-use character, which no word has.
const filterMark = "\ue000"

func roleToken(r evidence.Role) string { return roleTokens[r] }

func originToken(o evidence.Origin) string { return originTokens[o] }

var roleTokens, originTokens = tokensOf("r", evidence.Roles()), tokensOf("o", evidence.Origins())

// tokensOf gives each name the token of its place in the list.
func tokensOf[N ~string](kind string, list []N) map[N]string {
	m := map[N]string{}
	for i, n := range list {
		m[n] = numberToken(kind, int64(i))
	}
	return m
}

func projectToken(id int64) string            { return numberToken("p", id) }
func unitToken(id int64) string               { return numberToken("u", id) }
func classToken(c evidence.Class) string      { return numberToken("c", int64(c)) }
func numberToken(kind string, n int64) string { return string(appendToken(nil, kind, n)) }

func appendToken(dst []byte, kind string, n int64) []byte {
	return strconv.AppendInt(append(append(dst, filterMark...), kind...), n, 10)
}

// hiddenToken stands in place of a class on spans that are searched but not kept.
const hiddenToken = filterMark + "h"

const dayMS = 24 * 60 * 60 * 1000

// dayOf numbers the days since 1970; monthOf the months. Spans without a time are
// in month 0 and in no day.
func dayOf(ms int64) int64 {
	d := ms / dayMS
	if ms%dayMS < 0 {
		d--
	}
	return d
}

func monthOf(ms int64) int64 {
	if ms == evidence.NoTime {
		return 0
	}
	t := time.UnixMilli(ms).UTC()
	return max(1, int64(t.Year())*12+int64(t.Month())-1)
}

// monthStart is the first millisecond of a month.
func monthStart(m int64) int64 {
	return time.Date(int(m/12), time.Month(m%12+1), 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}

func monthToken(m int64) string { return numberToken("m", m) }
func dayToken(d int64) string   { return numberToken("d", d) }

func appendFilters(dst []byte, o evidence.Origin, s *Span) []byte {
	dst = append(append(dst, ' '), roleToken(s.Role)...)
	dst = append(append(dst, ' '), originToken(o)...)
	dst = appendToken(append(dst, ' '), "p", s.Project)
	dst = appendToken(append(dst, ' '), "u", s.Unit)
	if s.Hidden {
		dst = append(append(dst, ' '), hiddenToken...)
	} else {
		dst = appendToken(append(dst, ' '), "c", int64(s.Class))
	}
	dst = appendToken(append(dst, ' '), "m", monthOf(s.Time))
	if s.Time != evidence.NoTime {
		dst = appendToken(append(dst, ' '), "d", dayOf(s.Time))
	}
	return append(dst, ' ')
}

// Filter narrows a search; its zero value narrows nothing.
type Filter struct {
	Role    evidence.Role   // "" is any
	Origin  evidence.Origin // "" is any
	Project int64           // 0 is any
	Units   []int64         // nil is any
	After   int64           // inclusive; evidence.NoTime is open
	Before  int64           // inclusive; evidence.NoTime is open
}

// Any is the filter that narrows nothing.
func Any() Filter { return Filter{After: evidence.NoTime, Before: evidence.NoTime} }

// timed reports whether the filter bounds time.
func (f *Filter) timed() bool { return f.After != evidence.NoTime || f.Before != evidence.NoTime }

// Holds reports whether a span's time is inside the filter's bounds.
func (f *Filter) Holds(ms int64) bool {
	if !f.timed() {
		return true
	}
	return ms != evidence.NoTime && (f.After == evidence.NoTime || ms >= f.After) && (f.Before == evidence.NoTime || ms <= f.Before)
}

// expression is the filter in FTS5's language, without the bounds of time: "" when
// it narrows nothing.
func (f *Filter) expression() string {
	var parts []string
	if f.Role != "" {
		parts = append(parts, quote(roleToken(f.Role)))
	}
	if f.Origin != "" {
		parts = append(parts, quote(originToken(f.Origin)))
	}
	if f.Project != 0 {
		parts = append(parts, quote(projectToken(f.Project)))
	}
	if f.Units != nil {
		var or []string
		for _, u := range f.Units {
			or = append(or, quote(unitToken(u)))
		}
		parts = append(parts, anyOf(or))
	}
	return allOf(parts)
}

// period is a set of spans by time: whole months and days, all inside the bounds,
// and the days a bound cuts, whose spans have to be looked at one by one.
type period struct {
	inside string // expression; "" is none
	edge   string // expression; "" is none
}

// periods splits the filter's bounds over the months there are.
func (f *Filter) periods(months []int64) period {
	var inside, edge []string
	for _, m := range months {
		if m == 0 {
			continue
		}
		first, last := monthStart(m), monthStart(m+1)-1
		if !f.overlaps(first, last) {
			continue
		}
		if f.Holds(first) && f.Holds(last) {
			inside = append(inside, quote(monthToken(m)))
			continue
		}
		for d := dayOf(first); d <= dayOf(last); d++ {
			from, to := d*dayMS, d*dayMS+dayMS-1
			switch {
			case !f.overlaps(from, to):
			case f.Holds(from) && f.Holds(to):
				inside = append(inside, quote(dayToken(d)))
			default:
				edge = append(edge, quote(dayToken(d)))
			}
		}
	}
	return period{inside: anyOf(inside), edge: anyOf(edge)}
}

func (f *Filter) overlaps(first, last int64) bool {
	return (f.After == evidence.NoTime || last >= f.After) && (f.Before == evidence.NoTime || first <= f.Before)
}

// quote makes an FTS5 string of one or more tokens parted by spaces. Tokens hold no
// quotation marks.
func quote(tokens string) string { return `"` + tokens + `"` }

func anyOf(parts []string) string {
	switch len(parts) {
	case 0:
		return ""
	case 1:
		return parts[0]
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

func allOf(parts []string) string {
	switch len(parts) {
	case 0:
		return ""
	case 1:
		return parts[0]
	}
	return "(" + strings.Join(parts, " AND ") + ")"
}

// both joins two expressions of which either may be "".
func both(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return allOf([]string{a, b})
}
