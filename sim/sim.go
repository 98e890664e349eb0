// Package sim drives the engine with a virtual clock: it submits a workload's
// requests at their arrival, wakes the engine when it wants to be woken, and
// writes down what became of each request as a schedule. It decides nothing
// and reads no real clock.
package sim

import (
	"context"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// Config says which machine to simulate under which policies.
type Config struct {
	Site      string        // name of the one site; empty is "site"
	PEs       berth.Count   // its size
	Placement string        // a name of policy.Placements
	Binding   berth.Binding // early or late
	Horizon   string        // engine.HorizonCapped (the empty string) or engine.HorizonUnbounded
	Calendar  string        // a name of calendar.Forms; empty is the first
	Choice    policy.Choice // among variants; empty is the first of policy.Choices
}

// DefaultSite is the site's name where none is given.
const DefaultSite = "site"

// engineConfig returns the engine's configuration: one site of one pool.
func (c *Config) engineConfig() engine.Config {
	site := c.Site
	if site == "" {
		site = DefaultSite
	}
	return engine.Config{
		Sites: []berth.Site{{
			Name:  site,
			Pools: []berth.Pool{{Name: "pool", PEs: c.PEs, Binding: c.Binding}},
		}},
		Place: c.Placement, Choice: c.Choice, Horizon: c.Horizon, Calendar: c.Calendar,
	}
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
func Run(ctx context.Context, config Config, requests []berth.Request, progress func(done int)) ([]berth.Line, error) {
	e, err := engine.New(config.engineConfig())
	if err != nil {
		return nil, err
	}
	r := newRecorder(requests)
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
