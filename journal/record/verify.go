package record

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
)

// Difference says that deciding again came to another result than a record.
type Difference struct {
	Number   uint64
	What     string // "change 3", "effects"
	Recorded string // in JSON; empty if there is none
	Decided  string
}

// Error names the record and both results.
func (d *Difference) Error() string {
	return fmt.Sprintf("record %d, %s: recorded %s, decided again %s", d.Number, d.What, orNone(d.Recorded), orNone(d.Decided))
}

func orNone(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// Redecide applies a record's event to an engine that is in the state before
// the record, and compares what it does with what the record says. A
// *Difference is an error; so is a payload that cannot be read. An event that
// the engine refuses is compared like any other: time has passed with it.
func (d *Decoder) Redecide(e *engine.Engine, r *journal.Record) error {
	event, err := d.Event(r.Event)
	if err != nil {
		return fmt.Errorf("record %d: event: %w", r.Number, err)
	}
	return d.RedecideEvent(e, r, event)
}

// RedecideEvent is Redecide for a record whose event has been read already.
func (d *Decoder) RedecideEvent(e *engine.Engine, r *journal.Record, event engine.Event) error {
	newChanges, newEffects, _ := e.Apply(r.At, event)
	d.again = AppendChanges(d.again[:0], newChanges)
	same := bytes.Equal(d.again, r.Changes)
	d.again = AppendEffects(d.again[:0], newEffects)
	if same && bytes.Equal(d.again, r.Effects) { // else an older program may have written the same in another form
		return nil
	}
	changes, err := d.Changes(r.Changes)
	if err != nil {
		return fmt.Errorf("record %d: changes: %w", r.Number, err)
	}
	effects, err := d.Effects(r.Effects)
	if err != nil {
		return fmt.Errorf("record %d: effects: %w", r.Number, err)
	}
	for i := range max(len(changes), len(newChanges)) {
		recorded, decided := form(changes, i, AppendChanges), form(newChanges, i, AppendChanges)
		if !bytes.Equal(recorded, decided) {
			return &Difference{r.Number, fmt.Sprintf("change %d", i), text(changes, i), text(newChanges, i)}
		}
	}
	for i := range max(len(effects), len(newEffects)) {
		recorded, decided := form(effects, i, AppendEffects), form(newEffects, i, AppendEffects)
		if !bytes.Equal(recorded, decided) {
			return &Difference{r.Number, fmt.Sprintf("effect %d", i), text(effects, i), text(newEffects, i)}
		}
	}
	return nil
}

// form returns the form of one item, nil if there is none. Items are compared
// as today's program writes them: an older one may have written a word in full.
func form[T any](items []T, i int, write func([]byte, []T) []byte) []byte {
	if i >= len(items) {
		return nil
	}
	return write(nil, items[i:i+1])
}

func text[T any](items []T, i int) string {
	if i >= len(items) {
		return ""
	}
	return string(plain(items[i]))
}

// plain writes an item in JSON.
func plain(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("record: " + err.Error()) // the engine's types are all of a kind that JSON has
	}
	return data
}

// Line shows a record with its payloads in JSON, for journal.Export.
func (d *Decoder) Line(r *journal.Record) (journal.Line, error) {
	line := journal.Line{Number: r.Number, At: r.At, Version: r.Version, Hash: r.Hash}
	event, err := d.Event(r.Event)
	if err != nil {
		return line, fmt.Errorf("record %d: event: %w", r.Number, err)
	}
	line.Event = plain(event)
	changes, err := d.Changes(r.Changes)
	if err != nil {
		return line, fmt.Errorf("record %d: changes: %w", r.Number, err)
	}
	if len(changes) > 0 {
		line.Changes = plain(changes)
	}
	effects, err := d.Effects(r.Effects)
	if err != nil {
		return line, fmt.Errorf("record %d: effects: %w", r.Number, err)
	}
	if len(effects) > 0 {
		line.Effects = plain(effects)
	}
	return line, nil
}
