package policy

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// AreaWorst takes the rectangle of most area (PEDu_W).
type AreaWorst struct{}

// Order declares the area of the rectangle as the criterion.
func (AreaWorst) Order() calendar.Order {
	return calendar.Order{By: calendar.ByArea, Largest: true}
}

// Key is the negated area of the rectangle.
func (AreaWorst) Key(r berth.Rectangle) int64 { return -r.Area() }
