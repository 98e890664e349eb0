// Package offline asks how much could have been accepted if all requests had been known
// beforehand: a bound that no schedule exceeds, and a schedule that comes near it. It is for
// research: it knows requests of one part and one variant on one pool, and decides nothing.
package offline

import (
	"math"
	"slices"

	"github.com/berth-hpc/berth"
)

// Job is a request: it may start from Ready to Latest, both included.
type Job struct {
	NPE           berth.Count
	Ready, Latest berth.Time
	Duration      berth.Duration
	Value         int64 // what accepting it is worth, at least 1
}

// Problem asks for the schedule of most value on a pool of PEs. No two jobs may have more PEs
// together than there are at any time, and none may be interrupted or be accepted in part. Which
// PEs a job has does not matter: jobs that fit at each time fit on numbered PEs as well, each
// taking in the order of starts what is idle.
type Problem struct {
	PEs  berth.Count
	Jobs []Job
}

// What a job is worth.
const (
	ByRequests = iota // 1
	ByWork            // its PE-seconds
)

// Of makes a problem of requests of one part and one variant.
func Of(requests []berth.Request, pes berth.Count, by int) *Problem {
	p := &Problem{PEs: pes, Jobs: make([]Job, len(requests))}
	for i := range requests {
		r := &requests[i]
		v := r.Parts[0].Variants[0]
		p.Jobs[i] = Job{v.NPE, r.Ready, r.Deadline.Add(-v.Duration), v.Duration, 1}
		if by == ByWork {
			p.Jobs[i].Value = v.Area()
		}
	}
	return p
}

// fits says whether the job could be accepted on an empty pool.
func (p *Problem) fits(j *Job) bool { return j.NPE <= p.PEs && j.Latest >= j.Ready }

// Worth returns the value of all jobs.
func (p *Problem) Worth() int64 {
	var sum int64
	for i := range p.Jobs {
		sum += p.Jobs[i].Value
	}
	return sum
}

// Rejected is the start of a job that a plan does not accept.
const Rejected = berth.Time(math.MinInt64)

// Plan is a start for each job, or Rejected.
type Plan []berth.Time

// Value returns what the accepted jobs are worth, and whether the plan is possible: each starts
// in its window, and they fit at each time.
func (p *Problem) Value(plan Plan) (value int64, possible bool) {
	type step struct {
		at  berth.Time
		npe berth.Count
	}
	if len(plan) != len(p.Jobs) {
		return 0, false
	}
	var steps []step
	for i, start := range plan {
		if start == Rejected {
			continue
		}
		j := &p.Jobs[i]
		if start < j.Ready || start > j.Latest {
			return 0, false
		}
		value += j.Value
		steps = append(steps, step{start, j.NPE}, step{start.Add(j.Duration), -j.NPE})
	}
	slices.SortFunc(steps, func(a, b step) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return int(a.npe) - int(b.npe)
	})
	var used berth.Count
	for _, s := range steps {
		if used += s.npe; used > p.PEs {
			return 0, false
		}
	}
	return value, true
}
