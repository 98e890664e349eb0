package hpctime

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
)

// ParseSlurm reads a length of time in what Slurm takes for one:
//
//	30                   minutes
//	30:15                minutes:seconds
//	02:30:00             hours:minutes:seconds
//	1-12, 1-12:30[:00]   days-hours and so on
//
// Numbers need not have two digits, and the first of them is free. UNLIMITED is
// refused: a promise ends. Errors are of code Invalid without a field.
func ParseSlurm(text string) (berth.Duration, error) {
	days, clock, hasDays := strings.Cut(text, "-")
	units := []berth.Duration{minute, second}
	d := berth.Duration(0)
	if !hasDays {
		clock = text
	} else {
		n, ok := number(days)
		if !ok {
			return 0, noSlurm(text)
		}
		d, units = sum(0, n, day), []berth.Duration{hour, minute, second}
	}
	fields := strings.Split(clock, ":")
	if !hasDays && len(fields) == 3 {
		units = []berth.Duration{hour, minute, second}
	}
	if len(fields) > len(units) {
		return 0, noSlurm(text)
	}
	for i, field := range fields {
		n, ok := number(field)
		if !ok || (i > 0 || hasDays) && n > 59 {
			return 0, noSlurm(text)
		}
		d = sum(d, n, units[i])
	}
	if d >= berth.TimeLimit {
		return 0, wrong(fmt.Sprintf("%q is beyond 2^42 s", text))
	}
	return d, nil
}

func noSlurm(text string) error {
	return wrong(fmt.Sprintf("%q is no duration of Slurm; want minutes such as 120, or [days-]hours:minutes:seconds", text))
}

// ParseSlurmInstant reads a point in time in what Slurm takes for one: what
// ParseInstant reads, and beyond that
//
//	now+60               seconds from now
//	11/21, 11/21/26      month/day[/year]; without a year the next such day
//	11/21/26-18:00       with a clock time
//
// Dates without strokes and dashes are refused.
func ParseSlurmInstant(text string, now time.Time) (time.Time, error) {
	if seconds, is := strings.CutPrefix(text, "now+"); is && isNumber(seconds) {
		return ParseInstant(text+"s", now)
	}
	date, clock, _ := strings.Cut(text, "-")
	if !strings.Contains(date, "/") {
		return ParseInstant(text, now)
	}
	c := clockTime{}
	if clock != "" || strings.HasSuffix(text, "-") {
		var ok bool
		if c, ok = parseAnyClock(clock); !ok {
			return now, noInstant(text)
		}
	}
	for _, layout := range []string{"01/02/06", "1/2/06", "01/02/2006", "1/2/2006"} {
		if day, err := time.Parse(layout, date); err == nil {
			return local(day.In(time.UTC), 0, c, now.Location())
		}
	}
	for _, layout := range []string{"01/02", "1/2"} {
		day, err := time.Parse(layout, date)
		if err != nil {
			continue
		}
		for year := now.Year(); year < now.Year()+9; year++ { // 29 February comes at least every eighth
			on := time.Date(year, day.Month(), day.Day(), 0, 0, 0, 0, time.UTC)
			if on.Day() != day.Day() {
				continue
			}
			if t, err := local(on, 0, c, now.Location()); err != nil || t.After(now) {
				return t, err
			}
		}
	}
	return now, noInstant(text)
}
