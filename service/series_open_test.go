package service_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// nightly is an open series of occurrences of 2 PEs, each for 100 s at its very time, 1000 s apart from now+1000 s on.
func nightly(now berth.Time, n int, ahead berth.Duration) berth.Series {
	s := berth.Series{Rule: "every 1000 s", Zone: "UTC", Ahead: ahead, Request: berth.Rigid("", 0, 0, 1, 2, 100)}
	for i := range n {
		ready := now.Add(berth.Duration(1000 * (i + 1)))
		s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: ready, Deadline: ready + 100})
	}
	return s
}

// states writes the states of the occurrences that have had their turn.
func states(s *service.Series) string {
	var list []string
	for i := range s.Reservations[:s.Progress.Decided] {
		switch r := &s.Reservations[i]; {
		case r.ID != "":
			list = append(list, string(r.State))
		case slices.Contains(s.Progress.Skipped, i+1):
			list = append(list, "skipped")
		default:
			list = append(list, "none")
		}
	}
	return strings.Join(list, " ")
}

// An open series goes on by itself; what cannot be is refused, told, and promised later; a restart goes on with what was due
// meanwhile; and what has had no turn can be given back.
func TestAnOpenSeriesFromItsAnswerToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		open := func() (*service.Host, *sqlite.Store) {
			store, err := sqlite.Open(dir, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			h, err := service.Open(t.Context(), service.Options{Config: onePool(4), Journal: store, Version: "test", SnapshotEvery: 5})
			if err != nil {
				t.Fatal(err)
			}
			return h, store
		}
		h, store := open()
		now := h.Now()
		other := submit(t, h, bob, berth.Rigid("", 0, now+4000, now+4100, 3, 100))
		keyed := ann
		keyed.Key = "k"
		a := submitSeries(t, h, keyed, nightly(now, 9, 2500))
		id := a.Series.Series.ID
		look := func() service.Series {
			t.Helper()
			s, err := h.GetSeries(t.Context(), ann.By, id)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		is := func(want string) {
			t.Helper()
			s := look()
			if diff := cmp.Diff(want, states(&s)); diff != "" {
				t.Fatal(diff)
			}
		}
		if is("confirmed confirmed"); a.Series.Series.Least != 2 {
			t.Errorf("at least %d must be possible, want both that are near enough", a.Series.Series.Least)
		}
		time.Sleep(510 * time.Second)
		is("confirmed confirmed confirmed")
		time.Sleep(1000 * time.Second) // the fourth has its turn at 1500
		is("finished confirmed confirmed refused")
		r, err := h.Get(t.Context(), ann.By, berth.OccurrenceID(id, 4))
		if err != nil || r.State != service.Refused || r.Refusal == nil || r.Request.Series.Number != 4 {
			t.Fatalf("the fourth is %+v, %v", r, err)
		}
		if s := look(); len(s.Unfit) != 1 || s.Unfit[0].Number != 4 || !slices.Equal(s.Progress.Waiting, []int{4}) {
			t.Errorf("%+v cannot be, %v are asked for again", s.Unfit, s.Progress.Waiting)
		}
		if _, err := h.Release(t.Context(), bob, other.Reservation.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		is("finished confirmed confirmed confirmed")
		if s := look(); len(s.Unfit) != 0 || len(s.Progress.Waiting) != 0 {
			t.Errorf("%+v cannot be, %v are asked for again", s.Unfit, s.Progress.Waiting)
		}
		if _, err := h.CancelSeries(t.Context(), ann, id, 6, 6); err != nil {
			t.Fatal(err)
		}
		for range 2 { // from records behind a snapshot, and from one that has it all
			was := look()
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			h, store = open()
			if diff := cmp.Diff(was, look()); diff != "" {
				t.Fatal(diff)
			}
			for range 7 {
				submit(t, h, bob, berth.Rigid("", 0, h.Now()+50_000, h.Now()+60_000, 1, 10))
			}
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3000 * time.Second) // the fifth and the seventh have had their turns meanwhile
		h, store = open()
		time.Sleep(time.Second)
		is("finished finished finished finished confirmed skipped confirmed")
		time.Sleep(1000 * time.Second)
		is("finished finished finished finished finished skipped confirmed confirmed")
		again, err := h.SubmitSeries(t.Context(), keyed, nightly(now, 9, 2500))
		if err != nil || !reflect.DeepEqual(again, a) {
			t.Errorf("under its key it is answered %+v %v, was %+v", again, err, a)
		}
		if _, err := h.CancelSeries(t.Context(), ann, id, 9, 0); err != nil {
			t.Fatal(err)
		}
		if s := look(); !s.Progress.Over() || states(&s) != "finished finished finished finished finished skipped confirmed confirmed" {
			t.Errorf("it goes on: %+v, %s", s.Progress, states(&s))
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
