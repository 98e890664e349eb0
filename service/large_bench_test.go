//go:build linux

package service

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/cputime"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// BenchmarkLargeWorkflowInTheLoop is for how long the loop of a whole service is held by a workflow that was planned
// beside it, among 20,000 live reservations, under a key: in CPU time of its thread. What a site is occupied by is asked for before and after
// it, and how long the second question is held by what it has to follow is told too.
func BenchmarkLargeWorkflowInTheLoop(b *testing.B) {
	const live, pes, now = 20_000, 1024, 1000
	store, err := sqlite.Open(b.TempDir(), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: pes, Binding: berth.Late}}}}}
	h, err := Open(b.Context(), Options{Config: config, Journal: store, Version: "test", Clock: func() time.Time { return time.Unix(now, 0) }})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	defer func() { _ = h.Close() }()
	inLoop := func(do func(answer func(error))) {
		b.Helper()
		if _, err := call(b.Context(), h, "ann", func(answer func(struct{}, error)) { do(func(err error) { answer(struct{}{}, err) }) }); err != nil {
			b.Fatal(err)
		}
	}
	for i := range live {
		r := berth.Rigid(fmt.Sprint("r", i), now, now+berth.Time(i*7%90_000), 1<<30, berth.Count(1+i%8), berth.Duration(60+i*13%3000))
		inLoop(func(answer func(error)) { answer(h.step(engine.Submit(&r), asked{id: r.ID}, nil)) })
	}
	for _, tasks := range []int{1000, berth.MaxWorkflowTasks} {
		w := abreast("w", tasks, berth.Forever)
		w.Arrival, w.Algorithm, w.User = now, berth.SlackAlgorithm, "ann"
		for i := range w.Tasks {
			k := &w.Tasks[i]
			if k.Seconds, k.Most = float64(60+i*37%600), berth.Count(1+i%8); i >= 100 {
				k.After = []int{i - 100, i - i%100 - 1}
			}
		}
		b.Run(fmt.Sprintf("tasks=%d", tasks), func(b *testing.B) {
			var spent, most, followed time.Duration
			follow := func() time.Duration {
				return cputime.Of(func() {
					if _, _, err := h.agenda.follow(h); err != nil {
						b.Fatal(err)
					}
				})
			}
			for n := 0; b.Loop(); n++ {
				own := *w.Clone()
				own.ID = fmt.Sprint("w", tasks, "-", n)
				var plan *engine.WorkflowPlan
				inLoop(func(answer func(error)) {
					var err error
					plan, _, err = h.core.engine.PlanWorkflow(&own, engine.PlanOptions{From: now + 9})
					answer(err)
				})
				runtime.GC()
				follow()
				a := asked{key: Key{User: "ann", Name: own.ID}, id: own.ID}
				inLoop(func(answer func(error)) {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					before := threadTime(b)
					if err := h.flowTaken(&own); err != nil {
						answer(err)
						return
					}
					h.stepFlow(engine.SubmitPlanned(&own, plan), a, own.ID, nil, func(a FlowAnswer, err error) {
						if err == nil && a.Workflow.State != FlowPromised {
							err = fmt.Errorf("it is %s", a.Workflow.State)
						}
						answer(err)
					})
					took := threadTime(b) - before
					spent, most = spent+took, max(most, took)
				})
				followed += follow()
				inLoop(func(answer func(error)) { answer(h.step(engine.CancelWorkflow(own.ID), asked{}, nil)) })
			}
			b.ReportMetric(spent.Seconds()*1000/float64(b.N), "loop-ms/op")
			b.ReportMetric(most.Seconds()*1000, "most-ms")
			b.ReportMetric(followed.Seconds()*1000/float64(b.N), "occupied-ms/op")
		})
	}
}
