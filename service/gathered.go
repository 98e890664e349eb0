package service

import "time"

// gathered is how many requests wait to be decided together, as soon as the engine is
// woken, and how long that takes. No more is gathered than can be decided in half a slice:
// the next caller waits for all of it. The zero value has nothing, and knows nothing.
type gathered struct {
	requests int
	pace     time.Duration // of one request, lately
}

// settling is after how many requests their pace counts as much as the one before: one
// that was held up for some other reason does not matter, and a burst does.
const settling = 32

// full reports whether it is time to decide.
func (g *gathered) full() bool { return time.Duration(g.requests)*g.pace > slice/2 }

// piece returns how many parts of an array can be decided in a quarter of a slice, at least
// one and at most arrayPiece.
func (g *gathered) piece() int {
	if g.pace == 0 {
		return arrayPiece
	}
	return max(1, int(min(slice/4/g.pace, arrayPiece)))
}

// decided notes that deciding all of them has taken so long.
func (g *gathered) decided(took time.Duration) {
	if g.requests > 0 {
		g.pace = (settling*g.pace + took) / time.Duration(settling+g.requests)
		g.requests = 0
	}
}
