package calendar

import (
	"maps"

	"github.com/berth-hpc/berth"
)

// lateSeams says how many PEs are given back at a time and taken again there, where
// the points of the tree cannot.
//
// Those before the time of the last prune count as none; they are dropped once they
// may be half of all. So one costs O(1) in all.
type lateSeams struct {
	at     map[berth.Time]berth.Count
	pruned berth.Time
	kept   int // when some were dropped last
}

func newLateSeams() lateSeams {
	return lateSeams{at: map[berth.Time]berth.Count{}, pruned: lateDawn}
}

// begin prepares for a booking that begins at a time: before the last prune, nothing
// is booked any more.
func (s *lateSeams) begin(at berth.Time) {
	if at < s.pruned {
		s.sweep()
		s.pruned = lateDawn
	}
}

// prune forgets the seams up to a time.
func (s *lateSeams) prune(now berth.Time) {
	if now <= s.pruned || len(s.at) == 0 {
		return
	}
	delete(s.at, now)
	s.pruned = now
	if len(s.at) >= 2*s.kept+64 {
		s.sweep()
	}
}

func (s *lateSeams) sweep() {
	maps.DeleteFunc(s.at, func(t berth.Time, _ berth.Count) bool { return t < s.pruned })
	s.kept = len(s.at)
}

// sew makes n PEs more end and begin at a time than the leaf there says, fewer if n
// is negative. It reports false, and changes nothing, if there are fewer.
func (c *fastLate) sew(at berth.Time, n berth.Count) bool {
	if n >= 0 {
		if n > 0 {
			c.seams.at[at] += n
		}
		return true
	}
	switch n += c.seams.at[at]; {
	case n > 0:
		c.seams.at[at] = n
	case n == 0:
		delete(c.seams.at, at)
	default:
		return false
	}
	return true
}

// mend is sew where the leaf may have to make up for what is missing.
func (c *fastLate) mend(at berth.Time, n berth.Count) {
	if n += c.seams.at[at]; n < 0 {
		c.free.leafAt(at).unsew(at, -n)
		n = 0
	}
	if c.seams.at[at] = n; n == 0 {
		delete(c.seams.at, at)
	}
}
