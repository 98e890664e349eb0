package api_test

import (
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
)

const named = `{"name":"weekly-run","npe":8,"duration":"PT2H","ready":"2026-11-21T18:00:00+01:00","deadline":"2026-11-22T18:00:00+01:00"}`

// A reservation is got by its name. The answer says which it is, and no version of another is taken for it.
func TestGetByName(t *testing.T) {
	w := newWorld(t, api.Options{Limits: unlimited})
	made := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", named), 201)
	if made.Reservation.Name != "weekly-run" {
		t.Errorf("%+v", made.Reservation)
	}
	a := w.do("alice", "GET", "/v1/reservations/weekly-run", "")
	if got := into[form.Reservation](t, a, 200); got.ID != made.ID || got.Name != "weekly-run" || a.Header().Get("Content-Location") != "/v1/reservations/"+made.ID {
		t.Errorf("%+v at %q", got, a.Header().Get("Content-Location"))
	}
	if a := w.do("alice", "GET", "/v1/reservations/weekly-run", "", "If-None-Match", a.Header().Get("ETag")); a.Code != 200 {
		t.Error("status", a.Code)
	}
	for _, other := range []string{"bob", "vera"} {
		wantProblem(t, w.do(other, "GET", "/v1/reservations/weekly-run", ""), 404, `no reservation "weekly-run"`)
	}
	wantProblem(t, w.do("alice", "DELETE", "/v1/reservations/weekly-run", ""), 404) // which takes ids alone
	into[form.Answer](t, w.do("alice", "POST", "/v1/requests", named), 201)
	wantProblem(t, w.do("alice", "GET", "/v1/reservations/weekly-run", ""), 409, "could be any of 2")
	if page := into[form.Page](t, w.do("alice", "GET", "/v1/reservations?name=weekly-run", ""), 200); len(page.Reservations) != 2 {
		t.Errorf("%+v", page)
	}
	if page := into[form.Page](t, w.do("alice", "GET", "/v1/reservations?name=weekly", ""), 200); len(page.Reservations) != 0 {
		t.Errorf("%+v", page)
	}
}

func TestNamesAreChecked(t *testing.T) {
	w := newWorld(t, api.Options{Limits: unlimited})
	id := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", named), 201).ID
	for _, name := range []string{"7th", "a b", "a/b"} {
		wantProblem(t, w.do("alice", "PATCH", "/v1/reservations/"+id, `{"name":"`+name+`"}`), 422, `name: "`+name+`"; want 1 to 64 letters`)
	}
	if a := into[form.Answer](t, w.do("alice", "PATCH", "/v1/reservations/"+id, `{"name":"monthly"}`), 200); a.Reservation.Name != "monthly" {
		t.Errorf("%+v", a.Reservation)
	}
	if a := into[form.Answer](t, w.do("alice", "PATCH", "/v1/reservations/"+id, `{"name":null}`), 200); a.Reservation.Name != "" {
		t.Errorf("%+v", a.Reservation)
	}
}
