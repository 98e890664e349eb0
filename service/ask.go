package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/site"
)

// call has the loop do something for a caller and waits for its answer.
func call[T any](ctx context.Context, h *Host, who string, f func(answer func(T, error))) (T, error) {
	return callUntil(ctx, h, who, nil, f)
}

// callUntil is call, which waits no longer than until there is something in a channel:
// then the error is errPatience.
func callUntil[T any](ctx context.Context, h *Host, who string, until <-chan time.Time, f func(answer func(T, error))) (T, error) {
	type result struct {
		value T
		err   error
	}
	out := make(chan result, 1)
	var none T
	err := h.do(who, func() {
		f(func(value T, err error) { out <- result{value, err} })
	})
	if err != nil {
		return none, err
	}
	jam := h.jam.Load()
	select {
	case r := <-out:
		return r.value, h.sure(ctx, r.err)
	case <-ctx.Done():
		return none, ctx.Err()
	case <-until:
		return none, errPatience
	case <-jam.told:
		err = jam.why
	case <-h.closed:
		err = berth.Errorf(berth.Unavailable, "service", "it has stopped; whether it was done can be seen when it is back")
	}
	select {
	case r := <-out:
		return r.value, h.sure(ctx, r.err)
	default:
		return none, err
	}
}

// sure returns an error that is answered once all is durable that it may rest on: that a name is taken, or that there is no such
// thing, may follow from what was decided and is not. If that is lost, the error is that of the journal. Others are answered at once:
// that too much waits for the journal must not wait for it too.
func (h *Host) sure(ctx context.Context, err error) error {
	coded, is := errors.AsType[*berth.Error](err)
	number := h.handed.Load()
	if !is || coded.Code != berth.Conflict && coded.Code != berth.NotFound || journal.CanRetry(err) || number <= h.durable.reached() {
		return err
	}
	there, jam := make(chan error, 1), h.jam.Load()
	h.durable.after(number, func(failed error) { there <- failed })
	select {
	case failed := <-there:
		return cmp.Or(failed, err)
	case <-jam.told:
		return jam.why
	case <-ctx.Done():
		return ctx.Err()
	}
}

// key returns the key of what is asked.
func (a *Ask) key() Key {
	if a.Key == "" {
		return Key{}
	}
	return Key{User: a.By.User, Name: a.Key, Body: a.Body}
}

// asked returns what goes on record of what is asked.
func (a *Ask) asked() asked {
	return asked{by: Origin{User: a.By.User, Role: a.By.Role, Token: a.Token, Address: a.Address, Request: a.Request, Scopes: a.Scopes}, asker: a.By, key: a.key(), from: a.FromNow}
}

// Submit decides about a request, or answers again what was decided under the
// same key. A request without an ID gets one; one without a user is the asker's. What
// the request points to is the service's from then on and must not be written. What is not decided soon, for it waits for a period, is Pending. Errors:
// Denied, and those of engine.EventSubmit.
func (h *Host) Submit(ctx context.Context, ask Ask, r berth.Request) (Answer, error) {
	err := h.mayAsk(&ask, &r)
	if err == nil {
		err = h.admit(ctx, &r)
	}
	if err != nil {
		return h.answeredBefore(ctx, ask, err)
	}
	if r.ID == "" {
		r.ID = h.newID()
	}
	answer, err := patiently(ctx, h, ask.By.User, func(answer answering) {
		h.submitBounded(ask.asked(), &r, waiting{answer: answer}, func(error) {})
	})
	if errors.Is(err, errPatience) {
		answer, err = h.soFar(ctx, &ask, func() string { return r.ID })
	}
	return answer.value(), err
}

// answering takes an answer, which is not written any more, or an error.
type answering = func(*Answer, error)

// value returns an answer, the zero value of none.
func (a *Answer) value() Answer {
	if a == nil {
		return Answer{}
	}
	return *a
}

// answeredBefore returns what was answered under the key of what may not be asked now, for some
// reason: that reason, if nothing was, which is remembered.
func (h *Host) answeredBefore(ctx context.Context, ask Ask, why error) (Answer, error) {
	switch was, err := h.Recall(ctx, ask, 1); {
	case err != nil:
		return Answer{}, err
	case was == nil:
		return Answer{}, h.Refuse(ctx, ask, why)
	default:
		return was[0], nil
	}
}

// Refuse has the answer to what is asked under a key be an error, so that it is that again whatever
// has become possible since, and returns the error: the one that was the answer before, if there was
// one. Nothing is remembered without a key, of what may be tried again under it, and while it is being decided.
func (h *Host) Refuse(ctx context.Context, ask Ask, why error) error {
	o, is := outcomeOf(Answer{}, why)
	if ask.Key == "" || !is || o.Failed.Code == berth.Exhausted || o.Failed.Field == "idempotency_key" {
		return why
	}
	_, err := call(ctx, h, ask.By.User, func(answer answering) {
		a := ask.asked()
		known, err := h.known(&a)
		if err != nil || known != nil && !known.answered() || h.underway[a.key.name()] != nil || h.bounded.isUnder(a.key) {
			answer(nil, why)
			return
		}
		is := why
		if known == nil {
			h.remember(a, o)
		} else if was, err := known.outcome(); err == nil {
			is = cmp.Or(was.err(), why)
		}
		h.whenDurable(func(failed error) { answer(nil, cmp.Or(failed, is)) })
	})
	if ctx.Err() != nil {
		return why
	}
	return err
}

// soFar answers that something is not decided yet, or what was decided meanwhile.
func (h *Host) soFar(ctx context.Context, ask *Ask, id func() string) (*Answer, error) {
	return call(ctx, h, ask.By.User, func(answer answering) { h.soFarOf(ask.asked(), id(), answer) })
}

// soFarOf is soFar of the loop.
func (h *Host) soFarOf(a asked, id string, answer answering) {
	answer = a.asker.visible(answer)
	known, err := h.known(&a)
	switch {
	case err != nil:
		answer(nil, err)
		return
	case known != nil && known.answered():
		h.repeat(known, answer)
		return
	case known != nil:
		id = known.id
	}
	k := h.core.card(id)
	if k == nil {
		answer(nil, errBusy)
		return
	}
	so := Answer{Reservation: k.priced(&h.core.config)}
	a.id = id
	h.remember(a, outcome{Answer: so})
	h.whenDurable(func(err error) { answer(&so, err) })
}

// patience is for how long a caller waits for a decision before the answer says that
// it is pending: less than the time in which a proxy gives an answer up, which is
// a minute by default in many.
const patience = 20 * time.Second

var (
	errPatience = errors.New("it is not decided yet")
	errBusy     = berth.Errorf(berth.Unavailable, "service", "it is busy; ask again, under the same key if there is one")
)

// patiently is call for what is decided later perhaps: the error is errPatience
// if it is not decided for so long.
func patiently[T any](ctx context.Context, h *Host, who string, f func(answer func(T, error))) (T, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	return callUntil(ctx, h, who, timer.C, f)
}

// idUnder returns the id of what was asked under a key, or another one if nothing
// was.
func (h *Host) idUnder(a asked, other string) string {
	if known, err := h.known(&a); err == nil && known != nil && known.id != "" {
		return known.id
	}
	return other
}

// mayAsk returns why a principal may not ask for a request. One without a user
// becomes the asker's.
func (h *Host) mayAsk(ask *Ask, r *berth.Request) error {
	switch {
	case !ask.By.Can(User):
		return berth.Errorf(berth.Denied, "role", "a %s may only look; ask with the token of a user or an operator", ask.By.Role)
	case r.User == "":
		r.User = ask.By.User
	case !ask.By.Owns(r.User):
		return berth.Errorf(berth.Denied, "user", "%q may not ask in the name of %q", ask.By.User, r.User)
	}
	r.Owner = h.accountOwner(r.User)
	if err := h.within(ask.By, r); err != nil {
		return err
	}
	if err := h.bookable(r); err != nil {
		return err
	}
	return h.findNodes(ask.By, r)
}

// accountOwner returns the owner of a user that is a service account, "" of any other.
func (h *Host) accountOwner(user string) string {
	if h.options.OwnerOf == nil {
		return ""
	}
	return h.options.OwnerOf(user)
}

// turnOf returns in whose turn a caller is served: a service account in that of its owner.
func (o *Options) turnOf(who string) string {
	if o.OwnerOf == nil {
		return who
	}
	return cmp.Or(o.OwnerOf(who), who)
}

// waiting is a caller that waits for a decision.
type waiting struct {
	key    Key // under which he asked, if any
	answer answering
	// offered says that another part of the array has been offered something
	// else already; nil of a request by itself.
	offered *bool
	offer   string // that is taken by this, if one is
}

// wantsOffers reports whether a refusal is to come with offers.
func (w *waiting) wantsOffers() bool {
	if w.offered == nil {
		return true
	}
	first := !*w.offered
	*w.offered = true
	return first
}

// submit has the engine decide about a request, or answers what was decided
// under the same key. The error, which is answered too, says that nothing is
// decided. It is of the loop.
func (h *Host) submit(a asked, r *berth.Request, w waiting) error {
	w.key = a.key
	if known, err := h.again(a, w); known {
		return err
	}
	defer h.inOneMoment()()
	now := h.clock()
	a.from.arrive(r, now)
	if r.IsJob() {
		r.Ready = now
		if r.Deadline == 0 {
			r.Deadline = berth.Forever
		}
	}
	a.id = r.ID
	if k := h.core.card(r.ID); k != nil {
		return h.deny(a, berth.Errorf(berth.Conflict, "id", "%q is taken; give another one, or none", r.ID), w.answer)
	}
	h.undecided[r.ID] = append(h.undecided[r.ID], w)
	event := engine.SubmitGiven(r)
	event.Foreseen = h.bounded.of(r.ID)
	err := h.step(event, a, func(_ []news, err error) (outcome, bool) {
		if err == nil || isForeseenElsewhere(err) {
			return outcome{}, false // which follows
		}
		return outcomeOf(Answer{}, err)
	})
	if err != nil { // the engine did not take it
		if delete(h.undecided, r.ID); isForeseenElsewhere(err) {
			return err // it is foreseen again
		}
		h.whenDurable(func(failed error) { w.answer(nil, cmp.Or(failed, err)) })
	} else if h.isDue() {
		h.gathered.add(r)
	}
	return err
}

// deny answers with an error, which is remembered.
func (h *Host) deny(a asked, err error, answer answering) error {
	if o, is := outcomeOf(Answer{}, err); is {
		h.remember(a, o)
	}
	h.whenDurable(func(failed error) { answer(nil, cmp.Or(failed, err)) })
	return err
}

// repeat answers what was answered before.
func (h *Host) repeat(k *keyed, answer answering) {
	o, err := k.outcome()
	err = cmp.Or(err, o.err())
	h.whenDurable(func(failed error) { answer(&o.Answer, cmp.Or(failed, err)) })
}

// again answers what was asked before under the same key; known is false if
// nothing was. The error is answered too.
func (h *Host) again(a asked, w waiting) (known bool, err error) {
	was, err := h.known(&a)
	switch {
	case err != nil:
		w.answer(nil, err)
		return true, err
	case was == nil:
		return false, nil
	}
	if w.answer = a.asker.visible(w.answer); was.answered() {
		h.repeat(was, w.answer)
		return true, nil
	}
	if others, is := h.undecided[was.id]; is {
		h.undecided[was.id] = append(others, w)
		return true, nil
	}
	// It was decided, and the service stopped before the caller was told.
	a.id = was.id
	k := h.core.card(was.id)
	if k == nil {
		return true, h.deny(a, berth.Errorf(berth.NotFound, "idempotency_key", "what was asked under it is no longer remembered"), w.answer)
	}
	if h.askAgain(k) {
		h.undecided[was.id] = append(h.undecided[was.id], w)
		return true, nil
	}
	result := Answer{Reservation: k.priced(&h.core.config)}
	if k.end == Refused && w.wantsOffers() {
		result.Offers = h.alternatives(k.request)
	}
	h.remember(a, outcome{Answer: result})
	answer := w.answer
	h.whenDurable(func(failed error) { answer(&result, failed) })
	return true, nil
}

// refusedAll answers with an error if that is what was answered to the first part of an array: then it is
// the answer to all, and no part is decided. It reports whether it is.
func (h *Host) refusedAll(first *keyed, answer func(error)) bool {
	if first == nil || !first.answered() {
		return false
	}
	o, err := first.outcome()
	if err = cmp.Or(err, o.err()); err == nil {
		return false
	}
	h.whenDurable(func(failed error) { answer(cmp.Or(failed, err)) })
	return true
}

// Recall returns what was answered under a key, nil if nothing was: one answer, or for
// an array as many as it has parts, nil unless all were. What a crash left without an
// answer is answered now; what is not decided yet has none.
func (h *Host) Recall(ctx context.Context, ask Ask, parts int) ([]Answer, error) {
	if ask.Key == "" {
		return nil, nil
	}
	list, err := call(ctx, h, ask.By.User, func(answer func([]Answer, error)) {
		parts := max(1, parts)
		for i := range parts {
			a := ask.part(i)
			was, err := h.known(&a)
			if err != nil || was == nil || !was.answered() && h.undecided[was.id] != nil {
				answer(nil, err)
				return
			}
			if i == 0 && h.refusedAll(was, func(err error) { answer(nil, err) }) {
				return
			}
		}
		all := &array{answers: make([]Answer, parts), left: parts, done: answer}
		offered := false
		for i := range parts {
			a := ask.part(i)
			_, _ = h.again(a, waiting{key: a.key, answer: all.part(i), offered: &offered}) // which answers
		}
	})
	return list, err
}

// may returns the card that a principal wants to act on, or why they may not. They are not
// told of what is not theirs.
func (h *Host) may(ask *Ask, id string) (*card, error) {
	k := h.core.card(id)
	if k == nil || !k.seenBy(ask.By) || h.shadowed(k.request) {
		return nil, h.otherThan(ask.By, id)
	}
	if ask.IfVersion != 0 && ask.IfVersion != k.version {
		return nil, berth.Errorf(berth.Conflict, "version", "%d; it is %d by now, so look again", ask.IfVersion, k.version)
	}
	return k, nil
}

// otherThan is the error about an id that is not of a reservation which a principal may see. It may be that of something else
// they may see, that is acted on by other calls.
func (h *Host) otherThan(by Principal, id string) error {
	if f := h.core.flows.byID[id]; f != nil && f.seenBy(by, h.core.card) {
		return berth.Errorf(berth.NotFound, "id", "no reservation %q, but a workflow: want the id of the reservation of a task, which berth workflow show tells, or the calls about workflows for all of it", id)
	}
	if s := h.core.series.byID[id]; s != nil && s.seenBy(by, h.core.card) {
		return berth.Errorf(berth.NotFound, "id", "no reservation %q, but a series: want the id of the reservation of an occurrence, which berth series show tells, or the calls about series for all of it", id)
	}
	return noReservation(id)
}

func noReservation(id string) error {
	return berth.Errorf(berth.NotFound, "id", "no reservation %q", id)
}

// change applies an event to a reservation for a principal who may do so, once for
// each key, when its sites agree to it, if they are asked.
func (h *Host) change(ctx context.Context, ask Ask, id string, event func(k *card) (engine.Event, error)) (Answer, error) {
	answer, err := call(ctx, h, ask.By.User, func(answer answering) { h.changeOf(ask, id, event, answer) })
	return answer.value(), err
}

// changeOf is change of the loop.
func (h *Host) changeOf(ask Ask, id string, event func(k *card) (engine.Event, error), answer answering) {
	a := ask.asked()
	a.id = id
	if known, _ := h.again(a, waiting{key: a.key, answer: answer}); known {
		return
	}
	if h.bounded.waits(a.key, func() { h.changeOf(ask, id, event, answer) }) {
		return
	}
	if was := h.proposals[id]; was != nil && a.key != (Key{}) && was.ask.key() == a.key {
		was.answers = append(was.answers, answer)
		return
	}
	_ = h.attempt(&proposal{id: id, ask: ask, event: event, answers: []answering{answer}})
}

// Confirm makes a held reservation a confirmed one. The error is Conflict if its site refuses what is to begin now.
func (h *Host) Confirm(ctx context.Context, ask Ask, id string) (Reservation, error) {
	a, err := h.change(ctx, ask, id, func(k *card) (engine.Event, error) {
		if err := k.open(); err != nil {
			return engine.Event{}, err
		}
		return engine.Confirm(id), nil
	})
	if err == nil && a.Refusal != nil {
		err = berth.Errorf(berth.Conflict, "site", "%q does not have the nodes of %s now (%s); it stays held; confirm it again, or release it", a.Refusal.Resource.Site, id, a.Refusal.Words)
	}
	return a.Reservation, err
}

// Modify asks for a change of a reservation that has not
// started. If Answer.Refusal is there it is as it was.
func (h *Host) Modify(ctx context.Context, ask Ask, id string, r berth.Request) (Answer, error) {
	err := h.within(ask.By, &r)
	if err == nil {
		err = h.bookable(&r)
	}
	if err == nil {
		err = h.findNodes(ask.By, &r)
	}
	var ended error
	if err == nil {
		if err = h.changedInProject(ctx, ask.By.User, id, &r); err == nil {
			err = h.openTo(ctx, &r)
		}
		if denied(err) {
			ended, err = h.shrinks(ctx, ask.By.User, id, &r, err)
		}
	}
	if err != nil {
		return h.answeredBefore(ctx, ask, err)
	}
	first := berth.Time(0)
	return h.change(ctx, ask, id, func(k *card) (engine.Event, error) {
		if err := k.open(); err != nil {
			return engine.Event{}, err
		}
		if ended != nil && !k.shrinks(&h.core.config, &r) {
			return engine.Event{}, ended
		}
		if first == 0 {
			first = h.clock()
			ask.FromNow.arrive(&r, first)
		}
		is := r
		is.ID, is.User = id, k.request.User
		ask.Keeps.lasting(&h.core.config, &is, k.promise)
		onTime(&is, first, h.clock())
		return engine.Modify(&is), nil
	})
}

// Extend lets a reservation go on until a later end. If Answer.Refusal is there
// it is as it was.
func (h *Host) Extend(ctx context.Context, ask Ask, id string, until berth.Time) (Answer, error) {
	err := h.stillInProject(ctx, &ask, func() (user, account string, since berth.Time) {
		if k := h.core.card(id); k != nil && k.request != nil {
			return k.request.User, k.request.Account, k.created
		}
		return "", "", 0
	})
	if err != nil {
		return h.answeredBefore(ctx, ask, err)
	}
	return h.change(ctx, ask, id, func(k *card) (engine.Event, error) {
		if err := k.open(); err != nil {
			return engine.Event{}, err
		}
		return engine.ExtendFor(string(ask.By.Role), id, until), nil
	})
}

// CheckIn notes that a running reservation is in use.
func (h *Host) CheckIn(ctx context.Context, ask Ask, id string) (Reservation, error) {
	a, err := h.change(ctx, ask, id, func(k *card) (engine.Event, error) {
		if err := k.open(); err != nil {
			return engine.Event{}, err
		}
		return engine.CheckIn(id), nil
	})
	return a.Reservation, err
}

// Release gives back what is left of a reservation: one that runs ends now, one
// that has not started is cancelled, and so is a request that is pending. Of one
// that is over there is nothing to give back, which is no error.
func (h *Host) Release(ctx context.Context, ask Ask, id string) (Reservation, error) {
	a, err := h.change(ctx, ask, id, func(k *card) (engine.Event, error) {
		switch {
		case k.end != "":
			return engine.Wake(), nil
		case k.promise != nil && k.promise.State == berth.Active:
			return engine.Finish(id), nil
		}
		return engine.Cancel(id), nil
	})
	return a.Reservation, err
}

// open returns why the owner of a request cannot change it: it is over, or not answered yet.
func (k *card) open() error {
	switch {
	case k.end != "":
		return gone(k)
	case k.asking:
		return berth.Errorf(berth.Conflict, "id", "%q is pending: its site has not answered yet; ask again when it is promised", k.id)
	}
	return nil
}

// gone is the error about something that is over.
func gone(k *card) error {
	return berth.Errorf(berth.Conflict, "id", "%q is %s", k.id, k.end)
}

// Get returns a reservation to a principal who may see it.
func (h *Host) Get(_ context.Context, by Principal, id string) (Reservation, error) {
	m, err := h.seen()
	if err != nil {
		return Reservation{}, err
	}
	k, _ := m.cards.Get(&card{id: id})
	if k == nil || !k.seenBy(by) || h.shadowed(k.request) {
		return Reservation{}, noReservation(id)
	}
	return h.named(k.charged(m.config)), nil
}

// maxPage bounds how many reservations a List returns.
const maxPage = 1000

// List returns the reservations that a principal may see and that the filter
// chooses, by id, and how many it looked at. Cost: O(reservations behind f.After
// until the page is full), beside the loop; only those of one user if the filter or the principal has no others.
func (h *Host) List(ctx context.Context, by Principal, f Filter) (list []Reservation, looked int, err error) {
	limit := f.Limit
	if limit <= 0 || limit > maxPage {
		limit = maxPage
	}
	m, err := h.seen()
	if err != nil {
		return nil, 0, err
	}
	user := f.User
	if user == "" {
		user = by.only()
	}
	var chosen []*card
	m.each(user, f.After, func(k *card) bool {
		looked++
		if k.id > f.After && k.seenBy(by) && !h.shadowed(k.request) && f.chooses(k) {
			chosen = append(chosen, k)
		}
		return len(chosen) < limit && (looked%1024 != 0 || ctx.Err() == nil)
	})
	if len(chosen) > 0 {
		list = make([]Reservation, len(chosen))
	}
	for i, k := range chosen {
		list[i] = h.named(k.charged(m.config))
	}
	return list, looked, ctx.Err()
}

// found is a reservation without what its sites have of it.
type found struct {
	Reservation
	generation uint64 // of the promise, 0 if there is none
	idle       int64  // what budgets are charged for being left idle
}

func (k *card) find() found {
	f := found{Reservation: k.view()}
	if k.promise != nil {
		f.generation, f.idle = k.promise.Generation, k.promise.ChargedIdle()
	}
	return f
}

// named adds the names of nodes, and how far a promise is real at its sites.
func (h *Host) named(f *found) Reservation {
	r := f.Reservation
	for i := range r.Allotments {
		a := &r.Allotments[i]
		k := h.sites[a.Resource.Site]
		if k == nil {
			continue
		}
		if shares, known := k.ground.Load().layout.Shares(a.Resource.Name, a.PEs); known && len(shares) > 0 {
			if r.Nodes == nil {
				r.Nodes = make([][]string, len(r.Allotments))
			}
			r.Nodes[i] = site.NodesOf(shares)
		}
		if !r.State.Over() && !slices.ContainsFunc(r.Sites, func(m Materialised) bool { return m.Site == k.name }) {
			r.Sites = append(r.Sites, k.at(r.ID, f.generation))
		}
	}
	return r
}

// chooses reports whether a filter chooses what is on a card.
func (f *Filter) chooses(k *card) bool {
	if f.User != "" && f.User != k.request.User || f.Name != "" && f.Name != k.request.Name {
		return false
	}
	if f.Site == "" && len(f.States) == 0 && f.From == 0 && f.To == 0 {
		return true
	}
	r := k.view()
	if len(f.States) > 0 && !slices.Contains(f.States, r.State) && (!r.lacksPEs() || !slices.Contains(f.States, Degraded)) {
		return false
	}
	if f.Site == "" && f.From == 0 && f.To == 0 {
		return true
	}
	return slices.ContainsFunc(r.Allotments, func(a berth.Allotment) bool {
		in := f.From == 0 && f.To == 0 || a.Start < f.To && a.End > f.From
		return in && (f.Site == "" || a.Resource.Site == f.Site)
	})
}
