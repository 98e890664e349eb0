package service

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// An answer that is a reservation as its record leaves it is not written a second time. It is
// written where the record alone would not say it for as long as the key is remembered.
func TestAnAnswerThatTheRecordSaysIsNotWrittenTwice(t *testing.T) {
	core, err := newCore(engine.Config{Jobs: "easy", Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late}}}}}, "v1", 10)
	if err != nil {
		t.Fatal(err)
	}
	core.shows = true
	says := func(what string, event engine.Event, written bool, answer func(now Reservation) Answer) {
		t.Helper()
		s := core.apply(100, &event)
		a := asked{key: Key{User: "u", Name: what}, id: "r"}
		given := answer(core.card("r").view())
		core.tell(&a, keyName{}, &outcome{Answer: given})
		if got := len(a.told[0].outcome) > 0; got != written {
			t.Errorf("%s: it is written: %t, want %t", what, got, written)
		}
		core.seal(s, &a)
		core.takeShown()
	}
	as := func(r Reservation) Answer { return Answer{Reservation: r} }
	r := berth.Rigid("r", 100, 200, 400, 4, 100)
	r.Hold = 50
	says("what is promised", engine.Submit(&r), false, as)
	says("what is changed", engine.Confirm("r"), false, as)
	says("what is not changed", engine.Confirm("r"), true, as)
	says("a refusal", engine.Extend("r", 310), true, func(r Reservation) Answer {
		return Answer{Reservation: r, Refusal: &berth.Refusal{Reason: berth.NoCapacity}}
	})
	says("offers", engine.Extend("r", 320), true, func(r Reservation) Answer { return Answer{Reservation: r, Offers: []Offer{{ID: "o"}}} })
	says("how it was on the way", engine.Extend("r", 330), true, func(r Reservation) Answer {
		r.Version--
		return as(r)
	})
	says("what waits for the answer of its site", engine.Extend("r", 340), true, func(r Reservation) Answer {
		core.card("r").asking = true
		return as(r)
	})
	core.card("r").asking = false
	says("what is over", engine.Cancel("r"), true, as)
	first, job := berth.Job("first", 100, 8, 1000), berth.Job("r", 100, 8, 1000)
	if _, _, err := core.Step(100, new(engine.Submit(&first)), Key{}); err != nil {
		t.Fatal(err)
	}
	says("what is not promised", engine.Submit(&job), true, as)
}

// A key is counted from the start as its answer will be once it is written down: what is
// asked for of the bounds does not grow when a promise changes.
func TestAnAnswerIsCountedBeforeItIsWrittenDown(t *testing.T) {
	for _, parts := range []int{1, 30} {
		r := berth.Rigid("01KA2B3C4D5E6F7G8H9JKMNPQR", 100, 200, 400, 4, 100)
		r.User, r.Site, r.Pool = "alice", "cm5", "batch"
		promise := &berth.Reservation{State: berth.Confirmed, Request: &r}
		r.Parts = nil
		for range parts {
			r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 4, Duration: 100}, {NPE: 2, Duration: 300}}})
			promise.Allotments = append(promise.Allotments, berth.Allotment{Resource: berth.PoolID("cm5", "batch"), Start: 200, End: 300, NPE: 4})
		}
		ks := newKeys()
		k := ks.add(100, Key{User: "alice", Name: "k"}, r.ID)
		ks.refer(k, &card{id: r.ID, request: &r, promise: promise, version: 2, created: 100, changed: 100}, 2, nil)
		before := ks.bytes
		ks.settle(k)
		if ks.bytes > before || ks.bytes < before/2 || len(k.answer) == 0 {
			t.Errorf("of %d parts %d bytes are counted, %d once the answer is written down", parts, before, ks.bytes)
		}
	}
}
