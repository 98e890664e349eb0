package engine_test

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// bill is a reservation as what is charged for it is counted from changes alone.
type bill struct {
	berth.Reservation
	over    []bool // by part
	transit bool   // it has left its place
}

// bills counts what is charged, apart from the engine.
type bills struct {
	now  berth.Time
	live map[string]*bill
	paid map[holder]map[policy.Month]int64 // for what is over
	// counts returns the holders of a reservation and the pools in which it counts for each.
	holders func(r *berth.Reservation) []holder
	has     func(h holder, r *berth.Reservation, pool berth.ResourceID) bool
	// price returns what some PE-seconds in a pool are charged as.
	price func(r *berth.Reservation, pool berth.ResourceID, area int64) int64
}

// unpriced is the price where there are none.
func unpriced(_ *berth.Reservation, _ berth.ResourceID, area int64) int64 { return area }

// note takes in a change.
func (b *bills) note(c *change.Change) {
	x := b.live[c.ID]
	switch c.Kind {
	case change.Advanced:
		b.now = c.Now
	case change.Accepted:
		if !c.Reservation.Request.IsJob() {
			b.live[c.ID] = &bill{Reservation: c.Reservation.Clone(), over: make([]bool, len(c.Reservation.Allotments))}
		}
	}
	if x == nil {
		return
	}
	switch c.Kind {
	case change.Modified:
		x.Request, x.over = c.Request, make([]bool, len(c.Moved))
		x.Allotments, x.transit = slices.Clone(c.Moved), false
	case change.Moved, change.Resized:
		x.Allotments, x.transit = slices.Clone(c.Moved), false
	case change.Extended:
		x.Allotments[0].End = c.Until
	case change.Vacated:
		x.transit = true
	case change.Ended:
		if x.over[c.Part] = true; !slices.Contains(x.over, false) {
			b.close(x, b.now)
		}
	case change.Cancelled, change.Expired:
		b.close(x, b.now)
	case change.NoShow:
		b.close(x, berth.Forever)
	case change.Lost, change.Failed, change.Rejected:
		delete(b.live, c.ID)
	}
}

// close charges for what was held until a time.
func (b *bills) close(x *bill, until berth.Time) {
	delete(b.live, x.Request.ID)
	if x.transit {
		return
	}
	for _, h := range b.holders(&x.Reservation) {
		if b.paid[h] == nil {
			b.paid[h] = map[policy.Month]int64{}
		}
		b.paid[h][policy.MonthOf(x.Start())] += b.area(h, x, until)
	}
}

// area is what a holder has of a reservation until a time.
func (b *bills) area(h holder, x *bill, until berth.Time) (n int64) {
	for _, a := range x.Allotments {
		if end := min(a.End, until); end > a.Start && b.has(h, &x.Reservation, a.Resource) {
			n += b.price(&x.Reservation, a.Resource, int64(a.NPE)*int64(end-a.Start))
		}
	}
	return n
}

// charged returns what a holder is charged for what starts in a month, or for all.
func (b *bills) charged(h holder, m policy.Month) (n int64) {
	for month, paid := range b.paid[h] {
		if m == policy.Always || month == m {
			n += paid
		}
	}
	for _, x := range b.live {
		if m != policy.Always && policy.MonthOf(x.Start()) != m || x.transit || !slices.Contains(b.holders(&x.Reservation), h) {
			continue
		}
		n += b.area(h, x, berth.Forever)
	}
	return n
}
