package service

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
)

// boundedHost is a service with four PEs, which a job uses until 1600 and another one waits for, that of 600 s, where no promise of a user
// may delay it by more than a minute.
func boundedHost(t *testing.T, dir string) (*Host, *sqlite.Store) {
	t.Helper()
	h, store := openBounded(t, dir)
	for range 2 {
		j := berth.Job("", 0, 4, 600)
		if _, err := h.Submit(t.Context(), as("ann"), j); err != nil {
			t.Fatal(err)
		}
	}
	return h, store
}

func openBounded(t *testing.T, dir string) (*Host, *sqlite.Store) {
	t.Helper()
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}}}, Jobs: "easy"}
	config.Limits = policy.Limits{{Scope: policy.Scope{Role: "user"}, Name: policy.LimitDelay, Value: 60}}
	h, err := Open(t.Context(), Options{Config: config, Journal: store, Version: "test", Clock: func() time.Time { return time.Unix(1000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	return h, store
}

// tooDear says what a refusal tells of the limit, empty if there is none.
func tooDear(a Answer) string {
	no := a.Refusal
	if no == nil {
		no = a.Reservation.Refusal
	}
	if no == nil || no.Exceeded == nil {
		return ""
	}
	return fmt.Sprint(no.Exceeded.Limit, " ", no.Exceeded.Allowed, "<", no.Exceeded.Asked)
}

// from returns a request for all PEs for some time from a moment on.
func from(at, until berth.Time) berth.Request {
	return berth.Rigid("", 0, at, until, 4, until.Sub(at))
}

// A limit on what a promise costs holds in every way in; each is foreseen beside the loop, under its key once, and what is on record decides
// alike. Refusals come with offers within the limit, and those who have no such limit are promised the same.
func TestCostsAreBoundedInEveryWay(t *testing.T) {
	dir := t.TempDir()
	h, store := boundedHost(t, dir)
	ctx, ann := t.Context(), as("ann")
	keyed := func(key string) Ask {
		ask := ann
		ask.Key, ask.Body = key, [32]byte{1}
		return ask
	}
	twice := func(what string, ask func() (any, error)) {
		t.Helper()
		a, errA := ask()
		b, errB := ask()
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s asked again under its key: %+v, %v; at first %+v, %v", what, b, errB, a, errA)
		}
	}

	no, err := h.Submit(ctx, keyed("no"), from(1900, 2000)) // the job ends 400 s later
	if err != nil || tooDear(no) != "delay 60<400" {
		t.Fatalf("%+v, %v", no.Reservation, err)
	}
	if len(no.Offers) == 0 {
		t.Error("the refusal comes without offers")
	}
	for _, o := range no.Offers {
		if o.Cost == nil || o.Cost.Largest > 60 {
			t.Errorf("offered is %s at %d for %+v", o.Difference, o.Allotments[0].Start, o.Cost)
		}
	}
	twice("a refused request", func() (any, error) { return h.Submit(ctx, keyed("no"), from(1900, 2000)) })
	if taken, err := h.Hold(ctx, ann, no.Offers[0].ID, 60); err != nil || taken.Reservation.State != Held {
		t.Errorf("an offer within the limit: %+v, %v", taken.Reservation, err)
	} else if _, err := h.Release(ctx, ann, taken.Reservation.ID); err != nil {
		t.Error(err)
	}
	held := from(1900, 2000)
	held.Hold = 60
	if a, err := h.Submit(ctx, ann, held); err != nil || tooDear(a) != "delay 60<400" {
		t.Errorf("held: %+v, %v", a.Reservation, err)
	}
	list, err := h.Offers(ctx, ann, from(1900, 2000), 5)
	if err != nil || len(list) == 0 {
		t.Errorf("offers: %+v, %v", list, err)
	}
	for _, o := range list {
		if o.Cost == nil || o.Cost.Largest > 60 {
			t.Errorf("offered is %s at %d for %+v", o.Difference, o.Allotments[0].Start, o.Cost)
		}
	}
	array := func() (any, error) {
		return h.SubmitArray(ctx, keyed("array"), berth.Rigid("", 0, 1600, 1660, 2, 30), 5) // two at once; the second pair ends at 1660
	}
	if all, err := array(); err != nil {
		t.Error(err)
	} else {
		for i, a := range all.([]Answer) {
			if want := map[bool]State{true: Confirmed, false: Refused}[i < 4]; a.Reservation.State != want {
				t.Errorf("part %d is %s: %s, want %s", i+1, a.Reservation.State, tooDear(a), want)
			}
		}
	}
	twice("an array", array)

	one, err := h.Submit(ctx, keyed("one"), from(1600+600+60, 2400)) // behind the job, which begins at 1660 now
	if err != nil || one.Reservation.State != Confirmed {
		t.Fatalf("%+v, %v", one.Reservation, err)
	}
	id := one.Reservation.ID
	change := func() (any, error) { return h.Modify(ctx, keyed("change"), id, from(2200, 2300)) }
	if a, err := change(); err != nil || tooDear(a.(Answer)) != "delay 60<640" || len(a.(Answer).Offers) == 0 {
		t.Errorf("modified: %+v, %v", a, err)
	}
	twice("a change", change)
	if a, err := h.Modify(ctx, ann, id, from(2300, 2400)); err != nil || a.Refusal != nil {
		t.Errorf("modified to what delays no job: %+v, %v", a.Refusal, err)
	}
	s := berth.Series{Rule: "each", Zone: "UTC", Least: 2, Request: berth.Rigid("", 0, 0, 1, 4, 100), Occurrences: []berth.Occurrence{{Ready: 2200, Deadline: 2300}, {Ready: 3200, Deadline: 3300}}}
	if a, err := h.SubmitSeries(ctx, keyed("series"), s); err != nil || !a.Series.Refused || a.Series.Unfit[0].Refusal.Exceeded == nil {
		t.Errorf("series: %+v, %v", a.Series, err)
	}
	twice("a series", func() (any, error) { return h.SubmitSeries(ctx, keyed("series"), s) })
	w := abreast("w", 3, berth.Forever)
	for i := range w.Tasks {
		w.Tasks[i].Seconds = 300
	}
	flow := func() (any, error) { return h.SubmitWorkflow(ctx, keyed("flow"), w) }
	if a, err := flow(); err != nil || a.(FlowAnswer).Workflow.State != FlowRefused || a.(FlowAnswer).Workflow.Refusal.Exceeded == nil {
		t.Errorf("workflow: %+v, %v", a, err)
	}
	twice("a workflow", flow)
	root := Ask{By: Principal{User: "root", Role: Operator}}
	last, err := h.Submit(ctx, root, from(2400, 2500))
	if err != nil || last.Reservation.State != Confirmed {
		t.Errorf("an operator: %+v, %v", last.Reservation, err)
	}
	if a, err := h.Extend(ctx, root, id, 2400); err == nil && a.Refusal != nil {
		t.Errorf("extended by an operator: %+v, %v", a.Refusal, err)
	}
	mine, err := h.Submit(ctx, ann, from(4000, 4100))
	if err != nil || mine.Reservation.State != Confirmed {
		t.Fatalf("%+v: %s, %v", mine.Reservation.State, tooDear(mine), err)
	}
	extend := func() (any, error) { return h.Extend(ctx, keyed("extend"), mine.Reservation.ID, 5000) }
	if _, err := h.Submit(ctx, ann, berth.Job("", 0, 4, 1600)); err != nil { // it begins at 4100
		t.Fatal(err)
	}
	if a, err := extend(); err != nil || tooDear(a.(Answer)) != "delay 60<900" {
		t.Errorf("extended: %+v, %v", a, err)
	}
	twice("an extension", extend)
	if err := h.Check(ctx); err != nil {
		t.Error(err)
	}
	closeBoth(t, h, store)

	h, store = openBounded(t, dir)
	if a, err := h.Submit(ctx, keyed("no"), from(1900, 2000)); err != nil || tooDear(a) != "delay 60<400" {
		t.Errorf("after a restart: %+v, %v", a.Reservation, err)
	}
	if a, err := h.Submit(ctx, ann, from(4300, 4400)); err != nil || tooDear(a) == "" {
		t.Errorf("anew after a restart: %+v, %v", a.Reservation, err)
	}
	closeBoth(t, h, store)
	verifyForeseen(t, dir)
}

// verifyForeseen checks that a journal is decided alike again, and that each event that a limit on costs refused brings what it was foreseen to cost.
func verifyForeseen(t *testing.T, dir string) {
	t.Helper()
	store, err := sqlite.Open(dir, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if _, err := Verify(t.Context(), store, nil); err != nil {
		t.Error(err)
	}
	var decoder record.Decoder
	brought := 0
	for rec, err := range store.Read(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		in, err := parseInput(rec.Event, &decoder)
		if err != nil {
			t.Fatal(err)
		}
		if in.event == nil || in.event.Foreseen == nil {
			continue
		}
		if brought++; in.event.Foreseen.Record == 0 || in.event.Foreseen.Record >= rec.Number {
			t.Errorf("record %d was foreseen after record %d", rec.Number, in.event.Foreseen.Record)
		}
	}
	if brought == 0 {
		t.Error("nothing on record brings what it was foreseen to cost")
	}
}

// What was foreseen for a place that another request gets meanwhile is foreseen again; the same key meanwhile is the same request.
func TestCostsAreForeseenAgainWhereOthersWereFaster(t *testing.T) {
	h, store := boundedHost(t, t.TempDir())
	defer func() { closeBoth(t, h, store) }()
	keyed := as("ann")
	keyed.Key, keyed.Body = "k", [32]byte{1}
	h.snapshots.turn.Lock()
	answers := make(chan Answer, 2)
	for range 2 {
		go func() {
			r := from(2300, 2400)
			r.Deadline = 9000
			a, err := h.Submit(t.Context(), keyed, r)
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	for both := false; !both; {
		if err := look(t.Context(), h, func() error {
			key := keyed.key()
			both = len(h.bounded.under[key.name()]) == 1
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	holds, gate := make(chan struct{}), make(chan struct{})
	h.line.push("gate", func() { close(holds); <-gate })
	<-holds // the loop does nothing until it is foreseen, and then bob is first
	fast := make(chan error, 1)
	h.line.push("bob", func() {
		r := from(2300, 2500)
		r.ID, r.User, r.Role = "b", "bob", "operator"
		fast <- h.PromiseHere(r)
	})
	h.snapshots.turn.Unlock()
	for foreseen := false; !foreseen; { // it waits for the loop
		h.line.mu.Lock()
		foreseen = h.line.of["ann"] != nil && len(h.line.of["ann"].items)-h.line.of["ann"].head == 1
		h.line.mu.Unlock()
	}
	close(gate)
	if err := <-fast; err != nil {
		t.Fatal(err)
	}
	a, b := <-answers, <-answers
	if a.Reservation.State != Confirmed || a.Reservation.Allotments[0].Start != 2500 || !reflect.DeepEqual(a, b) {
		t.Errorf("it is %s: %+v; both answers are the same: %t", a.Reservation.State, a.Reservation.Allotments, reflect.DeepEqual(a, b))
	}
	if _, err := Verify(t.Context(), store, nil); err != nil {
		t.Error(err)
	}
	if err := look(t.Context(), h, func() error {
		if len(h.bounded.under)+len(h.bounded.waiting) > 0 || h.bounded.look != nil {
			return errors.New("something is still foreseen")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// A request whose place changes whenever it is foreseen is not decided after some tries, and may be asked for again.
func TestCostsThatAreNeverForeseenInTime(t *testing.T) {
	h, store := boundedHost(t, t.TempDir())
	defer func() { closeBoth(t, h, store) }()
	tries := 0
	failed := make(chan error, 1)
	if err := look(t.Context(), h, func() error {
		r := from(2300, 2400)
		r.ID, r.User, r.Role = "r", "ann", "user"
		h.ahead(Key{}, "ann", func(berth.Time) engine.Event { return engine.Submit(&r) }, func(*lookedAhead) error {
			tries++
			return berth.Errorf(berth.Conflict, "foreseen", "elsewhere")
		}, func(err error) { failed <- err })
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !isCode(err, berth.Unavailable) || tries != foreseenTries {
		t.Errorf("after %d tries: %v, want it unavailable after %d", tries, err, foreseenTries)
	}
}
