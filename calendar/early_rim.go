package calendar

import "github.com/berth-hpc/berth"

// rim tracks the time through which the PEs of a sweep's present set stay
// free.
//
// The begin is the last record not after start at which one of them changes.
// It is start itself where the set just gained; and where it only lost, the
// begin can but move back: it is never before what is found, and the search goes on
// from there. The end, mirrored, is the first record from right on at which
// one of them changes. Where the set just gained, what was the end is still
// not too early; where the window's end passed it, nothing is known.
//
// Both go through the pieces of all records at a stretch, and look up only where one
// meets the set to which record it belongs.
type rim struct {
	horizon berth.Time // no end is later
	bound   berth.Time // the begin is not after it
	begun   bool       // bound is the begin
	back    int        // pieces gathered that may still have the begin
	last    int        // the record of the last of them
	end     int        // a record
	sure    bool       // end is exact

	// Where all of those were passed, records not after query.Ready: the leaf of
	// the place, and how many of its pieces may still have the begin.
	ready, past place
	pastBack    int
}

func (r *rim) begin(s *sweep, ready place) {
	r.bound, r.begun, r.back = s.query.Ready, false, 0
	r.end, r.sure = unknown, false
	r.ready = ready
	r.horizon = berth.Forever
	isEmpty := s.tree.empty()
	if s.query.Horizon == Capped {
		r.horizon = s.query.Deadline
		if !isEmpty {
			r.horizon = max(r.horizon, s.tree.end())
		}
	}
	if r.past = ready; !isEmpty {
		r.pastBack = s.tree.leaf(ready).from(ready.r + 1)
	}
}

// gained says that PEs came free at the record on the left. What of the past was passed
// stays passed: as long as one of them is in the set, the begin is not before that record.
func (s *sweep) gained() {
	r := &s.rim
	r.bound, r.begun, r.sure = s.times[s.left], true, false
	r.back, r.last = s.ends[s.left+1], s.left
}

// findBegin returns the begin.
func (s *sweep) findBegin() berth.Time {
	if r := &s.rim; !r.begun {
		r.bound, r.begun = max(s.lastMet(), s.query.Now), true
	}
	return s.rim.bound
}

// lastMet returns when a PE of the present set changed last, not after the begin that was
// known. Where that was before now, it may be any time before now.
func (s *sweep) lastMet() berth.Time {
	r := &s.rim
	if r.back > 0 {
		if r.back = lastMet(s.cells, s.set[:r.back]); r.back > 0 {
			for s.ends[r.last] >= r.back {
				r.last--
			}
			return s.times[r.last]
		}
	}
	if r.bound <= s.query.Now || s.tree.empty() {
		return -berth.Forever
	}
	for {
		l := s.tree.leaf(r.past)
		if r.pastBack = lastMet(s.cells, l.set[:r.pastBack]); r.pastBack > 0 {
			return l.times[upTo(l.ends[:l.n], int32(r.pastBack-1))]
		}
		before, ok := s.tree.previousLeaf(r.past)
		if !ok || l.times[0] <= s.query.Now {
			return -berth.Forever
		}
		r.past, r.pastBack = before, len(s.tree.leaf(before).set)
	}
}

// lastMet returns how many of the pieces there are up to the last one that meets the
// free PEs of its cell, 0 if none does.
func lastMet(cells []cell, set pieces) int {
	for n := len(set); n > 0; n-- {
		if p := &set[n-1]; cells[p.word].free&p.mask != 0 {
			return n
		}
	}
	return 0
}

// firstMet returns how many of the pieces there are before the first one that meets the
// free PEs of its cell, all if none does.
func firstMet(cells []cell, set pieces) int {
	for i := range set {
		if cells[set[i].word].free&set[i].mask != 0 {
			return i
		}
	}
	return len(set)
}

// meetsNext reports whether a PE of the present set changes at the record on the right, which there is.
func (s *sweep) meetsNext() bool {
	cells, common := s.cells, uint64(0)
	for _, p := range s.set[s.ends[s.right]:s.ends[s.right+1]] {
		common |= cells[p.word].free & p.mask
	}
	return common != 0
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
	if r := &s.rim; !r.sure {
		r.end, r.sure = s.nextMet(s.right, r.end), true
	}
	return s.endBound()
}

// nextMet returns the first record from one on, before another, at which a PE of the
// present set changes, else the other or the one behind the last.
func (s *sweep) nextMet(from, before int) int {
	s.time(from) // is gathered, if there is one
	from = min(from, len(s.times))
	at := s.ends[from]
	for before >= len(s.ends) {
		if at += firstMet(s.cells, s.set[at:]); at < len(s.set) {
			before = len(s.times)
		} else if !s.more {
			return len(s.times)
		} else {
			s.gather()
		}
	}
	at += firstMet(s.cells, s.set[at:s.ends[before]])
	for from < before && s.ends[from+1] <= at {
		from++
	}
	return from
}

// rectangle returns the maximum availability rectangle of the present start.
func (s *sweep) rectangle() berth.Rectangle {
	return berth.Rectangle{Start: s.start, Begin: s.findBegin(), End: s.findEnd(), Free: s.free}
}
