package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// PEs get names. In a pool of late binding that names ahead, promises get the numbers of
// their PEs some time before they start, and other numbers where these go out of use or are
// taken: that costs them nothing as long as their count is free.
//
// Source: intervals with at most n overlaps at any time can be given n numbers so that
// those that overlap have different ones, by taking them in the order of their starts (the
// colouring of interval graphs; Golumbic, Algorithmic Graph Theory, chapter 4). What runs
// began before all that is named, so it fits the order. Deviations: a promise keeps the PEs
// that it has where they are free, and an announced outage is an interval whose number is
// fixed and which begins after some of the promises: then a promise may get PEs that go out
// of use before it ends, and is repaired as it runs.

// naming is what is known of names while an event is applied.
type naming struct {
	due   bool                         // promises get their first names
	stale bool                         // something has changed for which names may have to change
	had   map[string][]berth.Allotment // what promises had that have given up their places, by part
	avoid map[string]berth.PESet       // what a promise gets only if there is nothing else
}

// note notes a change that is about to be folded. That a job is to stop earlier is none of
// those that matter: it does so for a promise that gets its own names now or begins after
// all that have any, or for an outage, which is noted.
func (n *naming) note(s *state.State, c *change.Change, about *state.Entry) {
	switch c.Kind {
	case change.Started, change.Extended, change.WentDown, change.OutageBegan, change.CameUp, change.Ended, change.Cancelled,
		change.Failed, change.NoShow, change.Expired, change.Rejected, change.Preempted:
		n.stale = true
	case change.Vacated, change.Resized, change.Moved: // what is modified has given up its place before
		n.stale = true
		if about == nil || about.State() == berth.Active {
			return
		}
		var had []berth.Allotment
		for part := range about.Parts() {
			if a := about.Part(part); !a.PEs.Empty() && s.NamesAhead(a.Resource) {
				had = append(had, make([]berth.Allotment, part+1-len(had))...)
				had[part] = a
			}
		}
		if had == nil {
			return
		}
		if n.had == nil {
			n.had = map[string][]berth.Allotment{}
		}
		n.had[about.ID()] = had
	}
}

// name gives, if they are due or stale, names to the PEs of the promises whose time for that has come, and others to
// those whose PEs are not theirs any more. Cost: nothing if there is neither; else O(PEs that
// have names), and for each promise that gets other names the PEs of its pool.
func (e *Engine) name() {
	known := e.names
	e.names = naming{}
	var fresh []*state.Entry
	if known.due {
		fresh = e.state.Unnamed()
	}
	var had []string
	if len(known.had) > 0 { // hardly ever; looking through none allocates
		had = slices.Sorted(maps.Keys(known.had))
	}
	for _, id := range had { // what had names has names, wherever it is now: jobs may wait at its site for it
		if d := e.state.Entry(id); d != nil && e.state.LacksNames(d) && !slices.Contains(fresh, d) {
			fresh = append(fresh, d)
		}
	}
	slices.SortFunc(fresh, state.ByStart)
	all := e.state.Named()
	if len(all)+len(fresh) == 0 {
		return
	}
	promises := fresh
	taken := map[berth.ResourceID]*takenPEs{}
	in := func(pool berth.ResourceID) *takenPEs {
		if taken[pool] == nil {
			taken[pool] = e.newTaken(pool)
		}
		return taken[pool]
	}
	for _, d := range all {
		if d.State() != berth.Active {
			promises = append(promises, d)
			continue
		}
		for part := range d.Parts() {
			if a := d.Part(part); d.Holds(part) && e.state.NamesAhead(a.Resource) {
				in(a.Resource).hold(a.PEs, a.End)
			}
		}
	}
	now := e.state.Now()
	begins := func(d *state.Entry) berth.Time { return max(d.Start(), now) }
	slices.SortFunc(promises, func(a, b *state.Entry) int {
		return cmp.Or(cmp.Compare(begins(a), begins(b)), cmp.Compare(a.Sequence(), b.Sequence()))
	})
	for i, d := range promises {
		to := make([]berth.Allotment, d.Parts())
		same := true
		for part := range d.Parts() {
			a := d.Part(part)
			if to[part] = a; !e.state.NamesAhead(a.Resource) {
				continue
			}
			before := a.PEs
			if had := known.had[d.ID()]; before.Empty() && part < len(had) && had[part].Resource == a.Resource {
				before = had[part].PEs
			}
			t := in(a.Resource)
			a.Start = begins(d)
			pes := t.choose(&a, before, known.avoid[d.ID()], promises[i+1:])
			if pes.Overlap(known.avoid[d.ID()]) > 0 { // some of them are all there is
				pes = t.choose(&a, before, berth.PESet{}, promises[i+1:])
			}
			t.hold(pes, a.End)
			to[part].PEs, same = pes, same && pes.Equal(a.PEs)
		}
		if !same {
			e.emitOf(d, change.Change{Kind: change.Named, Moved: to})
		}
	}
	e.names = naming{}
}

// rename gives a promise other names for PEs that its site does not give it. Its count is free
// as it was; if only these PEs are, it stays as it is.
func (e *Engine) rename(d *state.Entry, event *Event) {
	e.names.stale = true
	e.names.avoid = map[string]berth.PESet{d.ID(): event.PEs}
	e.name()
	if e.holdsAny(d, event.Resource, event.PEs) {
		e.emitOf(d, change.Change{Kind: change.ChangeRefused, Refusal: &berth.Refusal{Reason: berth.RefusedConflict, Resource: event.Resource, Wanted: d.Part(0).NPE}})
	}
}

// foretellNames gives a promise, as it would become, the names that it would get with the change,
// if it would get any: that is what had names before, and what begins soon. It has none where jobs
// have to yield first.
func (e *Engine) foretellNames(d *state.Entry, r *berth.Reservation) {
	now, names, had := e.state.Now(), false, false
	for part := range r.Allotments {
		a := &r.Allotments[part]
		if a.NPE == 0 || !a.PEs.Empty() || !e.state.NamesAhead(a.Resource) {
			continue
		}
		names = names || r.Start().Add(-e.state.Ahead(a.Resource)) <= now
		for before := range d.Parts() {
			had = had || !d.Part(before).PEs.Empty() && e.state.NamesAhead(d.Part(before).Resource)
		}
	}
	if !names && !had || r.State == berth.Held {
		return
	}
	taken := map[berth.ResourceID]*takenPEs{}
	in := func(pool berth.ResourceID) *takenPEs {
		if taken[pool] == nil {
			taken[pool] = e.newTaken(pool)
		}
		return taken[pool]
	}
	begins := max(r.Start(), now)
	var behind []*state.Entry
	for _, other := range e.state.Named() {
		if other == d {
			continue
		}
		if other.State() != berth.Active && cmp.Or(cmp.Compare(max(other.Start(), now), begins), cmp.Compare(other.Sequence(), d.Sequence())) > 0 {
			behind = append(behind, other)
			continue
		}
		for part := range other.Parts() {
			if a := other.Part(part); other.Holds(part) && e.state.NamesAhead(a.Resource) {
				in(a.Resource).hold(a.PEs, a.End)
			}
		}
	}
	named := slices.Clone(r.Allotments)
	for part := range named {
		a := named[part]
		if a.NPE == 0 || !a.PEs.Empty() || !e.state.NamesAhead(a.Resource) {
			continue
		}
		var before berth.PESet
		if part < d.Parts() && d.Part(part).Resource == a.Resource {
			before = d.Part(part).PEs
		}
		a.Start = begins
		pes := in(a.Resource).pick(&a, before, berth.PESet{}, behind)
		if pes.Count() < a.NPE {
			return
		}
		in(a.Resource).hold(pes, a.End)
		named[part].PEs = pes
	}
	r.Allotments = named
	r.Generation++
}

// GiveWay returns the event by which the first of the promises that stand in the way of a foretold one
// gets other names for its PEs; ok is false if none does. They are promises that have the same PEs by name
// at the same time, and begin after it. Where the engine has foretold it their counts are free all the same.
func (e *Engine) GiveWay(r *berth.Reservation) (event Event, ok bool) {
	for _, other := range e.state.Named() {
		if other.ID() == r.Request.ID || other.State() == berth.Active {
			continue
		}
		for part := range other.Parts() {
			a := other.Part(part)
			if a.PEs.Empty() || !e.state.NamesAhead(a.Resource) {
				continue
			}
			for i := range r.Allotments {
				if b := &r.Allotments[i]; b.Resource == a.Resource && a.Start < b.End && b.Start < a.End && a.PEs.Overlap(b.PEs) > 0 {
					return Relocate(other.ID(), a.Resource, b.PEs), true
				}
			}
		}
	}
	return Event{}, false
}

// takenPEs is until when the PEs of a pool are taken, while promises get theirs in the
// order of their starts.
type takenPEs struct {
	until   []berth.Time
	outages []berth.Outage // that have not begun by the start of the promise at hand, by beginning
}

func (e *Engine) newTaken(pool berth.ResourceID) *takenPEs {
	i, _ := e.state.Index(pool)
	t := &takenPEs{until: make([]berth.Time, e.state.View(i).Size())}
	for pe := range t.until {
		t.until[pe] = -berth.Forever
	}
	for o := range e.state.Outages() {
		if o.Resource == pool {
			if o.From == 0 { // it has begun
				o.From = -berth.Forever
			}
			t.outages = append(t.outages, o)
		}
	}
	slices.SortStableFunc(t.outages, func(a, b berth.Outage) int { return cmp.Compare(a.From, b.From) })
	return t
}

// hold takes PEs until a time.
func (t *takenPEs) hold(pes berth.PESet, until berth.Time) {
	for _, r := range pes.Runs() {
		for pe := r.Lo; pe < r.Hi; pe++ {
			t.until[pe] = max(t.until[pe], until)
		}
	}
}

// choose returns the PEs of an allotment, which begins no earlier than those before it: of
// those that are free at its start the ones that stay so, among them those that it had, then
// those that none of the promises behind it has, then the lowest; then, the same way, those
// that an outage takes last. The engine promises no more than there are.
func (t *takenPEs) choose(a *berth.Allotment, had, avoid berth.PESet, behind []*state.Entry) berth.PESet {
	chosen := t.pick(a, had, avoid, behind)
	if chosen.Count() < a.NPE {
		panic("engine: fewer PEs are free than a promise counts")
	}
	return chosen
}

// pick is choose, and returns too few PEs if no more are free.
func (t *takenPEs) pick(a *berth.Allotment, had, avoid berth.PESet, behind []*state.Entry) berth.PESet {
	for len(t.outages) > 0 && t.outages[0].From <= a.Start {
		t.hold(t.outages[0].PEs, t.outages[0].Until)
		t.outages = t.outages[1:]
	}
	if had.Count() == a.NPE && had.Overlap(avoid) == 0 && t.stays(had, a) {
		return had
	}
	var free []berth.Run
	for pe := berth.PE(0); int(pe) < len(t.until); pe++ {
		if t.until[pe] <= a.Start {
			if last := len(free) - 1; last >= 0 && free[last].Hi == pe {
				free[last].Hi++
			} else {
				free = append(free, berth.Run{Lo: pe, Hi: pe + 1})
			}
		}
	}
	rest := berth.NewPESet(free...)
	avoided := rest.And(avoid)
	rest = rest.Minus(avoid)
	var lost []berth.PESet // the free PEs that outages take before the end, the last first
	for i := range t.outages {
		if o := &t.outages[i]; o.From < a.End {
			if gone := rest.And(o.PEs); !gone.Empty() {
				lost, rest = append(lost, gone), rest.Minus(gone)
			}
		}
	}
	slices.Reverse(lost)
	var chosen berth.PESet
	take := func(from berth.PESet) {
		if n := a.NPE - chosen.Count(); n > 0 {
			chosen = chosen.Or(from.Lowest(n))
		}
	}
	var wanted berth.PESet // by those behind it, once that is asked
	asked := false
	for _, tier := range slices.Concat([]berth.PESet{rest}, lost, []berth.PESet{avoided}) {
		if take(tier.And(had)); chosen.Count() == a.NPE {
			return chosen
		}
		if !asked {
			wanted, asked = wantedBehind(a, behind), true
		}
		tier = tier.Minus(had)
		take(tier.Minus(wanted))
		take(tier.And(wanted))
	}
	return chosen
}

// stays reports whether PEs are free throughout an allotment.
func (t *takenPEs) stays(pes berth.PESet, a *berth.Allotment) bool {
	for _, r := range pes.Runs() {
		for pe := r.Lo; pe < r.Hi; pe++ {
			if t.until[pe] > a.Start {
				return false
			}
		}
	}
	return !slices.ContainsFunc(t.outages, func(o berth.Outage) bool { return o.From < a.End && o.PEs.Overlap(pes) > 0 })
}

// wantedBehind returns the PEs of a pool that later promises have which begin before an
// allotment ends.
func wantedBehind(a *berth.Allotment, behind []*state.Entry) berth.PESet {
	var pes berth.PESet
	for _, d := range behind {
		if d.Start() >= a.End {
			break
		}
		for part := range d.Parts() {
			if other := d.Part(part); other.Resource == a.Resource {
				pes = pes.Or(other.PEs)
			}
		}
	}
	return pes
}
