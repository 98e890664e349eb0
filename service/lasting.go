package service

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// Keeps says what a modification was not asked to change: then it stays as it is by now, which is with the extensions.
type Keeps struct{ Length, Deadline bool }

// lasting has a request that takes the place of that of a promise last as much longer as the promise was
// extended by, if its length stays: the extension, which is time at a pool, becomes a part of its durations, which are
// in standard seconds, rounded up. So does the end become a part of its window, if the deadline stays.
func (keeps Keeps) lasting(config *engine.Config, r *berth.Request, p *berth.Reservation) {
	if p == nil || p.Terms.Extended == 0 || len(r.Parts) != 1 || len(p.Allotments) != 1 {
		return
	}
	a, rounded := &p.Allotments[0], berth.Duration(0)
	if keeps.Length {
		speed := speedAt(config, a.Resource, &r.Requirements)
		part := r.Parts[0]
		part.Variants = slices.Clone(part.Variants)
		for i := range part.Variants {
			d := &part.Variants[i].Duration
			least := speed.Scale(*d) + p.Terms.Extended
			*d = speed.Work(least-1) + 1 // the shortest that lasts as long there
			rounded = max(rounded, speed.Scale(*d)-least)
		}
		r.Parts = []berth.Part{part} // the old ones are read elsewhere
	}
	if keeps.Deadline {
		r.Deadline = max(r.Deadline, a.End.Add(rounded))
	}
}
