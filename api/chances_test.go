package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
)

// Chances are told only if they are asked for; without enough history there is no share.
func TestOffersTellChances(t *testing.T) {
	w := newWorld(t, api.Options{})
	if plain := into[form.Offers](t, w.do("alice", "POST", "/v1/offers?chance=false", askFor), http.StatusOK); plain.Chances != nil {
		t.Errorf("%+v", plain.Chances)
	}
	got := into[form.Offers](t, w.do("alice", "POST", "/v1/offers?most=1&chance=true", askFor), http.StatusOK)
	if len(got.Offers) != 1 || len(got.Chances) != 2 {
		t.Fatalf("%+v", got)
	}
	if c := got.Chances[0]; c.Event != "accepted" || c.Later != 3600 || c.Share == nil || *c.Share != (form.Share{Percent: 75, Low: 70, High: 80, Cases: 64}) {
		t.Errorf("%+v, %+v", c, c.Share)
	}
	if c := got.Chances[1]; c.Event != "started" || c.Later != 60 || c.Share != nil {
		t.Errorf("%+v, %+v", c, c.Share)
	}
	wantProblem(t, w.do("alice", "POST", "/v1/offers?chance=perhaps", askFor), 422, "chance: perhaps; want true or false")
	if a := w.do("alice", "POST", "/v1/offers?chance=true", askFor); strings.Contains(a.text, `"share":null`) {
		t.Error(a.text)
	}
}
