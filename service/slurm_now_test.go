package service_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// What starts at once is told when Slurm has made it, not by the last look at the cluster: if
// Slurm has started a job on the nodes since then, it is placed anew within its window, else
// refused with what Slurm says. History has when it was there.
func TestWhatStartsAtOnceIsAskedOfSlurm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{}), site.UnitNode, false)
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.manager.Every = 20 * time.Second // so that the jobs are not seen
	l.open()
	l.until("it is looked at", func() bool {
		views, err := l.host.Sites(t.Context(), l.by.By)
		return err == nil && views[0].Reachable
	})
	now := func(id string, npe berth.Count, length, slack berth.Duration) service.Reservation {
		t.Helper()
		from := l.host.Now()
		r := berth.Rigid(id, 0, from, from.Add(length+slack), npe, length)
		return submit(t, l.host, l.by, r).Reservation
	}
	runs := func() {
		t.Helper()
		job := string(l.batch("sleep 1000", "-N1", "--exclusive", "-t2"))
		l.until("a job runs", func() bool { return strings.Contains(l.shown("job", job), "JobState=RUNNING") })
	}
	runs()
	if no := now("never", 4, 60, 0); no.State != service.Failed || no.Refusal == nil || no.Refusal.Reason != berth.NoCapacity || !strings.Contains(no.Refusal.Words, "Requested nodes are busy") {
		t.Errorf("what has no room is %+v, %+v", no, no.Refusal)
	}
	runs()
	beside := now("beside", 2, 10, 600)
	if !isPromised(beside) || strings.Join(l.get("beside").Nodes[0], ",") != "n3,n4" {
		t.Errorf("beside the jobs is %+v", beside)
	}
	if all := l.shown("reservation"); !strings.Contains(all, string(l.get("beside").Sites[0].Name)) {
		t.Errorf("what was promised is not there:\n%s", all)
	}
	from := l.host.Now()
	if after := now("after", 3, 60, 3600); after.State != service.Confirmed || after.Allotments[0].Start < from+60 {
		t.Errorf("what needs the nodes of the jobs is %+v at %d", after, from)
	}
	l.until("its time is over", func() bool { return l.get("beside").State == service.Finished })
	past, _, err := l.host.History(t.Context(), l.by.By, "beside")
	if d := past.Delivered; err != nil || d == nil || d.NPE != 2 || d.Made == 0 || d.Whole != d.Made || d.Made > d.Start+5 || d.Short != 2*int64(d.Made-d.Start) {
		t.Errorf("delivered: %+v, %v", d, err)
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// grudging is a cluster that has no room on a node, for no reason that shows. One that is slow says so
// when what it is asked for should have begun.
type grudging struct {
	*slurm.Site
	node string
	slow bool
}

func (s *grudging) Reserve(ctx context.Context, want site.Reservation) (site.Outcome, error) {
	if slices.Contains(site.NodesOf(want.Shares), s.node) {
		if s.slow {
			select {
			case <-time.After(time.Until(time.Unix(int64(want.Start)+1, 0))):
			case <-ctx.Done():
			}
		}
		return site.Outcome{Verdict: site.Refused, Reason: berth.NoCapacity, Words: "Requested nodes are busy"}, nil
	}
	return s.Site.Reserve(ctx, want)
}

func (s *grudging) ReserveMany(ctx context.Context, want []site.Reservation) []site.Answer {
	answers := make([]site.Answer, len(want))
	for i := range want {
		answers[i].Outcome, answers[i].Err = s.Reserve(ctx, want[i])
	}
	return answers
}

// What starts at once and is refused on nodes that look free gets others, whether requests are
// decided one by one or together; if there are none it is refused.
func TestWhatStartsAtOnceAvoidsNodesThatAreRefused(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{Nodes: 2}), site.UnitNode, false)
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.manager.Adapter = &grudging{Site: l.manager.Adapter.(*slurm.Site), node: "n1"}
	for _, trigger := range []engine.Trigger{engine.TriggerOnArrival, engine.TriggerOnInstant} {
		l.trigger = trigger
		l.open()
		l.looked()
		from := l.host.Now()
		ids := []string{"one-" + string(trigger), "both-" + string(trigger)}
		r := submit(t, l.host, l.by, berth.Rigid(ids[0], 0, from, from+600, 1, 300)).Reservation
		if !isPromised(r) || strings.Join(l.get(ids[0]).Nodes[0], ",") != "n2" || !l.get(ids[0]).Sites[0].Made {
			t.Errorf("%s: it is %+v", trigger, l.get(ids[0]))
		}
		if _, err := l.host.Release(t.Context(), l.by, ids[0]); err != nil {
			t.Fatal(err)
		}
		from = l.host.Now()
		r = submit(t, l.host, l.by, berth.Rigid(ids[1], 0, from, from+100, 2, 60)).Reservation
		if r.State != service.Failed || r.Refusal.Reason != berth.NoCapacity || !strings.Contains(r.Refusal.Words, "busy") {
			t.Errorf("%s: what needs the node is %+v, %+v", trigger, r, r.Refusal)
		}
		if err := errors.Join(l.host.Check(t.Context()), l.host.Close()); err != nil {
			t.Fatal(err)
		}
	}
	l.open()
}

// While Slurm does not answer, what starts at once is answered as pending after a while, and
// is promised when Slurm has made it.
func TestWhatStartsAtOnceIsPendingWhileSlurmIsSilent(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLab(t, false)
	l.looked()
	told := l.listen(string(change.Accepted))
	l.cluster.KillController()
	from := l.host.Now()
	began := time.Now()
	a := submit(t, l.host, l.by, berth.Rigid("now", 0, from, from+600, 2, 100))
	if took := time.Since(began); a.Reservation.State != service.Pending || len(a.Reservation.Allotments) > 0 || took > 25*time.Second {
		t.Errorf("after %s it is %+v", took, a.Reservation)
	}
	if r := l.get("now"); r.State != service.Pending {
		t.Errorf("it is shown as %s", r.State)
	}
	select {
	case n := <-told:
		t.Errorf("told is %+v", n)
	default:
	}
	l.cluster.StartController()
	l.until("it is promised", func() bool { return l.get("now").State == service.Active })
	if all := l.shown("reservation"); !strings.Contains(all, string(l.get("now").Sites[0].Name)) {
		t.Errorf("what was promised is not there:\n%s", all)
	}
	if n := <-told; n.Reservation.ID != "now" || len(n.Reservation.Allotments) == 0 {
		t.Errorf("told is %+v", n)
	}
}

// Who asks again under the same key, because the service was killed before Slurm had answered,
// is told when Slurm has.
func TestWhatStartsAtOnceIsAskedOfSlurmAgain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLab(t, false)
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.mortal = &mortal{Store: l.store}
	l.open()
	l.looked()
	l.cluster.KillController()
	from := l.host.Now()
	keyed := l.by
	keyed.Key, keyed.Body = "k", [32]byte{1}
	answers := make(chan service.Reservation, 2)
	ask := func() {
		a, err := l.host.Submit(t.Context(), keyed, berth.Rigid("now", 0, from, from+600, 2, 100))
		if err == nil {
			answers <- a.Reservation
		}
	}
	go ask()
	go func() { // without a key, so no one asks again
		_, _ = l.host.Submit(t.Context(), l.by, berth.Rigid("plain", 0, from, from+600, 1, 100))
	}()
	pending := func(id string) bool {
		r, err := l.host.Get(t.Context(), l.by.By, id)
		return err == nil && r.State == service.Pending
	}
	l.until("both are pending", func() bool { return pending("now") && pending("plain") })
	l.mortal.dead.Store(true)
	_ = l.host.Close() // it cannot say goodbye
	l.mortal = &mortal{Store: l.store}
	l.open()
	go ask()
	select {
	case r := <-answers:
		t.Fatalf("while Slurm is silent the answer is %+v", r)
	case <-time.After(2 * time.Second):
	}
	if r := l.get("plain"); r.State != service.Pending || len(r.Allotments) > 0 {
		t.Errorf("what no one was told of is shown as %+v", r)
	}
	l.cluster.StartController()
	if r := <-answers; r.State != service.Active {
		t.Errorf("the answer is %+v", r)
	}
	l.until("the other one is promised", func() bool { return l.get("plain").State == service.Active && l.get("plain").Sites[0].Made })
	if all := l.shown("reservation"); !strings.Contains(all, string(l.get("now").Sites[0].Name)) {
		t.Errorf("what was promised is not there:\n%s", all)
	}
}
