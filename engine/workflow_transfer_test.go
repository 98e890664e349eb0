package engine_test

import (
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// shores are two sites of 4 PEs between which files are moved, at 1000 kB/s to the right.
func shores(binding berth.Binding) engine.Config {
	return engine.Config{Sites: []berth.Site{
		{Name: "left", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: binding}}, Link: berth.Link{KilobytesPerSecond: 2000}},
		{Name: "right", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: binding}}, Link: berth.Link{KilobytesPerSecond: 1000}},
	}}
}

// over is a workflow of a task a of 10 s at the left, and tasks of 20 s at the right that read so
// many bytes of it.
func over(id string, deadline berth.Time, reads ...int64) *berth.Workflow {
	w := flow(id, 0, deadline, task("a", 10))
	w.Tasks[0].Site = "left"
	for i, bytes := range reads {
		t := task(string(rune('b'+i)), 20, 0)
		t.Site, t.Reads = "right", []int64{bytes}
		w.Tasks = append(w.Tasks, t)
	}
	w.Routes = []berth.Route{{From: "left", To: "right"}, {From: "right", To: "left"}}
	if deadline != berth.Forever {
		w.Algorithm = "dl-bd-cpar"
	}
	return w
}

// A task that reads what one at another site has written holds its PEs for the transfer too, as
// long as that is forecast to take; its parents end before that, whichever way is planned.
func TestTasksHoldPEsForTheirTransfers(t *testing.T) {
	for _, binding := range bindings() {
		for name, c := range map[string]struct {
			w    *berth.Workflow
			site func(*berth.Site) // of the right
			want string
		}{
			"for the earliest end":     {w: over("w", berth.Forever, 5e6), want: "w.1@0-10 w.2@10-35"},
			"by a deadline":            {w: over("w", 100, 5e6), want: "w.1@65-75 w.2@75-100"},
			"the deadline is just met": {w: over("w", 35, 5e6), want: "w.1@0-10 w.2@10-35"},
			"sizes are rounded up":     {w: over("w", berth.Forever, 4_000_001), want: "w.1@0-10 w.2@10-35"},
			"of no size":               {w: over("w", berth.Forever, 0), want: "w.1@0-10 w.2@10-30"},
			"files in common": {w: func() *berth.Workflow {
				w := over("w", berth.Forever, 5e6)
				w.Routes = w.Routes[1:]
				return w
			}(), want: "w.1@0-10 w.2@10-30"},
			"at one site": {w: func() *berth.Workflow {
				w := over("w", berth.Forever, 5e6)
				w.Tasks[0].Site = "right"
				return w
			}(), want: "w.1@0-10 w.2@10-30"},
			"of two tasks at once": {w: func() *berth.Workflow {
				w := over("w", 100, 5e6)
				other := task("c", 30)
				other.Site = "left"
				w.Tasks = append(w.Tasks, other)
				w.Tasks[1].After, w.Tasks[1].Reads = []int{0, 2}, []int64{5e6, 3e6}
				return w
			}(), want: "w.3@42-72 w.1@62-72 w.2@72-100"},
			"done before": {w: func() *berth.Workflow {
				w := over("w", berth.Forever, 5e6)
				w.Tasks[0].Done, w.Tasks[0].Tries = true, 1
				return w
			}(), want: "w.2@0-25"},
			"the link is not known": {w: over("w", berth.Forever, 5e6), site: func(s *berth.Site) { s.Link = berth.Link{DelayMS: 1500} }, want: "w.1@0-10 w.2@10-32"},
			"a slow link":           {w: over("w", berth.Forever, 5e6), site: func(s *berth.Site) { s.Link = berth.Link{KilobytesPerSecond: 1} }, want: "w.1@0-10 w.2@10-5030"},
			"by it, by a deadline":  {w: over("w", 6000, 5e6), site: func(s *berth.Site) { s.Link = berth.Link{KilobytesPerSecond: 1} }, want: "w.1@970-980 w.2@980-6000"},
			"by it, just in time":   {w: over("w", 5030, 5e6), site: func(s *berth.Site) { s.Link = berth.Link{KilobytesPerSecond: 1} }, want: "w.1@0-10 w.2@10-5030"},
			"storage for one":       {w: over("w", berth.Forever, 5e6, 5e6), site: func(s *berth.Site) { s.StorageMB = 9 }, want: "w.1@0-10 w.2@10-35 w.3@35-60"},
		} {
			config := shores(binding)
			if c.site != nil {
				c.site(&config.Sites[1])
			}
			e := newEngine(t, config)
			changes := apply(t, e, 0, engine.SubmitWorkflow(c.w))
			if got := toldOf(changes); got != "workflow_promised:w "+c.want {
				t.Errorf("%s, %s: got %s, want %s", binding, name, got, c.want)
			}
		}
	}
}

// What is promised is booked: the transfer on the uplink, in the first seconds of the reservation,
// and the data in the storage of the site until it ends. So transfers of tasks wait for each other
// and for those of requests, and are given back with their tasks.
func TestTransfersOfTasksAreBooked(t *testing.T) {
	config := shores(berth.Late)
	config.Uplink, config.Sites[1].StorageMB, config.Staging = 1000, 100, engine.StagingBefore
	e := newEngine(t, config)
	wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(over("w", berth.Forever, 5e6, 5e6))), "workflow_promised:w w.1@0-10 w.2@10-35 w.3@15-40")
	r, _ := e.Reservation("w.3")
	if want := (berth.Transfer{Site: "right", Start: 15, End: 20, Since: 15, Kilobytes: 5000, Rate: 1000}); len(r.Transfers) != 1 || r.Transfers[0] != want {
		t.Errorf("%+v, want %+v", r.Transfers, want)
	}
	if want := (berth.Allotment{Resource: berth.StorageID("right"), Start: 15, End: 40, NPE: 5}); len(r.Stocks) != 1 || !reflect.DeepEqual(r.Stocks[0], want) {
		t.Errorf("%+v, want %+v", r.Stocks, want)
	}
	x := berth.Rigid("x", 0, 0, 1000, 1, 10)
	x.Site, x.StorageMB = "right", 10
	submit(t, e, 0, x)
	if r, _ := e.Reservation("x"); r.Start() != 10 {
		t.Errorf("data for x are there by 10, before the tasks move theirs: it starts at %d", r.Start())
	}
	y := berth.Rigid("y", 0, 0, 1000, 1, 10)
	y.Site, y.StorageMB = "right", 10
	submit(t, e, 0, y)
	if r, _ := e.Reservation("y"); r.Start() != 30 {
		t.Errorf("data for y wait for those of both tasks: it starts at %d, want 30", r.Start())
	}
	apply(t, e, 1, engine.CancelWorkflow("w"))
	z := berth.Rigid("z", 1, 1, 1000, 1, 10)
	z.Site, z.StorageMB = "right", 10
	submit(t, e, 1, z)
	if r, _ := e.Reservation("z"); r.Start() != 20 {
		t.Errorf("what the tasks had is free again: z starts at %d, want 20", r.Start())
	}
}

// A plan that was made beside the engine is followed with its transfers.
func TestPlansWithTransfersAreFollowed(t *testing.T) {
	for _, deadline := range []berth.Time{berth.Forever, 100} {
		config := shores(berth.Early)
		config.Uplink = 1000
		w := over("w", deadline, 5e6, 3e6)
		e, other := newEngine(t, config), newEngine(t, config)
		plan, _, err := other.PlanWorkflow(w, engine.PlanOptions{})
		if err != nil || plan.Refusal != nil {
			t.Fatal(plan, err)
		}
		want := toldOf(apply(t, other, 0, engine.SubmitWorkflow(w)))
		wantFlow(t, apply(t, e, 0, engine.SubmitPlanned(w, plan)), want)
		if e.Hash() != other.Hash() {
			t.Error("the states differ")
		}
	}
}

// A forecast that moves data slower gives tasks that have not started more time where that is
// free, or another place; one that has started goes on. A link that stands still moves no task.
func TestForecastsMoveTasksThatAwaitData(t *testing.T) {
	config := shores(berth.Late)
	config.Sites[1].Managed = true
	rate := func(kilobytes int64) engine.Event {
		return engine.UpdateForecast(&berth.Forecast{Site: "right", Period: 1, Kilobytes: []int64{kilobytes}})
	}
	e := newEngine(t, config)
	w := over("w", 90, 5e6)
	w.Tasks = append(w.Tasks, task("c", 10, 1))
	w.Tasks[2].Site, w.Algorithm = "right", "bd-cpar"
	wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(w)), "workflow_promised:w w.1@0-10 w.2@10-35 w.3@35-45")
	wantFlow(t, apply(t, e, 1, rate(2000)), "started:w.1")
	wantFlow(t, apply(t, e, 2, rate(500)), "w.2@10-40 w.3@40-50 data:45→50")
	wantFlow(t, apply(t, e, 3, rate(0)), "")
	apply(t, e, 10, engine.Wake())
	wantFlow(t, apply(t, e, 11, rate(100)), "")
	x := berth.Rigid("x", 11, 60, 200, 4, 100)
	x.Site = "right"
	submit(t, e, 11, x)
	v := over("v", berth.Forever, 5e6)
	v.Arrival = 11
	wantFlow(t, apply(t, e, 11, engine.SubmitWorkflow(v)), "workflow_promised:v v.1@11-21 v.2@160-230")
}

// A task that is tried again at another site has those behind it bring its files from there, or
// no longer bring them.
func TestFilesOfTasksThatAreTriedElsewhere(t *testing.T) {
	config := shores(berth.Late)
	config.Sites[0].Managed = true
	w := over("w", berth.Forever, 5e6)
	w.Tasks[0].Site, w.Tasks[0].Retries, w.Spread = "", 1, true
	w.Tasks[0].Software = "" // it may be anywhere
	config.Sites[1].Pools[0].Speed = 500
	e := newEngine(t, config)
	wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(w)), "workflow_promised:w w.1@0-10 w.2@10-55")
	apply(t, e, 0, engine.Wake())
	apply(t, e, 1, engine.Down(berth.Outage{Resource: berth.PoolID("left", "p"), PEs: berth.PEsOf(0, 1, 2, 3), Until: 700}))
	changes := apply(t, e, 2, engine.Report("w.1", berth.FailedForGood, "its nodes died"))
	wantFlow(t, changes, "retried:1 ended:w.1 w.1-2@2-22 w.2@22-62 failed:55→62")
	if r, _ := e.Reservation("w.2"); r.Request.StorageMB != 0 || len(r.Transfers) > 0 {
		t.Errorf("its file is at its site: %d MB, %+v", r.Request.StorageMB, r.Transfers)
	}
}

// What outages, restarts and snapshots do to tasks that move files, they keep the time for that.
func TestDisplacedTasksKeepTheTimeForTransfers(t *testing.T) {
	for _, binding := range bindings() {
		config := shores(binding)
		config.Uplink = 1000
		e := newEngine(t, config)
		apply(t, e, 0, engine.SubmitWorkflow(over("w", berth.Forever, 5e6)))
		apply(t, e, 1, engine.Down(berth.Outage{Resource: berth.PoolID("right", "p"), PEs: berth.PEsOf(0, 1, 2, 3), Until: 50}))
		r, _ := e.Reservation("w.2")
		if r.Start() != 50 || r.End() != 75 || len(r.Transfers) != 1 || r.Transfers[0].Start != 50 || r.Transfers[0].End != 55 {
			t.Errorf("%s: %+v, want it from 50 to 75 with its transfer until 55", binding, r)
		}
		again, err := engine.Restore(config, e.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if again.Hash() != e.Hash() {
			t.Errorf("%s: another state comes of the snapshot", binding)
		}
		changes := apply(t, again, 60, engine.Wake())
		wantFlow(t, changes, "ended:w.1 succeeded:1 started:w.2")
	}
}

// A plan keeps to the share of its user without the transfers, which are added to it afterwards: a task
// whose transfer would take more PEs than that begins later, while the deadline allows it, whether the
// plan is made at once or was made beside the engine; else the refusal names the share.
func TestTransfersKeepWithinTheShare(t *testing.T) {
	for _, binding := range bindings() {
		config := shores(binding)
		config.Limits = policy.Limits{{Name: policy.LimitShare, Value: 250}}
		for _, deadline := range []berth.Time{berth.Forever, 300} {
			e, other := newEngine(t, config), newEngine(t, config)
			w := over("w", deadline, 5e6, 5e6)
			want := "workflow_promised:w w.1@0-10 w.2@10-35 w.3@35-60"
			if deadline != berth.Forever {
				w.Algorithm = "bd-cpar"
			}
			plan, _, err := other.PlanWorkflow(w, engine.PlanOptions{})
			if err != nil || plan.Refusal != nil {
				t.Fatalf("%s: %+v, %v", binding, plan.Refusal, err)
			}
			wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(w)), want)
			wantFlow(t, apply(t, other, 0, engine.SubmitPlanned(w, plan)), want)
		}
		w := over("v", 55, 5e6, 5e6)
		w.Algorithm = "bd-cpar"
		changes := apply(t, newEngine(t, config), 0, engine.SubmitWorkflow(w))
		if no := changes[len(changes)-1].Refusal; no == nil || no.Exceeded == nil || no.Exceeded.Limit != string(policy.LimitShare) {
			t.Errorf("%s: with no time for it within the share: %+v", binding, no)
		}
	}
}

// What a task needs beside its files holds for the time of its transfer too, and is given back with it:
// its licences, and the uplink where it is cancelled; an outage of the site that writes moves the task behind it.
func TestTransfersBesideOtherWants(t *testing.T) {
	for _, binding := range bindings() {
		config := shores(binding)
		config.Uplink, config.Sites[1].Software = 1000, []berth.Software{{Name: "cfd", Licences: 1}}
		w := over("w", berth.Forever, 5e6, 5e6)
		for i := range w.Tasks[1:] {
			w.Tasks[i+1].Software, w.Tasks[i+1].Licences = "cfd", 1
		}
		e := newEngine(t, config)
		wantFlow(t, apply(t, e, 0, engine.SubmitWorkflow(w)), "workflow_promised:w w.1@0-10 w.2@10-35 w.3@35-60")

		// The first is cancelled before it begins: the licence and the uplink are free, and the second comes forward.
		wantFlow(t, apply(t, e, 5, engine.Cancel("w.2")), "started:w.1 cancelled:w.2 failed:2 w.3@10-35 early:60→35")
		if r, _ := e.Reservation("w.3"); len(r.Transfers) != 1 || r.Transfers[0].Start != 10 || r.Transfers[0].End != 15 {
			t.Errorf("%s: its files are moved at %+v", binding, r.Transfers)
		}

		// The site that writes is out before it does: what reads it moves its files after that.
		e = newEngine(t, config)
		apply(t, e, 0, engine.SubmitWorkflow(over("v", 200, 5e6)))
		r, _ := e.Reservation("v.1")
		apply(t, e, 0, engine.Down(berth.Outage{Resource: berth.PoolID("left", "p"), PEs: berth.PEsOf(0, 1, 2, 3), Until: 190}))
		a, _ := e.Reservation("v.1")
		b, _ := e.Reservation("v.2")
		if r.Start() != 165 || a.Start() != 190 || b.Start() != 200 || b.End() != 225 || b.Transfers[0].Start != 200 {
			t.Errorf("%s: a at %d, then at %d; b from %d to %d, with its files from %d", binding, r.Start(), a.Start(), b.Start(), b.End(), b.Transfers[0].Start)
		}
	}
}
