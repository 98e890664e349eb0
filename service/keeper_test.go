package service_test

import (
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// Whatever goes wrong with calls: a while after it has stopped, site and service
// are in line, and meanwhile the trouble shows.
func TestFaultsHeal(t *testing.T) {
	for _, c := range []struct {
		faults string
		shows  bool // for as long as it lasts
	}{
		{"* * down", true},
		{"observe * down", true},
		{"observe 2 stale; observe 3 wrong", false},
		{"reserve * unsent", true},
		{"reserve * deny", true},
		{"reserve * refuse", true},
		{"reserve 1 lost; reserve 2 slow 5; reserve 3 slow 11", false},
		{"reserve 1 late 30; reserve 2 late 90", false},
		{"reserve 1 twice 9; reserve 2 twice 60", false},
		{"reserve 1 wrong; reserve 2 wrong", false},
		{"reserve 1 lie", false},
		{"release 1 lost; change 1 lost", false},
		{"release * refuse", true},
		{"release 1 late 30; release 2 lie", false},
		{"release * wrong", false},
		{"change * deny", true},
	} {
		t.Run(c.faults, func(t *testing.T) {
			inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
				faults, err := fake.ParseFaults(c.faults)
				if err != nil {
					t.Fatal(err)
				}
				w.reserve("runs", 1, 10, 3000)
				w.reserve("goes", 1, 20, 3000)
				w.pass(30)
				w.book("maintenance", w.now()+1000, w.now()+2000, "n4")
				w.site.Inject(faults...)
				w.reserve("soon", 2, 100, 2000)
				w.reserve("far", 4, 20_000, 100)
				if _, err := w.host.Extend(t.Context(), ann, "runs", w.get("runs").Allotments[0].End+60); err != nil {
					t.Fatal(err)
				}
				if _, err := w.host.Release(t.Context(), ann, "goes"); err != nil {
					t.Fatal(err)
				}
				w.reserve("later", 1, 700, 200)
				w.pass(60)
				if trouble := w.view().Trouble; c.shows != (trouble != "") && c.shows {
					t.Errorf("trouble shown: %q", trouble)
				}
				box, err := w.host.Effects(t.Context())
				if err != nil || c.shows && len(box) == 0 {
					t.Errorf("nothing is left to be done while it does not work, %v", err)
				}
				w.pass(120)
				w.site.Heal()
				w.pass(170)
				if err := w.inLine(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What a site refuses where it is, for no reason that shows, gets another place;
// where there is none its owner is told, and it is tried again.
func TestRefusedByTheSite(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.site.Inject(fake.Fault{Op: fake.Reserve, What: fake.Refuse})
		a := w.reserve("moves", 1, 300, 5000)
		if got := w.nodes("moves"); got != "n1" {
			t.Fatalf("it is on %s", got)
		}
		w.pass(12)
		w.site.Heal()
		w.pass(12)
		if got := w.nodes("moves"); got == "n1" {
			t.Error("it is still where it was refused")
		}
		if r := w.get("moves"); r.Allotments[0].Start != a.Allotments[0].Start || r.State != service.Confirmed {
			t.Errorf("it is %s, from %d", r.State, r.Allotments[0].Start)
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}

		w.site.Inject(fake.Fault{Op: fake.Reserve, What: fake.Refuse})
		w.reserve("stays", 3, 400, 5000)
		where := w.nodes("stays")
		w.pass(60)
		if r := w.get("stays"); w.nodes("stays") != where || r.State != service.Confirmed || r.Sites[0].Trouble == "" {
			t.Errorf("it is %s on %s, trouble %q", r.State, w.nodes("stays"), r.Sites[0].Trouble)
		}
		before, err := w.host.Records(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.pass(30)
		if after, err := w.host.Records(t.Context()); err != nil || after > before {
			t.Errorf("%d records while it stands off, %v", after-before, err)
		}
		w.site.Heal()
		w.pass(12)
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// A manager that was restarted and has forgotten what it had said is told again.
func TestForgottenReservationsAreMadeAgain(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.reserve("a", 1, 100, 3000)
		w.reserve("b", 2, 200, 3000)
		w.pass(20)
		if n := w.site.Restart(9); n != 2 || len(w.state().Ours) != 0 {
			t.Fatalf("%d forgotten, %+v", n, w.state().Ours)
		}
		w.pass(15)
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// Of a reservation whose node fails only that node is replaced, what runs on the
// others runs on, and so it does when the reservation is extended. The node that
// is back serves again.
func TestFailedNodeIsReplaced(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.reserve("runs", 2, 10, 5000)
		w.reserve("waits", 1, 300, 2000)
		w.pass(30)
		if w.nodes("runs") != "n1,n2" || w.nodes("waits") != "n3" {
			t.Fatalf("runs on %s, waits for %s", w.nodes("runs"), w.nodes("waits"))
		}
		job := w.run("runs")
		name := w.get("runs").Sites[0].Name
		w.pass(10)
		if !w.get("runs").CheckedIn {
			t.Error("a job runs in it and it is not shown")
		}
		if _, err := w.host.Extend(t.Context(), ann, "runs", w.now()+6000); err != nil {
			t.Fatal(err)
		}
		w.pass(20)
		if !w.running(job) {
			t.Error("the extension ended what ran")
		}
		w.site.Fail("n3", "fire")
		w.pass(20)
		if got := w.nodes("waits"); got != "n4" {
			t.Errorf("waits for %s, want n4", got)
		}
		if got := w.nodes("runs"); got != "n1,n2" {
			t.Errorf("runs on %s, want n1,n2", got)
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
		w.site.Fail("n4", "water")
		w.pass(20)
		if r := w.get("waits"); r.State != service.Degraded || r.Missing != 1 {
			t.Errorf("nothing is left for it and it is %+v", r)
		}
		w.site.Repair("n3")
		w.pass(20)
		if got := w.nodes("waits"); got != "n3" {
			t.Errorf("waits for %s, want n3 again", got)
		}
		if r := w.get("runs"); !w.running(job) || r.Sites[0].Name != name {
			t.Errorf("what ran has ended, or its reservation is another: %+v", r.Sites)
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// What others run and have booked is kept away from, the latter before it
// begins; a promise in its way moves or is degraded until there is room.
func TestOthersAreKeptAwayFrom(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.site.Occupy("eve", []site.Share{{Node: "n1"}}, 500, 1000)
		begin := w.now() + 5000
		w.reserve("moves", 1, 4900, 200)
		if got := w.nodes("moves"); got != "n1" {
			t.Fatalf("moves is on %s", got)
		}
		w.book("maintenance", begin, begin+1000, "n1", "n2")
		w.book("lessons", begin+2000, begin+3000, "n1")
		w.pass(10)
		if got := w.nodes("moves"); got != "n3" {
			t.Errorf("moves is on %s, want n3", got)
		}
		w.reserve("beside", 3, 20, 600)
		if got := w.nodes("beside"); got != "n2,n3,n4" {
			t.Errorf("beside is on %s, want n2,n3,n4", got)
		}
		w.reserve("before", 2, 1500, 3000)
		w.reserve("between", 4, 6100, 800)
		a := submit(t, w.host, ann, berth.Rigid("across", 0, begin, begin+900, 3, 900))
		if a.Reservation.State != service.Refused {
			t.Errorf("across is %+v", a.Reservation)
		}
		w.pass(30) // beside has started
		before, err := w.host.Records(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.pass(20)
		if after, err := w.host.Records(t.Context()); err != nil || after > before {
			t.Errorf("%d records while nothing happened, %v", after-before, err)
		}
		w.pass(500) // eve's job ends early
		if got := w.reserve("early", 1, 100, 100).Allotments[0].PEs.String(); got != "0" {
			t.Errorf("early is on PE %s", got)
		}
		for range 10 {
			w.pass(700)
			if err := w.inLine(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A node that is drained serves what runs on it to the end, and nothing else.
func TestDrainedNode(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.reserve("runs", 2, 10, 1000)
		w.reserve("idle", 1, 10, 1000)
		w.pass(20)
		job := w.run("runs")
		w.pass(10)
		w.reserve("after", 2, 1100, 500)
		for _, node := range []string{"n1", "n3"} {
			if err := w.host.Drain(t.Context(), root, "harbour", node, "tired"); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(20)
		if runs, idle, after := w.nodes("runs"), w.nodes("idle"), w.nodes("after"); runs != "n1,n2" || idle != "n4" || after != "n2,n4" {
			t.Errorf("runs on %s, idle on %s, after on %s; want n1,n2 and n4 and n2,n4", runs, idle, after)
		}
		if !w.running(job) {
			t.Error("what ran was ended")
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
		w.pass(1000)
		if err := w.host.Resume(t.Context(), root, "harbour", "n1"); err != nil {
			t.Fatal(err)
		}
		w.pass(20)
		if got := w.reserve("again", 1, 10, 50).Allotments[0].PEs.String(); got != "0" {
			t.Errorf("again is on PE %s", got)
		}
	})
}

// A service that was restarted tells the engine nothing that it knows, and what
// has come back meanwhile.
func TestKeeperAfterRestart(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.site.Fail("n1", "fire")
		w.site.Occupy("eve", []site.Share{{Node: "n2"}}, 5000, 5000)
		w.book("maintenance", w.now()+9000, w.now()+9900, "n1", "n3")
		w.reserve("a", 1, 100, 3000)
		w.pass(20)
		before, err := w.host.Records(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		w.open()
		w.pass(20)
		if after, err := w.host.Records(t.Context()); err != nil || after > before {
			t.Errorf("%d records since the restart, %v", after-before, err)
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		w.site.Repair("n1")
		w.site.Unbook("maintenance")
		w.foreign = nil
		w.pass(100)
		w.open()
		w.pass(20)
		if got := w.reserve("b", 3, 8000, 2000).Allotments[0].PEs.String(); got != "0-2" {
			t.Errorf("b is on PEs %s", got)
		}
		w.pass(10)
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// At a site of late binding a promise is a number of cores until it starts, and
// then it is launched on those that are free; what was submitted runs then, once.
func TestLatePromisesAreLaunched(t *testing.T) {
	inHarbour(t, site.UnitCore, func(t *testing.T, w *harbour) {
		w.reserve("a", 6, 10, 1000)
		w.reserve("b", 5, 100, 1000)
		w.pass(8)
		if got := w.nodes("b"); got != "" {
			t.Errorf("b has nodes %s before its start", got)
		}
		job := w.run("b")
		faults, err := fake.ParseFaults("launch 1 lost; launch 2 down")
		if err != nil {
			t.Fatal(err)
		}
		w.site.Inject(faults...)
		w.pass(80)
		if w.running(job) {
			t.Error("it runs before its start")
		}
		w.pass(60)
		if !w.running(job) || !w.get("b").CheckedIn {
			t.Errorf("it does not run: %+v", w.get("b"))
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
		if _, err := w.host.Release(t.Context(), ann, "b"); err != nil {
			t.Fatal(err)
		}
		w.pass(10)
		if w.running(job) {
			t.Error("it runs after the release")
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// While a manager that has just started does not know which nodes are up, what
// was known of them counts.
func TestUnknownNodesAreWhatTheyWere(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.site.Fail("n1", "fire")
		w.pass(10)
		w.unknown.Store(true)
		w.pass(10)
		if got := w.reserve("a", 3, 100, 100).Allotments[0].PEs.String(); got != "1-3" {
			t.Errorf("a is on PEs %s", got)
		}
		w.unknown.Store(false)
		w.site.Repair("n1")
		w.pass(10)
		if got := w.reserve("b", 1, 100, 100).Allotments[0].PEs.String(); got != "0" {
			t.Errorf("b is on PEs %s", got)
		}
	})
}

// A site is starting until the first look at it since the service started has
// succeeded, or failed, or takes too long.
func TestFirstLook(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		manager := w.options.Managers["harbour"]
		manager.Every = 2 * time.Second
		w.options.Managers["harbour"] = manager
		again := func(faults ...fake.Fault) {
			if err := w.host.Close(); err != nil {
				t.Fatal(err)
			}
			w.site.Heal()
			w.site.Inject(faults...)
			w.open()
		}
		want := func(starting, reachable bool) {
			t.Helper()
			if v := w.view(); v.Starting != starting || v.Reachable != reachable || reachable != (v.Trouble == "") {
				t.Errorf("starting %t, reachable %t, trouble %q; want %t and %t", v.Starting, v.Reachable, v.Trouble, starting, reachable)
			}
		}
		again(fake.Fault{Op: fake.Observe, Nth: 1, What: fake.Slow, After: 3})
		want(true, false)
		w.pass(2)
		want(true, false)
		w.pass(1)
		want(false, true)
		again(fake.Fault{Op: fake.Observe, What: fake.Down})
		want(false, false)
		again(fake.Fault{Op: fake.Observe, Nth: 1, What: fake.Slow, After: 8})
		want(true, false)
		w.pass(5)
		want(false, false)
		w.pass(3)
		want(false, true)
	})
}

// Looks that cost much come less often, so that they take 5 % of a core on average, and come
// as configured again when they are cheap. What is promised is made meanwhile all the same.
func TestLooksTakeTheirShareOfACore(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		looks := func(seconds int) int64 {
			before := w.looks.Load()
			w.pass(seconds)
			return w.looks.Load() - before
		}
		w.cost.Store(int64(100 * time.Millisecond))
		w.pass(10)
		if n := looks(100); n < 19 || n > 21 {
			t.Errorf("%d cheap looks in 100 s, want one every 5 s", n)
		}
		w.cost.Store(int64(time.Second))
		w.pass(10)
		if n := looks(120); n < 3 || n > 5 {
			t.Errorf("%d looks of a second in two minutes, want one every 30 s", n)
		}
		w.reserve("a", 1, 100, 100)
		w.pass(5)
		if r := w.get("a"); !r.Sites[0].Made {
			t.Errorf("promised it is %+v", r.Sites)
		}
		w.cost.Store(0)
		w.pass(50)
		if n := looks(100); n < 17 || n > 21 { // beside those for what begins and ends
			t.Errorf("%d looks in 100 s, want one every 5 s again", n)
		}
	})
}

// A site that does not answer is not asked for one promise after the other, and
// shows as one that does not answer before the adapter has given up.
func TestSilentSiteIsLeftInPeace(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		for i := range berth.Duration(40) {
			w.reserve(string(rune('A'+i)), 4, 100+10*i, 10)
		}
		w.pass(1)
		w.site.Inject(fake.Fault{Op: fake.Release, What: fake.Unsent}, fake.Fault{Op: fake.Change, What: fake.Unsent}, fake.Fault{Op: fake.Reserve, What: fake.Unsent})
		w.site.Restart(40)
		before := w.view().Seen
		w.pass(120)
		if after := w.view().Seen; after < before+60 {
			t.Errorf("last looked at %d s later, two minutes have passed", after-before)
		}
		if v := w.view(); v.Trouble == "" || len(v.Drift) == 0 {
			t.Errorf("trouble %q, drift %d", v.Trouble, len(v.Drift))
		}
		w.site.Heal()
		w.site.Inject(fake.Fault{Op: fake.Observe, What: fake.Unsent})
		w.pass(38)
		if v := w.view(); v.Reachable || v.Trouble == "" {
			t.Errorf("reachable %t, trouble %q", v.Reachable, v.Trouble)
		}
	})
}
