package service_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

func submitArray(t *testing.T, h *service.Host, ask service.Ask, r berth.Request, parts int) []service.Answer {
	t.Helper()
	answers, err := h.SubmitArray(t.Context(), ask, r, parts)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// outcomes writes what became of each part.
func outcomes(answers []service.Answer) []string {
	var list []string
	for i := range answers {
		r := &answers[i].Reservation
		text := fmt.Sprintf("%s %s %s", r.ID, r.Request.User, r.State)
		if len(r.Allotments) > 0 {
			text += fmt.Sprintf(" %d-%d", r.Allotments[0].Start, r.Allotments[0].End)
		}
		if len(answers[i].Offers) > 0 {
			text += " offers"
		}
		list = append(list, text)
	}
	return list
}

// Each part of an array is a reservation by itself: what fits is promised, the
// rest refused, and the first of those comes with offers.
func TestPartsOfAnArrayAreIndependent(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	h := start(t, dir, onePool(4), c)
	r := berth.Rigid("sweep", 0, 1000, 1200, 2, 100)
	answers := submitArray(t, h, ann, r, 6)
	want := []string{
		"sweep_1 ann confirmed 1000-1100", "sweep_2 ann confirmed 1000-1100", "sweep_3 ann confirmed 1100-1200", "sweep_4 ann confirmed 1100-1200",
		"sweep_5 ann refused offers", "sweep_6 ann refused",
	}
	if diff := cmp.Diff(want, outcomes(answers)); diff != "" {
		t.Error(diff)
	}
	if got, err := h.Release(t.Context(), ann, "sweep_3"); err != nil || got.State != service.Cancelled {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := h.Get(t.Context(), ann.By, "sweep_4"); err != nil || got.State != service.Confirmed {
		t.Errorf("the next part is %+v, %v", got.State, err)
	}
	_, err := h.Get(t.Context(), bob.By, "sweep_4")
	wantCode(t, err, berth.NotFound)
	_, err = h.SubmitArray(t.Context(), ann, r, 2)
	wantCode(t, err, berth.Conflict) // the id is taken
}

// Under the same key an array is decided once, after a restart too; what a crash
// left out is decided then, and another array under it is a conflict.
func TestArraysAreAskedForOnce(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	keyed := ann
	keyed.Key, keyed.Body = "monday", [32]byte{1}
	r := berth.Rigid("", 0, 1100, 1300, 2, 100)
	var first []string
	t.Run("before the restart", func(t *testing.T) {
		h := start(t, dir, onePool(4), c)
		first = outcomes(submitArray(t, h, keyed, r, 3))
		if diff := cmp.Diff(first, outcomes(submitArray(t, h, keyed, r, 3))); diff != "" {
			t.Errorf("asked again: %s", diff)
		}
	})
	h := start(t, dir, onePool(4), c)
	again := outcomes(submitArray(t, h, keyed, r, 5)) // as if two parts had not been decided
	if diff := cmp.Diff(first, again[:3]); diff != "" {
		t.Errorf("asked after a restart: %s", diff)
	}
	id := again[0][:26]
	want := []string{id + "_4 ann confirmed 1200-1300", id + "_5 ann refused offers"}
	if diff := cmp.Diff(want, again[3:]); diff != "" {
		t.Errorf("the rest: %s", diff)
	}
	list, _, err := h.List(t.Context(), ann.By, service.Filter{})
	if err != nil || len(list) != 5 {
		t.Errorf("%d reservations, %v", len(list), err)
	}
	keyed.Body = [32]byte{2}
	_, err = h.SubmitArray(t.Context(), keyed, r, 3)
	wantCode(t, err, berth.Conflict)
	other := bob
	other.Key, other.Body = "monday", [32]byte{1}
	if got := submitArray(t, h, other, r, 1); got[0].Reservation.Request.User != "bob" || got[0].Reservation.ID == id+"_1" {
		t.Errorf("bob gets %+v", got[0].Reservation)
	}
}

// Who may not ask, or asks for nonsense, gets nothing of an array.
func TestArraysThatAreWrong(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	good := berth.Rigid("", 0, 1100, 1300, 2, 100)
	viewer := service.Ask{By: service.Principal{User: "vera", Role: service.Viewer}}
	other, late, vague := good, good, good
	other.User = "bob"
	late.Deadline = 1050
	vague.Software, vague.Version = "a", "2.x"
	for _, tt := range []struct {
		ask   service.Ask
		r     berth.Request
		parts int
		code  berth.Code
	}{
		{ann, good, 0, berth.Invalid},
		{ann, good, service.MaxArray + 1, berth.Invalid},
		{viewer, good, 2, berth.Denied},
		{ann, other, 2, berth.Denied},
		{ann, late, 3, berth.Invalid},
		{ann, vague, 3, berth.Invalid},
	} {
		_, err := h.SubmitArray(t.Context(), tt.ask, tt.r, tt.parts)
		wantCode(t, err, tt.code)
	}
	if list, _, err := h.List(t.Context(), root.By, service.Filter{}); err != nil || len(list) != 0 {
		t.Errorf("%d reservations, %v", len(list), err)
	}
}

// An array that a period decides is answered when it is.
func TestArraysThatWaitForAPeriod(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	config := onePool(4)
	config.Trigger, config.Period, config.Match = engine.TriggerOnPeriod, 60, "ajsm"
	h := start(t, t.TempDir(), config, c)
	got := make(chan []service.Answer)
	go func() { got <- submitArray(t, h, ann, berth.Rigid("sweep", 0, 1000, 2000, 2, 100), 3) }()
	for {
		if list, _, err := h.List(t.Context(), root.By, service.Filter{}); err != nil || len(list) == 3 {
			break
		}
	}
	c.seconds.Store(1020)
	if _, err := h.Offers(t.Context(), ann, berth.Rigid("", 0, 1020, 2000, 1, 1), 1); err != nil { // which looks at the clock
		t.Fatal(err)
	}
	select {
	case answers := <-got:
		t.Fatalf("answered before all are decided: %v", outcomes(answers))
	default:
	}
	c.seconds.Store(1140)
	if _, err := h.Offers(t.Context(), ann, berth.Rigid("", 0, 1140, 2000, 1, 1), 1); err != nil {
		t.Fatal(err)
	}
	want := []string{"sweep_1 ann active 1020-1120", "sweep_2 ann active 1020-1120", "sweep_3 ann active 1140-1240"}
	if diff := cmp.Diff(want, outcomes(<-got)); diff != "" {
		t.Error(diff)
	}
}

// No caller waits longer for a decision than connections last: what a period of four
// minutes decides is pending after twenty seconds, and is decided all the same.
func TestWhatAPeriodDecidesIsPendingMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		config := onePool(4)
		config.Trigger, config.Period, config.Match = engine.TriggerOnPeriod, 240, "ajsm"
		h, err := service.Open(t.Context(), service.Options{Config: config, Journal: store, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the bubble begins at a multiple of the period
		keyed, now := ann, h.Now()
		keyed.Key = "k"
		r := berth.Rigid("", 0, now, now+5000, 2, 100)
		for _, patience := range []time.Duration{20 * time.Second, 0} { // asked again it is the same, which is known
			began := time.Now()
			if a := submit(t, h, keyed, r); a.Reservation.State != service.Pending || time.Since(began) != patience {
				t.Errorf("%s after %s", a.Reservation.State, time.Since(began))
			}
		}
		keyed.Key = "slow"
		deciding := make(chan service.Answer)
		go func() {
			a, err := h.Submit(t.Context(), keyed, berth.Rigid("", 0, now+4000, now+5000, 1, 100))
			if err != nil {
				t.Error(err)
			}
			deciding <- a
		}()
		synctest.Wait()
		if a, err := h.Recall(t.Context(), keyed, 0); a != nil || err != nil {
			t.Errorf("nothing is answered under it yet: %v, %v", a, err)
		}
		first := <-deciding
		if a, err := h.Recall(t.Context(), keyed, 0); err != nil || len(a) != 1 || a[0].Reservation.ID != first.Reservation.ID {
			t.Errorf("%v, %v; was answered %v", a, err, first)
		}
		keyed.Key = "all"
		answers := submitArray(t, h, keyed, r, 3)
		if len(answers) != 3 || answers[2].Reservation.State != service.Pending {
			t.Errorf("%v", outcomes(answers))
		}
		time.Sleep(4 * time.Minute)
		for _, keyed.Key = range []string{"k", "all"} {
			a := submitArray(t, h, keyed, r, 1)[0]
			if a.Reservation.State != service.Pending {
				t.Errorf("under %s it is %s, was answered as pending", keyed.Key, a.Reservation.State)
			}
			if is, err := h.Get(t.Context(), ann.By, a.Reservation.ID); err != nil || is.State != service.Active {
				t.Errorf("%s is %s, %v; want it active", is.ID, is.State, err)
			}
		}
		if list, _, err := h.List(t.Context(), ann.By, service.Filter{}); err != nil || len(list) != 5 {
			t.Errorf("%d reservations, %v", len(list), err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// An array that was refused with an error under a key is refused again, whatever may be asked by then, and none of its
// parts is promised.
func TestARefusedArrayStaysRefused(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(8), c)
	ask := ann
	ask.Key, ask.By.Role = "k", service.Viewer
	r := berth.Rigid("", 0, 2000, 9000, 1, 100)
	_, err := h.SubmitArray(t.Context(), ask, r, 3)
	wantCode(t, err, berth.Denied)
	ask.By.Role = service.User
	_, err = h.SubmitArray(t.Context(), ask, r, 3)
	wantCode(t, err, berth.Denied)
	_, err = h.Recall(t.Context(), ask, 3)
	wantCode(t, err, berth.Denied)
	if all, _, err := h.List(t.Context(), ann.By, service.Filter{}); err != nil || len(all) != 0 {
		t.Errorf("%d parts are promised, %v", len(all), err)
	}
}
