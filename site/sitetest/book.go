package sitetest

import (
	"context"
	"sync"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

func testDescription(t *testing.T, f *fixture) {
	d, err := f.Observer.Describe(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d.Manager == "" || d.Version == "" || d.Cluster == "" || len(d.Nodes) == 0 || !d.Rights.Reserve || d.Rights.As == "" {
		t.Fatalf("description lacks something: %+v", d)
	}
	known := map[string]bool{}
	for _, n := range d.Nodes {
		if n.Name == "" || known[n.Name] || n.Cores < 1 {
			t.Errorf("node %+v: want a name of its own and cores", n)
		}
		known[n.Name] = true
	}
	for _, p := range d.Partitions {
		for _, n := range p.Nodes {
			if !known[n] {
				t.Errorf("partition %s has node %q, which is none", p.Name, n)
			}
		}
	}
	for _, place := range f.Places {
		if !known[place.Node] {
			t.Errorf("place %+v is not described", place)
		}
	}
}

func testState(t *testing.T, f *fixture) {
	d, err := f.Observer.Describe(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	state := f.state(t)
	if len(state.Nodes) != len(d.Nodes) {
		t.Fatalf("%d nodes in the state, %d described", len(state.Nodes), len(d.Nodes))
	}
	for i := range d.Nodes {
		if n := state.Nodes[i]; n.Name != d.Nodes[i].Name || n.Condition != site.Up {
			t.Errorf("node %d is %+v, want %s, up", i, n, d.Nodes[i].Name)
		}
	}
	if skew := state.At - f.Now(); skew < -2 || skew > 2 {
		t.Errorf("state is of %d, now is %d", state.At, f.Now())
	}
	if len(state.Ours) > 0 {
		t.Errorf("there are reservations of ours before any was made: %+v", state.Ours)
	}
}

func testReserveTwice(t *testing.T, f *fixture) {
	r := f.want(t, 0)
	made := f.book(t, r)
	if what := r.Differences(made, f.Now()); len(what) > 0 {
		t.Fatalf("what was made is not as promised: %q", what)
	}
	again, err := f.Booker.Reserve(f.ctx, r)
	if err != nil || again.Verdict != site.Already || again.Booking == nil {
		t.Fatalf("again: %+v %v, want already", again, err)
	}
	f.asPromised(t, r)
	if n := len(f.state(t).Ours); n != 1 {
		t.Fatalf("%d reservations of ours, want 1", n)
	}
}

func testNameTaken(t *testing.T, f *fixture) {
	r := f.want(t, 0)
	f.book(t, r)
	other := r
	other.End += 60
	got, err := f.Booker.Reserve(f.ctx, other)
	refused(t, got, err)
	if got.Reason != berth.RefusedConflict {
		t.Errorf("reason %s, want %s", got.Reason, berth.RefusedConflict)
	}
	f.asPromised(t, r)
}

func testPlaceTaken(t *testing.T, f *fixture) {
	r, rival, neighbour := f.want(t, 0), f.want(t, 0), f.want(t, 1)
	f.book(t, r)
	rival.Start, rival.End = rival.Start+60, rival.End+60
	got, err := f.Booker.Reserve(f.ctx, rival)
	refused(t, got, err)
	f.book(t, neighbour)
	f.asPromised(t, r)
	f.asPromised(t, neighbour)
	if f.ours(t, rival.Name) != nil {
		t.Fatal("what was refused is there")
	}
}

func testHalfOpen(t *testing.T, f *fixture) {
	first, second := f.want(t, 0), f.want(t, 0)
	second.Start = first.End
	second.End = second.Start + 600
	f.book(t, first)
	f.book(t, second)
	f.asPromised(t, first)
	f.asPromised(t, second)
}

func testReleaseTwice(t *testing.T, f *fixture) {
	r := f.want(t, 0)
	f.book(t, r)
	for range 2 {
		if err := f.Booker.Release(f.ctx, r.Name); err != nil {
			t.Fatal(err)
		}
		if f.ours(t, r.Name) != nil {
			t.Fatal("it is still there")
		}
	}
	if err := f.Booker.Release(f.ctx, site.NameOf(f.Name, "never made", 7)); err != nil {
		t.Fatalf("what was never there: %v", err)
	}
}

func testReleasedRoom(t *testing.T, f *fixture) {
	r, next := f.want(t, 0), f.want(t, 0)
	f.book(t, r)
	if err := f.Booker.Release(f.ctx, r.Name); err != nil {
		t.Fatal(err)
	}
	f.book(t, next)
	f.asPromised(t, next)
}

func testChange(t *testing.T, f *fixture) {
	r, after := f.want(t, 0), f.want(t, 0)
	after.Start = r.End + 600
	after.End = after.Start + 600
	f.book(t, r)
	f.book(t, after)

	longer := r
	longer.End += 600
	longer.Start -= 60
	got, err := f.Booker.Change(f.ctx, longer)
	if err != nil || got.Verdict != site.Made || got.Booking == nil {
		t.Fatalf("longer: %+v %v, want it made", got, err)
	}
	f.asPromised(t, longer)
	if got, err = f.Booker.Change(f.ctx, longer); err != nil || got.Verdict != site.Already {
		t.Fatalf("longer again: %+v %v, want already", got, err)
	}

	tooLong := longer
	tooLong.End += 1
	tooLong.Users = append([]string{"daemon"}, tooLong.Users...)
	got, err = f.Booker.Change(f.ctx, tooLong)
	refused(t, got, err)
	f.asPromised(t, longer)
	f.asPromised(t, after)

	got, err = f.Booker.Change(f.ctx, r)
	if err != nil || got.Verdict != site.Made {
		t.Fatalf("back: %+v %v, want it made", got, err)
	}
	f.asPromised(t, r)

	_, err = f.Booker.Change(f.ctx, f.want(t, 1))
	failed(t, err, site.NotFound)
}

func testSuperseded(t *testing.T, f *fixture) {
	old, later := f.want(t, 0), f.want(t, 1)
	old.Name, later.Name = site.NameOf(f.Name, t.Name(), 1), site.NameOf(f.Name, t.Name(), 2)
	f.releaseAtEnd(t, old.Name)
	f.releaseAtEnd(t, later.Name)
	f.book(t, later)
	_, err := f.Booker.Reserve(f.ctx, old)
	failed(t, err, site.Conflict)
	if f.ours(t, old.Name) != nil {
		t.Fatal("an earlier generation was made beside a later one")
	}
	f.asPromised(t, later)
}

func testNonsense(t *testing.T, f *fixture) {
	for name, spoil := range map[string]func(*site.Reservation){
		"end before start": func(r *site.Reservation) { r.End = r.Start - 1 },
		"no user":          func(r *site.Reservation) { r.Users = nil },
		"user":             func(r *site.Reservation) { r.Users = []string{"a b;rm"} },
		"account":          func(r *site.Reservation) { r.Accounts = []string{"x,y"} },
		"name":             func(r *site.Reservation) { r.Name = "berth x" },
		"partition":        func(r *site.Reservation) { r.Partition = "-p" },
		"node":             func(r *site.Reservation) { r.Shares = []site.Share{{Node: "n1 Flags=MAINT"}} },
		"nothing":          func(r *site.Reservation) { r.Shares = nil },
		"node twice":       func(r *site.Reservation) { r.Shares = append(r.Shares, r.Shares...) },
	} {
		r := f.want(t, 0)
		before := r.Name
		spoil(&r)
		got, err := f.Booker.Reserve(f.ctx, r)
		if site.KindOf(err) != site.Invalid || got.Verdict != "" {
			t.Errorf("%s: %+v %v, want it invalid", name, got, err)
		}
		if f.ours(t, before) != nil {
			t.Errorf("%s: it was made", name)
		}
	}
}

func testUnknown(t *testing.T, f *fixture) {
	r := f.want(t, 0)
	r.Shares = []site.Share{{Node: "no-such-node"}}
	_, err := f.Booker.Reserve(f.ctx, r)
	failed(t, err, site.NotFound)
	if f.Partition == "" {
		return
	}
	r = f.want(t, 0)
	r.Partition = "no-such-partition"
	_, err = f.Booker.Reserve(f.ctx, r)
	failed(t, err, site.NotFound)
}

func testPastStart(t *testing.T, f *fixture) {
	r := f.want(t, 0)
	r.Start = f.Now() - 600
	f.book(t, r)
	f.asPromised(t, r)
	if b := f.ours(t, r.Name); b.Start < f.Now()-5 {
		t.Errorf("it starts at %d, which had passed at %d", b.Start, f.Now())
	}
	if again, err := f.Booker.Reserve(f.ctx, r); err != nil || again.Verdict != site.Already {
		t.Errorf("again: %+v %v, want already", again, err)
	}
}

func testPastEnd(t *testing.T, f *fixture) {
	r := f.want(t, 0)
	r.Start, r.End = f.Now()-600, f.Now()-60
	got, err := f.Booker.Reserve(f.ctx, r)
	refused(t, got, err)
	if got.Reason != berth.Expired {
		t.Errorf("reason %s, want %s", got.Reason, berth.Expired)
	}
}

func testCount(t *testing.T, f *fixture) {
	count := func() site.Reservation {
		r := f.want(t, 0)
		r.Shares, r.Nodes, r.Cores = nil, f.Count.Nodes, f.Count.Cores
		return r
	}
	a, b, c := count(), count(), count()
	f.book(t, a)
	f.book(t, b)
	f.asPromised(t, a)
	f.asPromised(t, b)
	if o, overlaps := site.Overlap(f.ours(t, a.Name), f.state(t).Ours); overlaps {
		t.Fatalf("the site gave the same twice: %+v and %+v", f.ours(t, a.Name), o)
	}
	got, err := f.Booker.Reserve(f.ctx, c)
	refused(t, got, err)
	if got.Reason != berth.NoCapacity {
		t.Errorf("reason %s, want %s", got.Reason, berth.NoCapacity)
	}
}

func testForeign(t *testing.T, f *fixture) {
	if f.Foreign == nil {
		t.Skip("only Berth makes reservations at this site")
	}
	start := f.Now() + 7200
	name := f.Foreign(t, start, start+600, f.Places[0])
	before := find(f.state(t).Foreign, name)
	if before == nil || find(f.state(t).Ours, name) != nil {
		t.Fatalf("%s is not among the reservations of others", name)
	}
	r := f.want(t, 0)
	r.Start, r.End = start-60, start+60
	got, err := f.Booker.Reserve(f.ctx, r)
	refused(t, got, err)
	failed(t, f.Booker.Release(f.ctx, site.Name(name)), site.Denied)
	after := find(f.state(t).Foreign, name)
	if after == nil || after.Start != before.Start || after.End != before.End {
		t.Fatalf("it was %+v and is %+v", before, after)
	}
}

func testDrift(t *testing.T, f *fixture) {
	kept, changed, missing, extra := f.want(t, 0), f.want(t, 1), f.want(t, 0), f.want(t, 0)
	extra.Start = kept.End + 60
	extra.End = extra.Start + 60
	missing.Start = extra.End + 60
	missing.End = missing.Start + 60
	f.book(t, kept)
	f.book(t, changed)
	f.book(t, extra)
	changed.End += 60
	found := site.FindDrift([]site.Reservation{kept, changed, missing}, f.state(t))
	kinds := map[site.Name]site.DriftKind{}
	for _, d := range found {
		kinds[d.Name] = d.Kind
	}
	if len(found) != 3 || kinds[changed.Name] != site.Changed || kinds[missing.Name] != site.Missing || kinds[extra.Name] != site.Extra {
		t.Fatalf("drift %+v, want one changed, one missing, one extra", found)
	}
}

func testConcurrent(t *testing.T, f *fixture) {
	same := f.want(t, 0)
	rivals := make([]site.Reservation, 4)
	for i := range rivals {
		rivals[i] = f.want(t, 1)
	}
	const callers = 4
	var group sync.WaitGroup
	verdicts := make(chan site.Verdict, callers+len(rivals))
	rivalVerdicts := make(chan site.Verdict, len(rivals))
	reserve := func(r site.Reservation, to chan<- site.Verdict) {
		got, err := f.Booker.Reserve(f.ctx, r)
		if err != nil {
			t.Error(err)
		}
		to <- got.Verdict
	}
	for range callers {
		group.Go(func() { reserve(same, verdicts) })
	}
	for _, r := range rivals {
		group.Go(func() { reserve(r, rivalVerdicts) })
	}
	group.Wait()
	close(verdicts)
	close(rivalVerdicts)
	if got := tally(verdicts); got[site.Made] != 1 || got[site.Already] != callers-1 {
		t.Errorf("the same by %d callers: %v, want it made once and already there for the others", callers, got)
	}
	if got := tally(rivalVerdicts); got[site.Made] != 1 || got[site.Refused] != len(rivals)-1 {
		t.Errorf("%d rivals for one place: %v, want one made and the others refused", len(rivals), got)
	}
}

func tally(verdicts <-chan site.Verdict) map[site.Verdict]int {
	counts := map[site.Verdict]int{}
	for v := range verdicts {
		counts[v]++
	}
	return counts
}

func testContext(t *testing.T, f *fixture) {
	r := f.want(t, 0)
	ended, cancel := context.WithCancel(f.ctx)
	cancel()
	got, err := f.Booker.Reserve(ended, r)
	failed(t, err, site.Unreachable)
	if got.Verdict != "" && got.Verdict != site.Doubt {
		t.Errorf("verdict %s with an error", got.Verdict)
	}
	if _, err := f.Observer.Observe(ended); err == nil {
		t.Error("an observation without time succeeded")
	}
	if f.ours(t, r.Name) != nil && got.Verdict == "" {
		t.Error("it was made, and nothing was said of doubt")
	}
}

func testDrain(t *testing.T, f *fixture) {
	if f.Drainer == nil {
		t.Skip("this site has no nodes to drain")
	}
	node := f.Places[0].Node
	if err := f.Drainer.Drain(f.ctx, node, `a fan "3" = bad`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Drainer.Resume(context.WithoutCancel(f.ctx), node) })
	condition := func() (site.Condition, string) {
		for _, n := range f.state(t).Nodes {
			if n.Name == node {
				return n.Condition, n.Reason
			}
		}
		return "", ""
	}
	if got, reason := condition(); got != site.Drained || reason != `a fan "3" = bad` {
		t.Fatalf("%s is %s because %q, want it drained with the reason given", node, got, reason)
	}
	if err := f.Drainer.Resume(f.ctx, node); err != nil {
		t.Fatal(err)
	}
	if got, _ := condition(); got != site.Up {
		t.Fatalf("%s is %s, want it up again", node, got)
	}
	failed(t, f.Drainer.Drain(f.ctx, "no-such-node", "x"), site.NotFound)
}
