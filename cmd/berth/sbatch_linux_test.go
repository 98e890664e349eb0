package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/withparent"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// habits is a real cluster with a service in front of it, and users of two nodes: one has the service's socket, the other its address and
// the site's munge.
type habits struct {
	t       *testing.T
	cluster *slurmtest.Cluster
	dir     string
	path    string   // PATH of users
	servers []string // of the two nodes
}

// siteFilter is the filter of a site that had one before, with the line of the documents.
const siteFilter = `
function slurm_cli_setup_defaults(options, early) return slurm.SUCCESS end
function slurm_cli_pre_submit(options, offset)
  if options.comment == "forbidden" then slurm.log_error("the site forbids it") return slurm.ERROR end
  return slurm.SUCCESS
end
function slurm_cli_post_submit(offset, job, step) return slurm.SUCCESS end
pcall(dofile, "%s")
`

func newHabits(t *testing.T) *habits {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become other users")
	}
	needsMunge(t)
	dir, berth := openFolder(t)
	filter, err := os.ReadFile("../../examples/cli_filter.lua")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "cli_filter.lua"), filter, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := slurmtest.Start(t, slurmtest.Options{
		Nodes: 4, Extra: "CliFilterPlugins=lua", Files: map[string]string{"cli_filter.lua": fmt.Sprintf(siteFilter, filepath.Join(dir, "cli_filter.lua"))},
	})
	h := &habits{t: t, cluster: c, dir: dir}
	socket := filepath.Join(filepath.Dir(filepath.Dir(c.Conf)), "run", "munge.socket")
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"munge", "unmunge"} {
		command, err := exec.LookPath(name)
		if err != nil {
			command = "/usr/bin/" + name
		}
		program(t, filepath.Join(bin, name), "#!/bin/sh\nexec "+command+" --socket="+socket+" \"$@\"\n")
	}
	h.path = bin + ":" + dir + ":" + os.Getenv("PATH")
	listen := freeAddress(t)
	h.servers = []string{"unix://" + dir + "/berth.sock", "http://" + listen}
	config := filepath.Join(dir, "berth.yaml")
	text := fmt.Sprintf("sites: [{name: lab, adapter: {kind: slurm, conf: %s, every: 1s}}]\nservice: {data: %s/data, listen: %s, socket: %[2]s/berth.sock, munge: lab}\n", c.Conf, dir, listen)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), berth, "serve", "--config", config)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.SysProcAttr = &log, &log, dir, withparent.Attr()
	cmd.Env = append(os.Environ(), "PATH="+h.path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
	})
	h.until(func() bool {
		out, _ := h.as(0, 0, nil, "berth", "sites")
		return strings.Contains(out, " ok ")
	}, "the service takes requests")
	return h
}

// as runs a command as a user of this number on one of the nodes, and returns what it wrote and its exit code.
func (h *habits) as(uid, node int, env []string, command ...string) (string, int) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), longest)
	defer cancel()
	id := fmt.Sprint(uid)
	cmd := exec.CommandContext(ctx, "setpriv", append([]string{"--reuid=" + id, "--regid=" + id, "--clear-groups"}, command...)...)
	cmd.Env = append([]string{"PATH=" + h.path, "HOME=/nonexistent", "TZ=UTC", "SLURM_CONF=" + h.cluster.Conf, serverVar + "=" + h.servers[node]}, env...)
	cmd.Dir = "/tmp"
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		h.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (h *habits) until(holds func() bool, what string) {
	h.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(longest); !holds(); <-tick.C {
		if time.Now().After(end) {
			h.t.Fatalf("in vain: %s", what)
		}
	}
}

// script writes a script that every user can read and run.
func (h *habits) script(name, text string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	program(h.t, path, text)
	return path
}

// job returns what Slurm shows of the job that a command has handed in.
func (h *habits) job(out string) string {
	h.t.Helper()
	id := regexp.MustCompile(`(?m)(?:^|batch job |^job |job allocation )(\d+)$`).FindStringSubmatch(out)
	if id == nil {
		h.t.Fatalf("no job was handed in:\n%s", out)
	}
	shown, err := h.cluster.Command("scontrol", "show", "job", "-o", id[1])
	if err != nil {
		h.t.Fatalf("%v: %s", err, shown)
	}
	return shown
}

var promisedID = regexp.MustCompile(`reservation (\w+) is promised`)

// Three users on two nodes keep their habits, none with a token: they reserve, submit, use sbatch with the filter and without, watch and
// release, each in reservations of their own alone.
func TestThreeUsersWithoutATokenInFrontOfSlurm(t *testing.T) {
	t.Parallel()
	h := newHabits(t)
	script := h.script("job.sh", "#!/bin/sh\n#SBATCH -t 1 -o /dev/null\ntrue\n")
	asking := h.script("asking.sh", "#!/bin/sh\n#SBATCH -t 1 -o /dev/null\n#BERTH --deadline=\"now+2h\" --no-show=20m\ntrue\n")
	users := []struct {
		uid, node int
		name, way string
	}{{1, 0, "daemon", "socket"}, {2, 1, "bin", "munge"}, {3, 1, "sys", "munge"}}
	of := map[string][]string{}
	for _, u := range users {
		run := func(want int, command ...string) string {
			t.Helper()
			out, code := h.as(u.uid, u.node, nil, command...)
			if code != want {
				t.Fatalf("%s %q: exit %d, want %d\n%s", u.name, command, code, want, out)
			}
			return out
		}
		if out := run(0, "berth", "whoami"); !strings.HasPrefix(out, u.name+", user, at ") || !strings.Contains(out, map[string]string{"socket": "unix://", "munge": "by a credential of munge"}[u.way]) {
			t.Errorf("whoami: %s", out)
		}
		out := run(0, "berth", "reserve", "-n", "1", "-t", "20m", "--deadline", "now+3h")
		id := regexp.MustCompile(`reservation (\w+) `).FindStringSubmatch(out)[1]
		of[u.name] = append(of[u.name], id)
		for _, way := range [][]string{
			{"berth", "submit", "--reservation", id, "--limit", "1m", "--out", "/dev/null", script},
			{"berth", "sbatch", "--deadline=now+2h", "-N1", script},
			{"sbatch", "--comment=berth:deadline=now+2h", "-N1", script},
			{"sbatch", asking},
		} {
			out := run(0, way...)
			if made := promisedID.FindStringSubmatch(out); made != nil {
				of[u.name] = append(of[u.name], made[1])
			} else if way[1] != "submit" {
				t.Errorf("%q: no promise:\n%s", way, out)
			}
			shown := h.job(out)
			if !strings.Contains(shown, "UserId="+u.name+"(") || !strings.Contains(shown, "Reservation=berth_lab_") {
				t.Errorf("%s %q:\n%s", u.name, way, shown)
			}
		}
		if shown := h.job(run(0, "sbatch", script)); strings.Contains(shown, "Reservation=") {
			t.Errorf("a job that asks for nothing has a reservation:\n%s", shown)
		}
	}
	for i, u := range users {
		other := users[(i+1)%len(users)]
		if len(of[u.name]) != 4 {
			t.Fatalf("%s has %v", u.name, of[u.name])
		}
		for _, id := range of[u.name] {
			if out, code := h.as(u.uid, u.node, nil, "berth", "show", id); code != 0 {
				t.Errorf("%s, show: exit %d\n%s", u.name, code, out)
			}
		}
		if out, code := h.as(other.uid, other.node, nil, "berth", "release", of[u.name][0]); code != exitNotFound && code != exitDenied {
			t.Errorf("%s releases a reservation of %s: exit %d\n%s", other.name, u.name, code, out)
		}
		// What is watched ends with the release.
		watched := make(chan string, 1)
		go func() {
			out, code := h.as(u.uid, u.node, nil, "berth", "watch", of[u.name][0])
			watched <- fmt.Sprint(code, out)
		}()
		for _, id := range of[u.name] {
			if out, code := h.as(u.uid, u.node, nil, "berth", "release", id); code != 0 {
				t.Errorf("%s, release: exit %d\n%s", u.name, code, out)
			}
		}
		if seen := <-watched; !strings.HasPrefix(seen, "0") {
			t.Errorf("%s watches: %s", u.name, seen)
		}
	}
	h.until(func() bool {
		out, err := h.cluster.Command("scontrol", "show", "reservation", "-o")
		return err == nil && !strings.Contains(out, "berth_lab_")
	}, "nothing is left in Slurm")
}

// The filter leaves alone what does not ask for Berth, and a job that asks is handed in with its promise or not at all, with a reason: whether
// Berth refuses, is not there, does not answer, or the filter itself is gone.
func TestFilterOfSlurmsCommandsHarmsNoSite(t *testing.T) {
	t.Parallel()
	h := newHabits(t)
	script := h.script("job.sh", "#!/bin/sh\n#SBATCH -t 1 -o /dev/null\ntrue\n")
	asking := h.script("asking.sh", "#!/bin/sh\n#SBATCH -t 1 -o /dev/null\n#BERTH --deadline=\"now+2h\"\ntrue\n")
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // connections are made and nothing is answered
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	const missing = "BERTH_COMMAND=/nonexistent/berth"
	large := h.script("large.sh", "#!/bin/sh\n#SBATCH -t 1 -o /dev/null\n#BERTH --deadline=now+2h\ntrue\n"+strings.Repeat("x", 4_300_000))
	comments := h.script("comments.sh", "#!/bin/sh\n"+strings.Repeat("#"+strings.Repeat("-", 100)+"\n", 20_000)+"#SBATCH -t 1 -o /dev/null\ntrue\n")
	asks := "--comment=berth:deadline=now+2h"
	for _, test := range []struct {
		name    string
		env     []string
		command []string
		code    int
		says    string // a pattern
		promise bool
	}{
		{"a comment", nil, []string{"sbatch", asks, script}, 0, "", true},
		{"lines in the script", nil, []string{"sbatch", asking}, 0, "", true},
		{"a script found on the PATH", nil, []string{"sbatch", "asking.sh"}, 0, "", true},
		{"wrapped", nil, []string{"sbatch", "-t1", "-o", "/dev/null", asks, "--wrap", "true"}, 0, "", true},
		{"a deadline of sbatch", nil, []string{"sbatch", "--comment=berth", "--deadline=now+2hours", "--begin=now+1hour", script}, 0, "", true},
		{"several options in a comment", nil, []string{"sbatch", "--comment=berth:users=bin,sys,deadline=now+2h", script}, 0, "", true},
		{"srun", nil, []string{"srun", "-t1", asks, "echo", "it ran"}, 0, "it ran", true},
		{"salloc", nil, []string{"salloc", "-t1", asks, "sh", "-c", "scontrol show job -o $SLURM_JOB_ID"}, 0, " Reservation=berth_lab_", true},
		{"salloc that asks for nothing", []string{missing}, []string{"salloc", "-t1", "sh", "-c", "scontrol show job -o $SLURM_JOB_ID"}, 0, "JobState=RUNNING", false},
		{"salloc that is refused", nil, []string{"salloc", "-t1", asks, "-N4", "--exclude=n1", "true"}, 1, `refused: (?s:.*)no job is handed in without its promise`, false},
		{"salloc in a job", nil, []string{"salloc", "-t1", asks, "srun", "--comment=berth", "echo", "it ran"}, 0, "it ran", true},
		{"another comment", []string{missing}, []string{"sbatch", "--comment=berthing at 5", script}, 0, "", false},
		{"nothing asked", []string{missing}, []string{"sbatch", script}, 0, "", false},
		{"nothing asked in a long script", []string{missing}, []string{"sbatch", comments}, 0, "", false},
		{"a step of a job", []string{missing}, []string{"sbatch", "-t1", "-o", "/dev/null", "--wait", "--wrap", "srun --comment=berth true"}, 0, "", false},
		{"the site's own filter", nil, []string{"sbatch", "--comment=forbidden", script}, 1, "the site forbids it", false},
		{"refused", nil, []string{"sbatch", asks, "-N4", "--exclude=n1", script}, 1, `refused: (?s:.*)no job is handed in without its promise`, false},
		{"a deadline that is gone by", nil, []string{"sbatch", "--comment=berth:deadline=yesterday", script}, 1, "no job is handed in without its promise", false},
		{"an odd word", nil, []string{"sbatch", "--comment=berth:dedline=$(touch /tmp/h);'\"", script}, 1, "dedline", false},
		{"no word", nil, []string{"sbatch", "--comment=berth:soon", script}, 1, "want berth:KEY=VALUE", false},
		{"an array", nil, []string{"sbatch", "--array=1-2", asks, script}, 1, "--array: say what to promise", false},
		{"more than 4 MB", nil, []string{"sbatch", large}, 1, "", false},
		{"Berth is not there", []string{missing}, []string{"sbatch", asks, script}, 1, "the command /nonexistent/berth is not there", false},
		{"Berth's service is not there", []string{serverVar + "=http://127.0.0.1:1"}, []string{"sbatch", asks, script}, 1, "no job is handed in without its promise", false},
		{"Berth does not answer", []string{serverVar + "=http://" + silent.Addr().String(), "BERTH_PATIENCE=1s"}, []string{"sbatch", asks, script}, 1, "no job is handed in without its promise", false},
	} {
		env := append([]string{"PATH=" + h.path, "SBATCH_OUTPUT=/dev/null"}, test.env...)
		out, code := h.as(2, 0, env, test.command...)
		if code != test.code || !regexp.MustCompile(test.says).MatchString(out) || strings.Contains(out, "is promised") != test.promise && test.name != "more than 4 MB" {
			t.Errorf("%s: exit %d\n%s", test.name, code, out)
			continue
		}
		switch {
		case code != 0 && regexp.MustCompile(`Submitted batch job`).MatchString(out):
			t.Errorf("%s: a job was handed in all the same\n%s", test.name, out)
		case code == 0 && test.command[0] == "sbatch":
			if shown := h.job(out); strings.Contains(shown, "Reservation=berth_lab_") != test.promise {
				t.Errorf("%s: %s", test.name, shown)
			}
		}
		if made := promisedID.FindStringSubmatch(out); made != nil {
			if out, code := h.as(2, 0, nil, "berth", "release", made[1]); code != 0 {
				t.Errorf("%s: release: %s", test.name, out)
			}
		}
	}
	// Without the file of the package jobs go in as if there had never been one.
	if err := os.Remove(filepath.Join(h.dir, "cli_filter.lua")); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"sbatch", asks, script}, {"sbatch", asking}, {"sbatch", script}} {
		out, code := h.as(2, 0, nil, command...)
		if code != 0 || strings.Contains(h.job(out), "Reservation=") {
			t.Errorf("%q: exit %d\n%s", command, code, out)
		}
	}
}

// What the filter asks for is only held until Slurm has the job of sbatch or salloc, waiting or not: then it is kept, and without a job it is
// given back.
func TestFilterGivesBackWhatSlurmRefuses(t *testing.T) {
	t.Parallel()
	h := newHabits(t)
	script := h.script("job.sh", "#!/bin/sh\n#SBATCH -t 1 -o /dev/null\ntrue\n")
	h.script("unconfirming", "#!/bin/sh\n[ \"$1\" = confirm ] && exit 5\nexec berth \"$@\"\n")
	now, later := "--comment=berth:deadline=now+2h", "--comment=berth:start=now+1h"
	state := func(id string) string {
		out, _ := h.as(2, 0, nil, "berth", "show", "-o", "json", id)
		return regexp.MustCompile(`"state": ?"\w+"`).FindString(out)
	}
	for _, test := range []struct {
		name    string
		env     []string
		command []string
		code    int
		says    string
		kept    bool
	}{
		{"sbatch is taken", nil, []string{"sbatch", later, script}, 0, "Submitted batch job", true},
		{"sbatch is refused", []string{"BERTH_HOLD=2s"}, []string{"sbatch", later, "--gres=nonsense:1", script}, 1, "sbatch: error: ", false},
		{"salloc is refused", []string{"BERTH_HOLD=2s"}, []string{"salloc", "-t1", now, "--gres=nonsense:1", "true"}, 1, "salloc: error: ", false},
		{"it is not confirmed", []string{"BERTH_HOLD=2s", "BERTH_COMMAND=unconfirming"}, []string{"sbatch", later, script}, 0, `which is only held, for 2s; until then it is kept by: unconfirming confirm \w+`, false},
		{"without a hold", []string{"BERTH_HOLD=0"}, []string{"sbatch", later, script}, 0, "", true},
	} {
		out, code := h.as(2, 0, test.env, test.command...)
		made := promisedID.FindStringSubmatch(out)
		if code != test.code || made == nil || !regexp.MustCompile(test.says).MatchString(out) {
			t.Errorf("%s: exit %d\n%s", test.name, code, out)
			continue
		}
		if test.kept {
			if got := state(made[1]); got != `"state": "confirmed"` && got != `"state":"confirmed"` {
				t.Errorf("%s: %s is %s, want it confirmed", test.name, made[1], got)
			}
			continue
		}
		h.until(func() bool { return strings.Contains(state(made[1]), "expired") }, test.name+": "+made[1]+" is given back")
	}
	// One that waits for its nodes is told of before it has them.
	waits := make(chan string, 1)
	go func() {
		out, _ := h.as(2, 0, []string{"BERTH_HOLD=20s"}, "salloc", "-t1", "--job-name=waits", "--comment=berth:start=now+3h", "true")
		waits <- out
	}()
	var id string
	h.until(func() bool {
		out, _ := h.as(2, 0, nil, "squeue", "--name=waits", "--noheader", "--format=%i")
		id = strings.TrimSpace(out)
		select {
		case out := <-waits:
			t.Fatalf("salloc does not wait: %s", out)
		default:
		}
		return id != ""
	}, "salloc waits")
	shown := h.job("job " + id)
	h.until(func() bool {
		out, _ := h.as(2, 0, nil, "berth", "list", "-o", "json", "--state", "held")
		return !strings.Contains(out, `"held"`)
	}, "its reservation is kept\n"+shown)
	if out, err := h.cluster.Command("scancel", id); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out := <-waits; strings.Contains(out, "only held") || !promisedID.MatchString(out) {
		t.Errorf("salloc: %s", out)
	} else if got := state(promisedID.FindStringSubmatch(out)[1]); !strings.Contains(got, "confirmed") {
		t.Errorf("it is %s", got)
	}
}
