package workflow_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// decaying books what the reservations of a busy machine look like from the
// inside: many within the first day, few at the end of the week.
func decaying(rng *rand.Rand, size berth.Count, perDay float64) calendar.Calendar {
	c := calendar.NewFast(size, berth.Late)
	for day := range 7 {
		for range int(perDay * math.Exp(-.658*(float64(day)+.5))) {
			b := calendar.Block{Start: berth.Time(day*86400 + rng.IntN(86400)), NPE: min(size, 1<<rng.IntN(8))}
			b.End = b.Start + 60 + berth.Time(7200*rng.ExpFloat64())
			_ = c.Add(b) // one that does not fit is left out
		}
	}
	return c
}

// The shapes of the paper's section 4 (Table 4), and our planner beside them: on
// average over workflows like the paper's, planners without a bound that knows
// the workflow end far later and cost far more; bd-cpar costs less than bd-cpa;
// and bd-thrift ends earlier than the first of them to end and costs less than
// the cheapest.
func TestShapesOfTable4(t *testing.T) {
	names := []string{"bd-all", "bd-half", "bd-cpa", "bd-cpar", "bd-thrift"}
	turnaround, cpu := make([]float64, len(names)), make([]float64, len(names))
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 6))
		d := workload.NewDaggen()
		d.Tasks = []int{25, 50, 75}[seed%3]
		w, err := d.Generate(seed)
		if err != nil {
			t.Fatal(err)
		}
		size := []berth.Count{64, 256, 1024}[seed/3%3]
		in := prepare(t, workflow.Problem{Workflow: w, Calendar: decaying(rng, size, 60), Free: size * 4 / 5})
		var base workflow.Plan
		for i, name := range names {
			plan, _ := planned(t, in, name, berth.Forever)
			if i == 0 {
				base = plan
			}
			turnaround[i] += float64(plan.Turnaround) / float64(base.Turnaround)
			cpu[i] += float64(plan.CPUSeconds) / float64(base.CPUSeconds)
		}
	}
	for i, name := range names {
		t.Logf("%-9s turn-around %.4f, CPU-hours %.4f of bd-all", name, turnaround[i]/60, cpu[i]/60)
	}
	const all, half, cpa, cpar, thrift = 0, 1, 2, 3, 4
	for what, held := range map[string]bool{
		"bd-all ends later than bd-cpa by a tenth":     turnaround[all] > 1.1*turnaround[cpa],
		"bd-half ends later than bd-cpa by a tenth":    turnaround[half] > 1.1*turnaround[cpa],
		"bd-all costs a tenth more than bd-cpa":        cpu[all] > 1.1*cpu[cpa],
		"bd-cpar costs less than bd-cpa":               cpu[cpar] < cpu[cpa],
		"bd-cpa ends no later than bd-cpar":            turnaround[cpa] <= turnaround[cpar],
		"bd-thrift ends earlier than bd-cpa":           turnaround[thrift] < turnaround[cpa],
		"bd-thrift costs less than bd-cpar":            cpu[thrift] < cpu[cpar],
		"the difference of bd-cpar and bd-cpa is slim": turnaround[cpar] < 1.05*turnaround[cpa],
	} {
		if !held {
			t.Errorf("not held: %s", what)
		}
	}
}

// Section 5.4 (Tables 6 and 7): by a loose deadline, half as long again as the
// latest tightest one, resource conservative planners cost far less than
// aggressive ones; dl-bd-all is far less tight than those within CPA's bounds;
// and λ makes the conservative ones tight again, with bounds most of all.
func TestShapesOfTables6And7(t *testing.T) {
	names := []string{"dl-bd-all", "dl-bd-cpa", "dl-bd-cpar", "dl-rc-cpa", "dl-rc-cpar", "dl-rc-cpar-lambda", "dl-rcbd-cpar-lambda"}
	tightest, cpu, met := make([]float64, len(names)), make([]float64, len(names)), make([]float64, len(names))
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 6))
		d := workload.NewDaggen()
		d.Tasks = 25
		w, err := d.Generate(seed)
		if err != nil {
			t.Fatal(err)
		}
		in := prepare(t, workflow.Problem{Workflow: w, Calendar: decaying(rng, 256, 60), Free: 200})
		latest, first := berth.Time(0), berth.Time(0)
		for i, name := range names {
			p, _ := workflow.PlannerNamed(name)
			at, _, ok := in.Tightest(p)
			if !ok {
				t.Fatalf("seed %d: %s meets no deadline", seed, name)
			}
			if i == 0 {
				first = at
			}
			latest = max(latest, at)
			tightest[i] += float64(at) / float64(first) / 20
		}
		base, _ := planned(t, in, "dl-bd-all", latest*3/2)
		for i, name := range names {
			p, _ := workflow.PlannerNamed(name)
			if plan, ok := in.Try(p, latest*3/2); ok {
				cpu[i] += float64(plan.CPUSeconds) / float64(base.CPUSeconds)
				met[i]++
			}
		}
	}
	for i, name := range names {
		cpu[i] /= met[i]
		t.Logf("%-19s tightest %.3f, CPU-hours %.3f of dl-bd-all; met %.0f of 20 loose deadlines", name, tightest[i], cpu[i], met[i])
	}
	const bdAll, bdCPA, bdCPAR, rcCPA, rcCPAR, lambda, bounded = 0, 1, 2, 3, 4, 5, 6
	for what, held := range map[string]bool{
		"dl-bd-all is a tenth less tight than dl-bd-cpa":             tightest[bdAll] > 1.1*tightest[bdCPA],
		"dl-bd-all is a tenth less tight than dl-bd-cpar":            tightest[bdAll] > 1.1*tightest[bdCPAR],
		"dl-rc-cpa costs less than four fifths of dl-bd-cpa":         cpu[rcCPA] < .8*cpu[bdCPA],
		"dl-rc-cpar costs less than four fifths of dl-bd-cpar":       cpu[rcCPAR] < .8*cpu[bdCPAR],
		"dl-rc-cpar-lambda is a tenth tighter than dl-rc-cpar":       1.1*tightest[lambda] < tightest[rcCPAR],
		"dl-rcbd-cpar-lambda is tighter than dl-rc-cpar-lambda":      tightest[bounded] < tightest[lambda],
		"dl-rcbd-cpar-lambda is no less tight than dl-bd-cpa":        tightest[bounded] <= tightest[bdCPA],
		"dl-rcbd-cpar-lambda costs two thirds of dl-bd-cpar at most": cpu[bounded] < .67*cpu[bdCPAR],
	} {
		if !held {
			t.Errorf("not held: %s", what)
		}
	}
}

// On an empty site nothing keeps a resource conservative planner from what CPA
// does: it meets the end of CPA's own schedule, or nearly, however many tasks
// there are. So the starts that it keeps free of what is still to be placed fit
// together. Where PEs are allotted anew to the tasks that are left they do not
// (Problem.Anew): fewer tasks get fewer PEs, start later than CPA's schedule of
// all had room for, and it takes a far later deadline, the later the more tasks there are.
func TestReservesFitTogether(t *testing.T) {
	const workflows, size = 20, 256
	p, _ := workflow.PlannerNamed("dl-rc-cpa")
	for _, tasks := range []int{10, 50, 100} {
		var above [2]float64 // the end of CPA's schedule, allotted once and anew
		for seed := range uint64(workflows) {
			d := workload.NewDaggen()
			d.Tasks = tasks
			w, err := d.Generate(seed)
			if err != nil {
				t.Fatal(err)
			}
			for k, anew := range []bool{false, true} {
				in := prepare(t, workflow.Problem{Workflow: w, Calendar: calendar.NewFast(size, berth.Late), Anew: anew})
				schedule, err := in.Map(workflow.CPA, size)
				if err != nil {
					t.Fatal(err)
				}
				end := berth.Time(0)
				for _, at := range schedule {
					end = max(end, at.End)
				}
				at, _, ok := in.Tightest(p)
				if !ok {
					t.Fatalf("%d tasks, seed %d: no deadline is met", tasks, seed)
				}
				above[k] += float64(at-end) / float64(end) / workflows
			}
		}
		t.Logf("%3d tasks: tightest deadline after the end of CPA's schedule by %.4f, allotted anew by %.4f", tasks, above[0], above[1])
		if above[0] > .01 {
			t.Errorf("%d tasks: dl-rc-cpa is %.3f less tight than CPA itself", tasks, above[0])
		}
		if tasks >= 50 && above[1] < 1 {
			t.Errorf("%d tasks: allotted anew, dl-rc-cpa is only %.3f less tight than CPA itself", tasks, above[1])
		}
	}
}
