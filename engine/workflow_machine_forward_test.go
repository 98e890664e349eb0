package engine_test

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// fronts is what there was in front of tasks before an event: whether they could have begun a second
// earlier.
type fronts struct {
	list  map[string]berth.Reservation
	taken map[string]bool // those that could not, for want of PEs
	peaks map[berth.ResourceID]berth.Count
}

// fronts looks at all reservations.
func (x *flows) fronts() fronts {
	f := fronts{list: map[string]berth.Reservation{}, taken: map[string]bool{}, peaks: x.peaks()}
	for r := range x.e.Reservations() {
		f.list[r.Request.ID] = r
	}
	for id, r := range f.list {
		if r.Request.Task != nil && r.State != berth.Active {
			f.taken[id] = !x.roomInFront(&r)
		}
	}
	return f
}

// roomInFront reports whether a task could begin a second earlier: on PEs that are free for as long as it
// lasts under early binding, on as many as are free in that second under late binding, whatever their
// names. Jobs that run and yield leave room.
func (x *flows) roomInFront(r *berth.Reservation) bool {
	a := &r.Allotments[0]
	pool := x.poolOf(a.Resource)
	free, n := berth.NewPESet(berth.Run{Hi: berth.PE(pool.PEs)}), pool.PEs
	for o := range x.e.Reservations() {
		b := &o.Allotments[0]
		if b.Resource != a.Resource || o.Request.ID == r.Request.ID || x.config.Preempt && o.Request.IsJob() && o.State == berth.Active {
			continue
		}
		if b.Start < a.End-1 && b.End >= a.Start {
			free = free.Minus(b.PEs)
		}
		if b.Start < a.Start && b.End >= a.Start {
			n -= b.NPE
		}
	}
	if pool.Binding == berth.Late {
		return n >= a.NPE
	}
	return slices.ContainsFunc(x.suits(r), func(set berth.PESet) bool { return free.Overlap(set) >= a.NPE })
}

func (x *flows) poolOf(id berth.ResourceID) *berth.Pool {
	for i := range x.config.Sites {
		for k := range x.config.Sites[i].Pools {
			if pool := &x.config.Sites[i].Pools[k]; berth.PoolID(x.config.Sites[i].Name, pool.Name) == id {
				return pool
			}
		}
	}
	x.fatalf("there is no pool %v", id)
	return nil
}

// forward judges what came forward on an event: tasks that waited for PEs that their workflow has given
// back and nothing else did, and those behind tasks that came out or moved.
func (x *flows) forward(event *engine.Event, was fronts) {
	x.withinShare(event, was)
	outages := false
	for range x.e.Outages() {
		outages = true
	}
	switch event.Kind {
	case engine.EventReport, engine.EventFinish, engine.EventCancel:
	default:
		return
	}
	var others []berth.Allotment // what others got on the event, which counts as theirs before
	for r := range x.e.Reservations() {
		if had, is := was.list[r.Request.ID]; r.Request.Task == nil && (!is || had.Generation != r.Generation) {
			others = append(others, r.Allotments...)
		}
	}
	for id, before := range was.list {
		if before.Request.Task == nil || before.State == berth.Active || before.Missing > 0 || len(before.Stocks)+len(before.Transfers) > 0 || x.live[before.Request.Task.Workflow] == nil {
			continue
		}
		s := x.live[before.Request.Task.Workflow]
		r, is := x.e.Reservation(id)
		if !is || s.w.Repair != berth.RepairBoth && r.Start() == before.Start() {
			continue
		}
		start, gave, ready, disturbed := before.Start(), false, x.now, false
		for i := range s.w.Tasks {
			if s.w.Tasks[i].ID == before.Request.Task.Task {
				for _, parent := range s.w.Tasks[i].After {
					of := engine.TaskID(s.w.ID, parent, s.tries[parent])
					p, waits := x.e.Reservation(of)
					if waits {
						ready = max(ready, p.End())
					}
					had, had1 := was.list[of]
					disturbed = disturbed || !waits || !had1 || had.End() != p.End()
				}
			}
		}
		for of, had := range was.list {
			a := &had.Allotments[0]
			if had.Request.Task == nil || had.Request.Task.Workflow != s.w.ID || a.Resource != before.Allotments[0].Resource || a.Start >= start || a.End < start {
				continue
			}
			now, is := x.e.Reservation(of)
			gave = gave || !is || now.Start() < a.Start && now.End() < start // else it holds the second before still
		}
		switch {
		case r.Start() < start && s.w.Repair != berth.RepairBoth:
			x.fatalf("%s comes forward from %d to %d under the repair %s", id, start, r.Start(), s.w.Repair)
		case r.Start() < start && !disturbed:
			inFront := func(a berth.Allotment) bool {
				return a.Resource == before.Allotments[0].Resource && a.Start < before.End() && a.End >= start
			}
			if x.cells["forward for PEs"]++; !was.taken[id] && len(x.config.Limits) == 0 && !outages && !slices.ContainsFunc(others, inFront) {
				x.fatalf("%s comes forward from %d to %d, and had room before", id, start, r.Start())
			}
		case r.Start() == start && before.State != berth.Held && was.taken[id] && gave && ready < start && len(x.config.Limits) == 0 && !outages && x.roomInFront(&r):
			x.fatalf("%s stays at %d, with room in front of it that its workflow has given back; its parents end at %d", id, start, ready)
		}
	}
}

// peaks returns the most PEs of each pool that are promised to ada at a time.
func (x *flows) peaks() map[berth.ResourceID]berth.Count {
	peaks := map[berth.ResourceID]berth.Count{}
	var own []berth.Allotment
	for r := range x.e.Reservations() {
		if r.Request.User == "ada" && !r.Request.IsJob() {
			own = append(own, r.Allotments...)
		}
	}
	for i := range own {
		n := berth.Count(0)
		for k := range own {
			if own[k].Resource == own[i].Resource && own[k].Start <= own[i].Start && own[i].Start < own[k].End {
				n += own[k].NPE
			}
		}
		peaks[own[i].Resource] = max(peaks[own[i].Resource], n)
	}
	return peaks
}

// withinShare says that what is promised now, and what comes forward, keeps within the share of its user.
func (x *flows) withinShare(event *engine.Event, was fronts) {
	allowed := x.config.Limits.Of("", "ada")
	if event.Kind != engine.EventSubmitWorkflow && event.Kind != engine.EventReport {
		return
	}
	if event.Kind == engine.EventReport && event.Outcome != berth.Succeeded {
		return // those that are late, or tried again, are placed without being asked
	}
	for id, had := range was.list {
		if r, is := x.e.Reservation(id); is && r.State == berth.Active && r.End() > had.End() {
			return // it is late, as time went on to this event
		}
	}
	for r := range x.e.Reservations() {
		if _, had := was.list[r.Request.ID]; !had && r.Request.Task != nil && r.Request.Task.Try > 1 {
			return // its time was over before it was, and it is tried again
		}
	}
	if _, limited := allowed.Limit(policy.LimitShare); !limited {
		return
	}
	for id, peak := range x.peaks() {
		if most, _ := allowed.ShareOf(x.poolOf(id).PEs); peak > max(most, was.peaks[id]) {
			x.fatalf("%d PEs of %v are promised at a time; the share is %d, and it was %d before %s", peak, id, most, was.peaks[id], event.Kind)
		}
		x.cells["within the share"]++
	}
}
