package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/postgres"
)

// A clock is off by what the way to the database and back cannot explain.
func TestSkewIsWhatTheWayCannotExplain(t *testing.T) {
	for _, c := range []struct{ sent, received, told, want int }{
		{100, 100, 100, 0},
		{100, 103, 101, 0},  // between the two
		{100, 400, 399, 0},  // however long it took
		{160, 161, 100, 60}, // ahead
		{160, 400, 100, 60}, // by at least that
		{100, 101, 161, -60},
		{100, 130, 161, -31},
	} {
		at := func(n int) time.Time { return time.Unix(int64(n), 0) }
		if got := postgres.SkewOf(at(c.sent), at(c.received), at(c.told)); got != time.Duration(c.want)*time.Second {
			t.Errorf("sent at %d and answered at %d, when the database has %d: %v, want %d s", c.sent, c.received, c.told, got, c.want)
		}
	}
}

// standing is a server that waits for the lease.
type standing struct {
	off   atomic.Int64 // of its clock
	taken chan *postgres.Store
}

func stands(t *testing.T, ctx context.Context, place, address string, off time.Duration) *standing {
	t.Helper()
	s := &standing{taken: make(chan *postgres.Store, 1)}
	s.off.Store(int64(off))
	go func() {
		store, err := postgres.Open(ctx, at(place), postgres.Options{
			Address: address, Wait: time.Hour, Clock: s.clock,
			Progress: func() postgres.Progress { return postgres.Progress{Number: 7, Behind: time.Second / 4} },
		})
		if err != nil && ctx.Err() == nil {
			t.Errorf("%s: %v", address, err)
		}
		s.taken <- store
	}()
	return s
}

func (s *standing) clock() time.Time { return time.Now().Round(0).Add(time.Duration(s.off.Load())) }

// seen waits until n services stand by.
func seen(t *testing.T, by *postgres.Store, n int) []postgres.Standby {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		list, err := by.Standbys(t.Context())
		if err != nil || time.Since(began) > time.Minute {
			t.Fatal(list, err)
		}
		if len(list) == n {
			return list
		}
	}
}

// A lease that is handed over is taken by its heir, even if another service asks first. If the heir is gone, another one takes it.
func TestTheHeirTakesTheLease(t *testing.T) {
	shared(t)
	place := t.TempDir()
	first, err := postgres.Open(t.Context(), at(place), postgres.Options{Address: "http://a"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	others := map[string]*standing{}
	for _, address := range []string{"http://b", "http://c", "http://d"} {
		others[address] = stands(t, ctx, place, address, 0)
	}
	for _, s := range seen(t, first, 3) {
		if s.Number != 7 || s.Behind != time.Second/4 || !s.Right() {
			t.Errorf("%+v", s)
		}
	}
	if err := first.Announce(t.Context(), "http://d"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := first.HandOver("http://d"); err != nil {
		t.Fatal(err)
	}
	d := <-others["http://d"].taken
	t.Logf("the heir has it after %v", time.Since(began).Round(time.Millisecond))
	if l, err := d.Leader(t.Context()); err != nil || l.Address != "http://d" || l.Ready || l.Free {
		t.Errorf("%+v, %v", l, err)
	}
	if err := d.TakesCalls(t.Context()); err != nil {
		t.Error(err)
	}
	if l, err := d.Leader(t.Context()); err != nil || !l.Ready {
		t.Errorf("%+v, %v", l, err)
	}
	seen(t, d, 2)
	began = time.Now()
	if err := d.HandOver("http://gone"); err != nil {
		t.Fatal(err)
	}
	var last *postgres.Store
	select {
	case last = <-others["http://b"].taken:
	case last = <-others["http://c"].taken:
	case <-time.After(time.Minute):
		t.Fatal("no server has the lease that an heir did not take")
	}
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("another one took the lease after %v", took)
	}
	cancel()
	if err := last.Close(); err != nil {
		t.Error(err)
	}
}

// A writer whose clock is off writes on while no other one could do better; else it is told to give way, and takes the
// lease only where no other server can.
func TestAWriterWhoseClockIsOffGivesWay(t *testing.T) {
	shared(t)
	place := t.TempDir()
	var off atomic.Int64
	first, err := postgres.Open(t.Context(), at(place), postgres.Options{Address: "http://a", Clock: func() time.Time { return time.Now().Round(0).Add(time.Duration(off.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wrong := stands(t, ctx, place, "http://b", -time.Minute)
	if list := seen(t, first, 1); list[0].Right() {
		t.Errorf("%+v", list)
	}
	off.Store(int64(time.Minute))
	for first.Skew() < postgres.MaxSkew { // until it is measured
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(time.Second) // two renewals
	if err := first.Leads(); err != nil {
		t.Errorf("with no better one: %v", err)
	}
	right := stands(t, ctx, place, "http://c", 0)
	select {
	case <-first.Skewed():
	case <-time.After(time.Minute):
		t.Fatal("it is not told to give way")
	}
	if err := first.Leads(); codeOf(err) != berth.Unavailable {
		t.Error(err)
	}
	if err := first.Close(); err != nil { // for anyone
		t.Fatal(err)
	}
	var c *postgres.Store
	select {
	case c = <-right.taken:
	case <-wrong.taken:
		t.Fatal("one whose clock is off has taken the lease, and another one stands by")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	b := <-wrong.taken // no other one is there
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
