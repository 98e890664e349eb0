package service_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// wrongClock is a harbour whose machine has a clock that can be wrong. What really passes
// is the time of the bubble.
type wrongClock struct {
	*harbour
	*rand.Rand
	off      atomic.Int64 // seconds
	requests int
	// promised are the allotments of what was promised and not given back, by id.
	promised map[string][]berth.Allotment
	tasks    int // that were handed in
	compared int // promises that were looked at after the clock was wrong
}

// In random histories of requests, arrays and tasks at a managed site, in which the clock
// goes wrong again and again, while the service runs and over restarts: as long as it is
// wrong nothing is put on record, and nothing is made, ended or started at the site; every
// question for something is left open and not refused. Whatever was promised is kept, on
// its PEs at its time, and no task ends but by itself or with its reservation.
func TestAWrongClockEndsNothingAtAManagedSite(t *testing.T) {
	tasks, compared := 0, 0
	for seed := range storms() {
		unit := []site.Unit{site.UnitNode, site.UnitCore}[seed%2]
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			inHarbour(t, unit, func(t *testing.T, w *harbour) {
				c := &wrongClock{harbour: w, Rand: rand.New(rand.NewPCG(uint64(seed), 9)), promised: map[string][]berth.Allotment{}}
				w.outcome = func(site.Task) (berth.Duration, site.Result) {
					return berth.Duration(50 + c.IntN(2000)), site.Result{Ending: site.Completed}
				}
				epoch := time.Now()
				w.options.ClockFile = filepath.Join(t.TempDir(), "clock.json")
				w.options.Clock = func() time.Time { return time.Now().Add(time.Duration(c.off.Load()) * time.Second) }
				w.options.Monotonic = func() time.Duration { return time.Since(epoch) }
				w.options.Uptime = func() (string, time.Duration) { return "boot", time.Since(epoch) }
				w.restart()
				for range 12 {
					for range 1 + c.IntN(4) {
						c.happen()
						w.pass(c.IntN(120))
					}
					c.goWrong()
					c.kept()
				}
				tasks, compared = tasks+c.tasks, compared+c.compared
				if err := w.inLine(); err != nil {
					t.Error(err)
				}
			})
		})
	}
	if t.Logf("%d tasks, %d promises compared", tasks, compared); tasks < storms() || compared < 20*storms() {
		t.Errorf("%d tasks, %d promises compared; the test must see more", tasks, compared)
	}
}

func (c *wrongClock) request() berth.Request {
	c.requests++
	ready := c.now() + berth.Time(c.IntN(1500))
	length := berth.Duration(300 + c.IntN(1500))
	return berth.Rigid(fmt.Sprint("r", c.requests), 0, ready, ready.Add(length)+6000, berth.Count(1+c.IntN(3)), length)
}

// note remembers what was promised.
func (c *wrongClock) note(answers ...service.Answer) {
	for i := range answers {
		if r := &answers[i].Reservation; len(r.Allotments) > 0 {
			c.promised[r.ID] = r.Allotments
		}
	}
}

// happen lets one thing happen while the clock is right.
func (c *wrongClock) happen() {
	c.t.Helper()
	switch c.IntN(7) {
	case 0, 1:
		c.note(submit(c.t, c.host, ann, c.request()))
	case 2:
		r := c.request()
		answers, err := c.host.SubmitArray(c.t.Context(), ann, r, 2+c.IntN(3))
		if err != nil {
			c.t.Fatal(err)
		}
		c.note(answers...)
	case 3, 4:
		for _, id := range slices.Sorted(maps.Keys(c.promised)) {
			if r := c.get(id); r.State == service.Active && r.Sites[0].Made {
				c.run(id)
				c.tasks++
				return
			}
		}
	case 5:
		ids := slices.Sorted(maps.Keys(c.promised))
		if len(ids) == 0 {
			return
		}
		if _, err := c.host.Release(c.t.Context(), ann, ids[0]); err != nil && codeOf(err) != berth.Conflict && codeOf(err) != berth.NotFound {
			c.t.Fatal(err)
		}
		delete(c.promised, ids[0])
	case 6:
		c.restart()
	}
}

// standing is what a wrong clock must not change.
type standing struct {
	last    journal.Position
	ours    []site.Booking
	running []site.Job
	ended   []site.Job
	pending int
}

func (c *wrongClock) standing() standing {
	c.t.Helper()
	last, err := c.store.Last(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	state := c.state()
	return standing{last, state.Ours, state.Running, state.Ended, len(state.Pending)}
}

// goWrong has the clock be wrong for some time.
func (c *wrongClock) goWrong() {
	c.t.Helper()
	off := []int64{600, 7200, 3 * 86_400, 400 * 86_400}[c.IntN(4)]
	if c.IntN(2) == 0 {
		off = -off
	}
	c.off.Store(off)
	if c.IntN(3) == 0 {
		if err := c.host.Close(); err != nil {
			c.t.Fatal(err)
		}
		c.open()
	}
	c.pass(10) // what had been decided before is done
	before := c.standing()
	for range 1 + c.IntN(4) {
		if err := c.host.Ready(); codeOf(err) != berth.Unavailable {
			c.t.Errorf("off by %d s, and it is ready: %v", off, err)
		}
		_, err := c.host.Submit(c.t.Context(), ann, c.request())
		_, err2 := c.host.SubmitArray(c.t.Context(), ann, c.request(), 2)
		if codeOf(err) != berth.Unavailable || codeOf(err2) != berth.Unavailable {
			c.t.Errorf("off by %d s, requests are answered with %v and %v", off, err, err2)
		}
		for _, id := range slices.Sorted(maps.Keys(c.promised)) {
			_, err := c.host.Run(c.t.Context(), ann, id, site.Task{Command: []string{"x"}, Dir: "/"})
			_, err2 := c.host.Release(c.t.Context(), ann, id)
			if codeOf(err) != berth.Unavailable || codeOf(err2) != berth.Unavailable {
				c.t.Errorf("off by %d s, a task is answered with %v and a release with %v", off, err, err2)
			}
			break
		}
		c.pass(c.IntN(200))
	}
	after := c.standing()
	if after.last != before.last {
		c.t.Errorf("off by %d s, records %d to %d were written", off, before.last.Number+1, after.last.Number)
	}
	c.untouchedFrom(&before, &after)
	c.off.Store(0)
	c.pass(10)
	if err := c.host.Ready(); err != nil {
		c.t.Errorf("it is right again: %v", err)
	}
}

// untouchedFrom compares the site before and after, between which only time passed.
func (c *wrongClock) untouchedFrom(before, after *standing) {
	c.t.Helper()
	now := c.now()
	for i := range after.ours {
		b := &after.ours[i]
		if !slices.ContainsFunc(before.ours, func(was site.Booking) bool { return was.Name == b.Name }) {
			c.t.Errorf("%s was made", b.Name)
		}
	}
	for i := range before.ours {
		b := &before.ours[i]
		if b.End > now && !slices.ContainsFunc(after.ours, func(is site.Booking) bool { return is.Name == b.Name && is.Start == b.Start && is.End == b.End }) {
			c.t.Errorf("%s until %d was changed or taken down at %d", b.Name, b.End, now)
		}
	}
	for i := range after.ended {
		j := &after.ended[i]
		if j.Result.Ending == site.Cancelled && !slices.ContainsFunc(before.ended, func(was site.Job) bool { return was.ID == j.ID }) {
			c.t.Errorf("job %s of %s was cancelled", j.ID, j.Reservation)
		}
	}
	if len(after.running)+len(after.ended)+after.pending != len(before.running)+len(before.ended)+before.pending {
		c.t.Errorf("%d jobs ran, %d had ended; now it is %d and %d", len(before.running), len(before.ended), len(after.running), len(after.ended))
	}
}

// kept fails the test unless every promise is kept: in its place, and running if its time
// has come.
func (c *wrongClock) kept() {
	c.t.Helper()
	c.pass(30)
	now := c.now()
	for _, id := range slices.Sorted(maps.Keys(c.promised)) {
		promised, r := c.promised[id], c.get(id)
		a := promised[0]
		want := service.Confirmed
		switch {
		case a.End <= now-20:
			delete(c.promised, id)
			want = service.Finished
		case a.End <= now+20 || a.Start > now-20 && a.Start <= now+20:
			continue // in these seconds it may be one or the other
		case a.Start <= now:
			want = service.Active
		}
		if c.compared++; r.State != want {
			c.t.Errorf("%s from %d to %d is %s at %d, want %s", id, a.Start, a.End, r.State, now, want)
		}
		if len(r.Allotments) == 0 || r.Allotments[0].Start != a.Start || r.Allotments[0].End != a.End || !a.PEs.Empty() && !r.Allotments[0].PEs.Equal(a.PEs) {
			c.t.Errorf("%s was promised %+v and is %+v", id, promised, r.Allotments)
		}
	}
}
