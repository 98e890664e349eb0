package service_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// beside starts a host that stands by at the journal of a harbour.
func (w *harbour) beside() *service.Host {
	w.t.Helper()
	options := w.options
	options.Managers, options.Config = nil, engine.Config{}
	s, err := service.Stand(w.t.Context(), options, func() string { return "http://a.example.org leads" }, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// shownAlike compares what two hosts show. What sites have only the one knows that looks after them.
func (w *harbour) shownAlike(a, b *service.Host) {
	w.t.Helper()
	list := func(h *service.Host) []service.Reservation {
		all, _, err := h.List(w.t.Context(), root.By, service.Filter{})
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range all {
			all[i].Sites, all[i].Nodes = nil, nil
		}
		return all
	}
	if diff := cmp.Diff(list(a), list(b)); diff != "" {
		w.t.Fatal(diff)
	}
	flows := func(h *service.Host) []service.Workflow {
		all, _, err := h.Workflows(w.t.Context(), root.By, service.FlowFilter{})
		if err != nil {
			w.t.Fatal(err)
		}
		return all
	}
	if diff := cmp.Diff(flows(a), flows(b)); diff != "" {
		w.t.Fatal(diff)
	}
	outages := func(h *service.Host) []service.PoolOutage {
		all, err := h.Outages(w.t.Context(), root.By)
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range all {
			all[i].Nodes = nil // that sites describe
		}
		return all
	}
	if diff := cmp.Diff(outages(a), outages(b)); diff != "" {
		w.t.Fatal(diff)
	}
}

// heard returns what a host tells behind a notice.
func (w *harbour) heard(h *service.Host, after uint64) []service.Notice {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Millisecond)
	defer cancel()
	var list []service.Notice
	for n, err := range h.Listen(ctx, root.By, after) {
		if err != nil {
			w.t.Fatal(err)
		}
		n.Reservation.Sites, n.Reservation.Nodes = nil, nil // that the leader alone knows
		list = append(list, n)
	}
	return list
}

// toldAlike compares what two lists of notices say: with what numbers, of what, and as it was then.
func (w *harbour) toldAlike(a, b []service.Notice) {
	w.t.Helper()
	if diff := cmp.Diff(a, b); diff != "" {
		w.t.Fatal(diff)
	}
}

// accounting is a site that lets everyone into every account.
type accounting struct{ manyByItself }

func (accounting) Admits(context.Context, *site.Partition, *site.Entry) (site.Admission, error) {
	return site.Admission{}, nil
}

// In random histories, in which the one that stands by takes over again and again, it shows what the
// leader shows, within a second, and goes on where that ended; site and service are in line in the end.
func TestStandbyFollowsAndTakesOver(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			harbourOf(t, []site.Unit{site.UnitNode, site.UnitCore}[seed%2], true, func(t *testing.T, w *harbour) {
				s := storm{w, rand.New(rand.NewPCG(seed, 20)), t, nil}
				of := [2]string{}
				if a, is := w.options.Managers["harbour"].Adapter.(manyByItself); is {
					of = [2]string{"phys", "bio"}
					m := w.options.Managers["harbour"]
					m.Adapter = accounting{a}
					w.options.Managers["harbour"] = m
					if err := w.host.Close(); err != nil {
						t.Fatal(err)
					}
					w.open()
				}
				standby, flows := w.beside(), 0
				time.Sleep(time.Second / 2) // what happens does so at whole seconds, and is looked at in between
				first := max(w.host.LastEvent(), standby.LastEvent())
				for step := range 30 {
					if step%10 == 7 { // it is under way when the other takes over
						flow := berth.Workflow{
							ID: fmt.Sprint("flow", step), Account: of[0], Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth,
							Tasks: []berth.WorkflowTask{
								{ID: "a", Seconds: 40, Most: 1, Retries: 1},
								{ID: "b", Seconds: 40, Most: 2, After: []int{0}, Account: of[1]},
								{ID: "c", Seconds: 60, Most: 1, After: []int{0}},
								{ID: "d", Seconds: 90, Most: 1, After: []int{1, 2}},
							},
						}
						a, err := w.host.SubmitWorkflow(t.Context(), ann, flow)
						if err != nil {
							t.Fatal(err)
						}
						if a.Workflow.Refusal == nil {
							flows++
						}
					}
					was := w.host
					if s.happen(); w.host != was { // what was told before a restart is not kept
						first = max(w.host.LastEvent(), standby.LastEvent())
					}
					w.pass(1 + s.IntN(30))
					time.Sleep(time.Second * 2 / 5) // tasks of workflows are looked after at the half seconds
					w.shownAlike(w.host, standby)
					w.toldAlike(w.heard(w.host, first), w.heard(standby, first))
					time.Sleep(time.Second * 3 / 5)
					if step%10 != 9 {
						continue
					}
					if err := w.host.Close(); err != nil {
						t.Fatal(err)
					}
					next, err := standby.Lead(t.Context(), w.options)
					if err != nil {
						t.Fatal(err)
					}
					before := w.heard(standby, first)
					w.toldAlike(before, w.heard(next, first)[:len(before)]) // who listened goes on there
					if err := standby.Close(); err != nil {
						t.Fatal(err)
					}
					w.host, standby = next, w.beside()
					w.pass(1)
					first = max(w.host.LastEvent(), standby.LastEvent())
					w.shownAlike(w.host, standby)
					if err := w.host.Check(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				w.site.Heal()
				for _, b := range w.foreign {
					w.site.Unbook(b.Name)
				}
				w.foreign = nil
				for n := range 4 {
					w.site.Repair(fmt.Sprint("n", n+1))
				}
				w.pass(300)
				if err := w.inLine(); err != nil {
					t.Fatal(err)
				}
				if flows == 0 {
					t.Error("no workflow was promised, so none was taken over")
				}
				if err := standby.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// Who stands by answers those who look, refuses all else with who leads, and answers what was asked under a
// key as the leader did once it leads.
func TestStandbyRefusesToDecide(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	options := service.Options{Config: onePool(4), Journal: store, Version: "test", Clock: c.now}
	leader, err := service.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	keyed := ann
	keyed.Key = "k"
	first := submit(t, leader, keyed, berth.Rigid("", 0, 1100, 1200, 4, 100))
	standby, err := service.Stand(t.Context(), options, func() string { return "http://a.example.org leads" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = standby.Submit(t.Context(), ann, berth.Rigid("", 0, 1100, 1200, 4, 100))
	wantCode(t, err, berth.Unavailable)
	if want := "service: it stands by: http://a.example.org leads"; err == nil || err.Error() != want || standby.Ready() == nil || standby.Ready().Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = standby.Release(t.Context(), ann, first.Reservation.ID)
	wantCode(t, err, berth.Unavailable)
	if got, err := standby.Get(t.Context(), ann.By, first.Reservation.ID); err != nil || got.State != service.Confirmed {
		t.Errorf("%+v, %v", got, err)
	}
	if err := leader.Close(); err != nil {
		t.Fatal(err)
	}
	led, err := standby.Lead(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if again := submit(t, led, keyed, berth.Rigid("", 0, 1100, 1200, 4, 100)); again.Reservation.ID != first.Reservation.ID {
		t.Errorf("under the key it promises %s, and first promised %s", again.Reservation.ID, first.Reservation.ID)
	}
	if no := submit(t, led, ann, berth.Rigid("", 0, 1100, 1200, 4, 100)); no.Reservation.State != service.Refused {
		t.Errorf("what was promised is promised again: %+v", no.Reservation)
	}
	if err := errors.Join(standby.Close(), led.Close(), store.Close()); err != nil {
		t.Error(err)
	}
}

// A leader that may have lost the lease touches no site and takes nothing, whatever it knows to be promised.
func TestWhoMayHaveLostTheLeaseTouchesNoSite(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		lost := errors.New("another server may lead")
		var away atomic.Bool
		w.options.Leads = func() error {
			if away.Load() {
				return lost
			}
			return nil
		}
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		w.open()
		w.reserve("a", 2, 0, 1000)
		w.reserve("b", 1, horizon+300, 1000)
		w.pass(30)
		if now := len(w.state().Ours); now != 1 {
			t.Fatalf("the site has %d reservations", now)
		}
		away.Store(true)
		_, err := w.host.Submit(t.Context(), ann, berth.Rigid("c", 0, w.now(), w.now()+5000, 1, 100))
		if !errors.Is(err, lost) {
			t.Errorf("it takes a request: %v", err)
		}
		w.pass(600) // b is due at the site by then
		if now := len(w.state().Ours); now != 1 {
			t.Errorf("the site has %d reservations: it was changed", now)
		}
		away.Store(false)
		w.pass(30)
		if now := len(w.state().Ours); now != 2 {
			t.Errorf("the site has %d reservations; want what was due too", now)
		}
	})
}
