//go:build unix

package servicebench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/workload"
)

// drawn returns workflow seed of n tasks by daggen, with the defaults of Aida and
// Casanova's Table 1, as the API takes it.
func drawn(t *testing.T, tasks int, seed uint64) *form.WorkflowRequest {
	t.Helper()
	d := workload.NewDaggen()
	d.Tasks = tasks
	w, err := d.Generate(seed)
	if err != nil {
		t.Fatal(err)
	}
	r := &form.WorkflowRequest{Tasks: make([]form.TaskToRun, w.Len())}
	for i := range r.Tasks {
		k := w.Task(i)
		r.Tasks[i] = form.TaskToRun{ID: k.ID, Seconds: k.Sequential, Alpha: k.Alpha}
		for _, parent := range w.Parents(i) {
			r.Tasks[i].After = append(r.Tasks[i].After, w.Task(int(parent)).ID)
		}
	}
	return r
}

// workflows: clients over loopback, closed loop, have workflows promised among what is live, each
// on record before it is answered: as early as possible, and by a deadline three times as far off as the
// last of them ends then. What a round has promised is given back before the next one, untimed, so
// that each round finds what is live.
func workflows(t *testing.T, size *sizes, lines *table) {
	store, config := openStore(t, t.TempDir()), clusters(1, size.flowPEs)
	h := open(t, &service.Options{Config: config, Journal: store})
	d := newDemand(h, size.flowLive, size.flowPEs, 7)
	refused := fill(t, h, d, size.flowLive, 1, 1)
	// Of one user no more than eight are planned at a time, which are no more in a round of these.
	speakers := make([]*client.Client, 4)
	for i := range speakers {
		speakers[i] = speakAs(t, h, 16, fmt.Sprint("user", i))
	}
	for _, row := range []struct {
		tasks, clients, each int
		goal                 string
	}{
		{size.flowTasks, 1, size.flows, "25 ms"},
		{size.flowTasks, 16, 2 * size.flows, "200/s"},
		{10 * size.flowTasks, 1, max(1, size.flows/4), "150 ms"},
	} {
		asks, needs := make([]*form.WorkflowRequest, row.each), make([]form.Time, row.each)
		for i := range asks {
			asks[i] = drawn(t, row.tasks, uint64(i))
		}
		for _, kind := range []string{"as early as possible", "by a deadline"} {
			if kind == "by a deadline" {
				for i := range asks { // that of the one that has waited longest for the others
					asks[i].Deadline = form.Time(h.Now()) + 3*slices.Max(needs)
				}
			}
			var took latencies
			var all spent
			for range size.flowRounds {
				ids := make([]string, row.each)
				watch := stopwatch()
				took = append(took, crowd(t, row.clients, row.each, 2, func(ctx context.Context, _ *rand.Rand, i int) error {
					a, err := speakers[i%len(speakers)].SubmitWorkflow(ctx, asks[i], client.Action{})
					if err == nil && (a.Decision != "promised" || len(a.Workflow.Tasks) != row.tasks) {
						err = fmt.Errorf("answered %q, refusal %+v", a.Decision, a.Workflow.Refusal)
					}
					needs[i] = a.Workflow.End - a.Workflow.Created
					ids[i] = a.Workflow.ID
					return err
				})...)
				round := watch()
				all.wall, all.cpu = all.wall+round.wall, all.cpu+round.cpu
				right(t, h, &config)
				for i, id := range ids {
					if _, err := speakers[i%len(speakers)].CancelWorkflow(t.Context(), id, client.Action{}); err != nil {
						t.Fatal(err)
					}
				}
			}
			n := size.flowRounds * row.each
			lines.add(fmt.Sprintf("%d tasks %s, %d clients, %d live", row.tasks, kind, row.clients, size.flowLive-refused), row.goal,
				"%s, %s; %.1f ms of CPU each", perSecond(n, all.wall), took, all.cpu.Seconds()*1000/float64(n))
		}
	}
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
}
