package advise

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sim"
)

// ShareOutcome is what came of a share of the history as promises among ordinary jobs. Growth
// is over the waits of the same jobs beside the same work without promises: what was accepted
// then waits in the queue too, from when it is ready, and what was refused is in neither.
type ShareOutcome struct {
	Share    float64          `json:"share"`    // of the history that asks for promises
	Accepted measure.Estimate `json:"accepted"` // of those, %
	Mean     measure.Estimate `json:"mean_wait"`
	P95      measure.Estimate `json:"p95_wait"` // 95 of 100 jobs wait at most as long, s
	// Growths in seconds, over pairs of segments.
	MeanGrowth measure.Estimate `json:"mean_wait_growth"`
	P95Growth  measure.Estimate `json:"p95_wait_growth"`
	// P95Percent is P95Growth of the mean of what p95 is without promises, in %. Without
	// a mean if nothing waited then.
	P95Percent measure.Estimate `json:"p95_wait_growth_percent"`
}

// values of a cell for a share.
const (
	shareAccepted = iota
	shareMean
	shareMeanWithout
	shareP95
	shareP95Without
	shareValues
)

// mixed returns a segment in which those requests whose draw is not below the share are the
// ordinary jobs they were. The draws are those by which berth sim --as mixed chooses.
func mixed(plain []berth.Plain, first int, share float64, draws stream.Stream) []berth.Plain {
	out := slices.Clone(plain)
	for i := range out {
		if p := &out[i]; draws.Float64(uint64(first+i)) >= share {
			queue(p)
		}
	}
	return out
}

// queue makes an ordinary job of a request.
func queue(p *berth.Plain) { p.Job, p.Ready, p.Deadline = true, p.Arrival, berth.Forever }

// unpromised returns a mixed segment with its promises as ordinary jobs that arrive when they
// are ready, without those that were refused, and for each how long it runs; and which of the
// segment each is.
func unpromised(work *sim.Workload, lines []berth.Line) (sim.Workload, []int) {
	var order []int
	plain := slices.Clone(work.Plain)
	for i := range plain {
		if p := &plain[i]; p.Job {
			order = append(order, i)
		} else if lines[i].Accepted {
			p.Arrival = p.Ready
			queue(p)
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(plain[i].Arrival, plain[k].Arrival) })
	var out sim.Workload
	for _, i := range order {
		out.Plain = append(out.Plain, plain[i])
		if work.Runs != nil {
			out.Runs = append(out.Runs, work.Runs[i])
		}
	}
	return out, order
}

// LimitOutcome is what came of the largest share where at most a part of each pool may be
// promised at any time.
type LimitOutcome struct {
	Limit float64 `json:"limit"`
	ShareOutcome
}

// shareCase is a share of promises, and the limit on what may be promised of each pool at any
// time; 0 is none.
type shareCase struct{ share, limit float64 }

// cases lists what is measured of shares: each without a limit, and the largest under each limit.
func (o *Options) cases() []shareCase {
	var cases []shareCase
	for _, share := range o.Shares {
		cases = append(cases, shareCase{share, 0})
	}
	if len(o.Shares) > 0 {
		for _, limit := range o.Limits {
			cases = append(cases, shareCase{o.Shares[len(o.Shares)-1], limit})
		}
	}
	return cases
}

// limitBeyond is from how far ahead a limit counts: the least that a sites file takes.
const limitBeyond berth.Duration = 1

// limited returns the scheduler with a placement and a limit, in thousandths of the pool.
func (a *adviser) limited(place string, limit float64) engine.Config {
	config := a.config(place)
	if limit > 0 {
		config.Ahead = append(slices.Clone(config.Ahead), policy.AheadRow{Beyond: limitBeyond, Share: policy.Permille(math.Round(1000 * limit))})
	}
	return config
}

// shares measures every case of shares on a segment: shareValues for each.
func (a *adviser) shares(ctx context.Context, segment int, place string) ([]float64, error) {
	from, to := a.bounds(segment)
	draws := stream.New(a.options.Seed, "reserve")
	var values []float64
	for _, c := range a.options.cases() {
		work := a.changed(segment, nil)
		work.Plain = mixed(work.Plain, from, c.share, draws)
		lines, err := sim.Replay(ctx, a.limited(place, c.limit), work, nil)
		if err != nil {
			return nil, err
		}
		accepted := math.NaN()
		if m := measure.Of(lines, a.history.PEs); m.AcceptanceRate != nil {
			accepted = 100 * *m.AcceptanceRate
		}
		queued, order := unpromised(&work, lines)
		without, err := sim.Replay(ctx, a.config(place), queued, nil)
		if err != nil {
			return nil, err
		}
		starts := make([]*berth.Time, to-from) // without promises
		for k, i := range order {
			starts[i] = without[k].Start
		}
		var w, wo []float64
		for i := range work.Plain {
			if p := &work.Plain[i]; p.Job && lines[i].Start != nil && starts[i] != nil {
				w, wo = append(w, float64(*lines[i].Start-p.Arrival)), append(wo, float64(*starts[i]-p.Arrival))
			}
		}
		slices.Sort(w)
		slices.Sort(wo)
		values = append(values, accepted, mean(w), mean(wo), quantile(w, 0.95), quantile(wo, 0.95))
	}
	return values, nil
}

// shareOutcome sums up one share; of returns a value of each segment.
func shareOutcome(share float64, of func(value int) []float64) ShareOutcome {
	o := ShareOutcome{
		Share: share, Accepted: partOf(of(shareAccepted)),
		Mean: estimate(of(shareMean)), P95: estimate(of(shareP95)),
		MeanGrowth: estimate(minus(of(shareMean), of(shareMeanWithout))),
		P95Growth:  estimate(minus(of(shareP95), of(shareP95Without))),
	}
	without := estimate(of(shareP95Without))
	if without.Mean == nil || *without.Mean == 0 || o.P95Growth.Mean == nil {
		return o
	}
	percent := 100 * *o.P95Growth.Mean / *without.Mean
	o.P95Percent.Mean = &percent
	if o.P95Growth.CI95 != nil {
		o.P95Percent.CI95 = &[2]float64{100 * o.P95Growth.CI95[0] / *without.Mean, 100 * o.P95Growth.CI95[1] / *without.Mean}
	}
	return o
}

// largest returns the largest share that keeps the growth of p95 under a bound, in %, together
// with all smaller ones that were measured: surely by the upper ends of the intervals, and
// likely by the means. nil where already the smallest does not.
func largest(shares []ShareOutcome, bound float64) (surely, likely *float64) {
	for i := range shares {
		p := &shares[i].P95Percent
		if p.Mean == nil || *p.Mean > bound {
			break
		}
		likely = &shares[i].Share
	}
	for i := range shares {
		p := &shares[i].P95Percent
		if p.CI95 == nil || p.CI95[1] > bound {
			break
		}
		surely = &shares[i].Share
	}
	return surely, likely
}

// largestLimit returns the largest limit that keeps the bound, together with all smaller ones that
// were measured, as largest does for shares.
func largestLimit(limits []LimitOutcome, bound float64) (surely, likely *float64) {
	outcomes := make([]ShareOutcome, len(limits))
	for i := range limits {
		outcomes[i] = limits[i].ShareOutcome
		outcomes[i].Share = limits[i].Limit
	}
	return largest(outcomes, bound)
}
