package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// parts returns a request of two parts of n nodes each.
func parts(id string, from berth.Time, npe berth.Count, length, slack berth.Duration) berth.Request {
	r := berth.Rigid(id, 0, from, from.Add(length+slack), npe, length)
	r.Parts = append(r.Parts, r.Parts[0])
	return r
}

// What is held, what was offered and what has several parts is asked of Slurm too if it begins
// at once: Slurm has it when it is answered, on nodes that others have not taken meanwhile, or
// it is refused with what Slurm says.
func TestEveryKindThatStartsAtOnceIsAskedOfSlurm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{Nodes: 8}), site.UnitNode, false)
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.manager.Every = 30 * time.Second // so that the jobs are not seen
	l.open()
	l.until("it is looked at", func() bool {
		views, err := l.host.Sites(t.Context(), l.by.By)
		return err == nil && views[0].Reachable
	})
	taken := 0 // nodes that jobs have
	runs := func() {
		t.Helper()
		taken++
		job := string(l.batch("sleep 1000", "-N1", "--exclusive", "-t20", fmt.Sprint("-wn", taken)))
		l.until("a job runs", func() bool { return strings.Contains(l.shown("job", job), "JobState=RUNNING") })
	}
	// there fails the test unless an answer was true when it was given: all of its nodes are
	// those of a reservation in Slurm, and no job has any of them.
	there := func(r service.Reservation, want service.State, npe int) {
		t.Helper()
		all, seen := l.shown("reservation"), l.get(r.ID)
		nodes := slices.Concat(seen.Nodes...)
		slices.Sort(nodes)
		for i := range taken {
			if slices.Contains(nodes, fmt.Sprint("n", i+1)) {
				t.Errorf("%s has a node of a job: %q", r.ID, nodes)
			}
		}
		if r.State != want || len(nodes) != npe || !strings.Contains(all, string(seen.Sites[0].Name)) || !seen.Sites[0].Made {
			t.Errorf("%s is %s on %q, want %s on %d that are there:\n%s", r.ID, r.State, nodes, want, npe, all)
		}
	}
	release := func(id string) {
		t.Helper()
		if _, err := l.host.Release(t.Context(), l.by, id); err != nil {
			t.Fatal(err)
		}
		l.until(id+" is gone", func() bool { return strings.Count(l.shown("reservation"), "ReservationName=") == 0 })
	}
	refused := func(r service.Reservation) {
		t.Helper()
		if r.State != service.Failed && r.State != service.Refused || r.Refusal == nil || r.Refusal.Reason != berth.NoCapacity {
			t.Errorf("%s, which has no room, is %s: %+v", r.ID, r.State, r.Refusal)
		}
		l.until(r.ID+" is gone", func() bool { return strings.Count(l.shown("reservation"), "ReservationName=") == 0 })
	}

	runs()
	from := l.host.Now()
	all := berth.Rigid("held-all", 0, from, from+300, 8, 300)
	all.Hold = 200
	refused(submit(t, l.host, l.by, all).Reservation)

	runs()
	from = l.host.Now()
	held := berth.Rigid("held", 0, from, from+900, 5, 300)
	held.Hold = 200
	there(submit(t, l.host, l.by, held).Reservation, service.Held, 5)
	if r, err := l.host.Confirm(t.Context(), l.by, "held"); err != nil || !isPromised(r) {
		t.Errorf("confirmed it is %+v, %v", r, err)
	}
	release("held")

	from = l.host.Now()
	offers, err := l.host.Offers(t.Context(), l.by, berth.Rigid("", from, from, from+900, 5, 300), 1)
	if err != nil || len(offers) != 1 {
		t.Fatalf("%+v, %v", offers, err)
	}
	runs() // on the first node that was offered
	offered, err := l.host.Hold(t.Context(), l.by, offers[0].ID, 100)
	if err != nil {
		t.Fatal(err)
	}
	if want := service.Held; offered.Reservation.State == want {
		there(offered.Reservation, want, 5)
		release(offered.Reservation.ID)
	} else {
		refused(offered.Reservation) // what is offered has no slack but that of its own time
	}

	runs()
	from = l.host.Now()
	there(submit(t, l.host, l.by, parts("parts", from, 2, 300, 900)).Reservation, service.Active, 4)
	release("parts")

	runs()
	from = l.host.Now()
	refused(submit(t, l.host, l.by, parts("parts-all", from, 2, 300, 0)).Reservation)
	if r := submit(t, l.host, l.by, parts("parts-later", l.host.Now(), 2, 300, 9000)).Reservation; r.State != service.Confirmed || r.Allotments[0].Start < from+300 {
		t.Errorf("what has room behind the jobs is %+v", r)
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// What has several parts and is refused on nodes that look free gets others, if there are any.
func TestPartsThatStartAtOnceAvoidNodesThatAreRefused(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{Nodes: 4}), site.UnitNode, false)
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	refuses := &grudging{Site: l.manager.Adapter.(*slurm.Site), node: "n1"}
	l.manager.Adapter = refuses
	for _, trigger := range []engine.Trigger{engine.TriggerOnArrival, engine.TriggerOnInstant} {
		l.trigger, refuses.slow = trigger, trigger == engine.TriggerOnInstant
		l.open()
		l.looked()
		id := "both-" + string(trigger)
		r := submit(t, l.host, l.by, parts(id, l.host.Now(), 1, 300, 300)).Reservation
		if nodes := slices.Concat(l.get(id).Nodes...); !isPromised(r) || len(nodes) != 2 || slices.Contains(nodes, "n1") || !l.get(id).Sites[0].Made {
			t.Errorf("%s: it is %+v, %+v", trigger, l.get(id), l.get(id).Refusal)
		}
		if _, err := l.host.Release(t.Context(), l.by, id); err != nil {
			t.Fatal(err)
		}
		id = "all-" + string(trigger)
		from := l.host.Now()
		three := parts(id, from, 1, 60, 100)
		three.Parts = append(three.Parts, three.Parts[0])
		if r = submit(t, l.host, l.by, three).Reservation; r.State != service.Failed || r.Refusal.Reason != berth.NoCapacity || !strings.Contains(r.Refusal.Words, "busy") {
			t.Errorf("%s: what needs the node is %+v, %+v", trigger, r, r.Refusal)
		}
		if err := l.host.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if err := l.host.Close(); err != nil {
			t.Fatal(err)
		}
	}
	l.open()
}

// What Slurm had not agreed to when the service was killed is shown as pending after the
// restart, whatever it is and however it was decided, until Slurm has it; and no one confirms
// or changes it before.
func TestWhatSlurmHasNotAgreedToIsPendingAfterARestart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	for _, trigger := range []engine.Trigger{engine.TriggerOnArrival, engine.TriggerOnPeriod} {
		t.Run(string(trigger), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, false)
			if err := l.host.Close(); err != nil {
				t.Fatal(err)
			}
			l.mortal, l.trigger = &mortal{Store: l.store}, trigger
			l.open()
			l.looked()
			l.cluster.KillController()
			from := l.host.Now()
			held := berth.Rigid("held", 0, from, from+600, 1, 100)
			held.Hold = 300
			requests := []berth.Request{berth.Rigid("plain", 0, from, from+600, 1, 100), held, parts("parts", from, 1, 100, 500)}
			for _, r := range requests {
				go func() { _, _ = l.host.Submit(t.Context(), l.by, r) }() // which the kill ends
			}
			l.until("they are decided", func() bool { return l.accepted() == len(requests) })
			l.until("they are shown, a moment after they are durable", func() bool {
				for i := range requests {
					if _, err := l.host.Get(t.Context(), l.by.By, requests[i].ID); err != nil {
						return false
					}
				}
				return true
			})
			for i := range requests {
				if r := l.get(requests[i].ID); r.State != service.Pending {
					t.Errorf("before Slurm has it %s is %+v", r.ID, r)
				}
			}
			l.mortal.dead.Store(true)
			_ = l.host.Close() // it cannot say goodbye
			l.mortal = &mortal{Store: l.store}
			l.open()
			for i := range requests {
				id := requests[i].ID
				if r := l.get(id); r.State != service.Pending || len(r.Allotments) > 0 {
					t.Errorf("no one was told of %s; it is shown as %+v", id, r)
				}
				if _, err := l.host.Confirm(t.Context(), l.by, id); err == nil {
					t.Errorf("%s is confirmed before Slurm has it", id)
				}
			}
			l.cluster.StartController()
			for i := range requests {
				want := service.Active
				if requests[i].Hold > 0 {
					want = service.Held
				}
				l.until(requests[i].ID+" is promised", func() bool { return l.get(requests[i].ID).State == want && l.get(requests[i].ID).Sites[0].Made })
			}
		})
	}
}

// accepted returns how many promises the engine has made.
func (l *lab) accepted() (n int) {
	l.t.Helper()
	var decoder record.Decoder
	for rec, err := range l.store.Read(l.t.Context(), 1) {
		if err != nil {
			l.t.Fatal(err)
		}
		list, err := decoder.Changes(rec.Changes)
		if err != nil {
			l.t.Fatal(err)
		}
		for i := range list {
			if list[i].Kind == change.Accepted {
				n++
			}
		}
	}
	return n
}
