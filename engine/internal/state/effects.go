package state

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
)

// touch is where a reservation was when it was first changed since the effects were
// asked for last.
type touch struct {
	entry      *Entry
	sites      []string // managed ones at which it held something
	generation uint64
	active     bool
}

// touch remembers where a reservation is, before it changes.
func (s *State) touch(e *Entry) {
	if len(s.managed) == 0 || e.round == s.round+1 {
		return
	}
	e.round = s.round + 1
	s.touched = append(s.touched, touch{e, s.sitesOf(e), e.r.Generation, e.r.State == berth.Active})
}

// touchNew remembers a reservation that was nowhere.
func (s *State) touchNew(e *Entry) {
	if len(s.managed) == 0 {
		return
	}
	e.round = s.round + 1
	s.touched = append(s.touched, touch{entry: e})
}

// sitesOf returns the managed sites at which a reservation holds something.
func (s *State) sitesOf(e *Entry) []string {
	var sites []string
	for part := range e.r.Allotments {
		if site := e.r.Allotments[part].Resource.Site; e.Holds(part) && s.managed[site] && !slices.Contains(sites, site) {
			sites = append(sites, site)
		}
	}
	return sites
}

// Manages reports whether a site is brought in line by effects.
func (s *State) Manages(site string) bool { return s.managed[site] }

// Touched reports whether Unsettled has anything to look at.
func (s *State) Touched() bool { return len(s.touched) > 0 }

// Unsettled appends to an empty list what sites have to bring in line, without numbers, because of
// the changes since it was asked last: for each reservation that changed, each
// managed site at which it was or is, if its place there, its generation or whether
// it runs is not what it was.
func (s *State) Unsettled(effects []change.Effect) []change.Effect {
	effects = slices.Grow(effects, len(s.touched)) // nearly all are at one site
	for i := range s.touched {
		t := &s.touched[i]
		e := t.entry
		sites := s.sitesOf(e)
		active := len(sites) > 0 && e.r.State == berth.Active
		for _, site := range t.sites {
			if !slices.Contains(sites, site) || e.r.Generation != t.generation || active != t.active {
				effects = append(effects, change.Effect{Site: site, Reservation: e.ID(), Generation: e.r.Generation})
			}
		}
		for _, site := range sites {
			if !slices.Contains(t.sites, site) {
				effects = append(effects, change.Effect{Site: site, Reservation: e.ID(), Generation: e.r.Generation})
			}
		}
		*t = touch{}
	}
	s.touched = s.touched[:0]
	s.round++
	return effects
}
