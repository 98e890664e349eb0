package service

import (
	"context"
	"errors"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

// maxAsked bounds what Asked returns: a simulation of more is for a machine of its own.
const maxAsked = 200_000

// Asked returns the requests that have arrived in [from, to), as they were asked for and by
// order of arrival, from the beginning of the journal on, if the principal may see them: users their
// own, operators all. What was changed later is as it was first. It returns how many records
// were looked at too. The error is Exhausted if there are more than 200,000, the context's if
// that has ended. Cost: O(records that are kept), beside the loop.
func (h *Host) Asked(ctx context.Context, by Principal, from, to berth.Time) (requests []berth.Request, looked int, err error) {
	for {
		begin := journal.Position{}
		if c, drops := h.options.Journal.(journal.Compactor); drops {
			if begin, err = c.Begin(ctx); err != nil {
				return nil, looked, err
			}
		}
		n := 0
		requests, n, err = h.askedSince(ctx, by, from, to, begin.Number+1)
		looked += n
		if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.NotFound {
			continue // what was to be read next has been dropped meanwhile
		}
		return requests, looked, err
	}
}

// askedSince reads the records from one on.
func (h *Host) askedSince(ctx context.Context, by Principal, from, to berth.Time, number uint64) (requests []berth.Request, looked int, err error) {
	var decoder record.Decoder
	places := map[string]int{} // of requests in the list, for those who may not see all sites
	for rec, err := range h.options.Journal.Read(ctx, number) {
		if err != nil {
			return nil, looked, err
		}
		if looked++; rec.At < from && len(places) == 0 {
			continue
		}
		p, err := parsePast(&rec, &decoder)
		if err != nil {
			return nil, looked, err
		}
		for i := range p.changes {
			x := &p.changes[i]
			if at, known := places[x.ID]; known && !by.sees(&requests[at], allotmentsOf(x), x.Refusal) {
				requests[at].ID = "" // it came to a site that they may not see
				delete(places, x.ID)
			}
			if x.Kind != change.Queued || rec.At < from || rec.At >= to || h.shadowed(x.Request) || !by.sees(x.Request, nil, nil) {
				continue
			}
			if len(requests) == maxAsked {
				return nil, looked, berth.Errorf(berth.Exhausted, "journal", "more than %d requests; take a shorter time", maxAsked)
			}
			if !by.Sites.All() {
				places[x.Request.ID] = len(requests)
			}
			requests = append(requests, *x.Request)
		}
		if rec.At >= to && len(places) == 0 {
			break
		}
	}
	return slices.DeleteFunc(requests, func(r berth.Request) bool { return r.ID == "" }), looked, ctx.Err()
}

// allotmentsOf returns what a reservation has from a change on, nil if that is as before.
func allotmentsOf(x *change.Change) []berth.Allotment {
	if x.Reservation != nil {
		return x.Reservation.Allotments
	}
	return x.Moved
}
