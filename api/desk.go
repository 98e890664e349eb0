package api

import (
	"context"
	"runtime"
	"sync"
)

// desk bounds costly work: one call of each user, with their service accounts, at a time, and as many in all as there
// are processors, but at least two. A user who sends many such calls waits for their own,
// and others do not. The zero value is closed; newDesk makes one.
type desk struct {
	mu      sync.Mutex
	free    int
	busy    map[string]bool // users at work
	waiting []applicant     // in their order
}

type applicant struct {
	user  string
	enter chan struct{} // closed once they may
}

func newDesk() *desk { return &desk{free: max(2, runtime.GOMAXPROCS(0)), busy: map[string]bool{}} }

// enter waits for a user's turn. The error is that of ctx, which has ended. Who has
// entered has to leave.
func (d *desk) enter(ctx context.Context, user string) error {
	one := applicant{user, make(chan struct{})}
	d.mu.Lock()
	d.waiting = append(d.waiting, one)
	d.admit()
	d.mu.Unlock()
	select {
	case <-one.enter:
		return nil
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.waiting {
		if d.waiting[i].enter == one.enter {
			d.waiting = append(d.waiting[:i], d.waiting[i+1:]...)
			return ctx.Err()
		}
	}
	d.done(user) // they were let in meanwhile
	return ctx.Err()
}

func (d *desk) leave(user string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done(user)
}

func (d *desk) done(user string) {
	delete(d.busy, user)
	d.free++
	d.admit()
}

// admit lets in who is next, of those who are not at work. Cost: O(waiting).
func (d *desk) admit() {
	rest := d.waiting[:0]
	for _, one := range d.waiting {
		if d.free == 0 || d.busy[one.user] {
			rest = append(rest, one)
			continue
		}
		d.free--
		d.busy[one.user] = true
		close(one.enter)
	}
	clear(d.waiting[len(rest):])
	d.waiting = rest
}

const (
	// lightBody is the largest body that is read without waiting for a turn: a request of
	// a hundred variants is smaller.
	lightBody = 16 << 10
	// bytesAtOnce is how much of a body is read for the price of one call.
	bytesAtOnce = 16 << 10
)

// begin waits until the costly part of a call may be done; it ends with rest, at the
// latest with the call.
func (c *call) begin() error {
	if c.working {
		return nil
	}
	seat := c.asker().all()[0].user
	if err := c.desk.enter(c.r.Context(), seat); err != nil {
		return err
	}
	c.working, c.seat = true, seat
	return nil
}

// lightAnswer is the largest number of reservations, tasks or occurrences that are told without waiting for a turn.
const lightAnswer = 50

// telling is begin where an answer takes milliseconds to be written: it tells of a number of reservations, tasks or
// occurrences that is large, or of a large body.
func (c *call) telling(many int) error {
	if many <= lightAnswer && len(c.body) <= lightBody {
		return nil
	}
	return c.begin()
}

// rest lets others work while a call waits for something.
func (c *call) rest() {
	if c.working {
		c.working = false
		c.desk.leave(c.seat)
	}
}
