package recurrence

import (
	"strconv"
	"strings"

	"github.com/teambition/rrule-go"
)

// The forms of a rule in words, in lower or upper case:
//
//	[every] UNIT [TIMES]             hour, day, weekday, weekend, week, month, year; hourly, daily, weekly, ...
//	[every] DAYS [TIMES]             monday, mon and thu, tue,fri, mondays
//	[every] N UNIT [on DAYS] [TIMES] 2 weeks on monday; "other" is 2
//	[on] [the] NTH DAY of the month [TIMES]   first monday, last weekday, 15th
//
// TIMES are clock times such as 09:00, 9am, noon or midnight, after at if one likes, with and or a comma between
// several. A rule without them has the time of the earliest occurrence.

var units = map[string]rrule.Frequency{
	"hour": rrule.HOURLY, "day": rrule.DAILY, "week": rrule.WEEKLY, "month": rrule.MONTHLY, "year": rrule.YEARLY,
}

var adverbs = map[string]string{"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year"}

var weekdays = []rrule.Weekday{rrule.MO, rrule.TU, rrule.WE, rrule.TH, rrule.FR, rrule.SA, rrule.SU}

var weekdayNames = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

var ordinals = map[string]int{"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}

// words is a rule in words that is being read.
type words struct {
	rest   []string
	option rrule.ROption
}

// parseWords reads a rule in words; false if it is none.
func parseWords(text string) (*rrule.ROption, bool) {
	text = strings.ReplaceAll(strings.ToLower(text), ",", " and ")
	w := &words{rest: strings.Fields(text)}
	w.take("every", "each")
	if !w.when() || !w.times() || len(w.rest) > 0 {
		return nil, false
	}
	return &w.option, true
}

// take takes the next word if it is one of some.
func (w *words) take(words ...string) bool {
	for _, word := range words {
		if len(w.rest) > 0 && w.rest[0] == word {
			w.rest = w.rest[1:]
			return true
		}
	}
	return false
}

func (w *words) peek() string {
	if len(w.rest) == 0 {
		return ""
	}
	return w.rest[0]
}

// when reads on which days.
func (w *words) when() bool {
	if w.days() {
		w.option.Freq = rrule.WEEKLY
		return true
	}
	word := w.peek()
	if unit, is := adverbs[word]; is {
		w.rest[0], word = unit, unit
	}
	if n, err := strconv.Atoi(word); err == nil || word == "other" {
		if word == "other" {
			n = 2
		}
		if n < 1 || n > 1000 || len(w.rest) < 2 {
			return false
		}
		w.option.Interval, w.rest = n, w.rest[1:]
		word = w.peek()
	}
	if frequency, is := units[strings.TrimSuffix(word, "s")]; is {
		w.option.Freq, w.rest = frequency, w.rest[1:]
		if !w.take("on") {
			return true
		}
		if frequency == rrule.WEEKLY {
			return w.days()
		}
		return frequency == rrule.MONTHLY && w.ofMonth()
	}
	return w.option.Interval == 0 && w.nth()
}

// days reads names of days of the week.
func (w *words) days() bool {
	found := false
	for {
		rest := w.rest
		if found && !w.take("and") {
			return true
		}
		list := daysOf(w.peek())
		if list == nil {
			w.rest = rest // what follows "and" is a time perhaps
			return found
		}
		w.option.Byweekday, w.rest, found = append(w.option.Byweekday, list...), w.rest[1:], true
	}
}

// daysOf returns the days of the week that a word names, nil if it is none.
func daysOf(word string) []rrule.Weekday {
	switch word {
	case "weekday", "weekdays", "workday", "workdays":
		return weekdays[:5]
	case "weekend", "weekends":
		return weekdays[5:]
	}
	for i, name := range weekdayNames {
		if len(word) >= 3 && (strings.HasPrefix(name, word) || word == name+"s") {
			return weekdays[i : i+1]
		}
	}
	return nil
}

// nth reads which day of each month, with what names the month.
func (w *words) nth() bool {
	w.take("on")
	if !w.ofMonth() || !w.take("of") {
		return false
	}
	w.take("the", "every", "each")
	w.option.Freq = rrule.MONTHLY
	return w.take("month")
}

// ofMonth reads which day of a month.
func (w *words) ofMonth() bool {
	w.take("the")
	word := w.peek()
	if word == "" {
		return false
	}
	if n, is := ordinals[word]; is {
		w.rest = w.rest[1:]
		day := w.peek()
		list := daysOf(day)
		switch {
		case day == "day":
			w.option.Bymonthday = []int{n}
		case len(list) == 1:
			w.option.Byweekday = []rrule.Weekday{list[0].Nth(n)}
		case list != nil:
			w.option.Byweekday, w.option.Bysetpos = list, []int{n}
		default:
			return false
		}
		w.rest = w.rest[1:]
		return true
	}
	for _, ending := range []string{"st", "nd", "rd", "th"} {
		if n, err := strconv.Atoi(strings.TrimSuffix(word, ending)); err == nil && strings.HasSuffix(word, ending) && n >= 1 && n <= 31 {
			w.option.Bymonthday, w.rest = []int{n}, w.rest[1:]
			return true
		}
	}
	return false
}

// times reads clock times; without any, those of the earliest occurrence count.
func (w *words) times() bool {
	if len(w.rest) == 0 {
		return true
	}
	w.take("at", "and")
	minute := -1
	for {
		h, m, ok := clockTime(w.peek())
		if !ok || minute >= 0 && m != minute || len(w.option.Byhour) == mostADay || w.option.Freq == rrule.HOURLY {
			return false // times with other minutes would be all combinations of hours and minutes
		}
		minute = m
		w.option.Byhour, w.rest = append(w.option.Byhour, h), w.rest[1:]
		if !w.take("and") {
			w.option.Byminute, w.option.Bysecond = []int{minute}, []int{0}
			return true
		}
	}
}

// clockTime reads 09:00, 9am, 9:30pm, noon or midnight.
func clockTime(word string) (hour, minute int, ok bool) {
	switch word {
	case "noon":
		return 12, 0, true
	case "midnight":
		return 0, 0, true
	}
	half := 0
	if rest, is := strings.CutSuffix(word, "am"); is {
		word, half = rest, 1
	} else if rest, is := strings.CutSuffix(word, "pm"); is {
		word, half = rest, 2
	}
	hours, minutes, both := strings.Cut(word, ":")
	h, err := strconv.ParseUint(hours, 10, 8)
	if err != nil || len(hours) > 2 || !both && half == 0 {
		return 0, 0, false
	}
	m := uint64(0)
	if both {
		if m, err = strconv.ParseUint(minutes, 10, 8); err != nil || len(minutes) != 2 || m > 59 {
			return 0, 0, false
		}
	}
	switch {
	case half == 0:
		return int(h), int(m), h <= 23
	case h < 1 || h > 12:
		return 0, 0, false
	}
	return int(h)%12 + 12*(half-1), int(m), true
}
