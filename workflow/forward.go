package workflow

import "github.com/berth-hpc/berth"

// forward is a planner for the earliest end (RESSCHED): it takes the tasks in
// the order of their bottom levels under one allotment and reserves for each
// the number of PEs, within another allotment, with which it ends first.
//
// Source: Aida and Casanova, section 4, as specified in spec 2, b.3. Ties:
// fewer PEs, then the earlier start.
type forward struct{ levels, bound allotment }

// plan places all tasks, whatever the deadline. It is false if the PEs of some
// task are never free long enough, which takes a calendar whose last record
// leaves too few.
func (f forward) plan(in *Instance, _ berth.Time, out []Placement) (int, bool) {
	if in.problem.Plain {
		return 0, (&plain{in: in}).forward(f, out)
	}
	in.begin()
	p := &in.room.profile
	bound := in.allot(f.bound)
	for _, i := range in.order(f.levels) {
		if in.problem.stopped() {
			return 0, false
		}
		ready := in.ready(i, out)
		at, ok := p.earliest(&in.curves[i], ready, bound[i])
		for !ok && in.further() {
			at, ok = p.earliest(&in.curves[i], ready, bound[i])
		}
		if !ok {
			return 0, false
		}
		out[i] = at.of(i)
		p.take(at.start, at.end, at.npe)
	}
	return 0, true
}

func (f forward) ready(in *Instance) {
	in.allot(f.bound)
	in.order(f.levels)
}

func (f forward) parts() []method { return []method{f} }

func (f forward) ours() bool { return f.levels == thrift && f.bound == thrift }

// ready returns when the parents of a task have ended, at least now.
func (in *Instance) ready(i int32, out []Placement) berth.Time {
	ready := in.now
	for _, parent := range in.w.parents.of(i) {
		ready = max(ready, out[parent].End)
	}
	return ready
}

func (f fit) of(task int32) Placement {
	return Placement{Task: int(task), NPE: f.npe, Start: f.start, End: f.end}
}
