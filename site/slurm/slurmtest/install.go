package slurmtest

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/debiantest"
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
	if len(missing(o)) == 0 {
		return
	}
	packs := []string{"slurm-wlm", "munge"}
	if o.Accounting {
		packs = append(packs, "slurmdbd", "mariadb-server")
	}
	if o.REST {
		packs = append(packs, "slurmrestd", "slurm-wlm-jwt-plugin")
	}
	if err := debiantest.Install(func() bool { return len(missing(o)) == 0 }, packs...); err != nil {
		debiantest.Absent(t, "slurm", fmt.Sprintf("slurm: missing packages %s: %v", strings.Join(missing(o), ", "), err))
	}
}
