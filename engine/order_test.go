package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// decided returns the ids of what was accepted or refused, in order; what was
// refused has its reason.
func decided(changes []change.Change) string {
	var words []string
	for _, c := range changes {
		switch c.Kind {
		case change.Accepted:
			words = append(words, c.ID)
		case change.Refused:
			words = append(words, fmt.Sprintf("%s:%s", c.ID, c.Refusal.Reason))
		}
	}
	return strings.Join(words, " ")
}

// together submits requests at one instant and returns the changes of the pass
// that decides them.
func together(t *testing.T, e *engine.Engine, now berth.Time, requests []berth.Request) []change.Change {
	t.Helper()
	for i := range requests {
		if changes := apply(t, e, now, engine.Submit(&requests[i])); decided(changes) != "" {
			t.Fatalf("%q is decided before the scheduling point", decided(changes))
		}
	}
	return slices.Clone(apply(t, e, now, engine.Wake()))
}

// figure3 is the example of Ahuja et al., figure 3 (spec 3, b.4): three users
// with gridlets of lengths L1 < L2 < L3 < L4.
func figure3() []berth.Request {
	var requests []berth.Request
	for user, lengths := range [][]int{{3, 1, 2}, {1, 2, 3, 4}, {1, 2, 3, 4}} {
		for _, length := range lengths {
			r := berth.Rigid(fmt.Sprintf("G%dL%d", user+1, length), 0, 0, 10_000, 1, berth.Duration(10*length))
			r.User = fmt.Sprintf("U%d", user+1)
			requests = append(requests, r)
		}
	}
	return requests
}

// The engine decides the example of figure 3 and its variants in the order of
// spec 3, b.4; what a round defers comes in the next one.
func TestDPSARExample(t *testing.T) {
	const rest = "G2L1 G3L1 G2L2 G3L2 G2L3 G3L3 G2L4 G3L4"
	for _, c := range []struct {
		name       string
		priorities [3]int
		options    policy.OrderOptions
		want       string
	}{
		{"as printed", [3]int{9, 3, 2}, policy.OrderOptions{Scale: 9, N: 3}, "G1L1 G1L2 G1L3 " + rest},
		{"N=2 defers one", [3]int{9, 3, 2}, policy.OrderOptions{Scale: 9, N: 2}, "G1L1 G1L2 " + rest + " G1L3"},
		{
			"N=2 discards one",
			[3]int{9, 3, 2},
			policy.OrderOptions{Scale: 9, N: 2, Overflow: policy.Discard},
			"G1L3:quota G1L1 G1L2 " + rest,
		},
		{
			"priorities 9, 5, 2",
			[3]int{9, 5, 2},
			policy.OrderOptions{Scale: 9, N: 3},
			"G1L1 G2L1 G1L2 G2L2 G1L3 G2L3 G2L4 G3L1 G3L2 G3L3 G3L4",
		},
	} {
		config := onePool(4, berth.Late)
		config.Order, config.Options = "dpsar", c.options
		for i, priority := range c.priorities {
			config.Users = append(config.Users, berth.User{ID: fmt.Sprintf("U%d", i+1), Priority: priority})
		}
		got := decided(together(t, newEngine(t, config), 0, figure3()))
		if got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

// Spec 3, b.3: four gridlets on two PEs, first come, first served, each at the
// earliest gap; all are done by 15.
func TestSpaceSharedExample(t *testing.T) {
	config := onePool(2, berth.Early)
	preset, _ := engine.PresetNamed("arwp")
	preset.Apply(&config)
	e := newEngine(t, config)
	want := map[string]string{"G1": "0 0-5", "G2": "1 2-9", "G3": "0 5-15", "G4": "1 9-15"}
	for i, g := range []struct{ arrival, burst berth.Time }{{0, 5}, {2, 7}, {3, 10}, {4, 6}} {
		r := berth.Rigid(fmt.Sprintf("G%d", i+1), g.arrival, g.arrival, 1000, 1, berth.Duration(g.burst))
		a := accepted(t, submit(t, e, g.arrival, r)).Allotments[0]
		if got := fmt.Sprintf("%v %d-%d", a.PEs, a.Start, a.End); got != want[r.ID] {
			t.Errorf("%s runs on %s, want %s", r.ID, got, want[r.ID])
		}
	}
}

// X5: with an unlimited significant difference and Chain, DPSAR is the shortest
// first over all; with a negative one it is pure priority.
func TestX5InTheEngine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var users []berth.User
		for i, priority := range rapid.SliceOfNDistinct(rapid.IntRange(1, 9), 1, 4, rapid.ID).Draw(t, "priorities") {
			users = append(users, berth.User{ID: fmt.Sprintf("u%d", i), Priority: priority})
		}
		var requests []berth.Request
		for i := range rapid.IntRange(1, 25).Draw(t, "requests") {
			duration := berth.Duration(rapid.IntRange(1, 500).Draw(t, "duration"))*32 + berth.Duration(i) // no two of one length
			r := berth.Rigid(fmt.Sprint(i), 0, 0, 10*berth.Time(duration), berth.Count(rapid.IntRange(1, 4).Draw(t, "npe")), duration)
			r.User = rapid.SampledFrom(users).Draw(t, "user").ID
			requests = append(requests, r)
		}
		decisions := func(order string, options policy.OrderOptions) string {
			config := onePool(4, berth.Late)
			config.Order, config.Options, config.Users = order, options, users
			e, err := engine.New(config)
			if err != nil {
				t.Fatal(err)
			}
			for i := range requests {
				if _, _, err := e.Apply(0, engine.Submit(&requests[i])); err != nil {
					t.Fatal(err)
				}
			}
			changes, _, err := e.Apply(0, engine.Wake())
			if err != nil {
				t.Fatal(err)
			}
			return decided(changes)
		}
		anything, never := policy.AnyGap, policy.Levels(-1000)
		if got, want := decisions("dpsar", policy.OrderOptions{SD: &anything, Chain: true}), decisions("sjf", policy.OrderOptions{}); got != want {
			t.Fatalf("SD = ∞ decides\n%s, the shortest first\n%s", got, want)
		}
		if got, want := decisions("dpsar", policy.OrderOptions{SD: &never}), decisions("priority", policy.OrderOptions{InUser: policy.ShortestInUser}); got != want {
			t.Fatalf("SD < 0 decides\n%s, priority alone\n%s", got, want)
		}
	})
}

// Who is not configured has the lowest priority that is.
func TestUnknownUsersComeLast(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Order = "priority"
	config.Users = []berth.User{{ID: "high", Priority: 9}, {ID: "low", Priority: 4}}
	var requests []berth.Request
	for _, user := range []string{"stranger", "low", "high", ""} {
		r := berth.Rigid("of "+user, 0, 0, 100, 1, 10)
		r.User = user
		requests = append(requests, r)
	}
	if got, want := decided(together(t, newEngine(t, config), 0, requests)), "of high of stranger of low of "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// With a period, what arrives waits for its next multiple, and is decided then
// in the configured order.
func TestPeriodGathers(t *testing.T) {
	config := onePool(1, berth.Late)
	config.Order, config.Trigger, config.Period = "sjf", engine.TriggerOnPeriod, 10
	e := newEngine(t, config)
	for i, duration := range []berth.Duration{5, 3} {
		r := berth.Rigid(fmt.Sprint(i), berth.Time(i+1), berth.Time(i+1), 100, 1, duration)
		if got := decided(submit(t, e, berth.Time(i+1), r)); got != "" {
			t.Fatalf("%s is decided on arrival", got)
		}
	}
	if at, ok := e.Next(); !ok || at != 10 {
		t.Fatalf("the engine wants to be woken at %d, %t; want 10", at, ok)
	}
	if got := decided(apply(t, e, 10, engine.Wake())); got != "1 0" {
		t.Errorf("at 10 it decides %q, want the shorter first", got)
	}
	late := berth.Rigid("late", 11, 11, 20, 1, 5)
	submit(t, e, 11, late)
	if got := decided(apply(t, e, 25, engine.Wake())); got != "late:deadline_missed" {
		t.Errorf("what a period makes too late is %q", got)
	}
	if at, ok := e.Next(); ok {
		t.Errorf("nothing is pending, and the engine wants to be woken at %d", at)
	}
}

// Where nothing else is said, an order that means something only among requests that are
// decided together has those of one instant decided so; the others have each decided as it comes.
func TestOrdersGatherWhatComesAtOneInstant(t *testing.T) {
	for order, want := range map[string]string{"fcfs": "", "arwp": "", "sjf": "b c a", "ljf": "a c b", "edf": "c b a", "priority": "c a b", "dpsar": "c b a"} {
		config := onePool(4, berth.Late)
		config.Order = order
		config.Users = []berth.User{{ID: "high", Priority: 9}, {ID: "low", Priority: 4}}
		requests := []berth.Request{berth.Rigid("a", 0, 0, 300, 1, 30), berth.Rigid("b", 0, 0, 200, 1, 10), berth.Rigid("c", 0, 0, 100, 1, 20)}
		requests[0].User, requests[1].User, requests[2].User = "low", "low", "high"
		e := newEngine(t, config)
		if want != "" {
			if got := decided(together(t, e, 0, requests)); got != want {
				t.Errorf("%s decides %s, want %s", order, got, want)
			}
			continue
		}
		for i := range requests {
			if got := decided(submit(t, e, 0, requests[i])); got != requests[i].ID {
				t.Errorf("%s decides %q as %s comes", order, got, requests[i].ID)
			}
		}
	}
}

// Jobs of one instant are looked at in the order too: the shortest goes first
// although it came last.
func TestJobsInOrder(t *testing.T) {
	for _, pass := range engine.JobPasses() {
		for _, order := range []string{"sjf", "dpsar"} {
			config := onePool(1, berth.Late)
			config.Order, config.Jobs = order, pass.Name
			got := starts(t, config, 100, job("a", 0, 1, 20), job("b", 0, 1, 10), job("c", 0, 1, 5))
			want := "c@0 b@5 a@15"
			if got != want {
				t.Errorf("%s under %s: %s, want %s", pass.Name, order, got, want)
			}
		}
	}
}

// The classes of what happens at one instant may have any order in which starts come after ends,
// outages and scheduling points; each is there once.
func TestOrdersOfAnInstant(t *testing.T) {
	orders := [][]string{{}}
	for _, name := range engine.EndsFirst() { // at each place of each order of those before
		var more [][]string
		for _, order := range orders {
			for i := range len(order) + 1 {
				more = append(more, slices.Insert(slices.Clone(order), i, name))
			}
		}
		orders = more
	}
	for _, order := range append(orders, []string{"start"}, append(engine.EndsFirst(), "end"), []string{"end", "expiry", "capacity", "arrival", "end", "start"}) {
		start := slices.Index(order, "start")
		right := len(order) == len(engine.EndsFirst())
		for _, name := range []string{"end", "capacity", "period"} {
			at := slices.Index(order, name)
			right = right && at >= 0 && at < start
		}
		config := onePool(1, berth.Late)
		config.Instant = order
		switch _, err := engine.New(config); {
		case right && err != nil:
			t.Errorf("%q: %v", order, err)
		case !right:
			wantCode(t, err, berth.Invalid, "instant")
		}
	}
}
