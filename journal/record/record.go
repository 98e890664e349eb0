// Package record writes what the engine takes in and does as the payloads of
// journal records, and reads them back. It also decides again and compares. It
// does not store anything.
package record

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
)

// format begins every payload that is not empty. Within a format, fields and words
// are only added. Payloads of format 1 are read as well.
const format = 2

// AppendEvent appends the form of an event. Cost: O(size), one growth of dst.
func AppendEvent(dst []byte, e *engine.Event) []byte {
	c := wire.Writer(append(dst, format))
	event(c, e)
	return c.Bytes()
}

// AppendChanges appends the form of changes; of none, nothing.
func AppendChanges(dst []byte, changes []change.Change) []byte {
	if len(changes) == 0 {
		return dst
	}
	c := wire.Writer(append(dst, format))
	wire.BareList(c, &changes, step)
	return c.Bytes()
}

// AppendEffects appends the form of effects; of none, nothing.
func AppendEffects(dst []byte, effects []change.Effect) []byte {
	if len(effects) == 0 {
		return dst
	}
	c := wire.Writer(append(dst, format))
	wire.BareList(c, &effects, effect)
	return c.Bytes()
}

// Decoder reads payloads. It shares the memory of names that recur from one
// payload to the next, such as those of sites and users. What it returns does
// not alias the payload. The zero value works; it is not safe for concurrent
// use. Errors are of code Invalid.
type Decoder struct {
	coder *wire.Coder
	again []byte // what was decided again, as it would be on record
}

// Event reads what AppendEvent wrote.
func (d *Decoder) Event(payload []byte) (engine.Event, error) {
	var e engine.Event
	err := d.open(payload)
	if err == nil {
		event(d.coder, &e)
		err = d.coder.Done()
	}
	return e, err
}

// Changes reads what AppendChanges wrote.
func (d *Decoder) Changes(payload []byte) ([]change.Change, error) {
	return list(d, payload, step)
}

// Effects reads what AppendEffects wrote.
func (d *Decoder) Effects(payload []byte) ([]change.Effect, error) {
	return list(d, payload, effect)
}

func list[T any](d *Decoder, payload []byte, code func(*wire.Coder, *T)) ([]T, error) {
	if len(payload) == 0 {
		return nil, nil
	}
	if err := d.open(payload); err != nil {
		return nil, err
	}
	var items []T
	wire.BareList(d.coder, &items, code)
	if len(items) == 0 {
		d.coder.Fail("a list of nothing; it must be left out")
	}
	if err := d.coder.Done(); err != nil {
		return nil, err
	}
	return items, nil
}

// open begins to read a payload.
func (d *Decoder) open(payload []byte) error {
	switch {
	case len(payload) == 0:
		return berth.Errorf(berth.Invalid, "payload", "empty")
	case payload[0] < 1 || payload[0] > format:
		return berth.Errorf(berth.Invalid, "payload",
			"format %d; this program reads formats 1 to %d, a newer one may read it", payload[0], format)
	}
	if d.coder == nil {
		d.coder = wire.Reader(nil)
	}
	d.coder.Reset(payload[1:])
	return nil
}
