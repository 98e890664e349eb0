package engine_test

import (
	"math/rand/v2"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// hauls draws what tasks bring from other sites, how long that takes, and what has to be shared
// meanwhile. It has dice of its own.
type hauls struct {
	dice *rand.Rand
	on   bool
}

func newHauls(seed uint64) hauls {
	h := hauls{dice: rand.New(rand.NewPCG(seed, 29))}
	h.on = h.dice.IntN(3) == 0
	return h
}

func (h *hauls) chance(percent int) bool { return h.on && h.dice.IntN(100) < percent }

// link draws how data get to sites, and what limits that.
func (h *hauls) link(config *engine.Config) {
	for i := range config.Sites {
		if h.chance(80) {
			config.Sites[i].Link = berth.Link{KilobytesPerSecond: 500 + h.dice.Int64N(2000), DelayMS: h.dice.Int64N(3000)}
		}
		if h.chance(40) {
			config.Sites[i].StorageMB = 1 + h.dice.Int64N(30)
		}
	}
	if h.chance(60) {
		config.Uplink = 500 + h.dice.Int64N(2500)
	}
	if h.chance(50) {
		config.Staging = engine.Stagings()[h.dice.IntN(3)]
	}
}

// read draws what tasks of a workflow read of others.
func (h *hauls) read(w *berth.Workflow) {
	if !h.chance(80) {
		return
	}
	w.Spread, w.Routes = w.Spread || h.chance(60), []berth.Route{{From: "s0", To: "s1"}}
	if h.chance(70) {
		w.Routes = append(w.Routes, berth.Route{From: "s1", To: "s0"})
	}
	for i := range w.Tasks {
		k := &w.Tasks[i]
		if k.Site == "" && h.chance(40) {
			k.Site = []string{"s0", "s1"}[h.dice.IntN(2)]
		}
		if len(k.After) == 0 || h.chance(20) {
			continue
		}
		for range k.After {
			k.Reads = append(k.Reads, max(0, h.dice.Int64N(15)-3)*999_999)
		}
	}
}

// event draws an event that is about data.
func (h *hauls) event(x *flows) (engine.Event, bool) {
	site := x.config.Sites[h.dice.IntN(len(x.config.Sites))].Name
	switch {
	case h.chance(5):
		return engine.UpdateForecast(&berth.Forecast{Site: site, From: x.now, Period: 10, Kilobytes: []int64{h.dice.Int64N(30_000), 30_000 + h.dice.Int64N(3)*h.dice.Int64N(20_000)}}), true
	case h.chance(8):
		r := berth.Rigid("d"+x.name(), x.now, x.now, x.now+berth.Time(20+h.dice.IntN(100)), 1, berth.Duration(1+h.dice.IntN(20)))
		r.Site, r.StorageMB = site, 1+h.dice.Int64N(20)
		return engine.Submit(&r), true
	}
	return engine.Event{}, false
}

// haul says of a task that has a place and moves data that it moves them there, at its start, all
// of them, and no others.
func (x *flows) haul(s *flowSeen, i int, r *berth.Reservation, at func(task int) string) {
	bytes := int64(0)
	for k, n := range s.w.Tasks[i].Reads {
		for _, route := range s.w.Routes {
			if route.From == at(s.w.Tasks[i].After[k]) && route.To == r.Allotments[0].Resource.Site {
				bytes += n
			}
		}
	}
	megabytes := (bytes + 999_999) / 1_000_000
	switch {
	case r.Request.StorageMB > 0:
		x.cells["moves data"]++
	case len(r.Transfers) > 0:
		x.fatalf("%s has nothing to move: %+v", r.Request.ID, r.Transfers)
	}
	if megabytes != r.Request.StorageMB && r.State != berth.Active {
		x.fatalf("%s moves %d MB, want %d", r.Request.ID, r.Request.StorageMB, megabytes)
	}
	for _, t := range r.Transfers {
		if t.Start != r.Start() || t.End > r.End() || t.Kilobytes != 1000*r.Request.StorageMB || t.Site != r.Allotments[0].Resource.Site || (t.Rate > 0) != (x.config.Uplink > 0) {
			x.fatalf("%s is at %+v and moves %+v", r.Request.ID, r.Allotments[0], t)
		}
	}
}
