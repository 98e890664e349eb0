package workload

import (
	"cmp"
	"container/heap"
	"io"
	"iter"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth"
)

// Outage is PEs of a pool that cannot be used during [From, Until); an Until of
// Forever is for good.
type Outage struct {
	Resource    berth.ResourceID
	PEs         berth.PESet
	From, Until berth.Time
}

// OutageFile is what a file of outages held.
type OutageFile struct {
	Outages []Outage // as MergeOutages returns them
	Report  Report
}

// OpenOutages reads a file of outages, gzip-compressed or not. A file that is
// missing, may not be read or is a directory is an *berth.Error with code
// Invalid and field "outages"; so are the mistakes in it, as ReadOutages has
// them. Other failures of the system are wrapped.
func OpenOutages(path string, sites []berth.Site, opt Options) (*OutageFile, error) {
	file, err := openFile("outages", path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	return ReadOutages(file, path, sites, opt)
}

// ReadOutages reads JSON Lines of kind outage, in the form of the schedule
// file: site and pool may be left out where there is only one, pes where all of
// the pool is meant. start is needed; without end an outage is for good, and
// actual_end, if there is one, is when it was really over. Lines of other kinds
// are skipped and counted, so that a schedule may be read. A line that cannot be read,
// a pool that is not among the sites or PEs that it does not have make a bad line, which
// is passed over and counted, or with Options.Strict is the error. The other options do
// not matter.
//
// A file without an outage is an *berth.Error with code Invalid, which is that of its
// first bad line. Cost: that of MergeOutages.
func ReadOutages(r io.Reader, name string, sites []berth.Site, opt Options) (*OutageFile, error) {
	l, err := newLines(r, name)
	if err != nil {
		return nil, err
	}
	f := &OutageFile{Report: Report{Name: name}}
	take := func(line []byte) (Cause, BadLine) {
		var got outageLine
		if bad := got.parse(line); bad.Want != "" {
			return "", bad
		}
		if got.kind != berth.KindOutage {
			return NotAnOutage, BadLine{}
		}
		o, bad := got.outage(sites)
		if bad.Want == "" {
			f.Outages = append(f.Outages, o)
		}
		return "", bad
	}
	if err := l.each(&f.Report, opt.Strict, "outage", take); err != nil {
		return nil, err
	}
	if len(f.Outages) == 0 {
		return nil, f.Report.noneOf("outages", "outage", outageExample)
	}
	f.Outages = MergeOutages(f.Outages)
	return f, nil
}

const outageExample = `{"kind":"outage","site":"north","pool":"cpu","pes":"0-3","start":3600,"end":7200}`

// outageLine is what matters of one line.
type outageLine struct {
	kind       berth.Kind
	site, pool string
	pes        berth.PESet
	npe        int64
	start, end int64
	actual     int64
	given      fieldSet
}

func (o *outageLine) parse(text []byte) BadLine {
	bad := checkLine(text, "want "+outageExample)
	if bad.Want != "" {
		return bad
	}
	eachMember(text, func(key, value []byte) bool {
		bad = o.member(key, value)
		return bad.Want == ""
	})
	if bad.Want == "" && !o.given.has(fieldKind) {
		return BadLine{Field: "kind", Want: `missing; want "outage"`}
	}
	return bad
}

// member takes in one field of the object.
func (o *outageLine) member(key, value []byte) BadLine {
	f, taken, bad := o.given.take(key, value)
	if !taken {
		return bad
	}
	switch f {
	case fieldKind:
		o.kind, bad = parseKind(value)
	case fieldSite:
		o.site = unquote(value)
	case fieldPool:
		o.pool = unquote(value)
	case fieldNPE:
		o.npe = integer(value)
	case fieldStart:
		o.start = integer(value)
	case fieldEnd:
		o.end = integer(value)
	case fieldActualEnd:
		o.actual = integer(value)
	case fieldPEs:
		o.pes, bad = parsePEs(f, value)
	}
	return bad
}

// outage returns the line as an outage of a pool of the sites.
func (o *outageLine) outage(sites []berth.Site) (Outage, BadLine) {
	id, size, bad := o.place(sites)
	if bad.Want != "" {
		return Outage{}, bad
	}
	if !o.given.has(fieldStart) {
		return Outage{}, BadLine{Field: "start", Want: "missing; an outage needs it"}
	}
	out := Outage{Resource: id, PEs: o.pes, From: berth.Time(o.start), Until: berth.Forever}
	last := fieldEnd
	if o.given.has(fieldEnd) {
		out.Until = berth.Time(o.end)
	}
	if o.given.has(fieldActualEnd) {
		out.Until, last = berth.Time(o.actual), fieldActualEnd
	}
	switch {
	case !o.given.has(fieldPEs) && o.given.has(fieldNPE) && o.npe != int64(size):
		return out, BadLine{Field: "pes", Want: "missing; want which " + countText(o.npe) + " PEs, for the pool has " + countText(size)}
	case !o.given.has(fieldPEs):
		out.PEs = berth.NewPESet(berth.Run{Lo: 0, Hi: berth.PE(size)})
	case o.pes.Empty():
		return out, BadLine{Field: "pes", Value: `""`, Want: "no PE; leave the field out if all of the pool is meant"}
	case o.pes.Max() >= berth.PE(size):
		return out, BadLine{Field: "pes", Value: shown([]byte(o.pes.String())), Want: "the pool has PEs 0 to " + countText(size-1)}
	case o.given.has(fieldNPE) && o.npe != int64(o.pes.Count()):
		return out, BadLine{Field: "npe", Value: countText(o.npe), Want: "pes names " + countText(o.pes.Count())}
	}
	switch {
	case !out.From.Valid():
		return out, BadLine{Field: "start", Value: timeText(out.From), Want: "beyond ±2^42 s"}
	case out.Until != berth.Forever && !out.Until.Valid():
		return out, BadLine{Field: jsonFields[last].name, Value: timeText(out.Until), Want: "beyond ±2^42 s"}
	case out.Until <= out.From:
		return out, BadLine{Field: jsonFields[last].name, Value: timeText(out.Until), Want: "not after the start " + timeText(out.From)}
	}
	return out, BadLine{}
}

// place finds the pool that a line is about, and its size.
func (o *outageLine) place(sites []berth.Site) (id berth.ResourceID, size berth.Count, bad BadLine) {
	var site *berth.Site
	for i := range sites {
		if sites[i].Name == o.site || (o.site == "" && len(sites) == 1) {
			site = &sites[i]
		}
	}
	switch {
	case site == nil && o.site == "":
		return id, 0, BadLine{Field: "site", Want: "missing; there are " + strconv.Itoa(len(sites))}
	case site == nil:
		return id, 0, BadLine{Field: "site", Value: o.site, Want: "there is no such site"}
	}
	for _, pool := range site.Pools {
		if pool.Name == o.pool || (o.pool == "" && len(site.Pools) == 1) {
			return berth.PoolID(site.Name, pool.Name), pool.PEs, BadLine{}
		}
	}
	if o.pool == "" {
		return id, 0, BadLine{Field: "pool", Want: "missing; site " + site.Name + " has " + strconv.Itoa(len(site.Pools))}
	}
	return id, 0, BadLine{Field: "pool", Value: o.pool, Want: "site " + site.Name + " has no such pool"}
}

// MergeOutages makes one outage of those of the same PEs that overlap or touch
// in time, and sorts them by beginning, resource and PEs: so no PE goes down
// that is down, or at the moment at which it comes back. From and Until must be
// in order. It reorders its argument. Cost: O(n log n + n·m) for n outages,
// at most m of them open at once.
func MergeOutages(outages []Outage) []Outage {
	slices.SortFunc(outages, compareOutages)
	return slices.Collect(merged(slices.Values(outages)))
}

// MergeWith makes one outage of those of two kinds, as MergeOutages does: some that
// are known, and some that come in its order. An outage is held back as long as one
// that began before may still become longer. Cost: that of MergeOutages for each
// that is drawn, and the memory of those that begin during the longest known.
func MergeWith(known []Outage, drawn iter.Seq[Outage]) iter.Seq[Outage] {
	if len(known) == 0 {
		return drawn
	}
	known = MergeOutages(slices.Clone(known))
	return merged(func(yield func(Outage) bool) {
		left := known
		for o := range drawn {
			for len(left) > 0 && compareOutages(left[0], o) <= 0 {
				if !yield(left[0]) {
					return
				}
				left = left[1:]
			}
			if !yield(o) {
				return
			}
		}
		for _, o := range left {
			if !yield(o) {
				return
			}
		}
	})
}

// merged makes one outage of those of the same PEs that overlap or touch, of a
// sequence in the order of compareOutages.
func merged(sorted iter.Seq[Outage]) iter.Seq[Outage] {
	return func(yield func(Outage) bool) {
		var (
			pools []*openOutages // in the order of appearance
			done  outageHeap
		)
		for o := range sorted {
			first := o.From // of what may still change
			for _, p := range pools {
				p.open = slices.DeleteFunc(p.open, func(a Outage) bool {
					if a.Until < o.From {
						heap.Push(&done, a)
						return true
					}
					first = min(first, a.From)
					return false
				})
			}
			for len(done) > 0 && done[0].From < first {
				if !yield(heap.Pop(&done).(Outage)) {
					return
				}
			}
			at := slices.IndexFunc(pools, func(p *openOutages) bool { return p.resource == o.Resource })
			if at < 0 {
				at = len(pools)
				pools = append(pools, &openOutages{resource: o.Resource})
			}
			p := pools[at]
			o.PEs = o.PEs.Minus(p.lost)
			p.open = slices.DeleteFunc(extended(p.open, o), func(a Outage) bool {
				if a.Until < berth.Forever {
					return false
				}
				p.lost = p.lost.Or(a.PEs)
				heap.Push(&done, a)
				return true
			})
		}
		for _, p := range pools {
			for _, o := range p.open {
				heap.Push(&done, o)
			}
		}
		for len(done) > 0 {
			if !yield(heap.Pop(&done).(Outage)) {
				return
			}
		}
	}
}

// openOutages are the outages of a pool that may become longer, and the PEs that are
// lost for good.
type openOutages struct {
	resource berth.ResourceID
	open     []Outage
	lost     berth.PESet
}

// extended returns open outages of a resource with one more: those that it makes
// longer, with the PEs that both have, and what each has besides.
func extended(open []Outage, o Outage) []Outage {
	var still []Outage
	for _, a := range open {
		common := a.PEs.And(o.PEs)
		if !common.Empty() && a.Until < o.Until {
			longer := a
			longer.PEs, longer.Until = common, o.Until
			still = append(still, longer)
			a.PEs = a.PEs.Minus(common)
		}
		if o.PEs = o.PEs.Minus(common); !a.PEs.Empty() {
			still = append(still, a)
		}
	}
	if !o.PEs.Empty() {
		still = append(still, o)
	}
	return still
}

// outageHeap is a heap of outages in the order of compareOutages.
type outageHeap []Outage

func (h outageHeap) Len() int           { return len(h) }
func (h outageHeap) Less(i, j int) bool { return compareOutages(h[i], h[j]) < 0 }
func (h outageHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *outageHeap) Push(x any)        { *h = append(*h, x.(Outage)) }
func (h *outageHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// compareOutages is a total order of outages that do not overlap.
func compareOutages(a, b Outage) int {
	byResource := 0
	switch {
	case a.Resource.Less(b.Resource):
		byResource = -1
	case b.Resource.Less(a.Resource):
		byResource = 1
	}
	lowest := func(s berth.PESet) berth.PE {
		if s.Empty() {
			return -1
		}
		return s.Runs()[0].Lo
	}
	return cmp.Or(cmp.Compare(a.From, b.From), byResource, cmp.Compare(lowest(a.PEs), lowest(b.PEs)), cmp.Compare(a.Until, b.Until))
}
