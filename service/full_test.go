package service_test

import (
	"context"
	"errors"
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
		time.Sleep(time.Second) // in which more is asked for; the clock is a test's
		return berth.Errorf(berth.Exhausted, "journal", "no space left on device")
	}
	return f.Store.Append(ctx, records...)
}

// Who waits for a journal that cannot be written waits no longer than for a decision. What they asked for is done all the same
// once there is room, and answered as ever under its key.
func TestNoOneWaitsForAFullDiskForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		disk := &fullDisk{Store: store}
		h, err := service.Open(t.Context(), service.Options{Config: onePool(8), Journal: disk, Version: "test", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		now := h.Now()
		for _, id := range []string{"a", "b", "c"} {
			r := berth.Rigid(id, 0, now+5000, now+9000, 2, 100)
			r.Hold = 4000
			submit(t, h, ann, r)
		}
		disk.full.Store(true)
		began := time.Now()
		keyed := ann
		keyed.Key = "give back"
		asked := map[string]func() error{
			"give back": func() error { _, err := h.Release(t.Context(), keyed, "a"); return err },
			"confirm":   func() error { _, err := h.Confirm(t.Context(), ann, "b"); return err },
			"modify": func() error {
				_, err := h.Modify(t.Context(), ann, "c", berth.Rigid("c", 0, now+5000, now+9000, 3, 100))
				return err
			},
			"extend": func() error { _, err := h.Extend(t.Context(), ann, "b", now+6000); return err },
			"array": func() error {
				_, err := h.SubmitArray(t.Context(), ann, berth.Rigid("", 0, now, now+5000, 2, 100), 2)
				return err
			},
			"something new": func() error {
				_, err := h.Submit(t.Context(), ann, berth.Rigid("d", 0, now, now+5000, 2, 100))
				return err
			},
		}
		told := make(chan string, len(asked))
		for what, ask := range asked {
			go func() {
				err := ask()
				if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Unavailable {
					t.Errorf("%s: %v; want it unavailable", what, err)
				}
				told <- what
			}()
		}
		for range asked {
			what := <-told
			if waited := time.Since(began); waited > 22*time.Second {
				t.Errorf("%s waited for %s", what, waited)
			}
		}
		time.Sleep(time.Hour)
		if _, err := h.Confirm(t.Context(), ann, "b"); err == nil {
			t.Error("it is confirmed on a full disk")
		}
		disk.full.Store(false)
		for time.Sleep(2 * time.Second); h.Ready() != nil; time.Sleep(time.Second) {
		}
		a, err := h.Release(t.Context(), keyed, "a")
		if err != nil || a.State != service.Cancelled {
			t.Errorf("asked again it is %s, %v", a.State, err)
		}
		if r, err := h.Get(t.Context(), ann.By, "b"); err != nil || r.State == service.Held {
			t.Errorf("what was confirmed meanwhile is %s, %v", r.State, err)
		}
		if err := errors.Join(h.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
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
