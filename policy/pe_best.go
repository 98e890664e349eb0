package policy

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// PEBest takes the fewest free PEs (PE_B).
type PEBest struct{}

// Order declares the number of free PEs as the criterion.
func (PEBest) Order() calendar.Order {
	return calendar.Order{By: calendar.ByFree}
}

// Key is the number of free PEs.
func (PEBest) Key(r berth.Rectangle) int64 { return int64(r.Free) }
