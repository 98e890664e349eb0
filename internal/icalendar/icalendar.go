// Package icalendar writes calendars in the form of RFC 5545, for programs that people keep their
// calendars with. It writes what it is given; it knows no reservations and reads nothing. All times are
// UTC, so that it needs no time zones.
package icalendar

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/berth-hpc/berth"
)

// Type is the media type of a calendar.
const Type = "text/calendar; charset=utf-8"

// Status says how sure an event is.
type Status string

// The states of an event (RFC 5545, 3.8.1.11).
const (
	Tentative Status = "TENTATIVE"
	Confirmed Status = "CONFIRMED"
	Cancelled Status = "CANCELLED"
)

// Calendar is some events under a name. Texts may hold whatever people write.
type Calendar struct {
	Name, About string
	Events      []Event
}

// Event is one entry of a calendar, from Start up to End, which comes after it. It marks no person as busy: machines
// are reserved.
type Event struct {
	UID string // the same for as long as it is the same event
	// Created is when it was first known, Changed when it was changed last, and Sequence grows with
	// each change. What does not fit into 31 bits is cut.
	Created, Changed berth.Time
	Sequence         uint64
	Status           Status
	Start, End       berth.Time
	Summary          string
	Location         string // empty is none
	Description      string // empty is none
	URL              string // a valid URL; empty is none
	Category         string // empty is none
}

// refresh is how often programs should ask again, as those say that keep to it (RFC 7986, 5.7).
const refresh = "PT15M"

// maxSequence is the largest whole number that RFC 5545 has.
const maxSequence = 1<<31 - 1

// Append appends a calendar in its written form. Equal calendars are written alike, byte by byte.
func (c *Calendar) Append(data []byte) []byte {
	w := writer{out: data}
	w.raw("BEGIN", "VCALENDAR")
	w.raw("VERSION", "2.0")
	w.raw("PRODID", "-//Berth//Berth//EN")
	w.raw("CALSCALE", "GREGORIAN")
	w.text("NAME", c.Name)
	w.text("X-WR-CALNAME", c.Name) // what programs read that are older than RFC 7986
	w.text("DESCRIPTION", c.About)
	w.text("X-WR-CALDESC", c.About)
	w.raw("REFRESH-INTERVAL;VALUE=DURATION", refresh)
	w.raw("X-PUBLISHED-TTL", refresh)
	for i := range c.Events {
		w.event(&c.Events[i])
	}
	if len(c.Events) == 0 { // a calendar has at least one component (RFC 5545, 3.6)
		w.utc()
	}
	w.raw("END", "VCALENDAR")
	return w.out
}

// writer writes lines of content.
type writer struct {
	out  []byte
	line []byte // memory that is used again
}

func (w *writer) event(e *Event) {
	w.raw("BEGIN", "VEVENT")
	w.text("UID", e.UID)
	w.time("DTSTAMP", e.Changed) // of a calendar without a method: when it was changed last (3.8.7.2)
	w.time("CREATED", e.Created)
	w.time("LAST-MODIFIED", e.Changed)
	w.raw("SEQUENCE", strconv.FormatUint(min(e.Sequence, maxSequence), 10))
	w.raw("STATUS", string(e.Status))
	w.raw("TRANSP", "TRANSPARENT")
	w.time("DTSTART", e.Start)
	w.time("DTEND", e.End)
	w.text("SUMMARY", e.Summary)
	w.text("LOCATION", e.Location)
	w.text("CATEGORIES", e.Category)
	w.text("DESCRIPTION", e.Description)
	if e.URL != "" {
		w.raw("URL", Plain(e.URL))
	}
	w.raw("END", "VEVENT")
}

// utc writes the time zone of the times, which refer to it by their last letter alone.
func (w *writer) utc() {
	for _, line := range [][2]string{
		{"BEGIN", "VTIMEZONE"},
		{"TZID", "UTC"},
		{"BEGIN", "STANDARD"},
		{"DTSTART", "19700101T000000"},
		{"TZOFFSETFROM", "+0000"},
		{"TZOFFSETTO", "+0000"},
		{"END", "STANDARD"},
		{"END", "VTIMEZONE"},
	} {
		w.raw(line[0], line[1])
	}
}

// raw writes a property whose value needs no escapes.
func (w *writer) raw(name, value string) {
	w.line = append(append(append(w.line[:0], name...), ':'), value...)
	w.fold()
}

func (w *writer) time(name string, at berth.Time) {
	w.line = append(append(w.line[:0], name...), ':')
	w.line = time.Unix(int64(at), 0).UTC().AppendFormat(w.line, "20060102T150405Z")
	w.fold()
}

// text writes a property that is a text, unless that is blank, which programs take for a fault.
func (w *writer) text(name, value string) {
	if value = Plain(value); value == "" {
		return
	}
	w.line = append(append(w.line[:0], name...), ':')
	done := 0
	for i := range len(value) {
		c := value[i]
		switch c {
		case '\\', ';', ',':
		case '\n':
			c = 'n'
		default:
			continue
		}
		w.line = append(append(w.line, value[done:i]...), '\\', c)
		done = i + 1
	}
	w.line = append(w.line, value[done:]...)
	w.fold()
}

// maxLine is how many octets a line has at most, without its end (3.1).
const maxLine = 75

// fold ends the line, which goes on behind a line break and a space wherever it is too long. It is never
// broken within a character.
func (w *writer) fold() {
	rest, room := w.line, maxLine
	for len(rest) > room {
		at := room
		for !utf8.RuneStart(rest[at]) {
			at--
		}
		w.out = append(append(w.out, rest[:at]...), "\r\n "...)
		rest, room = rest[at:], maxLine-1 // the space counts
	}
	w.out = append(append(w.out, rest...), "\r\n"...)
}

// Plain returns a text as it is read back: without blanks at its ends, which programs drop, lines end with
// "\n" alone, and what is no valid UTF-8 or a control character, which no text of a calendar may hold, is
// the character U+FFFD.
func Plain(text string) string {
	if text = strings.Trim(text, " \t"); plain(text) {
		return text
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return utf8.RuneError
		}
		return r
	}, text)
}

// plain reports whether Plain has nothing to do.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return utf8.ValidString(text)
}
