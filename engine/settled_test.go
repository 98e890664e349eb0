package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// settled requires an engine to be consistent, and the engine restored from its
// snapshot to have the same hash.
func settled(t rapid.TB, config engine.Config, e *engine.Engine) {
	t.Helper()
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
	again, err := engine.Restore(config, e.Snapshot())
	if err != nil {
		t.Fatalf("the snapshot cannot be restored: %v", err)
	}
	if again.Hash() != e.Hash() {
		t.Fatal("the restored engine has another hash")
	}
}

// cm5 is the resource of onePool.
func cm5() berth.ResourceID { return berth.PoolID("cm5", "pool") }

// takenDown is the event that PEs [lo, hi) of a resource are out of use from a
// time until another; 0 is now, and until they are up again.
func takenDown(resource berth.ResourceID, lo, hi berth.PE, from, until berth.Time) engine.Event {
	return engine.Event{Kind: engine.Down, Resource: resource, PEs: berth.NewPESet(berth.Run{Lo: lo, Hi: hi}), From: from, Until: until}
}

// broughtUp is the event that PEs [lo, hi) of a resource can be used again.
func broughtUp(resource berth.ResourceID, lo, hi berth.PE) engine.Event {
	return engine.Event{Kind: engine.Up, Resource: resource, PEs: berth.NewPESet(berth.Run{Lo: lo, Hi: hi})}
}

// extended is the event that a reservation is to last until a later end.
func extended(id string, until berth.Time) engine.Event {
	return engine.Event{Kind: engine.Prolong, ID: id, Until: until}
}

// avoiding is the event that a reservation cannot be had on these PEs of onePool.
func avoiding(id string, pes ...berth.PE) engine.Event {
	return engine.Event{Kind: engine.Avoid, ID: id, Resource: cm5(), PEs: berth.PEsOf(pes...)}
}

// wake is the event of time alone.
func wake() engine.Event { return engine.Event{Kind: engine.Wake} }

// shape says what a live reservation has: its state, its PEs and times by part,
// and how many PEs it lacks. It leaves out the numbers of the PEs.
func shape(e *engine.Engine, id string) string {
	r, live := e.Reservation(id)
	if !live {
		return "gone"
	}
	words := []string{string(r.State)}
	for _, a := range r.Allotments {
		words = append(words, fmt.Sprintf("%s:%dx[%d,%d)", a.Resource.Site, a.NPE, a.Start, a.End))
	}
	if r.Missing > 0 {
		words = append(words, fmt.Sprintf("missing %d", r.Missing))
	}
	return strings.Join(words, " ")
}

func wantShape(t *testing.T, e *engine.Engine, id, want string) {
	t.Helper()
	if got := shape(e, id); got != want {
		t.Errorf("%s is %q, want %q", id, got, want)
	}
}

// generation returns how many places a live reservation has had.
func generation(t *testing.T, e *engine.Engine, id string) uint64 {
	t.Helper()
	r, live := e.Reservation(id)
	if !live {
		t.Fatalf("%s is gone", id)
	}
	return r.Generation
}

// effectsOn returns the effects in the outbox about a reservation at a site.
func effectsOn(e *engine.Engine, site, id string) []engine.Effect {
	return slices.DeleteFunc(e.Outbox(), func(x engine.Effect) bool { return x.Site != site || x.Reservation != id })
}

// managed makes every site of a configuration a managed one.
func managed(config engine.Config) engine.Config {
	config.Sites = slices.Clone(config.Sites)
	for i := range config.Sites {
		config.Sites[i].Managed = true
	}
	return config
}

// poolsOf returns a configuration with one pool at each of the named sites.
func poolsOf(pes berth.Count, binding berth.Binding, names ...string) engine.Config {
	var config engine.Config
	for _, name := range names {
		config.Sites = append(config.Sites, berth.Site{Name: name, Pools: []berth.Pool{{Name: "pool", PEs: pes, Binding: binding}}})
	}
	return config
}

// bindings are all ways to bind PEs.
func bindings() []berth.Binding { return []berth.Binding{berth.Early, berth.Late} }

// byBindingAndManagement runs a test for both bindings, at managed and at
// unmanaged sites.
func byBindingAndManagement(t *testing.T, run func(t *testing.T, binding berth.Binding, manage func(engine.Config) engine.Config)) {
	t.Helper()
	for _, binding := range bindings() {
		t.Run(string(binding)+" unmanaged", func(t *testing.T) {
			run(t, binding, func(c engine.Config) engine.Config { return c })
		})
		t.Run(string(binding)+" managed", func(t *testing.T) { run(t, binding, managed) })
	}
}
func submission(r *berth.Request) engine.Event {
	return engine.Event{Kind: engine.Submit, Request: r}
}

// modification is the event that a reservation is to be for another request.
func modification(r *berth.Request) engine.Event {
	return engine.Event{Kind: engine.Modify, ID: r.ID, Request: r}
}
