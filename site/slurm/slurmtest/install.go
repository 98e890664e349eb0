package slurmtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// needed are the programs of a cluster and the packages that have them, the last ones for
// accounting.
var needed = []struct {
	program, pack string
	unless        func(*Options) bool
}{
	{"munged", "munge", nil},
	{"slurmctld", "slurmctld", nil},
	{"slurmd", "slurmd", nil},
	{"scontrol", "slurm-client", nil},
	{"sbatch", "slurm-client", nil},
	{"slurmdbd", "slurmdbd", withoutAccounting},
	{"mariadbd", "mariadb-server", withoutAccounting},
	{"slurmrestd", "slurmrestd", withoutREST},
}

func withoutAccounting(o *Options) bool { return !o.Accounting }

func withoutREST(o *Options) bool { return !o.REST }

func missing(o *Options) []string {
	var packs []string
	for _, n := range needed {
		if n.unless != nil && n.unless(o) {
			continue
		}
		if _, err := exec.LookPath(n.program); err != nil && !slices.Contains(packs, n.pack) {
			packs = append(packs, n.pack)
		}
	}
	return packs
}

func install(t testing.TB, o *Options) {
	t.Helper()
	packs := missing(o)
	if len(packs) == 0 {
		return
	}
	why := "CI is not true"
	if os.Getenv("CI") == "true" {
		if why = aptInstall(o); why == "" {
			if packs = missing(o); len(packs) == 0 {
				return
			}
			why = "installing them did not help"
		}
	}
	message := fmt.Sprintf("slurm: missing packages %s: %s", strings.Join(packs, ", "), why)
	if slices.Contains(strings.Split(os.Getenv("BERTH_REQUIRE"), ","), "slurm") {
		t.Fatal(message)
	}
	t.Skip(message)
}

// aptInstall installs the packages and says why it could not.
func aptInstall(o *Options) string {
	if os.Getuid() != 0 {
		return "only root can install them"
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "there is no apt-get"
	}
	// Tests of several packages may come here at once.
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "berth-slurm-install.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	if err := waitFor(lock); err != nil {
		return err.Error()
	}
	if len(missing(o)) == 0 {
		return ""
	}
	packs := []string{"slurm-wlm", "munge"}
	if o.Accounting {
		packs = append(packs, "slurmdbd", "mariadb-server")
	}
	if o.REST {
		packs = append(packs, "slurmrestd", "slurm-wlm-jwt-plugin")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute) // a browser, which others install, may go first
	defer cancel()
	one := filepath.Join(os.TempDir(), "berth-apt.lock") // of all tests that install something: apt-get update does not wait for another one
	for _, args := range [][]string{
		{"update"},
		append([]string{"install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=240"}, packs...),
	} {
		cmd := exec.CommandContext(ctx, "flock", append([]string{"--no-fork", one, "apt-get"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Sprintf("apt-get %s: %v: %s", args[0], err, lastLines(string(out), 3))
		}
	}
	return ""
}
