package service

import (
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

const (
	// foresight is how far ahead the returns of reservations of others are planned
	// around at least: five weeks, so that of a weekly one several are.
	foresight berth.Duration = 35 * 24 * 3600
	// foreseeAgain is how much of that may have passed before it is renewed: what is
	// to come changes once a week, not with each look.
	foreseeAgain berth.Duration = 7 * 24 * 3600
	// mostReturns bounds how often one reservation of others is planned around. Daily
	// ones are for five years, hourly ones for 83 days: what is promised behind that is
	// moved when they come near, like all that is in the way of others.
	mostReturns = 2000
)

// foreseen returns up to when returns at a site are planned around: as far ahead as anything is promised or
// was asked for.
func (h *Host) foreseen(k *keeper, now berth.Time) berth.Time {
	ahead := max(foresight, h.core.engine.Ahead()+foreseeAgain)
	if k.foreseen < now.Add(ahead-foreseeAgain) {
		k.foreseen = now.Add(ahead)
		for r := range h.core.engine.Due(k.name, berth.Forever) {
			k.foreseen = max(k.foreseen, r.End(), min(r.Request.Deadline, berth.TimeLimit-1))
		}
	}
	return k.foreseen
}

// takeAll takes all the times at which shares are held, each under a name.
func takeAll(times iter.Seq[berth.Interval], shares []site.Share, name func(berth.Time) string, take func(name string, shares []site.Share, from, until berth.Time)) {
	n := 0
	for at := range times {
		if n++; n > mostReturns {
			break
		}
		take(name(at.Start), shares, at.Start, at.End)
	}
}

// returns reports whether a reservation of others at a site comes again.
func (k *keeper) returns() bool {
	return slices.ContainsFunc(k.last.Foreign, func(b site.Booking) bool { return b.Repeat.Each != "" })
}

// foresee has the returns of reservations of others planned around as far ahead as
// something is about to be decided.
func (h *Host) foresee(event *engine.Event) {
	until := event.Until
	switch {
	case event.Request != nil:
		until = event.Request.Deadline
	case event.Kind == engine.EventSubmitSeries && len(event.Series.Occurrences) > 0:
		if due := event.Series.Due(event.Series.Request.Arrival); due > 0 {
			until = event.Series.Occurrences[due-1].Deadline
		}
	}
	for i := range event.Requests {
		until = max(until, event.Requests[i].Deadline)
	}
	if event.Kind != engine.EventSubmit && event.Kind != engine.EventModifySeries && event.Kind != engine.EventSubmitSeries && event.Kind != engine.EventModify && event.Kind != engine.EventExtend || !until.Valid() {
		return
	}
	for _, s := range h.core.config.Sites { // in the same order each time, since it goes on record
		k := h.sites[s.Name]
		if k == nil || k.last == nil || k.foreseen >= until {
			continue
		}
		if k.returns() {
			k.foreseen = until
			h.tellOutOfUse(k, k.last)
		}
	}
}
