package service

import (
	"fmt"

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

// takeAll takes the times at which a reservation of others holds its shares, as far ahead
// as anything is promised or was asked for.
func (h *Host) takeAll(k *keeper, b *site.Booking, now berth.Time, take func(name string, shares []site.Share, from, until berth.Time)) {
	ahead := max(foresight, h.core.engine.Ahead()+foreseeAgain)
	if k.foreseen < now.Add(ahead-foreseeAgain) {
		k.foreseen = now.Add(ahead)
		for r := range h.core.engine.Due(k.name, berth.Forever) {
			k.foreseen = max(k.foreseen, r.End(), min(r.Request.Deadline, berth.TimeLimit-1))
		}
	}
	n := 0
	for at := range b.Occurrences(k.foreseen) {
		if n++; n > mostReturns {
			break
		}
		take(fmt.Sprintf("reservation %s at %d", b.Name, at.Start), b.Shares, at.Start, at.End)
	}
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
		for i := range k.last.Foreign {
			if k.last.Foreign[i].Repeat.Each != "" {
				k.foreseen = until
				h.tellOutOfUse(k, k.last)
				break
			}
		}
	}
}
