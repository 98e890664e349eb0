package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// A client of a service that stands by asks the one that leads, once, with all that it asked with; but it takes no token
// to another machine over plain HTTP that was not on the network before.
func TestClientGoesToTheLeader(t *testing.T) {
	asked := 0
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/under/v1/reservations/a/confirm" || r.Header.Get("Authorization") != "Bearer t" || r.Header.Get("Idempotency-Key") != "k" || len(body) != 0 {
			t.Errorf("the leader is asked %s with %v and %q", r.URL, r.Header, body)
		}
		_, _ = fmt.Fprint(w, `{"id":"a"}`)
	}))
	defer leader.Close()
	at := leader.URL + "/under/"
	standby := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", form.ProblemType)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, `{"code":"unavailable","detail":"it stands by","leader":%q}`, at)
	}))
	defer standby.Close()
	ask := func(secret string) error {
		c, err := client.New(standby.URL, secret, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Confirm(t.Context(), "a", client.Action{Key: "k"})
		if err == nil && r.ID != "a" {
			t.Errorf("the answer is %+v", r)
		}
		return err
	}
	if err := ask("t"); err != nil || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	for _, to := range []string{"http://a.example.org:7117", "ftp://127.0.0.1/", "http://127.0.0.1:1", ":", ""} {
		at = to
		var e *berth.Error
		if err := ask("t"); !errors.As(err, &e) || e.Code != berth.Unavailable || e.Msg != "it stands by" {
			t.Errorf("%q: %v", to, err)
		}
	}
	at = leader.URL
	if err := ask(""); err == nil || asked != 1 {
		t.Errorf("without a token: %v", err)
	}
}
