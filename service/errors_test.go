package service_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// slowDisk is a journal whose next batch waits until it is let go, and is lost if an error is given then.
type slowDisk struct {
	*sqlite.Store
	gate atomic.Pointer[chan error]
}

func (d *slowDisk) Append(ctx context.Context, records ...journal.Record) error {
	if gate := d.gate.Swap(nil); gate != nil {
		if err := <-*gate; err != nil {
			return err
		}
	}
	return d.Store.Append(ctx, records...)
}

// An error is answered once all is durable that it may rest on, and not at all if that is lost: another server may know nothing of it.
func TestErrorsWaitForWhatTheyRestOn(t *testing.T) {
	for _, lost := range []error{nil, errors.New("the disk is gone")} {
		synctest.Test(t, func(t *testing.T) {
			store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			disk := &slowDisk{Store: store}
			h, err := service.Open(t.Context(), service.Options{Config: onePool(4), Journal: disk, Version: "test", Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			gate := make(chan error)
			disk.gate.Store(&gate)
			now := h.Now()
			go func() { _, _ = h.Submit(t.Context(), ann, berth.Rigid("r", 0, now, now+5000, 2, 100)) }() // its answer is looked at elsewhere
			synctest.Wait()
			answer := make(chan error, 1)
			go func() { answer <- h.RemoveMaintenance(t.Context(), root, "none", 0) }()
			synctest.Wait()
			select {
			case err := <-answer:
				t.Errorf("answered %v while what was decided before is not durable", err)
				answer <- err
			default:
			}
			gate <- lost
			var is *berth.Error
			if err := <-answer; lost != nil && !errors.Is(err, lost) || lost == nil && (!errors.As(err, &is) || is.Code != berth.NotFound) {
				t.Errorf("%v (lost: %v)", err, lost)
			}
			if err := h.Close(); (err == nil) != (lost == nil) {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
