package workload

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/berth-hpc/berth"
)

const bookingExample = `{"id":"a","kind":"booking","npe":16,"start":3600,"end":7200}`

// bookingReader is what matters of a line of a schedule for those who plan
// around it.
type bookingReader struct {
	line       jsonLine // as requests are read
	site, pool string
	accepted   bool
	pes        berth.PESet
	start, end int64
}

// parse reads the object; Want of the BadLine is empty if it is well-formed.
func (b *bookingReader) parse(text []byte) BadLine {
	b.line.kind = berth.KindRequest
	bad := checkLine(text, "want "+bookingExample)
	if bad.Want != "" {
		return bad
	}
	eachMember(text, func(key, value []byte) bool {
		if bad = b.line.member(key, value); bad.Want == "" && string(value) != "null" {
			bad = b.member(key, value)
		}
		return bad.Want == ""
	})
	return bad
}

// member takes in what jsonLine reads over; it has checked the types.
func (b *bookingReader) member(key, value []byte) (bad BadLine) {
	f, _ := fieldOf(key)
	switch f {
	case fieldSite:
		b.site = unquote(value)
	case fieldPool:
		b.pool = unquote(value)
	case fieldAccepted:
		b.accepted = value[0] == 't'
	case fieldStart:
		b.start = integer(value)
	case fieldEnd:
		b.end = integer(value)
	case fieldPEs:
		b.pes, bad = parsePEs(f, value)
	}
	return bad
}

// passedOver reports whether the line holds no PEs: a staging, or a request
// that was refused or is still to be decided, or a job that did not start.
func (b *bookingReader) passedOver() bool {
	switch b.line.kind {
	case berth.KindBooking, berth.KindOutage:
		return false
	case berth.KindJob:
		return !b.line.given.has(fieldStart)
	}
	return b.line.kind == berth.KindStaging || !b.accepted
}

// booking returns the line as a booking of a machine of that size, 0 if it is
// not known.
func (b *bookingReader) booking(machine berth.Count) (Booking, BadLine) {
	j := &b.line
	npe := j.npe
	if !j.given.has(fieldNPE) && j.given.has(fieldPEs) {
		npe = int64(b.pes.Count())
		j.given.add(fieldNPE)
	}
	needed := []field{fieldID, fieldNPE, fieldStart, fieldEnd}
	if j.kind == berth.KindOutage {
		needed = needed[1:]
	}
	for _, f := range needed {
		if !j.given.has(f) {
			return Booking{}, BadLine{Field: jsonFields[f].name, Want: "missing; a booking needs id, npe, start and end"}
		}
	}
	out := Booking{
		ID: j.id, Site: b.site, Pool: b.pool, PEs: b.pes,
		Start: berth.Time(b.start), End: berth.Time(b.end),
	}
	switch {
	case j.kind != berth.KindOutage && j.id == "":
		return out, BadLine{Field: "id", Value: `""`, Want: "empty; a booking needs one"}
	case hasControl(j.id):
		return out, BadLine{Field: "id", Value: shown([]byte(j.id)), Want: "holds a control character"}
	case !b.pes.Empty() && int64(b.pes.Count()) != npe:
		return out, BadLine{Field: "npe", Value: countText(npe), Want: "pes names " + countText(b.pes.Count())}
	}
	var bad BadLine
	out.NPE, bad = sizeOf(npe, machine)
	if bad.Want == "" {
		bad = checkSpan(out.Start, out.End)
	}
	return out, bad
}

// sizeOf checks the PEs of a booking.
func sizeOf(npe int64, machine berth.Count) (berth.Count, BadLine) {
	switch {
	case npe < 1:
		return 0, BadLine{Field: "npe", Value: countText(npe), Want: "a booking needs at least 1 PE"}
	case npe > berth.MaxPEs:
		return 0, BadLine{Field: "npe", Value: countText(npe), Want: "more than the limit of " + countText(berth.MaxPEs)}
	case machine > 0 && npe > int64(machine):
		return 0, BadLine{Field: "npe", Value: countText(npe), Want: "larger than the machine of " + countText(machine) + " PEs"}
	}
	return berth.Count(npe), BadLine{}
}

// checkSpan checks the times of a booking.
func checkSpan(start, end berth.Time) BadLine {
	switch {
	case !start.Valid():
		return BadLine{Field: "start", Value: timeText(start), Want: "beyond ±2^42 s"}
	case !end.Valid():
		return BadLine{Field: "end", Value: timeText(end), Want: "beyond ±2^42 s"}
	case end <= start:
		return BadLine{Field: "end", Value: timeText(end), Want: "not after the start " + timeText(start)}
	}
	return BadLine{}
}

// bookingLine is a line of a schedule file that is a booking.
type bookingLine struct {
	ID    string      `json:"id"`
	Kind  berth.Kind  `json:"kind"`
	Site  string      `json:"site,omitempty"`
	Pool  string      `json:"pool,omitempty"`
	NPE   berth.Count `json:"npe"`
	Start berth.Time  `json:"start"`
	End   berth.Time  `json:"end"`
	PEs   berth.PESet `json:"pes,omitzero"`
}

// WriteBookings writes bookings as JSON Lines of the schedule file, in their
// order. ReadBookings reads them back equal if the ids are unique and the
// starts in order.
//
// A booking that the reader would refuse is an *berth.Error with code Invalid;
// what was written until then stays written. Failures of w are wrapped.
func WriteBookings(w io.Writer, bookings []Booking) error {
	out := bufio.NewWriterSize(w, bufferSize)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i := range bookings {
		b := &bookings[i]
		_, bad := sizeOf(int64(b.NPE), 0)
		switch {
		case bad.Want != "":
		case b.ID == "" || hasControl(b.ID) || !utf8.ValidString(b.ID):
			bad = BadLine{Field: "id", Want: "empty or not printable UTF-8"}
		case !b.PEs.Empty() && b.PEs.Count() != b.NPE:
			bad = BadLine{Field: "npe", Want: "pes names " + countText(b.PEs.Count())}
		default:
			bad = checkSpan(b.Start, b.End)
		}
		if bad.Want != "" {
			return berth.Errorf(berth.Invalid, bad.Field, "booking %q: %s", b.ID, bad.Want)
		}
		line := bookingLine{ID: b.ID, Kind: berth.KindBooking, Site: b.Site, Pool: b.Pool, NPE: b.NPE, Start: b.Start, End: b.End, PEs: b.PEs}
		if err := enc.Encode(&line); err != nil {
			return fmt.Errorf("write bookings: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write bookings: %w", err)
	}
	return nil
}
