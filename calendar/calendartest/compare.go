package calendartest

import (
	"errors"
	"slices"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// The names I1 to I12 are those of specification 1, b.8. The checks call
// Helper only when they fail: it would take a third of their time.

func recordsOf(c calendar.Calendar) []calendar.Record { return slices.Collect(c.Records()) }

func sameRecords(a, b []calendar.Record) bool {
	return slices.EqualFunc(a, b, func(a, b calendar.Record) bool {
		return a.Time == b.Time && a.Free == b.Free && a.Busy.Equal(b.Busy)
	})
}

func wantRecords(t rapid.TB, c calendar.Calendar, want []calendar.Record) {
	if got := recordsOf(c); !sameRecords(got, want) {
		t.Helper()
		t.Fatalf("records differ (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// wantCode checks that an error has the code, or is nil if the code is empty.
func wantCode(t rapid.TB, what string, err error, code berth.Code) {
	if code == "" {
		if err != nil {
			t.Helper()
			t.Fatalf("%s: unexpected error %v", what, err)
		}
		return
	}
	var e *berth.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Helper()
		t.Fatalf("%s: error %v (%#v), want code %q", what, err, err, code)
	}
}

// checkState compares the whole of a calendar with the model: I1 and I2.
func checkState(t rapid.TB, c calendar.Calendar, m *model) {
	if c.Size() != m.size || c.Binding() != m.binding {
		t.Fatalf("calendar of %d PEs with %s binding, want %d with %s", c.Size(), c.Binding(), m.size, m.binding)
	}
	checkCanonical(t, c)
	wantRecords(t, c, m.records())
}

// checkCanonical is I1: times increase strictly, adjacent records differ, the
// first one differs from "all free", the last one is "all free" since every
// booking ends, and Free counts what Busy leaves.
func checkCanonical(t rapid.TB, c calendar.Calendar) {
	before := calendar.Record{Time: -berth.Forever, Free: c.Size()}
	for r := range c.Records() {
		switch {
		case r.Time <= before.Time:
			t.Fatalf("I1: record at %d follows one at %d", r.Time, before.Time)
		case r.Free == before.Free && r.Busy.Equal(before.Busy):
			t.Fatalf("I1: record %+v repeats the one before it", r)
		case c.Binding() == berth.Early && r.Free != c.Size()-r.Busy.Count():
			t.Fatalf("I1: record %+v: %d free and %d busy are not %d", r, r.Free, r.Busy.Count(), c.Size())
		case c.Binding() == berth.Late && !r.Busy.Empty():
			t.Fatalf("I1: record %+v names PEs under late binding", r)
		}
		before = r
	}
	if before.Free != c.Size() {
		t.Fatalf("I1: the last record %+v is not all free", before)
	}
}

// checkFree compares one question to Free with the model.
func checkFree(t rapid.TB, c calendar.Calendar, m *model, iv berth.Interval) {
	want := m.through(iv.Start, iv.End, berth.PESet{})
	n, pes := c.Free(iv)
	if n != want.n || !pes.Equal(want.lowest(m.size)) {
		t.Fatalf("Free(%s) = %d %q, want %d %q", iv, n, pes, want.n, want.lowest(m.size))
	}
}

// checkQuery asks a calendar everything about one query and compares it with
// the model.
func checkQuery(t rapid.TB, c calendar.Calendar, m *model, q calendar.Query) {
	before := recordsOf(c)
	if q.Validate(c.Binding()) == nil {
		checkValidQuery(t, c, m, q)
	} else {
		checkInvalidQuery(t, c, q)
	}
	if after := recordsOf(c); !sameRecords(before, after) {
		t.Fatalf("I10: %+v changed the calendar (-before +after):\n%s", q, cmp.Diff(before, after))
	}
}

// checkInvalidQuery: a query that is not valid has no fit and no rectangle, and
// Search tells it from one for which there is no room.
func checkInvalidQuery(t rapid.TB, c calendar.Calendar, q calendar.Query) {
	for _, row := range policy.Placements {
		if fit, ok := c.Find(q, row.Placement); ok {
			t.Fatalf("%s: invalid query %+v got %+v", row.Name, q, fit)
		}
		_, ok, err := calendar.Search(c, q, row.Placement)
		if wantCode(t, "Search", err, berth.Invalid); ok {
			t.Fatalf("%s: Search of invalid query %+v finds a fit", row.Name, q)
		}
	}
	if free, start := c.MostFree(q); free != 0 || start != q.Ready {
		t.Fatalf("MostFree of invalid query %+v = %d at %d", q, free, start)
	}
	for r := range c.Rectangles(q) {
		t.Fatalf("invalid query %+v has rectangle %+v", q, r)
	}
}

func checkValidQuery(t rapid.TB, c calendar.Calendar, m *model, q calendar.Query) {
	checkComplete(t, c, m, q)
	list := m.rectangles(q)
	checkRectangles(t, c, m, q, list)
	checkPlacements(t, c, m, q, list)
}

// checkComplete is I6: the refusals, the earliest and the latest start and the
// greatest free number are those of a search over every second of the window.
func checkComplete(t rapid.TB, c calendar.Calendar, m *model, q calendar.Query) {
	var feasible []berth.Time
	most, mostAt := berth.Count(0), q.Ready
	for i, start := range m.starts(q) {
		n := m.through(start, start+berth.Time(q.Duration), q.Eligible).n
		if n >= q.NPE {
			feasible = append(feasible, start)
		}
		if i == 0 || n > most {
			most, mostAt = n, start
		}
	}
	if n, at := c.MostFree(q); n != most || at != mostAt {
		t.Fatalf("MostFree(%+v) = %d at %d, want %d at %d", q, n, at, most, mostAt)
	}
	earliest, ok := calendar.Earliest(c, q)
	if ok != (len(feasible) > 0) {
		t.Fatalf("I6: Earliest(%+v) says %t, feasible are %v", q, ok, feasible)
	}
	latest, okLatest := c.Find(q, latestStart)
	if okLatest != ok {
		t.Fatalf("I6: the latest start of %+v: %t, feasible are %v", q, okLatest, feasible)
	}
	if !ok {
		return
	}
	if earliest.Start != feasible[0] {
		t.Fatalf("I6: Earliest(%+v) = %d, the first feasible second is %d", q, earliest.Start, feasible[0])
	}
	checkFit(t, c, m, q, earliest)
	if final := feasible[len(feasible)-1]; latest.Start != final && q.Deadline != berth.Forever {
		t.Fatalf("I6: the latest start of %+v is %d, the last feasible second %d", q, latest.Start, final)
	}
	checkFit(t, c, m, q, latest)
}

// checkFit is I5: the fit lies in the window, and the PEs are as many as asked
// for, free throughout, eligible, and the lowest such.
func checkFit(t rapid.TB, c calendar.Calendar, m *model, q calendar.Query, fit calendar.Fit) {
	if fit.Start < q.Ready || fit.End > q.Deadline || fit.End != fit.Start+berth.Time(q.Duration) {
		t.Fatalf("I5: fit %+v does not suit %+v", fit, q)
	}
	free := m.through(fit.Start, fit.End, q.Eligible)
	want := free.lowest(q.NPE)
	if free.n < q.NPE || !fit.PEs.Equal(want) {
		t.Fatalf("I5: fit %+v of %+v takes %q of %d free, want %q", fit, q, fit.PEs, free.n, want)
	}
	if c.Binding() == berth.Early && fit.PEs.Count() != q.NPE {
		t.Fatalf("I5: fit %+v of %+v has %d PEs", fit, q, fit.PEs.Count())
	}
}

// checkRectangles compares the rectangles with the model's, and checks by
// themselves that none of them could be longer: I8.
func checkRectangles(t rapid.TB, c calendar.Calendar, m *model, q calendar.Query, want []placed) {
	i, horizon := 0, m.horizon(q)
	for r, pes := range c.Rectangles(q) {
		if i >= len(want) {
			t.Fatalf("b.5: Rectangles(%+v) yields %+v beyond the %d feasible candidates", q, r, len(want))
		}
		if r != want[i].Rectangle || !pes.Equal(want[i].free.lowest(m.size)) {
			t.Fatalf("b.5: Rectangles(%+v) yields %+v %q, want %+v %q", q, r, pes, want[i].Rectangle, want[i].free.lowest(m.size))
		}
		checkMaximal(t, m, q, placed{r, want[i].free}, horizon)
		i++
	}
	if i < len(want) {
		t.Fatalf("b.5: Rectangles(%+v) yields %d rectangles, want %d, next %+v", q, i, len(want), want[i].Rectangle)
	}
}

func checkMaximal(t rapid.TB, m *model, q calendar.Query, r placed, horizon berth.Time) {
	if !m.through(r.Begin, r.End, berth.PESet{}).covers(r.free) {
		t.Fatalf("I8: rectangle %+v of %+v is not free throughout", r.Rectangle, q)
	}
	if r.Begin > q.Now && m.at(r.Begin-1).covers(r.free) {
		t.Fatalf("I8: rectangle %+v of %+v could begin earlier", r.Rectangle, q)
	}
	if r.End < horizon && m.at(r.End).covers(r.free) {
		t.Fatalf("I8: rectangle %+v of %+v could end later", r.Rectangle, q)
	}
}

// checkPlacements compares every placement and some unusual rules with a
// choice among the model's rectangles, and checks I7, I9 and I11.
func checkPlacements(t rapid.TB, c calendar.Calendar, m *model, q calendar.Query, list []placed) {
	first, feasible := c.Find(q, policy.FirstFit{})
	for _, row := range policy.Placements {
		_, weighs := row.Placement.(calendar.Weigher)
		if orders[row.Name] == nil && !weighs {
			t.Fatalf("the model does not know the placement %q", row.Name)
		}
		want, wantOK := m.choose(q, row.Placement, list)
		if !weighs {
			want, wantOK = choose(row, list)
		}
		fit, ok, err := calendar.Search(c, q, row.Placement)
		wantCode(t, "Search", err, "")
		if ok != feasible {
			t.Fatalf("I11: %s says %t and first-fit says %t to %+v", row.Name, ok, feasible, q)
		}
		checkChoice(t, row.Name, q, m.key(&q, row.Placement, want), fit, ok, want, wantOK)
		if !ok {
			continue
		}
		if fit.Start < first.Start {
			t.Fatalf("I7: %s starts %+v at %d, before first-fit at %d", row.Name, q, fit.Start, first.Start)
		}
		for _, other := range list {
			if weighs {
				break // what is booked differs within a rectangle
			}
			same := other.Begin == want.Begin && other.End == want.End && other.free.same(want.free)
			if same && other.Start < fit.Start {
				t.Fatalf("I9: %s starts %+v at %d, the same rectangle was there for %d", row.Name, q, fit.Start, other.Start)
			}
		}
	}
	for _, rule := range unusualRules {
		want, wantOK := m.choose(q, rule, list)
		fit, ok := c.Find(q, rule)
		checkChoice(t, "an unusual rule", q, m.key(&q, rule, want), fit, ok, want, wantOK)
	}
}

func checkChoice(t rapid.TB, name string, q calendar.Query, key int64, fit calendar.Fit, ok bool, want placed, wantOK bool) {
	if ok != wantOK {
		t.Fatalf("b.6: %s says %t to %+v, want %t", name, ok, q, wantOK)
	}
	if !ok {
		return
	}
	expected := calendar.Fit{
		Start: want.Start, End: want.Start + berth.Time(q.Duration),
		PEs: want.free.lowest(q.NPE), Key: key,
	}
	if fit.Start != expected.Start || fit.End != expected.End || fit.Key != expected.Key || !fit.PEs.Equal(expected.PEs) {
		t.Fatalf("b.6: %s gives %+v the fit %+v, want %+v in %+v", name, q, fit, expected, want.Rectangle)
	}
}

// latestStart chooses the latest candidate.
var latestStart = rule{calendar.Order{By: calendar.ByStart, Largest: true}, func(r berth.Rectangle) int64 { return -int64(r.Start) }}

// unusualRules are orders that no placement of the table declares.
var unusualRules = []calendar.Rule{
	latestStart,
	rule{calendar.Order{By: calendar.Custom}, func(r berth.Rectangle) int64 { return 0 }},
	rule{calendar.Order{By: calendar.Custom}, func(r berth.Rectangle) int64 {
		return (int64(r.Start)*7 + int64(r.Begin)*5 + int64(r.End)*3 + int64(r.Free)) & 3
	}},
	weigher{func(l calendar.Load) int64 { return l.Booked }},
	weigher{func(l calendar.Load) int64 {
		return (l.Booked*7 + int64(l.Start)*5 + int64(l.Free)*3 + int64(l.PEs)) & 3
	}},
}

// weigher is an unusual rule that looks at loads.
type weigher struct {
	weigh func(calendar.Load) int64
}

func (weigher) Order() calendar.Order         { return calendar.Order{By: calendar.Custom} }
func (weigher) Key(berth.Rectangle) int64     { panic("a weigher is asked for its key") }
func (w weigher) Weigh(l calendar.Load) int64 { return w.weigh(l) }

type rule struct {
	order calendar.Order
	key   func(berth.Rectangle) int64
}

func (r rule) Order() calendar.Order       { return r.order }
func (r rule) Key(x berth.Rectangle) int64 { return r.key(x) }
