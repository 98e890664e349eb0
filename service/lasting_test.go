package service_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/service"
)

// What a promise was extended by is time at its pool. It stays through changes that are not about its length, however fast
// the pool is and however many variants it has.
func TestAChangeKeepsWhatWasExtended(t *testing.T) {
	config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{
		{Name: "half", PEs: 16, Binding: berth.Late, Speed: berth.StandardSpeed / 2},
		{Name: "even", PEs: 16, Binding: berth.Late},
		{Name: "twice", PEs: 16, Binding: berth.Early, Speed: 2 * berth.StandardSpeed},
		{Name: "third", PEs: 16, Binding: berth.Early, Speed: 3 * berth.StandardSpeed},
	}}}}
	all := service.Keeps{Length: true, Deadline: true}
	for pool, scaled := range map[string]berth.Duration{"half": 7200, "even": 3600, "twice": 1800, "third": 1200} {
		for _, slack := range []berth.Duration{0, 86_400} {
			for _, variants := range [][]berth.Variant{{{NPE: 4, Duration: 3600}}, {{NPE: 4, Duration: 3600}, {NPE: 2, Duration: 7200}}} {
				t.Run(fmt.Sprintf("%s with %d s to spare and %d variants", pool, slack, len(variants)), func(t *testing.T) {
					c := &clock{}
					c.seconds.Store(1000)
					h := start(t, t.TempDir(), config, c)
					r := berth.Request{Arrival: 1000, Ready: 9000, Deadline: berth.Time(9000).Add(scaled + slack), Pool: pool, Parts: []berth.Part{{Variants: variants}}}
					is := submit(t, h, ann, r).Reservation
					lasts := func(want berth.Duration) {
						t.Helper()
						is, _ = h.Get(t.Context(), ann.By, is.ID)
						if got := is.Allotments[0].End.Sub(is.Allotments[0].Start); got != want {
							t.Errorf("it lasts %d s; want %d", got, want)
						}
					}
					change := func(keeps service.Keeps, edit func(r *berth.Request)) {
						t.Helper()
						next := *is.Request.Clone()
						next.Arrival = 1000
						edit(&next)
						ask := ann
						ask.Keeps = keeps
						if a, err := h.Modify(t.Context(), ask, is.ID, next); err != nil || a.Refusal != nil {
							t.Fatalf("%+v %v", a.Refusal, err)
						}
					}
					lasts(scaled)
					longer := scaled
					for i := range 2 { // by an odd number of seconds
						if a, err := h.Extend(t.Context(), ann, is.ID, is.Allotments[0].End.Add(1801)); err != nil || a.Refusal != nil {
							t.Fatalf("%+v %v", a.Refusal, err)
						}
						longer += 1801
						lasts(longer)
						if pool == "half" { // whose seconds come in twos
							longer += longer % 2
						}
						change(all, func(r *berth.Request) { r.Name = fmt.Sprint("n", i) })
						lasts(longer)
						change(all, func(r *berth.Request) { r.NoShow = 60 })
						lasts(longer)
						change(all, func(r *berth.Request) { r.Parts[0].Variants[0].NPE = 3 })
						lasts(longer)
					}
					change(service.Keeps{Deadline: true}, func(r *berth.Request) { r.Parts[0].Variants = variants[:1] })
					lasts(scaled)
				})
			}
		}
	}
}
