package policy

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// DurationBest takes the shortest rectangle (Du_B).
type DurationBest struct{}

// Order declares the length of the rectangle as the criterion.
func (DurationBest) Order() calendar.Order {
	return calendar.Order{By: calendar.ByLength}
}

// Key is the length of the rectangle.
func (DurationBest) Key(r berth.Rectangle) int64 { return int64(r.Length()) }
