package berth

import "fmt"

// Time is a point in time in whole seconds. Its origin is the caller's: the
// clock of a log in simulation, the Unix epoch in the service.
type Time int64

// RFC3339 writes a time whose origin is the Unix epoch as answers and messages have it, in UTC.
func (t Time) RFC3339() string {
	const daily, fourCenturies = 86_400, 146_097 // seconds and days
	days, second := int64(t)/daily, int64(t)%daily
	if second < 0 {
		days, second = days-1, second+daily
	}
	days += 719_468 // from the first of March of the year 0 on, so that a leap day is the last one of its year
	era := days / fourCenturies
	if days %= fourCenturies; days < 0 {
		days, era = days+fourCenturies, era-1
	}
	ofEra := (days - days/1460 + days/36_524 - days/146_096) / 365
	days -= 365*ofEra + ofEra/4 - ofEra/100
	month := (5*days + 2) / 153 // from March on: five months have 153 days
	day := days - (153*month+2)/5 + 1
	year := era*400 + ofEra
	if month += 3; month > 12 {
		month, year = month-12, year+1
	}
	return fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02dZ", year, month, day, second/3600, second/60%60, second%60)
}

// Duration is a length of time in whole seconds.
type Duration int64

// Count is a number of PEs. Free counts may be negative where capacity was
// lost under standing promises.
type Count int32

// PE is the number of one processing element within its pool, from 0.
type PE int32

const (
	// Forever is later than every valid Time; arithmetic on it goes through the
	// saturating helpers.
	Forever Time = 1 << 62

	// Endless is longer than every finite Duration. As an int64 it is more than
	// every finite area or amount.
	Endless Duration = 1 << 62

	// TimeLimit bounds the size of every valid Time and Duration
	// (exclusive), so that a span of up to 2·TimeLimit times MaxPEs fits an
	// int64.
	TimeLimit = 1 << 42

	// MaxPEs is the largest size of one pool.
	MaxPEs = 1 << 20
)

// Valid reports whether t lies inside ±TimeLimit.
func (t Time) Valid() bool { return -TimeLimit < t && t < TimeLimit }

// Add returns t+d, and Forever if t is Forever, d Endless, or either beyond.
func (t Time) Add(d Duration) Time {
	if t >= Forever || d >= Endless {
		return Forever
	}
	return t + Time(d)
}

// Sub returns t−u, and Endless if t is Forever or beyond.
func (t Time) Sub(u Time) Duration {
	if t >= Forever {
		return Endless
	}
	return Duration(t - u)
}

// Interval is the half-open interval [Start, End).
type Interval struct {
	Start Time `json:"start"`
	End   Time `json:"end"`
}

// Length returns End−Start, saturating at Endless.
func (iv Interval) Length() Duration { return iv.End.Sub(iv.Start) }

// Contains reports whether t lies in [Start, End).
func (iv Interval) Contains(t Time) bool { return iv.Start <= t && t < iv.End }

// String returns the interval as "[start,end)", with "forever" for an open end.
func (iv Interval) String() string {
	if iv.End >= Forever {
		return fmt.Sprintf("[%d,forever)", iv.Start)
	}
	return fmt.Sprintf("[%d,%d)", iv.Start, iv.End)
}

// Area returns n·d in PE-seconds, the number of Endless when d is Endless or
// beyond, and at most one less otherwise: no finite area reaches an endless one,
// although MaxPEs over more than TimeLimit would. For valid operands it cannot
// overflow.
func Area(n Count, d Duration) int64 {
	if d >= Endless {
		return int64(Endless)
	}
	return min(int64(n)*int64(d), int64(Endless)-1)
}

// AddAreas returns the sum of two areas that are not negative. A sum that is not less than Endless counts as one less: sums of many
// areas do not overflow either.
func AddAreas(a, b int64) int64 {
	const most = int64(Endless) - 1
	return min(min(a, most)+min(b, most), most)
}
