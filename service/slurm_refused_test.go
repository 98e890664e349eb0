package service_test

import (
	"context"
	"os"
	"os/user"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// What Slurm refuses for good fails at once, whatever it is for: its PEs are free, and why is
// told to those who listen, where it is shown, and in its history. What Slurm has already
// stays.
func TestWhatSlurmRefusesForGoodFails(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can ask Slurm as another user, who has no right there")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{Partitions: `
PartitionName=main Nodes=ALL MaxTime=1-00:00:00 Default=YES State=UP
PartitionName=old Nodes=n[1-2] MaxTime=1-00:00:00 State=UP`}), site.UnitNode, false)
	l.looked()
	rejected := l.listen(string(change.Rejected))

	l.promise(berth.Requirements{}, "stranger", "nobody-here", 300, 4)
	l.fails("stranger", "slurmctld knows no such user", rejected)
	l.promise(berth.Requirements{}, "next", "root", 300, 4) // in the place that it had

	far := berth.Requirements{Partition: "old"}
	l.promise(far, "renamed", "root", 3*horizon, 1)
	l.administer("delete", "PartitionName=old")
	if _, err := l.host.Prepare(t.Context(), l.by, "renamed"); err == nil {
		t.Error("a reservation was made in a partition that is gone")
	}
	l.fails("renamed", "nvalid partition", rejected)

	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	adapter := l.manager.Adapter
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.ParseUint(nobody.Uid, 10, 32)
	gid, _ := strconv.ParseUint(nobody.Gid, 10, 32)
	l.manager.Adapter = slurm.New(slurm.Options{Site: "lab", Conf: l.cluster.Conf, Exec: slurm.Host{As: &slurm.Credential{Uid: uint32(uid), Gid: uint32(gid)}}})
	l.open()
	l.looked()
	rejected = l.listen(string(change.Rejected))
	l.promise(berth.Requirements{}, "powerless", "root", 400, 1)
	l.fails("powerless", "make Berth's user SlurmUser or an operator", rejected)
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.manager.Adapter = adapter
	l.open()
	l.made("next") // what the site has stays through all that
}

// promise asks for nodes for a user from a time from now on.
func (l *lab) promise(needs berth.Requirements, id, user string, in berth.Duration, npe berth.Count) {
	l.t.Helper()
	start := l.host.Now().Add(in)
	r := berth.Rigid(id, 0, start, start.Add(60), npe, 60)
	r.User, r.Requirements = user, needs
	if a := submit(l.t, l.host, l.by, r); !isPromised(a.Reservation) {
		l.t.Fatalf("%s is %+v", id, a.Reservation)
	}
}

// fails waits until a promise has failed, and looks at how that is told.
func (l *lab) fails(id, words string, told <-chan service.Notice) {
	l.t.Helper()
	l.until(id+" has failed", func() bool { return l.get(id).State == service.Failed })
	r := l.get(id)
	if no := r.Refusal; no == nil || no.Reason != berth.SiteRefused || !strings.Contains(no.Words, words) {
		l.t.Errorf("%s has failed for %+v, want %q", id, no, words)
	}
	if n := <-told; n.Reservation.ID != id || n.Reservation.Refusal == nil {
		l.t.Errorf("told is %+v, want %s", n, id)
	}
	past, _, err := l.host.History(l.t.Context(), l.by.By, id)
	if err != nil || len(past.List) == 0 {
		l.t.Fatal(past, err)
	}
	if last := past.List[len(past.List)-1]; last.What != change.Rejected || last.Refusal == nil || !strings.Contains(last.Refusal.Words, words) {
		l.t.Errorf("the last that is known of %s is %+v", id, last)
	}
}

// listen returns the notices of a kind from now on.
func (l *lab) listen(what string) <-chan service.Notice {
	l.t.Helper()
	told := make(chan service.Notice, 100)
	ctx, cancel := context.WithCancel(l.t.Context())
	l.t.Cleanup(cancel)
	events := l.host.Listen(ctx, l.by.By, 0)
	go func() {
		for n, err := range events {
			if err != nil {
				return
			}
			if n.What == what {
				told <- n
			}
		}
	}()
	return told
}
