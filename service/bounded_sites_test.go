package service_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// bound has no promise of a user delay a job by more than a minute, from a restart on.
func (w *quays) bound() {
	w.options.Config.Limits = policy.Limits{{Scope: policy.Scope{Role: "user"}, Name: policy.LimitDelay, Value: 60}}
	w.restart()
	w.pass(1)
}

// queue has a job wait at a site that wants all of its nodes.
func (w *quays) queue(at string, limit berth.Duration) {
	w.sites[at].Enqueue(site.Job{User: "bob", Nodes: 4, Cores: 16, Limit: limit, Partition: "main"})
	w.pass(70) // until a look shows it
}

// While a site has not told which jobs wait there, no promise is made whose cost is bounded.
func TestCostsAreBoundedOnceASiteIsReached(t *testing.T) {
	atQuays(t, 0, []string{"west"}, func(t *testing.T, w *quays) {
		w.sites["west"].Inject(fake.Fault{Op: fake.All, What: fake.Down})
		w.bound()
		later := w.now() + 600
		r := berth.Rigid("", 0, later, later+600, 2, 600)
		if _, err := w.host.Submit(t.Context(), ann, r); codeOf(err) != berth.Unavailable {
			t.Errorf("%v, want it unavailable", err)
		}
		if _, err := w.host.Offers(t.Context(), ann, r, 3); codeOf(err) != berth.Unavailable {
			t.Errorf("offers: %v, want them unavailable", err)
		}
		if a := submit(t, w.host, root, r); a.Reservation.State != service.Confirmed {
			t.Errorf("an operator's is %s", a.Reservation.State)
		}
		w.sites["west"].Heal()
		w.pass(200)
		if a := submit(t, w.host, ann, r); a.Reservation.State != service.Confirmed {
			t.Errorf("once it is reached it is %s", a.Reservation.State)
		}
	})
}

// A change whose site is asked about it is foreseen first, and once. One that costs too much is refused without asking the site.
func TestCostsOfChangesThatSitesAreAskedAbout(t *testing.T) {
	bindings(t, []string{"west"}, func(t *testing.T, w *quays) {
		w.bound()
		later := w.now() + 3000
		for _, id := range []string{"a", "b"} {
			if s := submit(t, w.host, ann, berth.Rigid(id, 0, later, later+600, 1, 600)).Reservation.State; s != service.Confirmed {
				t.Fatalf("%s is %s", id, s)
			}
		}
		w.queue("west", 300)
		before := len(w.sites["west"].asked)
		now := w.now()
		no, err := w.host.Modify(t.Context(), ann, "a", berth.Rigid("a", 0, now, now+5000, 1, 4000))
		if err != nil || no.Refusal == nil || no.Refusal.Exceeded == nil || no.Refusal.Exceeded.Limit != string(policy.LimitDelay) {
			t.Errorf("%+v, %v, want it refused for what it costs", no.Refusal, err)
		}
		if asked := w.sites["west"].asked[before:]; len(asked) > 0 {
			t.Errorf("the site was asked: %v", asked)
		}
		if a, err := w.host.Extend(t.Context(), ann, "b", later+700); err != nil || a.Refusal != nil {
			t.Errorf("extended: %+v, %v", a.Refusal, err)
		}
	})
}
