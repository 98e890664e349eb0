package forecast

import "slices"

// maxOrder bounds p and q.
const maxOrder = 3

// arma is an ARMA model of a series w, in the signs of Box and Jenkins:
//
//	w(t)-mu = phi1·(w(t-1)-mu) + … + e(t) - theta1·e(t-1) - …
type arma struct {
	p, q       int
	phi, theta [maxOrder]float64
	mean       bool // mu is estimated; else it is 0
	mu         float64
}

// parameters counts what is estimated.
func (m *arma) parameters() int {
	n := m.p + m.q
	if m.mean {
		n++
	}
	return n
}

// residuals writes e to e, which is as long as w, and returns the sum of its
// squares. Before t = p it is 0: the first p values are conditioned on.
func (m *arma) residuals(w, e []float64) float64 {
	clear(e[:min(m.p, len(e))])
	sum := 0.0
	for t := m.p; t < len(w); t++ {
		v := w[t] - m.mu
		for j := 1; j <= m.p; j++ {
			v -= float64(m.phi[j-1] * (w[t-j] - m.mu))
		}
		for j := 1; j <= min(m.q, t); j++ {
			v += float64(m.theta[j-1] * e[t-j])
		}
		e[t] = v
		sum += float64(v * v)
	}
	return sum
}

// less does what residuals does, but once the sum is not less than most it may stop:
// then what it returns is not either, and e is not whole. What is used again stays in
// registers.
func (m *arma) less(w, e []float64, most float64) float64 {
	clear(e[:min(m.p, len(e))])
	var x [maxOrder]float64 // values off the mean, newest first; those of residuals are 0
	for j := range min(m.p, len(w)) {
		x[j] = w[m.p-1-j] - m.mu
	}
	x1, x2, x3, r1, r2, r3 := x[0], x[1], x[2], 0.0, 0.0, 0.0
	phi, theta, p, q := m.phi, m.theta, m.p, m.q
	sum := 0.0
	for t := p; t < len(w); t++ {
		off := w[t] - m.mu
		v := off
		if p > 0 {
			v -= float64(phi[0] * x1)
			if p > 1 {
				v -= float64(phi[1] * x2)
				if p > 2 {
					v -= float64(phi[2] * x3)
				}
			}
		}
		if q > 0 {
			v += float64(theta[0] * r1)
			if q > 1 {
				v += float64(theta[1] * r2)
				if q > 2 {
					v += float64(theta[2] * r3)
				}
			}
		}
		e[t] = v
		if sum += float64(v * v); sum >= most {
			return sum
		}
		x1, x2, x3 = off, x1, x2
		r1, r2, r3 = v, r1, r2
	}
	return sum
}

// leastRoot is how far outside the unit circle every root of both polynomials
// must lie (application-aware paper, section b.5 of its specification).
const leastRoot = 1.001

// inside reports whether all roots of 1 - c1·z - c2·z² - … are larger than
// leastRoot in size, by the step-down recursion: the polynomial in leastRoot·z
// has them outside the unit circle if all its partial autocorrelations are
// within (-1, 1).
func inside(c []float64) bool {
	var a, b [maxOrder]float64
	scale := 1.0
	for i, v := range c {
		scale = float64(scale * leastRoot)
		a[i] = float64(v * scale)
	}
	for k := range slices.Backward(c) {
		r := a[k]
		if !(r > -1 && r < 1) {
			return false
		}
		for i := range k {
			b[i] = (a[i] + float64(r*a[k-1-i])) / (1 - float64(r*r))
		}
		a = b
	}
	return true
}

func (m *arma) admissible() bool { return inside(m.phi[:m.p]) && inside(m.theta[:m.q]) }

const most = 2*maxOrder + 1 // parameters

// normal is the linear equations of one Gauss-Newton step.
type normal struct {
	n int
	a [most][most]float64
	g [most]float64
}

// room is what a search for a minimum writes to, for a series of one length.
type room struct {
	e, spare []float64
	rows     []row // by time
}

func newRoom(length int) *room {
	return &room{e: make([]float64, length), spare: make([]float64, length), rows: make([]row, length)}
}

// row is the derivatives of one residual by all parameters that there may be, and the residual.
type row [width]float64

// The columns of a row.
const (
	byPhi   = 0
	byTheta = maxOrder
	byMean  = 2 * maxOrder
	itself  = byMean + 1
	width   = itself + 1
)

// linearize returns the equations at m, whose residuals are e. The sums are those of the plain
// definition, each in the order of time (TestLinearizedPlainly).
func (m *arma) linearize(w, e []float64, rows []row) normal {
	m.derive(w, e, rows)
	eq := normal{n: m.parameters()}
	var columns [width + blockWidth]uint // of the parameters, then the residuals
	for i := range m.p {
		columns[i] = uint(byPhi + i)
	}
	for i := range m.q {
		columns[m.p+i] = uint(byTheta + i)
	}
	if m.mean {
		columns[eq.n-1] = byMean
	}
	columns[eq.n] = itself
	rows = rows[m.p:]
	for i := 0; i <= eq.n; i += blockHeight {
		last := min(i+1, eq.n-1) // column that is wanted
		for k := 0; k <= last; k += blockWidth {
			if k+1 < last {
				eq.put(i, k, products(rows, columns[i:], columns[k:]))
			} else {
				eq.put(i, k, corner(rows, columns[i:], columns[k:]))
			}
		}
	}
	return eq
}

// derive writes the derivatives of the residuals by the parameters, which follow the
// recursion of the residuals, and the residuals. Columns of parameters that m has not are not written.
func (m *arma) derive(w, e []float64, rows []row) {
	constant := -1.0
	for j := range m.p {
		constant += m.phi[j]
	}
	var zero row
	l1, l2, l3 := &zero, &zero, &zero // the last rows
	var y [maxOrder]float64           // the last values off the mean, with the other sign
	for j := range m.p {
		y[j] = m.mu - w[m.p-1-j]
	}
	y1, y2, y3, e1, e2, e3 := y[0], y[1], y[2], 0.0, 0.0, 0.0
	p, q, mean, mu, theta := m.p, m.q, m.mean, m.mu, &m.theta
	e, rows = e[:len(w)], rows[:len(w)]
	for t := p; t < len(w); t++ {
		r := &rows[t]
		r[itself] = e[t]
		switch q {
		case 0:
			r[byPhi], r[byPhi+1], r[byPhi+2], r[byMean] = y1, y2, y3, constant
		case 1:
			r.after1(byTheta, e1, theta, l1)
			if p > 0 {
				r.after1(byPhi, y1, theta, l1)
				if p > 1 {
					r.after1(byPhi+1, y2, theta, l1)
					if p > 2 {
						r.after1(byPhi+2, y3, theta, l1)
					}
				}
			}
			if mean {
				r.after1(byMean, constant, theta, l1)
			}
		case 2:
			r.after2(byTheta, e1, theta, l1, l2)
			r.after2(byTheta+1, e2, theta, l1, l2)
			if p > 0 {
				r.after2(byPhi, y1, theta, l1, l2)
				if p > 1 {
					r.after2(byPhi+1, y2, theta, l1, l2)
					if p > 2 {
						r.after2(byPhi+2, y3, theta, l1, l2)
					}
				}
			}
			if mean {
				r.after2(byMean, constant, theta, l1, l2)
			}
		case 3:
			r.after3(byTheta, e1, theta, l1, l2, l3)
			r.after3(byTheta+1, e2, theta, l1, l2, l3)
			r.after3(byTheta+2, e3, theta, l1, l2, l3)
			if p > 0 {
				r.after3(byPhi, y1, theta, l1, l2, l3)
				if p > 1 {
					r.after3(byPhi+1, y2, theta, l1, l2, l3)
					if p > 2 {
						r.after3(byPhi+2, y3, theta, l1, l2, l3)
					}
				}
			}
			if mean {
				r.after3(byMean, constant, theta, l1, l2, l3)
			}
		}
		y1, y2, y3 = mu-w[t], y1, y2
		e1, e2, e3 = e[t], e1, e2
		l1, l2, l3 = r, l1, l2
	}
}

// after1 writes a column of a row behind the last one.
func (r *row) after1(column int, v float64, theta *[maxOrder]float64, l1 *row) {
	r[column] = v + float64(theta[0]*l1[column])
}

// after2 does so behind the last two; l1 is the later one.
func (r *row) after2(column int, v float64, theta *[maxOrder]float64, l1, l2 *row) {
	r[column] = v + float64(theta[0]*l1[column]) + float64(theta[1]*l2[column])
}

// after3 does so behind the last three.
func (r *row) after3(column int, v float64, theta *[maxOrder]float64, l1, l2, l3 *row) {
	r[column] = v + float64(theta[0]*l1[column]) + float64(theta[1]*l2[column]) + float64(theta[2]*l3[column])
}

// What products adds up at a time: as many sums as stay in registers.
const blockHeight, blockWidth = 2, 4

// products returns the sums over all rows of the products of the first columns of i with
// those of k.
func products(rows []row, i, k []uint) (sums [blockHeight][blockWidth]float64) {
	i0, i1 := i[0]%width, i[1]%width
	k0, k1, k2, k3 := k[0]%width, k[1]%width, k[2]%width, k[3]%width
	var s00, s01, s02, s03, s10, s11, s12, s13 float64
	for t := range rows {
		r := &rows[t]
		x, y := r[i0], r[i1]
		a, b, c, d := r[k0], r[k1], r[k2], r[k3]
		s00 += float64(x * a)
		s01 += float64(x * b)
		s02 += float64(x * c)
		s03 += float64(x * d)
		s10 += float64(y * a)
		s11 += float64(y * b)
		s12 += float64(y * c)
		s13 += float64(y * d)
	}
	return [blockHeight][blockWidth]float64{{s00, s01, s02, s03}, {s10, s11, s12, s13}}
}

// corner is products where the first two of the columns of k are all that is wanted.
func corner(rows []row, i, k []uint) (sums [blockHeight][blockWidth]float64) {
	i0, i1, k0, k1 := i[0]%width, i[1]%width, k[0]%width, k[1]%width
	var s00, s01, s10, s11 float64
	for t := range rows {
		r := &rows[t]
		x, y, a, b := r[i0], r[i1], r[k0], r[k1]
		s00 += float64(x * a)
		s01 += float64(x * b)
		s10 += float64(y * a)
		s11 += float64(y * b)
	}
	return [blockHeight][blockWidth]float64{{s00, s01}, {s10, s11}}
}

// put enters the products of a block. Those of the last column, the residuals, are the right side.
func (eq *normal) put(i, k int, sums [blockHeight][blockWidth]float64) {
	for y := range sums {
		for x, sum := range sums[y] {
			switch row, column := i+y, k+x; {
			case row < eq.n && column <= row:
				eq.a[row][column] = sum
			case row == eq.n && column < eq.n:
				eq.g[column] = sum
			}
		}
	}
}

// step solves (A + damping·diag A)·x = -g by Cholesky's method, false if A is
// not positive definite.
func (eq *normal) step(damping float64) (x [most]float64, ok bool) {
	var l [most][most]float64
	for i := range eq.n {
		for k := range i + 1 {
			v := eq.a[i][k]
			if i == k {
				v += float64(damping * v)
			}
			for j := range k {
				v -= float64(l[i][j] * l[k][j])
			}
			if i > k {
				l[i][k] = v / l[k][k]
				continue
			}
			if !(v > 0) {
				return x, false
			}
			l[i][i] = sqrt(v)
		}
	}
	for i := range eq.n {
		v := -eq.g[i]
		for j := range i {
			v -= float64(l[i][j] * x[j])
		}
		x[i] = v / l[i][i]
	}
	for i := eq.n - 1; i >= 0; i-- {
		v := x[i]
		for j := i + 1; j < eq.n; j++ {
			v -= float64(l[j][i] * x[j])
		}
		x[i] = v / l[i][i]
	}
	return x, true
}

// moved returns the model x away.
func (m *arma) moved(x *[most]float64) arma {
	to := *m
	for i := range m.p {
		to.phi[i] += x[i]
	}
	for i := range m.q {
		to.theta[i] += x[m.p+i]
	}
	if m.mean {
		to.mu += x[m.p+m.q]
	}
	return to
}

// effort bounds a search for a minimum.
type effort struct {
	steps  int
	enough float64 // relative gain of a step that ends it
}

// To compare orders, sums of squares are needed to few digits; the parameters of
// the order that is chosen, to many.
var (
	compare = effort{12, 1e-6}
	polish  = effort{200, 1e-12}
)

// minimize moves m to a minimum of the conditional sum of squares and returns
// that sum, by Gauss-Newton steps damped after Levenberg and Marquardt. A step
// out of the admissible region counts as none that gains. m must be admissible, in must
// be for series as long as w. Cost: O(len(w)·parameters²) a step.
func (m *arma) minimize(w []float64, in *room, by effort) float64 {
	e, spare := in.e, in.spare
	sum := m.residuals(w, e)
	damping := 1e-3
	for range by.steps {
		eq := m.linearize(w, e, in.rows)
		gain := 0.0
		for damping < 1e9 {
			x, ok := eq.step(damping)
			if ok {
				to := m.moved(&x)
				if to.admissible() {
					if s := to.less(w, spare, sum); s < sum {
						gain, sum, *m = sum-s, s, to
						e, spare = spare, e
						damping = max(damping/10, 1e-12)
						break
					}
				}
			}
			damping = float64(damping * 10)
		}
		if gain <= float64(by.enough*sum) {
			break
		}
	}
	return sum
}
