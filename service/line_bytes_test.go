package service_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// weighed is a journal that appends nothing while its gate is shut, and notes the largest
// batch in bytes.
type weighed struct {
	journal.Store
	gate chan struct{} // closed while it is open
	most int
}

func (w *weighed) Append(ctx context.Context, records ...journal.Record) error {
	<-w.gate
	size := 0
	for i := range records {
		size += len(records[i].Event) + len(records[i].Changes) + len(records[i].Effects)
	}
	w.most = max(w.most, size)
	return w.Store.Append(ctx, records...)
}

// A user whose requests are large waits for the journal by themselves: others' records
// come behind a part of theirs only, however many they have on their way. In the end all are
// answered.
func TestLargeRequestsOfOneWaitForTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g := &weighed{Store: store, gate: make(chan struct{})}
		h, err := service.Open(t.Context(), service.Options{Config: onePool(64), Journal: g, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		var runs []berth.Run
		for i := range berth.PE(100_000) {
			runs = append(runs, berth.Run{Lo: 2 * i, Hi: 2*i + 1})
		}
		eligible := berth.NewPESet(runs...)
		var all sync.WaitGroup
		ask := func(by service.Ask, set berth.PESet) {
			all.Go(func() {
				r := berth.Rigid("", 0, h.Now(), h.Now()+1_000_000, 1, 10)
				r.Parts[0].Eligible = set
				if _, err := h.Submit(t.Context(), by, r); err != nil {
					t.Error(err)
				}
			})
		}
		for range 32 {
			ask(ann, eligible)
		}
		synctest.Wait()
		ask(bob, berth.PESet{})
		synctest.Wait()
		close(g.gate)
		all.Wait()
		if err := errors.Join(h.Close(), store.Close()); err != nil {
			t.Error(err)
		}
		if g.most > 2<<20 {
			t.Errorf("the answers of others would wait for %d bytes of one user, want at most 2 MiB", g.most)
		}
	})
}
