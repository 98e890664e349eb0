package service_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// What is asked for from now on is counted from when it is decided: seconds that pass on the way take nothing of a
// window that is as long as the reservation. A time of the clock stays what it is.
func TestTimesFromNowAreCountedWhenItIsDecided(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1002)
	h := start(t, t.TempDir(), onePool(8), c)
	sent := berth.Rigid("", 0, 1000, 1100, 1, 100) // two seconds ago
	sent.Arrival = 1000
	if a := submit(t, h, ann, sent); a.Reservation.State != service.Refused {
		t.Errorf("100 s by a deadline in 98 s are %s", a.Reservation.State)
	}
	ask := ann
	ask.FromNow.Deadline = true
	a, err := h.Submit(t.Context(), ask, sent)
	if err != nil || a.Reservation.Refusal != nil {
		t.Fatalf("%+v, %v", a.Reservation.Refusal, err)
	}
	if r := a.Reservation; r.Allotments[0].Start != 1002 || r.Request.Deadline != 1102 {
		t.Errorf("it starts at %d with the deadline %d", r.Allotments[0].Start, r.Request.Deadline)
	}
	later := berth.Rigid("", 0, 1050, 1150, 1, 100)
	later.Arrival = 1000
	ask.FromNow.Ready = true
	parts, err := h.SubmitArray(t.Context(), ask, later, 3)
	if err != nil || len(parts) != 3 {
		t.Fatal(parts, err)
	}
	for i := range parts {
		if r := parts[i].Reservation; r.State != service.Confirmed || r.Allotments[0].Start != 1052 || r.Request.Deadline != 1152 {
			t.Errorf("part %d starts at %d with the deadline %d: %s", i, r.Allotments[0].Start, r.Request.Deadline, r.State)
		}
	}
	id := parts[0].Reservation.Request.ID
	c.seconds.Store(1010)
	again := berth.Rigid("", 0, 1030, 1230, 1, 200)
	again.Arrival = 1008
	a, err = h.Modify(t.Context(), ask, id, again)
	if err != nil || a.Refusal != nil {
		t.Fatalf("%+v, %v", a.Refusal, err)
	}
	if r := a.Reservation; r.Allotments[0].Start != 1032 || r.Request.Deadline != 1232 {
		t.Errorf("changed it starts at %d with the deadline %d", r.Allotments[0].Start, r.Request.Deadline)
	}
}
