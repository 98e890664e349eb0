package api

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"

	"github.com/berth-hpc/berth/service"
)

// turn is when a bar begins or ends to hold PEs.
type turn struct {
	key   uint32 // twice the seconds behind the first of the canvas, and one more if it begins
	first int32  // -1 of what has no PE yet
	pes   int32  // negative if it ends
}

// at returns the seconds behind the first of the canvas.
func (t *turn) at() uint32 { return t.key / 2 }

// digit is how many bits of the keys a pass sorts by: with fewer there are more passes, with
// more the counts do not stay in the nearest cache.
const digit = 11

// turning is reused, since a large pool has megabytes of turns.
type turning struct {
	list, other []turn
	counts      [3][1 << digit]int // 32 bits in digits
}

var turnings = sync.Pool{New: func() any { return &turning{} }}

// turns returns when bars begin and end on the canvas, in order; at one time what ends comes
// first. Cost: O(n), a pass over the bars and one over the turns for each digit of the keys.
func (v *canvas) turns(p *service.Picture, scratch *turning) []turn {
	list := slices.Grow(scratch.list[:0], 2*(bars(p)+len(p.Unplaced)))
	counts := &scratch.counts
	*counts = [3][1 << digit]int{}
	t0, end := v.t0, v.end()
	put := func(t turn) {
		list = append(list, t)
		counts[0][t.key&(1<<digit-1)]++
		counts[1][t.key>>digit&(1<<digit-1)]++
		counts[2][t.key>>(2*digit)]++
	}
	add := func(b *service.Bar, first, pes int32) {
		put(turn{key: uint32(max(b.Start, t0)-t0)*2 + 1, first: first, pes: pes})
		if b.End < end {
			put(turn{key: uint32(b.End-t0) * 2, first: first, pes: -pes})
		}
	}
	for _, page := range p.Pages {
		for i := range page {
			if b := &page[i]; b.Start < end && b.End > t0 {
				add(b, int32(b.First), min(int32(b.PEs), int32(p.PEs)-int32(b.First)))
			}
		}
	}
	for i := range p.Unplaced {
		if b := &p.Unplaced[i]; b.Flags&service.Provisional != 0 && v.during(b) { // what a promise lacks it does not hold
			add(b, -1, int32(b.PEs))
		}
	}
	other := slices.Grow(scratch.other[:0], len(list))[:len(list)]
	for d := 0; d*digit < bits.Len64(uint64(end-t0))+1; d++ {
		ends := &counts[d]
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
	scratch.list, scratch.other = list, other
	return list
}

// strip writes the least number of PEs of the whole pool that are free at the same time in
// each bucket. A PE that is held twice, by a promise and by an outage, is taken once.
// Cost: O(n + PEs of all bars).
func (v *canvas) strip(out []byte, p *service.Picture) {
	scratch := turnings.Get().(*turning)
	defer turnings.Put(scratch)
	turns := v.turns(p, scratch)
	holders := make([]uint16, p.PEs)
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
		for ; next < len(turns) && turns[next].at() <= begin; next++ {
			apply(&turns[next])
		}
		least := free
		for next < len(turns) && turns[next].at() < end {
			for at := turns[next].at(); next < len(turns) && turns[next].at() == at; next++ {
				apply(&turns[next])
			}
			least = min(least, free)
		}
		binary.LittleEndian.PutUint32(out[4*x:], uint32(max(least, 0)))
	}
}
