package engine_test

import (
	"encoding/json"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// care is what watches a history beside the model. Each costs about as much as the
// engine itself, so a history has one of them.
type care int

const (
	careCheck    care = iota // the engine checks itself after every step
	carePlain                // a twin with calendars in their plain form
	careRestored             // a twin made from a snapshot, again and again
	careFollower             // a twin that folds the changes, and decides after a while
	careJumper               // a twin that hears of the events alone, and of no wake
	careNone
	cares
)

// twin is an engine that must be in the state of the first one after each step.
type twin struct {
	name    string
	e       *engine.Engine
	follows bool // it does not decide yet
	jumps   bool // it is not woken between events

	changes []change.Change
	effects []change.Effect
}

// newTwins makes what a history is watched by.
func (x *machine) newTwins() {
	config, name := x.config, ""
	t := &twin{}
	switch x.care {
	case carePlain:
		name, config.Calendar = "plain", "plain"
	case careRestored:
		name = "restored"
	case careFollower:
		name, t.follows = "follower", true
	case careJumper:
		name, t.jumps = "jumper", true
	default:
		return
	}
	e, err := engine.New(config)
	if err != nil {
		panic(err)
	}
	t.name, t.e = name, e
	x.twins = append(x.twins, t)
}

// alike lets the twins have the same event, or fold the changes, and compares them.
func (x *machine) alike(at berth.Time, event *engine.Event, told bool, changes []change.Change, failed error) {
	for _, t := range x.twins {
		switch {
		case t.follows:
			written, err := json.Marshal(changes)
			if err != nil {
				panic(err)
			}
			var read []change.Change
			if err := json.Unmarshal(written, &read); err != nil {
				panic(err)
			}
			if err := t.e.Fold(read); err != nil {
				x.m.fault("twins", "the %s cannot fold the changes: %v", t.name, err)
			}
		case t.jumps && !told:
			continue
		default:
			again := *event
			if event.Request != nil {
				again.Request = copied(event.Request)
			}
			var err error
			t.changes, t.effects, err = t.e.AppendApply(t.changes[:0], t.effects[:0], at, &again) // as the service does, in memory that is used again
			if (err == nil) != (failed == nil) || err != nil && err.Error() != failed.Error() {
				x.m.fault("twins", "the %s answers %v instead of %v", t.name, err, failed)
			}
			if !t.jumps && !slices.EqualFunc(t.changes, changes, sameChange) {
				x.m.fault("twins", "the %s makes of it %v instead of %v", t.name, t.changes, changes)
			}
		}
		next, due := t.e.Next()
		if first, wanted := x.e.Next(); told && (next != first || due != wanted) {
			x.m.fault("twins", "the %s wants to be woken at %d instead of %d", t.name, next, first)
		}
	}
	if told && x.applied%hashEvery == 0 { // after steps, not after the wakes before them
		x.same()
	}
}

// sameChange reports whether changes are of the same kind and about the same.
func sameChange(a, b change.Change) bool { return a.Kind == b.Kind && a.ID == b.ID }

// hashEvery is of how many events one has the states compared behind it; their hashes cost more than
// the event does.
const hashEvery = 3

// same compares the states of the twins.
func (x *machine) same() {
	for _, t := range x.twins {
		if t.e.Hash() != x.e.Hash() {
			x.m.fault("twins", "the %s is in another state:\n%s\n%s", t.name, describe(t.e), describe(x.e))
			x.reset(t)
		}
	}
}

// reset puts a twin into the state of the first engine.
func (x *machine) reset(t *twin) {
	config := x.config
	if t.name == "plain" {
		config.Calendar = "plain"
	}
	e, err := engine.Restore(config, x.e.Snapshot())
	if err != nil {
		x.m.fault("restore", "the snapshot cannot be read: %v", err)
		return
	}
	t.e = e
}

// describe returns what an engine says of itself, for messages.
func describe(e *engine.Engine) string {
	text := ""
	for r := range e.Reservations() {
		written, _ := json.Marshal(r)
		text += string(written) + "\n"
	}
	for r := range e.Pending() {
		text += "pending " + r.ID + "\n"
	}
	for o := range e.Outages() {
		written, _ := json.Marshal(o)
		text += string(written) + "\n"
	}
	return text
}

// restore makes the twin that is restored anew, or checks that any engine can be.
func (x *machine) restore() {
	for _, t := range x.twins {
		if t.name == "restored" {
			x.reset(t)
			return
		}
	}
	again, err := engine.Restore(x.config, x.e.Snapshot())
	switch {
	case err != nil:
		x.m.fault("restore", "the snapshot cannot be read: %v", err)
	case again.Hash() != x.e.Hash():
		x.m.fault("restore", "the restored engine is in another state:\n%s\n%s", describe(again), describe(x.e))
	}
}

// takeOver lets the follower decide.
func (x *machine) takeOver() {
	for _, t := range x.twins {
		t.follows = false
	}
}

// consumer is the world behind the managed sites: it knows, for each site, which
// reservations are there in which generation, from the effects alone. Of an effect
// it reads the number, the site, the reservation and the generation.
type consumer struct {
	last    uint64 // number of the last effect
	known   map[string]map[string]uint64
	effects int // that came
	settled int // that were settled
}

func newConsumer(config *engine.Config) *consumer {
	c := &consumer{known: map[string]map[string]uint64{}}
	for i := range config.Sites {
		if config.Sites[i].Managed {
			c.known[config.Sites[i].Name] = map[string]uint64{}
		}
	}
	return c
}

// take carries out the effects of one Apply: for each it looks at whether the
// reservation is at the site, and makes it so there. Behind that the sites have
// exactly what is promised.
func (c *consumer) take(m *model, o *occasion, effects []change.Effect) {
	c.effects += len(effects)
	for i := range effects {
		e := &effects[i]
		site := c.known[e.Site]
		if site == nil || e.Number != c.last+1 {
			m.fault("effects", "effect %d of %q at %q comes after %d, or the site is not managed", e.Number, e.Reservation, e.Site, c.last)
			continue
		}
		c.last = e.Number
		if p := m.byID[e.Reservation]; p == nil || !p.atSite(e.Site) {
			delete(site, e.Reservation)
		} else {
			site[e.Reservation] = e.Generation
		}
	}
	for i := range m.config.Sites {
		if name := m.config.Sites[i].Name; c.known[name] != nil {
			c.compare(m, name)
		}
	}
	for i := range o.changes {
		if o.changes[i].Kind == change.Settled {
			c.settled++
		}
		id, p := o.changes[i].ID, m.byID[o.changes[i].ID]
		if id != "" {
			c.count(m, o, id, effects)
		}
		if o.changes[i].Kind != change.Started || p == nil {
			continue
		}
		for k := range p.allotments {
			site := p.allotments[k].Resource.Site
			if c.known[site] != nil && !slices.ContainsFunc(effects, func(e change.Effect) bool { return e.Site == site && e.Reservation == id }) {
				m.fault("effects", "%q starts, and site %s does not hear of it", id, site)
			}
		}
	}
}

// count judges that a site hears no more often of a reservation than it changes.
func (c *consumer) count(m *model, o *occasion, id string, effects []change.Effect) {
	changes := 0
	for i := range o.changes {
		if o.changes[i].ID == id {
			changes++
		}
	}
	for i := range effects {
		if effects[i].Reservation != id {
			continue
		}
		heard := 0
		for k := range effects {
			if effects[k].Reservation == id && effects[k].Site == effects[i].Site {
				heard++
			}
		}
		if heard > changes {
			m.fault("effects", "site %s hears %d times of %q, which changes %d times", effects[i].Site, heard, id, changes)
			return
		}
	}
}

// compare compares what a site has with what is promised there.
func (c *consumer) compare(m *model, site string) {
	known, there := c.known[site], 0
	for _, p := range m.live {
		generation, has := known[p.id]
		if has {
			there++
		}
		switch at := p.atSite(site); {
		case p.job && p.state != berth.Active && !has: // it is told when it starts
		case at && (!has || generation != p.generation):
			m.fault("effects", "site %s has %q in generation %d; it is at %v in generation %d", site, p.id, generation, p.allotments, p.generation)
			if !has {
				there++
			}
			known[p.id] = p.generation
		case has && !slices.ContainsFunc(p.allotments, func(a berth.Allotment) bool { return a.Resource.Site == site }):
			m.fault("effects", "site %s has %q, which is at %v", site, p.id, p.allotments)
			delete(known, p.id)
			there--
		}
	}
	if there == len(known) {
		return
	}
	for id := range known {
		if m.byID[id] == nil {
			m.fault("effects", "site %s has %q, which is over", site, id)
			delete(known, id)
		}
	}
}

// atSite reports whether a part of a promise that is not over is at a site.
func (p *promise) atSite(site string) bool {
	for i := range p.allotments {
		if !p.over[i] && p.allotments[i].Resource.Site == site {
			return true
		}
	}
	return false
}

// look is what the engine returned earlier, and how it was written then.
type look struct {
	status  engine.Status
	r       berth.Reservation
	written string
}

func (l *look) write() string {
	written, err := json.Marshal([]any{l.status, l.r})
	if err != nil {
		panic(err)
	}
	return string(written)
}

// look looks at everything that can be looked at: that changes nothing, and what
// was returned earlier has not changed.
func (x *machine) look() {
	before := x.e.Hash()
	for i := range x.looked {
		if l := &x.looked[i]; l.write() != l.written {
			x.m.fault("owner", "what was returned changes from\n%s to\n%s", l.written, l.write())
			l.written = l.write()
		}
	}
	x.looked = nil
	x.e.Loads()
	for _, site := range x.config.Sites {
		for _, standing := range []engine.Standing{engine.StandingPending, engine.StandingWaiting, engine.StandingRunning} {
			for range x.e.Queue(site.Name, standing) {
			}
		}
		for range x.e.Due(site.Name, x.m.now+5) {
		}
	}
	for range x.e.Pending() {
	}
	for range x.e.Outages() {
	}
	for _, p := range x.m.live {
		status, ok := x.e.Status(p.id)
		r, live := x.e.Reservation(p.id)
		if !ok || !live {
			x.m.fault("ledger", "the engine does not know %q", p.id)
			continue
		}
		l := look{status: status, r: r}
		l.written = l.write()
		x.looked = append(x.looked, l)
		x.e.Holder(p.allotments[0].Resource, 0, x.m.now)
	}
	if after := x.e.Hash(); after != before {
		x.m.fault("queries", "looking changes the state")
	}
}
