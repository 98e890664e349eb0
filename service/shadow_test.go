package service_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// counting is a site that counts what is written there.
type counting struct {
	timed
	writes *atomic.Int64
}

func (c counting) Reserve(ctx context.Context, r site.Reservation) (site.Outcome, error) {
	c.writes.Add(1)
	return c.timed.Reserve(ctx, r)
}

func (c counting) Change(ctx context.Context, r site.Reservation) (site.Outcome, error) {
	c.writes.Add(1)
	return c.timed.Change(ctx, r)
}

func (c counting) Release(ctx context.Context, name site.Name) error {
	c.writes.Add(1)
	return c.timed.Release(ctx, name)
}

func (c counting) Launch(ctx context.Context, name site.Name, shares []site.Share) error {
	c.writes.Add(1)
	return c.timed.Launch(ctx, name, shares)
}

func (c counting) Submit(ctx context.Context, task site.Task) (site.JobID, error) {
	c.writes.Add(1)
	return c.timed.Submit(ctx, task)
}

func (c counting) Cancel(ctx context.Context, job site.JobID) error {
	c.writes.Add(1)
	return c.timed.Cancel(ctx, job)
}

func (c counting) Drain(ctx context.Context, node, reason string) error {
	c.writes.Add(1)
	return c.timed.Drain(ctx, node, reason)
}

func (c counting) Resume(ctx context.Context, node string) error {
	c.writes.Add(1)
	return c.timed.Resume(ctx, node)
}

func (c counting) Doctor(ctx context.Context) []site.Finding {
	c.writes.Add(1)
	return c.timed.Doctor(ctx)
}

// watch is a service that watches a fake site of four nodes of four cores.
type watch struct {
	*harbour
	begun  berth.Time
	writes atomic.Int64
}

// inWatch runs a test in front of such a service, before its first look. Nothing
// may be written at the site, and nothing may be left to do.
func inWatch(t *testing.T, test func(t *testing.T, w *watch)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		config := fake.Config{Name: "harbour", Description: fake.Nodes(4, 4)}
		w := &watch{harbour: &harbour{t: t, site: fake.New(config, berth.Time(time.Now().Unix()))}}
		w.begun = w.now()
		s, layout, err := site.Import("harbour", &config.Description, site.UnitNode, berth.Early)
		if err != nil {
			t.Fatal(err)
		}
		adapter := counting{timed{new(sync.Mutex), w.site, w.harbour}, &w.writes}
		if w.store, err = sqlite.Open(t.TempDir(), sqlite.Options{}); err != nil {
			t.Fatal(err)
		}
		w.options = service.Options{
			Config: engine.Config{Sites: []berth.Site{s}, Limits: service.DefaultLimits()}, Journal: w.store, Version: "test",
			Managers: map[string]service.Manager{"harbour": {Kind: "fake", Adapter: adapter, Layout: layout, Every: 5 * time.Second, Shadow: true}},
		}
		defer func() {
			if w.writes.Load() > 0 {
				t.Errorf("%d writes at a site that is only watched", w.writes.Load())
			}
			if box, err := w.host.Effects(t.Context()); err != nil || len(box) > 0 {
				t.Errorf("still to do: %+v, %v", box, err)
			}
			if err := errors.Join(w.host.Check(t.Context()), w.host.Close()); err != nil {
				t.Error(err)
			}
			if _, err := service.Verify(t.Context(), w.store, nil); err != nil {
				t.Error(err)
			}
			if err := w.store.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(t, w)
	})
}

// at lets time pass until n seconds after the beginning.
func (w *watch) at(seconds berth.Duration) {
	time.Sleep(time.Duration(w.begun.Add(seconds).Sub(w.now())) * time.Second)
	synctest.Wait()
	w.site.Advance(w.now())
}

// submit lets a job of n nodes wait at the site.
func (w *watch) submit(user string, nodes berth.Count, limit berth.Duration) site.JobID {
	return w.site.Enqueue(site.Job{User: user, Partition: "main", Nodes: nodes, Cores: 4 * nodes, Limit: limit})
}

func on(nodes ...string) []site.Share {
	shares := make([]site.Share, len(nodes))
	for i, n := range nodes {
		shares[i].Node = n
	}
	return shares
}

func (w *watch) score() service.Score {
	w.t.Helper()
	s, err := w.host.Score(w.t.Context(), root.By, "harbour", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// job returns what is known of a job.
func (w *watch) job(id site.JobID) service.ShadowJob {
	w.t.Helper()
	for _, j := range w.score().Jobs {
		if j.Job == id {
			return j
		}
	}
	w.t.Fatalf("job %s is not known", id)
	return service.ShadowJob{}
}

// The looks are 5.25 s apart: at 0, 5, 10, … and later at 215, 603 and 609. What is
// at the site and what is promised, by node:
//
//	old    n1     runs before the watch, limit 1000, ends at 600: out of use
//	first  3×500  seen at 5, promised n2-4 at 5; starts at 5, ends at 205
//	        in the shadow it ends 200 s after 5, at 205
//	second 3×300  seen at 10, promised behind the limit of first, 505; starts at 205: Later
//	        ends at 305, and so in the shadow 100 s after 505
//	third  2×100  seen at 215, when n2-4 are free until 505: promised 215; starts at 310: Earlier
//	        runs to its limit
//	wide   5×100  refused: there are four nodes
func TestScoreByHand(t *testing.T) {
	inWatch(t, func(t *testing.T, w *watch) {
		w.site.Occupy("eve", on("n1"), 600, 1000)
		w.open()
		w.at(1)
		first := w.submit("ann", 3, 500)
		w.at(5)
		w.site.Begin(first, 200, on("n2", "n3", "n4")...)
		w.at(6)
		second := w.submit("bob", 3, 300)
		wide := w.submit("bob", 5, 100)
		w.at(205)
		w.site.Begin(second, 100, on("n2", "n3", "n4")...)
		w.at(211)
		third := w.submit("ann", 2, 100)
		w.at(310)
		w.site.Begin(third, 500, on("n2", "n3")...)
		w.at(420)
		want := service.Figures{
			Seen: 5, LeftOut: map[service.LeftOut]int{service.LeftBefore: 1}, Asked: 4, Promised: 3, Refused: map[berth.Reason]int{berth.TooLarge: 1},
			Ended: 3, BeforeLimit: 2, Compared: 3, Earlier: 1, Same: 1, Later: 1, PromisedWait: 0 + 495 + 0, ActualWait: 0 + 195 + 95,
		}
		s := w.score()
		if diff := cmp.Diff(want, s.Figures); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if p, a := (service.Spread{Mean: 165, P50: 0, P95: 495}), (service.Spread{Mean: 96, P50: 95, P95: 195}); s.PromisedWaits != p || s.ActualWaits != a {
			t.Errorf("waits %+v and %+v, want %+v and %+v", s.PromisedWaits, s.ActualWaits, p, a)
		}
		for id, want := range map[site.JobID][4]berth.Duration{first: {5, 5, 5, 205}, second: {10, 505, 205, 305}, third: {215, 215, 310, 410}, wide: {10}} {
			j := w.job(id)
			for i, got := range []berth.Time{j.Asked, j.Promised, j.Start, j.End} {
				if got != 0 && got != w.begun.Add(want[i]) || got == 0 && want[i] != 0 {
					t.Errorf("job %s: time %d is %d s after the beginning, want %d", id, i, got.Sub(w.begun), want[i])
				}
			}
		}
		// Second runs in the shadow from 505 on, by what is known until its limit
		// at 805. It ends at 605, and what follows is promised n2-4 from 609 on.
		w.at(520)
		during := w.submit("ann", 3, 10)
		w.at(604)
		behind := w.submit("ann", 3, 10)
		w.at(606)
		last := w.submit("ann", 4, 1000)
		w.at(611)
		for id, want := range map[site.JobID]berth.Duration{during: 805, behind: 609, last: 815} {
			if j := w.job(id); j.Promised != w.begun.Add(want) {
				t.Errorf("job %s is promised %d s after the beginning, want %d", id, j.Promised.Sub(w.begun), want)
			}
		}
	})
}

// The score is the same after restarts, from records or from a snapshot, and
// nothing is asked twice.
func TestScoreSurvivesRestarts(t *testing.T) {
	for name, every := range map[string]uint64{"records": 1 << 40, "snapshots": 7} {
		t.Run(name, func(t *testing.T) {
			inWatch(t, func(t *testing.T, w *watch) {
				w.options.SnapshotEvery = every
				if name == "records" {
					w.options.Journal = recordsOnly{w.store}
				}
				w.site.Occupy("eve", on("n1"), 600, 1000)
				w.open()
				var jobs []site.JobID
				for i := range berth.Duration(12) {
					w.at(1 + 10*i)
					jobs = append(jobs, w.submit("ann", 1+berth.Count(i)%5, 100+10*i))
					if i >= 4 {
						w.site.Begin(jobs[i-4], 30, on("n2", "n3")...)
					}
				}
				w.at(122)
				w.site.Withdraw(jobs[11])
				w.at(130)
				before, records := w.score(), w.records()
				if err := w.host.Close(); err != nil {
					t.Fatal(err)
				}
				w.open()
				after := w.score()
				if diff := cmp.Diff(before, after, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Looked" }, cmp.Ignore())); diff != "" {
					t.Errorf("(-before +after)\n%s", diff)
				}
				if n := w.records(); n > records {
					t.Errorf("%d records since the restart", n-records)
				}
				if s := after.Figures; s.Seen != 13 || s.Compared == 0 || s.Cancelled != 1 {
					t.Errorf("nothing to survive: %+v", s)
				}
				w.at(5000)
				if s := w.score(); s.Ended != 8 { // all that were begun
					t.Errorf("%d have ended, want 8", s.Ended)
				}
			})
		})
	}
}

// recordsOnly is a journal without snapshots.
type recordsOnly struct{ journal.Store }

func (recordsOnly) Snapshot(context.Context, uint64) (journal.Snapshot, error) {
	return journal.Snapshot{}, nil
}

func (recordsOnly) SaveSnapshot(context.Context, journal.Position, []byte) error { return nil }

func (w *watch) records() uint64 {
	w.t.Helper()
	n, err := w.host.Records(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func TestWatchForgets(t *testing.T) {
	if remembered, counted := service.LetGo(50_000); remembered > 11_250 || remembered < 10_000 || counted != 50_000 {
		t.Errorf("%d remembered, %d counted", remembered, counted)
	}
}

func TestWatchIsReadOnlyByType(t *testing.T) {
	o := site.Watch(fake.New(fake.Config{}, 0))
	for _, more := range []reflect.Type{
		reflect.TypeFor[site.Booker](), reflect.TypeFor[site.Runner](), reflect.TypeFor[site.Launcher](), reflect.TypeFor[site.Drainer](), reflect.TypeFor[site.Doctor](),
	} {
		if reflect.TypeOf(o).Implements(more) {
			t.Errorf("a site that is only watched is a %s", more)
		}
	}
}

// Jobs whose ends were not seen, that were not seen in time, that cannot be asked
// for and that are not wanted yet; arrays, and jobs that begin and end between two
// looks.
func TestWhatIsSeenOfJobs(t *testing.T) {
	inWatch(t, func(t *testing.T, w *watch) {
		w.open()
		w.at(1)
		waiting := site.Job{User: "ann", Partition: "main", Nodes: 1, Cores: 2, Limit: 100}
		put := func(change func(*site.Job)) site.JobID {
			j := waiting
			change(&j)
			return w.site.Enqueue(j)
		}
		held := put(func(j *site.Job) { j.Held = true })
		later := put(func(j *site.Job) { j.Begin = w.begun + 1000 })
		booked := put(func(j *site.Job) { j.Reservation = "maintenance" })
		sizeless := put(func(j *site.Job) { j.Nodes = 0 })
		endless := put(func(j *site.Job) { j.Limit, j.Partition = 0, "elsewhere" })
		byDefault := put(func(j *site.Job) { j.Limit, j.Partition = 0, "main,other" })
		nowhere := put(func(j *site.Job) { j.Partition = "elsewhere" })
		put(func(j *site.Job) { j.ID, j.Array, j.Elements = "9_[1,3]", "9", berth.PEsOf(1, 3) })
		between := put(func(*site.Job) {})
		w.site.Begin(between, 2, on("n1")...)
		w.at(6)
		s := w.score()
		if s.Seen != 9 || s.LeftOut[service.LeftReservation] != 1 || s.LeftOut[service.LeftNoSize] != 1 || s.LeftOut[service.LeftNoLimit] != 1 ||
			s.Refused[berth.NoSuitableSite] != 1 || s.Promised != 5 || s.Ended != 1 || s.Compared != 1 || s.Partial != 6 {
			t.Errorf("%+v", s.Figures)
		}
		for id, left := range map[site.JobID]service.LeftOut{booked: service.LeftReservation, sizeless: service.LeftNoSize, endless: service.LeftNoLimit, nowhere: ""} {
			if j := w.job(id); j.Left != left || j.Promised != 0 {
				t.Errorf("job %s: %+v", id, j)
			}
		}
		if j := w.job(later); j.Promised != w.begun+1000 {
			t.Errorf("what begins later is %+v", j)
		}
		if j := w.job(byDefault); j.Limit != 86400 {
			t.Errorf("what has the limit of its partition is %+v", j)
		}

		// An element runs, another is cancelled, and what was held is let go.
		w.site.Forget("9_[1,3]")
		one, three := put(func(j *site.Job) { j.ID = "9_1" }), put(func(j *site.Job) { j.ID = "9_3" })
		w.site.Begin(one, 50, on("n2")...)
		w.site.Withdraw(three)
		w.site.Forget(held)
		freed := put(func(*site.Job) {})
		w.at(12)
		if j := w.job("9_1"); j.Phase != service.JobRuns || j.Start != w.begun+6 || j.Asked != w.begun+5 {
			t.Errorf("the first element is %+v", j)
		}
		if j := w.job("9_3"); j.Phase != service.JobCancelled || j.Promised == 0 {
			t.Errorf("the other is %+v", j)
		}
		if j := w.job(freed); j.Asked != w.begun+10 {
			t.Errorf("what was freed is %+v", j)
		}

		// The ends of two are not seen, and one runs for long before it is seen.
		w.site.Begin(byDefault, 5000, on("n3")...)
		w.at(60)
		w.site.Inject(fake.Fault{Op: fake.Observe, What: fake.Down})
		w.at(66)
		unseen := put(func(*site.Job) {})
		w.site.Begin(unseen, 5000, on("n4")...)
		w.site.Forget(byDefault, freed)
		w.at(200)
		w.site.Heal()
		w.at(300)
		if j := w.job(byDefault); j.Phase != service.JobEnded || j.Ending != "" || j.Start != w.begun+12 || j.End < w.begun+55 || j.End > w.begun+66 { // until it was last seen
			t.Errorf("what was lost while it ran is %+v", j)
		}
		if j := w.job(freed); j.Phase != service.JobVanished {
			t.Errorf("what was lost while it waited is %+v", j)
		}
		if j := w.job(unseen); j.Left != service.LeftUnseen {
			t.Errorf("what ran unseen is %+v", j)
		}
		if s := w.score(); s.Vanished != 1 || s.Cancelled != 1 || s.Moved != 0 {
			t.Errorf("%+v", s.Figures)
		}

		// Begun again after its node has failed: it starts when it does for good.
		again := put(func(*site.Job) {})
		w.at(310)
		w.site.Begin(again, 60, on("n1")...)
		w.at(320)
		w.site.Forget(again)
		put(func(j *site.Job) { j.ID = again })
		w.at(330)
		if j := w.job(again); j.Phase != service.JobWaits || j.Start != 0 {
			t.Errorf("what waits again is %+v", j)
		}
		w.at(410)
		w.site.Begin(again, 60, on("n1")...)
		w.at(480)
		if j := w.job(again); j.Phase != service.JobEnded || j.Start != w.begun+410 || j.End != w.begun+470 {
			t.Errorf("what has ended after all is %+v", j)
		}
	})
}

// Promises move when their nodes fail, are drained or are reserved by others, and
// jobs that are followed are not in their own way.
func TestShadowPromisesMove(t *testing.T) {
	inWatch(t, func(t *testing.T, w *watch) {
		w.open()
		w.at(1)
		a, b := w.submit("ann", 2, 1000), w.submit("bob", 2, 1000)
		w.at(6)
		if w.job(a).Promised != w.begun+5 || w.job(b).Promised != w.begun+5 {
			t.Fatalf("promised %+v and %+v", w.job(a), w.job(b))
		}
		c := w.submit("ann", 1, 500)
		w.at(12)
		w.site.Begin(a, 900, on("n3", "n4")...) // in the shadow it is on n1 and n2
		w.at(30)
		if s := w.score(); s.Moved != 0 || s.Promised != 3 {
			t.Errorf("moved by itself: %+v", s.Figures)
		}
		if j := w.job(c); j.Promised != w.begun+1005 {
			t.Errorf("c is promised %+v", j)
		}
		w.site.Fail("n1", "fire")
		w.at(40)
		if s := w.score(); s.Moved == 0 || s.Broken != 0 {
			t.Errorf("the node of a promise has failed: %+v", s.Figures)
		}
		if j := w.job(c); j.Promised != w.begun+1005 {
			t.Errorf("the first promise counts, and it is %+v", j)
		}
	})
}

// What was not asked for, others' reservations and a name like ours are planned
// around, a drained node serves what is on it, and what is cancelled or forgotten
// is out of the way.
func TestShadowPlansAroundFacts(t *testing.T) {
	inWatch(t, func(t *testing.T, w *watch) {
		w.site.Occupy("eve", on("n1"), 600, 1000)
		w.book(string(site.NameOf("harbour", "x", 1)), w.begun+2000, w.begun+3000, "n2")
		w.open()
		w.at(1)
		all := w.submit("ann", 4, 100)
		w.at(6)
		promised := func(id site.JobID, from, to berth.Time) {
			t.Helper()
			if at := w.job(id).Promised; at < w.begun+from || at > w.begun+to {
				t.Errorf("job %s is promised %d s after the beginning, want %d to %d", id, at-w.begun, from, to)
			}
		}
		promised(all, 1000, 1000)
		w.site.Withdraw(all)
		w.at(12)
		other := w.submit("ann", 4, 100)
		w.at(18)
		long, one := w.submit("ann", 4, 1500), w.submit("bob", 1, 500)
		w.at(24)
		promised(other, 1000, 1000)
		promised(long, 3000, 3000)
		promised(one, 19, 24)
		if err := w.site.Drain(t.Context(), "n2", "tired"); err != nil {
			t.Fatal(err)
		}
		w.at(100)
		if j := w.job(one); j.Moved || j.Broken {
			t.Errorf("on a drained node is %+v", j)
		}
		if s := w.score(); s.Open != 3 || s.Overdue != 1 || s.Moved == 0 {
			t.Errorf("%d open, %d overdue, %+v", s.Open, s.Overdue, s.Figures)
		}
		w.metrics(map[string]float64{"seen": 5, "left_out": 1, "promised": 4, "refused": 0, "compared": 0})

		before := w.score().Seen
		w.site.Forget(one)
		w.at(110)
		w.site.Enqueue(site.Job{ID: one, User: "bob", Partition: "main", Nodes: 1, Cores: 4, Limit: 60})
		w.at(120)
		if s := w.score(); s.Seen != before+1 || s.Vanished != 1 || w.job(one).Limit != 60 {
			t.Errorf("of another job under the id of one that was forgotten: %+v, %+v", w.job(one), s.Figures)
		}
	})
}

// Between two looks the order of submission counts, and within a second that of
// the service: by length, here.
func TestWatchedJobsAreDecidedAsTheyCame(t *testing.T) {
	inWatch(t, func(t *testing.T, w *watch) {
		w.options.Config.Order = "dpsar"
		w.open()
		w.at(1)
		long := w.submit("ann", 4, 1000)
		w.at(2)
		middle, short := w.submit("ann", 4, 500), w.submit("ann", 4, 100)
		w.at(6)
		for id, want := range map[site.JobID]berth.Duration{long: 5, short: 1005, middle: 1105} {
			if j := w.job(id); j.Promised != w.begun.Add(want) {
				t.Errorf("job %s is promised %d s after the beginning, want %d", id, j.Promised.Sub(w.begun), want)
			}
		}
	})
}

// metrics compares the counts of jobs that are collected, and wants no
// reservation among what is.
func (w *watch) metrics(want map[string]float64) {
	w.t.Helper()
	registry := prometheus.NewRegistry()
	if err := w.host.Register(registry); err != nil {
		w.t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	found := 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			switch family.GetName() {
			case "berth_shadow_jobs_total":
				what := m.GetLabel()[1].GetValue()
				if n, asked := want[what]; asked {
					found++
					if got := m.GetCounter().GetValue(); got != n {
						w.t.Errorf("%s: %g, want %g", what, got, n)
					}
				}
			case "berth_reservations":
				if m.GetGauge().GetValue() != 0 {
					w.t.Errorf("reservations: %v", m)
				}
			case "berth_decisions_total", "berth_changes_total":
				w.t.Errorf("decided: %v", m)
			}
		}
	}
	if found != len(want) {
		w.t.Errorf("%d of %d counts collected", found, len(want))
	}
}

// Nothing that would have been promised looks like a promise, and nothing can be
// asked of a site that is only watched.
func TestNothingIsPromisedAtAWatchedSite(t *testing.T) {
	inWatch(t, func(t *testing.T, w *watch) {
		w.options.Config.Sites = append(w.options.Config.Sites, berth.Site{Name: "own", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Early}}})
		w.open()
		w.at(1)
		notices := make(chan service.Notice, 100)
		ctx, stop := context.WithCancel(t.Context())
		listening := make(chan struct{})
		go func() {
			defer close(listening)
			for n := range w.host.Listen(ctx, root.By, 0) {
				notices <- n
			}
		}()
		job := w.submit("ann", 1, 100)
		w.at(10)
		id := w.job(job).ID
		if w.job(job).Promised == 0 || id != "harbour-1" {
			t.Fatalf("%+v", w.job(job))
		}
		denied := func(what string, err error, code berth.Code) {
			t.Helper()
			var e *berth.Error
			if !errors.As(err, &e) || e.Code != code {
				t.Errorf("%s: %v, want %s", what, err, code)
			}
		}
		r := berth.Rigid("mine", w.now(), w.now(), w.now()+1000, 1, 100)
		for _, at := range []string{"", "harbour"} {
			r.Site = at
			_, err := w.host.Submit(t.Context(), ann, r)
			denied("submit", err, berth.Conflict)
			_, err = w.host.Offers(t.Context(), ann, r, 3)
			denied("offers", err, berth.Conflict)
		}
		r.Site = "own"
		if a := submit(t, w.host, ann, r); a.Reservation.State.Over() {
			t.Errorf("at the other site: %+v", a)
		}
		r.Site = "harbour"
		_, err := w.host.Modify(t.Context(), ann, "mine", r)
		denied("modify", err, berth.Conflict)
		_, err = w.host.Get(t.Context(), ann.By, id)
		denied("get", err, berth.NotFound)
		_, err = w.host.Release(t.Context(), root, id)
		denied("release", err, berth.NotFound)
		_, err = w.host.Run(t.Context(), root, id, site.Task{Command: []string{"x"}, Dir: "/"})
		denied("run", err, berth.NotFound)
		denied("drain", w.host.Drain(t.Context(), root, "harbour", "n1", "tired"), berth.Conflict)
		_, err = w.host.Doctor(t.Context(), root.By, "harbour")
		denied("doctor", err, berth.Conflict)
		_, err = w.host.Score(t.Context(), ann.By, "harbour", 1)
		denied("score", err, berth.Denied)
		_, err = w.host.Score(t.Context(), root.By, "own", 1)
		denied("score of a site that is not watched", err, berth.NotFound)
		list, _, err := w.host.List(t.Context(), root.By, service.Filter{})
		if err != nil || len(list) != 1 || list[0].ID != "mine" {
			t.Errorf("listed: %+v, %v", list, err)
		}
		w.at(200)
		stop()
		<-listening
		close(notices)
		for n := range notices {
			if n.Reservation.ID != "mine" {
				t.Errorf("told: %+v", n)
			}
		}
	})
}

// A journal is that of a watch, or of a service that promises.
func TestWatchAndServiceAreApart(t *testing.T) {
	inWatch(t, func(t *testing.T, w *watch) {
		served := func(is bool) {
			m := w.options.Managers["harbour"]
			m.Shadow = !is
			w.options.Managers["harbour"] = m
		}
		refused := func(what string) {
			t.Helper()
			h, err := service.Open(t.Context(), w.options)
			var e *berth.Error
			if !errors.As(err, &e) || e.Code != berth.Conflict {
				t.Fatalf("%s: %v, %v", what, h, err)
			}
		}
		w.open()
		w.submit("ann", 1, 100)
		w.at(10)
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		served(true)
		refused("a watch is served")
		served(false)
		w.open()
		if s := w.score(); s.Promised != 1 {
			t.Errorf("%+v", s.Figures)
		}
	})
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.reserve("a", 1, 10_000, 100)
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		m := w.options.Managers["harbour"]
		m.Shadow = true
		w.options.Managers["harbour"] = m
		_, err := service.Open(t.Context(), w.options)
		var e *berth.Error
		if !errors.As(err, &e) || e.Code != berth.Conflict {
			t.Fatalf("what was promised is watched: %v", err)
		}
		m.Shadow = false
		w.options.Managers["harbour"] = m
		w.open()
	})
}
