package calendar

import "github.com/berth-hpc/berth"

// NewFast returns an empty calendar that answers every question as NewPlain
// does, and fast with a million live bookings.
//
// Which structure serves is decided here, by binding alone: counts are kept as
// a tree of changes with sums and bounds (docs/calendar-late.md), identities as
// a tree of records that hold what changes at each, not what is busy
// (docs/calendar-early.md). Both serve every size up to berth.MaxPEs and every
// number of bookings; no measured row asked for a second structure.
func NewFast(size berth.Count, binding berth.Binding) Calendar {
	if binding == berth.Late {
		return newFastLate(size)
	}
	return newFastEarly(size)
}
