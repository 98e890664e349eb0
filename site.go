package berth

import (
	"cmp"
	"strings"
)

// StandardSpeed is the speed of a standard PE: durations are given for it.
const StandardSpeed Speed = 1000

// Speed is how fast a PE is, in thousandths of a standard PE.
type Speed int32

// Scale returns how long work of d standard seconds takes at the speed, in
// whole seconds rounded up, at least 1. The zero Speed is the standard one.
func (s Speed) Scale(d Duration) Duration {
	if s == 0 || s == StandardSpeed {
		return d
	}
	return max(1, (d*Duration(StandardSpeed)+Duration(s)-1)/Duration(s))
}

// Work returns how much work, in standard seconds rounded down, is done at the
// speed in a time.
func (s Speed) Work(d Duration) Duration {
	if s == 0 || s == StandardSpeed {
		return d
	}
	return d * Duration(s) / Duration(StandardSpeed)
}

// Site is a cluster: pools of PEs, the partitions that limit their use, and
// what the nodes and the site as a whole offer.
type Site struct {
	Name       string      `json:"name"`
	Pools      []Pool      `json:"pools"`
	Partitions []Partition `json:"partitions,omitempty"`
	Software   []Software  `json:"software,omitempty"`
	// StorageMB is the scratch space of the site in 10^6 bytes; 0 is unknown
	// and not checked.
	StorageMB int64 `json:"storage_mb,omitempty"`
	Link      Link  `json:"link,omitzero"`
	// Managed sites have an adapter that carries out effects: what is promised
	// there is emitted as effects and stays in the outbox until settled.
	Managed bool `json:"managed,omitempty"`
}

// Pool is a set of PEs with one calendar, on which whatever runs is equally fast.
type Pool struct {
	Name    string  `json:"name"`
	PEs     Count   `json:"pes"`
	Binding Binding `json:"binding"`
	Speed   Speed   `json:"speed,omitempty"` // 0 is the standard speed
	// Node is what all PEs are made of, unless the pool has classes.
	Node Node `json:"node,omitzero"`
	// Classes say which PEs are made of what, each PE in one class; without any, all PEs
	// are alike. They need early binding, since which PEs a promise gets decides whether
	// others find theirs.
	Classes []Class `json:"classes,omitempty"`
	// Features are what a constraint may ask for where there are no classes.
	Features []string `json:"features,omitempty"`
	// NameAhead, of a pool that binds late, is how long before its start a promise gets the
	// numbers of its PEs; 0 is at the start.
	NameAhead Duration `json:"name_ahead,omitempty"`
}

// Node says what one PE of a pool is made of. Zero fields are unknown and are
// not checked against.
type Node struct {
	Sockets      int   `json:"sockets,omitempty"`
	Cores        int   `json:"cores,omitempty"` // a socket
	MHz          int   `json:"mhz,omitempty"`
	MemoryMB     int64 `json:"memory_mb,omitempty"` // in 10^6 bytes
	Accelerators int   `json:"accelerators,omitempty"`
	// AcceleratorSpeed is how fast its accelerators are, against those of a
	// standard PE; 0 is as fast as the PE.
	AcceleratorSpeed Speed `json:"accelerator_speed,omitempty"`
}

// SpeedFor returns the speed at which a pool serves what has these requirements.
// What wants accelerators works on them and on the PEs side by side, and takes
// as long as the slower ones (Tang and Liao, equation 5).
func (p *Pool) SpeedFor(r *Requirements) Speed {
	if r.Accelerators == 0 || p.Node.AcceleratorSpeed == 0 {
		return p.Speed
	}
	return min(cmp.Or(p.Speed, StandardSpeed), p.Node.AcceleratorSpeed)
}

// Partition is a named part of a pool with limits on what may run there.
type Partition struct {
	Name string `json:"name"`
	Pool string `json:"pool"`
	// PEs names the partition's PEs, under early binding; empty is the whole
	// pool.
	PEs         PESet    `json:"pes,omitzero"`
	MaxNPE      Count    `json:"max_npe,omitempty"`      // of one part; 0 is no limit
	MaxDuration Duration `json:"max_duration,omitempty"` // 0 is no limit
	// Default says that a request which names no partition, and no pool without this
	// one, is served by its limits. All partitions of a site that say so have one name.
	Default bool `json:"default,omitempty"`
}

// PartitionOf returns the partition whose limits hold in a pool for a request that asks
// for one by name, or for none, in which case the site's default partition counts; nil
// without limits. ok is false if the pool does not serve it: it has no such partition, or
// the default one is of other pools and this one was not asked for. Cost: the partitions
// of the site.
func (s *Site) PartitionOf(pool, name string, named bool) (partition *Partition, ok bool) {
	defaults := false
	for i := range s.Partitions {
		p := &s.Partitions[i]
		defaults = defaults || p.Default
		if p.Pool == pool && (p.Name == name || name == "" && p.Default) {
			return p, true
		}
	}
	return nil, name == "" && (named || !defaults)
}

// Software is a program that a site has, with how many may run at once.
type Software struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`  // as ValidVersion has it
	Licences Count  `json:"licences,omitempty"` // 0 is no limit
}

// WantVersion says what a version is, for messages.
const WantVersion = "a version such as 2.12, 2023a or 1.1.1w: components with digits, and points between them"

// ValidVersion reports whether a text is a version: components between points,
// each of letters, digits, dashes, underscores, plus signs and tildes, at least
// one of them a digit. A name such as latest, a range such as 2.x and an empty
// component have no place in an order, so that what they ask for is undefined.
func ValidVersion(text string) bool {
	for component := range strings.SplitSeq(text, ".") {
		digit := false
		for _, c := range component {
			switch {
			case c >= '0' && c <= '9':
				digit = true
			case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', strings.ContainsRune("-_+~", c):
			default:
				return false
			}
		}
		if !digit || component[0] == '-' {
			return false
		}
	}
	return true
}

// Link says how data get to a site. A zero speed is unknown: data take only
// the delay.
type Link struct {
	DelayMS            int64 `json:"delay_ms,omitempty"`
	KilobytesPerSecond int64 `json:"kb_per_second,omitempty"`
}

// User is a person or program that asks for PEs. Larger priorities are more important.
type User struct {
	ID       string `json:"id"`
	Priority int    `json:"priority"`
}

// PoolSize returns how many PEs a pool of some sites has, and false if they have no such
// pool. An empty pool name means the only pool of the site, an empty site name the only
// site.
func PoolSize(sites []Site, site, pool string) (Count, bool) {
	for i := range sites {
		s := &sites[i]
		if s.Name != site && (site != "" || len(sites) > 1) {
			continue
		}
		for k := range s.Pools {
			if p := &s.Pools[k]; p.Name == pool || (pool == "" && len(s.Pools) == 1) {
				return p.PEs, true
			}
		}
	}
	return 0, false
}
