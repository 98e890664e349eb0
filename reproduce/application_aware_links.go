package reproduce

import (
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/forecast"
	"github.com/berth-hpc/berth/internal/stream"
)

// newRand reads a source that can be moved.
func newRand(source *stream.Source) *rand.Rand { return rand.New(source) }

// awareNet is where the bandwidths of the links come from.
type awareNet struct {
	name     string
	title    string
	period   berth.Duration
	measured [][]float64 // MB/s by link, of the measured net
}

// The names of nets.
const (
	netSynthetic = "synthetic"
	netUniform   = "uniform"
	netMeasured  = "measured"
)

var (
	syntheticNet = awareNet{name: netSynthetic, title: "synthetic, log-AR(1) with a wave of the day", period: 5}
	uniformNet   = awareNet{name: netUniform, title: "synthetic, independent and uniform, the paper's own", period: 5}
)

const (
	leastRate, mostRate = 12.5, 6250.0 // MB/s: 100 Mbit/s and 50 Gbit/s
	// history is how many values a forecast is made from (spec 5, b.5).
	history = 288
	// beyond is for how long links are drawn after the last scheduling point, in
	// seconds; what goes on longer sees them again from the beginning.
	beyond = 12 * hour
	// rho is the correlation of neighbours (spec 5, c), spread the standard
	// deviation of the logarithm around the level, which is the median of the measured
	// links (0.19), and wave the height of the day's wave in it.
	rho, spread, wave = 0.9, 0.2, 0.5
	// A link's level lies between these, in MB/s, log-uniform.
	leastLevel, mostLevel = 25.0, 1250.0
)

// awareLink is what a link really moves: rates in MB/s by period; the
// first history are those before time 0.
type awareLink struct {
	period  berth.Duration
	rates   []float64
	volumes forecast.Volumes // what they add up to
}

// link draws the link to a site for some seconds.
func (n *awareNet) link(seed uint64, site int, seconds int) awareLink {
	source := stream.New(seed, "link "+n.name).Source()
	source.SeekBlock(uint32(site))
	rng := newRand(source)
	rates := make([]float64, history+(seconds+beyond)/int(n.period))
	switch n.name {
	case netMeasured:
		toAndFro(rates, n.measured[(site-1)%len(n.measured)], rng)
	case netUniform:
		for i := range rates {
			rates[i] = leastRate + float64((mostRate-leastRate)*rng.Float64())
		}
	default:
		level := math.Log(leastLevel) + float64(rng.Float64()*math.Log(mostLevel/leastLevel))
		phase := rng.Float64()
		a := spread * rng.NormFloat64()
		for i := range rates {
			day := float64(i)*float64(n.period)/(24*hour) + phase
			x := level + float64(wave*math.Sin(float64(2*math.Pi*day))) + a
			rates[i] = min(max(math.Exp(x), leastRate), mostRate)
			a = float64(rho*a) + float64(spread*math.Sqrt(1-rho*rho)*rng.NormFloat64())
		}
	}
	return newAwareLink(n.period, rates)
}

// toAndFro reads a series from a place drawn at random, turning round at its
// ends, so that nothing jumps.
func toAndFro(rates, series []float64, rng *rand.Rand) {
	at, step := rng.IntN(len(series)), 1
	for i := range rates {
		rates[i] = series[at]
		if at+step < 0 || at+step >= len(series) {
			step = -step
		}
		if len(series) > 1 {
			at += step
		}
	}
}

func newAwareLink(period berth.Duration, rates []float64) awareLink {
	l := awareLink{period: period, rates: rates, volumes: forecast.Volumes{Period: period, Cycle: len(rates)}}
	sum := int64(0)
	for _, rate := range rates {
		sum += int64(rate * 1e6 * float64(period))
		l.volumes.Bytes = append(l.volumes.Bytes, sum)
	}
	return l
}

// takes returns how many seconds a transfer to the link's site really takes from
// a scheduling point on.
func (l *awareLink) takes(from berth.Time, megabytes int64) float64 {
	if l.rates == nil || megabytes == 0 {
		return 0
	}
	before := history + int64(from)/int64(l.period)
	t, _ := l.volumes.Time(l.volumes.After(before) + megabytes*1e6)
	return t.Float() - float64(before*int64(l.period))
}

// foresee forecasts the link from a time on.
func (l *awareLink) foresee(entry forecast.Entry, now berth.Time, site string) *berth.Forecast {
	model := entry.New(forecast.Context{Period: l.period})
	known := history + int(int64(now)/int64(l.period))
	past := l.rates[known-history : known]
	// 0.1 MB/s is the least that is believed (spec 5, equation 2).
	as := forecast.Link{Period: l.period, BytesPerUnit: 1e6 * float64(l.period), LeastBytes: 100_000 * int64(l.period)}
	volumes := as.Volumes(model.Fit(past).From(past))
	f := &berth.Forecast{Site: site, From: now, Period: l.period, Kilobytes: make([]int64, len(volumes.Bytes))}
	for i, bytes := range volumes.Bytes {
		f.Kilobytes[i] = bytes / 1000
	}
	return f
}

// measuredFile has tests of throughput between clouds, in bursts.
const (
	measuredFile    = "cloudpilot_wan_iperf3.csv.gz"
	measuredPeriod  = 20 // seconds between two tests of a burst
	measuredColumns = 8  // among them time, source, destination, rate and kind are read
	leastMeasured   = 100
)

// findMeasured looks for the measured series in the folder of the options, or in
// its subfolder bandwidth. Those of at least 100 values are the links, longest
// first. It is false if there is no such file.
func (s *session) findMeasured() (net *awareNet, digest string, found bool, err error) {
	if s.Data == "" {
		return nil, "", false, nil
	}
	for _, folder := range []string{s.Data, filepath.Join(s.Data, "bandwidth")} {
		path := filepath.Join(folder, measuredFile)
		digest, err := digestOf(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, "", false, fmt.Errorf("reading measurements: %w", err)
		}
		series, err := readMeasured(path)
		if err != nil {
			return nil, "", false, err
		}
		return &awareNet{name: netMeasured, title: "measured between clouds", period: measuredPeriod, measured: series}, digest, true, nil
	}
	return nil, "", false, nil
}

// readMeasured reads the series in MB/s. The pauses between bursts are left out.
func readMeasured(path string) ([][]float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading measurements: %w", err)
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	plain, err := gzip.NewReader(file)
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "data", "%s: not compressed by gzip: %v", path, err)
	}
	rows, err := csv.NewReader(plain).ReadAll()
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "data", "%s: %v", path, err)
	}
	type test struct{ at, rate float64 }
	links := map[string][]test{}
	for i, row := range rows {
		if i == 0 || len(row) < measuredColumns {
			continue
		}
		at, wrongTime := strconv.ParseFloat(row[0], 64)
		rate, wrongRate := strconv.ParseFloat(row[3], 64)
		if wrongTime != nil || wrongRate != nil || !(rate > 0) || math.IsInf(rate, 0) {
			return nil, berth.Errorf(berth.Invalid, "data", "%s:%d: time %q, rate %q Mbit/s; want numbers, the rate above 0", path, i+1, row[0], row[3])
		}
		name := row[1] + " " + row[2] + " " + row[7]
		links[name] = append(links[name], test{at, rate})
	}
	var names []string
	for name := range links {
		if len(links[name]) >= leastMeasured {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, berth.Errorf(berth.Invalid, "data", "%s: no link with %d tests", path, leastMeasured)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(links[b]), len(links[a])), cmp.Compare(a, b))
	})
	var series [][]float64
	for _, name := range names {
		tests := links[name]
		slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(a.at, b.at) })
		var rates []float64
		for _, t := range tests {
			rates = append(rates, t.rate/8) // Mbit to MB
		}
		series = append(series, rates)
	}
	return series, nil
}
