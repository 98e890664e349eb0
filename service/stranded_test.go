package service_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// A job whose promise moves to another site cannot follow. Its owner is told that it has ended, and why, and so does the history,
// once, also if the service has not seen the job before.
func TestJobsWhosePromiseMovesToAnotherSite(t *testing.T) {
	for _, seen := range []bool{true, false} {
		t.Run(fmt.Sprintf("seen=%v", seen), func(t *testing.T) {
			atQuays(t, 0, []string{"a", "b"}, func(t *testing.T, w *quays) {
				start := w.now().Add(3600)
				r := berth.Rigid("r", 0, start, start.Add(7200), 4, 600)
				at := submit(t, w.host, ann, r).Reservation.Allotments[0].Resource.Site
				if !seen {
					w.pass(120)
				}
				job, err := w.host.Run(t.Context(), ann, "r", site.Task{Command: []string{"true"}, Dir: "/"})
				if err != nil {
					t.Fatal(err)
				}
				if seen {
					w.pass(120)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				told := make(chan string, 10)
				go func() {
					for n, err := range w.host.Listen(ctx, ann.By, w.host.LastEvent()) {
						if err == nil && n.Task != nil {
							told <- fmt.Sprint(n.Reservation.ID, " ", n.What, " ", n.Task.ID, " ", n.Task.Result.Ending, " ", n.Task.Reason)
						}
					}
				}()
				m := service.Maintenance{Name: "m", Site: at, Times: []berth.Interval{{Start: start.Add(-60), End: start.Add(14_400)}}}
				if _, way, err := w.host.AddMaintenance(t.Context(), root, m, false); err != nil || !slices.Equal(way, []string{"r"}) {
					t.Fatal(way, err)
				}
				w.pass(300)
				if now := w.get("r").Allotments[0].Resource.Site; now == at {
					t.Fatalf("it is at %s still", now)
				}
				want := fmt.Sprintf("r task_ended %s cancelled its promise has moved to another site; hand it in again", job)
				if got := <-told; got != want || len(told) > 0 {
					t.Errorf("told was %q and %d more, want %q", got, len(told), want)
				}
				w.restart()
				w.pass(300)
				past, _, err := w.host.History(t.Context(), ann.By, "r")
				n := 0
				for _, h := range past.List {
					if h.Task != nil && h.What == service.TaskEnded && h.Task.ID == job && strings.Contains(h.Task.Reason, "hand it in again") {
						n++
					}
				}
				if n != 1 || err != nil {
					t.Errorf("the history tells %d times that it ended: %+v, %v", n, past.List, err)
				}
				cancel()
			})
		})
	}
}
