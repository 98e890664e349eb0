package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// A client without a token makes a credential for each call once the service has asked for one, for what the
// service sees of the call behind its proxy. One with a token makes none.
func TestSign(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Get("Authorization")
		seen = append(seen, header)
		if header == "" {
			w.Header().Add("WWW-Authenticate", "Bearer")
			w.Header().Add("WWW-Authenticate", `Seal realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"status":401,"code":"denied","detail":"who are you?"}`)
			return
		}
		_, _ = fmt.Fprint(w, `{}`)
	}))
	defer server.Close()
	number := 0
	sign := func(_ context.Context, challenge string, call client.Call) (string, bool, error) {
		if challenge != `Seal realm="x"` {
			return "", false, nil
		}
		number++
		return fmt.Sprintf("Seal %d %s %s %t %s", number, call.Method, call.URI, call.Bound, call.Body), true, nil
	}
	c, err := client.New(server.URL+"/berth/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Sign(sign)
	for range 2 {
		if _, err := c.Request(t.Context(), &form.Request{NPE: 4}, client.Action{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Me(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"", `Seal 1 POST /v1/requests true {"npe":4}`, `Seal 2 POST /v1/requests true {"npe":4}`, "Seal 3 GET /v1/me true"}
	if !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
	if c, err = client.New(server.URL, "token", nil); err != nil {
		t.Fatal(err)
	}
	c.Sign(sign)
	if _, err := c.Me(t.Context()); err != nil || seen[len(seen)-1] != "Bearer token" {
		t.Error(err, seen)
	}
	// What no signer answers is an error of the service.
	c, _ = client.New(server.URL, "", nil)
	c.Sign(func(context.Context, string, client.Call) (string, bool, error) { return "", false, nil })
	_, err = c.Me(t.Context())
	if e, is := errors.AsType[*berth.Error](err); !is || e.Code != berth.Denied {
		t.Error(err)
	}
	trouble := errors.New("no munge here")
	c, _ = client.New(server.URL, "", nil)
	c.Sign(func(context.Context, string, client.Call) (string, bool, error) { return "", false, trouble })
	if _, err = c.Me(t.Context()); !errors.Is(err, trouble) {
		t.Error(err)
	}
}

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // a short path
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprintf(w, `{"user":%q}`, r.Host) })}
	defer func() { _ = server.Close() }()
	go func() { _ = server.Serve(listener) }() // it ends with Close
	c, err := client.New("unix://"+path, "secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	if me, err := c.Me(t.Context()); err != nil || me.User != "localhost" || c.Server() != "unix://"+path || c.Exposed() {
		t.Error(me, err, c.Server(), c.Exposed())
	}
	for _, bad := range []string{"unix://", "unix://host/path", "unix:/path"} {
		if _, err := client.New(bad, "", nil); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
