package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// crowd answers like a cluster of some nodes, of 64 cores, and jobs, each a record of its own: one in
// five runs on cores of one node, and the others wait. The lines are those of Slurm 22.05.
type crowd struct {
	nodes, partitions, config, details string
	jobs                               string // with % for the mark
	mu                                 sync.Mutex
	asked                              []string
}

// pipeful is how much comes of a pipe at once.
const pipeful = 32 << 10

func newCrowd(nodes, jobs int) *crowd {
	c := &crowd{
		config:     "Configuration data as of 2026-11-23T12:00:00\nBOOT_TIME               = 2026-11-23T10:00:00\nClusterName             = lab\nSlurmUser               = slurm(64030)\nSLURM_VERSION           = 22.05.8\nLicenses                = (null)\n",
		partitions: fmt.Sprintf("PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A MaxNodes=UNLIMITED MaxTime=1-00:00:00 Nodes=n[1-%d] State=UP TotalCPUs=320000\n", nodes),
	}
	var b strings.Builder
	for i := range nodes {
		fmt.Fprintf(&b, "NodeName=n%d Arch=x86_64 CoresPerSocket=32  CPUAlloc=0 CPUEfctv=64 CPUTot=64 CPULoad=0.11 AvailableFeatures=intel,ib ActiveFeatures=intel,ib Gres=gpu:a100:4 NodeAddr=10.0.0.1 NodeHostName=n%d Version=22.05.8 OS=Linux 6.1.0-1-amd64 #1 SMP PREEMPT_DYNAMIC  RealMemory=256000 AllocMem=0 FreeMem=250000 Sockets=2 Boards=1 State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=main  BootTime=2026-11-21T10:00:00 SlurmdStartTime=2026-11-21T10:00:00 LastBusyTime=2026-11-23T10:00:00 CfgTRES=cpu=64,mem=250G,billing=64 AllocTRES= CapWatts=n/a CurrentWatts=0 AveWatts=0 ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s \n", i+1, i+1)
	}
	c.nodes = b.String()
	b.Reset()
	var queue strings.Builder
	for i := range jobs {
		id := 1000 + i
		values := map[string]string{
			"JobID": fmt.Sprint(id), "ArrayJobID": fmt.Sprint(id), "ArrayTaskID": "N/A", "State": "PENDING", "Reason": "Resources", "UserName": "user" + fmt.Sprint(i%500), "Account": "project",
			"Partition": "main", "NumCPUs": "8", "StartTime": "N/A", "EndTime": "N/A", "SubmitTime": "2026-11-23T11:00:00", "EligibleTime": "2026-11-23T11:00:00", "NumNodes": "1", "OverSubscribe": "OK",
			"TimeLimit": "1:00:00", "exit_code": "0", "STDOUT": fmt.Sprintf("/home/user/project/run/slurm-%d.out", id), "Comment": "(null)", "Name": "relax-" + fmt.Sprint(i), "Reservation": "(null)", exclusive: "NO",
		}
		if i%5 == 0 {
			node := i/5%nodes + 1
			values["State"], values["Reason"], values["NodeList"], values["StartTime"], values["EndTime"] = "RUNNING", "None", fmt.Sprintf("n%d", node), "2026-11-23T11:30:00", "2026-11-23T12:30:00"
			fmt.Fprintf(&b, "JobId=%d JobName=relax-%d UserId=user%d(%d) GroupId=users(100) MCS_label=N/A Priority=4294901760 Nice=0 Account=project QOS=normal JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 DerivedExitCode=0:0 RunTime=00:30:00 TimeLimit=01:00:00 TimeMin=N/A SubmitTime=2026-11-23T11:00:00 EligibleTime=2026-11-23T11:00:00 AccrueTime=2026-11-23T11:00:00 StartTime=2026-11-23T11:30:00 EndTime=2026-11-23T12:30:00 Deadline=N/A Partition=main AllocNode:Sid=login:1 ReqNodeList=(null) ExcNodeList=(null) NodeList=n%d BatchHost=n%d NumNodes=1 NumCPUs=8 NumTasks=1 CPUs/Task=8 ReqB:S:C:T=0:0:*:* TRES=cpu=8,mem=1G,node=1,billing=8 Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*   Nodes=n%d CPU_IDs=0-7 Mem=1024 GRES=   MinCPUsNode=8 MinMemoryCPU=128M MinTmpDiskNode=0 Features=(null) DelayBoot=00:00:00 OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null) Command=(null) WorkDir=/home/user StdErr=/dev/null StdIn=/dev/null StdOut=/dev/null Power= \n",
				id, i, i%500, i%500, node, node, node)
		}
		line, _ := said(values).line("%")
		queue.WriteString(line)
	}
	c.details, c.jobs = b.String(), queue.String()
	return c
}

func (c *crowd) Run(_ context.Context, command Command) (Result, error) {
	line := strings.Join(command.Argv, " ")
	c.mu.Lock()
	c.asked = append(c.asked, line)
	c.mu.Unlock()
	switch {
	case strings.HasSuffix(line, "show config"):
		return Result{Stdout: c.config}, nil
	case strings.Contains(line, "show node"):
		return Result{Stdout: c.nodes}, nil
	case strings.Contains(line, "show partition"):
		return Result{Stdout: c.partitions}, nil
	case strings.Contains(line, "show reservation"):
		return Result{Stdout: "No reservations in the system\n"}, nil
	case strings.Contains(line, "show job"):
		return Result{Stdout: c.details}, nil
	case command.Argv[0] == "squeue":
		at := slices.IndexFunc(command.Argv, func(a string) bool { return strings.HasPrefix(a, "--Format=") })
		_, mark, _ := strings.Cut(command.Argv[at], ",Name:")
		mark, _, _ = strings.Cut(mark, ",")
		if strings.HasSuffix(command.Argv[at], exclusive+":"+bar) {
			out := strings.ReplaceAll(c.jobs, "%", mark)
			for from := 0; from < len(out); from += pipeful {
				command.Take([]byte(out[from:min(from+pipeful, len(out))]))
			}
			return Result{}, nil
		}
	}
	return Result{}, errors.New("unexpected: " + line)
}

// Each job of a queue is read as it is, and which cores jobs have is asked for only where
// it matters: for that Slurm writes all that it knows of every job.
func TestLooksAtACrowd(t *testing.T) {
	c := newCrowd(10, 100)
	s := New(Options{Site: "lab", Exec: c})
	state, err := s.Observe(t.Context())
	if err != nil || len(state.Running) != 20 || len(state.Pending) != 80 {
		t.Fatal(err, state)
	}
	if j := state.Running[1]; j.ID != "1005" || j.User != "user5" || j.Name != "relax-5" || len(j.Shares) != 1 || j.Shares[0].Node != "n2" || j.Shares[0].Cores.String() != "0-7" {
		t.Errorf("the second that runs is %+v", j)
	}
	if j := state.Pending[79]; j.ID != "1099" || j.Reason != "Resources" || j.Limit != 3600 || j.Held {
		t.Errorf("the last that waits is %+v", j)
	}
	c.details = "nonsense"
	s = New(Options{Site: "lab", Exec: c, WholeNodes: true})
	if state, err = s.Observe(t.Context()); err != nil || len(state.Running) != 20 || !state.Running[1].Shares[0].Cores.Empty() {
		t.Error(err, state.Running[1])
	}
	if n := strings.Count(strings.Join(c.asked, "\n"), "show job"); n != 1 {
		t.Errorf("asked %d times for the cores of jobs, want once: %q", n, c.asked)
	}
}

// BenchmarkLook is what one look at a cluster costs Berth itself, without the commands.
func BenchmarkLook(b *testing.B) {
	for _, size := range []struct{ nodes, jobs int }{{500, 500}, {5000, 5000}, {5000, 50_000}} {
		c := newCrowd(size.nodes, size.jobs)
		s := New(Options{Site: "lab", Exec: c})
		b.Run(fmt.Sprintf("nodes=%d/jobs=%d", size.nodes, size.jobs), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				state, err := s.Observe(b.Context())
				if err != nil || len(state.Nodes) != size.nodes || len(state.Running) != size.jobs/5 || len(state.Pending) != size.jobs-size.jobs/5 {
					b.Fatal(err, len(state.Nodes), len(state.Running), len(state.Pending))
				}
			}
		})
	}
}
