package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// drawLimits draws a table: for everyone, then perhaps another value for a role or a user.
func drawLimits(t *rapid.T) policy.Limits {
	var l policy.Limits
	row := func(s policy.Scope, name policy.LimitName, low, high int64) {
		if rapid.Bool().Draw(t, string(name)) {
			l = append(l, policy.Limit{Scope: s, Name: name, Value: rapid.Int64Range(low, high).Draw(t, "value")})
		}
	}
	for _, s := range []policy.Scope{{Role: "user"}, {Role: "operator"}, {User: "ann"}} {
		row(s, policy.LimitHold, 1, 30)
		row(s, policy.LimitLead, 0, 30)
		row(s, policy.LimitReservations, 1, 6)
		row(s, policy.LimitActive, 1, 5)
		row(s, policy.LimitLength, 3, 20)
		row(s, policy.LimitShare, 100, 900)
		row(s, policy.LimitPESeconds, 20, 300)
		if s.Role == "operator" && rapid.Bool().Draw(t, "unlimited") {
			l = append(l, policy.Limit{Scope: s, Name: policy.LimitShare, Value: policy.NoLimit})
		}
	}
	return l
}

// limited is a run of an engine with limits, beside what is known of it.
type limited struct {
	t      *rapid.T
	e      *engine.Engine
	config engine.Config
	now    berth.Time
	ids    []string
	ends   map[string]int // how often each limit has refused
}

// has returns what a user has, the PEs promised in each pool by the second.
func (w *limited) has(user string) (live int, area int64, used map[berth.ResourceID]map[berth.Time]berth.Count) {
	used = map[berth.ResourceID]map[berth.Time]berth.Count{}
	for _, id := range w.ids {
		r, is := w.e.Reservation(id)
		if !is || r.Request.User != user || r.Request.IsJob() {
			continue
		}
		live++
		for _, a := range r.Allotments {
			area += berth.Area(a.NPE, a.End.Sub(a.Start))
			if used[a.Resource] == nil {
				used[a.Resource] = map[berth.Time]berth.Count{}
			}
			for at := max(a.Start, w.now); at < a.End; at++ {
				used[a.Resource][at] += a.NPE
			}
		}
	}
	return live, area, used
}

// judge checks what has just been promised or changed against the limits of who asked,
// by sums of its own.
func (w *limited) judge(id, role string, added bool) {
	r, is := w.e.Reservation(id)
	if !is {
		return
	}
	user := r.Request.User
	a := w.config.Limits.Of(role, user)
	live, area, used := w.has(user)
	check := func(name policy.LimitName, value int64) {
		if most, limited := a.Limit(name); limited && value > most {
			w.t.Fatalf("%s of %s, asked for by %q: %s is %d, allowed are %d", id, user, role, name, value, most)
		}
	}
	if added {
		check(policy.LimitActive, int64(live))
		check(policy.LimitHold, int64(r.Request.Hold))
	}
	check(policy.LimitPESeconds, area)
	check(policy.LimitLead, int64(r.Start().Sub(w.now)))
	for _, part := range r.Allotments {
		check(policy.LimitLength, int64(part.End.Sub(part.Start)))
		most, limited := a.ShareOf(w.size(part.Resource))
		for at := part.Start; limited && at < part.End; at++ {
			if got := used[part.Resource][at]; got > most {
				w.t.Fatalf("%s of %s: %d PEs of %s at %d, the share is %d", id, user, got, part.Resource.Site, at, most)
			}
		}
	}
}

// told checks a refusal for a limit: without this limit it is another one or none that
// refuses, and what it says is beyond what is allowed.
func (w *limited) told(before []byte, refusal *berth.Refusal, again func(e *engine.Engine) *berth.Refusal) {
	if refusal == nil || refusal.Reason != berth.Quota || refusal.Exceeded == nil {
		return
	}
	x := refusal.Exceeded
	w.ends[x.Limit]++
	if x.Asked <= x.Allowed || x.Frees != 0 && x.Frees < w.now {
		w.t.Fatalf("%+v is not beyond what is allowed", x)
	}
	free := w.config
	free.Limits = slices.DeleteFunc(slices.Clone(w.config.Limits), func(l policy.Limit) bool { return string(l.Name) == x.Limit })
	twin, err := engine.Restore(free, before)
	if err != nil {
		w.t.Fatal(err)
	}
	if no := again(twin); no != nil && no.Exceeded != nil && no.Exceeded.Limit == x.Limit {
		w.t.Fatalf("%s refuses where there is no such limit", x.Limit)
	}
}

// refusalIn returns the refusal of an id among changes.
func refusalIn(changes []change.Change, id string) *berth.Refusal {
	for i := range changes {
		if changes[i].ID == id && changes[i].Refusal != nil {
			return changes[i].Refusal
		}
	}
	return nil
}

// Whatever is asked for in whatever order, no user gets beyond their limits by asking, and
// after a restart the same is decided.
func TestLimitsHoldWhateverIsAsked(t *testing.T) {
	bound := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := limited{t: t, ends: bound}
		binding := rapid.SampledFrom(bindings()).Draw(t, "binding")
		for i := range rapid.IntRange(1, 2).Draw(t, "sites") {
			w.config.Sites = append(w.config.Sites, berth.Site{
				Name: fmt.Sprintf("s%d", i), Managed: rapid.Bool().Draw(t, "managed"), Pools: []berth.Pool{{Name: "p", PEs: berth.Count(rapid.IntRange(2, 12).Draw(t, "pes")), Binding: binding}},
			})
		}
		w.config.Limits = drawLimits(t)
		w.config.Place = policy.Placements[rapid.IntRange(0, len(policy.Placements)-1).Draw(t, "place")].Name
		var err error
		if w.e, err = engine.New(w.config); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			w.step()
			if err := w.e.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Log("limits that refused:", bound)
}

func (w *limited) step() {
	t := w.t
	w.now += berth.Time(rapid.IntRange(0, 4).Draw(t, "passes"))
	if _, _, err := w.e.Apply(w.now, engine.Wake()); err != nil {
		t.Fatal(err)
	}
	if rapid.IntRange(0, 5).Draw(t, "restart") == 0 {
		twin, err := engine.Restore(w.config, w.e.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if w.e.Hash() != twin.Hash() {
			t.Fatal("another state after a restart")
		}
		w.e = twin
	}
	role := rapid.SampledFrom([]string{"user", "operator", ""}).Draw(t, "role")
	id := ""
	if len(w.ids) > 0 {
		id = rapid.SampledFrom(w.ids).Draw(t, "of")
	}
	before := w.e.Snapshot()
	var event func() engine.Event
	added, until := false, berth.Time(0)
	switch what := rapid.SampledFrom([]string{"submit", "submit", "submit", "submit", "modify", "extend", "cancel", "offer", "down", "up"}).Draw(t, "what"); what {
	case "cancel":
		_, _, _ = w.e.Apply(w.now, engine.Cancel(id)) // of what is over there is nothing to cancel
		return
	case "down", "up":
		site := rapid.SampledFrom(w.config.Sites).Draw(t, "site")
		at, pe := berth.PoolID(site.Name, "p"), rapid.IntRange(0, int(site.Pools[0].PEs)-1).Draw(t, "pe")
		pes := berth.PEsOf(berth.PE(pe))
		out := engine.Up(at, pes)
		if what == "down" {
			out = engine.Down(berth.Outage{Resource: at, PEs: pes})
		}
		if _, _, err := w.e.Apply(w.now, out); err != nil {
			t.Fatal(err)
		}
		return
	case "extend":
		r, is := w.e.Reservation(id)
		if !is {
			return
		}
		if len(r.Allotments) > 1 {
			return
		}
		until = r.End() + berth.Time(rapid.IntRange(1, 10).Draw(t, "longer"))
		event = func() engine.Event { return engine.ExtendFor(role, id, until) }
	default:
		r := w.request(role)
		if was, is := w.e.Reservation(id); what == "modify" && is {
			r.ID, r.User = id, was.Request.User
			event = func() engine.Event { return engine.Modify(r.Clone()) }
			break
		}
		id, added = fmt.Sprintf("r%d", len(w.ids)), true
		w.ids = append(w.ids, id)
		if r.ID = id; what == "offer" {
			offers, err := w.e.Offers(&r, 5)
			if err != nil {
				t.Fatal(err)
			}
			if len(offers) == 0 {
				return
			}
			r = rapid.SampledFrom(offers).Draw(t, "offer").Request
			r.Hold = 0
		}
		event = func() engine.Event { return engine.Submit(r.Clone()) }
	}
	changes, _, err := w.e.Apply(w.now, event())
	if err != nil {
		return // it does not go with the state
	}
	refusal := refusalIn(changes, id)
	w.told(before, refusal, func(e *engine.Engine) *berth.Refusal {
		changes, _, err := e.Apply(w.now, event())
		if err != nil {
			t.Fatal(err)
		}
		return refusalIn(changes, id)
	})
	if refusal == nil {
		if until > 0 {
			w.judgeExtension(id, role, until)
			return
		}
		w.judge(id, role, added)
	}
}

// judgeExtension is judge of a reservation that goes on until a later end.
func (w *limited) judgeExtension(id, role string, until berth.Time) {
	r, is := w.e.Reservation(id)
	if !is {
		return
	}
	a := w.config.Limits.Of(role, r.Request.User)
	_, area, used := w.has(r.Request.User)
	if most, limited := a.Limit(policy.LimitPESeconds); limited && area > most {
		w.t.Fatalf("%s is extended to %d PE-seconds, allowed are %d", id, area, most)
	}
	if most, limited := a.Limit(policy.LimitLength); limited && int64(until.Sub(r.Start())) > most {
		w.t.Fatalf("%s is extended to %d s, allowed are %d", id, until.Sub(r.Start()), most)
	}
	at := r.Allotments[0].Resource
	if most, limited := a.ShareOf(w.size(at)); limited && used[at][until-1] > most {
		w.t.Fatalf("%s is extended to where %d PEs are used, the share is %d", id, used[at][until-1], most)
	}
}

// size returns how many PEs a pool has.
func (w *limited) size(id berth.ResourceID) berth.Count {
	for _, s := range w.config.Sites {
		if s.Name == id.Site {
			return s.Pools[0].PEs
		}
	}
	return 0
}

// request draws a request of a user for which a role asks.
func (w *limited) request(role string) berth.Request {
	t := w.t
	r := berth.Request{
		User: rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "user"), Role: role, Arrival: w.now,
		Ready: w.now + berth.Time(rapid.IntRange(0, 35).Draw(t, "ahead")), Hold: berth.Duration(rapid.SampledFrom([]int{0, 0, 5, 40}).Draw(t, "hold")),
	}
	longest := berth.Duration(0)
	for range rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "parts") {
		var part berth.Part
		for range rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "variants") {
			v := berth.Variant{NPE: berth.Count(rapid.IntRange(1, 8).Draw(t, "npe")), Duration: berth.Duration(rapid.IntRange(1, 25).Draw(t, "duration"))}
			longest = max(longest, v.Duration)
			part.Variants = append(part.Variants, v)
		}
		r.Parts = append(r.Parts, part)
	}
	r.Deadline = r.Ready.Add(longest) + berth.Time(rapid.IntRange(0, 60).Draw(t, "slack"))
	return r
}
