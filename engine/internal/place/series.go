package place

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Series finds places for requests beside each other, one behind another in their order: what
// one has found is taken, and counts towards the limits of its holders, when the next is placed. They are new, or
// each is what a reservation that has not started is to become: then all those leave their places first. Of each
// request there is a place or the reason against it. The state is as it was afterwards. Cost: that of the requests by themselves.
func (f *Finder) Series(list []berth.Request, of []*state.Entry) (places []Place, refusals []*berth.Refusal) {
	t := f.state.Try()
	defer t.Close()
	f.clear(t, nil)
	for _, e := range of {
		t.Vacate(e)
	}
	places, refusals = make([]Place, len(list)), make([]*berth.Refusal, len(list))
	for i := range list {
		r, again, mark := &list[i], (*state.Entry)(nil), t.Mark()
		if of != nil {
			again = of[i]
			t.Release(again)
		}
		f.searched = f.search(r, again)
		x := &f.searched
		x.admission()
		allotments, refusal := x.find(t)
		if refusal != nil {
			refusals[i] = refusal
			t.Undo(mark)
			continue
		}
		places[i] = x.complete(t, allotments)
		f.promise(t, r, &places[i])
	}
	return places, refusals
}

// promise has a trial take all that a request takes at a place.
func (f *Finder) promise(t *state.Trial, r *berth.Request, at *Place) {
	t.Promise(&berth.Reservation{Request: r, State: berth.Confirmed, Allotments: at.Allotments, Stocks: at.Stocks})
	for _, tr := range at.Transfers {
		slot{start: tr.Since, length: tr.End.Sub(tr.Since), n: tr.Rate}.book(t, f.state.Uplink())
	}
}
