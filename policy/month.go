package policy

import "github.com/berth-hpc/berth"

// Month is a month of the Gregorian calendar in UTC, counted from January of the year 0, where times count
// from the Unix epoch; Always stands for all time.
type Month int64

// Always is no month but all time.
const Always Month = -1 << 62

const (
	secondsADay = 86_400
	// epochDays is from 1 March of the year 0 to 1 January 1970, and era the days of 400 years.
	epochDays = 719_468
	era       = 146_097
)

// MonthOf returns the month in which a valid time is. Cost: O(1).
//
// The arithmetic is that of civil_from_days in H. Hinnant, "chrono-Compatible Low-Level Date Algorithms": years
// begin in March, so that a leap day is the last of its year.
func MonthOf(t berth.Time) Month {
	days := floorDiv(int64(t), secondsADay) + epochDays
	eras := floorDiv(days, era)
	inEra := days - eras*era
	year := (inEra - inEra/1460 + inEra/36_524 - inEra/146_096) / 365
	inYear := inEra - (365*year + year/4 - year/100)
	fromMarch := (5*inYear + 2) / 153
	return Month((eras*400+year)*12 + 2 + fromMarch)
}

// Start returns the first moment of a month. Cost: O(1).
func (m Month) Start() berth.Time {
	fromMarch := int64(m) - 2
	year := floorDiv(fromMarch, 12)
	month := fromMarch - year*12
	eras := floorDiv(year, 400)
	inEra := year - eras*400
	days := eras*era + inEra*365 + inEra/4 - inEra/100 + (153*month+2)/5 - epochDays
	return berth.Time(days * secondsADay)
}

// floorDiv is a/b, rounded down, for b above 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
