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
	at    uint32 // seconds behind the first of the canvas
	first int32  // -1 of what has no PE yet
	pes   int32  // negative if it ends
}

// turning is reused, since a large pool has megabytes of turns.
type turning struct{ list, other []turn }

var turnings = sync.Pool{New: func() any { return &turning{} }}

// turns returns when bars begin and end on the canvas, in order; at one time what ends comes
// first. Cost: O(n), a pass for each 11 bits of the window's length.
func (v *canvas) turns(p *service.Picture, scratch *turning) []turn {
	list := scratch.list[:0]
	end := v.end()
	add := func(bars []service.Bar, placed, begins bool) {
		for i := range bars {
			b := &bars[i]
			if !v.during(b) || !begins && b.End >= end || !placed && b.Flags&service.Provisional == 0 {
				continue // what a promise lacks it does not hold
			}
			t := turn{at: uint32(max(b.Start, v.t0) - v.t0), first: -1, pes: int32(b.PEs)}
			if placed {
				t.first = int32(b.First)
				t.pes = min(t.pes, int32(p.PEs)-t.first)
			}
			if !begins {
				t.at, t.pes = uint32(b.End-v.t0), -t.pes
			}
			list = append(list, t)
		}
	}
	for _, begins := range []bool{false, true} {
		for _, page := range p.Pages {
			add(page, true, begins)
		}
		add(p.Unplaced, false, begins)
	}
	const digit = 11
	other := slices.Grow(scratch.other[:0], len(list))[:len(list)]
	for shift := 0; shift < bits.Len64(uint64(end-v.t0)); shift += digit {
		var ends [1 << digit]int
		for i := range list {
			ends[list[i].at>>shift&(1<<digit-1)]++
		}
		sum := 0
		for d := range ends {
			ends[d], sum = sum, sum+ends[d]
		}
		for i := range list {
			d := list[i].at >> shift & (1<<digit - 1)
			other[ends[d]] = list[i]
			ends[d]++
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
		for ; next < len(turns) && turns[next].at <= begin; next++ {
			apply(&turns[next])
		}
		least := free
		for next < len(turns) && turns[next].at < end {
			for at := turns[next].at; next < len(turns) && turns[next].at == at; next++ {
				apply(&turns[next])
			}
			least = min(least, free)
		}
		binary.LittleEndian.PutUint32(out[4*x:], uint32(max(least, 0)))
	}
}
