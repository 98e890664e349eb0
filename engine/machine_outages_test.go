package engine_test

import (
	mathbits "math/bits"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// outage is PEs of a pool that are out of use for a while, as it was told.
type outage struct {
	name        string
	pool        int
	pes         uint64
	from, until berth.Time
}

// outages is everything that is out of use or will be. PEs are out of use while
// any of them says so.
type outages []outage

// down adds what was told. Beginning and end are in force together: PEs that die
// within a maintenance come back when both are over.
func (o outages) down(pool int, event *engine.Event, now berth.Time) outages {
	until := event.Until
	if until == 0 {
		until = berth.Forever
	}
	if event.Name != "" {
		o = o.without(pool, event.Name)
	}
	return append(o, outage{event.Name, pool, bits(event.PEs), max(event.From, now), until})
}

// without returns all but the outage of a name of a pool.
func (o outages) without(pool int, name string) outages {
	return slices.DeleteFunc(slices.Clone(o), func(x outage) bool { return x.pool == pool && x.name == name })
}

// up brings PEs back: it ends everything that is in force for them now. What is
// only announced for PEs that are in use is called off.
func (o outages) up(pool int, event *engine.Event, now berth.Time) outages {
	if event.Name != "" {
		return o.without(pool, event.Name)
	}
	named, inForce := bits(event.PEs), o.at(pool, now)
	var left outages
	for _, x := range o {
		if x.pool == pool {
			if x.from <= now {
				x.pes &^= named
			} else {
				x.pes &^= named &^ inForce
			}
		}
		if x.pes != 0 {
			left = append(left, x)
		}
	}
	return left
}

// over returns what is not over at a time.
func (o outages) over(now berth.Time) outages {
	return slices.DeleteFunc(o, func(x outage) bool { return x.until <= now })
}

// at returns the PEs of a pool that are out of use at a time.
func (o outages) at(pool int, t berth.Time) uint64 {
	var pes uint64
	for _, x := range o {
		if x.pool == pool && x.from <= t && t < x.until {
			pes |= x.pes
		}
	}
	return pes
}

// during returns the PEs of a pool that are out of use at some time of an interval.
func (o outages) during(pool int, start, end berth.Time) uint64 {
	var pes uint64
	for _, x := range o {
		if x.pool == pool && x.from < end && start < x.until {
			pes |= x.pes
		}
	}
	return pes
}

// out takes what is out of use from the room, each PE once.
func (o outages) out(w *world, r *room) {
	for _, x := range o {
		from, to := r.clip(x.from, x.until)
		p := &r.pools[x.pool]
		early := w.pools[x.pool].early()
		for i := from; i < to; i++ {
			if fresh := x.pes &^ p.busy[i]; fresh != 0 {
				p.busy[i] |= fresh
				if !early {
					p.used[i] += int32(mathbits.OnesCount64(fresh))
				}
			}
		}
	}
}

// told returns the outages that an engine knows.
func (w *world) told(e *engine.Engine) outages {
	var list outages
	for x := range e.Outages() {
		if pool := w.poolNamed(x.Resource); pool >= 0 {
			list = append(list, outage{x.Name, pool, bits(x.PEs), x.From, x.Until})
		}
	}
	return list
}

// difference returns the first second from now on at which two lists have other
// PEs of a pool out of use.
func (o outages) difference(w *world, other outages, now berth.Time) (pool int, at berth.Time, differ bool) {
	times := []berth.Time{now}
	for _, x := range slices.Concat(o, other) {
		times = append(times, max(now, x.from), max(now, min(x.until, berth.Forever-1)))
	}
	slices.Sort(times)
	for _, t := range slices.Compact(times) {
		for pool := range w.pools {
			if o.at(pool, t) != other.at(pool, t) {
				return pool, t, true
			}
		}
	}
	return 0, 0, false
}
