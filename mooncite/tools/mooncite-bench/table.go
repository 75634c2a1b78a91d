package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// verdict is what a row says of its goal.
type verdict string

const (
	kept       verdict = "ok"
	over       verdict = "over"
	failed     verdict = "failed"       // the program did not do it
	unmeasured verdict = "not measured" // no yardstick
	info       verdict = ""             // no goal at this size
)

// row is one line of the table.
type row struct {
	size, what, measured, goal string
	verdict                    verdict
}

// table collects the rows in the order they were measured.
type table struct{ rows []row }

func (t *table) add(r row) { t.rows = append(t.rows, r) }

// missed reports whether a goal was missed.
func (t *table) missed() bool {
	return slices.ContainsFunc(t.rows, func(r row) bool { return r.verdict == over || r.verdict == failed })
}

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "history\twhat\tmeasured\tgoal\t")
	for _, r := range t.rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", r.size, r.what, r.measured, r.goal, r.verdict)
	}
	return tw.Flush()
}

// judge compares a value with a goal; no goal is 0.
func judge[T int64 | float64 | time.Duration](value, goal T) verdict {
	switch {
	case goal == 0:
		return info
	case value > goal:
		return over
	}
	return kept
}

// times are measured durations.
type times []time.Duration

// at returns the value that the part q of all values does not exceed (nearest
// rank); 0 when there are none.
func (t times) at(q float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(t))
	i := int(q*float64(len(s)) + .999999)
	return s[min(max(i, 1), len(s))-1]
}

func (t times) median() time.Duration { return t.at(.5) }
func (t times) worst() time.Duration  { return t.at(1) }

// show prints a duration with three digits that matter.
func show(d time.Duration) string {
	switch ms := float64(d) / 1e6; {
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
}

func goalTime(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return "<= " + d.String()
}
