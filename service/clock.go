package service

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wholefile"
)

// The machine's clock is believed as long as it goes on. One wrong second of it would
// end every promise in between for good, so after a jump nothing is decided until the
// clock is right again or an operator says that it is.

const (
	// maxJump is by how much the clock may be off before it is not believed.
	maxJump = 5 * time.Minute
	// maxDown is for how long a machine that was started again may have been down.
	maxDown = time.Hour
	// witnessEvery is how often the time is written down for the next start.
	witnessEvery = time.Minute
	// distrust is how often a clock that is not believed is looked at.
	distrust = time.Second
)

// Uptime tells for how long the machine has been up, asleep or not, and which of its
// starts that counts from; empty if it cannot tell.
type Uptime func() (boot string, up time.Duration)

// machineUptime is the uptime of a Linux machine, to a hundredth of a second.
func machineUptime() (boot string, up time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0
	}
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return "", 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return "", 0
	}
	return strings.TrimSpace(string(id)), time.Duration(seconds * float64(time.Second))
}

// witness is a time at which the clock was right.
type witness struct {
	Wall time.Time     `json:"wall"`
	Boot string        `json:"boot,omitempty"`
	Up   time.Duration `json:"up,omitempty"`
}

// timekeeper believes the machine's clock or not. It is safe for concurrent use.
type timekeeper struct {
	wall   func() time.Time
	alike  func() time.Duration // grows as time passes, while the machine is awake
	uptime Uptime
	path   string // of the file that keeps the witness; empty for none

	mu      sync.Mutex
	right   time.Time // the clock was right here,
	at      time.Duration
	witness witness // and here, longer ago
	off     time.Duration
	why     string     // it is not believed; empty if it is
	alive   berth.Time // when the service was there last, before this start
}

// newTimekeeper begins at a start, at which the engine's time is at least last. Without a
// clock of its own the machine's is watched.
func newTimekeeper(o *Options, last berth.Time) *timekeeper {
	w := &timekeeper{wall: o.Clock, uptime: o.Uptime, path: o.ClockFile}
	if began := time.Now(); o.Clock == nil {
		w.wall = func() time.Time { return time.Now().Round(0) }
		w.alike = func() time.Duration { return time.Since(began) }
	}
	if w.uptime == nil {
		w.uptime = machineUptime
	}
	if o.Monotonic != nil {
		w.alike = o.Monotonic
	}
	now := w.wall()
	w.right, w.alive = now, min(last, berth.Time(now.Unix()))
	if w.alike != nil {
		w.at = w.alike()
	}
	if w.alike == nil && w.path == "" { // of a test, which sets it as it likes
		return w
	}
	w.start(now, last)
	if w.off == 0 {
		w.note(now)
	}
	return w
}

// start compares the clock with what is known of the time before the start. What a
// machine knows that has been up since is exact; the last record only says that it was
// later than that, perhaps by long.
func (w *timekeeper) start(now time.Time, last berth.Time) {
	data, err := os.ReadFile(w.path)
	var before witness
	known := err == nil && json.Unmarshal(data, &before) == nil // else it was not written down
	if seen := berth.Time(before.Wall.Unix()); known && seen <= berth.Time(now.Unix()) {
		w.alive = max(w.alive, seen)
	}
	boot, up := w.uptime()
	passed := now.Sub(before.Wall)
	up -= before.Up
	sinceBoot := known && boot != "" && boot == before.Boot
	ahead := time.Unix(int64(last), 0).Sub(now)
	switch {
	case sinceBoot && (passed-up).Abs() > maxJump:
		w.doubt(now, passed-up, "the machine has been up since it was right")
	case last > 0 && ahead > maxJump:
		w.doubt(now, -ahead, "the last record is of "+moment(now.Add(ahead)))
	case sinceBoot || !known:
	case passed < -maxJump:
		w.doubt(now, passed, "it was later when the service stopped")
	case passed > maxDown:
		w.doubt(now, passed, "so long after the service was last seen; if the machine was off, the clock may be right")
	}
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// doubt begins not to believe the clock, which is off by so much.
func (w *timekeeper) doubt(now time.Time, off time.Duration, why string) {
	w.off, w.why, w.right = off, why, now.Add(-off)
}

// now returns the time, which while the clock is not believed is what it would be, and
// whether the clock is believed.
func (w *timekeeper) now() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wall := w.wall()
	if w.alike == nil {
		return wall, w.off == 0
	}
	awake := w.alike()
	expected := w.right.Add(awake - w.at)
	off := wall.Sub(expected)
	if off.Abs() <= maxJump {
		if w.off != 0 || wall.Sub(w.witness.Wall) >= witnessEvery {
			w.note(wall)
		}
		w.right, w.at, w.off = wall, awake, 0
		return wall, true
	}
	if w.off == 0 && w.slept(wall) {
		w.right, w.at = wall, awake
		w.note(wall)
		return wall, true
	}
	if w.off == 0 {
		w.why = "it was right until " + moment(expected)
	}
	w.off = off
	return expected, false
}

// passed returns how long something has been going on, as the difference of two calls; 0 where a test
// sets the clock as it likes.
func (w *timekeeper) passed() time.Duration {
	if w.alike == nil {
		return 0
	}
	return w.alike()
}

// seconds is now in whole seconds, as sites that go by the service's clock take it.
func (w *timekeeper) seconds() (berth.Time, bool) {
	now, believed := w.now()
	return berth.Time(now.Unix()), believed
}

// slept reports whether the machine has slept: its uptime has grown as the clock has.
func (w *timekeeper) slept(wall time.Time) bool {
	boot, up := w.uptime()
	return boot != "" && boot == w.witness.Boot && (wall.Sub(w.witness.Wall)-(up-w.witness.Up)).Abs() <= maxJump
}

// note writes down that the clock is right, for the next start. A file that cannot be
// written costs no more than that.
func (w *timekeeper) note(wall time.Time) {
	boot, up := w.uptime()
	w.witness = witness{Wall: wall, Boot: boot, Up: up}
	if w.path == "" {
		return
	}
	data, err := json.Marshal(&w.witness)
	if err != nil {
		return
	}
	_ = wholefile.Write(w.path, append(data, '\n'))
}

// accept believes the clock as it is.
func (w *timekeeper) accept() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.right, w.off, w.why = w.wall(), 0, ""
	if w.alike != nil {
		w.at = w.alike()
	}
	w.note(w.right)
}

// err says why the clock is not believed, nil if it is.
func (w *timekeeper) err() error {
	if _, believed := w.now(); believed {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return berth.Errorf(berth.Unavailable, "clock", "the machine's clock is off by %s (%s), so nothing is decided, begun or ended; "+
		"set it right, or confirm it with: berth clock accept", w.off.Round(time.Second), w.why)
}

// skew returns by how much the clock is off, 0 if it is believed.
func (w *timekeeper) skew() time.Duration {
	w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.off
}

// AcceptClock believes the machine's clock as it is: promises whose time is over by it
// end now. Of a clock that is believed nothing is done: the time is written down under a
// lock that every decision needs. The error is of code Denied unless an operator says so.
func (h *Host) AcceptClock(_ context.Context, ask Ask) error {
	if !ask.By.Can(Operator) {
		return berth.Errorf(berth.Denied, "role", "only an operator says that the clock is right; ask with an operator's token")
	}
	if !ask.By.Sites.All() {
		return berth.Errorf(berth.Denied, "sites", "only an operator of all sites says that the clock is right")
	}
	skew := h.timekeeper.skew()
	if skew == 0 {
		return nil
	}
	h.log.Warn("the clock is accepted as it is", "by", ask.By.User, "skew", skew)
	h.timekeeper.accept()
	h.line.push(ask.By.User, func() {}) // there may be something due
	return nil
}
