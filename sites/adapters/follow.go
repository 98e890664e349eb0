package adapters

import (
	"context"
	"reflect"
	"time"

	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/sites"
)

// follower asks a cluster what it is while the service runs, and has the service take in what
// has changed: nodes that are new, gone or made otherwise, and partitions.
type follower struct {
	set      *Set
	name     string
	adapter  *sites.Adapter
	at       site.Observer
	used     *site.Description // what the service knows
	answered bool              // the cluster has, since the start
}

// follow asks in intervals, and at once when a look shows other nodes than those that are
// known. What a look goes on to show although nothing comes of it is left to the intervals.
func (f *follower) follow(ctx context.Context, m *service.Meantime) {
	tick := time.NewTicker(f.set.Again)
	defer tick.Stop()
	for changed := m.Changed; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			changed = m.Changed
		case <-changed:
			changed = nil
		}
		if f.ask(ctx, m) {
			changed = m.Changed
		}
	}
}

// ask asks once, and reports whether anything was taken in.
func (f *follower) ask(ctx context.Context, m *service.Meantime) bool {
	log := f.set.Log.With("site", f.name)
	d, err := f.at.Describe(ctx)
	if err != nil {
		return false // the reader of it says so
	}
	d, changes := d.After(f.used)
	first := !f.answered
	f.answered = true
	if len(changes) == 0 && reflect.DeepEqual(d.Partitions, f.used.Partitions) {
		if first {
			log.Info("site answers, and is as it was", "adapter", f.adapter.Kind)
		}
		return false
	}
	f.set.divide(f.name, f.adapter, d)
	as, layout, err := f.set.imported(f.name, f.adapter, d)
	if err == nil { // before a promise names a node that is new
		err = f.set.remember(f.name, d)
	}
	if err == nil {
		err = m.Take(ctx, as, layout)
	}
	if err != nil {
		if ctx.Err() == nil {
			log.Error("site is no longer as it was, which the service cannot take in", "changes", changes, "error", err)
		}
		return false
	}
	f.used = d
	for _, change := range changes {
		log.Warn("site has changed, which the service has taken in", "change", change)
	}
	if len(changes) == 0 {
		log.Info("partitions of a site have changed, which the service has taken in")
	}
	return true
}
