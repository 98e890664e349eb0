package check

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// partitionAt is a partition as a line asks for it at a pool.
type partitionAt struct {
	place int32
	name  string
}

// partition is what a partition gives; known is false if there is none of that
// name. No name is the site's default partition; assumed says that the site has one.
type partition struct {
	known       bool
	assumed     bool
	name        string
	runs        []run // nil for the whole pool
	npe, length int64 // at most; 0 is no limit
}

// partition returns the partition of a pool that a line asks for. Cost: the
// partitions of the site, once for each pool and name.
func (c *checker) partition(at int32, name string) partition {
	key := partitionAt{at, name}
	if found, seen := c.partitions[key]; seen {
		return found
	}
	var found partition
	place := &c.places[at]
	for _, p := range c.opts.Partitions(place.site) {
		found.assumed = found.assumed || p.Default
		if name == "" && p.Default && found.name == "" {
			found.name = p.Name
		}
		if p.Pool != place.fullPool || p.Name != name && (name != "" || !p.Default) {
			continue
		}
		found = partition{known: true, assumed: found.assumed, name: p.Name, npe: int64(p.MaxNPE), length: int64(p.MaxDuration)}
		for _, r := range p.PEs.Runs() {
			found.runs = append(found.runs, run{int32(r.Lo), int32(r.Hi)})
		}
		break
	}
	if c.partitions == nil {
		c.partitions = map[partitionAt]partition{}
	}
	c.partitions[key] = found
	return found
}

// checkPlace compares where a line runs with what it asks for of a place.
func (c *checker) checkPlace(i int, rec *record, n *needs) {
	at := &c.places[rec.place]
	switch {
	case n.site != "" && at.fullSite != "" && n.site != at.fullSite:
		c.add1(Place, i, "it is at site %s, and asks for site %s", printable(at.fullSite), printable(n.site))
	case n.pool != "" && at.fullPool != "" && n.pool != at.fullPool:
		c.add1(Place, i, "it is at pool %s, and asks for pool %s", printable(at.fullPool), printable(n.pool))
	}
	if len(n.sites) > 0 && at.fullSite != "" && !slices.Contains(n.sites, at.fullSite) {
		c.add1(Place, i, "it is at site %s, and asks for site %s", printable(at.fullSite), oneOf(n.sites))
	}
	if len(n.eligible) > 0 {
		if pe, outside := rec.outside(n.eligible); outside {
			c.add1(Eligible, i, "PE %d is none of those asked for", pe)
		}
	}
	c.checkLists(i, rec, n)
	if !at.known {
		return
	}
	if c.opts.Pool != nil {
		c.checkHardware(i, rec, n)
	}
	if c.opts.Partitions != nil {
		c.checkPartition(i, rec, n)
	}
}

// checkLists compares the PEs of a line with those that will do in its pool, and those that will not.
func (c *checker) checkLists(i int, rec *record, n *needs) {
	at := &c.places[rec.place]
	if len(n.only) > 0 {
		in, named := at.among(n.only)
		pe, outside := rec.outside(in)
		switch {
		case !named:
			c.add1(Place, i, "it is at %s, and asks for PEs of other pools alone", at)
		case outside:
			c.add1(Eligible, i, "PE %d of %s is none of those asked for", pe, at)
		}
	}
	if not, _ := at.among(n.never); len(not) > 0 {
		if pe, inside := rec.inside(not); inside {
			c.add1(Eligible, i, "PE %d of %s is one of those that will not do", pe, at)
		}
	}
}

// among returns the PEs of the place in a list by pool, ascending and with gaps between their runs, and
// whether the list names the place. Where nothing says how it is called, it is whatever the list names.
func (p *place) among(list []placePEs) (pes []run, named bool) {
	is := func(name, as, full string) bool { return name == "" || full == "" || name == as || name == full }
	several := false
	for i := range list {
		one := &list[i]
		if !is(one.site, p.site, p.fullSite) || !is(one.pool, p.pool, p.fullPool) {
			continue
		}
		if several = named; !named {
			pes = slices.Clip(one.runs) // which appending copies
		} else {
			pes = append(pes, one.runs...)
		}
		named = true
	}
	if !several {
		return pes, named
	}
	slices.SortFunc(pes, func(a, b run) int { return cmp.Compare(a.lo, b.lo) })
	merged := pes[:0]
	for _, r := range pes {
		if last := len(merged) - 1; last >= 0 && r.lo <= merged[last].hi {
			merged[last].hi = max(merged[last].hi, r.hi)
		} else {
			merged = append(merged, r)
		}
	}
	return merged, named
}

// oneOf lists names for a message.
func oneOf(names []string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(printable(name))
	}
	return cut(b.String(), 200)
}

// checkHardware compares what the PEs of a line are made of with what it asks for.
func (c *checker) checkHardware(i int, rec *record, n *needs) {
	at := &c.places[rec.place]
	if at.made == nil {
		made := c.opts.Pool(at.site, at.pool)
		at.made = &made
	}
	if n.constraint == "" && n.ofPart == "" && n.memory == 0 && n.accelerators == 0 {
		return
	}
	if len(at.made.Classes) > 0 {
		c.checkClasses(i, rec, n)
		return
	}
	if has := at.made.Node.MemoryMB; has > 0 && n.memory > has {
		c.add1(Hardware, i, "%d MB for each PE; %s has %d", n.memory, at, has)
	}
	if has := int64(at.made.Node.Accelerators); n.accelerators > has {
		c.add1(Hardware, i, "%d accelerators for each PE; %s has %d", n.accelerators, at, has)
	}
	if !slices.ContainsFunc(n.ways(), func(w way) bool { return w.met(at.made.Has) }) {
		c.add1(Hardware, i, "%s is asked for; %s has not those features", n.features(), at)
	}
}

// checkClasses is checkHardware in a pool of several classes: all PEs that the line has at
// any time are of classes that have what it asks for, in one way to meet its constraints.
func (c *checker) checkClasses(i int, rec *record, n *needs) {
	at := &c.places[rec.place]
	var wrong int32
	for _, w := range n.ways() {
		var pes berth.PESet
		for k := range at.made.Classes {
			class := &at.made.Classes[k]
			enough := (class.Node.MemoryMB == 0 || n.memory <= class.Node.MemoryMB) && n.accelerators <= int64(class.Node.Accelerators)
			if enough && w.met(func(feature string) bool { return class.Has(feature) || feature == at.made.Name }) {
				pes = pes.Or(class.PEs)
			}
		}
		var runs []run
		for _, r := range pes.Runs() {
			runs = append(runs, run{int32(r.Lo), int32(r.Hi)})
		}
		pe, outside := rec.outside(runs)
		if !outside {
			return
		}
		wrong = pe
	}
	c.add1(Hardware, i, "PE %d of %s has not what is asked for: %s", wrong, at, n.features())
}

// way is one way to meet the constraints of a line.
type way struct {
	request, part  berth.Constraint
	common, itsOwn int
}

func (w way) met(has func(string) bool) bool {
	return w.request.Met(w.common, has) && w.part.Met(w.itsOwn, has)
}

// ways returns the ways to meet the constraints of a line, which were read.
func (n *needs) ways() (list []way) {
	var w way
	if n.constraint != "" {
		w.request, _ = berth.ParseConstraint(n.constraint)
	}
	if n.ofPart != "" {
		w.part, _ = berth.ParseConstraint(n.ofPart)
	}
	for w.common = range w.request.Alternatives() {
		for w.itsOwn = range w.part.Alternatives() {
			list = append(list, w)
		}
	}
	return list
}

// features says what is asked for of each PE.
func (n *needs) features() string {
	var all []string
	if n.memory > 0 {
		all = append(all, strconv.FormatInt(n.memory, 10)+" MB")
	}
	if n.accelerators > 0 {
		all = append(all, strconv.FormatInt(n.accelerators, 10)+" accelerators")
	}
	for _, text := range []string{n.constraint, n.ofPart} {
		if text != "" {
			all = append(all, printable(text))
		}
	}
	return strings.Join(all, ", ")
}

func (c *checker) checkPartition(i int, rec *record, n *needs) {
	p, name := c.partition(rec.place, n.partition), printable(n.partition)
	site := siteText(rec.site)
	if n.partition == "" {
		name = printable(p.name)
		if rec.kind == booking || !p.known && (!p.assumed || n.pool != "") {
			return // it is not of this scheduler, the site does not limit it, or the pool was asked for
		}
	}
	if !p.known {
		c.add1(Partition, i, "%s has no partition %s of pool %s", site, name, printable(c.places[rec.place].fullPool))
		return
	}
	if p.npe > 0 && rec.npe > p.npe {
		c.add1(Partition, i, "%d PEs; partition %s of %s gives at most %d", rec.npe, name, site, p.npe)
	}
	if p.length > 0 && rec.has(fEnd) && rec.end-rec.start > p.length {
		c.add1(Partition, i, "%d s; partition %s of %s gives at most %d", rec.end-rec.start, name, site, p.length)
	}
	if p.runs != nil {
		if pe, outside := rec.outside(p.runs); outside {
			c.add1(Partition, i, "PE %d is not in partition %s of %s", pe, name, site)
		}
	}
}

// outside returns the first PE that the line has at some time and that is not in a
// list.
func (r *record) outside(in []run) (pe int32, outside bool) {
	pe, outside = firstOutside(r.runs, in)
	for k := range r.stretches() {
		if outside {
			break
		}
		pe, outside = firstOutside(r.past.stretches[k].runs, in)
	}
	return pe, outside
}

// inside returns the first PE that the line has at some time and that is in a list.
func (r *record) inside(of []run) (pe int32, inside bool) {
	pe, inside = firstInside(r.runs, of)
	for k := range r.stretches() {
		if inside {
			break
		}
		pe, inside = firstInside(r.past.stretches[k].runs, of)
	}
	return pe, inside
}

// firstInside returns the first PE of a list that is in another one too, both as with firstOutside.
func firstInside(list, in []run) (pe int32, inside bool) {
	for _, r := range list {
		in, _ = behind(in, r.lo)
		if len(in) > 0 && in[0].lo < r.hi {
			return max(r.lo, in[0].lo), true
		}
	}
	return 0, false
}

// firstOutside returns the first PE of a list that is not in another one; both
// are ascending, with gaps between their runs. Cost: O(l log r) for a list of l runs
// and another one of r.
func firstOutside(list, in []run) (pe int32, outside bool) {
	for _, r := range list {
		in, _ = behind(in, r.lo)
		switch {
		case len(in) == 0 || in[0].lo > r.lo:
			return r.lo, true
		case in[0].hi < r.hi:
			return in[0].hi, true
		}
	}
	return 0, false
}

// wholes are the sizes in needs that a line may ask for, none of them below 0.
func (n *needs) wholes() [4]struct {
	of string
	n  int64
} {
	return [...]struct {
		of string
		n  int64
	}{{"licences", n.licences}, {"accelerators", n.accelerators}, {"MB of memory", n.memory}, {"MB of storage", n.storage}}
}
