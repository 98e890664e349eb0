package api

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// canvas is a window of a picture in buckets of time and groups of PEs.
type canvas struct {
	picture *service.Picture
	t0      berth.Time // of the first bucket
	step    int64      // seconds of a bucket: 60 times a power of two
	width   int        // in buckets
	lo, hi  int64      // PEs
	group   int64      // PEs of a group: a power of two
	height  int        // in groups
	bars    []service.Bar
	tooMany bool // bars for an answer
}

// newCanvas returns the canvas of a window, without its bars: they are asked for of all
// buckets, of which the first may begin before the window.
func newCanvas(p *plan) *canvas {
	v := &canvas{step: 60, group: 1, lo: p.lo, hi: p.hi}
	for {
		v.t0 = floor(p.from, v.step)
		if v.width = int((int64(p.to-v.t0) + v.step - 1) / v.step); v.width <= maxWidth {
			return v
		}
		v.step *= 2
	}
}

// show puts the bars of a picture on the canvas, as cells if they are more than most. The
// error is about PEs that the pool does not have.
func (v *canvas) show(picture *service.Picture, most int) error {
	v.picture = picture
	if v.hi == 0 || v.hi > int64(picture.PEs) {
		v.hi = int64(picture.PEs)
	}
	if v.lo >= v.hi {
		return berth.Errorf(berth.Invalid, "lo", "%d; the pool has %d PEs, counted from 0", v.lo, picture.PEs)
	}
	for (v.hi-v.lo+v.group-1)/v.group > maxHeight {
		v.group *= 2
	}
	v.height = int((v.hi - v.lo + v.group - 1) / v.group)
	for _, b := range picture.Bars {
		if int64(b.First) < v.hi && int64(b.First)+int64(b.PEs) > v.lo {
			v.bars = append(v.bars, v.clipped(b))
		}
	}
	if v.hi == int64(picture.PEs) { // what has no PE stands behind the last one
		for _, b := range picture.Unplaced {
			b.First = berth.PE(picture.PEs)
			v.bars = append(v.bars, v.clipped(b))
		}
	}
	v.tooMany = len(v.bars) > most
	return nil
}

// clipped cuts off what is so far outside of the window that nobody sees it, and no
// number of 32 bits holds it.
func (v *canvas) clipped(b service.Bar) service.Bar {
	const far = berth.Time(1 << 30)
	end := v.end()
	if b.Start < v.t0-far {
		b.Start, b.Flags = v.t0-far, b.Flags|service.OpenStart
	}
	if b.End > end+far {
		b.End, b.Flags = end+far, b.Flags|service.OpenEnd
	}
	return b
}

func (v *canvas) end() berth.Time { return v.t0 + berth.Time(int64(v.width)*v.step) }

// floor returns the last multiple of a step that is not after a time.
func floor(t berth.Time, step int64) berth.Time {
	rest := int64(t) % step
	if rest < 0 {
		rest += step
	}
	return t - berth.Time(rest)
}

const classes = int(service.ClassOutage) + 1

// cells returns one byte for each bucket of each group, group by group: the class that
// holds most PE-seconds of it in the high half, and how much of it is held, in fifteenths
// and rounded up, in the low half. A cell that anything degraded touches is degraded. Of
// classes that hold the same the higher one counts. Cost: O(n log n + b + w h) for n bars
// that touch b cells.
func (v *canvas) cells() []byte {
	out := make([]byte, v.width*v.height)
	bars := slices.Clone(v.bars)
	slices.SortFunc(bars, func(a, b service.Bar) int { return cmp.Compare(a.First, b.First) })
	held := make([][classes]int64, v.width)
	var live []service.Bar // that reach into the group
	next := 0
	for g := range v.height {
		from := v.lo + int64(g)*v.group
		to := min(from+v.group, v.hi)
		for ; next < len(bars) && int64(bars[next].First) < to; next++ {
			live = append(live, bars[next])
		}
		live = slices.DeleteFunc(live, func(b service.Bar) bool { return int64(b.First)+int64(b.PEs) <= from })
		clear(held)
		for i := range live {
			b := &live[i]
			pes := min(int64(b.First)+int64(b.PEs), to) - max(int64(b.First), from)
			v.eachBucket(b, func(at int, seconds int64) { held[at][b.Class] += pes * seconds })
		}
		row := out[g*v.width : (g+1)*v.width]
		whole := (to - from) * v.step
		for x := range row {
			row[x] = cell(&held[x], whole)
		}
	}
	return out
}

// eachBucket calls do with each bucket that a bar touches, and for how many seconds.
func (v *canvas) eachBucket(b *service.Bar, do func(at int, seconds int64)) {
	start, end := int64(max(b.Start, v.t0)-v.t0), int64(min(b.End, v.end())-v.t0)
	for at := start / v.step; at*v.step < end; at++ {
		do(int(at), min(end, (at+1)*v.step)-max(start, at*v.step))
	}
}

// cell returns the byte of a cell.
func cell(held *[classes]int64, whole int64) byte {
	var all int64
	most := service.ClassFree
	for class := range held {
		if all += held[class]; held[class] > 0 && held[class] >= held[most] {
			most = service.Class(class)
		}
	}
	if all == 0 {
		return 0
	}
	if held[service.ClassDegraded] > 0 {
		most = service.ClassDegraded
	}
	share := (15*min(all, whole) + whole - 1) / whole
	return byte(most)<<4 | byte(share)
}

// strip returns the least number of PEs of the whole pool that are free at the same time
// in each bucket. A PE that is held twice, by a promise and by an outage, is taken once.
// Cost: O(n log n + PEs of all bars).
func (v *canvas) strip() []uint32 {
	type event struct {
		at    berth.Time
		bar   *service.Bar
		begin bool
	}
	var events []event
	p := v.picture
	add := func(bars []service.Bar) {
		for i := range bars {
			b := &bars[i]
			events = append(events, event{max(b.Start, v.t0), b, true})
			if b.End < v.end() {
				events = append(events, event{max(b.End, v.t0), b, false})
			}
		}
	}
	add(p.Bars)
	add(p.Unplaced)
	slices.SortFunc(events, func(a, b event) int { // what ends goes before what begins
		ends := 0
		switch {
		case a.begin && !b.begin:
			ends = 1
		case !a.begin && b.begin:
			ends = -1
		}
		return cmp.Or(cmp.Compare(a.at, b.at), ends)
	})
	unplaced := map[*service.Bar]bool{}
	for i := range p.Unplaced {
		unplaced[&p.Unplaced[i]] = true
	}
	holders := make([]uint16, p.PEs)
	free := int64(p.PEs)
	apply := func(e *event) {
		if unplaced[e.bar] {
			if e.begin {
				free -= int64(e.bar.PEs)
			} else {
				free += int64(e.bar.PEs)
			}
			return
		}
		for pe := e.bar.First; pe < e.bar.First+berth.PE(e.bar.PEs) && int(pe) < len(holders); pe++ {
			if e.begin {
				if holders[pe]++; holders[pe] == 1 {
					free--
				}
			} else if holders[pe]--; holders[pe] == 0 {
				free++
			}
		}
	}
	out := make([]uint32, v.width)
	next := 0
	for x := range out {
		begin, end := v.t0+berth.Time(int64(x)*v.step), v.t0+berth.Time(int64(x+1)*v.step)
		for ; next < len(events) && events[next].at <= begin; next++ {
			apply(&events[next])
		}
		least := free
		for next < len(events) && events[next].at < end {
			for at := events[next].at; next < len(events) && events[next].at == at; next++ {
				apply(&events[next])
			}
			least = min(least, free)
		}
		out[x] = uint32(max(least, 0))
	}
	return out
}
