package change

import "github.com/berth-hpc/berth"

// PaidUntil returns until when the PEs of a reservation are charged for that is over by a change at a time: a part costs
// its PEs from its start until then, or until its end if that is earlier. Ended, released, cancelled or expired, it has been charged for until now;
// given up unused, in full. What is lost, fails or is rejected by its site is charged for nothing, since that is no doing of its
// user; paid is false then, and for a change that ends nothing. A part that ends alone is paid for with the last one.
func (c *Change) PaidUntil(now berth.Time) (until berth.Time, paid bool) {
	switch c.Kind {
	case NoShow:
		return berth.Forever, true
	case Ended, Cancelled, Expired:
		return now, true
	}
	return 0, false
}
