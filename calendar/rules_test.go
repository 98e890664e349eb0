package calendar

import "github.com/berth-hpc/berth"

// criterionRule is a rule of any criterion.
type criterionRule struct{ order Order }

func (r criterionRule) Order() Order { return r.order }

func (r criterionRule) Key(b berth.Rectangle) int64 {
	var key int64
	switch r.order.By {
	case ByStart:
		key = int64(b.Start)
	case ByFree:
		key = int64(b.Free)
	case ByLength:
		key = int64(b.Length())
	case ByArea:
		key = b.Area()
	case Custom:
		return (int64(b.Start)*7+int64(b.Begin)*3+int64(b.End%1009)*5+int64(b.Free)*11)%101 - 50
	}
	if r.order.Largest {
		return -key
	}
	return key
}

// allRules are the seven placements, the latest start and a rule of its own.
var allRules = []criterionRule{
	{Order{By: ByStart}},
	{Order{By: ByFree}},
	{Order{By: ByFree, Largest: true}},
	{Order{By: ByLength}},
	{Order{By: ByLength, Largest: true}},
	{Order{By: ByArea}},
	{Order{By: ByArea, Largest: true}},
	{Order{By: ByStart, Largest: true}},
	{Order{By: Custom}},
}
