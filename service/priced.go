package service

import (
	"slices"

	"github.com/berth-hpc/berth/engine"
)

// priced returns an answer with what budgets are charged for its reservation at the prices of now. What it was foreseen to leave idle is in it
// for as long as the reservation stays as it was answered.
func (h *Host) priced(a Answer) Answer {
	h.price(&a.Reservation)
	return a
}

// price is priced for a reservation.
func (h *Host) price(r *Reservation) {
	if len(h.options.Config.Prices) == 0 || r.ID == "" {
		return
	}
	config, k := h.display.one(r.ID)
	f := found{Reservation: *r}
	if k != nil && k.version == f.Version && k.promise != nil {
		f.idle = k.promise.ChargedIdle()
	}
	f.charge(config)
	r.Charge = f.Charge
}

// pricedSeries returns an answer about a series with what budgets are charged for each of its reservations.
func (h *Host) pricedSeries(a SeriesAnswer) SeriesAnswer {
	a.Series = h.priceSeries(a.Series)
	return a
}

// priceSeries is pricedSeries for a series, whose reservations are not written.
func (h *Host) priceSeries(s Series) Series {
	if len(h.options.Config.Prices) == 0 {
		return s
	}
	s.Reservations = slices.Clone(s.Reservations)
	for i := range s.Reservations {
		h.price(&s.Reservations[i])
	}
	return s
}

// pricedAll prices answers in place.
func (h *Host) pricedAll(list []Answer) []Answer {
	for i := range list {
		list[i] = h.priced(list[i])
	}
	return list
}

// charge adds what budgets are charged for it by a configuration, with what it was foreseen to leave idle.
func (f *found) charge(config *engine.Config) {
	if f.State.Over() || f.Charge != nil {
		return
	}
	if f.Charge = chargeBy(config, &f.Request, f.Allotments); f.Charge != nil && *f.Charge > 0 {
		f.Charge = new(addArea(*f.Charge, f.idle))
	}
}
