package slurm

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/hostlist"
)

func (s *Site) check(op string, want *site.Reservation) error {
	if err := want.Check(); err != nil {
		return err
	}
	if _, _, ours := want.Name.Promise(s.name); !ours {
		return notOurs(op, want.Name)
	}
	return nil
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
	args = append(args, s.sizeArgs(want)...)
	if want.Partition != "" {
		args = append(args, "PartitionName="+want.Partition)
	}
	if len(want.Users) > 0 {
		args = append(args, "Users="+strings.Join(want.Users, ","))
	}
	if len(want.Accounts) > 0 {
		args = append(args, "Accounts="+strings.Join(want.Accounts, ","))
	}
	if len(want.Groups) > 0 {
		args = append(args, "Groups="+strings.Join(want.Groups, ","))
	}
	if len(want.Licences) > 0 {
		args = append(args, licencesArg(want.Licences))
	}
	return args
}

func licencesArg(licences []site.Licence) string {
	texts := make([]string, len(licences))
	for i := range licences {
		texts[i] = licences[i].String()
	}
	return "Licenses=" + strings.Join(texts, ",")
}

// startText is the start for scontrol, which refuses one that has passed by slurmctld's clock.
func (s *Site) startText(want *site.Reservation) string {
	if want.Start <= s.theirs() {
		return "now"
	}
	return formatTime(want.Start)
}

// sizeArgs says what is held. Slurm takes how many cores of each node, in the
// order of the nodes, and chooses which; a whole node beside a part of another one
// counts with all that it has. Newer ones than 22.05 take how many they are on all nodes
// together, and choose how many of each.
func (s *Site) sizeArgs(want *site.Reservation) []string {
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
	s.coresMu.Lock()
	defer s.coresMu.Unlock()
	counts := make([]string, len(want.Shares))
	var sum berth.Count
	for i, share := range want.Shares {
		n := share.Cores.Count()
		if share.Cores.Empty() {
			n = s.cores[share.Node]
		}
		counts[i] = strconv.Itoa(int(n))
		sum += n
	}
	if s.sums.Load() {
		counts = []string{strconv.Itoa(int(sum))}
	}
	return []string{"Nodes=" + strings.Join(site.NodesOf(want.Shares), ","), "CoreCnt=" + strings.Join(counts, ",")}
}

// Change updates the reservation in one step, which Slurm does wholly or not at
// all, looks at the result as Reserve does, and changes it back if it is not
// right. Slurm changes neither the cores of a reservation of cores nor the start
// of one that has begun. If a reservation that has begun ends later, so do the jobs that
// were to last to its end.
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
		made := site.Outcome{Verdict: site.Made, Booking: have}
		if want.End > before.End && before.Active {
			return made, s.extendJobs(ctx, op, want.Name, before.End, want.End)
		}
		return made, nil
	}
	if result, err = s.run(ctx, op, "scontrol", s.updateArgs(asWanted(before), have)...); err != nil || result.Exit != 0 {
		return site.Outcome{Verdict: site.Doubt}, site.Errorf(site.Conflict, op, "%s, and it cannot be changed back", what)
	}
	return site.Outcome{Verdict: site.Refused, Reason: berth.NoCapacity, Words: what}, nil
}

// asWanted is a reservation that wants what is there.
func asWanted(b *site.Booking) *site.Reservation {
	want := &site.Reservation{
		Name: site.Name(b.Name), Start: b.Start, End: b.End, Partition: b.Partition, Users: b.Users, Accounts: b.Accounts, Groups: b.Groups, Shares: b.Shares, Licences: b.Licences,
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
		args = append(args, s.sizeArgs(want)...)
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
	if differs(func() { trial.Groups = want.Groups }) {
		args = append(args, "Groups="+strings.Join(want.Groups, ","))
	}
	if differs(func() { trial.Licences = want.Licences }) {
		args = append(args, licencesArg(want.Licences))
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
		gone, err := s.delete(ctx, op, name)
		if gone { // Slurm itself has taken it down, perhaps with jobs in it
			ids, err := s.leftBy(ctx, op, name)
			if err != nil {
				return err
			}
			waits, err := s.jobsIn(ctx, op, name, "--states=PENDING") // if it has forgotten the reservation
			if err != nil {
				return err
			}
			return s.cancelJobs(ctx, append(ids, waits...))
		}
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

// delete takes a reservation down that nothing uses. That it is gone already is no error.
func (s *Site) delete(ctx context.Context, op string, name site.Name) (gone bool, err error) {
	result, err := s.run(ctx, op, "scontrol", "delete", "ReservationName="+string(name))
	if err != nil || result.Exit == 0 {
		return false, err
	}
	err = explain(op, "scontrol", firstLine(result))
	if site.KindOf(err) == site.NotFound {
		return true, nil
	}
	return false, err
}

// cancelAll cancels the jobs of a reservation, running or not.
func (s *Site) cancelAll(ctx context.Context, name site.Name) error {
	ids, err := s.jobsIn(ctx, "release", name)
	if err != nil {
		return err
	}
	return s.cancelJobs(ctx, ids)
}

func (s *Site) cancelJobs(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	// It complains of jobs that ended meanwhile, which is as well.
	_, err := s.run(ctx, "release", "scancel", ids...)
	return err
}
