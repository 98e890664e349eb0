package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workflow"
)

// diamond is a before b and c, which are before d, of tasks that gain nothing from a second
// PE; b takes 200 s, c 300, and the others 100 each.
func diamond(id string, arrival, deadline berth.Time, repair berth.Repair) berth.Workflow {
	task := func(id string, seconds float64, after ...int) berth.WorkflowTask {
		return berth.WorkflowTask{ID: id, Seconds: seconds, Alpha: 1, After: after, Retries: 1}
	}
	return berth.Workflow{
		ID: id, Arrival: arrival, Deadline: deadline, Algorithm: "bd-cpar", Repair: repair,
		Tasks: []berth.WorkflowTask{task("a", 100), task("b", 200, 0), task("c", 300, 0), task("d", 100, 1, 2)},
	}
}

func play(t testing.TB, pes berth.Count, w sim.Workload) *sim.Result {
	t.Helper()
	result, err := sim.Play(t.Context(), engine.Config{Sites: sim.OnePool(pes, berth.Late), Jobs: "easy"}, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// told is what became of the workflows in a line each.
func told(r *sim.Result) (lines []string) {
	for _, f := range r.Flows {
		lines = append(lines, fmt.Sprintf("%s %s kept:%t planned:%d end:%d pe-s:%d retries:%d lost:%d", f.Workflow.ID, f.Outcome, f.Kept(), f.Planned, f.End, f.PESeconds, f.Retries, f.FailedTasks))
	}
	return lines
}

// What a repair is worth shows in when workflows end: tasks that take half of their time let
// what follows come forward under both alone, tasks that take half as long again fail the
// plan that is held, and a try that fails is repeated.
func TestWorkflowsAmongRequests(t *testing.T) {
	half, more := []float64{.5, .5, .5, .5}, []float64{1.5, 1.5, 1.5, 1.5}
	for name, c := range map[string]struct {
		repair  berth.Repair
		factors []float64
		fails   []int
		want    string
	}{
		"as planned":        {berth.RepairHold, nil, nil, "w succeeded kept:true planned:500 end:499 pe-s:696 retries:0 lost:0"},
		"early, held":       {berth.RepairHold, half, nil, "w succeeded kept:true planned:500 end:450 pe-s:350 retries:0 lost:0"},
		"early, late alone": {berth.RepairLate, half, nil, "w succeeded kept:true planned:500 end:450 pe-s:350 retries:0 lost:0"},
		"early, both":       {berth.RepairBoth, half, nil, "w succeeded kept:true planned:500 end:250 pe-s:350 retries:0 lost:0"},
		"late, held":        {berth.RepairHold, more, nil, "w failed kept:false planned:500 end:200 pe-s:200 retries:1 lost:4"},
		"late, late alone":  {berth.RepairLate, more, nil, "w succeeded kept:false planned:500 end:749 pe-s:1046 retries:0 lost:0"},
		"a try that fails":  {berth.RepairBoth, nil, []int{0, 1, 0, 0}, "w succeeded kept:true planned:500 end:497 pe-s:796 retries:1 lost:0"},
		"both tries fail":   {berth.RepairBoth, nil, []int{0, 2, 0, 0}, "w failed kept:false planned:500 end:398 pe-s:598 retries:1 lost:2"},
	} {
		far := berth.Rigid("far", 5000, 5000, 6000, 1, 10) // nothing that is due before waits for it
		r := play(t, 4, sim.Workload{Requests: []berth.Request{far}, Flows: []sim.Flow{{Workflow: diamond("w", 0, 600, c.repair), Factors: c.factors, Fails: c.fails}}})
		if got := told(r); got[0] != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got[0], c.want)
		}
	}
}

// A node that fails takes the task that runs on it along, which is tried again; promises of
// others are promises to it.
func TestWorkflowsBesideOutagesAndPromises(t *testing.T) {
	requests := []berth.Request{berth.Rigid("r", 0, 100, 400, 3, 300)}
	down := sim.Outage{Resource: berth.PoolID(sim.DefaultSite, "pool"), PEs: berth.PEsOf(0), From: 20, Until: 60}
	w := sim.Workload{Requests: requests, Flows: []sim.Flow{{Workflow: diamond("w", 10, 1000, berth.RepairBoth)}}, Outages: slices.Values([]sim.Outage{down})}
	r := play(t, 4, w)
	if lines := r.Schedule.Lines(); len(lines) < 1 || !lines[0].Accepted || *lines[0].Start != 100 {
		t.Errorf("the promise is %+v", lines)
	}
	f := r.Flows[0]
	if f.Outcome != berth.Succeeded || f.End <= 510 || !f.Kept() {
		t.Errorf("%+v", told(r))
	}
	if at := slices.IndexFunc(r.Tasks, func(line berth.Line) bool { return line.Task == "d" }); at < 0 || !slices.Equal(r.Tasks[at].After, []string{"w.2", "w.3"}) || f.Retries != 1 {
		t.Errorf("%+v, %+v", told(r), r.Tasks)
	}
}

// The tasks of a workflow without a deadline are due when they end: no line has a time
// that schedule files do not know.
func TestTasksOfAWorkflowWithoutDeadline(t *testing.T) {
	r := play(t, 4, sim.Workload{Flows: []sim.Flow{{Workflow: diamond("w", 10, berth.Forever, berth.RepairBoth)}}})
	if len(r.Tasks) != 4 || !r.Flows[0].Kept() {
		t.Fatalf("%+v, %+v", told(r), r.Tasks)
	}
	for _, line := range r.Tasks {
		if line.Deadline != *line.End {
			t.Errorf("%s ends at %d and is due by %d", line.ID, *line.End, line.Deadline)
		}
	}
}

func TestWorkflowsAreRefusedWithTheirReason(t *testing.T) {
	r := play(t, 4, sim.Workload{Flows: []sim.Flow{{Workflow: diamond("w", 10, 400, berth.RepairBoth)}, {Workflow: diamond("x", 20, 900, berth.RepairBoth)}}})
	if f := r.Flows[0]; f.Promised || f.Refusal == nil || f.Refusal.Reason != berth.DeadlineMissed || f.Kept() {
		t.Errorf("%+v", f)
	}
	if f := r.Flows[1]; !f.Promised || !f.Kept() || f.Planner != "bd-cpar" {
		t.Errorf("%+v", f)
	}
	for name, flows := range map[string][]sim.Flow{
		"unsorted": {{Workflow: diamond("w", 10, 900, berth.RepairBoth)}, {Workflow: diamond("x", 5, 900, berth.RepairBoth)}},
		"factors":  {{Workflow: diamond("w", 10, 900, berth.RepairBoth), Factors: []float64{1}}},
		"zero":     {{Workflow: diamond("w", 10, 900, berth.RepairBoth), Factors: []float64{1, 1, 0, 1}}},
		"one id":   {{Workflow: diamond("w", 10, 900, berth.RepairBoth)}, {Workflow: diamond("w", 11, 900, berth.RepairBoth)}},
	} {
		if _, err := sim.Play(t.Context(), engine.Config{Sites: sim.OnePool(4, berth.Late)}, sim.Workload{Flows: flows}, nil); err == nil {
			t.Errorf("%s: no complaint", name)
		}
	}
}

// Among jobs and requests that take other times than they said, under outages and whatever
// the tasks do, no PE is held twice, no task starts before those it waits for have ended, and
// the same comes out twice.
func TestWorkflowsFitAmongJobs(t *testing.T) {
	for seed := range uint64(30) {
		draw := stream.New(seed, "flows").Rand()
		w := sim.Workload{}
		at := berth.Time(0)
		for i := range 40 {
			at += berth.Time(draw.IntN(60))
			npe, d := berth.Count(1+draw.IntN(4)), berth.Duration(1+draw.IntN(200))
			r := berth.Job(fmt.Sprint("j", i), at, npe, d)
			if draw.IntN(3) == 0 {
				r = berth.Rigid(fmt.Sprint("r", i), at, at+berth.Time(draw.IntN(100)), at+2000, npe, d)
			}
			w.Requests, w.Runs = append(w.Requests, r), append(w.Runs, 1+berth.Duration(draw.IntN(int(d))))
		}
		for i := range 6 {
			f := sim.Flow{Workflow: diamond(fmt.Sprint("w", i), berth.Time(i*200), berth.Time(i*200+600+draw.IntN(900)), berth.Repairs()[draw.IntN(3)])}
			for range f.Workflow.Tasks {
				f.Factors, f.Fails = append(f.Factors, .3+1.5*draw.Float64()), append(f.Fails, draw.IntN(8)/6)
			}
			w.Flows = append(w.Flows, f)
		}
		var outages []sim.Outage
		for from := berth.Time(300); from < 1500; from += 100 + berth.Time(draw.IntN(500)) {
			pe := berth.PE(draw.IntN(8))
			outages = append(outages, sim.Outage{Resource: berth.PoolID(sim.DefaultSite, "pool"), PEs: berth.PEsOf(pe), From: from, Until: from + 1 + berth.Time(draw.IntN(200))})
		}
		w.Outages = slices.Values(outages)
		first := play(t, 8, w)
		if diff := cmp.Diff(told(first), told(play(t, 8, w))); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		ends := map[string]berth.Time{}
		held := map[berth.Time]int{}
		for _, line := range first.Tasks {
			if !line.Accepted {
				if line.Start != nil || line.End != nil || len(line.ReplannedFrom) == 0 {
					t.Fatalf("seed %d: %+v did not run, and does not say so", seed, line)
				}
				continue
			}
			ends[line.ID] = *line.End
			if line.ActualEnd != nil {
				ends[line.ID] = *line.ActualEnd
			}
		}
		for _, line := range append(first.Schedule.Lines(), first.Tasks...) {
			if line.Kind == berth.KindOutage || line.Start == nil || !line.Accepted {
				continue
			}
			end := *line.End
			if line.ActualEnd != nil {
				end = *line.ActualEnd
			}
			for at := *line.Start; at < end; at++ {
				if held[at] += int(line.NPE); held[at] > 8 && len(line.Stretches) == 0 {
					t.Fatalf("seed %d: %d PEs at %d, with %s", seed, held[at], at, line.ID)
				}
			}
			for _, parent := range line.After {
				if ends[parent] > *line.Start {
					t.Fatalf("seed %d: %s starts at %d, before %s has ended at %d", seed, line.ID, *line.Start, parent, ends[parent])
				}
			}
		}
	}
}

// A stream is the same for a seed, spreads over its span, and misses times as it says.
func TestFlowStream(t *testing.T) {
	made, err := workflow.New([]workflow.Task{{ID: "a", Sequential: 100, Alpha: 1}, {ID: "b", Sequential: 100, Alpha: 1}}, []workflow.Edge{{Parent: "a", Child: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	s := sim.FlowStream{
		Count: 500, Span: berth.Interval{Start: 1000, End: 2000}, Make: func(int) (*workflow.Workflow, []berth.WorkflowTask, error) { return made, nil, nil },
		PEs: 8, Slack: 1.5, Algorithm: "bd-cpar", Repair: berth.RepairLate, Retries: 2, Miss: sim.Miss{Amount: .25}, Fail: .1, Seed: 3,
	}
	flows, err := s.Flows()
	if err != nil {
		t.Fatal(err)
	}
	again, _ := s.Flows()
	if diff := cmp.Diff(flows, again); diff != "" {
		t.Fatal(diff)
	}
	first, last := &flows[0].Workflow, &flows[499].Workflow
	if first.Arrival != 1001 || last.Arrival != 1999 || first.Deadline != 1301 || first.Tasks[1].After[0] != 0 || first.Tasks[0].Retries != 2 {
		t.Errorf("%+v … %d", first, last.Arrival)
	}
	sum, least, most, fails := 0.0, 9.0, 0.0, 0
	for _, f := range flows {
		for k, x := range f.Factors {
			sum, least, most, fails = sum+x, min(least, x), max(most, x), fails+f.Fails[k]
		}
	}
	if mean := sum / 1000; mean < .98 || mean > 1.02 || least < .75 || least > .76 || most > 1.25 || most < 1.24 {
		t.Errorf("factors from %v to %v, %v on average", least, most, mean)
	}
	if fails < 80 || fails > 140 {
		t.Errorf("%d tries of 1000 tasks fail, want about 111", fails)
	}
	s.Miss = sim.Miss{Heavy: true}
	flows, _ = s.Flows()
	over, twice := 0, 0
	for _, f := range flows {
		for _, x := range f.Factors {
			if x > 1 {
				over++
			}
			if x > 2 {
				twice++
			}
			if x < .5 || x > 10 {
				t.Fatalf("factor %v", x)
			}
		}
	}
	if over < 310 || over > 400 || twice < 95 || twice > 155 {
		t.Errorf("%d of 1000 tasks take longer, %d twice as long", over, twice)
	}
}

// What became of workflows together is the sum of what became of each.
func TestWorkflowsAreSummedUp(t *testing.T) {
	if s := sim.SummarizeFlows(nil); s != nil {
		t.Errorf("of none it is %+v", s)
	}
	results := []sim.FlowResult{
		{Workflow: &berth.Workflow{Arrival: 10, Deadline: 100}, Promised: true, Outcome: berth.Succeeded, End: 90, PESeconds: 3600, PlannedPESeconds: 1800, Replans: 1, Moved: 2, Retries: 1},
		{Workflow: &berth.Workflow{Arrival: 10, Deadline: 100}, Promised: true, Outcome: berth.Succeeded, End: 130, PESeconds: 1800, PlannedPESeconds: 1800, Moved: 3},
		{Workflow: &berth.Workflow{Deadline: 100}, Promised: true, Outcome: berth.FailedForGood, End: 50, PESeconds: 1800, PlannedPESeconds: 3600, Replans: 2, Retries: 2, FailedTasks: 4},
		{Workflow: &berth.Workflow{Deadline: 100}, Outcome: berth.FailedForGood, FailedTasks: 1},
	}
	rate, mean := 1.0/3, 100.0
	want := sim.FlowSummary{
		Workflows: 4, Promised: 3, Succeeded: 2, Kept: 1, KeptRate: &rate, MeanTurnaround: &mean,
		CPUHours: 2, PlannedCPUHours: 2, Replans: 3, Moved: 5, Retries: 3, LostTasks: 5,
	}
	if diff := cmp.Diff(&want, sim.SummarizeFlows(results)); diff != "" {
		t.Error(diff)
	}
}
