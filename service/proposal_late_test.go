package service_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/fake"
)

// A promise without nodes yet that is modified so that it begins now is answered when its site has made it, on
// nodes that jobs have not taken meanwhile; if there are none it is as it was.
func TestLateModificationToNowIsAskedOfTheSite(t *testing.T) {
	for name, in := range map[string]berth.Duration{"named": 300, "not named yet": 50_000} {
		t.Run(name, func(t *testing.T) {
			atQuays(t, 600, []string{"west"}, func(t *testing.T, w *quays) {
				w.pass(1)
				began := w.now()
				w.reserve("a", 2, in, 3600)
				w.pass(1)
				want := map[string]string{"named": "west n2,n3 300-3900", "not named yet": "west ? 50000-53600"}[name] // off the job
				w.taken("west", "n1")
				a, err := w.toNow("a", 4, 60, 0)
				if err != nil || a.Refusal == nil || a.Refusal.Reason != berth.NoCapacity {
					t.Fatalf("what has no room is %+v, %v", a, err)
				}
				w.pass(2)
				is, there := w.where("a", began), w.at("west", began)
				if is != want || w.get("a").State != service.Confirmed || there != is && there != "" {
					t.Errorf("it is %s, want %s as before; the site has %s", is, want, there)
				}
				w.taken("west", "n2")
				if a, err = w.toNow("a", 2, 60, 0); err != nil || a.Refusal != nil {
					t.Fatalf("what has room is %+v, %v", a, err)
				}
				now := a.Reservation.Allotments[0].Start
				if is, there = w.where("a", now), w.at("west", now); is != "west n3,n4 0-60" || there != is {
					t.Errorf("it is %s, and the site has %s", is, there)
				}
			})
		})
	}
}

// What runs is extended under late binding where there are nodes: a later promise that has the same node by name gets
// another one first.
func TestLateExtensionHasNamesGiveWay(t *testing.T) {
	atQuays(t, 600, []string{"west"}, func(t *testing.T, w *quays) {
		w.pass(1)
		began := w.now()
		w.reserve("a", 1, 0, 100)
		submit(t, w.host, ann, berth.Rigid("b", 0, began+150, began+250, 1, 100))
		w.pass(5)
		if a, b := w.where("a", began), w.where("b", began); a != "west n1 0-100" || b != "west n1 150-250" {
			t.Fatalf("a is %s and b %s", a, b)
		}
		a, err := w.host.Extend(t.Context(), ann, "a", began+200)
		if err != nil || a.Refusal != nil {
			t.Errorf("extended it is %+v, %+v, %v", a.Reservation, a.Refusal, err)
		}
		if a, b := w.where("a", began), w.where("b", began); a != "west n1 0-200" || b != "west n2 150-250" {
			t.Errorf("a is %s and b %s", a, b)
		}
		w.pass(2)
		// The site has a from when it was asked, which is a few seconds later if it was looked at just then.
		if there := w.at("west", began); !strings.HasPrefix(there, "west n1 ") || !strings.HasSuffix(there, "-200; west n2 150-250") {
			t.Errorf("the site has %s", there)
		}
	})
}

// What is held from now on under late binding is answered at once, since it is a number of nodes until it is confirmed. The
// confirmation is answered when its site has it; if that refuses, it stays held.
func TestLateHoldFromNowOn(t *testing.T) {
	atQuays(t, 600, []string{"west"}, func(t *testing.T, w *quays) {
		w.pass(1)
		now := w.now()
		held := berth.Rigid("held", 0, now, now+3600, 2, 600)
		held.Hold = 300
		if r := submit(t, w.host, ann, held).Reservation; r.State != service.Held || w.now() > now {
			t.Fatalf("after %d s it is %+v", w.now()-now, r)
		}
		w.pass(70) // it is looked at
		w.sites["west"].Inject(fake.Fault{Op: fake.Reserve, What: fake.Refuse})
		key := ann
		key.Key, key.Body = "confirm", [32]byte{1}
		_, err := w.host.Confirm(t.Context(), key, "held")
		if codeOf(err) != berth.Conflict || !strings.Contains(err.Error(), `"west" does not have the nodes of held now`) {
			t.Errorf("what has no room is confirmed: %v", err)
		}
		if r := w.get("held"); r.State != service.Held || w.at("west", now) != "" {
			t.Errorf("it is %s, and the site has %q", r.State, w.at("west", now))
		}
		if _, again := w.host.Confirm(t.Context(), key, "held"); fmt.Sprint(again) != fmt.Sprint(err) {
			t.Errorf("asked again under its key: %v, want %v", again, err)
		}
		w.sites["west"].Heal()
		w.taken("west", "n1")
		r, err := w.host.Confirm(t.Context(), ann, "held")
		if err != nil || r.State != service.Active && r.State != service.Confirmed {
			t.Errorf("confirmed it is %+v, %v", r, err)
		}
		if is, there := w.where("held", now), w.at("west", now); !strings.HasPrefix(is, "west n2,n3 ") || there[:10] != is[:10] {
			t.Errorf("it is %s, and the site has %s", is, there)
		}
	})
}

// The parts of an array that begins now under late binding are each answered when the site has them; one for which it has no
// room is refused. Asked again under the same key, when the nodes have names, after a restart and when they are over, the
// answers are the same.
func TestLateArrayFromNowOn(t *testing.T) {
	atQuays(t, 600, []string{"west"}, func(t *testing.T, w *quays) {
		w.pass(1)
		w.taken("west", "n2")
		now := w.now()
		key := ann
		key.Key, key.Body = "sweep", [32]byte{1}
		ask := func() []service.Answer {
			t.Helper()
			answers, err := w.host.SubmitArray(t.Context(), key, berth.Rigid("sweep", 0, now, now+300, 1, 290), 4)
			if err != nil {
				t.Fatal(err)
			}
			return answers
		}
		states := func(answers []service.Answer) (all string) {
			for i := range answers {
				r := &answers[i].Reservation
				all += fmt.Sprintf("%s %s %d v%d; ", r.ID, r.State, len(r.Allotments), r.Version)
			}
			return all
		}
		first := states(ask())
		if strings.Count(first, "active 1") != 3 || strings.Count(first, "refused 0") != 1 {
			t.Errorf("beside a job on one of four nodes: %s", first)
		}
		w.pass(2)
		if there := w.at("west", now); strings.Count(there, "west ") != 3 || strings.Contains(there, "n2") {
			t.Errorf("the site has %s", there)
		}
		if again := states(ask()); again != first {
			t.Errorf("asked again: %s, want %s", again, first)
		}
		w.restart()
		if again := states(ask()); again != first {
			t.Errorf("after a restart: %s, want %s", again, first)
		}
		w.pass(700)
		if again := states(ask()); again != first {
			t.Errorf("when it is over: %s, want %s", again, first)
		}
	})
}

// A key under which something far ahead was promised has the answer of then, a number of nodes, also when they have names and
// when it was modified since; its own modification under another key has its own.
func TestLateKeysOverTheHorizon(t *testing.T) {
	atQuays(t, 600, []string{"west"}, func(t *testing.T, w *quays) {
		w.pass(1)
		from := w.now() + 1000
		key, sooner := ann, ann
		key.Key, key.Body = "far", [32]byte{1}
		sooner.Key, sooner.Body = "sooner", [32]byte{2}
		ask := func() string {
			a, err := w.host.Submit(t.Context(), key, berth.Rigid("p", 0, from, from+600, 2, 600))
			return fmt.Sprintf("%s %d %v v%d %v", a.Reservation.State, len(a.Reservation.Allotments), a.Reservation.Allotments[0].PEs, a.Reservation.Version, err)
		}
		first := ask()
		w.pass(500)
		if named := w.where("p", from); named != "west n1,n2 0-600" || ask() != first {
			t.Errorf("named it is %s, and under its key %s, want %s", named, ask(), first)
		}
		now := w.now()
		modify := func() string {
			a, err := w.host.Modify(t.Context(), sooner, "p", berth.Rigid("p", 0, now, now+900, 3, 300))
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%s %v v%d %v", a.Reservation.State, a.Reservation.Allotments[0], a.Reservation.Version, a.Refusal)
		}
		changed := modify()
		for _, restarts := range []bool{false, true} {
			w.pass(5)
			if restarts {
				w.restart()
			}
			if again := modify(); again != changed || ask() != first {
				t.Errorf("asked again: %s and %s, want %s and %s", again, ask(), changed, first)
			}
		}
		if is, there := w.where("p", now), w.at("west", now); !strings.HasPrefix(is, "west n1,n2,n3 ") || there != is {
			t.Errorf("it is %s, and the site has %s", is, there)
		}
	})
}

// Roles count under late binding as under early: others cannot change what is not theirs, a viewer may not change,
// an operator may, and what they ask for now is asked of the site.
func TestLateRoles(t *testing.T) {
	atQuays(t, 600, []string{"west"}, func(t *testing.T, w *quays) {
		w.pass(1)
		w.reserve("a", 2, 50_000, 600)
		w.taken("west", "n1")
		now := w.now()
		viewer := service.Ask{By: service.Principal{User: "vera", Role: service.Viewer}}
		for _, ask := range []service.Ask{bob, viewer} {
			if a, err := w.host.Modify(t.Context(), ask, "a", berth.Rigid("a", 0, now, now+900, 2, 300)); codeOf(err) != berth.NotFound && codeOf(err) != berth.Denied {
				t.Errorf("%s has changed it: %+v, %v", ask.By.User, a, err)
			}
		}
		if there := w.sites["west"].asked; len(there) > 0 {
			t.Errorf("the site was asked: %v", there)
		}
		if a, err := w.host.Modify(t.Context(), root, "a", berth.Rigid("a", 0, now, now+900, 2, 300)); err != nil || a.Refusal != nil || a.Reservation.Request.User != "ann" {
			t.Errorf("%+v, %v", a, err)
		}
		if is, there := w.where("a", now), w.at("west", now); !strings.HasPrefix(is, "west n2,n3 ") || !strings.HasPrefix(there, "west n2,n3 ") {
			t.Errorf("it is %s, and the site has %s", is, there)
		}
	})
}
