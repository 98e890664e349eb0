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
	whole := func(n int64) *float64 {
		x := float64(n)
		return &x
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
	half := float64(tQuantile(len(values)-1) * float64(math.Sqrt(squares/(n-1))/math.Sqrt(n)))
	return Estimate{Mean: &mean, CI95: &[2]float64{mean - half, mean + half}}
}

// tQuantile returns the 97.5 % quantile of Student's t, rounded to ten
// decimals: gonum may use fused operations on some machines, and its last bits
// must not show.
func tQuantile(freedom int) float64 {
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(freedom)}.Quantile(0.975)
	return math.Round(t*1e10) / 1e10
}
