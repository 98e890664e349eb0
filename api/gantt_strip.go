package api

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// turn is when a bar begins or ends to hold PEs.
type turn struct {
	key   uint32 // twice the seconds behind the first of the canvas, and one more if it begins
	first int32  // by rank; see scales
	pes   int32  // negative if it ends
}

// at returns the seconds behind the first of the canvas.
func (t *turn) at() uint32 { return t.key / 2 }

// digit is how many bits of the keys a pass sorts by: with fewer there are more passes, with
// more the counts do not stay in the nearest cache.
const digit = 11

// scales are reused, since a large pool has megabytes of them.
type scales struct {
	// taken is by how much the number of PEs that are held grows at each second of the window,
	// of those PEs which one bar at most holds at a time. It is nil of a long window, of which
	// most seconds are without a change.
	taken []int32
	// rank is how many PEs before each one may be held twice at a time; these have turns.
	rank        []int32
	list, other []turn
	counts      [3][1 << digit]int // 32 bits in digits
}

var scalesPool = sync.Pool{New: func() any { return &scales{} }}

// maxSeconds is the longest window of which each second is counted: 24 days, in 8 MB.
const maxSeconds = 1 << 21

// rankPEs notes the PEs that may be held twice at a time: by an outage and something else.
// With a long window these are all.
func (k *scales) rankPEs(v *canvas, p *service.Picture) {
	k.rank = slices.Grow(k.rank[:0], int(p.PEs)+1)[:p.PEs+1]
	clear(k.rank)
	if k.taken == nil {
		for i := range k.rank {
			k.rank[i] = int32(i)
		}
		return
	}
	for _, page := range p.Pages {
		for i := range page {
			if b := &page[i]; b.Class == service.ClassOutage && v.during(b) {
				k.rank[b.First]++
				k.rank[min(b.First+berth.PE(b.PEs), berth.PE(p.PEs))]--
			}
		}
	}
	outages, before := int32(0), int32(0)
	for i := range k.rank {
		outages += k.rank[i]
		k.rank[i] = before
		if outages > 0 {
			before++
		}
	}
}

// weigh notes all bars of the window: when how many PEs are held by one alone, and the turns
// of the others in order; at one time what ends comes first. Cost: O(n + s) for s seconds, of
// which no bar is passed twice; the turns take a pass for each digit of their keys.
func (k *scales) weigh(v *canvas, p *service.Picture) []turn {
	t0, end := v.t0, v.end()
	if seconds := int64(end - t0); seconds <= maxSeconds {
		k.taken = slices.Grow(k.taken[:0], int(seconds))[:seconds]
		clear(k.taken)
	} else {
		k.taken = nil
	}
	k.rankPEs(v, p)
	list := k.list[:0]
	counts := &k.counts
	*counts = [3][1 << digit]int{}
	put := func(t turn) {
		list = append(list, t)
		counts[0][t.key&(1<<digit-1)]++
		counts[1][t.key>>digit&(1<<digit-1)]++
		counts[2][t.key>>(2*digit)]++
	}
	// add notes PEs of a bar: some that are its own, and some by rank.
	add := func(b *service.Bar, own, first, pes int32) {
		from := uint32(max(b.Start, t0) - t0)
		if own > 0 {
			k.taken[from] += own
			if b.End < end {
				k.taken[b.End-t0] -= own
			}
		}
		if pes > 0 {
			put(turn{key: from*2 + 1, first: first, pes: pes})
			if b.End < end {
				put(turn{key: uint32(b.End-t0) * 2, first: first, pes: -pes})
			}
		}
	}
	for _, page := range p.Pages {
		for i := range page {
			b := &page[i]
			if b.Start >= end || b.End <= t0 {
				continue
			}
			last := min(b.First+berth.PE(b.PEs), berth.PE(p.PEs))
			first := k.rank[b.First]
			pes := k.rank[last] - first
			add(b, int32(last-b.First)-pes, first, pes)
		}
	}
	for i := range p.Unplaced {
		b := &p.Unplaced[i]
		if b.Flags&service.Provisional == 0 || !v.during(b) { // what a promise lacks it does not hold
			continue
		}
		if k.taken != nil {
			add(b, int32(b.PEs), 0, 0)
		} else {
			add(b, 0, -1, int32(b.PEs)) // of no PE yet
		}
	}
	k.list = list
	return k.sorted(end - t0)
}

// sorted returns the turns by their keys.
func (k *scales) sorted(window berth.Time) []turn {
	list, other := k.list, slices.Grow(k.other[:0], len(k.list))[:len(k.list)]
	for d := 0; len(list) > 1 && d*digit < bits.Len64(uint64(window))+1; d++ {
		ends := &k.counts[d]
		sum := 0
		for i := range ends {
			ends[i], sum = sum, sum+ends[i]
		}
		for i := range list {
			n := &ends[list[i].key>>(d*digit)&(1<<digit-1)]
			other[*n] = list[i]
			*n++
		}
		list, other = other, list
	}
	k.list, k.other = list, other
	return list
}

// strip writes the least number of PEs of the whole pool that are free at the same time in
// each bucket. A PE that is held twice, by a promise and by an outage, is taken once.
// Cost: O(n + s + PEs of all bars that are held twice) for s seconds.
func (v *canvas) strip(out []byte, p *service.Picture) {
	k := scalesPool.Get().(*scales)
	defer scalesPool.Put(k)
	turns := k.weigh(v, p)
	holders := make([]uint16, k.rank[p.PEs])
	free := int64(p.PEs)
	apply := func(t *turn) {
		switch {
		case t.first < 0:
			free -= int64(t.pes)
		case t.pes > 0:
			held := holders[t.first : t.first+t.pes]
			for i := range held {
				if held[i]++; held[i] == 1 {
					free--
				}
			}
		default:
			held := holders[t.first : t.first-t.pes]
			for i := range held {
				if held[i]--; held[i] == 0 {
					free++
				}
			}
		}
	}
	next := 0
	for x := range v.width {
		begin, end := uint32(int64(x)*v.step), uint32(int64(x+1)*v.step)
		least := int64(math.MaxInt64)
		for at := begin; at < end; { // from one turn to the next
			for ; next < len(turns) && turns[next].at() <= at; next++ {
				apply(&turns[next])
			}
			stop := end
			if next < len(turns) {
				stop = min(stop, turns[next].at())
			}
			if k.taken == nil {
				least = min(least, free)
			} else {
				for _, taken := range k.taken[at:stop] {
					free -= int64(taken)
					least = min(least, free)
				}
			}
			at = stop
		}
		binary.LittleEndian.PutUint32(out[4*x:], uint32(max(least, 0)))
	}
}
