package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

var bringRounds = flag.Int("bring.rounds", 10, "how many times TestKilledServiceBringsEveryFileOnce kills services")

// carried is a service in front of two Slurms that share no folder, which is killed, and the owner of
// workflows over both.
type carried struct {
	*killed
	dir   string // with a folder for each site
	owner string
}

// newCarried starts both, with two nodes each; a shell runs script to bring a file, with the paths of both and the folder.
func newCarried(t *testing.T, script string, nodes int) *carried {
	t.Helper()
	if testing.Short() {
		t.Skip("starts two clusters")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can run tasks as their owners")
	}
	const owner = "games"
	if _, err := user.Lookup(owner); err != nil {
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
	west, east := slurmtest.Start(t, slurmtest.Options{Nodes: nodes}), slurmtest.Start(t, slurmtest.Options{Nodes: nodes})
	k := &killed{t: t, address: freeAddress(t), data: filepath.Join(t.TempDir(), "data"), config: filepath.Join(t.TempDir(), "sites.yaml")}
	k.a = &asker{url: "http://" + k.address, rng: rand.New(rand.NewPCG(18, 29)), tokens: map[string]string{}, pairs: map[string]int{}}
	config := fmt.Sprintf(`sites:
  - {name: west, adapter: {kind: slurm, conf: %q, every: 1s, run_as: owner}, link: {bandwidth: 8Mbit/s}}
  - {name: east, adapter: {kind: slurm, conf: %q, every: 1s, run_as: owner}, link: {bandwidth: 8Mbit/s}}
transfers:
  - {from: west, to: east, command: [sh, -c, %q, sh, "{from}", "{to}", %q]}
  - {from: east, to: west, command: [sh, -c, %q, sh, "{from}", "{to}", %q]}
uplink: 8Mbit/s
limits:
  - {role: user, share: none}
`, west.Conf, east.Conf, script, dir, script, dir)
	if err := os.WriteFile(k.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	k.start()
	t.Cleanup(func() { k.kill() })
	k.a.tokens[owner] = secretOf(k, owner)
	return &carried{k, dir, owner}
}

// submit has a workflow promised, once both sites have been seen.
func (k *carried) submit(body, key string) {
	k.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		status, text, err := k.a.plain(k.owner, http.MethodPost, "/v1/workflows", body, key)
		if err == nil && status == http.StatusCreated {
			if !strings.Contains(text, `"decision":"promised"`) {
				k.t.Fatal(text)
			}
			return
		}
		if time.Now().After(end) {
			k.t.Fatalf("status %d, %v: %s\n%s", status, err, text, k.log.String())
		}
	}
}

// over waits until a workflow is over, and returns it.
func (k *carried) over(id string, within time.Duration) form.Workflow {
	k.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); ; <-tick.C {
		w, known := k.workflow(id)
		if slices.Contains(overWorkflows, w.State) {
			return w
		}
		if !known || time.Now().After(end) {
			k.t.Fatalf("%s, known: %t: %+v\n%s", id, known, w, k.log.String())
		}
	}
}

// account kills the service and fails the test unless its journal is a valid schedule.
func (k *carried) account(pes int) {
	k.t.Helper()
	k.kill()
	schedule := filepath.Join(k.dir, "schedule.jsonl")
	for _, args := range [][]string{{"journal", "export", "--data", k.data, "--form", "schedule", "--out", schedule}, {"check", schedule, "--pes", strconv.Itoa(pes)}} {
		var out, messages bytes.Buffer
		if code := run(args, strings.NewReader(""), &out, &messages); code != 0 {
			lines, _ := os.ReadFile(schedule) // for the message
			k.t.Errorf("%v: exit %d: %s%s\n%s", args, code, &out, &messages, lines)
		}
	}
}

// A file gets from one Slurm to another in the time that was planned for it. The service is killed
// while it is on its way: what started goes on without it, the file has its name when it is whole,
// and the task that reads it runs once.
func TestKilledServiceBringsFilesOnce(t *testing.T) {
	t.Parallel()
	// The second call, which is that of the file itself, says that half of it is there, and waits for
	// the rest.
	k := newCarried(t, `case $1 in *sha256) cp "$1" "$2"; exit ;; esac; head -c 3 "$1" > "$2"; echo begun > "$3/begun"; read rest < "$3/gate"; cp "$1" "$2"`, 1)
	begun, gate := filepath.Join(k.dir, "begun"), filepath.Join(k.dir, "gate")
	for _, fifo := range []string{begun, gate} {
		if err := syscall.Mkfifo(fifo, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(fifo, 0o666); err != nil { //nolint:gosec // tasks of others write here
			t.Fatal(err)
		}
	}
	k.submit(fmt.Sprintf(`{"id":"over","tasks":[
 {"id":"make","site":"west","seconds":60,"alpha":1,"command":["sh","-c","echo harbour > raw.txt"],"dir":"%[1]s/west","outputs":["raw.txt"]},
 {"id":"use","site":"east","seconds":60,"alpha":1,"after":["make"],"read_bytes":[20000000],"command":["sh","-c","cat raw.txt >> read.txt; id -un >> read.txt"],"dir":"%[1]s/east","inputs":["raw.txt"]}]}`, k.dir), "")
	w, _ := k.workflow("over")
	made, use := &w.Tasks[0], &w.Tasks[1]
	if length := use.PlannedEnd - use.PlannedStart; length != 60+20 || use.PlannedStart < made.PlannedEnd {
		t.Errorf("20 MB at 1 MB/s and a minute are planned as %d s, from %d s after what writes them", length, use.PlannedStart-made.PlannedEnd)
	}
	half, err := os.OpenFile(begun, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = half.Close() }() // only read from
	if err := half.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := half.Read(make([]byte, 1)); err != nil { // when half of the file is there
		w, _ := k.workflow("over")
		t.Fatalf("nothing is brought: %v: %+v\n%s", err, w, k.log.String())
	}
	k.kill()
	if got, err := os.ReadFile(filepath.Join(k.dir, "east", "raw.txt")); err == nil {
		t.Errorf("half a file %q has its name", got)
	}
	k.start()
	if err := os.WriteFile(gate, []byte("the rest\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w = k.over("over", 2*time.Minute)
	read, err := os.ReadFile(filepath.Join(k.dir, "east", "read.txt"))
	if want := "harbour\n" + k.owner + "\n"; err != nil || w.State != "succeeded" || string(read) != want {
		t.Errorf("%s: read %q, %v; want %q: %+v", w.State, read, err, want, w.Tasks)
	}
	if got, err := os.ReadFile(filepath.Join(k.dir, "east", "raw.txt")); err != nil || string(got) != "harbour\n" {
		t.Errorf("the file is %q, %v", got, err)
	}
	k.account(1)
}

// The service is killed again and again while files are on their way between two Slurms, in every
// second round when one has just begun to move. Each task runs once, each file is moved once, after it
// was written and before it is read, and no workflow that was answered is lost.
func TestKilledServiceBringsEveryFileOnce(t *testing.T) {
	t.Parallel()
	const services = 2 // at once, for they wait most of the time
	for service := range services {
		t.Run(strconv.Itoa(service+1), func(t *testing.T) {
			t.Parallel()
			bringsEveryFileOnce(t, (*bringRounds+service)/services, rand.New(rand.NewPCG(18, uint64(service))))
		})
	}
}

func bringsEveryFileOnce(t *testing.T, rounds int, rng *rand.Rand) {
	k := newCarried(t, `case $1 in *sha256) cp "$1" "$2"; exit ;; esac; echo "moving ${1##*/}" >> "$3/told"; head -c 3 "$1" > "$2"; sleep 0.5; cp "$1" "$2"; echo "moved ${1##*/}" >> "$3/told"`, 2)
	told := filepath.Join(k.dir, "told")
	if err := os.WriteFile(told, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(told, 0o666); err != nil { //nolint:gosec // tasks of others write here
		t.Fatal(err)
	}
	lines := func() []string {
		text, err := os.ReadFile(told)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	task := func(name, at, does, rest string) string {
		return fmt.Sprintf(`{"id":%q,"site":%q,"seconds":60,"alpha":1,"command":["sh","-ec",%q],"dir":"%s/%s"%s}`, name, at, does+"; echo "+name+" >> "+told, k.dir, at, rest)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	onTheirWay := 0
	var answered []string
	for round := range rounds {
		id := fmt.Sprintf("w%02d", round)
		moves := strings.Count(strings.Join(lines(), "\n"), "moving ")
		body := fmt.Sprintf(`{"id":%q,"tasks":[%s,%s,%s]}`, id,
			task(id+".make", "west", "echo to-"+id+" > "+id+".to", `,"outputs":["`+id+`.to"]`),
			task(id+".use", "east", `[ "$(cat `+id+`.to)" = to-`+id+` ]; echo back-`+id+" > "+id+".back", `,"after":["`+id+`.make"],"read_bytes":[1000000],"inputs":["`+id+`.to"],"outputs":["`+id+`.back"]`),
			task(id+".add", "west", `[ "$(cat `+id+`.back)" = back-`+id+" ]", `,"after":["`+id+`.use"],"inputs":["`+id+`.back"]`))
		k.submit(body, "key-"+id)
		k.submit(body, "key-"+id) // under its key it is the same
		answered = append(answered, id)
		if round%2 == 0 {
			for end := time.Now().Add(2 * time.Minute); strings.Count(strings.Join(lines(), "\n"), "moving ") == moves; <-tick.C {
				if time.Now().After(end) {
					t.Fatalf("nothing moves in round %d: %q\n%s", round, lines(), k.log.String())
				}
			}
		} else {
			time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond) // at a moment that chance chooses
		}
		k.kill()
		if now := strings.Join(lines(), "\n"); strings.Count(now, "moving ") > strings.Count(now, "moved ") {
			onTheirWay++
		}
		k.start()
	}
	for _, id := range answered {
		if w := k.over(id, 5*time.Minute); w.State != "succeeded" {
			t.Errorf("%s is %s: %+v\n%s", id, w.State, w.Tasks, k.log.String())
		}
	}
	all := lines()
	for _, id := range answered {
		got := slices.DeleteFunc(slices.Clone(all), func(line string) bool { return !strings.Contains(line, id) })
		want := []string{id + ".make", "moving " + id + ".to", "moved " + id + ".to", id + ".use", "moving " + id + ".back", "moved " + id + ".back", id + ".add"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if onTheirWay < rounds/3 {
		t.Errorf("a file was on its way in %d of %d rounds", onTheirWay, rounds)
	}
	t.Logf("%d workflows, killed %d times with a file on its way", len(answered), onTheirWay)
	k.account(2)
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
