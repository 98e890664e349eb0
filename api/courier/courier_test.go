package courier_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/courier"
)

func open(t *testing.T, o courier.Options) *courier.Courier {
	t.Helper()
	if o.Folder == "" {
		o.Folder = t.TempDir()
	}
	c, err := courier.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What counts is the address that is dialled: a name of this machine is refused like its address, with and
// without TLS, and the answer has no part of the address.
func TestAddressesInsideAreNotDialled(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []*courier.Courier{open(t, courier.Options{}), open(t, courier.Options{Allow: elsewhere})} {
		for _, scheme := range []string{"https", "http"} {
			status, words := c.Post(context.Background(), scheme+"://localhost:"+port+"/T0/secretpath", http.Header{}, nil)
			if status != 0 || words == "" || strings.Contains(words, "secretpath") || scheme == "https" && !strings.Contains(words, "inside the network") {
				t.Errorf("%s: %d %q", scheme, status, words)
			}
		}
	}
	for address, public := range map[string]bool{
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "::": false, "0.0.0.0": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "fe80::1": false, "fd00::1": false, "fec0::1": false, "100.64.0.1": false, "224.0.0.1": false, "255.255.255.255": false,
		"::ffff:127.0.0.1": false, "::7f00:1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "192.0.2.1": false, "198.18.0.1": false, "203.0.113.1": false,
		"8.8.8.8": true, "2606:4700::1": true, "::ffff:8.8.8.8": true,
	} {
		at := netip.MustParseAddr(address)
		host := address
		if at.Is6() {
			host = "[" + address + "]"
		}
		_, err := open(t, courier.Options{}).CheckURL("https://" + host + "/x")
		if (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// An allowed address is asked, with TLS by its certificate.
func TestAllowedAddressesAreDialled(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	defer server.Close()
	allow := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	trusted := open(t, courier.Options{Allow: allow, Transport: server.Client().Transport.(*http.Transport)})
	if status, words := trusted.Post(context.Background(), server.URL, http.Header{}, []byte("{}")); status != 202 || words != "" {
		t.Errorf("%d %q", status, words)
	}
	if status, words := open(t, courier.Options{Allow: allow}).Post(context.Background(), server.URL, http.Header{}, []byte("{}")); status != 0 || !strings.Contains(words, "certificate") {
		t.Errorf("%d %q", status, words)
	}
}

// A receiver that hangs is given up, whether before its answer or within.
func TestReceiversThatHangAreGivenUp(t *testing.T) {
	for _, begins := range []bool{false, true} {
		done := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if begins {
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush()
			}
			<-done
		}))
		c := open(t, courier.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Patience: 50 * time.Millisecond})
		status, words := c.Post(context.Background(), server.URL, http.Header{}, nil)
		if !begins && (status != 0 || words != "no answer in time") || begins && (status != 200 || words != "") {
			t.Errorf("%t: %d %q", begins, status, words)
		}
		close(done)
		server.Close()
	}
}

// What is sealed is read with the key of the folder alone, and for its receiver alone.
func TestSeals(t *testing.T) {
	folder := t.TempDir()
	c := open(t, courier.Options{Folder: folder})
	sealed := c.Seal("h", &courier.Target{URL: "https://x.example.org/path", Secrets: []courier.Secret{{Key: []byte("k")}, {Key: []byte("old"), Until: 10}}})
	if strings.Contains(string(sealed), "path") {
		t.Error("the address can be read")
	}
	target, err := open(t, courier.Options{Folder: folder}).Open("h", sealed)
	if err != nil || target.URL != "https://x.example.org/path" || len(target.Keys(9)) != 2 || len(target.Keys(10)) != 1 {
		t.Errorf("%+v, %v", target, err)
	}
	sealed[len(sealed)-1] ^= 1
	for _, wrong := range [][]byte{nil, sealed} {
		if _, err := c.Open("h", wrong); err == nil {
			t.Errorf("%x is opened", wrong)
		}
	}
	if _, err := open(t, courier.Options{}).Open("h", sealed); err == nil {
		t.Error("another key opens it")
	}
	path := filepath.Join(folder, courier.KeyFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := courier.Open(courier.Options{Folder: folder}); err == nil {
		t.Error("others may read the key")
	}
}
