package measure

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Estimate is a mean over replications and its 95 % confidence interval.
type Estimate struct {
	Mean *float64    `json:"mean"` // nil without any value
	CI95 *[2]float64 `json:"ci95"` // lower and upper end; nil with fewer than two values
}

// Columns writes mean and both ends of the interval; what there is none of is
// empty.
func (e Estimate) Columns(digits func(float64) string) []string {
	columns := make([]string, 3)
	if e.Mean != nil {
		columns[0] = digits(*e.Mean)
	}
	if e.CI95 != nil {
		columns[1], columns[2] = digits(e.CI95[0]), digits(e.CI95[1])
	}
	return columns
}

// Summary holds the estimates over the replications of one configuration.
type Summary struct {
	Replications        int      `json:"replications"`
	Jobs                Estimate `json:"jobs"`
	Accepted            Estimate `json:"accepted"`
	AcceptanceRate      Estimate `json:"acceptance_rate"`
	MeanSlowdown        Estimate `json:"mean_slowdown"`
	MeanWait            Estimate `json:"mean_wait"`
	MeanWaitFromArrival Estimate `json:"mean_wait_from_arrival"`
	Utilization         Estimate `json:"utilization"`
	RequestedPESeconds  Estimate `json:"requested_pe_seconds"`
	AcceptedPESeconds   Estimate `json:"accepted_pe_seconds"`
	// As in Metrics, nil where no replication has the figures.
	Queue    *QueueSummary    `json:"queue,omitempty"`
	Promises *PromisesSummary `json:"promises,omitempty"`
	Used     *UsedSummary     `json:"used,omitempty"`
}

// QueueSummary holds the estimates of the figures of ordinary jobs.
type QueueSummary struct {
	Jobs                Estimate `json:"jobs"`
	Finished            Estimate `json:"finished"`
	Killed              Estimate `json:"killed"`
	Failed              Estimate `json:"failed"`
	Dropped             Estimate `json:"dropped"`
	MeanWait            Estimate `json:"mean_wait"`
	MeanBoundedSlowdown Estimate `json:"mean_bounded_slowdown"`
	UsedPESeconds       Estimate `json:"used_pe_seconds"`
}

// PromisesSummary holds the estimates of how promises were kept.
type PromisesSummary struct {
	Given      Estimate `json:"given"`
	Moved      Estimate `json:"moved"`
	Broken     Estimate `json:"broken"`
	Failed     Estimate `json:"failed"`
	Killed     Estimate `json:"killed"`
	MeanOffset Estimate `json:"mean_offset"`
	MaxOffset  Estimate `json:"max_offset"`
}

// UsedSummary holds the estimates of what the machine did.
type UsedSummary struct {
	PESeconds     Estimate `json:"pe_seconds"`
	DownPESeconds Estimate `json:"down_pe_seconds"`
	Utilization   Estimate `json:"utilization"`
}

// Summarize estimates every figure from one Metrics per replication. A
// replication in which a figure is nil does not count for that figure.
func Summarize(replications []Metrics) Summary {
	estimate := func(figure func(*Metrics) *float64) Estimate {
		values := make([]float64, 0, len(replications))
		for i := range replications {
			if v := figure(&replications[i]); v != nil {
				values = append(values, *v)
			}
		}
		return EstimateOf(values)
	}
	return Summary{
		Replications:        len(replications),
		Jobs:                estimate(func(m *Metrics) *float64 { return whole(int64(m.Jobs)) }),
		Accepted:            estimate(func(m *Metrics) *float64 { return whole(int64(m.Accepted)) }),
		AcceptanceRate:      estimate(func(m *Metrics) *float64 { return m.AcceptanceRate }),
		MeanSlowdown:        estimate(func(m *Metrics) *float64 { return m.MeanSlowdown }),
		MeanWait:            estimate(func(m *Metrics) *float64 { return m.MeanWait }),
		MeanWaitFromArrival: estimate(func(m *Metrics) *float64 { return m.MeanWaitFromArrival }),
		Utilization:         estimate(func(m *Metrics) *float64 { return m.Utilization }),
		RequestedPESeconds:  estimate(func(m *Metrics) *float64 { return whole(m.RequestedPESeconds) }),
		AcceptedPESeconds:   estimate(func(m *Metrics) *float64 { return whole(m.AcceptedPESeconds) }),
		Queue:               summarizeQueue(replications),
		Promises:            summarizePromises(replications),
		Used:                summarizeUsed(replications),
	}
}

func whole(n int64) *float64 {
	x := float64(n)
	return &x
}

// some returns an estimate of a figure over those of the values that are there.
func some[T any](values []*T) func(figure func(*T) *float64) Estimate {
	return func(figure func(*T) *float64) Estimate {
		var figures []float64
		for _, v := range values {
			if x := figure(v); x != nil {
				figures = append(figures, *x)
			}
		}
		return EstimateOf(figures)
	}
}

// present returns what is not nil of each replication.
func present[T any](replications []Metrics, get func(*Metrics) *T) []*T {
	var values []*T
	for i := range replications {
		if v := get(&replications[i]); v != nil {
			values = append(values, v)
		}
	}
	return values
}

func summarizeQueue(replications []Metrics) *QueueSummary {
	values := present(replications, func(m *Metrics) *Queue { return m.Queue })
	if len(values) == 0 {
		return nil
	}
	estimate := some(values)
	return &QueueSummary{
		Jobs:                estimate(func(q *Queue) *float64 { return whole(int64(q.Jobs)) }),
		Finished:            estimate(func(q *Queue) *float64 { return whole(int64(q.Finished)) }),
		Killed:              estimate(func(q *Queue) *float64 { return whole(int64(q.Killed)) }),
		Failed:              estimate(func(q *Queue) *float64 { return whole(int64(q.Failed)) }),
		Dropped:             estimate(func(q *Queue) *float64 { return whole(int64(q.Dropped)) }),
		MeanWait:            estimate(func(q *Queue) *float64 { return q.MeanWait }),
		MeanBoundedSlowdown: estimate(func(q *Queue) *float64 { return q.MeanBoundedSlowdown }),
		UsedPESeconds:       estimate(func(q *Queue) *float64 { return whole(q.UsedPESeconds) }),
	}
}

func summarizePromises(replications []Metrics) *PromisesSummary {
	values := present(replications, func(m *Metrics) *Promises { return m.Promises })
	if len(values) == 0 {
		return nil
	}
	estimate := some(values)
	return &PromisesSummary{
		Given:      estimate(func(p *Promises) *float64 { return whole(int64(p.Given)) }),
		Moved:      estimate(func(p *Promises) *float64 { return whole(int64(p.Moved)) }),
		Broken:     estimate(func(p *Promises) *float64 { return whole(int64(p.Broken)) }),
		Failed:     estimate(func(p *Promises) *float64 { return whole(int64(p.Failed)) }),
		Killed:     estimate(func(p *Promises) *float64 { return whole(int64(p.Killed)) }),
		MeanOffset: estimate(func(p *Promises) *float64 { return p.MeanOffset }),
		MaxOffset: estimate(func(p *Promises) *float64 {
			if p.MaxOffset == nil {
				return nil
			}
			return whole(int64(*p.MaxOffset))
		}),
	}
}

func summarizeUsed(replications []Metrics) *UsedSummary {
	values := present(replications, func(m *Metrics) *Used { return m.Used })
	if len(values) == 0 {
		return nil
	}
	estimate := some(values)
	return &UsedSummary{
		PESeconds:     estimate(func(u *Used) *float64 { return whole(u.PESeconds) }),
		DownPESeconds: estimate(func(u *Used) *float64 { return whole(u.DownPESeconds) }),
		Utilization:   estimate(func(u *Used) *float64 { return u.Utilization }),
	}
}

// EstimateOf returns the mean of independent values and its 95 % interval by
// Student's t: mean ± t(0.975, n−1) · s / √n, where s is the sample standard
// deviation. Sums run in the order given, in two passes.
func EstimateOf(values []float64) Estimate {
	if len(values) == 0 {
		return Estimate{}
	}
	n := float64(len(values))
	var sum float64
	for _, v := range values {
		sum += v
	}
	mean := sum / n
	if len(values) == 1 {
		return Estimate{Mean: &mean}
	}
	var squares float64
	for _, v := range values {
		d := v - mean
		squares += float64(d * d)
	}
	half := float64(tQuantile(len(values)-1, 0.05) * float64(math.Sqrt(squares/(n-1))/math.Sqrt(n)))
	return Estimate{Mean: &mean, CI95: &[2]float64{mean - half, mean + half}}
}

// Widened returns the interval of an estimate of n values that misses with a chance of
// 5 % divided by a number of comparisons (Bonferroni): of that many such intervals all hit
// at once with a chance of 95 %. It is nil if the estimate has no interval.
func (e *Estimate) Widened(n, comparisons int) *[2]float64 {
	if e.CI95 == nil || comparisons <= 1 {
		return e.CI95
	}
	by := tQuantile(n-1, 0.05/float64(comparisons)) / tQuantile(n-1, 0.05)
	half := float64((e.CI95[1] - e.CI95[0]) / 2 * by)
	return &[2]float64{*e.Mean - half, *e.Mean + half}
}

// tQuantile returns the quantile of Student's t beyond which, up and down, lies a part of
// all. It is rounded to ten decimals: gonum may use fused operations on some machines, and
// its last bits must not show.
func tQuantile(freedom int, beyond float64) float64 {
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(freedom)}.Quantile(1 - beyond/2)
	return math.Round(t*1e10) / 1e10
}
