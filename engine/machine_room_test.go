package engine_test

import (
	mathbits "math/bits"

	"github.com/berth-hpc/berth"
)

// span is how many seconds ahead the model looks. What reaches beyond is cut off
// there, and nothing is asserted about it.
const span = 256

// room is what is taken, second by second from a time on: an array of seconds for
// each pool and each stock. It is made anew whenever it is needed, so that no
// fault of yesterday lives on in it.
type room struct {
	from   berth.Time
	pools  []poolRoom
	stocks []stockRoom
}

// poolRoom is what is taken of a pool: PEs where they have numbers, else how many.
type poolRoom struct {
	busy [span]uint64
	used [span]int32
}

// stockRoom is how many units are taken of a stock.
type stockRoom struct{ used [span]int64 }

// clip returns an interval as indices of the arrays.
func (r *room) clip(start, end berth.Time) (from, to int) {
	return int(min(max(start-r.from, 0), span)), int(min(max(end-r.from, 0), span))
}

// clear makes everything free.
func (r *room) clear(w *world, from berth.Time) {
	if len(r.pools) != len(w.pools) || len(r.stocks) != len(w.stocks) {
		r.pools, r.stocks = make([]poolRoom, len(w.pools)), make([]stockRoom, len(w.stocks))
	}
	r.from = from
	clear(r.pools)
	clear(r.stocks)
}

// conflict is what is promised twice.
type conflict struct {
	resource berth.ResourceID
	at       berth.Time
}

// take takes PEs for a while. It reports whether some of them were taken already;
// there counts how many there are.
func (r *room) take(w *world, pool int, npe berth.Count, pes uint64, start, end berth.Time) (clash conflict, ok bool) {
	from, to := r.clip(start, end)
	p, ok := &r.pools[pool], true
	early := w.pools[pool].early()
	size := int32(w.pools[pool].pool.PEs)
	for i := from; i < to; i++ {
		if early {
			if ok && p.busy[i]&pes != 0 {
				clash, ok = conflict{w.pools[pool].id, r.from + berth.Time(i)}, false
			}
			p.busy[i] |= pes
			continue
		}
		// What runs holds PEs that an outage has announced until it is over.
		if p.used[i] += int32(npe) - int32(mathbits.OnesCount64(p.busy[i]&pes)); ok && p.used[i] > size {
			clash, ok = conflict{w.pools[pool].id, r.from + berth.Time(i)}, false
		}
	}
	return clash, ok
}

// takeStock does the same with a stock.
func (r *room) takeStock(w *world, stock int, units int64, start, end berth.Time) (clash conflict, ok bool) {
	from, to := r.clip(start, end)
	s, ok := &r.stocks[stock], true
	for i := from; i < to; i++ {
		if s.used[i] += units; ok && s.used[i] > w.stocks[stock].size {
			clash, ok = conflict{w.stocks[stock].id, r.from + berth.Time(i)}, false
		}
	}
	return clash, ok
}

// freePEs returns the PEs of a pool, with numbers, that are free throughout.
func (r *room) freePEs(w *world, pool int, start, end berth.Time) uint64 {
	from, to := r.clip(start, end)
	mask := w.pools[pool].all
	for _, busy := range r.pools[pool].busy[from:to] {
		mask &^= busy
	}
	return mask
}

// free returns how many PEs of a pool are free throughout; with numbers, of those
// in a mask.
func (r *room) free(w *world, pool int, mask uint64, start, end berth.Time) int32 {
	if w.pools[pool].early() {
		return int32(mathbits.OnesCount64(r.freePEs(w, pool, start, end) & mask))
	}
	from, to := r.clip(start, end)
	least := int32(w.pools[pool].pool.PEs)
	for _, used := range r.pools[pool].used[from:to] {
		least = min(least, int32(w.pools[pool].pool.PEs)-used)
	}
	return least
}

// stockFree returns how many units of a stock are free throughout.
func (r *room) stockFree(w *world, stock int, start, end berth.Time) int64 {
	from, to := r.clip(start, end)
	least := w.stocks[stock].size
	for _, used := range r.stocks[stock].used[from:to] {
		least = min(least, w.stocks[stock].size-used)
	}
	return least
}

// booked returns the PE-seconds of a pool that are taken before a time.
func (r *room) booked(w *world, pool int, until berth.Time) int64 {
	from, to := r.clip(r.from, until)
	sum := int64(0)
	for i := from; i < to; i++ {
		if w.pools[pool].early() {
			sum += int64(mathbits.OnesCount64(r.pools[pool].busy[i]))
		} else {
			sum += int64(r.pools[pool].used[i])
		}
	}
	return sum
}
