package service

import (
	"time"

	"github.com/berth-hpc/berth"
)

// gathered is how much waits to be decided together, as soon as the engine is
// woken, and how long that takes. No more is gathered than can be decided in a quarter of a slice:
// the next caller waits for all of it. The zero value has nothing, and knows nothing.
type gathered struct {
	weight int
	pace   time.Duration // of one request of a part, lately
}

// What a request weighs tells heavy ones from light ones, and no more: one of a part and a variant counts as a dozen further looks for a
// place, and a look as a hundred runs of a set. How long that takes is measured as it is decided.
const (
	weightOfRequest = 12
	runsPerWeight   = 100
)

// weigh returns what a request weighs.
func weigh(r *berth.Request) int {
	looks, runs := 0, 0
	for i := range r.Parts {
		looks += len(r.Parts[i].Variants)
		runs += len(r.Parts[i].Eligible.Runs())
	}
	return weightOfRequest + looks + runs/runsPerWeight
}

// settling is after how many requests their pace counts as much as the one before: one
// that was held up for some other reason does not matter, and a burst does.
const settling = 32

// full reports whether it is time to decide.
func (g *gathered) full() bool { return g.takes(g.weight) > slice/4 }

// takes returns how long deciding what weighs so much takes.
func (g *gathered) takes(weight int) time.Duration {
	return time.Duration(weight) * g.pace / weightOfRequest
}

// piece returns how many parts of an array that weigh so much each can be decided in a quarter of a slice, at least
// one and at most arrayPiece.
func (g *gathered) piece(weight int) int {
	each := g.takes(weight)
	if each == 0 {
		return arrayPiece
	}
	return max(1, int(min(slice/4/each, arrayPiece)))
}

// add notes a request that waits.
func (g *gathered) add(r *berth.Request) { g.weight += weigh(r) }

// decided notes that deciding all of them has taken so long.
func (g *gathered) decided(took time.Duration) {
	if g.weight > 0 {
		was := settling * weightOfRequest
		g.pace = (time.Duration(was)*g.pace + took*weightOfRequest) / time.Duration(was+g.weight)
		g.weight = 0
	}
}
