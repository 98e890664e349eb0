package service_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/heardlog"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// fullDisk is a journal that has no room at times.
type fullDisk struct {
	*sqlite.Store
	full atomic.Bool
}

func (f *fullDisk) Append(ctx context.Context, records ...journal.Record) error {
	if f.full.Load() {
		return berth.Errorf(berth.Exhausted, "journal", "no space left on device")
	}
	return f.Store.Append(ctx, records...)
}

// While the journal cannot be written nothing is promised, what is durable is shown, and
// the log says it once; when there is room again it goes on.
func TestAFullDiskIsToldOnceAndReadsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		disk, log := &fullDisk{Store: store}, new(heardlog.Log)
		h, err := service.Open(t.Context(), service.Options{Config: onePool(4), Journal: disk, Version: "test", Log: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		now := h.Now()
		submit(t, h, ann, berth.Rigid("before", 0, now, now+5000, 2, 100))
		disk.full.Store(true)
		answered := make(chan error, 1)
		go func() {
			_, err := h.Submit(t.Context(), ann, berth.Rigid("meanwhile", 0, now, now+5000, 2, 100))
			answered <- err
		}()
		time.Sleep(5500 * time.Millisecond)
		if r, err := h.Get(t.Context(), ann.By, "before"); err != nil || len(r.Allotments) != 1 { // it may have begun, or that may not be durable
			t.Errorf("%s has %v, %v", r.ID, r.Allotments, err)
		}
		if list, _, err := h.List(t.Context(), ann.By, service.Filter{}); err != nil || len(list) != 1 {
			t.Errorf("%d are shown, %v; what is not durable must not be", len(list), err)
		}
		if err := h.Ready(); err == nil {
			t.Error("it is ready")
		}
		disk.full.Store(false)
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if list, _, err := h.List(t.Context(), ann.By, service.Filter{}); err != nil || len(list) != 2 {
			t.Errorf("%d are shown, %v", len(list), err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "cannot be written"); n != 1 || !strings.Contains(log.String(), "written again") {
			t.Errorf("it was told %d times: %s", n, log.String())
		}
	})
}
