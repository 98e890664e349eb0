package slurm

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

const meta = `{"meta": {"plugin": {"type": "openapi/v0.0.38"}, "Slurm": {"version": {"major": 22}, "release": "22.05.8"}}, "errors": [],`

func TestNodeStates(t *testing.T) {
	for text, want := range map[string]site.Condition{
		`"state": "idle", "state_flags": []`:                              site.Up,
		`"state": "mixed", "state_flags": ["RESERVED"]`:                   site.Up,
		`"state": "idle", "state_flags": ["NOT_RESPONDING"]`:              site.Up,
		`"state": "idle", "state_flags": ["CLOUD", "POWERED_DOWN"]`:       site.Up,
		`"state": "idle", "state_flags": ["DRAIN"]`:                       site.Drained,
		`"state": "allocated", "state_flags": ["COMPLETING", "DRAIN"]`:    site.Drained,
		`"state": "down", "state_flags": ["DRAIN"]`:                       site.Down,
		`"state": "idle", "state_flags": ["FAIL"]`:                        site.Down,
		`"state": "unknown", "state_flags": []`:                           site.Unknown,
		`"state": "unknown", "state_flags": ["DRAIN", "NOT_RESPONDING"]`:  site.Drained,
		`"state": "down", "state_flags": ["INVALID_REG", "SOMETHINGNEW"]`: site.Down,
	} {
		nodes, err := parseNodes([]byte(meta + `"nodes": [{"name": "n1", "sockets": 2, "cores": 8, "cpus": 16, "alloc_cpus": 3, "reason": "why", "reason_changed_at": 7, ` + text + `}]}`))
		if err != nil {
			t.Fatal(err)
		}
		got := nodes[0].state()
		if got.Condition != want || got.Busy != 3 || (want == site.Up) != (got.Reason == "" && got.Since == 0) {
			t.Errorf("%s: %+v, want %s", text, got, want)
		}
	}
}

func TestNodeDescription(t *testing.T) {
	nodes, err := parseNodes([]byte(meta + `"nodes": [{"name": "g1", "sockets": 2, "cores": 8, "cpus": 32, "real_memory": 4096, "features": "ib,avx", "gres": "gpu:a100:4(S:0-1)", "state": "idle"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := nodes[0].describe()
	want := site.Node{
		Name: "g1", Cores: 16, Sockets: 2, MemoryMB: 4294, Features: []string{"ib", "avx"}, GRES: []site.GRES{{Name: "gpu", Type: "a100", Count: 4}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// With slurmctld down the lists are empty, and that is not an empty cluster.
func TestErrorsAreNotEmptyLists(t *testing.T) {
	const answer = `{"meta": {"Slurm": {"release": "22.05.8"}}, "errors": [{"description": "Failed while looking for jobs", "error_number": -1, "error": "Unspecified error"}], "jobs": [], "nodes": []}`
	var said saidError
	if _, err := parseJobs([]byte(answer)); !errors.As(err, &said) || !strings.Contains(string(said), "looking for jobs") {
		t.Errorf("jobs: %v", err)
	}
	_, err := parseNodes([]byte(answer))
	if got := answered("sinfo --json", err); site.KindOf(got) != site.Unreachable {
		t.Errorf("nodes: %v, want unreachable", got)
	}
}

func TestOtherFormsAreNotUnderstood(t *testing.T) {
	for _, text := range []string{
		"", "[]", "{}", `{"nodes": [], "jobs": []}`, meta + `"sinfo": []}`, meta + `"nodes": {}, "jobs": {}}`, meta + `"nodes": [{"name": "n1"}], "jobs": [{"job_id": "x"}]}`,
		meta + `"nodes": [{"name": "n1", "sockets": 1, "cores": 1, "state": ["IDLE"]}], "jobs": [{"job_id": 1, "job_state": ["RUNNING"]}]}`,
		meta + `"nodes": [{"name": "n 1", "sockets": 1, "cores": 1}], "jobs": [{"job_id": 1, "time_limit": {"set": true, "number": 5}}]}`,
		meta + `"nodes": [{"name": "n1", "sockets": 1, "cores": 1}, {"name": "n1", "sockets": 1, "cores": 1}]}`,
	} {
		if nodes, err := parseNodes([]byte(text)); err == nil {
			t.Errorf("nodes %.80q: %+v", text, nodes)
		}
		if jobs, err := parseJobs([]byte(text)); err == nil {
			t.Errorf("jobs %.80q: %+v", text, jobs)
		}
	}
}

func TestJobs(t *testing.T) {
	const common = `"job_id": 7, "user_name": "ada", "user_id": 1001, "partition": "main", "name": "wrap", "cpus": 4, "time_limit": 5, `
	held := site.Job{ID: "7", User: "ada", Partition: "main", Name: "wrap", Cores: 4, Start: 100, End: 400, Limit: 300}
	on := held
	on.Shares = []site.Share{{Node: "n1", Cores: berth.PEsOf(0, 5)}, {Node: "n2"}}
	for name, c := range map[string]struct {
		text  string
		phase phase
		want  func(*site.Job)
	}{
		"running": {
			`"job_state": "RUNNING", "start_time": 100, "end_time": 400, "time_limit": 5, "nodes": "n[1-2]", "comment": "berth:k",
			 "job_resources": {"allocated_nodes": [{"nodename": "n1", "sockets": {"0": {"cores": {"0": "allocated", "1": "unallocated"}}, "1": {"cores": {"1": "allocated"}}}}]}`,
			running, func(j *site.Job) { *j = on; j.Key = "k" },
		},
		"completing": {`"job_state": "COMPLETING", "start_time": 100, "end_time": 400, "time_limit": 5, "nodes": "n2"`, running, func(j *site.Job) { j.Shares = on.Shares[1:] }},
		"endless":    {`"job_state": "RUNNING", "start_time": 100, "end_time": 400, "time_limit": null, "nodes": "n2"`, running, func(j *site.Job) { j.Shares, j.End, j.Limit = on.Shares[1:], berth.Forever, 0 }},
		"strange":    {`"job_state": "DANCING", "start_time": 100, "end_time": 400, "time_limit": 5, "nodes": "n2"`, running, func(j *site.Job) { j.Shares = on.Shares[1:] }},
		"pending":    {`"job_state": "PENDING", "state_reason": "Reservation", "time_limit": 5, "nodes": "", "resv_name": "r"`, pending, func(j *site.Job) { j.Start, j.End, j.Reason, j.Reservation, j.Held = 0, 0, "Reservation", "r", true }},
		"asked": {
			`"job_state": "PENDING", "state_reason": "Priority", "time_limit": 5, "submit_time": 50, "eligible_time": 60, "node_count": 3, "shared": "none"`, pending,
			func(j *site.Job) {
				j.Start, j.End, j.Reason, j.Submitted, j.Begin, j.Nodes, j.Exclusive = 0, 0, "Priority", 50, 60, 3, true
			},
		},
		"held": {`"job_state": "RESV_DEL_HOLD", "time_limit": 5`, pending, func(j *site.Job) { j.Start, j.End, j.Held = 0, 0, true }},
		"array": {
			`"job_state": "PENDING", "array_job_id": 7, "array_task_id": null, "array_task_string": "0,3-9:3", "eligible_time": 60, "time_limit": 5`, pending,
			func(j *site.Job) {
				j.Start, j.End, j.ID, j.Array, j.Begin, j.Elements = 0, 0, "7_[0,3-9:3]", "7", 60, berth.PEsOf(0, 3, 6, 9)
			},
		},
		"index": {
			`"job_state": "COMPLETED", "array_job_id": 5, "array_task_id": 2, "start_time": 100, "end_time": 400, "nodes": "n2"`, over,
			func(j *site.Job) {
				j.ID, j.Array, j.Shares, j.Result = "5_2", "5", on.Shares[1:], site.Result{Ending: site.Completed}
			},
		},
		"failed": {
			`"job_state": "FAILED", "exit_code": 768, "state_reason": "NonZeroExitCode", "start_time": 100, "end_time": 400`, over,
			func(j *site.Job) { j.Reason, j.Result = "NonZeroExitCode", site.Result{Ending: site.Failed, Code: 3} },
		},
		"killed":   {`"job_state": "CANCELLED", "exit_code": 15, "start_time": 100, "end_time": 400`, over, func(j *site.Job) { j.Result = site.Result{Ending: site.Cancelled, Signal: 15} }},
		"too long": {`"job_state": "TIMEOUT", "exit_code": 0, "start_time": 100, "end_time": 400`, over, func(j *site.Job) { j.Result = site.Result{Ending: site.TimedOut} }},
		"node":     {`"job_state": "NODE_FAIL", "start_time": 100, "end_time": 400`, over, func(j *site.Job) { j.Result = site.Result{Ending: site.NodeLost} }},
	} {
		jobs, err := parseJobs([]byte(meta + `"jobs": [{` + common + c.text + `}]}`))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := held
		c.want(&want)
		got, phase, err := jobs[0].job(map[string]int{"n1": 4, "n2": 4})
		if diff := cmp.Diff(want, got); err != nil || phase != c.phase || diff != "" {
			t.Errorf("%s: phase %d, want %d, %v (-want +got)\n%s", name, phase, c.phase, err, diff)
		}
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

func FuzzJSON(f *testing.F) {
	f.Add(meta + `"nodes": [{"name": "n1", "sockets": 1, "cores": 4, "state": "idle", "gres": "gpu:2"}], "jobs": []}`)
	f.Add(meta + `"jobs": [{"job_id": 1, "job_state": "RUNNING", "nodes": "n[1-2]", "job_resources": {"allocated_nodes": [{"nodename": "n1", "sockets": {"0": {"cores": {"0": "allocated"}}}}]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := parseNodes([]byte(text))
		for i := range nodes {
			if n, _ := nodes[i].describe(); err == nil && n.Cores < 0 {
				t.Fatalf("%+v", n)
			}
			_ = nodes[i].state()
		}
		jobs, _ := parseJobs([]byte(text))
		for i := range jobs {
			if j, _, err := jobs[i].job(nil); err == nil && (j.Cores < 0 || !j.Start.Valid()) {
				t.Fatalf("%+v", j)
			}
		}
	})
}
