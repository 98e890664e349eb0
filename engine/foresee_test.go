package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// offered returns the place that a request is offered as it was asked for.
func offered(t *testing.T, e *engine.Engine, r berth.Request) []engine.Offer {
	t.Helper()
	offers, err := e.Offers(&r, 1)
	if err != nil || len(offers) != 1 || offers[0].Difference != engine.OfferAsAsked {
		t.Fatalf("offered %+v, %v", offers, err)
	}
	return offers
}

// costOf returns what an offer costs.
func costOf(t *testing.T, e *engine.Engine, offers []engine.Offer, f engine.Foresight) engine.Cost {
	t.Helper()
	before := e.Hash()
	costs, err := e.Costs(offers, f)
	if err != nil || len(costs) != 1 || costs[0] == nil {
		t.Fatalf("it costs %v, %v", costs, err)
	}
	if e.Hash() != before {
		t.Error("the foresight has changed the engine")
	}
	return *costs[0]
}

// Four PEs run a until 100. b, which wants all of them for 50, waits for that, and c, which
// wants one for 30, behind it.
//
//	4  a a a a a a a a a a b b b b b c c c
//	   0                   100       150
func queued(t *testing.T, pass string, binding berth.Binding) *engine.Engine {
	t.Helper()
	config := onePool(4, binding)
	config.Jobs = pass
	e := newEngine(t, config)
	submit(t, e, 0, berth.Job("a", 0, 4, 100))
	submit(t, e, 0, berth.Job("b", 0, 4, 50))
	submit(t, e, 0, berth.Job("c", 0, 1, 30))
	return e
}

// What a promise costs depends on where it is, and on the pass.
func TestCosts(t *testing.T) {
	for _, c := range []struct {
		name   string
		passes []string
		r      berth.Request
		want   engine.Cost
	}{
		{"behind all jobs", passNames(), berth.Rigid("r", 0, 180, 200, 4, 20), engine.Cost{}},
		{"in place of b, which c does not get past", []string{"fcfs"}, berth.Rigid("r", 0, 100, 160, 2, 60), engine.Cost{Delayed: 2, Sum: 120, Largest: 60}},
		{"in place of b, beside which c fits", []string{"easy", "conservative", "lazy"}, berth.Rigid("r", 0, 100, 160, 2, 60), engine.Cost{Delayed: 1, Sum: 60, Largest: 60}},
		{"where b would not be over", passNames(), berth.Rigid("r", 0, 120, 160, 4, 40), engine.Cost{Delayed: 2, Sum: 120, Largest: 60, Idle: 80}},
		{"in front of which c fits", []string{"easy", "conservative", "lazy"}, berth.Rigid("r", 0, 140, 160, 4, 20), engine.Cost{Delayed: 1, Sum: 60, Largest: 60, Idle: 130}},
	} {
		for _, pass := range c.passes {
			for _, binding := range bindings() {
				t.Run(fmt.Sprintf("%s/%s/%s", c.name, pass, binding), func(t *testing.T) {
					e := queued(t, pass, binding)
					want := c.want
					want.Followed, want.Complete = 3, true
					if got := costOf(t, e, offered(t, e, c.r), engine.Foresight{}); got != want {
						t.Errorf("it costs %+v, want %+v", got, want)
					}
				})
			}
		}
	}
}

func passNames() (names []string) {
	for _, pass := range engine.JobPasses() {
		names = append(names, pass.Name)
	}
	return names
}

// A job that is stopped for a promise is delayed by what it still has to run.
func TestCostsOfJobsThatYield(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Preempt = true
	e := newEngine(t, config)
	submit(t, e, 0, berth.Job("a", 0, 4, 100))
	apply(t, e, 1, engine.Wake()) // it runs
	want := engine.Cost{Delayed: 1, Sum: 20, Largest: 20, Followed: 1, Complete: true}
	if got := costOf(t, e, offered(t, e, berth.Rigid("r", 0, 60, 80, 4, 20)), engine.Foresight{}); got != want {
		t.Errorf("it costs %+v, want %+v", got, want)
	}
}

// What waits at a site by itself counts like what waits in the engine, from when it may start; what could run nowhere does not.
func TestCostsForQueuesOfSites(t *testing.T) {
	config := onePool(4, berth.Late)
	e := newEngine(t, config)
	apply(t, e, 0, engine.Down(berth.Outage{Resource: berth.PoolID(config.Sites[0].Name, config.Sites[0].Pools[0].Name), PEs: berth.PEsOf(0, 1, 2, 3), Until: 100}))
	queue := []berth.Request{berth.Job("x-3", 110, 1, 30), berth.Job("x-1", 0, 4, 50), berth.Job("x-2", 0, 5, 10)}
	want := engine.Cost{Delayed: 2, Sum: 120, Largest: 60, Idle: 80, Followed: 2, Complete: true}
	if got := costOf(t, e, offered(t, e, berth.Rigid("r", 0, 120, 160, 4, 40)), engine.Foresight{From: 10, Queue: queue}); got != want {
		t.Errorf("it costs %+v, want %+v", got, want)
	}
}

// Where the work meets its bound, the cost says so; what is given up is no cost; and an offer whose
// place has gone has none.
func TestCostsAreBounded(t *testing.T) {
	e := queued(t, "easy", berth.Late)
	offers := offered(t, e, berth.Rigid("r", 0, 120, 160, 4, 40))
	if got := costOf(t, e, offers, engine.Foresight{Looks: 1}); got.Complete || got.Followed != 1 || got.Delayed != 0 {
		t.Errorf("with one look it costs %+v, want one job compared, and the cost not complete", got)
	}
	_, err := e.Costs(offers, engine.Foresight{Quit: func() bool { return true }})
	if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Unavailable {
		t.Errorf("given up: %v, want it unavailable", err)
	}
	accepted(t, submit(t, e, 0, berth.Rigid("s", 0, 120, 160, 1, 40)))
	if costs, err := e.Costs(offers, engine.Foresight{}); err != nil || len(costs) != 1 || costs[0] != nil {
		t.Errorf("its place has gone, and it costs %v, %v", costs, err)
	}
}

// Promises that are held are taken to be confirmed, and those that have to be used to be used: both keep their PEs.
func TestCostsBesideWhatIsHeld(t *testing.T) {
	e := queued(t, "easy", berth.Late)
	h := berth.Rigid("h", 0, 150, 250, 4, 100)
	h.Hold, h.NoShow = 10, 10
	accepted(t, submit(t, e, 0, h))
	want := engine.Cost{Delayed: 1, Sum: 140, Largest: 140, Followed: 3, Complete: true}
	got := costOf(t, e, offered(t, e, berth.Rigid("r", 0, 250, 390, 4, 140)), engine.Foresight{})
	if got != want {
		t.Errorf("it costs %+v, want %+v", got, want)
	}
}
