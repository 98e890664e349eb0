package workload

import (
	"container/heap"
	"iter"
	"math"

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
// the memory, since each has a line in the schedule of a simulation.
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
// MergeOutages; all nodes work at its start. They are drawn as they are asked for,
// and the same each time. A node's draws depend on the seed, the names of its site
// and pool and its number alone. An error of code Invalid says that a setting
// cannot be right, that no pool has as many PEs as a node, or that there would be too many failures.
// Cost: O(log n) an outage and
// O(n) memory, for n nodes.
func (f *Failures) Outages(sites []berth.Site, during berth.Interval) (iter.Seq[Outage], error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	nodes, largest := 0.0, berth.Count(0)
	for i := range sites {
		for _, pool := range sites[i].Pools {
			largest = max(largest, pool.PEs)
			nodes += math.Ceil(float64(pool.PEs) / float64(f.PEs))
		}
	}
	if f.PEs > largest {
		return nil, berth.Errorf(berth.Invalid, "failures", "nodes of %d PEs; the largest pool has %d", f.PEs, largest)
	}
	if expected := nodes * float64(during.Length()) / float64(f.MTBF+f.MTTR); expected > maxFailures {
		return nil, berth.Errorf(berth.Invalid, "failures",
			"about %.0f are to be expected of %.0f nodes in %d s, and at most %d are possible; want longer times, larger nodes or fewer jobs",
			expected, nodes, during.Length(), maxFailures)
	}
	of := *f
	return func(yield func(Outage) bool) {
		failing := of.nodes(sites, during)
		for len(failing) > 0 {
			first := &failing[0]
			o := of.outage(first)
			if first.at = o.Until.Add(spell(&first.draws, of.MTBF)); first.at >= during.End {
				heap.Pop(&failing)
			} else {
				heap.Fix(&failing, 0)
			}
			if !yield(o) {
				return
			}
		}
	}, nil
}

// failingNode is a node that works until it fails.
type failingNode struct {
	resource berth.ResourceID
	lo, hi   berth.PE
	at       berth.Time // when it fails
	draws    stream.Source
}

// failingNodes is a heap of nodes by when they fail; those that fail together are
// in the order of compareOutages.
type failingNodes []failingNode

func (h failingNodes) Len() int      { return len(h) }
func (h failingNodes) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h failingNodes) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.resource != b.resource:
		return a.resource.Less(b.resource)
	}
	return a.lo < b.lo
}
func (h *failingNodes) Push(x any) { *h = append(*h, x.(failingNode)) }
func (h *failingNodes) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// nodes returns the nodes that fail during the interval, as a heap.
func (f *Failures) nodes(sites []berth.Site, during berth.Interval) failingNodes {
	var failing failingNodes
	for i := range sites {
		for _, pool := range sites[i].Pools {
			id := berth.PoolID(sites[i].Name, pool.Name)
			draws := stream.New(f.Seed, "failures "+id.Site+"/"+id.Name).Source()
			for node, lo := uint32(0), berth.Count(0); lo < pool.PEs; node, lo = node+1, lo+f.PEs {
				draws.SeekBlock(node)
				n := failingNode{resource: id, lo: berth.PE(lo), hi: berth.PE(min(lo+f.PEs, pool.PEs)), draws: *draws}
				if n.at = during.Start.Add(spell(&n.draws, f.MTBF)); n.at < during.End {
					failing = append(failing, n)
				}
			}
		}
	}
	heap.Init(&failing)
	return failing
}

// outage draws how long the repair of a node takes.
func (f *Failures) outage(n *failingNode) Outage {
	up := n.at.Add(spell(&n.draws, f.MTTR))
	if !up.Valid() {
		up = berth.Forever
	}
	return Outage{Resource: n.resource, PEs: berth.NewPESet(berth.Run{Lo: n.lo, Hi: n.hi}), From: n.at, Until: up}
}

// spell draws how many whole seconds something lasts, at least 1.
func spell(draws *stream.Source, mean berth.Duration) berth.Duration {
	u := float64(draws.Uint64()<<11>>11) / (1 << 53)
	// Below 2^42 times 37, the largest logarithm of a draw: far below Forever.
	return berth.Duration(max(1, math.Floor(exponential(float64(mean), u)+0.5)))
}
