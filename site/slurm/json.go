package slurm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// saidError is what an answer in JSON holds as its error.
type saidError string

func (e saidError) Error() string { return string(e) }

// answer is what all answers in JSON have in common, as the plugin
// openapi/v0.0.38 of Slurm 22.05 writes them.
type answer struct {
	Meta struct {
		Slurm struct {
			Release string `json:"release"`
		} `json:"Slurm"`
	} `json:"meta"`
	Errors []struct {
		Error       string `json:"error"`
		Description string `json:"description"`
		Number      int    `json:"error_number"`
	} `json:"errors"`
}

// check returns the first error of an answer. An answer with errors has empty
// lists, which are not to be mistaken for an empty cluster.
func (a *answer) check() error {
	if len(a.Errors) > 0 {
		e := a.Errors[0]
		return saidError(strings.Trim(e.Error+": "+e.Description+" (error "+strconv.Itoa(e.Number)+")", ": "))
	}
	if a.Meta.Slurm.Release == "" {
		return errors.New("no answer of Slurm")
	}
	return nil
}

// nodeRecord is a node as sinfo --json has it.
type nodeRecord struct {
	Name           string   `json:"name"`
	State          string   `json:"state"`
	StateFlags     []string `json:"state_flags"`
	Reason         string   `json:"reason"`
	ReasonAt       int64    `json:"reason_changed_at"`
	Sockets        int      `json:"sockets"`
	CoresPerSocket int      `json:"cores"`
	CPUs           int      `json:"cpus"`
	AllocCPUs      int      `json:"alloc_cpus"`
	RealMemory     int64    `json:"real_memory"` // MiB
	Features       string   `json:"features"`
	GRES           string   `json:"gres"`
}

func parseNodes(text []byte) ([]nodeRecord, error) {
	var out struct {
		answer
		Nodes *[]nodeRecord `json:"nodes"`
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	if err := out.check(); err != nil {
		return nil, err
	}
	if out.Nodes == nil {
		return nil, fmt.Errorf("no list of nodes from Slurm %.20s", out.Meta.Slurm.Release)
	}
	seen := make(map[string]bool, len(*out.Nodes))
	for i := range *out.Nodes {
		n := &(*out.Nodes)[i]
		if !site.ValidWord(n.Name) || seen[n.Name] || n.Sockets < 1 || n.CoresPerSocket < 1 || n.Sockets > berth.MaxPEs || n.CoresPerSocket > berth.MaxPEs {
			return nil, fmt.Errorf("node %.40q with %d sockets of %d cores", n.Name, n.Sockets, n.CoresPerSocket)
		}
		seen[n.Name] = true
	}
	return *out.Nodes, nil
}

func (n *nodeRecord) describe() (site.Node, error) {
	gres, err := parseGRES(n.GRES)
	if err != nil {
		return site.Node{}, fmt.Errorf("node %s: %w", n.Name, err)
	}
	const mebibyte, megabyte = 1 << 20, 1_000_000
	node := site.Node{
		Name: n.Name, Sockets: n.Sockets, Cores: n.cores(), GRES: gres,
		Features: wordList(n.Features),
	}
	if n.RealMemory > 0 && n.RealMemory < berth.MaxMegabytes/2 {
		node.MemoryMB = n.RealMemory * mebibyte / megabyte
	}
	return node, nil
}

func (n *nodeRecord) cores() berth.Count {
	return berth.Count(min(n.Sockets*n.CoresPerSocket, berth.MaxPEs))
}

// state reads a node's state: a base state and flags. A node that does not
// answer is up until Slurm itself says that it is down. Powered down nodes are
// powered up when needed.
func (n *nodeRecord) state() site.NodeState {
	out := site.NodeState{Name: n.Name, Condition: site.Up, Busy: berth.Count(n.AllocCPUs)}
	has := func(flag string) bool { return slices.Contains(n.StateFlags, flag) }
	switch {
	case n.State == "down", n.State == "error", n.State == "future", has("FAIL"), has("INVALID_REG"):
		out.Condition = site.Down
	case has("DRAIN"):
		out.Condition = site.Drained
	case n.State == "unknown", n.State == "invalid", n.State == "":
		out.Condition = site.Unknown
	}
	if out.Condition != site.Up {
		out.Reason, out.Since = n.Reason, berth.Time(n.ReasonAt)
	}
	return out
}

// jobRecord is a job as squeue --json has it.
type jobRecord struct {
	JobID       int64   `json:"job_id"`
	ArrayJobID  int64   `json:"array_job_id"`
	ArrayTaskID *int64  `json:"array_task_id"`
	ArrayString string  `json:"array_task_string"`
	State       string  `json:"job_state"`
	StateReason string  `json:"state_reason"`
	Name        string  `json:"name"`
	Output      string  `json:"standard_output"`
	Comment     string  `json:"comment"`
	UserName    string  `json:"user_name"`
	UserID      int64   `json:"user_id"`
	Account     string  `json:"account"`
	Partition   string  `json:"partition"`
	Reservation string  `json:"resv_name"`
	Nodes       string  `json:"nodes"`
	CPUs        int64   `json:"cpus"`
	StartTime   int64   `json:"start_time"`
	EndTime     int64   `json:"end_time"`
	SubmitTime  int64   `json:"submit_time"`
	Eligible    int64   `json:"eligible_time"` // 0 of a pending job: held, or behind another one
	NodeCount   int64   `json:"node_count"`    // of a pending job an estimate from its processors
	Shared      *string `json:"shared"`        // "none" of a job that wants whole nodes
	TimeLimit   *int64  `json:"time_limit"`    // minutes; null is none
	ExitCode    int64   `json:"exit_code"`     // as wait(2) has it
	Resources   struct {
		Nodes []struct {
			Name    string `json:"nodename"`
			Sockets map[string]struct {
				Cores map[string]string `json:"cores"`
			} `json:"sockets"`
		} `json:"allocated_nodes"`
	} `json:"job_resources"`
}

func parseJobs(text []byte) ([]jobRecord, error) {
	var out struct {
		answer
		Jobs *[]jobRecord `json:"jobs"`
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	if err := out.check(); err != nil {
		return nil, err
	}
	if out.Jobs == nil {
		return nil, fmt.Errorf("no list of jobs from Slurm %.20s", out.Meta.Slurm.Release)
	}
	return *out.Jobs, nil
}

// phase is whether a job holds nodes.
type phase int

const (
	running phase = iota
	pending
	over
)

// endings are the states of jobs that are over.
var endings = map[string]site.Ending{
	"COMPLETED": site.Completed, "CANCELLED": site.Cancelled, "PREEMPTED": site.Cancelled, "REVOKED": site.Cancelled,
	"FAILED": site.Failed, "OUT_OF_MEMORY": site.Failed, "BOOT_FAIL": site.NodeLost, "NODE_FAIL": site.NodeLost,
	"TIMEOUT": site.TimedOut, "DEADLINE": site.TimedOut,
}

// waiting are the states of jobs that hold nothing yet. In every other state a
// job holds its nodes, while COMPLETING too.
var waiting = []string{"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}

// job reads a record. coresPerSocket is by node.
func (j *jobRecord) job(coresPerSocket map[string]int) (site.Job, phase, error) {
	out := site.Job{
		ID: site.JobID(strconv.FormatInt(j.JobID, 10)), Name: j.Name, User: j.UserName, Account: j.Account, Partition: j.Partition,
		Output:      j.Output,
		Reservation: j.Reservation, Start: berth.Time(j.StartTime), End: berth.Time(j.EndTime),
		Cores: berth.Count(min(max(j.CPUs, 0), berth.MaxPEs)),
	}
	if out.User == "" {
		out.User = strconv.FormatInt(j.UserID, 10)
	}
	if key, _, ours := parseComment(j.Comment); ours {
		out.Key = key
	}
	switch array := site.JobID(strconv.FormatInt(j.ArrayJobID, 10)); {
	case j.ArrayJobID != 0 && j.ArrayTaskID != nil:
		out.Array, out.ID = array, array+"_"+site.JobID(strconv.FormatInt(*j.ArrayTaskID, 10))
	case j.ArrayJobID != 0 && j.ArrayString != "":
		out.Array, out.ID = array, array+"_["+site.JobID(j.ArrayString)+"]"
		out.Elements = elements(j.ArrayString)
	}
	j.asked(&out)
	if !out.Start.Valid() || !out.End.Valid() || j.JobID < 1 {
		return out, running, fmt.Errorf("job %d from %d to %d", j.JobID, j.StartTime, j.EndTime)
	}
	if ending, ended := endings[j.State]; ended {
		out.Result = site.Result{Ending: ending, Code: int(j.ExitCode >> 8 & 0xff), Signal: int(j.ExitCode & 0x7f)}
		out.Reason = j.StateReason
		return out, over, j.shares(&out, coresPerSocket)
	}
	if slices.Contains(waiting, j.State) {
		out.Reason, out.Held = j.StateReason, j.Eligible == 0
		return out, pending, nil
	}
	if j.TimeLimit == nil {
		out.End = berth.Forever
	}
	return out, running, j.shares(&out, coresPerSocket)
}

// asked reads what a job asks for. What cannot be right is not said.
func (j *jobRecord) asked(out *site.Job) {
	if at := berth.Time(j.SubmitTime); at > 0 && at.Valid() {
		out.Submitted = at
	}
	if at := berth.Time(j.Eligible); at > 0 && at.Valid() {
		out.Begin = at
	}
	if j.TimeLimit != nil && *j.TimeLimit > 0 && *j.TimeLimit < int64(berth.TimeLimit)/60 {
		out.Limit = berth.Duration(*j.TimeLimit) * 60
	}
	out.Nodes = berth.Count(min(max(j.NodeCount, 0), berth.MaxPEs))
	out.Exclusive = j.Shared != nil && *j.Shared == "none"
}

// elements reads the indices of an array as Slurm writes them, such as 0-8:2,11%3,
// where a number behind a percent sign says how many may run at once. Of a long
// list Slurm writes the beginning and three points, before which a number may be
// cut off. It ends at the first thing that it does not know.
func elements(text string) berth.PESet {
	list, most, limited := strings.Cut(text, "%")
	left, err := strconv.ParseUint(most, 10, 31)
	if !limited || err != nil || left == 0 || left > maxElements {
		left = maxElements
	}
	if whole, cut := strings.CutSuffix(list, "..."); cut {
		list = whole[:max(0, strings.LastIndexByte(whole, ','))]
	}
	var runs []berth.Run
	for item := range strings.SplitSeq(list, ",") {
		span, by, _ := strings.Cut(item, ":")
		first, last, ranged := strings.Cut(span, "-")
		lo, err := strconv.ParseUint(first, 10, 31)
		hi, step := lo, uint64(1)
		if ranged && err == nil {
			hi, err = strconv.ParseUint(last, 10, 31)
		}
		if by != "" && err == nil {
			step, err = strconv.ParseUint(by, 10, 31)
		}
		if err != nil || step == 0 || hi >= maxIndex {
			break
		}
		for at := lo; at <= hi && left > 0; at += step {
			runs = append(runs, berth.Run{Lo: berth.PE(at), Hi: berth.PE(at) + 1})
			left--
		}
	}
	return berth.NewPESet(runs...)
}

// maxElements bounds how many elements of an array are told at a time; those
// behind them are when these have started.
const maxElements = 10_000

// maxIndex is more than the largest index that Slurm can be configured for
// (MaxArraySize up to 4,000,001).
const maxIndex = 1 << 22

// shares reads what a job holds: the cores of its nodes where Slurm says which,
// else the whole nodes.
func (j *jobRecord) shares(out *site.Job, coresPerSocket map[string]int) error {
	nodes, err := nodeList(j.Nodes)
	if err != nil {
		return fmt.Errorf("job %d: %w", j.JobID, err)
	}
	cores := map[string][]berth.PE{}
	for i := range j.Resources.Nodes {
		n := &j.Resources.Nodes[i]
		for socket, s := range n.Sockets {
			for core, state := range s.Cores {
				at, ok := coreNumber(socket, core, coresPerSocket[n.Name])
				if !ok {
					return fmt.Errorf("job %d: core %.20q of socket %.20q", j.JobID, core, socket)
				}
				if state == "allocated" {
					cores[n.Name] = append(cores[n.Name], at)
				}
			}
		}
	}
	for _, node := range nodes {
		out.Shares = append(out.Shares, site.Share{Node: node, Cores: berth.PEsOf(cores[node]...)})
	}
	return nil
}

func coreNumber(socket, core string, coresPerSocket int) (berth.PE, bool) {
	s, errSocket := strconv.ParseUint(socket, 10, 16)
	c, errCore := strconv.ParseUint(core, 10, 16)
	n := s*uint64(coresPerSocket) + c
	return berth.PE(n), errSocket == nil && errCore == nil && n < berth.MaxPEs
}
