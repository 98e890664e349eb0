package recurrence

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

const rulePrefix = "RRULE:"

// maxRule bounds the letters of a rule.
const maxRule = 1000

// parse reads a rule.
func parse(a *Asked) (*rrule.ROption, error) {
	if len(a.Rule) > maxRule {
		return nil, wrong("repeat", "of %d letters; want at most %d", len(a.Rule), maxRule)
	}
	if len(a.Rule) >= len(rulePrefix) && strings.EqualFold(a.Rule[:len(rulePrefix)], rulePrefix) {
		return parseRRule(a)
	}
	option, ok := parseWords(a.Rule)
	if !ok {
		return nil, wrong("repeat", "%q is no rule; it reads like \"every weekday 09:00\", \"every 2 weeks on monday 09:00\", \"first monday of the month 18:00\", \"every 6 hours\" or RRULE:FREQ=WEEKLY;BYDAY=MO", a.Rule)
	}
	return option, nil
}

// parseRRule reads an RRULE with the parts that calendars write: what occurs each minute or second is
// refused, and so are the parts by which weeks and days of the year are numbered.
func parseRRule(a *Asked) (*rrule.ROption, error) {
	text := strings.ToUpper(a.Rule[len(rulePrefix):])
	var option rrule.ROption
	seen, hourly := map[string]bool{}, false
	for part := range strings.SplitSeq(text, ";") {
		key, value, is := strings.Cut(part, "=")
		if !is || value == "" || seen[key] {
			return nil, wrong("repeat", "%.80q in %q; want KEY=VALUE, each key once", part, a.Rule)
		}
		seen[key] = true
		switch key {
		case "FREQ":
			if !slices.Contains([]string{"HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"}, value) {
				return nil, wrong("repeat", "FREQ=%.40s in %q; want HOURLY, DAILY, WEEKLY, MONTHLY or YEARLY", value, a.Rule)
			}
			hourly = value == "HOURLY"
		case "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYHOUR", "BYMINUTE", "BYSETPOS", "WKST":
		default:
			return nil, wrong("repeat", "%.40s in %q is not taken; want FREQ, INTERVAL, COUNT, UNTIL, BYDAY, BYMONTHDAY, BYMONTH, BYHOUR, BYMINUTE, BYSETPOS or WKST", key, a.Rule)
		}
		if err := checkPart(a, key, value, &option); err != nil {
			return nil, err
		}
	}
	if !seen["FREQ"] {
		return nil, wrong("repeat", "%q has no FREQ; want one such as RRULE:FREQ=WEEKLY;BYDAY=MO", a.Rule)
	}
	if seen["COUNT"] && seen["UNTIL"] {
		return nil, wrong("repeat", "%q has COUNT and UNTIL; want one of the two", a.Rule)
	}
	for _, key := range []string{"BYMONTHDAY", "BYMONTH", "BYHOUR", "BYSETPOS"} {
		if hourly && seen[key] {
			return nil, wrong("repeat", "%s with FREQ=HOURLY in %q; want FREQ=DAILY with BYHOUR", key, a.Rule)
		}
	}
	until := option.Until
	read, err := rrule.StrToROption(withoutUntil(text))
	if err != nil {
		return nil, wrong("repeat", "%q: %v", a.Rule, err)
	}
	read.Until = until
	return read, checkRule(a, read)
}

// withoutUntil returns a rule without its end, which is read by the clock of the zone.
func withoutUntil(text string) string {
	parts := strings.Split(text, ";")
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return strings.HasPrefix(p, "UNTIL=") }), ";")
}

// checkPart checks the values of a part by itself.
func checkPart(a *Asked, key, value string, option *rrule.ROption) error {
	switch key {
	case "INTERVAL", "COUNT":
		if n, err := strconv.Atoi(value); err != nil || n < 1 || n > 100_000 {
			return wrong("repeat", "%s=%.40s in %q; want a whole number from 1 to 100000", key, value, a.Rule)
		}
	case "UNTIL":
		at, err := time.Parse("20060102T150405Z", value)
		if err == nil {
			option.Until = clockOf(at.In(a.Zone))
			return nil
		}
		if at, err = time.Parse("20060102T150405", value); err == nil {
			option.Until = at
			return nil
		}
		if at, err = time.Parse("20060102", value); err != nil {
			return wrong("repeat", "UNTIL=%.40s in %q; want a date or a time such as 20261224T090000Z", value, a.Rule)
		}
		option.Until = at.Add(24*time.Hour - time.Second) // the whole day
	}
	return nil
}

// daysOfMonths is how many days the months have at most.
var daysOfMonths = [12]int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// checkRule refuses what never occurs, or too often, before it is followed.
func checkRule(a *Asked, option *rrule.ROption) error {
	for _, day := range option.Byweekday {
		most := 0
		switch {
		case option.Freq == rrule.MONTHLY, option.Freq == rrule.YEARLY && len(option.Bymonth) > 0:
			most = 5
		case option.Freq == rrule.YEARLY:
			most = 53
		}
		if n := day.N(); n < -most || n > most {
			return wrong("repeat", "%s in %q; want a day without a number, or from 1 to 5 in a month", day.String(), a.Rule)
		}
	}
	if n := max(1, len(option.Byhour)) * max(1, len(option.Byminute)); n > mostADay || option.Freq == rrule.HOURLY && len(option.Byminute) > 1 {
		return wrong("repeat", "%q occurs %d times on a day; want at most %d", a.Rule, n, mostADay)
	}
	if len(option.Bysetpos) > 0 && len(option.Byweekday)+len(option.Bymonthday)+len(option.Byhour)+len(option.Byminute) == 0 {
		return wrong("repeat", "%q has BYSETPOS and nothing to choose from; want BYDAY or BYMONTHDAY too", a.Rule)
	}
	if len(option.Bymonthday) > 0 && len(option.Bymonth) > 0 {
		for _, month := range option.Bymonth {
			for _, day := range option.Bymonthday {
				if month >= 1 && month <= 12 && max(day, -day) <= daysOfMonths[month-1] {
					return nil
				}
			}
		}
		return wrong("repeat", "%q never occurs: none of its months has such a day", a.Rule)
	}
	return nil
}
