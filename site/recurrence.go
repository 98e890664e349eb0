package site

import (
	"iter"
	"time"

	"github.com/berth-hpc/berth"
)

// Repeat is how a booking comes again once it is over. The zero value is that it does not.
type Repeat struct {
	Each Period `json:"each,omitempty"`
	Zone string `json:"zone,omitempty"` // in which days are counted, as in the tz database; empty is UTC
}

// Period is by how much later a booking comes again, on the clock of its zone.
type Period string

// The periods.
const (
	Hourly   Period = "hourly"
	Daily    Period = "daily"
	Weekdays Period = "weekdays" // Monday to Friday
	Weekends Period = "weekends" // Saturday and Sunday
	Weekly   Period = "weekly"
)

// later returns by how many days and hours later the next one is, by the day on which one
// ends.
func (p Period) later(end time.Weekday) (days, hours int) {
	switch {
	case p == Hourly:
		return 0, 1
	case p == Weekdays && end == time.Friday:
		return 3, 0
	case p == Weekdays && end == time.Saturday:
		return 2, 0
	case p == Weekends && end == time.Saturday:
		return 1, 0
	case p == Weekends && end == time.Sunday:
		return 6, 0
	case p == Weekends:
		return int(time.Saturday - end), 0
	case p == Weekly:
		return 7, 0
	}
	return 1, 0
}

// Occurrences yields when a booking holds its shares, the first time included, as long as
// it begins before a time: start and end come again at the same time of day in its zone, as
// slurmctld has it (_advance_resv_time), so that one in which a clock is changed may be
// longer or shorter. An unknown zone counts as UTC.
func (b *Booking) Occurrences(until berth.Time) iter.Seq[berth.Interval] {
	return func(yield func(berth.Interval) bool) {
		zone, err := time.LoadLocation(b.Repeat.Zone)
		if err != nil {
			zone = time.UTC
		}
		for at := (berth.Interval{Start: b.Start, End: b.End}); at.Start < until && yield(at) && b.Repeat.Each != ""; {
			days, hours := b.Repeat.Each.later(time.Unix(int64(at.End), 0).In(zone).Weekday())
			advance := func(t berth.Time) berth.Time {
				then := time.Unix(int64(t), 0).In(zone)
				year, month, day := then.Date()
				return berth.Time(time.Date(year, month, day+days, then.Hour()+hours, then.Minute(), then.Second(), 0, zone).Unix())
			}
			next := berth.Interval{Start: advance(at.Start), End: advance(at.End)}
			if next.Start <= at.Start || next.End <= next.Start { // an hour that the clock repeats or leaves out
				next = berth.Interval{Start: at.Start + 3600, End: at.End + 3600}
			}
			at = next
		}
	}
}
