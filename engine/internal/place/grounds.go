package place

import (
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/workflow"
)

// grounds is where a workflow is planned: a pool, or several over which its tasks are spread.
// Any planner plans on a pool; over several there is one that plans forward and one that plans
// backwards (workflow.Grid).
type grounds struct {
	pools    []*pool
	planners []workflow.Planner
	in       *workflow.Instance                                         // of the only pool
	grid     *workflow.GridInstance                                     // of several
	lag      func(task, site int, at func(task int) int) berth.Duration // as workflow.Grid.Lag
	bound    berth.Time                                                 // no plan ends earlier
	graph    *workflow.Workflow
	at       []int      // of its tasks, their places in the workflow
	from     berth.Time // nothing starts earlier
	share    bool       // tasks are placed within the shares of their holders
	// late says that some pools are among several only because of what they would add without the
	// deadline: such grounds give no reason why there is no plan.
	late bool
}

// sketch is a plan on grounds; the sites of its tasks are their pools.
type sketch struct {
	planner string
	tasks   []workflow.GridPlacement
	turns   []int // in which order the tasks are placed, parents before children; nil is by their starts
}

// late is a view of a calendar as counts, which is all that planners look at.
type late struct{ calendar.Reader }

func (late) Binding() berth.Binding { return berth.Late }

// shared is such a view in which no more PEs are free at a time than its user may have beside
// what they have then.
type shared struct {
	late
	of share // of one holder
}

// Records returns the steps of both, with times and free PEs alone. It reads no more of the calendar than is asked for.
func (c shared) Records() iter.Seq[calendar.Record] {
	return func(yield func(calendar.Record) bool) {
		steps, free, used := slices.Collect(c.of.steps.Steps(-berth.Forever)), c.Size(), berth.Count(0)
		tell := func(at berth.Time) bool {
			for len(steps) > 0 && steps[0].At <= at {
				used, steps = steps[0].NPE, steps[1:]
			}
			return yield(calendar.Record{Time: at, Free: max(0, min(free, c.of.most-used))})
		}
		if !tell(-berth.Forever) {
			return
		}
		for r := range c.late.Records() {
			for len(steps) > 0 && steps[0].At < r.Time {
				if !tell(steps[0].At) {
					return
				}
			}
			if free = r.Free; !tell(r.Time) {
				return
			}
		}
		for len(steps) > 0 {
			if !tell(steps[0].At) {
				return
			}
		}
	}
}

// Changes returns the times of the steps of both within an interval.
func (c shared) Changes(iv berth.Interval) iter.Seq[berth.Time] {
	return func(yield func(berth.Time) bool) {
		for r := range c.Records() {
			if r.Time >= iv.End || r.Time >= iv.Start && !yield(r.Time) {
				return
			}
		}
	}
}

// counts returns what planners look at of a pool, and how many PEs were free there on average: where shares are those of
// all tasks, no more than these leave.
func (f *Finder) counts(t *state.Trial, w *berth.Workflow, p *pool, narrow bool) (calendar.Reader, berth.Count) {
	view, free := late{t.View(p.index)}, w.FreeIn(p.id)
	if !narrow {
		return view, free
	}
	for _, s := range f.commonShares(w, p) {
		if free == 0 {
			free = s.most
		}
		view, free = late{shared{view, s}}, min(free, s.most)
	}
	return view, free
}

// groundsOf returns the grounds of a workflow as a trial has them, those of one pool first,
// and the refusal of the pool that got furthest of those that are none. narrow says that limits
// narrow the plan.
func (f *Finder) groundsOf(t *state.Trial, w *berth.Workflow, narrow bool, by *Planning) (list []*grounds, refusal *berth.Refusal) {
	planners, known := Planners(w)
	if !known {
		panic("engine: a workflow without a planner")
	}
	_, best := berth.Best(w.Algorithm)
	var candidates, whenever []candidate    // by the deadline, and whatever it is
	late := false                           // they differ
	open := 0                               // tasks
	somewhere := make([]bool, len(w.Tasks)) // some pool will do
	for i := range w.Tasks {
		if !w.Tasks[i].Done {
			open++
		}
	}
	for i := range f.pools {
		p := &f.pools[i]
		if !allows(w, p) {
			refusal = further(refusal, unwanted(w))
			continue
		}
		c := candidate{pool: p, unfit: make([]bool, len(w.Tasks))}
		ever := candidate{pool: p, unfit: make([]bool, len(w.Tasks))}
		limits, last := bounds{Finder: f, pool: p, limited: narrow}, -1 // the last task that fits
		var first *berth.Refusal
		for k := range w.Tasks {
			if w.Tasks[k].Done {
				continue
			}
			no := f.unfit(w, k, &limits, last >= 0 && alike(&w.Tasks[k], &w.Tasks[last]))
			if c.unfit[k] = no != nil; no == nil {
				c.fits, last, somewhere[k] = c.fits+1, k, true
			} else if first == nil {
				first = no
				first.Task = w.Tasks[k].ID
			}
			if ever.unfit[k] = no != nil && !limits.inTime(no, w, k); !ever.unfit[k] {
				ever.fits++
			}
		}
		if ever.late = ever.fits > c.fits; ever.fits > 0 {
			whenever, late = append(whenever, ever), late || ever.late
		}
		refusal = further(refusal, first)
		if c.fits > 0 {
			candidates = append(candidates, c)
		}
		if c.fits < open {
			continue
		}
		g, no := f.onPool(t, w, p, narrow, planners, by)
		if refusal = further(refusal, no); g != nil {
			list = append(list, g)
		}
	}
	if refusal != nil && w.IsSpread() {
		if k := slices.IndexFunc(w.Tasks, func(t berth.WorkflowTask) bool { return t.ID == refusal.Task }); k >= 0 && somewhere[k] {
			refusal.Task = "" // another pool has it
		}
	}
	var over []workflow.Planner // that plan over several pools
	for _, name := range berth.SpreadAlgorithms() {
		if p, known := workflow.PlannerNamed(name); known && (best || name == w.Algorithm) {
			over = append(over, p)
		}
	}
	if len(over) == 0 {
		return list, refusal
	}
	list = append(list, f.overAll(t, w, candidates, over, narrow, by)...)
	// How many PEs a task may have depends on all pools. An offer that was made without a deadline is to
	// be found by its own one as well, so the same pools are planned over once more.
	if late {
		for _, g := range f.overAll(t, w, whenever, over, narrow, by) {
			if g.late {
				list = append(list, g)
			}
		}
	}
	return list, refusal
}

// room lends memory for what planning knows of one pool, until free.
func (f *Finder) room() *workflow.Room {
	if f.lent == len(f.rooms) {
		f.rooms = append(f.rooms, new(workflow.Room))
	}
	f.lent++
	return f.rooms[f.lent-1]
}

// free takes back the memory of all grounds.
func (f *Finder) free() { f.lent = 0 }

// candidate is a pool in which a workflow may be, and the open tasks that cannot be there.
type candidate struct {
	pool  *pool
	unfit []bool // tasks
	fits  int    // how many open ones do
	late  bool   // some do but for the deadline
}

// overAll returns the grounds over several pools. A workflow that is not spread over sites may still be
// over the pools of one, which share their files.
func (f *Finder) overAll(t *state.Trial, w *berth.Workflow, candidates []candidate, planners []workflow.Planner, narrow bool, by *Planning) (list []*grounds) {
	for len(candidates) > 0 {
		n := len(candidates)
		if !w.IsSpread() {
			site := candidates[0].pool.id.Site
			if n = slices.IndexFunc(candidates, func(c candidate) bool { return c.pool.id.Site != site }); n < 0 {
				n = len(candidates)
			}
		}
		if n > 1 {
			pools, unfit, late := make([]*pool, n), make([][]bool, n), false
			for i, c := range candidates[:n] {
				pools[i], unfit[i], late = c.pool, c.unfit, late || c.late
			}
			if g := f.overPools(t, w, pools, unfit, narrow, by); g != nil {
				g.planners, g.late = planners, late
				list = append(list, g)
			}
		}
		candidates = candidates[n:]
	}
	return list
}

// inTime reports whether nothing but the deadline keeps a task from the pool.
func (b *bounds) inTime(no *berth.Refusal, w *berth.Workflow, task int) bool {
	if no.Reason != berth.DeadlineMissed || no.Possible >= berth.TimeLimit {
		return false
	}
	t := planned(&w.Tasks[task], b.pool)
	return b.narrow(&t, w, task)
}

// allows reports whether the tasks of a workflow may be in a pool.
func allows(w *berth.Workflow, p *pool) bool {
	return (w.Site == "" || w.Site == p.id.Site) && (w.Pool == "" || w.Pool == p.id.Name) && (len(w.Sites) == 0 || slices.Contains(w.Sites, p.id.Site))
}

// unwanted is the refusal of a pool that a workflow does not want, which it does not name.
func unwanted(w *berth.Workflow) *berth.Refusal {
	no := &berth.Refusal{Reason: berth.NoSuitableSite}
	for i := range w.Tasks {
		no.Wanted = max(no.Wanted, planned(&w.Tasks[i], nil).Fewest())
	}
	return no
}

// alike reports whether two tasks require the same.
func alike(a, b *berth.WorkflowTask) bool {
	return a.Site == b.Site && a.Account == b.Account && a.QOS == b.QOS && a.Requirements == b.Requirements && planned(a, nil).Fewest() == planned(b, nil).Fewest()
}

// unfit returns why the pool of some bounds is no place for a task of a workflow, whatever is
// free there. fits says that one that requires the same fits.
func (f *Finder) unfit(w *berth.Workflow, task int, limits *bounds, fits bool) *berth.Refusal {
	p := limits.pool
	if site := w.Tasks[task].Site; site != "" && site != p.id.Site {
		return &berth.Refusal{Reason: berth.NoSuitableSite, Wanted: planned(&w.Tasks[task], nil).Fewest()}
	}
	now, t := f.state.Now(), planned(&w.Tasks[task], p)
	few := t.Fewest()
	if !fits {
		r := request(w, task, p, berth.Variant{NPE: few, Duration: 1}, now, now)
		x := f.search(&r, nil)
		if o := x.obstacle(0, p, now); o.reason != "" {
			return o.refusal()
		}
	}
	if !limits.narrow(&t, w, task) {
		return &berth.Refusal{Reason: berth.NoSuitableSite, Resource: p.id, Wanted: few, Limit: limits.most}
	}
	return nil
}

// onPool makes a workflow ready for planning on a pool as a trial has it.
func (f *Finder) onPool(t *state.Trial, w *berth.Workflow, p *pool, narrow bool, planners []workflow.Planner, by *Planning) (*grounds, *berth.Refusal) {
	graph, at, err := f.graph(w, p, nil, narrow)
	if err != nil { // at the speed of this pool it takes longer than any calendar has
		return nil, &berth.Refusal{Reason: berth.NoSuitableSite, Resource: p.id, Wanted: 1}
	}
	view, free := f.counts(t, w, p, narrow)
	in, err := workflow.Prepare(workflow.Problem{Workflow: graph, Calendar: view, Now: by.From, Free: free, Stop: by.stop(), Room: f.room()})
	if err != nil {
		panic("engine: a workflow that was checked cannot be planned: " + err.Error())
	}
	if by.Both != nil {
		in.Ready(planners, by.Both)
	}
	return &grounds{pools: []*pool{p}, planners: planners, in: in, bound: in.Bound(), graph: graph, at: at, from: by.From, share: narrow}, nil
}

// overPools makes a workflow ready for planning over several pools as a trial has them; nil if
// some task fits in none, or takes longer at their speeds than any calendar has.
func (f *Finder) overPools(t *state.Trial, w *berth.Workflow, pools []*pool, unfit [][]bool, narrow bool, by *Planning) *grounds {
	for i := range w.Tasks {
		if !w.Tasks[i].Done && !slices.ContainsFunc(unfit, func(tasks []bool) bool { return !tasks[i] }) {
			return nil
		}
	}
	graph, at, err := f.graph(w, nil, nil, false)
	if err != nil {
		return nil
	}
	grid := &workflow.Grid{Workflow: graph, Now: by.From, Stop: by.stop()}
	for k, p := range pools {
		view, free := f.counts(t, w, p, narrow)
		s := workflow.Site{Resource: p.id, Calendar: view, Free: free, Speed: 1, Room: f.room()}
		if speed := p.config.SpeedFor(&berth.Requirements{}); speed != 0 {
			s.Speed = float64(speed) / float64(berth.StandardSpeed)
		}
		if s.Workflow, _, err = f.graph(w, p, unfit[k], narrow); err != nil {
			return nil
		}
		s.Unfit = make([]bool, len(at))
		for i, task := range at {
			s.Unfit[i] = unfit[k][task]
		}
		grid.Sites = append(grid.Sites, s)
	}
	grid.Lag = f.lag(w, pools, at)
	in, err := grid.Prepare()
	if err != nil {
		return nil
	}
	g := &grounds{pools: pools, grid: in, lag: grid.Lag, graph: graph, at: at, from: by.From, share: narrow}
	soonest, ok, err := in.Plan(berth.Forever)
	if err != nil {
		return nil
	}
	g.bound = by.From
	if ok {
		g.bound = soonest.Bound
	}
	return g
}

// plan has a planner plan by a deadline, or for the earliest end.
func (g *grounds) plan(planner workflow.Planner, by berth.Time) (sketch, bool) {
	switch {
	case g.grid == nil && by == berth.Forever && planner.Goal == workflow.Deadline:
		return g.tightest(planner)
	case g.grid == nil:
		plan, ok := g.in.Try(planner, by)
		return sketchOf(&plan), ok
	case planner.Goal == workflow.Deadline:
		return g.spread(planner, by)
	}
	s, ok := g.spread(planner, berth.Forever)
	return s, ok && !slices.ContainsFunc(s.tasks, func(t workflow.GridPlacement) bool { return t.End > by })
}

// tightest has a planner find the earliest end that it can.
func (g *grounds) tightest(planner workflow.Planner) (sketch, bool) {
	if g.grid != nil {
		return g.spread(planner, berth.Forever)
	}
	_, plan, ok := g.in.Tightest(planner)
	return sketchOf(&plan), ok
}

func (g *grounds) spread(planner workflow.Planner, by berth.Time) (sketch, bool) {
	plan, ok, err := g.grid.Plan(by)
	return sketch{planner: planner.Name, tasks: plan.Tasks}, ok && err == nil
}

func sketchOf(plan *workflow.Plan) sketch {
	s := sketch{planner: plan.Planner, tasks: make([]workflow.GridPlacement, len(plan.Tasks))}
	for i := range plan.Tasks {
		s.tasks[i].Placement = plan.Tasks[i]
	}
	return s
}

// critical returns the critical path of a plan as places in the workflow.
func (g *grounds) critical(s *sketch) []int {
	plan := workflow.Plan{Tasks: make([]workflow.Placement, len(s.tasks))}
	for i := range s.tasks {
		plan.Tasks[i] = s.tasks[i].Placement
		if g.lag != nil { // with its transfer it begins when the last of its parents ends
			lag := g.lag(i, s.tasks[i].Site, func(task int) int { return s.tasks[task].Site })
			plan.Tasks[i].Start = plan.Tasks[i].Start.Add(-lag)
		}
	}
	path := plan.Critical(g.graph)
	for i := range path {
		path[i] = g.at[path[i]]
	}
	return path
}

// refusal says why there is no plan by a deadline.
func (g *grounds) refusal(deadline berth.Time) *berth.Refusal {
	no := &berth.Refusal{Reason: berth.NoCapacity, Resource: g.pools[0].id, Wanted: 1, Possible: g.bound}
	if deadline < g.bound {
		no.Reason = berth.DeadlineMissed
	}
	return no
}
