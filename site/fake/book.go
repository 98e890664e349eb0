package fake

import (
	"context"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Reserve makes a reservation, unless a fault befalls it.
func (s *Site) Reserve(ctx context.Context, want site.Reservation) (site.Outcome, error) {
	return s.book(ctx, Reserve, want, s.reserve)
}

// ReserveMany makes reservations in the time that the slowest of them takes; each
// is a Reserve that faults may befall.
func (s *Site) ReserveMany(ctx context.Context, want []site.Reservation) []site.Answer {
	answers := make([]site.Answer, len(want))
	silent, longest := 0, berth.Duration(0)
	for i := range want {
		if silent == site.Patience {
			answers[i].Err = site.ErrNotTried
			continue
		}
		answers[i].Outcome, answers[i].Err = s.Reserve(ctx, want[i])
		if site.KindOf(answers[i].Err) == site.Unreachable {
			silent++
		}
		longest = max(longest, s.Elapsed())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.elapsed = longest
	return answers
}

// Change changes a reservation, unless a fault befalls it.
func (s *Site) Change(ctx context.Context, want site.Reservation) (site.Outcome, error) {
	return s.book(ctx, Change, want, s.change)
}

type booker func(op string, want site.Reservation) (site.Outcome, error)

func (s *Site) book(ctx context.Context, op string, want site.Reservation, do booker) (site.Outcome, error) {
	if err := want.Check(); err != nil {
		return site.Outcome{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.begin(ctx, op)
	if err != nil {
		return doubtIf(c.fault.What == Unsent), err
	}
	if !s.config.Description.Rights.Reserve {
		return site.Outcome{}, site.Errorf(site.Denied, op, "no right to make reservations")
	}
	switch c.fault.What {
	case Refuse:
		return refused(berth.NoCapacity, "refused on command"), nil
	case Wrong:
		want.End = want.Start + (want.End-want.Start+1)/2 + 1
	}
	if s.late(c, func() { _, _ = do(op, want) }) {
		return doubtIf(true), s.end(c)
	}
	outcome, err := do(op, want)
	if err != nil {
		return outcome, err
	}
	if err := s.end(c); err != nil {
		return doubtIf(true), err
	}
	if c.fault.What == Lie {
		return refused(berth.NoCapacity, "a lie"), nil
	}
	return outcome, nil
}

func doubtIf(doubt bool) site.Outcome {
	if doubt {
		return site.Outcome{Verdict: site.Doubt}
	}
	return site.Outcome{}
}

func refused(reason berth.Reason, words string) site.Outcome {
	return site.Outcome{Verdict: site.Refused, Reason: reason, Words: words}
}

func (s *Site) reserve(op string, want site.Reservation) (site.Outcome, error) {
	if later, ok := site.Superseded(s.config.Name, want.Name, s.all()); ok {
		return site.Outcome{}, site.Errorf(site.Conflict, op, "%s was superseded by %s", want.Name, later)
	}
	if have := s.bookings[string(want.Name)]; have != nil {
		if what := want.Differences(&have.Booking, s.now); len(what) > 0 {
			return refused(berth.RefusedConflict, "the name is taken: "+what[0]), nil
		}
		return site.Outcome{Verdict: site.Already, Booking: s.copyOf(have)}, nil
	}
	if want.End <= s.now {
		return refused(berth.Expired, "its end has passed"), nil
	}
	made, outcome, err := s.fit(op, want)
	if made == nil {
		return outcome, err
	}
	s.put(made)
	return site.Outcome{Verdict: site.Made, Booking: s.copyOf(made)}, nil
}

func (s *Site) change(op string, want site.Reservation) (site.Outcome, error) {
	have := s.bookings[string(want.Name)]
	if have == nil {
		return site.Outcome{}, site.Errorf(site.NotFound, op, "no reservation %s", want.Name)
	}
	if len(want.Differences(&have.Booking, s.now)) == 0 {
		return site.Outcome{Verdict: site.Already, Booking: s.copyOf(have)}, nil
	}
	made, outcome, err := s.fit(op, want)
	if made == nil {
		return outcome, err
	}
	if have.Start <= s.now {
		made.Start = have.Start
	}
	made.launched = have.launched
	s.put(made)
	s.start(made) // what waits in it, if it begins now
	return site.Outcome{Verdict: site.Made, Booking: s.copyOf(made)}, nil
}

// put writes a booking and remembers what it replaced.
func (s *Site) put(b *booking) {
	s.remember(b.Name)
	s.bookings[b.Name] = b
}

func (s *Site) remember(name string) {
	s.undo = append(s.undo, undo{name: name, before: s.bookings[name]})
	s.undo = s.undo[max(0, len(s.undo)-maxUndo):]
}

func (s *Site) copyOf(b *booking) *site.Booking {
	c := b.Booking
	c.Active = c.Start <= s.now
	return &c
}

// fit finds room for a reservation beside all others of another name. The
// booking is nil if there is none.
func (s *Site) fit(op string, want site.Reservation) (*booking, site.Outcome, error) {
	made := &booking{Booking: site.Booking{
		Name: string(want.Name), Start: max(want.Start, s.now), End: want.End, Partition: want.Partition, Users: want.Users, Accounts: want.Accounts,
	}}
	allowed, err := s.allowed(op, want.Partition)
	if err != nil {
		return nil, site.Outcome{}, err
	}
	if len(want.Shares) > 0 {
		for _, share := range want.Shares {
			if !allowed[share.Node] {
				return nil, site.Outcome{}, site.Errorf(site.NotFound, op, "no node %s", share.Node)
			}
		}
		made.Shares = want.Shares
		if s.taken(&made.Booking) {
			return nil, refused(berth.NoCapacity, "nodes are busy"), nil
		}
	} else if !s.choose(made, want, allowed) {
		return nil, refused(berth.NoCapacity, "too few nodes are free"), nil
	}
	for _, share := range made.Shares {
		made.Cores += s.coresOf(share)
	}
	return made, site.Outcome{}, nil
}

// allowed returns the nodes of a partition; all if it is empty.
func (s *Site) allowed(op, partition string) (map[string]bool, error) {
	allowed := map[string]bool{}
	for _, p := range s.config.Description.Partitions {
		if p.Name == partition {
			for _, n := range p.Nodes {
				allowed[n] = true
			}
			return allowed, nil
		}
	}
	if partition != "" {
		return nil, site.Errorf(site.NotFound, op, "no partition %s", partition)
	}
	for n := range s.nodes {
		allowed[n] = true
	}
	return allowed, nil
}

// taken reports whether another booking, or a running job that does not belong
// to the booking, holds one of its cores.
func (s *Site) taken(b *site.Booking) bool {
	others := s.all()
	for _, j := range s.jobs {
		if j.running && !j.over() && j.Reservation != b.Name {
			others = append(others, site.Booking{Name: "job " + string(j.ID), Start: j.Start, End: j.End, Shares: j.Shares})
		}
	}
	_, overlaps := site.Overlap(b, others)
	return overlaps
}

// choose gives the booking the first free nodes, or cores, in the order of the
// description.
func (s *Site) choose(b *booking, want site.Reservation, allowed map[string]bool) bool {
	needed := want.Nodes + want.Cores
	for _, n := range s.config.Description.Nodes {
		if !allowed[n.Name] || needed == 0 {
			continue
		}
		free := func(cores berth.PESet) bool {
			one := b.Booking
			one.Shares = []site.Share{{Node: n.Name, Cores: cores}}
			return !s.taken(&one)
		}
		if want.Nodes > 0 {
			if free(berth.PESet{}) {
				b.Shares = append(b.Shares, site.Share{Node: n.Name})
				needed--
			}
			continue
		}
		var cores []berth.PE
		for pe := range berth.PE(n.Cores) {
			if needed > 0 && free(berth.PEsOf(pe)) {
				cores = append(cores, pe)
				needed--
			}
		}
		if len(cores) > 0 {
			b.Shares = append(b.Shares, site.Share{Node: n.Name, Cores: berth.PEsOf(cores...)})
		}
	}
	return needed == 0
}

// coresOf returns how many cores a share has.
func (s *Site) coresOf(share site.Share) berth.Count {
	if !share.Cores.Empty() {
		return share.Cores.Count()
	}
	for _, n := range s.config.Description.Nodes {
		if n.Name == share.Node {
			return n.Cores
		}
	}
	return 0
}

// Release takes a reservation down and ends what runs in it, unless a fault
// befalls it.
func (s *Site) Release(ctx context.Context, name site.Name) error {
	if _, _, ours := name.Promise(s.config.Name); !ours {
		return site.Errorf(site.Denied, Release, "%s is not a reservation of ours", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.begin(ctx, Release)
	if err != nil {
		return err
	}
	if !s.config.Description.Rights.Reserve {
		return site.Errorf(site.Denied, Release, "no right to release reservations")
	}
	if c.fault.What == Refuse || c.fault.What == Lie {
		if c.fault.What == Lie {
			s.release(string(name))
		}
		return site.Errorf(site.Conflict, Release, "%s is in use", name)
	}
	if !s.late(c, func() { s.release(string(name)) }) && c.fault.What != Wrong {
		s.release(string(name)) // wrong: it says so and does nothing
	}
	return s.end(c)
}

func (s *Site) release(name string) {
	if s.bookings[name] == nil {
		return
	}
	for _, j := range s.jobs {
		if j.Reservation == name && !j.over() {
			s.finish(j, site.Result{Ending: site.Cancelled}, s.now)
		}
	}
	s.remember(name)
	delete(s.bookings, name)
}
