package hpctime

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
)

// ParseInstant reads a point in time in one
// of these forms:
//
//	now, now+2h30m, now+1hour, now-10m   from now on, by a duration with units
//	18:00, 18:00:30                      the next time the clock shows it
//	9am, 9:30pm, 12am                    likewise; 12am is midnight and 12pm noon
//	noon, midnight, teatime              12:00, 00:00, 16:00 likewise
//	today 18:00, tomorrow noon           on that day; the day alone is its midnight
//	friday 18:00, fri 9am, friday        the next time that a Friday's clock shows it, today too
//	next fri 18:00                       that of the first Friday after today
//	2026-11-21, 2026-11-21 18:00         with T instead of the space too
//	2026-11-21T18:00:00+01:00            RFC 3339, the only form with its own zone
//
// What a clock shows twice or never, because it is put back or forward, is
// refused with the times meant. So is a bare number, and a date with strokes,
// which begins with the month or the day depending on who wrote it. Errors are of
// code Invalid without a field.
func ParseInstant(text string, now time.Time) (time.Time, error) {
	word, rest, more := strings.Cut(text, " ")
	switch {
	case text == "":
		return now, wrong("no time; " + instantForms)
	case isNumber(text):
		return now, bareInstant(text)
	case more && rest == "":
		return now, noInstant(text)
	case strings.Contains(text, "/"):
		return now, wrong(fmt.Sprintf("%q: is the month or the day first? Write %s", text, now.Format(time.DateOnly)))
	case strings.HasPrefix(text, "now"):
		return fromNow(text, now)
	case word == "today":
		return onDay(now, 0, rest, text)
	case word == "tomorrow":
		return onDay(now, 1, rest, text)
	}
	if c, ok := parseAnyClock(text); ok {
		return nextClock(c, now)
	}
	if on, next, clock, is := parseWeekday(text); is {
		return onWeekday(on, next, clock, text, now)
	}
	if at := strings.IndexAny(text, "T "); at == len(time.DateOnly) && strings.ContainsAny(text[at:], "Z+-") {
		return parseZoned(text)
	}
	return parseLocal(text, now)
}

const instantForms = "a time reads like now+2h30m, 18:00, 9am, tomorrow 18:00, friday 18:00, 2026-11-21 18:00 or 2026-11-21T18:00:00+01:00"

func noInstant(text string) error {
	return wrong(fmt.Sprintf("%q is no time; %s", text, instantForms))
}

// bareInstant names what a number alone could have meant.
func bareInstant(number string) error {
	return wrong(fmt.Sprintf("%s of what? It could be now+%ss (seconds from now, as in Slurm), @%s (seconds since 1970) or %s:00 (the hour of the day); write the one you mean, the second as RFC 3339",
		number, number, number, number))
}

// fromNow reads now, and what is to be added.
func fromNow(text string, now time.Time) (time.Time, error) {
	rest := text[len("now"):]
	if rest == "" {
		return now, nil
	}
	sign := rest[0]
	if sign != '+' && sign != '-' {
		return now, noInstant(text)
	}
	if isNumber(rest[1:]) {
		return now, bare(rest[1:])
	}
	d, ok := parseWords(rest[1:])
	if !ok {
		var err error
		if d, err = Parse(rest[1:]); err != nil {
			return now, err
		}
	}
	if sign == '-' {
		d = -d
	}
	return within(time.Unix(now.Unix()+int64(d), int64(now.Nanosecond())).In(now.Location()), text)
}

// unitWords are the units written out, as Slurm has them, the longest first.
var unitWords = []struct {
	word string
	unit berth.Duration
}{
	{"weeks", week},
	{"week", week},
	{"days", day},
	{"day", day},
	{"hours", hour},
	{"hour", hour},
	{"hr", hour},
	{"minutes", minute},
	{"minute", minute},
	{"min", minute},
	{"seconds", second},
	{"second", second},
	{"sec", second},
}

// parseWords reads a number with a unit written out, such as 2hours.
func parseWords(text string) (berth.Duration, bool) {
	for _, u := range unitWords {
		if count, is := strings.CutSuffix(text, u.word); is {
			n, ok := number(count)
			d := sum(0, n, u.unit)
			return d, ok && d < berth.TimeLimit
		}
	}
	return 0, false
}

// clockTime is what a clock shows.
type clockTime struct{ hour, minute, second int }

var clockWords = map[string]clockTime{"midnight": {}, "noon": {hour: 12}, "teatime": {hour: 16}}

// parseClockTime reads HH:MM[:SS], or a word for it.
func parseClockTime(text string) (clockTime, bool) {
	if c, is := clockWords[text]; is {
		return c, true
	}
	fields := strings.Split(text, ":")
	if len(fields) < 2 || len(fields) > 3 {
		return clockTime{}, false
	}
	var parts [3]int
	for i, field := range fields {
		n, err := strconv.ParseUint(field, 10, 8)
		if err != nil || len(field) != 2 && (i > 0 || len(field) != 1) || n > 59 || i == 0 && n > 23 {
			return clockTime{}, false
		}
		parts[i] = int(n)
	}
	return clockTime{parts[0], parts[1], parts[2]}, true
}

// parseAnyClock reads the forms of parseClockTime and parseHalfDay.
func parseAnyClock(text string) (clockTime, bool) {
	if c, ok := parseHalfDay(text); ok {
		return c, true
	}
	return parseClockTime(text)
}

// parseHalfDay reads H[:MM]am and pm.
func parseHalfDay(text string) (clockTime, bool) {
	lower := strings.ToLower(text)
	digits, morning := strings.CutSuffix(lower, "am")
	if !morning {
		var evening bool
		if digits, evening = strings.CutSuffix(lower, "pm"); !evening {
			return clockTime{}, false
		}
	}
	hours, minutes, both := strings.Cut(strings.TrimSuffix(digits, " "), ":")
	h, err := strconv.ParseUint(hours, 10, 8)
	if err != nil || h < 1 || h > 12 || len(hours) > 2 {
		return clockTime{}, false
	}
	c := clockTime{hour: int(h) % 12}
	if !morning {
		c.hour += 12
	}
	if both {
		m, err := strconv.ParseUint(minutes, 10, 8)
		if err != nil || m > 59 || len(minutes) != 2 {
			return clockTime{}, false
		}
		c.minute = int(m)
	}
	return c, true
}

// parseWeekday reads [next] and the name of a day, or its first letters, with the clock time behind it.
func parseWeekday(text string) (on time.Weekday, next bool, clock string, is bool) {
	lower := strings.ToLower(text)
	lower, next = strings.CutPrefix(lower, "next ")
	word, clock, more := strings.Cut(lower, " ")
	if more && clock == "" {
		return 0, false, "", false
	}
	for day := time.Sunday; day <= time.Saturday; day++ {
		name := strings.ToLower(day.String())
		if len(word) >= 3 && strings.HasPrefix(name, word) {
			return day, next, clock, true
		}
	}
	return 0, false, "", false
}

// onWeekday returns when the clock of such a day shows that next, after now.
func onWeekday(on time.Weekday, next bool, clock, text string, now time.Time) (time.Time, error) {
	days := (int(on-now.Weekday()) + 7) % 7
	if days == 0 && (next || clock == "") {
		days = 7
	}
	t, err := onDay(now, days, clock, text)
	if err == nil && !t.After(now) {
		return onDay(now, days+7, clock, text)
	}
	return t, err
}

// ParseRange reads two points in time with a dash between them, such as next tue 14:00–18:00 or
// 2026-11-21 18:00 - 2026-11-22 06:00. The second is on the day of the first, or the next time its clock
// shows that after it, if it names no day. Errors are as those of ParseInstant.
func ParseRange(text string, now time.Time) (from, to time.Time, err error) {
	for _, dash := range []string{"–", " - ", "-"} {
		for at := range text {
			first, last := strings.TrimSpace(text[:at]), ""
			if rest, is := strings.CutPrefix(text[at:], dash); is {
				last = strings.TrimSpace(rest)
			}
			if first == "" || last == "" {
				continue
			}
			from, err = ParseInstant(first, now)
			if err == nil {
				to, err = ParseInstant(last, from)
			}
			switch {
			case err != nil && isRange(first, last, now): // what a clock shows twice or never
				return now, now, err
			case err != nil: // a dash within the first
				continue
			}
			if !to.After(from) {
				return from, to, wrong(fmt.Sprintf("%q ends at %s, before it begins", text, Echo(to)))
			}
			return from, to, nil
		}
	}
	return now, now, wrong(fmt.Sprintf("%q is no range of time; it reads like 14:00–18:00, next tue 14:00–18:00 or 2026-11-21 18:00 - 2026-11-22 06:00", text))
}

// isRange reports whether two texts are points in time where no clock is put forward or back.
func isRange(first, last string, now time.Time) bool {
	from, err := ParseInstant(first, now.In(time.UTC))
	if err == nil {
		_, err = ParseInstant(last, from)
	}
	return err == nil
}

// onDay reads a clock time n days after today.
func onDay(now time.Time, days int, clock, text string) (time.Time, error) {
	c := clockTime{}
	if clock != "" {
		var ok bool
		if c, ok = parseAnyClock(clock); !ok {
			return now, noInstant(text)
		}
	}
	return local(now, days, c, now.Location())
}

// nextClock returns when the clock shows that next, after now.
func nextClock(c clockTime, now time.Time) (time.Time, error) {
	t, err := local(now, 0, c, now.Location())
	if err == nil && !t.After(now) {
		return local(now, 1, c, now.Location())
	}
	return t, err
}

// local returns when a clock in a zone shows that, n days after a day.
func local(on time.Time, days int, c clockTime, zone *time.Location) (time.Time, error) {
	date := time.Date(on.Year(), on.Month(), on.Day()+days, 0, 0, 0, 0, time.UTC)
	return resolve(date.Add(time.Duration(c.hour)*time.Hour+time.Duration(c.minute)*time.Minute+time.Duration(c.second)*time.Second), zone)
}

// resolve returns the instant at which the clocks of a zone show what shown shows
// in UTC.
func resolve(shown time.Time, zone *time.Location) (time.Time, error) {
	var found []time.Time
	for _, around := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := shown.Add(around).In(zone).Zone()
		t := shown.Add(-time.Duration(offset) * time.Second).In(zone)
		same := t.Format(time.DateTime) == shown.Format(time.DateTime)
		if same && (len(found) == 0 || !found[0].Equal(t)) {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 1:
		return within(found[0], shown.Format(time.DateTime))
	case 2:
		return found[0], wrong(fmt.Sprintf("%s comes twice in %s, because the clocks are put back; write %s or %s",
			shown.Format(time.DateTime), zone, found[0].Format(time.RFC3339), found[1].Format(time.RFC3339)))
	}
	after := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), shown.Second(), 0, zone)
	return after, wrong(fmt.Sprintf("%s never comes in %s, because the clocks are put forward; nearest is %s",
		shown.Format(time.DateTime), zone, after.Format(time.RFC3339)))
}

// parseZoned reads RFC 3339.
func parseZoned(text string) (time.Time, error) {
	var t time.Time
	if err := t.UnmarshalText([]byte(strings.Replace(text, " ", "T", 1))); err != nil {
		return t, noInstant(text)
	}
	return within(t, text)
}

// parseLocal reads a date, with a clock time or not, in the zone of now.
func parseLocal(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{"2006-01-02", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
		if len(text) != len(layout) { // else it would take a fraction of a second
			continue
		}
		if shown, err := time.Parse(layout, text); err == nil {
			return resolve(shown, now.Location())
		}
	}
	return now, noInstant(text)
}

// within refuses years that RFC 3339 cannot write in every zone: clocks that went
// by the sun were off by seconds too.
func within(t time.Time, text string) (time.Time, error) {
	if year := t.UTC().Year(); year < 1970 || year > 9998 {
		return t, wrong(fmt.Sprintf("%q is in the year %d; want one from 1970 to 9998", text, year))
	}
	return t, nil
}

// Echo writes a point in time unambiguously: with its
// zone, and in UTC.
func Echo(t time.Time) string {
	return t.Format("Mon 2006-01-02 15:04:05 -07:00") + " (" + t.UTC().Format(time.RFC3339) + ")"
}
