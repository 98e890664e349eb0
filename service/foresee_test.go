package service_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// What an offer costs is foreseen from the queue of the site as the last look showed it, in the order of the site. Jobs that are held, or that wait
// in a reservation, are left out.
func TestOffersTellWhatTheyCostTheQueueOfASite(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		cost := func() engine.Cost {
			t.Helper()
			from := w.now() + 300
			r := berth.Rigid("", 0, from, from+300, 2, 300)
			list, err := w.host.Offers(t.Context(), ann, r, 1)
			if err != nil || len(list) != 1 || list[0].Cost == nil {
				t.Fatalf("offered %+v, %v", list, err)
			}
			return *list[0].Cost
		}
		if got, want := cost(), (engine.Cost{Complete: true}); got != want {
			t.Errorf("while nothing waits it costs %+v, want %+v", got, want)
		}
		for _, j := range []site.Job{
			{Nodes: 4, Limit: 600},
			{Nodes: 1, Limit: 400},
			{Nodes: 1, Limit: 400, Held: true},
			{Nodes: 1, Limit: 400, Reservation: "theirs"},
		} {
			j.User, j.Partition, j.Cores = "ann", "main", 4*j.Nodes
			w.site.Enqueue(j)
		}
		w.pass(6)
		// All four nodes are used for 600 s, and one for 400 s behind that. With the promise the wide job begins at
		// its end, in 600 s; the other one begins now, and leaves three nodes idle for 300 s.
		want := engine.Cost{Delayed: 1, Sum: 600, Largest: 600, Idle: 3 * 300, Followed: 2, Complete: true}
		if got := cost(); got != want {
			t.Errorf("it costs %+v, want %+v", got, want)
		}
	})
}

// Ordinary jobs that wait in Berth are delayed like those of a site.
func TestOffersTellWhatTheyCostJobsOfBerth(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	for range 2 {
		j := berth.Job("", 0, 4, 600)
		submit(t, h, ann, j)
	}
	list, err := h.Offers(t.Context(), bob, berth.Rigid("", 0, 1900, 2000, 4, 100), 1)
	if err != nil || len(list) != 1 || list[0].Cost == nil {
		t.Fatalf("offered %+v, %v", list, err)
	}
	want := engine.Cost{Delayed: 1, Sum: 400, Largest: 400, Idle: 4 * 300, Followed: 2, Complete: true}
	if got := *list[0].Cost; got != want {
		t.Errorf("it costs %+v, want %+v", got, want)
	}
	if held, err := h.Hold(t.Context(), bob, list[0].ID, 60); err != nil || held.Reservation.State != service.Held {
		t.Errorf("held it is %+v, %v", held.Reservation, err)
	}
}

// Limits on what a promise costs are about the jobs that wait at the site by themselves too.
func TestCostsToTheQueueOfASiteAreBounded(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		w.options.Config.Limits = policy.Limits{{Scope: policy.Scope{Role: "user"}, Name: policy.LimitDelay, Value: 60}}
		w.open()
		w.pass(6)
		for _, j := range []site.Job{{Nodes: 4, Limit: 600}, {Nodes: 1, Limit: 400}} {
			j.User, j.Partition, j.Cores = "ann", "main", 4*j.Nodes
			w.site.Enqueue(j)
		}
		w.pass(6)
		start := w.now() + 300
		a := submit(t, w.host, ann, berth.Rigid("", 0, start, start+300, 2, 300))
		if no := a.Reservation.Refusal; no == nil || no.Exceeded == nil || no.Exceeded.Limit != string(policy.LimitDelay) || no.Exceeded.Asked != 600 {
			t.Errorf("it is %s: %+v, want it refused since a job would be delayed by 600 s", a.Reservation.State, no)
		}
		if len(a.Offers) == 0 {
			t.Error("no offers come with the refusal")
		}
		if a := submit(t, w.host, root, berth.Rigid("", 0, start, start+300, 2, 300)); a.Reservation.State != service.Confirmed {
			t.Errorf("an operator's is %s", a.Reservation.State)
		}
	})
}
