package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/place"
)

// Stretch is starts that are alike, the first and the last of them among them: the request
// would be promised at each of them, or the same thing stands against each.
type Stretch struct {
	First, Last berth.Time
	// Refusal says what is short; nil if the starts are possible. Where PEs are, Nearest
	// has the most that are free for as long at any start of the stretch.
	Refusal *berth.Refusal
}

// Look says which starts of a request are looked at: those of one variant of its only part
// in one pool, from First (now, if that is over) to Last. At most Steps stretches are
// found in one look, so that it takes bounded time.
type Look struct {
	Pool        berth.ResourceID
	Variant     int
	First, Last berth.Time
	Steps       int
}

// Starts is when one shape of a request can start in a pool.
type Starts struct {
	NPE       berth.Count
	Duration  berth.Duration // in that pool
	Refusal   *berth.Refusal // why it can start there at no time; then there are no stretches
	Stretches []Stretch      // in order of time, without gaps between them
}

// Starts tells for each start of a request whether it would be promised now, and if not,
// what is short then. A stretch may end where the next one is as possible as it. The engine
// does not change, and the caller owns the answer. The error is of code Invalid and concerns
// the request, or the look. One that is to arrive later is looked at as if it came now.
func (e *Engine) Starts(r *berth.Request, look Look) (Starts, error) {
	switch {
	case r == nil:
		return Starts{}, berth.Errorf(berth.Invalid, "request", "missing")
	case r.IsJob():
		return Starts{}, berth.Errorf(berth.Invalid, "kind", "%q; starts are those of requests", r.Kind)
	}
	if err := asked(r); err != nil {
		return Starts{}, err
	}
	_, known := e.state.Index(look.Pool)
	switch {
	case len(r.Parts) > 1:
		return Starts{}, berth.Errorf(berth.Invalid, "parts", "%d; starts are those of requests of one part", len(r.Parts))
	case !known:
		return Starts{}, berth.Errorf(berth.Invalid, "pool", "no pool %q at %q", look.Pool.Name, look.Pool.Site)
	case look.Variant < 0 || look.Variant >= len(r.Parts[0].Variants):
		return Starts{}, berth.Errorf(berth.Invalid, "variant", "%d; there are %d", look.Variant, len(r.Parts[0].Variants))
	case look.Steps < 1:
		return Starts{}, berth.Errorf(berth.Invalid, "steps", "%d; must be at least 1", look.Steps)
	case !look.First.Valid() || look.Last < look.First || look.Last > berth.TimeLimit/2:
		return Starts{}, berth.Errorf(berth.Invalid, "last", "%d; want a time from %d to %d", look.Last, look.First, berth.TimeLimit/2)
	}
	found := e.finder.Starts(r, place.Look(look))
	s := Starts{NPE: found.Variant.NPE, Duration: found.Variant.Duration, Refusal: found.Refusal, Stretches: make([]Stretch, len(found.Stretches))}
	for i := range found.Stretches {
		s.Stretches[i] = Stretch(found.Stretches[i])
	}
	return s, nil
}
