package service

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
)

// outageNote is what calendars show of an outage: the engine forgets when it began, and all of it once it
// is over.
type outageNote struct {
	berth.Outage            // as it was last; From is its beginning, also once it has begun
	Changed      berth.Time // when it was changed last
	Changes      uint64
	Ended        berth.Time // 0 of one that is announced or goes on
	Announced    bool       // From was known before it began; else it had begun by From
}

const (
	// keepOutages is for how long outages that are over are remembered.
	keepOutages = feedPast
	// maxOutageNotes bounds how many: a large cluster loses some nodes a day.
	maxOutageNotes = 2048
)

// code writes or reads a note.
func (n *outageNote) code(c *wire.Coder) {
	wire.Struct(c, 1, &n.Outage, false, wire.Outage)
	wire.Int(c, 2, &n.Changed)
	wire.Uint(c, 3, &n.Changes)
	wire.Int(c, 4, &n.Ended)
	wire.Bool(c, 5, &n.Announced)
	c.End()
}

// outageNotes are those of a core. Once lent they are not written any more.
type outageNotes struct {
	list []outageNote // in the order in which they were learned
	lent bool
}

// own makes the list one that may be written.
func (n *outageNotes) own() {
	if n.lent {
		n.list, n.lent = slices.Clone(n.list), false
	}
}

// lend returns the list as it is now.
func (n *outageNotes) lend() []outageNote {
	n.lent = true
	return n.list
}

// follow takes a change of an outage in.
func (n *outageNotes) follow(x *change.Change, at berth.Time) {
	o := x.Outage
	n.own()
	if x.Kind == change.WentDown {
		n.forget(at)
		note := outageNote{Outage: *o, Changed: at, Changes: 1, Announced: o.From != 0}
		note.From = cmp.Or(o.From, at)
		n.list = append(n.list, note)
		return
	}
	i := slices.IndexFunc(n.list, func(note outageNote) bool { return note.Number == o.Number && note.Ended == 0 })
	if i < 0 || x.Kind == change.OutageBegan { // which was known before
		return
	}
	note := &n.list[i]
	note.Changed, note.Changes = at, note.Changes+1
	if rest := note.PEs.Minus(o.PEs); !rest.Empty() {
		note.PEs = rest
		return
	}
	note.Ended = at
}

// forget forgets those that were over long ago, and the oldest that are over if they are many.
func (n *outageNotes) forget(now berth.Time) {
	n.list = slices.DeleteFunc(n.list, func(note outageNote) bool { return note.Ended != 0 && note.Ended <= now.Add(-keepOutages) })
	if len(n.list) < maxOutageNotes {
		return
	}
	if i := slices.IndexFunc(n.list, func(note outageNote) bool { return note.Ended != 0 }); i >= 0 {
		n.list = slices.Delete(n.list, i, i+1)
	}
}

// complete notes outages that are known to the engine alone, since they were learned by an earlier program:
// what of them has begun did so before now.
func (n *outageNotes) complete(c *Core) {
	for o := range c.engine.Outages() {
		if !slices.ContainsFunc(n.list, func(note outageNote) bool { return note.Number == o.Number && note.Ended == 0 }) {
			note := outageNote{Outage: o, Changed: c.engine.Now(), Changes: 1, Announced: o.From != 0}
			note.From = cmp.Or(o.From, c.engine.Now())
			n.list = append(n.list, note)
		}
	}
}

// beginning is what is known of when an outage began that goes on.
type beginning struct {
	at    berth.Time // of one that was not announced: when it was first seen
	known bool
}

// beginnings returns those of outages that go on, by number. Cost: O(n) for n notes.
func beginnings(notes []outageNote) map[uint64]beginning {
	of := map[uint64]beginning{}
	for i := range notes {
		if n := &notes[i]; n.Ended == 0 {
			of[n.Number] = beginning{n.From, n.Announced}
		}
	}
	return of
}
