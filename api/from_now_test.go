package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/form"
)

// A request may say how long after its decision it begins and must have ended, which is the same body whenever it is
// asked again under its key.
func TestAWindowMayBeCountedFromTheDecision(t *testing.T) {
	h := &harbour{dir: t.TempDir()}
	h.clock.Store(int64(start))
	h.open(t)
	defer h.close(t)
	const body = `{"npe":1,"duration":"1h","deadline_in":"1h"}`
	first := h.do("alice", "POST", "/v1/requests", body, "Idempotency-Key", "k")
	a := into[form.Answer](t, first, http.StatusCreated)
	if r := a.Reservation; a.Decision != form.Accepted || r.Start != form.Time(start) || r.Deadline != form.Time(start+3600) {
		t.Errorf("%+v", a)
	}
	h.clock.Add(10)
	if again := h.do("alice", "POST", "/v1/requests", body, "Idempotency-Key", "k"); again.text != first.text {
		t.Errorf("again it is answered\n%swant\n%s", again.text, first.text)
	}
	a = into[form.Answer](t, h.do("alice", "POST", "/v1/requests", `{"npe":1,"duration":"1h","ready_in":600,"deadline_in":"70m"}`), http.StatusCreated)
	if r := a.Reservation; a.Decision != form.Accepted || r.Start != form.Time(start+610) || r.Deadline != form.Time(start+4210) {
		t.Errorf("%+v", a)
	}
	a = into[form.Answer](t, h.do("alice", "PATCH", "/v1/reservations/"+a.ID, `{"ready_in":0,"deadline_in":"1h"}`), http.StatusOK)
	if r := a.Reservation; a.Decision != form.Accepted || r.Start != form.Time(start+10) || r.Deadline != form.Time(start+3610) {
		t.Errorf("%+v", a)
	}
	for body, says := range map[string]string{
		`{"npe":1,"duration":"1h","deadline_in":"59m"}`:                                                                 "deadline_in: 00:59:00 is less than the time to ready and duration, 00:00:00 + 01:00:00; want 01:00:00 or more",
		`{"npe":1,"duration":"1h","ready_in":60,"deadline_in":"1h"}`:                                                    "want 01:01:00 or more",
		`{"npe":1,"duration":"1h","deadline":"2030-01-01T00:00:00Z","deadline_in":"2h"}`:                                "deadline_in: given beside deadline",
		`{"npe":1,"duration":"1h","ready":"2030-01-01T00:00:00Z","ready_in":1,"deadline_in":2}`:                         "ready_in: given beside ready",
		`{"npe":1,"duration":"1h","deadline_in":0}`:                                                                     "deadline_in: 0; want at least 1 s",
		`{"npe":1,"duration":"1h","deadline":"` + time.Unix(int64(start)+59*60+10, 0).UTC().Format(time.RFC3339) + `"}`: "or now+01:00:00, which is deadline_in",
	} {
		if got := h.do("alice", "POST", "/v1/requests", body); got.Code != http.StatusUnprocessableEntity || !strings.Contains(got.text, says) {
			t.Errorf("%s: %d %s; want %s", body, got.Code, got.text, says)
		}
	}
}
