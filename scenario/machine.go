package scenario

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/sites"
)

// Machine is what is simulated: the sites of a file, or one pool. The zero value is one
// pool.
type Machine struct {
	File *sites.File // nil for one pool
	// rebind has the bindings of a run instead of those of the file.
	rebind bool
}

// PEs returns the size of the largest pool, which no job may exceed, and of all pools
// together; 0 without a sites file.
func (m *Machine) PEs() (largest, all berth.Count) {
	if m.File == nil {
		return 0, 0
	}
	for i := range m.File.Sites {
		for _, pool := range m.File.Sites[i].Pools {
			largest = max(largest, pool.PEs)
			all += pool.PEs
		}
	}
	return largest, all
}

// Sites returns the sites with the binding of a run: those of the sites file,
// whose own bindings stand unless others are given, or one pool of pes.
func (m *Machine) Sites(pes berth.Count, binding berth.Binding) []berth.Site {
	if m.File == nil {
		return sim.OnePool(pes, binding)
	}
	list := make([]berth.Site, len(m.File.Sites))
	for i, site := range m.File.Sites {
		if m.rebind {
			pools := make([]berth.Pool, len(site.Pools))
			for k, pool := range site.Pools {
				pool.Binding = binding
				pools[k] = pool
			}
			site.Pools = pools
		}
		list[i] = site
	}
	return list
}

// Mixed is the binding told of a run on sites whose pools bind differently.
const Mixed = "mixed"

// binding returns the one binding of the sites of a file, or Mixed.
func (m *Machine) binding() string {
	var all berth.Binding
	for i := range m.File.Sites {
		for _, pool := range m.File.Sites[i].Pools {
			if all != "" && pool.Binding != all {
				return Mixed
			}
			all = pool.Binding
		}
	}
	return string(all)
}

// Pools returns how many pools the machine has.
func (m *Machine) Pools() int {
	if m.File == nil {
		return 1
	}
	n := 0
	for i := range m.File.Sites {
		n += len(m.File.Sites[i].Pools)
	}
	return n
}

// Links reports whether moving data takes time.
func (m *Machine) Links() bool {
	if m.File == nil {
		return false
	}
	return m.File.Uplink > 0 || slices.ContainsFunc(m.File.Sites, func(s berth.Site) bool { return s.Link != berth.Link{} })
}
