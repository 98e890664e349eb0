package site

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// Unit is what a site hands out one by one, so what a PE is.
type Unit string

// The units.
const (
	UnitNode Unit = "node"
	UnitCore Unit = "core"
)

// Description is what a site says about itself. Nodes and partitions are in the
// site's own order.
type Description struct {
	Cluster    string      `json:"cluster"` // the site's name for itself
	Manager    string      `json:"manager"` // "slurm", "local", …
	Version    string      `json:"version"` // of the manager
	Zone       string      `json:"zone"`    // of its people, as in the tz database; empty if unknown
	Nodes      []Node      `json:"nodes"`
	Partitions []Partition `json:"partitions,omitempty"`
	Rights     Rights      `json:"rights"`
	// Together says that all nodes are one pool, in which each kind of nodes is a class;
	// else each kind is a pool.
	Together bool `json:"together,omitempty"`
}

// Node is a machine of a site.
type Node struct {
	Name     string      `json:"name"`
	Cores    berth.Count `json:"cores"` // schedulable: hardware threads, if the site hands those out
	Sockets  int         `json:"sockets,omitempty"`
	MemoryMB int64       `json:"memory_mb,omitempty"` // in 10^6 bytes, rounded down
	Features []string    `json:"features,omitempty"`
	GRES     []GRES      `json:"gres,omitempty"`
	// Pool is that of the node under late binding, once it was divided.
	Pool string `json:"pool,omitempty"`
	// Gone says that the site no longer has it, or no longer as it was: it keeps
	// its place among the others, out of use.
	Gone bool `json:"gone,omitempty"`
}

// GRES is a countable thing of a node, such as its four GPUs of type a100.
type GRES struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"`
	Count int64  `json:"count"`
}

// Partition is a named set of nodes with limits. Zero limits are none.
type Partition struct {
	Name    string   `json:"name"`
	Nodes   []string `json:"nodes"`
	Default bool     `json:"default,omitempty"`
	Up      bool     `json:"up"`
	State   string   `json:"state,omitempty"`  // in the site's words, if it is not up
	Groups  []string `json:"groups,omitempty"` // only their members may use it; empty is everybody
	// Accounts and QOS are those under which it may be used; empty is all. DeniedAccounts and
	// DeniedQOS count where those are empty.
	Accounts       []string       `json:"accounts,omitempty"`
	QOS            []string       `json:"qos,omitempty"`
	DeniedAccounts []string       `json:"denied_accounts,omitempty"`
	DeniedQOS      []string       `json:"denied_qos,omitempty"`
	LimitsQOS      string         `json:"limits_qos,omitempty"` // whose limits hold for all jobs in it
	MaxTime        berth.Duration `json:"max_time,omitempty"`   // of one job
	MaxNodes       berth.Count    `json:"max_nodes,omitempty"`
}

// Rights is what Berth may do at a site.
type Rights struct {
	As      string `json:"as"`      // the identity under which it comes
	Reserve bool   `json:"reserve"` // make, change and release reservations
	Drain   bool   `json:"drain"`   // drain and resume nodes
	Submit  bool   `json:"submit"`  // run tasks
}

// After returns the description with the nodes of an earlier one of the same site
// in their old order, so that PEs keep their numbers and promises their nodes:
// what is new comes behind, and what is gone, or is so different now that it has another
// place, stays as Gone. A node whose kind is a pool has another place if it is of another
// kind; one of several kinds in a pool if it has another number of cores. changes says all
// in words. Neither description is written. Cost: O(n)
// for n nodes.
func (d *Description) After(before *Description) (now *Description, changes []string) {
	type key struct{ name, class string }
	divided := slices.ContainsFunc(before.Nodes, func(n Node) bool { return n.Pool != "" })
	keyOf := func(n *Node) key {
		if before.Together && !divided {
			return key{n.Name, strconv.Itoa(int(n.Cores))}
		}
		return key{n.Name, n.class()}
	}
	fresh := make(map[key]*Node, len(d.Nodes))
	names := make(map[string]bool, len(d.Nodes))
	for i := range d.Nodes {
		node := &d.Nodes[i]
		fresh[keyOf(node)], names[node.Name] = node, true
	}
	out := *d
	out.Together = before.Together
	out.Nodes = make([]Node, 0, len(d.Nodes))
	for i := range before.Nodes {
		old := before.Nodes[i]
		k := keyOf(&old)
		node := fresh[k]
		delete(fresh, k)
		switch {
		case node != nil && old.Gone:
			changes = append(changes, "node "+old.Name+" is back")
		case node == nil && !old.Gone && names[old.Name]:
			changes = append(changes, "node "+old.Name+" is no longer "+old.class())
		case node == nil && !old.Gone:
			changes = append(changes, "node "+old.Name+" is gone")
		case node != nil && node.class() != old.class():
			changes = append(changes, "node "+old.Name+" is "+node.class()+" now, and no longer "+old.class())
		}
		if node != nil {
			pool := old.Pool
			old = *node
			old.Pool = pool
		}
		old.Gone = node == nil
		out.Nodes = append(out.Nodes, old)
	}
	for i := range d.Nodes {
		node := &d.Nodes[i]
		if fresh[keyOf(node)] == node {
			changes = append(changes, "node "+node.Name+" is new, "+node.class())
			out.Nodes = append(out.Nodes, *node)
		}
	}
	return &out, changes
}

// Divide says of each node that has no pool yet in which it is under late binding: nodes of the
// same hardware and features in the same partitions are one. A node stays in its pool, since
// promises know its PEs by their numbers there: one that a change of the partitions takes out
// of a partition takes the whole pool out of it. It reports the partitions for which that is so, with such a pool each.
// Cost: O(n log n) for n nodes.
func (d *Description) Divide() (lost []string) {
	in := make(map[string][]string, len(d.Nodes)) // the partitions of a node
	for i := range d.Partitions {
		for _, node := range d.Partitions[i].Nodes {
			in[node] = append(in[node], d.Partitions[i].Name)
		}
	}
	kind := func(n *Node) string {
		return n.class() + " " + strings.Join(slices.Compact(slices.Sorted(slices.Values(in[n.Name]))), ",")
	}
	type pool struct {
		kind string // of its nodes; empty if they differ
		all  int
		of   map[string]int // how many of its nodes are in a partition
	}
	pools, names := map[string]*pool{}, []string{}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if n.Pool == "" {
			continue
		}
		p := pools[n.Pool]
		if p == nil {
			p = &pool{of: map[string]int{}}
			pools[n.Pool], names = p, append(names, n.Pool)
		}
		if n.Gone {
			continue
		}
		if p.all == 0 {
			p.kind = kind(n)
		} else if p.kind != kind(n) {
			p.kind = ""
		}
		p.all++
		for _, partition := range in[n.Name] {
			p.of[partition]++
		}
	}
	for _, name := range names {
		for _, partition := range slices.Sorted(maps.Keys(pools[name].of)) {
			if pools[name].of[partition] < pools[name].all {
				lost = append(lost, partition+" of pool "+name)
			}
		}
	}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if n.Pool != "" || n.Gone {
			continue
		}
		at := slices.IndexFunc(names, func(name string) bool { return pools[name].kind == kind(n) })
		if at < 0 {
			name := n.class()
			for k := 2; pools[name] != nil; k++ {
				name = n.class() + "." + strconv.Itoa(k)
			}
			pools[name], names = &pool{kind: kind(n)}, append(names, name)
			at = len(names) - 1
		}
		n.Pool = names[at]
	}
	return lost
}

// Horizon returns how long before its start a reservation on the nodes must be
// made real, so that no job started before can reach into it: the longest time
// limit of any partition that has one of the nodes, plus the margin. Endless if
// such a partition has no limit; then only making it at once is safe. No nodes
// means all. A node in no partition adds nothing. Cost: O(nodes of partitions).
func (d *Description) Horizon(nodes []string, margin berth.Duration) berth.Duration {
	wanted := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		wanted[node] = true
	}
	longest := berth.Duration(0)
	for i := range d.Partitions {
		p := &d.Partitions[i]
		touches := len(nodes) == 0
		for _, node := range p.Nodes {
			touches = touches || wanted[node]
		}
		switch {
		case !touches:
		case p.MaxTime == 0:
			return berth.Endless
		default:
			longest = max(longest, p.MaxTime)
		}
	}
	return longest + margin
}
