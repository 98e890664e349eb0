package dst

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
	"github.com/berth-hpc/berth/site/hostlist"
	"github.com/berth-hpc/berth/site/slurm"
)

// slurmctld answers the commands of package slurm for a simulated site, as Slurm 22.05 does: what befalls the site befalls a command. Users have no
// jobs there.
type slurmctld struct{ *reach }

const slurmTime = "2006-01-02T15:04:05"

// Run answers a command.
func (c slurmctld) Run(_ context.Context, command slurm.Command) (slurm.Result, error) {
	argv := command.Argv
	words := strings.Join(argv, " ")
	op, about := "observe", strings.Join(argv[:min(len(argv), 3)], " ")
	var do func(s *fake.Site) (slurm.Result, error)
	switch name := argv[0]; {
	case name == "id":
		return slurm.Result{Stdout: "slurm\n"}, nil
	case name == "squeue":
		do = showing(func(*fake.Site, *site.State) string { return "" })
	case words == "scontrol ping":
		do = showing(func(*fake.Site, *site.State) string { return "Slurmctld(primary) at harbour is UP\n" })
	case words == "scontrol show config":
		do = showing(showConfig)
	case strings.HasPrefix(words, "scontrol show partition"):
		do = showing(showPartitions)
	case strings.HasPrefix(words, "scontrol show reservation"):
		do = showing(showReservations)
	case strings.HasSuffix(words, "show node"):
		do = showing(c.showNodes)
	case strings.HasPrefix(words, "scontrol create reservation"):
		op, do = "reserve", books("creating", argv[3:], (*fake.Site).Reserve)
	case strings.HasPrefix(words, "scontrol update ReservationName="):
		op, do = "change", books("updating", argv[2:], (*fake.Site).Change)
	case strings.HasPrefix(words, "scontrol delete"):
		op, do = "release", deletes(strings.TrimPrefix(argv[2], "ReservationName="))
	case strings.HasPrefix(words, "scontrol update NodeName="):
		op, do = "drain", c.turns(argv[2:])
	default:
		return slurm.Result{}, errors.New("slurmctld knows no command " + words)
	}
	return asked(c.reach, op, about, do)
}

// said is the answer of a command that Slurm refuses.
func said(words string) (slurm.Result, error) {
	return slurm.Result{Exit: 1, Stderr: words + "\n"}, nil
}

// failure is how a command ends that the site has not answered.
func failure(what string, err error) (slurm.Result, error) {
	switch kind := site.KindOf(err); {
	case kind == site.Unreachable && strings.Contains(err.Error(), "is down"):
		return said(what + "Unable to contact slurm controller (connect failure)")
	case kind == site.Unreachable:
		return slurm.Result{}, context.DeadlineExceeded
	case kind == site.NotFound:
		return said(what + "Requested reservation is invalid")
	case kind == site.Conflict:
		return said(what + "Requested reservation is in use")
	}
	return said(what + "Requested nodes are busy")
}

// showing is a command that only reads.
func showing(text func(s *fake.Site, state *site.State) string) func(s *fake.Site) (slurm.Result, error) {
	return func(s *fake.Site) (slurm.Result, error) {
		state, err := s.Observe(context.Background())
		if err != nil {
			return failure("", err)
		}
		return slurm.Result{Stdout: text(s, state)}, nil
	}
}

func slurmAt(t berth.Time) string { return time.Unix(int64(t), 0).UTC().Format(slurmTime) }

func showConfig(s *fake.Site, state *site.State) string {
	return fmt.Sprintf("Configuration data as of %s\nBOOT_TIME = %s\nClusterName = pier\nSLURM_VERSION = 22.05.8\nSlurmUser = slurm(64030)\n", slurmAt(s.Now()), slurmAt(state.Boot))
}

func showPartitions(_ *fake.Site, state *site.State) string {
	names := make([]string, len(state.Nodes))
	for i := range state.Nodes {
		names[i] = state.Nodes[i].Name
	}
	return "PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL Default=YES QoS=N/A MaxNodes=UNLIMITED MaxTime=1-00:00:00 Nodes=" + hostlist.Fold(names) + " State=UP\n"
}

func (c slurmctld) showNodes(_ *fake.Site, state *site.State) string {
	var text strings.Builder
	for i := range state.Nodes {
		n := &state.Nodes[i]
		is := map[site.Condition]string{site.Up: "IDLE", site.Down: "DOWN", site.Drained: "IDLE+DRAIN"}[n.Condition]
		fmt.Fprintf(&text, "NodeName=%s CoresPerSocket=%d CPUAlloc=%d CPUTot=%[2]d Sockets=1 State=%[4]s ThreadsPerCore=1", n.Name, c.port.cores, n.Busy, is)
		if n.Condition != site.Up {
			fmt.Fprintf(&text, " Reason=%s [root@%s]", n.Reason, slurmAt(n.Since))
		}
		text.WriteByte('\n')
	}
	return text.String()
}

func showReservations(s *fake.Site, state *site.State) string {
	all := slices.Concat(state.Ours, state.Foreign)
	if len(all) == 0 {
		return "No reservations in the system\n"
	}
	var text strings.Builder
	for i := range all {
		b := &all[i]
		is := "INACTIVE"
		if b.Start <= s.Now() {
			is = "ACTIVE"
		}
		users := "(null)"
		if len(b.Users) > 0 {
			users = strings.Join(b.Users, ",")
		}
		fmt.Fprintf(&text, "ReservationName=%s StartTime=%s EndTime=%s Nodes=%s NodeCnt=%d CoreCnt=%d PartitionName=main Flags=SPEC_NODES Users=%s Accounts=%s State=%s\n",
			b.Name, slurmAt(b.Start), slurmAt(b.End), hostlist.Fold(site.NodesOf(b.Shares)), len(b.Shares), b.Cores, users, orNull(b.Accounts), is)
	}
	return text.String()
}

func orNull(list []string) string {
	if len(list) == 0 {
		return "(null)"
	}
	return strings.Join(list, ",")
}

// books is a command that makes or changes a reservation. What it does not name is as it was.
func books(doing string, args []string, do func(s *fake.Site, ctx context.Context, want site.Reservation) (site.Outcome, error)) func(s *fake.Site) (slurm.Result, error) {
	what := "Error " + doing + " the reservation: "
	return func(s *fake.Site) (slurm.Result, error) {
		var want site.Reservation
		for _, arg := range args {
			key, value, _ := strings.Cut(arg, "=")
			if key == "ReservationName" {
				for _, b := range s.Bookings() {
					if b.Name == value && doing == "updating" {
						want = site.Reservation{Start: b.Start, End: b.End, Users: b.Users, Accounts: b.Accounts, Shares: b.Shares}
					}
				}
				want.Name = site.Name(value)
			}
		}
		if doing == "updating" && want.End == 0 {
			return said(what + "Requested reservation is invalid")
		}
		for _, arg := range args {
			key, value, _ := strings.Cut(arg, "=")
			if why := sets(&want, key, value, s.Now()); why != "" {
				return said(what + why)
			}
		}
		outcome, err := do(s, context.Background(), want)
		switch {
		case err != nil:
			return failure(what, err)
		case outcome.Verdict == site.Made, outcome.Verdict == site.Already && doing == "updating":
			return slurm.Result{Stdout: "Reservation created: " + string(want.Name) + "\n"}, nil
		case outcome.Verdict == site.Already, outcome.Reason == berth.RefusedConflict:
			return said(what + "Duplicate reservation name")
		case outcome.Reason == berth.Expired:
			return said(what + "Invalid time specified")
		}
		return said(what + "Requested nodes are busy")
	}
}

// sets sets one field as an argument of scontrol says, and returns in Slurm's words why it cannot be.
func sets(want *site.Reservation, key, value string, now berth.Time) string {
	switch key {
	case "ReservationName":
	case "StartTime":
		if want.Start = now; value == "now" {
			return ""
		}
		at, err := time.Parse(slurmTime, value)
		if want.Start = berth.Time(at.Unix()); err != nil || want.Start < now {
			return "Invalid time specified"
		}
	case "EndTime":
		at, err := time.Parse(slurmTime, value)
		if want.End = berth.Time(at.Unix()); err != nil || want.End <= now {
			return "Invalid time specified"
		}
	case "Nodes":
		names, err := hostlist.Expand(value)
		if err != nil {
			return "Invalid node name specified"
		}
		want.Shares = nil
		for _, n := range names {
			want.Shares = append(want.Shares, site.Share{Node: n})
		}
	case "Users":
		want.Users = strings.Split(value, ",")
	case "Accounts":
		want.Accounts = strings.Split(value, ",")
	case "PartitionName":
	default:
		return "Invalid field " + key
	}
	return ""
}

// deletes is a command that takes a reservation down.
func deletes(name string) func(s *fake.Site) (slurm.Result, error) {
	const what = "Error deleting the reservation: "
	return func(s *fake.Site) (slurm.Result, error) {
		if !slices.ContainsFunc(s.Bookings(), func(b site.Booking) bool { return b.Name == name }) {
			return said(what + "Requested reservation is invalid")
		}
		if err := s.Release(context.Background(), site.Name(name)); err != nil {
			return failure(what, err)
		}
		return slurm.Result{}, nil
	}
}

// turns is a command that takes a node out of use or puts it back.
func (c slurmctld) turns(args []string) func(s *fake.Site) (slurm.Result, error) {
	node := strings.TrimPrefix(args[0], "NodeName=")
	return func(s *fake.Site) (slurm.Result, error) {
		if !slices.Contains(c.port.nodes, node) {
			return said("slurm_update error: Invalid node name specified")
		}
		var err error
		if args[1] == "State=RESUME" {
			err = s.Resume(context.Background(), node)
		} else {
			err = s.Drain(context.Background(), node, strings.TrimPrefix(args[2], "Reason="))
		}
		if err != nil {
			return failure("slurm_update error: ", err)
		}
		return slurm.Result{}, nil
	}
}
