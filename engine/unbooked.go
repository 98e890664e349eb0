package engine

import (
	"fmt"

	"github.com/berth-hpc/berth"
)

// Where the passes for jobs look at a profile, nobody asks the calendar while
// only jobs come and go. So jobs that start are taken off the profile alone, and
// the calendar hears of those that still run when it is asked again.

// bookLater notes that a job holds its PEs, in the profile already if it was
// planned there.
func (s *state) bookLater(e *entry, a *berth.Allotment, planned bool) error {
	if a.Start >= a.End || !a.Start.Valid() || !a.End.Valid() || a.NPE < 1 || a.NPE > s.profile.size {
		return fmt.Errorf("%d PEs throughout [%d,%d)", a.NPE, a.Start, a.End)
	}
	if !planned {
		if err := s.profile.take(a.Start, a.End, a.NPE); err != nil {
			return err
		}
	}
	s.unbooked = append(s.unbooked, e)
	e.unbooked = int32(len(s.unbooked))
	return nil
}

// forgetUnbooked takes a job out of those that are to be booked.
func (s *state) forgetUnbooked(e *entry) {
	last := len(s.unbooked) - 1
	moved := s.unbooked[last]
	s.unbooked[e.unbooked-1] = moved
	moved.unbooked, e.unbooked = e.unbooked, 0
	s.unbooked[last] = nil
	s.unbooked = s.unbooked[:last]
}

// bookAll tells the calendar of the jobs that it does not know.
func (s *state) bookAll() {
	for i, e := range s.unbooked {
		a := &e.Allotments[0]
		if from := max(a.Start, s.now); from < a.End {
			must(s.resources[0].calendar.Add(blockOf(a, from)))
		}
		e.unbooked = 0
		s.unbooked[i] = nil
	}
	s.unbooked = s.unbooked[:0]
}
