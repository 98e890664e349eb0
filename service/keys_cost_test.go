package service

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/berth-hpc/berth"
)

// A key takes about what is counted for it: its bound is one on the memory of the process.
func TestAKeyTakesWhatIsCountedForIt(t *testing.T) {
	oneGoroutine(t)
	accepted := Reservation{ID: "01KA2B3C4D5E6F7G8H9JKMNPQR", State: Confirmed, Version: 2, Created: 1_780_000_000, Changed: 1_780_000_000}
	accepted.Request = berth.Rigid(accepted.ID, 1_780_000_000, 1_780_003_600, 1_780_100_000, 64, 3600)
	accepted.Request.User, accepted.Request.Site, accepted.Request.Pool = "alice", "cm5", "batch"
	accepted.Allotments = []berth.Allotment{{Resource: berth.PoolID("cm5", "batch"), Start: 1_780_003_600, End: 1_780_007_200, NPE: 64}}
	refused := accepted
	refused.State, refused.Allotments = Refused, nil
	offer := Offer{ID: "01KA2B3C4D5E6F7G8H9JKMNPQS", Expires: 1_780_001_800}
	offer.Request, offer.Allotments = accepted.Request, accepted.Allotments
	for what, o := range map[string]outcome{
		"a promise":                  {Answer: Answer{Reservation: accepted}},
		"a refusal and three offers": {Answer: Answer{Reservation: refused, Refusal: &berth.Refusal{Reason: berth.NoCapacity, Wanted: 64}, Offers: []Offer{offer, offer, offer}}},
		"an error":                   {Failed: berth.Errorf(berth.Conflict, "id", "%q is over", accepted.ID)},
	} {
		const n = 50_000
		ks := newKeys()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range n {
			key := Key{User: "alice", Name: fmt.Sprintf("%036d", i)}
			ks.answer(ks.add(1_780_000_000, key, accepted.ID), o.bytes())
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		took, counted := (int64(after.HeapAlloc)-int64(before.HeapAlloc))/n, ks.bytes/n
		t.Logf("the key of %s takes %d bytes, counted are %d", what, took, counted)
		if took > counted*5/4 {
			t.Errorf("the key of %s takes %d bytes, counted are %d", what, took, counted)
		}
		runtime.KeepAlive(ks)
	}
}
