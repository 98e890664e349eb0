package check

import (
	"cmp"

	"github.com/berth-hpc/berth"
)

// Options says what a schedule is checked against. Sizes wins over PEs, and PEs over
// what lines tell of their pools. Names are as the file supplies them; a name that it does not
// supply is "", the only site or the only pool of the site. What a function
// returns is not changed.
type Options struct {
	// PEs is the size of the machine. If a file names several sites or pools,
	// each of them has this size. 0 leaves the sizes to the lines: one for each pool
	// at which a line takes PEs has to tell it.
	PEs berth.Count
	// Sizes returns the size of a pool, and false if there is no such pool. It
	// is asked once for each pool at which a line takes PEs.
	Sizes func(site, pool string) (berth.Count, bool)
	// Names returns the names of the site and of the pool that are meant. A nil
	// function returns those that the file supplies.
	Names func(site, pool string) (fullSite, fullPool string)
	// Speed returns the speed of a pool for what asks for accelerators, or does
	// not, in thousandths of that for which the durations of variants are given;
	// 0 is that speed. With a nil function speeds are not known, and durations are not
	// held against those of variants.
	Speed func(site, pool string, accelerated bool) berth.Speed
	// Fastest is the highest speed of any pool; 0 is the standard speed.
	Fastest berth.Speed
	// Pool returns what a pool is made of. Memory of 0 is not known and not
	// checked. A nil function leaves memory, accelerators and features unchecked.
	Pool func(site, pool string) berth.Pool
	// Partitions returns the partitions of a site. A nil function leaves all
	// sites' unchecked.
	Partitions func(site string) []berth.Partition
	// Software returns the programs of a site; the first that will do counts. A
	// nil function leaves all sites' unchecked.
	Software func(site string) []berth.Software
	// Managed reports whether a site is one at which all parts of a request are one reservation, which ends with the longest of
	// them. A nil function is none.
	Managed func(site string) bool
	// Storage returns the scratch space of a site in 10^6 bytes, and false if it
	// is not limited. A nil function is no limit.
	Storage func(site string) (megabytes int64, limited bool)
	// Strict makes the first line that cannot be read an error.
	Strict bool
	// Uplink is how much all stagings together move, in 1000 bytes per second; 0
	// is no limit.
	Uplink int64
}

// Against returns the options for a schedule on sites, which must not change while
// the options are used. uplink is in kB/s; 0 is no limit.
func Against(sites []berth.Site, uplink int64) Options {
	known := catalogue(sites)
	return Options{
		Fastest: known.fastest(),
		Sizes:   known.size, Names: known.names, Speed: known.speed, Pool: known.made, Partitions: known.partitions,
		Software: known.software, Managed: known.managed, Storage: known.storage, Uplink: uplink,
	}
}

// catalogue is sites by the names that Options has.
type catalogue []berth.Site

// fastest returns the highest speed of a pool, but no less than the standard one.
func (c catalogue) fastest() berth.Speed {
	fastest := berth.StandardSpeed
	for i := range c {
		for k := range c[i].Pools {
			fastest = max(fastest, c[i].Pools[k].Speed)
		}
	}
	return fastest
}

func (c catalogue) managed(name string) bool {
	site := c.site(name)
	return site != nil && site.Managed
}

// site returns a site, nil if there is no such site.
func (c catalogue) site(name string) *berth.Site {
	for i := range c {
		if c[i].Name == name || name == "" && len(c) == 1 {
			return &c[i]
		}
	}
	return nil
}

// pool returns a pool, nil if there is no such pool.
func (c catalogue) pool(site, name string) *berth.Pool {
	s := c.site(site)
	if s == nil {
		return nil
	}
	for i := range s.Pools {
		if s.Pools[i].Name == name || name == "" && len(s.Pools) == 1 {
			return &s.Pools[i]
		}
	}
	return nil
}

func (c catalogue) size(site, pool string) (berth.Count, bool) {
	if p := c.pool(site, pool); p != nil {
		return p.PEs, true
	}
	return 0, false
}

func (c catalogue) names(site, pool string) (fullSite, fullPool string) {
	if s := c.site(site); s != nil {
		site = s.Name
	}
	if p := c.pool(site, pool); p != nil {
		pool = p.Name
	}
	return site, pool
}

func (c catalogue) speed(site, pool string, accelerated bool) berth.Speed {
	p := c.pool(site, pool)
	switch {
	case p == nil:
		return 0
	case accelerated && p.Node.AcceleratorSpeed != 0: // as fast as the slower of the two
		return min(cmp.Or(p.Speed, berth.StandardSpeed), p.Node.AcceleratorSpeed)
	}
	return p.Speed
}

func (c catalogue) made(site, pool string) berth.Pool {
	if p := c.pool(site, pool); p != nil {
		return *p
	}
	return berth.Pool{}
}

func (c catalogue) partitions(site string) []berth.Partition {
	if s := c.site(site); s != nil {
		return s.Partitions
	}
	return nil
}

func (c catalogue) software(site string) []berth.Software {
	if s := c.site(site); s != nil {
		return s.Software
	}
	return nil
}

func (c catalogue) storage(site string) (int64, bool) {
	if s := c.site(site); s != nil && s.StorageMB > 0 {
		return s.StorageMB, true
	}
	return 0, false
}
