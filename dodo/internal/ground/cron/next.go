package cron

import "time"

// Next is the first instant after one at which the schedule is due; false when there is none.
func (s *Schedule) Next(after time.Time) (next time.Time, ok bool) {
	s.walk(after.Unix()+1, func(e event) bool {
		if e.due {
			next, ok = time.Unix(e.at, 0).UTC(), true
		}
		return !ok
	})
	return next, ok
}

// LocalLayout is how a local time is written where it stands for no instant, or for two.
const LocalLayout = "2006-01-02T15:04:05"

// A Run is one time that the schedule is due.
type Run struct {
	At    time.Time `json:"at"`    // in UTC
	Local time.Time `json:"local"` // the same on the zone's clock
}

// Skipped is a local time of the schedule that the zone's clock jumps over.
type Skipped struct {
	Local string `json:"local"`
}

// Doubled is a local time of the schedule that the zone's clock shows again.
type Doubled struct {
	Local string    `json:"local"`
	At    time.Time `json:"at"` // when it is shown again
}

// Preview is what a schedule does for some time.
type Preview struct {
	Runs    []Run     `json:"runs"`
	Skipped []Skipped `json:"skipped"`
	Doubled []Doubled `json:"doubled"`
}

// Preview tells the first count runs at or after an instant, and, as far as the last of
// them, what is skipped and what the clock shows twice. There are fewer runs when the
// schedule has no more, and none when it is never due.
func (s *Schedule) Preview(from time.Time, count int) Preview {
	p := Preview{Runs: []Run{}, Skipped: []Skipped{}, Doubled: []Doubled{}}
	begin := from.Unix()
	if from.Nanosecond() > 0 {
		begin++
	}
	if count < 1 {
		return p
	}
	s.walk(begin, func(e event) bool {
		at := time.Unix(e.at, 0).UTC()
		switch {
		case e.skipped:
			p.Skipped = append(p.Skipped, Skipped{e.wall.time().Format(LocalLayout)})
		case e.doubled:
			p.Doubled = append(p.Doubled, Doubled{e.wall.time().Format(LocalLayout), at})
		}
		if e.due {
			p.Runs = append(p.Runs, Run{at, at.In(s.zone)})
		}
		return len(p.Runs) < count
	})
	return p
}
