package fake

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// This file is the world around the site: time, operators, other users.

// Advance lets time pass until now: late deeds are done, reservations begin and
// end, jobs run out, in the order of their times; at one instant first what is
// late, then ends, then starts. An earlier now is ignored.
func (s *Site) Advance(now berth.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		at := s.next()
		if at > now {
			break
		}
		s.now = max(s.now, at)
		s.happen()
	}
	s.now = max(s.now, now)
}

// next returns when something happens next.
func (s *Site) next() berth.Time {
	next := berth.Forever
	for _, d := range s.deeds {
		next = min(next, d.at)
	}
	for _, j := range s.jobs {
		if j.running {
			next = min(next, j.End, j.Start.Add(j.length))
		}
	}
	for _, b := range s.bookings {
		next = min(next, b.End)
		if b.Start > s.now {
			next = min(next, b.Start)
		}
	}
	return next
}

// happen does everything that is due now.
func (s *Site) happen() {
	var due []deed
	kept := s.deeds[:0]
	for _, d := range s.deeds {
		if d.at <= s.now {
			due = append(due, d)
		} else {
			kept = append(kept, d)
		}
	}
	s.deeds = kept
	for _, d := range due {
		d.do()
	}
	for _, j := range s.jobs {
		switch {
		case !j.running:
		case j.Start.Add(j.length) <= s.now && j.Start.Add(j.length) <= j.End:
			s.finish(j, j.result, s.now)
		case j.End <= s.now:
			s.finish(j, site.Result{Ending: site.TimedOut, Signal: 15}, s.now)
		}
	}
	for _, b := range s.all() {
		switch {
		case b.End <= s.now:
			delete(s.bookings, b.Name)
		case b.Start <= s.now:
			s.start(s.bookings[b.Name])
		}
	}
}

// Fail brings a node down: what runs on it is lost. It panics if there is no
// such node.
func (s *Site) Fail(node, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(node, site.Down, reason)
	for _, j := range s.jobs {
		for _, share := range j.Shares {
			if j.running && share.Node == node {
				s.finish(j, site.Result{Ending: site.NodeLost}, s.now)
			}
		}
	}
}

// Repair brings a node up again. It panics if there is no such node.
func (s *Site) Repair(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(node, site.Up, "")
}

// Book adds a reservation that others made, whatever it overlaps, or
// replaces one of ours behind our back.
func (s *Site) Book(b site.Booking) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.Cores == 0 {
		for _, share := range b.Shares {
			b.Cores += s.coresOf(share)
		}
	}
	s.bookings[b.Name] = &booking{Booking: b}
}

// Bookings returns all reservations by name, whatever befalls calls.
func (s *Site) Bookings() []site.Booking {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all()
}

// Unbook takes a reservation away, whosever it is.
func (s *Site) Unbook(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.bookings, name)
}

// Occupy runs a job of another user for the length given, of at most the
// limit, whatever it overlaps, and returns its id.
func (s *Site) Occupy(user string, shares []site.Share, length, limit berth.Duration) site.JobID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastJob++
	j := &job{
		Job:     site.Job{ID: site.JobID(decimal(s.lastJob)), User: user, Start: s.now, End: s.now.Add(limit), Shares: shares},
		running: true, length: length, limit: limit, result: site.Result{Ending: site.Completed},
	}
	for _, share := range shares {
		j.Cores += s.coresOf(share)
	}
	s.jobs = append(s.jobs, j)
	return j.ID
}

// Enqueue lets a job of another user wait, until Begin, Withdraw or Forget, and
// returns its id, which it gets unless it has one.
func (s *Site) Enqueue(waits site.Job) site.JobID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waits.ID == "" {
		s.lastJob++
		waits.ID = site.JobID(decimal(s.lastJob))
	}
	waits.Submitted = s.now
	s.jobs = append(s.jobs, &job{Job: waits, limit: waits.Limit, result: site.Result{Ending: site.Completed}})
	return waits.ID
}

// waiting returns a job that waits. It panics if there is none of that id.
func (s *Site) waiting(id site.JobID) *job {
	for _, j := range s.jobs {
		if j.ID == id && !j.running && !j.over() {
			return j
		}
	}
	panic("fake: no job " + string(id) + " waits")
}

// Begin starts a job that waits on shares, whatever they overlap, for the length
// given, of at most its limit if it has one.
func (s *Site) Begin(id site.JobID, length berth.Duration, shares ...site.Share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.waiting(id)
	j.running, j.length, j.Shares, j.Start, j.End = true, length, shares, s.now, berth.Forever
	if j.limit > 0 {
		j.End = s.now.Add(j.limit)
	}
}

// Withdraw cancels a job that waits.
func (s *Site) Withdraw(id site.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish(s.waiting(id), site.Result{Ending: site.Cancelled}, s.now)
}

// Forget makes the manager forget jobs, whatever they do.
func (s *Site) Forget(ids ...site.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = slices.DeleteFunc(s.jobs, func(j *job) bool { return slices.Contains(ids, j.ID) })
}

// Restart starts the manager anew; it has forgotten the last writes to its
// reservations, although it had acknowledged them. It returns how many those
// were, at most forget.
func (s *Site) Restart(forget int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	forget = min(forget, len(s.undo))
	for range forget {
		last := len(s.undo) - 1
		if u := s.undo[last]; u.before == nil {
			delete(s.bookings, u.name)
		} else {
			s.bookings[u.name] = u.before
		}
		s.undo = s.undo[:last]
	}
	s.boot = s.now
	return forget
}
