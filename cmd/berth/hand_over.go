package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/service"
)

const (
	// mostHeld is for how long a call is held while another service takes over.
	mostHeld = 10 * time.Second
	// lookForHeir is how often who hands over looks whether the other one leads.
	lookForHeir = 10 * time.Millisecond
	// heirHears is after what time a service that stands by has seen that it is to lead, and
	// asks for the lease often.
	heirHears = 200 * time.Millisecond
	// mostBehind is how far a service may be behind that is to lead: what it has not followed
	// yet, calls wait for.
	mostBehind = 2 * time.Second
)

// handOver is one time that the lease is handed over.
type handOver struct {
	to     string
	done   chan struct{} // closed when the other one leads, or will not
	leader string        // empty if it does not
	err    error
}

func (h *handOver) end(leader string, err error) {
	h.leader, h.err = leader, err
	close(h.done)
}

// colleagues is what a service that leads knows of those that stand by.
type colleagues struct {
	*serving
	host  *service.Host
	store *postgres.Store
	asked chan *handOver
	now   atomic.Pointer[handOver] // being handed over; calls are held
	busy  atomic.Bool              // there is one that was asked for
	seen  atomic.Pointer[[]postgres.Standby]
	end   context.CancelFunc // of looking who stands by
}

// beginOthers begins to look who stands by.
func (s *serving) beginOthers(host *service.Host, store *postgres.Store) *colleagues {
	c := &colleagues{serving: s, host: host, store: store, asked: make(chan *handOver, 1)}
	ctx, end := context.WithCancel(context.Background())
	c.end = end
	go host.Guard("looking who stands by", func() { c.watch(ctx) })
	return c
}

// watch keeps up who stands by, until the context ends.
func (c *colleagues) watch(ctx context.Context) {
	tick := time.NewTicker(lookForLeader)
	defer tick.Stop()
	for {
		if list, err := c.store.Standbys(ctx); err == nil {
			c.seen.Store(&list)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// handOvers yields what is asked for; nil if there is nothing to hand over.
func (c *colleagues) handOvers() <-chan *handOver {
	if c == nil {
		return nil
	}
	return c.asked
}

// skewed is closed when another service is to lead, because the clock of this one is wrong.
func (c *colleagues) skewed() <-chan struct{} {
	if c == nil || !c.standBy {
		return nil
	}
	return c.store.Skewed()
}

// giveWay returns the hand-over to any service whose clock is right.
func (c *colleagues) giveWay(ctx context.Context) *handOver {
	c.log.Error("the clock of this machine is off the database's, and that of another service is right, which is to lead", "by", c.store.Skew().Round(time.Second))
	h := &handOver{done: make(chan struct{})}
	c.now.Store(h) // it takes nothing any more
	if to, err := c.choose(ctx, ""); err == nil {
		h.to = to.Address
	}
	return h
}

// Elsewhere says that another service is about to lead.
func (c *colleagues) Elsewhere() error {
	h := c.now.Load()
	if h == nil {
		return nil
	}
	return berth.Errorf(berth.Unavailable, "service", "it hands over to %s; try again", cmp.Or(h.to, "another service"))
}

// Leader returns who leads once this service has handed over.
func (c *colleagues) Leader(ctx context.Context) string {
	h := c.now.Load()
	if h == nil {
		return ""
	}
	select {
	case <-h.done:
		return h.leader
	case <-ctx.Done():
	case <-time.After(mostHeld):
	}
	return ""
}

// Leading returns who leads and who stands by.
func (c *colleagues) Leading() form.Leading {
	f := form.Leading{Leader: c.address(), Standbys: []form.Standby{}}
	if last, err := c.store.Last(context.Background()); err == nil {
		f.Record = last.Number
	}
	if list := c.seen.Load(); list != nil {
		for i := range *list {
			b := &(*list)[i]
			f.Standbys = append(f.Standbys, form.Standby{Address: b.Address, Record: b.Number, Behind: b.Behind.Seconds(), ClockSkew: b.Skew.Seconds()})
		}
	}
	return f
}

// choose returns the service of an address, or the one that is furthest, if it can take over.
func (c *colleagues) choose(ctx context.Context, to string) (postgres.Standby, error) {
	list, err := c.store.Standbys(ctx)
	if err != nil {
		return postgres.Standby{}, err
	}
	if to == "" {
		list = slices.DeleteFunc(list, func(b postgres.Standby) bool { return !b.Right() || b.Behind > mostBehind })
		if len(list) == 0 {
			return postgres.Standby{}, berth.Errorf(berth.Conflict, "any", "no service stands by that could take over; start one with berth serve --standby")
		}
		return list[0], nil
	}
	var there []string
	for i := range list {
		b := &list[i]
		switch there = append(there, b.Address); {
		case b.Address != to:
		case !b.Right():
			return *b, berth.Errorf(berth.Conflict, "to", "%s: its clock is %s off the database's; set it right first", to, b.Skew.Round(time.Second))
		case b.Behind > mostBehind:
			return *b, berth.Errorf(berth.Unavailable, "to", "%s is %s behind; try again when it is less than %s", to, b.Behind.Round(time.Second), mostBehind)
		default:
			return *b, nil
		}
	}
	if len(there) == 0 {
		return postgres.Standby{}, berth.Errorf(berth.Conflict, "to", "%s does not stand by, nor does another service; start one with berth serve --standby", to)
	}
	return postgres.Standby{}, berth.Errorf(berth.Conflict, "to", "%s does not stand by; want %s", to, strings.Join(there, " or "))
}

// HandOver has another service lead, and waits until it does.
func (c *colleagues) HandOver(ctx context.Context, by, to string) (string, error) {
	if to = strings.TrimSuffix(to, "/"); to == c.address() {
		return to, nil // it leads
	}
	if !c.standBy {
		return "", berth.Errorf(berth.Conflict, "to", "this service was started without --standby, and could not stand by afterwards; stop it instead")
	}
	next, err := c.choose(ctx, to)
	if err != nil {
		return "", err
	}
	h := &handOver{to: next.Address, done: make(chan struct{})}
	if !c.busy.CompareAndSwap(false, true) {
		return "", berth.Errorf(berth.Conflict, "to", "another service is about to lead already")
	}
	c.asked <- h
	c.log.Warn("another service is to lead", "which", h.to, "by", by)
	select {
	case <-h.done:
		return h.leader, h.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// handOver lets another service lead. After an error with handed false the service is ended;
// with neither it goes on to lead.
func (s *serving) handOver(ctx context.Context, l *leading, h *handOver) (handed bool, err error) {
	c := l.others
	reader, err := postgres.Open(ctx, s.journal, postgres.Options{ReadOnly: true})
	var was postgres.Leader
	if err == nil {
		defer func() { err = errors.Join(err, reader.Close()) }()
		was, err = reader.Leader(ctx)
	}
	if err == nil {
		err = c.store.Announce(ctx, h.to)
	}
	if err != nil {
		s.log.Warn("the journal cannot be handed over", "error", err)
		c.now.Store(nil)
		h.end("", err)
		c.busy.Store(false)
		select {
		case <-time.After(lookForLeader): // or a clock that is wrong has it tried without a pause
		case <-ctx.Done():
		}
		return false, nil
	}
	select {
	case <-time.After(heirHears): // calls are answered meanwhile
	case <-ctx.Done():
	}
	began := time.Now()
	c.now.Store(h)
	if err := l.host.Resign(); err != nil {
		h.end("", err)
		return false, errors.Join(err, s.served.end(l.host))
	}
	if err := c.store.HandOver(h.to); err != nil {
		h.end("", err)
		return false, errors.Join(err, s.served.end(l.host))
	}
	leader, err := awaitLeader(ctx, reader, was.Number)
	h.end(leader, err)
	if err != nil {
		s.log.Error("no other service leads yet; this one stands by", "error", err)
		return true, nil
	}
	s.log.Warn("another service leads; this one stands by", "leader", leader, "held", time.Since(began).Round(time.Millisecond))
	return true, nil
}

// awaitLeader waits until another service has the lease and takes calls.
func awaitLeader(ctx context.Context, reader *postgres.Store, before uint64) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, mostHeld)
	defer cancel()
	for {
		if l, err := reader.Leader(ctx); err == nil && l.Number != before && l.Ready && !l.Free {
			return l.Address, nil
		}
		select {
		case <-ctx.Done():
			return "", berth.Errorf(berth.Unavailable, "service", "the other service has not taken over within %s", mostHeld)
		case <-time.After(lookForHeir):
		}
	}
}
