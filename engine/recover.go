package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Snapshot writes the state in canonical form: equal states give equal bytes. Cost:
// O(n log n) for n live reservations.
func (e *Engine) Snapshot() []byte { return e.state.Snapshot() }

// Restore returns an engine in the state of a snapshot. The error is of code Invalid:
// the snapshot is damaged, or belongs to another configuration. The engine keeps a copy
// of the configuration, and nothing of the snapshot.
func Restore(config Config, snapshot []byte) (*Engine, error) {
	config = config.clone()
	settings, err := config.resolve()
	if err != nil {
		return nil, err
	}
	s, err := state.Restore(settings.state, snapshot)
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "snapshot", "%v", err)
	}
	return newEngine(config, settings, s), nil
}

// Fold applies changes of an earlier run without deciding anything. After an error,
// of code Invalid, the engine must not be used any more. The changes must not be
// written afterwards.
func (e *Engine) Fold(changes []change.Change) error {
	for i := range changes {
		if err := e.state.Fold(&changes[i], state.Ref{}); err != nil {
			return berth.Errorf(berth.Invalid, "changes", "change %d (%s): %v", i, changes[i].Kind, err)
		}
	}
	e.state.Unsettled(nil) // what the changes ask of sites is among them
	e.state.Disturbed()    // and how workflows were mended
	return nil
}

// Check recomputes everything that follows from the ledger — calendars, timers and
// idle sets — and reports the first difference from what the engine holds. Nil means
// that no PE is promised twice and that nothing is booked without an owner. Cost: that
// of Restore.
func (e *Engine) Check() error { return e.state.Check(e.settings.state) }

// Hash returns the SHA-256, in hex, of the state: of its snapshot and of every
// calendar's records, which the snapshot does not contain.
func (e *Engine) Hash() string { return e.state.Hash(e.settings.pass.Plans) }
