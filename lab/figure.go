package lab

import (
	"math"
	"strconv"

	"github.com/berth-hpc/berth/measure"
)

// Unit is how a figure is written for people.
type Unit int

// The units.
const (
	Count   Unit = iota
	Share        // of 1, written as per cent
	Ratio        // a number with decimals
	Seconds      // written as a length of time
	Hash         // the first 13 hexadecimal digits of a hash
)

// Figure is something that is measured of each run.
type Figure struct {
	Name  string // in files
	Title string // for people
	Unit  Unit
	// Better is 1 where more of it is better, -1 where less is, and 0 where
	// neither, or where it depends.
	Better int
	// Main figures are in tables and drawn; the others are in files alone.
	Main bool

	of func(m *outcome) float64 // NaN where there is none
}

// Figures are all of them, in the order of the files. What they mean stands beside
// the fields of measure.Metrics. The hash of the decisions is that of requests;
// equal ones of a run are the same decisions.
func Figures() []Figure { return figures }

var figures = []Figure{
	asked("requests", "requests", Count, 0, false, func(m *outcome) float64 { return float64(m.Jobs) }),
	asked("accepted", "accepted", Count, 1, false, func(m *outcome) float64 { return float64(m.Accepted) }),
	asked("acceptance_rate", "accepted requests", Share, 1, true, func(m *outcome) float64 { return known(m.AcceptanceRate) }),
	asked("accepted_share", "accepted PE-seconds", Share, 1, true, func(m *outcome) float64 {
		return float64(m.AcceptedPESeconds) / float64(m.RequestedPESeconds)
	}),
	asked("mean_slowdown", "mean slowdown", Ratio, -1, true, func(m *outcome) float64 { return known(m.MeanSlowdown) }),
	asked("mean_wait", "mean wait", Seconds, -1, true, func(m *outcome) float64 { return known(m.MeanWait) }),
	asked("mean_wait_from_arrival", "mean wait from arrival", Seconds, -1, false, func(m *outcome) float64 { return known(m.MeanWaitFromArrival) }),
	asked("utilization", "utilization by promises", Share, 1, true, func(m *outcome) float64 { return known(m.Utilization) }),
	asked("requested_pe_seconds", "requested PE-seconds", Count, 0, false, func(m *outcome) float64 { return float64(m.RequestedPESeconds) }),
	asked("accepted_pe_seconds", "accepted PE-seconds", Count, 1, false, func(m *outcome) float64 { return float64(m.AcceptedPESeconds) }),
	asked("decision_hash", "decisions", Hash, 0, false, func(m *outcome) float64 { return digitsOf(m.hash) }),

	queue("queue_jobs", "ordinary jobs", Count, 0, false, func(q *measure.Queue) float64 { return float64(q.Jobs) }),
	queue("queue_finished", "jobs finished", Count, 1, false, func(q *measure.Queue) float64 { return float64(q.Finished) }),
	queue("queue_killed", "jobs killed", Count, -1, false, func(q *measure.Queue) float64 { return float64(q.Killed) }),
	queue("queue_failed", "jobs failed", Count, -1, false, func(q *measure.Queue) float64 { return float64(q.Failed) }),
	queue("queue_dropped", "jobs dropped", Count, -1, false, func(q *measure.Queue) float64 { return float64(q.Dropped) }),
	queue("queue_mean_wait", "jobs' mean wait", Seconds, -1, true, func(q *measure.Queue) float64 { return known(q.MeanWait) }),
	queue("queue_mean_bounded_slowdown", "jobs' bounded slowdown", Ratio, -1, true, func(q *measure.Queue) float64 { return known(q.MeanBoundedSlowdown) }),
	queue("queue_used_pe_seconds", "jobs' PE-seconds", Count, 0, false, func(q *measure.Queue) float64 { return float64(q.UsedPESeconds) }),
	queue("queue_decision_hash", "jobs' decisions", Hash, 0, false, func(q *measure.Queue) float64 { return digitsOf(q.DecisionHash) }),

	kept("promises_given", "promises given", Count, 0, func(p *measure.Promises) float64 { return float64(p.Given) }),
	kept("promises_moved", "promises moved", Count, -1, func(p *measure.Promises) float64 { return float64(p.Moved) }),
	kept("promises_broken", "promises broken", Count, -1, func(p *measure.Promises) float64 { return float64(p.Broken) }),
	kept("promises_failed", "promises failed", Count, -1, func(p *measure.Promises) float64 { return float64(p.Failed) }),
	kept("promises_killed", "promises killed", Count, -1, func(p *measure.Promises) float64 { return float64(p.Killed) }),
	kept("promises_mean_offset", "mean offset of promises", Seconds, -1, func(p *measure.Promises) float64 { return known(p.MeanOffset) }),
	kept("promises_max_offset", "largest offset of promises", Seconds, -1, func(p *measure.Promises) float64 {
		if p.MaxOffset == nil {
			return math.NaN()
		}
		return float64(*p.MaxOffset)
	}),

	used("used_pe_seconds", "used PE-seconds", Count, 0, false, func(u *measure.Used) float64 { return float64(u.PESeconds) }),
	used("used_down_pe_seconds", "PE-seconds down", Count, 0, false, func(u *measure.Used) float64 { return float64(u.DownPESeconds) }),
	used("used_utilization", "machine used", Share, 1, true, func(u *measure.Used) float64 { return known(u.Utilization) }),
}

// outcome is what came of a run.
type outcome struct {
	measure.Metrics
	hash string // of the decisions about requests
}

// asked is a figure of requests, which a run of ordinary jobs does not have.
func asked(name, title string, unit Unit, better int, main bool, of func(*outcome) float64) Figure {
	return Figure{Name: name, Title: title, Unit: unit, Better: better, Main: main, of: func(m *outcome) float64 {
		if m.Jobs == 0 {
			return math.NaN()
		}
		return of(m)
	}}
}

func queue(name, title string, unit Unit, better int, main bool, of func(*measure.Queue) float64) Figure {
	return Figure{Name: name, Title: title, Unit: unit, Better: better, Main: main, of: func(m *outcome) float64 {
		if m.Queue == nil {
			return math.NaN()
		}
		return of(m.Queue)
	}}
}

func kept(name, title string, unit Unit, better int, of func(*measure.Promises) float64) Figure {
	return Figure{Name: name, Title: title, Unit: unit, Better: better, of: func(m *outcome) float64 {
		if m.Promises == nil {
			return math.NaN()
		}
		return of(m.Promises)
	}}
}

func used(name, title string, unit Unit, better int, main bool, of func(*measure.Used) float64) Figure {
	return Figure{Name: name, Title: title, Unit: unit, Better: better, Main: main, of: func(m *outcome) float64 {
		if m.Used == nil {
			return math.NaN()
		}
		return of(m.Used)
	}}
}

func known(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// hashDigits is how many hexadecimal digits of a hash a float64 holds exactly.
const hashDigits = 13

func digitsOf(hash string) float64 {
	digits, err := strconv.ParseUint(hash[:hashDigits], 16, 64)
	if err != nil {
		panic("lab: " + err.Error()) // measure writes hexadecimal digits
	}
	return float64(digits)
}

// valuesOf returns the figures of a run in their order.
func valuesOf(m *outcome) []float64 {
	values := make([]float64, len(figures))
	for i := range figures {
		values[i] = figures[i].of(m)
	}
	return values
}
