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
// ends are not idle. Cost: O((n + f) log f + n (o + r)) for n promises, f fixed bars, of which
// o begin later than them, and r runs of idle PEs. The promises are in that order.
func layOut(pool *berth.Pool, fixed [][]Bar, late []unbound) (placed, unplaced []Bar) {
	l := layout{idle: berth.NewPESet(berth.Run{Hi: berth.PE(pool.PEs)})}
	for _, page := range fixed {
		for i := range page {
			switch b := &page[i]; {
			case b.Class == ClassOutage:
				l.outages = append(l.outages, b)
			case b.Flags&IsOver == 0:
				l.coming = append(l.coming, b)
			}
		}
	}
	slices.SortFunc(l.coming, func(a, b *Bar) int { return cmp.Compare(a.Start, b.Start) })
	for i := range late {
		b := late[i].Bar
		b.Flags |= Provisional
		l.advance(b.Start)
		pes := l.idle.Minus(l.down).Minus(l.wanted(b.End))
		pes = pes.Lowest(min(b.PEs, pes.Count()))
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

// wanted returns the PEs of what begins before a time.
func (l *layout) wanted(until berth.Time) berth.PESet {
	var pes berth.PESet
	for _, b := range l.coming {
		if b.Start >= until {
			break
		}
		pes = pes.Or(b.set())
	}
	return pes
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
