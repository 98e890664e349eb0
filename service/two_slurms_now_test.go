package service_test

import (
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// What begins at once at two clusters is told when both have it. If one of them refuses, neither keeps any
// of it; while one does not answer it is pending, and is told when that one has it too.
func TestTwoSlurmsAgreeOnWhatStartsAtOnce(t *testing.T) {
	t.Parallel()
	two := newTwoSlurms(t, false)
	now := func(id string) service.Reservation {
		t.Helper()
		from := two.host.Now()
		r := berth.Rigid(id, 0, from, from+1200, eastNodes-1, 300) // for which west is too small
		r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: westNodes, Duration: 300}}})
		return submit(t, two.host, two.by, r).Reservation
	}
	release := func(id string) {
		t.Helper()
		if _, err := two.host.Release(t.Context(), two.by, id); err != nil {
			t.Fatal(err)
		}
		two.agrees("released", id, service.Finished)
	}

	if r := now("agreed"); !isPromised(r) || len(two.has(west)) != 1 || len(two.has(east)) != 1 {
		t.Fatalf("%+v; west has %q and east %q", r, two.has(west), two.has(east))
	}
	release("agreed")

	two.now.Store(newMishap("", "", east)) // which waits for west to have made its part
	if r := now("refused"); r.State != service.Failed || r.Refusal == nil || r.Refusal.Resource.Site != east {
		t.Errorf("what east refuses is %+v, %+v", r, r.Refusal)
	}
	two.agrees("east refuses", "refused", service.Failed)

	cut := newMishap("at east cut", theLink, "")
	cut.cut.Store(true)
	two.now.Store(cut)
	if r := now("pending"); r.State != service.Pending || len(r.Allotments) > 0 {
		t.Errorf("what east does not answer about is %+v", r)
	}
	two.now.Store(nil)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(60 * time.Second); ; <-tick.C {
		r, err := two.host.Get(t.Context(), two.by.By, "pending")
		if err == nil && isPromised(r) {
			if w, e := two.has(west), two.has(east); len(w) != 1 || len(e) != 1 {
				t.Errorf("it is told and west has %q and east %q", w, e)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it is %+v, %v; west has %q and east %q\n%s", r, err, two.has(west), two.has(east), two.log.String())
		}
	}
	release("pending")
	if err := two.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
