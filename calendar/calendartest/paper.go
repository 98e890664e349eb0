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

// The paper is Bo Li et al., on availability rectangles for parallel advance
// reservations with deadlines. The numbers of its Figure 1 are those of
// specification 1, b.9: t_i = 2i, N = 10, job1 of 4 PEs, job2 of 3 PEs, job3
// reserved with 5 PEs, one of them (4) not job1's. The request is ready
// at t2 = 4, runs for t4−t2 = 4 and must end by t9 = 18; it asks for n = 4 PEs.
// Under late binding there are the same blocks without names; all figures were
// worked out by hand from the free counts 3, 6, 10, 5, 10.

var (
	job1 = calendar.Block{Start: 0, End: 6, NPE: 4, PEs: berth.PEsOf(0, 1, 2, 3)}
	job2 = calendar.Block{Start: 0, End: 2, NPE: 3, PEs: berth.PEsOf(4, 5, 6)}
	job3 = calendar.Block{Start: 16, End: 20, NPE: 5, PEs: berth.PEsOf(0, 1, 2, 3, 4)}

	figure1Query = calendar.Query{Now: 0, Ready: 4, Deadline: 18, Duration: 4, NPE: 4}
)

func figure1(t *testing.T, form calendar.New, binding berth.Binding) calendar.Calendar {
	t.Helper()
	return filled(t, form, 10, binding, job1, job2, job3)
}

// filled makes a calendar with the blocks booked.
func filled(t *testing.T, form calendar.New, size berth.Count, binding berth.Binding, blocks ...calendar.Block) calendar.Calendar {
	t.Helper()
	return filledWith(t, form(size, binding), blocks)
}

// filledWith books the blocks on a calendar and returns it.
func filledWith(t rapid.TB, c calendar.Calendar, blocks []calendar.Block) calendar.Calendar {
	for _, b := range blocks {
		wantCode(t, "Add", c.Add(b), "")
	}
	return c
}

// rec is a record by its busy PEs; under late binding only their number counts.
type rec struct {
	time berth.Time
	busy []berth.PE
}

// wantBusy compares the records with those given, adapted to the binding.
func wantBusy(t *testing.T, c calendar.Calendar, want ...rec) {
	t.Helper()
	var records []calendar.Record
	for _, r := range want {
		record := calendar.Record{Time: r.time, Free: c.Size() - berth.Count(len(r.busy))}
		if c.Binding() == berth.Early {
			record.Busy = berth.PEsOf(r.busy...)
		}
		records = append(records, record)
	}
	wantRecords(t, c, records)
}

// Section 4.2, before step 1: {t0,n1+n2}, {t1,n1}, {t3,∅}, {t8,n3}, {t10,∅}.
func paperRecords(t *testing.T, form calendar.New, binding berth.Binding) {
	wantBusy(t, figure1(t, form, binding),
		rec{0, []berth.PE{0, 1, 2, 3, 4, 5, 6}}, rec{2, []berth.PE{0, 1, 2, 3}}, rec{6, nil},
		rec{16, []berth.PE{0, 1, 2, 3, 4}}, rec{20, nil})
}

// Section 4.2, step 1: "we only choose t2, t3, t6 and t7 as feasible start
// times".
func paperCandidates(t *testing.T, form calendar.New, binding berth.Binding) {
	wantStarts(t, figure1(t, form, binding), figure1Query, 4, 6, 12, 14)
}

// wantStarts checks the candidates of a query at which one PE at least is free.
func wantStarts(t *testing.T, c calendar.Calendar, q calendar.Query, want ...berth.Time) {
	t.Helper()
	q.NPE = 1
	var got []berth.Time
	for r := range c.Rectangles(q) {
		got = append(got, r.Start)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("candidates of %+v: %v, want %v", q, got, want)
	}
}

type rectangleRow struct {
	rectangle berth.Rectangle
	pes       []berth.PE
}

// figure1Rectangles lists the four rectangles; the last one ends with the
// horizon, which is t10 = 20 when capped.
func figure1Rectangles(horizon calendar.Horizon) []rectangleRow {
	end := berth.Time(20)
	if horizon == calendar.Unbounded {
		end = berth.Forever
	}
	all := []berth.PE{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	return []rectangleRow{
		{berth.Rectangle{Start: 4, Begin: 2, End: 16, Free: 6}, all[4:]},
		{berth.Rectangle{Start: 6, Begin: 6, End: 16, Free: 10}, all},
		{berth.Rectangle{Start: 12, Begin: 6, End: 16, Free: 10}, all},
		{berth.Rectangle{Start: 14, Begin: 2, End: end, Free: 5}, all[5:]},
	}
}

// Sections 4.2 and 4.3: t2 has N−n1 free PEs between t1 and t8; t3 and t6
// have N between t3 and t8.
func paperRectangles(t *testing.T, form calendar.New, binding berth.Binding) {
	c := figure1(t, form, binding)
	for _, horizon := range []calendar.Horizon{calendar.Capped, calendar.Unbounded} {
		q := figure1Query
		q.Horizon = horizon
		wantRectangles(t, c, q, figure1Rectangles(horizon))
	}
}

func wantRectangles(t *testing.T, c calendar.Calendar, q calendar.Query, want []rectangleRow) {
	t.Helper()
	var got []rectangleRow
	for r, pes := range c.Rectangles(q) {
		row := rectangleRow{rectangle: r}
		for _, run := range pes.Runs() {
			for pe := run.Lo; pe < run.Hi; pe++ {
				row.pes = append(row.pes, pe)
			}
		}
		got = append(got, row)
	}
	if c.Binding() == berth.Late {
		want = slices.Clone(want)
		for i := range want {
			want[i].pes = nil
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rectangleRow{})); diff != "" {
		t.Fatalf("rectangles of %+v differ (-want +got):\n%s", q, diff)
	}
}

// Section 4.3: "t3, instead of t6, will be chosen by the scheduler when Du_B
// or PE_W is used"; the other choices follow from the rectangles. Only area-worst
// depends on the horizon.
func paperPolicies(t *testing.T, form calendar.New, binding berth.Binding) {
	c := figure1(t, form, binding)
	const endless = berth.Forever
	rows := []struct {
		policy            string
		capped, unbounded calendar.Fit
	}{
		{"first-fit", fitAt(4, 4, 4), fitAt(4, 4, 4)},
		{"pe-best", fitAt(14, 5, 5), fitAt(14, 5, 5)},
		{"pe-worst", fitAt(6, 0, -10), fitAt(6, 0, -10)},
		{"duration-best", fitAt(6, 0, 10), fitAt(6, 0, 10)},
		{"duration-worst", fitAt(14, 5, -18), fitAt(14, 5, -int64(endless))},
		{"area-best", fitAt(4, 4, 84), fitAt(4, 4, 84)},
		{"area-worst", fitAt(6, 0, -100), fitAt(14, 5, -int64(endless))},
	}
	if n := len(rows); policy.Placements[n-1].Name != rows[n-1].policy {
		t.Fatalf("%d rows, and the paper's placements do not end there", n)
	}
	for _, row := range rows {
		placement, ok := policy.PlacementNamed(row.policy)
		if !ok {
			t.Fatalf("no placement is named %q", row.policy)
		}
		for horizon, want := range map[calendar.Horizon]calendar.Fit{calendar.Capped: row.capped, calendar.Unbounded: row.unbounded} {
			q := figure1Query
			q.Horizon = horizon
			wantFit(t, c, q, row.policy, placement, want)
		}
	}
}

// fitAt is the fit of figure 1's request at a start, with four PEs from first.
func fitAt(start berth.Time, first berth.PE, key int64) calendar.Fit {
	return calendar.Fit{Start: start, End: start + 4, PEs: berth.NewPESet(berth.Run{Lo: first, Hi: first + 4}), Key: key}
}

func wantFit(t *testing.T, c calendar.Calendar, q calendar.Query, name string, rule calendar.Rule, want calendar.Fit) {
	t.Helper()
	got, ok := c.Find(q, rule)
	if !ok {
		t.Fatalf("%s finds nothing for %+v", name, q)
	}
	if c.Binding() == berth.Late {
		want.PEs = berth.PESet{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s for %+v (-want +got):\n%s", name, q, diff)
	}
}

// Section 4.2, step 3: the request starts at t3. The paper merges {t3,n} with
// {t1,n1} "because the n1 PEs of t1 are the same as the n PEs of t3". That is
// an error unless the PEs themselves are the same: records merge exactly if
// their sets are equal (under late binding, their numbers). Allowed outcome:
// documented disagreement, specification 1, b.2.
func paperStep3(t *testing.T, form calendar.New, binding berth.Binding) {
	seven, five := []berth.PE{0, 1, 2, 3, 4, 5, 6}, []berth.PE{0, 1, 2, 3, 4}
	four := []berth.PE{0, 1, 2, 3}
	rows := []struct {
		name  string
		taken []berth.PE
		late  bool // whether it merges under late binding, too
		want  []rec
	}{
		{
			"the four lowest PEs are job1's and merge", four, true,
			[]rec{{0, seven}, {2, four}, {10, nil}, {16, five}, {20, nil}},
		},
		{
			"three PEs do not merge", four[:3], false,
			[]rec{{0, seven}, {2, four}, {6, four[:3]}, {10, nil}, {16, five}, {20, nil}},
		},
		{
			"four other PEs do not merge, though as many",
			[]berth.PE{4, 5, 6, 7},
			true,
			[]rec{{0, seven}, {2, four}, {6, []berth.PE{4, 5, 6, 7}}, {10, nil}, {16, five}, {20, nil}},
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			c := figure1(t, form, binding)
			b := calendar.Block{Start: 6, End: 10, NPE: berth.Count(len(row.taken)), PEs: berth.PEsOf(row.taken...)}
			wantCode(t, "Add", c.Add(b), "")
			want := row.want
			if binding == berth.Late && row.late {
				want = rows[0].want // numbers only: all blocks of four merge
			}
			wantBusy(t, c, want...)
		})
	}
}

// Section 4.2, step 4: job2 ends. The paper merges {t1,…} into {t0,n1}, yet
// goes on to list {t1,n1}. Allowed outcome: documented disagreement; {t0,n1}
// remains, and becomes {t1,n1} only when the time before t1 is forgotten.
func paperStep4(t *testing.T, form calendar.New, binding berth.Binding) {
	c := figure1(t, form, binding)
	wantCode(t, "Add", c.Add(calendar.Block{Start: 6, End: 10, NPE: 4, PEs: job1.PEs}), "")
	wantCode(t, "Remove", c.Remove(job2), "")
	four, five := []berth.PE{0, 1, 2, 3}, []berth.PE{0, 1, 2, 3, 4}
	wantBusy(t, c, rec{0, four}, rec{10, nil}, rec{16, five}, rec{20, nil})
	c.Prune(2)
	wantBusy(t, c, rec{2, four}, rec{10, nil}, rec{16, five}, rec{20, nil})
}

// Algorithm 1, line 2: the case "first time > t_e". The paper's other branch
// does not say that records are made when the first time is t_e itself.
func paperAddBeforeFirst(t *testing.T, form calendar.New, binding berth.Binding) {
	first := calendar.Block{Start: 2, End: 4, NPE: 1, PEs: berth.PEsOf(0)}
	rows := []struct {
		name  string
		block calendar.Block
		want  []rec
	}{
		{
			"well before",
			calendar.Block{Start: -4, End: 1, NPE: 1, PEs: berth.PEsOf(0)},
			[]rec{{-4, []berth.PE{0}}, {1, nil}, {2, []berth.PE{0}}, {4, nil}},
		},
		{
			"up to it, more PEs",
			calendar.Block{Start: 0, End: 2, NPE: 2, PEs: berth.PEsOf(1, 2)},
			[]rec{{0, []berth.PE{1, 2}}, {2, []berth.PE{0}}, {4, nil}},
		},
		{
			"up to it, the same PEs",
			calendar.Block{Start: -2, End: 2, NPE: 1, PEs: berth.PEsOf(0)},
			[]rec{{-2, []berth.PE{0}}, {4, nil}},
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			wantBusy(t, filled(t, form, 10, binding, first, row.block), row.want...)
		})
	}
}

// Figure 1: the rectangle of t2 ends at t8 only because job3 shares a PE with
// it (late: leaves too few). With job3 on job1's PEs it reaches the horizon.
func paperSharedPE(t *testing.T, form calendar.New, binding berth.Binding) {
	c := filled(t, form, 10, binding, job1, job2,
		calendar.Block{Start: 16, End: 20, NPE: 4, PEs: job1.PEs})
	for horizon, end := range map[calendar.Horizon]berth.Time{calendar.Capped: 20, calendar.Unbounded: berth.Forever} {
		q := figure1Query
		q.Horizon = horizon
		want := berth.Rectangle{Start: 4, Begin: 2, End: end, Free: 6}
		for r := range c.Rectangles(q) {
			if r != want {
				t.Fatalf("rectangle of t2 is %+v, want %+v", r, want)
			}
			break
		}
	}
}

// The edge cases of b.9.
func paperEdges(t *testing.T, form calendar.New, binding berth.Binding) {
	c := figure1(t, form, binding)
	query := func(change func(*calendar.Query)) calendar.Query {
		q := figure1Query
		change(&q)
		return q
	}
	refused := func(name string, q calendar.Query) {
		t.Helper()
		for _, row := range policy.Placements {
			if fit, ok := c.Find(q, row.Placement); ok {
				t.Fatalf("%s: %s finds %+v", name, row.Name, fit)
			}
		}
	}
	everyPolicy := func(q calendar.Query, start berth.Time, pes berth.PESet) {
		t.Helper()
		for _, row := range policy.Placements {
			fit, ok := c.Find(q, row.Placement)
			if !ok || fit.Start != start || (binding == berth.Early && !fit.PEs.Equal(pes)) {
				t.Fatalf("%s: %+v, %t, want start %d with %q", row.Name, fit, ok, start, pes)
			}
		}
	}

	refused("more PEs than there are", query(func(q *calendar.Query) { q.NPE = 11 }))

	late := query(func(q *calendar.Query) { q.Deadline = 7 })
	refused("deadline before ready + duration", late)
	wantCode(t, "deadline before ready + duration", late.Validate(binding), berth.Invalid)

	everyPolicy(query(func(q *calendar.Query) { q.Deadline = 8 }), 4, berth.PEsOf(4, 5, 6, 7))

	seven := query(func(q *calendar.Query) { q.NPE, q.Deadline = 7, 9 })
	wantStarts(t, c, seven, 4, 5)
	refused("seven PEs by 9", seven)
	if free, start := c.MostFree(seven); free != 6 || start != 4 {
		t.Fatalf("MostFree = %d at %d, want 6 at 4", free, start)
	}

	everyPolicy(query(func(q *calendar.Query) { q.NPE = 10 }), 6, allPEs(10))

	after := calendar.Query{Ready: 25, Deadline: 40, Duration: 5, NPE: 1}
	wantStarts(t, c, after, 25, 35)
	all := []berth.PE{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	wantRectangles(t, c, after, []rectangleRow{
		{berth.Rectangle{Start: 25, Begin: 20, End: 40, Free: 10}, all},
		{berth.Rectangle{Start: 35, Begin: 20, End: 40, Free: 10}, all},
	})
	everyPolicy(after, 25, berth.PEsOf(0))

	wantCode(t, "empty block", c.Add(calendar.Block{Start: 3, End: 3, NPE: 1, PEs: berth.PEsOf(0)}), berth.Invalid)
	wantCode(t, "block that touches", c.Add(calendar.Block{Start: 20, End: 22, NPE: 1, PEs: berth.PEsOf(0)}), "")
	wantBusy(t, c, rec{0, all[:7]}, rec{2, all[:4]}, rec{6, nil}, rec{16, all[:5]}, rec{20, all[:1]}, rec{22, nil})
}

// Algorithm 3, line 2: on an empty calendar the request starts when it is
// ready, under every policy.
func paperEmpty(t *testing.T, form calendar.New, binding berth.Binding) {
	c := form(10, binding)
	for _, horizon := range []calendar.Horizon{calendar.Capped, calendar.Unbounded} {
		for _, row := range policy.Placements {
			q := figure1Query
			q.Horizon = horizon
			fit, ok := c.Find(q, row.Placement)
			if !ok || fit.Start != 4 || (binding == berth.Early && !fit.PEs.Equal(berth.PEsOf(0, 1, 2, 3))) {
				t.Fatalf("%s: %+v, %t, want start 4 with PEs 0-3", row.Name, fit, ok)
			}
		}
	}
}
