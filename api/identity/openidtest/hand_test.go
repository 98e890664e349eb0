package openidtest_test

import (
	"encoding/json"
	"flag"
	"net/http"
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
	if *port == 0 {
		return
	}
	t.Logf("issuer %s, client %s; users alice, in the group hpc, and eve; password %s", p.URL, openidtest.Public, openidtest.Password)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	<-stop
}
