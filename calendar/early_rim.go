package calendar

import "github.com/berth-hpc/berth"

// rim tracks the time through which the PEs of a sweep's present set stay
// free.
//
// The begin is the last record not after start at which one of them changes.
// It is start itself where the set just gained; and where it only lost, the
// begin can but move back: begins is never too early, and the search goes on
// from there. The end, mirrored, is the first record from right on at which
// one of them changes. Where the set just gained, what was the end is still
// not too early; where the window's end passed it, nothing is known.
type rim struct {
	horizon berth.Time // no end is later
	begins  int        // a record gathered, or −1−k for past record k
	end     int
	sure    bool // end is exact

	// The records not after query.Ready, latest first, gathered like those
	// of the sweep.
	times []berth.Time
	ends  []int
	set   pieces
	past  place // the last record not gathered yet
	gone  bool  // none is left
}

func (r *rim) begin(s *sweep) {
	r.begins, r.end, r.sure = -1, unknown, false
	r.times, r.ends, r.set = r.times[:0], append(r.ends[:0], 0), r.set[:0]
	r.gone = s.tree.empty()
	r.horizon = berth.Forever
	if s.query.Horizon == Capped {
		r.horizon = s.query.Deadline
		if !r.gone {
			r.horizon = max(r.horizon, s.tree.end())
		}
	}
}

// gatherPast appends the records of the leaf before, latest first.
func (s *sweep) gatherPast() {
	r := &s.rim
	l := s.tree.leaf(r.past)
	for i := r.past.r; i >= 0; i-- {
		r.times = append(r.times, l.times[i])
		r.set = append(r.set, l.changes(i)...)
		r.ends = append(r.ends, len(r.set))
	}
	var ok bool
	r.past, ok = s.tree.previousLeaf(r.past)
	r.gone = !ok
}

// beginBound returns a time that the begin is not after.
func (s *sweep) beginBound() berth.Time {
	r := &s.rim
	if r.begins >= 0 {
		return s.times[r.begins]
	}
	if k := -1 - r.begins; k > 0 && k <= len(r.times) {
		return max(r.times[k-1], s.query.Now)
	}
	return s.start
}

// findBegin returns the begin.
func (s *sweep) findBegin() berth.Time {
	r := &s.rim
	for ; r.begins >= 0; r.begins-- {
		if s.meets(r.begins) {
			return s.times[r.begins]
		}
	}
	for ; ; r.begins-- {
		k := -1 - r.begins
		for k >= len(r.times) {
			if r.gone {
				return s.query.Now
			}
			s.gatherPast()
		}
		if r.times[k] <= s.query.Now {
			return s.query.Now
		}
		var common uint64
		for _, piece := range r.set[r.ends[k]:r.ends[k+1]] {
			common |= s.cells[piece.word].free & piece.mask
		}
		if common != 0 {
			return r.times[k]
		}
	}
}

// endBound returns a time that the end is not after.
func (s *sweep) endBound() berth.Time {
	if s.rim.end == unknown {
		return s.rim.horizon
	}
	return min(s.time(s.rim.end), s.rim.horizon)
}

// findEnd returns the end.
func (s *sweep) findEnd() berth.Time {
	r := &s.rim
	if !r.sure {
		i := s.right
		for i < r.end && s.time(i) < berth.Forever && !s.meets(i) {
			i++
		}
		r.end, r.sure = i, true
	}
	return s.endBound()
}

// rectangle returns the maximum availability rectangle of the present start.
func (s *sweep) rectangle() berth.Rectangle {
	return berth.Rectangle{Start: s.start, Begin: s.findBegin(), End: s.findEnd(), Free: s.free}
}
