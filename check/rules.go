package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
)

// maxListed bounds the lines that one violation lists, maxListedInAll those of
// all violations together; fewListed is what each may list beyond that.
const (
	maxListed      = 1000
	maxListedInAll = 1_000_000
	fewListed      = 8
)

// checker applies the rules to one file.
type checker struct {
	file       *file
	opts       Options
	places     []place
	groups     groups
	longer     []int32 // lines of parts that last longer than their variants, ascending
	programs   map[askedFor]program
	partitions map[partitionAt]partition
	violations []Violation // never nil, for the sake of JSON
	listed     int         // lines in all violations
	reasons    int         // lines looked at for reasons, see maxReasonWork
	displaced  int         // lines looked at for those displaced, see maxPairWork
}

// place is a pool at which lines take PEs.
type place struct {
	site, pool         string // as the file names it
	fullSite, fullPool string // as it is called; "" where nothing says
	size               int64
	// In thousandths, 0 being the standard speed; accelerated is that of what
	// asks for accelerators.
	speed, accelerated int64
	made               *berth.Pool // nil until it is asked for
	known              bool
}

func (p *place) String() string {
	switch {
	case p.site == "" && p.pool == "":
		return "the machine"
	case p.pool == "":
		return "site " + printable(p.site)
	case p.site == "":
		return "pool " + printable(p.pool)
	}
	return "pool " + printable(p.pool) + " of site " + printable(p.site)
}

// room returns how many lines the next violation may list.
func (c *checker) room() int {
	return min(maxListed, max(fewListed, maxListedInAll-c.listed))
}

// add reports a violation of the given records, listing as many as there is
// room for; more is how many are concerned beyond them. The records may come
// in any order; add reorders them, and reports each once.
func (c *checker) add(class Class, records []int32, more int, format string, args ...any) {
	line := func(k int32) int { return c.file.records[k].line }
	slices.SortFunc(records, func(a, b int32) int { return cmp.Compare(line(a), line(b)) })
	records = slices.CompactFunc(records, func(a, b int32) bool { return line(a) == line(b) })
	if room := c.room(); len(records) > room {
		more += len(records) - room
		records = records[:room]
	}
	c.listed += len(records)
	v := Violation{Class: class, Lines: make([]int, len(records)), More: more, Text: fmt.Sprintf(format, args...)}
	seen := make(map[string]bool, len(records))
	for i, k := range records {
		rec := &c.file.records[k]
		v.Lines[i] = rec.line
		if !seen[rec.id] {
			seen[rec.id] = true
			v.IDs = append(v.IDs, rec.id)
		}
	}
	c.violations = append(c.violations, v)
}

// add1 reports a violation of one record.
func (c *checker) add1(class Class, record int, format string, args ...any) {
	c.add(class, []int32{int32(record)}, 0, format, args...)
}

func (c *checker) report() *Report {
	r := &Report{Lines: c.file.lines + len(c.file.bad) + c.file.more, Violations: c.violations}
	for i := range c.file.bad {
		bad := &c.file.bad[i]
		v := Violation{Class: Unreadable, IDs: []string{}, Lines: []int{bad.line}, Text: bad.err.Error()}
		if bad.id != "" {
			v.IDs = append(v.IDs, bad.id)
		}
		if i == mostBad-1 {
			v.More = c.file.more
		}
		r.Violations = append(r.Violations, v)
	}
	for i := range c.file.lines {
		if rec := &c.file.records[i]; rec.kind == request {
			r.Requests++
			if rec.accepted {
				r.Accepted++
			}
		}
	}
	rank := map[Class]int{}
	for i, class := range Classes() {
		rank[class] = i
	}
	slices.SortStableFunc(r.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Lines[0], b.Lines[0]), cmp.Compare(rank[a.Class], rank[b.Class]),
			slices.Compare(a.Lines, b.Lines), cmp.Compare(a.Text, b.Text))
	})
	return r
}

// placeLines finds the pool of every line that takes PEs, and of the places that
// were given up. It fails if a line leaves open which of several it means.
func (c *checker) placeLines() error {
	records := c.file.records
	p := placing{checker: c, pools: map[string]*onlyName{}, index: map[[2]string]int32{}}
	for i := range records {
		p.site.see(records[i].site)
		for k := range records[i].formers() {
			p.site.see(records[i].past.former[k].site)
		}
	}
	for i := range records {
		rec := &records[i]
		p.see(&rec.site, rec.pool)
		for k := range rec.formers() {
			m := &rec.past.former[k]
			p.see(&m.site, m.pool)
		}
	}
	for i := range records {
		rec := &records[i]
		for k := range rec.formers() {
			m := &rec.past.former[k]
			if err := p.find(rec.line, m.site, &m.pool, &m.place); err != nil {
				return err
			}
		}
		if rec.kind == staging && rec.site == "" && p.site.several {
			return c.file.errorAt(rec.line, berth.Errorf(berth.Invalid, "site", "missing; the file names several sites"))
		}
		if !rec.granted() || rec.npe < 1 && !rec.has(fPEs) || rec.kind == job && !rec.has(fStart) {
			continue
		}
		if err := p.find(rec.line, rec.site, &rec.pool, &rec.place); err != nil {
			return err
		}
	}
	p.placePlans()
	if c.opts.Sizes == nil && c.opts.PEs == 0 {
		return p.tellSizes()
	}
	return nil
}

// placePlans finds the pools of places under earlier plans, where something else names them: the others do not matter.
func (p *placing) placePlans() {
	for i := range p.file.records {
		for k := range p.file.records[i].replanned() {
			m := &p.file.records[i].past.replanned[k]
			if m.site == "" && !p.site.several {
				m.site = p.site.name
			}
			if only := p.pools[m.site]; m.pool == "" && only != nil && !only.several {
				m.pool = only.name
			}
			if at, seen := p.index[[2]string{m.site, m.pool}]; seen {
				m.place = at
			}
		}
	}
}

// placing gives the pools of a file their indices.
type placing struct {
	*checker
	site  onlyName
	pools map[string]*onlyName // by site
	index map[[2]string]int32
}

// see fills in the only site where none is named, and notes the pool.
func (p *placing) see(site *string, pool string) {
	if *site == "" && !p.site.several {
		*site = p.site.name
	}
	if p.pools[*site] == nil {
		p.pools[*site] = &onlyName{}
	}
	p.pools[*site].see(pool)
}

// find returns the index of a pool, and fills in its name if it is the only one.
func (p *placing) find(line int, site string, pool *string, at *int32) error {
	if site == "" && p.site.several {
		return p.file.errorAt(line, berth.Errorf(berth.Invalid, "site", "missing; the file names several sites"))
	}
	if *pool == "" {
		if p.pools[site].several {
			return p.file.errorAt(line, berth.Errorf(berth.Invalid, "pool", "missing; the file names several pools of site %s", printable(site)))
		}
		*pool = p.pools[site].name
	}
	key := [2]string{site, *pool}
	k, seen := p.index[key]
	if !seen {
		k = int32(len(p.places))
		p.index[key] = k
		p.places = append(p.places, p.placeOf(site, *pool))
	}
	*at = k
	return nil
}

// tellSizes takes the sizes of the pools from the lines that tell them.
func (p *placing) tellSizes() error {
	told := map[[2]string]*record{}
	for i := range p.file.records {
		rec := &p.file.records[i]
		if !rec.has(fPoolPEs) {
			continue
		}
		pool := rec.pool
		if only := p.pools[rec.site]; pool == "" && !only.several {
			pool = only.name
		}
		key := [2]string{rec.site, pool}
		if first := told[key]; first == nil {
			told[key] = rec
		} else if first.past.poolPEs != rec.past.poolPEs {
			return p.file.errorAt(rec.line, berth.Errorf(berth.Invalid, fieldNames[fPoolPEs], "%d, and %d in line %d; a pool has one size",
				rec.past.poolPEs, first.past.poolPEs, first.line))
		}
	}
	for i := range p.places {
		at := &p.places[i]
		rec := told[[2]string{at.site, at.pool}]
		if rec == nil {
			return fmt.Errorf("%s: %w", p.file.name, berth.Errorf(berth.Invalid, fieldNames[fPoolPEs], "no line tells how many PEs %s has; want it on one, or --pes N or --sites FILE.yaml", at))
		}
		at.size = rec.past.poolPEs
	}
	return nil
}

func (c *checker) placeOf(site, pool string) place {
	p := place{site: site, pool: pool, fullSite: site, fullPool: pool, size: int64(c.opts.PEs), known: true}
	if c.opts.Names != nil {
		p.fullSite, p.fullPool = c.opts.Names(site, pool)
	}
	if c.opts.Sizes == nil {
		return p
	}
	size, known := c.opts.Sizes(site, pool)
	p.size, p.known = int64(size), known
	if c.opts.Speed != nil && known {
		p.speed, p.accelerated = int64(c.opts.Speed(site, pool, false)), int64(c.opts.Speed(site, pool, true))
	}
	return p
}

// onlyName remembers the only name seen, or that there were several.
type onlyName struct {
	name    string
	several bool
}

func (o *onlyName) see(name string) {
	switch {
	case name == "" || name == o.name:
	case o.name == "":
		o.name = name
	default:
		o.several = true
	}
}

// checkLines applies the rules that concern one line alone.
func (c *checker) checkLines() {
	for i := range c.file.records {
		rec := &c.file.records[i]
		if rec.kind == request {
			c.checkRequest(i, rec)
			c.checkFormers(i, rec)
			c.checkReplanned(i, rec)
			c.checkStretches(i, rec)
		} else {
			c.checkOther(i, rec)
		}
		if rec.has(fLimit) && rec.has(fEnd) && rec.past.limit < rec.end {
			c.add1(Length, i, "the limit %d is before the end %d", rec.past.limit, rec.end)
		}
		if rec.place >= 0 {
			c.checkSize(i, rec)
		}
		if n, wants := rec.wants(); wants {
			c.checkNeeds(i, rec, n)
			if rec.place >= 0 && rec.has(fStart) {
				c.checkPlace(i, rec, n)
			}
		} else if (rec.kind == request || rec.kind == job) && rec.place >= 0 && rec.has(fStart) && c.places[rec.place].known && c.opts.Partitions != nil {
			c.checkPartition(i, rec, &needs{}) // a site may take what names no partition into one
		}
	}
}

func (c *checker) checkRequest(i int, rec *record) {
	if rec.ready < rec.arrival {
		c.add1(BadRequest, i, "ready at %d, before its arrival at %d", rec.ready, rec.arrival)
	}
	shortest := rec.duration
	if !rec.accepted && len(rec.variants) > 0 {
		shortest = slices.MinFunc(rec.variants, func(a, b variant) int { return cmp.Compare(a.duration, b.duration) }).duration
	} else if rec.npe < 1 || rec.duration < 1 {
		c.add1(BadRequest, i, "%d PEs for %d s; a request needs at least 1 PE and 1 s", rec.npe, rec.duration)
	}
	for _, v := range rec.variants {
		if v.npe < 1 || v.duration < 1 {
			c.add1(BadRequest, i, "a variant of %d PEs for %d s; it needs at least 1 PE and 1 s", v.npe, v.duration)
		}
	}
	switch {
	case rec.accepted:
		if len(rec.formers()) > 0 { // where it came to, its data may have had to be moved once more
			shortest -= max(0, rec.transfer())
		}
	case rec.reason != "" && berth.Reason(rec.reason) != berth.NoCapacity: // it was refused for what it is, or because of its deadline itself
		shortest = 1
	default:
		shortest = at(shortest, int64(c.opts.Fastest))
	}
	if earliest := rec.ready + shortest; rec.deadline < earliest {
		c.add1(DeadlineTooEarly, i, "the deadline %d is before ready + duration = %d + %d = %d",
			rec.deadline, rec.ready, shortest, earliest)
	}
	if rec.reason != "" && berth.Reason(rec.reason).Rank() < 0 {
		c.add1(BadReason, i, "%s is no known reason", printable(rec.reason))
	}
	if rec.accepted {
		c.checkAccepted(i, rec)
	} else {
		c.checkRefused(i, rec)
	}
}

func (c *checker) checkRefused(i int, rec *record) {
	if rec.reason == "" && len(rec.replanned()) == 0 { // a workflow gives up tasks that it has planned
		c.add1(BadReason, i, "refused without a reason")
	}
	var carries strings.Builder
	for _, f := range []field{fStart, fEnd, fPEs, fActualEnd} {
		if rec.has(f) && (f != fPEs || len(rec.runs) > 0) {
			carries.WriteString(", " + fieldNames[f])
		}
	}
	if carries.String() != "" {
		c.add1(RefusalWithStart, i, "refused, and yet it carries %s", carries.String()[len(", "):])
	}
	if reason := berth.Reason(rec.reason); rec.has(fPromisedStart) && (reason == berth.PolicyRefused || reason == berth.Quota) {
		c.add1(BadReason, i, "a promise was taken back for %s, which is no reason once it is made", rec.reason)
	}
}

func (c *checker) checkAccepted(i int, rec *record) {
	if rec.reason != "" {
		c.add1(BadReason, i, "accepted, and yet it carries the reason %s", printable(rec.reason))
	}
	if !rec.has(fStart) || !rec.has(fEnd) {
		c.add1(MissingStart, i, "accepted without %s", missing(rec))
	}
	if rec.has(fStart) {
		if earliest := max(rec.ready, rec.arrival); rec.start < earliest {
			c.add1(Window, i, "the start %d is before %d, when it is ready", rec.start, earliest)
		}
	}
	if rec.has(fEnd) && rec.end > rec.deadline && len(rec.formers()) == 0 {
		c.add1(Window, i, "the end %d is after the deadline %d", rec.end, rec.deadline)
	}
	if rec.has(fStart) && rec.has(fEnd) && rec.end-rec.start != rec.duration {
		c.add1(Length, i, "[%d,%d) is %d s long, its duration %d s", rec.start, rec.end, rec.end-rec.start, rec.duration)
	}
	c.checkActualEnd(i, rec)
	speed := int64(0)
	if rec.place >= 0 {
		speed = c.places[rec.place].speed
		if n, wants := rec.wants(); wants && n.accelerators > 0 {
			speed = c.places[rec.place].accelerated
		}
	}
	more := int64(0) // than the work takes
	for _, of := range []struct {
		what string
		n    int64
	}{{"a transfer", rec.transfer()}, {"an extension", rec.extended()}} {
		if more += of.n; of.n < 0 || of.n > 0 && of.n >= rec.duration {
			c.add1(Length, i, "%s of %d s in a duration of %d s", of.what, of.n, rec.duration)
		}
	}
	lasts := func(v variant) int64 { return at(v.duration, speed) + more }
	anyLength := c.opts.Speed == nil // how fast the pool is is not known
	switch {
	case len(rec.variants) == 0 || slices.ContainsFunc(rec.variants, func(v variant) bool { return v.npe == rec.npe && (anyLength || lasts(v) == rec.duration) }):
	case rec.part != "" && rec.place >= 0 && c.managed(rec) &&
		slices.ContainsFunc(rec.variants, func(v variant) bool { return v.npe == rec.npe && lasts(v) < rec.duration }):
		c.longer = append(c.longer, int32(i)) // the parts beside it may tell why
	default:
		c.noVariant(i)
	}
}

func (c *checker) noVariant(i int) {
	rec := &c.file.records[i]
	c.add1(Variant, i, "%d PEs for %d s is none of its %d variants", rec.npe, rec.duration, len(rec.variants))
}

// managed reports whether the parts of a request are one reservation where a line is.
func (c *checker) managed(rec *record) bool {
	return c.opts.Managed != nil && c.opts.Managed(c.places[rec.place].fullSite)
}

func (c *checker) isLonger(i int32) bool {
	_, is := slices.BinarySearch(c.longer, i)
	return is
}

// checkLonger checks the parts that last longer than any of their variants: at a managed site that is right if another part
// there is the reason, which ends with them and does not.
func (c *checker) checkLonger() {
	records := c.file.records
	for _, i := range c.longer {
		rec := &records[i]
		if !slices.ContainsFunc(c.groups.of(rec.id).members, func(k int32) bool {
			other := &records[k]
			return k != i && other.kind == request && other.accepted && other.end == rec.end && !c.isLonger(k) &&
				other.place >= 0 && c.places[other.place].fullSite == c.places[rec.place].fullSite
		}) {
			c.noVariant(int(i))
		}
	}
}

// extended returns how much of the duration of a request that runs was added to
// the promise; 0 where nothing says so.
func (r *record) extended() int64 {
	if r.past == nil || r.kind != request || !r.accepted {
		return 0
	}
	return r.past.extended
}

// at returns how long work of some standard seconds takes at a speed in
// thousandths, 0 being the standard one.
func at(duration, speed int64) int64 {
	if speed == 0 {
		return duration
	}
	return max(1, (duration*1000+speed-1)/speed)
}

func missing(rec *record) string {
	switch {
	case rec.has(fStart):
		return "an end"
	case rec.has(fEnd):
		return "a start"
	}
	return "a start and an end"
}

func (c *checker) checkActualEnd(i int, rec *record) {
	if rec.has(fActualEnd) && rec.has(fStart) && rec.actual < rec.start {
		c.add1(Length, i, "the actual end %d is before the start %d", rec.actual, rec.start)
	}
}

// checkOther applies the rules for bookings, jobs, outages and stagings.
func (c *checker) checkOther(i int, rec *record) {
	if rec.npe < 1 && rec.kind != staging || rec.npe < 0 {
		c.add1(BadRequest, i, "%d PEs; a %s takes at least 1", rec.npe, kindNames[rec.kind])
	}
	if rec.reason != "" && berth.Reason(rec.reason).Rank() < 0 {
		c.add1(BadReason, i, "%s is no known reason", printable(rec.reason))
	}
	if rec.kind == job && rec.has(fStart) != (rec.has(fEnd) || rec.has(fActualEnd)) {
		c.add1(MissingStart, i, "a job without %s", missing(rec))
	}
	if rec.has(fStart) && rec.has(fEnd) {
		switch length := rec.end - rec.start; {
		case length < 0 || length == 0 && rec.kind != staging:
			c.add1(Length, i, "the end %d is not after the start %d", rec.end, rec.start)
		case rec.kind == booking && rec.duration > 0 && length != rec.duration:
			c.add1(Length, i, "[%d,%d) is %d s long, its duration %d s", rec.start, rec.end, length, rec.duration)
		}
	}
	c.checkActualEnd(i, rec)
}

// checkSize compares a line that takes PEs with its pool and its list of PEs.
func (c *checker) checkSize(i int, rec *record) {
	c.checkPEs(i, rec.place, rec.npe, rec.runs, rec.has(fPEs))
}

// checkPEs compares a number of PEs, and their list if they are named, with a
// pool.
func (c *checker) checkPEs(i int, place int32, npe int64, runs []run, named bool) {
	at := &c.places[place]
	switch {
	case !at.known:
		c.add1(UnknownPool, i, "there is no %s", at)
	case npe > at.size:
		c.add1(TooLarge, i, "%d PEs; %s has %d", npe, at, at.size)
	}
	if !named {
		return
	}
	if count := countOf(runs); count != npe {
		c.add1(Count, i, "it names %d PEs, and npe is %d", count, npe)
	}
	if len(runs) > 0 && at.known {
		if last := int64(runs[len(runs)-1].hi) - 1; last >= at.size {
			c.add1(Range, i, "it names PE %d; %s has PEs 0 to %d", last, at, at.size-1)
		}
	}
}
