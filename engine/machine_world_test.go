package engine_test

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// world is what a configuration offers, in the plain form in which the model
// looks at it. It uses nothing of the engine but the types of its interface.
type world struct {
	config *engine.Config
	pools  []place
	stocks []stockOf
}

// place is a pool of PEs.
type place struct {
	id   berth.ResourceID
	site int // index in the configuration
	pool *berth.Pool
	all  uint64 // its PEs as bits
}

// stockOf is licences, storage or the uplink: a number of units of one amount each.
type stockOf struct {
	id   berth.ResourceID
	size int64
	unit int64
	// amount is that of all units: the last is larger by what is left over.
	amount int64
}

func newWorld(config *engine.Config) *world {
	w := &world{config: config}
	w.addStock(berth.UplinkID(), config.Uplink)
	for i := range config.Sites {
		site := &config.Sites[i]
		for k := range site.Software {
			w.addStock(berth.LicenceID(site.Name, &site.Software[k]), int64(site.Software[k].Licences))
		}
		w.addStock(berth.StorageID(site.Name), site.StorageMB)
		for k := range site.Pools {
			pool := &site.Pools[k]
			w.pools = append(w.pools, place{id: berth.PoolID(site.Name, pool.Name), site: i, pool: pool, all: 1<<pool.PEs - 1})
		}
	}
	return w
}

// addStock adds a stock of a limited amount, which is counted in units, of which a
// calendar can hold no more than berth.MaxPEs.
func (w *world) addStock(id berth.ResourceID, amount int64) {
	if amount > 0 && w.stock(id) < 0 {
		unit := (amount + berth.MaxPEs - 1) / berth.MaxPEs
		w.stocks = append(w.stocks, stockOf{id, amount / unit, unit, amount})
	}
}

// units returns how many units of the stock an amount takes: all of them for what is
// left over too.
func (s *stockOf) units(amount int64) int64 {
	n := (amount + s.unit - 1) / s.unit
	if amount <= s.amount {
		return min(n, s.size)
	}
	return n
}

// carries returns the amount of some units of the stock.
func (s *stockOf) carries(n int64) int64 {
	if n == s.size {
		return s.amount
	}
	return n * s.unit
}

// stock returns the index of a stock, -1 if nothing limits it.
func (w *world) stock(id berth.ResourceID) int {
	for i := range w.stocks {
		if w.stocks[i].id == id {
			return i
		}
	}
	return -1
}

// poolNamed returns the index of a pool, -1 if there is none.
func (w *world) poolNamed(id berth.ResourceID) int {
	for i := range w.pools {
		if w.pools[i].id == id {
			return i
		}
	}
	return -1
}

func (p *place) early() bool { return p.pool.Binding == berth.Early }

// foreseen reports whether the site of the pool can refuse PEs before a start: promises have
// numbers then, or get them ahead.
func (p *place) foreseen() bool { return p.early() || p.pool.NameAhead > 0 }

func (w *world) siteOf(pool int) *berth.Site { return &w.config.Sites[w.pools[pool].site] }

// bits returns a set of PEs as bits.
func bits(set berth.PESet) uint64 {
	var mask uint64
	for _, run := range set.Runs() {
		for pe := run.Lo; pe < run.Hi && pe < 64; pe++ {
			mask |= 1 << pe
		}
	}
	return mask
}

// setOf returns bits as a set of PEs.
func setOf(mask uint64) berth.PESet {
	var pes []berth.PE
	for pe := range berth.PE(64) {
		if mask&(1<<pe) != 0 {
			pes = append(pes, pe)
		}
	}
	return berth.PEsOf(pes...)
}

// meets reports whether a pool, if everything is free, meets every requirement of
// a request but for the number of PEs and the time.
func (w *world) meets(r *berth.Request, pool int) bool {
	p, site := &w.pools[pool], w.siteOf(pool)
	node := &p.pool.Node
	switch {
	case r.Site != "" && r.Site != site.Name, r.Pool != "" && r.Pool != p.pool.Name,
		r.Partition != "" && w.partition(r, pool) == nil,
		len(p.pool.Classes) == 0 && !has(node, r),
		len(p.pool.Classes) > 0 && !slices.ContainsFunc(p.pool.Classes, func(c berth.Class) bool { return has(&c.Node, r) }),
		site.StorageMB > 0 && (r.StorageMB > site.StorageMB || r.IsJob() && r.StorageMB > 0):
		return false
	case r.Software == "":
		return true
	}
	row := program(site, r)
	return row >= 0 && (!r.IsJob() || r.Licences == 0 || site.Software[row].Licences == 0)
}

// partition returns the partition of a pool that a request names, or nil.
func (w *world) partition(r *berth.Request, pool int) *berth.Partition {
	site := w.siteOf(pool)
	for i := range site.Partitions {
		if p := &site.Partitions[i]; p.Name == r.Partition && p.Pool == w.pools[pool].pool.Name {
			return p
		}
	}
	return nil
}

// program returns the index of the first program of a site that is what a request
// requires with as many licences, -1 if there is none.
func program(site *berth.Site, r *berth.Request) int {
	for i := range site.Software {
		s := &site.Software[i]
		if s.Name == r.Software && !older(s.Version, r.Version) && (s.Licences == 0 || s.Licences >= r.Licences) {
			return i
		}
	}
	return -1
}

// older compares versions whose components are numbers.
func older(a, b string) bool {
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		if m != n {
			return m < n
		}
	}
	return false
}

// scaled returns how long work takes in a pool: at the speed of its PEs or, with
// accelerators, at that of the slower of both.
func (w *world) scaled(r *berth.Request, d berth.Duration, pool int) berth.Duration {
	p := w.pools[pool].pool
	speed := berth.Duration(p.Speed)
	if speed == 0 {
		speed = berth.Duration(berth.StandardSpeed)
	}
	if r.Accelerators > 0 && p.Node.AcceleratorSpeed > 0 {
		speed = min(speed, berth.Duration(p.Node.AcceleratorSpeed))
	}
	standard := berth.Duration(berth.StandardSpeed)
	return max(1, (d*standard+speed-1)/speed)
}

// permits reports whether the partition that a request names takes that many PEs
// for that long.
func (w *world) permits(r *berth.Request, npe berth.Count, length berth.Duration, pool int) bool {
	if r.Partition == "" {
		return true
	}
	p := w.partition(r, pool)
	return p != nil && (p.MaxNPE == 0 || npe <= p.MaxNPE) && (p.MaxDuration == 0 || length <= p.MaxDuration)
}

// moves reports whether data are moved for a request.
func (w *world) moves(r *berth.Request) bool {
	return w.config.Staging != engine.StagingNone && r.StorageMB > 0 && !r.IsJob()
}

// transfer returns how long the data of a request take to a site from a time on,
// with the whole uplink for themselves; never if they never arrive.
func (w *world) transfer(site int, f *berth.Forecast, r *berth.Request, from berth.Time) berth.Duration {
	kilobytes := 1000 * r.StorageMB
	link := &w.config.Sites[site].Link
	delay := berth.Duration(link.DelayMS+999) / 1000
	d := delay
	if f != nil {
		d = min(never, secondsToMove(f, from, kilobytes)+delay)
	} else if link.KilobytesPerSecond > 0 {
		d += berth.Duration((kilobytes + link.KilobytesPerSecond - 1) / link.KilobytesPerSecond)
	}
	if i := w.stock(berth.UplinkID()); i >= 0 {
		whole := w.stocks[i].amount
		d = max(d, delay+berth.Duration((kilobytes+whole-1)/whole))
	}
	return d
}

// endless is longer than anything that the model looks at, and never longer than any time.
const (
	endless berth.Duration = 4 * span
	never   berth.Duration = 1 << 40
)

// secondsToMove returns the first second after which that many kilobytes more than at a
// time have been moved according to a forecast, found by looking at each.
func secondsToMove(f *berth.Forecast, from berth.Time, kilobytes int64) berth.Duration {
	period := int64(f.Period)
	step := func(at berth.Time) int64 { // what a second moves, times the period
		i, last := int64(at-f.From)/period, int64(len(f.Kilobytes))-1
		switch i = min(i, last); {
		case at < f.From:
			return 0
		case i == 0:
			return f.Kilobytes[0]
		}
		return f.Kilobytes[i] - f.Kilobytes[i-1]
	}
	moved := int64(0)
	for at := f.From; at < from; at++ {
		moved += step(at)
	}
	target := (moved/period + kilobytes) * period
	for d := range endless {
		if moved >= target {
			return d
		}
		moved += step(from.Add(d))
	}
	if rate := step(from.Add(endless)); rate > 0 { // from there on always
		return endless + berth.Duration((target-moved+rate-1)/rate)
	}
	return never
}
