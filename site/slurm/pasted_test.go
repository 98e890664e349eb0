package slurm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site/slurm"
)

func TestAskedIsWhatALineOfScontrolSays(t *testing.T) {
	now := time.Date(2030, 1, 2, 9, 0, 0, 0, time.UTC)
	at := now.Add(time.Hour)
	for line, want := range map[string]slurm.Asked{
		"StartTime=2030-01-02T10:00:00 Duration=120 NodeCnt=4": {Start: at, StartText: "2030-01-02T10:00:00", Duration: 7200, NPE: 4},
		"StartTime=2030-01-02T10:00:00 EndTime=2030-01-02T11:30:00 CoreCnt=8 PartitionName=gpu Users=alice Comment=x": {
			Start: at, StartText: "2030-01-02T10:00:00", Duration: 5400, NPE: 8, Partition: "gpu", User: "alice",
			LeftOut: []string{"Comment: Berth keeps none"},
		},
		"duration=1-00:00:00 tres=node=4,gres/gpu=8,license/matlab=3 flags=PURGE_COMP=10": {
			Duration: 86400, NPE: 4, Accelerators: 2, Software: "matlab", Licences: 3, NoShow: 600,
		},
		"Users=alice,bob Accounts=physics":                {NPE: 3, User: "alice", Sharing: berth.Sharing{Account: "physics", Users: []string{"bob"}}},
		"Accounts=physics":                                {NPE: 3, Sharing: berth.Sharing{Account: "physics", Users: []string{"*"}}},
		"Groups=phys":                                     {NPE: 3, Sharing: berth.Sharing{Group: "phys"}},
		"Nodes=n[1-4,7] Features=ib&intel":                {NPE: 3, Nodelist: "n[1-4,7]", Constraint: "ib&intel"},
		"NodeCnt=2 Nodes=n[1-4,7]":                        {NPE: 2, Nodelist: "n[1-4,7]"},
		"TRES=gres/gpu=6 Licenses=ansys Flags=PURGE_COMP": {NPE: 3, Accelerators: 2, Software: "ansys", Licences: 1, NoShow: 300},
	} {
		got, err := slurm.ParseAsked(strings.Fields(line), 3, now)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s:\n%s", line, diff)
		}
	}
}

func TestAskedRefusesWhatBerthHasNoWordFor(t *testing.T) {
	for line, want := range map[string]string{
		"NodeCnt":                 `unexpected "NodeCnt"`,
		"NodeCount=4":             "NodeCount: no key of scontrol create reservation (did you mean NodeCnt?)",
		"NodeCnt=0":               `NodeCnt: "0"; want a whole number from 1 to 1048576`,
		"NodeCnt=4 CoreCnt=8":     "several of NodeCnt, CoreCnt and TRES",
		"Nodes=node[01":           `Nodes: "node[01": a range`,
		"Nodes=ALL":               `Nodes: "ALL"; want NodeCnt`,
		"Features=intel*4":        `Features: "intel*4"; want names of features`,
		"Flags=MAINT,IGNORE_JOBS": `Flags: no word here for the flag "MAINT"`,
		"TRES=node=4,gres/gpu=6":  "TRES: 6 GPUs for 4 PEs",
		"TRES=gres/gpu=6":         "TRES: 6 GPUs for 0 PEs",
		"TRES=bb/cray=4":          `TRES: no count here of "bb/cray"`,
		"Licenses=a:0":            `Licenses: "0"; want a whole number from 1 to 1073741824`,
		"Users=alice,-bob":        "Users: ",
		"Accounts=a,b":            "Accounts: ",
		"Groups=":                 "Groups: ",
		"EndTime=now NodeCnt=1":   "EndTime: without StartTime",
		"StartTime=2030-01-02T10:00:00 EndTime=2030-01-02T10:00:00": "is not after StartTime",
		"StartTime=now EndTime=tomorrow Duration=5":                 "EndTime: given beside Duration",
	} {
		if got, err := slurm.ParseAsked(strings.Fields(line), 0, time.Date(2030, 1, 2, 9, 0, 0, 0, time.UTC)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v %v, want %s", line, got, err, want)
		}
	}
}
