package service

import (
	"errors"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// Where a limit bounds what a promise may cost ordinary jobs, and some wait, it is foreseen beside the loop what that is before
// the promise is decided, as offers are (see foresee.go). What was foreseen is part of the event, and so on record; the engine of the loop decides.

const (
	// foreseenTries is how often an event is foreseen that would come to another place when it is decided.
	foreseenTries = 3
	// maxBounded is how many requests of a user and of their service accounts are foreseen, or wait for that, at once.
	maxBounded = 1000
)

// errForeseenElsewhere is the answer to an event whose place changes faster than it is foreseen.
var errForeseenElsewhere = berth.Errorf(berth.Unavailable, "foreseen", "others were promised the place whose cost was foreseen, %d times; ask again", foreseenTries)

// isForeseenElsewhere reports whether an error says that what an event costs was foreseen for another place than it would get.
func isForeseenElsewhere(err error) bool {
	e, is := errors.AsType[*berth.Error](err)
	return is && e.Code == berth.Conflict && e.Field == "foreseen"
}

// bounded is what is foreseen before it is decided. It is of the loop.
type bounded struct {
	under   map[keyName][]func() // who asks for the same meanwhile, by the key of what is foreseen
	waiting map[string]int       // how much is foreseen, by whose it counts as
	id      string               // of the request that is decided now
	look    *lookedAhead         // what was foreseen of it; nil if nothing was
}

func newBounded() bounded { return bounded{under: map[keyName][]func(){}, waiting: map[string]int{}} }

// lookedAhead is what was foreseen of an event.
type lookedAhead struct {
	foreseen *engine.Foreseen // nil if no job waits any more
	offers   offersAndCosts   // if it is refused
}

// offersAndCosts is offers within the limits on what they cost, with that.
type offersAndCosts struct {
	offers []engine.Offer
	costs  []*engine.Cost
}

// isUnder reports whether what was asked under a key is being foreseen.
func (b *bounded) isUnder(key Key) bool {
	_, is := b.under[key.name()]
	return is && key != (Key{})
}

// waits has something done once what was asked under the same key is decided, and reports whether that is being foreseen.
func (b *bounded) waits(key Key, again func()) bool {
	if !b.isUnder(key) {
		return false
	}
	b.under[key.name()] = append(b.under[key.name()], again)
	return true
}

// deciding notes what was foreseen of a request that is decided now, until the function that it returns is called.
func (b *bounded) deciding(id string, look *lookedAhead) (decided func()) {
	b.id, b.look = id, look
	return func() { b.id, b.look = "", nil }
}

// of returns what was foreseen of a request that is decided now, nil if nothing was.
func (b *bounded) of(id string) *engine.Foreseen {
	if b.look == nil || b.id != id {
		return nil
	}
	return b.look.foreseen
}

// offersFor returns the offers within the limits of a request that is decided now; known is false if it was not foreseen.
func (b *bounded) offersFor(id string) (offers offersAndCosts, known bool) {
	if b.look == nil || b.look.foreseen == nil || b.id != id {
		return offersAndCosts{}, false
	}
	return b.look.offers, true
}

// isBounded reports whether an event has to be foreseen before it is decided: a limit bounds what it may cost, and jobs
// wait, or it is not known whether any do. It is of the loop.
func (h *Host) isBounded(event *engine.Event) bool {
	q, unseen := h.jobsBounded(event)
	return q != nil || unseen != nil
}

// jobsBounded returns what the cost of an event is foreseen from, nil if no limit bounds it or no job waits. The error, of code
// Unavailable, says that a site has not told yet which jobs wait. It is of the loop.
func (h *Host) jobsBounded(event *engine.Event) (*queue, error) {
	if !h.core.engine.BoundsCost(event) {
		return nil, nil
	}
	for _, s := range h.core.config.Sites {
		k := h.sites[s.Name]
		if k == nil || k.last != nil || k.manager.Shadow {
			continue
		}
		if _, others := k.manager.Adapter.(site.Carrier); others {
			return nil, berth.Errorf(berth.Unavailable, "foreseen", "a limit bounds what this may cost ordinary jobs, and site %q has not told yet which wait; ask again when it is reached", k.name)
		}
	}
	return h.queue(h.clock()), nil
}

// ahead has an event foreseen and then decided by do, up to foreseenTries times while the error of do says that it would come to another
// place. fail answers with an error; one of do, other than that, is answered. What else is asked under the key meanwhile is asked again after that. It is of the loop.
func (h *Host) ahead(key Key, who string, event func(now berth.Time) engine.Event, do func(*lookedAhead) error, fail func(error)) {
	b, owner := &h.bounded, h.options.turnOf(who) // at the time: what is given back is what was taken
	if b.waiting[owner] >= maxBounded {
		fail(berth.Errorf(berth.Exhausted, "foreseen", "what %d requests of %s%s may cost ordinary jobs is being foreseen already; want at most %d, so wait for some", b.waiting[owner], owner, andAccounts(who, owner), maxBounded))
		return
	}
	b.waiting[owner]++
	if key != (Key{}) {
		b.under[key.name()] = nil
	}
	var try func(n int)
	try = func(n int) {
		h.lookAhead(who, event(h.awake()), func(look *lookedAhead, err error) {
			if err == nil {
				if err = do(look); !isForeseenElsewhere(err) {
					err = nil // which is answered
				} else if n < foreseenTries {
					try(n + 1)
					return
				} else {
					err = errForeseenElsewhere
				}
			}
			if b.waiting[owner]--; b.waiting[owner] == 0 {
				delete(b.waiting, owner)
			}
			same := b.under[key.name()]
			delete(b.under, key.name())
			if err != nil {
				fail(err)
			}
			for _, again := range same {
				h.line.push(who, again)
			}
		})
	}
	try(1)
}

// lookAhead has an event foreseen by the other core, in the turn of who asks, and hands that over in the loop. It is of the loop.
func (h *Host) lookAhead(who string, event engine.Event, then func(*lookedAhead, error)) {
	q, err := h.jobsBounded(&event)
	if q == nil || err != nil {
		then(&lookedAhead{}, err)
		return
	}
	h.besideFor(who, q, func(e *engine.Engine, quit func() bool) (look *lookedAhead, err error) {
		look = new(lookedAhead)
		if look.foreseen, err = h.foreseeOn(e, &event, q, q.now, quit); err != nil {
			return nil, err
		}
		event.Foreseen = look.foreseen
		if event.Request != nil && (len(look.foreseen.Places) == 0 || e.Exceeds(&event) != nil) {
			look.offers, err = offersOn(e, event.Request, alternativesTold, q, quit)
		}
		return look, err
	}, then)
}

// besideFor has something done with the engine of the other core, at least where the loop is now, and hands over what came of it in the
// loop. It has planMost for it. It is of the loop.
func (h *Host) besideFor(who string, q *queue, do func(e *engine.Engine, quit func() bool) (*lookedAhead, error), then func(*lookedAhead, error)) {
	s := &h.snapshots
	wanted := func() bool { return s.ctx.Err() == nil }
	h.whenDurable(func(failed error) {
		if failed != nil {
			h.line.push(who, func() { then(nil, failed) })
			return
		}
		h.planner.line.push(who, func() {
			var look *lookedAhead
			err := h.onOther(q.number, "foreseeing what a promise costs", wanted, func(e *engine.Engine) (err error) {
				began := time.Now()
				look, err = do(e, func() bool { return !wanted() || time.Since(began) > planMost })
				return err
			})
			if errors.Is(err, errOther) || !wanted() {
				err = berth.Errorf(berth.Unavailable, "foreseen", "what it would cost cannot be foreseen for now, the log says why; try again")
			}
			h.line.push(who, func() { then(look, err) })
		})
	})
}

// foreseeOn returns what an event would cost the jobs of a queue, by an engine of the other core. An event that it does not take would be promised nothing.
func (h *Host) foreseeOn(e *engine.Engine, event *engine.Event, q *queue, from berth.Time, quit func() bool) (*engine.Foreseen, error) {
	foreseen, err := e.Foresee(event, engine.Foresight{From: from, Queue: q.jobs, Looks: engine.BoundingLooks, Quit: quit})
	switch coded, is := errors.AsType[*berth.Error](err); {
	case err == nil:
	case is && coded.Code != berth.Unavailable:
		foreseen = new(engine.Foreseen)
	default:
		return nil, err
	}
	foreseen.Cost.Complete = foreseen.Cost.Complete && q.all
	foreseen.Record = h.snapshots.core.position.Number
	return foreseen, nil
}

// offersOn returns offers within the limits, none if not all jobs of a queue are known.
func offersOn(e *engine.Engine, r *berth.Request, most int, q *queue, quit func() bool) (list offersAndCosts, err error) {
	if !q.all {
		return list, nil
	}
	list.offers, list.costs, err = e.OffersWithin(r, most, engine.Foresight{From: q.now, Queue: q.jobs, Looks: engine.BoundingLooks, Quit: quit})
	if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.Invalid {
		return offersAndCosts{}, nil // its window is over
	}
	return list, err
}

// nameWithin gives names to offers within the limits.
func (h *Host) nameWithin(now berth.Time, user string, list offersAndCosts) []Offer {
	named := h.offers.name(now, user, list.offers)
	for i := range named {
		named[i].Cost = list.costs[i]
	}
	return named
}

// offersWithin answers with the offers of a request within the limits on what they cost.
func (h *Host) offersWithin(by Principal, r *berth.Request, most int, answer func([]Offer, error)) {
	q, err := h.jobsBounded(new(engine.Submit(r)))
	if err != nil {
		answer(nil, err)
		return
	}
	h.besideFor(by.User, q, func(e *engine.Engine, quit func() bool) (look *lookedAhead, err error) {
		look = new(lookedAhead)
		look.offers, err = offersOn(e, r, most, q, quit)
		return look, err
	}, func(look *lookedAhead, err error) {
		if err == nil && len(look.offers.offers) == 0 {
			err = h.unknownPartition(by, r.Partition)
		}
		if err != nil {
			answer(nil, err)
			return
		}
		list := h.nameWithin(h.core.engine.Now(), r.User, look.offers)
		h.whenDurable(func(failed error) { answer(list, failed) })
	})
}

// submitBounded is submit for a request that is foreseen first where a limit bounds what it may cost. then is called with the error of submit.
func (h *Host) submitBounded(a asked, r *berth.Request, w waiting, then func(error)) {
	if !h.isBounded(new(engine.Submit(r))) {
		then(h.submit(a, r, w))
		return
	}
	h.submitAhead(a, r, w, then)
}

// submitAhead is submitBounded of a request whose cost is foreseen first.
func (h *Host) submitAhead(a asked, r *berth.Request, w waiting, then func(error)) {
	w.key = a.key
	if known, err := h.again(a, w); known {
		then(err)
		return
	}
	if h.bounded.waits(a.key, func() { h.submitBounded(a, r, w, then) }) {
		return
	}
	h.ahead(a.key, a.by.User, func(now berth.Time) engine.Event {
		own := r.Clone()
		a.from.arrive(own, now)
		return engine.Submit(own)
	}, func(look *lookedAhead) error {
		defer h.bounded.deciding(r.ID, look)()
		err := h.submit(a, r.Clone(), w)
		if !isForeseenElsewhere(err) {
			then(err)
		}
		return err
	}, func(err error) {
		w.answer(nil, err) // and it may be tried again under the same key
		then(err)
	})
}

// lookAtChange has a change of a reservation foreseen before it is attempted.
func (h *Host) lookAtChange(p *proposal, first engine.Event, deny func(error)) {
	h.ahead(p.ask.key(), p.ask.By.User, func(berth.Time) engine.Event {
		if k := h.core.card(p.id); k != nil {
			if event, err := p.event(k); err == nil {
				return event
			}
		}
		return first
	}, func(look *lookedAhead) error {
		p.look, p.looking = look, true
		defer func() { p.looking = false }()
		return h.attempt(p)
	}, deny)
}
