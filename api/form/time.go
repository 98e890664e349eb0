package form

import (
	"encoding/json"
	"time"

	"github.com/berth-hpc/berth"
)

// Time is a point in time in Unix seconds, written in RFC 3339 in UTC. The zero
// value is none.
type Time berth.Time

// lastTime is the last instant that RFC 3339 can write, the end of the year 9999.
const lastTime Time = 253_402_300_799

// TimeOf returns the form of a time; one that never comes is none.
func TimeOf(t berth.Time) Time {
	if t >= berth.Forever {
		return 0
	}
	return min(Time(t), lastTime)
}

// In returns the time in a zone.
func (t Time) In(zone *time.Location) time.Time { return time.Unix(int64(t), 0).In(zone) }

// IsZero reports whether it is none.
func (t Time) IsZero() bool { return t == 0 }

// String returns the time as it is written.
func (t Time) String() string { return t.In(time.UTC).Format(time.RFC3339) }

// MarshalText writes the time.
func (t Time) MarshalText() ([]byte, error) {
	return t.In(time.UTC).AppendFormat(make([]byte, 0, len(time.RFC3339)), time.RFC3339), nil
}

// UnmarshalText reads a time with any zone; a fraction of a second is dropped.
func (t *Time) UnmarshalText(text []byte) error {
	read, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return berth.Errorf(berth.Invalid, "", "%q; want a time in RFC 3339 such as 2026-11-21T18:00:00+01:00", text)
	}
	*t = Time(read.Unix())
	return nil
}

// Hold is how long a promise is held: seconds, or DefaultHold for as long as the
// service does by default. The zero value asks for a confirmed promise.
type Hold berth.Duration

// DefaultHold asks for the service's default.
const DefaultHold Hold = -1

// MarshalJSON writes seconds, or true.
func (h Hold) MarshalJSON() ([]byte, error) {
	if h == DefaultHold {
		return []byte("true"), nil
	}
	return json.Marshal(int64(h))
}
