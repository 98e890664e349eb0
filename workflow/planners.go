package workflow

import (
	"maps"
	"strings"

	"github.com/berth-hpc/berth"
)

// Planner is a way to plan a workflow. Goal says what it is asked for.
type Planner struct {
	Name  string
	About string
	Goal  Goal
	how   method
}

// method is how a planner goes about it.
type method interface {
	// plan places all tasks to end by due, which is Forever for a planner
	// for the earliest end without a deadline. It returns what the plan
	// says of λ, and false if it found none.
	plan(in *Instance, due berth.Time, out []Placement) (lambda int, ok bool)

	// parts are the methods that it is made of: itself, or those that it takes plans of.
	parts() []method
}

// part is a method that takes no plan of others.
type part interface {
	// ready computes what plan needs whatever is booked and by when, and what other planners may
	// need too. ours says that it comes of our allotment alone, else it does of CPA's.
	ready(in *Instance)
	ours() bool
}

// Ready computes what planners have in common, of CPA's allotments and of our own one with both, which
// runs two functions, perhaps at once. Problem.Stop is then asked by both. Planning does it by itself, one after the
// other, where Ready was not called. The plans are the same.
func (in *Instance) Ready(planners []Planner, both func(a, b func())) {
	if in.problem.Plain {
		return
	}
	other := *in
	other.whole, other.allots, other.orders, other.starts = nil, maps.Clone(in.allots), maps.Clone(in.orders), maps.Clone(in.starts)
	some := func(in *Instance, ours bool) func() {
		return func() {
			for _, p := range planners {
				for _, m := range p.how.parts() {
					if one, is := m.(part); is && one.ours() == ours {
						one.ready(in)
					}
				}
			}
		}
	}
	both(some(in, false), some(&other, true))
	maps.Copy(in.allots, other.allots)
	maps.Copy(in.orders, other.orders)
	maps.Copy(in.starts, other.starts)
}

// Goal is what a planner aims at.
type Goal string

// The goals.
const (
	Finish   Goal = "finish"   // the earliest end
	Deadline Goal = "deadline" // few CPU-hours by a deadline
)

// Planners is the table of planners, by the names that commands and files use.
// The first four order tasks as bl-cpar does; the others of that family are
// named after their order and their bound. In the names, bl stands for what
// bottom levels are computed with and bd for the bound on a task's PEs: 1, all
// PEs, half of them, what CPA allots on all (cpa), or on as many as were free on
// average in the past (cpar).
var Planners = []Planner{
	{"bd-all", "earliest end of each task, on any number of PEs", Finish, forward{cpar, fixedAll}},
	{"bd-half", "earliest end of each task, on half of the PEs at most", Finish, forward{cpar, half}},
	{"bd-cpa", "earliest end of each task, within what CPA allots on all PEs", Finish, forward{cpar, cpa}},
	{"bd-cpar", "earliest end of each task, within what CPA allots on the PEs free on average", Finish, forward{cpar, cpar}},
	{"dl-bd-all", "latest start of each task, on any number of PEs", Deadline, backward{fixedAll, fixed1, 0, 0}},
	{"dl-bd-cpa", "latest start of each task, within what CPA allots on all PEs", Deadline, backward{cpa, fixed1, 0, 0}},
	{"dl-bd-cpar", "latest start of each task, within what CPA allots on the PEs free on average", Deadline, backward{cpar, fixed1, 0, 0}},
	{"dl-rc-cpa", "fewest PEs that leave the tasks before the time that CPA needs on all PEs", Deadline, backward{fixedAll, cpa, 0, 0}},
	{"dl-rc-cpar", "fewest PEs that leave the tasks before the time that CPA needs on the PEs free on average", Deadline, backward{fixedAll, cpar, 0, 0}},
	{"dl-rc-cpar-lambda", "dl-rc-cpar, with reserves widened until a plan is found", Deadline, backward{fixedAll, cpar, twentieths, 0}},
	{"dl-rcbd-cpar-lambda", "dl-rc-cpar-lambda, where tasks without reserve stay within what CPA allots", Deadline, backward{cpar, cpar, twentieths, 0}},
	{"bl-1/bd-all", "bd-all, in the order of bottom levels on 1 PE", Finish, forward{fixed1, fixedAll}},
	{"bl-1/bd-half", "bd-half, in the order of bottom levels on 1 PE", Finish, forward{fixed1, half}},
	{"bl-1/bd-cpa", "bd-cpa, in the order of bottom levels on 1 PE", Finish, forward{fixed1, cpa}},
	{"bl-1/bd-cpar", "bd-cpar, in the order of bottom levels on 1 PE", Finish, forward{fixed1, cpar}},
	{"bl-all/bd-all", "bd-all, in the order of bottom levels on all PEs", Finish, forward{fixedAll, fixedAll}},
	{"bl-all/bd-half", "bd-half, in the order of bottom levels on all PEs", Finish, forward{fixedAll, half}},
	{"bl-all/bd-cpa", "bd-cpa, in the order of bottom levels on all PEs", Finish, forward{fixedAll, cpa}},
	{"bl-all/bd-cpar", "bd-cpar, in the order of bottom levels on all PEs", Finish, forward{fixedAll, cpar}},
	{"bl-cpa/bd-all", "bd-all, in the order of bottom levels under bd-cpa's bound", Finish, forward{cpa, fixedAll}},
	{"bl-cpa/bd-half", "bd-half, in the order of bottom levels under bd-cpa's bound", Finish, forward{cpa, half}},
	{"bl-cpa/bd-cpa", "bd-cpa, in the order of bottom levels under its bound", Finish, forward{cpa, cpa}},
	{"bl-cpa/bd-cpar", "bd-cpar, in the order of bottom levels under bd-cpa's bound", Finish, forward{cpa, cpar}},
	{"bd-mcpar", "earliest end of each task, within what MCPA allots on the PEs free on average", Finish, forward{mcpar, mcpar}},
	{"icaslb", "allocation and schedule in one: tasks of the critical path grow while a look-ahead on the calendar ends earlier", Finish, integrated{}},
	{"bd-thrift", "ours: earliest end of each task, within an allotment that pays least for the time it saves", Finish, forward{thrift, thrift}},
	{"dl-thrift-lambda", "ours: dl-rc-cpar-lambda, with reserves, order and bound of bd-thrift's allotment", Deadline, backward{thrift, thrift, twentieths, 0}},
	{"bd-portfolio", "ours: plans with bd-thrift, bd-cpar, bd-cpa and bd-all and takes the earliest end at a quarter more than the fewest CPU-hours", Finish, portfolio{Finish, []method{forward{thrift, thrift}, forward{cpar, cpar}, forward{cpar, cpa}, forward{cpar, fixedAll}}}},
	{"dl-portfolio", "ours: plans with dl-thrift-lambda, dl-rcbd-cpar-lambda and dl-rc-cpar-lambda and takes the fewest CPU-hours", Deadline, portfolio{Deadline, []method{backward{thrift, thrift, twentieths, 0}, backward{cpar, cpar, twentieths, 0}, backward{fixedAll, cpar, twentieths, 0}}}},
}

// PlannerNamed returns the planner of that name. The full names of the first
// four, such as bl-cpar/bd-cpar, are understood too.
func PlannerNamed(name string) (Planner, bool) {
	short, full := strings.CutPrefix(name, "bl-cpar/")
	for _, p := range Planners {
		if p.Name != short {
			continue
		}
		if f, is := p.how.(forward); !full || is && f.levels == cpar {
			return p, true
		}
	}
	return Planner{}, false
}

// Plan plans the workflow with a planner. A deadline of berth.Forever is none;
// planners for a deadline need one, the others are refused if they end after
// it. It returns a plan or a refusal, or an error of code Invalid if there is
// no deadline where one is needed, or it has passed or lies beyond
// berth.TimeLimit.
//
// With a refusal comes the tightest deadline that the planner itself or one of
// the bd planners reaches (see Tightest); that search costs some thirty plans.
func (in *Instance) Plan(p Planner, deadline berth.Time) (Plan, *Refusal, error) {
	if err := in.checkDeadline(p, deadline); err != nil {
		return Plan{}, nil, err
	}
	if plan, ok := in.try(p, deadline); ok {
		return plan, nil, nil
	}
	return Plan{}, in.refuse(p, deadline), nil
}

func (in *Instance) checkDeadline(p Planner, deadline berth.Time) error {
	switch {
	case deadline == berth.Forever && p.Goal == Deadline:
		return berth.Errorf(berth.Invalid, "deadline", "missing; %s plans backwards from one", p.Name)
	case deadline == berth.Forever:
		return nil
	case !deadline.Valid():
		return berth.Errorf(berth.Invalid, "deadline", "%d is beyond ±2^42 s", deadline)
	case deadline <= in.now:
		return berth.Errorf(berth.Invalid, "deadline", "%d is not after now, %d; no plan can end before %d", deadline, in.now, in.bound)
	}
	return nil
}

// Try is Plan without that search: a plan, or false where Plan would refuse or
// return an error.
func (in *Instance) Try(p Planner, deadline berth.Time) (Plan, bool) {
	if in.checkDeadline(p, deadline) != nil {
		return Plan{}, false
	}
	return in.try(p, deadline)
}

// try makes a plan that ends by the deadline, or none.
func (in *Instance) try(p Planner, deadline berth.Time) (Plan, bool) {
	if in.problem.stopped() {
		return Plan{}, false
	}
	plan := Plan{Planner: p.Name, Tasks: make([]Placement, in.w.Len())}
	var ok bool
	if plan.Lambda, ok = p.how.plan(in, deadline, plan.Tasks); !ok {
		return Plan{}, false
	}
	plan.sum(in.now)
	return plan, plan.End(in.now) <= deadline
}
