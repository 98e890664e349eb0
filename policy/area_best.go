package policy

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// AreaBest takes the rectangle of least area (PEDu_B).
type AreaBest struct{}

// Order declares the area of the rectangle as the criterion.
func (AreaBest) Order() calendar.Order {
	return calendar.Order{By: calendar.ByArea}
}

// Key is the area of the rectangle.
func (AreaBest) Key(r berth.Rectangle) int64 { return r.Area() }
