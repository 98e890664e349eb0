package api

import (
	"encoding/binary"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// canvas is a window of a picture in buckets of time and groups of PEs.
type canvas struct {
	t0     berth.Time // of the first bucket
	step   int64      // seconds of a bucket: 60 times a power of two
	upside uint64     // 2^64 by step, and more: the high half of a product with it is divided by step
	width  int        // in buckets
	lo, hi int64      // PEs
	group  int64      // PEs of a group: a power of two
	height int        // in groups
}

// newCanvas returns the canvas of a window of a pool with so many PEs. The first bucket may
// begin before the window. The error is about PEs that the pool does not have.
func newCanvas(p *plan, pes berth.Count) (canvas, error) {
	v := canvas{step: 60, group: 1, lo: p.lo, hi: p.hi}
	for {
		v.t0 = floor(p.from, v.step)
		if v.width = int((int64(p.to-v.t0) + v.step - 1) / v.step); v.width <= maxWidth {
			break
		}
		v.step *= 2
	}
	v.upside = math.MaxUint64/uint64(v.step) + 1
	if v.hi == 0 || v.hi > int64(pes) {
		v.hi = int64(pes)
	}
	if v.lo >= v.hi {
		return v, berth.Errorf(berth.Invalid, "lo", "%d; the pool has %d PEs, counted from 0", v.lo, pes)
	}
	for (v.hi-v.lo+v.group-1)/v.group > maxHeight {
		v.group *= 2
	}
	v.height = int((v.hi - v.lo + v.group - 1) / v.group)
	return v, nil
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

// during reports whether a bar is in the window of time.
func (v *canvas) during(b *service.Bar) bool { return b.Start < v.end() && b.End > v.t0 }

// has reports whether a bar with PEs is on the canvas.
func (v *canvas) has(b *service.Bar) bool {
	return int64(b.First) < v.hi && int64(b.First)+int64(b.PEs) > v.lo && v.during(b)
}

// waits reports whether promises without PEs are on the canvas: they stand behind the last PE.
func (v *canvas) waits(p *service.Picture) bool { return v.hi == int64(p.PEs) }

// count returns how many bars are on the canvas, at most one more than most.
func (v *canvas) count(p *service.Picture, most int) int {
	n := 0
	for _, page := range p.Pages {
		for i := range page {
			if v.has(&page[i]) {
				n++
			}
		}
		if n > most {
			return most + 1
		}
	}
	if v.waits(p) {
		for i := range p.Unplaced {
			if v.during(&p.Unplaced[i]) {
				n++
			}
		}
	}
	return min(n, most+1)
}

// columns writes n bars, as form.GanttType has them.
func (v *canvas) columns(out []byte, p *service.Picture, n int) {
	order := binary.LittleEndian
	at := 0
	put := func(b *service.Bar, first berth.PE) {
		start, end, flags := v.clipped(b)
		order.PutUint32(out[4*at:], uint32(int32(start-v.t0)))
		order.PutUint32(out[4*(n+at):], uint32(end-start))
		order.PutUint32(out[4*(2*n+at):], uint32(first))
		order.PutUint32(out[4*(3*n+at):], uint32(b.PEs))
		order.PutUint32(out[4*(4*n+at):], b.Number)
		out[20*n+at] = byte(b.Class)
		out[21*n+at] = byte(flags | p.Shown(b))
		at++
	}
	for _, page := range p.Pages {
		for i := range page {
			if b := &page[i]; v.has(b) {
				put(b, b.First)
			}
		}
	}
	if v.waits(p) {
		for i := range p.Unplaced {
			if b := &p.Unplaced[i]; v.during(b) {
				put(b, berth.PE(p.PEs))
			}
		}
	}
}

// clipped cuts off what is so far outside of the window that nobody sees it, and no
// number of 32 bits holds it.
func (v *canvas) clipped(b *service.Bar) (start, end berth.Time, flags service.Flags) {
	const far = berth.Time(1 << 30)
	start, end = b.Start, b.End
	if start < v.t0-far {
		start, flags = v.t0-far, service.OpenStart
	}
	if last := v.end() + far; end > last {
		end, flags = last, flags|service.OpenEnd
	}
	return start, end, flags
}

// classes are those that hold something.
const classes = int(service.ClassOutage)

// stroke is a bar on the canvas: the buckets that it touches, and for how long it has the
// first and the last of them. If they are the same one, tail is 0.
type stroke struct {
	first, last int32
	head, tail  int32 // seconds; no longer than a bucket
	lo, hi      int32 // PEs
	class       int32 // from 0 on
}

// stroke returns what of a bar is on the canvas.
func (v *canvas) stroke(b *service.Bar) stroke {
	start, end := int64(max(b.Start, v.t0)-v.t0), int64(min(b.End, v.end())-v.t0)
	s := stroke{first: v.bucket(start), last: v.bucket(end - 1), lo: int32(b.First), hi: int32(b.First) + int32(b.PEs), class: int32(b.Class) - 1}
	if s.first == s.last {
		s.head = int32(end - start)
	} else {
		s.head, s.tail = int32(int64(s.first+1)*v.step-start), int32(end-int64(s.last)*v.step)
	}
	return s
}

// bucket returns the one that a second of the window is in. The product is exact for numbers
// of 32 bits (Lemire, Kaser and Kurz, "Faster remainder by direct computation", 2019, theorem 1).
func (v *canvas) bucket(second int64) int32 {
	high, _ := bits.Mul64(uint64(second), v.upside)
	return int32(high)
}

// cells writes one byte for each bucket of the groups that are wanted, group by group: the
// class that holds most PE-seconds of it in the high half, and how much of it is held, in
// fifteenths and rounded up, in the low half. A cell that anything degraded touches is
// degraded. Of classes that hold the same the higher one counts. Cost: O(n h' + w h) for n
// bars that reach into h' wanted groups each, on all processors.
func (v *canvas) cells(out []byte, p *service.Picture, wanted []bool) {
	before := make([]int, v.height+1) // wanted groups before each
	for g, is := range wanted {
		before[g+1] = before[g]
		if is {
			before[g+1]++
		}
	}
	if before[v.height] == 0 {
		return
	}
	draw := paint[int64]
	if v.group*v.step <= maxSmall {
		draw = paint[int32]
	}
	parts := min(runtime.GOMAXPROCS(0), 1+before[v.height]/32) // fewer are not worth a goroutine
	var painting sync.WaitGroup
	from := 0
	for part := range parts {
		first, last := from, from
		for last < v.height && before[last] < before[v.height]*(part+1)/parts {
			last++
		}
		if from = last; part < parts-1 {
			painting.Go(func() { draw(v, out, p, wanted, first, last) })
		} else {
			draw(v, out, p, wanted, first, last)
		}
	}
	painting.Wait()
}

// seconds are PE-seconds. Small ones are read and added faster.
type seconds interface{ int32 | int64 }

// maxSmall is up to how many PE-seconds of a cell 32 bits are used. What is held twice, by
// several outages, has them several times.
const maxSmall = 1 << 20

// groups returns the groups that a bar reaches into, [first, last).
func (v *canvas) groups(b *service.Bar) (first, last int) {
	lo, hi := max(int64(b.First), v.lo), min(int64(b.First)+int64(b.PEs), v.hi)
	return int((lo - v.lo) / v.group), int((hi-v.lo-1)/v.group) + 1
}

// barsOf goes through the bars of a picture.
type barsOf struct {
	pages [][]service.Bar
	at    int // of the first page
}

// first returns the bar that is next, or nil.
func (o *barsOf) first() *service.Bar {
	for len(o.pages) > 0 && o.at == len(o.pages[0]) {
		o.pages, o.at = o.pages[1:], 0
	}
	if len(o.pages) == 0 {
		return nil
	}
	return &o.pages[0][o.at]
}

// next passes a bar and returns the one behind it, or nil.
func (o *barsOf) next() *service.Bar {
	o.at++
	return o.first()
}

// paint writes the cells of the wanted groups of [from, to).
func paint[N seconds](v *canvas, out []byte, p *service.Picture, wanted []bool, from, to int) {
	// What a bar holds changes at no more than four buckets, where the difference to the one
	// before is noted.
	change := make([][classes]N, v.width+2)
	var live []stroke // that reach into the group
	coming := barsOf{pages: p.Pages}
	painted, alike := -1, false
	leaves := int64(0) // the first PE behind the lowest of the live ones
	for g := from; g < to; g++ {
		lo := v.lo + int64(g)*v.group
		hi := min(lo+v.group, v.hi)
		same := true
		if leaves <= lo {
			was := len(live)
			live = slices.DeleteFunc(live, func(s stroke) bool { return int64(s.hi) <= lo })
			same = len(live) == was
			leaves = v.hi
			for i := range live {
				leaves = min(leaves, int64(live[i].hi))
			}
		}
		for b := coming.first(); b != nil && int64(b.First) < hi; b = coming.next() {
			if last := int64(b.First) + int64(b.PEs); last > lo && v.during(b) {
				live = append(live, v.stroke(b))
				leaves = min(leaves, last)
				same = false
			}
		}
		if !wanted[g] {
			continue
		}
		row := out[g*v.width : (g+1)*v.width]
		full := hi-lo == v.group && v.fill(live, lo, hi)
		if same && full && alike && painted == g-1 { // as promises of many PEs make them
			copy(row, out[painted*v.width:])
		} else {
			for i := range live {
				s := &live[i]
				pes := N(min(int64(s.hi), hi) - max(int64(s.lo), lo))
				head, tail, whole := pes*N(s.head), pes*N(s.tail), pes*N(v.step)
				change[s.first][s.class] += head
				if s.first == s.last {
					change[s.first+1][s.class] -= head
					continue
				}
				change[s.first+1][s.class] += whole - head
				change[s.last][s.class] += tail - whole
				change[s.last+1][s.class] -= tail
			}
			shade(row, change, N(hi-lo)*N(v.step))
		}
		painted, alike = g, full
	}
}

// fill reports whether all strokes have all PEs of a group.
func (v *canvas) fill(live []stroke, lo, hi int64) bool {
	if v.group == 1 {
		return true
	}
	for i := range live {
		if int64(live[i].lo) > lo || int64(live[i].hi) < hi {
			return false
		}
	}
	return true
}

// shade writes the cells of a group, of which each has so many PE-seconds, and clears what
// it has read.
func shade[N seconds](row []byte, change [][classes]N, whole N) {
	var held [classes]N
	last := byte(0)
	for x := range row {
		if c := &change[x]; c[0]|c[1]|c[2]|c[3] != 0 {
			for class := range held {
				held[class] += c[class]
			}
			*c = [classes]N{}
			last = cell(&held, whole)
		}
		row[x] = last
	}
	clear(change[len(row):])
}

// cell returns the byte of a cell.
func cell[N seconds](held *[classes]N, whole N) byte {
	const degraded = int(service.ClassDegraded) - 1
	all, most := held[0], 0
	for class := 1; class < classes; class++ {
		all += held[class]
		if held[class] > 0 && held[class] >= held[most] {
			most = class
		}
	}
	switch {
	case all == 0:
		return 0
	case held[degraded] > 0:
		most = degraded
	}
	share := N(15)
	if all < whole {
		share = (15*all + whole - 1) / whole
	}
	return byte(most+1)<<4 | byte(share)
}

// differ notes the groups into which bars reach that are in one of two pictures alone.
func (v *canvas) differ(a, b [][]service.Bar, wanted []bool) {
	note := func(b *service.Bar) {
		if v.has(b) {
			for first, last := v.groups(b); first < last; first++ {
				wanted[first] = true
			}
		}
	}
	for i := range max(len(a), len(b)) {
		var x, y []service.Bar
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if samePage(x, y) {
			continue
		}
		for len(x) > 0 || len(y) > 0 { // both are in order
			switch {
			case len(x) > 0 && len(y) > 0 && x[0] == y[0]:
				x, y = x[1:], y[1:]
			case len(y) == 0 || len(x) > 0 && precedes(&x[0], &y[0]):
				note(&x[0])
				x = x[1:]
			default:
				note(&y[0])
				y = y[1:]
			}
		}
	}
}

// precedes is the order of the bars of a picture.
func precedes(a, b *service.Bar) bool {
	switch {
	case a.First != b.First:
		return a.First < b.First
	case a.Start != b.Start:
		return a.Start < b.Start
	}
	return a.Number < b.Number
}
