package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/berth-hpc/berth"
)

// saved is the state in its canonical written form. Calendars, timers and idle
// sets follow from it and from the configuration.
type saved struct {
	Now          berth.Time         `json:"now"`
	Sequence     uint64             `json:"sequence"`
	Effects      uint64             `json:"effects"`
	Decided      uint64             `json:"decided"`
	Pending      []*berth.Request   `json:"pending,omitempty"`
	Reservations []savedReservation `json:"reservations,omitempty"` // by sequence
	Outbox       []Effect           `json:"outbox,omitempty"`
}

type savedReservation struct {
	berth.Reservation
	// Over lists the parts that hold nothing any more.
	Over []int `json:"over,omitempty"`
}

// Snapshot writes the state in canonical form: equal states give equal bytes.
// Cost: O(n log n) for n live reservations.
func (e *Engine) Snapshot() []byte {
	s := e.state
	out := saved{
		Now: s.now, Sequence: s.sequence, Effects: s.effects, Decided: s.decided,
		Pending: s.queue.pending, Outbox: s.outbox,
	}
	for _, entry := range s.ledger.inOrder() {
		r := savedReservation{Reservation: entry.Reservation}
		for part := range entry.Allotments {
			if !s.ledger.holdsPart(entry, part) {
				r.Over = append(r.Over, part)
			}
		}
		out.Reservations = append(out.Reservations, r)
	}
	data, err := json.Marshal(out)
	if err != nil {
		panic("engine: the state cannot be written: " + err.Error())
	}
	return data
}

// Restore returns an engine in the state of a snapshot. The error is of code
// Invalid: the snapshot is damaged, or belongs to another configuration.
func Restore(config Config, snapshot []byte) (*Engine, error) {
	e, err := New(config)
	if err != nil {
		return nil, err
	}
	var in saved
	if err := json.Unmarshal(snapshot, &in); err != nil {
		return nil, berth.Errorf(berth.Invalid, "snapshot", "%v", err)
	}
	if err := e.state.restore(&in); err != nil {
		return nil, berth.Errorf(berth.Invalid, "snapshot", "%v", err)
	}
	return e, nil
}

func (s *state) restore(in *saved) error {
	s.now, s.sequence, s.effects, s.decided = in.Now, in.Sequence, in.Effects, in.Decided
	s.queue.pending = append(s.queue.pending, in.Pending...)
	s.outbox = append(s.outbox, in.Outbox...)
	for _, r := range in.Reservations {
		if len(r.Allotments) == 0 {
			return fmt.Errorf("reservation %q has no allotment", r.Request.ID)
		}
		entry := s.ledger.add(r.Reservation)
		for _, part := range r.Over {
			if part < 0 || part >= len(r.Allotments) || !s.ledger.holdsPart(entry, part) {
				return fmt.Errorf("reservation %q has no part %d to be over", r.Request.ID, part)
			}
			s.ledger.dropPart(entry, part)
		}
		if entry.State == berth.Confirmed {
			s.timers.add(startTimer(&entry.Reservation))
		}
		for part := range entry.Allotments {
			if !s.ledger.holdsPart(entry, part) {
				continue
			}
			a := &entry.Allotments[part]
			c, ok := s.calendars[a.Resource]
			if !ok {
				return fmt.Errorf("reservation %q is on %v, which the configuration does not have", r.Request.ID, a.Resource)
			}
			if from := max(a.Start, s.now); from < a.End {
				if err := c.Add(blockOf(a, from)); err != nil {
					return fmt.Errorf("reservation %q: %w", r.Request.ID, err)
				}
			}
			if entry.State == berth.Active {
				s.timers.add(endTimer(&entry.Reservation, part))
				if idle, late := s.idle[a.Resource]; late {
					idle.Delete(a.PEs)
				}
			}
		}
	}
	return nil
}

// Fold applies changes of an earlier run without deciding anything. After an
// error, of code Invalid, the engine must not be used any more.
func (e *Engine) Fold(changes []Change) error {
	for i := range changes {
		if err := e.state.fold(&changes[i]); err != nil {
			return berth.Errorf(berth.Invalid, "changes", "change %d (%s): %v", i, changes[i].Kind, err)
		}
	}
	return nil
}

// Hash returns the SHA-256, in hex, of the state: of its snapshot and of every
// calendar's records, which the snapshot does not contain.
func (e *Engine) Hash() string {
	h := sha256.New()
	h.Write(e.Snapshot())
	var buf []byte
	for _, res := range e.state.resources {
		for record := range e.state.calendar(res.id).Records() {
			buf = binary.AppendVarint(buf[:0], int64(record.Time))
			buf = binary.AppendVarint(buf, int64(record.Free))
			for _, run := range record.Busy.Runs() {
				buf = binary.AppendVarint(buf, int64(run.Lo))
				buf = binary.AppendVarint(buf, int64(run.Hi))
			}
			h.Write(buf)
		}
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}
