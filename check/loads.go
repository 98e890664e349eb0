package check

import (
	"cmp"
	"math"
	"slices"
)

// loads tell whether a pool had too few PEs for a former place, where PEs have no
// numbers before they are used. What counts is what was known when the place was
// given up: a request has its place from its arrival on, a job from its start on,
// both until their limit as long as they have not ended, and PEs are down for as
// long as was expected. So there is one pass over what came to be known, with the
// load at all times in a tree. What came to be known at that moment counts, and so
// does what ceased to be: the file does not tell in which order they came.
type loads struct {
	*checker
	questions []question
}

// question is whether at the moment now more PEs than there are were taken at some
// time in [from, to).
type question struct {
	place         int32
	which         int
	from, to, now int64
	later         []step // what was promised instead at that moment
}

// ask asks whether PEs were too few for former place k of one of the parts of a
// request; judge gives the answer under the name which.
func (l *loads) ask(parts []int32, part int32, k, which int) {
	records := l.file.records
	f := &records[part].past.former[k]
	q := question{place: f.place, which: which, from: max(f.start, f.at), to: f.end, now: f.at}
	for _, i := range parts {
		rec := &records[i]
		for j := k + 1; j <= len(rec.formers()) && rec.made(j) == f.at && l.reasons < maxReasonWork; j++ {
			l.reasons++
			if j < len(rec.formers()) {
				if m := &rec.past.former[j]; m.place == f.place {
					q.later = append(q.later, step{from: m.start, to: m.end, amount: m.npe})
				}
			} else if rec.accepted && rec.place == f.place && rec.has(fStart) && rec.has(fEnd) {
				q.later = append(q.later, step{from: rec.start, to: rec.end, amount: rec.npe})
			}
		}
	}
	l.questions = append(l.questions, q)
}

// judge calls yes for every question to which that is the answer. Cost:
// O(n log n) for n lines and former places.
func (l *loads) judge(yes func(which int)) {
	if len(l.questions) == 0 {
		return
	}
	pools := map[int32]*known{}
	for _, q := range l.questions {
		if pools[q.place] == nil {
			pools[q.place] = &known{}
		}
		k := pools[q.place]
		k.steps = append(k.steps, step{at: q.now, phase: asked, from: q.from, to: q.to, which: q.which, later: q.later})
	}
	records := l.file.records
	for i := range records {
		rec := &records[i]
		for k := range rec.formers() {
			m := &rec.past.former[k]
			if pool := pools[m.place]; pool != nil {
				pool.note(rec.made(k), taken, m.start, m.end, m.npe)
				pool.note(m.at, given, m.start, m.end, m.npe)
			}
		}
		made := rec.arrival
		for _, m := range rec.replanned() {
			if pool := pools[m.place]; pool != nil {
				pool.note(made, taken, m.start, m.end, m.npe)
				pool.note(m.at, given, m.start, m.end, m.npe)
			}
			made = m.at
		}
		if rec.place >= 0 {
			if pool := pools[rec.place]; pool != nil {
				pool.line(rec)
			}
		}
	}
	for place, pool := range pools {
		pool.judge(l.places[place].size, yes)
	}
}

// known is what was known of a pool over time.
type known struct{ steps []step }

// step is a change of the load in [from, to), or a question about it.
type step struct {
	at       int64
	phase    phase
	from, to int64
	amount   int64
	which    int
	later    []step
}

// phase is the order of steps at one moment.
type phase uint8

const (
	taken phase = iota
	asked
	given
)

// note adds a change of the load to what is known.
func (k *known) note(at int64, phase phase, from, to, amount int64) {
	if from < to && amount > 0 {
		if phase == given {
			amount = -amount
		}
		k.steps = append(k.steps, step{at: at, phase: phase, from: from, to: to, amount: amount})
	}
}

// line adds what a line takes.
func (k *known) line(rec *record) {
	if !rec.granted() || !rec.has(fStart) || rec.kind == staging {
		return
	}
	since, end := rec.made(len(rec.formers())), rec.end
	if plans := rec.replanned(); len(plans) > 0 {
		since = max(since, plans[len(plans)-1].at)
	}
	switch {
	case rec.kind == booking:
		since = math.MinInt64
	case rec.kind == outage && rec.has(fArrival):
		since = min(rec.arrival, rec.start) // when it became known
	case rec.kind != request:
		since = rec.start
	}
	switch {
	case rec.has(fEnd):
	case rec.kind == outage:
		end = forever
	case rec.has(fActualEnd):
		end = rec.actual
	default:
		return
	}
	k.note(since, taken, rec.start, end, rec.npe)
	limit := end
	if rec.has(fLimit) {
		limit = max(end, rec.past.limit)
	}
	switch {
	case rec.has(fActualEnd) && rec.actual > end: // it went on
		limit = max(limit, rec.actual)
		k.note(end, taken, end, limit, rec.npe)
		k.note(rec.actual, given, rec.actual, limit, rec.npe)
	case rec.has(fActualEnd): // it ended early
		k.note(since, taken, end, limit, rec.npe)
		k.note(rec.actual, given, max(rec.actual, rec.start), limit, rec.npe)
	default: // it was stopped, or could have been
		k.note(since, taken, end, limit, rec.npe)
		k.note(end, given, end, limit, rec.npe)
	}
}

// judge follows the steps.
func (k *known) judge(size int64, yes func(which int)) {
	slices.SortFunc(k.steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.phase, b.phase))
	})
	times := make([]int64, 0, 2*len(k.steps))
	for i := range k.steps {
		times = append(times, k.steps[i].from, k.steps[i].to) // those of later steps are among them
	}
	slices.Sort(times)
	times = slices.Compact(times)
	tree := newLoadTree(len(times))
	place := func(s *step) (from, to int) {
		from, _ = slices.BinarySearch(times, s.from)
		to, _ = slices.BinarySearch(times, s.to)
		return from, to
	}
	shift := func(steps []step, sign int64) {
		for i := range steps {
			from, to := place(&steps[i])
			tree.add(from, to, sign*steps[i].amount)
		}
	}
	for i := range k.steps {
		s := &k.steps[i]
		from, to := place(s)
		if s.phase != asked {
			tree.add(from, to, s.amount)
			continue
		}
		shift(s.later, -1)
		if tree.most(from, to) > size {
			yes(s.which)
		}
		shift(s.later, 1)
	}
}

// loadTree is a segment tree over times: the load from each to the next.
type loadTree struct {
	width int
	added []int64 // to all of a node's times
	peak  []int64 // within a node, what was added above it apart
}

func newLoadTree(times int) loadTree {
	width := 1
	for width < times {
		width *= 2
	}
	return loadTree{width, make([]int64, 2*width), make([]int64, 2*width)}
}

// add adds to the load at the times [from, to). Cost: O(log times).
func (t *loadTree) add(from, to int, amount int64) { t.addIn(1, 0, t.width, from, to, amount) }

func (t *loadTree) addIn(n, lo, hi, from, to int, amount int64) {
	switch {
	case to <= lo || hi <= from:
		return
	case from <= lo && hi <= to:
		t.added[n] += amount
		t.peak[n] += amount
		return
	}
	mid := lo + (hi-lo)/2
	t.addIn(2*n, lo, mid, from, to, amount)
	t.addIn(2*n+1, mid, hi, from, to, amount)
	t.peak[n] = t.added[n] + max(t.peak[2*n], t.peak[2*n+1])
}

// most returns the largest load at the times [from, to). Cost: O(log times).
func (t *loadTree) most(from, to int) int64 { return t.mostIn(1, 0, t.width, from, to) }

func (t *loadTree) mostIn(n, lo, hi, from, to int) int64 {
	switch {
	case to <= lo || hi <= from:
		return math.MinInt64 / 2
	case from <= lo && hi <= to:
		return t.peak[n]
	}
	mid := lo + (hi-lo)/2
	return t.added[n] + max(t.mostIn(2*n, lo, mid, from, to), t.mostIn(2*n+1, mid, hi, from, to))
}
