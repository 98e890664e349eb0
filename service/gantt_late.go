package service

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/berth-hpc/berth"
)

// layOut assigns PEs to promises under late binding that have not started, by the rule
// by which the engine binds them at their start: in the order of start, sequence and part,
// the lowest idle PEs. What comes meanwhile may bind them otherwise, so their bars are
// provisional. A promise for which not enough PEs are idle gets the others unplaced: PEs
// that are out of use now may be back by its start. PEs that go out of use before it ends are
// taken last. PEs that others have by name before it ends are not idle. The promises are in that order.
//
// They are laid out in legs. Of the legs of an earlier layout those before the first promise
// that is another are taken as they are, and so are all behind the last one from where the
// same PEs are idle for as long as then; what has changed says which promises and fixed bars
// are others, and is nil if that is not known. Cost: O(f log f + (n + l) (r + g) + s) for f
// fixed bars that cut the PEs into stretches, n promises laid out anew, l legs compared, s
// times that a bar covers a stretch, r runs of idle PEs, and g stretches that are passed until
// there are enough.
func layOut(pool *berth.Pool, fixed [][]Bar, late []unbound, was []*leg, changed *differences) (legs []*leg) {
	if len(late) == 0 {
		return nil
	}
	if changed == nil || changed.outages {
		was = nil
	}
	l := newLayout(pool, fixed, late)
	if len(was) > 0 && changed.lastFixed == minTime { // no fixed bar is another, so all before the first promise that is stays
		n := 0
		for n < len(was) && compareUnbound(was[n].first, changed.first) < 0 {
			n++
		}
		if n--; n > 0 {
			legs = append(legs, was[:n]...)
			at, _ := slices.BinarySearchFunc(late, was[n].first, compareUnbound)
			late, was = late[at:], was[n:]
			l.resume(was[0])
		}
	}
	for len(late) > 0 {
		for len(was) > 0 && compareUnbound(was[0].first, late[0]) < 0 {
			was = was[1:]
		}
		l.advance(late[0].Start)
		g := &leg{first: late[0], idle: l.idle, ends: l.ends.sorted()}
		if len(was) > 0 && compareUnbound(was[0].first, late[0]) == 0 {
			if changed.isBehind(&late[0]) && was[0].begins(g) {
				return append(legs, was...)
			}
			was = was[1:]
		}
		n := min(legLength, len(late))
		if len(was) > 0 { // meet the earlier legs where they begin
			if at, found := slices.BinarySearchFunc(late[:min(2*legLength, len(late))], was[0].first, compareUnbound); found && at > 0 {
				n = at
			}
		}
		for i := range late[:n] {
			l.place(&late[i], g)
		}
		legs, late = append(legs, g), late[n:]
	}
	return legs
}

// legLength is how many promises a leg has: more take longer to lay out again, fewer have
// more idle PEs kept.
const legLength = 64

// leg is some of the promises in order, as they were laid out.
type leg struct {
	first            unbound
	idle             berth.PESet // when that starts
	ends             holdings    // of the others, by their ends
	placed, unplaced []Bar
}

// begins reports whether a leg begins with the same PEs idle as another, and for as long.
func (g *leg) begins(o *leg) bool {
	return g.idle.Equal(o.idle) && slices.EqualFunc(g.ends, o.ends, func(a, b holding) bool { return a.until == b.until && a.pes.Equal(b.pes) })
}

const minTime = berth.Time(math.MinInt64)

// differences are what a drawing shows otherwise than the one before.
type differences struct {
	outages     bool
	first, last unbound    // of the promises without PEs; first is behind last if there are none
	lastFixed   berth.Time // when the last of the fixed bars begins; minTime if there are none
}

func noDifferences() *differences {
	return &differences{first: unbound{Bar: Bar{Start: berth.Forever}, sequence: math.MaxUint64, part: math.MaxInt}, last: unbound{Bar: Bar{Start: minTime}}, lastFixed: minTime}
}

// late notes a promise without PEs.
func (d *differences) late(u *unbound) {
	if compareUnbound(*u, d.first) < 0 {
		d.first = *u
	}
	if compareUnbound(*u, d.last) > 0 {
		d.last = *u
	}
}

// isBehind reports whether no difference is at or behind a promise.
func (d *differences) isBehind(u *unbound) bool {
	return compareUnbound(d.last, *u) < 0 && d.lastFixed < u.Start
}

// layout is which PEs are idle as time passes.
type layout struct {
	idle    berth.PESet // held by no promise
	coming  []*Bar      // of fixed PEs, that have not begun, by start
	cuts    []berth.PE  // where stretches of PEs begin
	starts  [][]berth.Time
	ends    holdings
	outages []*Bar // by start
	ahead   []*Bar // those of them that have not begun
	down    berth.PESet
	changes berth.Time // when another outage begins or ends next
}

// newLayout returns the layout before the first promise.
func newLayout(pool *berth.Pool, fixed [][]Bar, late []unbound) *layout {
	l := &layout{idle: berth.NewPESet(berth.Run{Hi: berth.PE(pool.PEs)})}
	for _, page := range fixed {
		for i := range page {
			switch b := &page[i]; {
			case b.Class == ClassOutage:
				l.outages = append(l.outages, b)
			case b.End > late[0].Start: // what is over may have been there too
				l.coming = append(l.coming, b)
			}
		}
	}
	slices.SortFunc(l.coming, func(a, b *Bar) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.First, b.First)) })
	slices.SortStableFunc(l.outages, func(a, b *Bar) int { return cmp.Compare(a.Start, b.Start) })
	l.ahead = l.outages
	l.cut()
	return l
}

// resume goes on where a leg begins.
func (l *layout) resume(g *leg) {
	l.idle, l.ends = g.idle, slices.Clone(g.ends) // what is sorted is a heap
	for len(l.coming) > 0 && l.coming[0].Start <= g.first.Start {
		l.coming = l.coming[1:]
	}
}

// place assigns PEs to a promise.
func (l *layout) place(u *unbound, g *leg) {
	b := u.Bar
	b.Flags |= Provisional
	l.advance(b.Start)
	pes := l.lowest(b.PEs, b.Start, b.End)
	l.take(pes, b.End)
	if short := b.PEs - pes.Count(); short > 0 {
		lacking := b
		lacking.PEs = short
		g.unplaced = append(g.unplaced, lacking)
	}
	eachRun(b, pes, func(b Bar) { g.placed = append(g.placed, b) })
}

// take has PEs held until a time.
func (l *layout) take(pes berth.PESet, until berth.Time) {
	if !pes.Empty() {
		l.idle = l.idle.Minus(pes)
		heap.Push(&l.ends, holding{until, pes})
	}
}

// advance lets time pass.
func (l *layout) advance(now berth.Time) {
	for len(l.ends) > 0 && l.ends[0].until <= now {
		l.idle = l.idle.Or(heap.Pop(&l.ends).(holding).pes)
	}
	for len(l.coming) > 0 && l.coming[0].Start <= now {
		if b := l.coming[0]; b.End > now {
			l.take(b.set(), b.End)
		}
		l.coming = l.coming[1:]
	}
	if now < l.changes { // which is 0 at first
		return
	}
	var runs []berth.Run
	l.changes = berth.Forever
	for _, b := range l.outages {
		switch {
		case b.Start > now:
			l.changes = min(l.changes, b.Start)
		case b.End > now:
			runs = append(runs, berth.Run{Lo: b.First, Hi: b.First + berth.PE(b.PEs)})
			l.changes = min(l.changes, b.End)
		}
	}
	l.down = berth.NewPESet(runs...)
}

// cut divides the PEs into stretches at the edges of what is coming, each with the starts of
// what comes there, in order. Of what comes a PE is wanted by one at a time, so the first start
// of its stretch tells until when it is idle.
func (l *layout) cut() {
	l.cuts = []berth.PE{0}
	for _, b := range l.coming {
		l.cuts = append(l.cuts, b.First, b.First+berth.PE(b.PEs))
	}
	slices.Sort(l.cuts)
	l.cuts = slices.Compact(l.cuts)
	l.starts = make([][]berth.Time, len(l.cuts))
	for _, b := range l.coming {
		for i, _ := slices.BinarySearch(l.cuts, b.First); l.cuts[i] < b.First+berth.PE(b.PEs); i++ {
			l.starts[i] = append(l.starts[i], b.Start)
		}
	}
}

// lowest returns the lowest PEs, n or as many as there are, that are idle and in use now, and
// that nothing which is coming wants before a time: those first that stay in use until then.
func (l *layout) lowest(n berth.Count, now, until berth.Time) berth.PESet {
	free := l.idle.Minus(l.down)
	for len(l.ahead) > 0 && l.ahead[0].Start <= now {
		l.ahead = l.ahead[1:]
	}
	var gone []berth.Run
	for _, b := range l.ahead {
		if b.Start >= until {
			break
		}
		gone = append(gone, berth.Run{Lo: b.First, Hi: b.First + berth.PE(b.PEs)})
	}
	if len(gone) == 0 {
		return l.lowestOf(free, n, now, until)
	}
	going := free.And(berth.NewPESet(gone...))
	pes := l.lowestOf(free.Minus(going), n, now, until)
	if left := n - pes.Count(); left > 0 {
		pes = pes.Or(l.lowestOf(going, left, now, until))
	}
	return pes
}

func (l *layout) lowestOf(idle berth.PESet, n berth.Count, now, until berth.Time) berth.PESet {
	var runs []berth.Run
	for _, free := range idle.Runs() {
		i, found := slices.BinarySearch(l.cuts, free.Lo)
		if !found {
			i--
		}
		for ; i < len(l.cuts) && l.cuts[i] < free.Hi; i++ {
			for len(l.starts[i]) > 0 && l.starts[i][0] <= now { // it is not coming any more
				l.starts[i] = l.starts[i][1:]
			}
			if len(l.starts[i]) > 0 && l.starts[i][0] < until {
				continue
			}
			r := berth.Run{Lo: max(free.Lo, l.cuts[i]), Hi: free.Hi}
			if i+1 < len(l.cuts) {
				r.Hi = min(r.Hi, l.cuts[i+1])
			}
			r.Hi = min(r.Hi, r.Lo+berth.PE(n))
			runs = append(runs, r)
			if n -= berth.Count(r.Hi - r.Lo); n == 0 {
				return berth.NewPESet(runs...)
			}
		}
	}
	return berth.NewPESet(runs...)
}

// set returns the PEs of a bar.
func (b *Bar) set() berth.PESet {
	return berth.NewPESet(berth.Run{Lo: b.First, Hi: b.First + berth.PE(b.PEs)})
}

// holding is PEs that are held until a time.
type holding struct {
	until berth.Time
	pes   berth.PESet
}

// holdings is a heap of holdings by their ends.
type holdings []holding

// sorted returns the holdings by their ends and PEs.
func (e holdings) sorted() holdings {
	return slices.SortedFunc(slices.Values(e), func(a, b holding) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.pes.Runs()[0].Lo, b.pes.Runs()[0].Lo))
	})
}

func (e holdings) Len() int           { return len(e) }
func (e holdings) Less(i, j int) bool { return e[i].until < e[j].until }
func (e holdings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *holdings) Push(x any)        { *e = append(*e, x.(holding)) }
func (e *holdings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
