package workflow_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
	"pgregory.net/rapid"
)

// Where specification 2 is tested:
//
//	b.9, both examples         TestWorkedExample, TestWorkedExampleWithSerialFractions, TestAllocations,
//	                           and as typed: TestPlanWorkedExample of cmd/berth
//	J1 J2 J3 J4 J11 J12        TestPlansKeepTheirPromises; whole plans on real logs: TestEveryPlanIsValid of cmd/berth
//	J5 J6 J7                   TestEachTaskIsPlacedBest
//	J8, X10 (λ = 1)            TestAllReserveGivenUpIsTheFallback
//	J9                         TestAllocationsGrowTogether
//	J10                        TestLooseDeadlinesCostLeast
//	J11, booking               TestBookIsAtomic, TestReplanOnAChangedCalendar, TestProbing, TestGrid
//	X3                         TestOneTaskIsARigidRequest
//	X4                         TestChainOnOnePE
//	fast form = plain form     TestFastEqualsPlain, TestTightestEqualsPlain, TestAllocationsEqualPlain,
//	                           TestICASLBEqualsItsDefinition (-instances N)
//	Tables 4, 6 and 7          TestShapesOfTable4, TestShapesOfTables6And7

// drawProblem draws a random problem; a failing one is named by its seed.
func drawProblem(t *rapid.T, maxTasks int) workflow.Problem {
	seed := rapid.Uint64().Draw(t, "seed")
	return randomProblem(rand.New(rand.NewPCG(seed, 0)), rapid.IntRange(1, maxTasks).Draw(t, "tasks"))
}

// deadlineFor draws a deadline for planners that need one.
func deadlineFor(t *rapid.T, p workflow.Problem, planner workflow.Planner) berth.Time {
	if planner.Goal == workflow.Finish {
		return berth.Forever
	}
	return p.Now + 1 + berth.Time(rapid.IntRange(0, 4000).Draw(t, "window"))
}

func must(t *rapid.T, p workflow.Problem) *workflow.Instance {
	in, err := workflow.Prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// What every plan promises (specification 2, b.8): J1 one reservation per task
// of the right length, J2 precedence, J3 capacity together with the bookings,
// J4 nothing before now or after the deadline, J11 the calendar untouched,
// whether there is a plan or not, J12 the same answer twice and whatever was
// asked before.
func TestPlansKeepTheirPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 12)
		before := slices.Collect(problem.Calendar.Records())
		shared := must(t, problem)
		for _, p := range workflow.Planners {
			deadline := deadlineFor(t, problem, p)
			plan, ok := shared.Try(p, deadline)
			again, okAgain := must(t, problem).Try(p, deadline)
			if ok != okAgain || !slices.Equal(plan.Tasks, again.Tasks) {
				t.Fatalf("%s: %+v, alone %+v", p.Name, plan, again)
			}
			if ok {
				checkPlan(t, problem, p, deadline, plan)
			}
		}
		if !slices.EqualFunc(before, slices.Collect(problem.Calendar.Records()), sameRecord) {
			t.Fatal("planning changed the calendar")
		}
	})
}

func sameRecord(a, b calendar.Record) bool { return a.Time == b.Time && a.Free == b.Free }

func checkPlan(t *rapid.T, problem workflow.Problem, p workflow.Planner, deadline berth.Time, plan workflow.Plan) {
	w := problem.Workflow
	if len(plan.Tasks) != w.Len() || plan.Planner != p.Name {
		t.Fatalf("%s: %d placements by %s", p.Name, len(plan.Tasks), plan.Planner)
	}
	trial := copied(problem.Calendar)
	end, cpu := problem.Now, int64(0)
	for i, at := range plan.Tasks {
		switch {
		case at.Task != i:
			t.Fatalf("%s: placement %d is of task %d", p.Name, i, at.Task)
		case at.NPE < 1 || at.NPE > trial.Size() || at.End-at.Start != berth.Time(w.Task(i).Duration(at.NPE)):
			t.Fatalf("%s: task %d: %+v, which takes %d s", p.Name, i, at, w.Task(i).Duration(max(1, at.NPE)))
		case at.Start < problem.Now || at.End > deadline:
			t.Fatalf("%s: task %d: %+v outside [%d,%d)", p.Name, i, at, problem.Now, deadline)
		}
		for _, parent := range w.Parents(i) {
			if plan.Tasks[parent].End > at.Start {
				t.Fatalf("%s: task %d starts at %d, its parent %d ends at %d", p.Name, i, at.Start, parent, plan.Tasks[parent].End)
			}
		}
		if err := trial.Add(calendar.Block{Start: at.Start, End: at.End, NPE: at.NPE}); err != nil {
			t.Fatalf("%s: task %d: %v", p.Name, i, err)
		}
		end, cpu = max(end, at.End), cpu+int64(at.NPE)*int64(at.End-at.Start)
	}
	if plan.Turnaround != berth.Duration(end-problem.Now) || plan.CPUSeconds != cpu {
		t.Fatalf("%s: turn-around %d, %d CPU-s; the tasks say %d, %d", p.Name, plan.Turnaround, plan.CPUSeconds, end-problem.Now, cpu)
	}
}

// bounds are the bounds of the planners that have one, by name.
func bounds(t *rapid.T, in *workflow.Instance) map[string][]berth.Count {
	alloc := func(a workflow.Allocation, q berth.Count) []berth.Count {
		npe, err := in.Allocate(a, q)
		if err != nil {
			t.Fatal(err)
		}
		return npe
	}
	n := len(alloc(workflow.CPA, 1))
	all, half := slices.Repeat([]berth.Count{in.Size()}, n), slices.Repeat([]berth.Count{max(1, in.Size()/2)}, n)
	cpa, cpar := alloc(workflow.CPA, in.Size()), alloc(workflow.CPA, in.Free())
	return map[string][]berth.Count{
		"bd-all": all, "bd-half": half, "bd-cpa": cpa, "bd-cpar": cpar, "dl-bd-all": all, "dl-bd-cpa": cpa, "dl-bd-cpar": cpar,
		"bd-mcpar": alloc(workflow.MCPA, in.Free()), "bd-thrift": alloc(workflow.Thrift, in.Free()),
	}
}

// J5 no task exceeds its bound; J6 when a task was placed, no other number of
// PEs would have ended earlier, or as early with fewer; J7 planning backwards,
// none would have started later, or as late with fewer. The calendar's answers
// are the judge.
func TestEachTaskIsPlacedBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 10)
		in := must(t, problem)
		for name, bound := range bounds(t, in) {
			p, _ := workflow.PlannerNamed(name)
			deadline := deadlineFor(t, problem, p)
			plan, ok := in.Try(p, deadline)
			if !ok {
				continue
			}
			by := workflow.OrderOf(in, name)
			if p.Goal == workflow.Deadline {
				slices.Reverse(by)
			}
			trial := copied(problem.Calendar)
			for _, i := range by {
				at := plan.Tasks[i]
				if at.NPE > bound[i] {
					t.Fatalf("%s: task %d has %d PEs, its bound is %d", name, i, at.NPE, bound[i])
				}
				for m := berth.Count(1); m <= bound[i]; m++ {
					if better(problem, plan, trial, deadline, int(i), m) {
						t.Fatalf("%s: task %d: %d PEs beat %+v", name, i, m, at)
					}
				}
				if err := trial.Add(calendar.Block{Start: at.Start, End: at.End, NPE: at.NPE}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// better reports whether m PEs would have been a better choice for a task.
func better(problem workflow.Problem, plan workflow.Plan, trial calendar.Reader, deadline berth.Time, i int, m berth.Count) bool {
	at, w := plan.Tasks[i], problem.Workflow
	q := calendar.Query{Now: problem.Now, Ready: problem.Now, Deadline: deadline, Duration: w.Task(i).Duration(m), NPE: m}
	if deadline == berth.Forever {
		for _, parent := range w.Parents(i) {
			q.Ready = max(q.Ready, plan.Tasks[parent].End)
		}
		fit, ok := calendar.Earliest(trial, q)
		return ok && (fit.End < at.End || fit.End == at.End && m < at.NPE)
	}
	for _, child := range w.Children(i) {
		q.Deadline = min(q.Deadline, plan.Tasks[child].Start)
	}
	fit, ok := latest(trial, q)
	return ok && (fit.Start > at.Start || fit.Start == at.Start && m < at.NPE)
}

// latest returns the latest feasible start of a query with a deadline: that of
// the window, or as long before a record as the query lasts.
func latest(c calendar.Reader, q calendar.Query) (calendar.Fit, bool) {
	d := berth.Time(q.Duration)
	starts := []berth.Time{q.Deadline - d}
	for r := range c.Records() {
		starts = append(starts, r.Time-d)
	}
	slices.Sort(starts)
	for _, start := range slices.Backward(starts) {
		if start < q.Ready || start > q.Deadline-d {
			continue
		}
		if free, _ := c.Free(berth.Interval{Start: start, End: start + d}); free >= q.NPE {
			return calendar.Fit{Start: start, End: start + d}, true
		}
	}
	return calendar.Fit{}, false
}

// J9: while the cap does not bind, more PEs give no task fewer, and neither
// does a stopping rule that waits longer.
func TestAllocationsGrowTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 12)
		q := berth.Count(rapid.IntRange(1, 60).Draw(t, "q"))
		var before []berth.Count
		for _, e := range []workflow.Epsilon{workflow.Zero, workflow.Half, workflow.One} {
			problem.Epsilon = e
			in := must(t, problem)
			few, err := in.Allocate(workflow.CPA, q)
			if err != nil {
				t.Fatal(err)
			}
			more, err := in.Allocate(workflow.CPA, q+berth.Count(rapid.IntRange(0, 40).Draw(t, "more")))
			if err != nil {
				t.Fatal(err)
			}
			for i := range few {
				if before != nil && before[i] > few[i] {
					t.Fatalf("epsilon %d gives task %d %d PEs, less than %d", e, i, few[i], before[i])
				}
				if slices.Max(few) < q && few[i] > more[i] {
					t.Fatalf("%d PEs give task %d %d PEs, more give it %d", q, i, few[i], more[i])
				}
			}
			before = few
		}
	})
}

// J10: by a very late deadline the resource conservative planners run every
// task on one PE, the cheapest way there is.
func TestLooseDeadlinesCostLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 12)
		in := must(t, problem)
		for _, name := range []string{"dl-rc-cpa", "dl-rc-cpar", "dl-rc-cpar-lambda", "dl-rcbd-cpar-lambda"} {
			p, _ := workflow.PlannerNamed(name)
			plan, ok := in.Try(p, problem.Now+1_000_000)
			if !ok {
				t.Fatalf("%s finds no plan", name)
			}
			for _, at := range plan.Tasks {
				if at.NPE != 1 {
					t.Fatalf("%s: %+v", name, at)
				}
			}
		}
	})
}

// X10: with λ = 1 nothing is left for the reserve, so the fallback decides.
// The paper says that dl-rc-cpar-lambda then is dl-bd-cpa; it is dl-bd-all.
func TestAllReserveGivenUpIsTheFallback(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 12)
		in := must(t, problem)
		deadline := problem.Now + 1 + berth.Time(rapid.IntRange(0, 3000).Draw(t, "window"))
		for name, fallback := range map[string]string{"dl-rc-cpar-lambda": "dl-bd-all", "dl-rcbd-cpar-lambda": "dl-bd-cpar"} {
			got, gotOK := workflow.AtLambda(in, name, deadline, 20)
			p, _ := workflow.PlannerNamed(fallback)
			want, wantOK := in.Try(p, deadline)
			if gotOK != wantOK || wantOK && !slices.Equal(got, want.Tasks) {
				t.Fatalf("%s at λ = 1: %v %v; %s: %v %v", name, gotOK, got, fallback, wantOK, want.Tasks)
			}
		}
	})
}

// A planner that begins with a step of λ makes the plan of the first step from there on that
// succeeds, and one that widens no reserve is as it was.
func TestPlannersBeginWithAStepOfLambda(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 8)
		in := must(t, problem)
		deadline := problem.Now + 1 + berth.Time(rapid.IntRange(0, 3000).Draw(t, "window"))
		first := rapid.IntRange(-1, 21).Draw(t, "first")
		for _, name := range []string{"dl-rc-cpar-lambda", "dl-rcbd-cpar-lambda", "dl-thrift-lambda"} {
			p, _ := workflow.PlannerNamed(name)
			got, ok := in.Try(p.From(first), deadline)
			for step := min(max(first, 0), 20); ; step++ {
				if step > 20 {
					if ok {
						t.Fatalf("%s from %d: a plan at step %d, and no step has one", name, first, got.Lambda)
					}
					break
				}
				want, succeeds := workflow.AtLambda(in, name, deadline, step)
				if !succeeds {
					continue
				}
				if !ok || got.Lambda != step || !slices.Equal(got.Tasks, want) {
					t.Fatalf("%s from %d: %v at step %d, want %v at %d", name, first, got.Tasks, got.Lambda, want, step)
				}
				break
			}
		}
		p, _ := workflow.PlannerNamed("dl-rc-cpar")
		got, ok := in.Try(p.From(first), deadline)
		want, wantOK := in.Try(p, deadline)
		if ok != wantOK || ok && !slices.Equal(got.Tasks, want.Tasks) {
			t.Fatalf("dl-rc-cpar from %d is another plan", first)
		}
	})
}

// X3: a workflow of one task that gains nothing from more PEs is a rigid
// request of one PE: its earliest end is first fit, its latest start the last
// one at which the calendar has a PE free.
func TestOneTaskIsARigidRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 1)
		seconds := rapid.IntRange(1, 500).Draw(t, "seconds")
		w, err := workflow.New([]workflow.Task{{ID: "a", Sequential: float64(seconds), Alpha: 1}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		problem.Workflow = w
		in := must(t, problem)
		for _, p := range workflow.Planners {
			deadline := deadlineFor(t, problem, p)
			q := calendar.Query{Now: problem.Now, Ready: problem.Now, Deadline: deadline, Duration: berth.Duration(seconds), NPE: 1}
			fit, fits := calendar.Earliest(problem.Calendar, q)
			if p.Goal == workflow.Deadline {
				fit, fits = latest(problem.Calendar, q)
			}
			plan, ok := in.Try(p, deadline)
			if ok != fits || ok && plan.Tasks[0] != (workflow.Placement{NPE: 1, Start: fit.Start, End: fit.End}) {
				t.Fatalf("%s: %v %+v, a rigid request %v %+v", p.Name, ok, plan.Tasks, fits, fit)
			}
		}
	})
}

// X4: on one PE a chain is a sequence of requests, each ready when the one
// before has ended.
func TestChainOnOnePE(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		c := calendar.NewPlain(1, berth.Late)
		randomBookings(rng, c, 0, 20)
		var tasks []workflow.Task
		var edges []workflow.Edge
		for i := range 6 {
			tasks = append(tasks, workflow.Task{ID: string(rune('a' + i)), Sequential: float64(1 + rng.IntN(200)), Alpha: rng.Float64()})
			if i > 0 {
				edges = append(edges, workflow.Edge{Parent: tasks[i-1].ID, Child: tasks[i].ID})
			}
		}
		w, err := workflow.New(tasks, edges)
		if err != nil {
			t.Fatal(err)
		}
		in := must(t, workflow.Problem{Workflow: w, Calendar: c})
		var want []workflow.Placement
		ready := berth.Time(0)
		for i := range tasks {
			fit, _ := calendar.Earliest(c, calendar.Query{Ready: ready, Deadline: berth.Forever, Duration: tasks[i].Duration(1), NPE: 1})
			want = append(want, workflow.Placement{Task: i, NPE: 1, Start: fit.Start, End: fit.End})
			ready = fit.End
		}
		for _, p := range workflow.Planners {
			if p.Goal != workflow.Finish {
				continue
			}
			if plan, ok := in.Try(p, berth.Forever); !ok || !slices.Equal(plan.Tasks, want) {
				t.Fatalf("%s: %+v, want %+v", p.Name, plan.Tasks, want)
			}
		}
	})
}
