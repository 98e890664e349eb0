package sim

import (
	"container/heap"
	"errors"
	"math"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// Flow is a workflow that arrives during a simulation, and what its tasks really do. The
// engine promises it and mends it, as it does in a service; the simulation only tells how
// tasks end.
type Flow struct {
	Workflow berth.Workflow
	// Factors are how many times their planned times the tasks really take, on as many PEs as
	// they got; nil for as long as planned.
	Factors []float64
	// Fails are how many tries of each task fail, halfway through; nil for none.
	Fails []int
}

// FlowResult is what became of a workflow.
type FlowResult struct {
	Workflow *berth.Workflow
	Promised bool
	Refusal  *berth.Refusal // nil if it was promised
	Planner  string         // that made the plan
	Planned  berth.Time     // when the plan ended
	End      berth.Time     // when the last task ended that ran
	Outcome  berth.Outcome
	// PESeconds is what its tasks held, tries that failed with them, and PlannedPESeconds what
	// was promised first.
	PESeconds, PlannedPESeconds int64
	Replans                     int // how often it got another plan
	Moved                       int // tasks that got another place, over all of these
	Retries                     int
	FailedTasks                 int // that failed for good or were skipped
}

// Kept reports whether all tasks succeeded by the deadline.
func (r *FlowResult) Kept() bool {
	return r.Outcome == berth.Succeeded && r.End <= r.Workflow.Deadline
}

// flowRun is what a simulation knows of its workflows.
type flowRun struct {
	driver  *driver
	flows   []Flow
	next    int            // to arrive
	index   map[string]int // of live workflows
	tasks   map[string]*liveTask
	due     reportQueue
	order   int
	results []FlowResult
	lines   []berth.Line // of tasks
	line    map[string]int
	load    pastLoad
}

// liveTask is a reservation of a task.
type liveTask struct {
	id            string
	flow, task    int
	try           int
	resource      berth.ResourceID
	start, end    berth.Time
	limit         berth.Time // until when it may go on, its end or later
	npe           berth.Count
	running       bool
	done          berth.Time // when it has ended by itself
	fails, broken bool
	version       int // of what is foreseen; older reports are void
}

// taskReport is when something is told of a task.
type taskReport struct {
	at      berth.Time
	order   int
	task    *liveTask
	version int
}

// reportQueue is a heap of reports, the first at its root.
type reportQueue []taskReport

func (q reportQueue) Len() int { return len(q) }
func (q reportQueue) Less(i, k int) bool {
	return q[i].at < q[k].at || q[i].at == q[k].at && q[i].order < q[k].order
}
func (q reportQueue) Swap(i, k int) { q[i], q[k] = q[k], q[i] }
func (q *reportQueue) Push(x any)   { *q = append(*q, x.(taskReport)) }
func (q *reportQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// checkFlows reports what cannot be right with workflows.
func checkFlows(w *Workload) error {
	for i := range w.Flows {
		f := &w.Flows[i]
		n := len(f.Workflow.Tasks)
		switch {
		case i > 0 && f.Workflow.Arrival < w.Flows[i-1].Workflow.Arrival:
			return berth.Errorf(berth.Invalid, "arrival", "workflow %q comes before the one ahead of it; workflows must be sorted by arrival", f.Workflow.ID)
		case f.Factors != nil && len(f.Factors) != n || f.Fails != nil && len(f.Fails) != n:
			return berth.Errorf(berth.Invalid, "factors", "%d factors and %d failures for the %d tasks of workflow %q", len(f.Factors), len(f.Fails), n, f.Workflow.ID)
		}
		for k, x := range f.Factors {
			if !(x > 0) || math.IsInf(x, 1) {
				return berth.Errorf(berth.Invalid, "factors", "%v for task %q of workflow %q; want a positive number", x, f.Workflow.Tasks[k].ID, f.Workflow.ID)
			}
		}
	}
	return nil
}

func newFlowRun(d *driver, config *engine.Config, w *Workload) *flowRun {
	run := &flowRun{
		driver: d, flows: w.Flows, index: map[string]int{}, tasks: map[string]*liveTask{},
		results: make([]FlowResult, len(w.Flows)), line: map[string]int{},
	}
	for i := range run.results {
		run.results[i].Workflow = &w.Flows[i].Workflow
	}
	if len(config.Sites) == 1 && len(config.Sites[0].Pools) == 1 {
		pool := &config.Sites[0].Pools[0]
		run.load.pool, run.load.pes = berth.PoolID(config.Sites[0].Name, pool.Name), pool.PEs
	}
	return run
}

// arrive submits the next workflow, with how many PEs were free in the past where the
// machine is one pool.
func (r *flowRun) arrive(now berth.Time) error {
	w := r.flows[r.next].Workflow.Clone()
	r.next++
	if r.load.pes > 0 && w.Free == nil {
		w.Free = []berth.Average{{Resource: r.load.pool, NPE: r.load.free(now)}}
	}
	event := engine.SubmitWorkflow(w)
	err := r.driver.apply(now, &event)
	if mistake, is := errors.AsType[*berth.Error](err); is {
		return berth.Errorf(mistake.Code, mistake.Field, "workflow %q: %s", w.ID, mistake.Msg)
	}
	return err
}

// nextReport returns when something is told of a task.
func (r *flowRun) nextReport() (berth.Time, bool) {
	for len(r.due) > 0 {
		first := &r.due[0]
		if first.task.version == first.version && r.tasks[first.task.id] == first.task {
			return first.at, true
		}
		heap.Pop(&r.due)
	}
	return 0, false
}

// report tells what is due of a task.
func (r *flowRun) report(now berth.Time) error {
	t := heap.Pop(&r.due).(taskReport).task
	switch {
	case t.broken:
		event := engine.Report(t.id, berth.FailedForGood, "it lost PEs")
		return r.driver.apply(now, &event)
	case t.fails:
		event := engine.Report(t.id, berth.FailedForGood, "it failed")
		return r.driver.apply(now, &event)
	default:
		event := engine.Report(t.id, berth.Succeeded, "")
		return r.driver.apply(now, &event)
	}
}

// foresee notes when a running task ends by itself. What takes all of the time that it
// has is told to have ended in its last second: at the end of that the engine acts. What
// takes longer is for the engine to end, or to let go on.
func (r *flowRun) foresee(t *liveTask) {
	t.version++
	at := t.done
	if at == t.limit && !t.broken {
		at--
	}
	at = max(t.start, at, r.driver.recorder.now)
	r.order++
	heap.Push(&r.due, taskReport{at: at, order: r.order, task: t, version: t.version})
}

// follow notes what has changed.
func (r *flowRun) follow(changes []change.Change) {
	now := r.driver.recorder.now
	for i := range changes {
		c := &changes[i]
		switch c.Kind {
		case change.Advanced:
			now = c.Now
		case change.WorkflowPromised:
			at := r.next - 1
			r.index[c.Workflow.ID] = at
			result := &r.results[at]
			result.Promised, result.Planner, result.Planned = true, c.Flow.Why, c.Flow.End
		case change.WorkflowRefused:
			r.results[r.next-1].Refusal = c.Refusal
		case change.WorkflowReplanned:
			result := &r.results[r.index[c.Flow.Workflow]]
			result.Replans++
			result.Moved += c.Flow.Moved
		case change.TaskOver:
			result := &r.results[r.index[c.Flow.Workflow]]
			switch c.Flow.Outcome {
			case berth.TriedAgain:
				result.Retries++
			case berth.FailedForGood, berth.Skipped:
				result.FailedTasks++
			}
		case change.WorkflowOver:
			r.results[r.index[c.Flow.Workflow]].Outcome = c.Flow.Outcome
		case change.Accepted:
			if c.Reservation.Request.Task != nil {
				r.accept(c.Reservation)
			}
		default:
			if t := r.tasks[c.ID]; t != nil {
				r.followTask(t, c, now)
			}
		}
	}
}

// accept notes a reservation of a task.
func (r *flowRun) accept(reservation *berth.Reservation) {
	ref, a := reservation.Request.Task, &reservation.Allotments[0]
	at := r.index[ref.Workflow]
	w := &r.flows[at].Workflow
	t := &liveTask{id: reservation.Request.ID, flow: at, task: r.place(w, ref.Task), try: ref.Try}
	r.tasks[t.id] = t
	if ref.Try == 1 {
		r.results[at].PlannedPESeconds += berth.Area(a.NPE, a.End.Sub(a.Start))
	}
	r.line[t.id] = len(r.lines)
	r.lines = append(r.lines, berth.Line{
		ID: t.id, Kind: berth.KindRequest, User: w.User, Workflow: w.ID, Task: ref.Task, Arrival: r.driver.recorder.now, Ready: r.driver.recorder.now,
	})
	r.put(t, a)
	r.load.add(w.Arrival, berth.Area(a.NPE, a.End.Sub(a.Start)))
}

// place returns the place of a task in its workflow.
func (r *flowRun) place(w *berth.Workflow, id string) int {
	for i := range w.Tasks {
		if w.Tasks[i].ID == id {
			return i
		}
	}
	panic("sim: a task that its workflow does not have")
}

// put notes where a task is to run.
func (r *flowRun) put(t *liveTask, a *berth.Allotment) {
	t.resource, t.start, t.end, t.limit, t.npe = a.Resource, a.Start, a.End, a.End, a.NPE
}

// replan notes that a task is to run elsewhere or at another time than was planned before.
func (r *flowRun) replan(t *liveTask, a *berth.Allotment) {
	if t.resource != a.Resource || t.start != a.Start || t.end != a.End || t.npe != a.NPE {
		r.leave(t)
	}
	r.put(t, a)
}

// leave notes the place that a task gives up, unless it had lost all of its PEs.
func (r *flowRun) leave(t *liveTask) {
	if t.npe == 0 {
		return
	}
	line := &r.lines[r.line[t.id]]
	line.ReplannedFrom = append(line.ReplannedFrom, berth.FormerPlace{
		At: r.driver.recorder.now, Site: t.resource.Site, Pool: r.pool(t), Start: t.start, End: t.end, NPE: t.npe,
	})
	r.frame(t, line)
}

// pool returns the pool of a task as lines name it.
func (r *flowRun) pool(t *liveTask) string {
	if r.driver.recorder.pools {
		return t.resource.Name
	}
	return ""
}

// frame gives the line of a task the size of its last place, and a window that has it.
func (r *flowRun) frame(t *liveTask, line *berth.Line) {
	line.NPE, line.Duration = t.npe, t.end.Sub(t.start)
	line.Ready, line.Deadline = min(line.Ready, t.start), t.end
	if due := r.results[t.flow].Workflow.Deadline; due < berth.Forever {
		line.Deadline = max(due, t.end)
	}
}

// followTask notes what a change does to a task.
func (r *flowRun) followTask(t *liveTask, c *change.Change, now berth.Time) {
	switch c.Kind {
	case change.Modified, change.Moved:
		if !t.running {
			r.replan(t, &c.Moved[0])
		}
	case change.Resized:
		if t.running {
			t.broken, t.done = true, now
			r.foresee(t)
		} else {
			r.replan(t, &c.Moved[0])
		}
	case change.Extended:
		t.limit = c.Until
		r.foresee(t)
	case change.Started:
		r.start(t, c, now)
	case change.Ended, change.Failed, change.Lost, change.Cancelled, change.Expired:
		r.over(t, now)
	}
}

// start foresees how a task ends that starts now.
func (r *flowRun) start(t *liveTask, c *change.Change, now berth.Time) {
	f := &r.flows[t.flow]
	t.running, t.start = true, now
	needs := t.end.Sub(now)
	if f.Factors != nil {
		needs = max(1, berth.Duration(math.Ceil(float64(float64(needs)*f.Factors[t.task])-1e-9)))
	}
	t.fails = f.Fails != nil && t.try <= f.Fails[t.task]
	if t.fails {
		needs = max(1, needs/2)
	}
	t.done = now.Add(needs)
	line := &r.lines[r.line[t.id]]
	if len(c.PEs) > 0 {
		line.PEs = c.PEs[0]
	}
	r.foresee(t)
}

// over notes that the reservation of a task is over, and writes its line.
func (r *flowRun) over(t *liveTask, now berth.Time) {
	delete(r.tasks, t.id)
	if !t.running {
		r.leave(t)
		return
	}
	result, line := &r.results[t.flow], &r.lines[r.line[t.id]]
	result.End = max(result.End, now)
	result.PESeconds += berth.Area(t.npe, now.Sub(t.start))
	start, end := t.start, t.end
	line.Accepted, line.Site, line.Pool, line.Start, line.End = true, t.resource.Site, r.pool(t), &start, &end
	r.frame(t, line)
	if now != end {
		line.ActualEnd = &now
	}
	if limit := t.limit; limit > end {
		line.Limit = &limit
	}
}

// taskLines returns the lines of the tasks, in the order in which they were promised; of those that
// did not run they tell where they were planned. Tasks before which others had to end name their last
// reservations.
func (r *flowRun) taskLines() []berth.Line {
	last := make(map[[2]string]string) // by workflow and task
	for i := range r.lines {
		if line := &r.lines[i]; line.Accepted {
			last[[2]string{line.Workflow, line.Task}] = line.ID
		}
	}
	var lines []berth.Line
	for i := range r.lines {
		line := r.lines[i]
		if !line.Accepted {
			if len(line.ReplannedFrom) > 0 {
				lines = append(lines, line)
			}
			continue
		}
		w := r.results[r.index[line.Workflow]].Workflow
		for _, parent := range w.Tasks[r.place(w, line.Task)].After {
			if id := last[[2]string{line.Workflow, w.Tasks[parent].ID}]; id != "" {
				line.After = append(line.After, id)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// pastLoad is how many PE-seconds arrived on each of the last thirty days, which is over
// how long the mixed-parallel paper takes the average of free PEs.
type pastLoad struct {
	pool  berth.ResourceID
	pes   berth.Count
	days  [pastDays]int64
	day   int64 // the last one
	first int64
	begun bool
}

const (
	pastDays = 30
	daySpan  = 86400
)

// add counts what arrived at a time, which must not be before the last one.
func (l *pastLoad) add(at berth.Time, area int64) {
	if l.pes == 0 {
		return
	}
	l.pass(at)
	l.days[l.day%pastDays] += area
}

// pass goes on to the day of a time.
func (l *pastLoad) pass(at berth.Time) {
	day := max(0, int64(at)/daySpan)
	if !l.begun {
		l.begun, l.day, l.first = true, day, day
	}
	for l.day < day {
		l.day++
		l.days[l.day%pastDays] = 0
		if day-l.day > pastDays {
			l.day = day - pastDays
		}
	}
}

// free returns how many PEs were free on average, at least one. What arrived counts as if
// it had been served at once.
func (l *pastLoad) free(at berth.Time) berth.Count {
	l.pass(at)
	area := int64(0)
	for _, a := range l.days {
		area += a
	}
	span := min(pastDays, l.day-l.first+1) * daySpan
	return max(1, l.pes-berth.Count(min(int64(l.pes), area/span)))
}
