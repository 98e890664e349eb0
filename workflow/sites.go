package workflow

import (
	"math"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Site is one of several sites that a workflow may be spread over. A task runs
// at one site; its files move at no cost, as everywhere in this package.
type Site struct {
	Resource berth.ResourceID
	Calendar calendar.Reader // of late binding
	Free     berth.Count     // as Problem.Free
	Speed    float64         // of a PE: 2 halves the times of the workflow; 0 stands for 1
	// Workflow is the workflow with the times that its tasks take here, if Speed does not say
	// them: some tasks may use what is faster. It has the same tasks in the same order.
	Workflow *Workflow
	// Unfit tells the tasks that cannot run here; nil is none.
	Unfit []bool
	Room  *Room // as Problem.Room
}

// suits reports whether a task can run at the site.
func (s *Site) suits(task int32) bool { return s.Unfit == nil || !s.Unfit[task] }

// Grid is a workflow to be planned on several sites.
type Grid struct {
	Workflow *Workflow
	Sites    []Site
	Now      berth.Time
	Epsilon  Epsilon
	Stop     func() bool // as Problem.Stop
	// Lag, if given, returns how long a task waits at a site for data, from the end of its last
	// parent to its start. at tells the sites of the tasks that are placed, and -1 of the others,
	// which have no data for it yet; with one more placed the lag is never shorter.
	Lag func(task, site int, at func(task int) int) berth.Duration
}

// GridPlacement is one task's reservation at a site, an index into the grid's.
type GridPlacement struct {
	Site int
	Placement
}

// GridPlan is a plan over several sites.
type GridPlan struct {
	Tasks      []GridPlacement
	Turnaround berth.Duration
	CPUSeconds int64 // of PEs of whatever speed
	// Bound is a time before which no plan can end: the longest way through the
	// workflow with all PEs of the site that is fastest for each task.
	Bound berth.Time
}

// End returns the end of the last reservation of a plan made at now.
func (p *GridPlan) End(now berth.Time) berth.Time { return now.Add(p.Turnaround) }

// Book books a whole plan on a draft, or nothing; see Plan.Book.
func (p *GridPlan) Book(d *calendar.Draft, sites []Site) error {
	mark := d.Mark()
	for _, t := range p.Tasks {
		if err := d.Book(sites[t.Site].Resource, calendar.Block{Start: t.Start, End: t.End, NPE: t.NPE}); err != nil {
			d.Undo(mark)
			return err
		}
	}
	return nil
}

// Plan plans the workflow over the sites: with the deadline berth.Forever for
// the earliest end, as bd-cpar does, else backwards from the deadline, as
// dl-bd-cpar does. A task's candidates are all pairs of a site and a number of
// PEs within its bound there. It is false if there is no plan, by the deadline
// or, where a calendar's last record leaves too few PEs, at all.
//
// Source: the multi-cluster setting that Aida and Casanova name as future work,
// with HCPA's reference cluster (N'Takpé, Suter, "Critical path and area based
// scheduling of parallel task graphs on heterogeneous platforms", ICPADS 2006):
// CPA allots on a cluster of the slowest site's PEs that has as much power as
// all sites' free PEs together, and a task's bound at a site is the fewest PEs
// that are as fast as its allotment, or all. Ties: fewer PEs, then the site
// that is listed first. Cost: as bd-cpar, times the sites, whatever their speeds.
//
// Deviations: the reference cluster has no more than berth.MaxPEs. A task that has four times the PEs of
// all sites there, and 256, goes on growing by a 32nd at a time: where speeds are far apart, one PE of the
// slowest site is too little to matter at the fastest, and one by one the steps would grow with the ratio
// of speeds. Where data take time from site to site (Lag), a task starts so much later than its
// last parent ends. Backwards a task is placed before its parents, so how long it waits is known
// when all are placed; then all are placed again with these waits, until no wait is longer than
// was thought, or latePasses times.
func (g *Grid) Plan(deadline berth.Time) (GridPlan, bool, error) {
	in, err := g.Prepare()
	if err != nil {
		return GridPlan{}, false, err
	}
	return in.Plan(deadline)
}

// Plan is Grid.Plan of a grid that was prepared. A plan does not depend on those made before.
func (g *GridInstance) Plan(deadline berth.Time) (GridPlan, bool, error) {
	if deadline != berth.Forever && (!deadline.Valid() || deadline <= g.now) {
		return GridPlan{}, false, berth.Errorf(berth.Invalid, "deadline", "%d is not after now, %d, or beyond 2^42 s", deadline, g.now)
	}
	bounds := g.bounds()
	clear(g.waits)
	plan := GridPlan{Tasks: make([]GridPlacement, g.w.Len()), Bound: g.bound()}
	g.know(deadline, plan.Bound)
	for pass := 1; ; pass++ {
		if !g.placeAll(bounds, plan.Tasks, deadline) {
			return GridPlan{}, false, nil
		}
		if deadline == berth.Forever || pass == latePasses || !g.waitsLonger() {
			break
		}
	}
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		plan.Turnaround = max(plan.Turnaround, t.End.Sub(g.now))
		plan.CPUSeconds += berth.Area(t.NPE, t.End.Sub(t.Start))
	}
	return plan, true, nil
}

// leastFine is up to how many PEs a task of a reference cluster grows one by one at least: on two sites of
// 4 PEs it gets no more as long as one is at most 63 times as fast as the other.
const leastFine = 256

// latePasses is how often tasks are placed backwards at most. Where tasks name their sites the
// second time is the last; else waits grow and settle, and what is left is for who books the plan.
const latePasses = 8

// know reads the calendars of all sites up to the deadline, or for a first look if there is none.
func (g *GridInstance) know(deadline, bound berth.Time) {
	if deadline == berth.Forever {
		deadline = firstLook(g.now, bound)
	}
	for _, s := range g.sites {
		s.know(deadline)
	}
}

// known returns up to when all calendars are known.
func (g *GridInstance) known() berth.Time {
	known := berth.Forever
	for _, s := range g.sites {
		known = min(known, s.known)
	}
	return known
}

// further is Instance.further of all sites. Those that are not known as a whole are known up to one time.
func (g *GridInstance) further() bool {
	more := false
	for _, s := range g.sites {
		if s.further() {
			more = true
		}
	}
	return more
}

// placeAll places all tasks by a deadline; false if one has no place.
func (g *GridInstance) placeAll(bounds [][]berth.Count, out []GridPlacement, deadline berth.Time) bool {
	for _, s := range g.sites {
		s.room.profile.reset(&s.room.steps)
	}
	for i := range g.placed {
		g.placed[i] = -1
	}
	order := g.reference.order(cpar)
	for k := range order {
		i := order[k]
		if deadline != berth.Forever {
			i = order[len(order)-1-k]
		}
		if g.reference.problem.stopped() {
			return false
		}
		at, ok := g.place(i, bounds, out, deadline)
		if !ok {
			return false
		}
		out[i], g.placed[i] = at, at.Site
	}
	return true
}

// waitsLonger notes how long tasks wait for data where they all are, and reports whether one
// waits longer than was thought.
func (g *GridInstance) waitsLonger() (longer bool) {
	if g.lag == nil {
		return false
	}
	for i := range g.waits {
		if d := g.wait(int32(i), g.placed[i]); d > g.waits[i] {
			g.waits[i], longer = d, true
		}
	}
	return longer
}

// wait returns how long a task waits for data at a site, by the tasks that are placed.
func (g *GridInstance) wait(i int32, site int) berth.Duration {
	if g.lag == nil {
		return 0
	}
	return min(g.lag(int(i), site, func(task int) int { return g.placed[task] }), berth.TimeLimit)
}

// GridInstance is a grid made ready for planning: an instance for each site, with the times there, and
// the reference cluster. It remembers what several deadlines have in common, and reads the calendars
// while it plans, no further than it needs, so they must not change as long as it is used. It is not safe for concurrent use.
type GridInstance struct {
	now       berth.Time
	w         *Workflow
	of        []Site
	sites     []*Instance
	reference *Instance
	lag       func(task, site int, at func(task int) int) berth.Duration
	placed    []int            // the sites of the tasks, -1 of those that are not placed
	waits     []berth.Duration // of tasks, as known from placing them before
}

// Prepare checks a grid. Errors, all of code Invalid: no sites, the speed of one, and those of Prepare
// of a problem on each.
func (g *Grid) Prepare() (*GridInstance, error) {
	if len(g.Sites) == 0 {
		return nil, berth.Errorf(berth.Invalid, "sites", "none; there is nothing to plan on")
	}
	in := &GridInstance{now: g.Now, w: g.Workflow, of: g.Sites, lag: g.Lag}
	slowest := math.Inf(1)
	for _, s := range g.Sites {
		if math.IsNaN(s.Speed) || s.Speed < 0 || math.IsInf(s.Speed, 1) {
			return nil, berth.Errorf(berth.Invalid, "speed", "%v of site %q; want a positive number", s.Speed, s.Resource.Site)
		}
		slowest = min(slowest, s.speed())
		here := s.Workflow
		if here == nil {
			var err error
			if here, err = g.scaled(s.speed()); err != nil {
				return nil, err
			}
		}
		one, err := g.at(here, s.Calendar, s.Free, s.Room)
		if err != nil {
			return nil, err
		}
		in.sites = append(in.sites, one)
	}
	var power float64
	all := berth.Count(0)
	for k, s := range in.sites {
		all = min(all+s.size, berth.MaxPEs)
		power += math.Floor(float64(s.q) * (g.Sites[k].speed() / slowest))
	}
	if err := in.tooLarge(); err != nil {
		return nil, err
	}
	empty := calendar.NewFast(berth.Count(min(power, berth.MaxPEs)), berth.Late)
	standard, err := g.scaled(slowest)
	if err != nil {
		return nil, err
	}
	reference, err := g.at(standard, empty, 0, nil)
	if err != nil {
		return nil, err
	}
	reference.fine = max(leastFine, 4*all)
	in.reference, in.placed, in.waits = reference, make([]int, g.Workflow.Len()), make([]berth.Duration, g.Workflow.Len())
	return in, nil
}

// tooLarge returns an error about the first task that needs more PEs than any
// site has.
func (g *GridInstance) tooLarge() error {
	largest := g.sites[0]
	for _, s := range g.sites {
		if s.size > largest.size {
			largest = s
		}
	}
	return largest.tooLarge()
}

func (s *Site) speed() float64 {
	if s.Speed == 0 {
		return 1
	}
	return s.Speed
}

// scaled returns the workflow with the times that it takes on PEs of a speed.
func (g *Grid) scaled(speed float64) (*Workflow, error) {
	if g.Workflow == nil || speed == 1 {
		return g.Workflow, nil
	}
	scaled, err := g.Workflow.Scaled(1 / speed)
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "speed", "%v makes the workflow too long to plan", speed)
	}
	return scaled, nil
}

// at prepares a workflow for a calendar.
func (g *Grid) at(w *Workflow, c calendar.Reader, free berth.Count, room *Room) (*Instance, error) {
	return prepare(Problem{Workflow: w, Calendar: c, Now: g.Now, Free: free, Epsilon: g.Epsilon, Stop: g.Stop, Room: room})
}

// bound is GridPlan.Bound.
func (g *GridInstance) bound() berth.Time {
	longest := berth.Duration(0)
	levels := make([]berth.Duration, g.w.Len())
	for _, i := range slices.Backward(g.w.topological) {
		shortest := berth.Endless
		for k, s := range g.sites {
			if g.of[k].suits(i) && s.curves[i].few() <= s.size {
				shortest = min(shortest, s.curves[i].duration(s.size))
			}
		}
		for _, child := range g.w.children.of(i) {
			levels[i] = max(levels[i], levels[child])
		}
		levels[i] += shortest
		longest = max(longest, levels[i])
	}
	return g.now.Add(longest)
}

// bounds translates what the reference cluster allots to each site.
func (g *GridInstance) bounds() [][]berth.Count {
	allotted := g.reference.allot(cpar)
	bounds := make([][]berth.Count, len(g.sites))
	for k, s := range g.sites {
		bounds[k] = make([]berth.Count, len(allotted))
		for i, n := range allotted {
			least, ok := s.curves[i].least(g.reference.curves[i].duration(n), s.size)
			if !ok {
				least = s.size // too few where the task needs more: it gets no place there
			}
			bounds[k][i] = least
		}
	}
	return bounds
}

// place chooses the best pair of a site and a number of PEs for a task. Without a deadline it reads
// the calendars on until what it found ends within all of them: what they have later ends later.
func (g *GridInstance) place(i int32, bounds [][]berth.Count, out []GridPlacement, deadline berth.Time) (GridPlacement, bool) {
	for {
		best, site := g.best(i, bounds, out, deadline)
		if deadline == berth.Forever && (site < 0 || best.end > g.known()) && g.further() {
			continue
		}
		if site < 0 {
			return GridPlacement{}, false
		}
		g.sites[site].room.profile.take(best.start, best.end, best.npe)
		return GridPlacement{Site: site, Placement: best.of(i)}, true
	}
}

// best returns the best place of a task, and its site, in what is known of the calendars; -1 is none.
func (g *GridInstance) best(i int32, bounds [][]berth.Count, out []GridPlacement, deadline berth.Time) (best fit, site int) {
	ready := g.now
	for _, parent := range g.w.parents.of(i) {
		ready = max(ready, out[parent].End)
	}
	site = -1
	for k, s := range g.sites {
		if !g.of[k].suits(i) {
			continue
		}
		var at fit
		var ok, better bool
		first := g.now.Add(g.wait(i, k))
		if deadline == berth.Forever {
			at, ok = s.room.profile.earliest(&s.curves[i], ready.Add(first.Sub(g.now)), bounds[k][i])
			better = at.end < best.end || at.end == best.end && at.npe < best.npe
		} else if due := g.due(i, k, out, deadline); due > first {
			at, ok = s.room.profile.latest(&s.curves[i], first, due, bounds[k][i])
			better = at.start > best.start || at.start == best.start && at.npe < best.npe
		}
		if ok && (site < 0 || better) {
			best, site = at, k
		}
	}
	return best, site
}

// due returns by when a task must end at a site: so early that its children, which are placed,
// have their data when they start.
func (g *GridInstance) due(i int32, site int, out []GridPlacement, deadline berth.Time) berth.Time {
	if g.lag != nil {
		g.placed[i] = site
		defer func() { g.placed[i] = -1 }()
	}
	due := deadline
	for _, child := range g.w.children.of(i) {
		due = min(due, out[child].Start.Add(-max(g.waits[child], g.wait(child, g.placed[child]))))
	}
	return due
}
