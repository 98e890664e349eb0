package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// The script of the examples, submitted as an array to a real Slurm, makes shards
// that are the single run when they are merged, byte for byte; a task that is
// missing is named, and can be submitted again alone.
func TestLabAsASlurmArray(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 2})
	folder := t.TempDir()
	if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../examples/lab-array.sh")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(folder, "berth")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	log, err := filepath.Abs(firstLight)
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"--workload", log, "--sweep", "policy=all", "--sweep", "bind=early,late", "--replications", "3"}
	environment := append(os.Environ(), "SLURM_CONF="+cluster.Conf, "BERTH="+binary, "TZ=UTC")
	command := func(env []string, name string, args ...string) (string, error) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = folder, env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	submit := func(env []string, tasks string) {
		t.Helper()
		// The nodes of the test are small: less memory than the script asks for.
		args := append([]string{"--wait", "--array=" + tasks, "--mem=256", script}, words...)
		stuck := time.AfterFunc(2*time.Minute, func() {
			state, _ := command(environment, "squeue")
			t.Logf("still not done: %s", state)
			_, _ = command(environment, "scancel", "--name=berth-lab")
		})
		defer stuck.Stop()
		if out, err := command(env, "sbatch", args...); err != nil {
			logs, _ := filepath.Glob(filepath.Join(folder, "lab-*.log"))
			for _, path := range logs {
				text, _ := os.ReadFile(path)
				out += "\n" + filepath.Base(path) + ": " + string(text)
			}
			t.Fatalf("%v: %s", err, out)
		}
	}
	submit(environment, "1-4")
	parts, err := filepath.Glob(filepath.Join(folder, "part-*.jsonl"))
	if err != nil || len(parts) != 4 {
		t.Fatalf("%d files, %v", len(parts), err)
	}
	if out, err := command(environment, binary, slices.Concat([]string{"lab"}, words, []string{"--out", "single"})...); err != nil {
		t.Fatal(out)
	}
	merged := func(out string, parts ...string) (string, error) {
		t.Helper()
		return command(environment, binary, slices.Concat([]string{"lab", "merge"}, parts, []string{"--out", out})...)
	}
	if out, err := merged("merged", parts...); err != nil {
		t.Fatal(out)
	}
	equalFolders(t, filepath.Join(folder, "single"), filepath.Join(folder, "merged"))

	if err := os.Remove(parts[2]); err != nil {
		t.Fatal(err)
	}
	if out, err := merged("again", parts[0], parts[1], parts[3]); err == nil || !strings.Contains(out, "of 42 measurements are in none of the files") {
		t.Errorf("without a shard: %v, %s", err, out)
	}
	submit(append(environment, "SHARDS=4"), "3")
	if out, err := merged("again", parts...); err != nil {
		t.Fatal(out)
	}
	equalFolders(t, filepath.Join(folder, "single"), filepath.Join(folder, "again"))
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
