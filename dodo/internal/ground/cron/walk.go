package cron

import (
	"math/bits"
	"time"
)

// A wall is what a clock shows, in seconds since 1970 as if it stood in UTC.
type wall int64

func (w wall) time() time.Time { return time.Unix(int64(w), 0).UTC() }

// A stretch is a time in which the clock of a zone runs evenly.
type stretch struct {
	begin, end int64 // instants in seconds; end is the first of the next one
	offset     int64 // what the clock is ahead of UTC
}

const (
	hour = int64(3600)
	day  = 24 * hour
	// RFC 3339 can write the years 0 to 9999. Two days at both ends are for the zones.
	earliest = -62167219200 + 2*day
	farthest = 253402300800 - 2*day

	// idle is how long a search goes on without finding anything. No date that comes at all
	// stays away longer than 40 years: 29 February on a given day of the week, across 2100.
	idle = 100 * 366 * day
)

// at is the stretch that an instant is in.
func at(zone *time.Location, instant int64) stretch {
	t := time.Unix(instant, 0).In(zone)
	_, offset := t.Zone()
	begin, end := t.ZoneBounds()
	s := stretch{begin: -1 << 62, end: farthest, offset: int64(offset)}
	if !begin.IsZero() {
		s.begin = begin.Unix()
	}
	if !end.IsZero() {
		s.end = min(end.Unix(), farthest)
	}
	if s.end <= instant {
		// Beyond the zone's table the time package ends stretches with the year, and takes every
		// year for one of 365 days: on the last day of a leap year the end lies behind.
		s.end = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	return s
}

// shown is the first wall that no clock of the zone had come to before a stretch began.
func shown(zone *time.Location, s stretch) wall {
	high := wall(-1 << 62)
	// What a clock showed two days before it shows never again: the largest step back is a day.
	for before := s; before.begin > s.begin-2*day && before.begin > -1<<61; {
		end := before.begin
		before = at(zone, end-1)
		high = max(high, wall(end+before.offset))
	}
	return high
}

// An event is what walk meets.
type event struct {
	at      int64 // instant; of what is skipped, that of the jump
	wall    wall
	skipped bool // the clock jumps over it
	doubled bool // the clock showed it before
	due     bool // the schedule is due
}

// walk gives what happens from an instant on, in its order, until f wants no more or the
// search has gone on for long without anything.
func (s *Schedule) walk(from int64, f func(event) bool) {
	if from = max(from, earliest); from >= farthest {
		return
	}
	last := from // of what was found
	st := at(s.zone, from)
	high := shown(s.zone, st)
	first := wall(from + st.offset)
	for st.begin < farthest && max(st.begin, from)-last < idle {
		end, stop := wall(st.end+st.offset), false
		s.walls(first, end, func(w wall) bool {
			e := event{at: int64(w) - st.offset, wall: w, doubled: w < high, due: w >= high || !s.once}
			last = e.at
			stop = !f(e)
			return !stop
		})
		if stop || st.end >= farthest {
			return
		}
		high = max(high, end)
		st = at(s.zone, st.end)
		first = wall(st.begin + st.offset)
		if first > high {
			s.walls(high, first, func(w wall) bool {
				stop = !f(event{at: st.begin, wall: w, skipped: true})
				return !stop
			})
			if stop {
				return
			}
		}
	}
}

// walls gives the walls from begin on and before end that the fields name, in their order,
// until f wants no more or nothing was found for long.
func (s *Schedule) walls(begin, end wall, f func(wall) bool) {
	last := begin
	year, month, d := begin.time().Date()
	for {
		t := time.Date(year, month, d, 0, 0, 0, 0, time.UTC)
		midnight := wall(t.Unix())
		if midnight >= end || midnight-last > wall(idle) {
			return
		}
		if !s.months.has(int(month)) {
			year, month, d = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC).Date()
			continue
		}
		if s.day(d, t.Weekday()) {
			if last = max(last, midnight); !s.within(midnight, begin, end, f) {
				return
			}
		}
		year, month, d = time.Date(year, month, d+1, 0, 0, 0, 0, time.UTC).Date()
	}
}

// within gives the walls of one day.
func (s *Schedule) within(midnight, begin, end wall, f func(wall) bool) bool {
	for hours := s.hours; hours != 0; hours &= hours - 1 {
		at := midnight + wall(bits.TrailingZeros64(uint64(hours)))*wall(hour)
		if at+wall(hour) <= begin {
			continue
		}
		for minutes := s.minutes; minutes != 0; minutes &= minutes - 1 {
			switch w := at + wall(bits.TrailingZeros64(uint64(minutes)))*60; {
			case w < begin:
			case w >= end:
				return false
			case !f(w):
				return false
			}
		}
	}
	return true
}
