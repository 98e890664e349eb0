package service_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// A task that was handed in under a key is told again under it, also when its reservation is over: a
// client that lost the first answer learns that it ran.
func TestATaskIsToldAgainWhenItsReservationIsOver(t *testing.T) {
	bindings(t, []string{"west"}, func(t *testing.T, w *quays) {
		w.pass(1)
		w.reserve("a", 2, 300, 600)
		w.pass(70)
		task := site.Task{Command: []string{"x"}, Dir: "/"}
		keyed := ann
		keyed.Key = "k"
		job, err := w.host.Run(t.Context(), keyed, "a", task)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.host.Release(t.Context(), ann, "a"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			w.pass(70)
			if again, err := w.host.Run(t.Context(), keyed, "a", task); err != nil || again != job {
				t.Errorf("told again: job %q, %v; want %q", again, err, job)
			}
			other := task
			other.Command = []string{"y"}
			if _, err := w.host.Run(t.Context(), keyed, "a", other); codeOf(err) != berth.Conflict {
				t.Errorf("another task under its key: %v", err)
			}
			for _, key := range []string{"", "another"} {
				unknown := ann
				unknown.Key = key
				if id, err := w.host.Run(t.Context(), unknown, "a", task); codeOf(err) != berth.Conflict {
					t.Errorf("a task under the key %q: job %q, %v", key, id, err)
				}
			}
			w.restart()
		}
	})
}

// The key under which the service hands in the task of a workflow is no one else's in its reservation.
func TestNobodyTakesTheKeyOfAWorkflow(t *testing.T) {
	bindings(t, []string{"west"}, func(t *testing.T, w *quays) {
		w.pass(1)
		flow := berth.Workflow{ID: "w", Deadline: berth.Forever, Algorithm: "bd-cpar", Repair: berth.RepairHold, Tasks: []berth.WorkflowTask{{ID: "t", Seconds: 600, Most: 1}}}
		if _, err := w.host.SubmitWorkflow(t.Context(), ann, flow); err != nil {
			t.Fatal(err)
		}
		w.pass(70)
		task := site.Task{Command: []string{"x"}, Dir: "/"}
		for _, key := range []string{"workflow", "other"} {
			task.Key = key
			if _, err := w.host.Run(t.Context(), ann, "w.1", task); (codeOf(err) == berth.Conflict) != (key == "workflow") {
				t.Errorf("under the key %q: %v", key, err)
			}
		}
	})
}
