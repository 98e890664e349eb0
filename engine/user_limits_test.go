package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// overstep is a request that exceeds a limit beside what its user has already.
type overstep struct {
	limit policy.LimitName
	value int64
	had   []berth.Request // before
	ask   berth.Request
	// extended is the reservation that is extended instead, until when; empty if an
	// extension cannot exceed the limit.
	extended []berth.Request
	until    berth.Time
	added    bool       // the limit is on what is added, which a modification is not
	request  bool       // a job does not have what is limited
	now      berth.Time // when it is asked for; what it had was asked for at 0
	cost     bool       // the limit is on what a promise costs the jobs that wait
	prices   policy.Prices
}

// scopesOf are those of what u asks for in an account, with a QOS, in a partition.
func scopesOf() []policy.Scope {
	return []policy.Scope{
		{},
		{Role: "user"},
		{User: "u"},
		{Account: "phys"},
		{QOS: "high"},
		{Partition: "gpu"},
		{Account: policy.Every},
		{QOS: policy.Every},
		{Partition: policy.Every, Role: "user"},
	}
}

// of returns a request of one part of a user.
func owned(id string, ready, deadline berth.Time, npe berth.Count, d berth.Duration) berth.Request {
	r := berth.Rigid(id, 0, ready, deadline, npe, d)
	r.User = "u"
	return r
}

// everywhere is a request with all that may have limits.
func everywhere(r berth.Request) berth.Request {
	if r.User == "u" {
		r.Account, r.QOS, r.Partition = "phys", "high", "gpu"
	}
	return r
}

func waitingJobs() []berth.Request {
	return []berth.Request{berth.Job("j", 0, 10, 30), berth.Job("k", 0, 10, 50)}
}

func oversteps() []overstep {
	held := owned("x", 0, 100, 3, 100)
	held.Hold = 61
	other := owned("v", 0, 50, 3, 50) // so that under early binding x and a have different PEs
	other.User = "v"
	unused := owned("a", 0, 120, 3, 20)
	unused.NoShow = 5
	list := []overstep{
		{limit: policy.LimitHold, value: 60, ask: held, added: true, request: true},
		{limit: policy.LimitLead, value: 100, ask: owned("x", 101, 300, 3, 100), request: true},
		{limit: policy.LimitReservations, value: 1, had: []berth.Request{owned("a", 0, 100, 3, 100)}, ask: owned("x", 0, 100, 3, 100), added: true},
		{limit: policy.LimitActive, value: 1, had: []berth.Request{owned("a", 0, 100, 3, 100)}, ask: owned("x", 0, 100, 3, 100), added: true, request: true},
		{limit: policy.LimitLength, value: 99, ask: owned("x", 0, 100, 3, 100), extended: []berth.Request{owned("x", 0, 100, 3, 99)}, until: 100},
		{
			limit: policy.LimitShare, value: 500, had: []berth.Request{owned("a", 0, 100, 3, 100)}, ask: owned("x", 0, 100, 3, 100), request: true,
			extended: []berth.Request{other, owned("x", 0, 50, 3, 50), owned("a", 50, 100, 3, 50)}, until: 60,
		},
		{
			limit: policy.LimitPESeconds, value: 500, had: []berth.Request{owned("a", 0, 100, 3, 100)}, ask: owned("x", 0, 100, 3, 100), request: true,
			extended: []berth.Request{owned("x", 0, 100, 3, 100)}, until: 200,
		},
		{
			limit: policy.LimitBudget, value: 500, had: []berth.Request{owned("a", 0, 100, 3, 100)}, ask: owned("x", 0, 100, 3, 100), request: true,
			extended: []berth.Request{owned("x", 0, 100, 3, 100)}, until: 200,
		},
		{
			limit: policy.LimitMonthBudget, value: 500, had: []berth.Request{owned("a", 0, 100, 3, 100)}, ask: owned("x", 0, 100, 3, 100), request: true,
			extended: []berth.Request{owned("x", 0, 100, 3, 100)}, until: 200,
		},
		// At these prices everything is charged twice, and would be within the budget else.
		{
			limit: policy.LimitBudget, value: 1000, had: []berth.Request{owned("a", 0, 100, 3, 100)}, ask: owned("x", 0, 100, 3, 100), request: true,
			extended: []berth.Request{owned("x", 0, 100, 3, 100)}, until: 200, prices: policy.Prices{{Partition: "gpu", Factor: 2000}},
		},
		{
			limit: policy.LimitMonthBudget, value: 1000, had: []berth.Request{owned("a", 0, 100, 3, 100)}, ask: owned("x", 0, 100, 3, 100), request: true,
			extended: []berth.Request{owned("x", 0, 100, 3, 100)}, until: 200, prices: policy.Prices{{Site: "cm5", Factor: 500}, {QOS: "high", Factor: 4000}},
		},
		// All ten PEs are used until 30, and by the job that waits for 50 s from then on.
		{
			limit: policy.LimitDelay, value: 60, had: waitingJobs(), ask: owned("x", 0, 300, 3, 100), request: true, cost: true,
			extended: []berth.Request{owned("x", 0, 30, 3, 30), berth.Job("k", 0, 10, 50)}, until: 100,
		},
		{limit: policy.LimitIdle, value: 150, had: waitingJobs(), ask: owned("x", 60, 300, 3, 100), request: true, cost: true},
		{limit: policy.LimitNoShow, value: 0, had: []berth.Request{unused}, ask: owned("x", 120, 320, 3, 100), added: true, request: true, now: 120},
	}
	for i := range list {
		o := &list[i]
		o.ask = everywhere(o.ask)
		for _, had := range [][]berth.Request{o.had, o.extended} {
			for k := range had {
				had[k] = everywhere(had[k])
			}
		}
	}
	return list
}

// wayIn asks for what exceeds a limit in one way; it returns what came of it, empty if
// the limit has nothing to do with that way.
type wayIn struct {
	name string
	try  func(t *testing.T, c engine.Config, o *overstep) string
	// gathers configures what gathers requests; nil where each is decided when it comes.
	gathers func(c *engine.Config)
}

// came says what became of a request: the limit that it was refused for, or how else
// it was decided.
func came(changes []change.Change, id string) string {
	for i := range changes {
		x := &changes[i]
		switch {
		case x.ID != id:
		case x.Kind == change.Accepted || x.Kind == change.Modified || x.Kind == change.Extended || x.Kind == change.QueuedAsJob:
			return string(x.Kind)
		case x.Refusal != nil && x.Refusal.Exceeded != nil:
			return x.Refusal.Exceeded.Limit
		case x.Refusal != nil:
			return string(x.Refusal.Reason)
		}
	}
	return "pending"
}

// begin returns an engine with what a user had before.
func (o *overstep) begin(t *testing.T, c engine.Config, had []berth.Request) *engine.Engine {
	t.Helper()
	e := newEngine(t, c)
	for _, r := range had {
		if got := came(submit(t, e, 0, r), r.ID); got != "accepted" && got != "pending" {
			t.Fatalf("%s: %s, want it within the limits", r.ID, got)
		}
	}
	for at, due := e.Next(); due && at < o.now; at, due = e.Next() {
		apply(t, e, at, engine.Wake())
	}
	return e
}

func waysIn() []wayIn {
	ask := func(reshape func(r *berth.Request)) func(*testing.T, engine.Config, *overstep) string {
		return func(t *testing.T, c engine.Config, o *overstep) string {
			r := *o.ask.Clone()
			if reshape(&r); r.IsJob() && o.request {
				return ""
			}
			return came(submit(t, o.begin(t, c, o.had), o.now, r), "x")
		}
	}
	laterIn := func(configure func(c *engine.Config)) func(*testing.T, engine.Config, *overstep) string {
		return func(t *testing.T, c engine.Config, o *overstep) string {
			configure(&c)
			e := o.begin(t, c, o.had)
			changes := submit(t, e, o.now, o.ask)
			for at, due := e.Next(); due && at < 400; at, due = e.Next() {
				changes = append(changes, apply(t, e, at, engine.Wake())...)
			}
			return came(changes, "x")
		}
	}
	later := func(name string, gathers func(c *engine.Config)) wayIn {
		return wayIn{name: name, try: laterIn(gathers), gathers: gathers}
	}
	now := func(name string, try func(*testing.T, engine.Config, *overstep) string) wayIn {
		return wayIn{name: name, try: try}
	}
	ways := []wayIn{
		now("one part", ask(func(*berth.Request) {})),
		now("several parts", ask(func(r *berth.Request) {
			d := r.Parts[0].Variants[0].Duration
			r.Parts = []berth.Part{{Variants: []berth.Variant{{NPE: 2, Duration: d}}}, {Variants: []berth.Variant{{NPE: 1, Duration: d}}}}
		})),
		now("moldable", ask(func(r *berth.Request) {
			r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: 4, Duration: r.Parts[0].Variants[0].Duration})
		})),
		now("moldable parts", ask(func(r *berth.Request) {
			d := r.Parts[0].Variants[0].Duration
			two := berth.Part{Variants: []berth.Variant{{NPE: 2, Duration: d}, {NPE: 4, Duration: d}}}
			r.Parts = []berth.Part{two, two}
		})),
		now("hold", ask(func(r *berth.Request) { r.Hold = max(r.Hold, 10) })),
		now("job", ask(func(r *berth.Request) { r.Kind, r.Ready, r.Hold, r.Deadline = berth.KindJob, 0, 0, berth.Forever })),
		now("array", func(t *testing.T, c engine.Config, o *overstep) string {
			e := o.begin(t, c, o.had)
			for i := range 5 {
				part := *o.ask.Clone()
				part.ID = fmt.Sprintf("x_%d", i+1)
				if got := came(submit(t, e, o.now, part), part.ID); got != "accepted" {
					return got
				}
				if part.ID == "x_1" && len(c.Limits) == 0 {
					return "accepted"
				}
			}
			return "accepted"
		}),
		now("offer taken", func(t *testing.T, c engine.Config, o *overstep) string {
			free := c
			free.Limits = nil
			offers, err := o.begin(t, free, o.had).Offers(&o.ask, 1)
			if err != nil || len(offers) == 0 {
				t.Fatal(offers, err)
			}
			r := offers[0].Request
			r.Hold = max(o.ask.Hold, 10)
			return came(submit(t, o.begin(t, c, o.had), o.now, r), "x")
		}),
		now("offers", func(t *testing.T, c engine.Config, o *overstep) string {
			e := o.begin(t, c, o.had)
			offers, err := e.Offers(&o.ask, 9)
			if o.cost {
				offers, _, err = e.OffersWithin(&o.ask, 9, engine.Foresight{})
			}
			if err != nil || o.cost && len(offers) == 0 {
				t.Fatal(offers, err)
			}
			for i := range offers {
				twin, err := engine.Restore(c, e.Snapshot())
				if err != nil {
					t.Fatal(err)
				}
				r := offers[i].Request
				r.Hold = 0
				if got := came(submit(t, twin, o.now, r), "x"); got != "accepted" {
					return string(offers[i].Difference) + " " + got
				}
			}
			return string(o.limit) // what is offered is within it
		}),
		now("modify", func(t *testing.T, c engine.Config, o *overstep) string {
			if o.added {
				return ""
			}
			small := everywhere(owned("x", 0, 50, 1, 10))
			e := o.begin(t, c, append(slices.Clone(o.had), small))
			return came(apply(t, e, 0, engine.Modify(&o.ask)), "x")
		}),
		now("extend", func(t *testing.T, c engine.Config, o *overstep) string {
			if o.extended == nil {
				return ""
			}
			e := o.begin(t, c, o.extended)
			return came(apply(t, e, 0, engine.ExtendFor("user", "x", o.until)), "x")
		}),
		later("at an instant", func(c *engine.Config) { c.Trigger = engine.TriggerOnInstant }),
		later("each period", func(c *engine.Config) { c.Trigger, c.Period = engine.TriggerOnPeriod, 50 }),
		now("queued as a job", laterIn(func(c *engine.Config) { c.Immediate = engine.ImmediateQueue })),
	}
	ways = append(ways, waysOfWorkflows()...)
	for _, b := range policy.Batches {
		ways = append(ways, later("batch "+b.Name, func(c *engine.Config) { c.Match = b.Name }))
	}
	return ways
}

// Each limit of each scope holds whichever way a request comes in, and the refusal says whose it is. Without the
// limit each of these requests is served.
func TestEveryLimitInEveryWay(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(10, binding)
		site := &config.Sites[0]
		site.Partitions = []berth.Partition{{Name: "gpu", Pool: site.Pools[0].Name}}
		tables := make([]strings.Builder, len(scopesOf()))
		for i, scope := range scopesOf() {
			fmt.Fprintf(&tables[i], "%s binding, limits of %+v\n%-28s", binding, scope, "way in")
			for _, o := range oversteps() {
				fmt.Fprintf(&tables[i], " %-16s", o.limit)
			}
		}
		for _, way := range waysIn() {
			for i := range tables {
				fmt.Fprintf(&tables[i], "\n%-28s", way.name)
			}
			for _, o := range oversteps() {
				config.Limits, config.Prices = nil, o.prices
				free := way.try(t, config, &o)
				for i, scope := range scopesOf() {
					got := "-"
					if free != "" && scope.Takes(o.limit) {
						config.Limits = policy.Limits{{Scope: scope, Name: o.limit, Value: o.value}}
						got = way.holds(t, config, &o, free)
					}
					fmt.Fprintf(&tables[i], " %-16s", got)
				}
			}
		}
		for i := range tables {
			t.Log(tables[i].String())
		}
	}
}

// holds says whether a limit holds in a way by which the same is served without it.
func (w *wayIn) holds(t *testing.T, config engine.Config, o *overstep, free string) string {
	if o.cost && w.gathers != nil {
		w.gathers(&config)
		_, err := engine.New(config)
		if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Invalid || coded.Field != "limits" {
			t.Errorf("%+v, %s: %v, want the limit refused", config.Limits, w.name, err)
		}
		return "no such limit"
	}
	got := w.try(t, config, o)
	switch {
	case !strings.HasSuffix(w.name, "offers") && free != "accepted" && free != "modified" && free != "extended" && free != "pending":
		t.Errorf("%+v, %s: without the limit it is %s", config.Limits, w.name, free)
	case strings.HasPrefix(w.name, "batch") && (o.limit == policy.LimitShare || o.limit == policy.LimitMonthBudget) && got == string(berth.DeadlineMissed):
		return "waits, " + got // there may be room later, until it is too late
	case strings.HasPrefix(w.name, "batch") && o.limit == policy.LimitLead && config.Limits[0].Partition != "" && got == "accepted":
		return "waits" // until it is ready, and is then promised from now on
	case got != string(o.limit):
		t.Errorf("%+v, %s: %s does not hold: %s", config.Limits, w.name, o.limit, got)
	default:
		return "holds"
	}
	return got
}

// A job is judged only by the pools that it may run in: it would be too long in the other.
func TestLimitOnLengthOfAJobIsOfThePoolsThatItMayRunIn(t *testing.T) {
	c := engine.Config{
		Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{
			{Name: "slow", PEs: 4, Binding: berth.Late, Speed: 500, Node: berth.Node{Cores: 1, MemoryMB: 1000}},
			{Name: "fast", PEs: 4, Binding: berth.Late, Node: berth.Node{Cores: 1, MemoryMB: 4000}},
		}}},
		Limits: []policy.Limit{{Name: policy.LimitLength, Value: 150}},
	}
	for _, tt := range []struct {
		memory int64
		want   string
	}{{2000, "accepted"}, {500, string(policy.LimitLength)}} {
		r := owned("x", 0, berth.Forever, 1, 100)
		r.Kind, r.MemoryMB = berth.KindJob, tt.memory
		e := newEngine(t, c)
		changes := submit(t, e, 0, r)
		if got := came(changes, "x"); got != tt.want {
			t.Errorf("with %d MB: %s, want %s", tt.memory, got, tt.want)
		}
	}
}

// A refusal for what all parts come to together tells how many PEs the first one wants.
func TestRefusalOfAllPartsIsAboutTheFirst(t *testing.T) {
	c := onePool(8, berth.Late)
	c.Limits = []policy.Limit{{Name: policy.LimitPESeconds, Value: 700}}
	r := owned("x", 0, 1000, 3, 100)
	r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 5, Duration: 100}}})
	refusal := refused(t, submit(t, newEngine(t, c), 0, r))
	if refusal.Reason != berth.Quota || refusal.Wanted != 3 || refusal.Exceeded.Asked != 800 {
		t.Errorf("%+v, %+v", refusal, refusal.Exceeded)
	}
}

// PE-seconds are free again when promises end; what jobs of the same user run on is counted nowhere.
func TestPESecondsAreFreedByPromisesAlone(t *testing.T) {
	config := onePool(8, berth.Late)
	config.Limits = policy.Limits{{Name: policy.LimitPESeconds, Value: 700}}
	e := newEngine(t, config)
	j := berth.Job("j", 0, 5, 50)
	j.User = "u"
	accepted(t, submit(t, e, 0, j))
	accepted(t, submit(t, e, 0, owned("a", 0, 100, 3, 100)))
	want := berth.Exceeded{Limit: string(policy.LimitPESeconds), Allowed: 700, Asked: 900, Frees: 100}
	if no := refused(t, submit(t, e, 0, owned("b", 0, 1000, 3, 200))); no.Exceeded == nil || *no.Exceeded != want {
		t.Errorf("%+v; want %+v", no.Exceeded, want)
	}
}

// A user at their limit is told when enough of their reservations will be over for one more. Jobs
// count where they are limited.
func TestOneMoreIsFreeWhenEnoughAreOver(t *testing.T) {
	for _, c := range []struct {
		limit   policy.LimitName
		role    string
		allowed int64
		want    berth.Time
	}{
		{policy.LimitActive, "user", 2, 100},
		{policy.LimitActive, "viewer", 1, 200},
		{policy.LimitActive, "viewer", 0, 0}, // never
		{policy.LimitReservations, "user", 3, 50},
		{policy.LimitReservations, "viewer", 2, 100},
		{policy.LimitReservations, "viewer", 1, 200},
	} {
		config := onePool(8, berth.Late)
		config.Limits = policy.Limits{{Name: c.limit, Value: 3}, {Scope: policy.Scope{Role: c.role}, Name: c.limit, Value: c.allowed}}
		e := newEngine(t, config)
		j := job("j", 0, 1, 50)
		a, b, next := owned("a", 0, 100, 1, 100), owned("b", 100, 200, 1, 100), owned("x", 0, 300, 1, 10)
		for _, r := range []*berth.Request{&j, &a, &b} {
			r.User, r.Role = "u", "operator"
			accepted(t, submit(t, e, 0, *r))
		}
		next.Role = c.role
		no := refused(t, submit(t, e, 0, next))
		if no.Exceeded == nil || no.Exceeded.Limit != string(c.limit) || no.Exceeded.Allowed != c.allowed || no.Exceeded.Frees != c.want {
			t.Errorf("%d by %s: %+v, want room at %d", c.allowed, c.limit, no.Exceeded, c.want)
		}
	}
}

// A request for what is too far ahead is told from when on it may be asked.
func TestTooFarAheadIsFreeLater(t *testing.T) {
	config := onePool(4, berth.Early)
	config.Limits = policy.Limits{{Name: policy.LimitLead, Value: 100}}
	e := newEngine(t, config)
	changes := submit(t, e, 50, owned("x", 300, 500, 3, 100))
	want := berth.Exceeded{Limit: string(policy.LimitLead), Allowed: 100, Asked: 250, Frees: 200}
	if got := came(changes, "x"); got != want.Limit {
		t.Fatalf("%s, want it refused for %s", got, want.Limit)
	}
	if no := changes[len(changes)-1].Refusal; no == nil || *no.Exceeded != want {
		t.Fatalf("%+v; want %+v", no, want)
	}
	if got := came(submit(t, e, 199, owned("y", 300, 500, 3, 100)), "y"); got != want.Limit {
		t.Errorf("%s a second before, want it refused", got)
	}
	if got := came(submit(t, e, want.Frees, owned("z", 300, 500, 3, 100)), "z"); got != "accepted" {
		t.Errorf("%s when it is free, want accepted", got)
	}
}

// A job that no site could ever run is refused once and for that, also if its user may have no
// more jobs.
func TestImpossibleJobOverALimitIsRefusedOnce(t *testing.T) {
	config := onePool(4, berth.Early)
	config.Limits = policy.Limits{{Name: policy.LimitReservations, Value: 1}}
	e := newEngine(t, config)
	accepted(t, submit(t, e, 0, owned("x", 0, 500, 3, 100)))
	j := berth.Job("j", 0, 5, 10)
	j.User = "u"
	var reasons []berth.Reason
	for _, c := range submit(t, e, 0, j) {
		if c.Kind == change.Refused {
			reasons = append(reasons, c.Refusal.Reason)
		}
	}
	if len(reasons) != 1 || reasons[0] == berth.Quota {
		t.Errorf("refused for %q, want one reason, which is no quota", reasons)
	}
}
