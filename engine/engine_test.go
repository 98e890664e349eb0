package engine_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

func onePool(pes berth.Count, binding berth.Binding) engine.Config {
	return engine.Config{Sites: []berth.Site{{Name: "cm5", Pools: []berth.Pool{{Name: "pool", PEs: pes, Binding: binding}}}}}
}

func newEngine(t *testing.T, config engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// apply applies an event, requires it to succeed, checks all invariants and
// returns copies of the changes.
func apply(t *testing.T, e *engine.Engine, now berth.Time, event engine.Event) []change.Change {
	t.Helper()
	changes, _, err := e.Apply(now, event)
	if err != nil {
		t.Fatalf("Apply(%d, %s): %v", now, event.Kind, err)
	}
	if err := e.Check(); err != nil {
		t.Fatalf("after Apply(%d, %s): %v", now, event.Kind, err)
	}
	return slices.Clone(changes)
}

func submit(t *testing.T, e *engine.Engine, now berth.Time, r berth.Request) []change.Change {
	t.Helper()
	return apply(t, e, now, engine.Submit(&r))
}

// kinds lists the changes as "kind id" words.
func kinds(changes []change.Change) string {
	var words []string
	for _, c := range changes {
		word := string(c.Kind)
		if c.ID != "" {
			word += ":" + c.ID
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func accepted(t *testing.T, changes []change.Change) *berth.Reservation {
	t.Helper()
	for _, c := range changes {
		if c.Kind == change.Accepted {
			return c.Reservation
		}
	}
	t.Fatalf("nothing accepted in %s", kinds(changes))
	return nil
}

func refused(t *testing.T, changes []change.Change) *berth.Refusal {
	t.Helper()
	for _, c := range changes {
		if c.Kind == change.Refused {
			return c.Refusal
		}
	}
	t.Fatalf("nothing refused in %s", kinds(changes))
	return nil
}

func wantCode(t *testing.T, err error, code berth.Code, field string) {
	t.Helper()
	var e *berth.Error
	if !errors.As(err, &e) || e.Code != code || e.Field != field {
		t.Fatalf("error %v; want code %s about %q", err, code, field)
	}
}

func TestLifeOfAPromise(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		t.Run(string(binding), func(t *testing.T) {
			e := newEngine(t, onePool(4, binding))
			got := submit(t, e, 0, berth.Rigid("a", 0, 10, 30, 3, 10))
			if want := "queued:a accepted:a"; kinds(got) != want {
				t.Fatalf("changes %q, want %q", kinds(got), want)
			}
			r := accepted(t, got)
			if r.Start() != 10 || r.End() != 20 || r.State != berth.Confirmed {
				t.Fatalf("reservation %+v", r)
			}
			if at, ok := e.Next(); !ok || at != 10 {
				t.Fatalf("Next = %d %v, want the start 10", at, ok)
			}
			if got := apply(t, e, 10, engine.Wake()); kinds(got) != "advanced started:a" {
				t.Fatalf("at the start: %q", kinds(got))
			}
			live, _ := e.Reservation("a")
			if live.State != berth.Active || live.Allotments[0].PEs.String() != "0-2" {
				t.Fatalf("active reservation %+v", live)
			}
			pool := berth.PoolID("cm5", "pool")
			if id, ok := e.Holder(pool, 2, 15); !ok || id != "a" {
				t.Fatalf("PE 2 at 15 is held by %q %v", id, ok)
			}
			if _, ok := e.Holder(pool, 3, 15); ok {
				t.Fatal("PE 3 at 15 is not held")
			}
			if _, ok := e.Holder(pool, 2, 20); ok {
				t.Fatal("PE 2 at 20, the end, is not held")
			}
			if got := apply(t, e, 20, engine.Wake()); kinds(got) != "advanced ended:a" {
				t.Fatalf("at the end: %q", kinds(got))
			}
			if _, ok := e.Reservation("a"); ok {
				t.Fatal("a finished reservation is still live")
			}
			if _, ok := e.Next(); ok {
				t.Fatal("nothing is due any more")
			}
		})
	}
}

// At one instant ends come before arrivals, and arrivals before starts
// (design section 5), so a request may take PEs the moment they are freed.
func TestOrderAtOneInstant(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Late))
	submit(t, e, 0, berth.Rigid("a", 0, 0, 10, 4, 10))
	submit(t, e, 0, berth.Rigid("b", 0, 10, 20, 2, 10))
	got := submit(t, e, 10, berth.Rigid("c", 10, 10, 20, 2, 10))
	if want := "started:a advanced ended:a queued:c accepted:c"; kinds(got) != want {
		t.Fatalf("changes %q, want %q", kinds(got), want)
	}
	got = apply(t, e, 10, engine.Wake())
	if want := "started:b started:c"; kinds(got) != want {
		t.Fatalf("starts %q, want %q", kinds(got), want)
	}
	b, _ := e.Reservation("b")
	c, _ := e.Reservation("c")
	if b.Allotments[0].PEs.String() != "0-1" || c.Allotments[0].PEs.String() != "2-3" {
		t.Fatalf("bound late in (start, sequence) order, lowest idle first: %s and %s", b.Allotments[0].PEs, c.Allotments[0].PEs)
	}
}

func TestRefusalsNameTheConstraint(t *testing.T) {
	eligible := func(r berth.Request, pes ...berth.PE) berth.Request {
		r.Parts[0].Eligible = berth.PEsOf(pes...)
		return r
	}
	config := onePool(10, berth.Early)
	config.Explain = true
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("busy", 0, 0, 100, 7, 100))
	pool := berth.PoolID("cm5", "pool")
	for _, c := range []struct {
		name    string
		request berth.Request
		want    berth.Refusal
	}{
		{"too large", berth.Rigid("x", 0, 0, 50, 11, 10), berth.Refusal{Reason: berth.TooLarge, Resource: pool, Wanted: 11, Limit: 10}},
		{"too few eligible PEs", eligible(berth.Rigid("x", 0, 0, 50, 3, 10), 1, 2, 40), berth.Refusal{Reason: berth.NoSuitableSite, Resource: pool, Wanted: 3, Limit: 2}},
		{"no room", berth.Rigid("x", 0, 5, 50, 4, 10), berth.Refusal{
			Reason: berth.NoCapacity, Resource: pool, Wanted: 4,
			Nearest: &berth.Nearest{NPE: 3, Duration: 10, Start: 5},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := refused(t, submit(t, e, 0, c.request))
			if got.Nearest != nil && c.want.Nearest != nil {
				if *got.Nearest != *c.want.Nearest {
					t.Fatalf("nearest %+v, want %+v", *got.Nearest, *c.want.Nearest)
				}
				got.Nearest, c.want.Nearest = nil, nil
			}
			if *got != c.want {
				t.Fatalf("refusal %+v, want %+v", *got, c.want)
			}
		})
	}
}

// A request decided after its window has shrunk below its duration is late,
// not crowded out.
func TestDeadlineMissed(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Early))
	r := berth.Rigid("a", 0, 0, 20, 1, 10)
	got := refused(t, submit(t, e, 15, r))
	if got.Reason != berth.DeadlineMissed || got.Possible != 25 {
		t.Fatalf("refusal %+v", got)
	}
	r.ID = "b"
	if got := accepted(t, submit(t, e, 15, berth.Rigid("b", 0, 0, 25, 1, 10))); got.Start() != 15 {
		t.Fatalf("start %d, want now", got.Start())
	}
}

func TestCancelAndFinishFreeTheRest(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		t.Run(string(binding), func(t *testing.T) {
			e := newEngine(t, onePool(4, binding))
			submit(t, e, 0, berth.Rigid("a", 0, 0, 100, 4, 100))
			submit(t, e, 0, berth.Rigid("b", 0, 100, 200, 4, 100))
			_, _, err := e.Apply(0, engine.Finish("a"))
			wantCode(t, err, berth.Conflict, "id")
			apply(t, e, 40, engine.Finish("a"))
			if r := accepted(t, submit(t, e, 40, berth.Rigid("c", 40, 40, 100, 4, 60))); r.Start() != 40 {
				t.Fatalf("c starts at %d", r.Start())
			}
			apply(t, e, 50, engine.Cancel("b"))
			if r := accepted(t, submit(t, e, 50, berth.Rigid("d", 50, 100, 200, 4, 100))); r.Start() != 100 {
				t.Fatalf("d starts at %d", r.Start())
			}
			apply(t, e, 60, engine.Cancel("c"))
			if r := accepted(t, submit(t, e, 60, berth.Rigid("e", 60, 60, 100, 4, 40))); r.Start() != 60 {
				t.Fatalf("e starts at %d", r.Start())
			}
			submit(t, e, 60, berth.Rigid("f", 60, 300, 400, 4, 40))
			var live []string
			for r := range e.Reservations() {
				live = append(live, r.Request.ID)
			}
			if want := []string{"d", "e", "f"}; !slices.Equal(live, want) {
				t.Fatalf("live in the order of acceptance: %v, want %v", live, want)
			}
			_, _, err = e.Apply(60, engine.Cancel("nobody"))
			wantCode(t, err, berth.NotFound, "id")
		})
	}
}

func TestBadEvents(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Early))
	submit(t, e, 10, berth.Rigid("a", 10, 10, 30, 1, 10))
	before := e.Hash()
	for _, c := range []struct {
		name  string
		now   berth.Time
		event engine.Event
		code  berth.Code
		field string
	}{
		{"time runs back", 9, engine.Wake(), berth.Invalid, "now"},
		{"no request", 10, engine.Event{Kind: engine.EventSubmit}, berth.Invalid, "request"},
		{"unknown kind", 10, engine.Event{Kind: "jump"}, berth.Invalid, "kind"},
		{"id taken", 10, engine.Event{Kind: engine.EventSubmit, Request: new(berth.Rigid("a", 10, 10, 30, 1, 10))}, berth.Conflict, "id"},
		{"from the future", 10, engine.Event{Kind: engine.EventSubmit, Request: new(berth.Rigid("b", 11, 11, 30, 1, 10))}, berth.Invalid, "arrival"},
		{"malformed", 10, engine.Event{Kind: engine.EventSubmit, Request: new(berth.Rigid("b", 10, 10, 30, 0, 10))}, berth.Invalid, "npe"},
		{"no such effect", 10, engine.Settle(7), berth.NotFound, "effect"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := e.Apply(c.now, c.event)
			wantCode(t, err, c.code, c.field)
			if e.Hash() != before {
				t.Fatal("a rejected event changed the state")
			}
		})
	}
}

func TestBadConfig(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*engine.Config)
		field  string
	}{
		{"no sites", func(c *engine.Config) { c.Sites = nil }, "sites"},
		{"no PEs", func(c *engine.Config) { c.Sites[0].Pools[0].PEs = 0 }, "pes"},
		{"pool twice", func(c *engine.Config) { c.Sites[0].Pools = append(c.Sites[0].Pools, c.Sites[0].Pools[0]) }, "sites"},
		{"no binding", func(c *engine.Config) { c.Sites[0].Pools[0].Binding = "" }, "binding"},
		{"placement", func(c *engine.Config) { c.Place = "best" }, "place"},
		{"order", func(c *engine.Config) { c.Order = "lifo" }, "order"},
		{"choice", func(c *engine.Config) { c.Choice = "any" }, "choice"},
		{"horizon", func(c *engine.Config) { c.Horizon = "far" }, "horizon"},
		{"calendar", func(c *engine.Config) { c.Calendar = "abacus" }, "calendar"},
		{"too many PEs", func(c *engine.Config) { c.Sites[0].Pools[0].PEs = berth.MaxPEs + 1 }, "pes"},
		{"negative speed", func(c *engine.Config) { c.Sites[0].Pools[0].Speed = -1 }, "speed"},
		{"negative speed of accelerators", func(c *engine.Config) { c.Sites[0].Pools[0].Node.AcceleratorSpeed = -1 }, "speed"},
		{"negative storage", func(c *engine.Config) { c.Sites[0].StorageMB = -1 }, "storage_mb"},
		{"too much storage", func(c *engine.Config) { c.Sites[0].StorageMB = berth.MaxMegabytes }, "storage_mb"},
		{"negative bandwidth", func(c *engine.Config) { c.Sites[0].Link.KilobytesPerSecond = -1 }, "kb_per_second"},
		{"too much bandwidth", func(c *engine.Config) { c.Sites[0].Link.KilobytesPerSecond = berth.MaxMegabytes }, "kb_per_second"},
		{"negative delay", func(c *engine.Config) { c.Sites[0].Link.DelayMS = -1 }, "delay_ms"},
		{"too long a delay", func(c *engine.Config) { c.Sites[0].Link.DelayMS = berth.TimeLimit }, "delay_ms"},
		{"endless delay", func(c *engine.Config) { c.Sites[0].Link.DelayMS = math.MaxInt64 }, "delay_ms"},
		{"negative licences", func(c *engine.Config) { c.Sites[0].Software = []berth.Software{{Name: "a", Licences: -1}} }, "licences"},
		{"too many licences", func(c *engine.Config) {
			c.Sites[0].Software = []berth.Software{{Name: "a", Licences: berth.MaxLicences + 1}}
		}, "licences"},
		{"user twice", func(c *engine.Config) { c.Users = []berth.User{{ID: "u"}, {ID: "u"}} }, "users"},
		{"priority too high", func(c *engine.Config) { c.Users = []berth.User{{ID: "u", Priority: policy.MaxPriority + 1}} }, "priority"},
		{"priority too low", func(c *engine.Config) { c.Users = []berth.User{{ID: "u", Priority: -policy.MaxPriority - 1}} }, "priority"},
		{"unknown trigger", func(c *engine.Config) { c.Trigger = "noon" }, "trigger"},
		{"a period of nothing", func(c *engine.Config) { c.Trigger = engine.TriggerOnPeriod }, "period"},
		{"too long a period", func(c *engine.Config) { c.Trigger, c.Period = engine.TriggerOnPeriod, berth.TimeLimit }, "period"},
		{"a period without its trigger", func(c *engine.Config) { c.Period = 1 }, "period"},
		{"negative extension", func(c *engine.Config) { c.Extension = -1 }, "extension"},
		{"too long an extension", func(c *engine.Config) { c.Extension = berth.TimeLimit }, "extension"},
		{"partition of no pool", func(c *engine.Config) { c.Sites[0].Partitions = []berth.Partition{{Name: "x", Pool: "y"}} }, "partitions"},
		{"partition beyond its pool", func(c *engine.Config) {
			c.Sites[0].Partitions = []berth.Partition{{Name: "x", Pool: "pool", PEs: berth.PEsOf(4)}}
		}, "partitions"},
		{"negative limit", func(c *engine.Config) {
			c.Sites[0].Partitions = []berth.Partition{{Name: "x", Pool: "pool", MaxNPE: -1}}
		}, "partitions"},
		{"negative limit", func(c *engine.Config) { c.Limits = policy.Limits{{Name: policy.LimitActive, Value: -2}} }, "limits"},
		{"a limit that is none", func(c *engine.Config) { c.Limits = policy.Limits{{Name: "weight", Value: 2}} }, "limits"},
		{"a share above all", func(c *engine.Config) { c.Limits = policy.Limits{{Name: policy.LimitShare, Value: 1001}} }, "limits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := onePool(4, berth.Early)
			c.change(&config)
			_, err := engine.New(config)
			wantCode(t, err, berth.Invalid, c.field)
		})
	}
}

// Each figure of a configuration may be what its error says that it may be at most, or at
// least.
func TestConfigAtItsLimits(t *testing.T) {
	for name, change := range map[string]func(*engine.Config){
		"PEs": func(c *engine.Config) {
			c.Sites[0].Pools[0].PEs, c.Sites[0].Pools[0].Binding = berth.MaxPEs, berth.Late
		},
		"one PE":    func(c *engine.Config) { c.Sites[0].Pools[0].PEs = 1 },
		"storage":   func(c *engine.Config) { c.Sites[0].StorageMB = berth.MaxMegabytes - 1 },
		"bandwidth": func(c *engine.Config) { c.Sites[0].Link.KilobytesPerSecond = berth.MaxMegabytes - 1 },
		"delay":     func(c *engine.Config) { c.Sites[0].Link.DelayMS = berth.TimeLimit - 1 },
		"licences": func(c *engine.Config) {
			c.Sites[0].Software = []berth.Software{{Name: "a", Licences: berth.MaxLicences}}
		},
		"highest priority": func(c *engine.Config) { c.Users = []berth.User{{ID: "u", Priority: policy.MaxPriority}} },
		"lowest priority":  func(c *engine.Config) { c.Users = []berth.User{{ID: "u", Priority: -policy.MaxPriority}} },
		"longest period":   func(c *engine.Config) { c.Trigger, c.Period = engine.TriggerOnPeriod, berth.TimeLimit-1 },
		"shortest period":  func(c *engine.Config) { c.Trigger, c.Period = engine.TriggerOnPeriod, 1 },
		"extension":        func(c *engine.Config) { c.Extension = berth.TimeLimit - 1 },
		"the last of its PEs": func(c *engine.Config) {
			c.Sites[0].Partitions = []berth.Partition{{Name: "x", Pool: "pool", PEs: berth.PEsOf(3)}}
		},
	} {
		config := onePool(4, berth.Early)
		change(&config)
		if _, err := engine.New(config); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Moldable requests (the availability paper's future work; spec 1, d): one
// variant is booked, chosen by the configured criterion.
func TestMoldable(t *testing.T) {
	for _, c := range []struct {
		choice policy.Choice
		place  string
		want   berth.Variant
		start  berth.Time
	}{
		// 4 of 10 PEs are busy during [0,50): 8 PEs start at 50 and end at 60,
		// 4 PEs start at 0 and end at 20, 2 PEs at 0 and end at 50.
		{policy.EarliestFinish, "first-fit", berth.Variant{NPE: 4, Duration: 20}, 0},
		{policy.LeastArea, "first-fit", berth.Variant{NPE: 8, Duration: 9}, 50},
		// The longest rectangle: from 50 on everything is free till the horizon.
		{policy.PolicyKey, "pe-worst", berth.Variant{NPE: 8, Duration: 9}, 50},
	} {
		t.Run(string(c.choice), func(t *testing.T) {
			config := onePool(10, berth.Early)
			config.Choice, config.Place = c.choice, c.place
			e := newEngine(t, config)
			submit(t, e, 0, berth.Rigid("busy", 0, 0, 50, 4, 50))
			r := berth.Rigid("m", 0, 0, 100, 8, 9)
			r.Parts[0].Variants = append(r.Parts[0].Variants,
				berth.Variant{NPE: 4, Duration: 20}, berth.Variant{NPE: 2, Duration: 50},
				berth.Variant{NPE: 5, Duration: 20}, // dominated
				berth.Variant{NPE: 11, Duration: 1}, // larger than the pool
			)
			a := accepted(t, submit(t, e, 0, r)).Allotments[0]
			if got := (berth.Variant{NPE: a.NPE, Duration: a.End.Sub(a.Start)}); got != c.want || a.Start != c.start {
				t.Fatalf("booked %+v at %d, want %+v at %d", got, a.Start, c.want, c.start)
			}
		})
	}
}

func TestCoallocation(t *testing.T) {
	config := onePool(4, berth.Early)
	config.Sites = append(config.Sites, berth.Site{Name: "sp2", Pools: []berth.Pool{{Name: "pool", PEs: 6, Binding: berth.Late}}})
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("a", 0, 0, 30, 2, 30)) // cm5, 2 of 4 until 30
	submit(t, e, 0, berth.Rigid("b", 0, 0, 20, 5, 20)) // sp2, 5 of 6 until 20
	parts := berth.Request{ID: "c", Ready: 0, Deadline: 100, Parts: []berth.Part{
		{Variants: []berth.Variant{{NPE: 2, Duration: 10}}},
		{Variants: []berth.Variant{{NPE: 3, Duration: 40}}},
		{Variants: []berth.Variant{{NPE: 3, Duration: 5}}},
	}}
	r := accepted(t, submit(t, e, 0, parts))
	for i, want := range []struct {
		site       string
		start, end berth.Time
	}{{"cm5", 20, 30}, {"sp2", 20, 60}, {"sp2", 20, 25}} {
		a := r.Allotments[i]
		if a.Resource.Site != want.site || a.Start != want.start || a.End != want.end {
			t.Errorf("part %d: %s [%d,%d), want %+v", i, a.Resource.Site, a.Start, a.End, want)
		}
	}
	apply(t, e, 20, engine.Wake())
	live, _ := e.Reservation("c")
	if got := live.Allotments[1].PEs.String() + " " + live.Allotments[2].PEs.String(); got != "0-2 3-5" {
		t.Errorf("late parts of one reservation run on %q", got)
	}
	if got := kinds(apply(t, e, 60, engine.Wake())); !strings.HasSuffix(got, "ended:c") {
		t.Errorf("the last part ends last: %q", got)
	}
	if _, live := e.Reservation("c"); live {
		t.Error("live after its last part")
	}

	parts.ID, parts.Ready, parts.Deadline = "d", 60, 100
	parts.Parts[0].Variants[0].NPE, parts.Parts[1].Variants[0].NPE, parts.Parts[2].Variants[0].NPE = 4, 4, 3
	got := refused(t, submit(t, e, 60, parts))
	if got.Reason != berth.NoCapacity {
		t.Errorf("refusal %+v", got)
	}
	for r := range e.Reservations() {
		t.Errorf("a refused co-allocation left %q behind", r.Request.ID)
	}
}

func TestOutboxKeepsEffectsUntilSettled(t *testing.T) {
	config := onePool(4, berth.Early)
	config.Sites[0].Managed = true
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("a", 0, 5, 30, 2, 10))
	apply(t, e, 5, engine.Wake())
	apply(t, e, 15, engine.Wake())
	want := []change.Effect{
		{Number: 1, Site: "cm5", Reservation: "a", Generation: 1}, // accepted
		{Number: 2, Site: "cm5", Reservation: "a", Generation: 1}, // started
		{Number: 3, Site: "cm5", Reservation: "a", Generation: 1}, // ended
	}
	for number := range want[len(want)-1].Number + 2 {
		for most := range len(want) + 2 {
			behind := slices.DeleteFunc(slices.Clone(want), func(x change.Effect) bool { return x.Number <= number })
			if got := e.OutboxAfter(number, most); !slices.Equal(got, behind[:min(most, len(behind))]) {
				t.Errorf("%d behind %d: %v, want of %v", most, number, got, behind)
			}
		}
	}
	if last := e.LastEffect(); last != want[len(want)-1].Number {
		t.Errorf("the last effect is %d", last)
	}
	if got := e.Outbox(); !slices.Equal(got, want) {
		t.Fatalf("outbox %v, want %v", got, want)
	}
	apply(t, e, 15, engine.Settle(e.Outbox()[1].Number))
	again, err := engine.Restore(config, e.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	if left := again.Outbox(); len(left) != 2 || left[0].Number != 1 || left[1].Number != 3 {
		t.Fatalf("after a restart the outbox holds %+v", left)
	}
}

// Every kind of event is in the list of kinds.
func TestEventKindsAreListed(t *testing.T) {
	want := []engine.EventKind{
		engine.EventWake, engine.EventSubmit, engine.EventCancel, engine.EventConfirm, engine.EventModify, engine.EventExtend,
		engine.EventCheckIn, engine.EventRelocate, engine.EventReject, engine.EventFinish, engine.EventDown, engine.EventUp, engine.EventUpdateForecast, engine.EventSettle,
		engine.EventSubmitWorkflow, engine.EventConfirmWorkflow, engine.EventCancelWorkflow, engine.EventReport,
		engine.EventSubmitSeries, engine.EventCancelSeries, engine.EventModifySeries,
	}
	if got := engine.EventKinds(); !slices.Equal(got, want) {
		t.Errorf("the kinds are %v, want %v", got, want)
	}
}

// A preset makes these choices, and none that the configuration has made.
func TestPresetsChoose(t *testing.T) {
	for name, want := range map[string]engine.Config{
		"li":             {Order: "fcfs", Match: "best-key"},
		"dpsar":          {Order: "dpsar", Match: "random", Place: "first-fit", Options: policy.OrderOptions{N: 3}},
		"arwp":           {Order: "arwp", Match: "random", Place: "first-fit"},
		"wms-sequential": {Order: "fcfs", Match: "smallest-fit", Place: "first-fit"},
		"wms-eager":      {Order: "fcfs", Match: "smallest-fit", Place: "first-fit", Eager: &policy.Eager{K1: 500, K2: 500}},
		"wms-lazy":       {Order: "fcfs", Match: "smallest-fit", Jobs: "lazy"},
		"easy":           {Order: "fcfs", Match: "earliest-finish", Jobs: "easy"},
		"conservative":   {Order: "fcfs", Match: "earliest-finish", Jobs: "conservative", Compress: true},
		"ajsm":           {Order: "fcfs", Match: "ajsm", Place: "first-fit", Staging: engine.StagingHold, Trigger: engine.TriggerOnPeriod, Period: 240},
		"default":        {Order: "dpsar", Match: "earliest-finish", Place: "first-fit", Jobs: "easy", Staging: engine.StagingBefore},
	} {
		preset, known := engine.PresetNamed(name)
		if !known {
			t.Fatalf("no preset %s", name)
		}
		var c engine.Config
		if preset.Apply(&c); !reflect.DeepEqual(c, want) {
			t.Errorf("%s chooses %+v, want %+v", name, c, want)
		}
		c = engine.Config{
			Order: "edf", Match: "fastest-first", Place: "pe-best", Jobs: "fcfs", Staging: engine.StagingBefore, Trigger: engine.TriggerOnArrival, Compress: true,
			Options: policy.OrderOptions{N: 1}, Eager: &policy.Eager{K1: 1},
		}
		made := c
		if preset.Apply(&c); !reflect.DeepEqual(c, made) {
			t.Errorf("%s changes choices to %+v", name, c)
		}
	}
	if n := len(engine.Presets()); n != 10 {
		t.Errorf("there are %d presets, and this test knows 10", n)
	}
}

// The preset of Tang and Liao decides every four minutes, unless the configuration says when.
func TestAJSMDecidesEveryFourMinutes(t *testing.T) {
	preset, _ := engine.PresetNamed("ajsm")
	var c engine.Config
	if preset.Apply(&c); c.Trigger != engine.TriggerOnPeriod || c.Period != 240 {
		t.Errorf("it decides %s, every %d s", c.Trigger, c.Period)
	}
	c = engine.Config{Trigger: engine.TriggerOnPeriod, Period: 60}
	if preset.Apply(&c); c.Period != 60 {
		t.Errorf("it changes the period to %d s", c.Period)
	}
}

// A site has a name and a pool.
func TestSitesNeedANameAndAPool(t *testing.T) {
	for _, site := range []berth.Site{{Name: "s"}, {Pools: []berth.Pool{{Name: "p", PEs: 1, Binding: berth.Late}}}} {
		_, err := engine.New(engine.Config{Sites: []berth.Site{site}})
		wantCode(t, err, berth.Invalid, "sites")
	}
}

// A request that is missing is an error, wherever one is asked for, and so is a job where offers are.
func TestMissingRequestIsAnError(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Early))
	submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 1, 10))
	for _, event := range []engine.Event{engine.Submit(nil), engine.SubmitGiven(nil), engine.Modify(nil)} {
		_, _, err := e.Apply(0, event)
		wantCode(t, err, berth.Invalid, "request")
	}
	_, err := e.Offers(nil, 1)
	wantCode(t, err, berth.Invalid, "request")
	job := berth.Job("j", 0, 1, 10)
	_, err = e.Offers(&job, 1)
	wantCode(t, err, berth.Invalid, "kind")
}
