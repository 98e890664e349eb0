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
// accelerators beyond 2^20, memory_mb or storage_mb beyond 2^42 in size, and a
// length of more than 16 MiB make a line unreadable: that is a violation, and the rest is
// checked without it. A file without a readable line is unreadable. A line without a
// site is at the only site that the file names; if it names several, the file is unreadable
// where the site matters. Likewise the pool within a site.
//
// # Rules
//
//   - Id and part are unique among requests, bookings and jobs. Outages and
//     stagings may repeat an id, also that of the request they belong to. Parts
//     compare as text, so 1 and "1" are the same; 0 is no part.
//   - A request has npe and duration of at least 1, is not ready before its
//     arrival, and its deadline is not before ready + duration. For a refused
//     request with variants the shortest of them counts, in the fastest
//     pool. Where it was refused for another reason than no_capacity, which says nothing of
//     its window, any time after ready will do.
//   - A refusal has a reason from the list and no start, end or PEs. A promised
//     start on it says that a promise was taken back. An acceptance has a start
//     and an end, and no reason.
//   - Accepted: ready ≤ start, arrival ≤ start, end ≤ deadline,
//     end − start = duration. With variants, npe and duration are one of them (npe alone, if
//     the speed of the pool is not known),
//     where the duration is divided by the speed of the pool, that for
//     accelerators if it asks for some, and rounded up, and a transfer is added. Of parts
//     at one managed site only the longest need be: the others end with it.
//     What was added to the promise later on (extended) is in the duration too, and
//     its deadline is not before the end that it has now.
//   - A promised start means that the promise has moved: it was first made for that
//     time. moved_from lists its former places in order, the first with the promised
//     start. A former place has as many PEs as the request asks for, in one of its
//     variants if it has some, in a pool that has them. It lies in the window, except
//     that ends may be after the deadline once an overrun has delayed the promise. A
//     promise that was taken back lists its last place too, and its reason is
//     neither a policy nor a quota. A hold that expired lists the place that it had,
//     without a promised start.
//   - A former place was given up by its end, for a reason. Its cause is an outage of
//     its pool that began after the place was made and had not ended, or a line of
//     its pool that had reached its end and has a later actual end; pieces of a job
//     (its id, a slash and a number) count as the job. The cause was expected to
//     take PEs during the place, an outage until its end, a line until its limit. If
//     both name PEs, they share one. If the place names none, more PEs than the pool
//     has were taken at some time of it, by everything that was promised, ran or was
//     down as it was known when the place was given up. Or its data were expected
//     (staged) after its start, and it has storage_mb. The reason of one part holds
//     for all parts. Jobs need no reason.
//   - replanned_from lists the places that a task of a workflow had before its workflow
//     got another plan, or gave the task up, each until the next was made (at). That needs no more
//     reason, except that the line names its workflow; what was given up before it began is
//     refused without one. These places tell what was taken when other promises moved.
//   - A booking that states a duration above 0 is as long as it says. What a
//     booking, a job, an outage or a staging says in arrival, ready, deadline,
//     accepted is of no account, but for the arrival of an outage, which is when it
//     was announced, if that was before its start.
//   - A line takes npe PEs throughout [start, end), or [start, actual end) if it
//     has one, which is not before its start. Actual ends are not held against
//     the deadline, which binds the promise. An outage without an end lasts for
//     ever; a job without start and end has not started, and its size and place
//     are of no account.
//   - At no time are more PEs taken than the pool has, over all lines of any
//     kind, and no PE twice, over the lines that name PEs. So an outage must not
//     overlap what is booked, nor another outage on the same PEs.
//   - PEs named are as many as npe and inside the pool, which has at least npe.
//   - Stretches tell how the PEs of a request changed while it held them. From each
//     one on, in order, from the start to the end, it holds those PEs instead: at
//     most npe, of its pool, its partition and those asked for. PEs that it loses are
//     those of an outage of its pool, the cause, that has begun, is not over and is expected to
//     last longer; at its start it may have lost them since its arrival, and to one that
//     begins before its end. If its PEs had no names before, it lacks at most as many as
//     these outages took; at its start also what is promised at its time beyond the size
//     of the pool, since outages have displaced others to there.
//   - What comes after something starts when that has ended (its actual end, if
//     it has one, of all its parts), and that exists and was accepted.
//   - Parts of one id are all accepted with one start, or all refused.
//   - Requests, bookings and jobs may ask for software, at least a version of it,
//     licences of it, memory_mb and accelerators of each PE, storage_mb, a
//     partition, and for a site (want_site), one of several sites (want_sites), a pool
//     (want_pool) and PEs (eligible; by pool: only) to the exclusion of others, and for none of
//     some PEs (by pool: never); version and licences need software, and no count
//     is negative. What an outage or a staging says in these is of no account, and
//     of a line that takes no PEs only the form is checked.
//   - A line runs at the site and the pool asked for, and has no PEs but those
//     asked for. An entry of a list by pool that does not name its site or pool is of any, and so
//     is each where nothing says what the pool of the line is called. The PEs of its pool have the memory and the accelerators.
//   - Its site has the partition, of its pool. PEs named are among those of the
//     partition, npe is not above the most of it for one part, and from start to
//     end it is not longer than the partition allows; an actual end is not held
//     against that.
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
//     where a line of that id runs, and begins no earlier than the arrival if that is
//     a request. It ends no later than the start; or, where PEs are held meanwhile,
//     it begins at the start exactly, or at that of a former place there, and ends
//     before the end. This holds against every part that runs at the site, and for
//     each of several stagings alone. Ends are as reserved: actual ones are not held
//     against either. A staging with a promised end was expected to end then; it may
//     have come later, or not at all. What was refused has no staging; that of a job
//     not started may be anywhere, at any time. Nothing says that there must be a
//     staging, unless a request has a transfer.
//   - A transfer is shorter than the duration. A staging to the site of the request
//     begins at its start and was expected to last as long. If the request has
//     moved, the staging may be shorter, or it began for a former place and was over,
//     or had as much left, when that was given up.
//   - Where an uplink is given, a staging moves kilobytes in its time, evenly and
//     rounded up to whole ones a second; what does not say how many moves the
//     storage_mb of its id. At no time is more moved than the uplink carries. The
//     stagings of an id at one site that say how much they move come together to
//     the most storage_mb that its lines there ask for, at least, unless one of
//     them came at another time than promised.
package check

import (
	"fmt"
	"io"
	"strconv"

	"github.com/berth-hpc/berth"
)

// Class names a kind of violation.
type Class string

// The classes, in the order in which violations of one line are reported.
const (
	Unreadable       Class = "unreadable"         // a line that cannot be read; the rest is checked without it
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
	Place            Class = "place"              // a site or a pool other than the one asked for
	Eligible         Class = "eligible"           // a PE other than those asked for
	Partition        Class = "partition"          // PEs or a time that the partition asked for does not give
	Hardware         Class = "hardware"           // PEs with less memory or fewer accelerators than asked for
	Software         Class = "software"           // a line at a site without the program, or with too old a version
	Moved            Class = "moved"              // a promise that moved without a reason, or to another size
	Resized          Class = "resized"            // PEs that were taken from a reservation without a reason, or more than promised
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
		Unreadable, Duplicate, BadRequest, DeadlineTooEarly, BadReason, RefusalWithStart, MissingStart, Window, Length,
		Variant, UnknownPool, TooLarge, Count, Range, Place, Eligible, Partition, Hardware, Software,
		Moved, Resized, Parts, Precedence, Staging,
		Capacity, Identity, Licences, Storage, Uplink,
	}
}

// Violation is one way in which a file is not a true schedule.
type Violation struct {
	Class Class    `json:"class"`
	IDs   []string `json:"ids"`            // whom it concerns, each once, in order of lines; at least one of a line that can be read
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
	b = append(b, ": "+string(v.Class)+": "+v.Text...)
	if len(v.IDs) == 0 {
		return string(b)
	}
	b = append(b, " (id "...)
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
	Lines      int         `json:"lines"`    // lines that were not blank, unreadable ones too
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
// A file without a readable line, and with Options.Strict the first line that
// cannot, gives an error that wraps a *berth.Error with code Invalid and reads
// "name:line: field: what is wrong"; so does a pool whose size neither the options nor a
// line tell. Of unreadable lines the first 1000 are listed; the last of those
// says how many more there are.
// An error of r is wrapped as it is.
//
// A violation lists up to 1000 lines; where
// this would exceed a million for the whole file, it lists fewer. Two lines with a PE
// in common are reported pair by pair, and in such a file at least once for
// each line that takes a PE already taken. Cost: O(n log n) for n lines and
// runs of PE numbers, and space in proportion to the file.
func File(r io.Reader, name string, opts Options) (*Report, error) {
	if opts.Sizes == nil && (opts.PEs < 0 || opts.PEs > berth.MaxPEs) {
		return nil, berth.Errorf(berth.Invalid, "pes", "%d; a machine has 1 to %d PEs", opts.PEs, berth.MaxPEs)
	}
	f, err := readFile(r, name, opts.Strict)
	if err != nil {
		return nil, err
	}
	c := checker{file: f, opts: opts, violations: []Violation{}}
	if err := c.placeLines(); err != nil {
		return nil, err
	}
	c.checkLines()
	c.checkGroups()
	c.checkMoves()
	c.checkLosses()
	c.addStretches()
	c.sweepAll()
	return c.report(), nil
}
