package scenario

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// withNoise makes workloads of requests and their run times, which may be nil
// for all, or 0 for some: those run as long as they are given. Noise is on the
// run times.
func (o *Options) withNoise(made func(replication int) ([]berth.Request, []berth.Duration, error)) func(int) (*sim.Workload, error) {
	return func(replication int) (*sim.Workload, error) {
		requests, runs, err := made(replication)
		if err != nil {
			return nil, err
		}
		work := &sim.Workload{Requests: requests}
		if runs == nil && o.Noise == 0 {
			return work, nil
		}
		if work.Runs, err = runsOf(requests, runs, o.Noise > 0); err != nil {
			return nil, err
		}
		noise := workload.Noise{Amount: o.Noise, Seed: o.seed(replication)}
		noise.Apply(work.Runs)
		return work, nil
	}
}

// runsOf returns how long requests run: as the run times say, or as long as the
// longest part was given; 0 is as long as it was given for a moldable request,
// which noise cannot touch.
func runsOf(requests []berth.Request, runs []berth.Duration, noisy bool) ([]berth.Duration, error) {
	all := make([]berth.Duration, len(requests))
	for i := range requests {
		r := &requests[i]
		if slices.ContainsFunc(r.Parts, func(p berth.Part) bool { return len(p.Variants) > 1 }) {
			if noisy {
				return nil, berth.Errorf(berth.Invalid, "noise",
					"request %q is moldable, and each of its variants would run for another time", r.ID)
			}
			continue
		}
		for p := range r.Parts {
			all[i] = max(all[i], r.Parts[p].Variants[0].Duration)
		}
		if i < len(runs) && runs[i] > 0 {
			all[i] = runs[i]
		}
	}
	return all, nil
}

// withFailures adds to workloads the outages of a file, which are the same in
// every replication, and those that are drawn.
func (o *opener) withFailures(sites []berth.Site, made func(int) (*sim.Workload, error)) (func(int) (*sim.Workload, error), error) {
	var known []workload.Outage
	if o.Outages != "" {
		file, err := o.in.Outages(o.Outages, sites, workload.Options{Strict: o.Strict})
		if err != nil {
			return nil, err
		}
		o.in.Report(&file.Report)
		known = file.Outages
	}
	return func(replication int) (*sim.Workload, error) {
		work, err := made(replication)
		if err != nil || len(work.Requests) == 0 {
			return work, err
		}
		outages := slices.Values(known)
		if o.Failures.PEs > 0 {
			during := berth.Interval{Start: work.Requests[0].Arrival, End: work.Requests[len(work.Requests)-1].Arrival}
			failures := o.Failures
			failures.Seed = o.seed(replication)
			drawn, err := failures.Outages(sites, during)
			if err != nil {
				return nil, err
			}
			outages = workload.MergeWith(known, drawn)
		}
		work.Outages = func(yield func(sim.Outage) bool) {
			for o := range outages {
				if o.Until > 0 && !yield(sim.Outage(o)) { // else it was over when the engine's time begins
					return
				}
			}
		}
		return work, nil
	}, nil
}
