// Package calendar knows which PEs of one resource are free when. It answers
// where a request fits (Li et al., "availability rectangles": candidate
// starts, maximum availability rectangles, a rule that chooses among them)
// and takes and gives back blocks of PEs × time. It does not know requests,
// reservations, sites or clocks: what a block means is the caller's business.
package calendar

import (
	"iter"

	"github.com/berth-hpc/berth"
)

// Reader answers questions about the PEs 0..Size−1 of one resource over time.
//
// Under early binding the state is the set of busy PEs as a step function of
// time, under late binding the number of free PEs. Both are kept canonical
// after every change: record times increase strictly, adjacent records differ,
// the value before the first record and from the last one on is "all free". Two
// calendars with the same bookings therefore have the same records, whatever
// the order in which the bookings were made.
//
// No question changes an answer, and questions may be asked while another is
// being answered: in the Key of a Rule, and in a loop over Rectangles or Records.
// The calendar must not change during such a loop. A Reader is not safe for
// concurrent use, since a question may use the calendar's scratch memory.
type Reader interface {
	// Size returns the number of PEs, Binding when they get their numbers.
	Size() berth.Count
	Binding() berth.Binding

	// Find returns the best feasible start of the query under the rule:
	// the smallest key over all feasible candidates, ties to the earliest
	// start, with the lowest-numbered PEs. ok is false if no start in the
	// window is feasible, and for a query that Query.Validate refuses;
	// Search tells the two apart.
	Find(Query, Rule) (fit Fit, ok bool)

	// MostFree returns the largest number of PEs that are free throughout
	// [start, start+Duration) for any start in the window, whatever the
	// query's NPE, and the earliest such start: how far a refused query was
	// from fitting. It returns 0 and the ready time for a query that is not
	// valid.
	MostFree(Query) (free berth.Count, start berth.Time)

	// Rectangles yields the maximum availability rectangle of every feasible
	// candidate, ascending by start, with its PEs (empty under late binding).
	// Candidates are both ends of the window, every record's time in it, and
	// that time less the duration. If any start is feasible then a candidate
	// is, and the earliest and the latest feasible start are among them. A
	// query that is not valid has none.
	Rectangles(Query) iter.Seq2[berth.Rectangle, berth.PESet]

	// Free returns how many PEs are free throughout the interval and, under
	// early binding, which.
	Free(berth.Interval) (berth.Count, berth.PESet)

	// Records yields the canonical records in order of time.
	Records() iter.Seq[Record]

	// Changes yields the times of the records within an interval, in order of
	// time. It reads no other records.
	Changes(berth.Interval) iter.Seq[berth.Time]
}

// Calendar is a Reader whose bookings may be changed.
type Calendar interface {
	Reader

	// Add books a block. Code Conflict: some of its PEs are taken during
	// some of its time. Code Invalid: the block is malformed. On error
	// nothing has changed.
	Add(Block) error

	// Remove gives a booking back, or some of its PEs for all its time. Code
	// Conflict: it was not booked. On error nothing has changed.
	//
	// A calendar keeps no list of bookings, but it knows how many PEs begin and
	// end with a booking at each time. It refuses a block that is not booked
	// throughout, and one of more PEs than begin at its Start or end at its End:
	// part of the time of a booking, a longer block, more PEs, the same booking
	// twice.
	//
	// Under early binding it knows this of each PE and refuses every block that
	// is not a booking, or some PEs of several that begin and end together. Under
	// late binding two bookings that follow one another can be given back as one,
	// and two that overlap with their ends exchanged: one PE is as good as
	// another, no more is given back than was booked, and giving back the two
	// bookings themselves is refused from then on.
	Remove(Block) error

	// Prune forgets everything before now. Availability from now on is
	// unchanged; what reached into now is stamped now: to Remove, a booking that
	// had begun before begins now.
	Prune(now berth.Time)
}

// Block is a rectangle of bookings: NPE PEs throughout [Start, End). Under
// early binding PEs names them and NPE must be their number; under late
// binding PEs is not looked at.
type Block struct {
	Start, End berth.Time
	NPE        berth.Count
	PEs        berth.PESet
}

// Record is one step of the availability function: from Time until the next
// record's time exactly Free PEs are free and, under early binding, exactly
// the PEs in Busy are not.
type Record struct {
	Time berth.Time
	Free berth.Count
	Busy berth.PESet
}

// Horizon says where a rectangle ends that no booking bounds on the right.
type Horizon uint8

const (
	// Capped ends it at the later of the last record and the deadline. It
	// is what reproduces the paper (specification 1, b.5).
	Capped Horizon = iota
	// Unbounded lets it last for ever; all such rectangles tie in length
	// and in area.
	Unbounded
)

// Query asks where NPE PEs fit for Duration within [Ready, Deadline). Validate
// says what is valid. No field has a default: the zero Deadline is the time 0,
// since times may be negative, and a query without a deadline says Forever.
type Query struct {
	Now      berth.Time // rectangles reach back to Now at most
	Ready    berth.Time // not before Now
	Deadline berth.Time // at least Ready + Duration; Forever for none
	Duration berth.Duration
	NPE      berth.Count
	Eligible berth.PESet // only these PEs; empty for all; early binding only
	Horizon  Horizon
}

// Validate reports the first field that cannot be right, with code Invalid. A
// query for more PEs than a calendar has is valid; it finds nothing.
func (q *Query) Validate(binding berth.Binding) error {
	switch {
	case q.Duration < 1 || q.Duration >= berth.TimeLimit:
		return berth.Errorf(berth.Invalid, "duration", "%d is not between 1 and 2^42 s", q.Duration)
	case q.NPE < 1:
		return berth.Errorf(berth.Invalid, "npe", "%d; at least 1 PE is needed", q.NPE)
	case !q.Now.Valid() || !q.Ready.Valid():
		return berth.Errorf(berth.Invalid, "ready", "%d (now %d) is beyond ±2^42 s", q.Ready, q.Now)
	case q.Ready < q.Now:
		return berth.Errorf(berth.Invalid, "ready", "%d is before now, %d", q.Ready, q.Now)
	case q.Deadline == 0 && q.Ready.Add(q.Duration) > 0:
		return berth.Errorf(berth.Invalid, "deadline", "0 is before ready + duration = %d; give berth.Forever for no deadline",
			q.Ready.Add(q.Duration))
	case q.Deadline < q.Ready.Add(q.Duration):
		return berth.Errorf(berth.Invalid, "deadline", "%d is before ready + duration = %d",
			q.Deadline, q.Ready.Add(q.Duration))
	case q.Deadline >= berth.TimeLimit && q.Deadline != berth.Forever:
		return berth.Errorf(berth.Invalid, "deadline", "%d is beyond 2^42 s", q.Deadline)
	case binding == berth.Late && !q.Eligible.Empty():
		return berth.Errorf(berth.Invalid, "eligible", "chosen PEs need a pool of early binding")
	}
	return nil
}

// Fit is a feasible start and, under early binding, the PEs to take: the
// NPE lowest-numbered ones free throughout the run. Key is the rule's key.
type Fit struct {
	Start, End berth.Time
	PEs        berth.PESet
	Key        int64
}

// Criterion names the figure of a rectangle that a rule's key depends on.
type Criterion uint8

// The criteria. Custom may depend on anything, so every rectangle is shown.
const (
	ByStart  Criterion = iota // the start
	ByFree                    // the number of PEs
	ByLength                  // End−Begin
	ByArea                    // PEs × (End−Begin)
	Custom
)

// Order declares what a rule prefers, so that a calendar can skip rectangles
// that cannot win: the smallest criterion, or the largest.
type Order struct {
	By      Criterion
	Largest bool
}

// NeedsEnds reports whether the key depends on Begin or End.
func (o Order) NeedsEnds() bool { return o.By >= ByLength }

// Rule chooses among the rectangles of the feasible candidates: the smallest
// key wins, ties go to the earliest start. Unless Order is Custom, Key must be
// the declared criterion of the rectangle, negated if Largest.
type Rule interface {
	Order() Order
	Key(berth.Rectangle) int64
}

// Weigher is a Rule that looks at what is booked while the query would run. Its
// Order is Custom, and Find asks Weigh where it would ask Key.
type Weigher interface {
	Rule
	Weigh(Load) int64
}

// Load is a feasible start of a query and what is booked during [Start, Start+Duration),
// of the PEs that it may use.
type Load struct {
	Now      berth.Time
	NPE      berth.Count
	Duration berth.Duration

	Start  berth.Time
	PEs    berth.Count // how many the query may use
	Free   berth.Count // of them throughout the run
	Booked int64       // PE-seconds
}

// load begins the load of a query.
func (q *Query) load(pes berth.Count) Load {
	return Load{Now: q.Now, NPE: q.NPE, Duration: q.Duration, PEs: pes}
}

// New makes an empty calendar of size PEs, 1 ≤ size ≤ berth.MaxPEs.
type New func(size berth.Count, binding berth.Binding) Calendar

// Form is one structure that implements Calendar.
type Form struct {
	Name  string
	About string
	New   New
}

// Forms lists the structures; the first is the default. All of them give the
// same answer to every question; they differ in speed and memory only.
var Forms = []Form{
	{"fast", "trees of what changes, for a million live bookings", NewFast},
	{"plain", "sorted records scanned one by one, the paper's own form", NewPlain},
}

// FormNamed returns the structure of that name.
func FormNamed(name string) (Form, bool) {
	for _, form := range Forms {
		if form.Name == name {
			return form, true
		}
	}
	return Form{}, false
}

// firstFit is the rule of earliest-fit queries inside this package.
type firstFit struct{}

func (firstFit) Order() Order                { return Order{By: ByStart} }
func (firstFit) Key(r berth.Rectangle) int64 { return int64(r.Start) }

// Earliest returns the earliest feasible start.
func Earliest(r Reader, q Query) (Fit, bool) { return r.Find(q, firstFit{}) }

// Search is Find for a query that may not be valid, such as one from outside:
// err, with code Invalid, says what is wrong with it; without an error, ok says
// whether there is room.
func Search(r Reader, q Query, rule Rule) (fit Fit, ok bool, err error) {
	if err := q.Validate(r.Binding()); err != nil {
		return Fit{}, false, err
	}
	fit, ok = r.Find(q, rule)
	return fit, ok, nil
}

// Booked returns the PE-seconds booked within iv. Cost: O(records before the
// end of iv).
func Booked(r Reader, iv berth.Interval) int64 {
	var area int64
	busy, since := berth.Count(0), iv.Start
	for record := range r.Records() {
		if record.Time >= iv.End {
			break
		}
		if record.Time > since {
			area += berth.Area(busy, record.Time.Sub(since))
			since = record.Time
		}
		busy = r.Size() - record.Free
	}
	return area + berth.Area(busy, iv.End.Sub(since))
}

// check reports what is malformed about a block on a calendar of that size
// and binding.
func (b *Block) check(size berth.Count, binding berth.Binding) error {
	switch {
	case b.Start >= b.End:
		return berth.Errorf(berth.Invalid, "end", "%d is not after the start %d", b.End, b.Start)
	case !b.Start.Valid() || !b.End.Valid():
		return berth.Errorf(berth.Invalid, "start", "[%d,%d) reaches beyond ±2^42 s", b.Start, b.End)
	case b.NPE < 1 || b.NPE > size:
		return berth.Errorf(berth.Invalid, "npe", "%d is not between 1 and the calendar's %d PEs", b.NPE, size)
	case binding == berth.Late:
		return nil
	case b.PEs.Count() != b.NPE:
		return berth.Errorf(berth.Invalid, "pes", "%q has %d PEs, not %d", b.PEs, b.PEs.Count(), b.NPE)
	case b.PEs.Max() >= berth.PE(size):
		return berth.Errorf(berth.Invalid, "pes", "%d is not below the calendar's %d PEs", b.PEs.Max(), size)
	}
	return nil
}

// The refusals of Remove for a block that is booked throughout.

func notBegun(b *Block) error {
	return berth.Errorf(berth.Conflict, "start", "some of the %d PEs are in no booking that begins at %d", b.NPE, b.Start)
}

func notEnded(b *Block) error {
	return berth.Errorf(berth.Conflict, "end", "some of the %d PEs are in no booking that ends at %d", b.NPE, b.End)
}

func parted(b *Block, at berth.Time) error {
	return berth.Errorf(berth.Conflict, "pes", "some of the %d PEs are in one booking until %d and in another from then on", b.NPE, at)
}
