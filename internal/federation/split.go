package federation

import (
	"errors"
	"fmt"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// split is a request whose parts are held at engines of their own, and confirmed together. Its leader is the home.
type split struct {
	outcome *Outcome
	parts   []held
	rest    []int // engines that may be asked in place of one that has no room
	start   berth.Time
	rounds  int
	names   int // of holds so far
}

// held is one part of it.
type held struct {
	engine    int
	id        string // of the hold; empty if there is none
	place     berth.Allotment
	confirmed bool
}

// split asks for parts at several engines.
func (p *play) split(o *Outcome) {
	r := &o.Request
	s := &split{outcome: o, parts: make([]held, len(r.Parts)), start: r.Ready}
	// Each engine has one part, so what it must have room for is one.
	one := *r.Request
	one.Parts = one.Parts[:1]
	engines := append([]int{r.Home}, p.rank(&one, r.Home)...)
	if len(engines) < len(s.parts) {
		p.tell(o)
		return
	}
	for i := range s.parts {
		s.parts[i].engine = engines[i]
	}
	s.rest = engines[len(s.parts):]
	p.round(s)
}

// led waits for the leader to be there; it reports whether it is.
func (p *play) led(s *split, do func()) bool {
	until, down := p.members[s.outcome.Request.Home].down(p.now)
	if down {
		p.later(until, do)
	}
	return !down
}

// round holds what is not held at the start that was found last. If all parts begin together they are to be confirmed; else the latest
// begin is the next start. Starts only grow, so this ends.
func (p *play) round(s *split) {
	if !p.led(s, func() { p.round(s) }) {
		return
	}
	r := &s.outcome.Request
	if s.rounds == max(1, p.config.Rounds) {
		p.abandon(s)
		return
	}
	s.rounds++
	s.outcome.Trips++
	// Nothing is to begin before it is confirmed everywhere.
	s.start = max(s.start, p.now.Add(2*p.config.Trip+1))
	lacking := false
	for i := range s.parts {
		part := &s.parts[i]
		if part.id != "" && part.place.Start == s.start {
			continue
		}
		p.release(part)
		if p.hold(s, i) {
			continue
		}
		lacking = true
		if len(s.rest) == 0 {
			p.abandon(s)
			return
		}
		part.engine, s.rest = s.rest[0], s.rest[1:]
	}
	latest, together := s.start, !lacking
	for i := range s.parts {
		if part := &s.parts[i]; part.id != "" {
			latest = max(latest, part.place.Start)
		}
	}
	for i := range s.parts {
		together = together && s.parts[i].place.Start == latest
	}
	s.start = latest
	if together {
		p.later(p.now.Add(p.config.Trip), func() { p.confirm(s) })
		return
	}
	if latest >= r.Deadline {
		p.abandon(s)
		return
	}
	p.later(p.now.Add(p.config.Trip), func() { p.round(s) })
}

// hold asks an engine to hold a part at the start of the round or later.
func (p *play) hold(s *split, i int) bool {
	r, part := &s.outcome.Request, &s.parts[i]
	m, npe := p.members[part.engine], r.Parts[i].Variants[0].NPE
	if _, down := m.down(p.now); down {
		p.totals.Silent++
		return false
	}
	// Time may have ended holds that the engine has not told of yet.
	if _, err := p.apply(m, engine.Wake()); err != nil {
		p.fail(err)
		return false
	}
	if p.config.Held > 0 && m.held+npe > m.size*p.config.Held/1000 && (m.held > 0 || !p.config.Wide) {
		p.totals.Bounded++
		return false
	}
	one := *r.Request
	one.ID, one.Parts, one.Ready, one.Hold = fmt.Sprintf("%s/%d", r.ID, s.names), r.Parts[i:i+1], s.start, p.config.Hold
	s.names++
	if one.Ready.Add(r.Parts[i].Variants[0].Duration) > one.Deadline {
		return false
	}
	places, err := p.apply(m, engine.Submit(&one))
	if err != nil {
		p.fail(err)
		return false
	}
	if places == nil {
		return false
	}
	part.id, part.place = one.ID, places[0]
	m.holds[part.id] = &hold{p.now, part.place}
	m.held += npe
	p.totals.Holds++
	p.totals.MostHeld = max(p.totals.MostHeld, 1000*m.held/m.size)
	return true
}

// release gives a hold back. One at an engine that is down expires there.
func (p *play) release(part *held) {
	id, m := part.id, p.members[part.engine]
	if id == "" {
		return
	}
	part.id = ""
	if _, down := m.down(p.now); down || m.holds[id] == nil {
		return
	}
	if _, err := p.apply(m, engine.Cancel(id)); err != nil {
		if !gone(err) {
			p.fail(err)
		}
		return // it expired in this very step
	}
	p.giveUp(m, id, p.now)
	m.promised.add(&part.place, -1)
	p.totals.Released++
}

// gone tells whether an engine says that it has no such reservation, or none that is held.
func gone(err error) bool {
	var e *berth.Error
	return errors.As(err, &e) && (e.Code == berth.NotFound || e.Code == berth.Conflict)
}

// confirm confirms all parts. It waits for an engine that is down until that is back, but no longer than its hold lasts or until the
// start: then no part stays.
func (p *play) confirm(s *split) {
	if !p.led(s, func() { p.confirm(s) }) {
		return
	}
	if s.outcome.Trips++; p.now >= s.start {
		p.abandon(s)
		return
	}
	again, pending, lost := s.start, false, false
	for i := range s.parts {
		part := &s.parts[i]
		if part.confirmed {
			continue
		}
		m := p.members[part.engine]
		if until, down := m.down(p.now); down {
			p.totals.Silent++
			// It may have told of the expiry when it was up in between.
			if h := m.holds[part.id]; h == nil || p.expiry(h) <= p.now {
				lost = true
			} else {
				again, pending = min(again, until, p.expiry(h)), true
			}
			continue
		}
		if _, err := p.apply(m, engine.Confirm(part.id)); err != nil {
			if !gone(err) {
				p.fail(err)
			}
			p.abandon(s)
			return
		}
		m.held -= part.place.NPE
		delete(m.holds, part.id)
		part.confirmed = true
	}
	if lost {
		p.abandon(s)
		return
	}
	if pending {
		p.later(again, func() { p.confirm(s) })
		return
	}
	s.outcome.Accepted = true
	for i := range s.parts {
		s.outcome.Places = append(s.outcome.Places, Place{s.parts[i].engine, s.parts[i].place})
	}
	p.tell(s.outcome)
}

// abandon gives back all that is held or confirmed, and refuses the request.
func (p *play) abandon(s *split) {
	broken := false
	for i := range s.parts {
		part := &s.parts[i]
		if !part.confirmed {
			p.release(part)
			continue
		}
		broken = true
		p.takeBack(part)
	}
	if broken {
		p.totals.Broken++
	}
	p.tell(s.outcome)
}

// takeBack cancels a part that was confirmed, as soon as its engine is there.
func (p *play) takeBack(part *held) {
	m := p.members[part.engine]
	if until, down := m.down(p.now); down {
		p.later(until, func() { p.takeBack(part) })
		return
	}
	if _, err := p.apply(m, engine.Cancel(part.id)); err != nil && !gone(err) { // it may be over by itself
		p.fail(err)
	}
	m.promised.add(&part.place, -1)
}
