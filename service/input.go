package service

import (
	"encoding/binary"
	"encoding/json"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/journal/record"
)

// Key is what makes asking twice the same as asking once: the name that a user
// gave to something he asked, and a digest of what that was. The zero value is
// none.
type Key struct {
	User string
	Name string
	Body [32]byte
}

// The forms of a record's event, told by its first byte.
const (
	plainInput  = 1 // an event
	keyedInput  = 2 // a key and an event
	configInput = 3 // a configuration, in JSON, which is in force from here on
	seenInput   = 4 // what was seen at a site that is only watched; nothing is decided
)

// input is what came in with a record.
type input struct {
	event  *engine.Event // or
	config *engine.Config
	key    Key
	// or
	sighting *sighting
}

// appendInput appends an event and its key: the key's user and name each with
// its length before it, then its body.
func appendInput(dst []byte, event *engine.Event, key Key) []byte {
	if key == (Key{}) {
		return record.AppendEvent(append(dst, plainInput), event)
	}
	dst = append(dst, keyedInput)
	for _, text := range []string{key.User, key.Name} {
		dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
	}
	return record.AppendEvent(append(dst, key.Body[:]...), event)
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

// parseInput reads what appendInput, appendConfig or appendSighting wrote.
func parseInput(payload []byte, decoder *record.Decoder) (in input, err error) {
	if len(payload) == 0 {
		return in, berth.Errorf(berth.Invalid, "event", "an empty one")
	}
	form, rest := payload[0], payload[1:]
	switch form {
	case configInput:
		in.config = new(engine.Config)
		if err := json.Unmarshal(rest, in.config); err != nil {
			return in, berth.Errorf(berth.Invalid, "event", "a configuration: %v", err)
		}
		return in, nil
	case seenInput:
		r := wire.Reader(rest)
		in.sighting = new(sighting)
		in.sighting.code(r)
		return in, r.Done()
	case keyedInput:
		for _, text := range []*string{&in.key.User, &in.key.Name} {
			n, size := binary.Uvarint(rest)
			if size <= 0 || n > uint64(len(rest)-size) {
				return in, berth.Errorf(berth.Invalid, "event", "its key is cut off")
			}
			*text, rest = string(rest[size:size+int(n)]), rest[size+int(n):]
		}
		if len(rest) < len(in.key.Body) {
			return in, berth.Errorf(berth.Invalid, "event", "its key is cut off")
		}
		rest = rest[copy(in.key.Body[:], rest):]
	case plainInput:
	default:
		return in, berth.Errorf(berth.Invalid, "event", "of form %d; this program reads 1 to 4, a newer one may read it", form)
	}
	event, err := decoder.Event(rest)
	in.event = &event
	return in, err
}

// remember is how long keys are remembered, in seconds: a day, as clients that
// retry expect of an Idempotency-Key.
const remember berth.Duration = 86_400

// keys remembers what was asked under which key.
type keys struct {
	known map[keyName]keyed
	order []keyName // by time
}

type keyName struct{ user, name string }

type keyed struct {
	body [32]byte
	id   string // of the request or reservation that it was about
	at   berth.Time
}

func newKeys() keys { return keys{known: map[keyName]keyed{}} }

// add remembers a key, and forgets those that are too old.
func (ks *keys) add(now berth.Time, key Key, event *engine.Event) {
	for len(ks.order) > 0 && ks.known[ks.order[0]].at.Add(remember) < now {
		delete(ks.known, ks.order[0])
		ks.order = ks.order[1:]
	}
	if key == (Key{}) {
		return // then there may be no event
	}
	id := event.ID
	if event.Request != nil {
		id = event.Request.ID
	}
	name := keyName{key.User, key.Name}
	if _, known := ks.known[name]; !known {
		ks.order = append(ks.order, name)
	}
	ks.known[name] = keyed{body: key.Body, id: id, at: now}
}

// find returns what was asked under a key. Asked for something else it is a
// Conflict.
func (ks *keys) find(key Key) (id string, known bool, err error) {
	if key == (Key{}) {
		return "", false, nil
	}
	was, known := ks.known[keyName{key.User, key.Name}]
	if known && was.body != key.Body {
		return "", false, berth.Errorf(berth.Conflict, "idempotency_key", "%q was used for something else; take a new one", key.Name)
	}
	return was.id, known, nil
}

type savedKey struct {
	User string
	Name string
	Body []byte
	ID   string
	At   berth.Time
}

func (ks *keys) saved() []savedKey {
	var list []savedKey
	for _, name := range ks.order {
		k := ks.known[name]
		list = append(list, savedKey{User: name.user, Name: name.name, Body: k.body[:], ID: k.id, At: k.at})
	}
	return list
}

func (ks *keys) restore(list []savedKey) {
	for _, in := range list {
		name := keyName{in.User, in.Name}
		k := keyed{id: in.ID, at: in.At}
		copy(k.body[:], in.Body)
		ks.known[name], ks.order = k, append(ks.order, name)
	}
}
