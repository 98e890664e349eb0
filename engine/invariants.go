package engine

import (
	"fmt"
	"slices"
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
		has := slices.Collect(e.state.calendar(res.id).Records())
		want := slices.Collect(again.state.calendar(res.id).Records())
		for i := range max(len(has), len(want)) {
			if i >= len(has) || i >= len(want) || has[i].Time != want[i].Time ||
				has[i].Free != want[i].Free || !has[i].Busy.Equal(want[i].Busy) {
				return fmt.Errorf("calendar of %v: record %d of %d differs from the ledger's %d records", res.id, i, len(has), len(want))
			}
		}
		if !slices.Equal(e.state.idle[res.id], again.state.idle[res.id]) {
			return fmt.Errorf("idle PEs of %v differ from the ledger's", res.id)
		}
	}
	has, want := e.state.timers.tree.Items(), again.state.timers.tree.Items()
	if !slices.Equal(has, want) {
		return fmt.Errorf("%d timers, the ledger has %d", len(has), len(want))
	}
	return nil
}
