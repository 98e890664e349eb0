package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
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

// An offer is taken once: who takes it again gets nothing more, unless it is the same
// call, under its key. One that another request was faster for can be tried again.
func TestOfferIsTakenOnce(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	offer := func() string {
		t.Helper()
		list, err := h.Offers(t.Context(), bob, berth.Rigid("", 0, 2000, 2100, 2, 100), 1)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0].ID
	}
	taken := offer()
	if got, err := h.Hold(t.Context(), bob, taken, 60); err != nil || got.Reservation.State != service.Held {
		t.Fatalf("it is %+v, %v", got.Reservation, err)
	}
	_, err := h.Hold(t.Context(), bob, taken, 60)
	wantCode(t, err, berth.Conflict)

	keyed := bob
	keyed.Key = "once"
	late, again := offer(), offer()
	first, err := h.Hold(t.Context(), keyed, late, 60)
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.Hold(t.Context(), keyed, late, 60)
	if err != nil || second.Reservation.Request.ID != first.Reservation.Request.ID {
		t.Errorf("the same call holds %+v, %v", second.Reservation, err)
	}

	for range 2 { // the place has gone
		if got, err := h.Hold(t.Context(), bob, again, 60); err != nil || got.Reservation.State != service.Refused {
			t.Errorf("it is %+v, %v", got.Reservation, err)
		}
	}
}

// An offer is not taken a second time if no one heard that it was: a caller that has
// gone, or a restart. The call under its key is answered as before, after a restart too.
func TestOfferIsTakenOnceWithoutAnAnswer(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	keyed := bob
	keyed.Key = "first"
	var taken, reservation string
	t.Run("before", func(t *testing.T) {
		h := start(t, dir, onePool(4), c)
		list, err := h.Offers(t.Context(), bob, berth.Rigid("", 0, 2000, 2100, 2, 100), 1)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		taken = list[0].ID
		first, err := h.Hold(t.Context(), keyed, taken, 60)
		if err != nil || first.Reservation.State != service.Held {
			t.Fatalf("it is %+v, %v", first.Reservation, err)
		}
		reservation = first.Reservation.ID
		_, err = h.Hold(t.Context(), bob, taken, 60)
		wantCode(t, err, berth.Conflict)
		if err != nil && !strings.Contains(err.Error(), reservation) {
			t.Errorf("%v does not name reservation %s", err, reservation)
		}

		list, err = h.Offers(t.Context(), bob, berth.Rigid("", 0, 2000, 2100, 1, 100), 1)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range 3 {
			_, _ = h.Hold(gone, bob, list[0].ID, 60)
		}
		if _, err := h.Hold(t.Context(), bob, list[0].ID, 60); err != nil {
			wantCode(t, err, berth.Conflict)
		}
	})
	h := start(t, dir, onePool(4), c)
	again, err := h.Hold(t.Context(), keyed, taken, 60)
	if err != nil || again.Reservation.ID != reservation {
		t.Errorf("after a restart it is %+v, %v", again.Reservation, err)
	}
	_, err = h.Hold(t.Context(), bob, taken, 60)
	wantCode(t, err, berth.NotFound)
	all, _, err := h.List(t.Context(), bob.By, service.Filter{})
	if err != nil || len(all) != 2 {
		t.Errorf("%d reservations, want one for each offer, %v", len(all), err)
	}
}

// An offer that was taken stays taken for as long as it lasts, also when the reservation that it became is over and
// forgotten. One that was refused can be tried again then.
func TestOfferIsTakenOnceThoughItsReservationIsForgotten(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := service.Open(t.Context(), service.Options{Config: onePool(4), Journal: store, Version: "test", Clock: c.now, Keep: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	offers, err := h.Offers(t.Context(), bob, berth.Rigid("", 0, 2000, 2100, 2, 100), 1)
	if err != nil || len(offers) != 1 {
		t.Fatalf("%+v, %v", offers, err)
	}
	refused, err := h.Offers(t.Context(), bob, berth.Rigid("", 0, 3000, 3100, 2, 100), 1)
	if err != nil || len(refused) != 1 {
		t.Fatalf("%+v, %v", refused, err)
	}
	hold := func(offer string) service.Answer {
		t.Helper()
		a, err := h.Hold(t.Context(), bob, offer, 60)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	taken := hold(offers[0].ID).Reservation.Request.ID
	submit(t, h, ann, berth.Rigid("faster", 0, 3000, 3100, 4, 100))
	if a := hold(refused[0].ID); a.Reservation.State != service.Refused {
		t.Fatalf("%+v", a.Reservation)
	}
	for _, id := range []string{taken, "faster"} {
		by := map[bool]service.Ask{true: bob, false: ann}[id == taken]
		if _, err := h.Release(t.Context(), by, id); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		submit(t, h, ann, berth.Rigid(fmt.Sprint("large", i), 0, 4000, 4100, 9, 100)) // which is refused, and over
	}
	if _, err := h.Get(t.Context(), bob.By, taken); err == nil {
		t.Fatal("the reservation is not forgotten")
	}
	_, err = h.Hold(t.Context(), bob, offers[0].ID, 60)
	wantCode(t, err, berth.Conflict)
	if a := hold(refused[0].ID); a.Reservation.State != service.Held {
		t.Errorf("what was refused once is %+v", a.Reservation)
	}
}
