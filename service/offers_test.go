package service_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/service"
)

// An offer that starts at once can be held while it lasts, not only in the second
// in which it was made: it starts when it is held.
func TestOfferThatStartsAtOnceCanBeHeldLater(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	submit(t, h, ann, berth.Rigid("", 0, 2000, 2100, 4, 100))
	no := submit(t, h, bob, berth.Rigid("", 0, 2000, 2150, 2, 100))
	var now *service.Offer
	for i := range no.Offers {
		if no.Offers[i].Difference == engine.OfferEarlier {
			now = &no.Offers[i]
		}
	}
	if now == nil || now.Allotments[0].Start != 1000 {
		t.Fatalf("nothing is offered for now: %+v", no.Offers)
	}
	c.seconds.Store(1040)
	held, err := h.Hold(t.Context(), bob, now.ID, 60)
	if err != nil || held.Reservation.State != service.Held && held.Reservation.State != service.Active {
		t.Fatalf("held 40 s later it is %+v, %v", held.Reservation, err)
	}
	if a := held.Reservation.Allotments[0]; a.Start != 1040 || a.End != 1140 || a.NPE != 2 {
		t.Errorf("it holds %d PEs throughout [%d,%d)", a.NPE, a.Start, a.End)
	}
	c.seconds.Store(3000)
	_, err = h.Hold(t.Context(), bob, now.ID, 60)
	wantCode(t, err, berth.NotFound)
}
