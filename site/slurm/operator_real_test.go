package slurm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// The lines of the doctor and of the documents make the account of Berth an operator, whether or not sacctmgr knows its user.
func TestSacctmgrMakesAnOperator(t *testing.T) {
	t.Parallel()
	daemon := credential(t)
	c := slurmtest.Start(t, slurmtest.Options{Nodes: 1, Accounting: true})
	sacctmgr := func(line string) {
		t.Helper()
		words := strings.Fields(strings.ReplaceAll(line, "ACCOUNT", "berths"))
		if out, err := c.Command(words[0], append([]string{"--immediate"}, words[1:]...)...); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	o := options(c)
	o.Exec = slurm.Host{As: daemon}
	s := slurm.New(o)
	hint := func() string {
		for _, f := range s.Doctor(t.Context()) {
			if f.Check == "rights" && f.Level == site.Bad {
				return f.Hint
			}
		}
		return ""
	}
	said := hint()
	_, said, _ = strings.Cut(said, "make it an operator: ")
	add, said, _ := strings.Cut(said, ", or, if sacctmgr knows it, ")
	modify, _, found := strings.Cut(said, ". ")
	if !found || !strings.HasPrefix(add, "sacctmgr add user daemon ") || !strings.HasPrefix(modify, "sacctmgr modify user daemon ") {
		t.Fatalf("the doctor says %q and %q", add, modify)
	}
	sacctmgr("sacctmgr add account ACCOUNT")
	for _, line := range []string{add, modify} {
		sacctmgr(line)
		if !eventually(time.Minute, func() bool { return hint() == "" }) {
			t.Fatalf("%s: the doctor still says %s", line, hint())
		}
		sacctmgr("sacctmgr modify user daemon set adminlevel=none")
		if !eventually(time.Minute, func() bool { return hint() != "" }) {
			t.Fatal("the right is taken away, and the doctor has no word of it")
		}
	}
}
