package service

import "testing"

// Who listens to a host that goes on with what another has told stands behind what either has told last.
func TestWhoGoesOnStandsBehindTheLastNotice(t *testing.T) {
	for _, c := range []struct{ before, begin, told uint64 }{
		{before: 7, begin: 12},
		{before: 12, begin: 7},
		{before: 7, begin: 7, told: 9},
	} {
		tell := func(h *hearers, record uint64) {
			if record > 0 {
				h.tell([]news{{number: record << noticeBits}})
			}
		}
		before, h := newHearers(c.before-1), newHearers(c.begin)
		tell(&before, c.before)
		tell(&h, c.told)
		h.goOn(&before)
		if want := max(c.before, c.begin, c.told) << noticeBits; h.last != want {
			t.Errorf("%+v: the last notice is %d, want %d", c, h.last, want)
		}
		if lost := before.lost; h.lost != lost {
			t.Errorf("%+v: what is up to %d is lost, want %d", c, h.lost, lost)
		}
	}
}
