package berth_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
)

// A line refers to what its request wanted beside PEs and time, each part to its own
// PEs, and to nothing where that is nothing.
func TestWantedOf(t *testing.T) {
	plain := func() *berth.Request {
		r := berth.Rigid("a", 0, 0, 100, 2, 10)
		return &r
	}
	if got := berth.WantedOf(plain(), 0); got != nil {
		t.Errorf("%+v, want nothing", got)
	}
	for name, c := range map[string]struct {
		change func(*berth.Request)
		want   berth.Wanted
	}{
		"a site": {func(r *berth.Request) { r.Site = "s" }, berth.Wanted{WantSite: "s"}},
		"a pool": {func(r *berth.Request) { r.Pool = "p" }, berth.Wanted{WantPool: "p"}},
		"PEs":    {func(r *berth.Request) { r.Parts[0].Eligible = berth.PEsOf(1, 2) }, berth.Wanted{Eligible: berth.PEsOf(1, 2)}},
		"memory": {func(r *berth.Request) { r.MemoryMB = 7 }, berth.Wanted{Requirements: berth.Requirements{MemoryMB: 7}}},
		"of a part": {func(r *berth.Request) {
			r.Parts = append(r.Parts, r.Parts[0])
			r.Parts[1].Eligible = berth.PEsOf(3)
			r.Site = "s"
		}, berth.Wanted{WantSite: "s"}},
	} {
		r := plain()
		c.change(r)
		line := berth.Line{Wanted: berth.WantedOf(r, 0)}
		if diff := cmp.Diff(&c.want, line.Wants()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if len(r.Parts) > 1 && !berth.WantedOf(r, 1).Eligible.Equal(berth.PEsOf(3)) {
			t.Errorf("%s: the second part wants %+v", name, berth.WantedOf(r, 1))
		}
	}
	if got := new(berth.Line).Wants(); got == nil || got.WantSite != "" {
		t.Errorf("a line of a request that wants nothing: %+v", got)
	}
}
