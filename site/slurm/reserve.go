package slurm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Reserve makes the reservation, looks at what Slurm made of it, and takes it
// down again if that is not what was asked for. Slurm 22.05 sometimes gives
// fewer nodes than it was asked for, and gives whole nodes with cores that another
// reservation holds at that time. The same goes for a reservation if
// a later generation of it is there.
func (s *Site) Reserve(ctx context.Context, want site.Reservation) (site.Outcome, error) {
	a := s.ReserveMany(ctx, []site.Reservation{want})[0]
	return a.Outcome, a.Err
}

// ReserveMany makes those at the same time that have nothing to do with each
// other, and looks once at what Slurm made of them. These are whole nodes by
// name: Slurm looks whether they are free and books them in one step, and which
// they are it does not choose. All else is made and looked at alone.
func (s *Site) ReserveMany(ctx context.Context, want []site.Reservation) []site.Answer {
	s.books.Lock()
	defer s.books.Unlock()
	answers := make([]site.Answer, 0, len(want))
	for silent := 0; len(answers) < len(want); {
		rest := want[len(answers):]
		attempts := make([]attempt, s.apart(rest))
		for i := range attempts {
			attempts[i].want = &rest[i]
		}
		s.tryAll(ctx, attempts, silent)
		s.judgeAll(ctx, attempts)
		for i := range attempts {
			answers = append(answers, attempts[i].answer)
			if site.KindOf(attempts[i].answer.Err) == site.Unreachable {
				silent++
			}
		}
	}
	return answers
}

const opReserve = "reserve"

// atOnce is how many commands make reservations at a time. slurmctld takes one of
// them at a time; the rest of a command, which is most of it, is done beside that.
const atOnce = 4

// apart returns how many of the first reservations can be made at the same time
// with the same end as one after the other, and at least 1. Of one node they have
// to be in the order of time, so that the latest end is all that is known of it.
func (s *Site) apart(want []site.Reservation) int {
	promises := map[string]bool{}
	ends := map[string]berth.Time{}
	for i := range want {
		w := &want[i]
		promise, _, _ := w.Name.Promise(s.name)
		alone := len(w.Shares) == 0 || promises[promise]
		for _, share := range w.Shares {
			end, before := ends[share.Node]
			alone = alone || !share.Cores.Empty() || before && w.Start < end
		}
		if alone {
			return max(1, i)
		}
		promises[promise] = true
		for _, share := range w.Shares {
			ends[share.Node] = w.End
		}
	}
	return len(want)
}

// attempt is one reservation on its way.
type attempt struct {
	want   *site.Reservation
	said   string // what scontrol said first
	err    error  // of that, or of scontrol itself
	open   bool   // only Slurm's list tells the answer
	answer site.Answer
}

// tryAll tries all, at most atOnce at a time, until Slurm has left site.Patience
// without an answer, those included that it has left so before. A panic is raised here,
// with a *site.Panic, when all hands have stopped.
func (s *Site) tryAll(ctx context.Context, attempts []attempt, before int) {
	var hands sync.WaitGroup
	var next, silent atomic.Int64
	var panicked atomic.Pointer[site.Panic]
	silent.Store(int64(before))
	for range min(atOnce, len(attempts)) {
		hand := func() {
			for i := int(next.Add(1)) - 1; i < len(attempts); i = int(next.Add(1)) - 1 {
				a := &attempts[i]
				if silent.Load() >= site.Patience {
					a.answer.Err = site.ErrNotTried
					continue
				}
				if s.try(ctx, a); site.KindOf(a.err) == site.Unreachable {
					silent.Add(1)
				}
			}
		}
		hands.Go(func() {
			if p := site.Caught(hand); p != nil {
				panicked.Store(p)
			}
		})
	}
	hands.Wait()
	if p := panicked.Load(); p != nil {
		panic(p)
	}
}

// try asks Slurm to make a reservation.
func (s *Site) try(ctx context.Context, a *attempt) {
	if a.answer.Err = s.check(opReserve, a.want); a.answer.Err != nil {
		return
	}
	if a.want.End <= s.unix() {
		a.answer.Outcome = site.Outcome{Verdict: site.Refused, Reason: berth.Expired, Words: "its end has passed"}
		return
	}
	result, err := s.run(ctx, opReserve, "scontrol", s.createArgs(a.want)...)
	if err == nil && strings.Contains(firstLine(result), "array for CoreCnt is no longer valid") {
		s.sums.Store(true)
		result, err = s.run(ctx, opReserve, "scontrol", s.createArgs(a.want)...)
	}
	if err == nil && strings.Contains(firstLine(result), "Invalid time specified") && a.want.Start <= s.theirs()+1 {
		// Its start passed while the command was on its way.
		begun := *a.want
		begun.Start = 0
		result, err = s.run(ctx, opReserve, "scontrol", s.createArgs(&begun)...)
	}
	a.said = firstLine(result)
	if err == nil && result.Exit != 0 {
		err = explain(opReserve, "scontrol", a.said)
	}
	a.err = err
	if err != nil && !unfinished(err) && strings.Contains(a.said, unspecified) {
		a.answer.Err = s.explainUnspecified(ctx, a.want, err)
		return
	}
	switch {
	case err != nil && !unfinished(err) && site.KindOf(err) != site.Conflict:
		a.answer.Err = s.explainUser(ctx, err)
	case err != nil && unfinished(err) && s.down(ctx, opReserve):
		a.answer = site.Answer{Outcome: site.Outcome{Verdict: site.Doubt}, Err: err}
	default:
		a.open = true
	}
}

// down reports whether no controller answers, which ping tells at once and other
// commands after 9 s.
func (s *Site) down(ctx context.Context, op string) bool {
	result, err := s.run(ctx, op, "scontrol", "ping")
	return err != nil || !strings.Contains(result.Stdout, " is UP")
}

// judgeAll looks at what became of the attempts that are open: they were made, or
// refused, or it is unknown. Slurm looks for room before it looks at the name, so
// only its list tells whether one was there before.
func (s *Site) judgeAll(ctx context.Context, attempts []attempt) {
	if !slices.ContainsFunc(attempts, func(a attempt) bool { return a.open }) {
		return
	}
	bookings, err := s.reservations(ctx, opReserve)
	there := make(map[string]*site.Booking, len(bookings))
	for i := range bookings {
		there[bookings[i].Name] = &bookings[i]
	}
	for i := range attempts {
		switch a := &attempts[i]; {
		case !a.open:
		case err != nil:
			a.unseen(err)
		default:
			a.answer.Outcome, a.answer.Err = s.judge(ctx, a, there[string(a.want.Name)], bookings)
		}
	}
}

// unseen answers for an attempt if Slurm's list cannot be had.
func (a *attempt) unseen(err error) {
	a.answer.Err = err
	if a.err == nil || unfinished(a.err) {
		a.answer.Outcome.Verdict = site.Doubt
	}
}

// judge answers for an attempt.
func (s *Site) judge(ctx context.Context, a *attempt, have *site.Booking, bookings []site.Booking) (site.Outcome, error) {
	switch {
	case have == nil && a.err == nil:
		return site.Outcome{Verdict: site.Doubt}, site.Errorf(site.Conflict, opReserve, "%s is not there, although Slurm said that it was made", a.want.Name)
	case have == nil && unfinished(a.err):
		return site.Outcome{Verdict: site.Doubt}, a.err // slurmctld may still have the question
	case have == nil:
		outcome, _ := refusal(a.said)
		return outcome, nil
	case a.err == nil:
		return s.keep(ctx, a.want, have, bookings)
	}
	return s.compare(a.want, have, bookings)
}

// keep keeps a reservation just made if it is right, and else takes it down.
func (s *Site) keep(ctx context.Context, want *site.Reservation, have *site.Booking, bookings []site.Booking) (site.Outcome, error) {
	later, superseded := site.Superseded(s.name, want.Name, bookings)
	what := s.faults(want, have, bookings)
	if !superseded && what == "" {
		return site.Outcome{Verdict: site.Made, Booking: have}, nil
	}
	if _, err := s.delete(ctx, opReserve, want.Name); err != nil {
		return site.Outcome{Verdict: site.Doubt}, err
	}
	if superseded {
		return site.Outcome{}, site.Errorf(site.Conflict, opReserve, "%s was superseded by %s", want.Name, later)
	}
	return site.Outcome{Verdict: site.Refused, Reason: berth.NoCapacity, Words: what}, nil
}

// compare answers for a reservation that was there before.
func (s *Site) compare(want *site.Reservation, have *site.Booking, bookings []site.Booking) (site.Outcome, error) {
	if later, superseded := site.Superseded(s.name, want.Name, bookings); superseded {
		return site.Outcome{}, site.Errorf(site.Conflict, opReserve, "%s was superseded by %s", want.Name, later)
	}
	if what := want.Differences(have, s.unix()); len(what) > 0 {
		return site.Outcome{Verdict: site.Refused, Reason: berth.RefusedConflict, Words: "the name is taken: " + strings.Join(what, "; ")}, nil
	}
	return site.Outcome{Verdict: site.Already, Booking: have}, nil
}

// faults says what Slurm did otherwise than asked.
func (s *Site) faults(want *site.Reservation, have *site.Booking, bookings []site.Booking) string {
	// The controller's clock, by which "now" became a start, may be ahead.
	if what := want.Differences(have, max(s.unix(), have.Start)); len(what) > 0 {
		return "Slurm made it otherwise: " + strings.Join(what, "; ")
	}
	if other, overlaps := site.Overlap(have, bookings); overlaps {
		return "Slurm gave what " + other.Name + " holds already"
	}
	return ""
}

// unspecified is what Slurm 26 says of a user whom slurmctld does not know, and of who knows
// what else.
const unspecified = "Unspecified error"

// explainUnspecified finds out whether users or accounts are what Slurm refuses without a
// word: it looks at them before it looks for nodes, so that with nodes that cannot exist it
// says the same again.
func (s *Site) explainUnspecified(ctx context.Context, want *site.Reservation, err error) error {
	probe := *want
	probe.Shares, probe.Nodes, probe.Cores = []site.Share{{Node: newProbe()}}, 0, 0
	result, failed := s.run(ctx, opReserve, "scontrol", s.createArgs(&probe)...)
	if failed != nil || result.Exit == 0 || !strings.Contains(firstLine(result), unspecified) {
		return err
	}
	return &site.Error{
		Kind: site.Invalid, Op: opReserve, Final: true, Msg: "Slurm will not have a reservation for " + strings.Join(append(slices.Clone(want.Users), want.Accounts...), ", ") + ": " + unspecified,
		Hint: "slurmctld knows no such user, or the accounting database no such association",
	}
}

// explainUser tells apart the two cases in which Slurm speaks of an invalid user
// id: that Berth has no right, and that the reservation is for a user whom
// slurmctld does not know.
func (s *Site) explainUser(ctx context.Context, err error) error {
	var e *site.Error
	if !errors.As(err, &e) || e.Kind != site.Denied {
		return err
	}
	rights, asked := s.rights(ctx)
	if asked != nil {
		return &site.Error{Kind: e.Kind, Op: e.Op, Msg: e.Msg, Hint: e.Hint} // what is meant is not known, so it is not final
	}
	if rights.Reserve {
		return &site.Error{Kind: site.Invalid, Op: e.Op, Msg: e.Msg, Hint: "slurmctld knows no such user; Berth itself has the right", Final: e.Final}
	}
	return &site.Error{Kind: site.Denied, Op: e.Op, Msg: e.Msg, Hint: "make Berth's user SlurmUser or an operator", Final: e.Final}
}
