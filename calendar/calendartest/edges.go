package calendartest

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// sizes books all PEs and the highest PE at the sizes around a machine word
// and at the greatest one.
func sizes(t *testing.T, form calendar.New, binding berth.Binding) {
	for _, size := range []berth.Count{1, 63, 64, 65, 128, berth.MaxPEs} {
		c := form(size, binding)
		if c.Size() != size || c.Binding() != binding || len(recordsOf(c)) != 0 {
			t.Fatalf("new calendar of %d PEs has %d, %s and records %v", size, c.Size(), c.Binding(), recordsOf(c))
		}
		all := calendar.Block{Start: 0, End: 10, NPE: size, PEs: allPEs(size)}
		top := calendar.Block{Start: 5, End: 15, NPE: 1, PEs: berth.PEsOf(berth.PE(size - 1))}
		wantCode(t, "Add all", c.Add(all), "")
		wantCode(t, "Add the highest PE twice", c.Add(top), berth.Conflict)
		if n, pes := c.Free(berth.Interval{Start: 9, End: 11}); n != 0 || !pes.Empty() {
			t.Fatalf("%d PEs: %d %q are free", size, n, pes)
		}
		wantCode(t, "Remove all", c.Remove(all), "")
		wantRecords(t, c, nil)

		wantCode(t, "Add the highest PE", c.Add(top), "")
		q := calendar.Query{Ready: 0, Deadline: 100, Duration: 10, NPE: size}
		if fit, ok := calendar.Earliest(c, q); !ok || fit.Start != 15 || (binding == berth.Early && !fit.PEs.Equal(all.PEs)) {
			t.Fatalf("%d PEs: all of them fit at %+v, %t, want 15", size, fit, ok)
		}
		if q.NPE = size - 1; q.NPE > 0 {
			fit, ok := calendar.Earliest(c, q)
			if !ok || fit.Start != 0 || (binding == berth.Early && !fit.PEs.Equal(allPEs(size-1))) {
				t.Fatalf("%d PEs: all but the highest fit at %+v, %t, want 0", size, fit, ok)
			}
		}
		if q.NPE = size + 1; q.Validate(binding) != nil {
			t.Fatal("a query for more PEs than there are is valid, it only finds nothing")
		}
		if fit, ok := calendar.Earliest(c, q); ok {
			t.Fatalf("%d PEs: one more than there are fits at %+v", size, fit)
		}
	}
	for _, size := range []berth.Count{-1, 0, berth.MaxPEs + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Fatalf("a calendar of %d PEs was made", size)
				}
			}()
			form(size, binding)
		}()
	}
}

// limitsOfTime works on blocks and queries that reach from one end of time to
// the other, on as many PEs as there can be.
func limitsOfTime(t *testing.T, form calendar.New, binding berth.Binding) {
	const lowest, highest = 1 - berth.TimeLimit, berth.TimeLimit - 1
	c := form(berth.MaxPEs, binding)
	whole := calendar.Block{Start: lowest, End: highest, NPE: berth.MaxPEs, PEs: allPEs(berth.MaxPEs)}
	wantCode(t, "Add all PEs for all time", c.Add(whole), "")
	q := calendar.Query{Now: lowest, Ready: lowest, Deadline: highest, Duration: 1, NPE: 1}
	if fit, ok := calendar.Earliest(c, q); ok {
		t.Fatalf("all is taken, but %+v is found", fit)
	}
	if free, start := c.MostFree(q); free != 0 || start != lowest {
		t.Fatalf("MostFree = %d at %d, want 0 at %d", free, start, lowest)
	}
	q.Deadline = berth.Forever
	if fit, ok := calendar.Earliest(c, q); !ok || fit.Start != highest {
		t.Fatalf("after all time, %+v, %t is found, want start %d", fit, ok, highest)
	}
	wantCode(t, "Remove all PEs for all time", c.Remove(whole), "")
	wantRecords(t, c, nil)

	// The finite rectangle is 2^20 PEs wide and nearly 2^43 s long, the
	// endless one is narrower: any endless area is greater than any other.
	wantCode(t, "Add the last second", c.Add(calendar.Block{Start: highest - 1, End: highest, NPE: 1, PEs: berth.PEsOf(0)}), "")
	q.Deadline, q.Horizon = highest, calendar.Unbounded
	for name, start := range map[string]berth.Time{
		"pe-worst": lowest, "duration-best": lowest, "area-best": lowest,
		"pe-best": highest - 1, "duration-worst": highest - 1, "area-worst": highest - 1,
	} {
		placement, _ := policy.PlacementNamed(name)
		if fit, ok := c.Find(q, placement); !ok || fit.Start != start {
			t.Fatalf("%s: %+v, %t, want start %d", name, fit, ok, start)
		}
	}
	if fit, ok := c.Find(q, latestStart); !ok || fit.Start != highest-1 || fit.End != highest {
		t.Fatalf("latest: %+v, %t, want start %d", fit, ok, highest-1)
	}
	q.Duration, q.Deadline = berth.TimeLimit-1, 0
	if fit, ok := c.Find(q, policy.AreaWorst{}); !ok || fit.Start != lowest || fit.End != 0 {
		t.Fatalf("a request of the greatest duration: %+v, %t", fit, ok)
	}
}

// malformedBlocks: every fault of a block has code Invalid and changes nothing.
func malformedBlocks(t *testing.T, form calendar.New, binding berth.Binding) {
	good := calendar.Block{Start: 2, End: 5, NPE: 2, PEs: berth.PEsOf(1, 2)}
	rows := []struct {
		name  string
		early bool // matters under early binding only
		block calendar.Block
	}{
		{"empty", false, calendar.Block{Start: 3, End: 3, NPE: 2, PEs: good.PEs}},
		{"backwards", false, calendar.Block{Start: 5, End: 2, NPE: 2, PEs: good.PEs}},
		{"start beyond the limit", false, calendar.Block{Start: -berth.TimeLimit, End: 5, NPE: 2, PEs: good.PEs}},
		{"end beyond the limit", false, calendar.Block{Start: 2, End: berth.TimeLimit, NPE: 2, PEs: good.PEs}},
		{"for ever", false, calendar.Block{Start: 2, End: berth.Forever, NPE: 2, PEs: good.PEs}},
		{"no PEs", false, calendar.Block{Start: 2, End: 5}},
		{"a negative number", false, calendar.Block{Start: 2, End: 5, NPE: -1}},
		{"more than there are", false, calendar.Block{Start: 2, End: 5, NPE: 9, PEs: allPEs(9)}},
		{"fewer named than counted", true, calendar.Block{Start: 2, End: 5, NPE: 2, PEs: berth.PEsOf(1)}},
		{"more named than counted", true, calendar.Block{Start: 2, End: 5, NPE: 2, PEs: berth.PEsOf(1, 2, 3)}},
		{"none named", true, calendar.Block{Start: 2, End: 5, NPE: 2}},
		{"a PE the calendar does not have", true, calendar.Block{Start: 2, End: 5, NPE: 2, PEs: berth.PEsOf(1, 8)}},
	}
	for _, row := range rows {
		if row.early && binding == berth.Late {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			c := filled(t, form, 8, binding, good)
			before := recordsOf(c)
			wantCode(t, "Add", c.Add(row.block), berth.Invalid)
			wantCode(t, "Remove", c.Remove(row.block), berth.Invalid)
			wantRecords(t, c, before)
		})
	}
	if binding == berth.Late { // names are not looked at
		c := filled(t, form, 8, binding, good)
		wantCode(t, "Add", c.Add(calendar.Block{Start: 2, End: 5, NPE: 2, PEs: berth.PEsOf(70, 80, 90)}), "")
		wantBusy(t, c, rec{2, []berth.PE{0, 1, 2, 3}}, rec{5, nil})
	}
}

// malformedQueries: a query that is not valid says so and finds nothing, even
// on an empty calendar; the borders of what is valid do.
func malformedQueries(t *testing.T, form calendar.New, binding berth.Binding) {
	good := calendar.Query{Now: 0, Ready: 2, Deadline: 10, Duration: 4, NPE: 2}
	rows := []struct {
		name   string
		field  string // empty if valid
		change func(*calendar.Query)
	}{
		{"good", "", func(*calendar.Query) {}},
		{"immediate deadline", "", func(q *calendar.Query) { q.Deadline = 6 }},
		{"no deadline", "", func(q *calendar.Query) { q.Deadline = berth.Forever }},
		{"ready now", "", func(q *calendar.Query) { q.Now = 2 }},
		{"the last deadline", "", func(q *calendar.Query) { q.Deadline = berth.TimeLimit - 1 }},
		{"the first now", "", func(q *calendar.Query) { q.Now = 1 - berth.TimeLimit }},
		{"no duration", "duration", func(q *calendar.Query) { q.Duration = 0 }},
		{"endless", "duration", func(q *calendar.Query) { q.Duration, q.Deadline = berth.Endless, berth.Forever }},
		{"too long", "duration", func(q *calendar.Query) { q.Duration, q.Deadline = berth.TimeLimit, berth.Forever }},
		{"no PEs", "npe", func(q *calendar.Query) { q.NPE = 0 }},
		{"deadline left out", "deadline", func(q *calendar.Query) { q.Deadline = 0 }},
		{"deadline at the time 0", "", func(q *calendar.Query) { q.Now, q.Ready, q.Deadline = -9, -4, 0 }},
		{"ready before now", "ready", func(q *calendar.Query) { q.Now = 3 }},
		{"ready beyond the limit", "ready", func(q *calendar.Query) { q.Ready, q.Deadline = berth.TimeLimit, berth.Forever }},
		{"now beyond the limit", "ready", func(q *calendar.Query) { q.Now = -berth.TimeLimit }},
		{"deadline too early", "deadline", func(q *calendar.Query) { q.Deadline = 5 }},
		{"deadline beyond the limit", "deadline", func(q *calendar.Query) { q.Deadline = berth.TimeLimit }},
		{"deadline beyond for ever", "deadline", func(q *calendar.Query) { q.Deadline = berth.Forever + 1 }},
	}
	c := form(8, binding)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			q := good
			row.change(&q)
			wantField(t, &q, binding, row.field)
			if row.field != "" {
				checkInvalidQuery(t, c, q)
			} else if fit, ok := calendar.Earliest(c, q); !ok || fit.Start != q.Ready {
				t.Fatalf("%+v finds %+v, %t", q, fit, ok)
			}
		})
	}
	chosen := good
	chosen.Eligible = berth.PEsOf(1, 2)
	if binding == berth.Late {
		wantField(t, &chosen, binding, "eligible")
		checkInvalidQuery(t, c, chosen)
	} else {
		wantField(t, &chosen, binding, "")
	}
}

func wantField(t *testing.T, q *calendar.Query, binding berth.Binding, field string) {
	t.Helper()
	code := berth.Invalid
	if field == "" {
		code = ""
	}
	err := q.Validate(binding)
	wantCode(t, "Validate", err, code)
	if e, ok := err.(*berth.Error); ok && e.Field != field { //nolint:errorlint // wantCode has looked through wrappings
		t.Fatalf("Validate(%+v) blames %q, want %q", q, e.Field, field)
	}
}

// iteratorsStop leaves every iterator in the middle.
func iteratorsStop(t *testing.T, form calendar.New, binding berth.Binding) {
	c := figure1(t, form, binding)
	for r := range c.Records() {
		if r.Time != 0 {
			t.Fatalf("the first record is %+v", r)
		}
		break
	}
	rectangles := 0
	for range c.Rectangles(figure1Query) {
		if rectangles++; rectangles == 2 {
			break
		}
	}
	wantRectangles(t, c, figure1Query, figure1Rectangles(calendar.Capped))
}

// noDeadline: without a deadline the window has no right end, a request always
// fits in the end.
func noDeadline(t *testing.T, form calendar.New, binding berth.Binding) {
	c := filled(t, form, 4, binding,
		calendar.Block{Start: 0, End: 100, NPE: 3, PEs: berth.PEsOf(0, 1, 2)},
		calendar.Block{Start: 110, End: 120, NPE: 1, PEs: berth.PEsOf(3)})
	q := calendar.Query{Ready: 10, Deadline: berth.Forever, Duration: 20, NPE: 2}
	wantStarts(t, c, q, 10, 80, 90, 100, 110, 120)
	if fit, ok := calendar.Earliest(c, q); !ok || fit.Start != 100 || fit.End != 120 {
		t.Fatalf("earliest %+v, %t, want 100", fit, ok)
	}
	for _, horizon := range []calendar.Horizon{calendar.Capped, calendar.Unbounded} {
		q.Horizon = horizon
		wantRectangles(t, c, q, []rectangleRow{
			{berth.Rectangle{Start: 100, Begin: 100, End: berth.Forever, Free: 3}, []berth.PE{0, 1, 2}},
			{berth.Rectangle{Start: 110, Begin: 100, End: berth.Forever, Free: 3}, []berth.PE{0, 1, 2}},
			{berth.Rectangle{Start: 120, Begin: 120, End: berth.Forever, Free: 4}, []berth.PE{0, 1, 2, 3}},
		})
	}
}

// eligiblePEs: only eligible PEs count, are taken, and bound the rectangle.
func eligiblePEs(t *testing.T, form calendar.New, binding berth.Binding) {
	c := figure1(t, form, binding)
	q := figure1Query
	q.NPE = 2
	q.Eligible = berth.PEsOf(2, 3, 5, 9, 11, 500)
	wantRectangles(t, c, q, []rectangleRow{
		{berth.Rectangle{Start: 4, Begin: 2, End: 20, Free: 2}, []berth.PE{5, 9}},
		{berth.Rectangle{Start: 6, Begin: 6, End: 16, Free: 4}, []berth.PE{2, 3, 5, 9}},
		{berth.Rectangle{Start: 12, Begin: 6, End: 16, Free: 4}, []berth.PE{2, 3, 5, 9}},
		{berth.Rectangle{Start: 14, Begin: 2, End: 20, Free: 2}, []berth.PE{5, 9}},
	})
	wantFit(t, c, q, "pe-worst", policy.PEWorst{}, calendar.Fit{Start: 6, End: 10, PEs: berth.PEsOf(2, 3), Key: -4})
	q.NPE = 3
	if fit, ok := c.Find(q, latestStart); !ok || fit.Start != 12 || !fit.PEs.Equal(berth.PEsOf(2, 3, 5)) {
		t.Fatalf("latest %+v, %t, want 12", fit, ok)
	}
	q.NPE = 5
	if free, start := c.MostFree(q); free != 4 || start != 6 {
		t.Fatalf("MostFree = %d at %d, want 4 at 6", free, start)
	}
	q.NPE, q.Eligible = 1, berth.PEsOf(10, 500)
	if fit, ok := calendar.Earliest(c, q); ok {
		t.Fatalf("no eligible PE exists, but %+v is found", fit)
	}
}

func lateRecords(pairs ...int64) []calendar.Record {
	var records []calendar.Record
	for i := 0; i < len(pairs); i += 2 {
		records = append(records, calendar.Record{Time: berth.Time(pairs[i]), Free: berth.Count(pairs[i+1])})
	}
	return records
}

// countsJoin: bookings that follow one another with the same number leave no
// trace of the border, which named PEs would.
func countsJoin(t *testing.T, form calendar.New, _ berth.Binding) {
	blocks := []calendar.Block{
		{Start: 0, End: 5, NPE: 2, PEs: berth.PEsOf(0, 1)},
		{Start: 5, End: 9, NPE: 2, PEs: berth.PEsOf(1, 2)},
	}
	wantRecords(t, filled(t, form, 4, berth.Late, blocks...), lateRecords(0, 2, 9, 4))
	wantBusy(t, filled(t, form, 4, berth.Early, blocks...), rec{0, []berth.PE{0, 1}}, rec{5, []berth.PE{1, 2}}, rec{9, nil})
}
