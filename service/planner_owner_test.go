package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
)

// ownedHost is a service with four PEs where users svc-… are accounts of ann, a job runs until 1600, another one waits, and
// no promise of a user may delay that by more than a minute.
func ownedHost(t *testing.T) *Host {
	t.Helper()
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ownerOf := func(user string) string {
		if strings.HasPrefix(user, "svc-") {
			return "ann"
		}
		return ""
	}
	config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}}}, Jobs: "easy"}
	config.Limits = policy.Limits{{Scope: policy.Scope{Role: "user"}, Name: policy.LimitDelay, Value: 60}}
	h, err := Open(t.Context(), Options{Config: config, Journal: store, Version: "test", Clock: func() time.Time { return time.Unix(1000, 0) }, OwnerOf: ownerOf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeBoth(t, h, store) })
	for range 2 {
		if _, err := h.Submit(t.Context(), as("cid"), berth.Job("", 0, 4, 600)); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// wantOwnerFull fails unless an answer says that the owner has as many as there can be, accounts included.
func wantOwnerFull(t *testing.T, what string, err error) {
	t.Helper()
	coded, is := errors.AsType[*berth.Error](err)
	if !is || coded.Code != berth.Exhausted || !strings.Contains(coded.Msg, "of ann and their service accounts") {
		t.Errorf("%s: %v; want that ann and their service accounts have as many as there can be", what, err)
	}
}

// Workflows that wait to be planned count for the owner of a service account.
func TestPlansOfServiceAccountsCountForTheirOwner(t *testing.T) {
	h := ownedHost(t)
	h.snapshots.turn.Lock() // planning takes until it is given back
	var all []<-chan answered
	users := []string{"ann", "svc-a", "svc-b"}
	for i := range maxPlans {
		all = append(all, submitLarge(t, h, as(users[i%len(users)]), abreast(fmt.Sprint("w", i), plannedAtOnce+1, berth.Forever)))
	}
	_, err := h.SubmitWorkflow(t.Context(), as("svc-c"), abreast("more", plannedAtOnce+1, berth.Forever))
	wantOwnerFull(t, "one more of another account", err)
	_, err = h.WorkflowOffers(t.Context(), as("svc-a"), abreast("more", plannedAtOnce+1, berth.Forever))
	wantOwnerFull(t, "offers of one more", err)
	if _, err = h.SubmitWorkflow(t.Context(), as("ann"), abreast("more", plannedAtOnce+1, berth.Forever)); !isCode(err, berth.Exhausted) {
		t.Errorf("one more of the owner: %v", err)
	}
	all = append(all, submitLarge(t, h, as("bob"), abreast("other", plannedAtOnce+1, berth.Forever)))
	h.snapshots.turn.Unlock()
	for i, got := range all {
		if a := <-got; a.err != nil {
			t.Errorf("workflow %d: %v", i, a.err)
		}
	}
	if n := waitingPlans(h); n != 0 {
		t.Errorf("%d places are taken for ever", n)
	}
}

// So do requests whose cost is foreseen before they are decided.
func TestForeseenRequestsOfServiceAccountsCountForTheirOwner(t *testing.T) {
	h := ownedHost(t)
	waiting := func(change func(map[string]int)) (held map[string]int) {
		t.Helper()
		if err := look(t.Context(), h, func() error {
			change(h.bounded.waiting)
			held = maps.Clone(h.bounded.waiting)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return held
	}
	h.snapshots.turn.Lock() // foreseeing takes until it is given back
	answers := make(chan error, 1)
	go func() {
		_, err := h.Submit(context.Background(), as("svc-a"), from(2200, 2300))
		answers <- err
	}()
	for len(waiting(func(map[string]int) {})) == 0 && len(answers) == 0 { // each question waits for a turn of the loop
	}
	if held := waiting(func(m map[string]int) { m["ann"] += maxBounded - 1 }); held["ann"] != maxBounded || len(held) != 1 {
		t.Errorf("foreseen is %v, want all of ann's", held)
	}
	_, err := h.Submit(t.Context(), as("svc-b"), from(2300, 2400))
	wantOwnerFull(t, "one more of another account", err)
	if _, err := h.Submit(t.Context(), as("ann"), from(2300, 2400)); !isCode(err, berth.Exhausted) {
		t.Errorf("one more of the owner: %v", err)
	}
	waiting(func(m map[string]int) { m["ann"] -= maxBounded - 1 })
	h.snapshots.turn.Unlock()
	if err := <-answers; err != nil {
		t.Error(err)
	}
	if held := waiting(func(map[string]int) {}); len(held) != 0 {
		t.Errorf("%v is foreseen for ever", held)
	}
}
