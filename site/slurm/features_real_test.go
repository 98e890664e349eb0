package slurm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// Where Slurm preempts jobs, those in a reservation of ours run on: whatever comes for their nodes from outside waits,
// while it does preempt others of the same partition. The doctor says so.
func TestPreemptionStaysOutOfPromises(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{
		Nodes: 2, Extra: "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL",
		Partitions: "PartitionName=low Nodes=ALL Default=YES MaxTime=1:00:00 PriorityTier=1 State=UP\nPartitionName=high Nodes=ALL MaxTime=1:00:00 PriorityTier=9 State=UP",
	})
	s, client := slurm.New(options(cluster)), slurm.NewClient(options(cluster))
	if f := finding(t, s, "preemption"); f.Level != site.Good || !strings.Contains(f.Text, "preempt/partition_prio") {
		t.Errorf("%+v", f)
	}
	want := site.Reservation{Name: site.NameOf(siteName, t.Name(), 1), Start: now() + 1, End: now() + 1800, Shares: []site.Share{{Node: "n1"}}, Users: []string{me(t)}}
	mustReserve(t, s, want, site.Made)
	ours, err := client.Submit(t.Context(), site.Task{Reservation: want.Name, Key: "a", Dir: t.TempDir(), Command: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	submit := func(name string, args ...string) {
		t.Helper()
		if out, err := cluster.Command("sbatch", append(args, "--job-name="+name, "--wrap=sleep 600", "--output=/dev/null", "--exclusive", "--time=10")...); err != nil {
			t.Fatal(out, err)
		}
	}
	state := func(name string) string {
		out, _ := cluster.Command("squeue", "--noheader", "--states=all", "--name="+name, "--format=%T %r")
		return strings.TrimSpace(out)
	}
	submit("low")
	if !eventually(time.Minute, func() bool { return len(observe(t, s).Running) == 2 }) {
		t.Fatalf("%+v", observe(t, s).Running)
	}
	submit("one", "--partition=high")
	if !eventually(time.Minute, func() bool { return strings.HasPrefix(state("one"), "RUNNING") }) {
		t.Fatalf("nothing is preempted: %s, %s", state("one"), state("low"))
	}
	if !strings.HasPrefix(state("low"), "PREEMPTED") {
		t.Errorf("low is %s", state("low"))
	}
	submit("ours", "--partition=high", "--nodelist=n1")
	// Slurm has looked at it when it has a reason, and waits for more than the priority of others.
	if !eventually(time.Minute, func() bool { _, why, _ := strings.Cut(state("ours"), " "); return why != "None" && why != "Priority" }) {
		t.Fatalf("the job for the reserved node is %s", state("ours"))
	}
	now := observe(t, s)
	for i := range now.Running {
		if now.Running[i].ID == ours {
			return
		}
	}
	t.Errorf("ours is not among %+v; what came for its node is %s", now.Running, state("ours"))
}

// luaBuffers is the least that burst_buffer/lua wants.
const luaBuffers = `function slurm_bb_job_process(...) return slurm.SUCCESS end
function slurm_bb_pools() return slurm.SUCCESS, '{"pools":[]}' end
function slurm_bb_job_teardown(...) return slurm.SUCCESS end
function slurm_bb_setup(...) return slurm.SUCCESS end
function slurm_bb_data_in(...) return slurm.SUCCESS end
function slurm_bb_test_data_in(...) return slurm.SUCCESS end
function slurm_bb_real_size(...) return slurm.SUCCESS end
function slurm_bb_paths(...) return slurm.SUCCESS end
function slurm_bb_pre_run(...) return slurm.SUCCESS end
function slurm_bb_post_run(...) return slurm.SUCCESS end
function slurm_bb_data_out(...) return slurm.SUCCESS end
function slurm_bb_test_data_out(...) return slurm.SUCCESS end
function slurm_bb_get_status(...) return slurm.SUCCESS, "" end
`

// Burst buffers are not part of a promise. The doctor says so, and all else works.
func TestBurstBuffersAreNamed(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{
		Nodes: 1, Extra: "BurstBufferType=burst_buffer/lua", Files: map[string]string{"burst_buffer.lua": luaBuffers, "burst_buffer.conf": "ValidateTimeout=5\n"},
	})
	s := slurm.New(options(cluster))
	if f := finding(t, s, "burst-buffers"); f.Level != site.Warning || !strings.Contains(f.Text, "burst_buffer/lua") || f.Hint == "" {
		t.Errorf("%+v", f)
	}
	mustReserve(t, s, far(t, 1, "n1"), site.Made)
}

// A cluster of a federation is reached as one cluster. The doctor says what that means, and all else works.
func TestFederationIsNamed(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 1, Accounting: true})
	s := slurm.New(options(cluster))
	if f := finding(t, s, "federation"); f.Check != "" {
		t.Errorf("before there is one: %+v", f)
	}
	if out, err := cluster.Command("sacctmgr", "--immediate", "add", "federation", "harbours", "clusters=lab"); err != nil {
		t.Fatal(out, err)
	}
	if !eventually(time.Minute, func() bool { return finding(t, s, "federation").Check != "" }) {
		out, err := cluster.Command("scontrol", "show", "federation")
		t.Fatalf("%s %v", out, err)
	}
	if f := finding(t, s, "federation"); f.Level != site.Warning || !strings.Contains(f.Text, "harbours") || f.Hint == "" {
		t.Errorf("%+v", f)
	}
	mustReserve(t, s, far(t, 1, "n1"), site.Made)
}
