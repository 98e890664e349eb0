// Package sim drives the engine with a virtual clock: it submits a workload's
// requests at their arrival, wakes the engine when it wants to be woken, and
// writes down what became of each request as a schedule. It decides nothing
// and reads no real clock.
package sim

import (
	"context"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// DefaultSite is the site's name where no sites file names it.
const DefaultSite = "site"

// OnePool returns the sites of a machine that is a single pool.
func OnePool(pes berth.Count, binding berth.Binding) []berth.Site {
	return []berth.Site{{
		Name:  DefaultSite,
		Pools: []berth.Pool{{Name: "pool", PEs: pes, Binding: binding}},
	}}
}

// progressEvery is how many requests are decided between two calls of the
// progress function and two looks at the context.
const progressEvery = 1024

// Run simulates the requests, which must be sorted by arrival, until the last
// reservation has ended. It returns a line for every request in that order,
// and for a request of k parts k lines with parts 1..k. progress, if not nil,
// hears now and then how many requests are decided. Run ends early, with the
// context's error, when the context does; any other error is of code Invalid
// and concerns the configuration or a request.
func Run(ctx context.Context, config engine.Config, requests []berth.Request, progress func(done int)) ([]berth.Line, error) {
	e, err := engine.New(config)
	if err != nil {
		return nil, err
	}
	r := newRecorder(&config, requests)
	for i := range requests {
		if i%progressEvery == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if progress != nil {
				progress(i)
			}
		}
		request := &requests[i]
		changes, _, err := e.Apply(max(request.Arrival, e.Now()), engine.Event{Kind: engine.Submit, Request: request})
		r.record(changes)
		if err == nil && i > 0 && request.Arrival < requests[i-1].Arrival {
			err = berth.Errorf(berth.Invalid, "arrival", "%d is before the request ahead of it; requests must be sorted by arrival", request.Arrival)
		}
		if err != nil {
			return nil, requestError(request, err)
		}
	}
	for at, due := e.Next(); due; at, due = e.Next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		changes, _, err := e.Apply(at, engine.Event{Kind: engine.Wake})
		if err != nil {
			return nil, err
		}
		r.record(changes)
	}
	if progress != nil {
		progress(len(requests))
	}
	return r.lines, nil
}
