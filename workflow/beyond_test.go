package workflow_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
	"pgregory.net/rapid"
)

// A plan that lost nothing is kept; one that lost some PEs moves the tasks that
// lost them, and those behind that cannot wait, and no others.
func TestReplan(t *testing.T) {
	problem := diamond(t, workflow.Half)
	in := prepare(t, problem)
	plan, _ := planned(t, in, "bd-half", berth.Forever) // 0+20×2 60+60×2 20+60×1 120+20×2
	for _, c := range []struct {
		name  string
		taken calendar.Block
		moved []int
		want  string
	}{
		{"nothing lost", calendar.Block{Start: 200, End: 300, NPE: 4}, nil, "0+20×2 60+60×2 20+60×1 120+20×2"},
		{"the last task", calendar.Block{Start: 120, End: 150, NPE: 3}, []int{3}, "0+20×2 60+60×2 20+60×1 120+40×1"},
		{"one in the middle", calendar.Block{Start: 60, End: 70, NPE: 2}, []int{1, 3}, "0+20×2 70+60×2 20+60×1 130+20×2"},
		{"none behind", calendar.Block{Start: 10, End: 80, NPE: 1}, []int{2}, "0+20×2 60+60×2 60+60×1 120+20×2"},
		{"the first, and one that need not wait", calendar.Block{Start: 0, End: 20, NPE: 3}, []int{0, 2}, "0+40×1 60+60×2 40+60×1 120+20×2"},
	} {
		problem.Calendar = booked(t, 4, calendar.Block{Start: 20, End: 60, NPE: 3}, c.taken)
		repaired, moved, refusal := prepare(t, problem).Replan(&plan, berth.Forever)
		if refusal != nil || !slices.Equal(moved, c.moved) || drawn(repaired) != c.want {
			t.Errorf("%s: moved %v to %s, want %v to %s", c.name, moved, drawn(repaired), c.moved, c.want)
		}
	}
	problem.Calendar, problem.Now = booked(t, 4, calendar.Block{Start: 20, End: 60, NPE: 3}), 5
	if repaired, moved, _ := prepare(t, problem).Replan(&plan, berth.Forever); !slices.Equal(moved, []int{0, 2}) {
		t.Errorf("too late for the first task: moved %v to %s", moved, drawn(repaired))
	}
	problem.Calendar, problem.Now = booked(t, 4, calendar.Block{Start: 0, End: 500, NPE: 3}), 0
	if _, _, refusal := prepare(t, problem).Replan(&plan, 250); refusal == nil || refusal.Planner != "bd-half" || refusal.Tightest != 260 {
		t.Errorf("refusal %v", refusal)
	}
}

// Whatever others book meanwhile, the repaired plan fits, and tasks that did
// not move are where they were.
func TestReplanOnAChangedCalendar(t *testing.T) {
	id := berth.PoolID("site", "pool")
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 12)
		p := workflow.Planners[rapid.IntRange(0, 3).Draw(t, "planner")]
		plan, _ := must(t, problem).Try(p, berth.Forever)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "others"), 0))
		live := copied(problem.Calendar)
		randomBookings(rng, live, problem.Now, 10)
		problem.Calendar = copied(live)
		draft := calendar.NewDraft(map[berth.ResourceID]calendar.Calendar{id: live})
		got, moved, refusal, err := plan.BookOrReplan(draft, id, problem, berth.Forever)
		if err != nil || refusal != nil {
			t.Fatalf("%v, %v", refusal, err)
		}
		checkPlan(t, problem, p, berth.Forever, got)
		for i, at := range got.Tasks {
			if at != plan.Tasks[i] && !slices.Contains(moved, i) {
				t.Fatalf("task %d moved from %+v to %+v and is not among %v", i, plan.Tasks[i], at, moved)
			}
		}
		all := berth.Interval{Start: problem.Now, End: got.End(problem.Now)}
		if booked := calendar.Booked(live, all) - calendar.Booked(problem.Calendar, all); booked != got.CPUSeconds {
			t.Fatalf("%d CPU-s booked, the plan has %d", booked, got.CPUSeconds)
		}
	})
}

func TestReplay(t *testing.T) {
	problem := diamond(t, workflow.Half)
	actual := problem.Workflow
	estimates, err := actual.Scaled(1.5)
	if err != nil {
		t.Fatal(err)
	}
	problem.Workflow = estimates
	plan, _ := planned(t, prepare(t, problem), "bd-all", berth.Forever) // 0+15 60+45 105+23 128+15, all ×4
	o := actual.Replay(&plan, 0)
	// 10, 30, 15 and 10 seconds on 4 PEs are used.
	if o.Turnaround != 138 || o.ReservedCPUSeconds != 4*98 || o.UsedCPUSeconds != 260 || o.Finished != 4 || o.CutOff != nil || o.Lost != nil {
		t.Errorf("estimates too long: %+v of %s", o, drawn(plan))
	}
	problem.Workflow = actual
	plan, _ = planned(t, prepare(t, problem), "bd-all", berth.Forever) // 0+10 60+30 90+15 105+10
	slower, err := workflow.New(
		[]workflow.Task{{ID: "0", Sequential: 40}, {ID: "1", Sequential: 130}, {ID: "2", Sequential: 20}, {ID: "3", Sequential: 40}},
		[]workflow.Edge{{"0", "1"}, {"0", "2"}, {"1", "3"}, {"2", "3"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	o = slower.Replay(&plan, 0)
	if o.Turnaround != 95 || o.UsedCPUSeconds != 40+120+20 || o.Finished != 2 || !slices.Equal(o.CutOff, []int{1}) || !slices.Equal(o.Lost, []int{3}) {
		t.Errorf("one task too slow: %+v", o)
	}
	for _, factor := range []float64{0, -1, math.NaN(), math.Inf(1), 1e12} {
		_, err := actual.Scaled(factor)
		wantField(t, err, "factor")
	}
}

// closed is a site that hides its calendar.
type closed struct {
	t        *rapid.T
	calendar calendar.Calendar
	asked    int
	held     int
}

func (c *closed) Reserve(b calendar.Block) bool {
	c.asked++
	if c.calendar.Add(b) != nil {
		return false
	}
	c.held++
	return true
}

func (c *closed) Cancel(b calendar.Block) {
	c.held--
	if err := c.calendar.Remove(b); err != nil {
		c.t.Fatalf("cancelled what was not held: %v", err)
	}
}

// Probing keeps to its budget, and holds all tasks at the site or none.
func TestProbing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 10)
		site := &closed{t: t, calendar: copied(problem.Calendar)}
		budget := rapid.IntRange(0, 40).Draw(t, "budget")
		probing := workflow.Probing{Problem: problem, Size: problem.Calendar.Size(), Site: site, Budget: budget}
		plan, probes, gaveUp, err := probing.Plan()
		if err != nil || probes != site.asked {
			t.Fatalf("%v; %d probes, the site counts %d", err, probes, site.asked)
		}
		if budget == 0 {
			budget = 32
		}
		if probes > budget*problem.Workflow.Len() {
			t.Fatalf("%d probes, the budget is %d a task", probes, budget)
		}
		if gaveUp != nil {
			if site.held != 0 || !slices.EqualFunc(slices.Collect(problem.Calendar.Records()), slices.Collect(site.calendar.Records()), sameRecord) {
				t.Fatalf("%s, and %d reservations are still held", gaveUp, site.held)
			}
			return
		}
		checkPlan(t, problem, workflow.Planner{Name: "probing"}, berth.Forever, plan)
		if site.held != problem.Workflow.Len() {
			t.Fatalf("%d reservations held for %d tasks", site.held, problem.Workflow.Len())
		}
	})
}

// On an empty site that is wide enough for the tasks that run together, every
// first request is granted, and the plan is bd-cpar's.
func TestProbingAnEmptySite(t *testing.T) {
	plans, granted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 10)
		problem.Calendar = calendar.NewPlain(1000, berth.Late)
		site := &closed{t: t, calendar: copied(problem.Calendar)}
		probing := workflow.Probing{Problem: problem, Size: 1000, Site: site}
		plan, probes, _, err := probing.Plan()
		bd, _ := workflow.PlannerNamed("bd-cpar")
		want, _ := must(t, problem).Try(bd, berth.Forever)
		if err != nil || probes < len(plan.Tasks) {
			t.Fatalf("%d probes, %+v; %v", probes, plan, err)
		}
		plans++
		if probes > len(plan.Tasks) {
			return // tasks that run together had to share
		}
		granted++
		if !slices.Equal(plan.Tasks, want.Tasks) {
			t.Fatalf("%+v, want %+v", plan, want)
		}
	})
	if !t.Failed() && granted < plans/2 {
		t.Errorf("first requests were all granted in %d of %d plans; want at least half, or this shows nothing", granted, plans)
	}
}

// No task holds PEs that do not make it shorter.
func TestProbingAsksForNoPEInVain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 10)
		site := &closed{t: t, calendar: copied(problem.Calendar)}
		probing := workflow.Probing{Problem: problem, Size: problem.Calendar.Size(), Site: site}
		plan, _, gaveUp, err := probing.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if gaveUp != nil {
			return
		}
		for _, task := range plan.Tasks {
			if task.NPE > 1 && problem.Workflow.Task(task.Task).Duration(task.NPE-1) == berth.Duration(task.End-task.Start) {
				t.Fatalf("task %d holds %d PEs for %d s; one less would take no longer", task.Task, task.NPE, task.End-task.Start)
			}
		}
	})
}

// One site of the usual speed whose q is all PEs is no grid.
func TestGridOfOneSite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 12)
		problem.Free = 0
		grid := workflow.Grid{
			Workflow: problem.Workflow, Now: problem.Now, Epsilon: problem.Epsilon, Sites: []workflow.Site{{Calendar: problem.Calendar}},
		}
		deadline := problem.Now + 1 + berth.Time(rapid.IntRange(0, 3000).Draw(t, "window"))
		for name, by := range map[string]berth.Time{"bd-cpar": berth.Forever, "dl-bd-cpar": deadline} {
			p, _ := workflow.PlannerNamed(name)
			want, wantOK := must(t, problem).Try(p, by)
			got, gotOK, err := grid.Plan(by)
			if err != nil || gotOK != wantOK {
				t.Fatalf("%s: %v, %v; a grid %v", name, wantOK, err, gotOK)
			}
			if bound := must(t, problem).Bound(); gotOK && got.Bound != bound {
				t.Fatalf("%s: not before %d, on a grid not before %d", name, bound, got.Bound)
			}
			for i := range got.Tasks {
				if got.Tasks[i].Placement != want.Tasks[i] {
					t.Fatalf("%s: task %d at %+v, on a grid at %+v", name, i, want.Tasks[i], got.Tasks[i])
				}
			}
		}
	})
}

// The bound of a grid takes for each task the site that is fastest for it: a
// serial one on the fast PE, a parallel one on many slow ones.
func TestGridBoundTakesTheFastestSiteForEachTask(t *testing.T) {
	w, err := workflow.New([]workflow.Task{{ID: "a", Sequential: 100, Alpha: 1}, {ID: "b", Sequential: 100}}, []workflow.Edge{{Parent: "a", Child: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	site := func(pes berth.Count, speed float64) workflow.Site {
		return workflow.Site{Calendar: calendar.NewPlain(pes, berth.Late), Speed: speed}
	}
	grid := workflow.Grid{Workflow: w, Now: 1000, Sites: []workflow.Site{site(1, 2), site(10, 1)}}
	plan, ok, err := grid.Plan(berth.Forever)
	if err != nil || !ok || plan.Bound != 1000+50+10 || plan.End(1000) < plan.Bound {
		t.Errorf("not before %d, %t, %v; want 1060", plan.Bound, ok, err)
	}
}

// Over several sites of different speed a plan keeps precedence, capacity and
// the lengths that tasks have where they run; and it is booked as a whole.
func TestGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 12)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "sites"), 0))
		grid := workflow.Grid{Workflow: problem.Workflow, Now: problem.Now, Epsilon: problem.Epsilon}
		calendars := map[berth.ResourceID]calendar.Calendar{}
		for k := range 1 + rng.IntN(3) {
			c := calendar.NewPlain(berth.Count(1+rng.IntN(20)), berth.Late)
			randomBookings(rng, c, problem.Now, 8)
			id := berth.PoolID(string(rune('a'+k)), "pool")
			calendars[id] = c
			grid.Sites = append(grid.Sites, workflow.Site{Resource: id, Calendar: c, Speed: []float64{1, 2, .5, 1.3}[rng.IntN(4)]})
		}
		deadline := berth.Forever
		if rng.IntN(2) == 0 {
			deadline = problem.Now + 1 + berth.Time(rng.IntN(4000))
		}
		plan, ok, err := grid.Plan(deadline)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return
		}
		for i, at := range plan.Tasks {
			task := problem.Workflow.Task(i)
			task.Sequential *= 1 / grid.Sites[at.Site].Speed
			if at.Task != i || at.Start < problem.Now || at.End > deadline || at.End-at.Start != berth.Time(task.Duration(at.NPE)) {
				t.Fatalf("task %d: %+v", i, at)
			}
			for _, parent := range problem.Workflow.Parents(i) {
				if plan.Tasks[parent].End > at.Start {
					t.Fatalf("task %d starts before its parent %d ends", i, parent)
				}
			}
		}
		if end := plan.End(problem.Now); plan.Bound > end || plan.Bound <= problem.Now {
			t.Fatalf("it ends at %d, and none is said to before %d", end, plan.Bound)
		}
		draft := calendar.NewDraft(calendars)
		if err := plan.Book(draft, grid.Sites); err != nil {
			t.Fatal(err)
		}
		draft.Undo(0)
		// Once the last reservation is taken by another booking, nothing is booked.
		last := plan.Tasks[len(plan.Tasks)-1]
		size := grid.Sites[last.Site].Calendar.Size()
		rest, _ := grid.Sites[last.Site].Calendar.Free(last.Interval())
		if rest < size {
			return
		}
		if err := draft.Book(grid.Sites[last.Site].Resource, calendar.Block{Start: last.Start, End: last.End, NPE: size}); err != nil {
			t.Fatal(err)
		}
		mark := draft.Mark()
		if plan.Book(draft, grid.Sites) == nil || draft.Mark() != mark {
			t.Fatal("a plan was booked on PEs that are taken")
		}
	})
}

// Of two sites where a task ends at one time it goes where it takes fewer PEs,
// and of two where it takes as many to the first.
func TestGridTies(t *testing.T) {
	w, err := workflow.New([]workflow.Task{{ID: "a", Sequential: 40}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	slow, fast := workflow.Site{Calendar: calendar.NewPlain(4, berth.Late)}, workflow.Site{Calendar: calendar.NewPlain(4, berth.Late), Speed: 2}
	for _, c := range []struct {
		sites []workflow.Site
		site  int
		npe   berth.Count
	}{{[]workflow.Site{slow, fast}, 1, 2}, {[]workflow.Site{fast, slow}, 0, 2}, {[]workflow.Site{slow, slow}, 0, 3}} {
		for _, deadline := range []berth.Time{berth.Forever, 100} {
			g := workflow.Grid{Workflow: w, Sites: c.sites}
			plan, ok, err := g.Plan(deadline)
			if err != nil || !ok || plan.Tasks[0].Site != c.site || plan.Tasks[0].NPE != c.npe {
				t.Errorf("deadline %d: %+v, want %d PEs at site %d", deadline, plan, c.npe, c.site)
			}
		}
	}
}

func TestGridRefuses(t *testing.T) {
	w := diamond(t, workflow.Half).Workflow
	c := calendar.NewPlain(4, berth.Late)
	for field, g := range map[string]workflow.Grid{
		"sites":    {Workflow: w},
		"speed":    {Workflow: w, Sites: []workflow.Site{{Calendar: c, Speed: -1}}},
		"calendar": {Workflow: w, Sites: []workflow.Site{{}}},
		"workflow": {Sites: []workflow.Site{{Calendar: c}}},
	} {
		_, _, err := g.Plan(berth.Forever)
		wantField(t, err, field)
	}
	g := workflow.Grid{Workflow: w, Sites: []workflow.Site{{Calendar: c}}, Now: 10}
	_, _, err := g.Plan(10)
	wantField(t, err, "deadline")
}
