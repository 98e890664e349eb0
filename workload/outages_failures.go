package workload

import (
	"math"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/stream"
)

// Failures draws the outages of nodes that fail and are repaired: each node of
// each pool, independent of all others, works for a time that is exponentially
// distributed with mean MTBF, is down for one with mean MTTR, and so on. Times
// are rounded to whole seconds, at least 1.
type Failures struct {
	MTBF, MTTR berth.Duration
	// PEs is the size of a node: PEs 0 to PEs−1 of a pool fail together, and so
	// do the next ones; what is left at the end is a smaller node.
	PEs  berth.Count
	Seed uint64 // of the draws; 0 is a seed
}

// maxFailures bounds how many outages are expected of one call: more would fill
// the memory, since each takes about 2 KB of a simulation.
const maxFailures = 1_000_000

// Validate reports what cannot be right, as an *berth.Error with code Invalid.
func (f *Failures) Validate() error {
	switch {
	case f.MTBF < 1 || f.MTBF >= berth.TimeLimit:
		return berth.Errorf(berth.Invalid, "failures", "a mean time between failures of %d s; it must lie between 1 s and 2^42 s", f.MTBF)
	case f.MTTR < 1 || f.MTTR >= berth.TimeLimit:
		return berth.Errorf(berth.Invalid, "failures", "a mean time to repair of %d s; it must lie between 1 s and 2^42 s", f.MTTR)
	case f.PEs < 1 || f.PEs > berth.MaxPEs:
		return berth.Errorf(berth.Invalid, "failures", "nodes of %d PEs; 1 to %d are possible", f.PEs, berth.MaxPEs)
	}
	return nil
}

// Outages returns the failures that begin during the interval, in the order of
// MergeOutages; all nodes work at its start. A node's draws depend on the seed,
// the names of its site and pool and its number alone. An error of code Invalid
// says that a setting cannot be right, or that there would be too many.
// Cost: O(n log n) for n outages and nodes.
func (f *Failures) Outages(sites []berth.Site, during berth.Interval) ([]Outage, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	nodes := 0.0
	for i := range sites {
		for _, pool := range sites[i].Pools {
			nodes += math.Ceil(float64(pool.PEs) / float64(f.PEs))
		}
	}
	if expected := nodes * float64(during.Length()) / float64(f.MTBF+f.MTTR); expected > maxFailures {
		return nil, berth.Errorf(berth.Invalid, "failures",
			"about %.0f are to be expected of %.0f nodes in %d s, and at most %d are possible; want longer times, larger nodes or fewer jobs",
			expected, nodes, during.Length(), maxFailures)
	}
	var outages []Outage
	for i := range sites {
		for _, pool := range sites[i].Pools {
			id := berth.PoolID(sites[i].Name, pool.Name)
			draws := stream.New(f.Seed, "failures "+id.Site+"/"+id.Name).Source()
			for node, lo := uint32(0), berth.Count(0); lo < pool.PEs; node, lo = node+1, lo+f.PEs {
				draws.SeekBlock(node)
				pes := berth.NewPESet(berth.Run{Lo: berth.PE(lo), Hi: berth.PE(min(lo+f.PEs, pool.PEs))})
				at := during.Start.Add(spell(draws, f.MTBF))
				for at < during.End {
					up := at.Add(spell(draws, f.MTTR))
					if !up.Valid() {
						up = berth.Forever
					}
					outages = append(outages, Outage{Resource: id, PEs: pes, From: at, Until: up})
					at = up.Add(spell(draws, f.MTBF))
				}
			}
		}
	}
	slices.SortFunc(outages, compareOutages) // none overlap: a node is up for a second at least
	return outages, nil
}

// spell draws how many whole seconds something lasts, at least 1.
func spell(draws *stream.Source, mean berth.Duration) berth.Duration {
	u := float64(draws.Uint64()<<11>>11) / (1 << 53)
	// Below 2^42 times 37, the largest logarithm of a draw: far below Forever.
	return berth.Duration(max(1, math.Floor(exponential(float64(mean), u)+0.5)))
}
