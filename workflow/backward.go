package workflow

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// backward is a planner that goes backwards from a deadline (RESSCHEDDL): it
// takes the tasks in reverse order of their bottom levels under CPAR and gives
// each the latest start that its children leave.
//
// Source: Aida and Casanova, section 5, as specified in spec 2, b.4 and b.5. A
// task's number of PEs is, for an aggressive planner (no reserve), the one
// within bound that starts last, ties to fewer PEs; with a reserve the fewest
// that start no earlier than CPA would on q empty PEs, and if there are none,
// as an aggressive planner within bound. Reserves are widened from that start
// towards the due time in twentieths of the way, until a plan is found or steps
// are through.
//
// Deviations: where the paper speaks of the earliest start after the reserve,
// the latest start for each number of PEs is meant, without which many
// deadlines however late fail. CPA allots PEs once, to the whole workflow (see
// reserves).
type backward struct {
	bound   allotment
	reserve allotment // cpa, cpar or thrift; fixed1 for none
	steps   int       // λ = 0, 1/20, … steps/20
	first   int       // the step that is tried first, 0 unless From says so
}

// levels is the allotment whose bottom levels order the tasks: as the published
// planners all do by that of CPAR, or ours by its own.
func (b backward) levels() allotment {
	if b.reserve == thrift {
		return thrift
	}
	return cpar
}

// twentieths is the number of steps of λ from 0 to 1.
const twentieths = 20

// plan places all tasks to end by due. It returns the step of λ at which it
// succeeded.
func (b backward) plan(in *Instance, due berth.Time, out []Placement) (int, bool) {
	if due < in.bound {
		return 0, false
	}
	for k := b.first; k <= b.steps; k++ {
		if b.attempt(in, due, k, out) {
			return k, true
		}
		if in.problem.stopped() {
			break
		}
	}
	return 0, false
}

// From returns a planner that begins to widen its reserve with a step of λ, in twentieths,
// which is kept wherever it succeeds. Planners that widen none are as they were.
//
// Source: Aida and Casanova, section 5.4, does not say whether the λ of the tightest deadline
// is kept by looser ones or searched again; this is the first reading, p itself the second.
func (p Planner) From(step int) Planner {
	if b, ok := p.how.(backward); ok && b.steps > 0 {
		b.first = min(max(step, 0), b.steps)
		p.how = b
	}
	return p
}

// anew tries one step of λ, and reports whether the bound made no difference. It gives up where a task
// starts too early for those before it, even with all PEs that they may get.
func (b backward) anew(in *Instance, deadline berth.Time, k int, out []Placement) (free, ok bool) {
	in.know(deadline)
	bound := in.allot(b.bound)
	var reserves []berth.Time
	most := b.bound
	if b.reserve != fixed1 {
		reserves = in.reserves(b)
		most = fixedAll // which is what fewest may give
	}
	before := in.heads(most)
	p := &in.room.profile
	p.reset(&in.room.steps)
	free = true
	for _, i := range slices.Backward(in.order(b.levels())) {
		if in.problem.stopped() {
			return false, false
		}
		due := deadline
		for _, child := range in.w.children.of(i) {
			due = min(due, out[child].Start)
		}
		at, ok := fit{}, false
		if reserves != nil {
			at, ok = p.fewest(&in.curves[i], max(in.now, reserve(reserves[i], due, k)), due, in.size)
		}
		if !ok {
			free = false
			at, ok = p.latest(&in.curves[i], in.now, due, bound[i])
		}
		if !ok || at.start < in.now.Add(before[i]) {
			return free, false
		}
		out[i] = at.of(i)
		p.take(at.start, at.end, at.npe)
	}
	return free, true
}

func (b backward) ready(in *Instance) {
	in.allot(b.bound)
	in.order(b.levels())
	if b.reserve != fixed1 {
		in.reserves(b)
	}
}

func (b backward) parts() []method { return []method{b} }

func (b backward) ours() bool { return b.reserve == thrift && b.bound == thrift }

// reserve returns the k-th twentieth of the way from start to due, rounded up.
func reserve(start, due berth.Time, k int) berth.Time {
	gap := int64(max(0, due-start))
	return start + berth.Time((int64(k)*gap+twentieths-1)/twentieths)
}

// basis returns the PEs that an allotment is made on, and its rule.
func (in *Instance) basis(a allotment) (berth.Count, rule) {
	switch a {
	case cpa:
		return in.size, steepest
	case thrift:
		return in.q, thrifty
	default:
		return in.q, steepest
	}
}
