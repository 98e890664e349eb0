package forecast

import (
	"math"
	"math/bits"
	"sort"

	"github.com/berth-hpc/berth"
)

// Volumes is a forecast in whole bytes, as the engine takes it: what will have
// been moved by the end of each period from now on. Behind the last one the
// amounts of the last Cycle periods come again and again.
type Volumes struct {
	Period berth.Duration // of each entry, at least 1 s
	Bytes  []int64        // cumulative, from the first period on; never falls
	Cycle  int            // how many periods repeat, from 1 to len(Bytes)
}

// Link says what a series' numbers mean and how a forecast becomes bytes.
type Link struct {
	Period berth.Duration // of the series
	// BytesPerUnit is the amount that a value of 1 moves in one period.
	BytesPerUnit float64
	// LeastBytes is moved in a period at least, whatever is forecast; 0 allows a
	// link that stands still.
	LeastBytes int64
	// Cautious is by how many standard deviations the sum of the periods is
	// taken below its mean: 0 for the mean, Quantile(90) for a time that is kept
	// in 19 of 20 cases.
	Cautious float64
}

const (
	// flatEnough is the relative change between a forecast and the one a cycle
	// before at which the rest is taken as periodic (application-aware paper,
	// section b.5 of its specification).
	flatEnough = 1e-6
	// farthest is how many periods a forecast is followed if it does not settle:
	// no trend of the past is believed for longer.
	farthest = 4096
	// mostBytes bounds one period's bytes, so that farthest of them fit an int64.
	mostBytes = 1 << 50
	// mostPeriods is how many periods a transfer may take before it counts as
	// never finishing (same section).
	mostPeriods = 1_000_000
)

// Volumes follows a path, which is used up by it, until it has settled: until
// each period for a cycle, or for as many as an order can be, is like the one a
// cycle before. Rounded down to bytes. Cost: O(periods until then), at most 4096.
func (l Link) Volumes(path *Path) Volumes {
	v := Volumes{Period: l.Period, Cycle: min(path.cycle, farthest)}
	walk := walker{path: path}
	exact, spread, settled := 0.0, 0.0, 0
	var amounts []float64 // by period
	for len(v.Bytes) < farthest && settled < max(v.Cycle, maxOrder) {
		step := walk.next()
		amount := float64((step.Mean - float64(l.Cautious*(step.SumSD-spread))) * l.BytesPerUnit)
		amount = min(max(amount, float64(l.LeastBytes)), mostBytes)
		spread = step.SumSD
		exact += amount
		amounts = append(amounts, amount)
		v.Bytes = append(v.Bytes, int64(exact))
		if before := len(amounts) - 1 - v.Cycle; before >= 0 && alike(amounts[before], amount) {
			settled++
		} else {
			settled = 0
		}
	}
	return v
}

func alike(a, b float64) bool {
	return a-b <= float64(flatEnough*a) && b-a <= float64(flatEnough*a)
}

// at returns the bytes moved after the first k periods.
func (v *Volumes) at(k int) int64 {
	if k == 0 {
		return 0
	}
	return v.Bytes[k-1]
}

// After returns the bytes moved by the end of the first k periods, saturating at
// the largest int64; 0 if k is 0 or less.
func (v *Volumes) After(k int64) int64 {
	all := int64(len(v.Bytes))
	if k <= 0 || all == 0 {
		return 0
	}
	if k <= all {
		return v.at(int(k))
	}
	from, cycle := all-int64(v.Cycle), int64(v.Cycle)
	rounds := (k - from) / cycle
	hi, more := bits.Mul64(uint64(rounds), uint64(v.at(int(all))-v.at(int(from))))
	sum, carry := bits.Add64(more, uint64(v.at(int(from+(k-from)%cycle))), 0)
	if hi > 0 || carry > 0 || sum > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(sum)
}

// Transfer is the time that an amount of data needs, exactly: Whole
// periods and then Part of Of bytes of one more.
type Transfer struct {
	Period   berth.Duration
	Periods  int64
	Part, Of int64 // 0 ≤ Part < Of, or both 0
}

// Time returns how long it takes to move n bytes; the last period
// counts in proportion; false if that is more than a million periods, or for
// ever. Nothing takes no time. Cost: O(log len(Bytes)).
func (v *Volumes) Time(n int64) (Transfer, bool) {
	done := Transfer{Period: v.Period}
	if n <= 0 {
		return done, true
	}
	all := len(v.Bytes)
	if all == 0 {
		return done, false
	}
	from := 0 // where the search begins
	if rest := n - v.at(all); rest > 0 {
		from = all - v.Cycle
		round := v.at(all) - v.at(from)
		if round == 0 {
			return done, false
		}
		rounds := (rest + round - 1) / round // of the cycle, added behind the last entry
		if rounds > mostPeriods {
			return done, false
		}
		done.Periods = rounds * int64(v.Cycle)
		n -= rounds * round
	}
	k := from + sort.Search(all-from, func(i int) bool { return v.at(from+i+1) >= n })
	done.Periods += int64(k)
	done.Part, done.Of = n-v.at(k), v.at(k+1)-v.at(k)
	if done.Part == done.Of {
		done.Periods, done.Part, done.Of = done.Periods+1, 0, 0
	}
	return done, done.Periods < mostPeriods || done.Periods == mostPeriods && done.Part == 0
}

// Seconds returns the time rounded up to whole seconds, at least 1 for more than
// nothing.
func (t Transfer) Seconds() berth.Duration {
	whole := berth.Duration(t.Periods) * t.Period
	if t.Part == 0 {
		return whole
	}

	hi, lo := bits.Mul64(uint64(t.Period), uint64(t.Part))
	seconds, rest := bits.Div64(hi, lo, uint64(t.Of)) // Part < Of, so the quotient is below Period
	if rest > 0 {
		seconds++
	}
	return whole + berth.Duration(seconds)
}

// WholePeriods returns the time rounded up to whole periods.
func (t Transfer) WholePeriods() berth.Duration {
	periods := t.Periods
	if t.Part > 0 {
		periods++
	}
	return berth.Duration(periods) * t.Period
}

// Float returns the time in seconds, for people and statistics.
func (t Transfer) Float() float64 {
	seconds := float64(float64(t.Periods) * float64(t.Period))
	if t.Part > 0 {
		seconds += float64(float64(t.Period) * (float64(t.Part) / float64(t.Of)))
	}
	return seconds
}
