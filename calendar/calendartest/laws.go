package calendartest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// someMachine makes a calendar with a few bookings.
func someMachine(t *rapid.T, form calendar.New, binding berth.Binding) *machine {
	from := rapidChooser{t}
	ma := newMachine(from, form, binding, narrow)
	for range 1 + from.pick("blocks", 6) {
		ma.addFree(t, from)
	}
	return ma
}

// removeUndoesAdd is I3: adding and removing a block, or removing and adding
// one, restores the records.
func removeUndoesAdd(t *testing.T, form calendar.New, binding berth.Binding) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapidChooser{t}
		ma := someMachine(t, form, binding)
		before := recordsOf(ma.c)
		start, end := ma.span(from)
		if free := ma.m.through(start, end, berth.PESet{}); free.n > 0 {
			b := ma.block(from, start, end, free)
			wantCode(t, "Add", ma.c.Add(b), "")
			wantCode(t, "Remove", ma.c.Remove(b), "")
			wantRecords(t, ma.c, before)
			wantCode(t, "Remove again", repeatable(ma, b), berth.Conflict)
			wantRecords(t, ma.c, before)
		}
		b, ok := ma.takeLive(from)
		if ok {
			wantCode(t, "Remove", ma.c.Remove(b), "")
			wantCode(t, "Add", ma.c.Add(b), "")
			wantRecords(t, ma.c, before)
		}
	})
}

// repeatable removes a block once more, unless others under late binding have
// booked as much throughout, so that this is no mistake.
func repeatable(ma *machine, b calendar.Block) error {
	if ma.m.canRemove(b) {
		return berth.Errorf(berth.Conflict, "", "not tried")
	}
	return ma.c.Remove(b)
}

// orderIsIrrelevant is I4: blocks that fit together may be added and removed in
// any order.
func orderIsIrrelevant(t *testing.T, form calendar.New, binding berth.Binding) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapidChooser{t}
		ma := newMachine(from, form, binding, narrow)
		for range 2 + from.pick("blocks", 6) {
			ma.addFree(t, from)
		}
		other := filledWith(t, form(ma.m.size, binding), rapid.Permutation(ma.live).Draw(t, "order of adding"))
		wantRecords(t, other, recordsOf(ma.c))

		gone := rapid.Permutation(ma.live).Draw(t, "order of removing")
		gone, stay := gone[:len(gone)/2], gone[len(gone)/2:]
		for _, b := range gone {
			wantCode(t, "Remove", other.Remove(b), "")
		}
		rest := filledWith(t, form(ma.m.size, binding), stay)
		wantRecords(t, other, recordsOf(rest))
	})
}

// renumbering is I12: with the PEs renamed, every rectangle is the same but for
// the names, and a placement differs only in taking the lowest names.
func renumbering(t *testing.T, form calendar.New, binding berth.Binding) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapidChooser{t}
		ma := newMachine(from, form, binding, narrow)
		for range 1 + from.pick("blocks", 6) {
			ma.addFree(t, from)
		}
		names := make([]berth.PE, ma.m.size)
		for i := range names {
			names[i] = berth.PE(i)
		}
		names = rapid.Permutation(names).Draw(t, "names")
		rename := func(s berth.PESet) berth.PESet {
			var pes []berth.PE
			for pe, name := range names {
				if s.Contains(berth.PE(pe)) {
					pes = append(pes, name)
				}
			}
			return berth.PEsOf(pes...)
		}
		other := form(ma.m.size, binding)
		for _, b := range ma.live {
			b.PEs = rename(b.PEs)
			wantCode(t, "Add", other.Add(b), "")
		}

		q := ma.someQuery(from)
		renamed := q
		renamed.Eligible = rename(q.Eligible)
		if renamed.Eligible.Empty() != q.Eligible.Empty() {
			return // only PEs that do not exist were eligible
		}
		free := map[berth.Time]berth.PESet{} // by start, under the new names
		var want, got []berth.Rectangle
		for r, pes := range ma.c.Rectangles(q) {
			want, free[r.Start] = append(want, r), rename(pes)
		}
		for r, pes := range other.Rectangles(renamed) {
			got = append(got, r)
			if !pes.Equal(free[r.Start]) {
				t.Fatalf("I12: %+v has PEs %q, want %q", r, pes, free[r.Start])
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("I12: rectangles (-want +got):\n%s", cmp.Diff(want, got))
		}
		for _, row := range policy.Placements {
			a, okA := ma.c.Find(q, row.Placement)
			b, okB := other.Find(renamed, row.Placement)
			if okA != okB || a.Start != b.Start || a.Key != b.Key {
				t.Fatalf("I12: %s finds %+v and, renamed, %+v", row.Name, a, b)
			}
			if okB && !b.PEs.Equal(lowestOf(free[b.Start], q.NPE)) {
				t.Fatalf("I12: %s takes %q, want the %d lowest of %q", row.Name, b.PEs, q.NPE, free[b.Start])
			}
		}
	})
}

func lowestOf(s berth.PESet, n berth.Count) berth.PESet {
	var pes []berth.PE
	for pe := berth.PE(0); pe <= s.Max() && berth.Count(len(pes)) < n; pe++ {
		if s.Contains(pe) {
			pes = append(pes, pe)
		}
	}
	return berth.PEsOf(pes...)
}

// earlyEnd: a booking that ends early gives back [max(now, start), end), and is
// then as if it had never been (b.2); the forgotten part cannot be given back.
func earlyEnd(t *testing.T, form calendar.New, binding berth.Binding) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapidChooser{t}
		ma := someMachine(t, form, binding)
		start, end := ma.span(from)
		free := ma.m.through(start, end, berth.PESet{})
		if free.n <= 0 {
			return
		}
		without := filledWith(t, form(ma.m.size, binding), ma.live)
		b := ma.block(from, start, end, free)
		wantCode(t, "Add", ma.c.Add(b), "")
		now := ma.m.first + berth.Time(from.pick("now", int(end-ma.m.first)))
		ma.c.Prune(now)
		without.Prune(now)
		if before := recordsOf(ma.c); start < now {
			wantCode(t, "Remove of the past, too", ma.c.Remove(b), berth.Conflict)
			wantRecords(t, ma.c, before)
		}
		b.Start = max(now, b.Start)
		wantCode(t, "Remove of the rest", ma.c.Remove(b), "")
		wantRecords(t, ma.c, recordsOf(without))
	})
}

// earlyFitsLate: where named PEs fit, as many unnamed ones fit on a calendar
// with the same blocks, and no later.
func earlyFitsLate(t *testing.T, form calendar.New, binding berth.Binding) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapidChooser{t}
		early := newMachine(from, form, binding, narrow)
		for range 1 + from.pick("blocks", 6) {
			early.addFree(t, from)
		}
		late := filledWith(t, form(early.m.size, berth.Late), early.live)
		q := early.someQuery(from)
		q.Eligible = berth.PESet{}
		e, okEarly := calendar.Earliest(early.c, q)
		l, okLate := calendar.Earliest(late, q)
		if okEarly && (!okLate || l.Start > e.Start) {
			t.Fatalf("named PEs fit at %d, unnamed: %+v, %t", e.Start, l, okLate)
		}
		if q.NPE == early.m.size && (okEarly != okLate || e.Start != l.Start) {
			t.Fatalf("all PEs fit at %d, %t, unnamed at %d, %t", e.Start, okEarly, l.Start, okLate)
		}
	})
}

// questionsWithinAnswers asks while other questions are being answered, of the
// calendar and of a rule, and gets the answers that each has alone.
func questionsWithinAnswers(t *testing.T, form calendar.New, binding berth.Binding) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapidChooser{t}
		ma := someMachine(t, form, binding)
		outer, inner := ma.someQuery(from), ma.someQuery(from)
		within := func() {
			for _, row := range policy.Placements {
				ma.c.Find(inner, row.Placement)
			}
			for range ma.c.Rectangles(inner) {
				ma.c.MostFree(inner)
			}
			ma.c.Free(berth.Interval{Start: inner.Ready, End: inner.Ready.Add(inner.Duration)})
		}
		for _, alone := range unusualRules {
			want, wantOK := ma.c.Find(outer, alone)
			var asking calendar.Rule = rule{alone.Order(), func(r berth.Rectangle) int64 {
				within()
				return alone.Key(r)
			}}
			if w, ok := alone.(weigher); ok {
				asking = weigher{func(l calendar.Load) int64 {
					within()
					return w.weigh(l)
				}}
			}
			fit, ok := ma.c.Find(outer, asking)
			if ok != wantOK || fit.Start != want.Start || fit.Key != want.Key || !fit.PEs.Equal(want.PEs) {
				t.Fatalf("a rule that asks finds %+v, %t, want %+v, %t", fit, ok, want, wantOK)
			}
		}
		list := ma.m.rectangles(outer)
		for r, pes := range ma.c.Rectangles(outer) {
			if len(list) == 0 || r != list[0].Rectangle || !pes.Equal(list[0].free.lowest(ma.m.size)) {
				t.Fatalf("rectangle %+v %q, want the first of %+v", r, pes, list)
			}
			list = list[1:]
			within()
		}
		if len(list) > 0 {
			t.Fatalf("rectangles %+v are missing", list)
		}
		records := ma.m.records()
		for r := range ma.c.Records() {
			if len(records) == 0 || !sameRecords([]calendar.Record{r}, records[:1]) {
				t.Fatalf("record %+v, want the first of %+v", r, records)
			}
			records = records[1:]
			within()
		}
	})
}
