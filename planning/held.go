package planning

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

// Held returns what bookings hold together, as bookings that never hold more than npes
// PEs: one for each time over which as many are held, sorted by start. Where an outage lies
// over a promise both hold the same PEs, which are counted once, within the machine.
// Cost: O(n log n).
func Held(bookings []workload.Booking, pes berth.Count) []workload.Booking {
	type step struct {
		at berth.Time
		by int64
	}
	steps := make([]step, 0, 2*len(bookings))
	for i := range bookings {
		b := &bookings[i]
		if b.Start < b.End && b.NPE > 0 {
			steps = append(steps, step{b.Start, int64(b.NPE)}, step{b.End, -int64(b.NPE)})
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	var held []workload.Booking
	sum, since, last := int64(0), berth.Time(0), berth.Count(0)
	for i := 0; i < len(steps); {
		at := steps[i].at
		for ; i < len(steps) && steps[i].at == at; i++ {
			sum += steps[i].by
		}
		now := berth.Count(min(sum, int64(pes)))
		if now == last {
			continue
		}
		if last > 0 {
			held = append(held, workload.Booking{NPE: last, Start: since, End: at})
		}
		since, last = at, now
	}
	return held
}
