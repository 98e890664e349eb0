package engine_test

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

func held(id string, arrival, ready, deadline berth.Time, npe berth.Count, duration, hold berth.Duration) berth.Request {
	r := berth.Rigid(id, arrival, ready, deadline, npe, duration)
	r.Hold = hold
	return r
}

// A held reservation keeps its place until it is confirmed or expires; what
// expires is free for others (GridSim's create and commit).
func TestHoldConfirmExpire(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Early))
	a := accepted(t, submit(t, e, 0, held("a", 0, 100, 110, 4, 10, 30)))
	if a.State != berth.Held || a.Expires != 30 {
		t.Fatalf("it is %s until %d, want held until 30", a.State, a.Expires)
	}
	if r := refused(t, submit(t, e, 1, berth.Rigid("b", 1, 100, 110, 1, 10))); r.Reason != berth.NoCapacity {
		t.Fatalf("beside a hold: %s", r.Reason)
	}
	apply(t, e, 29, engine.Confirm("a"))
	if r, ok := e.Reservation("a"); !ok || r.State != berth.Confirmed || r.Expires != 0 || r.Terms.Expires != 0 {
		t.Fatalf("confirmed it is %s until %d, on terms that expire at %d", r.State, r.Expires, r.Terms.Expires)
	}
	if got := kinds(apply(t, e, 31, engine.Wake())); got != "advanced" {
		t.Fatalf("a confirmed reservation expires: %s", got)
	}
	_, _, err := e.Apply(31, engine.Confirm("a"))
	wantCode(t, err, berth.Conflict, "id")

	submit(t, e, 40, held("c", 40, 200, 210, 4, 10, 30))
	if got := kinds(apply(t, e, 70, engine.Wake())); got != "advanced expired:c" {
		t.Fatalf("at its expiry: %s", got)
	}
	_, _, err = e.Apply(70, engine.Confirm("c"))
	wantCode(t, err, berth.NotFound, "id")
	accepted(t, submit(t, e, 71, berth.Rigid("d", 71, 200, 210, 4, 10)))
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
}

// What is confirmed only after its start begins then, and still ends in time;
// what is never confirmed is gone at its end at the latest.
func TestConfirmAfterTheStart(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		e := newEngine(t, onePool(4, binding))
		submit(t, e, 0, held("a", 0, 0, 10, 4, 10, 100))
		if got := kinds(apply(t, e, 6, engine.Confirm("a"))); got != "advanced confirmed:a" {
			t.Fatalf("confirmed late: %s", got)
		}
		if got := kinds(apply(t, e, 6, engine.Wake())); got != "started:a" {
			t.Fatalf("after that: %s", got)
		}
		if got := kinds(apply(t, e, 10, engine.Wake())); got != "advanced ended:a" {
			t.Fatalf("at its end: %s", got)
		}
		submit(t, e, 20, held("b", 20, 20, 30, 4, 10, 100))
		if got := kinds(apply(t, e, 30, engine.Wake())); got != "advanced expired:b" {
			t.Fatalf("never confirmed: %s", got)
		}
	}
}

// GridSim's rule for immediate requests: queued as jobs where there is no room,
// or refused. A request for later is refused either way.
func TestImmediateRequestsQueue(t *testing.T) {
	requests := []berth.Request{
		berth.Rigid("a", 0, 0, 10, 4, 10), berth.Rigid("b", 1, 1, 6, 2, 5), berth.Rigid("c", 2, 5, 9, 2, 4), berth.Rigid("d", 3, 3, 6, 2, 3),
	}
	for _, c := range []struct {
		rule engine.Immediate
		want string
	}{
		{engine.ImmediateRefuse, "b:no_capacity@1 c:no_capacity@2 d:no_capacity@3 a@0"},
		{engine.ImmediateQueue, "c:no_capacity@2 a@0 b@10 d@10"},
	} {
		config := onePool(4, berth.Late)
		config.Immediate = c.rule
		// The reservation a starts when the first event after it lets time go on.
		if got := sorted(starts(t, config, 100, requests...)); got != sorted(c.want) {
			t.Errorf("%s: %s, want %s", c.rule, got, c.want)
		}
	}
}

// A confirmation after the start counts as check-in for that start alone: a reservation
// that gets a later one in the same moment is given up if it is not used then.
func TestLateConfirmationIsNoCheckInForALaterStart(t *testing.T) {
	pool := berth.PoolID("cm5", "pool")
	r := berth.Rigid("a", 0, 10, 500, 1, 50)
	r.Hold, r.NoShow = 100, 5
	for name, move := range map[string]engine.Event{
		"relocated": engine.Relocate("a", pool, berth.PEsOf(0)),
		"displaced": engine.Down(berth.Outage{Resource: pool, PEs: berth.PEsOf(0)}),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, onePool(2, berth.Early))
			submit(t, e, 0, r)
			submit(t, e, 0, berth.Rigid("b", 0, 10, 100, 1, 90))
			apply(t, e, 20, engine.Confirm("a"))
			apply(t, e, 20, move)
			if got := at(t, e, "a"); !strings.HasPrefix(got, "confirmed 1x[100,150)") {
				t.Fatalf("it is %s", got)
			}
			if got := kinds(apply(t, e, 104, engine.Wake())); !strings.Contains(got, "started:a") {
				t.Fatalf("it does not start: %s", got)
			}
			if got := kinds(apply(t, e, 105, engine.Wake())); got != "advanced no_show:a" {
				t.Errorf("unused for 5 s: %s", got)
			}
		})
	}
}

// The workload management system shows who waits, who runs and how full each
// site is (Sahakyan and Petrosyan, section 4: submit, status, cancel).
func TestVisibleState(t *testing.T) {
	config := engine.Config{Sites: sites(berth.Late, 4, 8)}
	preset, _ := engine.PresetNamed("wms-sequential")
	preset.Apply(&config)
	e := newEngine(t, config)
	submit(t, e, 0, waiting("a", 0, 10, 3, 5))
	submit(t, e, 0, waiting("b", 0, 10, 2, 0))
	submit(t, e, 1, waiting("c", 1, 4, 8, 20))
	submit(t, e, 1, job("j", 1, 8, 50))

	for id, want := range map[string]engine.Standing{"a": engine.StandingRunning, "b": engine.StandingRunning, "c": engine.StandingWaiting, "j": engine.StandingPending} {
		if s, ok := e.Status(id); !ok || s.Standing != want {
			t.Errorf("%s is %q, want %q", id, s.Standing, want)
		}
	}
	if _, ok := e.Status("nobody"); ok {
		t.Error("an unknown job has a status")
	}
	first, second := config.Sites[0].Name, config.Sites[1].Name
	if got := ids(e.Queue(first, engine.StandingRunning)) + "|" + ids(e.Queue(second, engine.StandingRunning)) + "|" + ids(e.Queue(second, engine.StandingWaiting)); got != "a|b|c" {
		t.Errorf("the queues are %s", got)
	}
	loads := e.Loads()
	if l := loads[1]; l.Free != 6 || l.Running != 1 || l.Waiting != 1 || l.PEs != 8 {
		t.Errorf("the second site's load is %+v", l)
	}
	apply(t, e, 2, engine.Cancel("c"))
	if _, ok := e.Status("c"); ok {
		t.Error("what was cancelled has a status")
	}
	var left []string
	for r := range e.Pending() {
		left = append(left, r.ID)
	}
	if len(left) != 1 || left[0] != "j" {
		t.Errorf("pending are %v", left)
	}
}

// sorted puts words in order.
func sorted(words string) string {
	list := strings.Fields(words)
	slices.Sort(list)
	return strings.Join(list, " ")
}

func ids(reservations iter.Seq[berth.Reservation]) string {
	var list []string
	for r := range reservations {
		list = append(list, r.Request.ID)
	}
	return strings.Join(list, " ")
}

// Of co-allocated parts the first that would end ends the hold: what is
// confirmed later could not start together any more.
func TestHoldEndsWithItsFirstPart(t *testing.T) {
	for _, instant := range [][]string{nil, engine.ArrivalsFirst()} {
		config := onePool(4, berth.Late)
		config.Instant = instant
		e := newEngine(t, config)
		r := held("a", 0, 0, 50, 2, 5, 100)
		r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 2, Duration: 30}}})
		if a := accepted(t, submit(t, e, 0, r)); a.Expires != 5 {
			t.Fatalf("it is held until %d, want 5", a.Expires)
		}
		_, _, err := e.Apply(5, engine.Confirm("a"))
		if err == nil {
			t.Error("it is confirmed when its first part is over")
		}
		apply(t, e, 6, engine.Wake())
		if _, live := e.Reservation("a"); live {
			t.Error("it is held after its first part")
		}
	}
}

// A hold of any valid length leaves a state that can be restored.
func TestHoldBeyondTheEndOfTime(t *testing.T) {
	config := onePool(4, berth.Early)
	e := newEngine(t, config)
	apply(t, e, 1000, engine.Wake())
	submit(t, e, 1000, held("a", 1000, 1100, 1110, 4, 10, berth.TimeLimit-1))
	again, err := engine.Restore(config, e.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := again.Reservation("a"); a.State != berth.Held || a.Expires != 1110 {
		t.Errorf("it is %s until %d, want held until 1110", a.State, a.Expires)
	}
}

// What waits for the next round has a status.
func TestGatheredRequestsArePending(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Trigger, config.Period = engine.TriggerOnPeriod, 10
	e := newEngine(t, config)
	submit(t, e, 1, berth.Rigid("r", 1, 20, 100, 2, 10))
	if s, ok := e.Status("r"); !ok || s.Standing != engine.StandingPending || s.Request.ID != "r" || s.Reservation != nil {
		t.Errorf("%+v, known: %t; want it to be pending", s, ok)
	}
	apply(t, e, 10, engine.Wake())
	if s, ok := e.Status("r"); !ok || s.Standing != engine.StandingWaiting || s.Reservation == nil {
		t.Errorf("%+v, known: %t; want it to be promised", s, ok)
	}
}
