package service

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// A change by which a promise begins or grows before its sites are looked at again is proposed to
// them first. Once they have made it, it is decided and answered. Until then the promise stays as
// it was, for everybody and on record. So it loses nothing if a site refuses or the service stops:
// what a site has made of the proposal is put back like any other difference. New promises that
// begin now are asked about by question: they have no former place to return to.

// proposal is a change that sites are asked about. It is of the loop.
type proposal struct {
	id      string
	ask     Ask
	event   func(k *card) (engine.Event, error)
	answers []answering

	number uint64               // of what is proposed now
	is     berth.Reservation    // what the promise would be
	agreed map[string]site.Name // under which name the sites have it that have it so
	times  int                  // it was refused where it is, on end
	tries  int                  // places that were tried
	again  bool                 // a site has refused it and is looked at before it is proposed anew
	timer  *time.Timer          // gives it up

	look    *lookedAhead // what it costs the ordinary jobs, if a limit bounds that
	looking bool         // it is attempted by ahead, which foresees it again
}

// answer answers everybody who waits.
func (p *proposal) answer(a *Answer, err error) {
	for _, answer := range p.answers {
		answer(a, err)
	}
}

// verdict is what a site has said to a proposal.
type verdict struct {
	id      string
	promise promise
	name    site.Name
	number  uint64
	made    bool
	refused bool   // else it has not said
	final   bool   // wherever in it that would be
	words   string // of the refusal
}

// attempt makes a change, if it is allowed and its sites agree to it, and answers. The error is that of a change that has to be
// foreseen again, if it is looked ahead for.
func (h *Host) attempt(p *proposal) error {
	defer h.inOneMoment()()
	a := p.ask.asked()
	a.id = p.id
	deny := func(err error) {
		h.drop(p)
		_ = h.deny(a, err, p.answer)
	}
	k, err := h.may(&p.ask, p.id)
	if err != nil {
		deny(err)
		return nil
	}
	e, err := p.event(k)
	if err != nil {
		deny(err)
		return nil
	}
	if e.Kind == engine.EventModify || e.Kind == engine.EventExtend || e.Kind == engine.EventConfirm {
		if other := h.proposals[p.id]; other != nil && other != p {
			deny(berth.Errorf(berth.Conflict, "id", "%q is being changed already: its site has not answered yet; ask again when it has", p.id))
			return nil
		}
		if p.look == nil && h.isBounded(&e) {
			h.lookAtChange(p, e, deny)
			return nil
		}
		if p.look != nil {
			e.Foreseen = p.look.foreseen
			defer h.bounded.deciding(p.id, p.look)()
		}
		if h.core.engine.Exceeds(&e) == nil && h.propose(p, &e) {
			return nil
		}
	}
	h.drop(p)
	var result Answer
	conclude := func(list []news, err error) (outcome, bool) {
		if isForeseenElsewhere(err) {
			return outcome{}, false
		}
		if err != nil {
			return outcomeOf(result, err)
		}
		if is := h.core.card(p.id); is != nil { // not forgotten at once
			k = is
		}
		result.Reservation = k.priced(&h.core.config)
		for i := range list {
			if n := &list[i]; n.card.id == p.id && n.refusal != nil {
				result.Refusal = n.refusal
			}
		}
		if result.Refusal != nil && e.Request != nil {
			result.Offers = h.alternatives(e.Request)
		}
		return outcome{Answer: result}, true
	}
	if err = h.step(e, a, conclude); isForeseenElsewhere(err) {
		if p.looking {
			return err
		}
		err = errForeseenElsewhere
	}
	h.noteAgreed(p)
	h.whenDurable(func(failed error) { p.answer(&result, cmp.Or(failed, err)) })
	return nil
}

// propose asks the sites of a promise about a change and reports whether their answer is awaited.
// Nothing is asked if the engine refuses the change, or if it begins later or has no PE numbers yet.
// Later promises that have the same PEs by name get other ones first: that costs them nothing, and no
// site could make it over them.
func (h *Host) propose(p *proposal, e *engine.Event) bool {
	if err := h.step(engine.Wake(), asked{}, nil); err != nil {
		return false // the event meets it too
	}
	h.foresee(e)
	is, concerns := h.foretell(e)
	for tries := 0; concerns && tries < maxWay; tries++ {
		event, inTheWay := h.core.engine.GiveWay(&is)
		if !inTheWay {
			break
		}
		if err := h.step(event, asked{}, nil); err != nil {
			break
		}
		is, concerns = h.foretell(e)
	}
	if !concerns {
		return false
	}
	same := p.agreed != nil && samePlace(&p.is, &is)
	takers := h.takers(&is)
	if same && !slices.ContainsFunc(takers, func(at *keeper) bool { return p.agreed[at.name] == "" }) {
		return false
	}
	if !same {
		p.times = 0
		if p.tries++; p.tries > maxTries {
			h.refuseChange(p, takers[0], "others were faster", false)
			return true
		}
	}
	h.proposed++
	p.number, p.is, p.agreed, p.again = h.proposed, is, map[string]site.Name{}, false
	h.proposals[p.id] = p
	h.begin(p.ask.key())
	h.noteProposed(p)
	if p.timer == nil {
		p.timer = time.AfterFunc(patience, func() {
			_ = h.do("", func() { h.giveUp(p) }) // the error is that the service stops
		})
	}
	for _, at := range takers {
		at.poke()
	}
	return true
}

// maxWay is how many promises give way to a proposal at most: more than begin while one lasts, for nearly all.
const maxWay = 100

// foretell returns what a promise would become by a change, and whether its sites are to be asked
// about that: not about the confirmation of what they have already.
func (h *Host) foretell(e *engine.Event) (is berth.Reservation, ask bool) {
	lacks := func(r *berth.Reservation) bool {
		return slices.ContainsFunc(r.Allotments, func(a berth.Allotment) bool { return a.NPE > 0 && a.PEs.Empty() })
	}
	is, refusal, err := h.core.engine.Foretell(e)
	if err != nil || refusal != nil || lacks(&is) || !h.asks(&is) {
		return is, false
	}
	if e.Kind == engine.EventConfirm {
		was, live := h.core.engine.Reservation(e.ID)
		return is, live && lacks(&was)
	}
	return is, true
}

// noteAgreed notes that sites have a promise as it has become, which their next looks will show.
func (h *Host) noteAgreed(p *proposal) {
	r, live := h.core.engine.Reservation(p.id)
	if !live || r.Generation != p.is.Generation {
		return
	}
	for name, as := range p.agreed {
		k := h.sites[name]
		k.mu.Lock()
		k.made[k.promise(p.id)] = made{as, r.Generation}
		k.mu.Unlock()
	}
}

// samePlace reports whether two places of a promise are the same, but for the seconds that have
// passed while its sites were asked about the first: what begins now still does.
func samePlace(was, is *berth.Reservation) bool {
	return slices.EqualFunc(was.Allotments, is.Allotments, func(a, b berth.Allotment) bool {
		late := b.Start.Sub(a.Start)
		return a.Resource == b.Resource && a.PEs.Equal(b.PEs) && a.End.Sub(a.Start) == b.End.Sub(b.Start) && late >= 0 && late <= berth.Duration(patience/time.Second)
	})
}

// drop ends a proposal; sites that have made it already go back to what is promised.
func (h *Host) drop(p *proposal) {
	if h.proposals[p.id] != p {
		return
	}
	delete(h.proposals, p.id)
	h.finish(p.ask.key())
	p.timer.Stop()
	for _, at := range h.takers(&p.is) {
		at.poke()
	}
}

// giveUp answers for a change to which the sites have said nothing for long.
func (h *Host) giveUp(p *proposal) {
	if h.proposals[p.id] != p {
		return
	}
	var silent string
	for _, at := range h.takers(&p.is) {
		if p.agreed[at.name] == "" {
			silent = at.name
		}
	}
	h.drop(p)
	h.log.Warn("a change was given up, because a site did not answer", "site", silent, "id", p.id)
	p.answer(nil, berth.Errorf(berth.Unavailable, "site", "%q has not agreed to the change of %s within %s; it stays as it was; ask again when the site answers", silent, p.id, patience))
}

// refuseChange answers that a site will not have a change.
func (h *Host) refuseChange(p *proposal, k *keeper, words string, final bool) {
	h.drop(p)
	a := p.ask.asked()
	a.id = p.id
	no := k.refusal(&p.is, words)
	if !final {
		no.Reason = berth.NoCapacity
	}
	result := Answer{Refusal: no}
	if c := h.core.card(p.id); c != nil {
		result.Reservation = c.view()
	}
	h.remember(a, outcome{Answer: result})
	h.whenDurable(func(failed error) { p.answer(&result, failed) })
}

// hear takes in what a site has said to proposals.
func (h *Host) hear(k *keeper, said []verdict) {
	for _, v := range said {
		p := h.proposals[v.id]
		switch {
		case p == nil || p.number != v.number:
		case v.made:
			p.agreed[k.name] = v.name
			if !slices.ContainsFunc(h.takers(&p.is), func(at *keeper) bool { return p.agreed[at.name] == "" }) {
				_ = h.attempt(p)
			}
		case !v.refused: // it is asked again in the next round
		case v.final || p.times+1 >= doubts:
			h.refuseChange(p, k, v.words, v.final)
		default:
			p.times++
			p.again = true
			k.agent.Forget()
			k.poke()
		}
	}
}

// proposeAgain proposes anew what a site has refused, by a new look at it, and answers for what is
// over meanwhile.
func (h *Host) proposeAgain(k *keeper) {
	for _, id := range slices.Sorted(maps.Keys(h.proposals)) {
		p := h.proposals[id]
		if _, live := h.core.engine.State(id); !live || p.again && slices.Contains(h.takers(&p.is), k) {
			_ = h.attempt(p)
		}
	}
}

// proposedAt returns what is proposed to a site for a promise, nil if nothing is.
func (h *Host) proposedAt(k *keeper, id string) *proposal {
	p := h.proposals[id]
	if p == nil || p.again || !slices.ContainsFunc(p.is.Allotments, func(a berth.Allotment) bool { return a.Resource.Site == k.name }) {
		return nil
	}
	return p
}

// takeVerdicts takes what a round has shown of proposals out of what it has shown of promises, which
// are as they were.
func (d *done) takeVerdicts(k *keeper, wishes []wish) {
	of := func(p promise) func(*wish) bool { return func(w *wish) bool { return w.promise == p } }
	for i := range wishes {
		w := &wishes[i]
		if w.proposed == 0 {
			continue
		}
		v := verdict{id: w.id, promise: w.promise, name: w.Name, number: w.proposed, words: d.failed[w.promise]}
		_, v.made = d.made[w.promise]
		v.final = slices.ContainsFunc(d.never, func(n never) bool { return n.promise == w.promise })
		v.refused = v.final || slices.ContainsFunc(d.refused, of(w.promise))
		d.verdicts = append(d.verdicts, v)
		delete(d.made, w.promise)
		delete(d.failed, w.promise)
		d.order = slices.DeleteFunc(d.order, func(p promise) bool { return p == w.promise })
		d.refused = slices.DeleteFunc(d.refused, of(w.promise))
		d.never = slices.DeleteFunc(d.never, func(n never) bool { return n.promise == w.promise })
		k.mu.Lock()
		if was, there := k.made[w.promise]; there {
			d.made[w.promise] = was
		}
		k.mu.Unlock()
	}
}

// asksAbout reports whether a round has asked about a change of a promise.
func (d *done) asksAbout(p promise) bool {
	return slices.ContainsFunc(d.verdicts, func(v verdict) bool { return v.promise == p })
}

// onTime moves the deadline of a request on by the seconds that its sites took to agree, if its
// window began when it was asked for, at first, and leaves no room for them: what is asked for from
// now on begins when the sites have it.
func onTime(r *berth.Request, first, now berth.Time) {
	from, least := max(r.Ready, first), berth.Duration(0)
	for i := range r.Parts {
		shortest := berth.Duration(berth.Forever)
		for _, v := range r.Parts[i].Variants {
			shortest = min(shortest, v.Duration)
		}
		least = max(least, shortest)
	}
	if from.Add(least) <= r.Deadline && now > from && now.Add(least) > r.Deadline {
		r.Deadline = now.Add(least)
	}
	r.Arrival, r.Ready = now, max(r.Ready, now)
}
