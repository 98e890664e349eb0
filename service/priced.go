package service

import "github.com/berth-hpc/berth/engine"

// priced shows a reservation to clients, with what budgets are charged for it by a configuration.
func (k *card) priced(config *engine.Config) Reservation {
	f := k.find()
	f.price(config)
	return f.Reservation
}

// charged is find with what budgets are charged for it by a configuration, and for what it was foreseen to leave idle.
func (k *card) charged(config *engine.Config) *found {
	f := k.find()
	f.price(config)
	return &f
}

func (f *found) price(config *engine.Config) {
	if f.State.Over() {
		return
	}
	if f.Charge = chargeBy(config, &f.Request, f.Allotments); f.Charge != nil && *f.Charge > 0 {
		f.Charge = new(addArea(*f.Charge, f.idle))
	}
}
