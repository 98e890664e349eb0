package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/calendar/calendartest"
	"github.com/berth-hpc/berth/policy"
)

// row is a workload admitted to an empty calendar until Requests bookings are
// decided, and then in the steady state: the oldest booking is removed before
// each further request.
type row struct {
	binding  berth.Binding
	workload calendartest.Workload
	rule     string // of policy.Placements
	// slack gives requests a deadline of ready + slack × duration; 0 is none.
	slack berth.Duration
	goal  float64 // admissions per second of CPU time to reach; 0 is none
	// steps is how many requests the steady state admits.
	steps int
	// shuffled removes bookings in random order in the steady state, and not the oldest.
	shuffled bool
}

const (
	small, large = 1024, 100_000 // PEs
	allK         = 1000
)

func workloadOf(mode calendartest.Mode, pes berth.Count, k int, load float64, requests int) calendartest.Workload {
	return calendartest.Workload{Mode: mode, PEs: pes, K: k, Load: load, Requests: requests, Seed: 42}
}

func odd(w calendartest.Workload) calendartest.Workload {
	w.Odd = true
	return w
}

// rows lists the comparison, late binding first.
func rows() []row {
	const ff = "first-fit"
	list := []row{
		{berth.Late, workloadOf(calendartest.Advance, small, 8, .7, 10*allK), ff, 0, 0, 0, false},
		{berth.Late, workloadOf(calendartest.Advance, small, 8, .7, 100*allK), ff, 0, 1_500_000, 0, false},
		{berth.Late, workloadOf(calendartest.Advance, small, 8, .7, allK*allK), ff, 0, 500_000, 0, false},
		{berth.Late, workloadOf(calendartest.Advance, small, 8, .95, 100*allK), ff, 0, 500_000, 0, false},
		{berth.Late, workloadOf(calendartest.Backlog, small, 8, .7, 77*allK), ff, 0, 200_000, 0, false},
		{berth.Late, workloadOf(calendartest.Backlog, small, 8, .7, allK*allK), ff, 0, 100_000, 0, false},
		{berth.Late, odd(workloadOf(calendartest.Backlog, small, 8, .7, 77*allK)), ff, 0, 200_000, 0, false},
		{berth.Late, odd(workloadOf(calendartest.Backlog, small, 8, .7, allK*allK)), ff, 0, 100_000, 0, false},
		{berth.Late, odd(workloadOf(calendartest.Backlog, small, 8, .7, 77*allK)), ff, 0, 400_000, 0, true},
		{berth.Late, odd(workloadOf(calendartest.Backlog, small, 8, .7, allK*allK)), ff, 0, 200_000, 0, true},
		{berth.Late, workloadOf(calendartest.Stream, small, 8, 1.20, 100*allK), ff, 0, 300_000, 0, false},
		{berth.Late, workloadOf(calendartest.Advance, large, 8, .7, 100*allK), ff, 0, 300_000, 0, false},
		{berth.Early, workloadOf(calendartest.Advance, small, 8, .7, 10*allK), ff, 0, 0, 0, false},
		{berth.Early, workloadOf(calendartest.Advance, small, 8, .7, 100*allK), ff, 0, 300_000, 0, false},
		{berth.Early, workloadOf(calendartest.Advance, small, 8, .7, allK*allK), ff, 0, 0, 0, false},
		{berth.Early, workloadOf(calendartest.Backlog, small, 8, .7, 10*allK), ff, 0, 50_000, 0, false},
	}
	for _, placement := range policy.Placements[1:] {
		goal := 50_000.
		if placement.Name == "pe-best" || placement.Name == "duration-worst" {
			goal = 100_000
		}
		list = append(list, row{berth.Early, workloadOf(calendartest.Advance, small, 8, .7, 100*allK), placement.Name, 4, goal, 20 * allK, false})
	}
	list = append(list, row{berth.Early, workloadOf(calendartest.Advance, large, 14, .7, 100*allK), ff, 0, 30_000, 20 * allK, false})
	for i := range list {
		if list[i].steps == 0 {
			list[i].steps = min(list[i].workload.Requests, 100*allK)
		}
	}
	return list
}

// name says what the row is.
func (r *row) name() string {
	name := fmt.Sprintf("%s %s N=%d K=%d", r.binding, r.workload.Mode, r.workload.PEs, r.workload.K)
	if r.workload.Odd {
		name = fmt.Sprintf("%s %s N=%d odd", r.binding, r.workload.Mode, r.workload.PEs)
	}
	if r.workload.Mode != calendartest.Backlog {
		name += fmt.Sprintf(" load %.2f", r.workload.Load)
	}
	name = fmt.Sprintf("%s %s, %d", name, r.rule, r.workload.Requests)
	if r.shuffled {
		name += ", removed in random order"
	}
	return name
}

// run is a row under way on a calendar of one form.
type run struct {
	row      *row
	rule     calendar.Rule
	calendar calendar.Calendar
	requests []calendartest.WorkloadRequest
	live     []calendar.Block // by request; NPE 0 if refused
	starts   int64            // sum of all starts
	admitted int
}

func (r *row) begin(form calendar.Form) *run {
	rule, ok := policy.PlacementNamed(r.rule)
	if !ok {
		panic("calendarbench: no placement " + r.rule)
	}
	n := r.workload.Requests + r.steps
	return &run{
		row: r, rule: rule, calendar: form.New(r.workload.PEs, r.binding),
		requests: r.workload.Take(n), live: make([]calendar.Block, 0, n),
	}
}

// admit decides the next request. In mode Stream the bookings over by its
// ready time are given back first by the caller, through drop.
func (u *run) admit() error {
	r := &u.requests[len(u.live)]
	q := calendar.Query{Ready: r.Ready, Deadline: berth.Forever, Duration: r.Duration, NPE: r.NPE}
	if u.row.workload.Mode == calendartest.Stream {
		q.Now = r.Ready
	}
	if u.row.slack > 0 {
		q.Deadline = r.Ready.Add(u.row.slack * r.Duration)
	}
	fit, ok := u.calendar.Find(q, u.rule)
	if !ok {
		if u.row.slack == 0 {
			return fmt.Errorf("no start for %+v", q)
		}
		u.live = append(u.live, calendar.Block{})
		return nil
	}
	b := calendar.Block{Start: fit.Start, End: fit.End, NPE: r.NPE, PEs: fit.PEs}
	if err := u.calendar.Add(b); err != nil {
		return err
	}
	u.live = append(u.live, b)
	u.starts += int64(b.Start)
	u.admitted++
	return nil
}

// leaves returns what tells which booking the steady state removes next, by request.
func (r *row) leaves() func(admitted int) int {
	if !r.shuffled {
		return func(admitted int) int { return admitted - r.workload.Requests }
	}
	draw, live := rand.New(rand.NewPCG(1, 1)), []int{} //nolint:gosec // the same each time
	return func(admitted int) int {
		for i := len(live); i < r.workload.Requests; i++ {
			live = append(live, admitted-r.workload.Requests+i)
		}
		at, last := draw.IntN(len(live)), len(live)-1
		i := live[at]
		live[at] = live[last]
		live = live[:last]
		return i
	}
}

// drop removes the booking of request i, if it was admitted and is there.
func (u *run) drop(i int) error {
	b := u.live[i]
	if b.NPE == 0 {
		return nil
	}
	u.live[i].NPE = 0
	return u.calendar.Remove(b)
}
