package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// admit asks the admission policies about a part on a resource, in the order
// of berth.Reasons; nil admits it.
func (e *Engine) admit(r *berth.Request, part *berth.Part, res *resource) *berth.Refusal {
	if e.config.Eager == nil && e.config.Quota == (policy.Quota{}) {
		return nil
	}
	v := e.narrowest(r, part, res)
	if e.config.Eager != nil && !e.eager(r, v, res) {
		return &berth.Refusal{Reason: berth.PolicyRefused, Resource: res.id, Wanted: v.NPE, Limit: res.pool.PEs}
	}
	held := e.state.ledger.held[r.User]
	if r.User != "" && !e.config.Quota.Allows(held.reservations, held.peSeconds, v.Area()) {
		return &berth.Refusal{Reason: berth.Quota, Resource: res.id, Wanted: v.NPE}
	}
	return nil
}

// eager is the filter C of the waiting-time paper, with T = ω+β the time that
// is left until the deadline.
func (e *Engine) eager(r *berth.Request, v berth.Variant, res *resource) bool {
	filter := e.config.Eager
	if filter.Wide(v.NPE, res.pool.PEs) {
		return true
	}
	ahead := berth.Interval{Start: e.state.now, End: r.Deadline}
	if !filter.Grid {
		return filter.Idle(calendar.Booked(e.state.calendar(res.id), ahead), berth.Area(res.pool.PEs, ahead.Length()))
	}
	var booked, total int64
	for i := range e.state.resources {
		other := &e.state.resources[i]
		booked += calendar.Booked(e.state.calendar(other.id), ahead)
		total += berth.Area(other.pool.PEs, ahead.Length())
	}
	return filter.Idle(booked, total)
}
