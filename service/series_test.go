package service_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/service"
)

// weekly is a series of n occurrences of npe PEs, 1000 s apart from 2000 on, each for 100 s at its very time.
func weekly(n, least int, npe berth.Count) berth.Series {
	s := berth.Series{Rule: "every 1000 s", Zone: "UTC", Least: least, Request: berth.Rigid("", 0, 0, 1, npe, 100)}
	for i := range n {
		ready := berth.Time(2000 + 1000*i)
		s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: ready, Deadline: ready + 100})
	}
	return s
}

func submitSeries(t *testing.T, h *service.Host, ask service.Ask, s berth.Series) service.SeriesAnswer {
	t.Helper()
	a, err := h.SubmitSeries(t.Context(), ask, s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// occurrences writes what became of each.
func occurrences(s *service.Series) (list []string) {
	for i := range s.Reservations {
		text := "none"
		if r := &s.Reservations[i]; r.ID != "" {
			text = fmt.Sprintf("%s %d", r.State, r.Allotments[0].Start)
		}
		list = append(list, text)
	}
	return list
}

// An occurrence that cannot be comes with what it could be instead; what is taken of that is its reservation. One,
// some or all are given back. After a restart, from records or a snapshot, all is as it was.
func TestASeriesFromItsAnswerToItsEnd(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	h, store := startOn(t, dir, onePool(4), c)
	if _, err := h.Submit(t.Context(), bob, berth.Rigid("", 0, 3000, 3100, 3, 100)); err != nil {
		t.Fatal(err)
	}
	all := submitSeries(t, h, ann, weekly(4, 4, 2))
	if !all.Series.Refused || len(all.Series.Unfit) != 1 || len(all.Offers) != 1 || len(all.Offers[0].Offers) == 0 {
		t.Fatalf("all or none: refused %t, %v cannot be, offers %+v", all.Series.Refused, all.Series.Unfit, all.Offers)
	}
	a := submitSeries(t, h, ann, weekly(4, 3, 2))
	id := a.Series.Series.ID
	if diff := cmp.Diff([]string{"confirmed 2000", "none", "confirmed 4000", "confirmed 5000"}, occurrences(&a.Series)); diff != "" {
		t.Fatal(diff)
	}
	taken, err := h.Hold(t.Context(), ann, a.Offers[0].Offers[0].ID, 0)
	if err != nil || taken.Reservation.State != service.Confirmed {
		t.Fatalf("%+v %v", taken, err)
	}
	if r, err := h.Release(t.Context(), ann, berth.OccurrenceID(id, 1)); err != nil || r.State != service.Cancelled {
		t.Fatalf("%+v %v", r, err)
	}
	if _, err := h.CancelSeries(t.Context(), ann, id, 4, 4); err != nil {
		t.Fatal(err)
	}
	got, err := h.GetSeries(t.Context(), ann.By, id)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cancelled 2000", fmt.Sprintf("confirmed %d", taken.Reservation.Allotments[0].Start), "confirmed 4000", "cancelled 5000"}
	if diff := cmp.Diff(want, occurrences(&got)); diff != "" {
		t.Fatal(diff)
	}
	list, _, err := h.ListSeries(t.Context(), ann.By, service.SeriesFilter{})
	if err != nil || len(list) != 2 {
		t.Fatalf("%d series are listed, %v", len(list), err)
	}
	for restart := range 3 {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		h, store = startOn(t, dir, onePool(4), c)
		again, err := h.GetSeries(t.Context(), ann.By, id)
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("after restart %d it is\n%+v %v, was\n%+v", restart, again, err, got)
		}
		if _, err := h.Submit(t.Context(), bob, berth.Rigid("", 0, 9000, 9999, 1, 10)); err != nil { // so that records follow
			t.Fatal(err)
		}
	}
	rest, err := h.CancelSeries(t.Context(), ann, id, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, state := range occurrences(&rest.Series)[1:] {
		if state[:9] != "cancelled" {
			t.Errorf("occurrence %d is %s", i+2, state)
		}
	}
}

// A series asked for again under its key gets the first answer, whatever has become of it, and after a restart;
// so does what was refused, and what was given back.
func TestAKeyReplaysTheAnswerAboutASeries(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	h, store := startOn(t, dir, onePool(4), c)
	keyed := func(key string) service.Ask {
		ask := ann
		ask.Key = key
		return ask
	}
	calls := map[string]func() (service.SeriesAnswer, error){}
	answers := map[string]service.SeriesAnswer{}
	id := ""
	calls["asked"] = func() (service.SeriesAnswer, error) {
		return h.SubmitSeries(t.Context(), keyed("asked"), weekly(3, 3, 3))
	}
	calls["refused"] = func() (service.SeriesAnswer, error) {
		return h.SubmitSeries(t.Context(), keyed("refused"), weekly(3, 2, 2))
	}
	calls["skipped"] = func() (service.SeriesAnswer, error) { return h.CancelSeries(t.Context(), keyed("skipped"), id, 2, 2) }
	calls["none"] = func() (service.SeriesAnswer, error) { return h.CancelSeries(t.Context(), keyed("none"), "none", 1, 1) }
	calls["beyond"] = func() (service.SeriesAnswer, error) { return h.CancelSeries(t.Context(), keyed("beyond"), id, 2, 9) }
	codes := map[string]berth.Code{"none": berth.NotFound, "beyond": berth.Invalid}
	for _, name := range []string{"asked", "refused", "skipped", "none", "beyond"} {
		a, err := calls[name]()
		if wantErr(t, err, codes[name]); name == "asked" {
			id = a.Series.Series.ID
		}
		answers[name] = a
	}
	if a := answers["refused"]; !a.Series.Refused || len(a.Offers) != 3 {
		t.Errorf("refused %t with offers for %d", a.Series.Refused, len(a.Offers))
	}
	if _, err := h.CancelSeries(t.Context(), ann, id, 1, 3); err != nil {
		t.Fatal(err)
	}
	c.seconds.Store(2500)
	for range 2 {
		for name, call := range calls {
			again, err := call()
			if wantErr(t, err, codes[name]); err == nil && !reflect.DeepEqual(again, answers[name]) {
				t.Errorf("%s is answered again with\n%+v, was\n%+v", name, again, answers[name])
			}
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		h, store = startOn(t, dir, onePool(4), c)
	}
	other := keyed("asked")
	other.Body = [32]byte{1}
	_, err := h.SubmitSeries(t.Context(), other, weekly(1, 1, 1))
	wantCode(t, err, berth.Conflict)
}

// Others neither see a series nor give anything of it back; a viewer asks for none.
func TestASeriesIsItsOwners(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	id := submitSeries(t, h, ann, weekly(3, 3, 3)).Series.Series.ID
	_, err := h.GetSeries(t.Context(), bob.By, id)
	wantCode(t, err, berth.NotFound)
	_, err = h.CancelSeries(t.Context(), bob, id, 1, 3)
	wantCode(t, err, berth.NotFound)
	if list, _, err := h.ListSeries(t.Context(), bob.By, service.SeriesFilter{}); err != nil || len(list) != 0 {
		t.Errorf("bob sees %d series, %v", len(list), err)
	}
	viewer := service.Ask{By: service.Principal{User: "ann", Role: service.Viewer}}
	_, err = h.SubmitSeries(t.Context(), viewer, weekly(3, 3, 3))
	wantCode(t, err, berth.Denied)
	_, err = h.CancelSeries(t.Context(), viewer, id, 1, 3)
	wantCode(t, err, berth.Denied)
	asAnn := weekly(1, 1, 1)
	asAnn.Request.User = "ann"
	_, err = h.SubmitSeries(t.Context(), bob, asAnn)
	wantCode(t, err, berth.Denied)
}

// Who changes a workflow or a series by the way of a reservation is told what it is; others hear nothing of it.
func TestWhatIsNoReservation(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	series := submitSeries(t, h, ann, weekly(3, 3, 3)).Series.Series.ID
	w := berth.Workflow{ID: "night", Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth, Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 100, Alpha: 1}}}
	if a, err := h.SubmitWorkflow(t.Context(), ann, w); err != nil || a.Workflow.State != service.FlowPromised {
		t.Fatalf("%+v, %v", a.Workflow, err)
	}
	for id, words := range map[string]string{"night": "but a workflow: want the id of the reservation of a task", series: "but a series: want the id of the reservation of an occurrence"} {
		_, err := h.Release(t.Context(), ann, id)
		wantCode(t, err, berth.NotFound)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
		_, err = h.Release(t.Context(), bob, id)
		wantCode(t, err, berth.NotFound)
		if err == nil || strings.Contains(err.Error(), "but a") {
			t.Errorf("bob hears %v", err)
		}
	}
	if _, err := h.Release(t.Context(), ann, engine.TaskID("night", 0, 1)); err != nil {
		t.Errorf("the task: %v", err)
	}
}

// What is ready while it waits for its turn is ready when it is decided.
func TestASeriesThatIsLate(t *testing.T) {
	c := &clock{}
	c.seconds.Store(2040)
	h := start(t, t.TempDir(), onePool(4), c)
	a := submitSeries(t, h, ann, weekly(2, 2, 4))
	if diff := cmp.Diff([]string{"confirmed 2040", "confirmed 3000"}, occurrences(&a.Series)); diff != "" && occurrences(&a.Series)[0] != "active 2040" {
		t.Error(diff)
	}
}

// wantErr is wantCode, and for no code wants no error.
func wantErr(t *testing.T, err error, code berth.Code) {
	t.Helper()
	if code != "" {
		wantCode(t, err, code)
	} else if err != nil {
		t.Error(err)
	}
}
