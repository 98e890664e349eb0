package service

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// gatedStore is a journal whose next batch waits, once it has been told to.
type gatedStore struct {
	journal.Store
	mu     sync.Mutex
	holds  chan struct{} // closed when a batch waits
	opened chan struct{}
}

func (s *gatedStore) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds, s.opened = make(chan struct{}), make(chan struct{})
}

func (s *gatedStore) Append(ctx context.Context, records ...journal.Record) error {
	s.mu.Lock()
	holds, opened := s.holds, s.opened
	s.holds = nil
	s.mu.Unlock()
	if holds != nil {
		close(holds)
		<-opened
	}
	return s.Store.Append(ctx, records...)
}

// A leader hands over while large workflows are planned beside its loop: who asked under a key gets one answer,
// from either server, each workflow is promised once and whole, and what was promised before is as it was.
func TestHandOverWhileWorkflowsArePlanned(t *testing.T) {
	for _, c := range []struct {
		when string
		// between has the leader resign at that time, where the turn of the planner is held.
		between func(h *Host, gate *gatedStore, resign func())
	}{
		{"before they are planned", func(h *Host, _ *gatedStore, resign func()) {
			resign()
			<-h.stopped
			h.snapshots.turn.Unlock()
		}},
		{"when the first is planned and not decided", func(h *Host, _ *gatedStore, resign func()) {
			holds, gate := make(chan struct{}), make(chan struct{})
			h.line.push("gate", func() { close(holds); <-gate })
			<-holds
			h.snapshots.turn.Unlock()
			for planned := false; !planned; { // it waits for the loop
				h.line.mu.Lock()
				planned = h.line.of[""] != nil && len(h.line.of[""].items) > h.line.of[""].head
				h.line.mu.Unlock()
			}
			resign()
			<-h.stop
			close(gate)
		}},
		{"when the first is decided and not durable", func(h *Host, gate *gatedStore, resign func()) {
			gate.shut()
			holds, opened := gate.holds, gate.opened
			h.snapshots.turn.Unlock()
			<-holds
			resign()
			<-h.stop
			close(opened)
		}},
	} {
		t.Run(c.when, func(t *testing.T) { handOverWhilePlanning(t, c.between) })
	}
}

func handOverWhilePlanning(t *testing.T, between func(h *Host, gate *gatedStore, resign func())) {
	t.Helper()
	const tasks = plannedAtOnce + 1
	first, store := plannerHost(t, t.TempDir(), 50)
	if err := first.Close(); err != nil { // it has made the journal
		t.Fatal(err)
	}
	gate := &gatedStore{Store: store}
	options := Options{Config: first.options.Config, Journal: gate, Version: "test", Clock: func() time.Time { return time.Unix(1000, 0) }}
	h, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	standby, err := Stand(t.Context(), options, func() string { return "the first leads" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, err := h.Submit(t.Context(), as("bob"), berth.Rigid("r", 1000, 1000, 9000, 4, 60))
	if err != nil {
		t.Fatal(err)
	}
	users := []string{"ann", "bob"}
	keyed := func(user string) Ask {
		ask := as(user)
		ask.Key, ask.Body = "k", [32]byte{1}
		return ask
	}
	h.snapshots.turn.Lock()
	asked := map[string]<-chan answered{}
	for _, user := range users {
		asked[user] = submitLarge(t, h, keyed(user), abreast("w-"+user, tasks, berth.Forever))
	}
	resigned := make(chan error, 1)
	between(h, gate, func() { go func() { resigned <- h.Resign() }() })
	if err := <-resigned; err != nil {
		t.Fatal(err)
	}
	next, err := standby.Lead(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	former, err := Stand(t.Context(), options, func() string { return "the second leads" }, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(standby.Close(), h.Close()); err != nil {
		t.Fatal(err)
	}
	was := map[string]answered{}
	for _, user := range users {
		if was[user] = <-asked[user]; was[user].err != nil && !isCode(was[user].err, berth.Unavailable) {
			t.Errorf("%s is answered %v", user, was[user].err)
		}
	}
	for _, user := range users {
		again, err := next.SubmitWorkflow(t.Context(), keyed(user), abreast("w-"+user, tasks, berth.Forever))
		if err != nil || again.Workflow.State != FlowPromised || len(again.Workflow.Tasks) != tasks {
			t.Fatalf("%s: %+v with %d tasks, %v", user, again.Workflow.State, len(again.Workflow.Tasks), err)
		}
		if was[user].err == nil && !reflect.DeepEqual(was[user].flow, again) {
			t.Errorf("%s is answered another workflow than before the hand-over: of version %d, was %d", user, again.Workflow.Version, was[user].flow.Workflow.Version)
		}
	}
	list, _, err := next.List(t.Context(), Principal{User: "root", Role: Operator}, Filter{})
	if err != nil || len(list) != len(users)*tasks+1 {
		t.Errorf("%d reservations, want those of %d workflows and the one before; %v", len(list), len(users), err)
	}
	if r, err := next.Get(t.Context(), as("bob").By, "r"); err != nil || placed(&r) != placed(&before.Reservation) {
		t.Errorf("what was promised before is %s, was %s; %v", placed(&r), placed(&before.Reservation), err)
	}
	if err := next.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(next.Close(), former.Close()); err != nil {
		t.Error(err)
	}
	if _, err := Verify(t.Context(), store, nil); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// placed is when a reservation of one part holds how many PEs.
func placed(r *Reservation) string {
	a := &r.Allotments[0]
	return fmt.Sprintf("%d from %d to %d", a.NPE, a.Start, a.End)
}
