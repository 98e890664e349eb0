package service

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/berth-hpc/berth"
)

// layOut assigns PEs to promises under late binding that have not started, by the rule
// by which the engine binds them at their start: in the order of start, sequence and part,
// the lowest idle PEs. What comes meanwhile may bind them otherwise, so their bars are
// provisional. A promise for which not enough PEs are idle gets the others unplaced: PEs
// that are out of use now may be back by its start. PEs that others have by name before it
// ends are not idle. Cost: O((n + f) log f + s + n (r + g)) for n promises, f fixed bars that
// cut the PEs into stretches, s times that a bar covers one, r runs of idle PEs, and g
// stretches that are passed until there are enough. The promises are in that order.
func layOut(pool *berth.Pool, fixed [][]Bar, late []unbound) (placed, unplaced []Bar) {
	l := layout{idle: berth.NewPESet(berth.Run{Hi: berth.PE(pool.PEs)})}
	for _, page := range fixed {
		for i := range page {
			switch b := &page[i]; {
			case b.Class == ClassOutage:
				l.outages = append(l.outages, b)
			case len(late) > 0 && b.End > late[0].Start: // what is over may have been there too
				l.coming = append(l.coming, b)
			}
		}
	}
	slices.SortFunc(l.coming, func(a, b *Bar) int { return cmp.Compare(a.Start, b.Start) })
	l.cut()
	for i := range late {
		b := late[i].Bar
		b.Flags |= Provisional
		l.advance(b.Start)
		pes := l.lowest(b.PEs, b.Start, b.End)
		l.take(pes, b.End)
		if short := b.PEs - pes.Count(); short > 0 {
			lacking := b
			lacking.PEs = short
			unplaced = append(unplaced, lacking)
		}
		eachRun(b, pes, func(b Bar) { placed = append(placed, b) })
	}
	return placed, unplaced
}

// layout is which PEs are idle as time passes.
type layout struct {
	idle    berth.PESet // held by no promise
	coming  []*Bar      // of fixed PEs, that have not begun, by start
	cuts    []berth.PE  // where stretches of PEs begin
	starts  [][]berth.Time
	ends    holdings
	outages []*Bar
	down    berth.PESet
	changes berth.Time // when another outage begins or ends next
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
	if now < l.changes {
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
// that nothing which is coming wants before a time.
func (l *layout) lowest(n berth.Count, now, until berth.Time) berth.PESet {
	var runs []berth.Run
	for _, free := range l.idle.Minus(l.down).Runs() {
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

func (e holdings) Len() int           { return len(e) }
func (e holdings) Less(i, j int) bool { return e[i].until < e[j].until }
func (e holdings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *holdings) Push(x any)        { *e = append(*e, x.(holding)) }
func (e *holdings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
