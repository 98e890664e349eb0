package service_test

import (
	"errors"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/chance"
	"github.com/berth-hpc/berth/service"
)

// Chances are learned from what was answered: a request of the whole machine is refused wherever another is
// in the way, and small ones are accepted. A restart forgets nothing of it, and who sees less learns from less.
func TestChancesAreLearnedFromAnswers(t *testing.T) {
	c := &clock{}
	c.seconds.Store(100_000)
	dir := t.TempDir()
	h, store := startOn(t, dir, onePool(8), c)
	ask := func(h *service.Host, by service.Ask, npe berth.Count) []service.Chance {
		t.Helper()
		now := berth.Time(c.seconds.Load())
		list, looked, err := h.Chances(t.Context(), by, berth.Rigid("", now, now+7200, now+10_800, npe, 3600))
		if err != nil || looked == 0 {
			t.Fatalf("%d looked at, %v", looked, err)
		}
		return list
	}
	for i := range 350 {
		now := berth.Time(100_000 + 1800*int64(i))
		c.seconds.Store(int64(now))
		small, all := berth.Rigid("", now, now+7200, now+10_800, 1, 3600), berth.Rigid("", now, now+7200, now+10_800, 8, 3600)
		if a := submit(t, h, ann, small); a.Reservation.State == service.Refused {
			t.Fatalf("%d: %+v", i, a.Reservation)
		}
		if a := submit(t, h, ann, all); a.Reservation.State != service.Refused {
			t.Fatalf("%d: %+v", i, a.Reservation)
		}
		if i == 20 {
			for _, x := range ask(h, ann, 1) {
				if x.Enough {
					t.Errorf("after 40 answers: %+v", x)
				}
			}
		}
	}
	check := func(h *service.Host) []service.Chance {
		t.Helper()
		small, all := ask(h, ann, 1), ask(h, ann, 8)
		for i, later := range []berth.Duration{3600, 86_400} {
			s, a := small[i], all[i]
			if s.Kind != chance.Accepted || s.Later != later || !s.Enough || s.Share < 0.95 || s.Sample < 50 || !a.Enough || a.Share > 0.1 { // the first wide ones were scored before anything was known of them
				t.Errorf("%d s later: one PE %+v, all %+v", later, s, a)
			}
		}
		if len(small) != 3 || small[2].Kind != chance.Started || small[2].Later != 7200 || small[2].Enough { // no job was ever there
			t.Errorf("%+v", small)
		}
		return append(small, all...)
	}
	now := berth.Time(c.seconds.Load())
	if list, _, err := h.Chances(t.Context(), ann, berth.Rigid("", now, now+7200, now+10_800, 9, 3600)); err != nil || len(list) > 0 {
		t.Errorf("of more PEs than there are: %+v, %v; want no chance", list, err)
	}
	before := check(h)
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	h = start(t, dir, onePool(8), c)
	after := check(h)
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("before the restart %+v, after it %+v", before[i], after[i])
		}
	}
	_, _, err := h.Chances(t.Context(), service.Ask{By: service.Principal{User: "vera", Role: service.Viewer}}, berth.Rigid("", 0, 0, 900_000, 1, 60))
	wantCode(t, err, berth.Denied)
}
