package engine

import (
	"fmt"
	"iter"
	"slices"

	"github.com/berth-hpc/berth/calendar"
)

// Check recomputes everything that follows from the ledger — calendars, timers
// and idle sets — and reports the first difference from what the engine holds.
// Nil means that no PE is promised twice and that nothing is booked without an
// owner. Cost: that of Restore.
func (e *Engine) Check() error {
	again, err := Restore(e.config, e.Snapshot())
	if err != nil {
		return fmt.Errorf("the ledger contradicts itself: %w", err)
	}
	for _, res := range e.state.resources {
		if err := sameRecords(e.state.calendar(res.id).Records(), again.state.calendar(res.id).Records()); err != nil {
			return fmt.Errorf("calendar of %v: %w", res.id, err)
		}
		if err := sameRecords(e.state.planned(res.id), again.state.planned(res.id)); err != nil {
			return fmt.Errorf("calendar of %v with plans: %w", res.id, err)
		}
		if !slices.Equal(e.state.idle[res.id], again.state.idle[res.id]) {
			return fmt.Errorf("idle PEs of %v differ from the ledger's", res.id)
		}
	}
	for i, st := range e.state.stockOrder {
		for _, c := range []calendar.Calendar{st.calendar, again.state.stockOrder[i].calendar} {
			c.Prune(e.state.now)
		}
		if err := sameRecords(st.calendar.Records(), again.state.stockOrder[i].calendar.Records()); err != nil {
			return fmt.Errorf("calendar of %v: %w", st.id, err)
		}
	}
	has, want := e.state.timers.inOrder(), again.state.timers.inOrder()
	same := func(a, b *timer) bool {
		return a.At == b.At && a.Class == b.Class && a.Sequence == b.Sequence && a.Part == b.Part && a.id() == b.id()
	}
	if !slices.EqualFunc(has, want, same) {
		return fmt.Errorf("%d timers, the ledger has %d", len(has), len(want))
	}
	return nil
}

func sameRecords(a, b iter.Seq[calendar.Record]) error {
	has, want := slices.Collect(a), slices.Collect(b)
	for i := range max(len(has), len(want)) {
		if i >= len(has) || i >= len(want) || has[i].Time != want[i].Time ||
			has[i].Free != want[i].Free || !has[i].Busy.Equal(want[i].Busy) {
			return fmt.Errorf("record %d of %d differs from the ledger's %d records", i, len(has), len(want))
		}
	}
	return nil
}
