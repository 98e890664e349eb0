package forecast

import (
	"testing"

	"pgregory.net/rapid"
)

// plainlyLinearized returns the equations at m, term by term.
func (m *arma) plainlyLinearized(w, e []float64) normal {
	eq := normal{n: m.parameters()}
	var held [maxOrder + 1][most]float64 // only the last q derivatives are needed
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

// plainlyMinimized is minimize with plain equations and whole sums.
func (m *arma) plainlyMinimized(w []float64, by effort) float64 {
	e, spare := make([]float64, len(w)), make([]float64, len(w))
	sum := m.residuals(w, e)
	damping := 1e-3
	for range by.steps {
		eq := m.plainlyLinearized(w, e)
		gain := 0.0
		for damping < 1e9 {
			if x, ok := eq.step(damping); ok {
				if to := m.moved(&x); to.admissible() {
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

// drawn returns an admissible model and a series.
func drawn(t *rapid.T) (m arma, w []float64) {
	m = arma{p: rapid.IntRange(0, maxOrder).Draw(t, "p"), q: rapid.IntRange(0, maxOrder).Draw(t, "q"), mean: rapid.Bool().Draw(t, "mean")}
	coefficient := rapid.Float64Range(-1, 1)
	for j := range m.p {
		m.phi[j] = coefficient.Draw(t, "phi")
	}
	for j := range m.q {
		m.theta[j] = coefficient.Draw(t, "theta")
	}
	for !m.admissible() {
		for j := range maxOrder {
			m.phi[j] /= 2
			m.theta[j] /= 2
		}
	}
	if m.mean {
		m.mu = coefficient.Draw(t, "mu")
	}
	n := rapid.IntRange(arimaLeast-2, 80).Draw(t, "length")
	return m, simulated(n, []float64{0.6}, []float64{0.3}, rapid.Float64Range(-2, 2).Draw(t, "level"), rapid.Uint64().Draw(t, "seed"))
}

// The equations are those of the plain definition, to the last digit, in a room that was
// used before.
func TestLinearizedPlainly(t *testing.T) {
	in := map[int]*room{}
	rapid.Check(t, func(t *rapid.T) {
		m, w := drawn(t)
		if in[len(w)] == nil {
			in[len(w)] = newRoom(len(w))
		}
		e := make([]float64, len(w))
		m.residuals(w, e)
		if got, want := m.linearize(w, e, in[len(w)].rows), m.plainlyLinearized(w, e); got != want {
			t.Fatalf("%+v:\n%v\nwant\n%v", m, got, want)
		}
	})
}

// The sum that may stop is the whole one where that is less than the bound, with the same residuals; else it
// is not less than the bound either.
func TestLessIsThePlainSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, w := drawn(t)
		e, want := make([]float64, len(w)), make([]float64, len(w))
		sum := m.residuals(w, want)
		most := float64(sum * rapid.SampledFrom([]float64{0, 0.5, 1, 1.0000001, 2}).Draw(t, "bound"))
		got := m.less(w, e, most)
		if sum >= most {
			if got < most {
				t.Fatalf("%+v: %v is less than %v, the sum is %v", m, got, most, sum)
			}
			return
		}
		if got != sum {
			t.Fatalf("%+v: sum %v, want %v", m, got, sum)
		}
		for i := range e {
			if e[i] != want[i] {
				t.Fatalf("%+v: residual %d is %v, want %v", m, i, e[i], want[i])
			}
		}
	})
}

// A minimum is found by the same steps.
func TestMinimizedPlainly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, w := drawn(t)
		plain := m
		by := rapid.SampledFrom([]effort{compare, polish}).Draw(t, "effort")
		sum, want := m.minimize(w, newRoom(len(w)), by), plain.plainlyMinimized(w, by)
		if sum != want || m != plain {
			t.Fatalf("%v at %+v, want %v at %+v", sum, m, want, plain)
		}
	})
}
