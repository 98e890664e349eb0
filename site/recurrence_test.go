package site_test

import (
	"slices"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Bookings come again at the same time of day where they are made, also when the clock is
// changed, and on the days that their period names.
func TestBookingsComeAgain(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	const form = "Mon 2006-01-02 15:04"
	for _, c := range []struct {
		each  site.Period
		first string // in Berlin
		long  berth.Duration
		want  []string
	}{
		{"", "Fri 2026-10-23 22:00", 7200, []string{"Fri 2026-10-23 22:00"}},
		{site.Daily, "Sat 2026-10-24 22:00", 7200, []string{"Sat 2026-10-24 22:00", "Sun 2026-10-25 22:00", "Mon 2026-10-26 22:00"}},
		{site.Weekly, "Thu 2026-10-22 09:00", 3600, []string{"Thu 2026-10-22 09:00", "Thu 2026-10-29 09:00", "Thu 2026-11-05 09:00"}},
		{site.Weekdays, "Thu 2026-10-22 09:00", 3600, []string{"Thu 2026-10-22 09:00", "Fri 2026-10-23 09:00", "Mon 2026-10-26 09:00"}},
		{site.Weekends, "Sat 2026-10-24 09:00", 3600, []string{"Sat 2026-10-24 09:00", "Sun 2026-10-25 09:00", "Sat 2026-10-31 09:00"}},
		{site.Hourly, "Sat 2026-10-24 22:30", 600, []string{"Sat 2026-10-24 22:30", "Sat 2026-10-24 23:30", "Sun 2026-10-25 00:30"}},
	} {
		first, err := time.ParseInLocation(form, c.first, berlin)
		if err != nil {
			t.Fatal(err)
		}
		start := berth.Time(first.Unix())
		b := site.Booking{Start: start, End: start.Add(c.long), Repeat: site.Repeat{Each: c.each, Zone: "Europe/Berlin"}}
		var got []string
		for at := range b.Occurrences(berth.Forever) {
			if got = append(got, time.Unix(int64(at.Start), 0).In(berlin).Format(form)); at.End.Sub(at.Start) != c.long {
				t.Errorf("%s: %s lasts %d s, want %d", c.each, got[len(got)-1], at.End.Sub(at.Start), c.long)
			}
			if len(got) == 3 {
				break
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.each, got, c.want)
		}
		if n := len(slices.Collect(b.Occurrences(start))); n != 0 {
			t.Errorf("%s: %d before the first", c.each, n)
		}
	}
	// However often the clock is changed, every one begins after the one before it.
	b := site.Booking{Start: 1792800000, End: 1792800000 + 300, Repeat: site.Repeat{Each: site.Hourly, Zone: "Europe/Berlin"}}
	last, n := berth.Time(0), 0
	for at := range b.Occurrences(b.Start + 366*86400) {
		if at.Start <= last || at.End <= at.Start {
			t.Fatalf("%v after %d", at, last)
		}
		last = at.Start
		n++
	}
	if n < 8700 {
		t.Errorf("%d in a year", n)
	}
}
