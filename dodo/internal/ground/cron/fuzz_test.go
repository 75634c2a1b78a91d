package cron_test

import (
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"

	"localmcp/dodo/internal/ground/cron"
)

// FuzzCron: whatever is typed, nothing panics and instants rise; and around an instant a
// schedule is due exactly when a walk over every real minute says so.
func FuzzCron(f *testing.F) {
	for _, s := range []struct {
		expr, zone, from string
	}{
		{"30 2 * * *", "America/New_York", "2026-03-08T00:00:00Z"},
		{"30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z"},
		{"*/30 * * * *", "America/New_York", "2026-11-01T00:00:00Z"},
		{"15,45 1,13 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z"},
		{"0 0 * * *", "Africa/Cairo", "2026-04-23T00:00:00Z"},
		{"0 12 30 12 *", "Pacific/Apia", "2011-12-29T00:00:00Z"},
		{"0 0 29 2 */7", "UTC", "2096-02-28T00:00:00Z"},
		{"0 3 * * fri-sun", "Africa/Casablanca", "2026-02-14T00:00:00Z"},
		{"*/7 0-5 13 * 5", "America/Nuuk", "2026-10-24T00:00:00Z"},
		{"59 23 31 12 *", "Europe/Dublin", "2072-12-30T00:00:00Z"},
		{"0 * * * *", "Antarctica/Troll", "2072-03-26T00:00:00Z"},
		{"* * * * *", "America/Adak", "1967-04-01T00:00:00Z"},
	} {
		at := instant(f, s.from)
		f.Add(s.expr, s.zone, at.Unix())
	}
	f.Fuzz(func(t *testing.T, expr, zone string, unix int64) {
		s, err := cron.Parse(expr, zone)
		if err != nil {
			return
		}
		const first, last = -2_000_000_000, 250_000_000_000
		from := time.Unix(first+(unix-first)%(last-first), 0).UTC()
		if unix >= first && unix < last {
			from = time.Unix(unix, 0).UTC()
		}
		p := s.Preview(from, 50)
		before := from.Add(-time.Second)
		for _, r := range p.Runs {
			next, ok := s.Next(before)
			if !ok || !next.Equal(r.At) || !next.After(before) || !r.At.Equal(r.Local) {
				t.Fatalf("after %v comes %v, %v, and the preview has %v", before, next, ok, r)
			}
			before = next
		}
		naive(t, s, expr, zone, from)
	})
}

// naive walks over two days, minute by minute, as the zone's clock shows them.
func naive(t *testing.T, s *cron.Schedule, expr, zone string, from time.Time) {
	loc, err := cron.Zone(zone)
	if err != nil {
		t.Fatal(err)
	}
	if _, offset := from.In(loc).Zone(); from.Year() < 1950 && offset%60 != 0 {
		return // the clock's minutes are not those of UTC
	}
	from = from.Truncate(time.Minute)
	g := gronx.New()
	seen := map[string]bool{} // local times that the clock has shown
	local := func(at time.Time) string { return at.In(loc).Format(cron.LocalLayout) }
	for at := from.Add(-49 * time.Hour); at.Before(from); at = at.Add(time.Minute) {
		seen[local(at)] = true
	}
	hours := map[int]bool{}
	for h := range 24 {
		due, err := g.IsDue("* "+field(expr, 1)+" * * *", time.Date(2000, 1, 1, h, 0, 0, 0, time.UTC))
		if err != nil {
			return // gronx reads names and 7 otherwise
		}
		if due {
			hours[h] = true
		}
	}
	next, ok := s.Next(from.Add(-time.Second))
	for at := from; at.Before(from.Add(48 * time.Hour)); at = at.Add(time.Minute) {
		due, err := g.IsDue(expr, at.In(loc))
		if err != nil {
			return
		}
		if len(hours) == 1 && seen[local(at)] {
			due = false
		}
		seen[local(at)] = true
		if is := ok && next.Equal(at); is != due {
			t.Fatalf("%q in %s: at %v (%s) due is %v, and the next is %v", expr, zone, at, local(at), due, next)
		}
		if due {
			next, ok = s.Next(at)
		}
	}
	if ok && next.Before(from.Add(48*time.Hour)) {
		t.Fatalf("%q in %s: %v is no minute of the clock", expr, zone, next)
	}
}

// field is one of the five texts.
func field(expr string, i int) string { return strings.Fields(expr)[i] }
