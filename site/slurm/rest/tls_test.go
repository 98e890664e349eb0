package rest_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/rest"
)

// secure is a slurmrestd of the test's own behind TLS. It counts what reaches it.
type secure struct {
	*httptest.Server
	asked atomic.Int64
	token atomic.Value // that it was last asked with
}

func newSecure(t *testing.T) *secure {
	t.Helper()
	s := new(secure)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		s.token.Store(r.Header.Get("X-SLURM-USER-TOKEN"))
		(&server{answers: map[string]string{"GET ping/": `{"pings": [{"hostname": "ctl1", "responding": true, "primary": true, "mode": "primary", "pinged": "UP"}]}`}}).ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// authority writes the certificate of a server to a file.
func authority(t *testing.T, s *secure) string {
	t.Helper()
	return written(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A slurmrestd behind TLS is asked, with the token, if its certificate is of the authority that is given; else nothing is
// sent, and the words say what is wrong, what it means and what to do.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	s := newSecure(t)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	ca := authority(t, s)
	ping := slurm.Command{Argv: []string{"scontrol", "ping"}}
	for _, c := range []struct{ name, address, ca, want string }{
		{"given", s.URL, ca, ""},
		{"none of this machine's", s.URL, "", "unknown authority"},
		{"another host", strings.Replace(s.URL, "127.0.0.1", "localhost", 1), ca, "certificate is valid for"},
		{"no such file", s.URL, "/nowhere/ca.pem", "/nowhere/ca.pem: no such file"},
		{"no certificate", s.URL, written(t, "hello"), "holds no certificate in PEM"},
		{"no TLS", strings.Replace(plain.URL, "http:", "https:", 1), ca, "it speaks no TLS"},
	} {
		before := s.asked.Load()
		o := rest.Options{Address: c.address, JWT: jwt(t), CA: c.ca}
		got, err := rest.New(o).Run(t.Context(), ping)
		if c.want == "" {
			if err != nil || got.Exit != 0 || s.asked.Load() == before || s.token.Load() != "e30.eyJzdW4iOiJhbGljZSJ9.e30" {
				t.Errorf("%s: %q %q %v, asked with %v", c.name, got.Stdout, got.Stderr, err, s.token.Load())
			}
			continue
		}
		if err != nil || got.Exit == 0 || !strings.HasPrefix(got.Stderr, "slurmrestd does not prove who it is: ") || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("%s: %q %v, want …%s…", c.name, got.Stderr, err, c.want)
		}
		if s.asked.Load() != before {
			t.Errorf("%s: something was sent", c.name)
		}
		found := slurm.New(slurm.Options{Site: "s", Exec: rest.New(o)}).Doctor(t.Context())
		if len(found) != 1 || found[0].Level != site.Bad || !strings.Contains(found[0].Text, c.want) || !strings.Contains(found[0].Hint, "the file that ca gives") {
			t.Errorf("%s: the doctor says %+v", c.name, found)
		}
		if _, err := slurm.New(slurm.Options{Site: "s", Exec: rest.New(o)}).Observe(t.Context()); site.KindOf(err) != site.Unreachable {
			t.Errorf("%s: a look says %v, a %v", c.name, err, site.KindOf(err))
		}
	}
}

// An authority that is replaced counts from the next connection on, without a restart.
func TestAuthorityIsRenewed(t *testing.T) {
	t.Parallel()
	s := newSecure(t)
	ca := written(t, "the old one")
	a := rest.New(rest.Options{Address: s.URL, JWT: jwt(t), CA: ca})
	if got, err := run(t, a, "scontrol", "ping"); err != nil || got.Exit == 0 {
		t.Fatalf("%+v %v", got, err)
	}
	text, err := os.ReadFile(authority(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := run(t, a, "scontrol", "ping"); err != nil || got.Exit != 0 {
		t.Errorf("%q %v", got.Stderr, err)
	}
}
