package workflow_test

import (
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
)

// crowded books nearly all of a calendar for a time that is long beside a workflow, and leaves gaps.
func crowded(t *rapid.T, c calendar.Calendar, now berth.Time) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "crowd"), 0))
	for start, end := now, now+berth.Time(rng.IntN(50_000)>>rng.IntN(10)); start < end; {
		until := start + 1 + berth.Time(rng.IntN(400))
		_ = c.Add(calendar.Block{Start: start, End: until, NPE: c.Size() - berth.Count(rng.IntN(2)*rng.IntN(2))}) // where it fits
		start = until + berth.Time(rng.IntN(3)*rng.IntN(20))
	}
}

// Plans do not depend on how much of the calendars is read at first. Some reach beyond that.
func TestPlansReadOnUntilTheyEnd(t *testing.T) {
	on := 0
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 12)
		crowded(t, problem.Calendar.(calendar.Calendar), problem.Now)
		in, whole := must(t, problem), workflow.KnowAll(must(t, problem))
		first := berth.Forever
		for _, p := range workflow.Planners {
			if p.Name == "icaslb" {
				continue // it reads all
			}
			deadline := deadlineFor(t, problem, p)
			got, ok := in.Try(p, deadline)
			want, wantOK := whole.Try(p, deadline)
			if ok != wantOK || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %+v, knowing all %+v", p.Name, got, want)
			}
			first = min(first, workflow.Known(in))
		}
		if known := workflow.Known(in); known > first {
			on++
		}
	})
	if on == 0 {
		t.Error("no plan reached beyond what was read first")
	}
}

// Plans over several sites do not depend on it either; some sites are free much later than others.
func TestGridsReadOnUntilTheyEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid := drawGrid(t)
		for i := range grid.Sites {
			if rapid.Bool().Draw(t, "crowded") {
				crowded(t, grid.Sites[i].Calendar.(calendar.Calendar), grid.Now)
			}
		}
		in, err := grid.Prepare()
		if err != nil {
			return // a task is too wide for all sites
		}
		whole, err := grid.Prepare()
		if err != nil {
			t.Fatal(err)
		}
		workflow.KnowAllSites(whole)
		for range 2 {
			deadline := berth.Forever
			if rapid.Bool().Draw(t, "by") {
				deadline = grid.Now + 1 + berth.Time(rapid.IntRange(0, 60_000).Draw(t, "window"))
			}
			got, ok, err := in.Plan(deadline)
			want, wantOK, wantErr := whole.Plan(deadline)
			if err != nil || wantErr != nil || ok != wantOK || !reflect.DeepEqual(got, want) {
				t.Fatalf("by %d: %+v %v, knowing all %+v %v", deadline, got, err, want, wantErr)
			}
		}
	})
}

// A plan for a short workflow does not read a long calendar to its end.
func TestPlansReadNoFurtherThanNeeded(t *testing.T) {
	c := calendar.NewFast(4, berth.Late)
	for i := range berth.Time(10_000) {
		if err := c.Add(calendar.Block{Start: 100 * i, End: 100*i + 50, NPE: 1}); err != nil {
			t.Fatal(err)
		}
	}
	problem := diamond(t, workflow.Half)
	problem.Calendar = c
	in := prepare(t, problem)
	for _, p := range workflow.Planners {
		if p.Name == "icaslb" {
			continue
		}
		deadline := berth.Time(10_000)
		if p.Goal == workflow.Finish {
			deadline = berth.Forever
		}
		if _, ok := in.Try(p, deadline); !ok {
			t.Errorf("%s: no plan", p.Name)
		}
	}
	if known := workflow.Known(in); known != 10_000 {
		t.Errorf("read up to %d, want 10000", known)
	}
}

// What one site has at once may end later than what another one has beyond the first look.
func TestGridsLookFurtherThanWhatTheyFind(t *testing.T) {
	w, err := workflow.New([]workflow.Task{{ID: "a", Sequential: 1000}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	slow, busy := calendar.NewFast(1, berth.Late), calendar.NewFast(8, berth.Late)
	if err := busy.Add(calendar.Block{Start: 0, End: 500, NPE: 8}); err != nil {
		t.Fatal(err)
	}
	grid := &workflow.Grid{Workflow: w, Sites: []workflow.Site{
		{Resource: berth.PoolID("slow", "p"), Calendar: slow}, {Resource: berth.PoolID("busy", "p"), Calendar: busy},
	}}
	plan, ok, err := grid.Plan(berth.Forever)
	if want := (workflow.GridPlacement{Site: 1, Placement: workflow.Placement{NPE: 3, Start: 500, End: 834}}); err != nil || !ok || plan.Tasks[0] != want {
		t.Errorf("%+v %t %v, want %+v", plan.Tasks, ok, err, want)
	}
}

// What planners have in common is the same when it is computed at once.
func TestPlansAreTheSameOnceReady(t *testing.T) {
	atOnce := func(a, b func()) {
		var both sync.WaitGroup
		both.Go(a)
		both.Go(b)
		both.Wait()
	}
	rapid.Check(t, func(t *rapid.T) {
		problem := drawProblem(t, 12)
		problem.Anew = rapid.Bool().Draw(t, "anew")
		ready, alone := must(t, problem), must(t, problem)
		ready.Ready(workflow.Planners, atOnce)
		for _, p := range workflow.Planners {
			deadline := deadlineFor(t, problem, p)
			got, ok := ready.Try(p, deadline)
			want, wantOK := alone.Try(p, deadline)
			if ok != wantOK || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %+v, alone %+v", p.Name, got, want)
			}
		}
	})
}
