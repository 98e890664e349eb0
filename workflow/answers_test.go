package workflow_test

import (
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
	"pgregory.net/rapid"
)

func TestPlannersHaveTheirNames(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range workflow.Planners {
		if seen[p.Name] || p.About == "" || p.Name != strings.ToLower(p.Name) || strings.ContainsAny(p.Name, " _") {
			t.Errorf("planner %q: %q", p.Name, p.About)
		}
		seen[p.Name] = true
	}
	for _, bl := range []string{"bl-1", "bl-all", "bl-cpa", "bl-cpar"} {
		for _, bd := range []string{"bd-all", "bd-half", "bd-cpa", "bd-cpar"} {
			if _, ok := workflow.PlannerNamed(bl + "/" + bd); !ok {
				t.Errorf("no planner %s/%s", bl, bd)
			}
		}
	}
	if p, ok := workflow.PlannerNamed("bl-cpar/bd-half"); !ok || p.Name != "bd-half" {
		t.Errorf("bl-cpar/bd-half is %q", p.Name)
	}
	for _, name := range []string{"", "bd", "bl-cpar/", "bl-cpar/dl-bd-all", "bl-cpar/bl-1/bd-all", "BD-CPAR"} {
		if p, ok := workflow.PlannerNamed(name); ok {
			t.Errorf("%q is %s", name, p.Name)
		}
	}
}

func TestPrepareRefuses(t *testing.T) {
	good := diamond(t, workflow.Half)
	for field, spoil := range map[string]func(*workflow.Problem){
		"workflow": func(p *workflow.Problem) { p.Workflow = nil },
		"calendar": func(p *workflow.Problem) { p.Calendar = nil },
		"bind":     func(p *workflow.Problem) { p.Calendar = calendar.NewFast(4, berth.Early) },
		"now":      func(p *workflow.Problem) { p.Now = berth.TimeLimit },
		"q":        func(p *workflow.Problem) { p.Free = -1 },
		"epsilon":  func(p *workflow.Problem) { p.Epsilon = 3 },
	} {
		bad := good
		spoil(&bad)
		_, err := workflow.Prepare(bad)
		wantField(t, err, field)
	}
	good.Free = 1000
	if in := prepare(t, good); in.Free() != 4 || in.Size() != 4 {
		t.Errorf("q is %d of %d", in.Free(), in.Size())
	}
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var e *berth.Error
	if !errors.As(err, &e) || e.Code != berth.Invalid || e.Field != field {
		t.Errorf("error %v, want one of field %s", err, field)
	}
}

func TestDeadlines(t *testing.T) {
	problem := diamond(t, workflow.Half)
	problem.Now = 10
	in := prepare(t, problem)
	dl, _ := workflow.PlannerNamed("dl-bd-cpar")
	bd, _ := workflow.PlannerNamed("bd-cpar")
	for _, c := range []struct {
		planner  workflow.Planner
		deadline berth.Time
	}{{dl, berth.Forever}, {dl, 10}, {dl, -5}, {bd, 10}, {bd, berth.TimeLimit}, {dl, berth.TimeLimit}} {
		_, _, err := in.Plan(c.planner, c.deadline)
		wantField(t, err, "deadline")
		if plan, ok := in.Try(c.planner, c.deadline); ok {
			t.Errorf("%s tries %d and has %+v", c.planner.Name, c.deadline, plan)
		}
	}
	_, _, err := in.Plan(dl, 10)
	// 40/4 + 120/4 + 40/4 seconds from 10 on.
	if in.Bound() != 60 || !strings.Contains(err.Error(), "before 60") {
		t.Errorf("a deadline that has passed: %v; bound %d", err, in.Bound())
	}
}

// A refusal names the bound, and the tightest deadline that was found with the
// planner that found it: asking that planner again by that deadline gives a
// plan.
func TestRefusalNamesWhatCanBeHad(t *testing.T) {
	in := prepare(t, diamond(t, workflow.Half))
	_, refusal := planned(t, in, "dl-bd-cpar", 100)
	want := workflow.Refusal{Planner: "dl-bd-cpar", Reason: berth.NoCapacity, Deadline: 100, Bound: 50, Tightest: 115, TightestBy: "bd-all"}
	if refusal == nil || *refusal != want {
		t.Fatalf("refusal %+v, want %+v", refusal, want)
	}
	if !strings.Contains(refusal.String(), "the tightest deadline found is 115, by bd-all") {
		t.Errorf("it says %s", refusal)
	}
	if plan, again := planned(t, in, refusal.TightestBy, refusal.Tightest); again != nil || plan.End(0) > 115 {
		t.Errorf("%s by %d: %v", refusal.TightestBy, refusal.Tightest, again)
	}
	_, refusal = planned(t, in, "bd-cpar", 49)
	if refusal == nil || refusal.Reason != berth.DeadlineMissed || !strings.Contains(refusal.String(), "before 50") {
		t.Errorf("refusal %v", refusal)
	}
}

// shut is a calendar on which nothing is free any more from a time on.
type shut struct {
	calendar.Reader
	from berth.Time
}

func (c shut) Records() iter.Seq[calendar.Record] {
	return func(yield func(calendar.Record) bool) {
		for r := range c.Reader.Records() {
			if r.Time < c.from && !yield(r) {
				return
			}
		}
		yield(calendar.Record{Time: c.from})
	}
}

// Where no PE is free any more there may be no plan at all.
func TestNoPlanAtAll(t *testing.T) {
	problem := diamond(t, workflow.Half)
	problem.Calendar = shut{problem.Calendar, 60}
	for _, plain := range []bool{false, true} {
		problem.Plain = plain
		in := prepare(t, problem)
		for _, p := range workflow.Planners {
			_, refusal, err := in.Plan(p, 1000)
			if err != nil || refusal == nil || refusal.TightestBy != "" || refusal.Tightest != berth.Forever {
				t.Errorf("plain %v, %s: %v, %v", plain, p.Name, refusal, err)
			}
		}
	}
}

// The tightest deadline is what the search of the paper gives, written down
// once more here, and the planner meets it with the plan that is returned.
func TestTightest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 8)
		if rapid.Bool().Draw(t, "long") { // so that half a hundredth is more than a minute
			problem.Workflow, _ = problem.Workflow.Scaled(500)
		}
		in := must(t, problem)
		bd, _ := workflow.PlannerNamed("bd-cpar")
		first, _ := in.Try(bd, berth.Forever)
		for _, p := range workflow.Planners {
			deadline, plan, ok := in.Tightest(p)
			if !ok {
				t.Fatalf("%s: none found", p.Name)
			}
			checkPlan(t, problem, p, deadline, plan)
			again, ok := in.Try(p, deadline)
			if !ok || !slices.Equal(again.Tasks, plan.Tasks) {
				t.Fatalf("%s by %d: %v %+v, the search had %+v", p.Name, deadline, ok, again, plan)
			}
			want := again.End(problem.Now)
			if p.Goal == workflow.Deadline {
				meets := func(turnaround float64) bool {
					_, ok := in.Try(p, problem.Now+berth.Time(turnaround))
					return ok
				}
				lo, hi := 0.0, float64(first.Turnaround)
				for !meets(hi) {
					hi *= 2
				}
				for hi-lo > max(60, .005*hi) {
					if mid := math.Floor((lo + hi) / 2); meets(mid) {
						hi = mid
					} else {
						lo = mid
					}
				}
				want = problem.Now + berth.Time(hi)
			}
			if deadline != want {
				t.Fatalf("%s: tightest deadline %d, want %d", p.Name, deadline, want)
			}
		}
	})
}

// The critical path goes back from the last end, first over parents, then over
// what made way.
func TestCritical(t *testing.T) {
	problem := diamond(t, workflow.Half)
	in := prepare(t, problem)
	for name, want := range map[string][]int{
		"bd-all":  {1, 2, 3}, // 0 ends at 10, long before 1 gets its PEs at 60; 2 waits for 1 to make way
		"bd-half": {1, 3},
		"bd-cpar": {1, 3},
	} {
		plan, _ := planned(t, in, name, berth.Forever)
		if got := plan.Critical(problem.Workflow); !slices.Equal(got, want) {
			t.Errorf("%s: critical path %v of %s, want %v", name, got, drawn(plan), want)
		}
	}
	if got := (&workflow.Plan{}).Critical(problem.Workflow); got != nil {
		t.Errorf("critical path of no tasks: %v", got)
	}
}

// A plan is booked as a whole or not at all.
func TestBookIsAtomic(t *testing.T) {
	id := berth.PoolID("site", "pool")
	problem := diamond(t, workflow.Half)
	plan, _ := planned(t, prepare(t, problem), "bd-cpar", berth.Forever)
	c := copied(problem.Calendar)
	draft := calendar.NewDraft(map[berth.ResourceID]calendar.Calendar{id: c})
	before, all := slices.Collect(c.Records()), berth.Interval{Start: problem.Now, End: plan.End(problem.Now)}
	others := calendar.Booked(c, all)
	// Another booking takes what the last task wants.
	if err := draft.Book(id, calendar.Block{Start: 130, End: 140, NPE: 4}); err != nil {
		t.Fatal(err)
	}
	err := plan.Book(draft, id)
	var e *berth.Error
	if !errors.As(err, &e) || e.Code != berth.Conflict {
		t.Fatalf("error %v, want a conflict", err)
	}
	draft.Undo(0)
	if !slices.EqualFunc(before, slices.Collect(c.Records()), sameRecord) {
		t.Fatal("a plan that did not fit left something behind")
	}
	if err := plan.Book(draft, id); err != nil {
		t.Fatal(err)
	}
	if booked := calendar.Booked(c, all) - others; booked != plan.CPUSeconds {
		t.Errorf("%d CPU-s booked, the plan has %d", booked, plan.CPUSeconds)
	}
}
