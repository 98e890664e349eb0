package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/place"
)

// Difference says how an offer differs from what was asked for.
type Difference string

// The differences, in the order in which offers are listed.
const (
	OfferAsAsked   Difference = "as_asked"   // not at all: the request would be accepted so
	OfferLater     Difference = "later"      // it ends after the deadline, as early as possible anywhere
	OfferOtherSite Difference = "other_site" // likewise, the earliest end at another site
	OfferEarlier   Difference = "earlier"    // it starts before the ready time
	OfferFewerPEs  Difference = "fewer_pes"  // the most PEs that are free for as long, within the window
	OfferShorter   Difference = "shorter"    // the longest time for which as many PEs are free, within the window
)

var differences = [...]Difference{
	place.AsAsked: OfferAsAsked, place.Later: OfferLater, place.OtherSite: OfferOtherSite,
	place.Earlier: OfferEarlier, place.FewerPEs: OfferFewerPEs, place.Shorter: OfferShorter,
}

// Offer is a place that would be promised now. It holds nothing: to hold it, submit
// its Request before another request takes the place.
type Offer struct {
	Difference Difference `json:"difference"`
	// Request asks for exactly this place, and for nothing else; only where the eager
	// filter denies that it is, for OfferAsAsked, what was asked for.
	Request    berth.Request     `json:"request"`
	Allotments []berth.Allotment `json:"allotments"`
	// Idle is the PE-seconds that the reservation would leave idle: its PEs during the
	// gaps before and after it, up to the next booking, if such a gap is shorter than
	// a quarter of an hour.
	Idle int64 `json:"idle_pe_seconds"`
}

// Offers returns places that could be promised for the request, or instead of it: most
// offers or fewer, one of each Difference but any number of OfferOtherSite, all feasible and
// admitted now, in the order of the differences. A request of several parts or
// variants is offered OfferAsAsked or OfferLater; beside OfferAsAsked no offer gives
// less. The list is empty if no place is possible. The engine does not change, and the
// caller owns the offers. The error is of code Invalid and concerns the request. One that is to
// arrive later is offered what it would get if it came now, and the requests of its offers arrive now, so
// that each can be submitted at once; for what is free later on, wake the engine first.
func (e *Engine) Offers(r *berth.Request, most int) ([]Offer, error) {
	return e.OffersNear(r, most, berth.Interval{})
}

// OffersNear is Offers of places within an interval, such as those near one of several times at which the same is asked for:
// OfferEarlier starts there as near to the ready time as a search by doubled distances finds it, from an hour on. The zero value is any time.
func (e *Engine) OffersNear(r *berth.Request, most int, within berth.Interval) ([]Offer, error) {
	if r == nil {
		return nil, berth.Errorf(berth.Invalid, "request", "missing")
	}
	if err := asked(r); err != nil {
		return nil, err
	}
	if r.IsJob() {
		return nil, berth.Errorf(berth.Invalid, "kind", "%q; offers are for requests", r.Kind)
	}
	list := e.finder.Offers(r, most, within)
	if len(list) == 0 {
		return nil, nil
	}
	offers := make([]Offer, len(list))
	for i := range list {
		o := &list[i]
		offers[i] = Offer{Difference: differences[o.Difference], Request: o.Request, Allotments: o.Allotments, Idle: o.Idle}
	}
	return offers, nil
}
