package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

const (
	// offerLife is how long an offer's name means something: half an hour, as
	// GridSim's reservations have for their commit.
	offerLife berth.Duration = 1800
	// maxOffers bounds the names kept; the oldest go first.
	maxOffers = 500_000
	// alternativesTold is how many offers come with a refusal.
	alternativesTold = 5
)

// offers remembers the names of offers. It belongs to the loop.
type offers struct {
	known map[string]named
	order []string // by time
	// charge returns what budgets are charged for an offer, nil where there are no prices.
	charge func(r *berth.Request, at []berth.Allotment) *int64
}

type named struct {
	request *berth.Request // of the offer, which is not written any more
	user    string
	expires berth.Time
	id      string // of the reservation that it was taken as; empty until then, and after a refusal
}

func newOffers(core *Core) offers {
	return offers{known: map[string]named{}, charge: func(r *berth.Request, at []berth.Allotment) *int64 { return chargeBy(&core.config, r, at) }}
}

// chargeBy returns what budgets are charged for a request at some places by a configuration, nil if it has no prices.
func chargeBy(config *engine.Config, r *berth.Request, at []berth.Allotment) *int64 {
	if len(config.Prices) == 0 || r.IsJob() || len(at) == 0 {
		return nil
	}
	return new(config.Charge(r, at, berth.Forever))
}

// name gives names to offers made to a user.
func (o *offers) name(now berth.Time, user string, list []engine.Offer) []Offer {
	for len(o.order) > 0 && (len(o.order) >= maxOffers || o.known[o.order[0]].expires <= now) {
		delete(o.known, o.order[0])
		o.order = o.order[1:]
	}
	result := make([]Offer, len(list))
	const bytes = 12 // of a name
	random := make([]byte, bytes*len(list))
	_, _ = rand.Read(random) // never fails
	for i := range list {
		id := hex.EncodeToString(random[bytes*i : bytes*(i+1)])
		result[i] = Offer{ID: id, Expires: now.Add(offerLife), Offer: list[i], Charge: o.charge(&list[i].Request, list[i].Allotments)}
		o.known[result[i].ID] = named{request: &result[i].Request, user: user, expires: result[i].Expires}
		o.order = append(o.order, result[i].ID)
	}
	return result
}

// take notes that an offer was taken as a reservation.
func (o *offers) take(offer, id string) {
	n := o.known[offer]
	n.id = id
	o.known[offer] = n
}

// refused notes that the reservation of an id, as which an offer was taken, is not promised: the offer can be
// taken again. An empty offer is none.
func (o *offers) refused(offer, id string) {
	if n, known := o.known[offer]; known && n.id == id {
		n.id = ""
		o.known[offer] = n
	}
}

// alternatives returns what could be had instead of a refused request, at any time.
func (h *Host) alternatives(r *berth.Request) []Offer {
	return h.alternativesWithin(r, berth.Interval{})
}

// alternativesWithin is alternatives within an interval, unless that is the zero value. Where a limit bounds what a promise costs ordinary jobs they
// are those that were foreseen, at any time.
func (h *Host) alternativesWithin(r *berth.Request, within berth.Interval) []Offer {
	now := h.core.engine.Now()
	if within, known := h.bounded.offersFor(r.ID); known {
		return h.nameWithin(now, r.User, within)
	}
	if h.isBounded(new(engine.Submit(r))) {
		return nil // what they cost is not known
	}
	again := *r
	again.Ready = max(again.Ready, now)
	list, err := h.core.engine.OffersNear(&again, alternativesTold, within)
	if err != nil {
		return nil // its window is over: nothing about it can be offered
	}
	return h.offers.name(now, r.User, list)
}

// Offers returns what could be promised for a request now, with what it would cost the ordinary jobs that
// wait where that can be foreseen in time. Nothing is held. What is returned must not be written.
func (h *Host) Offers(ctx context.Context, ask Ask, r berth.Request, most int) ([]Offer, error) {
	if err := h.mayAsk(&ask, &r); err != nil {
		return nil, err
	}
	if err := h.admit(ctx, &r); err != nil {
		return nil, err
	}
	if r.ID == "" {
		r.ID = "offer"
	}
	var queue *queue // of the loop until it has answered
	list, err := call(ctx, h, ask.By.User, func(answer func([]Offer, error)) {
		now := h.awake()
		ask.FromNow.arrive(&r, now)
		if h.isBounded(new(engine.Submit(&r))) {
			h.offersWithin(ask.By, &r, most, answer)
			return
		}
		list, err := h.core.engine.Offers(&r, most)
		if err == nil && len(list) == 0 {
			err = h.unknownPartition(ask.By, r.Partition)
		}
		if err != nil {
			answer(nil, err)
			return
		}
		result := h.offers.name(now, r.User, list)
		if queue = h.queue(now); queue == nil {
			free(result)
		}
		h.whenDurable(func(err error) { answer(result, err) })
	})
	if err != nil || len(list) == 0 || queue == nil {
		return list, err
	}
	return h.withCosts(ctx, ask.By.User, list, queue), nil
}

// unknownPartition returns an error if no site that a principal sees has a partition of a name.
func (h *Host) unknownPartition(by Principal, name string) error {
	var names []string
	for i := range h.core.config.Sites {
		s := &h.core.config.Sites[i]
		if !by.Sites.Has(s.Name) {
			continue
		}
		for k := range s.Partitions {
			names = append(names, s.Partitions[k].Name)
		}
	}
	slices.Sort(names)
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return berth.Errorf(berth.Invalid, "partition", "%q is at no site; there are %q", name, slices.Compact(names))
}

// offered returns the request for what was offered to a user. Code NotFound: there is
// no such offer. Code Conflict: it was taken before; one that was refused then was not.
func (h *Host) offered(offer string, ask *Ask) (berth.Request, error) {
	o, known := h.offers.known[offer]
	now := h.clock()
	if !known || o.expires <= now || !ask.By.Owns(o.user) {
		return berth.Request{}, berth.Errorf(berth.NotFound, "offer", "no offer %q; offers last half an hour, ask again", offer)
	}
	if o.id != "" {
		return berth.Request{}, berth.Errorf(berth.Conflict, "offer", "%q was taken as reservation %s; an offer is taken once, ask for others", offer, o.id)
	}
	r := *o.request
	if late := now.Sub(r.Ready); late > 0 {
		r.Ready, r.Deadline = r.Ready.Add(late), r.Deadline.Add(late)
	}
	r.ID = h.newID()
	return r, nil
}

// Hold asks for what was offered, held for so long, but not beyond its end. What was
// to start before now starts now, and ends as much later. Another request may have
// been faster: then it is refused like any other, and the offer can be tried again.
// An offer is taken once: again it is a conflict, but for the same call under the same
// key, which is answered as before, after a restart too.
func (h *Host) Hold(ctx context.Context, ask Ask, offer string, hold berth.Duration) (Answer, error) {
	if !ask.By.Can(User) {
		return Answer{}, berth.Errorf(berth.Denied, "role", "a %s may only look; ask with the token of a user or an operator", ask.By.Role)
	}
	err := h.stillInProject(ctx, &ask, func() (user, account string, since berth.Time) {
		if o, known := h.offers.known[offer]; known {
			return o.user, o.request.Account, o.expires.Add(-offerLife)
		}
		return "", "", 0
	})
	if err != nil {
		return h.answeredBefore(ctx, ask, err)
	}
	var id string // is of the loop
	answer, err := patiently(ctx, h, ask.By.User, func(answer answering) {
		a := ask.asked()
		if known, _ := h.again(a, waiting{key: a.key, answer: answer}); known {
			return
		}
		r, err := h.offered(offer, &ask)
		if r.Hold = hold; err == nil {
			err = h.mayAsk(&ask, &r)
		}
		if err != nil {
			_ = h.deny(a, err, answer)
			return
		}
		id = r.ID
		h.offers.take(offer, id)
		h.submitBounded(a, &r, waiting{answer: answer, offer: offer}, func(err error) {
			if err != nil { // which is answered
				h.offers.refused(offer, r.ID)
			}
		})
	})
	if errors.Is(err, errPatience) {
		answer, err = h.soFar(ctx, &ask, func() string { return id })
	}
	return answer.value(), err
}
