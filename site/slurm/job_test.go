package slurm

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// oneNode is a node as scontrol shows it in Slurm 24.11.
const oneNode = "NodeName=g1 Arch=x86_64 CoresPerSocket=8  CPUAlloc=3 CPUEfctv=32 CPUTot=32 CPULoad=7.23 AvailableFeatures=ib,avx ActiveFeatures=ib Gres=gpu:a100:4(S:0-1) " +
	"NodeAddr=127.0.0.1 OS=Linux 6.1 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=4096 Sockets=2 Boards=1 State=MIXED ThreadsPerCore=2 TmpDisk=0 Partitions=main  CfgTRES=cpu=4 "

func TestNodeStates(t *testing.T) {
	for text, want := range map[string]site.Condition{
		"IDLE": site.Up, "MIXED+RESERVED": site.Up, "IDLE+NOT_RESPONDING": site.Up, "IDLE+CLOUD+POWERED_DOWN": site.Up, "IDLE*": site.Up,
		"IDLE+DRAIN": site.Drained, "ALLOCATED+COMPLETING+DRAIN": site.Drained, "DOWN+DRAIN": site.Down, "DOWN*": site.Down, "IDLE+FAIL": site.Down,
		"UNKNOWN": site.Unknown, "UNKNOWN+DRAIN+NOT_RESPONDING": site.Drained, "DOWN+INVALID_REG+SOMETHINGNEW": site.Down,
	} {
		nodes, err := parseNodes(strings.Replace(oneNode, "State=MIXED", "State="+text, 1) + "Reason=disk [sda] is slow [root@1970-01-01T00:00:07]\n")
		if err != nil || len(nodes) != 1 {
			t.Fatal(nodes, err)
		}
		want := site.NodeState{Name: "g1", Condition: want, Busy: 3}
		if want.Condition != site.Up {
			want.Reason, want.Since = "disk [sda] is slow", 7
		}
		if diff := cmp.Diff(want, nodes[0].state()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", text, diff)
		}
	}
}

func TestNodeDescription(t *testing.T) {
	nodes, err := parseNodes(oneNode + "\n")
	if err != nil || len(nodes) != 1 {
		t.Fatal(nodes, err)
	}
	got, err := nodes[0].describe()
	want := site.Node{
		Name: "g1", Cores: 16, Sockets: 2, MemoryMB: 4294, Features: []string{"ib", "avx"}, GRES: []site.GRES{{Name: "gpu", Type: "a100", Count: 4}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if got := nodes[0].coresOf(berth.PEsOf(0, 1, 2, 31)).String(); got != "0-1,15" {
		t.Errorf("threads 0-2 and 31 are of cores %s, want 0-1,15", got)
	}
	if nodes, err := parseNodes("No nodes in the system\n"); err != nil || len(nodes) != 0 {
		t.Errorf("%v %v, want none", nodes, err)
	}
}

func TestOtherFormsAreNotUnderstood(t *testing.T) {
	for _, text := range []string{
		"NodeName=n1\n", "{}", strings.Replace(oneNode, "g1", "g;1", 1), oneNode + "\n" + oneNode, strings.Replace(oneNode, "Sockets=2", "Sockets=0", 1),
		strings.Replace(oneNode, "CPUTot=32", "CPUTot=many", 1),
	} {
		if nodes, err := parseNodes(text); err == nil {
			t.Errorf("nodes %.80q: %+v", text, nodes)
		}
	}
	list := []jobField{fieldID, fieldName}
	for _, text := range []string{"1|", "1|a#\n2|", "1|a#\nslurm says more\n", "1|a#b#\n", "1|a#b|c#\n", "1#a#\n", "slurm says\n1|a#\n"} {
		if jobs, err := parseJobs(text, "#", list); err == nil {
			t.Errorf("jobs %.80q: %+v", text, jobs)
		}
	}
	if jobs, err := parseJobs("1|a\n2|b#\n3|#\n", "#", list); err != nil || len(jobs) != 2 || jobs[0].at(fieldName) != "a\n2|b" || jobs[1].at(fieldID) != "3" || jobs[1].at(fieldName) != "" {
		t.Errorf("%+v %v, want a name of two lines and one of none", jobs, err)
	}
}

// What may hold anything may look like fields, the ends of jobs and other jobs, and forges nothing.
func TestFreeFieldsForgeNothing(t *testing.T) {
	record := said{"JobID": "7", "State": "PENDING", "NumCPUs": "4", "TimeLimit": "5:00", "SubmitTime": "1970-01-01T00:00:50"}
	for _, field := range jobFields {
		if field.free {
			record[field.name] = "x|y" + field.name + "#AAAAAAAA#|\n8|8|N/A|RUNNING|n1|" + bar
		}
	}
	other := said{"JobID": "9", "State": "PENDING", "Name": "|"}
	for _, newer := range []string{"", "NO"} {
		if newer != "" {
			record[exclusive], other[exclusive] = newer, newer
		}
		mark := newMark()
		first, list := record.line(mark)
		second, _ := other.line(mark)
		jobs, err := parseJobs(first+second, mark, list)
		if err != nil || len(jobs) != 2 {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		for _, f := range list {
			if name := jobFields[f].name; jobs[0].at(f) != record[name] || jobs[1].at(f) != other[name] {
				t.Errorf("%s is %q and %q, want %q and %q", name, jobs[0].at(f), jobs[1].at(f), record[name], other[name])
			}
		}
	}
}

// said is what squeue says of a job, by the names of fields.
type said map[string]string

// line is what squeue says of the fields of a look, and of the newest of them where it is there.
func (s said) line(mark string) (text string, list []jobField) {
	list = lookFields
	if _, is := s[exclusive]; !is {
		list = list[:fieldExclusive]
	}
	for _, f := range list {
		text += s[jobFields[f].name] + f.behind(mark)
	}
	return text + "\n", list
}

func (s said) record(t *testing.T) *jobRecord {
	t.Helper()
	text, list := s.line("#mark#")
	jobs, err := parseJobs(text, "#mark#", list)
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	return &jobs[0]
}

const exclusive = "Exclusive"

func TestJobs(t *testing.T) {
	common := said{
		"JobID": "7", "ArrayJobID": "7", "ArrayTaskID": "N/A", "UserName": "ada", "Account": "(null)", "Partition": "main", "Name": "wrap", "NumCPUs": "4", "TimeLimit": "5:00",
		"StartTime": "1970-01-01T00:01:40", "EndTime": "1970-01-01T00:06:40", "Reason": "None", "Reservation": "(null)", "OverSubscribe": "OK",
	}
	held := site.Job{ID: "7", User: "ada", Partition: "main", Name: "wrap", Cores: 4, Start: 100, End: 400, Limit: 300}
	n2 := []site.Share{{Node: "n2"}}
	for name, c := range map[string]struct {
		says  said
		phase phase
		want  func(*site.Job)
	}{
		"running": {
			said{"State": "RUNNING", "NodeList": "n[1-2]", "Comment": "berth:k"},
			running,
			func(j *site.Job) {
				j.Shares, j.Key = []site.Share{{Node: "n1", Cores: berth.PEsOf(0, 5)}, {Node: "n2"}}, "k"
			},
		},
		"completing": {said{"State": "COMPLETING", "NodeList": "n2"}, running, func(j *site.Job) { j.Shares = n2 }},
		"endless":    {said{"State": "RUNNING", "NodeList": "n2", "TimeLimit": "UNLIMITED", "EndTime": "NONE"}, running, func(j *site.Job) { j.Shares, j.End, j.Limit = n2, berth.Forever, 0 }},
		"days":       {said{"State": "RUNNING", "NodeList": "n2", "TimeLimit": "1-00:00:00"}, running, func(j *site.Job) { j.Shares, j.Limit = n2, 86400 }},
		"strange":    {said{"State": "DANCING", "NodeList": "n2"}, running, func(j *site.Job) { j.Shares = n2 }},
		"pending": {
			said{"State": "PENDING", "Reason": "Reservation", "Reservation": "r", "StartTime": "N/A", "EndTime": "N/A"},
			pending,
			func(j *site.Job) { j.Start, j.End, j.Reason, j.Reservation, j.Held = 0, 0, "Reservation", "r", true },
		},
		"asked": {
			said{"State": "PENDING", "Reason": "Priority", "SubmitTime": "1970-01-01T00:00:50", "EligibleTime": "1970-01-01T00:01:00", "NumNodes": "3", "OverSubscribe": "NO"},
			pending,
			func(j *site.Job) { j.Reason, j.Submitted, j.Begin, j.Nodes, j.Exclusive = "Priority", 50, 60, 3, true },
		},
		"exclusive in Slurm 26": {
			said{"State": "PENDING", "Reason": "Priority", "EligibleTime": "1970-01-01T00:01:00", "OverSubscribe": "NO", exclusive: "NODE"},
			pending,
			func(j *site.Job) { j.Reason, j.Begin, j.Exclusive = "Priority", 60, true },
		},
		"exclusive for a user in Slurm 26": {
			said{"State": "PENDING", "Reason": "Priority", "EligibleTime": "1970-01-01T00:01:00", "OverSubscribe": "NO", exclusive: "USER"},
			pending,
			func(j *site.Job) { j.Reason, j.Begin = "Priority", 60 },
		},
		"shared in Slurm 26": {
			said{"State": "PENDING", "Reason": "Priority", "EligibleTime": "1970-01-01T00:01:00", "OverSubscribe": "NO", exclusive: "NO"},
			pending,
			func(j *site.Job) { j.Reason, j.Begin = "Priority", 60 },
		},
		"held": {said{"State": "RESV_DEL_HOLD", "EligibleTime": "Unknown"}, pending, func(j *site.Job) { j.Reason, j.Held = "None", true }},
		"array": {
			said{"State": "PENDING", "ArrayTaskID": "0,3-9:3", "EligibleTime": "1970-01-01T00:01:00"},
			pending,
			func(j *site.Job) {
				j.ID, j.Array, j.Begin, j.Elements, j.Reason = "7_[0,3-9:3]", "7", 60, berth.PEsOf(0, 3, 6, 9), "None"
			},
		},
		"index": {
			said{"State": "COMPLETED", "ArrayJobID": "5", "ArrayTaskID": "2", "NodeList": "n2", "exit_code": "0"},
			over,
			func(j *site.Job) {
				j.ID, j.Array, j.Shares, j.Result = "5_2", "5", n2, site.Result{Ending: site.Completed}
			},
		},
		"failed": {
			said{"State": "FAILED", "exit_code": "768", "Reason": "NonZeroExitCode"},
			over,
			func(j *site.Job) { j.Reason, j.Result = "NonZeroExitCode", site.Result{Ending: site.Failed, Code: 3} },
		},
		"failed in Slurm 24": {said{"State": "FAILED", "exit_code": "3:0"}, over, func(j *site.Job) { j.Result = site.Result{Ending: site.Failed, Code: 3} }},
		"killed":             {said{"State": "CANCELLED", "exit_code": "0:15"}, over, func(j *site.Job) { j.Result = site.Result{Ending: site.Cancelled, Signal: 15} }},
		"too long":           {said{"State": "TIMEOUT", "exit_code": "0:0"}, over, func(j *site.Job) { j.Result = site.Result{Ending: site.TimedOut} }},
		"node":               {said{"State": "NODE_FAIL"}, over, func(j *site.Job) { j.Result = site.Result{Ending: site.NodeLost} }},
	} {
		record := maps.Clone(common)
		maps.Copy(record, c.says)
		want := held
		c.want(&want)
		got, phase, err := record.record(t).job(map[string]berth.PESet{"n1": berth.PEsOf(0, 5)})
		if diff := cmp.Diff(want, got); err != nil || phase != c.phase || diff != "" {
			t.Errorf("%s: phase %d, want %d, %v (-want +got)\n%s", name, phase, c.phase, err, diff)
		}
	}
	for _, wrong := range []said{{}, {"JobID": "x", "State": "PENDING"}, {"JobID": "1"}, {"JobID": "1", "State": "RUNNING", "StartTime": "soon", "TimeLimit": "5:00"}} {
		if got, _, err := wrong.record(t).job(nil); err == nil {
			t.Errorf("%v: %+v, want an error", wrong, got)
		}
	}
}

// Which cores a job has is read from its own line; a job with two lines, where the
// name of another job may have made, has whole nodes.
func TestCoresOfJobs(t *testing.T) {
	nodes, err := parseNodes(strings.NewReplacer("g1", "n1").Replace(oneNode) + "\n" + strings.NewReplacer("g1", "n2").Replace(oneNode))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]*nodeRecord{"n1": &nodes[0], "n2": &nodes[1]}
	text := `JobId=1 JobName=a|b c UserId=root(0) JobState=RUNNING NodeList=n[1-2] NumCPUs=6 JOB_GRES=(null)   Nodes=n1 CPU_IDs=0-1 Mem=128 GRES=   Nodes=n2 CPU_IDs=4-7 Mem=128 GRES= MinCPUsNode=1
JobId=2 JobName=x
JobId=3 Nodes=n1 CPU_IDs=0-31 Mem=1
JobId=3 JobName=y JOB_GRES=(null) Nodes=n1 CPU_IDs=8-9 Mem=128 GRES=
`
	got := coresOf(text, known)
	want := map[string]map[string]berth.PESet{"1": {"n1": berth.PEsOf(0), "n2": berth.PEsOf(2, 3)}, "2": {}, "3": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestElements(t *testing.T) {
	for text, want := range map[string]string{
		"3": "3", "1-5:2,9": "1,3,5,9", "1,3,5,7,9%2": "1,3", "0-9%3": "0-2", "1,7,97,10...": "1,7,97", "17...": "", "5-4": "", "": "",
		"1,x,3": "1", "1-x": "", "1-9:0": "", "-3": "", "1,99999999999": "1", "0-4194304": "", "0-2%x": "0-2", "0-2%0": "0-2", "5-4000000": "5-10004",
	} {
		if got := elements(text).String(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzNodesAndJobs(f *testing.F) {
	f.Add(oneNode + "Reason=x [root@1970-01-01T00:00:07]")
	f.Add("JobId=1 Nodes=n1 CPU_IDs=0-1 Mem=128")
	seed, _ := said{
		"JobID": "1", "State": "RUNNING", "NodeList": "n[1-2]", "TimeLimit": "5:00", "StartTime": "1970-01-01T00:01:40", "exit_code": "3:0", "ArrayTaskID": "0-9%2",
	}.line("#")
	f.Add(seed)
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := parseNodes(text)
		known := map[string]*nodeRecord{}
		for i := range nodes {
			if n, _ := nodes[i].describe(); err == nil && n.Cores < 0 {
				t.Fatalf("%+v", n)
			}
			_ = nodes[i].state()
			known[nodes[i].Name] = &nodes[i]
		}
		cores := coresOf(text, known)
		jobs, _ := parseJobs(text, "#", lookFields[:fieldExclusive])
		for i := range jobs {
			if j, _, err := jobs[i].job(cores[jobs[i].at(fieldID)]); err == nil && (j.Cores < 0 || !j.Start.Valid() || j.Limit < 0) {
				t.Fatalf("%+v", j)
			}
		}
	})
}

// Where Slurm shows the pattern of an output instead of its file, the file is told.
func TestOutputIsTheFileOfAPattern(t *testing.T) {
	for path, want := range map[string]string{
		"/d/slurm-8.out": "/d/slurm-8.out", "/d/%x-%j.out": "/d/relax-8.out", "/d/%%j-%u": "/d/%j-ann", "/d/%A.%N": "/d/8.%N", "/d/%a": "/d/%a",
	} {
		if got := expanded(path, "8", &site.Job{ID: "8", Name: "relax", User: "ann"}); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if got := expanded("/d/%A_%a-%j", "8", &site.Job{ID: "7_3", Array: "7"}); got != "/d/7_3-8" {
		t.Errorf("of an element of an array it is %s", got)
	}
}

// However what squeue writes comes in pieces, the jobs are those of the whole, and what is not right is found.
func TestReadsJobsAsTheyCome(t *testing.T) {
	const mark = "#mark#"
	list := []jobField{fieldID, fieldState, fieldName, fieldComment, fieldExclusive}
	rapid.Check(t, func(t *rapid.T) {
		free := rapid.SampledFrom([]string{"", "a|b", "two\nlines", "\n", "#mark", "#", "1|RUNNING|"})
		var text strings.Builder
		jobs := rapid.IntRange(0, 40).Draw(t, "jobs")
		for i := range jobs {
			fmt.Fprintf(&text, "%d|RUNNING|%s%s%s%sNO|\n", i, free.Draw(t, "name"), mark, free.Draw(t, "comment"), mark)
		}
		all := []byte(text.String())
		if len(all) > 0 && rapid.Bool().Draw(t, "damaged") {
			at := rapid.IntRange(0, len(all)-1).Draw(t, "at")
			if all[at] = '\n'; rapid.Bool().Draw(t, "cut off") {
				all = all[:at]
			}
		}
		want, wrong := parseJobs(string(all), mark, list)
		r := newJobReader(mark, list, 0)
		r.next = rapid.IntRange(1, 100).Draw(t, "at once")
		for rest := all; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			r.take(rest[:n])
			r.next = min(r.next, 2*len(r.text)+10)
			rest = rest[n:]
		}
		got, err := r.all()
		if (wrong == nil) != (err == nil) || len(got) != len(want) {
			t.Fatalf("%d jobs, %v; of the whole %d, %v", len(got), err, len(want), wrong)
		}
		for i := range want {
			for f := range allFields {
				if got[i].at(f) != want[i].at(f) {
					t.Errorf("job %d, field %d: %q, want %q", i, f, got[i].at(f), want[i].at(f))
				}
			}
		}
	})
}

// What a site panics with beside the rest of a look is raised in those who look.
func TestAPanicBesideIsRaised(t *testing.T) {
	p := site.Caught(func() { beside(func() { panic("nodes") }, func() {}) })
	if raised, is := p.Value.(*site.Panic); !is || raised.Value != "nodes" {
		t.Errorf("raised %v", p)
	}
}
