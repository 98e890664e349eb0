package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

// What several receivers are told of at one time goes on record by their ids, so that the same happens each time.
func TestReceiversAreToldInTheOrderOfTheirIDs(t *testing.T) {
	inHooked(t, func(t *testing.T, w *hooked) {
		for i := range 9 {
			w.add(ann, service.Hook{ID: fmt.Sprint("h", (7*i)%9), Starts: 300}, notice.Starting)
		}
		w.reserve(ann, "a", 1000)
		w.pass(720 * time.Second)
		ids := slices.Clone(w.post.ids)
		number := func(id string) string { return id[len("h0"):] }
		slices.SortFunc(ids, func(a, b string) int { return strings.Compare(number(a), number(b)) })
		if len(ids) != 9 || !slices.IsSorted(ids) {
			t.Errorf("by the numbers of their notices, receivers are %v", ids)
		}
	})
}

// A service that may have lost the lease sends nothing; who leads does.
func TestWhoMayHaveLostTheLeaseSendsNothing(t *testing.T) {
	inHooked(t, func(t *testing.T, w *hooked) {
		var away atomic.Bool
		w.shut()
		w.leads = func() error {
			if away.Load() {
				return errors.New("another server may lead")
			}
			return nil
		}
		w.open()
		w.add(ann, service.Hook{ID: "h"}, notice.Granted)
		w.post.says = func(context.Context, *service.Hook, *service.Owed) service.Sent {
			return service.Sent{Words: "not now"}
		}
		w.reserve(ann, "a", 1000)
		w.want("it fails first", "h granted a confirmed failed")
		w.post.says = nil
		away.Store(true)
		w.pass(time.Hour)
		w.want("while another one may lead")
		away.Store(false)
		w.pass(2 * time.Second)
		w.want("it leads again", "h granted a confirmed")
	})
}

// A clock that is set back does not keep back what was tried, or happened, at times that it has not reached.
func TestNoticesDoNotWaitForAClockThatWasSetBack(t *testing.T) {
	inHooked(t, func(t *testing.T, w *hooked) {
		accept := func() {
			if err := w.host.AcceptClock(t.Context(), root); err != nil {
				t.Fatal(err)
			}
		}
		w.off.Store(int64(24 * time.Hour))
		w.pass(time.Minute)
		accept()
		w.add(ann, service.Hook{ID: "h"}, notice.Granted, notice.Cancelled)
		w.post.says = func(context.Context, *service.Hook, *service.Owed) service.Sent {
			return service.Sent{Words: "not now"}
		}
		w.reserve(ann, "a", 1000)
		w.want("it fails first", "h granted a confirmed failed")
		w.post.says = nil
		w.off.Store(0)
		w.pass(time.Minute)
		accept()
		w.pass(time.Minute)
		if _, err := w.host.Release(t.Context(), ann, "a"); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Hour)
		w.want("within the hour", "h granted a confirmed", "h cancelled a cancelled")
	})
}
