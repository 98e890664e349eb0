package slurm_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// What Slurm may answer badly, and the tests that show what follows: docs/sites/slurm-tests.md.

// commandsOf writes a folder of commands, each the same shell script with the name of the real one in $real.
func commandsOf(t *testing.T, script string) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"scontrol", "squeue", "scancel", "sdiag", "sacctmgr", "sbatch"} {
		where, _ := exec.LookPath(name) // not needed by most
		slurmtest.Script(t, filepath.Join(bin, name), fmt.Sprintf("#!/bin/sh\nreal=%s\n%s\n", where, script))
	}
	return bin
}

// A command that misbehaves costs no more than its time, is told in words, and leaves open what it may have done.
func TestCommandsThatMisbehave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		kind   site.Kind
		words  string
		doubt  bool
	}{
		"hangs for ever":       {"trap '' TERM INT HUP; while :; do sleep 1; done", site.Unreachable, "did not end", true},
		"leaves a child":       {"sleep 5 &\nexec sleep 5", site.Unreachable, "did not end", true},
		"hangs, and says why":  {"echo waiting for the key >&2; exec sleep 60", site.Unreachable, "did not end, and said: waiting for the key", true},
		"writes without end":   {"exec yes", site.Unreachable, "wrote more than 1048576 bytes", true},
		"complains at length":  {"head -c 300000 /dev/zero | tr '\\0' x >&2; exit 1", site.Invalid, "xxx", false},
		"dies of a signal":     {"kill -9 $$", site.Unreachable, "signal: killed", true},
		"says nothing":         {"exit 0", site.Invalid, "cannot read what", true},
		"says another thing":   {"echo '<html>Wartung</html>'", site.Invalid, "cannot read what", true},
		"fails in German":      {"echo 'Zugriff verweigert' >&2; exit 1", site.Invalid, "Zugriff verweigert", false},
		"fails without a word": {"exit 3", site.Invalid, "exit code 3 and nothing said", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := slurm.Options{Site: siteName, Bin: commandsOf(t, c.script), Timeout: 2 * time.Second, Exec: slurm.Host{Most: 1 << 20}}
			if name == "writes without end" {
				o.Timeout = time.Minute // it is cut off long before
			}
			began := time.Now()
			_, err := slurm.New(o).Observe(t.Context())
			if site.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.words) || len(err.Error()) > 2000 {
				t.Errorf("%.300v, a %v; want a %v with %q", err, site.KindOf(err), c.kind, c.words)
			}
			if took := time.Since(began); took > 50*time.Second {
				t.Errorf("it took %v", took)
			}
			got, err := slurm.New(o).Reserve(t.Context(), far(t, 1, "n1"))
			if (got.Verdict == site.Doubt) != c.doubt || err == nil {
				t.Errorf("reserve: %+v %.300v, want doubt %t", got, err, c.doubt)
			}
		})
	}
}

// Commands of ten seconds are within the time of a command, so a look takes as long as it takes.
func TestSlowCommandsAreWaitedFor(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 1})
	o := options(cluster)
	o.Bin = commandsOf(t, "sleep 1\nexec $real \"$@\"")
	s := slurm.New(o)
	began := time.Now()
	mustReserve(t, s, far(t, 1, "n1"), site.Made)
	if state := observe(t, s); len(state.Ours) != 1 || time.Since(began) < 5*time.Second {
		t.Errorf("%+v after %v", state.Ours, time.Since(began))
	}
}

// The language, the zone and the forms that the service was started with change nothing of what it reads.
func TestLanguageAndZoneOfTheService(t *testing.T) { // not parallel: it changes the environment
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 1})
	want := far(t, 1, "n1")
	mustReserve(t, slurm.New(options(cluster)), want, site.Made)
	for key, value := range map[string]string{
		"TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8", "SLURM_TIME_FORMAT": "relative", "SQUEUE_FORMAT": "%i", "SQUEUE_FORMAT2": "JobID", "SQUEUE_STATES": "RUNNING",
		"SINFO_FORMAT": "%N", "SLURM_CLUSTERS": "other", "SQUEUE_USERS": "nobody", "SCONTROL_OPTIONS": "x",
	} {
		t.Setenv(key, value)
	}
	s := slurm.New(options(cluster))
	mustReserve(t, s, want, site.Already)
	state := observe(t, s)
	if skew := state.Skew; len(state.Ours) != 1 || state.Ours[0].Start != want.Start || skew > 2 || skew < -2 {
		t.Errorf("%+v, skew %d", state.Ours, skew)
	}
}

// Nodes may be called what hosts may be called.
func TestOddNodeNames(t *testing.T) {
	t.Parallel()
	names := []string{"odd-1.rack_2", "0x7", "n1x", "N1", "a.b-c"}
	var lines strings.Builder
	for i, name := range names {
		fmt.Fprintf(&lines, "NodeName=%s NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d CPUs=4 RealMemory=4096 Feature=f-%d.x State=UNKNOWN\n", name, i+1, i)
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 1, Extra: lines.String()})
	s := slurm.New(options(cluster))
	d, err := s.Describe(t.Context())
	if err != nil || len(d.Nodes) != 1+len(names) {
		t.Fatalf("%+v %v", d, err)
	}
	for i, name := range names {
		want := far(t, i, name)
		want.Shares = []site.Share{{Node: name}}
		mustReserve(t, s, want, site.Made)
		mustReserve(t, s, want, site.Already)
	}
	if state := observe(t, s); len(state.Ours) != len(names) || len(state.Nodes) != 1+len(names) {
		t.Errorf("%+v", state.Ours)
	}
}

// Without its slurm.conf no command gets anywhere, and says which file; when it is back all goes on.
func TestConfGone(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 1})
	o := options(cluster)
	o.Timeout = 2 * time.Second
	s := slurm.New(o)
	want := far(t, 1, "n1")
	mustReserve(t, s, want, site.Made)
	away := cluster.Conf + ".away"
	if err := os.Rename(cluster.Conf, away); err != nil {
		t.Fatal(err)
	}
	_, err := s.Observe(t.Context())
	if site.KindOf(err) != site.Unreachable || !strings.Contains(err.Error(), cluster.Conf) {
		t.Errorf("%v, a %v", err, site.KindOf(err))
	}
	if found := s.Doctor(t.Context()); len(found) != 1 || found[0].Level != site.Bad || !strings.Contains(found[0].Text, cluster.Conf) {
		t.Errorf("%+v", found)
	}
	if err := os.Rename(away, cluster.Conf); err != nil {
		t.Fatal(err)
	}
	mustReserve(t, slurm.New(options(cluster)), want, site.Already)
}

// Slurm drops the reservations of a partition that is called otherwise after a restart. What is asked for in its old name
// is refused for good then, with what to do.
func TestPartitionRenamed(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 2, Partitions: "PartitionName=old Nodes=ALL Default=YES MaxTime=1:00:00 State=UP"})
	s := slurm.New(options(cluster))
	want, next := far(t, 1, "n1"), far(t, 2, "n2")
	want.Partition, next.Partition = "old", "old"
	mustReserve(t, s, want, site.Made)
	if !eventually(time.Minute, func() bool { return cluster.Saved(string(want.Name)) }) {
		t.Fatal("the reservation is not saved")
	}
	text, err := os.ReadFile(cluster.Conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cluster.Conf, []byte(strings.ReplaceAll(string(text), "PartitionName=old ", "PartitionName=new ")), 0o644); err != nil { //nolint:gosec // all daemons read it
		t.Fatal(err)
	}
	cluster.KillController()
	cluster.RestartController()
	state := observe(t, s)
	if len(state.Partitions) != 1 || state.Partitions[0].Name != "new" {
		t.Errorf("%+v", state.Partitions)
	}
	if len(state.Ours) > 0 {
		t.Errorf("%+v", state.Ours)
	}
	for _, r := range []site.Reservation{want, next} {
		got, err := s.Reserve(t.Context(), r)
		if site.KindOf(err) != site.NotFound || !site.IsFinal(err) || !strings.Contains(err.Error(), "the partitions of the cluster have changed") {
			t.Errorf("%+v %v, a %v", got, err, site.KindOf(err))
		}
	}
}

// A version before, between or after those that are known is named, and what it answers in forms that last is read.
func TestOtherVersionsAreNamed(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 1})
	for _, version := range []string{"20.11.9", "23.11.4", "27.11.1"} {
		o := options(cluster)
		o.Bin = commandsOf(t, `$real "$@" | sed 's/^SLURM_VERSION .*/SLURM_VERSION = `+version+`/'`)
		s := slurm.New(o)
		if f := finding(t, s, "version"); f.Level != site.Warning || f.Text != "Slurm "+version || !strings.Contains(f.Hint, "tested with Slurm 22.05, 24.11, 26.05") {
			t.Errorf("%+v", f)
		}
		if d, err := s.Describe(t.Context()); err != nil || d.Version != version {
			t.Errorf("%+v %v", d, err)
		}
	}
}
