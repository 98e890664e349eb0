package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/service"
)

// crowded is three pools, and in the largest 20,000 reservations begin tomorrow.
func crowded(t *testing.T) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Config{Sites: []berth.Site{
		{Name: "cm5", Pools: []berth.Pool{{Name: "batch", PEs: 4096, Binding: berth.Late}, {Name: "quiet", PEs: 256, Binding: berth.Late}}},
		{Name: "here", Pools: []berth.Pool{{Name: "pool", PEs: 16, Binding: berth.Late}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		r := berth.Rigid(fmt.Sprint("r", i), 0, 86_400, 4_000_000, 64, 3600+berth.Duration(i%7))
		r.Site, r.Pool = "cm5", "batch"
		if _, _, err := e.Apply(0, engine.Submit(&r)); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// One who has had many parts promised, and has no more of the pool's share for a while, is
// answered soon too: combinations of variants that the share does not leave room for are
// not tried one by one. (One wake of the service took six seconds.)
func TestPartsBeyondAShareAreDecidedSoon(t *testing.T) {
	e, err := engine.New(engine.Config{
		Sites:  []berth.Site{{Name: "cm5", Pools: []berth.Pool{{Name: "batch", PEs: 4096, Binding: berth.Late}}}},
		Limits: service.DefaultLimits(),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := berth.Request{Kind: berth.KindRequest, User: "ann", Role: string(service.User), Ready: 3600, Deadline: 5400}
	for i := range 31 {
		var p berth.Part
		for k := range 31 {
			p.Variants = append(p.Variants, berth.Variant{NPE: berth.Count(1 + (i+k)%64), Duration: berth.Duration(60 + i + k)})
		}
		r.Parts = append(r.Parts, p)
	}
	refused, longest := 0, time.Duration(0)
	for i := 0; refused < 3; i++ {
		one := *r.Clone()
		one.ID = fmt.Sprint(i)
		began := time.Now()
		if _, _, err := e.Apply(0, engine.Submit(&one)); err != nil {
			t.Fatal(err)
		}
		if _, promised := e.Reservation(one.ID); !promised {
			refused++
			if _, err := e.Offers(&one, 3); err != nil {
				t.Fatal(err)
			}
		}
		longest = max(longest, time.Since(began))
	}
	t.Logf("the longest took %s", longest)
	if longest > 2*time.Second { // it takes a tenth of that, beside much else
		t.Errorf("the longest took %s", longest)
	}
}

// However many parts and variants a request has, it is decided soon: others wait for it.
func TestWhateverIsAskedIsDecidedSoon(t *testing.T) {
	e := crowded(t)
	for _, c := range []struct {
		name            string
		parts, variants int
	}{{"1000 parts", 1000, 1}, {"31 parts of 31 variants", 31, 31}, {"2 parts of 500 variants", 2, 500}, {"100 parts of 10 variants", 100, 10}, {"1000 variants", 1, 1000}} {
		r := berth.Request{ID: c.name, Kind: berth.KindRequest, Ready: 3600, Deadline: 360_000}
		for i := range c.parts {
			var p berth.Part
			for k := range c.variants {
				p.Variants = append(p.Variants, berth.Variant{NPE: berth.Count(1 + (i+k)%64), Duration: berth.Duration(60 + i + k)})
			}
			r.Parts = append(r.Parts, p)
		}
		began := time.Now()
		list, err := e.Offers(&r, 5)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		t.Logf("%s: %d offers after %s", c.name, len(list), took)
		if took > 2*time.Second { // it takes a tenth of that, beside much else
			t.Errorf("%s: it took %s", c.name, took)
		}
	}
}
