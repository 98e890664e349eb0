package service_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// places writes where the occurrences of a series that are not over are, after a time.
func placesAfter(s *service.Series, now berth.Time) (list []string) {
	for i := range s.Reservations {
		if r := &s.Reservations[i]; r.ID != "" && !r.State.Over() {
			a := &r.Allotments[0]
			list = append(list, fmt.Sprintf("%d: %d PEs from %d to %d", i+1, a.NPE, a.Start-now, a.End-now))
		}
	}
	return list
}

// Occurrences of a series change together, one, some or all, and what an open one is still to ask for with them; if one cannot, it
// says why, and nothing changes. A key has the first answer again.
func TestOccurrencesChangeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := service.Open(t.Context(), service.Options{Config: onePool(4), Journal: store, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		now := h.Now()
		submit(t, h, bob, berth.Rigid("", 0, now+2000, now+2100, 1, 100))
		id := submitSeries(t, h, ann, nightly(now, 6, 3500)).Series.Series.ID
		change := func(ask service.Ask, x service.SeriesEdit) service.SeriesAnswer {
			t.Helper()
			a, err := h.ModifySeries(t.Context(), ask, id, x)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		is := func(a service.SeriesAnswer, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, placesAfter(&a.Series, now)); diff != "" {
				t.Error(diff)
			}
		}
		keyed := ann
		keyed.Key = "k"
		a := change(keyed, service.SeriesEdit{From: 1, To: 2, By: 200, Duration: 50})
		is(a, "1: 2 PEs from 1200 to 1250", "2: 2 PEs from 2200 to 2250", "3: 2 PEs from 3000 to 3100")
		is(change(ann, service.SeriesEdit{From: 2, To: 2, By: -200, Duration: 100}), "1: 2 PEs from 1200 to 1250", "2: 2 PEs from 2000 to 2100", "3: 2 PEs from 3000 to 3100")
		refused := change(ann, service.SeriesEdit{NPE: 4})
		if len(refused.Refusals) != 1 || refused.Refusals[0].Number != 2 || refused.Refusals[0].Refusal.Reason != berth.NoCapacity {
			t.Errorf("4 PEs are refused: %+v", refused.Refusals)
		}
		is(refused, "1: 2 PEs from 1200 to 1250", "2: 2 PEs from 2000 to 2100", "3: 2 PEs from 3000 to 3100")
		is(change(ann, service.SeriesEdit{From: 3, NPE: 4, By: 50}), "1: 2 PEs from 1200 to 1250", "2: 2 PEs from 2000 to 2100", "3: 4 PEs from 3050 to 3150")
		again, err := h.ModifySeries(t.Context(), keyed, id, service.SeriesEdit{From: 1, To: 2, By: 200, Duration: 50})
		if diff := cmp.Diff(a, again); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		time.Sleep(1000 * time.Second) // the fourth, which would have had its turn at 500, has it at 550
		got, err := h.GetSeries(t.Context(), ann.By, id)
		if err != nil {
			t.Fatal(err)
		}
		is(service.SeriesAnswer{Series: got}, "1: 2 PEs from 1200 to 1250", "2: 2 PEs from 2000 to 2100", "3: 4 PEs from 3050 to 3150", "4: 4 PEs from 4050 to 4150")
		for i, want := range []berth.Duration{200, 0, 50, 50, 50} {
			if window, moved := got.Window(i + 1); moved != want || window.Start != got.Series.Occurrences[0].Ready+1000*berth.Time(i)+berth.Time(want) {
				t.Errorf("number %d begins at %d, moved by %d; want %d", i+1, window.Start, moved, want)
			}
		}
		for want, x := range map[string]struct {
			ask service.Ask
			x   service.SeriesEdit
		}{
			"from":      {ann, service.SeriesEdit{From: 5, To: 5, By: 1}},
			"from: ":    {ann, service.SeriesEdit{From: 6, NPE: 2}},
			"from:  ":   {ann, service.SeriesEdit{From: 7, NPE: 2}},
			"no series": {bob, service.SeriesEdit{NPE: 2}},
		} {
			if _, err := h.ModifySeries(t.Context(), x.ask, id, x.x); err == nil {
				t.Errorf("%s: %+v is taken", want, x.x)
			}
		}
	})
}

// What an occurrence was extended by stays when it comes at another time or has other PEs.
func TestOccurrencesKeepWhatTheyWereExtendedBy(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	series := nightly(2000, 3, 0)
	series.Least = 3
	for i := range series.Occurrences {
		series.Occurrences[i].Deadline += 500
	}
	made := submitSeries(t, h, ann, series).Series
	second := made.Reservations[1].ID
	if a, err := h.Extend(t.Context(), ann, second, 4000+140); err != nil || a.Refusal != nil {
		t.Fatalf("%+v %v", a.Refusal, err)
	}
	for i, x := range []service.SeriesEdit{{By: 100}, {NPE: 3}, {From: 2, By: -100}} {
		if _, err := h.ModifySeries(t.Context(), ann, made.Series.ID, x); err != nil {
			t.Fatal(err)
		}
		is, err := h.Get(t.Context(), ann.By, second)
		if err != nil {
			t.Fatal(err)
		}
		if a := is.Allotments[0]; a.Interval().Length() != 140 || a.Start != []berth.Time{4100, 4100, 4000}[i] {
			t.Errorf("after %+v it is from %d for %d s; want 140", x, a.Start, a.Interval().Length())
		}
	}
	for want, x := range map[string]service.SeriesEdit{
		"by: -72000 s; the window of occurrence 1 would be over before 1000, which is the earliest; want more than -2700 s": {By: -72000},
		"by: 4398046511103 s; occurrence 1 would be beyond ±2^42 s":                                                         {By: berth.Duration(berth.TimeLimit) - 1},
	} {
		if _, err := h.ModifySeries(t.Context(), ann, made.Series.ID, x); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
