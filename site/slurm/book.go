package slurm

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/hostlist"
)

// Reserve makes the reservation, looks at what Slurm made of it, and takes it
// down again if that is not what was asked for. Slurm 22.05 sometimes gives
// fewer nodes than it was asked for, and gives whole nodes of which another
// reservation holds cores at that time. The same goes for a reservation of which
// a later generation is there.
func (s *Site) Reserve(ctx context.Context, want site.Reservation) (site.Outcome, error) {
	const op = "reserve"
	if err := s.check(op, &want); err != nil {
		return site.Outcome{}, err
	}
	if want.End <= s.unix() {
		return site.Outcome{Verdict: site.Refused, Reason: berth.Expired, Words: "its end has passed"}, nil
	}
	s.books.Lock()
	defer s.books.Unlock()
	result, err := s.run(ctx, op, "scontrol", s.createArgs(&want)...)
	if err == nil && strings.Contains(firstLine(result), "Invalid time specified") && want.Start <= s.unix()+1 {
		// Its start passed while the command was on its way.
		result, err = s.run(ctx, op, "scontrol", s.createArgs(&want)...)
	}
	if err == nil && result.Exit != 0 {
		err = explain(op, "scontrol", firstLine(result))
	}
	if err != nil && !unfinished(err) && site.KindOf(err) != site.Conflict {
		return site.Outcome{}, s.explainUser(ctx, err)
	}
	if err != nil && unfinished(err) && s.down(ctx, op) {
		return site.Outcome{Verdict: site.Doubt}, err
	}
	// It was made, or refused, or nobody knows. Slurm looks for room before it
	// looks at the name, so only its list tells whether it was there before.
	bookings, listErr := s.reservations(ctx, op)
	switch {
	case listErr != nil && err != nil && !unfinished(err):
		return site.Outcome{}, listErr
	case listErr != nil:
		return site.Outcome{Verdict: site.Doubt}, listErr
	}
	have := find(bookings, string(want.Name))
	switch {
	case have == nil && err == nil:
		return site.Outcome{Verdict: site.Doubt}, site.Errorf(site.Conflict, op, "%s is not there, although Slurm said that it was made", want.Name)
	case have == nil && unfinished(err):
		return site.Outcome{Verdict: site.Doubt}, err // slurmctld may still have the question
	case have == nil:
		outcome, _ := refusal(firstLine(result))
		return outcome, nil
	case err == nil:
		return s.keep(ctx, op, &want, have, bookings)
	}
	return s.compare(op, &want, have, bookings)
}

// down reports whether no controller answers, which ping tells at once and other
// commands after 9 s.
func (s *Site) down(ctx context.Context, op string) bool {
	result, err := s.run(ctx, op, "scontrol", "ping")
	return err != nil || !strings.Contains(string(result.Stdout), " is UP")
}

func (s *Site) check(op string, want *site.Reservation) error {
	if err := want.Check(); err != nil {
		return err
	}
	if _, _, ours := want.Name.Promise(s.name); !ours {
		return notOurs(op, want.Name)
	}
	return nil
}

// keep keeps a reservation just made if it is right, and else takes it down.
func (s *Site) keep(ctx context.Context, op string, want *site.Reservation, have *site.Booking, bookings []site.Booking) (site.Outcome, error) {
	later, superseded := site.Superseded(s.name, want.Name, bookings)
	what := s.faults(want, have, bookings)
	if !superseded && what == "" {
		return site.Outcome{Verdict: site.Made, Booking: have}, nil
	}
	if err := s.delete(ctx, op, want.Name); err != nil {
		return site.Outcome{Verdict: site.Doubt}, err
	}
	if superseded {
		return site.Outcome{}, site.Errorf(site.Conflict, op, "%s was superseded by %s", want.Name, later)
	}
	return site.Outcome{Verdict: site.Refused, Reason: berth.NoCapacity, Words: what}, nil
}

// compare answers for a reservation that was there before.
func (s *Site) compare(op string, want *site.Reservation, have *site.Booking, bookings []site.Booking) (site.Outcome, error) {
	if later, superseded := site.Superseded(s.name, want.Name, bookings); superseded {
		return site.Outcome{}, site.Errorf(site.Conflict, op, "%s was superseded by %s", want.Name, later)
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

// explainUser tells apart the two cases in which Slurm speaks of an invalid user
// id: that Berth has no right, and that the reservation is for a user whom
// slurmctld does not know.
func (s *Site) explainUser(ctx context.Context, err error) error {
	var e *site.Error
	if !errors.As(err, &e) || e.Kind != site.Denied {
		return err
	}
	if rights, asked := s.rights(ctx); asked == nil && rights.Reserve {
		return &site.Error{Kind: site.Invalid, Op: e.Op, Msg: e.Msg, Hint: "slurmctld knows no such user; Berth itself has the right"}
	}
	return &site.Error{Kind: site.Denied, Op: e.Op, Msg: e.Msg, Hint: "make Berth's user SlurmUser or an operator"}
}

func notOurs(op string, name site.Name) error {
	return site.Errorf(site.Denied, op, "%s is not a reservation of ours", name)
}

func find(bookings []site.Booking, name string) *site.Booking {
	for i := range bookings {
		if bookings[i].Name == name {
			return &bookings[i]
		}
	}
	return nil
}

// createArgs are the arguments of scontrol. Everything in them was checked.
func (s *Site) createArgs(want *site.Reservation) []string {
	args := []string{"create", "reservation", "ReservationName=" + string(want.Name), "StartTime=" + s.startText(want), "EndTime=" + formatTime(want.End)}
	args = append(args, sizeArgs(want)...)
	if want.Partition != "" {
		args = append(args, "PartitionName="+want.Partition)
	}
	if len(want.Users) > 0 {
		args = append(args, "Users="+strings.Join(want.Users, ","))
	}
	if len(want.Accounts) > 0 {
		args = append(args, "Accounts="+strings.Join(want.Accounts, ","))
	}
	return args
}

// startText is the start for scontrol, which refuses one that has passed.
func (s *Site) startText(want *site.Reservation) string {
	if want.Start <= s.unix() {
		return "now"
	}
	return formatTime(want.Start)
}

// sizeArgs says what is held. Slurm takes how many cores of each node, in the
// order of the nodes, and chooses which.
func sizeArgs(want *site.Reservation) []string {
	switch {
	case want.Nodes > 0:
		return []string{"NodeCnt=" + strconv.Itoa(int(want.Nodes))}
	case want.Cores > 0:
		return []string{"CoreCnt=" + strconv.Itoa(int(want.Cores))}
	}
	whole := true
	for _, share := range want.Shares {
		whole = whole && share.Cores.Empty()
	}
	if whole {
		return []string{"Nodes=" + hostlist.Fold(site.NodesOf(want.Shares))}
	}
	counts := make([]string, len(want.Shares))
	for i, share := range want.Shares {
		counts[i] = strconv.Itoa(int(share.Cores.Count()))
	}
	return []string{"Nodes=" + strings.Join(site.NodesOf(want.Shares), ","), "CoreCnt=" + strings.Join(counts, ",")}
}

// Change updates the reservation in one step, which Slurm does wholly or not at
// all, looks at the result as Reserve does, and changes it back if it is not
// right. Slurm changes neither the cores of a reservation of cores nor the start
// of one that has begun.
func (s *Site) Change(ctx context.Context, want site.Reservation) (site.Outcome, error) {
	const op = "change"
	if err := s.check(op, &want); err != nil {
		return site.Outcome{}, err
	}
	s.books.Lock()
	defer s.books.Unlock()
	bookings, err := s.reservations(ctx, op)
	if err != nil {
		return site.Outcome{}, err
	}
	before := find(bookings, string(want.Name))
	switch {
	case before == nil:
		return site.Outcome{}, site.Errorf(site.NotFound, op, "no reservation %s", want.Name)
	case len(want.Differences(before, s.unix())) == 0:
		return site.Outcome{Verdict: site.Already, Booking: before}, nil
	}
	result, err := s.run(ctx, op, "scontrol", s.updateArgs(&want, before)...)
	if err == nil && result.Exit != 0 {
		err = explain(op, "scontrol", firstLine(result))
	}
	switch outcome, no := refusal(firstLine(result)); {
	case err != nil && no:
		return outcome, nil
	case err != nil && !unfinished(err):
		return site.Outcome{}, s.explainUser(ctx, err)
	}
	bookings, listErr := s.reservations(ctx, op)
	if listErr != nil {
		return site.Outcome{Verdict: site.Doubt}, listErr
	}
	have := find(bookings, string(want.Name))
	switch {
	case have == nil:
		return site.Outcome{Verdict: site.Doubt}, site.Errorf(site.Conflict, op, "%s is no longer there", want.Name)
	case err != nil && len(want.Differences(have, s.unix())) > 0:
		return site.Outcome{Verdict: site.Doubt}, err
	}
	what := s.faults(&want, have, bookings)
	if what == "" {
		return site.Outcome{Verdict: site.Made, Booking: have}, nil
	}
	if result, err = s.run(ctx, op, "scontrol", s.updateArgs(asWanted(before), have)...); err != nil || result.Exit != 0 {
		return site.Outcome{Verdict: site.Doubt}, site.Errorf(site.Conflict, op, "%s, and it cannot be changed back", what)
	}
	return site.Outcome{Verdict: site.Refused, Reason: berth.NoCapacity, Words: what}, nil
}

// asWanted is a reservation that wants what is there.
func asWanted(b *site.Booking) *site.Reservation {
	want := &site.Reservation{
		Name: site.Name(b.Name), Start: b.Start, End: b.End, Partition: b.Partition, Users: b.Users, Accounts: b.Accounts, Shares: b.Shares,
	}
	return want
}

// updateArgs names only what differs: Slurm refuses some fields even unchanged.
func (s *Site) updateArgs(want *site.Reservation, have *site.Booking) []string {
	args := []string{"update", "ReservationName=" + string(want.Name)}
	trial := *have
	differs := func(set func()) bool {
		before := len(want.Differences(&trial, s.unix()))
		set()
		return len(want.Differences(&trial, s.unix())) < before
	}
	if differs(func() { trial.Start = want.Start }) {
		args = append(args, "StartTime="+s.startText(want))
	}
	if have.End != want.End {
		args = append(args, "EndTime="+formatTime(want.End))
	}
	if differs(func() { trial.Shares, trial.Cores = sized(want) }) {
		args = append(args, sizeArgs(want)...)
	}
	if differs(func() { trial.Partition = want.Partition }) {
		args = append(args, "PartitionName="+want.Partition)
	}
	if differs(func() { trial.Users = want.Users }) {
		args = append(args, "Users="+strings.Join(want.Users, ","))
	}
	if differs(func() { trial.Accounts = want.Accounts }) {
		args = append(args, "Accounts="+strings.Join(want.Accounts, ","))
	}
	return args
}

// sized is a booking's size as wanted.
func sized(want *site.Reservation) ([]site.Share, berth.Count) {
	if want.Nodes > 0 {
		return make([]site.Share, want.Nodes), 0
	}
	return want.Shares, want.Cores
}

// Release cancels the jobs in the reservation and deletes it. While they come to
// their end Slurm keeps it in use; it is tried again until the time of one
// command is over.
func (s *Site) Release(ctx context.Context, name site.Name) error {
	const op = "release"
	if _, _, ours := name.Promise(s.name); !ours {
		return notOurs(op, name)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	const first, most = 50 * time.Millisecond, time.Second
	for wait := first; ; wait = min(2*wait, most) {
		err := s.delete(ctx, op, name)
		if site.KindOf(err) != site.Conflict {
			return err
		}
		if err := s.cancelAll(ctx, name); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// delete takes a reservation down that nothing uses.
func (s *Site) delete(ctx context.Context, op string, name site.Name) error {
	result, err := s.run(ctx, op, "scontrol", "delete", "ReservationName="+string(name))
	if err != nil || result.Exit == 0 {
		return err
	}
	err = explain(op, "scontrol", firstLine(result))
	if site.KindOf(err) == site.NotFound {
		return nil
	}
	return err
}

// cancelAll cancels the jobs of a reservation, running or not.
func (s *Site) cancelAll(ctx context.Context, name site.Name) error {
	out, err := s.read(ctx, "release", "squeue", "--noheader", "--reservation="+string(name), "--format=%A")
	if err != nil {
		return err
	}
	ids := strings.Fields(string(out))
	for _, id := range ids {
		if _, err := strconv.ParseUint(id, 10, 63); err != nil {
			return odd("release", "squeue", err)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	// It complains of jobs that ended meanwhile, which is as well.
	_, err = s.run(ctx, "release", "scancel", ids...)
	return err
}
