package policy_test

import (
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// Months begin and end where package time has them: around each change of month from the year 1000 to 3000, and far from it.
func TestMonthsAreThoseOfTheCalendar(t *testing.T) {
	check := func(at time.Time) {
		year, month, _ := at.Date()
		m := policy.MonthOf(berth.Time(at.Unix()))
		if want := policy.Month(int64(year)*12 + int64(month) - 1); m != want {
			t.Fatalf("%s is in month %d, want %d", at, m, want)
		}
		if start := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Unix(); int64(m.Start()) != start {
			t.Fatalf("month %d of %s begins at %d, want %d", m, at, m.Start(), start)
		}
	}
	for first := time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC); first.Year() < 3000; first = first.AddDate(0, 1, 0) {
		check(first)
		check(first.Add(-time.Second))
		check(first.Add(17*24*time.Hour + 3*time.Second))
	}
	for _, at := range []int64{-berth.TimeLimit + 1, -1, 0, berth.TimeLimit - 1} {
		check(time.Unix(at, 0).UTC())
	}
}
