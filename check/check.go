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
// and a staging may say in kilobytes how much it moves.
//
// A needed field that is missing, a field of the wrong type, a field given
// twice, a time that is no whole number or beyond ±2^42, a size beyond 2^20, a
// PE list that cannot be read or names a PE twice, licences beyond 2^30,
// accelerators beyond 2^20 or storage_mb beyond 2^42 in size, and a line of more
// than 16 MiB make the file unreadable. A line without a site is at the only site
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
//     where the duration is divided by the speed of the pool, that for
//     accelerators if it asks for some, and rounded up.
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
//   - Requests, bookings and jobs may ask for software, at least a version of it,
//     licences of it, accelerators and storage_mb; version and licences need
//     software, and no count is negative. What an outage or a staging says in
//     these is of no account, and of a line that takes no PEs only the form is
//     checked.
//   - A site at which a line runs has its software: a row of that name whose
//     version is at least the one asked for, any if none is. Versions compare by
//     their components between points, and in each by turns numbers and texts, so
//     that R10 is later than R9; what is missing is 0, and a tilde is before the
//     end of a text. The first such row counts.
//   - At no time are more licences of a row taken than it has, nor more storage
//     than the site has. The lines of one id at one site take them once, the most
//     that one of them asks for, from the first start to the last end (the actual
//     one, if it has one). Storage is taken from the start of the first staging of
//     the id to the site on, if that is earlier.
//   - A staging belongs to the request, booking or job of its id. It is at a site
//     where a line of that id runs, begins no earlier than the arrival if that is
//     a request, and ends no later than the start; or begins at the start exactly
//     and ends before the end, where PEs are held meanwhile. This holds against
//     every part that runs at the site, and for each of several stagings alone.
//     Ends are as reserved: actual ones are not held against either. What was
//     refused has no staging; that of a job not started may be anywhere, at any
//     time. Nothing says that there must be a staging.
//   - Where an uplink is given, a staging moves kilobytes in its time, evenly and
//     rounded up to whole ones a second; what does not say how many moves the
//     storage_mb of its id. At no time is more moved than the uplink carries. The
//     stagings of an id at one site that say how much they move come together to
//     the most storage_mb that its lines there ask for, at least.
package check

import (
	"fmt"
	"io"
	"strconv"

	"github.com/berth-hpc/berth"
)

// Options says what a schedule is checked against. PEs or Sizes must be
// set; Sizes wins.
type Options struct {
	// PEs is the size of the machine. If a file names several sites or pools,
	// each of them has this size.
	PEs berth.Count
	// Sizes returns the size of a pool, and false if there is no such pool. It
	// is asked once for each pool at which a line takes PEs; a name that the
	// file does not supply is "".
	Sizes func(site, pool string) (berth.Count, bool)
	// Speed returns the speed of a pool for what asks for accelerators, or does
	// not, in thousandths of that for which the durations of variants are given;
	// 0 is that speed, and so is a nil function. Names are as for Sizes.
	Speed func(site, pool string, accelerated bool) berth.Speed
	// Software returns the programs of a site, which are not changed; the first
	// that will do counts. A nil function leaves all sites' unchecked.
	Software func(site string) []berth.Software
	// Storage returns the scratch space of a site in 10^6 bytes, and false if it
	// is not limited. A nil function is no limit.
	Storage func(site string) (megabytes int64, limited bool)
	// Uplink is how much all stagings together move, in 1000 bytes per second; 0
	// is no limit.
	Uplink int64
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
	Software         Class = "software"           // a line at a site without the program, or with too old a version
	Parts            Class = "parts"              // co-allocated parts that do not start together
	Precedence       Class = "precedence"         // a start before the end of what must come first
	Staging          Class = "staging"            // a staging that does not belong to a request, or at the wrong time
	Capacity         Class = "capacity"           // more PEs taken at once than the pool has
	Identity         Class = "identity"           // one PE taken twice at once
	Licences         Class = "licences"           // more licences taken at once than the site has
	Storage          Class = "storage"            // more storage taken at once than the site has
	Uplink           Class = "uplink"             // more moved at once than the uplink carries, or less in all than was asked for
)

// Classes lists every class in the order in which violations of one line are
// reported.
func Classes() []Class {
	return []Class{
		Duplicate, BadRequest, DeadlineTooEarly, BadReason, RefusalWithStart, MissingStart, Window, Length,
		Variant, UnknownPool, TooLarge, Count, Range, Software, Parts, Precedence, Staging,
		Capacity, Identity, Licences, Storage, Uplink,
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
	c.sweepAll()
	return c.report(), nil
}
