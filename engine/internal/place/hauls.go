package place

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Tasks of workflows bring what others have written at other sites, in their own time
// (docs/adr/0026-tasks-hold-their-pes-for-transfers.md). So what a task moves is part of its
// request as it is of others, as storage at its site; its PEs are held meanwhile, whatever the
// configuration says of requests, and it moves all of it when it starts, and not before.

// Hauls says what tasks of a workflow move to their sites; nil is nothing.
type Hauls struct {
	w      *berth.Workflow
	routes map[berth.Route]bool
}

// HaulsOf returns what tasks of a workflow move.
func HaulsOf(w *berth.Workflow) *Hauls {
	if len(w.Routes) == 0 {
		return nil
	}
	h := &Hauls{w: w, routes: make(map[berth.Route]bool, len(w.Routes))}
	for _, r := range w.Routes {
		h.routes[r] = true
	}
	return h
}

// Megabytes returns how much a task moves to a site, where its parents are or were at the sites
// that at tells; empty is one that is not known.
func (h *Hauls) Megabytes(task int, to string, at func(task int) string) int64 {
	if h == nil {
		return 0
	}
	bytes, t := int64(0), &h.w.Tasks[task]
	for k, n := range t.Reads {
		if n > 0 && h.routes[berth.Route{From: at(t.After[k]), To: to}] {
			bytes += n
		}
	}
	return (bytes + 999_999) / 1_000_000
}

// hauling returns for how long a request that moves some megabytes holds PEs of a pool for a transfer
// that begins when it starts, Endless for ever.
func (f *Finder) hauling(p *pool, megabytes int64) berth.Duration {
	return f.stage(p, f.state.Now(), 1000*megabytes)
}

// Hauling returns for how long a task that has a place would hold its PEs for its transfer, if it
// got another place in its pool now.
func (f *Finder) Hauling(d *state.Entry) berth.Duration {
	return f.hauling(f.poolOf(d.Part(0).Resource), d.Request().StorageMB)
}

// staging returns what becomes of PEs while the data of the request are moved.
func (x *search) staging() Staging {
	if x.r.Task != nil {
		return Hold
	}
	return x.Staging
}

// lag returns how long tasks wait for data at pools, as planners over several ask for it; nil where
// nothing is moved. at is the places of the planned tasks in the workflow.
func (f *Finder) lag(w *berth.Workflow, pools []*pool, at []int) func(task, site int, placed func(task int) int) berth.Duration {
	hauls, index := HaulsOf(w), make(map[int]int, len(at))
	if hauls == nil {
		return nil
	}
	for i, task := range at {
		index[task] = i
	}
	return func(task, site int, placed func(task int) int) berth.Duration {
		megabytes := hauls.Megabytes(at[task], pools[site].id.Site, func(parent int) string {
			i, open := index[parent]
			if !open {
				return w.Tasks[parent].Site
			}
			if k := placed(i); k >= 0 {
				return pools[k].id.Site
			}
			return ""
		})
		return f.hauling(pools[site], megabytes)
	}
}
