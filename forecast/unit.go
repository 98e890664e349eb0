package forecast

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// Unit is what the values of a series of transfers mean. The zero value has no name
// and moves nothing.
type Unit struct {
	Name  string
	bytes float64 // of a value of 1: each second, or each period if it is an amount
	total bool    // an amount in each period and not a rate
}

// Units are the units there are; the last two are amounts in each period.
var Units = []Unit{
	{"bit/s", 1. / 8, false},
	{"kbit/s", 1e3 / 8, false},
	{"Mbit/s", 1e6 / 8, false},
	{"Gbit/s", 1e9 / 8, false},
	{"B/s", 1, false},
	{"kB/s", 1e3, false},
	{"MB/s", 1e6, false},
	{"GB/s", 1e9, false},
	{"bit", 1. / 8, true},
	{"B", 1, true},
}

// UnitNamed returns a unit, and false if there is none of that name.
func UnitNamed(name string) (Unit, bool) {
	i := slices.IndexFunc(Units, func(u Unit) bool { return u.Name == name })
	if i < 0 {
		return Unit{}, false
	}
	return Units[i], true
}

// Link says how a forecast in this unit becomes bytes; at least leastRate
// megabytes a second are moved.
func (u Unit) Link(period berth.Duration, leastRate float64) Link {
	link := Link{Period: period, BytesPerUnit: u.bytes, LeastBytes: int64(float64(float64(leastRate*1e6) * float64(period)))}
	if !u.total {
		link.BytesPerUnit = float64(link.BytesPerUnit * float64(period))
	}
	return link
}
