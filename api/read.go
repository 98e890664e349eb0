package api

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
)

// rounding says what becomes of a fraction of a second.
type rounding int

const (
	down rounding = iota // of what must be over by then
	up                   // of what begins
)

const wantTime = "want RFC 3339 with a zone, such as 2026-11-21T18:00:00+01:00 or 2026-11-21T17:00:00Z"

// zoneless are forms that would be times if they had a zone.
var zoneless = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"}

// instant reads a point in time. Without a zone it is ambiguous, so
// it is refused.
func (v value) instant(fraction rounding) (berth.Time, error) {
	text, err := v.text()
	if err != nil {
		return 0, fmt.Errorf("%s; %s", v.short(), wantTime)
	}
	return parseInstant(text, fraction)
}

func parseInstant(text string, fraction rounding) (berth.Time, error) {
	var t time.Time
	if err := t.UnmarshalText([]byte(text)); err == nil {
		seconds := t.Unix()
		if fraction == up && t.Nanosecond() > 0 {
			seconds++
		}
		return berth.Time(seconds), nil
	}
	for _, layout := range zoneless {
		if _, err := time.Parse(layout, text); err == nil {
			return 0, fmt.Errorf("%q has no zone; %s", text, wantTime)
		}
	}
	return 0, fmt.Errorf("%.40q; %s", text, wantTime)
}

// length reads a duration of at least least: a number is seconds, a text is in
// one of the forms of package hpctime.
func (v value) length(least berth.Duration) (berth.Duration, error) {
	d, err := v.anyLength()
	if err == nil && d < least {
		return 0, fmt.Errorf("%s; want at least %d s", v.short(), least)
	}
	return d, err
}

const wantLength = "want seconds, or a text such as PT2H30M, 2h30m or 02:30:00"

func (v value) anyLength() (berth.Duration, error) {
	if v[0] != '"' {
		n, err := v.whole(0, berth.TimeLimit-1)
		if err != nil {
			return 0, fmt.Errorf("%s; %s", v.short(), wantLength)
		}
		return berth.Duration(n), nil
	}
	text, err := v.word()
	if err != nil {
		return 0, err
	}
	return hpctime.Parse(text)
}

// defaultHold is how long a promise is held by default: half an hour,
// as long as an offer lasts.
const defaultHold berth.Duration = 1800

// hold reads for how long to hold: true for the default, false for not at all.
func (v value) hold() (berth.Duration, error) {
	switch string(v) {
	case "true":
		return defaultHold, nil
	case "false":
		return 0, nil
	}
	d, err := v.length(1)
	if err != nil {
		return 0, errors.New(err.Error() + "; or true for half an hour")
	}
	return d, nil
}

// peSet reads a list of PEs such as "0-31,64-95".
func (v value) peSet() (berth.PESet, error) {
	text, err := v.text()
	if err != nil {
		return berth.PESet{}, fmt.Errorf("%s; want a list of PEs such as \"0-31,64-95\"", v.short())
	}
	set, err := berth.ParsePESet(text)
	if err != nil {
		return set, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "pes: "))
	}
	return set, nil
}

// stamp is a time for people.
func stamp(t berth.Time) string { return t.RFC3339() }
