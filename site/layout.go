package site

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
)

// Layout says which PEs of which pool are which nodes or cores of a site. It is
// made once and not written again.
type Layout struct {
	unit  Unit
	pools map[string]*poolLayout
	place map[string]nodePlace   // by node that is not gone
	gone  map[string][]berth.Run // PEs of nodes that are, by pool
}

type poolLayout struct {
	nodes []*Node
	cores berth.Count // PEs of one node
}

type nodePlace struct {
	pool  string
	first berth.PE
}

// Import makes pools and partitions of a description, for a site called name
// whose PEs are the units given. Nodes of the same hardware and features are one
// pool, named after them, such as 64c-256000mb-gpu4; PEs follow the order of the
// nodes. A partition with nodes in several pools is a partition of each, under
// the same name. Errors are of code Invalid: a description without nodes, or a
// pool too large.
func Import(name string, d *Description, unit Unit, binding berth.Binding) (berth.Site, *Layout, error) {
	if len(d.Nodes) == 0 {
		return berth.Site{}, nil, berth.Errorf(berth.Invalid, "nodes", "site %s has none", name)
	}
	s := berth.Site{Name: name, Managed: true}
	layout := &Layout{unit: unit, pools: map[string]*poolLayout{}, place: make(map[string]nodePlace, len(d.Nodes)), gone: map[string][]berth.Run{}}
	for i := range d.Nodes {
		node := &d.Nodes[i]
		pool := layout.pools[node.class()]
		if pool == nil {
			pool = &poolLayout{cores: 1}
			if unit == UnitCore {
				pool.cores = node.Cores
			}
			layout.pools[node.class()] = pool
			s.Pools = append(s.Pools, berth.Pool{Name: node.class(), Binding: binding, Node: node.perPE(unit)})
		}
		if int64(len(pool.nodes)+1)*int64(pool.cores) > berth.MaxPEs || pool.cores < 1 {
			return berth.Site{}, nil, berth.Errorf(berth.Invalid, "nodes", "pool %s of site %s: %d nodes of %d cores; want 1 to %d PEs",
				node.class(), name, len(pool.nodes)+1, node.Cores, berth.MaxPEs)
		}
		first := berth.PE(len(pool.nodes)) * berth.PE(pool.cores)
		if node.Gone {
			layout.gone[node.class()] = append(layout.gone[node.class()], berth.Run{Lo: first, Hi: first + berth.PE(pool.cores)})
		} else {
			layout.place[node.Name] = nodePlace{pool: node.class(), first: first}
		}
		pool.nodes = append(pool.nodes, node)
	}
	for i := range s.Pools {
		pool := layout.pools[s.Pools[i].Name]
		s.Pools[i].PEs = berth.Count(len(pool.nodes)) * pool.cores
	}
	s.Partitions = layout.partitions(s.Pools, d.Partitions)
	return s, layout, nil
}

// Gone returns the PEs of nodes that the site no longer has, by pool: they are
// out of use for good. Cost: O(n log n) for n such nodes.
func (l *Layout) Gone() map[string]berth.PESet {
	sets := make(map[string]berth.PESet, len(l.gone))
	for pool, runs := range l.gone {
		sets[pool] = berth.NewPESet(runs...)
	}
	return sets
}

// Unit returns what a PE is.
func (l *Layout) Unit() Unit { return l.unit }

// class names the hardware and the features of a node.
func (n *Node) class() string {
	text := fmt.Sprintf("%dc-%dmb", n.Cores, n.MemoryMB)
	if n.Sockets > 1 {
		text = fmt.Sprintf("%ds-%s", n.Sockets, text)
	}
	for _, g := range n.GRES {
		text += fmt.Sprintf("-%s%s%d", g.Name, g.Type, g.Count)
	}
	for _, f := range slices.Sorted(slices.Values(n.Features)) {
		text += "-" + f
	}
	return strings.Map(func(c rune) rune {
		if c < 0x80 && (isAlphanumeric(byte(c)) || strings.ContainsRune(".-_", c)) {
			return c
		}
		return '-'
	}, text)
}

// perPE is what one PE of the node is made of.
func (n *Node) perPE(unit Unit) berth.Node {
	if unit == UnitCore {
		return berth.Node{Cores: 1, MemoryMB: n.MemoryMB / max(1, int64(n.Cores))}
	}
	node := berth.Node{Sockets: max(1, n.Sockets), MemoryMB: n.MemoryMB}
	node.Cores = int(n.Cores) / node.Sockets
	for _, g := range n.GRES {
		if g.Name == "gpu" {
			node.Accelerators += int(min(g.Count, berth.MaxAccelerators))
		}
	}
	return node
}

func (l *Layout) partitions(pools []berth.Pool, partitions []Partition) []berth.Partition {
	var all []berth.Partition
	for i := range partitions {
		p := &partitions[i]
		byPool := l.PEs(p.shares())
		for k := range pools {
			pes, has := byPool[pools[k].Name]
			if !has {
				continue
			}
			out := berth.Partition{Name: p.Name, Pool: pools[k].Name, MaxDuration: p.MaxTime, Default: p.Default}
			if pes.Count() < pools[k].PEs && pools[k].Binding == berth.Early {
				out.PEs = pes
			}
			if p.MaxNodes > 0 {
				out.MaxNPE = p.MaxNodes * l.pools[pools[k].Name].cores
			}
			all = append(all, out)
		}
	}
	return all
}

func (p *Partition) shares() []Share {
	shares := make([]Share, len(p.Nodes))
	for i, node := range p.Nodes {
		shares[i].Node = node
	}
	return shares
}

// PEs returns the PEs of the shares by pool. Nodes that the layout does not know
// are left out. Cost: O(n log n) for n shares.
func (l *Layout) PEs(shares []Share) map[string]berth.PESet {
	runs := map[string][]berth.Run{}
	for _, share := range shares {
		at, known := l.place[share.Node]
		if !known {
			continue
		}
		size := berth.PE(l.pools[at.pool].cores)
		if l.unit == UnitNode || share.Cores.Empty() {
			runs[at.pool] = append(runs[at.pool], berth.Run{Lo: at.first, Hi: at.first + size})
			continue
		}
		for _, r := range share.Cores.Runs() {
			runs[at.pool] = append(runs[at.pool], berth.Run{Lo: at.first + min(r.Lo, size), Hi: at.first + min(r.Hi, size)})
		}
	}
	sets := make(map[string]berth.PESet, len(runs))
	for pool, r := range runs {
		sets[pool] = berth.NewPESet(r...)
	}
	return sets
}

// Shares returns the nodes, or cores of nodes, that PEs of a pool are, in their
// order, and false if the pool has no such PE. A node of which all cores are
// meant is a share of the whole node.
func (l *Layout) Shares(pool string, pes berth.PESet) ([]Share, bool) {
	p := l.pools[pool]
	if p == nil || int64(pes.Max()) >= int64(len(p.nodes))*int64(p.cores) {
		return nil, false
	}
	size := berth.PE(p.cores)
	var shares []Share
	for _, r := range pes.Runs() {
		for lo := r.Lo; lo < r.Hi; {
			node := lo / size
			hi := min(r.Hi, (node+1)*size)
			part := berth.NewPESet(berth.Run{Lo: lo - node*size, Hi: hi - node*size})
			if last := len(shares) - 1; last >= 0 && shares[last].Node == p.nodes[node].Name {
				shares[last].Cores = berth.NewPESet(append(slices.Clone(shares[last].Cores.Runs()), part.Runs()...)...)
			} else {
				shares = append(shares, Share{Node: p.nodes[node].Name, Cores: part})
			}
			lo = hi
		}
	}
	for i := range shares {
		if shares[i].Cores.Count() == p.cores {
			shares[i].Cores = berth.PESet{}
		}
	}
	return shares, true
}
