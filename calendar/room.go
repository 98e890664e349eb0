package calendar

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/bitset"
)

// sets is the room of early binding: the PEs that are free, by number.
type sets struct {
	size berth.Count
	all  bitset.Set
}

func newSets(size berth.Count) *sets {
	all := bitset.New(size)
	all.Fill(size)
	return &sets{size: size, all: all}
}

func (r *sets) everything(eligible berth.PESet) bitset.Set {
	if eligible.Empty() {
		return slices.Clone(r.all)
	}
	inside := make([]berth.Run, 0, len(eligible.Runs()))
	for _, run := range eligible.Runs() {
		inside = append(inside, berth.Run{Lo: run.Lo, Hi: min(run.Hi, berth.PE(r.size))})
	}
	w := make(bitset.Set, len(r.all))
	w.Put(berth.NewPESet(inside...))
	return w
}

func (*sets) meet(acc, v bitset.Set) bitset.Set {
	for i := range acc {
		acc[i] &= v[i]
	}
	return acc
}

func (*sets) covers(v, free bitset.Set) bool {
	for i := range free {
		if free[i]&^v[i] != 0 {
			return false
		}
	}
	return true
}

func (*sets) equal(a, b bitset.Set) bool                     { return slices.Equal(a, b) }
func (*sets) count(v bitset.Set) berth.Count                 { return v.Count() }
func (*sets) lowest(v bitset.Set, n berth.Count) berth.PESet { return v.Lowest(n) }
func (r *sets) busy(v bitset.Set) berth.PESet                { return r.take(r.all, v).Lowest(r.size) }
func (r *sets) canTake(v, amount bitset.Set) bool            { return r.covers(v, amount) }

func (r *sets) amount(b *Block) bitset.Set {
	w := make(bitset.Set, len(r.all))
	w.Put(b.PEs)
	return w
}

func (*sets) take(v, amount bitset.Set) bitset.Set {
	w := make(bitset.Set, len(v))
	for i := range w {
		w[i] = v[i] &^ amount[i]
	}
	return w
}

func (*sets) canGive(v, amount bitset.Set) bool {
	for i := range v {
		if v[i]&amount[i] != 0 {
			return false
		}
	}
	return true
}

func (*sets) give(v, amount bitset.Set) bitset.Set {
	w := make(bitset.Set, len(v))
	for i := range w {
		w[i] = v[i] | amount[i]
	}
	return w
}

func (r *sets) less(a, b bitset.Set) bitset.Set { return r.take(a, b) }

// counts is the room of late binding: how many PEs are free.
type counts struct{ size berth.Count }

func (r counts) everything(berth.PESet) berth.Count            { return r.size }
func (counts) meet(acc, v berth.Count) berth.Count             { return min(acc, v) }
func (counts) covers(v, free berth.Count) bool                 { return v >= free }
func (counts) equal(a, b berth.Count) bool                     { return a == b }
func (counts) count(v berth.Count) berth.Count                 { return v }
func (counts) lowest(berth.Count, berth.Count) (p berth.PESet) { return p }
func (counts) busy(berth.Count) (p berth.PESet)                { return p }
func (counts) amount(b *Block) berth.Count                     { return b.NPE }
func (counts) canTake(v, amount berth.Count) bool              { return v >= amount }
func (counts) take(v, amount berth.Count) berth.Count          { return v - amount }
func (r counts) canGive(v, amount berth.Count) bool            { return v+amount <= r.size }
func (counts) give(v, amount berth.Count) berth.Count          { return v + amount }
func (counts) less(a, b berth.Count) berth.Count               { return max(a-b, 0) }
