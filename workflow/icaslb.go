package workflow

import "github.com/berth-hpc/berth"

// integrated is iCASLB: allocation and scheduling in one loop. From one PE for
// every task on, it looks some steps ahead, each giving a task of the
// present schedule's critical path one more PE and schedules anew, and keeps
// the best schedule seen. The schedules are made on the calendar itself, so
// the bookings of others shape the allocation.
//
// Source: Vydyanathan, Krishnamoorthy, Sabin, Catalyurek, Kurc, Sadayappan,
// Saltz, "An integrated approach for processor allocation and scheduling of
// mixed-parallel applications", ICPP 2006; future work of Aida and Casanova;
// as specified in spec 2, b.2. Settled here: of the tasks on the critical path
// the one whose time falls most grows, then the one beside which least can run,
// then the first; after a better schedule every task may be tried again; the
// critical path goes back from the last end over tasks that end where the next
// one starts, parents before others, and ends at a task that waits for none;
// and no more than maxPlacements tasks are placed over all schedules, after
// which the best one stands.
type integrated struct{}

const (
	lookAhead = 20 // of the cited paper

	// maxPlacements bounds the work: about a second.
	maxPlacements = 1 << 22
)

// fitter places tasks of a given size; the fast and the plain profile are two.
type fitter interface {
	begin(in *Instance)
	first(ready berth.Time, d berth.Duration, n berth.Count) (berth.Time, bool)
	take(from, to berth.Time, n berth.Count)
}

func (p *profile) begin(in *Instance) { p.reset(&in.room.steps) }

func (s *plain) begin(*Instance) { s.reset() }

func (s *plain) first(ready berth.Time, d berth.Duration, n berth.Count) (berth.Time, bool) {
	return s.earliest(ready, d, n)
}

// trial is a schedule and the numbers of PEs it was made with.
type trial struct {
	npe []berth.Count
	out []Placement
	end berth.Time
}

func (t *trial) copyFrom(o *trial) {
	copy(t.npe, o.npe)
	copy(t.out, o.out)
	t.end = o.end
}

// plan makes the plan, whatever the deadline.
func (integrated) plan(in *Instance, _ berth.Time, out []Placement) (int, bool) {
	n := len(out)
	in.know(berth.Forever) // how late a schedule ends that is none of the best says what grows next
	var fit fitter = &in.room.profile
	if in.problem.Plain {
		fit = &plain{in: in}
	}
	fresh := func() trial { return trial{npe: in.uniform(1), out: make([]Placement, n)} }
	best, ahead, now := fresh(), fresh(), fresh()
	bl := make([]berth.Duration, n)
	if !now.schedule(in, fit, bl) {
		return 0, false
	}
	best.copyFrom(&now)
	tried := make([]bool, n)
	for left := maxPlacements / n; left > 0; {
		now.copyFrom(&best)
		ahead.copyFrom(&best)
		first := int32(-1)
		for range lookAhead {
			task := now.choose(in, tried, first < 0)
			if task < 0 || left == 0 {
				break
			}
			if first < 0 {
				first = task
			}
			now.npe[task] = in.curves[task].next(now.npe[task])
			left--
			if now.schedule(in, fit, bl); now.end < ahead.end {
				ahead.copyFrom(&now)
			}
			if in.problem.stopped() {
				return 0, false
			}
		}
		switch {
		case first < 0:
			left = 0
		case ahead.end < best.end:
			best.copyFrom(&ahead)
			clear(tried)
		default:
			tried[first] = true
		}
	}
	copy(out, best.out)
	return 0, true
}

func (integrated) ready(*Instance) {}

func (i integrated) parts() []method { return []method{i} }

func (integrated) ours() bool { return false }

// schedule places all tasks by first fit in the order of their bottom levels.
func (t *trial) schedule(in *Instance, fit fitter, bl []berth.Duration) bool {
	levels(in.w, in.curves, t.npe, nil, bl)
	fit.begin(in)
	t.end = in.now
	for _, i := range orderOf(in.w, bl) {
		if in.problem.stopped() {
			t.end = berth.Forever
			return false
		}
		d, n := in.curves[i].duration(t.npe[i]), t.npe[i]
		start, ok := fit.first(in.ready(i, t.out), d, n)
		if !ok {
			t.end = berth.Forever
			return false
		}
		t.out[i] = Placement{Task: int(i), NPE: n, Start: start, End: start.Add(d)}
		fit.take(start, start.Add(d), n)
		t.end = max(t.end, start.Add(d))
	}
	return true
}

// choose returns the task of the critical path that grows next, -1 if none can.
// As the first of a look-ahead it is none that was tried in vain.
func (t *trial) choose(in *Instance, tried []bool, first bool) int32 {
	best, most, beside := int32(-1), 0.0, 0.0
	for _, i := range critical(in.w, t.out) {
		m := t.npe[i]
		more := in.curves[i].next(m)
		if more > in.size || first && tried[i] {
			continue
		}
		fall := in.curves[i].time(m) - in.curves[i].time(more)
		if fall < most || fall == 0 {
			continue
		}
		area := -1.0 // not needed unless there is a tie
		if fall == most {
			if beside < 0 {
				beside = t.beside(in, best)
			}
			if area = t.beside(in, i); area > beside || area == beside && i > best {
				continue
			}
		}
		best, most, beside = i, fall, area
	}
	return best
}

// beside returns the area of the tasks that may run beside one: neither before
// nor after it in the workflow.
func (t *trial) beside(in *Instance, task int32) float64 {
	related := make([]bool, len(t.out))
	for _, next := range []*adjacency{&in.w.children, &in.w.parents} {
		pile := []int32{task}
		related[task] = true
		for len(pile) > 0 {
			i := pile[len(pile)-1]
			pile = pile[:len(pile)-1]
			for _, k := range next.of(i) {
				if !related[k] {
					related[k] = true
					pile = append(pile, k)
				}
			}
		}
	}
	area := 0.0
	for i, m := range t.npe {
		if !related[i] {
			area += float64(float64(m) * in.curves[i].time(m))
		}
	}
	return area
}
