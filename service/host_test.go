package service_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// clock is a time that only a test moves.
type clock struct{ seconds atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(c.seconds.Load(), 0) }

func onePool(pes berth.Count) engine.Config {
	return engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: pes, Binding: berth.Late}}}}}
}

// start opens a service on the journal in dir.
func start(t *testing.T, dir string, config engine.Config, c *clock) *service.Host {
	t.Helper()
	h, _ := startOn(t, dir, config, c)
	return h
}

func startOn(t *testing.T, dir string, config engine.Config, c *clock) (*service.Host, *sqlite.Store) {
	t.Helper()
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := service.Open(t.Context(), service.Options{Config: config, Journal: store, Version: "test", Clock: c.now, SnapshotEvery: 7})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, store
}

var (
	ann  = service.Ask{By: service.Principal{User: "ann", Role: service.User}}
	bob  = service.Ask{By: service.Principal{User: "bob", Role: service.User}}
	root = service.Ask{By: service.Principal{User: "root", Role: service.Operator}}
)

func submit(t *testing.T, h *service.Host, ask service.Ask, r berth.Request) service.Answer {
	t.Helper()
	a, err := h.Submit(t.Context(), ask, r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// isPromised says whether a reservation stands: where a machine is slow, one that
// was to begin in seconds may have begun when the answer comes.
func isPromised(r service.Reservation) bool {
	return r.State == service.Confirmed || r.State == service.Active
}

func wantCode(t *testing.T, err error, code berth.Code) {
	t.Helper()
	e, is := errors.AsType[*berth.Error](err)
	if !is || e.Code != code {
		t.Errorf("error %v, want code %s", err, code)
	}
}

// Asked, refused with offers, held, confirmed, extended, released; and all of it
// is there after a restart.
func TestAskHoldConfirmRelease(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	h := start(t, dir, onePool(4), c)
	first := submit(t, h, ann, berth.Rigid("", 0, 1100, 1200, 4, 100))
	if first.Reservation.State != service.Confirmed || first.Reservation.Request.User != "ann" || len(first.Reservation.ID) != 26 {
		t.Fatalf("the first is %+v", first.Reservation)
	}
	no := submit(t, h, bob, berth.Rigid("", 0, 1100, 1250, 2, 100))
	if no.Reservation.State != service.Refused || no.Reservation.Refusal.Reason != berth.NoCapacity || len(no.Offers) == 0 {
		t.Fatalf("the second is %+v with %d offers", no.Reservation, len(no.Offers))
	}
	if _, err := h.Hold(t.Context(), ann, no.Offers[0].ID, 60); err == nil {
		t.Error("another user takes up bob's offer")
	}
	held, err := h.Hold(t.Context(), bob, no.Offers[0].ID, 60)
	if err != nil || held.Reservation.State != service.Held || held.Reservation.Expires != 1060 {
		t.Fatalf("held: %+v, %v", held.Reservation, err)
	}
	confirmed, err := h.Confirm(t.Context(), bob, held.Reservation.ID)
	if err != nil || confirmed.State != service.Confirmed || confirmed.Version <= held.Reservation.Version {
		t.Fatalf("confirmed: %+v, %v", confirmed, err)
	}
	stale := bob
	stale.IfVersion = held.Reservation.Version
	_, err = h.Release(t.Context(), stale, confirmed.ID)
	wantCode(t, err, berth.Conflict)
	_, err = h.Release(t.Context(), ann, confirmed.ID)
	wantCode(t, err, berth.NotFound)
	_, err = h.Get(t.Context(), ann.By, confirmed.ID)
	wantCode(t, err, berth.NotFound)

	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("after a restart", func(t *testing.T) {
		_, err := h.Submit(t.Context(), ann, berth.Rigid("", 0, 1100, 1200, 4, 100))
		wantCode(t, err, berth.Unavailable)
	})
}

// What a service answered is there after a restart, and nothing else.
func TestRestart(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	options := service.Options{Config: onePool(8), Journal: store, Version: "test", Clock: c.now, SnapshotEvery: 5}
	h, err := service.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			start := berth.Time(1001 + i*10) // none has begun
			if _, err := h.Submit(t.Context(), ann, berth.Rigid(fmt.Sprintf("r%02d", i), 0, start, start+20, 5, 10)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	before, _, err := h.List(t.Context(), root.By, service.Filter{})
	if err != nil || len(before) != 40 {
		t.Fatalf("%d reservations, %v", len(before), err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := service.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := again.List(t.Context(), root.By, service.Filter{})
	if err != nil || fmt.Sprint(shown(after)) != fmt.Sprint(shown(before)) {
		t.Errorf("after a restart\n%v, want\n%v (%v)", shown(after), shown(before), err)
	}
	page, _, err := again.List(t.Context(), root.By, service.Filter{After: "r37", States: []service.State{service.Confirmed, service.Active, service.Refused}})
	if err != nil || len(page) != 2 {
		t.Errorf("behind r37 there are %v, %v", shown(page), err)
	}
	if err := errors.Join(again.Close(), store.Close()); err != nil {
		t.Error(err)
	}
}

func shown(list []service.Reservation) []string {
	var words []string
	for i := range list {
		r := &list[i]
		words = append(words, fmt.Sprintf("%s %s v%d %v", r.ID, r.State, r.Version, r.Allotments))
	}
	return words
}

// The same key asks once: the same body is answered alike, also after the
// decision, another body is a conflict, and another user's key is another key.
func TestKeys(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	keyed := ann
	keyed.Key, keyed.Body = "k", [32]byte{1}
	r := berth.Rigid("", 0, 1100, 1200, 4, 100)
	first := submit(t, h, keyed, r)
	second := submit(t, h, keyed, r)
	if first.Reservation.ID != second.Reservation.ID {
		t.Errorf("asked twice it is %s and %s", first.Reservation.ID, second.Reservation.ID)
	}
	keyed.Body = [32]byte{2}
	_, err := h.Submit(t.Context(), keyed, r)
	wantCode(t, err, berth.Conflict)
	other := bob
	other.Key, other.Body = "k", [32]byte{2}
	if a := submit(t, h, other, r); a.Reservation.ID == first.Reservation.ID || a.Reservation.State != service.Refused {
		t.Errorf("bob's is %+v", a.Reservation)
	}
}

// Listeners hear what happens to their own, in order, and can go on behind
// the last notice that they heard.
func TestListen(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	submit(t, h, ann, berth.Rigid("a", 0, 1100, 1200, 1, 100))
	last, err := h.Get(t.Context(), ann.By, "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := make(chan service.Notice, 10)
	go func() {
		defer close(heard)
		for n, err := range h.Listen(ctx, ann.By, 1) {
			if err != nil {
				return
			}
			heard <- n
		}
	}()
	if n := <-heard; n.What != "accepted" || n.Reservation.ID != "a" {
		t.Fatalf("heard %s of %s, want that a was accepted", n.What, n.Reservation.ID)
	}
	submit(t, h, bob, berth.Rigid("b", 0, 1100, 1200, 1, 100))
	if _, err := h.Release(t.Context(), ann, "a"); err != nil {
		t.Fatal(err)
	}
	if n := <-heard; n.What != "cancelled" || n.Reservation.Version <= last.Version {
		t.Errorf("heard %s of %s", n.What, n.Reservation.ID)
	}
}

// A viewer asks for nothing, a user for no one else.
func TestRoles(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	viewer := service.Ask{By: service.Principal{User: "eve", Role: service.Viewer}}
	_, err := h.Submit(t.Context(), viewer, berth.Rigid("", 0, 1100, 1200, 4, 100))
	wantCode(t, err, berth.Denied)
	r := berth.Rigid("", 0, 1100, 1200, 4, 100)
	r.User = "bob"
	_, err = h.Submit(t.Context(), ann, r)
	wantCode(t, err, berth.Denied)
	if a := submit(t, h, root, r); a.Reservation.Request.User != "bob" {
		t.Errorf("the operator's request for bob is %q's", a.Reservation.Request.User)
	}
	_, err = h.Submit(t.Context(), service.Ask{}, berth.Rigid("", 0, 1100, 1200, 4, 100))
	wantCode(t, err, berth.Denied)
}

// What changes nothing, or cannot be done, is answered all the same, also if no
// time has passed since the last record.
func TestNothingToRecordIsAnswered(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	submit(t, h, ann, berth.Rigid("a", 0, 1100, 1200, 4, 100))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := h.Confirm(ctx, ann, "a"); err != nil && !errors.As(err, new(*berth.Error)) {
		t.Error(err)
	}
	_, err := h.CheckIn(ctx, ann, "a")
	wantCode(t, err, berth.Conflict)
	for range 2 {
		if r, err := h.Release(ctx, ann, "a"); err != nil || r.State != service.Cancelled {
			t.Errorf("%+v, %v", r, err)
		}
	}
	_, err = h.Confirm(ctx, ann, "a")
	wantCode(t, err, berth.Conflict)
}

// What happens between the call and the first look at the sequence is heard.
func TestListensFromTheCallOn(t *testing.T) {
	c := &clock{}
	h := start(t, t.TempDir(), onePool(4), c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := h.Listen(ctx, ann.By, 0)
	got := submit(t, h, ann, berth.Rigid("", 0, 10, 100, 1, 10))
	for n, err := range heard {
		if err != nil || n.Reservation.Request.ID != got.Reservation.Request.ID {
			t.Errorf("it hears of %q, %v", n.Reservation.Request.ID, err)
		}
		return
	}
	t.Error("it hears nothing")
}
