package service_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// Jobs that users hand in at Slurm are tasks too: their starts and ends are events, also of
// a job that is cancelled before it runs, which has never started.
func TestTasksAtSlurmAreEvents(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLab(t, false)
	l.reserve("runs", 2, 3, 600)
	l.reserve("far", 1, 400, 600)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	notices := l.host.Listen(ctx, l.by.By, 0)
	fails := l.sbatch("runs", "--nodes=2", "--wrap=sleep 3; exit 7")
	cancelled := l.sbatch("far")
	if out, err := l.cluster.Command("scancel", cancelled); err != nil {
		t.Fatal(err, out)
	}
	var got []string
	ended := 0
	for n := range notices {
		if n.Task == nil {
			continue
		}
		got = append(got, fmt.Sprint(n.Reservation.ID, " ", n.Task.ID, " ", n.What, " ", n.Task.Result))
		if n.What == service.TaskEnded {
			if ended++; ended == 2 {
				break
			}
		}
	}
	slices.Sort(got)
	want := []string{
		fmt.Sprint("far ", cancelled, " ", service.TaskEnded, " ", site.Result{Ending: site.Cancelled}),
		fmt.Sprint("runs ", fails, " ", service.TaskEnded, " ", site.Result{Ending: site.Failed, Code: 7}),
		fmt.Sprint("runs ", fails, " ", service.TaskStarted, " ", site.Result{}),
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
