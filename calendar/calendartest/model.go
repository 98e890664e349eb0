package calendartest

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// model is a calendar as an array of seconds, each question answered by
// looking at every second in turn. It follows the text of specification 1
// and shares no code with any form. Everything before the first second is
// free; the last second lasts for ever.
type model struct {
	size    berth.Count
	binding berth.Binding
	first   berth.Time
	seconds []second
	avails  []avail // of the seconds, as far as worked out since the last change
	added   int     // bookings so far
}

// second is one second. Under early binding: the number of the booking that has each
// PE, 0 for none. Under late binding: how many PEs are booked, and in how many of
// them a booking begins with the second, or has ended before it.
type second struct {
	owner                []int
	booked, begin, ended berth.Count
}

// avail is what is free at a second or throughout several: the PEs under
// early binding, only their number under late binding.
type avail struct {
	n    berth.Count
	free []bool
}

func newModel(size berth.Count, binding berth.Binding, first, last berth.Time) *model {
	m := &model{size: size, binding: binding, first: first, seconds: make([]second, last-first+1)}
	for i := range m.seconds {
		m.seconds[i] = m.untouched()
	}
	return m
}

func (m *model) untouched() second {
	if m.binding == berth.Late {
		return second{}
	}
	return second{owner: make([]int, m.size)}
}

func (m *model) clone() *model {
	copied := *m
	copied.avails = nil
	copied.seconds = slices.Clone(m.seconds)
	for i := range copied.seconds {
		copied.seconds[i].owner = slices.Clone(copied.seconds[i].owner)
	}
	return &copied
}

func (m *model) last() berth.Time { return m.first + berth.Time(len(m.seconds)) - 1 }

// within calls visit with the index of every second of the interval, which
// must not begin before the first second and ends with the last one.
func (m *model) within(start, end berth.Time, visit func(*second)) {
	for t := start; t < end && t <= m.last(); t++ {
		visit(&m.seconds[t-m.first])
	}
}

// at returns what is free at t.
func (m *model) at(t berth.Time) avail {
	if t < m.first {
		return m.availOf(m.untouched())
	}
	if m.avails == nil {
		m.avails = make([]avail, len(m.seconds))
		for i, s := range m.seconds {
			m.avails[i] = m.availOf(s)
		}
	}
	return m.avails[min(t, m.last())-m.first]
}

func (m *model) availOf(s second) avail {
	if m.binding == berth.Late {
		return avail{n: m.size - s.booked}
	}
	a := avail{free: make([]bool, m.size)}
	for pe, owner := range s.owner {
		if owner == 0 {
			a.free[pe] = true
			a.n++
		}
	}
	return a
}

// through returns what is free at every second of [start, end), of the
// eligible PEs only.
func (m *model) through(start, end berth.Time, eligible berth.PESet) avail {
	a := m.availOf(m.untouched())
	for pe := range a.free {
		if !eligible.Empty() && !eligible.Contains(berth.PE(pe)) {
			a.free[pe] = false
			a.n--
		}
	}
	for t := start; t < end; t++ {
		a = a.and(m.at(t))
		if t > m.last() {
			break
		}
	}
	return a
}

func (a avail) and(b avail) avail {
	if a.free == nil {
		return avail{n: min(a.n, b.n)}
	}
	both := avail{free: make([]bool, len(a.free))}
	for pe := range a.free {
		if a.free[pe] && b.free[pe] {
			both.free[pe] = true
			both.n++
		}
	}
	return both
}

// covers reports whether everything in b is free in a, too.
func (a avail) covers(b avail) bool {
	if a.free == nil {
		return a.n >= b.n
	}
	for pe := range b.free {
		if b.free[pe] && !a.free[pe] {
			return false
		}
	}
	return true
}

func (a avail) same(b avail) bool { return a.n == b.n && slices.Equal(a.free, b.free) }

// lowest returns the n lowest PEs of a.
func (a avail) lowest(n berth.Count) berth.PESet {
	var pes []berth.PE
	for pe := 0; pe < len(a.free) && berth.Count(len(pes)) < n; pe++ {
		if a.free[pe] {
			pes = append(pes, berth.PE(pe))
		}
	}
	return berth.PEsOf(pes...)
}

func (a avail) busy() berth.PESet {
	var pes []berth.PE
	for pe, free := range a.free {
		if !free {
			pes = append(pes, berth.PE(pe))
		}
	}
	return berth.PEsOf(pes...)
}

// canAdd and canRemove say whether a well-formed block can be booked and given
// back (b.1, b.2).
func (m *model) canAdd(b calendar.Block) bool {
	ok := true
	m.within(b.Start, b.End, func(s *second) {
		if m.binding == berth.Late {
			ok = ok && s.booked+b.NPE <= m.size
		}
		for pe, owner := range s.owner {
			ok = ok && (owner == 0 || !b.PEs.Contains(berth.PE(pe)))
		}
	})
	return ok
}

func (m *model) canRemove(b calendar.Block) bool {
	ok := true
	if m.binding == berth.Late {
		m.within(b.Start, b.End, func(s *second) { ok = ok && s.booked >= b.NPE })
		return ok && m.second(b.Start).begin >= b.NPE && m.second(b.End).ended >= b.NPE
	}
	for pe := range m.size {
		if !b.PEs.Contains(berth.PE(pe)) {
			continue
		}
		owner := m.second(b.Start).owner[pe]
		m.within(b.Start, b.End, func(s *second) { ok = ok && owner > 0 && s.owner[pe] == owner })
		ok = ok && m.second(b.Start - 1).owner[pe] != owner && m.second(b.End).owner[pe] != owner
	}
	return ok
}

// second returns the second at a time, which may be before the first.
func (m *model) second(t berth.Time) second {
	if t < m.first {
		return m.untouched()
	}
	return m.seconds[min(t, m.last())-m.first]
}

func (m *model) add(b calendar.Block) {
	m.added++
	m.book(b, b.NPE, m.added)
}

func (m *model) remove(b calendar.Block) { m.book(b, -b.NPE, 0) }

func (m *model) book(b calendar.Block, by berth.Count, owner int) {
	m.avails = nil
	m.within(b.Start, b.End, func(s *second) {
		if m.binding == berth.Late {
			s.booked += by
		}
		for pe := range s.owner {
			if b.PEs.Contains(berth.PE(pe)) {
				s.owner[pe] = owner
			}
		}
	})
	m.seconds[b.Start-m.first].begin += by
	m.seconds[b.End-m.first].ended += by
}

// prune makes everything before now free (b.3); what reaches into now begins there.
func (m *model) prune(now berth.Time) {
	m.avails = nil
	m.within(m.first, now, func(s *second) { *s = m.untouched() })
	at := &m.seconds[now-m.first]
	at.begin, at.ended = at.booked, 0
}

// records lists the seconds that differ from the one before (a).
func (m *model) records() []calendar.Record {
	var records []calendar.Record
	before := m.at(m.first - 1)
	for t := m.first; t <= m.last(); t++ {
		if a := m.at(t); !a.same(before) {
			records = append(records, calendar.Record{Time: t, Free: a.n, Busy: a.busy()})
			before = a
		}
	}
	return records
}

// candidates follows b.4 word by word.
func (m *model) candidates(q calendar.Query) []berth.Time {
	starts := []berth.Time{q.Ready}
	if q.Deadline != berth.Forever {
		starts = append(starts, q.Deadline-berth.Time(q.Duration))
	}
	for _, r := range m.records() {
		if q.Ready <= r.Time && r.Time <= q.Deadline {
			starts = append(starts, r.Time, r.Time-berth.Time(q.Duration))
		}
	}
	starts = slices.DeleteFunc(starts, func(c berth.Time) bool {
		return c < q.Ready || (q.Deadline != berth.Forever && c > q.Deadline-berth.Time(q.Duration))
	})
	slices.Sort(starts)
	return slices.Compact(starts)
}

// starts lists every whole second at which the query may start. Without a
// deadline it ends with the first start from which nothing changes any more.
func (m *model) starts(q calendar.Query) []berth.Time {
	end := q.Deadline - berth.Time(q.Duration)
	if q.Deadline == berth.Forever {
		end = max(q.Ready, m.last())
	}
	var starts []berth.Time
	for t := q.Ready; t <= end; t++ {
		starts = append(starts, t)
	}
	return starts
}

// horizon is H of b.5.
func (m *model) horizon(q calendar.Query) berth.Time {
	if q.Horizon == calendar.Unbounded {
		return berth.Forever
	}
	h := q.Deadline
	if records := m.records(); len(records) > 0 {
		h = max(h, records[len(records)-1].Time)
	}
	return h
}

// rectangle follows b.5: the free PEs first, then every second to the left and
// to the right.
func (m *model) rectangle(q calendar.Query, start, horizon berth.Time) (placed, bool) {
	end := start + berth.Time(q.Duration)
	f := m.through(start, end, q.Eligible)
	if f.n < q.NPE {
		return placed{}, false
	}
	begin := start
	for begin > q.Now && m.at(begin-1).covers(f) {
		begin--
	}
	for end < horizon && m.at(end).covers(f) {
		if end > m.last() {
			end = horizon
			break
		}
		end++
	}
	return placed{berth.Rectangle{Start: start, Begin: begin, End: end, Free: f.n}, f}, true
}

// placed is a rectangle with its PEs.
type placed struct {
	berth.Rectangle
	free avail
}

// rectangles lists the rectangle of every feasible candidate.
func (m *model) rectangles(q calendar.Query) []placed {
	var list []placed
	horizon := m.horizon(q)
	for _, start := range m.candidates(q) {
		if r, ok := m.rectangle(q, start, horizon); ok {
			list = append(list, r)
		}
	}
	return list
}

// choose returns the rectangle of least key, of equal ones the earliest start.
func (m *model) choose(q calendar.Query, rule calendar.Rule, list []placed) (placed, bool) {
	return chooseBy(list, func(a, b placed) bool { return m.key(&q, rule, a) < m.key(&q, rule, b) })
}

// key asks a rule, and counts second by second what a weigher wants to know. It is 0 of
// no rectangle.
func (m *model) key(q *calendar.Query, rule calendar.Rule, r placed) int64 {
	w, ok := rule.(calendar.Weigher)
	switch {
	case r.Free == 0:
		return 0
	case !ok:
		return rule.Key(r.Rectangle)
	}
	load := calendar.Load{Now: q.Now, NPE: q.NPE, Duration: q.Duration, Start: r.Start, Free: r.Free, PEs: m.through(r.Start, r.Start, q.Eligible).n}
	for t := r.Start; t < r.Start+berth.Time(q.Duration) && t <= m.last(); t++ {
		load.Booked += int64(load.PEs - m.through(t, t+1, q.Eligible).n)
	}
	return w.Weigh(load)
}

// order compares two rectangles under a placement's criterion alone (b.6);
// an end at Forever is longer than any other, and two such are equal.
type order func(a, b berth.Rectangle) int

// orders has a criterion for every row of policy.Placements.
var orders = map[string]order{
	"first-fit":      func(a, b berth.Rectangle) int { return cmp.Compare(a.Start, b.Start) },
	"pe-best":        func(a, b berth.Rectangle) int { return cmp.Compare(a.Free, b.Free) },
	"pe-worst":       func(a, b berth.Rectangle) int { return cmp.Compare(b.Free, a.Free) },
	"duration-best":  func(a, b berth.Rectangle) int { return compareSpans(a, b, 1, 1) },
	"duration-worst": func(a, b berth.Rectangle) int { return compareSpans(b, a, 1, 1) },
	"area-best":      func(a, b berth.Rectangle) int { return compareSpans(a, b, a.Free, b.Free) },
	"area-worst":     func(a, b berth.Rectangle) int { return compareSpans(b, a, b.Free, a.Free) },
}

// compareSpans compares the spans of two rectangles times a width each.
func compareSpans(a, b berth.Rectangle, widthA, widthB berth.Count) int {
	switch endless := [2]bool{a.End == berth.Forever, b.End == berth.Forever}; endless {
	case [2]bool{true, true}:
		return 0
	case [2]bool{true, false}:
		return 1
	case [2]bool{false, true}:
		return -1
	}
	return cmp.Compare(int64(widthA)*int64(a.End-a.Begin), int64(widthB)*int64(b.End-b.Begin))
}

// choose returns the rectangle a placement must take: the least under its
// criterion, of equal ones the earliest start.
func choose(row policy.NamedPlacement, list []placed) (placed, bool) {
	compare := orders[row.Name]
	return chooseBy(list, func(a, b placed) bool { return compare(a.Rectangle, b.Rectangle) < 0 })
}

func chooseBy(list []placed, better func(a, b placed) bool) (best placed, ok bool) {
	for i, r := range list { // ascending by start
		if i == 0 || better(r, best) {
			best, ok = r, true
		}
	}
	return best, ok
}
