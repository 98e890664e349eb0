package service

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/notice"
)

// Messenger sends notices to receivers.
type Messenger interface {
	// Send sends a notice to a hook, in bounded time.
	Send(ctx context.Context, hook *Hook, o *Owed) Sent
}

// Sent is what came of sending a notice.
type Sent struct {
	Status int    // of the answer; 0 if there was none
	Words  string // why it failed; empty if it did not
	Final  bool   // it is in vain to try it again
	// Disable is why nothing is to be sent there any more; empty if something is.
	Disable string
}

const (
	// lanes is how many notices are sent to a hook at a time; to one that fails it is one.
	lanes = 4
	// dueEvery is how often notices are looked for that follow from the time alone, and idleEvery how often
	// it is looked whether something is to be sent although nothing has changed, in seconds.
	dueEvery  berth.Duration = 15
	idleEvery berth.Duration = 600
	// mostRest is for how long a hook rests at most that fails, in seconds.
	mostRest berth.Duration = 300
)

// courier sends what is owed, beside the loop: it follows the durable records alone. What came of it
// goes on record, so that after a restart what may not have arrived is sent again with the same id.
type courier struct {
	host *Host
	wake chan struct{}
	stop context.CancelFunc
	ends sync.WaitGroup

	mu        sync.Mutex
	messenger Messenger
	ctx       context.Context //nolint:containedctx // ends with the service, for what is being sent
	of        map[string]*receiver
	tried     []tried
	disabled  []disabledHook
	handed    bool // the loop takes in what was tried

	// Of the goroutine that begins to send.
	proposed map[dueNotice]berth.Time // what was found due, and for which time
	dueAt    berth.Time               // when it is looked for next
}

// receiver is a hook with what is to be sent to it.
type receiver struct {
	hook   Hook
	owed   []*Owed
	busy   map[uint64]int // numbers of notices that are being sent, or what came of it is not on record yet, with their tries until then
	active int            // how many are being sent
	fails  int            // on end
	rest   berth.Time     // until when nothing is sent
}

func (c *courier) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// show takes in hooks as durable records have them.
func (c *courier) show(list []shownHook) {
	if len(list) == 0 {
		return
	}
	c.mu.Lock()
	for _, s := range list {
		r := c.of[s.id]
		switch {
		case s.hook == nil:
			delete(c.of, s.id)
			continue
		case r == nil:
			r = &receiver{busy: map[uint64]int{}}
			c.of[s.id] = r
		case slices.Compare(r.hook.Sealed, s.hook.Sealed) != 0 || r.hook.Disabled != s.hook.Disabled:
			r.fails, r.rest = 0, 0 // it may work by now
		}
		r.hook, r.owed = *s.hook, s.owed
		for number, tries := range r.busy {
			if o := find(r.owed, number); o == nil || len(o.Tries) > tries {
				delete(r.busy, number)
			}
		}
	}
	c.mu.Unlock()
	c.poke()
}

// SendNotices has notices be sent from now on, until the service is closed. It is called once.
func (h *Host) SendNotices(m Messenger) {
	c := &h.courier
	ctx, stop := context.WithCancel(context.Background())
	c.mu.Lock()
	c.messenger, c.ctx, c.stop = m, ctx, stop
	c.mu.Unlock()
	c.ends.Go(func() { h.Guard("sending notices", c.run) })
}

// end gives up what is being sent.
func (c *courier) end() {
	c.mu.Lock()
	stop := c.stop
	c.mu.Unlock()
	if stop != nil {
		stop()
		c.ends.Wait()
	}
}

func (c *courier) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for c.ctx.Err() == nil {
		timer.Reset(c.begin())
		select {
		case <-c.wake:
		case <-timer.C:
		case <-c.ctx.Done():
		}
	}
}

// begin begins to send what is due, receiver by receiver by their ids, and returns after how long to look again. A service that
// may lead no more sends nothing: who leads does.
func (c *courier) begin() time.Duration {
	now := c.host.Now()
	if c.host.leads() != nil {
		return time.Second
	}
	wait := c.lookForDue(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(c.of)) {
		r := c.of[id]
		if r.hook.Disabled != "" {
			continue
		}
		if r.rest > now && r.rest <= now.Add(mostRest) { // else the clock was set back
			wait = min(wait, r.rest.Sub(now))
			continue
		}
		wait = min(wait, c.beginAt(id, r, now))
	}
	return time.Duration(max(1, wait)) * time.Second
}

// beginAt begins to send what is due to a receiver, in order for each reservation: what is behind a notice
// that is tried again waits for that.
func (c *courier) beginAt(id string, r *receiver, now berth.Time) berth.Duration {
	most, wait := lanes, idleEvery
	if r.hook.Failing != 0 || r.fails > 0 {
		most = 1
	}
	blocked := map[string]bool{}
	for i, o := range r.owed {
		if r.active >= most {
			break
		}
		if o.Kind == notice.Gap && i > 0 { // it stands for what comes after all before it
			break
		}
		about := o.about()
		if _, busy := r.busy[o.Number]; busy || blocked[about] {
			blocked[about] = true
			continue
		}
		if at, _ := o.Next(); at > now && o.waits(now) {
			blocked[about] = true
			wait = min(wait, at.Sub(now))
			continue
		}
		blocked[about] = true
		r.busy[o.Number] = len(o.Tries)
		r.active++
		hook := r.hook
		c.ends.Go(func() { c.host.Guard("sending a notice", func() { c.send(id, &hook, o) }) })
	}
	return wait
}

// send sends a notice and hands over what came of it.
func (c *courier) send(id string, hook *Hook, o *Owed) {
	sent := c.messenger.Send(c.ctx, hook, o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil && sent.Words != "" {
		return // the service ends: it is tried again after that
	}
	now := c.host.Now()
	if r := c.of[id]; r != nil {
		r.active--
		if r.fails++; sent.Words == "" {
			r.fails = 0
		} else {
			r.rest = now.Add(min(mostRest, 1<<min(r.fails-1, 10)))
		}
	}
	c.tried = append(c.tried, tried{id, o.Number, Try{At: now, Status: sent.Status, Words: sent.Words, Final: sent.Final}})
	if sent.Disable != "" {
		c.disabled = append(c.disabled, disabledHook{id, sent.Disable})
	}
	if !c.handed {
		c.handed = true
		c.host.line.push("", c.handOver)
	}
	c.poke()
}

// handOver puts on record what was tried. It is of the loop.
func (c *courier) handOver() {
	c.mu.Lock()
	list, disabled := c.tried, c.disabled
	c.tried, c.disabled, c.handed = nil, nil, false
	c.mu.Unlock()
	c.host.tellTried(list, disabled)
}

// lookForDue finds notices that follow from the time alone, and returns after how long to look again. Cost:
// O(requests), where such are wanted.
func (c *courier) lookForDue(now berth.Time) berth.Duration {
	of := map[string][]Hook{}
	c.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(c.of)) { // what is found goes on record in this order
		r := c.of[id]
		if r.hook.Disabled == "" && r.hook.hasTimes() {
			of[r.hook.User] = append(of[r.hook.User], r.hook)
		}
	}
	c.mu.Unlock()
	if len(of) == 0 {
		c.proposed = nil
		return idleEvery
	}
	if now < c.dueAt && c.dueAt <= now.Add(dueEvery) {
		return c.dueAt.Sub(now)
	}
	c.dueAt = now.Add(dueEvery)
	m, err := c.host.seen()
	if err != nil {
		return dueEvery
	}
	proposed := map[dueNotice]berth.Time{}
	var due []dueNotice
	m.cards.Scan(func(k *card) bool {
		if k.end != "" || k.promise == nil || k.request == nil {
			return true
		}
		hooks := of[k.request.User]
		for i := range hooks {
			for _, kind := range byTime() {
				d := dueNotice{hooks[i].ID, k.id, kind}
				if at, is := hooks[i].dueOf(kind, k, now); is {
					if proposed[d] = at; c.proposed[d] != at {
						due = append(due, d)
					}
				}
			}
		}
		return true
	})
	c.proposed = proposed
	if len(due) > 0 {
		c.host.line.push("", func() { c.host.tellDue(due) })
	}
	return dueEvery
}
