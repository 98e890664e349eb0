package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// refusing is a journal that refuses large records while it is told to.
type refusing struct {
	*sqlite.Store
	full atomic.Bool
}

func (s *refusing) Append(ctx context.Context, records ...journal.Record) error {
	for i := range records {
		if s.full.Load() && len(records[i].Changes) > 10_000 {
			return errors.New("no room for that")
		}
	}
	return s.Store.Append(ctx, records...)
}

func sealingHost(t *testing.T, dir string, binding berth.Binding) (*Host, *refusing) {
	t.Helper()
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	full := &refusing{Store: store}
	config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 64, Binding: binding}}}}}
	h, err := Open(t.Context(), Options{Config: config, Journal: full, Version: "test", Clock: func() time.Time { return time.Unix(1000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	return h, full
}

// The records of requests with large sets are made beside the loop too: what is promised, changed and refused is the same after a restart, and
// an owner waits for what is not durable yet.
func TestARecordOfALargeSetIsMadeBesideTheLoop(t *testing.T) {
	dir := t.TempDir()
	h, store := sealingHost(t, dir, berth.Early)
	with := func(id string, npe berth.Count, runs int) berth.Request {
		r := berth.Rigid(id, 0, 2000, 100_000, npe, 500)
		r.Parts[0].Eligible = everySecond(runs)
		return r
	}
	const runs = mostWritten/8 + 1000
	keyed := as("ann")
	keyed.Key, keyed.Body = "large", [32]byte{1}
	var shown []Reservation
	for _, one := range []struct {
		ask   Ask
		r     berth.Request
		state State
	}{
		{keyed, with("promised", 10, runs), Confirmed},
		{as("ann"), with("refused", 60, runs), Refused}, // of 64 PEs it may have 32
		{as("ann"), with("changed", 5, 10), Confirmed},
	} {
		a, err := h.Submit(t.Context(), one.ask, one.r)
		if err != nil || a.Reservation.State != one.state {
			t.Fatalf("%s is %s: %v", one.r.ID, a.Reservation.State, err)
		}
		shown = append(shown, a.Reservation)
	}
	a, err := h.Modify(t.Context(), as("ann"), "changed", with("changed", 6, runs+1))
	if err != nil || a.Reservation.Version == shown[2].Version {
		t.Fatalf("%+v, %v", a.Refusal, err)
	}
	shown[2] = a.Reservation
	again := func(when string) {
		t.Helper()
		for i := range shown {
			is, err := h.Get(t.Context(), as("ann").By, shown[i].ID)
			if err != nil || is.State != shown[i].State || is.Version != shown[i].Version || !reflect.DeepEqual(is.Request, shown[i].Request) || !reflect.DeepEqual(is.Allotments, shown[i].Allotments) {
				t.Errorf("%s %s is %s, version %d, want %s, %d: %v", when, shown[i].ID, is.State, is.Version, shown[i].State, shown[i].Version, err)
			}
		}
		if was, err := h.Submit(t.Context(), keyed, with("promised", 10, runs)); err != nil || was.Reservation.ID != "promised" || was.Reservation.State != Confirmed {
			t.Errorf("%s the key answers %+v, %v", when, was.Reservation.State, err)
		}
		if err := h.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		h.line.mu.Lock()
		if owed := h.line.owed["ann"]; owed != 0 {
			t.Errorf("%s ann owes %d bytes, and all is durable", when, owed)
		}
		h.line.mu.Unlock()
	}
	again("before a restart")
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	h, store = sealingHost(t, dir, berth.Early)
	again("after a restart")
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), store, nil); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// A record that is written later says what its step did, whatever was decided since.
func TestALargeRecordIsOfItsStep(t *testing.T) {
	config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 64, Binding: berth.Early}}}}}
	core, err := newCore(config, "test", 1000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := core.Configure(1000, config); err != nil {
		t.Fatal(err)
	}
	core.apart = true
	decide := func(event engine.Event, after func(s *step)) *journal.Record {
		s := core.apply(1000, &event)
		if s.err != nil {
			t.Fatal(s.err)
		}
		after(s)
		return core.seal(s, &asked{})
	}
	large := berth.Rigid("large", 0, 2000, 100_000, 10, 500)
	large.Parts[0].Eligible = everySecond(mostWritten/8 + 1)
	again := berth.Series{ID: "again", Least: 2, Rule: "daily", Zone: "UTC", Occurrences: []berth.Occurrence{{Ready: 5000, Deadline: 6000}, {Ready: 7000, Deadline: 8000}}, Request: large}
	again.Request.ID = "again"
	other := again.Requests()
	for i := range other {
		other[i].ID, other[i].Parts = fmt.Sprint("again.", i+1), []berth.Part{{Variants: []berth.Variant{{NPE: 5, Duration: 400}}, Eligible: large.Parts[0].Eligible}}
	}
	events := []engine.Event{engine.Submit(&large), engine.Wake(), engine.Modify(&large), engine.SubmitSeries(&again), engine.ModifySeries("again", other, nil)}
	for _, event := range events {
		var want, input []byte
		rec := decide(event, func(s *step) {
			want, input = record.AppendChanges(nil, s.changes), appendInput(nil, s.event, &asked{})
		})
		later := core.later
		if core.later = nil; later == nil {
			if event.Kind != engine.EventWake {
				t.Errorf("%s: its record was written at once", event.Kind)
			}
			continue
		}
		for _, id := range []string{"a", "b", "c"} {
			decide(engine.Submit(new(berth.Rigid(fmt.Sprint(event.Kind, id), 0, 2000, 100_000, 1, 500))), func(*step) {})
		}
		if later.write(rec); !bytes.Equal(rec.Changes, want) || !bytes.Equal(rec.Event, input) {
			t.Errorf("%s: its record says something else", event.Kind)
		}
	}
}

// What a step has to write decides whether that is done in the loop.
func TestHowLargeTheRecordOfAStepIs(t *testing.T) {
	large := berth.Rigid("a", 0, 0, 10, 1, 10)
	large.Parts[0].Eligible = everySecond(mostWritten / 8)
	ask, modify, small := engine.Submit(&large), engine.Modify(&large), engine.Submit(new(berth.Rigid("a", 0, 0, 10, 1, 10)))
	series, several := engine.SubmitSeries(&berth.Series{Request: large}), engine.ModifySeries("a", []berth.Request{large}, nil)
	for _, one := range []struct {
		what  string
		s     step
		large bool
	}{
		{"nothing", step{}, false},
		{"a request", step{event: &small}, false},
		{"a large set", step{event: &ask}, true},
		{"a change to a large set", step{event: &modify}, true},
		{"a series of a large set", step{event: &series}, true},
		{"a change of a series to a large set", step{event: &several}, true},
		{"a thousand changes", step{changes: make([]change.Change, 1000)}, false},
		{"many changes", step{changes: make([]change.Change, 1100)}, true},
	} {
		if size := one.s.size(); size > mostWritten != one.large {
			t.Errorf("%s: %d bytes", one.what, size)
		}
	}
}

// The record of a workflow that is large is made beside the loop, and so is its answer: what is told,
// what is asked again at once, and what there is after a restart are one, and others go on meanwhile.
func TestALargeRecordIsMadeBesideTheLoop(t *testing.T) {
	dir, n := t.TempDir(), 2*mostKept
	h, store := sealingHost(t, dir, berth.Late)
	if _, err := h.Submit(t.Context(), as("bob"), berth.Rigid("first", 0, 1000, 1500, 64, 500)); err != nil { // nothing else begins now
		t.Fatal(err)
	}
	events := h.LastEvent()
	keyed := as("ann")
	keyed.Key, keyed.Body = "large", [32]byte{1}
	got := submitLarge(t, h, keyed, abreast("w", n, berth.Forever))
	var again FlowAnswer
	for len(got) == 0 { // asked again meanwhile, it is the same
		known := false
		if err := look(t.Context(), h, func() error {
			known = h.core.keys.answered(&Key{User: "ann", Name: "large"})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !known {
			continue
		}
		was, err := h.RecallWorkflow(t.Context(), keyed)
		if err != nil {
			t.Fatal(err)
		}
		again = *was
		break
	}
	one := berth.Rigid("small", 0, 900_000, 950_000, 1, 10)
	if _, err := h.Submit(t.Context(), as("bob"), one); err != nil {
		t.Fatal(err)
	}
	first := <-got
	if first.err != nil || first.flow.Workflow.State != FlowPromised || len(first.flow.Workflow.Tasks) != n {
		t.Fatalf("%s %v", first.flow.Workflow.State, first.err)
	}
	if again.Workflow.Workflow.ID != "" && !reflect.DeepEqual(again, first.flow) {
		t.Error("asked again meanwhile, it was answered otherwise")
	}
	shown, err := h.Workflow(t.Context(), keyed.By, "w")
	if err != nil || !reflect.DeepEqual(shown.Tasks, first.flow.Workflow.Tasks) {
		t.Errorf("what is shown is not what was answered: %v", err)
	}
	heard := map[string]bool{}
	for notice, err := range h.Listen(t.Context(), Principal{User: "root", Role: Operator}, events) {
		if err != nil {
			t.Fatal(err)
		}
		if notice.Number <= events || notice.Workflow == nil && heard[notice.Reservation.ID] {
			t.Fatalf("notice %d is of %q", notice.Number, notice.Reservation.ID)
		}
		if events = notice.Number; notice.Workflow == nil {
			heard[notice.Reservation.ID] = true
		}
		if heard["small"] {
			break
		}
	}
	if delete(heard, "first"); len(heard) != n+1 {
		t.Errorf("%d promises were told, want %d", len(heard), n+1)
	}
	if err := h.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	h, store = sealingHost(t, dir, berth.Late)
	if was, err := h.SubmitWorkflow(t.Context(), keyed, abreast("w", n, berth.Forever)); err != nil || !reflect.DeepEqual(was, first.flow) {
		t.Errorf("after a restart it is answered otherwise: %v", err)
	}
	if v, err := Verify(t.Context(), store, nil); err != nil || v.Records == 0 {
		t.Errorf("%+v %v", v, err)
	}
	if err := errors.Join(h.Check(t.Context()), h.Close(), store.Close()); err != nil {
		t.Error(err)
	}
}

// Of a workflow whose record cannot be written nothing is promised, and no one is told that it is.
func TestALargeRecordThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	h, store := sealingHost(t, dir, berth.Late)
	store.full.Store(true)
	keyed := as("ann")
	keyed.Key, keyed.Body = "large", [32]byte{1}
	if a, err := h.SubmitWorkflow(t.Context(), keyed, abreast("w", 2*mostKept, berth.Forever)); err == nil {
		t.Errorf("it is %s", a.Workflow.State)
	}
	<-h.Stopped()
	_ = h.Close() // says why it stopped
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	h, store = sealingHost(t, dir, berth.Late)
	if _, err := h.Workflow(t.Context(), keyed.By, "w"); !isCode(err, berth.NotFound) {
		t.Errorf("it is there: %v", err)
	}
	if a, err := h.SubmitWorkflow(t.Context(), keyed, abreast("w", 2*mostKept, berth.Forever)); err != nil || a.Workflow.State != FlowPromised {
		t.Errorf("asked again it is %s, %v", a.Workflow.State, err)
	}
	if err := errors.Join(h.Check(t.Context()), h.Close(), store.Close()); err != nil {
		t.Error(err)
	}
}
