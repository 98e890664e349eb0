package site

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Agent asks a site for its state on behalf of everybody: however many ask, the
// site is asked by one at a time and at most once in an interval. After a
// failure the interval doubles, up to 16 times the first, so a site in trouble
// is left in peace; until then everybody gets that failure.
type Agent struct {
	observer Observer
	every    time.Duration

	mu       sync.Mutex
	state    *State
	err      error
	asked    time.Time     // when the last answer was asked for
	wait     time.Duration // how long it is good
	writes   uint64        // counts Forget
	looks    uint64        // counts answers
	ongoing  chan struct{} // closed when the question now underway is answered; nil if there is none
	panicked *Panic        // how the observer panicked, if it did
}

// Panic is a panic in a goroutine that an adapter, or an agent for it, has started, as
// it is raised again in those who asked: in its own goroutine it would end the process.
type Panic struct {
	Value any
	Stack []byte // of the goroutine that it was in
}

// String returns what the panic was about.
func (p *Panic) String() string { return fmt.Sprint(p.Value) }

// Caught calls a function and returns how it panicked, nil if it did not.
func Caught(f func()) (p *Panic) {
	defer func() {
		if value := recover(); value != nil {
			p = &Panic{Value: value, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}

// maxBackoff is by how much an interval grows at most: a site polled every 30 s
// is asked again after 8 minutes at the latest.
const maxBackoff = 16

// NewAgent returns an agent that asks at most once in every.
func NewAgent(observer Observer, every time.Duration) *Agent {
	return &Agent{observer: observer, every: every}
}

// Observe returns a state no older than the interval, or asked for since the call,
// asking the site if there is none: a look that takes longer than the interval is as good. Everybody gets the same State, which must not be written. A caller
// who goes away does not take the answer from the others. A panic of the observer is
// raised in all who ask, from then on, with a *Panic.
func (a *Agent) Observe(ctx context.Context) (*State, error) {
	called := time.Now()
	for {
		a.mu.Lock()
		if p := a.panicked; p != nil {
			a.mu.Unlock()
			panic(p)
		}
		if a.wait > 0 && (time.Since(a.asked) < a.wait || !a.asked.Before(called)) {
			defer a.mu.Unlock()
			return a.state, a.err
		}
		if a.ongoing == nil {
			a.ongoing = make(chan struct{})
			go a.ask(context.WithoutCancel(ctx), a.writes, a.ongoing)
		}
		answered := a.ongoing
		a.mu.Unlock()
		select {
		case <-answered:
		case <-ctx.Done():
			return nil, &Error{Kind: Unreachable, Op: "observe", Msg: "no answer in time", Err: ctx.Err()}
		}
	}
}

// Forget lets the next Observe ask the site anew, because something was changed
// there. An answer now underway may be from before the change and is not kept.
func (a *Agent) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wait = 0
	a.writes++
}

func (a *Agent) ask(ctx context.Context, writes uint64, answered chan struct{}) {
	asked := time.Now()
	var state *State
	var err error
	panicked := Caught(func() { state, err = a.observer.Observe(ctx) })
	a.mu.Lock()
	defer a.mu.Unlock()
	defer close(answered)
	a.ongoing, a.panicked = nil, panicked
	if panicked != nil {
		return
	}
	if writes != a.writes {
		return
	}
	switch {
	case err == nil:
		a.wait = a.every
	case a.err == nil:
		a.wait = 2 * a.every
	default:
		a.wait = min(2*max(a.wait, a.every), maxBackoff*a.every)
	}
	if err == nil {
		a.looks++
		seen := *state // it may be one that the observer goes on to give out
		seen.Look, seen.Took = a.looks, time.Since(asked)
		state = &seen
	}
	a.state, a.err, a.asked = state, err, asked
}
