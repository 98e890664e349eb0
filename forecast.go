package berth

import "sort"

// Forecast says how much data can be moved to a site from a time on.
type Forecast struct {
	Site   string   `json:"site"`
	From   Time     `json:"from"`
	Period Duration `json:"period"`
	// Kilobytes is how many thousand bytes are moved by the end of each period,
	// from the first on. After the last period the rate stays that of the last.
	Kilobytes []int64 `json:"kilobytes"`
}

const (
	maxPeriod     = 1 << 20
	maxPeriods    = 1 << 20
	maxPeriodSize = int64(1) << 42
)

// Validate reports the first field that cannot be right, as an *Error with code
// Invalid.
func (f *Forecast) Validate() error {
	switch {
	case f == nil:
		return Errorf(Invalid, "forecast", "missing")
	case !f.From.Valid():
		return Errorf(Invalid, "from", "%d is beyond ±2^42 s", f.From)
	case f.Period < 1 || f.Period > maxPeriod:
		return Errorf(Invalid, "period", "%d s; want 1 to 2^20", f.Period)
	case len(f.Kilobytes) == 0 || len(f.Kilobytes) > maxPeriods:
		return Errorf(Invalid, "kilobytes", "%d periods; want 1 to 2^20", len(f.Kilobytes))
	}
	before := int64(0)
	for i, n := range f.Kilobytes {
		if n < before || n-before > maxPeriodSize {
			return Errorf(Invalid, "kilobytes", "%d at the end of period %d, %d before; want a growth of 0 to 2^42 a period", n, i+1, before)
		}
		before = n
	}
	return nil
}

// Clone returns a copy that shares no memory with the forecast.
func (f *Forecast) Clone() *Forecast {
	c := *f
	c.Kilobytes = append([]int64(nil), f.Kilobytes...)
	return &c
}

// By returns the kilobytes moved by the end of the first i periods.
func (f *Forecast) By(i int) int64 {
	if i == 0 {
		return 0
	}
	return f.Kilobytes[i-1]
}

// rate returns the kilobytes of the last period.
func (f *Forecast) rate() int64 { return f.By(len(f.Kilobytes)) - f.By(len(f.Kilobytes)-1) }

// Moved returns the kilobytes moved between From and a time, rounded down.
func (f *Forecast) Moved(until Time) int64 {
	past := max(0, int64(until-f.From))
	whole, part, p := past/int64(f.Period), past%int64(f.Period), int64(f.Period)
	n := int64(len(f.Kilobytes))
	step := f.rate()
	if whole < n {
		step = f.By(int(whole)+1) - f.By(int(whole))
		return f.By(int(whole)) + step*part/p
	}
	if step > 0 && whole-n > int64(MaxMegabytes)*1000/step {
		return MaxMegabytes * 1000 // more than any request has
	}
	return f.By(int(n)) + step*(whole-n) + step*part/p
}

// Takes returns how long kilobytes take from a time on, the last period counted
// pro rata and rounded up to a second; Endless if they never arrive. Cost:
// O(log n) for n periods.
func (f *Forecast) Takes(from Time, kilobytes int64) Duration {
	target, p, n := f.Moved(from)+kilobytes, int64(f.Period), len(f.Kilobytes)
	i := sort.Search(n, func(i int) bool { return f.Kilobytes[i] >= target })
	var at int64 // since From
	switch step := f.rate(); {
	case i < n:
		step = f.By(i+1) - f.By(i)
		at = int64(i)*p + (max(0, target-f.By(i))*p+max(1, step)-1)/max(1, step)
	case step == 0:
		return Endless
	default:
		rest := target - f.By(n)
		if rest/step > 2*TimeLimit/p { // beyond every time
			return Endless
		}
		at = int64(n)*p + rest/step*p + (rest%step*p+step-1)/step
	}
	return max(0, f.From.Add(Duration(at)).Sub(from))
}
