package cron_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	_ "time/tzdata"

	"github.com/adhocore/gronx"
	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/cron"
)

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func parse(t testing.TB, expr, zone string) *cron.Schedule {
	t.Helper()
	s, err := cron.Parse(expr, zone)
	if err != nil {
		t.Fatalf("%s in %s: %v", expr, zone, err)
	}
	return s
}

// TestClock: what a schedule does where clocks jump, and where the calendar does (decisions
// 3.10). Runs are local with their offset; skipped and doubled are what the clock reads.
func TestClock(t *testing.T) {
	const (
		ny, cairo, howe = "America/New_York", "Africa/Cairo", "Australia/Lord_Howe"
		spring, autumn  = "2026-03-08T00:00:00-05:00", "2026-11-01T00:00:00-04:00"
	)
	for name, c := range map[string]struct {
		expr, zone, from       string
		runs, skipped, doubled string
	}{
		"the gap":                {"30 2 * * *", ny, spring, "2026-03-09T02:30:00-04:00 2026-03-10T02:30:00-04:00", "2026-03-08T02:30:00", ""},
		"before and behind it":   {"59 1,3 * * *", ny, spring, "2026-03-08T01:59:00-05:00 2026-03-08T03:59:00-04:00", "", ""},
		"every half hour, gap":   {"*/30 1-3 * * *", ny, spring, "2026-03-08T01:00:00-05:00 2026-03-08T01:30:00-05:00 2026-03-08T03:00:00-04:00 2026-03-08T03:30:00-04:00", "2026-03-08T02:00:00 2026-03-08T02:30:00", ""},
		"one hour, twice":        {"30 1 * * *", ny, autumn, "2026-11-01T01:30:00-04:00 2026-11-02T01:30:00-05:00", "", "2026-11-01T01:30:00@2026-11-01T06:30:00Z"},
		"one hour, all of it":    {"*/20 1 * * *", ny, autumn, "2026-11-01T01:00:00-04:00 2026-11-01T01:20:00-04:00 2026-11-01T01:40:00-04:00 2026-11-02T01:00:00-05:00", "", "2026-11-01T01:00:00@2026-11-01T06:00:00Z 2026-11-01T01:20:00@2026-11-01T06:20:00Z 2026-11-01T01:40:00@2026-11-01T06:40:00Z"},
		"every hour, twice":      {"0 * * * *", ny, autumn, "2026-11-01T00:00:00-04:00 2026-11-01T01:00:00-04:00 2026-11-01T01:00:00-05:00 2026-11-01T02:00:00-05:00", "", "2026-11-01T01:00:00@2026-11-01T06:00:00Z"},
		"every half hour, twice": {"*/30 * * * *", ny, "2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-04:00 2026-11-01T01:30:00-04:00 2026-11-01T01:00:00-05:00 2026-11-01T01:30:00-05:00", "", "2026-11-01T01:00:00@2026-11-01T06:00:00Z 2026-11-01T01:30:00@2026-11-01T06:30:00Z"},
		"a list of hours":        {"30 1,13 * * *", ny, autumn, "2026-11-01T01:30:00-04:00 2026-11-01T01:30:00-05:00 2026-11-01T13:30:00-05:00", "", "2026-11-01T01:30:00@2026-11-01T06:30:00Z"},
		"a range is such a list": {"30 1-2 * * *", ny, autumn, "2026-11-01T01:30:00-04:00 2026-11-01T01:30:00-05:00 2026-11-01T02:30:00-05:00", "", "2026-11-01T01:30:00@2026-11-01T06:30:00Z"},
		"a list of one":          {"30 1-1 * * *", ny, autumn, "2026-11-01T01:30:00-04:00 2026-11-02T01:30:00-05:00", "", "2026-11-01T01:30:00@2026-11-01T06:30:00Z"},
		"begun between the two":  {"30 1 * * *", ny, "2026-11-01T06:15:00Z", "2026-11-02T01:30:00-05:00", "", "2026-11-01T01:30:00@2026-11-01T06:30:00Z"},
		"Cairo has no midnight":  {"0 0 * * *", cairo, "2026-04-23T12:00:00+02:00", "2026-04-25T00:00:00+03:00", "2026-04-24T00:00:00", ""},
		"Cairo, 23 h twice":      {"30 23 * * *", cairo, "2026-10-29T12:00:00+03:00", "2026-10-29T23:30:00+03:00 2026-10-30T23:30:00+02:00", "", "2026-10-29T23:30:00@2026-10-29T21:30:00Z"},
		"Cairo, midnight once":   {"0 0 * * *", cairo, "2026-10-29T12:00:00+03:00", "2026-10-30T00:00:00+02:00 2026-10-31T00:00:00+02:00", "", ""},
		"half an hour is gone":   {"15 2 * * *", howe, "2026-10-04T00:00:00+10:30", "2026-10-05T02:15:00+11:00", "2026-10-04T02:15:00", ""},
		"half an hour is there":  {"45 2 * * *", howe, "2026-10-04T00:00:00+10:30", "2026-10-04T02:45:00+11:00", "", ""},
		"half an hour twice":     {"*/15 1 * * *", howe, "2026-04-05T01:00:00+11:00", "2026-04-05T01:00:00+11:00 2026-04-05T01:15:00+11:00 2026-04-05T01:30:00+11:00 2026-04-05T01:45:00+11:00 2026-04-06T01:00:00+10:30", "", "2026-04-05T01:30:00@2026-04-04T15:00:00Z 2026-04-05T01:45:00@2026-04-04T15:15:00Z"},
		"half an hour, hourly":   {"30 * * * *", howe, "2026-04-05T01:00:00+11:00", "2026-04-05T01:30:00+11:00 2026-04-05T01:30:00+10:30 2026-04-05T02:30:00+10:30", "", "2026-04-05T01:30:00@2026-04-04T15:00:00Z"},
		"a day is gone":          {"0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00-10:00", "2011-12-29T12:00:00-10:00 2011-12-31T12:00:00+14:00", "2011-12-30T12:00:00", ""},
		"Nepal":                  {"0 6 * * *", "Asia/Kathmandu", "2026-01-01T00:00:00Z", "2026-01-01T06:00:00+05:45 2026-01-02T06:00:00+05:45", "", ""},
		"leap days":              {"0 0 29 2 *", "UTC", "2096-02-29T00:00:01Z", "2104-02-29T00:00:00Z 2108-02-29T00:00:00Z", "", ""},
		"a leap Sunday":          {"0 0 29 2 */7", "UTC", "2096-02-29T00:00:01Z", "2128-02-29T00:00:00Z", "", ""},
		"a day or a weekday":     {"0 0 13 * 5", "UTC", "2026-02-10T00:00:00Z", "2026-02-13T00:00:00Z 2026-02-20T00:00:00Z 2026-02-27T00:00:00Z 2026-03-06T00:00:00Z 2026-03-13T00:00:00Z", "", ""},
		"a weekday alone":        {"0 0 * * fri", "UTC", "2026-02-10T00:00:00Z", "2026-02-13T00:00:00Z 2026-02-20T00:00:00Z", "", ""},
		"Sunday is 7 and 0":      {"0 0 * * 7", "UTC", "2026-02-10T00:00:00Z", "2026-02-15T00:00:00Z 2026-02-22T00:00:00Z", "", ""},
		"up to Sunday":           {"0 0 * * FRI-Sun", "UTC", "2026-02-10T00:00:00Z", "2026-02-13T00:00:00Z 2026-02-14T00:00:00Z 2026-02-15T00:00:00Z 2026-02-20T00:00:00Z", "", ""},
		"months by name":         {"0 0 1 jan,JUL *", "UTC", "2026-02-10T00:00:00Z", "2026-07-01T00:00:00Z 2027-01-01T00:00:00Z", "", ""},
		"steps from a number":    {"5/20 0/12 * * *", "UTC", "2026-02-10T00:00:00Z", "2026-02-10T00:05:00Z 2026-02-10T00:25:00Z 2026-02-10T00:45:00Z 2026-02-10T12:05:00Z", "", ""},
		"the end of a year":      {"59 23 31 12 *", "Asia/Tokyo", "2026-12-31T14:59:00Z", "2026-12-31T23:59:00+09:00 2027-12-31T23:59:00+09:00", "", ""},
		"an old name":            {"0 6 * * *", "Asia/Calcutta", "2026-01-01T00:00:00Z", "2026-01-01T06:00:00+05:30", "", ""},
		"within a minute":        {"* * * * *", "UTC", "2026-01-01T00:00:00.5Z", "2026-01-01T00:01:00Z", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := strings.Fields(c.runs)
			p := parse(t, c.expr, c.zone).Preview(instant(t, c.from), len(want))
			var runs, skipped, doubled []string
			for _, r := range p.Runs {
				runs = append(runs, r.Local.Format(time.RFC3339))
				if !r.At.Equal(r.Local) || r.At.Location() != time.UTC {
					t.Errorf("%v and %v", r.At, r.Local)
				}
			}
			for _, s := range p.Skipped {
				skipped = append(skipped, s.Local)
			}
			for _, d := range p.Doubled {
				doubled = append(doubled, d.Local+"@"+d.At.Format(time.RFC3339))
			}
			if diff := cmp.Diff(want, runs); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(strings.Join(strings.Fields(c.skipped), " "), strings.Join(skipped, " ")); diff != "" {
				t.Error("skipped", diff)
			}
			if diff := cmp.Diff(strings.Join(strings.Fields(c.doubled), " "), strings.Join(doubled, " ")); diff != "" {
				t.Error("doubled", diff)
			}
		})
	}
}

// TestNever: a date that never comes is found out at once.
func TestNever(t *testing.T) {
	for _, expr := range []string{"0 0 31 2 *", "0 0 30 feb *", "0 0 31 4,6,9,11 *"} {
		for _, zone := range []string{"UTC", "America/New_York", "Africa/Casablanca"} {
			begun := time.Now()
			if at, ok := parse(t, expr, zone).Next(instant(t, "2026-01-01T00:00:00Z")); ok {
				t.Errorf("%s: %v", expr, at)
			}
			if d := time.Since(begun); d > 100*time.Millisecond*slack {
				t.Errorf("%s in %s took %v", expr, zone, d)
			}
		}
	}
}

// TestEnds: what cannot be written is no answer.
func TestEnds(t *testing.T) {
	for _, zone := range []string{"Asia/Tokyo", "America/New_York"} {
		for from, want := range map[string]int{
			"0000-01-01T00:00:00Z": 5, "9998-06-01T00:00:00Z": 1, "9999-12-31T12:00:00Z": 0, "9999-12-31T23:59:59Z": 0,
		} {
			p := parse(t, "0 0 1 1 *", zone).Preview(instant(t, from), 5)
			if _, err := json.Marshal(p); err != nil || len(p.Runs) != want {
				t.Errorf("from %s in %s: %v, %v", from, zone, p.Runs, err)
			}
		}
	}
}

// TestRefused: what is no five-field expression, or no zone, is said to be wrong.
func TestRefused(t *testing.T) {
	for _, expr := range []string{
		"", "*", "* * * *", "* * * * * *", "@daily", "@reboot", "@every 5m", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *",
		"* * * 13 *", "* * * * 8", "-1 * * * *", "+1 * * * *", "1- * * * *", "-5 * * * *", "5-1 * * * *", "1-2-3 * * * *", "*/0 * * * *", "*/61 * * * *",
		"*/ * * * *", "/5 * * * *", "1/2/3 * * * *", "1,,2 * * * *", ",1 * * * *", "1, * * * *", "* * L * *", "* * 1W * *", "* * * * 1#2", "* * ? * *",
		"* * * JANUARY *", "mon * * * *", "* * * * jan", "1,* * * * *", "*,1 * * * *", "*-5 * * * *", "1.5 * * * *", "0x1 * * * *", "001 * * * *",
		"１ * * * *", "* * * * *\n", "*\u00a0* * * *", "TZ=UTC * * * *", "TZ=UTC * * * * *", "* * * * sun-", "H * * * *", "\x00 * * * *",
	} {
		if _, err := cron.Parse(expr, "UTC"); !errors.Is(err, contract.InvalidInput) {
			t.Errorf("%q: %v", expr, err)
		}
	}
	for _, zone := range []string{
		"", "Local", "local time", "../x", "../../etc/passwd", "/etc/localtime", "Europe/../UTC", "Europe//Paris", "Mars/Olympus", "EST5EDT,M3.2.0,M11.1.0",
		"right/UTC", "posix/UTC", "posixrules", "localtime", "Factory", "Europe", "Europe/Paris\x00", `Europe\Paris`, "zone.tab", "tzdata.zi", "+02:00", "Ünï",
	} {
		if _, err := cron.Parse("* * * * *", zone); !errors.Is(err, contract.InvalidInput) {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
}

// TestQuick: a thousand runs are there at once, whatever is asked.
func TestQuick(t *testing.T) {
	for _, expr := range []string{"* * * * *", "0 0 29 2 *", "30 2 8 3 *", "0 0 1 1 *", "59 23 31 12 */7"} {
		begun := time.Now()
		p := parse(t, expr, "America/New_York").Preview(instant(t, "2026-01-01T00:00:00Z"), 1000)
		if d := time.Since(begun); d > 100*time.Millisecond*slack {
			t.Errorf("%s: %d runs took %v", expr, len(p.Runs), d)
		}
		if len(p.Runs) != 1000 {
			t.Errorf("%s: %d runs", expr, len(p.Runs))
		}
	}
}

// TestAsGronx: outside of jumps a schedule is due exactly when gronx says so.
func TestAsGronx(t *testing.T) {
	g, days := gronx.New(), 70
	if slack > 1 {
		days = 7
	}
	for _, expr := range []string{
		"* * * * *", "*/7 * * * *", "0 0 13 * 5", "0 0 */2 * 1", "0 0 1 * */2", "15,45 8-18/3 1-7 * 1-5", "0 12 * 2 mon,wed", "5 4 * * sun", "0 0 1-31 * 2",
		"10-20/5 */5 31 * *", "0 0 * * 5-7", "0 0 * * 4-7/3", "0 3 * feb-apr 0,3",
	} {
		s := parse(t, expr, "UTC")
		at := instant(t, "2027-12-28T00:00:00Z")
		next, _ := s.Next(at.Add(-time.Minute))
		for range days * 24 * 60 {
			due, err := g.IsDue(expr, at)
			if err != nil {
				t.Fatal(expr, err)
			}
			if due != next.Equal(at) {
				t.Fatalf("%s at %v: gronx %v, next %v", expr, at, due, next)
			}
			if due {
				next, _ = s.Next(at)
			}
			at = at.Add(time.Minute)
		}
	}
}
