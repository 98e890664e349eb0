package service_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/service"
)

// Starts are found in several pieces and are the same as in one: one behind the other, each
// possible one offered, and no more than asked for.
func TestStartsInPieces(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	for i := range 100 { // a gap of 10 s behind each, too short for what is asked, but for each tenth
		length := berth.Duration(90)
		if i%10 == 0 {
			length = 40
		}
		at := berth.Time(2000 + 100*i)
		submit(t, h, ann, berth.Rigid("", 0, at, at.Add(length), 3, length))
	}
	r := berth.Rigid("", 1000, 1000, 50_000, 2, 30)
	list, err := h.Starts(t.Context(), bob, r, service.Window{Most: 500})
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	next, possible := berth.Time(1000), 0
	for _, s := range list[0].Stretches {
		if s.First != next || s.Last < s.First {
			t.Fatalf("[%d,%d] behind %d", s.First, s.Last, next-1)
		}
		if next = s.Last + 1; s.Refusal == nil {
			possible++
		}
		for _, at := range []berth.Time{s.First, s.Last} {
			one := berth.Rigid("", 1000, at, at+30, 2, 30)
			offers, err := h.Offers(t.Context(), bob, one, 1)
			if err != nil {
				t.Fatal(err)
			}
			if is := len(offers) == 1 && offers[0].Difference == engine.OfferAsAsked; is != (s.Refusal == nil) {
				t.Errorf("at %d it is offered: %t; %+v", at, is, s)
			}
		}
	}
	if next != 50_000-30+1 || possible != 12 { // before, behind, and ten gaps
		t.Errorf("until %d, %d times possible", next-1, possible)
	}
	few, err := h.Starts(t.Context(), bob, r, service.Window{First: 1000, Last: 49_999, Most: 5})
	if err != nil || len(few[0].Stretches) != 5 {
		t.Errorf("at most five: %+v, %v", few, err)
	}
	beyond, err := h.Starts(t.Context(), bob, r, service.Window{First: 49_000, Last: 60_000, Most: 5})
	if err != nil || len(beyond[0].Stretches) != 1 || beyond[0].Stretches[0].Last != 60_000 {
		t.Errorf("behind the deadline: %+v, %v", beyond, err)
	}
}

// Who may not ask is told so, and what is no request of one part in a pool that there is.
func TestStartsRefuse(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	w := service.Window{First: 1000, Last: 2000, Most: 5}
	r := berth.Rigid("", 1000, 1000, 5000, 2, 30)
	elsewhere, others, two := r, r, r
	elsewhere.Site, others.User = "moon", "ann"
	two.Parts = append(two.Parts[:1:1], r.Parts...)
	for code, ask := range map[berth.Code]struct {
		by service.Ask
		r  berth.Request
	}{
		berth.NotFound: {bob, elsewhere},
		berth.Invalid:  {bob, two},
		berth.Denied:   {bob, others},
	} {
		_, err := h.Starts(t.Context(), ask.by, ask.r, w)
		wantCode(t, err, code)
	}
	_, err := h.Starts(t.Context(), service.Ask{By: service.Principal{User: "vera", Role: service.Viewer}}, r, w)
	wantCode(t, err, berth.Denied)
	large := berth.Rigid("", 1000, 1000, 5000, 5, 30)
	list, err := h.Starts(t.Context(), bob, large, w)
	if err != nil || len(list) != 1 || list[0].Refusal == nil || list[0].Refusal.Reason != berth.TooLarge || len(list[0].Stretches) != 0 {
		t.Errorf("too large: %+v, %v", list, err)
	}
	long := berth.Rigid("", 1000, 1000, 1030, 1, 30)
	long.Ready = 1010
	long.Parts[0].Variants[0].Duration = 20
	c.seconds.Store(1011)
	if list, err := h.Starts(t.Context(), bob, long, service.Window{Most: 5}); err != nil || list[0].Refusal == nil || list[0].Refusal.Reason != berth.DeadlineMissed {
		t.Errorf("too late: %+v, %v", list, err)
	}
}

// One piece of the search takes little of the loop's time however much is promised.
func BenchmarkStarts(b *testing.B) {
	for _, bookings := range []int{300, 3000, 30_000} {
		for _, binding := range []berth.Binding{berth.Early, berth.Late} {
			b.Run(fmt.Sprintf("%s/bookings=%d", binding, bookings), func(b *testing.B) {
				config := engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 1024, Binding: binding}}}}}
				e, err := engine.New(config)
				if err != nil {
					b.Fatal(err)
				}
				for i := range bookings {
					d := berth.Duration(600 + i*7919%14_400)
					at := berth.Time(i * 9_901 % (bookings * 900))
					r := berth.Rigid(fmt.Sprint(i), 0, at, at.Add(100*d), berth.Count(1+i*31%128), d)
					if _, _, err := e.Apply(0, engine.Submit(&r)); err != nil {
						b.Fatal(err)
					}
				}
				r := berth.Rigid("r", 0, 0, 30_000_000, 500, 3600)
				stretches := 0
				for b.Loop() {
					found, err := e.Starts(&r, engine.Look{Pool: berth.PoolID("s", "p"), Last: 29_000_000, Steps: service.StretchesAtOnce})
					if err != nil {
						b.Fatal(err)
					}
					stretches = len(found.Stretches)
				}
				b.ReportMetric(float64(stretches), "stretches")
			})
		}
	}
}
