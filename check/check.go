// Package check is the independent validator of schedule files: it reads one
// with its own eyes and tells every way in which it cannot be a true schedule.
// It does not plan, repair or measure, and it shares no code with the packages
// that write schedules; from the root package it takes the limits, the list of
// reasons and the form of an error, and parses everything itself.
//
// # Reading
//
// Every line is one JSON object; blank lines and fields it does not know are
// passed over, since the form may grow. A field that is null is absent. The kind
// of a line is request unless it says otherwise. Needed are
//
//	request   id, arrival, ready, deadline, duration, npe, accepted
//	booking   id, npe, start, end
//	job       id, npe
//	outage    id, npe, start
//	staging   id, start, end
//
// A needed field that is missing, a field of the wrong type, a field given
// twice, a time that is no whole number or beyond ±2^42, a size beyond 2^20, a
// PE list that cannot be read or names a PE twice, and a line of more than
// 16 MiB make the file unreadable. A line without a site is at the only site
// that the file names; if it names several, it is unreadable where the site
// matters. Likewise the pool within a site.
//
// # Rules
//
//   - Id and part are unique among requests, bookings and jobs. Outages and
//     stagings may repeat an id, also that of the request they belong to. Parts
//     compare as text, so 1 and "1" are the same; 0 is no part.
//   - A request has npe and duration of at least 1, is not ready before its
//     arrival, and its deadline is not before ready + duration. For a refused
//     request with variants the shortest of them counts.
//   - A refusal has a reason from the list and no start, end or PEs. A promised
//     start on it says that a promise was taken back. An acceptance has a start
//     and an end, and no reason.
//   - Accepted: ready ≤ start, arrival ≤ start, end ≤ deadline,
//     end − start = duration. With variants, npe and duration are one of them,
//     where the duration is divided by the speed of the pool and rounded up.
//   - A promised start lies in the window. It says that the promise was first for
//     then, and has moved since: within the window, maybe to a pool where it
//     takes another time, or beyond the deadline, because somebody else went on
//     for too long; then it was for the same time, within the window.
//   - A booking that states a duration above 0 is as long as it says. What a
//     booking, a job, an outage or a staging says in arrival, ready, deadline,
//     accepted is of no account.
//   - A line takes npe PEs throughout [start, end), or [start, actual end) if it
//     has one, which is not before its start. Actual ends are not held against
//     the deadline, which binds the promise. An outage without an end lasts for
//     ever; a job without start and end has not started, and its size and place
//     are of no account.
//   - At no time are more PEs taken than the pool has, over all lines of any
//     kind, and no PE twice, over the lines that name PEs. So an outage must not
//     overlap what is booked, nor another outage on the same PEs.
//   - PEs named are as many as npe and inside the pool, which has at least npe.
//   - What comes after something starts when that has ended (its actual end, if
//     it has one, of all its parts), and that exists and was accepted.
//   - Parts of one id are all accepted with one start, or all refused.
package check

import (
	"fmt"
	"io"
	"strconv"

	"github.com/berth-hpc/berth"
)

// Options says what a schedule is checked against. One of the two fields must
// be set; Sizes wins.
type Options struct {
	// PEs is the size of the machine. If a file names several sites or pools,
	// each of them has this size.
	PEs berth.Count
	// Sizes returns the size of a pool, and false if there is no such pool. It
	// is asked once for each pool at which a line takes PEs; a name that the
	// file does not supply is "".
	Sizes func(site, pool string) (berth.Count, bool)
	// Speed returns the speed of a pool, in thousandths of that for which the
	// durations of variants are given; 0 is that speed, and so is a nil function.
	// Names are as for Sizes.
	Speed func(site, pool string) berth.Speed
}

// Class names a kind of violation.
type Class string

// The classes, in the order in which violations of one line are reported.
const (
	Duplicate        Class = "duplicate"          // two lines with the same id and part
	BadRequest       Class = "request"            // a size or duration below 1, or ready before arrival
	DeadlineTooEarly Class = "deadline"           // a deadline before ready + duration
	BadReason        Class = "reason"             // an unknown reason, a refusal without one, an acceptance with one
	RefusalWithStart Class = "refusal_with_start" // a refusal that carries a start, an end or PEs
	MissingStart     Class = "missing_start"      // an acceptance without start or end
	Window           Class = "window"             // a start or an end outside the window
	Length           Class = "length"             // an interval that is not as long as the duration
	Variant          Class = "variant"            // a size and duration that the request did not offer
	UnknownPool      Class = "unknown_pool"       // a site or pool that does not exist
	TooLarge         Class = "too_large"          // more PEs than the pool has
	Count            Class = "count"              // a list of PEs of another length than npe
	Range            Class = "range"              // a PE number that the pool does not have
	Parts            Class = "parts"              // co-allocated parts that do not start together
	Precedence       Class = "precedence"         // a start before the end of what must come first
	Capacity         Class = "capacity"           // more PEs taken at once than the pool has
	Identity         Class = "identity"           // one PE taken twice at once
)

// Classes lists every class in the order in which violations of one line are
// reported.
func Classes() []Class {
	return []Class{
		Duplicate, BadRequest, DeadlineTooEarly, BadReason, RefusalWithStart, MissingStart, Window, Length,
		Variant, UnknownPool, TooLarge, Count, Range, Parts, Precedence, Capacity, Identity,
	}
}

// Violation is one way in which a file is not a true schedule.
type Violation struct {
	Class Class    `json:"class"`
	IDs   []string `json:"ids"`            // whom it concerns, each once, in order of lines; at least one
	Lines []int    `json:"lines"`          // where they stand, from 1, ascending; at least one
	More  int      `json:"more,omitempty"` // how many more lines it concerns, beyond those listed
	Text  string   `json:"text"`           // a sentence for people, with numbers and times
}

// String returns the violation on one line: lines, class, sentence, ids.
func (v Violation) String() string {
	b := []byte("line ")
	for i, line := range v.Lines {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(line), 10)
	}
	if v.More > 0 {
		b = fmt.Appendf(b, " and %d more", v.More)
	}
	b = append(b, ": "+string(v.Class)+": "+v.Text+" (id "...)
	for i, id := range v.IDs {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, printable(id)...)
	}
	return string(append(b, ')'))
}

// Report is the outcome for a readable file.
type Report struct {
	Lines      int         `json:"lines"`    // lines that were not blank
	Requests   int         `json:"requests"` // request lines among them
	Accepted   int         `json:"accepted"` // accepted ones among those
	Violations []Violation `json:"violations"`
}

// Valid reports whether the file is a true schedule.
func (r *Report) Valid() bool { return len(r.Violations) == 0 }

// File reads a schedule file and checks it by the rules above; name stands for
// the file in messages. The violations of the report are ordered by line, then
// by class.
//
// A file that cannot be read as a schedule gives an error that wraps a
// *berth.Error with code Invalid and reads "name:line: field: what is wrong".
// An error of r is wrapped as it is.
//
// A violation lists up to 1000 lines; in a file broken in so many places that
// this would exceed a million altogether, it lists fewer. Two lines with a PE
// in common are reported pair by pair, and in such a file at least once for
// each line that takes a PE already taken. Cost: O(n log n) for n lines and
// runs of PE numbers, and space in proportion to the file.
func File(r io.Reader, name string, opts Options) (*Report, error) {
	if opts.Sizes == nil && (opts.PEs < 1 || opts.PEs > berth.MaxPEs) {
		return nil, berth.Errorf(berth.Invalid, "pes", "%d; a machine has 1 to %d PEs", opts.PEs, berth.MaxPEs)
	}
	f, err := readFile(r, name)
	if err != nil {
		return nil, err
	}
	c := checker{file: f, opts: opts, violations: []Violation{}}
	if err := c.placeLines(); err != nil {
		return nil, err
	}
	c.checkLines()
	c.checkGroups()
	c.sweep()
	return c.report(), nil
}
