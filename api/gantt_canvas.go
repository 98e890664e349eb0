package api

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// canvas is a window of a picture in buckets of time and groups of PEs.
type canvas struct {
	picture *service.Picture
	t0      berth.Time    // of the first bucket
	step    int64         // seconds of a bucket: 60 times a power of two
	width   int           // in buckets
	lo, hi  int64         // PEs
	group   int64         // PEs of a group: a power of two
	height  int           // in groups
	bars    []service.Bar // by First
	tooMany bool          // bars for an answer
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
// classes that hold the same the higher one counts. Cost: O(n h' + w h) for n bars
// that reach into h' groups each.
func (v *canvas) cells() []byte {
	out := make([]byte, v.width*v.height)
	bars := v.bars // by First, since the picture is, and what has no PE is behind the last
	held := make([][classes]int64, v.width)
	// What a bar adds to the buckets that it holds from end to end is noted where it begins
	// and, negated, where it ends.
	whole := make([][classes]int64, v.width+1)
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
		clear(whole)
		for i := range live {
			b := &live[i]
			pes := min(int64(b.First)+int64(b.PEs), to) - max(int64(b.First), from)
			start, end := int64(max(b.Start, v.t0)-v.t0), int64(min(b.End, v.end())-v.t0)
			if start >= end {
				continue
			}
			first, last := start/v.step, (end-1)/v.step
			if first == last {
				held[first][b.Class] += pes * (end - start)
				continue
			}
			held[first][b.Class] += pes * ((first+1)*v.step - start)
			held[last][b.Class] += pes * (end - last*v.step)
			whole[first+1][b.Class] += pes * v.step
			whole[last][b.Class] -= pes * v.step
		}
		row := out[g*v.width : (g+1)*v.width]
		size := (to - from) * v.step
		var sum [classes]int64
		for x := range row {
			here := &held[x]
			for class := range sum {
				sum[class] += whole[x][class]
				here[class] += sum[class]
			}
			row[x] = cell(here, size)
		}
	}
	return out
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
	p := v.picture
	placed := len(p.Bars)
	bar := func(i int) *service.Bar {
		if i < placed {
			return &p.Bars[i]
		}
		return &p.Unplaced[i-placed]
	}
	// An event is one number, so that sorting is fast: seconds behind t0, whether a bar begins,
	// which must come behind what ends, and which bar. A window has less than 2^31 seconds, an
	// answer of the service fewer than 2^31 bars.
	const begins = 1 << 31
	events := make([]uint64, 0, 2*(placed+len(p.Unplaced)))
	for i := range placed + len(p.Unplaced) {
		b := bar(i)
		events = append(events, uint64(max(b.Start, v.t0)-v.t0)<<32|begins|uint64(i))
		if b.End < v.end() {
			events = append(events, uint64(max(b.End, v.t0)-v.t0)<<32|uint64(i))
		}
	}
	slices.Sort(events)
	holders := make([]uint16, p.PEs)
	free := int64(p.PEs)
	apply := func(event uint64) {
		i := int(event & (begins - 1))
		b := bar(i)
		switch begin := event&begins != 0; {
		case i >= placed && begin:
			free -= int64(b.PEs)
		case i >= placed:
			free += int64(b.PEs)
		case begin:
			for pe := range holders[b.First:min(int(b.First)+int(b.PEs), len(holders))] {
				if holders[int(b.First)+pe]++; holders[int(b.First)+pe] == 1 {
					free--
				}
			}
		default:
			for pe := range holders[b.First:min(int(b.First)+int(b.PEs), len(holders))] {
				if holders[int(b.First)+pe]--; holders[int(b.First)+pe] == 0 {
					free++
				}
			}
		}
	}
	out := make([]uint32, v.width)
	next := 0
	for x := range out {
		begin, end := uint64(int64(x)*v.step), uint64(int64(x+1)*v.step)
		for ; next < len(events) && events[next]>>32 <= begin; next++ {
			apply(events[next])
		}
		least := free
		for next < len(events) && events[next]>>32 < end {
			for at := events[next] >> 32; next < len(events) && events[next]>>32 == at; next++ {
				apply(events[next])
			}
			least = min(least, free)
		}
		out[x] = uint32(max(least, 0))
	}
	return out
}
