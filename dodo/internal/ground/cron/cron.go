package cron

import (
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// form is what an expression looks like.
const form = "give five fields with blanks between: minute, hour, day of month, month, day of week; each is *, a number, a range a-b, " +
	"any of these with a step /n, or a list of them. Every day at 8:30 is 30 8 * * *"

// A Schedule is an expression on the clock of a zone. It does not change.
type Schedule struct {
	zone                   *time.Location
	minutes, hours         set
	days, months, weekdays set
	either                 bool // a day of the month or of the week is enough
	once                   bool // one hour is named: a local time is due once, however often the clock shows it
}

// Parse reads a five-field expression and the name of an IANA zone. What it cannot read is
// INVALID_INPUT.
func Parse(expr, zone string) (*Schedule, error) {
	loc, err := Zone(zone)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(strings.TrimSpace(expr), "@") {
		return nil, fault.New(contract.InvalidInput, "the cron expression is a word, not five fields").WithHint("%s", form)
	}
	texts := strings.FieldsFunc(expr, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(texts) != len(fields) {
		return nil, fault.New(contract.InvalidInput, "the cron expression has %d fields, not five", len(texts)).WithHint("%s", form)
	}
	s := &Schedule{zone: loc}
	for i, into := range []*set{&s.minutes, &s.hours, &s.days, &s.months, &s.weekdays} {
		if *into, err = fields[i].read(texts[i]); err != nil {
			return nil, err
		}
	}
	s.either = texts[2][0] != '*' && texts[4][0] != '*'
	s.once = s.hours&(s.hours-1) == 0
	return s, nil
}

// Zone finds an IANA zone. The machine's own zone, files beside the zones and names that are
// paths are INVALID_INPUT: what a schedule says must not depend on where it is read.
func Zone(name string) (*time.Location, error) {
	wrong := func(cause error) (*time.Location, error) {
		return nil, fault.Wrap(contract.InvalidInput, cause, "the time zone is not known here").WithHint("give an IANA name, such as UTC or Europe/Paris")
	}
	switch first, _, _ := strings.Cut(name, "/"); first {
	case "", "Local", "localtime", "posix", "right", "posixrules", "Factory":
		return wrong(nil)
	}
	if strings.Contains(name, "//") {
		return wrong(nil) // another spelling of a path
	}
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_+-/", r)) {
			return wrong(nil)
		}
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return wrong(err)
	}
	return loc, nil
}

// day reports whether a date is one of the schedule's.
func (s *Schedule) day(d int, w time.Weekday) bool {
	ofMonth, ofWeek := s.days.has(d), s.weekdays.has(int(w))
	if s.either {
		return ofMonth || ofWeek
	}
	return ofMonth && ofWeek
}
