package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/site"
)

// Fault is a panic: this program is wrong. What it was doing is not applied and no one
// is answered. A fault of the loop, of a keeper or of what follows a durable record stops
// the service, because what the core or a site is known to be may be half changed; one of
// a call over HTTP ends that call, and one of a snapshot or a compaction that one, since
// they share nothing with the core.
type Fault struct {
	// Record is the number of the record that was to come of it, or that was followed.
	Record  uint64     `json:"record"`
	Doing   string     `json:"doing"` // in words
	Kind    string     `json:"kind"`  // of the event; empty if there was none
	At      berth.Time `json:"at"`    // of the service, or of the record
	Version string     `json:"version"`
	What    string     `json:"what"` // the value of the panic
	Stack   string     `json:"stack"`
	Times   int        `json:"times"` // how often it was met at this record
	// Event is the event in JSON, and Payload as the journal writes it.
	Event   json.RawMessage `json:"event,omitempty"`
	Payload []byte          `json:"payload,omitempty"`

	file string // where it is kept; empty if it is not
}

// Again reports whether the next start meets the fault again.
func (f *Fault) Again() bool { return f.Doing == following || f.Times > 1 }

// Error says what happened and what to do next.
func (f *Fault) Error() string {
	text := fmt.Sprintf("a fault of this program at record %d, while %s", f.Record, f.Doing)
	if f.Kind != "" {
		text += fmt.Sprintf(" (event: %s)", f.Kind)
	}
	text += ": " + f.What + "; nothing of it was applied or answered."
	switch {
	case f.Doing == following:
		text += " The record is in the journal, so every start of this version meets it: install another version, or put a backup back."
	case f.Times > 1:
		text += fmt.Sprintf(" It was met here %d times, so starting again does not help: install another version.", f.Times)
	default:
		text += " Starting again goes on without it."
	}
	if f.file != "" {
		text += " The event and the stack are in " + f.file + "; keep it for a report, with a copy made by berth journal backup, and check with berth journal verify."
	}
	return text
}

// following is what is being done where a record that is durable leads to a fault.
const following = "following a record"

// caught does something and returns a panic in it as a *Fault.
func caught(number uint64, doing string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = newFault(number, doing, p)
		}
	}()
	return f()
}

func newFault(number uint64, doing string, panicked any) *Fault {
	f := &Fault{Record: number, Doing: doing, What: fmt.Sprint(panicked), Stack: string(debug.Stack()), Times: 1}
	if raised, is := panicked.(*site.Panic); is {
		f.Stack = string(raised.Stack)
	}
	return f
}

// about adds what was being decided.
func (f *Fault) about(event *engine.Event) {
	f.Kind = string(event.Kind)
	f.Payload = record.AppendEvent(nil, event)
	rec := journal.Record{Number: f.Record, Event: f.Payload}
	if line, err := new(record.Decoder).Line(&rec); err == nil {
		f.Event = line.Event
	}
}

// read adds what the journal has of the record that was followed.
func (f *Fault) read(ctx context.Context, log journal.Reader) {
	_ = caught(f.Record, following, func() error { // it may be what cannot be read
		for rec, err := range log.Read(context.WithoutCancel(ctx), f.Record) {
			if err != nil {
				return err
			}
			f.At, f.Payload = rec.At, rec.Event
			in, err := parseInput(rec.Event, new(record.Decoder))
			switch {
			case err != nil:
				return err
			case in.event != nil:
				f.about(in.event)
			case in.config != nil:
				f.Kind = "configuration"
			case in.sighting != nil:
				f.Kind = "sighting"
			case in.tasks != nil:
				f.Kind = "tasks"
			}
			return nil
		}
		return nil
	})
}

// restartRecords is more than a start writes (the configuration, the states of nodes)
// before it comes to where the run before was.
const restartRecords = 100

// like reports whether a fault is one of an earlier run, met again.
func (f *Fault) like(before *Fault) bool {
	return f.Doing == before.Doing && f.Kind == before.Kind && f.What == before.What && f.Record-before.Record < restartRecords
}

// kept returns the files of the faults of earlier runs.
func kept(folder string) (paths []string) {
	entries, _ := os.ReadDir(folder) // none at a first start
	for _, e := range entries {
		if is, _ := filepath.Match("fault-*.json", e.Name()); is {
			paths = append(paths, filepath.Join(folder, e.Name()))
		}
	}
	return paths
}

// keep logs a fault and writes it down, for a report and for the next start, which counts on.
func (f *Fault) keep(o *Options) {
	f.Version = o.Version
	defer func() {
		o.Log.Error("fault", "record", f.Record, "doing", f.Doing, "kind", f.Kind, "times", f.Times, "fault", f.What, "file", f.file, "stack", f.Stack)
	}()
	if o.FaultFolder == "" {
		return
	}
	for _, path := range kept(o.FaultFolder) {
		var before Fault
		if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &before) == nil && f.like(&before) {
			f.Times = max(f.Times, before.Times+1)
		}
	}
	path := filepath.Join(o.FaultFolder, fmt.Sprintf("fault-%d.json", f.Record))
	data, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = wholefile.Write(path, append(data, '\n'))
	}
	if err != nil {
		o.Log.Error("a fault cannot be kept", "error", err)
	} else {
		f.file = path
	}
}

// Guard does what its caller has started a goroutine for at the boundary for faults: a
// panic in it stops the service.
func (h *Host) Guard(doing string, f func()) {
	defer h.boundary(doing)
	f()
}

// guarded is a log whose panics are errors, with which the writer ends.
type guarded struct {
	log     journal.Appender
	sealing *sealing
}

func (g guarded) Append(ctx context.Context, records ...journal.Record) error {
	return caught(records[0].Number, "writing the journal", func() error {
		g.sealing.seal(records)
		return g.log.Append(ctx, records...)
	})
}

// Gather has records gathered for as long as the log wants.
func (g guarded) Gather() {
	if log, gathers := g.log.(journal.Gatherer); gathers {
		log.Gather()
	}
}

// errFaulty is the answer to those whom a fault leaves without one.
var errFaulty = berth.Errorf(berth.Unavailable, "service", "it stopped at a fault of the program; its log says more, so have an operator start it again, and ask again")

// boundary is deferred by each goroutine whose fault stops the service.
func (h *Host) boundary(doing string) {
	p := recover()
	if p == nil {
		return
	}
	f := newFault(h.durable.reached()+1, doing, p)
	f.At = h.Now()
	h.stopAt(f)
}

// loopBoundary is that of the loop, which alone may look at the core.
func (h *Host) loopBoundary() {
	p := recover()
	if p == nil {
		return
	}
	f := newFault(h.core.position.Number+1, "looking something up", p)
	if f.At = h.Now(); h.core.deciding != nil {
		f.Doing = "deciding"
		f.about(h.core.deciding)
	}
	h.stopAt(f)
	h.abandon(errFaulty)
}

// stopAt stops the service because of a fault.
func (h *Host) stopAt(f *Fault) {
	h.faults.Do(func() {
		f.keep(&h.options)
		h.fault.Store(f)
	})
	h.die(f)
}

// Err returns why the service stopped by itself, nil if it did not.
func (h *Host) Err() error {
	if f := h.fault.Load(); f != nil {
		return f
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead
}

// tellFaults warns of the faults of earlier lives that are kept.
func tellFaults(o *Options) {
	if o.FaultFolder == "" {
		return
	}
	for _, path := range kept(o.FaultFolder) {
		o.Log.Warn("an earlier run stopped at a fault of the program; report it, and remove the file", "file", path)
	}
}

// faultOf returns the fault in an error, nil if there is none.
func faultOf(err error) *Fault {
	f, _ := errors.AsType[*Fault](err)
	return f
}
