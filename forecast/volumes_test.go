package forecast

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
)

// amounts returns a path that says what is given and then the last of it, or the
// last cycle, for ever.
func amounts(cycle int, rates ...float64) *Path {
	j := -1
	return &Path{cycle: cycle, next: func() (float64, float64) {
		j++
		if j >= len(rates) {
			return rates[len(rates)-cycle+(j-len(rates))%cycle], 0
		}
		return rates[j], 0
	}}
}

func TestTransferTimes(t *testing.T) {
	flat := Link{Period: 10, BytesPerUnit: 1000}
	for _, c := range []struct {
		what    string
		link    Link
		path    *Path
		bytes   int64
		seconds berth.Duration // -1 if it never ends
		float   float64
	}{
		{"nothing", flat, amounts(1, 5), 0, 0, 0},
		{"less than nothing", flat, amounts(1, 5), -3, 0, 0},
		{"one byte", flat, amounts(1, 5), 1, 1, 0.002},
		{"one period to the byte", flat, amounts(1, 5), 5000, 10, 10},
		{"a byte more", flat, amounts(1, 5), 5001, 11, 10.002},
		{"early closed form", flat, amounts(1, 5), 5_000_000, 10_000, 10_000},
		{"in the first of two rates", flat, amounts(1, 2, 4), 1000, 5, 5},
		{"in the second of two rates", flat, amounts(1, 2, 4), 4000, 15, 15},
		{"a season", flat, amounts(2, 1, 3), 4_000_000, 20_000, 20_000},
		{"a season and a part of its second half", flat, amounts(2, 1, 3), 4_002_500, 20_015, 20_015},
		{"a link that stands still", flat, amounts(1, 0), 1, -1, 0},
		{"a link that comes to a stand", flat, amounts(1, 5, 0), 5001, -1, 0},
		{"but not before the data are there", flat, amounts(1, 5, 0), 5000, 10, 10},
		{"a rate below zero", flat, amounts(1, -5), 1, -1, 0},
		{"at least", Link{Period: 10, BytesPerUnit: 1000, LeastBytes: 100}, amounts(1, -5), 1000, 100, 100},
		{"a million periods", Link{Period: 10, BytesPerUnit: 1}, amounts(1, 1), 1_000_000, 10_000_000, 1e7},
		{"and a byte", Link{Period: 10, BytesPerUnit: 1}, amounts(1, 1), 1_000_001, -1, 0},
		{"all there is", flat, amounts(1, 1e300), math.MaxInt64, 81920, 81920},
		{"a pause is no end", flat, amounts(1, 5, 0, 0, 5), 10_000, 40, 40},
	} {
		volumes := c.link.Volumes(c.path)
		took, ok := volumes.Time(c.bytes)
		if want := c.seconds >= 0; ok != want {
			t.Errorf("%s: ends is %v, want %v", c.what, ok, want)
		} else if ok && (took.Seconds() != c.seconds || math.Abs(took.Float()-c.float) > 1e-9*c.float) {
			t.Errorf("%s: %d s, %v; want %d s, %v", c.what, took.Seconds(), took.Float(), c.seconds, c.float)
		}
	}
}

// Against a walk period by period: the time is right, and right at its borders;
// more data take no less time (A7), and a faster link no more.
func TestTimeIsThatOfAWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Volumes{Period: berth.Duration(rapid.IntRange(1, 100).Draw(t, "period"))}
		n := rapid.IntRange(1, 12).Draw(t, "periods")
		v.Cycle = rapid.IntRange(1, n).Draw(t, "cycle")
		sum := int64(0)
		for range n {
			sum += rapid.Int64Range(0, 50).Draw(t, "bytes")
			v.Bytes = append(v.Bytes, sum)
		}
		amount := func(period int) int64 {
			if period >= n {
				period = n - v.Cycle + (period-n)%v.Cycle
			}
			return v.at(period+1) - v.at(period)
		}
		bytes := rapid.Int64Range(1, 3*sum+20).Draw(t, "bytes to move")
		rest, period := bytes, 0
		for period < 10_000 && rest > amount(period) {
			rest -= amount(period)
			period++
		}
		moved := int64(0)
		for k := range int64(40) {
			if got := v.After(k); got != moved {
				t.Fatalf("%v, cycle %d: %d bytes after %d periods, by a walk %d", v.Bytes, v.Cycle, got, k, moved)
			}
			moved += amount(int(k))
		}
		took, ok := v.Time(bytes)
		if ok != (period < 10_000) {
			t.Fatalf("%d bytes over %v, cycle %d: ends is %v, by a walk %v", bytes, v.Bytes, v.Cycle, ok, period < 10_000)
		}
		if !ok {
			return
		}
		exact := float64(v.Period) * (float64(period) + float64(rest)/float64(amount(period)))
		if math.Abs(took.Float()-exact) > 1e-6 || took.Seconds() != berth.Duration(math.Ceil(exact-1e-9)) {
			t.Fatalf("%d bytes over %v, cycle %d: %+v, by a walk %v", bytes, v.Bytes, v.Cycle, took, exact)
		}
		if more, ok := v.Time(bytes + 1); ok && more.Seconds() < took.Seconds() {
			t.Fatalf("a byte more takes %d s instead of %d", more.Seconds(), took.Seconds())
		}
		faster := Volumes{Period: v.Period, Cycle: v.Cycle}
		for _, b := range v.Bytes {
			faster.Bytes = append(faster.Bytes, 2*b)
		}
		if less, ok := faster.Time(bytes); !ok || less.Seconds() > took.Seconds() {
			t.Fatalf("twice as fast takes %d s instead of %d", less.Seconds(), took.Seconds())
		}
	})
}

// Volumes never fall, stop as soon as the forecast has settled, and at a cautious
// level are below those of the mean.
func TestVolumes(t *testing.T) {
	x := simulated(288, []float64{0.8}, nil, 100, 1)
	fit := arimaOf{p: 1}.Fit(x)
	link := Link{Period: 5, BytesPerUnit: 5e6, LeastBytes: 500_000}
	plain := link.Volumes(fit.From(x))
	if n := len(plain.Bytes); n < 5 || n > 100 {
		t.Errorf("an AR(1) forecast has settled after %d periods, want some tens", n)
	}
	z, _ := Quantile(90)
	link.Cautious = z
	cautious := link.Volumes(fit.From(x))
	for k := range min(len(plain.Bytes), len(cautious.Bytes)) {
		if cautious.Bytes[k] >= plain.Bytes[k] || k > 0 && cautious.Bytes[k] < cautious.Bytes[k-1] {
			t.Fatalf("period %d: %d bytes cautiously after %d, %d by the mean", k, cautious.Bytes[k], cautious.at(k), plain.Bytes[k])
		}
	}
	fall := amounts(1, 3, 2, 1, 0, -1, -2)
	if v := (Link{Period: 1, BytesPerUnit: 1}).Volumes(fall); v.at(len(v.Bytes)) != 6 {
		t.Errorf("a rate that falls below zero moves %v", v.Bytes)
	}
	rise := arimaFit{d: 2}.From([]float64{0, 1, 2})
	if v := (Link{Period: 1, BytesPerUnit: 1}).Volumes(rise); len(v.Bytes) != farthest || v.Bytes[1] != 3+4 {
		t.Errorf("a trend is followed for %d periods, %d at first", len(v.Bytes), v.Bytes[1])
	}
	if huge := (Volumes{Period: 1, Bytes: []int64{1 << 50}, Cycle: 1}); huge.After(1<<40) != math.MaxInt64 || huge.After(4) != 1<<52 {
		t.Errorf("%d bytes after 2^40 periods of 2^50", huge.After(1<<40))
	}
	hours := dailySeries(24*10, 2)
	day := profiled{Context: hourly}.Fit(hours)
	if v := (Link{Period: 3600, BytesPerUnit: 1e6}).Volumes(day.From(hours)); v.Cycle != 24 || len(v.Bytes) == farthest {
		t.Errorf("a day's profile has a cycle of %d and settles after %d", v.Cycle, len(v.Bytes))
	}
}

func TestResample(t *testing.T) {
	for _, c := range []struct {
		what    string
		samples []Sample
		period  berth.Duration
		gap     int
		values  []float64
		breaks  []int
		held    int
		end     berth.Time
	}{
		{"nothing", nil, 10, 3, nil, nil, 0, 0},
		{"one", []Sample{{100, 4}}, 10, 3, []float64{4}, nil, 0, 110},
		{"regular", []Sample{{0, 1}, {10, 2}, {20, 3}}, 10, 3, []float64{1, 2, 3}, nil, 0, 30},
		{"means", []Sample{{0, 1}, {9, 3}, {10, 7}, {10, 9}}, 10, 3, []float64{2, 8}, nil, 0, 20},
		{"held over a gap", []Sample{{0, 1}, {30, 2}}, 10, 2, []float64{1, 1, 1, 2}, nil, 2, 40},
		{"a break", []Sample{{0, 1}, {5, 3}, {40, 2}, {55, 6}}, 10, 2, []float64{2, 2, 6}, []int{1}, 0, 60},
		{"no gap is held", []Sample{{0, 1}, {20, 2}}, 10, 0, []float64{1, 2}, []int{1}, 0, 30},
		{"periods begin anew behind a break", []Sample{{0, 1}, {107, 2}, {116, 4}, {117, 6}}, 10, 2, []float64{1, 3, 6}, []int{1}, 0, 127},
		{"zeros are values", []Sample{{0, 0}, {10, 0}}, 10, 0, []float64{0, 0}, nil, 0, 20},
		{"before the epoch", []Sample{{-25, 1}, {-15, 2}}, 10, 0, []float64{1, 2}, nil, 0, -5},
	} {
		got, err := Resample(c.samples, c.period, c.gap)
		if err != nil || !equal(got.Values, c.values) || !equal(got.Breaks, c.breaks) || got.Held != c.held || got.End != c.end {
			t.Errorf("%s: %+v, %v; want %v, breaks %v, %d held", c.what, got, err, c.values, c.breaks, c.held)
		}
	}
	for what, bad := range map[string]func() (Series, error){
		"period": func() (Series, error) { return Resample(nil, 0, 0) },
		"gap":    func() (Series, error) { return Resample(nil, 1, -1) },
		"at":     func() (Series, error) { return Resample([]Sample{{5, 1}, {4, 1}}, 1, 1) },
	} {
		_, err := bad()
		if mistake, is := errors.AsType[*berth.Error](err); !is || mistake.Field != what {
			t.Errorf("error %v, want one about %s", err, what)
		}
	}
	if d := Spacing([]Sample{{0, 1}, {20, 1}, {20, 1}, {41, 1}, {60, 1}, {7200, 1}}); d != 21 {
		t.Errorf("the median distance of 20, 21, 19 and 7140 s is %d", d)
	}
	if d := Spacing([]Sample{{5, 1}, {5, 2}}); d != 0 {
		t.Errorf("one instant has a distance of %d", d)
	}
}

func equal[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// What is measured later changes no period that was over.
func TestResampleKnowsNoFuture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var samples []Sample
		at := berth.Time(0)
		for range rapid.IntRange(2, 40).Draw(t, "samples") {
			at += berth.Time(rapid.IntRange(0, 60).Draw(t, "step"))
			samples = append(samples, Sample{at, float64(rapid.IntRange(0, 9).Draw(t, "value"))})
		}
		known := rapid.IntRange(1, len(samples)-1).Draw(t, "known")
		gap := rapid.IntRange(0, 4).Draw(t, "gap")
		resampled := func(samples []Sample) []float64 {
			series, err := Resample(samples, 10, gap)
			if err != nil {
				t.Fatal(err)
			}
			return series.Values
		}
		other := append([]Sample(nil), samples...)
		for i := known; i < len(other); i++ {
			other[i].Value = -1
		}
		over := len(resampled(samples[:known+1])) - 1 // the periods before that of the first later one
		if a, b := resampled(samples), resampled(other); !equal(a[:over], b[:over]) {
			t.Fatalf("other values from sample %d on turn %v into %v, before period %d too", known, a, b, over)
		}
		part := resampled(samples[:known])
		if all := resampled(samples); !equal(part[:len(part)-1], all[:len(part)-1]) {
			t.Fatalf("%v became %v", part, all)
		}
	})
}
