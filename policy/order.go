package policy

import (
	"cmp"

	"github.com/berth-hpc/berth"
)

// Order says which of two pending requests is decided first: negative for a,
// positive for b. Requests that compare equal are decided in the order of
// their submission.
type Order func(a, b *berth.Request) int

// NamedOrder is a row of the table of orders.
type NamedOrder struct {
	Name  string
	About string
	Order Order
}

// Orders lists the orders; the first is the default.
var Orders = []NamedOrder{
	{"fcfs", "first come, first served", FCFS},
}

// OrderNamed returns the order of that name.
func OrderNamed(name string) (Order, bool) {
	for _, row := range Orders {
		if row.Name == name {
			return row.Order, true
		}
	}
	return nil, false
}

// FCFS orders by arrival.
func FCFS(a, b *berth.Request) int { return cmp.Compare(a.Arrival, b.Arrival) }
