package policy

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// PEWorst takes the most free PEs (PE_W).
type PEWorst struct{}

// Order declares the number of free PEs as the criterion.
func (PEWorst) Order() calendar.Order {
	return calendar.Order{By: calendar.ByFree, Largest: true}
}

// Key is the negated number of free PEs.
func (PEWorst) Key(r berth.Rectangle) int64 { return -int64(r.Free) }
