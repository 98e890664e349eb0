package openidtest_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"testing"

	"github.com/berth-hpc/berth/api/identity/openidtest"
)

var port = flag.Int("openidtest.port", 0, "keep the provider running on this port until it is interrupted, to log in by hand")

// The provider says where devices log in. With a port it goes on until it is interrupted, for those who want to try a login by hand:
//
//	go test ./api/identity/openidtest -run Hand -v -timeout 0 -openidtest.port 7118
func TestProviderForLoginsByHand(t *testing.T) {
	p := openidtest.Start(t, openidtest.Options{Port: *port, Redirects: []string{"http://127.0.0.1:7117/login/oidc/callback"}},
		openidtest.User{Name: "alice", Groups: []string{"hpc"}}, openidtest.User{Name: "eve"})
	answer, err := http.Get(p.URL + "/.well-known/openid-configuration")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
	}()
	var says struct {
		Issuer string `json:"issuer"`
		Device string `json:"device_authorization_endpoint"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&says); err != nil || says.Issuer != p.URL || says.Device == "" {
		t.Fatalf("%+v, %v", says, err)
	}
	post := func(to string, form url.Values) (status int, body []byte) {
		t.Helper()
		answer, err := http.PostForm(to, form)
		if err != nil {
			t.Fatal(err)
		}
		body, err = io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, body
	}
	var device struct {
		Code string `json:"user_code"`
		Page string `json:"verification_uri"`
	}
	if status, body := post(says.Device, url.Values{"client_id": {openidtest.Public}, "scope": {"openid"}}); status != http.StatusOK || json.Unmarshal(body, &device) != nil || device.Page != p.URL+"/device" {
		t.Fatalf("%d, %s", status, body)
	}
	for _, c := range []struct {
		code, user, password string
		want                 int
	}{
		{device.Code, "alice", "wrong", http.StatusForbidden},
		{device.Code, "mallory", openidtest.Password, http.StatusForbidden},
		{"QQQQ-QQQQ", "alice", openidtest.Password, http.StatusNotFound},
		{device.Code, "alice", openidtest.Password, http.StatusOK},
	} {
		if status, body := post(device.Page, url.Values{"user_code": {c.code}, "user": {c.user}, "password": {c.password}}); status != c.want {
			t.Errorf("%+v: %d, %s", c, status, body)
		}
	}
	if *port == 0 {
		return
	}
	t.Logf("issuer %s, client %s; users alice, in the group hpc, and eve; password %s", p.URL, openidtest.Public, openidtest.Password)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	<-stop
}
