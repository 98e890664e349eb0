package state

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
)

// In a pool of late binding a promise is a number of PEs. Where the pool names ahead, a
// confirmed promise gets the numbers of its PEs that long before its start, for its site to
// hold them free; until it starts they may become others. The calendar does not know them:
// it counts.

// Ahead returns how long before its start an allotment of a pool gets its PEs; 0 is at the
// start, or when it is promised.
func (s *State) Ahead(pool berth.ResourceID) berth.Duration {
	i, known := s.Index(pool)
	if !known || s.pools[i].idle == nil {
		return 0
	}
	return s.pools[i].config.NameAhead
}

// NamesAhead reports whether the promises of a pool get their PEs before they start.
func (s *State) NamesAhead(pool berth.ResourceID) bool { return s.naming && s.Ahead(pool) > 0 }

// Naming reports whether there is a pool whose promises get their PEs before they start.
func (s *State) Naming() bool { return s.naming }

// LacksNames reports whether a reservation gets numbers of PEs before its start that it does not
// have yet.
func (s *State) LacksNames(e *Entry) bool {
	_, lacks := s.nameAt(e)
	return lacks
}

// nameAt returns when a reservation gets the numbers of PEs that it does not have yet; ok
// is false if it has all that it gets before its start. What is only held gets none: it
// may never be wanted.
func (s *State) nameAt(e *Entry) (at berth.Time, ok bool) {
	if !s.naming || e.vacant || e.r.State == berth.Active || e.r.State == berth.Held || e.r.Request.IsJob() {
		return 0, false
	}
	longest := berth.Duration(0)
	for part := range e.r.Allotments {
		if a := &e.r.Allotments[part]; a.NPE > 0 && a.PEs.Empty() {
			longest = max(longest, s.Ahead(a.Resource))
		}
	}
	return max(e.Start().Add(-longest), s.now), longest > 0
}

// name folds Named: a reservation that has not started gets PEs at its place.
func (s *State) name(e *Entry, to []berth.Allotment) error {
	if e.vacant || e.r.State == berth.Active || e.r.State == berth.Held {
		return fmt.Errorf("it is %s, and gets no PEs before its start", e.r.State)
	}
	if len(to) != len(e.r.Allotments) {
		return fmt.Errorf("it gets PEs for %d parts", len(to))
	}
	r := e.write()
	for part := range r.Allotments {
		a, named := &r.Allotments[part], &to[part]
		i, _ := s.Index(a.Resource)
		switch {
		case named.Resource != a.Resource || named.Start != a.Start || named.End != a.End || named.NPE != a.NPE:
			return fmt.Errorf("part %d gets PEs elsewhere", part)
		case s.Ahead(a.Resource) == 0:
		case named.PEs.Count() != a.NPE || named.PEs.Max() >= berth.PE(s.pools[i].size):
			return fmt.Errorf("part %d gets %d PEs of %d", part, named.PEs.Count(), a.NPE)
		default:
			a.PEs = named.PEs
		}
	}
	r.Generation++
	s.timers.drop(&e.first)
	s.timers.add(s.waitFor(e))
	return nil
}

// noteNames keeps the list of what has PEs in pools that name ahead.
func (s *State) noteNames(e *Entry) {
	if !s.naming {
		return
	}
	for part := range e.r.Allotments {
		if a := &e.r.Allotments[part]; !a.PEs.Empty() && e.Holds(part) && s.Ahead(a.Resource) > 0 {
			s.named[e.ID()] = e
			return
		}
	}
	if s.named[e.ID()] == e {
		delete(s.named, e.ID())
	}
}

// Named returns what has PEs in pools that name ahead: what runs, and promises that have
// their names already, by start.
func (s *State) Named() []*Entry {
	list := make([]*Entry, 0, len(s.named))
	for _, e := range s.named {
		list = append(list, e)
	}
	slices.SortFunc(list, ByStart)
	return list
}

// Unnamed returns the promises that should have the names of their PEs by now and have
// none. Cost: O(what is due).
func (s *State) Unnamed() []*Entry {
	if !s.naming {
		return nil
	}
	var list []*Entry
	for t := range s.timers.until(s.now) {
		if t.Part == OfNaming && t.entry != nil {
			list = append(list, t.entry)
		}
	}
	slices.SortFunc(list, ByStart)
	return list
}

// wanted returns the PEs of a pool that promises have by name before a time, and those that
// are out of use by then.
func (s *State) wanted(pool berth.ResourceID, until berth.Time) berth.PESet {
	var pes berth.PESet
	for _, o := range s.outages {
		if o.Resource == pool && o.From < until {
			pes = pes.Or(o.PEs)
		}
	}
	for _, e := range s.Named() {
		if e.r.State == berth.Active || e.Start() >= until {
			continue
		}
		for part := range e.r.Allotments {
			if a := &e.r.Allotments[part]; a.Resource == pool {
				pes = pes.Or(a.PEs)
			}
		}
	}
	return pes
}
