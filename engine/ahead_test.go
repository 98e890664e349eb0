package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// halfAhead is a pool of 10 PEs. From 100 s ahead on 5 of them may be promised, and from 200 s ahead on 2 to users of a priority
// below 5.
func halfAhead(binding berth.Binding) engine.Config {
	config := onePool(10, binding)
	config.Users = []berth.User{{ID: "carol", Priority: 5}, {ID: "dave", Priority: 0}}
	config.Ahead = policy.Ahead{{Beyond: 100, Share: 500}, {Beyond: 200, Share: 200, Below: new(5)}}
	return config
}

// askedFor is a request of some PEs for a user, throughout a time.
func askedFor(id, user string, from, to berth.Time, npe berth.Count) berth.Request {
	r := berth.Rigid(id, 0, from, to, npe, to.Sub(from))
	r.User = user
	return r
}

// Whichever way a request comes in, no more is promised so far ahead than may be; nearer, all of it may.
func TestEveryWayKeepsToWhatMayBePromisedAhead(t *testing.T) {
	over := func(reason berth.Reason, allowed, asks int64, frees berth.Time) *berth.Refusal {
		return &berth.Refusal{Reason: reason, Exceeded: &berth.Exceeded{Limit: "ahead", Allowed: allowed, Asked: asks, Frees: frees}}
	}
	for _, binding := range bindings() {
		for name, c := range map[string]struct {
			before []berth.Request
			event  func(*engine.Engine) engine.Event
			over   *berth.Refusal // nil if it may be
		}{
			"within half":          {event: submitted(askedFor("a", "carol", 150, 180, 5))},
			"beyond half":          {event: submitted(askedFor("a", "carol", 150, 180, 6)), over: over(berth.Quota, 5, 6, 50)},
			"all of it, near":      {event: submitted(askedFor("a", "dave", 50, 100, 10))},
			"near, and too long":   {event: submitted(askedFor("a", "dave", 50, 101, 6)), over: over(berth.Quota, 5, 6, 0)},
			"priority":             {event: submitted(askedFor("a", "carol", 250, 280, 5))},
			"no priority":          {event: submitted(askedFor("a", "dave", 250, 280, 3)), over: over(berth.Quota, 2, 3, 50)},
			"unknown user":         {event: submitted(askedFor("a", "mallory", 250, 280, 3)), over: over(berth.Quota, 2, 3, 50)},
			"beside others":        {before: []berth.Request{askedFor("b", "carol", 160, 170, 3)}, event: submitted(askedFor("a", "dave", 150, 180, 3)), over: over(berth.Quota, 5, 6, 60)},
			"beside others, fewer": {before: []berth.Request{askedFor("b", "carol", 160, 170, 3)}, event: submitted(askedFor("a", "dave", 150, 180, 2))},
			"hold": {event: func(*engine.Engine) engine.Event {
				r := askedFor("a", "carol", 150, 180, 6)
				r.Hold = 30
				return engine.Submit(&r)
			}, over: over(berth.Quota, 5, 6, 50)},
			"several parts": {event: func(*engine.Engine) engine.Event {
				r := parts("a", 180, berth.Variant{NPE: 3, Duration: 30}, berth.Variant{NPE: 3, Duration: 20})
				r.Ready, r.User = 150, "carol"
				return engine.Submit(&r)
			}, over: over(berth.Quota, 5, 6, 50)},
			"moldable": {event: func(*engine.Engine) engine.Event {
				r := askedFor("a", "carol", 150, 180, 6)
				r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: 4, Duration: 30})
				return engine.Submit(&r)
			}},
			"series": {event: func(*engine.Engine) engine.Event {
				s := series("s", 0, 150, 30, 2, 2, 6, 30)
				s.Request.User = "carol"
				return engine.SubmitSeries(s)
			}, over: over(berth.Quota, 5, 6, 50)},
			"modify": {before: []berth.Request{askedFor("a", "carol", 0, 30, 6)}, event: func(*engine.Engine) engine.Event {
				r := askedFor("a", "carol", 150, 180, 6)
				return engine.Modify(&r)
			}, over: over(berth.Quota, 5, 6, 50)},
			"modify itself": {before: []berth.Request{askedFor("a", "carol", 150, 180, 5)}, event: func(*engine.Engine) engine.Event {
				r := askedFor("a", "carol", 160, 190, 5)
				return engine.Modify(&r)
			}},
			"extend": {before: []berth.Request{askedFor("a", "carol", 20, 90, 6)}, event: func(*engine.Engine) engine.Event {
				return engine.Extend("a", 120)
			}, over: over(berth.Quota, 5, 6, 0)},
			"extend, near": {before: []berth.Request{askedFor("a", "carol", 20, 90, 6)}, event: func(*engine.Engine) engine.Event {
				return engine.Extend("a", 100)
			}},
		} {
			config := halfAhead(binding)
			e := newEngine(t, config)
			for _, r := range c.before {
				submit(t, e, 0, r)
			}
			if e.Live() != len(c.before) {
				t.Fatalf("%s, %s: %d of %d before are promised", binding, name, e.Live(), len(c.before))
			}
			var got *berth.Refusal
			changes := apply(t, e, 0, c.event(e))
			for i := range changes {
				if x := &changes[i]; x.Refusal != nil {
					got = x.Refusal
				} else if len(x.Unfit) > 0 {
					got = &x.Unfit[0].Refusal
				}
			}
			switch {
			case (got == nil) != (c.over == nil):
				t.Errorf("%s, %s: %s, %+v", binding, name, kinds(changes), got)
			case got != nil && (got.Reason != c.over.Reason || got.Exceeded == nil || *got.Exceeded != *c.over.Exceeded):
				t.Errorf("%s, %s: refused for %s, %+v, want %+v", binding, name, got.Reason, got.Exceeded, c.over.Exceeded)
			}
			settled(t, config, e)
		}
	}
}

// submitted is the event that brings a request.
func submitted(r berth.Request) func(*engine.Engine) engine.Event {
	return func(*engine.Engine) engine.Event { return engine.Submit(&r) }
}

// More may be promised of a time once it is nearer; offers keep to what may be, and so do tasks of workflows.
func TestWhatMayBePromisedAheadGrows(t *testing.T) {
	for _, binding := range bindings() {
		config := halfAhead(binding)
		e := newEngine(t, config)
		first := askedFor("first", "carol", 150, 180, 5)
		submit(t, e, 0, first)
		second := askedFor("second", "dave", 150, 180, 5)
		submit(t, e, 0, second)
		wantShape(t, e, "second", "gone")
		offers, err := e.Offers(&second, 5)
		if err != nil || len(offers) == 0 {
			t.Fatalf("%s: %v, %v", binding, offers, err)
		}
		for _, o := range offers {
			for _, a := range o.Allotments {
				if a.End > 100 && a.Start < 180 && a.End > 150 || a.Start >= 200 && a.NPE > 2 || a.End > 100 && a.NPE > 5 {
					t.Errorf("%s: an offer of %d PEs from %d to %d", binding, a.NPE, a.Start, a.End)
				}
			}
		}
		later := askedFor("later", "dave", 150, 180, 5)
		later.Arrival = 80
		submit(t, e, 80, later)
		if got := shape(e, "later"); !strings.HasPrefix(got, "confirmed") {
			t.Errorf("%s: %s", binding, got)
		}
		settled(t, config, e)
	}
}

// Tasks of a workflow that can only be so far ahead are promised within what may be, or the workflow is refused.
func TestWorkflowsKeepToWhatMayBePromisedAhead(t *testing.T) {
	for _, binding := range bindings() {
		for _, tasks := range []int{5, 6, 12} {
			config := halfAhead(binding)
			config.Ahead = policy.Ahead{{Beyond: 100, Share: 500}}
			e := newEngine(t, config)
			submit(t, e, 0, askedFor("busy", "carol", 0, 100, 10))
			w := flow("w", 0, berth.Forever)
			for range tasks {
				w.Tasks = append(w.Tasks, task(fmt.Sprintf("t%d", len(w.Tasks)), 30))
			}
			changes := apply(t, e, 0, engine.SubmitWorkflow(w))
			if !strings.Contains(kinds(changes), "workflow_promised") {
				t.Errorf("%s: %d tasks: %s", binding, tasks, kinds(changes))
			}
			for at := berth.Time(100); at < 500; at += 10 {
				used := berth.Count(0)
				for r := range e.Reservations() {
					for _, a := range r.Allotments {
						if a.Start <= at && at < a.End {
							used += a.NPE
						}
					}
				}
				if used > 5 {
					t.Errorf("%s: %d tasks: %d PEs are promised at %d", binding, tasks, used, at)
				}
			}
			settled(t, config, e)
		}
		config := halfAhead(binding)
		config.Ahead = policy.Ahead{{Beyond: 100, Share: 0}}
		e := newEngine(t, config)
		submit(t, e, 0, askedFor("busy", "carol", 0, 100, 10))
		changes := apply(t, e, 0, engine.SubmitWorkflow(flow("w", 0, berth.Forever, task("a", 30))))
		refused := slices.IndexFunc(changes, func(c change.Change) bool { return c.Kind == change.WorkflowRefused })
		if refused < 0 || changes[refused].Refusal.Exceeded == nil || changes[refused].Refusal.Exceeded.Limit != "ahead" {
			t.Errorf("%s: %s, %+v", binding, kinds(changes), changes[max(0, refused)].Refusal)
		}
		settled(t, config, e)
	}
}
