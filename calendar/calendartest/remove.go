package calendartest

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// together are bookings that follow and overlap one another, so that much is booked
// that is no booking.
var together = []calendar.Block{
	{Start: 0, End: 10, NPE: 2, PEs: berth.PEsOf(0, 1)},
	{Start: 10, End: 20, NPE: 2, PEs: berth.PEsOf(0, 1)},
	{Start: 2, End: 18, NPE: 3, PEs: berth.PEsOf(2, 3, 4)},
	{Start: 18, End: 30, NPE: 1, PEs: berth.PEsOf(2)},
}

// neverBooked: a block that is booked throughout, but by other bookings, cannot be
// given back.
func neverBooked(t *testing.T, form calendar.New, binding berth.Binding) {
	rows := []struct {
		name  string
		block calendar.Block
		late  bool // late binding cannot tell it from a booking
	}{
		{"inside a booking", calendar.Block{Start: 12, End: 14, NPE: 2, PEs: berth.PEsOf(0, 1)}, false},
		{"the first part", calendar.Block{Start: 0, End: 9, NPE: 2, PEs: berth.PEsOf(0, 1)}, false},
		{"the last part", calendar.Block{Start: 3, End: 18, NPE: 3, PEs: berth.PEsOf(2, 3, 4)}, false},
		{"longer", calendar.Block{Start: 0, End: 11, NPE: 2, PEs: berth.PEsOf(0, 1)}, false},
		{"from earlier on", calendar.Block{Start: 9, End: 20, NPE: 2, PEs: berth.PEsOf(0, 1)}, false},
		{"up to where fewer end", calendar.Block{Start: 2, End: 10, NPE: 3, PEs: berth.PEsOf(2, 3, 4)}, false},
		{"from where fewer begin", calendar.Block{Start: 0, End: 18, NPE: 3, PEs: berth.PEsOf(0, 1, 2)}, false},
		{"more PEs", calendar.Block{Start: 0, End: 10, NPE: 3, PEs: berth.PEsOf(0, 1, 2)}, false},
		{"two as one", calendar.Block{Start: 0, End: 20, NPE: 2, PEs: berth.PEsOf(0, 1)}, true},
		{"two as one, fewer PEs", calendar.Block{Start: 2, End: 30, NPE: 1, PEs: berth.PEsOf(2)}, true},
		{"ends exchanged", calendar.Block{Start: 0, End: 18, NPE: 2, PEs: berth.PEsOf(0, 2)}, true},
		{"PEs exchanged", calendar.Block{Start: 0, End: 10, NPE: 2, PEs: berth.PEsOf(1, 2)}, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			c := filled(t, form, 8, binding, together...)
			before := recordsOf(c)
			if row.late && binding == berth.Late {
				wantCode(t, "Remove", c.Remove(row.block), "")
				wantCode(t, "Remove again", c.Remove(row.block), berth.Conflict)
				return
			}
			wantCode(t, "Remove", c.Remove(row.block), berth.Conflict)
			wantRecords(t, c, before)
			for _, b := range together {
				wantCode(t, "Remove of what was booked", c.Remove(b), "")
			}
			wantRecords(t, c, nil)
		})
	}
}

// removePartOfPEs: some of the PEs of a booking can be given back for all its time,
// and the others then.
func removePartOfPEs(t *testing.T, form calendar.New, binding berth.Binding) {
	c := filled(t, form, 8, binding, together...)
	wantCode(t, "Remove one", c.Remove(calendar.Block{Start: 2, End: 18, NPE: 1, PEs: berth.PEsOf(3)}), "")
	wantCode(t, "Remove all", c.Remove(together[2]), berth.Conflict)
	wantCode(t, "Remove the others", c.Remove(calendar.Block{Start: 2, End: 18, NPE: 2, PEs: berth.PEsOf(2, 4)}), "")
	for _, b := range []calendar.Block{together[1], together[3], together[0]} {
		wantCode(t, "Remove", c.Remove(b), "")
	}
	wantRecords(t, c, nil)
}
