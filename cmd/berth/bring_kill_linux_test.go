package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// A file gets from one Slurm to another in the time that was planned for it. The service is killed
// while it is on its way: what started goes on without it, the file has its name when it is whole,
// and the task that reads it runs once.
func TestKilledServiceBringsFilesOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two clusters")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can run tasks as their owners")
	}
	const owner = "games"
	who, err := user.Lookup(owner)
	if err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "bring") // which others may enter, as they may not that of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a late file of a task is no failure of the test
	for _, path := range []string{dir, filepath.Join(dir, "west"), filepath.Join(dir, "east")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o777); err != nil { //nolint:gosec // tasks of others write here
			t.Fatal(err)
		}
	}
	// The second call, which is that of the file itself, says that half of it is there, and waits for
	// the rest.
	begun, gate := filepath.Join(dir, "begun"), filepath.Join(dir, "gate")
	for _, fifo := range []string{begun, gate} {
		if err := syscall.Mkfifo(fifo, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(fifo, 0o666); err != nil { //nolint:gosec // tasks of others write here
			t.Fatal(err)
		}
	}
	script := `case $1 in *sha256) cp "$1" "$2"; exit ;; esac; head -c 3 "$1" > "$2"; echo begun > "$3/begun"; read rest < "$3/gate"; cp "$1" "$2"`
	west, east := slurmtest.Start(t, slurmtest.Options{Nodes: 1}), slurmtest.Start(t, slurmtest.Options{Nodes: 1})
	k := &killed{t: t, address: freeAddress(t), data: filepath.Join(t.TempDir(), "data"), config: filepath.Join(t.TempDir(), "sites.yaml")}
	k.a = &asker{url: "http://" + k.address, rng: rand.New(rand.NewPCG(18, 29)), tokens: map[string]string{}, pairs: map[string]int{}}
	config := fmt.Sprintf(`sites:
  - {name: west, adapter: {kind: slurm, conf: %q, every: 1s, run_as: owner}}
  - {name: east, adapter: {kind: slurm, conf: %q, every: 1s, run_as: owner}, link: {bandwidth: 8Mbit/s}}
transfers:
  - {from: west, to: east, command: [sh, -c, %q, sh, "{from}", "{to}", %q]}
uplink: 8Mbit/s
`, west.Conf, east.Conf, script, dir)
	if err := os.WriteFile(k.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	k.start()
	defer func() { k.kill() }()
	k.a.tokens[owner] = secretOf(k, owner)
	body := fmt.Sprintf(`{"id":"over","tasks":[
 {"id":"make","site":"west","seconds":60,"alpha":1,"command":["sh","-c","echo harbour > raw.txt"],"dir":"%s/west","outputs":["raw.txt"]},
 {"id":"use","site":"east","seconds":60,"alpha":1,"after":["make"],"read_bytes":[20000000],"command":["sh","-c","cat raw.txt >> read.txt; id -un >> read.txt"],"dir":"%s/east","inputs":["raw.txt"]}]}`, dir, dir)
	var status int
	var text string
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C { // both sites have to be seen first
		if status, text, err = k.a.plain(owner, http.MethodPost, "/v1/workflows", body, ""); err == nil && status == http.StatusCreated {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("status %d, %v: %s\n%s", status, err, text, k.log.String())
		}
	}
	w, _ := k.workflow("over")
	made, use := &w.Tasks[0], &w.Tasks[1]
	if length := use.PlannedEnd - use.PlannedStart; length != 60+20 || use.PlannedStart < made.PlannedEnd {
		t.Errorf("20 MB at 1 MB/s and a minute are planned as %d s, from %d s after what writes them", length, use.PlannedStart-made.PlannedEnd)
	}
	if _, err := os.ReadFile(begun); err != nil { // when half of the file is there
		t.Fatal(err)
	}
	k.kill()
	if got, err := os.ReadFile(filepath.Join(dir, "east", "raw.txt")); err == nil {
		t.Errorf("half a file %q has its name", got)
	}
	k.start()
	if err := os.WriteFile(gate, []byte("the rest\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; <-tick.C {
		if w, _ = k.workflow("over"); slices.Contains(overWorkflows, w.State) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v\n%s", w, k.log.String())
		}
	}
	read, err := os.ReadFile(filepath.Join(dir, "east", "read.txt"))
	if want := "harbour\n" + who.Username + "\n"; err != nil || w.State != "succeeded" || string(read) != want {
		t.Errorf("%s: read %q, %v; want %q: %+v", w.State, read, err, want, w.Tasks)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "east", "raw.txt")); err != nil || string(got) != "harbour\n" {
		t.Errorf("the file is %q, %v", got, err)
	}
	if !strings.Contains(text, `"decision":"promised"`) {
		t.Error(text)
	}
	k.kill()
	schedule := filepath.Join(dir, "schedule.jsonl")
	for _, args := range [][]string{{"journal", "export", "--data", k.data, "--form", "schedule", "--out", schedule}, {"check", schedule, "--pes", "1"}} {
		var out, messages bytes.Buffer
		if code := run(args, strings.NewReader(""), &out, &messages); code != 0 {
			lines, _ := os.ReadFile(schedule) // for the message
			t.Errorf("%v: exit %d: %s%s\n%s", args, code, &out, &messages, lines)
		}
	}
}

// secretOf makes a token of a user.
func secretOf(k *killed, name string) string {
	k.t.Helper()
	_, text, err := k.a.plain("operator", http.MethodPost, "/v1/tokens", fmt.Sprintf(`{"user":%q,"role":"user"}`, name), "")
	_, text, _ = strings.Cut(text, "\n")
	var made form.Token
	if err == nil {
		err = json.Unmarshal([]byte(text), &made)
	}
	if err != nil || made.Secret == "" {
		k.t.Fatalf("no token: %v: %s", err, text)
	}
	return made.Secret
}
