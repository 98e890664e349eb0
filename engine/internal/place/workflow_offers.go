package place

import (
	"cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
)

// WorkflowOffer is what a deadline costs: the plan that takes the fewest PE-seconds by it.
type WorkflowOffer struct {
	Deadline  berth.Time
	Planner   string
	End       berth.Time
	PESeconds int64
	Critical  []int // tasks of its critical path, in order of time
}

// WorkflowOffers returns at most n points of the curve of deadlines against PE-seconds:
// first the tightest deadline for which any of the planners finds a plan in any pool, then
// deadlines that are further and further off, each with the cheapest plan. Plans that exceed a
// limit of the user are not offered, for they would be refused. It is empty if no planner finds
// any other.
func (f *Finder) WorkflowOffers(w *berth.Workflow, most int, p *Planning) []WorkflowOffer {
	t := f.state.Try()
	defer t.Close()
	defer f.free()
	f.clear(t, nil)
	asked := *w
	asked.Algorithm, asked.Deadline = berth.BestAlgorithm, berth.TimeLimit-1
	all, _ := f.groundsOf(t, &asked, f.narrows(w), p)
	var offers []WorkflowOffer
	soonestEnd := berth.Forever // of any plan, within the limits or not
	placed := func(g *grounds, s *sketch) *WorkflowPlan {
		mark := t.Mark()
		defer t.Undo(mark)
		return f.placeAll(t, &asked, g, s)
	}
	// cheapest returns the best of the plans that a way to plan finds.
	cheapest := func(deadline berth.Time, soonest bool, plan func(*grounds, workflow.Planner) (sketch, bool)) *WorkflowOffer {
		var best *WorkflowOffer
		var on *grounds // that best is on
		asked.Deadline = deadline
		for _, g := range all {
			at := 0
			for _, k := range p.turns(g.planners) {
				if p.ends() {
					return best
				}
				planner := g.planners[k]
				made, ok := plan(g, planner)
				if !ok {
					continue
				}
				found := placed(g, &made)
				if soonest && found != nil { // by that end the planner may plan otherwise
					asked.Deadline = found.End
					if made, ok = g.plan(planner, found.End); ok {
						found = placed(g, &made)
					}
					asked.Deadline = deadline
				}
				if found == nil || !ok {
					continue
				}
				if soonestEnd = min(soonestEnd, found.End); f.overWorkflow(w, found) != nil {
					continue
				}
				o := &WorkflowOffer{Deadline: min(deadline, found.End), Planner: planner.Name, End: found.End, PESeconds: found.PESeconds, Critical: g.critical(&made)}
				if !soonest {
					o.Deadline = deadline
				}
				if best == nil || o.better(best, soonest) || on == g && k < at && !best.better(o, soonest) {
					best, on, at, p.found = o, g, k, true
				}
			}
		}
		return best
	}
	first := cheapest(berth.TimeLimit-1, true, (*grounds).tightest)
	if soonestEnd == berth.Forever || most < 1 {
		return nil
	}
	if first != nil {
		offers, soonestEnd = append(offers, *first), first.End
	}
	now := p.From
	span := soonestEnd.Sub(now)
	for k := range most - 1 {
		// 1.25, 1.5, 2, 3 and 5 times the turn-around of the tightest, and so on.
		deadline := now.Add(span + max(1, span*berth.Duration(int64(1)<<k)/4))
		if !deadline.Valid() {
			break
		}
		if o := cheapest(deadline, false, func(g *grounds, planner workflow.Planner) (sketch, bool) { return g.plan(planner, deadline) }); o != nil {
			offers = append(offers, *o)
		}
	}
	return offers
}

// better reports whether an offer is better than another: sooner, or else cheaper.
func (o *WorkflowOffer) better(other *WorkflowOffer, soonest bool) bool {
	end, cost := cmp.Compare(o.End, other.End), cmp.Compare(o.PESeconds, other.PESeconds)
	if soonest {
		return cmp.Or(end, cost) < 0
	}
	return cmp.Or(cost, end) < 0
}
