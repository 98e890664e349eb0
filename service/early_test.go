package service_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// bothUnits runs a test in front of a site of each kind.
func bothUnits(t *testing.T, test func(t *testing.T, w *harbour)) {
	t.Helper()
	for _, unit := range []site.Unit{site.UnitNode, site.UnitCore} {
		t.Run(string(unit), func(t *testing.T) { inHarbour(t, unit, test) })
	}
}

// A task for a promise days away is handed in now and runs when the promise
// begins, also if the service was restarted meanwhile.
func TestTaskOfAFarPromiseRunsWhenItBegins(t *testing.T) {
	bothUnits(t, func(t *testing.T, w *harbour) {
		w.reserve("far", 2, 2*day, 3600)
		w.reserve("idle", 1, 2*day, 3600)
		asked := w.now()
		job := w.run("far")
		if took := w.now() - asked; took > 30 {
			t.Errorf("handing it in took %d s", took)
		}
		w.pass(3600)
		if ours := w.state().Ours; len(ours) != 1 {
			t.Errorf("at the site are %+v, want the reservation with a task alone", ours)
		}
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		w.open()
		w.pass(2*day - 3600 - 60)
		if w.running(job) {
			t.Error("it runs before the promise begins")
		}
		w.pass(90)
		if !w.running(job) {
			t.Errorf("it does not run: %+v, %+v", w.get("far"), w.state())
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// A promise in which a task waits keeps it when it is moved. Both starts are beyond the horizon by far; one that is days
// away is that of the test before.
func TestWaitingTaskMovesWithItsPromise(t *testing.T) {
	const first, moved = 4 * 3600, 2 * 3600
	bothUnits(t, func(t *testing.T, w *harbour) {
		r := w.reserve("far", 2, first, 3600)
		job := w.run("far")
		later := r.Allotments[0].Start.Add(moved)
		to := berth.Rigid("far", 0, later, later+3600, 1, 3600)
		if a, err := w.host.Modify(t.Context(), ann, "far", to); err != nil || a.Refusal != nil {
			t.Fatalf("%+v %v", a, err)
		}
		w.pass(first + 600)
		if w.running(job) {
			t.Error("it runs when the promise began before")
		}
		w.pass(moved)
		if !w.running(job) {
			t.Errorf("it does not run: %+v, %+v", w.get("far"), w.state())
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// A far promise that is given back is taken from the site, with the task in it.
func TestWaitingTaskGoesWithItsPromise(t *testing.T) {
	bothUnits(t, func(t *testing.T, w *harbour) {
		w.reserve("far", 2, 2*day, 3600)
		w.run("far")
		if _, err := w.host.Release(t.Context(), ann, "far"); err != nil {
			t.Fatal(err)
		}
		w.pass(10)
		if ours, pending := w.state().Ours, w.state().Pending; len(ours) > 0 || len(pending) > 0 {
			t.Errorf("at the site are still %+v with %+v", ours, pending)
		}
	})
}

// Only the owner and operators prepare a reservation; a site that does not answer
// is named.
func TestPrepareSaysWhyNot(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.reserve("far", 2, 2*day, 3600)
		_, err := w.host.Prepare(t.Context(), bob, "far")
		wantCode(t, err, berth.NotFound)
		if r, err := w.host.Prepare(t.Context(), root, "far"); err != nil || !r.Sites[0].Made {
			t.Errorf("%+v %v", r, err)
		}
		w.reserve("other", 2, 2*day, 3600)
		faults, err := fake.ParseFaults("observe 1 down; observe 2 down; observe 3 down; observe 4 down; observe 5 down; observe 6 down; observe 7 down; observe 8 down")
		if err != nil {
			t.Fatal(err)
		}
		w.site.Inject(faults...)
		_, err = w.host.Prepare(t.Context(), ann, "other")
		wantCode(t, err, berth.Unavailable)
		if _, err = w.host.Release(t.Context(), ann, "other"); err != nil {
			t.Fatal(err)
		}
		_, err = w.host.Prepare(t.Context(), ann, "other")
		wantCode(t, err, berth.Conflict)
	})
}
