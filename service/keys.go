package service

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/wire"
)

// Key is what makes asking twice the same as asking once: the name that a user
// gave to something he asked, and a digest of what that was. The zero value is
// none. Keys of different users have nothing to do with each other.
type Key struct {
	User string
	Name string
	Body [32]byte
}

func (k *Key) name() keyName { return keyName{k.User, k.Name} }

// remember is how long keys and their answers are remembered, in seconds: a day,
// as clients that retry expect of an Idempotency-Key.
const remember berth.Duration = 86_400

// What the keys of one user, whom no limit says otherwise for, and of all may take
// together with their answers, in bytes. A key beyond that is refused: one that was given is never forgotten early.
const (
	maxUserKeys = 128 << 20
	maxKeys     = 1 << 30
	keyCost     = 256 // of a key beside its name and answer
)

// keys remembers what was asked under which key, and what was answered.
type keys struct {
	users       map[string]*userKeys
	first, last *keyed // by time
	bytes       int64
	late        []*keyed // whose answers may not be written down yet
}

type keyName struct{ user, name string }

// userKeys are the keys of a user, and how many bytes they take.
type userKeys struct {
	user  string
	known map[string]*keyed
	bytes int64
}

// keyed is what is known of a key.
type keyed struct {
	of     *userKeys // nil once it is forgotten
	name   string
	body   [32]byte
	id     string // of the request or reservation that it was about
	at     berth.Time
	next   *keyed // by time
	answer []byte // an outcome in its written form; empty until one is due, and while card is the answer
	// card is the answer if that was the reservation as it is, at version; nil otherwise. The
	// card is not written any more until the answer has been written down, or another one
	// has taken its place.
	card    *card
	version uint64
	charge  *int64       // of the card as it was answered
	late    *lateOutcome // the answer, until it is found written down; nil otherwise
}

func newKeys() keys { return keys{users: map[string]*userKeys{}} }

// answered reports whether there is an answer.
func (k *keyed) answered() bool { return k.card != nil || k.late != nil || len(k.answer) > 0 }

// outcome returns the answer.
func (k *keyed) outcome() (outcome, error) {
	switch {
	case k.late != nil:
		return readOutcome(k.late.bytes())
	case k.card == nil:
		return readOutcome(k.answer)
	}
	r := k.card.view()
	r.Version, r.Charge = k.version, k.charge
	return outcome{Answer: Answer{Reservation: r}}, nil
}

// written returns the written form of the answer, empty if there is none.
func (k *keyed) written() []byte {
	switch {
	case k.late != nil:
		return k.late.bytes()
	case k.card == nil:
		return k.answer
	}
	o, _ := k.outcome() // of a card there is no error
	return slices.Clone(o.bytes())
}

// cost returns about how many bytes a key takes with its answer. One that is a card is
// counted as it will be once it is written down, so that no key outgrows what was asked of
// the bounds.
func (k *keyed) cost() int64 {
	cost := keyCost + len(k.name) + len(k.answer)
	if k.late != nil {
		cost += k.late.size
	}
	if k.card != nil {
		r := k.card.request
		cost += 128 + len(r.ID) + 32*len(k.card.promise.Allotments)
		for i := range r.Parts {
			cost += 8 + 8*len(r.Parts[i].Variants) + 8*len(r.Parts[i].Eligible.Runs())
		}
	}
	return int64(cost)
}

// set changes what is known of a key, and counts what it takes.
func (ks *keys) set(k *keyed, change func()) {
	before := k.cost()
	change()
	ks.charge(k.of, k.cost()-before)
}

func (ks *keys) charge(u *userKeys, bytes int64) {
	ks.bytes += bytes
	if u.bytes += bytes; u.bytes == 0 {
		delete(ks.users, u.user)
	}
}

// of returns what is known of a key, nil if nothing is.
func (ks *keys) of(name keyName) *keyed {
	if u := ks.users[name.user]; u != nil {
		return u.known[name.name]
	}
	return nil
}

// answered reports whether there is an answer under a key.
func (ks *keys) answered(key *Key) bool {
	k := ks.of(key.name())
	return k != nil && k.answered()
}

// used returns how many bytes the keys of a user take with their answers.
func (ks *keys) used(user string) int64 {
	if u := ks.users[user]; u != nil {
		return u.bytes
	}
	return 0
}

// add remembers a key and what it was about. It is nil if there is no key.
func (ks *keys) add(now berth.Time, key Key, id string) *keyed {
	ks.forget(now)
	ks.settleLate()
	if key == (Key{}) {
		return nil
	}
	u := ks.users[key.User]
	if u == nil {
		u = &userKeys{user: key.User, known: map[string]*keyed{}}
		ks.users[key.User] = u
	}
	k := u.known[key.Name]
	if k == nil {
		k = &keyed{of: u, name: key.Name, body: key.Body, at: now}
		u.known[key.Name] = k
		if ks.last == nil {
			ks.first = k
		} else {
			ks.last.next = k
		}
		ks.last = k
		ks.charge(u, k.cost())
	}
	if id != "" {
		k.id = id
	}
	return k
}

// answer remembers the answer to what was asked under a key: the first that was
// given.
func (ks *keys) answer(k *keyed, outcome []byte) {
	if k != nil && !k.answered() {
		// Without the room in which it was written: it stays for a day.
		ks.set(k, func() { k.answer = slices.Clone(outcome) })
	}
}

// lateOutcome is an outcome that is long to write down: the first who needs it does so, mostly the one
// who writes the journal. It is safe for concurrent use.
type lateOutcome struct {
	size int // about how many bytes it will take

	once    sync.Once
	outcome *outcome
	data    []byte
	done    atomic.Bool
}

func newLateOutcome(o *outcome) *lateOutcome {
	own := *o
	return &lateOutcome{size: o.size, outcome: &own}
}

// bytes returns the written form.
func (l *lateOutcome) bytes() []byte {
	l.once.Do(func() {
		l.outcome.Flow = l.outcome.later()
		l.data, l.outcome = slices.Clone(l.outcome.bytes()), nil
		l.done.Store(true)
	})
	return l.data
}

// answerLate is answer for an outcome that is not written down yet.
func (ks *keys) answerLate(k *keyed, late *lateOutcome) {
	if k == nil || k.answered() {
		return
	}
	ks.set(k, func() { k.late = late })
	ks.late = append(ks.late, k)
}

// settleLate takes over the answers that have been written down since.
func (ks *keys) settleLate() {
	if len(ks.late) == 0 {
		return
	}
	ks.late = slices.DeleteFunc(ks.late, func(k *keyed) bool {
		if k.of == nil || !k.late.done.Load() {
			return k.of == nil
		}
		ks.set(k, func() { k.answer, k.late = k.late.bytes(), nil })
		return true
	})
}

// refer remembers that the answer is a card as it is, but for its version and what it is charged, which are told.
// It is written down when the card changes, if the key is still remembered then: most
// promises last longer than their keys.
func (ks *keys) refer(k *keyed, card *card, version uint64, charge *int64) {
	if k == nil || card == nil || card.promise == nil || k.answered() {
		return
	}
	ks.set(k, func() { k.card, k.version, k.charge = card, version, charge })
	if card.answers == nil {
		card.answers = k
	} else { // of another key
		ks.settle(k)
	}
}

// settle writes down an answer that is a card, before that changes.
func (ks *keys) settle(k *keyed) {
	if k.of != nil && k.card != nil {
		ks.set(k, func() { k.answer, k.card = k.written(), nil })
	}
}

// forget forgets the keys that are too old.
func (ks *keys) forget(now berth.Time) {
	for k := ks.first; k != nil && k.at.Add(remember) < now; k = ks.first {
		if ks.first = k.next; ks.first == nil {
			ks.last = nil
		}
		delete(k.of.known, k.name)
		ks.charge(k.of, -k.cost())
		k.of, k.card, k.next = nil, nil, nil
	}
}

// find returns what was asked under a key, nil if nothing was. The error is of code
// Conflict if it was asked for something else, and of code Exhausted if no further
// key can be remembered: those of a user have a bound in bytes.
func (ks *keys) find(key Key, most int64) (*keyed, error) {
	if key == (Key{}) {
		return nil, nil
	}
	switch was := ks.of(key.name()); {
	case was != nil && was.body != key.Body:
		return nil, usedBefore(key.Name)
	case was == nil && ks.used(key.User) >= most:
		return nil, berth.Errorf(berth.Exhausted, "idempotency_key",
			"your keys of the last day and their answers take %d MB, of %d; ask without a key, or later", ks.used(key.User)>>20, most>>20)
	case was == nil && ks.bytes >= maxKeys:
		return nil, berth.Errorf(berth.Exhausted, "idempotency_key", "all keys of the last day and their answers take %d MB, of %d; ask without a key, or later",
			ks.bytes>>20, maxKeys>>20)
	default:
		return was, nil
	}
}

func usedBefore(key string) error {
	return berth.Errorf(berth.Conflict, "idempotency_key", "%q was used for something else; take a new one", key)
}

// underway is what was asked under a key and is on record with it only once it is decided: a change that sites are
// asked about, or a workflow that is planned beside the loop.
type underway struct {
	body  [32]byte
	flows []func(FlowAnswer, error) // who asked for the workflow again, and waits too
}

// begin notes that what was asked under a key is under way, until finish.
func (h *Host) begin(key Key) {
	if key != (Key{}) && h.underway[key.name()] == nil {
		h.underway[key.name()] = &underway{body: key.Body}
	}
}

// finish notes that what was asked under a key is under way no more, and returns who else waits for its answer.
func (h *Host) finish(key Key) (waiting []func(FlowAnswer, error)) {
	if u := h.underway[key.name()]; u != nil {
		waiting = u.flows
	}
	delete(h.underway, key.name())
	return waiting
}

// savedKey is the form of a key in a snapshot.
type savedKey struct {
	User   string
	Name   string
	Body   []byte
	ID     string
	At     berth.Time
	Answer []byte
}

func (k *savedKey) code(c *wire.Coder) {
	wire.Name(c, 1, &k.User)
	wire.String(c, 2, &k.Name)
	wire.Raw(c, 3, &k.Body)
	wire.String(c, 4, &k.ID)
	wire.Int(c, 5, &k.At)
	wire.Raw(c, 6, &k.Answer)
	c.End()
}

func (ks *keys) saved() []savedKey {
	var list []savedKey
	for k := ks.first; k != nil; k = k.next {
		list = append(list, savedKey{User: k.of.user, Name: k.name, Body: k.body[:], ID: k.id, At: k.at, Answer: k.written()})
	}
	return list
}

func (ks *keys) restore(list []savedKey) {
	for i := range list {
		in := &list[i]
		key := Key{User: in.User, Name: in.Name}
		copy(key.Body[:], in.Body)
		ks.answer(ks.add(in.At, key, in.ID), in.Answer)
	}
}

// outcome is what came of something that was asked: an answer, one about a workflow or a series, or an
// error of the module's.
type outcome struct {
	Answer Answer
	Flow   *FlowAnswer
	Series *SeriesAnswer
	Failed *berth.Error
	// Others are further mistakes that were told with Failed.
	Others []*berth.Error

	later func() *FlowAnswer // returns Flow, if that takes long
	size  int                // about how many bytes it takes then
}

// outcomeOf returns what is remembered under a key; ok is false of what may be
// tried again: the service did not take it, or another version was expected,
// which stays so.
func outcomeOf(answer Answer, err error) (o outcome, ok bool) {
	if err == nil {
		return outcome{Answer: answer}, true
	}
	all := mistakesOf(err)
	for _, e := range all {
		if e.Code == berth.Unavailable || e.Code == berth.Internal || e.Field == "version" {
			return o, false
		}
	}
	if len(all) == 0 {
		return o, false
	}
	return outcome{Failed: all[0], Others: all[1:]}, true
}

// mistakesOf returns the module's errors in an error, nil if there is something else in it.
func mistakesOf(err error) []*berth.Error {
	several, is := err.(interface{ Unwrap() []error })
	if !is {
		if coded, is := errors.AsType[*berth.Error](err); is {
			return []*berth.Error{coded}
		}
		return nil
	}
	var all []*berth.Error
	for _, one := range several.Unwrap() {
		of := mistakesOf(one)
		if of == nil {
			return nil
		}
		all = append(all, of...)
	}
	return all
}

// err returns the error that is the answer, nil if there is another one.
func (o *outcome) err() error {
	if o.Failed == nil {
		return nil
	}
	if len(o.Others) == 0 {
		return o.Failed
	}
	all := []error{o.Failed}
	for _, e := range o.Others {
		all = append(all, e)
	}
	return errors.Join(all...)
}

// bytes returns the written form.
func (o *outcome) bytes() []byte {
	w := wire.Writer(make([]byte, 0, 256))
	o.code(w)
	return w.Bytes()
}

// readOutcome reads what bytes wrote.
func readOutcome(data []byte) (o outcome, err error) {
	r := wire.Reader(data)
	o.code(r)
	return o, r.Done()
}

func (o *outcome) code(c *wire.Coder) {
	wire.Struct(c, 1, &o.Answer.Reservation, o.Failed != nil || o.Flow != nil || o.Series != nil, codeReservation)
	wire.Pointer(c, 2, &o.Answer.Refusal, wire.Refusal)
	wire.List(c, 3, &o.Answer.Offers, codeOffer)
	wire.Pointer(c, 4, &o.Failed, codeError)
	wire.Pointer(c, 5, &o.Flow, codeFlowAnswer)
	wire.List(c, 6, &o.Others, func(c *wire.Coder, e **berth.Error) {
		if c.Reading() {
			*e = new(berth.Error)
		}
		codeError(c, *e)
	})
	wire.Pointer(c, 7, &o.Series, codeSeriesAnswer)
	c.End()
}

func codeError(c *wire.Coder, e *berth.Error) {
	wire.Name(c, 1, &e.Code)
	wire.Name(c, 2, &e.Field)
	wire.String(c, 3, &e.Msg)
	c.End()
}

// codeReservation is the form of a reservation as an answer shows it.
func codeReservation(c *wire.Coder, r *Reservation) {
	wire.String(c, 1, &r.ID)
	wire.Name(c, 2, &r.State)
	wire.Uint(c, 3, &r.Version)
	wire.Struct(c, 4, &r.Request, false, wire.Request)
	wire.List(c, 5, &r.Allotments, wire.Allotment)
	wire.List(c, 6, &r.Data, wire.Transfer)
	wire.Int(c, 7, &r.Missing)
	wire.Int(c, 8, &r.Expires)
	wire.Bool(c, 9, &r.CheckedIn)
	wire.Pointer(c, 10, &r.Refusal, wire.Refusal)
	wire.Int(c, 11, &r.Created)
	wire.Int(c, 12, &r.Changed)
	wire.Int(c, 13, &r.Extended)
	wire.Pointer(c, 14, &r.Charge, wire.BareInt)
	c.End()
}

func codeOffer(c *wire.Coder, o *Offer) {
	wire.String(c, 1, &o.ID)
	wire.Int(c, 2, &o.Expires)
	wire.Name(c, 3, &o.Difference)
	wire.Struct(c, 4, &o.Request, false, wire.Request)
	wire.List(c, 5, &o.Allotments, wire.Allotment)
	wire.Int(c, 6, &o.Idle)
	wire.Pointer(c, 7, &o.Cost, codeCost)
	wire.Pointer(c, 8, &o.Charge, wire.BareInt)
	c.End()
}

func codeCost(c *wire.Coder, cost *engine.Cost) {
	wire.Int(c, 1, &cost.Delayed)
	wire.Int(c, 2, &cost.Sum)
	wire.Int(c, 3, &cost.Largest)
	wire.Int(c, 4, &cost.Idle)
	wire.Int(c, 5, &cost.Followed)
	wire.Bool(c, 6, &cost.Complete)
	c.End()
}
