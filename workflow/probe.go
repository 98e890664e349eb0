package workflow

import (
	"fmt"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Reserver is a site that hides its calendar: it takes a block or refuses it,
// and takes back what it gave.
type Reserver interface {
	// Reserve books the block, or reports false.
	Reserve(calendar.Block) bool
	// Cancel gives a reserved block back.
	Cancel(calendar.Block)
}

// Probing plans on a site of Size PEs that hides its calendar, by asking for
// reservations (trial and error; future work of Aida and Casanova, section 6).
// The calendar of the problem is neither needed nor looked at.
type Probing struct {
	Problem Problem
	Size    berth.Count
	Site    Reserver
	Budget  int // requests for each task, at least 1; 0 stands for 32
}

// GaveUp says why no plan was made: a task's budget was spent without a
// reservation. Everything reserved before has been given back.
type GaveUp struct {
	Task   int
	ID     string
	Probes int // requests for all tasks
}

// String says who got nothing.
func (g *GaveUp) String() string {
	return fmt.Sprintf("task %q got no reservation; %d were asked for in all", g.ID, g.Probes)
}

// defaultBudget pays for halving 2^20 PEs, and a dozen requests more.
const defaultBudget = 32

// Plan reserves all tasks at the site, or none, and returns the plan and how
// many reservations were asked for.
//
// Tasks go in the order of bd-cpar and within its bound. Each asks for a start
// when its parents have ended, with the bound, half of that, and so on down to
// one PE (or the fewest it runs on), each time with no more PEs than that run time needs; if all are refused, later and later, at distances that double, for as
// many PEs as the bound and for one in turn. What is left of the budget is spent
// on moving the start forward by halves towards the last one refused.
func (b *Probing) Plan() (plan Plan, probes int, failed *GaveUp, err error) {
	if b.Size < 1 || b.Size > berth.MaxPEs {
		return Plan{}, 0, nil, berth.Errorf(berth.Invalid, "pes", "%d; want 1 to %d PEs", b.Size, berth.MaxPEs)
	}
	if b.Budget < 0 {
		return Plan{}, 0, nil, berth.Errorf(berth.Invalid, "budget", "%d; want at least 1 request for each task", b.Budget)
	}
	problem := b.Problem
	problem.Calendar = calendar.NewFast(b.Size, berth.Late) // empty: only its size is known
	in, err := Prepare(problem)
	if err != nil {
		return Plan{}, 0, nil, err
	}
	plan = Plan{Planner: "probing", Tasks: make([]Placement, in.w.Len())}
	order, bound := in.order(cpar), in.allot(cpar)
	for k, i := range order {
		t := prober{site: b.Site, curve: &in.curves[i], left: b.Budget}
		if t.left == 0 {
			t.left = defaultBudget
		}
		t.search(in.ready(i, plan.Tasks), bound[i])
		probes += t.asked
		if t.best.npe == 0 {
			for _, done := range order[:k] {
				at := &plan.Tasks[done]
				b.Site.Cancel(calendar.Block{Start: at.Start, End: at.End, NPE: at.NPE})
			}
			return Plan{}, probes, &GaveUp{Task: int(i), ID: in.w.tasks[i].ID, Probes: probes}, nil
		}
		plan.Tasks[i] = t.best.of(i)
	}
	plan.sum(in.now)
	return plan, probes, nil, nil
}

// prober asks for one task's reservation.
type prober struct {
	site        Reserver
	curve       *curve
	left, asked int
	best        fit // held at the site; without PEs if there is none
}

// ask asks for n PEs from start on, and gives back what was held if it gets
// them.
func (t *prober) ask(start berth.Time, n berth.Count) bool {
	if t.left == 0 {
		return false
	}
	t.left--
	t.asked++
	at := fit{start, start.Add(t.curve.duration(n)), n}
	if !t.site.Reserve(calendar.Block{Start: at.start, End: at.end, NPE: at.npe}) {
		return false
	}
	if t.best.npe > 0 {
		t.site.Cancel(calendar.Block{Start: t.best.start, End: t.best.end, NPE: t.best.npe})
	}
	t.best = at
	return true
}

func (t *prober) search(ready berth.Time, bound berth.Count) {
	few := t.curve.few()
	for n := bound; n >= few; n /= 2 {
		n, _ = t.curve.least(t.curve.duration(n), n)
		if t.ask(ready, n) {
			return // fewer PEs would end later
		}
	}
	bound, _ = t.curve.least(t.curve.duration(bound), bound)
	refused := ready
	for step := t.curve.duration(bound); t.left > 0; step *= 2 {
		start := ready.Add(step)
		if !start.Valid() || t.ask(start, bound) || bound > few && t.ask(start, few) {
			break
		}
		refused = start
	}
	if t.best.npe == 0 {
		return
	}
	for t.left > 0 && t.best.start-refused > 1 {
		mid := refused + (t.best.start-refused)/2
		if !t.ask(mid, t.best.npe) {
			refused = mid
		}
	}
}
