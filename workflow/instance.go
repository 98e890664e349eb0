package workflow

import (
	"math"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Problem is a workflow to be planned on one site.
type Problem struct {
	Workflow *Workflow
	Calendar calendar.Reader // of late binding
	Now      berth.Time      // nothing starts earlier

	// Free is the number of PEs that were free on average in the past (q in
	// the paper), on which the planners named CPAR base their allocations.
	// It is brought into 1..size, and is no less than the most PEs that a task
	// must have; 0 stands for the size.
	Free    berth.Count
	Epsilon Epsilon

	// Anew lets the planners that keep a reserve allot PEs anew to the tasks
	// that are left before each task is placed, rather than once to the whole
	// workflow. It is the other reading of Aida and Casanova's section 5.2.2,
	// for comparison: deadlines become two to three times looser
	// (docs/adr/0009).
	Anew bool

	// Plain plans by the paper's own steps, one after another and nothing
	// remembered. The plans are the same, much later.
	Plain bool

	// Stop, if given, is asked before each task is placed and before each step
	// of an allotment. Once it returns true no plan is found, and it has to
	// return true until the planner that asks has returned. Then the instance
	// may be used again. The plain form does not ask.
	Stop func() bool

	// Room, if given, is memory that the instance makes use of: from when it is prepared it
	// belongs to that instance alone, until the next one gets it.
	Room *Room
}

// Room is memory for what instances know of a calendar, which one uses after another: with ten thousand
// bookings a fifth of what planning allocates.
type Room struct {
	steps   steps   // what is free from now on, up to when it is known
	profile profile // what is free under the plan being made
}

// stopped reports whether planning is to end without a plan.
func (p *Problem) stopped() bool { return p.Stop != nil && p.Stop() }

// Epsilon is the exponent of the improved stopping rule of CPA: the average
// area is taken over q^ε·min(q,n)^(1−ε) PEs for n tasks (specification 2, b.2).
// Its three values are those for which that can be computed without rounding
// that differs between machines.
type Epsilon uint8

// The values of Epsilon.
const (
	Half Epsilon = iota // the geometric mean, the default
	One                 // the original rule of Radulescu and van Gemund
	Zero                // as many PEs as there are tasks, at most
)

// divisor returns the number of PEs over which the area of n tasks is averaged.
func (e Epsilon) divisor(q berth.Count, n int) float64 {
	few := min(int64(q), int64(n))
	switch {
	case e == One || few == int64(q):
		return float64(q)
	case e == Zero:
		return float64(few)
	default:
		return float64(math.Sqrt(float64(q)) * math.Sqrt(float64(few)))
	}
}

// Instance is a problem made ready for planning. It remembers what several
// planners, deadlines and probes have in common: allocations, orders, and the
// starts of CPA's own schedules. It reads the calendar while it plans, no further than it needs, so the calendar must not
// change as long as the instance is used. It is not safe for concurrent use.
type Instance struct {
	problem Problem
	w       *Workflow
	size, q berth.Count
	now     berth.Time
	curves  []curve
	fine    berth.Count // as growth.fine
	known   berth.Time  // nothing is known from then on
	room    *Room

	whole  *growth // of all tasks, see grown
	allots map[allotment][]berth.Count
	orders map[allotment][]int32
	starts map[allotment][]berth.Time // by what is kept free, see reserves
	bound  berth.Time                 // see lowerBound

	reached berth.Duration // see firstReach; 0 until it is asked for

	ways   map[allotment][]berth.Duration // see heads
	tries  []tried                        // see again
	oldest int                            // among tries
}

// allotment is a way to give each task a number of PEs.
type allotment uint8

const (
	fixed1   allotment = iota // 1
	fixedAll                  // as many as there are
	cpa                       // CPA on all PEs
	cpar                      // CPA on the PEs that were free on average
	half                      // half of all, at least 1
	mcpar                     // MCPA on the PEs that were free on average
	thrift                    // our rule on the same
)

// Prepare checks a problem. Errors, all of code Invalid: no workflow or no
// calendar, a calendar of early binding, a time beyond berth.TimeLimit, a
// negative number of free PEs, a task that needs more PEs than there are. Cost: O(n + e + records).
func Prepare(p Problem) (*Instance, error) {
	in, err := prepare(p)
	if err == nil {
		err = in.tooLarge()
	}
	if err != nil {
		return nil, err
	}
	return in, nil
}

// prepare is Prepare for a site that may be too small for some of the tasks.
func prepare(p Problem) (*Instance, error) {
	switch {
	case p.Workflow == nil:
		return nil, berth.Errorf(berth.Invalid, "workflow", "missing; there is nothing to plan")
	case p.Calendar == nil:
		return nil, berth.Errorf(berth.Invalid, "calendar", "missing; there is nothing to plan on")
	case p.Calendar.Binding() != berth.Late:
		return nil, berth.Errorf(berth.Invalid, "bind", "the pool binds PEs early; workflows are planned on counts, which need late binding")
	case !p.Now.Valid():
		return nil, berth.Errorf(berth.Invalid, "now", "%d is beyond ±2^42 s", p.Now)
	case p.Free < 0:
		return nil, berth.Errorf(berth.Invalid, "q", "%d; at least 1 PE was free on average", p.Free)
	case p.Epsilon > Zero:
		return nil, berth.Errorf(berth.Invalid, "epsilon", "%d; it is Half, One or Zero", p.Epsilon)
	}
	in := &Instance{
		problem: p, w: p.Workflow, size: p.Calendar.Size(), q: p.Free, now: p.Now,
		curves: make([]curve, p.Workflow.Len()), known: p.Now, room: p.Room,
		allots: map[allotment][]berth.Count{}, orders: map[allotment][]int32{},
		starts: map[allotment][]berth.Time{},
	}
	if in.room == nil {
		in.room = new(Room)
	}
	if in.q == 0 || in.q > in.size {
		in.q = in.size
	}
	for i := range in.curves {
		in.curves[i] = in.w.tasks[i].curve()
		// CPA's own schedule must have room for each task.
		in.q = max(in.q, min(in.curves[i].few(), in.size))
	}
	in.bound = in.lowerBound()
	if p.Plain {
		in.know(berth.Forever)
	}
	return in, nil
}

// know reads the calendar up to a time at least. From there on nothing counts as free. A place that a
// planner finds for a task is the one that it would find if everything were known: all others end later.
func (in *Instance) know(until berth.Time) {
	if until <= in.known {
		return
	}
	if until > berth.TimeLimit {
		until = berth.Forever
	}
	if in.known = until; !in.room.steps.read(in.problem.Calendar, in.now, until) {
		in.known = berth.Forever
	}
}

// firstLook returns up to when the calendar is read for a planner that has no deadline, before it needs to
// know more: up to twice the shortest time that a plan may take.
func firstLook(now, bound berth.Time) berth.Time {
	return now.Add(2 * max(bound.Sub(now), 1))
}

// begin makes the profile what is free, known for a first look at least.
func (in *Instance) begin() {
	in.know(firstLook(in.now, in.bound))
	in.room.profile.reset(&in.room.steps)
}

// further has twice as much of the calendar known as before, in the profile too; false if all of it is.
func (in *Instance) further() bool {
	if in.known == berth.Forever {
		return false
	}
	in.know(in.known.Add(in.known.Sub(in.now)))
	in.room.profile.extend(&in.room.steps)
	return true
}

// tooLarge returns an error about the first task that needs more PEs than there
// are.
func (in *Instance) tooLarge() error {
	for i := range in.curves {
		if few := in.curves[i].few(); few > in.size {
			return berth.Errorf(berth.Invalid, "pes", "task %q needs at least %d PEs, but there are %d", in.w.tasks[i].ID, few, in.size)
		}
	}
	return nil
}

// Size returns the PEs of the site, Free how many were free on average.
func (in *Instance) Size() berth.Count { return in.size }

// Free returns the historical average of free PEs that is used.
func (in *Instance) Free() berth.Count { return in.q }

// Bound returns a time before which no plan can end: the longest way through
// the workflow with all PEs for every task.
func (in *Instance) Bound() berth.Time { return in.bound }

func (in *Instance) lowerBound() berth.Time {
	npe := in.uniform(in.size)
	bl := make([]berth.Duration, in.w.Len())
	levels(in.w, in.curves, npe, nil, bl)
	longest := berth.Duration(0)
	for _, d := range bl {
		longest = max(longest, d)
	}
	return in.now.Add(longest)
}

// uniform gives each task n PEs, or the fewest it runs on if those are more.
func (in *Instance) uniform(n berth.Count) []berth.Count {
	npe := make([]berth.Count, in.w.Len())
	for i := range npe {
		npe[i] = max(n, in.curves[i].few())
	}
	return npe
}
