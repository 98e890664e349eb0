package service_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

func TestTasksOfAReservationAreTold(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.reserve("r", 2, 0, 3600)
		w.reserve("other", 1, 0, 3600)
		w.pass(10)
		job := w.run("r")
		w.run("other")
		tasks := func() []service.Task {
			w.pass(10)
			got, err := w.host.Tasks(t.Context(), ann.By, "r")
			if err != nil || len(got.Untold) > 0 {
				t.Fatalf("%+v %v", got, err)
			}
			return got.List
		}
		if got := tasks(); len(got) != 1 || got[0].ID != job || got[0].Stage != site.Running || got[0].Site != "harbour" {
			t.Errorf("%+v, want job %s running", got, job)
		}
		_, err := w.host.Tasks(t.Context(), bob.By, "r")
		wantCode(t, err, berth.NotFound)
		if _, err := w.host.Release(t.Context(), ann, "r"); err != nil {
			t.Fatal(err)
		}
		if got := tasks(); len(got) != 1 || got[0].Stage != site.Ended || got[0].Result.Ending != site.Cancelled {
			t.Errorf("once the reservation is over: %+v, want job %s cancelled", got, job)
		}
	})
}

// A caller that asks at once finds the task that was handed in, even if the site was looked
// at just before.
func TestTaskIsAmongThoseToldAtOnce(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.reserve("r", 2, 0, 3600)
		w.pass(10)
		if got, err := w.host.Tasks(t.Context(), ann.By, "r"); err != nil || len(got.List) > 0 {
			t.Fatalf("%+v %v, want none yet", got, err)
		}
		job := w.run("r")
		if got, err := w.host.Tasks(t.Context(), ann.By, "r"); err != nil || len(got.List) != 1 || got.List[0].ID != job {
			t.Errorf("%+v %v, want job %s", got, err, job)
		}
	})
}

func TestSitesWithoutAdapterTellNoTasks(t *testing.T) {
	h := start(t, t.TempDir(), onePool(4), &clock{})
	submit(t, h, ann, berth.Rigid("r", 0, 0, 100, 1, 50))
	got, err := h.Tasks(t.Context(), ann.By, "r")
	if err != nil || len(got.List) > 0 || len(got.Untold) != 1 || got.Untold[0] != "site" {
		t.Errorf("%+v %v, want the site named as one that does not tell", got, err)
	}
}
