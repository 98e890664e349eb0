package workflow

import (
	"math"

	"github.com/berth-hpc/berth"
)

// curve is how a task's time falls with the number of its PEs, by Amdahl's law:
// T·(α + (1−α)/m), or as sizes says.
type curve struct {
	total, serial, parallel float64 // T, α and 1−α
	sizes                   *sizes  // nil if any number of PEs will do
}

func (t *Task) curve() curve {
	return curve{total: t.Sequential, serial: t.Alpha, parallel: 1 - t.Alpha, sizes: t.sizes()}
}

// Time returns the time of the task on m PEs in seconds, not rounded: what the
// allocations of CPA compare.
func (t Task) Time(m berth.Count) float64 {
	c := t.curve()
	return c.time(m)
}

// Duration returns how long the task reserves m PEs: its time rounded up to
// whole seconds, at least one. A billionth of a second is forgiven, so that a
// quotient that should be whole and is not costs nothing (specification 2, a).
// It never grows with m.
func (t Task) Duration(m berth.Count) berth.Duration {
	c := t.curve()
	return c.duration(m)
}

func (c *curve) time(m berth.Count) float64 {
	if c.sizes != nil {
		return c.sizes.time(c, m)
	}
	return c.amdahl(m)
}

func (c *curve) amdahl(m berth.Count) float64 {
	return float64(c.total * (c.serial + c.parallel/float64(m)))
}

func (c *curve) duration(m berth.Count) berth.Duration {
	return max(1, berth.Duration(math.Ceil(c.time(m)-1e-9)))
}

// least returns the fewest PEs, at most limit, on which the task takes no
// longer than d. A count that gives no shorter duration than a smaller one, a
// dominated count, is therefore never returned. Cost: O(1) where Amdahl's law
// can be turned round, O(log limit) near the time that no count falls below.
func (c *curve) least(d berth.Duration, limit berth.Count) (berth.Count, bool) {
	if limit < c.few() || c.duration(limit) > d {
		return 0, false
	}
	if c.sizes != nil {
		return c.sizes.least(c, d, limit), true
	}
	// The guess need not be right, only near: lo is too few, hi is enough.
	guess := limit
	if room := float64(d) - float64(c.total*c.serial); room > 0 {
		guess = berth.Count(min(float64(limit), max(1, float64(c.total*c.parallel)/room)))
	}
	lo := berth.Count(0)
	for step := berth.Count(1); c.duration(guess) > d; step *= 2 {
		lo = guess
		guess = min(limit, guess+step)
	}
	hi := guess
	for step := berth.Count(1); hi-lo > 1; step *= 2 {
		guess = max(lo+1, hi-step)
		if c.duration(guess) > d {
			lo = guess
			break
		}
		hi = guess
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; c.duration(mid) > d {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi, true
}
