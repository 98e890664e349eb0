package service

import (
	"errors"
	"slices"

	"github.com/berth-hpc/berth"
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
	known map[keyName]*keyed
	order []keyName // by time
	bytes int64
	users map[string]int64 // bytes by user
}

type keyName struct{ user, name string }

// keyed is what is known of a key.
type keyed struct {
	body   [32]byte
	id     string // of the request or reservation that it was about
	at     berth.Time
	answer []byte // an outcome in its written form; empty until one is due
}

func newKeys() keys { return keys{known: map[keyName]*keyed{}, users: map[string]int64{}} }

func (ks *keys) charge(name keyName, bytes int) {
	ks.bytes += int64(bytes)
	if ks.users[name.user] += int64(bytes); ks.users[name.user] == 0 {
		delete(ks.users, name.user)
	}
}

// add remembers a key and what it was about.
func (ks *keys) add(now berth.Time, key Key, id string) {
	ks.forget(now)
	if key == (Key{}) {
		return
	}
	name := key.name()
	k := ks.known[name]
	if k == nil {
		k = &keyed{body: key.Body, at: now}
		ks.known[name], ks.order = k, append(ks.order, name)
		ks.charge(name, keyCost+len(name.name))
	}
	if id != "" {
		k.id = id
	}
}

// answer remembers the answer to what was asked under a key: the first that was
// given.
func (ks *keys) answer(name keyName, outcome []byte) {
	if k := ks.known[name]; k != nil && len(k.answer) == 0 {
		k.answer = slices.Clone(outcome) // without the room in which it was written: it stays for a day
		ks.charge(name, len(outcome))
	}
}

// answered reports whether there is an answer under a key.
func (ks *keys) answered(name keyName) bool {
	k := ks.known[name]
	return k != nil && len(k.answer) > 0
}

// forget forgets the keys that are too old.
func (ks *keys) forget(now berth.Time) {
	for len(ks.order) > 0 && ks.known[ks.order[0]].at.Add(remember) < now {
		name := ks.order[0]
		ks.charge(name, -keyCost-len(name.name)-len(ks.known[name].answer))
		delete(ks.known, name)
		ks.order = ks.order[1:]
	}
}

// find returns what was asked under a key, nil if nothing was. The error is of code
// Conflict if it was asked for something else, and of code Exhausted if no further
// key can be remembered: all of a user may take so many bytes.
func (ks *keys) find(key Key, most int64) (*keyed, error) {
	if key == (Key{}) {
		return nil, nil
	}
	switch was := ks.known[key.name()]; {
	case was != nil && was.body != key.Body:
		return nil, berth.Errorf(berth.Conflict, "idempotency_key", "%q was used for something else; take a new one", key.Name)
	case was == nil && ks.users[key.User] >= most:
		return nil, berth.Errorf(berth.Exhausted, "idempotency_key",
			"your keys of the last day and their answers take %d MB, of %d; ask without a key, or later", ks.users[key.User]>>20, most>>20)
	case was == nil && ks.bytes >= maxKeys:
		return nil, berth.Errorf(berth.Exhausted, "idempotency_key", "all keys of the last day and their answers take %d MB, of %d; ask without a key, or later",
			ks.bytes>>20, maxKeys>>20)
	default:
		return was, nil
	}
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
	for _, name := range ks.order {
		k := ks.known[name]
		list = append(list, savedKey{User: name.user, Name: name.name, Body: k.body[:], ID: k.id, At: k.at, Answer: k.answer})
	}
	return list
}

func (ks *keys) restore(list []savedKey) {
	for i := range list {
		in := &list[i]
		key := Key{User: in.User, Name: in.Name}
		copy(key.Body[:], in.Body)
		ks.add(in.At, key, in.ID)
		ks.answer(key.name(), in.Answer)
	}
}

// outcome is what came of something that was asked: an answer, or an error of the
// module's.
type outcome struct {
	Answer Answer
	Failed *berth.Error
}

// outcomeOf returns what is remembered under a key; ok is false of what may be
// tried again: the service did not take it, or another version was expected,
// which stays so.
func outcomeOf(answer Answer, err error) (o outcome, ok bool) {
	if err == nil {
		return outcome{Answer: answer}, true
	}
	coded, is := errors.AsType[*berth.Error](err)
	if !is || coded.Code == berth.Unavailable || coded.Code == berth.Internal || coded.Field == "version" {
		return o, false
	}
	return outcome{Failed: coded}, true
}

// err returns the error that is the answer, nil if there is another one.
func (o *outcome) err() error {
	if o.Failed == nil {
		return nil
	}
	return o.Failed
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
	wire.Struct(c, 1, &o.Answer.Reservation, o.Failed != nil, codeReservation)
	wire.Pointer(c, 2, &o.Answer.Refusal, wire.Refusal)
	wire.List(c, 3, &o.Answer.Offers, codeOffer)
	wire.Pointer(c, 4, &o.Failed, func(c *wire.Coder, e *berth.Error) {
		wire.Name(c, 1, &e.Code)
		wire.Name(c, 2, &e.Field)
		wire.String(c, 3, &e.Msg)
		c.End()
	})
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
	c.End()
}

func codeOffer(c *wire.Coder, o *Offer) {
	wire.String(c, 1, &o.ID)
	wire.Int(c, 2, &o.Expires)
	wire.Name(c, 3, &o.Difference)
	wire.Struct(c, 4, &o.Request, false, wire.Request)
	wire.List(c, 5, &o.Allotments, wire.Allotment)
	wire.Int(c, 6, &o.Idle)
	c.End()
}
