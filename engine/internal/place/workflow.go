package place

import (
	"cmp"
	"slices"
	"sort"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/workflow"
)

// Workflows are planned by the planners of package workflow, on the calendar of one pool as
// it is with what a trial has released, and then placed task by task on that trial: where a
// plan has a task, and later where it cannot be there. A planner knows counts of PEs and
// nothing else, so in a pool of late binding, for tasks without licences, the places are
// those of the plan; numbers of PEs and licences may ask for later ones.

// bestFinish and bestDeadline are the planners that are tried for berth.BestAlgorithm, in
// this order: those that do best in docs/results/workflows-own-planner.md and take
// milliseconds for a hundred tasks.
var (
	bestFinish   = []string{"bd-cpar", "bd-thrift"}
	bestDeadline = []string{"dl-rc-cpar", "dl-rcbd-cpar-lambda", "dl-thrift-lambda", "bd-cpar", "bd-thrift"}
)

// Planners returns the planners for the algorithm of a workflow; ok is false if it is none.
func Planners(w *berth.Workflow) (list []workflow.Planner, ok bool) {
	names := []string{w.Algorithm}
	if _, best := berth.Best(w.Algorithm); best {
		if names = bestFinish; w.Deadline != berth.Forever {
			names = bestDeadline
		}
	}
	for _, name := range names {
		p, known := workflow.PlannerNamed(name)
		if !known {
			return nil, false
		}
		list = append(list, p)
	}
	return list, true
}

// TaskPlace is a task with its place.
type TaskPlace struct {
	Task    int
	Request berth.Request
	Place   Place
}

// WorkflowPlan is where all tasks of a workflow can be, by start, parents before children.
type WorkflowPlan struct {
	Planner   string // that found it
	Tasks     []TaskPlace
	End       berth.Time
	PESeconds int64
	// Moved is how many tasks are not where the planner had them.
	Moved int
}

// graph returns the open tasks of a workflow as a graph with the times that they take in a
// pool at its speeds, or at the standard speed, and their places in the workflow. unfit, if given,
// tells the tasks that cannot be in the pool, which are in the graph all the same. limited says that
// the limits of their holders bound how long they may last and on how many PEs. The error, of
// code Invalid, names tasks that cannot be right together.
func (f *Finder) graph(w *berth.Workflow, p *pool, unfit []bool, limited bool) (*workflow.Workflow, []int, error) {
	var tasks []workflow.Task
	var edges []workflow.Edge
	var at []int
	limits := bounds{Finder: f, pool: p, limited: limited}
	for i := range w.Tasks {
		t := &w.Tasks[i]
		if t.Done {
			continue
		}
		task := planned(t, p)
		if p != nil && (unfit == nil || !unfit[i]) && !limits.narrow(&task, w, i) {
			return nil, nil, berth.Errorf(berth.Invalid, "pes", "task %q runs on no number of PEs that it may have in pool %q", t.ID, p.id.Name)
		}
		tasks, at = append(tasks, task), append(at, i)
		for _, parent := range t.After {
			if !w.Tasks[parent].Done {
				edges = append(edges, workflow.Edge{Parent: w.Tasks[parent].ID, Child: t.ID})
			}
		}
	}
	g, err := workflow.New(tasks, edges)
	return g, at, err
}

// planned returns a task with the times that it takes in a pool, or at the standard speed.
func planned(t *berth.WorkflowTask, p *pool) workflow.Task {
	factor := 1.0
	if p != nil {
		if speed := p.config.SpeedFor(&t.Requirements); speed != 0 && speed != berth.StandardSpeed {
			factor = float64(berth.StandardSpeed) / float64(speed)
		}
	}
	task := workflow.Task{ID: t.ID, Sequential: float64(t.Seconds * factor), Alpha: t.Alpha, Few: t.Few, Most: t.Most}
	for _, m := range t.Measured {
		task.Measured = append(task.Measured, workflow.Measurement{NPE: m.NPE, Seconds: float64(m.Seconds * factor)})
	}
	return task
}

// bounds is what tasks may have at most in a pool. It remembers that for what was required last.
type bounds struct {
	*Finder
	pool    *pool
	limited bool // the limits of their holders count
	of      berth.Requirements
	by      berth.Sharing
	most    berth.Count
	longest berth.Duration // 0 is no bound
}

// narrow keeps the numbers of PEs on which a task may be planned in the pool: no more than there
// are of the nodes and the partition that it requires, and enough that it does not last longer
// than the partition and the user's limit allow. It returns false if none is left. Planners know nothing of this:
// what they give a task beyond it could not be placed.
func (b *bounds) narrow(t *workflow.Task, w *berth.Workflow, at int) bool {
	need, by := w.Tasks[at].Requirements, w.SharingOf(at)
	if b.most == 0 || b.of != need || b.by.Account != by.Account || b.by.QOS != by.QOS {
		now := b.state.Now()
		r := request(w, at, b.pool, berth.Variant{NPE: 1, Duration: 1}, now, now)
		x := b.search(&r, nil)
		b.of, b.by, b.most, b.longest = need, by, x.widest(0, b.pool), 0
		if partition := x.partition(b.pool); partition != nil {
			b.longest = partition.MaxDuration
			if partition.MaxNPE > 0 {
				b.most = min(b.most, partition.MaxNPE)
			}
		}
		if b.limited {
			b.narrowed(&x)
		}
	}
	fits := func(npe berth.Count) bool { return b.longest == 0 || t.Duration(npe) <= b.longest }
	if len(t.Measured) > 0 {
		n := sort.Search(len(t.Measured), func(k int) bool { return t.Measured[k].NPE > b.most })
		first := sort.Search(n, func(k int) bool { return fits(t.Measured[k].NPE) })
		t.Measured = t.Measured[first:n]
		return first < n
	}
	few, most := t.Fewest(), b.most
	if t.Most > 0 {
		most = min(most, t.Most)
	}
	if few > most {
		return false
	}
	if few += berth.Count(sort.Search(int(most-few)+1, func(k int) bool { return fits(few + berth.Count(k)) })); few > most {
		return false
	}
	if b.most < b.pool.config.PEs || b.longest > 0 {
		t.Few, t.Most = few, most
	}
	return true
}

// narrowed takes into account what is allowed to the holders of a task.
func (b *bounds) narrowed(x *search) {
	for _, a := range x.allowances(x.r) {
		if !x.in(b.pool, &a) {
			continue
		}
		if length, limited := a.By(policy.ByLength); limited && (b.longest == 0 || berth.Duration(length) < b.longest) {
			b.longest = max(berth.Duration(length), 1)
		}
		if a.of == state.OfUser(x.r.User) {
			continue // what planners look at has no more than the share of the user
		}
		if most, limited := x.shareOf(b.pool, &a); limited {
			b.most = min(b.most, most)
		}
	}
}

// takes reports whether a task of a workflow may run on npe PEs in the pool.
func (b *bounds) takes(w *berth.Workflow, task int, npe berth.Count) bool {
	t := planned(&w.Tasks[task], b.pool)
	if !b.narrow(&t, w, task) {
		return false
	}
	if len(t.Measured) > 0 {
		return slices.ContainsFunc(t.Measured, func(m workflow.Measurement) bool { return m.NPE == npe })
	}
	return npe >= t.Fewest() && (t.Most == 0 || npe <= t.Most) && npe <= b.most
}

// CheckWorkflow reports what cannot be right with the tasks of a workflow together: two of one
// id, a cycle, nothing left to do. The error is of code Invalid.
func (f *Finder) CheckWorkflow(w *berth.Workflow) error {
	ids := make(map[string]bool, len(w.Tasks))
	for i := range w.Tasks {
		if ids[w.Tasks[i].ID] {
			return berth.Errorf(berth.Invalid, "id", "%q belongs to two tasks; every task needs its own", w.Tasks[i].ID)
		}
		ids[w.Tasks[i].ID] = true
	}
	whole := *w
	whole.Tasks = slices.Clone(w.Tasks)
	for i := range whole.Tasks {
		whole.Tasks[i].Done = false
	}
	if _, _, err := f.graph(&whole, nil, nil, false); err != nil {
		return err
	}
	if !slices.ContainsFunc(w.Tasks, func(t berth.WorkflowTask) bool { return !t.Done }) {
		return berth.Errorf(berth.Invalid, "tasks", "all %d are done; a workflow needs a task to run", len(w.Tasks))
	}
	return nil
}

// Planning is one search for a plan of a workflow.
type Planning struct {
	From berth.Time // nothing starts earlier
	// Enough and Quit, if they are there, are asked before each task that a planner places. Once
	// Enough returns true what is found is taken, if anything is, and without anything no more
	// plans are made that leave slack; once Quit does nothing more is planned. Where there is an
	// Enough, planners for the earliest end are asked first, for they are quick.
	Enough, Quit func() bool
	// Both, if it is there, runs two functions, perhaps at once; both may ask Enough and Quit.
	Both func(a, b func())

	found bool           // there is a plan to be taken
	slack bool           // what is being planned leaves slack, and may do without
	over  *berth.Refusal // of the first plan that exceeded a limit
}

// ends reports whether nothing more is planned, or not for this aim.
func (p *Planning) ends() bool {
	return p.Quit != nil && p.Quit() || (p.found || p.slack) && p.Enough != nil && p.Enough()
}

// stop returns ends for planners, nil if nothing ends them.
func (p *Planning) stop() func() bool {
	if p.Quit == nil && p.Enough == nil {
		return nil
	}
	return p.ends
}

// turns returns the places of planners in the order in which they are asked.
func (p *Planning) turns(planners []workflow.Planner) []int {
	turns := make([]int, len(planners))
	for i := range turns {
		turns[i] = i
	}
	if p.Enough != nil {
		slices.SortStableFunc(turns, func(a, b int) int {
			return cmp.Compare(slow(planners[a]), slow(planners[b]))
		})
	}
	return turns
}

// slow is 1 for a planner that may make many attempts, and 0 for one that makes one.
func slow(p workflow.Planner) int {
	if p.Goal == workflow.Finish {
		return 0
	}
	return 1
}

// Workflow finds places for all open tasks of a workflow, in the pool in which it does best, or
// spread over several where that is better: it ends earliest or, by a deadline, takes the fewest
// PE-seconds; the earliest end, the first pool, and the planner that is listed first break ties.
// Where slack is to be left, plans that leave all of it are preferred to those that leave half,
// and these to all others. Plans that exceed a limit of its user count for nothing, and those of a
// share of PEs and of length narrow the plan; where there is no plan within the limits, the one exceeded is the refusal
// if there is a plan beyond it. Else the refusal is that of the pool that got furthest. The state
// is as it was afterwards.
func (f *Finder) Workflow(w *berth.Workflow, p *Planning) (*WorkflowPlan, *berth.Refusal) {
	t := f.state.Try()
	defer t.Close()
	defer f.free()
	f.clear(t, nil)
	narrow := f.narrows(w)
	fit, refusal := f.groundsOf(t, w, narrow, p)
	best := f.bestOf(t, w, fit, p)
	if best == nil && narrow && p.over == nil {
		whole, _ := f.groundsOf(t, w, false, p)
		best = f.bestOf(t, w, whole, p)
	}
	switch {
	case best != nil:
		return best, nil
	case p.over != nil:
		return nil, p.over
	}
	for _, g := range fit {
		if !g.late {
			refusal = further(refusal, g.refusal(w.Deadline))
		}
	}
	return nil, refusal
}

// bestOf returns the best plan on some grounds, nil if there is none on any.
func (f *Finder) bestOf(t *state.Trial, w *berth.Workflow, fit []*grounds, p *Planning) (best *WorkflowPlan) {
	aims := f.aims(w, p.From)
	own := slices.Index(aims, w.Deadline) // those before it leave slack
	defer func() { p.slack = false }()
	for i, by := range aims {
		p.slack = i < own
		for _, g := range fit {
			if p.ends() {
				break
			}
			if found := f.workflowIn(t, w, g, by, p); found != nil && found.better(best, w.Deadline) {
				best = found
			}
		}
		if best != nil {
			break
		}
	}
	return best
}

// Follow places the open tasks of a workflow where a plan that was made elsewhere has them, each
// as soon after that as it, its parents and the present allow. places are those of the open tasks,
// in the order of the workflow, and turns are their indices in the order in which the tasks are placed, nil
// for that of their starts. It returns nil if a task cannot be in its pool on its number of PEs, or
// if the workflow would miss its deadline, and the refusal of a limit that is exceeded so.
func (f *Finder) Follow(w *berth.Workflow, planner string, places []berth.Allotment, turns []int) (*WorkflowPlan, *berth.Refusal) {
	g := &grounds{from: f.state.Now()}
	s := sketch{planner: planner, tasks: make([]workflow.GridPlacement, len(places)), turns: turns}
	limits, last := make([]bounds, len(f.pools)), make([]int, len(f.pools)) // the last task that fits, from 1
	for i := range f.pools {
		g.pools = append(g.pools, &f.pools[i])
		limits[i] = bounds{Finder: f, pool: &f.pools[i]}
	}
	for i := range w.Tasks {
		if w.Tasks[i].Done {
			continue
		}
		a := &places[len(g.at)]
		at, known := f.state.Index(a.Resource)
		if !known || !allows(w, g.pools[at]) {
			return nil, nil
		}
		before := last[at] - 1
		if f.unfit(w, i, &limits[at], before >= 0 && alike(&w.Tasks[i], &w.Tasks[before])) != nil || !limits[at].takes(w, i, a.NPE) {
			return nil, nil
		}
		last[at] = i + 1
		s.tasks[len(g.at)] = workflow.GridPlacement{Placement: workflow.Placement{Task: len(g.at), NPE: a.NPE, Start: a.Start, End: a.End}, Site: at}
		g.at = append(g.at, i)
	}
	f.withoutTransfers(w, g, &s)
	t := f.state.Try()
	defer t.Close()
	f.clear(t, nil)
	g.share = f.narrows(w)
	mark := t.Mark()
	found := f.placeAll(t, w, g, &s)
	if found == nil && g.share { // it may be the share that it would exceed
		t.Undo(mark)
		g.share = false
		found = f.placeAll(t, w, g, &s)
	}
	if found == nil {
		return nil, nil
	}
	return found, f.overWorkflow(w, found)
}

// withoutTransfers has the tasks of a sketch begin when their data are there, as planners have it,
// where it has them begin with their transfers.
func (f *Finder) withoutTransfers(w *berth.Workflow, g *grounds, s *sketch) {
	hauls, sites := HaulsOf(w), sitesOf(w)
	if hauls == nil {
		return
	}
	for i, task := range g.at {
		sites[task] = g.pools[s.tasks[i].Site].id.Site
	}
	for i, task := range g.at {
		p := g.pools[s.tasks[i].Site]
		if hauls.Megabytes(task, p.id.Site, func(task int) string { return sites[task] }) > 0 {
			v, rounding := lasting(&w.Tasks[task], p, s.tasks[i].NPE)
			run := p.config.SpeedFor(&w.Tasks[task].Requirements).Scale(v.Duration) + rounding
			s.tasks[i].Start = s.tasks[i].End.Add(-run)
		}
	}
}

// further returns the refusal, of two that may be nil, that got further.
// One that names no pool says only that those there are were not asked for.
func further(a, b *berth.Refusal) *berth.Refusal {
	nowhere := func(no *berth.Refusal) bool { return no == nil || no.Resource == berth.ResourceID{} }
	switch {
	case b == nil:
		return a
	case a == nil || nowhere(a) || !nowhere(b) && b.Reason.Rank() > a.Reason.Rank():
		return b
	}
	return a
}

// better reports whether a plan is better than another, which may be nil.
func (p *WorkflowPlan) better(o *WorkflowPlan, deadline berth.Time) bool {
	if o == nil {
		return true
	}
	if deadline == berth.Forever {
		return cmp.Or(cmp.Compare(p.End, o.End), cmp.Compare(p.PESeconds, o.PESeconds)) < 0
	}
	return cmp.Or(cmp.Compare(p.PESeconds, o.PESeconds), cmp.Compare(p.End, o.End)) < 0
}

// due returns by when the tasks of a workflow must end: a workflow without a deadline may take
// as long as there is time.
func due(w *berth.Workflow) berth.Time { return min(w.Deadline, berth.TimeLimit-1) }

// request returns what asks for a task of a workflow in a pool, on a number of PEs for some
// standard seconds, not before a time.
func request(w *berth.Workflow, task int, p *pool, v berth.Variant, ready, now berth.Time) berth.Request {
	t := &w.Tasks[task]
	return berth.Request{
		User: w.User, Owner: w.Owner, Role: w.Role, Arrival: now, Ready: ready, Deadline: max(due(w), ready+1), Hold: w.Hold,
		Parts: []berth.Part{{Variants: []berth.Variant{v}}}, Site: p.id.Site, Pool: p.id.Name, Requirements: t.Requirements,
		Sharing: w.SharingOf(task), Task: &berth.TaskRef{Workflow: w.ID, Task: t.ID},
	}
}

// aims returns the deadlines that are planned for, one after the other until there is a plan:
// the workflow's own, and before it those that leave its slack and half of that. Where files are
// moved, earlier ones follow: transfers wait for each other, which planners do not know.
func (f *Finder) aims(w *berth.Workflow, now berth.Time) []berth.Time {
	slack, best := berth.Best(w.Algorithm)
	if w.Deadline == berth.Forever || w.Deadline <= now {
		return []berth.Time{w.Deadline}
	}
	left := int64(w.Deadline.Sub(now)) // at most 2^43, so its percents fit
	earlier := func(percent int) berth.Time { return now.Add(berth.Duration(left - left*int64(percent)/100)) }
	var aims []berth.Time
	for _, percent := range []int{slack, slack / 2} {
		if best && percent > 0 {
			aims = append(aims, earlier(percent))
		}
	}
	if aims = append(aims, w.Deadline); len(w.Routes) > 0 {
		aims = append(aims, earlier(10), earlier(25), earlier(50))
	}
	return aims
}

// workflowIn plans a workflow on its grounds by a deadline with each of its planners, and places
// the best plan; nil if there is none. What a place asks for beyond the plan may take it beyond
// that deadline, but not beyond the workflow's own.
func (f *Finder) workflowIn(t *state.Trial, w *berth.Workflow, g *grounds, by berth.Time, p *Planning) (best *WorkflowPlan) {
	at := 0
	for _, k := range p.turns(g.planners) {
		if p.ends() {
			return best
		}
		plan, ok := g.plan(g.planners[k], by)
		if !ok || best != nil && !plan.mayBeat(best, w, k < at) {
			continue
		}
		mark := t.Mark()
		found := f.placeAll(t, w, g, &plan)
		t.Undo(mark)
		if found == nil || !found.better(best, w.Deadline) && (k > at || best.better(found, w.Deadline)) {
			continue
		}
		if over := f.overWorkflow(w, found); over != nil {
			p.over = cmp.Or(p.over, over)
			continue
		}
		best, at, p.found = found, k, true
	}
	return best
}

// mayBeat reports whether a plan may be better than another one once its tasks are placed, or as good
// if that is enough. No task is placed earlier than planned, or for a shorter time, so places are only
// looked for where that may win. What a transfer takes is not in the plan.
func (s *sketch) mayBeat(best *WorkflowPlan, w *berth.Workflow, enough bool) bool {
	if len(w.Routes) > 0 {
		return true
	}
	least := WorkflowPlan{End: -berth.Forever}
	for i := range s.tasks {
		t := &s.tasks[i]
		least.End = max(least.End, t.End)
		least.PESeconds = berth.AddAreas(least.PESeconds, berth.Area(t.NPE, t.End.Sub(t.Start)))
	}
	return least.better(best, w.Deadline) || enough && !best.better(&least, w.Deadline)
}

// placeAll books all tasks of a plan on a trial, by start unless the plan has an order of its own: each where
// the plan has it, or as soon after that as it and its parents allow, with the time for its transfer before
// that. It returns nil if the workflow would miss its deadline so.
func (f *Finder) placeAll(t *state.Trial, w *berth.Workflow, g *grounds, plan *sketch) *WorkflowPlan {
	at := g.at
	turns := plan.turns
	if len(turns) == 0 {
		turns = topological(w, at)
		slices.SortStableFunc(turns, func(a, b int) int { return cmp.Compare(plan.tasks[a].Start, plan.tasks[b].Start) })
	}
	ends, sites := make([]berth.Time, len(w.Tasks)), sitesOf(w)
	for i := range plan.tasks {
		sites[at[i]] = g.pools[plan.tasks[i].Site].id.Site
	}
	hauls, shares := HaulsOf(w), map[inPool]share{}
	now := f.state.Now()
	found := &WorkflowPlan{Planner: plan.planner, End: now, Tasks: make([]TaskPlace, 0, len(turns))}
	for _, i := range turns {
		o := &plan.tasks[i]
		task, p := at[o.Task], g.pools[o.Site]
		megabytes := hauls.Megabytes(task, p.id.Site, func(task int) string { return sites[task] })
		begins := o.Start.Add(-f.hauling(p, megabytes))
		ready := max(begins, g.from)
		for _, parent := range w.Tasks[task].After {
			ready = max(ready, ends[parent])
		}
		v, extended := standard(p.config.SpeedFor(&w.Tasks[task].Requirements), o.NPE, o.End.Sub(o.Start))
		r := request(w, task, p, v, ready, now)
		r.StorageMB = megabytes
		x := f.search(&r, nil)
		x.extended, x.placed = extended, shares
		if g.share {
			x.allowed = f.sharesOf(&r)
		}
		placed, ok := x.placeTask(t, p)
		if !ok {
			return nil
		}
		a := &placed.Place.Allotments[0]
		x.use(a)
		if a.Start != begins || a.End != o.End {
			found.Moved++
		}
		placed.Task, ends[task] = task, a.End
		found.Tasks = append(found.Tasks, placed)
		found.End = max(found.End, a.End)
		found.PESeconds = berth.AddAreas(found.PESeconds, berth.Area(a.NPE, a.End.Sub(a.Start)))
		t.Book(a)
		for i := range placed.Place.Stocks {
			t.Book(&placed.Place.Stocks[i])
		}
		for _, tr := range placed.Place.Transfers {
			slot{start: tr.Since, length: tr.End.Sub(tr.Since), n: tr.Rate}.book(t, f.state.Uplink())
		}
	}
	return found
}

// sitesOf returns the sites of tasks that are done, where they are known, and nothing for the
// others.
func sitesOf(w *berth.Workflow) []string {
	sites := make([]string, len(w.Tasks))
	for i := range w.Tasks {
		if w.Tasks[i].Done {
			sites[i] = w.Tasks[i].Site
		}
	}
	return sites
}

// topological returns the open tasks as planned, parents before children.
func topological(w *berth.Workflow, at []int) []int {
	index := make([]int32, len(w.Tasks)) // of tasks among those that are open, from 1
	for i, task := range at {
		index[task] = int32(i) + 1
	}
	// The children of the i-th open task are those from begin[i] to begin[i+1].
	waits, begin := make([]int32, len(at)), make([]int32, len(at)+1)
	for i, task := range at {
		for _, parent := range w.Tasks[task].After {
			if k := index[parent]; k > 0 {
				waits[i]++
				begin[k]++
			}
		}
	}
	for k := range at {
		begin[k+1] += begin[k]
	}
	children, next := make([]int32, begin[len(at)]), slices.Clone(begin)
	for i, task := range at {
		for _, parent := range w.Tasks[task].After {
			if k := index[parent] - 1; k >= 0 {
				children[next[k]] = int32(i)
				next[k]++
			}
		}
	}
	order := make([]int, 0, len(at))
	for i := range at {
		if waits[i] == 0 {
			order = append(order, i)
		}
	}
	for k := 0; k < len(order); k++ {
		for _, child := range children[begin[order[k]]:begin[order[k]+1]] {
			if waits[child]--; waits[child] == 0 {
				order = append(order, int(child))
			}
		}
	}
	return order
}

// standard returns the variant, in standard seconds, of a reservation that lasts so long at a
// speed, and by how much it lasts longer than that variant: not every length is that of whole
// standard seconds.
func standard(speed berth.Speed, npe berth.Count, d berth.Duration) (v berth.Variant, extended berth.Duration) {
	v = berth.Variant{NPE: npe, Duration: max(1, speed.Work(d))}
	return v, max(0, d-speed.Scale(v.Duration))
}

// placeTask finds the earliest place of the task that is searched for in a pool, from its ready time on.
func (x *search) placeTask(t *state.Trial, p *pool) (TaskPlace, bool) {
	found, ok := x.firstIn(p, func(fit calendar.Fit) berth.Time { return fit.Start })
	if !ok {
		return TaskPlace{}, false
	}
	r := *x.r
	r.Ready = found.fit.Start
	return TaskPlace{Request: r, Place: x.complete(t, []berth.Allotment{found.allotment()})}, true
}
