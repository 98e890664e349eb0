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
