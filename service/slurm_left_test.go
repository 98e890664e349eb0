package service_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// stubborn is a cluster that at first moves no job from one reservation to another.
type stubborn struct {
	*slurm.Site
	yields atomic.Bool
}

const leftWords = "job 1 waits in a reservation and cannot be moved"

func (s *stubborn) Carry(ctx context.Context, from, to site.Name) error {
	if !s.yields.Load() {
		return &site.Error{Kind: site.Conflict, Op: "carry", Msg: leftWords, Hint: "its owner can"}
	}
	return s.Site.Carry(ctx, from, to)
}

// A job that cannot be carried to where its promise is by now stays in the queue. Its owner
// is told once, by an event, and as long as it is so where the promise is shown; the
// promise itself is there.
func TestJobThatCannotBeCarriedIsTold(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{}), site.UnitCore, false)
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	at := &stubborn{Site: l.manager.Adapter.(*slurm.Site)}
	l.manager.Adapter = at
	l.open()
	l.reserve("a", 3, 400, 60)
	job := l.sbatch("a")
	before := l.made("a")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := make(chan service.Notice, 100)
	events := l.host.Listen(ctx, l.by.By, 0)
	go func() {
		for n, err := range events {
			if err != nil {
				return
			}
			if n.What == service.TaskLeft {
				told <- n
			}
		}
	}()
	l.move("a", 4, l.host.Now(), 300, 120)
	l.until("its owner is told", func() bool { return len(told) > 0 })
	if n := <-told; n.Reservation.ID != "a" || !strings.Contains(n.Trouble, leftWords) || !strings.Contains(n.Trouble, "its owner can") {
		t.Errorf("%+v", n)
	}
	l.until("it shows", func() bool { return strings.Contains(l.get("a").Sites[0].Trouble, leftWords) })
	if r := l.get("a"); !r.Sites[0].Made || string(r.Sites[0].Name) == before {
		t.Errorf("%+v, want the new reservation there", r.Sites)
	}
	l.looked()
	l.looked()
	if shown := l.shown("job", job); !strings.Contains(shown, "JobState=PENDING") || !strings.Contains(shown, "Reservation="+before+" ") {
		t.Errorf("want it waiting in the old one: %s", shown)
	}
	if len(told) != 0 {
		t.Errorf("told again: %+v", <-told)
	}
	at.yields.Store(true)
	l.waits("a", job)
	l.until("nothing is wrong", func() bool { return l.get("a").Sites[0].Trouble == "" })
}
