package slurm_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// oddUsers are names as directories of users have them, and whether a reservation of Berth's may be for them.
var oddUsers = []struct {
	name string
	ours bool
}{
	{`corp\jane`, true},
	{"jane@corp.example", true},
	{"jane.doe-x_1", true},
	{"1jane", true},
	{strings.Repeat("j", 40), true},
	{"host$", false},
	{"jané", false},
	{"jane doe", false},
	{"Users=jane", false},
}

const (
	oddName        = "8|8|N/A|RUNNING|n1 #AAAAAAAA#"
	inOwnDirectory = "BERTH_SLURM_ODD_USERS" // is set where the odd users are known
	firstOddUser   = 61001
)

// Users may be called what directories call them: what is reserved for one is theirs in Slurm, they run in it, and jobs of those
// for whom nothing can be reserved are read all the same. The test runs itself where /etc/passwd has them.
func TestOddUserNames(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("slurm: only root can have an /etc/passwd of its own, and run jobs of others")
	}
	if os.Getenv(inOwnDirectory) == "" {
		withOddUsers(t)
		return
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: len(oddUsers)})
	s := slurm.New(options(cluster))
	as := func(i int) slurm.Host {
		return slurm.Host{As: &slurm.Credential{Uid: uint32(firstOddUser + i), Gid: 65534}}
	}
	var want []site.Reservation
	for i, u := range oddUsers {
		node := cluster.Nodes()[i]
		if !u.ours {
			r := far(t, i, node)
			r.Users = []string{u.name}
			if got, err := s.Reserve(t.Context(), r); site.KindOf(err) != site.Invalid {
				t.Errorf("for %q: %+v, %v", u.name, got, err)
			}
			o := as(i)
			result, err := o.Run(t.Context(), slurm.Command{
				Argv: []string{"sbatch", "--parsable", "--time=1", "--nodelist=" + node, "--chdir=/", "--output=/dev/null", "--job-name=" + oddName, "--comment=" + oddName, "--wrap=sleep 1000"},
				Env:  []string{"SLURM_CONF=" + cluster.Conf, "PATH=" + os.Getenv("PATH")},
			})
			if err != nil || result.Exit != 0 {
				t.Errorf("a job of %q: %v %s", u.name, err, result.Stderr)
			}
			continue
		}
		r := far(t, i, node)
		r.Start, r.End, r.Users = now(), now()+600, []string{u.name}
		mustReserve(t, s, r, site.Made)
		mustReserve(t, s, r, site.Already)
		want = append(want, r)
		o := options(cluster)
		o.Exec = as(i)
		if _, err := slurm.NewClient(o).Submit(t.Context(), task(r, "sleep", "1000")); err != nil {
			t.Errorf("a task of %q: %v", u.name, err)
		}
	}
	var running []site.Job
	if !eventually(30*time.Second, func() bool { running = observe(t, s).Running; return len(running) == len(oddUsers) }) {
		t.Errorf("%d jobs run: %+v", len(running), running)
	}
	if drift := site.FindDrift(want, observe(t, s)); len(drift) > 0 {
		t.Errorf("%+v", drift)
	}
	for _, u := range oddUsers {
		if !slices.ContainsFunc(running, func(j site.Job) bool { return j.User == u.name && (u.ours || j.Name == oddName) }) {
			t.Errorf("no job of %q runs, or not as %q", u.name, oddName)
		}
	}
}

// withOddUsers runs the test where they are known.
func withOddUsers(t *testing.T) {
	t.Helper()
	known, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.Write(known)
	for i, u := range oddUsers {
		fmt.Fprintf(&b, "%s:x:%d:65534::/:/bin/sh\n", u.name, firstOddUser+i)
	}
	passwd := filepath.Join(t.TempDir(), "passwd")
	if err := os.WriteFile(passwd, []byte(b.String()), 0o644); err != nil { //nolint:gosec // all read it
		t.Fatal(err)
	}
	script := `mount --bind "$1" /etc/passwd; shift; `
	if bin := os.Getenv("BERTH_SLURM"); bin != "" {
		script = `mount --bind "$1" "` + filepath.Dir(bin) + `/etc/passwd" && ` + script
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-e", "-c", script+`exec "$@"`, "sh", passwd, os.Args[0], "-test.run=^TestOddUserNames$", "-test.v", "-test.timeout=120s") //nolint:gosec // this test
	cmd.Env = append(os.Environ(), inOwnDirectory+"=yes")
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skip(string(out))
	case !strings.Contains(string(out), "--- PASS: TestOddUserNames"):
		t.Errorf("it did not run: %s", out)
	}
}
