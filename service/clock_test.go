package service_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// machine is a machine whose clock can be wrong.
type machine struct {
	real  atomic.Int64 // seconds that have really passed
	off   atomic.Int64 // by how much its clock is off, in seconds
	slept atomic.Int64 // seconds of them asleep
	boot  atomic.Int64 // how often it was started
}

func codeOf(err error) berth.Code {
	if coded, is := errors.AsType[*berth.Error](err); is {
		return coded.Code
	}
	return ""
}

const began = 1_795_262_400

func (m *machine) open(t *testing.T, dir string) (*service.Host, func()) {
	t.Helper()
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	from := m.real.Load() - m.slept.Load()
	h, err := service.Open(t.Context(), service.Options{
		Config: onePool(4), Journal: store, Version: "test", ClockFile: filepath.Join(dir, "clock.json"),
		Clock:     func() time.Time { return time.Unix(began+m.real.Load()+m.off.Load(), 0) },
		Monotonic: func() time.Duration { return time.Duration(m.real.Load()-m.slept.Load()-from) * time.Second },
		Uptime: func() (string, time.Duration) {
			return strings.Repeat("b", int(m.boot.Load())+1), time.Duration(m.real.Load()) * time.Second
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return h, func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// pass lets a second pass, with the loop looking at the clock.
func (m *machine) pass(t *testing.T, h *service.Host, seconds int64) {
	t.Helper()
	m.real.Add(seconds)
	_, _ = h.Offers(t.Context(), ann, berth.Rigid("", 0, 0, berth.TimeLimit-1, 1, 1), 1) // wakes it, if it believes the clock
}

// A clock that jumps ends and begins nothing, and refuses nothing: nothing is decided
// until it is right again, while it serves and over a restart, and after that it goes on
// as if it had been right.
func TestAWrongClockEndsNothing(t *testing.T) {
	for _, off := range []time.Duration{-72 * time.Hour, -2 * time.Hour, -10 * time.Minute, 10 * time.Minute, 2 * time.Hour, 72 * time.Hour} {
		for _, restart := range []bool{false, true} {
			t.Run(off.String()+map[bool]string{true: " over a restart"}[restart], func(t *testing.T) {
				m, dir := new(machine), t.TempDir()
				h, stop := m.open(t, dir)
				submit(t, h, ann, berth.Rigid("runs", 0, began, began+100_000, 2, 3600))
				waits := submit(t, h, ann, berth.Rigid("waits", 0, began+1800, began+100_000, 2, 7200)).Reservation
				held := berth.Rigid("held", 0, began+1800, began+100_000, 1, 60)
				held.Hold = 300
				submit(t, h, ann, held)
				m.pass(t, h, 60)
				if restart {
					stop()
				}
				m.off.Store(int64(off / time.Second))
				if restart {
					h, stop = m.open(t, dir)
				}
				for range 2 {
					m.pass(t, h, 1)
					if err := h.Ready(); err == nil || !strings.Contains(err.Error(), "clock") || !strings.Contains(err.Error(), "berth clock accept") {
						t.Fatalf("it is ready: %v", err)
					}
					if _, err := h.Submit(t.Context(), ann, berth.Rigid("new", 0, began, began+80_000, 1, 60)); codeOf(err) != berth.Unavailable {
						t.Errorf("a request is answered with %v", err)
					}
				}
				if err := h.AcceptClock(t.Context(), ann); codeOf(err) != berth.Denied {
					t.Errorf("a user says that it is right: %v", err)
				}
				m.off.Store(0)
				m.pass(t, h, 1)
				if err := h.Ready(); err != nil {
					t.Fatal(err)
				}
				for id, want := range map[string]service.State{"runs": service.Active, "waits": service.Confirmed, "held": service.Held} {
					r, err := h.Get(t.Context(), ann.By, id)
					if err != nil || r.State != want {
						t.Errorf("%s is %s, %v; want %s", id, r.State, err, want)
					}
				}
				if a := submit(t, h, ann, berth.Rigid("new", 0, began, began+80_000, 1, 60)); a.Reservation.State == service.Refused {
					t.Errorf("refused: %+v", a.Reservation.Refusal)
				}
				if r, err := h.Get(t.Context(), ann.By, "waits"); err != nil || r.Allotments[0].Start != waits.Allotments[0].Start {
					t.Errorf("%v, was %v, %v", r.Allotments, waits.Allotments, err)
				}
				stop()
			})
		}
	}
}

// A clock that is wrong at a restart, long after the last record, is believed as soon as it
// is right: the machine knows for how long it has been up.
func TestAClockThatComesRightAfterARestartIsBelieved(t *testing.T) {
	for i, off := range []int64{-7200, -600, 600, 7200} {
		m, dir := new(machine), t.TempDir()
		h, stop := m.open(t, dir)
		submit(t, h, ann, berth.Rigid("runs", 0, began, began+100_000, 2, 3600))
		m.pass(t, h, 1)
		for range 30 { // in which nothing happens
			m.real.Add(60)
			if err := h.Ready(); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		m.real.Add(int64(i) * 3600) // the service is stopped for so long, and the machine is not
		m.off.Store(off)
		h, stop = m.open(t, dir)
		if err := h.Ready(); codeOf(err) != berth.Unavailable {
			t.Errorf("off by %d s: %v", off, err)
		}
		m.off.Store(0)
		m.pass(t, h, 1)
		if err := h.Ready(); err != nil {
			t.Errorf("it was off by %d s and is right: %v", off, err)
		}
		stop()
	}
}

// What is no jump is believed: seconds, a clock that is put right little by little, a
// machine that slept, and one that was off for a while. What else is right is accepted.
func TestAClockThatIsRightIsBelieved(t *testing.T) {
	m, dir := new(machine), t.TempDir()
	h, stop := m.open(t, dir)
	ready := func(what string) {
		t.Helper()
		if err := h.Ready(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 100 { // which is 500 s in all
		m.off.Add(5)
		m.pass(t, h, 60)
		ready("a clock that is slewed")
	}
	m.slept.Add(7200)
	m.pass(t, h, 7200)
	ready("after two hours of sleep")
	m.off.Add(-60)
	m.pass(t, h, 1)
	ready("a minute back")
	stop()

	m.real.Add(86_400 * 3)
	h, stop = m.open(t, dir)
	ready("the service was stopped for three days, and the machine was not")
	stop()
	m.boot.Add(1)
	m.real.Add(1800)
	h, stop = m.open(t, dir)
	ready("the machine was off for half an hour")
	stop()
	m.boot.Add(1)
	m.real.Add(86_400)
	h, stop = m.open(t, dir)
	if err := h.Ready(); codeOf(err) != berth.Unavailable {
		t.Errorf("the machine was off for a day, or its clock is wrong: %v", err)
	}
	if err := h.AcceptClock(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	ready("an operator says that it is right")
	m.pass(t, h, 10)
	ready("and it goes on")
	stop()
}

// Accepting a clock that is right writes nothing: who says so again and again holds up no
// decision.
func TestAcceptingAClockThatIsRightWritesNothing(t *testing.T) {
	m, dir := new(machine), t.TempDir()
	h, stop := m.open(t, dir)
	defer stop()
	path := filepath.Join(dir, "clock.json")
	written := func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	m.pass(t, h, 1)
	before := written()
	m.pass(t, h, 1)
	if err := h.AcceptClock(t.Context(), root); err != nil || written() != before {
		t.Errorf("%v; written down is %s, was %s", err, written(), before)
	}
	m.off.Add(3600)
	if err := h.AcceptClock(t.Context(), root); err != nil || written() == before {
		t.Errorf("of a clock that was off: %v; written down is %s still", err, written())
	}
}
