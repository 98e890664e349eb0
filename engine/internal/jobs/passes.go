package jobs

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Pass is a row of the table of passes.
type Pass struct {
	Name  string
	About string
	Plans bool // every pending job has a plan
	// Flat says that the pass has a form for one pool of late binding.
	Flat bool
}

// Passes lists the passes; the first is the default.
var Passes = []Pass{
	{Name: "easy", About: "in order; others start early if they do not delay the first of the queue", Flat: true},
	{Name: "conservative", About: "in order; others start early if they delay no job ahead of them", Plans: true, Flat: true},
	{Name: "fcfs", About: "strictly in order", Flat: true},
	{Name: "lazy", About: "whatever is free goes to the widest waiting job that fits"},
}

// Named returns the pass of that name.
func Named(name string) (Pass, bool) {
	for _, row := range Passes {
		if row.Name == name {
			return row, true
		}
	}
	return Pass{}, false
}

// Emitter applies changes.
type Emitter interface {
	// Room returns room for a change of a kind, which its caller fills in and then has
	// folded, before any other.
	Room(kind change.Kind) *change.Change
	Fold(c *change.Change, about state.Ref)
	// Accepted returns room for the reservation of the next change.
	Accepted() *berth.Reservation
	// Planned returns room for the plan of a change.
	Planned() *berth.Allotment
}

// Runner runs a pass when jobs become pending and when PEs become free.
type Runner struct {
	pass     Pass
	compress bool
	state    *state.State
	finder   *place.Finder
	out      Emitter
	byRoom   bool // jobs are compressed by where room has grown
	flat     flat
	waiting  []*state.Job // scratch space of Plan, and of compressByRoom
}

// NewRunner returns a runner of a pass. Compress makes the pass that plans move
// plans earlier whenever PEs become free, plain that it does so job by job as the pass is defined, on several pools.
func NewRunner(pass Pass, compress, plain bool, s *state.State, f *place.Finder, out Emitter) *Runner {
	return &Runner{pass: pass, compress: compress, byRoom: !plain && f.JobsMoveByRoom(), state: s, finder: f, out: out}
}

// Arrived lets the pass see jobs that have just become pending.
func (r *Runner) Arrived() {
	if r.pass.Plans {
		r.Plan()
		return
	}
	r.start()
}

// Freed lets the pass see that PEs were given back, or that time has reached the end
// of a limit.
func (r *Runner) Freed() {
	if !r.pass.Plans {
		r.start()
		return
	}
	r.Plan()
	if r.compress {
		r.compressPlans()
	}
}

// start starts the jobs that the pass picks.
func (r *Runner) start() {
	if r.state.Backlog().Len() == 0 {
		return
	}
	if p := r.state.Profile(); p != nil {
		r.startFlat(p)
		return
	}
	var started []placed
	switch r.pass.Name {
	case "easy":
		started = r.easy()
	case "fcfs":
		started = r.fcfs()
	case "lazy":
		started = r.lazy()
	default:
		panic("engine: no pass " + r.pass.Name)
	}
	for i := range started {
		r.Run(started[i].job, &started[i].at)
	}
}

// Run makes a job a reservation that starts now.
func (r *Runner) Run(j *state.Job, at *berth.Allotment) {
	reservation := r.out.Accepted()
	r.state.Start(j, at, reservation)
	c := r.out.Room(change.Accepted)
	c.ID, c.Reservation = j.Request().ID, reservation
	r.out.Fold(c, state.Ref{Job: j})
}

// placed is a job and where it runs from now on.
type placed struct {
	job *state.Job
	at  berth.Allotment
}

// fcfs starts the jobs at the front of the queue until one does not fit.
func (r *Runner) fcfs() []placed {
	t := r.state.Try()
	defer t.Close()
	started, _ := r.front(t)
	return started
}

// front books jobs now, in order, until one does not fit. It returns those, and the
// one that does not.
func (r *Runner) front(t *state.Trial) (started []placed, waiting *state.Job) {
	for j := range r.state.Backlog().Round(r.state.Now()) {
		at, ok := r.finder.JobNow(j)
		if !ok {
			return started, j
		}
		t.Book(&at)
		started = append(started, placed{j, at})
	}
	return started, nil
}

// easy starts the jobs at the front of the queue until one does not fit, books that
// one at its earliest start, and then starts each further job, in order, that fits
// now beside all of these.
//
// Source: Lifka, "The ANL/IBM SP scheduling system" (1995), as pyss has it.
// Deviations: promises are obstacles like running jobs, so the first job's booking
// is not always where enough jobs have ended, but the earliest gap that is long
// enough. On several pools a job may run in any that could serve it; where the first
// of the queue would start earliest its booking is. Under early binding that booking
// names PEs, so it also keeps off jobs that would fit beside it by their number.
func (r *Runner) easy() []placed {
	t := r.state.Try()
	defer t.Close()
	started, first := r.front(t)
	if first == nil {
		return started
	}
	if at, ok := r.finder.JobEarliest(first); ok {
		t.Book(&at)
	}
	behind := false
	for j := range r.state.Backlog().Round(r.state.Now()) {
		if !behind {
			behind = j == first
			continue
		}
		if at, ok := r.finder.JobNow(j); ok {
			t.Book(&at)
			started = append(started, placed{j, at})
		}
	}
	return started
}

// lazy gives what is free to the job that fits now and takes the most PEs, the first
// of equals, again and again until none fits (Sahakyan and Petrosyan, section 4:
// lazy matching).
func (r *Runner) lazy() []placed {
	t := r.state.Try()
	defer t.Close()
	var started []placed
	taken := map[*state.Job]bool{}
	for {
		var best placed
		for j := range r.state.Backlog().Round(r.state.Now()) {
			if taken[j] || (best.job != nil && j.Variant().NPE <= best.at.NPE) {
				continue
			}
			if at, ok := r.finder.JobNow(j); ok {
				best = placed{j, at}
			}
		}
		if best.job == nil {
			return started
		}
		taken[best.job] = true
		t.Book(&best.at)
		started = append(started, best)
	}
}
