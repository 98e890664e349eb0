package recurrence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/berth-hpc/berth"
)

// Asked is how something repeats.
type Asked struct {
	// Rule is an RRULE, which begins with RRULE:, or words such as "every weekday 09:00"; empty if only Add says when.
	Rule string
	// From is the earliest occurrence. Its clock time is that of a rule that names none, and its date that from
	// which intervals count.
	From time.Time
	Zone *time.Location // by whose clock it repeats
	// Until is the latest start, the zero value if there is none, and Times how often the rule occurs, 0 if Until or
	// the rule itself says when it ends.
	Until time.Time
	Times int
	// Most is how often it may occur, berth.MaxOccurrences if 0.
	Most int
	// Open lets a rule go on that does not say when it ends, until it has occurred Most times or for ten years.
	Open bool
	// Except are days or starts at which it does not occur, and Add further starts, by the clock of the zone:
	// 2026-12-24, 2026-12-24 09:00 or RFC 3339.
	Except, Add []string
}

// Occurrence is one start.
type Occurrence struct {
	At    time.Time
	Shift berth.Shift
}

// years is for how long a rule is followed: what does not occur in ten years is not planned by a calendar.
const years = 10

// mostADay bounds how often a rule occurs in a day.
const mostADay = 24

// Expand returns when it occurs, in order and each start once, at most a.Most times. A time that the clock of
// the zone never shows is as much later as the clock is put forward, and one that it shows twice is the first: as
// RFC 5545, section 3.3.5, has times of the calendar; its section 3.8.5.3 would leave out the former. Times counts
// what the rule names before Except is taken out, as COUNT does, and Add comes after that. The error is an *berth.Error
// of code Invalid with the field: repeat, until, times, except or add.
func Expand(a *Asked) ([]Occurrence, error) {
	var all []Occurrence
	if a.Rule != "" {
		option, err := parse(a)
		if err != nil {
			return nil, err
		}
		if all, err = follow(a, option); err != nil {
			return nil, err
		}
	}
	for _, text := range a.Except {
		at, date, err := parseStart(text, a.Zone)
		if err != nil {
			return nil, wrong("except", "%v", err)
		}
		kept := slices.DeleteFunc(slices.Clone(all), func(o Occurrence) bool {
			return o.At.Equal(at.At) || date && o.At.In(a.Zone).Format(time.DateOnly) == text
		})
		if len(kept) == len(all) {
			return nil, wrong("except", "%q is no time at which it occurs; %s", text, examples(all, a.Zone))
		}
		all = kept
	}
	for _, text := range a.Add {
		at, date, err := parseStart(text, a.Zone)
		switch {
		case err != nil:
			return nil, wrong("add", "%v", err)
		case date:
			return nil, wrong("add", "%q has no time; want one such as 2026-12-24 09:00", text)
		case at.At.Before(a.From):
			return nil, wrong("add", "%q is before %s, from when on it occurs", text, shown(a.From, a.Zone))
		}
		all = append(all, at)
	}
	slices.SortStableFunc(all, func(x, y Occurrence) int { return x.At.Compare(y.At) })
	all = slices.CompactFunc(all, func(x, y Occurrence) bool { return x.At.Equal(y.At) })
	switch {
	case len(all) == 0 && a.Rule == "":
		return nil, wrong("repeat", "missing; want a rule such as \"every weekday 09:00\" or RRULE:FREQ=WEEKLY;BYDAY=MO, or times in add")
	case len(all) == 0:
		return nil, wrong("repeat", "%q never occurs from %s on within what is asked for", a.Rule, shown(a.From, a.Zone))
	case len(all) > a.most() && a.Open && a.Times == 0 && a.Until.IsZero():
		return all[:a.most()], nil
	case len(all) > a.most():
		return nil, tooMany(a)
	}
	return all, nil
}

// most is how often it may occur.
func (a *Asked) most() int { return cmp.Or(a.Most, berth.MaxOccurrences) }

func tooMany(a *Asked) error {
	return wrong("repeat", "%q occurs more than %d times; want an earlier until, or fewer times", a.Rule, a.most())
}

func shown(t time.Time, zone *time.Location) string { return t.In(zone).Format(time.RFC3339) }

func examples(all []Occurrence, zone *time.Location) string {
	if len(all) == 0 {
		return "nothing else is left"
	}
	return "the first one is " + shown(all[0].At, zone)
}

func wrong(field, format string, args ...any) error {
	return berth.Errorf(berth.Invalid, field, format, args...)
}

// follow returns the starts that a rule names.
func follow(a *Asked, option *rrule.ROption) ([]Occurrence, error) {
	first := clockOf(a.From.In(a.Zone))
	limit := first.AddDate(years, 0, 0)
	count := option.Count
	option.Dtstart, option.Count = first, 0
	if !option.Until.IsZero() && option.Until.Before(limit) {
		limit = option.Until
	}
	option.Until = limit
	rule, err := rrule.NewRRule(*option)
	if err != nil {
		return nil, wrong("repeat", "%q: %v", a.Rule, err)
	}
	var all []Occurrence
	bounded, next := count > 0 || a.Times > 0 || !a.Until.IsZero() || limit.Before(first.AddDate(years, 0, 0)), rule.Iterator()
	if !bounded && !a.Open {
		return nil, wrong("repeat", "%q never ends; give until or times, or ahead for how far ahead it is promised as time goes", a.Rule)
	}
	named := 0
	for {
		at, more := next()
		if !more {
			break
		}
		o := instantOf(at, a.Zone)
		if o.At.Before(a.From) {
			continue
		}
		if !a.Until.IsZero() && o.At.After(a.Until) || count > 0 && named == count || a.Times > 0 && named == a.Times {
			break
		}
		if named++; named > a.most() {
			if !bounded {
				break
			}
			return nil, tooMany(a)
		}
		all = append(all, o)
	}
	if wanted := max(count, a.Times); named < wanted && a.Until.IsZero() && limit.Equal(first.AddDate(years, 0, 0)) && named > 0 {
		return nil, wrong("times", "%d, but %q occurs only %d times in the %d years that are looked at", wanted, a.Rule, named, years)
	}
	return all, nil
}

// clockOf returns what a clock shows, as a time of UTC.
func clockOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// instantOf returns when the clock of a zone shows what a time of UTC says.
func instantOf(clock time.Time, zone *time.Location) Occurrence {
	const around = 24 * time.Hour // no two changes of a clock are that close to each other
	_, before := clock.Add(-around).In(zone).Zone()
	_, after := clock.Add(around).In(zone).Zone()
	by := func(offset int) (t time.Time, is bool) {
		t = clock.Add(-time.Duration(offset) * time.Second).In(zone)
		return t, clockOf(t).Equal(clock)
	}
	early, isEarly := by(before)
	late, isLate := by(after)
	switch {
	case isEarly && isLate && !early.Equal(late):
		if late.Before(early) {
			early = late
		}
		return Occurrence{early, berth.ShiftFirst}
	case isEarly:
		return Occurrence{early, berth.NoShift}
	case isLate:
		return Occurrence{late, berth.NoShift}
	}
	return Occurrence{early, berth.ShiftLater}
}

// parseStart reads a start by the clock of a zone, or a date.
func parseStart(text string, zone *time.Location) (o Occurrence, date bool, err error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return Occurrence{At: t}, false, nil
	}
	plain := strings.Replace(text, "T", " ", 1)
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime} {
		if t, err := time.Parse(layout, plain); err == nil && len(plain) == len(layout) {
			return instantOf(t, zone), layout == time.DateOnly, nil
		}
	}
	return o, false, fmt.Errorf("%.80q is no time; want one such as 2026-12-24 09:00 or 2026-12-24T09:00:00+01:00", text)
}
