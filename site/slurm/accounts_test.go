package slurm

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// ledger is an accounting database with users and their accounts; none if the type is another one.
type ledger struct{ kind, rows string }

func (l ledger) Run(_ context.Context, c Command) (Result, error) {
	if c.Argv[0] == "sacctmgr" {
		return Result{Stdout: l.rows}, nil
	}
	return Result{Stdout: "AccountingStorageType   = " + l.kind + "\nClusterName             = lab\n"}, nil
}

func TestAccountsOfAUserBeginWithTheDefaultOne(t *testing.T) {
	const dbd = "accounting_storage/slurmdbd"
	for name, c := range map[string]struct {
		at   ledger
		want string
	}{
		"the default last":     {ledger{dbd, "ann|chem|lab|bio\nann|chem|lab|phys\nann|chem|lab|chem\n"}, "chem bio phys"},
		"twice, by partitions": {ledger{dbd, "ann|chem|lab|chem\nann|chem|lab|chem\nann|chem|lab|phys\n"}, "chem phys"},
		"another cluster":      {ledger{dbd, "ann|chem|far|chem\nann|chem|lab|phys\n"}, "phys"},
		"none":                 {ledger{dbd, "ann|||\n"}, ""},
		"no accounting":        {ledger{"accounting_storage/none", "ann|chem|lab|chem\n"}, ""},
	} {
		got, err := New(Options{Site: "lab", Exec: c.at}).Accounts(t.Context(), "ann")
		if err != nil || !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}
