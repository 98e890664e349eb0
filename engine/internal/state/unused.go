package state

import (
	"fmt"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/policy"
)

// unused is a reservation that was not used.
type unused struct {
	At                        berth.Time
	User, Owner, Account, QOS string
}

// noteUnused remembers a reservation that is about to be over by a change if that says
// that it was not used: it was given up for that, or it reached its end with all its PEs at managed
// sites, which tell of every use, and none was told. A task of a workflow is not for its user to use,
// and what is given back or lost is not unused. Nothing is remembered where no limit counts it.
func (s *State) noteUnused(c *change.Change, e *Entry) {
	if !s.countsUnused || e.r.Request.IsJob() || e.r.Request.Task != nil || e.r.CheckedIn {
		return
	}
	switch c.Kind {
	case change.NoShow:
	case change.Ended:
		if e.running != 1 || s.now < e.End() || e.r.Missing > 0 {
			return
		}
		for part := range e.r.Allotments {
			if !s.managed[e.r.Allotments[part].Resource.Site] {
				return
			}
		}
	default:
		return
	}
	first := 0
	for first < len(s.unused) && s.unused[first].At.Add(policy.NoShowWindow) <= s.now {
		first++
	}
	r := e.r.Request
	s.unused = append(s.unused[first:], unused{s.now, r.User, r.Owner, r.Account, r.QOS})
}

// Unused returns when reservations of a user, an account or a QOS were found unused within
// policy.NoShowWindow, the earliest first. It is empty where no limit counts them. Cost: O(those of all
// holders).
func (s *State) Unused(of Holder) (times []berth.Time) {
	for i := range s.unused {
		u := &s.unused[i]
		name := [holderKinds]string{ofUser: u.User, ofAccount: u.Account, ofQOS: u.QOS}[of.kind]
		if mine := name == of.name || of.kind == ofUser && u.Owner == of.name; of.name != "" && mine && u.At.Add(policy.NoShowWindow) > s.now {
			times = append(times, u.At)
		}
	}
	return times
}

// restoreUnused takes over what a snapshot has of them.
func (s *State) restoreUnused(list []unused) error {
	if !s.countsUnused {
		return nil
	}
	for i := range list {
		if at := list[i].At; !at.Valid() || at > s.now || i > 0 && at < list[i-1].At {
			return fmt.Errorf("a reservation went unused at %d, which is out of order or after now, %d", at, s.now)
		}
	}
	s.unused = list
	return nil
}

func codeUnused(c *wire.Coder, u *unused) {
	wire.Int(c, 1, &u.At)
	wire.Name(c, 2, &u.User)
	wire.Name(c, 3, &u.Account)
	wire.Name(c, 4, &u.QOS)
	wire.Name(c, 5, &u.Owner)
	c.End()
}
