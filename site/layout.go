package site

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/berth-hpc/berth"
)

// Layout maps the PEs of pools to nodes or cores of a site. It is
// made once and not written again.
type Layout struct {
	unit  Unit
	pools map[string]*poolLayout
	place map[string]nodePlace   // by node that is not gone
	gone  map[string][]berth.Run // PEs of nodes that are, by pool
}

type poolLayout struct {
	nodes []*Node
	first []berth.PE // of each node, and behind the last one how many there are
}

// cores returns how many PEs a node is.
func (p *poolLayout) cores(node int) berth.PE { return p.first[node+1] - p.first[node] }

type nodePlace struct {
	pool string
	node int // its place among those of the pool
}

// Together is the name of the pool of a site whose nodes are all in one.
const Together = "nodes"

// Import makes pools and partitions of a description, for a site called name
// whose PEs are the units given. Nodes of the same hardware and features are one class,
// named after them, such as 64c-256000mb-gpu4. If the description says so, all nodes are
// one pool of these classes; else each class is a pool. Under late binding, where all PEs of a
// pool are alike, the description says which nodes are a pool (Description.Divide). PEs follow the order of the
// nodes. A partition with nodes in several pools is a partition of each, under
// the same name. Errors are of code Invalid: a description without nodes, or a
// pool too large.
func Import(name string, d *Description, unit Unit, binding berth.Binding) (berth.Site, *Layout, error) {
	if len(d.Nodes) == 0 {
		return berth.Site{}, nil, berth.Errorf(berth.Invalid, "nodes", "site %s has none", name)
	}
	s := berth.Site{Name: name, Managed: true}
	layout := &Layout{unit: unit, pools: map[string]*poolLayout{}, place: make(map[string]nodePlace, len(d.Nodes)), gone: map[string][]berth.Run{}}
	classes := map[string][]berth.Run{} // of the only pool
	together := d.Together && binding == berth.Early
	for i := range d.Nodes {
		node := &d.Nodes[i]
		class, size := node.class(), berth.Count(1)
		if unit == UnitCore {
			size = node.Cores
		}
		in := class
		switch {
		case binding == berth.Late && node.Pool != "":
			in = node.Pool
		case together:
			in = Together
		}
		pool := layout.pools[in]
		if pool == nil {
			pool = &poolLayout{first: []berth.PE{0}}
			layout.pools[in] = pool
			s.Pools = append(s.Pools, berth.Pool{Name: in, Binding: binding})
			if !together {
				s.Pools[len(s.Pools)-1].Node, s.Pools[len(s.Pools)-1].Features = node.perPE(unit), node.words()
			}
		}
		first := pool.first[len(pool.nodes)]
		if int64(first)+int64(size) > berth.MaxPEs || size < 1 {
			return berth.Site{}, nil, berth.Errorf(berth.Invalid, "nodes", "pool %s of site %s: %d nodes, the last one of %d cores; want 1 to %d PEs",
				in, name, len(pool.nodes)+1, node.Cores, berth.MaxPEs)
		}
		run := berth.Run{Lo: first, Hi: first + berth.PE(size)}
		if node.Gone {
			layout.gone[in] = append(layout.gone[in], run)
		} else {
			layout.place[node.Name] = nodePlace{pool: in, node: len(pool.nodes)}
		}
		pool.nodes, pool.first = append(pool.nodes, node), append(pool.first, run.Hi)
		if together {
			if classes[class] == nil {
				s.Pools[0].Classes = append(s.Pools[0].Classes, berth.Class{Name: class, Node: node.perPE(unit), Features: node.words()})
			}
			classes[class] = append(classes[class], run)
		}
	}
	for i := range s.Pools {
		pool := layout.pools[s.Pools[i].Name]
		s.Pools[i].PEs = berth.Count(pool.first[len(pool.nodes)])
		for k := range s.Pools[i].Classes {
			c := &s.Pools[i].Classes[k]
			c.PEs = berth.NewPESet(classes[c.Name]...)
		}
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

// Has reports whether the site has a node of a name.
func (l *Layout) Has(node string) bool {
	_, has := l.place[node]
	return has
}

// Len returns how many nodes the site has.
func (l *Layout) Len() int { return len(l.place) }

// Nodes returns the names of the nodes that the site has, in order. Cost: O(n log n).
func (l *Layout) Nodes() []string { return slices.Sorted(maps.Keys(l.place)) }

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

// words returns the features of the node that a constraint can name.
func (n *Node) words() []string {
	var words []string
	for _, f := range slices.Compact(slices.Sorted(slices.Values(n.Features))) {
		if c, err := berth.ParseConstraint(f); err == nil && c.Alternatives() == 1 && !strings.ContainsAny(f, "&|()[]") {
			words = append(words, f)
		}
	}
	return words
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
			gone := berth.NewPESet(l.gone[pools[k].Name]...)
			switch divided := l.pools[pools[k].Name].nodes[0].Pool != ""; {
			case pools[k].Binding == berth.Early && pes.Count() < pools[k].PEs:
				out.PEs = pes
			case pools[k].Binding == berth.Late && divided && pes.Or(gone).Count() < pools[k].PEs:
				continue // whether a promise gets PEs of it is not known when it is made
			}
			if p.MaxNodes > 0 {
				out.MaxNPE = l.pools[pools[k].Name].most(p.MaxNodes)
			}
			all = append(all, out)
		}
	}
	return all
}

// most returns the most PEs that n nodes of the pool are.
func (p *poolLayout) most(nodes berth.Count) berth.Count {
	largest := berth.PE(0)
	for i := range p.nodes {
		largest = max(largest, p.cores(i))
	}
	return berth.Count(min(int64(nodes)*int64(largest), berth.MaxPEs))
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
		pool := l.pools[at.pool]
		first, size := pool.first[at.node], pool.cores(at.node)
		if l.unit == UnitNode || share.Cores.Empty() {
			runs[at.pool] = append(runs[at.pool], berth.Run{Lo: first, Hi: first + size})
			continue
		}
		for _, r := range share.Cores.Runs() {
			runs[at.pool] = append(runs[at.pool], berth.Run{Lo: first + min(r.Lo, size), Hi: first + min(r.Hi, size)})
		}
	}
	sets := make(map[string]berth.PESet, len(runs))
	for pool, r := range runs {
		sets[pool] = berth.NewPESet(r...)
	}
	return sets
}

// Shares returns the nodes, or cores of nodes, that PEs of a pool are, in their
// order, and false if the pool has no such PE. A node whose cores are all
// meant is a share of the whole node.
func (l *Layout) Shares(pool string, pes berth.PESet) ([]Share, bool) {
	p := l.pools[pool]
	if p == nil || pes.Max() >= p.first[len(p.nodes)] {
		return nil, false
	}
	var shares []Share
	var whole []bool // all cores of a share's node are meant
	for _, r := range pes.Runs() {
		node := sort.Search(len(p.nodes), func(i int) bool { return p.first[i+1] > r.Lo })
		for lo := r.Lo; lo < r.Hi; node++ {
			first, size := p.first[node], p.cores(node)
			hi := min(r.Hi, first+size)
			part := berth.NewPESet(berth.Run{Lo: lo - first, Hi: hi - first})
			last := len(shares) - 1
			if last >= 0 && shares[last].Node == p.nodes[node].Name {
				part = shares[last].Cores.Or(part)
				shares, whole = shares[:last], whole[:last]
			}
			shares, whole = append(shares, Share{Node: p.nodes[node].Name, Cores: part}), append(whole, part.Count() == berth.Count(size))
			lo = hi
		}
	}
	for i := range shares {
		if whole[i] {
			shares[i].Cores = berth.PESet{}
		}
	}
	return shares, true
}
