//go:build linux

package local

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Reserve books cores. A reservation of nodes by number is of the whole machine.
func (s *Site) Reserve(ctx context.Context, want site.Reservation) (site.Outcome, error) {
	const op = "reserve"
	if err := s.check(ctx, op, &want); err != nil {
		return site.Outcome{}, err
	}
	defer s.mu.Unlock()
	if later, is := s.table.later(want.Name); is {
		return site.Outcome{}, site.Errorf(site.Conflict, op, "%s was superseded by generation %d", want.Name, later)
	}
	if have := s.table.bookings[string(want.Name)]; have != nil {
		seen := s.present(have)
		if what := s.differences(&want, &seen); len(what) > 0 {
			return refused(berth.RefusedConflict, "the name is taken: "+strings.Join(what, "; ")), nil
		}
		return site.Outcome{Verdict: site.Already, Booking: &seen}, nil
	}
	if want.End <= s.now() {
		return refused(berth.Expired, "its end has passed"), nil
	}
	return s.put(&want, &booking{Start: max(want.Start, s.now())})
}

// Change books otherwise. A longer or shorter reservation is so for what runs in
// it, too; cores of one that was launched stay.
func (s *Site) Change(ctx context.Context, want site.Reservation) (site.Outcome, error) {
	const op = "change"
	if err := s.check(ctx, op, &want); err != nil {
		return site.Outcome{}, err
	}
	defer s.mu.Unlock()
	have := s.table.bookings[string(want.Name)]
	if have == nil {
		return site.Outcome{}, site.Errorf(site.NotFound, op, "no reservation %s", want.Name)
	}
	seen := s.present(have)
	if len(s.differences(&want, &seen)) == 0 {
		return site.Outcome{Verdict: site.Already, Booking: &seen}, nil
	}
	next := &booking{Start: max(want.Start, s.now()), Launched: have.Launched}
	if have.Start <= s.now() {
		next.Start = have.Start
	}
	if have.Launched && s.inUse(have.Name) && !s.sameCores(&want, have) {
		return refused(berth.RefusedConflict, "a task runs on its cores"), nil
	}
	outcome, err := s.put(&want, next)
	if outcome.Verdict == site.Made {
		s.limitJobs(next)
	}
	return outcome, err
}

// check looks at a wish and begins the call.
func (s *Site) check(ctx context.Context, op string, want *site.Reservation) error {
	if err := want.Check(); err != nil {
		return err
	}
	if err := s.owns(op, want.Name); err != nil {
		return err
	}
	for _, share := range want.Shares {
		if share.Node != s.options.Node || int(share.Cores.Max()) >= len(s.cpus) {
			return site.Errorf(site.NotFound, op, "no core %s of node %s; this is %s with cores 0 to %d", share.Cores, share.Node, s.options.Node, len(s.cpus)-1)
		}
	}
	if want.Partition != "" {
		return site.Errorf(site.NotFound, op, "no partition %s; this machine has none", want.Partition)
	}
	return s.enter(ctx, op)
}

func (s *Site) owns(op string, name site.Name) error {
	if _, _, ours := name.Promise(s.options.Site); !ours {
		return site.Errorf(site.Denied, op, "%s is not a reservation of ours", name)
	}
	return nil
}

func refused(reason berth.Reason, words string) site.Outcome {
	return site.Outcome{Verdict: site.Refused, Reason: reason, Words: words}
}

// differences is want.Differences for a machine of one node, where the whole
// node and all of its cores are the same.
func (s *Site) differences(want *site.Reservation, have *site.Booking) []string {
	plain := *want
	if plain.Nodes > 0 {
		plain.Nodes, plain.Shares = 0, []site.Share{{Node: s.options.Node}}
	}
	plain.Shares = slices.Clone(plain.Shares)
	for i := range plain.Shares {
		if int(plain.Shares[i].Cores.Count()) == len(s.cpus) {
			plain.Shares[i].Cores = berth.PESet{}
		}
	}
	what := plain.Differences(have, s.now())
	if len(plain.Shares) > 0 && len(what) == 0 && !plain.Shares[0].Cores.Equal(have.Shares[0].Cores) {
		what = append(what, "cores are "+have.Shares[0].Cores.String()+", promised are "+plain.Shares[0].Cores.String())
	}
	return what
}

// wanted returns the cores that shares name.
func (s *Site) wanted(shares []site.Share) berth.PESet {
	if len(shares) == 0 {
		return berth.PESet{}
	}
	if shares[0].Cores.Empty() {
		return berth.NewPESet(berth.Run{Lo: 0, Hi: berth.PE(len(s.cpus))})
	}
	return shares[0].Cores
}

func (s *Site) sameCores(want *site.Reservation, have *booking) bool {
	if len(want.Shares) == 0 {
		return want.Nodes == 0 && want.Cores == have.Cores.Count()
	}
	return s.wanted(want.Shares).Equal(have.Cores)
}

// put books b as wanted if there is room, which b itself does not take from
// itself.
func (s *Site) put(want *site.Reservation, b *booking) (site.Outcome, error) {
	b.Name, b.End, b.Users, b.Accounts = string(want.Name), want.End, want.Users, want.Accounts
	have := s.table.bookings[b.Name]
	switch {
	case want.Nodes > 1:
		return refused(berth.NoCapacity, "this is one node"), nil
	case want.Cores > 0:
		if b.Launched && have != nil && have.Cores.Count() == want.Cores {
			b.Cores = have.Cores
			break
		}
		b.Counted = true
		cores, ok := s.table.choose(b, want.Cores)
		if !ok { // any as many, for which others move
			cores = berth.NewPESet(berth.Run{Lo: 0, Hi: berth.PE(min(want.Cores, berth.Count(len(s.cpus))))})
		}
		b.Cores = cores
	case want.Nodes == 1:
		b.Cores = s.wanted([]site.Share{{Node: s.options.Node}})
	default:
		b.Cores = s.wanted(want.Shares)
	}
	all, ok := s.table.fit(b)
	if !ok || want.Cores > b.Cores.Count() {
		return refused(berth.NoCapacity, "too few cores are free"), nil
	}
	if err := s.write(all...); err != nil {
		return site.Outcome{}, err
	}
	seen := s.present(s.table.bookings[b.Name])
	return site.Outcome{Verdict: site.Made, Booking: &seen}, nil
}

// write writes bookings down and then books them.
func (s *Site) write(all ...*booking) error {
	r := record{Together: all}
	if len(all) == 1 {
		r = record{Put: all[0]}
	}
	if err := s.log.write(r); err != nil {
		return err
	}
	s.table.putAll(all)
	return s.log.compact(s.table, &s.drain)
}

// expire drops bookings whose end has come. What runs in them ends by its own
// limit, which its shepherd keeps.
func (s *Site) expire() {
	now, believed := s.clock()
	if !believed {
		s.held = true
		return
	}
	for _, b := range s.table.ended(now) {
		if err := s.log.write(record{Drop: b.Name}); err != nil {
			s.table.nextEnd = 0 // try again at the next call; nothing is in its way
			return
		}
		s.table.drop(b.Name)
		for _, id := range s.order {
			if j := s.jobs[id]; j.stage == site.Waiting && j.spec.Task.Reservation == site.Name(b.Name) {
				s.end(j, site.Result{Ending: site.Cancelled}, "its reservation ended")
			}
		}
	}
}

// Launch opens a reservation. It is an error of kind Conflict before its start,
// or if tasks run there already on other cores.
func (s *Site) Launch(ctx context.Context, name site.Name, shares []site.Share) error {
	const op = "launch"
	if err := s.owns(op, name); err != nil {
		return err
	}
	if err := s.enter(ctx, op); err != nil {
		return err
	}
	defer s.mu.Unlock()
	b := s.table.bookings[string(name)]
	switch {
	case b == nil:
		return site.Errorf(site.NotFound, op, "no reservation %s", name)
	case b.Start > s.now():
		return site.Errorf(site.Conflict, op, "%s begins only in %d s", name, b.Start-s.now())
	}
	next := *b
	next.Launched = true
	if len(shares) > 0 {
		if shares[0].Node != s.options.Node || len(shares) > 1 || int(shares[0].Cores.Max()) >= len(s.cpus) {
			return site.Errorf(site.NotFound, op, "no such cores; this is %s with cores 0 to %d", s.options.Node, len(s.cpus)-1)
		}
		next.Cores = s.wanted(shares)
	}
	if b.Launched && next.Cores.Equal(b.Cores) {
		return nil
	}
	if b.Launched && s.inUse(b.Name) {
		return site.Errorf(site.Conflict, op, "a task of %s runs on cores %s", name, b.Cores)
	}
	all, ok := s.table.fit(&next)
	if !ok {
		return site.Errorf(site.Conflict, op, "cores %s are booked by another", next.Cores)
	}
	if err := s.write(all...); err != nil {
		return err
	}
	s.dispatch()
	return nil
}

// Release cancels what runs in the reservation, waits for its end, and takes the
// reservation down.
func (s *Site) Release(ctx context.Context, name site.Name) error {
	const op = "release"
	if err := s.owns(op, name); err != nil {
		return err
	}
	if err := s.enter(ctx, op); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.table.bookings[string(name)] == nil {
		return nil
	}
	var mine []*job
	for _, id := range s.order {
		if j := s.jobs[id]; j.spec.Task.Reservation == name && j.stage != site.Ended {
			mine = append(mine, j)
			if s.cancel(j) != nil {
				s.end(j, site.Result{Ending: site.Cancelled}, "its reservation ended")
			}
		}
	}
	// A shepherd needs the grace, and a moment to write down the end.
	ctx, cancel := context.WithTimeout(ctx, s.options.Grace+5*time.Second)
	defer cancel()
	for _, j := range mine {
		s.mu.Unlock()
		select {
		case <-j.gone:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if j.stage != site.Ended {
			return site.Errorf(site.Conflict, op, "job %s of %s has not ended yet", j.spec.ID, name)
		}
	}
	if s.closed {
		return site.Errorf(site.Unreachable, op, "the site is closed")
	}
	if s.table.bookings[string(name)] == nil {
		return nil
	}
	if err := s.log.write(record{Drop: string(name)}); err != nil {
		return err
	}
	s.table.drop(string(name))
	return nil
}
