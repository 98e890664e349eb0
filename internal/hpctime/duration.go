package hpctime

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

const (
	second = berth.Duration(1)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
	week   = 7 * day
)

// Parse reads a length of time in one of these forms, with whole numbers:
//
//	02:30:00, 1-02:30:00    [days-]hours:minutes:seconds
//	1-12, 1-12:30           days-hours, days-hours:minutes, as Slurm has them
//	2h30m, 90s, 1d12h       days, hours, minutes, seconds, each at most once, in this order
//	PT2H30M, P1DT12H, P2W   ISO 8601, without years and months, which have no fixed length
//
// Minutes and seconds behind a colon have two digits and are below 60; hours
// behind days are below 24; hours that come first, and numbers with units, are
// free. What is ambiguous is refused with what it could have meant: a bare
// number is minutes in Slurm, seconds in PBS and hours in OAR, and 12:30 is
// minutes and seconds or hours and minutes. Errors are of code Invalid without
// a field. The result is 0 or more and below berth.TimeLimit.
func Parse(text string) (berth.Duration, error) {
	var d berth.Duration
	var ok bool
	switch {
	case text == "":
		return 0, wrong("no duration; " + forms)
	case isNumber(text):
		return 0, bare(text)
	case text[0] == 'P':
		d, ok = parseISO(text[1:])
	case strings.ContainsAny(text, ":-"):
		if first, last, isPair := strings.Cut(text, ":"); isPair && isNumber(first) && isNumber(last) {
			return 0, wrong(fmt.Sprintf("%q could be %sm%ss (as in Slurm) or %sh%sm (as in OAR); write the one you mean", text, first, last, first, last))
		}
		d, ok = parseClock(text)
	default:
		d, ok = parseUnits(text, "dhms")
	}
	if !ok {
		return 0, wrong(fmt.Sprintf("%q is no duration; %s", text, forms))
	}
	if d >= berth.TimeLimit {
		return 0, wrong(fmt.Sprintf("%q is beyond 2^42 s", text))
	}
	return d, nil
}

// Format returns a duration from 0 to below berth.TimeLimit as
// [days-]HH:MM:SS, which Parse reads back equal.
func Format(d berth.Duration) string {
	clock := fmt.Sprintf("%02d:%02d:%02d", d%day/hour, d%hour/minute, d%minute)
	if d < day {
		return clock
	}
	return strconv.FormatInt(int64(d/day), 10) + "-" + clock
}

const forms = "a duration reads like 2h30m, 02:30:00, 1-02:30:00 or PT2H30M"

func wrong(message string) error { return &berth.Error{Code: berth.Invalid, Msg: message} }

// bare names what a number without a unit could have meant.
func bare(number string) error {
	return wrong(fmt.Sprintf("%s of what? It could be %ss (seconds, as in PBS), %sm (minutes, as in Slurm) or %sh (hours, as in OAR); write the one you mean",
		number, number, number, number))
}

func isNumber(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// number reads digits alone. Larger numbers than any duration needs saturate.
func number(text string) (n berth.Duration, ok bool) {
	if !isNumber(text) {
		return 0, false
	}
	n64, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n64 > berth.TimeLimit {
		n64 = berth.TimeLimit
	}
	return berth.Duration(n64), true
}

// sum adds count units to d and stays at berth.TimeLimit once it is reached.
// Neither count nor d is above that, so nothing overflows.
func sum(d, count, unit berth.Duration) berth.Duration {
	return min(d+count*unit, berth.TimeLimit)
}

// parseClock reads [days-]hours:minutes:seconds, and with days also fewer
// fields.
func parseClock(text string) (berth.Duration, bool) {
	var d berth.Duration
	days, clock, hasDays := strings.Cut(text, "-")
	if !hasDays {
		clock = text
	} else {
		n, ok := number(days)
		if !ok {
			return 0, false
		}
		d = sum(0, n, day)
	}
	fields := strings.Split(clock, ":")
	if len(fields) > 3 || (!hasDays && len(fields) != 3) {
		return 0, false
	}
	for i, unit := range []berth.Duration{hour, minute, second}[:len(fields)] {
		n, ok := number(fields[i])
		switch {
		case !ok,
			i == 0 && hasDays && (n >= 24 || len(fields[i]) > 2),
			i > 0 && (n >= 60 || len(fields[i]) != 2):
			return 0, false
		}
		d = sum(d, n, unit)
	}
	return d, true
}

// parseUnits reads numbers each followed by one of the units, which come in the
// order given and at most once.
func parseUnits(text, units string) (berth.Duration, bool) {
	var d berth.Duration
	for text != "" {
		at := strings.IndexFunc(text, func(c rune) bool { return c < '0' || c > '9' })
		if at < 1 {
			return 0, false
		}
		which := strings.IndexByte(units, text[at])
		if which < 0 {
			return 0, false
		}
		n, _ := number(text[:at]) // digits alone
		d = sum(d, n, lengthOf(units[which]))
		text, units = text[at+1:], units[which+1:]
	}
	return d, true
}

func lengthOf(unit byte) berth.Duration {
	switch unit {
	case 'd', 'D':
		return day
	case 'h', 'H':
		return hour
	case 'm', 'M':
		return minute
	}
	return second
}

// parseISO reads what stands behind the P.
func parseISO(text string) (berth.Duration, bool) {
	if weeks, isWeeks := strings.CutSuffix(text, "W"); isWeeks {
		n, ok := number(weeks)
		return sum(0, n, week), ok
	}
	date, clock, hasClock := strings.Cut(text, "T")
	if text == "" || (hasClock && clock == "") {
		return 0, false
	}
	days, ok := parseUnits(date, "D")
	rest, okClock := parseUnits(clock, "HMS")
	return sum(days, rest, second), ok && okClock
}
