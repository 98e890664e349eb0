// Package federation plays several engines under one virtual clock, as an experiment: requests of one part are asked at the home of
// their user and then where an index says that there may be room; parts that must be at several engines are held at each and confirmed
// together; engines fail on the way. It decides nothing that an engine decides, and no product uses it: docs/scale.md says what it shows.
package federation

import (
	"iter"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// Config is what is played. Engines decide when a request arrives; pools are in their sites.
type Config struct {
	Engines []engine.Config
	// Refresh is how old the index may be, in seconds: it is the state of all engines when it was last
	// looked at. 0 is the state of now.
	Refresh berth.Duration
	// Tries is how many engines are asked for a request of one engine, the home included; below 1 it is 1.
	Tries int
	// Trip is how long a question to another engine takes until it is answered, in seconds.
	Trip berth.Duration
	// Hold is for how long parts are held until they are confirmed, in seconds from the moment at which each was held; at least 1.
	Hold berth.Duration
	// Held is how many PEs of a thousand, of each engine, may be held and not confirmed at once; 0 is no bound.
	Held berth.Count
	// Wide lets an engine that holds nothing hold a part of any width all the same.
	Wide bool
	// Rounds is how many common starts are tried for parts at several engines.
	Rounds int
	// Failures are when engines answer nothing; what they have promised stays, and their time goes on. Those of one engine do not overlap.
	Failures []Failure
}

// Failure is an engine that answers nothing in [From, Until).
type Failure struct {
	Engine      int
	From, Until berth.Time
}

// Request is what a user of an engine asks for.
type Request struct {
	*berth.Request
	Home int // the engine that is asked first, and that leads what goes to several
	// Local requests are for the home alone. They name its site where one engine has all.
	Local bool
	// Apart asks that no two parts be at the same engine. With one engine it means nothing.
	Apart bool
}

// Outcome is what became of a request.
type Outcome struct {
	Number   int // of the request, from 0
	Request  Request
	Accepted bool
	Places   []Place    // by part
	Trips    int        // questions to other engines, one behind the other
	Decided  berth.Time // when the answer was there
}

// Place is what a part got.
type Place struct {
	Engine int
	berth.Allotment
}

// Totals are counts over all requests.
type Totals struct {
	Holds      int         // made
	Released   int         // given back by the leader
	Expired    int         // given up by the engine, since the leader did not come back in time
	Bounded    int         // not made because of Held
	Broken     int         // requests that had a part confirmed and taken back, since another part was not
	Silent     int         // questions to engines that were down
	Blocked    int64       // PE-seconds for which PEs of promised time were held in vain: PEs × the time from hold to release or expiry
	MostHeld   berth.Count // PEs of a thousand, of any engine, that were held at once
	Unreleased int         // holds that are left in the end; 0 unless something is wrong
}

// Play plays requests, sorted by arrival, and tells of each outcome once it is known, which need not be in their order. It
// is deterministic. An error is that of an engine's configuration or of a request. Cost: that of the engines' decisions,
// and O(engines × hours of the window) for a request that its home refuses.
func Play(config *Config, requests iter.Seq[Request], decided func(*Outcome)) (*Totals, error) {
	p, err := newPlay(config, decided)
	if err != nil {
		return nil, err
	}
	if err := p.run(requests); err != nil {
		return nil, err
	}
	totals := p.totals // without the engines
	return &totals, nil
}

func newPlay(config *Config, decided func(*Outcome)) (*play, error) {
	if config.Hold < 1 {
		return nil, berth.Errorf(berth.Invalid, "hold", "%d s; it must be at least 1", config.Hold)
	}
	p := &play{config: config, decided: decided}
	for i := range config.Engines {
		e, err := engine.New(config.Engines[i])
		if err != nil {
			return nil, err
		}
		m := &member{engine: e, number: i, holds: map[string]*hold{}}
		for _, s := range config.Engines[i].Sites {
			for _, pool := range s.Pools {
				m.size += pool.PEs
			}
		}
		p.members = append(p.members, m)
	}
	for _, f := range config.Failures {
		m := p.members[f.Engine]
		m.failures = append(m.failures, f)
	}
	return p, nil
}

// run plays all requests, and waits for what is still on its way.
func (p *play) run(requests iter.Seq[Request]) error {
	number := 0
	for r := range requests {
		p.until(r.Arrival)
		p.now = r.Arrival
		p.arrive(&Outcome{Number: number, Request: r})
		number++
		if p.failed != nil {
			return p.failed
		}
	}
	p.until(berth.Forever)
	p.now = p.now.Add(p.config.Hold) // what is held still, at engines that were down, expires
	for _, m := range p.members {
		if _, err := p.apply(m, engine.Wake()); err != nil {
			p.fail(err)
		}
		p.totals.Unreleased += len(m.holds)
	}
	return p.failed
}

// play is a run.
type play struct {
	config  *Config
	decided func(*Outcome)
	members []*member
	now     berth.Time
	steps   steps
	order   int // of steps
	index   index
	totals  Totals
	failed  error
	changes []change.Change // of the last Apply; the slices are used again
	effects []change.Effect
}

// member is an engine.
type member struct {
	engine   *engine.Engine
	number   int
	size     berth.Count
	failures []Failure
	promised hours
	held     berth.Count // of holds
	holds    map[string]*hold
}

// hold is a part that is held and not confirmed.
type hold struct {
	at    berth.Time
	place berth.Allotment
}

// down tells whether an engine answers nothing at a time, and until when.
func (m *member) down(at berth.Time) (until berth.Time, down bool) {
	for _, f := range m.failures {
		if f.From <= at && at < f.Until {
			return f.Until, true
		}
	}
	return 0, false
}

// later has something done at a time, which is not before now.
func (p *play) later(at berth.Time, do func()) {
	p.order++
	p.steps.push(step{max(at, p.now), p.order, do})
}

// until does what is to be done up to a time, that moment included: answers on their way come before a new request.
func (p *play) until(at berth.Time) {
	for len(p.steps) > 0 && p.steps[0].at <= at && p.failed == nil {
		s := p.steps.pop()
		p.now = s.at
		s.do()
	}
}

// apply has an engine decide, and follows what its holds become. It returns the places of what was accepted, and an error if the
// engine had one.
func (p *play) apply(m *member, event engine.Event) (places []berth.Allotment, err error) {
	p.changes, p.effects, err = m.engine.AppendApply(p.changes[:0], p.effects[:0], p.now, &event)
	for i := range p.changes {
		c := &p.changes[i]
		switch c.Kind {
		case change.Accepted:
			places = c.Reservation.Allotments
			for j := range places {
				m.promised.add(&places[j], 1)
			}
		case change.Expired:
			// An engine hears of its expiries when it is asked next, but they were when they were due.
			h := m.holds[c.ID]
			p.giveUp(m, c.ID, p.expiry(h))
			m.promised.add(&h.place, -1)
			p.totals.Expired++
		}
	}
	return places, err
}

// expiry returns when an engine gives a hold up by itself.
func (p *play) expiry(h *hold) berth.Time { return min(h.at.Add(p.config.Hold), h.place.End) }

// giveUp counts a hold that led to nothing.
func (p *play) giveUp(m *member, id string, at berth.Time) {
	h := m.holds[id]
	delete(m.holds, id)
	m.held -= h.place.NPE
	p.totals.Blocked += int64(h.place.NPE) * int64(at.Sub(h.at))
}

// arrive begins with a request.
func (p *play) arrive(o *Outcome) {
	r := &o.Request
	if r.Apart && len(r.Parts) > 1 && len(p.members) > 1 {
		p.split(o)
		return
	}
	p.ask(o, &inquiry{left: max(1, p.config.Tries)})
}

// tell ends a request.
func (p *play) tell(o *Outcome) {
	o.Decided = p.now
	p.decided(o)
}

// fail ends the run.
func (p *play) fail(err error) {
	if p.failed == nil {
		p.failed = err
	}
}

// inquiry is a request on its way from engine to engine.
type inquiry struct {
	left  int   // how many may still be asked
	next  []int // engines to ask; nil while only home was asked
	begun bool
}

// ask asks for a request of one engine: its home, then others by the index.
func (p *play) ask(o *Outcome, q *inquiry) {
	r := &o.Request
	for q.left > 0 && p.failed == nil {
		at := r.Home
		if q.begun {
			if q.next == nil {
				q.next = p.rank(r.Request, r.Home)
			}
			if len(q.next) == 0 {
				break
			}
			at, q.next = q.next[0], q.next[1:]
		}
		other := q.begun
		q.begun = true
		q.left--
		if r.Local {
			q.left = 0
		}
		if !other {
			if p.submit(o, at) {
				return
			}
			continue
		}
		o.Trips++
		if p.config.Trip == 0 {
			if p.submit(o, at) {
				return
			}
			continue
		}
		p.later(p.now.Add(p.config.Trip), func() {
			if !p.submit(o, at) {
				p.ask(o, q)
			}
		})
		return
	}
	p.tell(o)
}

// submit asks one engine for all of a request, and tells the outcome if that accepts it.
func (p *play) submit(o *Outcome, at int) bool {
	m := p.members[at]
	if _, down := m.down(p.now); down {
		p.totals.Silent++
		return false
	}
	places, err := p.apply(m, engine.Submit(o.Request.Request))
	if err != nil {
		p.fail(err)
		return false
	}
	if places == nil {
		return false
	}
	o.Accepted = true
	for i := range places {
		o.Places = append(o.Places, Place{at, places[i]})
	}
	p.tell(o)
	return true
}
