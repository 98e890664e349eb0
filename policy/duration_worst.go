package policy

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// DurationWorst takes the longest rectangle (Du_W).
type DurationWorst struct{}

// Order declares the length of the rectangle as the criterion.
func (DurationWorst) Order() calendar.Order {
	return calendar.Order{By: calendar.ByLength, Largest: true}
}

// Key is the negated length of the rectangle.
func (DurationWorst) Key(r berth.Rectangle) int64 { return -int64(r.Length()) }
