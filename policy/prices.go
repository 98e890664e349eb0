package policy

import (
	"math/bits"
	"slices"

	"github.com/berth-hpc/berth"
)

// Price is a row of a table of prices: what budgets are charged for a PE-hour, in thousandths of one. A row is about a site, a
// partition, a partition of a site, or a QOS.
type Price struct {
	Site      string `json:"site,omitempty"`
	Partition string `json:"partition,omitempty"`
	QOS       string `json:"qos,omitempty"`
	Factor    int64  `json:"factor"` // thousandths; 1000 charges PE-hours as they are
}

// MaxFactor is the largest factor: a thousand times as much.
const MaxFactor = 1000 * 1000

// Prices is a table of prices. Of the rows of a place the narrowest counts: that of its partition at its site before that of its
// partition anywhere, and that before the one of its site; of equals the last. The factor of the QOS is multiplied with it, as the
// UsageFactor of Slurm is. What no row is about has the factor 1.
type Prices []Price

// Rate is what one PE-second is charged as, in millionths.
type Rate int64

// FullRate charges PE-seconds as they are.
const FullRate Rate = 1_000_000

// Of returns the rate of what is promised through a partition, or none, of a site to a request of a QOS, or of none. Cost: O(rows).
func (p Prices) Of(site, partition, qos string) Rate {
	place, quality, rank := int64(1000), int64(1000), 0
	for i := range p {
		row := &p[i]
		if row.QOS != "" {
			if row.QOS == qos {
				quality = row.Factor
			}
			continue
		}
		narrow := 0
		switch {
		case row.Site != "" && row.Site != site || row.Partition != "" && row.Partition != partition:
			continue
		case row.Partition != "" && row.Site != "":
			narrow = 3
		case row.Partition != "":
			narrow = 2
		default:
			narrow = 1
		}
		if narrow >= rank {
			place, rank = row.Factor, narrow
		}
	}
	return Rate(place * quality)
}

// Charge returns what some PE-seconds, which are not negative, are charged as: rounded up, and less than berth.Endless.
func (r Rate) Charge(area int64) int64 {
	const most = uint64(berth.Endless) - 1
	if r == FullRate {
		return min(area, int64(most))
	}
	hi, lo := bits.Mul64(uint64(area), uint64(r))
	lo, carry := bits.Add64(lo, uint64(FullRate)-1, 0)
	if hi += carry; hi >= uint64(FullRate) {
		return int64(most)
	}
	charge, _ := bits.Div64(hi, lo, uint64(FullRate))
	return int64(min(charge, most))
}

// Validate reports a row that cannot be right, as an *berth.Error of code Invalid.
func (p Prices) Validate() error {
	for i := range p {
		row := p[i]
		switch {
		case row.Factor < 0 || row.Factor > MaxFactor:
			return berth.Errorf(berth.Invalid, "prices", "factor %d thousandths; want 0 to %d", row.Factor, MaxFactor)
		case row.Site == "" && row.Partition == "" && row.QOS == "":
			return berth.Errorf(berth.Invalid, "prices", "a factor without a site, a partition or a QOS; name one")
		case row.QOS != "" && row.Site+row.Partition != "":
			return berth.Errorf(berth.Invalid, "prices", "a factor of QOS %q and of site %q or partition %q; write a row for each, since both are multiplied", row.QOS, row.Site, row.Partition)
		}
		if slices.ContainsFunc(p[:i], func(other Price) bool { row.Factor = other.Factor; return row == other }) {
			return berth.Errorf(berth.Invalid, "prices", "two factors of site %q, partition %q, QOS %q; want one", row.Site, row.Partition, row.QOS)
		}
	}
	return nil
}
