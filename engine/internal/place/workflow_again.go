package place

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

// Tasks of a workflow get other places when the world deviates: before they start, when they are
// tried again, and when others make way for them.

// Again finds another place for a task that has not started: the earliest from a time on, in
// its pool, as many PEs for as long, also after the deadline of its workflow. before, if it is
// not berth.Forever, is when it must start at the latest: then it keeps within the shares and the budgets of months of its
// holders, for it could stay where it is. Those aside count as gone. at tells the
// sites of other tasks.
func (f *Finder) Again(w *berth.Workflow, task int, d *state.Entry, ready, before berth.Time, aside []*state.Entry, at func(int) string) (TaskPlace, bool) {
	t := f.state.Try()
	defer t.Close()
	f.clear(t, d)
	v := d.Variant(0)
	p := f.poolOf(d.Part(0).Resource)
	r := *d.Request().Clone()
	r.Arrival, r.Ready, r.Deadline = f.state.Now(), ready, berth.TimeLimit-1
	r.Parts = []berth.Part{{Variants: []berth.Variant{v}}}
	r.StorageMB = HaulsOf(w).Megabytes(task, p.id.Site, at)
	x := f.search(&r, d)
	x.extended = d.Extended()
	if before < berth.Forever {
		x.allowed = f.sharesOf(&r, policy.ByMonthBudget)
		run := p.config.SpeedFor(&r.Requirements).Scale(v.Duration) + d.Extended()
		r.Deadline = before.Add(run).Add(f.hauling(p, r.StorageMB))
		x.deadline = r.Deadline
	}
	placed, _, ok := x.placeAside(t, p, aside)
	if ok {
		a := &placed.Place.Allotments[0]
		placed.Request.Deadline = max(due(w), a.End)
		placed.Place.Terms.Deadline = placed.Request.Deadline
	}
	placed.Task = task
	return placed, ok
}

// Try is a task that is tried again.
type Try struct {
	Workflow *berth.Workflow
	Task     int
	Was      *berth.Reservation // that is over
	Aside    []*state.Entry     // count as gone
	Vacant   []*state.Entry     // have left their places and are charged as they were
	At       func(int) string   // the sites of other tasks
}

// Retry finds a place from now on for a task whose reservation is over, as many PEs for as
// long: in the pool where it was or where it ends earlier, at its site, for what the others of the
// workflow have written is there, unless that is spread over sites: then where those that read
// what it writes have the storage for that. It is a new promise: it keeps within the shares of its holders, and over says which of
// their limits it exceeds. A month without the budget for it is passed over if it ends by the deadline of its workflow in a later one.
func (f *Finder) Retry(try *Try) (found TaskPlace, over *berth.Exceeded, ok bool) {
	last := berth.Time(berth.TimeLimit - 1)
	if found, ok = f.retry(try, last, policy.ByShare); !ok {
		if found, ok = f.retry(try, last); !ok {
			return found, nil, false
		}
		x := f.search(&found.Request, nil)
		x.allowed = f.sharesOf(&found.Request)
		_, over = x.shareBeyond(found.Place.Allotments)
		return found, over, over != nil
	}
	over = f.overTry(&found, try.Vacant)
	if over == nil || over.Limit != string(policy.LimitMonthBudget) {
		return found, over, true
	}
	if later, fits := f.retry(try, due(try.Workflow), policy.ByShare, policy.ByMonthBudget); fits {
		return later, f.overTry(&later, try.Vacant), true
	}
	return found, over, true
}

// retry is Retry by a time, with the limits that narrow it.
func (f *Finder) retry(try *Try, last berth.Time, names ...policy.LimitIndex) (TaskPlace, bool) {
	t := f.state.Try()
	defer t.Close()
	f.clear(t, nil)
	w, task, aside := try.Workflow, try.Task, try.Aside
	now, npe := f.state.Now(), try.Was.Terms.Variants[0].NPE
	home := f.poolOf(try.Was.Allotments[0].Resource)
	pools := []*pool{home}
	for i := range f.pools {
		p := &f.pools[i]
		if p != home && (p.id.Site == home.id.Site || w.IsSpread()) && allows(w, p) && f.unfit(w, task, &bounds{Finder: f, pool: p}, false) == nil {
			pools = append(pools, p)
		}
	}
	var best TaskPlace
	found, hauls := false, HaulsOf(w)
	for _, p := range pools {
		if p.id.Site != home.id.Site && f.strands(w, task, p.id.Site, hauls, try.At) {
			continue
		}
		v, rounding := lasting(&w.Tasks[task], p, npe)
		r := request(w, task, p, v, now, now)
		r.StorageMB = hauls.Megabytes(task, p.id.Site, try.At)
		r.Hold, r.Deadline = 0, last
		var placed TaskPlace
		var ok bool
		x := f.search(&r, nil)
		x.extended, x.vacant = rounding, try.Vacant
		if len(names) > 0 {
			x.allowed = f.sharesOf(&r, names...)
		}
		placed, aside, ok = x.placeAside(t, p, aside)
		if !ok || found && placed.Place.Allotments[0].End >= best.Place.Allotments[0].End {
			continue
		}
		best, found = placed, true
	}
	if found {
		best.Request.Deadline = max(due(w), best.Place.Allotments[0].End)
		best.Place.Terms.Deadline, best.Task = best.Request.Deadline, task
	}
	return best, found
}

// strands reports whether a task at a site would leave one that reads what it writes more to bring to
// its own site than fits there. Cost: O(tasks and what they depend on).
func (f *Finder) strands(w *berth.Workflow, task int, to string, hauls *Hauls, at func(int) string) bool {
	moved := func(other int) string {
		if other == task {
			return to
		}
		return at(other)
	}
	for i := range w.Tasks {
		if len(w.Tasks[i].Reads) == 0 || !slices.Contains(w.Tasks[i].After, task) {
			continue
		}
		home := at(i)
		of := slices.IndexFunc(f.pools, func(p pool) bool { return p.id.Site == home })
		if of >= 0 && f.pools[of].site.StorageMB > 0 && hauls.Megabytes(i, home, moved) > f.pools[of].site.StorageMB {
			return true
		}
	}
	return false
}

// lasting returns the variant of a task in a pool, and by how much it is planned to last longer than that.
func lasting(t *berth.WorkflowTask, p *pool, npe berth.Count) (v berth.Variant, rounding berth.Duration) {
	task := planned(t, p)
	return standard(p.config.SpeedFor(&t.Requirements), npe, task.Duration(npe))
}

// Prolonged returns by how much a task of a workflow lasts longer than it was planned to.
func (f *Finder) Prolonged(w *berth.Workflow, task int, d *state.Entry) berth.Duration {
	_, rounding := lasting(&w.Tasks[task], f.poolOf(d.Part(0).Resource), d.Variant(0).NPE)
	return max(0, d.Extended()-rounding)
}

// FreeIn returns how much of a pool or stock is free throughout an interval, what jobs hold that yield
// included.
func (f *Finder) FreeIn(id berth.ResourceID, during berth.Interval) berth.Count {
	i, pool := f.state.Index(id)
	switch {
	case !pool:
		n, _ := f.state.Stock(id).View().Free(during)
		return n
	case !f.Preempt:
		n, _ := f.state.View(i).Free(during)
		return n
	}
	t := f.state.Try()
	defer t.Close()
	f.clear(t, nil)
	n, _ := t.View(i).Free(during)
	return n
}

// CouldBegin reports whether a task that has not started, in a pool of early binding, could begin at a
// time on PEs that it may have and that are free for as long as it lasts: with what was given back
// meanwhile still held, and those gone that have come forward meanwhile.
func (f *Finder) CouldBegin(d *state.Entry, at berth.Time, given []berth.Allotment, came []*state.Entry) bool {
	a := d.Part(0)
	t := f.state.Try()
	defer t.Close()
	f.clear(t, d)
	p := f.poolOf(a.Resource)
	during := berth.Interval{Start: at, End: at.Add(a.End.Sub(a.Start))}
	for _, other := range came {
		if b := other.Part(0); other != d && b.Resource == a.Resource && b.Start < during.End && b.End > during.Start {
			t.Release(other)
		}
	}
	_, free := t.View(p.index).Free(during)
	for i := range given {
		if b := &given[i]; b.Resource == a.Resource && b.Start < during.End && b.End > during.Start {
			free = free.Minus(b.PEs)
		}
	}
	x := f.search(d.Request(), d)
	for x.way = range x.ways(0) {
		n := free.Count()
		if x.restricted(0, p) {
			n = x.eligible(0, p).Overlap(free)
		}
		if n >= a.NPE {
			return true
		}
	}
	return false
}

// placeAside is placeTask with those aside released; it returns those that it has left as they
// are. What begins after a place that was found cannot make an earlier one free, so only what begins
// before its end is released, and most of what depends on a task stays where it is.
func (x *search) placeAside(t *state.Trial, p *pool, aside []*state.Entry) (placed TaskPlace, left []*state.Entry, ok bool) {
	run := p.config.SpeedFor(&x.r.Requirements).Scale(x.r.Parts[0].Variants[0].Duration) + x.extended
	until := min(x.deadline, x.notBefore.Add(run))
	left = x.setAside(t, aside, until)
	for {
		placed, ok = x.placeTask(t, p)
		had := len(left)
		for had == len(left) {
			end := x.deadline
			if ok {
				end = placed.Place.Allotments[0].End
			}
			if had == 0 || end <= until {
				return placed, left, ok
			}
			until = end
			left = x.setAside(t, left, until)
		}
	}
}

// setAside releases reservations where that matters before a time: what is looked for ends
// before it. What begins later and holds PEs alone is left where it is, and returned.
func (f *Finder) setAside(t *state.Trial, aside []*state.Entry, before berth.Time) (left []*state.Entry) {
	for _, d := range aside {
		switch {
		case d.Start() < before || !d.OnlyPEs():
			t.Release(d)
		case !d.Vacant():
			left = append(left, d)
		}
	}
	return left
}

// Yielding returns which of some reservations that have not started, all of one workflow, must
// give up their places so that an allotment is free, those that start first; ok is false if
// that is not enough.
func (f *Finder) Yielding(extra *berth.Allotment, own []*state.Entry) (list []*state.Entry, ok bool) {
	t := f.state.Try()
	defer t.Close()
	f.clear(t, nil)
	view := t.View(f.poolOf(extra.Resource).index)
	own = slices.Clone(own)
	slices.SortFunc(own, state.ByStart)
	for _, d := range own {
		if view.Takes(extra) {
			break
		}
		if a := d.Part(0); d.Vacant() || a.Resource != extra.Resource || a.Start >= extra.End || a.End <= extra.Start {
			continue
		}
		t.Release(d)
		list = append(list, d)
	}
	return list, view.Takes(extra)
}
