// Package sitetest holds every adapter of a site to the same promises. It knows
// no adapter; each runs the suite in a test of its own, against a site that is
// really there.
package sitetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Subject is a site under test.
type Subject struct {
	Name     string // of the site, as the adapter was told
	Observer site.Observer
	Booker   site.Booker
	Runner   site.Runner  // nil if the site runs nothing
	Drainer  site.Drainer // nil if it has no nodes to drain
	Now      func() berth.Time
	// Wait lets time pass until the condition holds, at most for the duration,
	// and reports whether it held.
	Wait func(most berth.Duration, until func() bool) bool
	// Places are two shares that can be booked apart from each other.
	Places [2]site.Share
	// Count is a reservation of half of the site by number: Nodes or Cores.
	Count site.Reservation
	// Partition is a partition with both places, empty if there are none.
	Partition string
	User      string // who may use reservations, and whose tasks run
	Dir       string // where User may write
	// Foreign makes a reservation of another user on the share, which lasts
	// until the test ends, and returns its name; nil if no other user can.
	Foreign func(t *testing.T, start, end berth.Time, share site.Share) string
	// Settle is how long the site may take for what is not immediate.
	Settle berth.Duration
	// LimitUnit is the unit in which the site counts time limits; 0 is a second.
	LimitUnit berth.Duration
}

// serial makes every promise of a process another one, so that tests can share
// a site that takes long to start.
var serial atomic.Int64

// fixture is a subject within one test.
type fixture struct {
	*Subject
	ctx context.Context
}

// Run runs the suite. Open returns a site on which nothing of ours is booked;
// it may be the same site every time.
func Run(t *testing.T, open func(t *testing.T) *Subject) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *fixture)
	}{
		{"DescriptionIsWhole", testDescription},
		{"StateFollowsDescription", testState},
		{"ReserveTwiceIsOnce", testReserveTwice},
		{"NamesAreTakenOnce", testNameTaken},
		{"PlacesAreTakenOnce", testPlaceTaken},
		{"EndsAreHalfOpen", testHalfOpen},
		{"ReleaseTwiceIsOnce", testReleaseTwice},
		{"ReleasedRoomIsFree", testReleasedRoom},
		{"ChangeIsWholeOrNothing", testChange},
		{"LaterGenerationWins", testSuperseded},
		{"NonsenseIsInvalid", testNonsense},
		{"UnknownPlacesAreNotFound", testUnknown},
		{"PastStartIsNow", testPastStart},
		{"PastEndIsExpired", testPastEnd},
		{"CountsAreChosenApart", testCount},
		{"ForeignIsNeverTouched", testForeign},
		{"DriftIsFound", testDrift},
		{"ManyAtOnceIsOnce", testConcurrent},
		{"EndedContextDoesNothing", testContext},
		{"ManyAreAnsweredInTurn", testMany},
		{"ManyCountsAreChosenApart", testManyCounts},
		{"ManyInAnEndedContext", testManyContext},
		{"DrainIsSeen", testDrain},
		{"TaskRunsInItsReservation", testTask},
		{"TaskFailsWithItsCode", testTaskFails},
		{"TaskRunsOnce", testTaskOnce},
		{"KeyIsOfOneTask", testKeyOfOneTask},
		{"ArrayRunsEveryIndex", testArray},
		{"CancelEndsTask", testCancel},
		{"LimitEndsTask", testLimit},
		{"ReleaseEndsTask", testReleaseEndsTask},
		{"TaskWaitsForItsReservation", testTaskWaits},
		{"TaskNeedsItsReservation", testTaskElsewhere},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fixture{Subject: open(t), ctx: t.Context()}
			c.test(t, f)
		})
	}
}

// want returns a reservation of place 0 or 1 from an hour hence, which is
// released when the test ends.
func (f *fixture) want(t *testing.T, place int) site.Reservation {
	start := f.Now() + 3600
	r := site.Reservation{
		Name: site.NameOf(f.Name, fmt.Sprintf("%s %d", t.Name(), serial.Add(1)), 1), Start: start, End: start + 1800,
		Shares: []site.Share{f.Places[place]}, Users: []string{f.User}, Partition: f.Partition,
	}
	f.releaseAtEnd(t, r.Name)
	return r
}

// soon is want of the first place from now on for a minute: room for a task.
func (f *fixture) soon(t *testing.T) site.Reservation {
	r := f.want(t, 0)
	r.Start = f.Now()
	r.End = r.Start + 60
	return r
}

func (f *fixture) releaseAtEnd(t *testing.T, name site.Name) {
	t.Cleanup(func() {
		if err := f.Booker.Release(context.WithoutCancel(f.ctx), name); err != nil {
			t.Errorf("after the test: %v", err)
		}
	})
}

// book reserves and wants it made.
func (f *fixture) book(t *testing.T, r site.Reservation) *site.Booking {
	t.Helper()
	got, err := f.Booker.Reserve(f.ctx, r)
	if err != nil || got.Verdict != site.Made || got.Booking == nil {
		t.Fatalf("reserve %s: %+v %v, want it made", r.Name, got, err)
	}
	return got.Booking
}

// state observes.
func (f *fixture) state(t *testing.T) *site.State {
	t.Helper()
	state, err := f.Observer.Observe(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// ours finds a booking of ours; nil if it is not there.
func (f *fixture) ours(t *testing.T, name site.Name) *site.Booking {
	t.Helper()
	return find(f.state(t).Ours, string(name))
}

func find(bookings []site.Booking, name string) *site.Booking {
	for i := range bookings {
		if bookings[i].Name == name {
			return &bookings[i]
		}
	}
	return nil
}

// asPromised wants the booking there and as promised.
func (f *fixture) asPromised(t *testing.T, r site.Reservation) {
	t.Helper()
	have := f.ours(t, r.Name)
	if have == nil {
		t.Fatalf("%s is not there", r.Name)
	}
	if what := r.Differences(have, f.Now()); len(what) > 0 {
		t.Fatalf("%s is not as promised: %q", r.Name, what)
	}
}

// refused wants an ordinary no.
func refused(t *testing.T, got site.Outcome, err error) {
	t.Helper()
	if err != nil || got.Verdict != site.Refused || got.Reason.Rank() < 0 {
		t.Fatalf("%+v %v, want it refused with a reason", got, err)
	}
}

// failed wants an error of a kind.
func failed(t *testing.T, err error, kind site.Kind) {
	t.Helper()
	if got := site.KindOf(err); got != kind || kind == "" {
		t.Fatalf("error %v is of kind %q, want %q", err, got, kind)
	}
}
