package service_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// oneBehindAnother is a workflow of two tasks of 400 s.
func oneBehindAnother(repair berth.Repair) berth.Workflow {
	work := berth.Work{Script: "#!/bin/sh\n", Dir: "/data"}
	return berth.Workflow{ID: "flow", Deadline: berth.Forever, Algorithm: "bd-cpar", Repair: repair, Tasks: []berth.WorkflowTask{
		{ID: "a", Seconds: 400, Alpha: 1, Most: 1, Retries: 1, Work: work}, {ID: "b", Seconds: 400, Alpha: 1, Most: 1, After: []int{0}, Work: work},
	}}
}

// A task that ended while the service was stopped has come out as its site says, also where all the time that it may
// have passed meanwhile: one that has succeeded is not run again, and one that failed has failed for its own reason.
func TestTasksThatEndedWhileStoppedAreNotRunAgain(t *testing.T) {
	for repair, stopped := range map[berth.Repair]int{berth.RepairHold: 500, berth.RepairBoth: 860} {
		for _, code := range []int{0, 3} {
			inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
				ran := map[string]int{}
				w.outcome = func(task site.Task) (berth.Duration, site.Result) {
					switch ran[task.Name]++; {
					case ran["a"] > 1 || ran["b"] > 0:
						return 100, site.Result{Ending: site.Completed}
					case code != 0:
						return 300, site.Result{Ending: site.Failed, Code: code}
					}
					return 300, site.Result{Ending: site.Completed}
				}
				if _, err := w.host.SubmitWorkflow(t.Context(), ann, oneBehindAnother(repair)); err != nil {
					t.Fatal(err)
				}
				w.pass(60)
				if err := w.host.Close(); err != nil {
					t.Fatal(err)
				}
				w.pass(stopped)
				w.open()
				w.pass(1000)
				f, err := w.host.Workflow(t.Context(), ann.By, "flow")
				if err != nil {
					t.Fatal(err)
				}
				want := map[int]int{0: 1, 3: 2}[code]
				if f.State != service.FlowSucceeded || f.Tasks[0].Tries != want || ran["a"] != want || ran["b"] != 1 {
					t.Errorf("%s, exit code %d: %s, a ran %d times, want %d, b %d times, want once: %+v", repair, code, f.State, ran["a"], want, ran["b"], f.Tasks)
				}
			})
		}
	}
}

// A task that ends between the last look and the end of its time, which it may not exceed, is heard of before that,
// whenever the looks are.
func TestATaskThatEndsJustInTimeHasSucceeded(t *testing.T) {
	for seconds := range berth.Duration(5) {
		inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
			ran := 0
			w.outcome = func(site.Task) (berth.Duration, site.Result) {
				ran++
				return 399 + seconds, site.Result{Ending: site.Completed}
			}
			f := oneBehindAnother(berth.RepairHold)
			f.Tasks[0].Seconds += float64(seconds)
			if _, err := w.host.SubmitWorkflow(t.Context(), ann, f); err != nil {
				t.Fatal(err)
			}
			w.pass(430)
			is, err := w.host.Workflow(t.Context(), ann.By, "flow")
			if err != nil || is.Tasks[0].Outcome != berth.Succeeded || ran != 2 {
				t.Errorf("after %d s: %d tasks began: %+v, %v", 399+seconds, ran, is.Tasks[0], err)
			}
		})
	}
}
