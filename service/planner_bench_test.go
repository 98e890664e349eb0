//go:build linux

package service

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// threadTime returns the CPU time of this thread.
func threadTime(b *testing.B) time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkLargeWorkflow is for how long the loop decides about a large workflow among 20,000 live
// reservations, in CPU time of its thread: as planned beside, and where it is planned in the loop.
// A refused one comes with its offers.
func BenchmarkLargeWorkflow(b *testing.B) {
	const live, pes, now = 20_000, 1024, 1000
	config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: pes, Binding: berth.Late}}}}}
	core, err := newCore(config, "test", 1000)
	if err != nil {
		b.Fatal(err)
	}
	h := &Host{core: core, options: Options{Config: config}}
	for i := range live {
		r := berth.Rigid(fmt.Sprint("r", i), now, now+berth.Time(i*7%90_000), 1<<30, berth.Count(1+i%8), berth.Duration(60+i*13%3000))
		event := engine.Submit(&r)
		core.seal(core.apply(now, &event), &asked{id: r.ID})
	}
	for _, tasks := range []int{100, 1000, berth.MaxWorkflowTasks} {
		for _, deadline := range []berth.Time{berth.Forever, 1100} {
			w := abreast("w", tasks, deadline)
			w.Arrival, w.Algorithm = now, berth.SlackAlgorithm
			for i := range w.Tasks {
				k := &w.Tasks[i]
				if k.Seconds, k.Most = float64(60+i*37%600), berth.Count(1+i%8); i >= 100 {
					k.After = []int{i - 100, i - i%100 - 1}
				}
			}
			for _, beside := range []bool{true, false} {
				name := fmt.Sprintf("tasks=%d/refused=%t/beside=%t", tasks, deadline != berth.Forever, beside)
				b.Run(name, func(b *testing.B) {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					var spent time.Duration
					for n := 0; b.Loop(); n++ {
						event, offers := engine.SubmitWorkflow(&w), []engine.WorkflowOffer(nil)
						w.ID = fmt.Sprint("w", n)
						if beside {
							plan, made, err := core.engine.PlanWorkflow(&w, engine.PlanOptions{From: now + 9, Offers: flowOffers})
							if err != nil {
								b.Fatal(err)
							}
							event, offers = engine.SubmitPlanned(&w, plan), made
						}
						before := threadTime(b)
						s := core.apply(now, &event)
						if !beside && deadline != berth.Forever {
							own := w.Clone()
							own.Deadline = berth.Forever
							offers, _ = core.engine.WorkflowOffers(own, flowOffers)
						}
						a := asked{id: w.ID}
						f := core.flows.byID[w.ID]
						if f == nil || f.outcome == refusedFlow != (deadline != berth.Forever) {
							b.Fatal("it came out otherwise")
						}
						h.flowAnswer(f, append(offers, engine.WorkflowOffer{}))
						core.seal(s, &a)
						spent += threadTime(b) - before
						if f.outcome != refusedFlow {
							event := engine.CancelWorkflow(w.ID)
							core.seal(core.apply(now, &event), &asked{id: w.ID})
						}
					}
					b.ReportMetric(spent.Seconds()*1000/float64(b.N), "loop-ms/op")
				})
			}
		}
	}
}
