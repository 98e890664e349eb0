package slurm_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/rest"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// overREST reaches a cluster through its slurmrestd.
func overREST(c *slurmtest.Cluster) slurm.Options {
	o := options(c)
	o.Conf = ""
	o.Exec = rest.New(rest.Options{Address: c.REST(), JWT: c.Token()})
	return o
}

// offersREST reports whether the Slurm of this test run has the API that Berth asks, and says so where it skips.
func offersREST(t *testing.T, c *slurmtest.Cluster) {
	t.Helper()
	version, err := c.Command("scontrol", "--version")
	if err != nil {
		t.Fatal(version, err)
	}
	if !strings.Contains(version, " 26.") {
		t.Skipf("slurmrestd of %s has no API v0.0.45 (set BERTH_SLURM to one of 26.05)", strings.TrimSpace(version))
	}
}

// proxied returns the address of a proxy in front of slurmrestd that speaks TLS, as slurmrestd does not, and the path of
// the certificate of its authority.
func proxied(t *testing.T, c *slurmtest.Cluster) (address, ca string) {
	t.Helper()
	behind, err := url.Parse(c.REST())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of what is killed
	s := httptest.NewTLSServer(proxy)
	t.Cleanup(s.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL, ca
}

// The suite that the commands pass slurmrestd passes too, behind a proxy that speaks TLS and at its Unix socket. A proxy
// behind which nothing answers is a site that cannot be reached, and so is one whose certificate nobody vouches for.
func TestConformanceOverREST(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{REST: true})
	offersREST(t, cluster)
	address, ca := proxied(t, cluster)
	over := func(r rest.Options) slurm.Options {
		o := overREST(cluster)
		r.JWT = cluster.Token()
		o.Exec = rest.New(r)
		return o
	}
	https := over(rest.Options{Address: address, CA: ca})
	t.Run("https", func(t *testing.T) { conforms(t, cluster, https) })
	t.Run("unix", func(t *testing.T) { conforms(t, cluster, over(rest.Options{Address: cluster.Socket()})) })

	if _, err := slurm.New(over(rest.Options{Address: address})).Observe(t.Context()); site.KindOf(err) != site.Unreachable || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("without the authority: %v", err)
	}
	s := slurm.New(https)
	cluster.KillREST()
	if _, err := s.Observe(t.Context()); site.KindOf(err) != site.Unreachable || !strings.Contains(err.Error(), "slurmrestd is not reached behind "+address+", which says 502 Bad Gateway") {
		t.Errorf("a proxy with nothing behind it: %v, a %v", err, site.KindOf(err))
	}
	if got, err := s.Reserve(t.Context(), far(t, 1, "n1")); site.KindOf(err) != site.Unreachable || got.Verdict == site.Made {
		t.Errorf("a proxy with nothing behind it: %+v, %v, a %v", got, err, site.KindOf(err))
	}
	if err := cluster.StartREST(); err != nil {
		t.Fatal(err)
	}
	mustReserve(t, s, far(t, 1, "n1"), site.Made)
}

// At its Unix socket slurmrestd does the same: it is looked at, reservations are made, changed and released, and a
// socket that is gone is a site that cannot be reached.
func TestRESTAtAUnixSocket(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{REST: true})
	offersREST(t, cluster)
	o := overREST(cluster)
	o.Exec = rest.New(rest.Options{Address: cluster.Socket(), JWT: cluster.Token()})
	s := slurm.New(o)
	if d, err := s.Describe(t.Context()); err != nil || d.Rights.As != me(t) || !d.Rights.Reserve {
		t.Fatalf("%+v %v", d, err)
	}
	want := far(t, 1, "n1")
	mustReserve(t, s, want, site.Made)
	want.End += 600
	if got, err := s.Change(t.Context(), want); err != nil || got.Verdict != site.Made || got.Booking.End != want.End {
		t.Errorf("%+v %v", got, err)
	}
	if shown, err := cluster.Command("scontrol", "show", "reservation", "-o"); err != nil || !strings.Contains(shown, "ReservationName="+string(want.Name)+" ") {
		t.Errorf("%s %v", shown, err)
	}
	if err := s.Release(t.Context(), want.Name); err != nil {
		t.Error(err)
	}
	if state, err := s.Observe(t.Context()); err != nil || len(state.Ours) != 0 || len(state.Nodes) == 0 {
		t.Errorf("%+v %v", state, err)
	}
	cluster.KillREST()
	if _, err := s.Observe(t.Context()); site.KindOf(err) != site.Unreachable || !strings.Contains(err.Error(), "slurmrestd does not answer at "+cluster.Socket()) {
		t.Errorf("%v", err)
	}
	if err := cluster.StartREST(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Observe(t.Context()); err != nil {
		t.Error(err)
	}
}

// A slurmrestd that cannot do what is asked says by name what it lacks, and what to do.
func TestOldRESTIsNamed(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{REST: true})
	version, err := cluster.Command("scontrol", "--version")
	if err != nil {
		t.Fatal(version, err)
	}
	last := map[string]string{"22.05": "v0.0.38", "24.11": "v0.0.42"}[strings.TrimPrefix(version, "slurm-wlm ")[:5]]
	if last == "" {
		t.Skipf("slurmrestd of %s has all that is asked", version)
	}
	s := slurm.New(overREST(cluster))
	found := s.Doctor(t.Context())
	_, err = s.Describe(t.Context())
	if len(found) != 1 || found[0].Level != site.Bad || err == nil {
		t.Fatalf("%+v %v", found, err)
	}
	for _, text := range []string{found[0].Text, err.Error()} {
		if !strings.Contains(text, "slurmrestd has no API v0.0.45: it offers ") || !strings.Contains(text, last) {
			t.Errorf("%q, want what it offers, with %s", text, last)
		}
	}
	if !strings.Contains(found[0].Hint, "use Slurm's commands") {
		t.Errorf("hint %q", found[0].Hint)
	}
}

// What keeps slurmrestd from answering is told for what it is.
func TestRESTTroubles(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{REST: true})
	offersREST(t, cluster)
	good, err := os.ReadFile(cluster.Token())
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(cluster.Token(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := slurm.New(overREST(cluster))
	const expired = "e30.eyJleHAiOjE3MDAwMDAwMDAsInN1biI6InJvb3QifQ.e30"
	foreign := "e30.eyJleHAiOjk5OTk5OTk5OTksInN1biI6InJvb3QifQ.AAAA"
	for _, c := range []struct{ token, want string }{
		{"nonsense", "holds none of a user of Slurm"},
		{expired, "that of root in " + cluster.Token() + " expired at 2023-11-14T22:13:20Z"},
		{foreign, "Protocol authentication error"},
	} {
		write(c.token)
		found := s.Doctor(t.Context())
		if len(found) != 1 || !strings.Contains(found[0].Text, c.want) || found[0].Hint == "" {
			t.Errorf("%q: %+v", c.want, found)
		}
		if _, err := s.Observe(t.Context()); site.KindOf(err) != site.Unreachable || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, a %v", c.want, err, site.KindOf(err))
		}
	}
	// A token that somebody renews is taken up, and whoever it is of is who Berth is.
	write(string(good))
	if d, err := s.Describe(t.Context()); err != nil || d.Rights.As != me(t) || !d.Rights.Reserve || !d.Rights.Drain {
		t.Fatalf("%+v %v", d, err)
	}
	if os.Getuid() == 0 {
		if err := cluster.WriteToken("nobody"); err != nil {
			t.Fatal(err)
		}
		if d, err := s.Describe(t.Context()); err != nil || d.Rights.As != "nobody" || d.Rights.Reserve {
			t.Errorf("%+v %v", d, err)
		}
		want := far(t, 1, "n1")
		if got, err := s.Reserve(t.Context(), want); site.KindOf(err) != site.Denied {
			t.Errorf("%+v %v", got, err)
		}
		write(string(good))
	}
	cluster.KillREST()
	if _, err := s.Observe(t.Context()); site.KindOf(err) != site.Unreachable || !strings.Contains(err.Error(), "slurmrestd does not answer at "+cluster.REST()) {
		t.Errorf("%v", err)
	}
	if err := cluster.StartREST(); err != nil {
		t.Fatal(err)
	}
	mustReserve(t, s, far(t, 1, "n1"), site.Made)
	cluster.KillController()
	if _, err := s.Observe(t.Context()); site.KindOf(err) != site.Unreachable {
		t.Errorf("%v", err)
	}
}
