package policy

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// Ahead bounds which share of each pool may be promised how far ahead, so that those who ask early leave something to
// those who cannot: to all together, or, as booking limits of revenue management do, less to users of a lower priority. What counts is what is
// promised to everyone. As time goes on, more may be promised of the same hour. Without rows the first who asks is served first.
// Ordinary jobs, and promises that lose their place and get another, are not bound by it.
type Ahead []AheadRow

// AheadRow is a row: of what lies further ahead than Beyond, in seconds, at most Share of the PEs of a pool, rounded up, may
// be promised to users of a priority below Below; to everyone if it is nil.
type AheadRow struct {
	Beyond berth.Duration `json:"beyond"`
	Share  Permille       `json:"share"`
	Below  *int           `json:"below,omitempty"`
}

// Validate reports a row that says nothing sensible.
func (a Ahead) Validate() error {
	for i := range a {
		switch row := &a[i]; {
		case row.Beyond < 0 || row.Beyond >= berth.TimeLimit:
			return berth.Errorf(berth.Invalid, "ahead.beyond", "%d s; it must lie between 0 and 2^42", row.Beyond)
		case row.Share < 0 || row.Share > 1000:
			return berth.Errorf(berth.Invalid, "ahead.share", "%d thousandths; it must lie in [0,1]", row.Share)
		}
	}
	return nil
}

// For returns the rows that bind a user of a priority, by Beyond, each of a smaller share than the one before. Cost: O(rows log rows).
func (a Ahead) For(priority int) (rows []AheadRow) {
	for i := range a {
		if a[i].Below == nil || priority < *a[i].Below {
			rows = append(rows, a[i])
		}
	}
	slices.SortStableFunc(rows, func(a, b AheadRow) int { return cmp.Or(cmp.Compare(a.Beyond, b.Beyond), cmp.Compare(a.Share, b.Share)) })
	least := Permille(1000)
	return slices.DeleteFunc(rows, func(row AheadRow) bool {
		if row.Share >= least {
			return true
		}
		least = row.Share
		return false
	})
}

// Of returns how many of some PEs a row allows.
func (r *AheadRow) Of(size berth.Count) berth.Count {
	return berth.Count((int64(size)*int64(r.Share) + 999) / 1000)
}
