package site

import "slices"

// DriftKind says how site and promise fell apart.
type DriftKind string

// The kinds of drift.
const (
	Missing DriftKind = "missing" // promised, and the site has it not
	Changed DriftKind = "changed" // the site has it otherwise
	Extra   DriftKind = "extra"   // under a name of ours, and not promised
)

// Drift is one difference between what was made real at a site and what the
// site has.
type Drift struct {
	Kind DriftKind    `json:"kind"`
	Name Name         `json:"name"`
	Want *Reservation `json:"want,omitempty"` // unless Extra
	Have *Booking     `json:"have,omitempty"` // unless Missing
	What []string     `json:"what,omitempty"` // if Changed: each difference, in words
}

// FindDrift compares what should be at a site with its state, and returns what
// differs by name, in the order of want and then of the state. What has reached
// its end is not missed. Foreign reservations are never drift. Cost: O(n) for n
// reservations on both sides.
func FindDrift(want []Reservation, state *State) []Drift {
	have := make(map[string]*Booking, len(state.Ours))
	for i := range state.Ours {
		have[state.Ours[i].Name] = &state.Ours[i]
	}
	wanted := make(map[string]bool, len(want))
	var drift []Drift
	for i := range want {
		w := &want[i]
		wanted[string(w.Name)] = true
		booking := have[string(w.Name)]
		switch {
		case booking == nil && w.End > state.At:
			drift = append(drift, Drift{Kind: Missing, Name: w.Name, Want: w})
		case booking != nil:
			if what := w.Differences(booking, state.At); len(what) > 0 {
				drift = append(drift, Drift{Kind: Changed, Name: w.Name, Want: w, Have: booking, What: what})
			}
		}
	}
	for i := range state.Ours {
		if b := &state.Ours[i]; !wanted[b.Name] {
			drift = append(drift, Drift{Kind: Extra, Name: Name(b.Name), Have: b})
		}
	}
	return drift
}

// Overlap returns the first booking, other than one of the same name, that
// holds a node or a core of b while b does, and false if there is none. Two
// partial shares of a node are taken to be apart, since it cannot be told.
// Bookings with the flag OVERLAP or MAINT are meant to lie across others.
func Overlap(b *Booking, all []Booking) (*Booking, bool) {
	mine := make(map[string]Share, len(b.Shares))
	for _, s := range b.Shares {
		mine[s.Node] = s
	}
	for i := range all {
		o := &all[i]
		if o.Name == b.Name || o.End <= b.Start || b.End <= o.Start || o.overlaps() {
			continue
		}
		for _, s := range o.Shares {
			if m, both := mine[s.Node]; both && m.meets(s) {
				return o, true
			}
		}
	}
	return nil, false
}

func (s Share) whole() bool { return s.Cores.Empty() && !s.Partial }

// meets reports whether two shares of one node certainly have a core in common.
func (s Share) meets(o Share) bool {
	return s.whole() || o.whole() || !s.Cores.And(o.Cores).Empty()
}

func (b *Booking) overlaps() bool {
	return slices.Contains(b.Flags, "OVERLAP") || slices.Contains(b.Flags, "MAINT")
}
