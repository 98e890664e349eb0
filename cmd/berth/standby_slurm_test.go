//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// booked returns the reservations of a cluster, a line each.
func booked(t *testing.T, cluster *slurmtest.Cluster) []string {
	t.Helper()
	said, err := cluster.Command("scontrol", "show", "reservation", "-o")
	if err != nil {
		t.Fatal(said, err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(said), "\n"), func(line string) bool { return !strings.HasPrefix(line, "ReservationName=") })
}

// A leader in front of a real Slurm is stopped, and another one, with a data directory that was empty, leads: the cluster
// is not told twice, nodes are those that were promised, and when the old one goes on it changes nothing there.
func TestStandbyTakesOverASlurm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 4})
	p := newPair(t, fmt.Sprintf("sites:\n  - {name: lab, adapter: {kind: slurm, conf: %q, every: 1s}}\n", cluster.Conf))
	leader := p.first()
	deadline := time.Now().Add(time.Hour).UTC().Format(time.RFC3339) // the same body under the same key
	reserve := func(at *server, npe int, key string) string {
		t.Helper()
		body := fmt.Sprintf(`{"npe":%d,"duration":3000,"deadline":%q}`, npe, deadline)
		answer := p.until(at, http.MethodPost, "/v1/requests", body, key, func(status int, _ string) bool { return status == http.StatusCreated })
		var said struct{ ID string }
		_, text, _ := strings.Cut(answer, "\n")
		if err := json.Unmarshal([]byte(text), &said); err != nil || said.ID == "" {
			t.Fatal(answer, err)
		}
		return said.ID
	}
	wait := func(n int) []string {
		t.Helper()
		for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			list := booked(t, cluster)
			if len(list) == n {
				return list
			}
			if time.Since(began) > time.Minute {
				t.Fatalf("the cluster has %q; want %d", list, n)
			}
		}
	}
	stays, goes := reserve(leader, 1, "stays"), reserve(leader, 2, "goes")
	before := wait(2)
	follower := p.beside(leader)
	p.signal(leader, syscall.SIGSTOP)
	p.until(follower, http.MethodGet, "/readyz", "", "", func(status int, _ string) bool { return status == http.StatusOK })
	if now := booked(t, cluster); !slices.Equal(now, before) {
		t.Errorf("the cluster had %q, and has %q", before, now)
	}
	if again := reserve(follower, 1, "stays"); again != stays {
		t.Errorf("under the key it is %s, and was %s", again, stays)
	}
	p.until(follower, http.MethodDelete, "/v1/reservations/"+goes, "", "give back", func(status int, _ string) bool { return status == http.StatusOK })
	wait(1)
	reserve(follower, 2, "later")
	after := wait(2)
	p.signal(leader, syscall.SIGCONT) // which knows of goes, and not of later
	select {
	case <-leader.ended:
	case <-time.After(time.Minute):
		t.Fatal("the old leader goes on")
	}
	if code := leader.ProcessState.ExitCode(); code != exitConflict {
		t.Errorf("it ended with %d", code)
	}
	if now := booked(t, cluster); !slices.Equal(now, after) {
		t.Errorf("the cluster had %q, and when the old leader had gone on %q", after, now)
	}
	var files [2]string
	for i, s := range []*server{leader, follower} {
		data, err := os.ReadFile(filepath.Join(s.data, "sites", "lab.json"))
		if err != nil {
			t.Fatal(err)
		}
		files[i] = string(data)
	}
	if files[0] != files[1] {
		t.Errorf("the cluster is remembered as %s, and was as %s", files[1], files[0])
	}
	p.check(follower)
}

// A service in front of a real Slurm takes over an open series, maintenance and prices: an occurrence whose turn comes then is promised by it, and is in
// Slurm; nothing is promised where maintenance is; and what is promised is charged as before.
func TestStandbyTakesOverSeriesMaintenanceAndPrices(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 4})
	p := newPair(t, fmt.Sprintf(`
prices: [{site: lab, factor: 1.5}]
limits: [{user: operator, budget: 1000}]
sites:
  - {name: lab, adapter: {kind: slurm, conf: %q, every: 1s}}
`, cluster.Conf))
	leader := p.first()
	stamp := func(in time.Duration) string { return time.Now().Add(in).UTC().Format("2006-01-02 15:04:05") }
	hours := func(n time.Duration) string { return time.Now().Add(n * time.Hour).UTC().Format(time.RFC3339) }
	post := func(at *server, path, body, key string) []byte {
		t.Helper()
		answer := p.until(at, http.MethodPost, path, body, key, func(status int, _ string) bool { return status == http.StatusCreated })
		_, text, _ := strings.Cut(answer, "\n")
		return []byte(text)
	}
	// The first is due at once; the second has its turn in 40 s, by the service that leads then.
	body := fmt.Sprintf(`{"npe":1,"duration":3000,"add":[%q,%q],"ahead":3600}`, stamp(time.Minute), stamp(time.Hour+40*time.Second))
	var said struct {
		Decision string
		Series   struct {
			ID    string
			Count int
		}
	}
	if err := json.Unmarshal(post(leader, "/v1/series", body, "series"), &said); err != nil || said.Decision != "accepted" || said.Series.Count != 1 {
		t.Fatalf("%v, %+v", err, said)
	}
	post(leader, "/v1/maintenance", fmt.Sprintf(`{"name":"disks","site":"lab","start":%q,"duration":3600}`, hours(3)), "maintenance")
	within := fmt.Sprintf(`{"npe":1,"duration":600,"ready":%q,"deadline":%q}`, hours(3), time.Now().Add(3*time.Hour+15*time.Minute).UTC().Format(time.RFC3339))
	refused := func(at *server, key string) {
		t.Helper()
		if said := string(post(at, "/v1/requests", within, key)); !strings.Contains(said, `"no_capacity"`) {
			t.Errorf("within maintenance is answered %s", said)
		}
	}
	refused(leader, "within")
	first := p.until(leader, http.MethodGet, "/v1/reservations/"+said.Series.ID+".1", "", "", has(http.StatusOK, `"charged_pe_seconds":4500`))
	follower := p.beside(leader)
	p.signal(leader, syscall.SIGKILL)
	p.until(follower, http.MethodGet, "/readyz", "", "", has(http.StatusOK, "ready"))
	refused(follower, "within, later")
	if again := p.until(follower, http.MethodGet, "/v1/reservations/"+said.Series.ID+".1", "", "", has(http.StatusOK, "")); !strings.Contains(again, `"charged_pe_seconds":4500`) || !strings.Contains(first, said.Series.ID) {
		t.Errorf("the first is %s, and was %s", again, first)
	}
	p.until(follower, http.MethodGet, "/v1/reservations/"+said.Series.ID+".2", "", "", has(http.StatusOK, `"charged_pe_seconds":4500`))
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if list := booked(t, cluster); len(list) == 2 {
			break
		} else if time.Since(began) > time.Minute {
			t.Fatalf("the cluster has %q; want both occurrences", list)
		}
	}
	p.until(follower, http.MethodGet, "/v1/maintenance", "", "", has(http.StatusOK, `"disks"`))
	p.check(follower)
}
