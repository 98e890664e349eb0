package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// The script of the examples, submitted as an array to a real Slurm, makes shards
// that are the single run when they are merged, byte for byte; a task that is
// missing is named, and can be submitted again alone.
func TestLabAsASlurmArray(t *testing.T) {
	t.Parallel()
	c := startLab(t, 2)
	log, err := filepath.Abs(firstLight)
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"--workload", log, "--sweep", "policy=all", "--sweep", "bind=early,late", "--replications", "3"}
	submit := func(tasks string) {
		t.Helper()
		// The nodes of the test are small: less memory than the script asks for.
		args := append([]string{"--wait", "--array=" + tasks, "--mem=256", c.script}, words...)
		stuck := time.AfterFunc(2*time.Minute, func() {
			state, _ := c.run("squeue")
			t.Logf("still not done: %s", state)
			_, _ = c.run("scancel", "--name=berth-lab")
		})
		defer stuck.Stop()
		if out, err := c.run("sbatch", args...); err != nil {
			logs, _ := filepath.Glob(filepath.Join(c.folder, "lab-*.log"))
			for _, path := range logs {
				text, _ := os.ReadFile(path)
				out += "\n" + filepath.Base(path) + ": " + string(text)
			}
			t.Fatalf("%v: %s", err, out)
		}
	}
	submit("1-4")
	parts, err := filepath.Glob(filepath.Join(c.folder, "part-*.jsonl"))
	if err != nil || len(parts) != 4 {
		t.Fatalf("%d files, %v", len(parts), err)
	}
	if out, err := c.run(c.binary, slices.Concat([]string{"lab"}, words, []string{"--out", "single"})...); err != nil {
		t.Fatal(out)
	}
	merged := func(out string, parts ...string) (string, error) {
		t.Helper()
		return c.run(c.binary, slices.Concat([]string{"lab", "merge"}, parts, []string{"--out", out})...)
	}
	if out, err := merged("merged", parts...); err != nil {
		t.Fatal(out)
	}
	equalFolders(t, filepath.Join(c.folder, "single"), filepath.Join(c.folder, "merged"))

	if err := os.Remove(parts[2]); err != nil {
		t.Fatal(err)
	}
	if out, err := merged("again", parts[0], parts[1], parts[3]); err == nil || !strings.Contains(out, fmt.Sprintf("of %d measurements are in none of the files", 6*len(policy.Placements))) {
		t.Errorf("without a shard: %v, %s", err, out)
	}
	c.environment = append(c.environment, "SHARDS=4")
	submit("3")
	if out, err := merged("again", parts...); err != nil {
		t.Fatal(out)
	}
	equalFolders(t, filepath.Join(c.folder, "single"), filepath.Join(c.folder, "again"))
}

// A task that Slurm tells to stop, as it does before the time is over, ends with
// what it has finished in its file, and goes on from there when it is submitted
// again.
func TestSlurmStopsAShard(t *testing.T) {
	t.Parallel()
	c := startLab(t, 1, "SHARDS=1")
	command := func(name string, args ...string) string {
		t.Helper()
		out, err := c.run(name, args...)
		if err != nil && name != "sbatch" {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		return out
	}
	words := []string{"--array=1", "--mem=256", c.script, "--workload", "lublin:lanl-cm5", "--jobs", "3000", "--sweep", "policy=all", "--replications", "20"}
	command("sbatch", words...)
	part := filepath.Join(c.folder, "part-1.jsonl")
	lines := func() int {
		kept, _ := os.ReadFile(part) // not there yet, or in the midst of a line
		return bytes.Count(kept, []byte("\n")) - 1
	}
	waitFor(t, "a first run", func() bool { return lines() >= 1 })
	command("scancel", "--batch", "--signal=TERM", "--name=berth-lab")
	waitFor(t, "the end of the task", func() bool { return command("squeue", "--noheader") == "" })
	stopped := lines()
	if stopped < 1 || stopped >= 20*len(policy.Placements) {
		t.Fatalf("%d runs are kept", stopped)
	}
	logs, err := filepath.Glob(filepath.Join(c.folder, "lab-*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %q, %v", logs, err)
	}
	said, err := os.ReadFile(logs[0])
	if err != nil || !strings.Contains(string(said), "berth: interrupted; finished runs are in part-1.jsonl; the same command goes on from there\n") {
		t.Errorf("the task said %q, %v", said, err)
	}
	before, err := os.ReadFile(part)
	if err != nil {
		t.Fatal(err)
	}
	command("sbatch", append([]string{"--wait"}, words...)...)
	after, err := os.ReadFile(part)
	if err != nil || !bytes.HasPrefix(after, before) || lines() != 20*len(policy.Placements) {
		t.Errorf("%d runs are kept when it has gone on, and those of before are there: %v; %v", lines(), bytes.HasPrefix(after, before), err)
	}
	command(c.binary, "lab", "merge", part)
}

// labCluster is a Slurm, and a folder with a berth for the script of the examples.
type labCluster struct {
	folder, script, binary string
	environment            []string // of commands
}

func startLab(t *testing.T, nodes int, environment ...string) *labCluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: nodes})
	c := &labCluster{folder: t.TempDir()}
	if err := os.Chmod(filepath.Dir(c.folder), 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.script, err = filepath.Abs("../../examples/lab-array.sh"); err != nil {
		t.Fatal(err)
	}
	c.binary = filepath.Join(c.folder, "berth")
	if out, err := exec.Command("go", "build", "-o", c.binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c.environment = append(append(os.Environ(), "SLURM_CONF="+cluster.Conf, "BERTH="+c.binary, "TZ=UTC"), environment...)
	return c
}

// run runs a command in the folder, for three minutes at most.
func (c *labCluster) run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = c.folder, c.environment
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// waitFor asks until it is so.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	over := time.After(2 * time.Minute)
	for !so() {
		select {
		case <-ticks.C:
		case <-over:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// equalFolders wants two folders of the same files with the same bytes.
func equalFolders(t *testing.T, a, b string) {
	t.Helper()
	files := 0
	for _, path := range []string{a, b} {
		entries, err := os.ReadDir(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			one, err := os.ReadFile(filepath.Join(a, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			two, err := os.ReadFile(filepath.Join(b, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if files++; !bytes.Equal(one, two) {
				t.Errorf("%s differs", entry.Name())
			}
		}
	}
	if files < 20 {
		t.Errorf("only %d files", files)
	}
}
