package scenario

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// withNoise makes workloads of requests and their run times, which may be nil
// for all, or 0 for some: those run as long as they are given. Noise is on the
// run times.
func (o *Options) withNoise(made func(replication int) (*sim.Workload, error)) func(int) (*sim.Workload, error) {
	return func(replication int) (*sim.Workload, error) {
		work, err := made(replication)
		if err != nil || work.Runs == nil && o.Noise == 0 {
			return work, err
		}
		if work.Runs, err = runsOf(work, o.Noise > 0); err != nil {
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
func runsOf(work *sim.Workload, noisy bool) ([]berth.Duration, error) {
	all := make([]berth.Duration, work.Len())
	told := func(i int) berth.Duration {
		if work.Runs == nil {
			return 0
		}
		return work.Runs[i]
	}
	for i := range work.Plain {
		all[i] = cmp.Or(told(i), work.Plain[i].Duration)
	}
	for i := range work.Requests {
		r := &work.Requests[i]
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
		all[i] = cmp.Or(told(i), all[i])
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
		if err != nil || work.Len() == 0 {
			return work, err
		}
		outages := slices.Values(known)
		if o.Failures.PEs > 0 {
			during := berth.Interval{Start: work.Arrival(0), End: work.Arrival(work.Len() - 1)}
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
