package service_test

import (
	"context"
	"errors"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// gated is a journal that appends nothing while its gate is shut, and notes the largest
// batch.
type gated struct {
	journal.Store
	gate chan struct{} // closed while it is open
	most int
}

func (g *gated) Append(ctx context.Context, records ...journal.Record) error {
	<-g.gate
	g.most = max(g.most, len(records))
	return g.Store.Append(ctx, records...)
}

// An array does not run ahead of the journal, behind all of whose records the answers of
// others would wait.
func TestAnArrayWaitsForTheJournal(t *testing.T) {
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := &gated{Store: store, gate: make(chan struct{})}
	h, err := service.Open(t.Context(), service.Options{Config: onePool(64), Journal: g, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		r := berth.Rigid("", 0, h.Now(), h.Now()+1_000_000, 1, 10)
		answers, err := h.SubmitArray(t.Context(), ann, r, service.MaxArray)
		if err == nil && len(answers) != service.MaxArray {
			err = errors.New("not all parts are answered")
		}
		answered <- err
	}()
	for range 400 { // each is served in turn with the array, and waits for no record
		if _, err := h.Offers(t.Context(), bob, berth.Rigid("", 0, 0, 1, 1, 1), 1); codeOf(err) != berth.Invalid {
			t.Fatalf("an offer for what is over: %v", err)
		}
	}
	close(g.gate)
	if err := errors.Join(<-answered, h.Close(), store.Close()); err != nil {
		t.Error(err)
	}
	if g.most > service.MaxArray/5 {
		t.Errorf("%d records waited for the journal, want those of a piece of the array", g.most)
	}
}
