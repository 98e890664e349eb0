package client_test

import (
	"testing"

	"github.com/berth-hpc/berth/api/client"
)

func TestTokensOverPlainHTTPAreExposed(t *testing.T) {
	for _, c := range []struct {
		server, token string
		want          bool
	}{
		{"http://127.0.0.1:7117", "t", false},
		{"http://[::1]:7117", "t", false},
		{"http://[::ffff:127.0.0.1]:7117", "t", false},
		{"http://localhost:7117", "t", false},
		{"https://berth.example.org", "t", false},
		{"http://berth.example.org", "", false},
		{"http://berth.example.org", "t", true},
		{"http://192.0.2.1:7117", "t", true},
		{"http://127.0.0.1.example.org", "t", true},
	} {
		k, err := client.New(c.server, c.token, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.Exposed(); got != c.want || k.Server() != c.server {
			t.Errorf("%s with token %q: %t, want %t", k.Server(), c.token, got, c.want)
		}
	}
}
