package reproduce

import (
	"math"
	"testing"
	"time"
)

// Work of always the same time is done six times, as many at once as the clock needs; work of more
// than 50 ms once.
func TestTimedAsOftenAsNeeded(t *testing.T) {
	for _, c := range []struct {
		each  time.Duration
		calls int
		runs  int // in the last call
	}{
		{20 * time.Millisecond, 3, 1},
		{60 * time.Millisecond, 1, 1},
		{2 * time.Millisecond, 6, 1},
		{300 * time.Microsecond, 2 + 6, 4},
		{time.Microsecond, 10 + 6, 1024},
	} {
		calls, last := 0, 0
		ms := middleOf(func(runs int) time.Duration {
			calls++
			last = runs
			return time.Duration(runs) * c.each
		})
		if calls != c.calls || last != c.runs || math.Abs(ms-c.each.Seconds()*1000) > 1e-9 {
			t.Errorf("%s: %g ms in %d calls, %d runs in the last; want %d and %d", c.each, ms, calls, last, c.calls, c.runs)
		}
	}
}

// Outliers do not move the median, and where times differ more work is timed, up to 50 ms.
func TestTimedUntilItIsKnown(t *testing.T) {
	calls := 0
	ms := middleOf(func(int) time.Duration {
		calls++
		if calls%3 == 1 {
			return 4 * time.Millisecond
		}
		return time.Millisecond
	})
	if ms != 1 || calls <= timedLooks || calls > 50 {
		t.Errorf("%g ms in %d calls", ms, calls)
	}
}

// A clock that has not ticked is asked about more work.
func TestTimedByASlowClock(t *testing.T) {
	total, told := time.Duration(0), time.Duration(0)
	const tick = 10 * time.Millisecond
	ms := middleOf(func(runs int) time.Duration {
		total += time.Duration(runs) * 300 * time.Microsecond
		now := total.Truncate(tick)
		took := now - told
		told = now
		return took
	})
	if ms < 0.15 || ms > 0.6 {
		t.Errorf("%g ms, want about 0.3", ms)
	}
}

// Six equal times settle it, five do not; the interval leaves out more the more there are.
func TestMiddleKnown(t *testing.T) {
	times := []float64{1, 1, 1, 1, 1}
	if middleKnown(times) {
		t.Error("five times settle it")
	}
	if times = append(times, 1.06); middleKnown(times) {
		t.Error("the greatest of six is part of the interval")
	}
	for range 10 {
		times = append(times, 1)
	}
	if !middleKnown(times) {
		t.Error("one of sixteen times is an outlier")
	}
}
