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

// linearize returns the equations at m, whose residuals are e.
func (m *arma) linearize(w, e []float64) normal {
	eq := normal{n: m.parameters()}
	// The derivatives of e follow e's own recursion; only the last q are needed.
	var held [maxOrder + 1][most]float64
	constant := -1.0
	for j := range m.p {
		constant += m.phi[j]
	}
	for t := m.p; t < len(w); t++ {
		d := &held[t%(maxOrder+1)]
		for i := range m.p {
			d[i] = m.mu - w[t-1-i]
		}
		for i := range m.q {
			d[m.p+i] = 0
			if t-1-i >= 0 {
				d[m.p+i] = e[t-1-i]
			}
		}
		if m.mean {
			d[eq.n-1] = constant
		}
		for j := 1; j <= m.q && t-j >= m.p; j++ {
			before := &held[(t-j)%(maxOrder+1)]
			for i := range eq.n {
				d[i] += float64(m.theta[j-1] * before[i])
			}
		}
		for i := range eq.n {
			eq.g[i] += float64(d[i] * e[t])
			for k := range i + 1 {
				eq.a[i][k] += float64(d[i] * d[k])
			}
		}
	}
	return eq
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
// out of the admissible region counts as none that gains. m must be admissible.
// e and spare are room as long as w. Cost: O(len(w)·parameters²) a step.
func (m *arma) minimize(w, e, spare []float64, by effort) float64 {
	sum := m.residuals(w, e)
	damping := 1e-3
	for range by.steps {
		eq := m.linearize(w, e)
		gain := 0.0
		for damping < 1e9 {
			x, ok := eq.step(damping)
			if ok {
				to := m.moved(&x)
				if to.admissible() {
					if s := to.residuals(w, spare); s < sum {
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
