package cron

import (
	"strconv"
	"strings"
	"time"

	"github.com/adhocore/gronx"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// A field is one of the five.
type field struct {
	name     string
	min, max int
	pos      int      // its number to gronx, which has seconds first
	words    []string // names of its values, from min on
	at       func(value int) time.Time
}

// The fields in their order. at gives an instant in which the field has a value.
var fields = [...]field{
	{name: "minute", max: 59, pos: 1, at: func(v int) time.Time { return time.Date(2000, 1, 1, 0, v, 0, 0, time.UTC) }},
	{name: "hour", max: 23, pos: 2, at: func(v int) time.Time { return time.Date(2000, 1, 1, v, 0, 0, 0, time.UTC) }},
	{name: "day of month", min: 1, max: 31, pos: 3, at: func(v int) time.Time { return time.Date(2000, 1, v, 0, 0, 0, 0, time.UTC) }},
	{
		name: "month", min: 1, max: 12, pos: 4, at: func(v int) time.Time { return time.Date(2000, time.Month(v), 1, 0, 0, 0, 0, time.UTC) },
		words: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
	},
	{
		name: "day of week", max: 7, pos: ofWeek, at: func(v int) time.Time { return time.Date(2000, 1, 2+v, 0, 0, 0, 0, time.UTC) }, // 2 January 2000 is a Sunday
		words: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"},
	},
}

// ofWeek is the number of the day of week, whose 0 and 7 are both Sunday.
const ofWeek = 5

// A set of values of a field: bit v stands for the value v.
type set uint64

func (s set) has(v int) bool { return s>>v&1 != 0 }

// read gives the values that a field's text names. The grammar is checked here, because gronx
// looks at the parts of a list only until one fits and has more signs than a crontab.
func (f field) read(text string) (set, error) {
	parts := strings.Split(text, ",")
	for i, part := range parts {
		plain, err := f.plain(part, len(parts) > 1)
		if err != nil {
			return 0, err
		}
		parts[i] = plain
	}
	plain := strings.Join(parts, ",")
	var values set
	for v := f.min; v <= f.max && !(f.pos == ofWeek && v == 7); v++ {
		c := &gronx.SegmentChecker{}
		c.SetRef(f.at(v))
		due, err := c.CheckDue(plain, f.pos)
		if err != nil {
			return 0, fault.Wrap(contract.InvalidInput, err, "the %s of the cron expression cannot be read", f.name).WithHint("%s", form)
		}
		if due {
			values |= 1 << v
		}
	}
	return values, nil
}

// plain checks one part of a list and writes names as numbers.
func (f field) plain(part string, list bool) (string, error) {
	base, step, stepped := strings.Cut(part, "/")
	if stepped {
		n, ok := number(step)
		if most := f.max - f.min + 1; !ok || n < 1 || n > most {
			return "", f.wrong("a step is / and a number from 1 to %d", most)
		}
	}
	if base == "*" {
		if list && !stepped {
			return "", f.wrong("* stands alone: a list with it names everything")
		}
		return part, nil
	}
	from, to, ranged := strings.Cut(base, "-")
	a, ok := f.value(from)
	if !ok {
		return "", f.wrong("%s", f.bounds())
	}
	plain := strconv.Itoa(a)
	if ranged {
		b, ok := f.value(to)
		switch {
		case !ok:
			return "", f.wrong("%s", f.bounds())
		case b == 0 && a > 0 && f.pos == ofWeek:
			b = 7 // fri-sun
		case a == 7 && b < 7:
			a, plain = 0, "0" // as gronx reads it
		}
		if b < a {
			return "", f.wrong("a range goes from the smaller to the larger; write two of them with a comma between")
		}
		plain += "-" + strconv.Itoa(b)
	}
	if stepped {
		if !ranged { // from a to the end; said out, because gronx means 0 by a leading 0
			last := f.max
			if f.pos == ofWeek {
				last, a = 6, a%7
			}
			plain = strconv.Itoa(a) + "-" + strconv.Itoa(last)
		}
		plain += "/" + step
	}
	return plain, nil
}

// value reads a number or a name.
func (f field) value(text string) (int, bool) {
	for i, w := range f.words {
		if strings.EqualFold(w, text) {
			return f.min + i, true
		}
	}
	n, ok := number(text)
	return n, ok && n >= f.min && n <= f.max
}

// number reads one or two digits: no sign, no blank, nothing that overflows.
func number(text string) (int, bool) {
	if len(text) < 1 || len(text) > 2 {
		return 0, false
	}
	n := 0
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

func (f field) bounds() string {
	b := "numbers from " + strconv.Itoa(f.min) + " to " + strconv.Itoa(f.max)
	if len(f.words) > 0 {
		b += ", or names from " + f.words[0] + " to " + f.words[len(f.words)-1]
	}
	return b
}

func (f field) wrong(hint string, args ...any) error {
	return fault.New(contract.InvalidInput, "the %s of the cron expression is not valid", f.name).WithHint(hint, args...)
}
