package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/stream"
)

// Params adjust a model. The zero value leaves it as published.
type Params struct {
	// PEs is the size of the machine; 0 means the one the model was fitted to.
	PEs berth.Count
	// UMed is the break point of the distribution of log2(size); 0 means the
	// model's own. In lublin:lanl-cm5 more means larger jobs and more load.
	UMed float64
}

// ModelInfo names a model and says in a line what it is.
type ModelInfo struct{ Name, About string }

// Models lists the models in the order in which help shows them.
func Models() []ModelInfo {
	infos := make([]ModelInfo, len(lublinModels))
	for i, m := range lublinModels {
		infos[i] = ModelInfo{Name: m.name, About: m.about}
	}
	return infos
}

// lublin holds the numbers of one parameter set. The names are those of the
// model's paper; gammas are of logarithms, sizes are log2 of PEs.
type lublin struct {
	name, about string

	pes                    berth.Count // the machine fitted to
	uLow, uMed, uHi, uProb float64     // two-stage uniform of log2(size)
	serialProb, pow2Prob   float64     // shares of all jobs
	below                  float64     // uMed = uHi − below on another machine; 0 keeps uMed

	long, short gamma   // ln(run time); short with probability pa·size + pb
	pa, pb      float64 // pa per PE
	runTimes    []int64 // if any: the only ones, the nearest is taken

	gap   gamma // ln(inter-arrival) in rush hours, the all-day correction applied
	cycle gamma // arrivals over the half hours 11 to 58, which wrap round the day
	queue int32 // column 15
}

// The parameters of lublin:typeless, batch and interactive are those of
// U. Lublin, D. G. Feitelson, "The workload on parallel supercomputers:
// modeling the characteristics of rigid jobs", JPDC 63(11), 2003, as their
// program carries them.
//
// Those of lublin:lanl-cm5 are the settings of the availability paper's
// experiments: the size parameters of the LANL CM-5, no serial job, powers of
// two only, six run times. The paper does not publish how it maps drawn run
// times to the six, nor its other constants; here the nearest in log space is
// taken, and the rest is the typeless set, whose slope pa is rescaled from 128
// nodes to the machine's size, else the long component would be certain beyond
// 144 nodes.
var lublinModels = []lublin{
	{
		name: "lublin:lanl-cm5", about: "the availability paper's workload: LANL CM-5, 1024 PEs, powers of two from 32, six run times",
		pes: 1024, uLow: 4.5, uMed: 7, uHi: 10, uProb: 0.82,
		serialProb: 0, pow2Prob: 1,
		short: gamma{4.2, 0.94}, long: gamma{312, 0.03},
		pa: -0.0054, pb: 0.78,
		runTimes: []int64{60, 300, 900, 1800, 3600, 10800},
		gap:      gamma{10.2303 * 1.0225, 0.4871}, cycle: gamma{8.1737, 3.9631},
		queue: -1,
	},
	{
		name: "lublin:typeless", about: "Lublin-Feitelson, the whole sample, 128 PEs",
		pes: 128, uLow: 0.8, uMed: 4.5, uHi: 7, uProb: 0.86, below: 2.5,
		serialProb: 0.244, pow2Prob: 0.576,
		short: gamma{4.2, 0.94}, long: gamma{312, 0.03},
		pa: -0.0054, pb: 0.78,
		gap: gamma{10.2303 * 1.0225, 0.4871}, cycle: gamma{8.1737, 3.9631},
		queue: -1,
	},
	{
		name: "lublin:batch", about: "Lublin-Feitelson, batch jobs, 128 PEs",
		pes: 128, uLow: 1.2, uMed: 5, uHi: 7, uProb: 0.875, below: 2.5,
		serialProb: 0.2927, pow2Prob: 0.6686,
		short: gamma{6.57, 0.823}, long: gamma{639.1, 0.0156},
		pa: -0.003, pb: 0.6986,
		gap: gamma{6.0415 * 1.0519, 0.8531}, cycle: gamma{6.1271, 5.2740},
		queue: 1,
	},
	{
		name: "lublin:interactive", about: "Lublin-Feitelson, interactive jobs, 45 PEs",
		pes: 45, uLow: 1, uMed: 3, uHi: 5.5, uProb: 0.705, below: 2.5,
		serialProb: 0.1541, pow2Prob: 0.625,
		short: gamma{3.8351, 0.6605}, long: gamma{7.073, 0.6856},
		pa: -0.0118, pb: 0.9156,
		gap: gamma{6.5510 * 0.9797, 0.6621}, cycle: gamma{8.9186, 3.6680},
		queue: 0,
	},
}

// slopeNodes is the size of the machines to which the slope pa was fitted.
const slopeNodes = 128

// Model is a workload model with its parameters settled. Make one with
// NewModel.
type Model struct {
	lublin
	weights [buckets]float64 // arrivals per half hour of the day, mean 1
}

// NewModel returns the model of that name.
//
// On a machine of other size than the model's own, uHi is log2(PEs) and, except
// in lublin:lanl-cm5, uMed is uHi − 2.5, as the model's authors advise. Their
// advice gives out on machines so small that this falls below uLow; there uMed
// is uLow. lublin:lanl-cm5 keeps uMed, or takes uHi if that is less.
//
// An unknown name is an *berth.Error with code Invalid and field "workload"; a
// machine too small for the model's smallest parallel job, or too large, one
// with field "pes"; a break point outside [uLow, uHi] one with field "umed".
func NewModel(name string, p Params) (*Model, error) {
	m := &Model{}
	for _, known := range lublinModels {
		if known.name == name {
			m.lublin = known
		}
	}
	if m.name == "" {
		var names []string
		for _, info := range Models() {
			names = append(names, info.Name)
		}
		return nil, berth.Errorf(berth.Invalid, "workload", "no model %q; there are %s", name, strings.Join(names, ", "))
	}
	if p.PEs != 0 && p.PEs != m.pes {
		least := berth.Count(1) << roundHalfUp(m.uLow)
		if p.PEs < least || p.PEs > berth.MaxPEs {
			return nil, berth.Errorf(berth.Invalid, "pes", "%d; %s needs from %d to %d PEs", p.PEs, name, least, berth.MaxPEs)
		}
		m.pes, m.uHi = p.PEs, log2(float64(p.PEs))
		if m.below > 0 {
			m.uMed = max(m.uHi-m.below, m.uLow)
		}
		m.uMed = min(m.uMed, m.uHi)
	}
	if p.UMed != 0 {
		if !(m.uLow <= p.UMed && p.UMed <= m.uHi) {
			return nil, berth.Errorf(berth.Invalid, "umed", "%v; on %d PEs %s takes from %v to %.4g", p.UMed, m.pes, name, m.uLow, m.uHi)
		}
		m.uMed = p.UMed
	}
	if m.runTimes != nil {
		m.pa = float64(m.pa*slopeNodes) / float64(m.pes)
	}
	m.weights = m.dayWeights()
	return m, nil
}

// PEs returns the size of the machine the jobs are made for; none is larger.
func (m *Model) PEs() berth.Count { return m.pes }

// Header returns the header of a log of n jobs generated from the seed. It
// tells no date, so that equal jobs make equal files.
func (m *Model) Header(n int, seed uint64) Header {
	return Header{
		" Version: 2.2",
		" Computer: " + m.name,
		" Note: generated by Berth from the Lublin-Feitelson model, not measured",
		" Note: UMed " + strconv.FormatFloat(m.uMed, 'g', -1, 64) + ", seed " + strconv.FormatUint(seed, 10),
		" MaxJobs: " + strconv.Itoa(n),
		" MaxRecords: " + strconv.Itoa(n),
		" Preemption: No",
		" UnixStartTime: 0",
		" TimeZoneString: UTC",
		fmt.Sprintf(" MaxProcs: %d", m.pes),
	}
}

// Generate returns n jobs numbered from 1 in order of arrival. The first
// second is midnight; times are whole seconds, rounded down. Columns the model
// says nothing about are -1, estimates of the run time among them.
//
// Sizes, run times and arrivals come from three streams, and each job has a
// block of draws of its own in each, so that the first k jobs do not depend on
// n, nor the arrivals on the sizes. Deviations from the original program: the
// clock keeps its fractions instead of losing half a second a job; a
// power of two that rounding would lift above the machine is the largest that
// fits; the sampler differs (see gamma). Cost: O(n).
func (m *Model) Generate(n int, seed uint64) []Record {
	sizes := stream.New(seed, "lublin size").Source()
	runs := stream.New(seed, "lublin run time").Source()
	gaps := stream.New(seed, "lublin arrival").Source()
	size, run, gap := rand.New(sizes), rand.New(runs), rand.New(gaps)

	records := make([]Record, max(n, 0))
	var clock dayClock
	for i := range records {
		sizes.SeekBlock(uint32(i))
		runs.SeekBlock(uint32(i))
		gaps.SeekBlock(uint32(i))
		clock.advance(m.drawGap(gap), &m.weights)
		npe := m.drawSize(size)
		records[i] = Record{
			Job: int64(i) + 1, Submit: clock.now(&m.weights), Wait: -1, Run: m.drawRun(run, npe), Procs: npe,
			CPU: -1, Memory: -1, ReqProcs: -1, ReqTime: -1, ReqMemory: -1, Status: 1,
			User: -1, Group: -1, App: -1, Queue: m.queue, Partition: -1, Preceding: -1, Think: -1,
		}
	}
	return records
}

// drawSize draws a number of PEs: serial, or 2^x with x from a two-stage
// uniform distribution, rounded for the share of powers of two.
func (m *Model) drawSize(rng *rand.Rand) berth.Count {
	u, stage, position := rng.Float64(), rng.Float64(), rng.Float64()
	if u < m.serialProb {
		return 1
	}
	low, high := m.uLow, m.uMed
	if stage >= m.uProb {
		low, high = m.uMed, m.uHi
	}
	x := low + float64((high-low)*position)
	if u < m.serialProb+m.pow2Prob {
		npe := berth.Count(1) << roundHalfUp(x)
		if npe > m.pes {
			npe /= 2
		}
		return npe
	}
	return min(berth.Count(exp(float64(x*math.Ln2))+0.5), m.pes)
}

// roundHalfUp rounds x ≥ 0 to the nearest integer, halves up.
func roundHalfUp(x float64) int { return int(x + 0.5) }

// maxLogRun and maxLogGap cut the two distributions of logarithms: values
// above are drawn anew (2 days and 5 days).
const (
	maxLogRun = 12
	maxLogGap = 13
)

// drawRun draws a run time for a job of npe PEs from the hyper-gamma
// distribution of its logarithm; the larger the job, the more often the long
// component.
func (m *Model) drawRun(rng *rand.Rand, npe berth.Count) berth.Duration {
	p := float64(m.pa*float64(npe)) + m.pb // outside [0,1] it acts like the nearer end
	for {
		component := m.long
		if rng.Float64() < p {
			component = m.short
		}
		g := component.draw(rng)
		if g > maxLogRun {
			continue
		}
		if m.runTimes == nil {
			return berth.Duration(exp(g))
		}
		return nearestLog(m.runTimes, g)
	}
}

// nearestLog returns the value whose logarithm is nearest to g, the smaller of
// two equally near.
func nearestLog(values []int64, g float64) berth.Duration {
	best, distance := values[0], math.Inf(1)
	for _, v := range values {
		if d := math.Abs(log(float64(v)) - g); d < distance {
			best, distance = v, d
		}
	}
	return berth.Duration(best)
}

// The daily cycle: 48 half hours from midnight. The gamma distribution of
// arrivals over the day begins to count at bucket 10, 05:00.
const (
	buckets       = 48
	bucketSeconds = 1800
	cycleStart    = 11
)

// dayWeights returns the arrival rate of every half hour of the day relative to
// its mean. The common factor 1/Γ(shape) of the distribution function cancels.
func (m *lublin) dayWeights() [buckets]float64 {
	var w [buckets]float64
	total := 0.0
	for i := cycleStart; i < cycleStart+buckets; i++ {
		middle := float64(i)
		share := m.cycle.cumulated(middle+0.5) - m.cycle.cumulated(middle-0.5)
		w[(i-1)%buckets] = share
		total += share
	}
	for i := range w {
		w[i] /= total / buckets
	}
	return w
}

// drawGap draws the time to the next arrival in half hours of a day whose
// every hour is alike.
func (m *Model) drawGap(rng *rand.Rand) float64 {
	for {
		if g := m.gap.draw(rng); g <= maxLogGap {
			return exp(g) / bucketSeconds
		}
	}
}

// dayClock runs fast in quiet hours: a half hour of weight w costs w points.
// The zero value stands at midnight of day 0.
type dayClock struct {
	bucket int64   // half hours passed
	points float64 // paid within the current one
}

func (c *dayClock) advance(points float64, weights *[buckets]float64) {
	c.points += points
	for c.points > weights[c.bucket%buckets] {
		c.points -= weights[c.bucket%buckets]
		c.bucket++
	}
}

func (c *dayClock) now(weights *[buckets]float64) berth.Time {
	within := float64(bucketSeconds*c.points) / weights[c.bucket%buckets]
	return berth.Time(c.bucket*bucketSeconds) + berth.Time(within)
}
