package service

import (
	"encoding/binary"
	"encoding/json"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/journal/record"
)

// The forms of a record's event, told by its first byte.
const (
	plainInput  = 1 // an event
	keyedInput  = 2 // a key and an event, as written before answers were remembered
	configInput = 3 // a configuration, in JSON, which is in force from here on
	seenInput   = 4 // what was seen at a site that is only watched; nothing is decided
	askedInput  = 5 // who asked for what under which key, the answers given with it, and an event
	tasksInput  = 6 // what was seen of tasks at a site; nothing is decided
	madeInput   = 7 // what a site has of promises; nothing is decided
	hookInput   = 8 // what is new of receivers of notices; nothing is decided

	maintenanceInput = 9 // what is new of maintenance; nothing is decided
)

// Origin says who asked for something, and how he came in.
type Origin struct {
	User    string // whose token it was
	Role    Role
	Token   string // its id
	Address string // of the client
	Request string // id of the call
	Scopes  string // that the token was good for, with commas between them; empty is all
}

// told is an answer under a key. The names are empty if it is the record's own. The answer
// is an outcome in its written form or, if that is empty, the reservation of an id, or of what
// was asked about, as the record leaves it: then nothing is written twice. Its version and what it is charged are
// told, for a reservation that is asked about at its site has other versions after a restart, and prices change.
type told struct {
	name    keyName
	outcome []byte
	id      string
	version uint64
	charge  *int64
	late    *lateOutcome // makes the outcome, if that takes long; else nil
}

// asked is what a caller asked for, with the answers that are given from its record
// on.
type asked struct {
	by    Origin
	asker Principal // who is told; not on record
	key   Key
	from  FromNow // not on record: the request has its times
	id    string  // of the request or reservation that it was about
	told  []told
	// asking are the ids of promises that are not told before their sites have them.
	asking []string
	// over are the ids of promises that ended while their sites were asked about them, and are told so. Earlier versions wrote
	// none, and owed no notice about these.
	over  []string
	event []byte // as the journal writes it; empty if nothing is decided
}

func codeOrigin(c *wire.Coder, o *Origin) {
	wire.Name(c, 1, &o.User)
	wire.Name(c, 2, &o.Role)
	wire.Name(c, 3, &o.Token)
	wire.Name(c, 4, &o.Address)
	wire.String(c, 5, &o.Request)
	wire.Name(c, 6, &o.Scopes)
	c.End()
}

func (a *asked) code(c *wire.Coder) {
	wire.Struct(c, 1, &a.by, a.by == Origin{}, codeOrigin)
	wire.Name(c, 2, &a.key.User)
	wire.String(c, 3, &a.key.Name)
	body := a.key.Body[:]
	if a.key == (Key{}) {
		body = nil
	}
	if wire.Raw(c, 4, &body); c.Reading() && copy(a.key.Body[:], body) != len(body) {
		c.Fail("a digest of %d bytes", len(body))
	}
	wire.String(c, 5, &a.id)
	wire.List(c, 6, &a.told, func(c *wire.Coder, t *told) {
		wire.Name(c, 1, &t.name.user)
		wire.String(c, 2, &t.name.name)
		wire.Raw(c, 3, &t.outcome)
		wire.String(c, 4, &t.id)
		wire.Uint(c, 5, &t.version)
		wire.Pointer(c, 6, &t.charge, wire.BareInt)
		c.End()
	})
	wire.Raw(c, 7, &a.event)
	wire.List(c, 8, &a.asking, wire.BareText[string])
	wire.List(c, 9, &a.over, wire.BareText[string])
	c.End()
}

// input is what came in with a record.
type input struct {
	event    *engine.Event // nil if nothing is decided
	asked    asked
	config   *engine.Config
	sighting *sighting
	tasks    *taskLook
	delivery *delivery
	hooks    *hookNews

	maintenance *maintenanceNews
}

// appendInput appends an event and who asked for it.
func appendInput(dst []byte, event *engine.Event, a *asked) []byte {
	if a.by == (Origin{}) && a.key == (Key{}) && len(a.told)+len(a.asking)+len(a.over) == 0 {
		return record.AppendEvent(append(dst, plainInput), event)
	}
	if event != nil {
		a.event = record.AppendEvent(a.event[:0], event)
	}
	for i := range a.told {
		if t := &a.told[i]; t.late != nil {
			t.outcome = t.late.bytes()
		}
	}
	w := wire.Writer(append(dst, askedInput))
	a.code(w)
	return w.Bytes()
}

func appendConfig(dst []byte, config *engine.Config) []byte {
	text, err := json.Marshal(config)
	if err != nil {
		panic("service: a configuration cannot be written: " + err.Error())
	}
	return append(append(dst, configInput), text...)
}

func appendSighting(dst []byte, s *sighting) []byte {
	w := wire.Writer(append(dst, seenInput))
	s.code(w)
	return w.Bytes()
}

func appendTasks(dst []byte, l *taskLook) []byte {
	w := wire.Writer(append(dst, tasksInput))
	l.code(w)
	return w.Bytes()
}

func appendDelivery(dst []byte, d *delivery) []byte {
	w := wire.Writer(append(dst, madeInput))
	d.code(w)
	return w.Bytes()
}

// parseInput reads what appendInput, appendConfig, appendSighting, appendTasks,
// appendDelivery, appendHooks or appendMaintenance wrote.
func parseInput(payload []byte, decoder *record.Decoder) (in input, err error) {
	if len(payload) == 0 {
		return in, berth.Errorf(berth.Invalid, "event", "an empty one")
	}
	form, rest := payload[0], payload[1:]
	switch form {
	case configInput:
		config, err := readConfig(rest)
		if in.config = &config; err != nil {
			return in, berth.Errorf(berth.Invalid, "event", "a configuration: %v", err)
		}
		return in, nil
	case seenInput:
		r := wire.Reader(rest)
		in.sighting = new(sighting)
		in.sighting.code(r)
		return in, r.Done()
	case tasksInput:
		r := wire.Reader(rest)
		in.tasks = new(taskLook)
		in.tasks.code(r)
		return in, r.Done()
	case madeInput:
		r := wire.Reader(rest)
		in.delivery = new(delivery)
		in.delivery.code(r)
		return in, r.Done()
	case hookInput:
		r := wire.Reader(rest)
		in.hooks = new(hookNews)
		in.hooks.code(r)
		return in, r.Done()
	case maintenanceInput:
		r := wire.Reader(rest)
		in.maintenance = new(maintenanceNews)
		in.maintenance.code(r)
		return in, r.Done()
	case askedInput:
		r := wire.Reader(rest)
		in.asked.code(r)
		if err := r.Done(); err != nil {
			return in, err
		}
		if rest = in.asked.event; len(rest) == 0 {
			return in, nil
		}
	case keyedInput:
		for _, text := range []*string{&in.asked.key.User, &in.asked.key.Name} {
			n, size := binary.Uvarint(rest)
			if size <= 0 || n > uint64(len(rest)-size) {
				return in, berth.Errorf(berth.Invalid, "event", "its key is cut off")
			}
			*text, rest = string(rest[size:size+int(n)]), rest[size+int(n):]
		}
		if len(rest) < len(in.asked.key.Body) {
			return in, berth.Errorf(berth.Invalid, "event", "its key is cut off")
		}
		rest = rest[copy(in.asked.key.Body[:], rest):]
	case plainInput:
	default:
		return in, berth.Errorf(berth.Invalid, "event", "of form %d; this program reads 1 to 9, a newer one may read it", form)
	}
	event, err := decoder.Event(rest)
	in.event = &event
	if form == keyedInput {
		in.asked.id = subject(&event)
	}
	return in, err
}

// subject returns the id of what an event is about, empty if it is about none.
func subject(event *engine.Event) string {
	switch {
	case event.Request != nil:
		return event.Request.ID
	case event.Series != nil:
		return event.Series.ID
	}
	return event.ID
}
