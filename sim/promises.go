package sim

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// checkPromises reports what may change a promise after it was given, where only promises are
// asked for.
func checkPromises(config *engine.Config, w *Workload) error {
	switch {
	case !w.Promises:
		return nil
	case w.Plain != nil || w.Runs != nil || w.Outages != nil || w.Flows != nil || w.Monitor != nil:
		return berth.Errorf(berth.Invalid, "promises", "beside more than requests; want requests alone")
	case config.Compress || config.Preempt || config.Immediate == engine.ImmediateQueue:
		return berth.Errorf(berth.Invalid, "promises", "where requests become jobs or promises move; want those that stand")
	case slices.ContainsFunc(w.Requests, func(r berth.Request) bool { return r.IsJob() || r.NoShow > 0 || r.Hold > 0 }):
		return berth.Errorf(berth.Invalid, "promises", "beside ordinary jobs, holds or a no-show; want requests that run as promised")
	}
	return nil
}

// count keeps how many requests wait for a decision.
func (d *driver) count(changes []change.Change) {
	for i := range changes {
		switch changes[i].Kind {
		case change.Queued:
			d.waiting++
		case change.Accepted, change.Refused:
			d.waiting--
		}
	}
}
