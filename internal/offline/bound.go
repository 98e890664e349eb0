package offline

import (
	"math"

	"github.com/berth-hpc/berth"
)

// Prices are what one PE costs for one second, by cells of time: cell k is [Begin + k·Cell,
// Begin + (k+1)·Cell). Outside the cells everything is free.
type Prices struct {
	Begin berth.Time
	Cell  berth.Duration
	Scale int64 // a value v is v·Scale in units of the prices
	Cells []int64
}

// Bound returns a number that the value of no plan exceeds, for any prices of at least 0.
//
// Let each job pay for the PEs it has. Then the value of a plan is what its jobs are worth beyond
// what they pay, and what they pay. The first is at most the sum of what each job is worth beyond
// its cheapest start, where that is positive; the second at most the price of the whole pool. This is
// the Lagrangian dual of the time-indexed linear program with a variable for each job and each
// second at which it may start, so with the best prices by the second it is the optimum of that program.
// It is computed in whole numbers, so rounding loses nothing, however the prices were found.
func (p *Problem) Bound(prices *Prices) int64 {
	l := newLine[int64](prices.Begin, prices.Cell, len(prices.Cells))
	l.set(prices.Cells)
	total := l.sums[len(prices.Cells)] * int64(p.PEs)
	for i := range p.Jobs {
		if j := &p.Jobs[i]; p.fits(j) {
			_, cost := l.cheapest(j)
			total += max(0, j.Value*prices.Scale-cost*int64(j.NPE))
		}
	}
	return total / prices.Scale
}

// line adds up prices over time.
type line[N int64 | float64] struct {
	begin, cell int64
	price, sums []N // of each cell, and of all before it
}

func newLine[N int64 | float64](begin berth.Time, cell berth.Duration, cells int) *line[N] {
	return &line[N]{int64(begin), int64(cell), make([]N, cells), make([]N, cells+1)}
}

// set takes over prices.
func (l *line[N]) set(prices []N) {
	copy(l.price, prices)
	for k, x := range prices {
		whole := x * N(l.cell) // rounded by itself
		l.sums[k+1] = l.sums[k] + whole
	}
}

// until returns the price of one PE from the beginning to a time, given as its cell and the
// seconds in it.
func (l *line[N]) until(k, rest int64) N {
	switch {
	case k < 0:
		return 0
	case k >= int64(len(l.price)):
		return l.sums[len(l.price)]
	}
	part := l.price[k] * N(rest) // rounded by itself
	return l.sums[k] + part
}

// split returns the cell of a time, and the seconds in it.
func (l *line[N]) split(t int64) (k, rest int64) {
	t -= l.begin
	k = t / l.cell
	if t < 0 && t%l.cell != 0 {
		k--
	}
	return k, t - k*l.cell
}

// cheapest returns the earliest of the cheapest starts of a job, and what one PE costs there.
// Between two starts at which it begins or ends at the border of a cell its price is linear in its
// start, so only these are looked at, and the ends of its window.
func (l *line[N]) cheapest(j *Job) (start berth.Time, cost N) {
	at, last := int64(j.Ready), int64(j.Latest)
	from, a := l.split(at)
	to, b := l.split(at + int64(j.Duration))
	best, cost := at, l.until(to, b)-l.until(from, a)
	for at < last {
		step := min(l.cell-a, l.cell-b, last-at)
		at, a, b = at+step, a+step, b+step
		if a == l.cell {
			from, a = from+1, 0
		}
		if b == l.cell {
			to, b = to+1, 0
		}
		if x := l.until(to, b) - l.until(from, a); x < cost {
			best, cost = at, x
		}
	}
	return berth.Time(best), cost
}

// priceStep is how long the first step of Price is, as a part of what a PE-second is worth on average.
const priceStep = 0.1

// Price looks for prices with a low bound, in cells many cells and rounds rounds, by a projected subgradient method whose
// steps get shorter for each price by itself (AdaGrad: Duchi, Hazan, Singer, JMLR 12, 2011). The prices are the best of those of
// all rounds and of the mean of the second half of them.
func (p *Problem) Price(cells, rounds int) *Prices {
	begin, end := p.span()
	cell := berth.Duration(int64(end.Sub(begin))/int64(cells) + 1)
	l := newLine[float64](begin, cell, cells)
	whole := float64(p.PEs) * float64(cell)
	prices, squares := make([]float64, cells), make([]float64, cells)
	mean, found := make([]float64, cells), make([]float64, cells)
	used := newUse(l)
	best := p.dual(l, used, prices)
	var area float64
	for i := range p.Jobs {
		if j := &p.Jobs[i]; p.fits(j) {
			area += float64(j.NPE) * float64(j.Duration)
		}
	}
	step := priceStep * float64(p.Worth()) / max(1, area)
	for round := range rounds {
		for k := range prices {
			slope := whole - used.cells[k]
			squares[k] += float64(slope * slope)
			if squares[k] > 0 {
				prices[k] = max(0, prices[k]-float64(step*slope/math.Sqrt(squares[k])))
			}
		}
		if bound := p.dual(l, used, prices); bound < best {
			best = bound
			copy(found, prices)
		}
		if n := round - rounds/2; n >= 0 {
			for k, x := range prices {
				mean[k] += float64((x - mean[k]) / float64(n+1))
			}
		}
	}
	if p.dual(l, used, mean) < best {
		copy(found, mean)
	}
	kept := &Prices{Begin: begin, Cell: cell, Scale: max(1, (1<<58)/max(1, p.Worth())), Cells: make([]int64, cells)}
	for k, x := range found {
		kept.Cells[k] = int64(math.Round(float64(x * float64(kept.Scale))))
	}
	return kept
}

// span returns from when until when jobs may run.
func (p *Problem) span() (begin, end berth.Time) {
	begin, end = math.MaxInt64, math.MinInt64
	for i := range p.Jobs {
		j := &p.Jobs[i]
		begin, end = min(begin, j.Ready), max(end, j.Latest.Add(j.Duration))
	}
	if end < begin {
		return 0, 0
	}
	return begin, end
}

// use is how many PE-seconds of each cell the jobs have that are worth more than they pay.
type use struct {
	begin, cell int64
	cells       []float64
	whole       []float64 // PEs that begin to be used throughout, less those that end, by cell
}

func newUse(l *line[float64]) *use {
	return &use{l.begin, l.cell, make([]float64, len(l.price)), make([]float64, len(l.price)+1)}
}

// add counts a job at a start.
func (u *use) add(l *line[float64], j *Job, start berth.Time) {
	from, a := l.split(int64(start))
	to, b := l.split(int64(start) + int64(j.Duration))
	n := float64(j.NPE)
	if from == to {
		u.cells[from] += n * float64(b-a)
		return
	}
	u.cells[from] += n * float64(u.cell-a)
	u.whole[from+1] += n
	u.whole[to] -= n
	if b > 0 {
		u.cells[to] += n * float64(b)
	}
}

// dual takes over prices, counts what is used at them, and returns the bound.
func (p *Problem) dual(l *line[float64], u *use, prices []float64) float64 {
	l.set(prices)
	clear(u.cells)
	clear(u.whole)
	total := l.sums[len(prices)] * float64(p.PEs)
	for i := range p.Jobs {
		j := &p.Jobs[i]
		if !p.fits(j) {
			continue
		}
		start, cost := l.cheapest(j)
		if gain := float64(j.Value) - float64(cost*float64(j.NPE)); gain > 0 {
			total += gain
			u.add(l, j, start)
		}
	}
	var running float64
	for k := range u.cells {
		running += u.whole[k]
		u.cells[k] += float64(running * float64(u.cell))
	}
	return total
}
