package policy

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// FirstFit takes the earliest feasible start (FF).
type FirstFit struct{}

// Order declares the start as the criterion.
func (FirstFit) Order() calendar.Order { return calendar.Order{By: calendar.ByStart} }

// Key is the start.
func (FirstFit) Key(r berth.Rectangle) int64 { return int64(r.Start) }
