package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// job is a job as slurmrestd tells it.
type job struct {
	ID          int64    `json:"job_id"`
	Array       amount   `json:"array_job_id"`
	Task        amount   `json:"array_task_id"`
	Tasks       string   `json:"array_task_string"`
	State       []string `json:"job_state"`
	Reason      string   `json:"state_reason"`
	Words       string   `json:"state_description"` // instead of the reason
	User        string   `json:"user_name"`
	Account     string   `json:"account"`
	Partition   string   `json:"partition"`
	Reservation string   `json:"resv_name"`
	Nodes       string   `json:"nodes"`
	CPUs        amount   `json:"cpus"`
	NodeCount   amount   `json:"node_count"`
	Start       amount   `json:"start_time"`
	End         amount   `json:"end_time"`
	Submitted   amount   `json:"submit_time"`
	Eligible    amount   `json:"eligible_time"`
	Limit       amount   `json:"time_limit"`
	Exit        struct {
		Code   amount `json:"return_code"`
		Signal struct {
			ID amount `json:"id"`
		} `json:"signal"`
	} `json:"exit_code"`
	Output    string `json:"standard_output"`
	Comment   string `json:"comment"`
	Name      string `json:"name"`
	Resources *struct {
		Nodes *struct {
			Allocation []allocation `json:"allocation"`
		} `json:"nodes"`
	} `json:"job_resources"`
}

// allocation is what a job has of a node.
type allocation struct {
	Name    string `json:"name"`
	Sockets []struct {
		Index int `json:"index"`
		Cores []struct {
			Index  int      `json:"index"`
			Status []string `json:"status"`
		} `json:"cores"`
	} `json:"sockets"`
}

// first are the flags of a job's state that the commands write instead of the state itself, the
// first that it has (job_state_string of slurm_protocol_defs.c).
var first = []string{
	"COMPLETING", "STAGE_OUT", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "STOPPED", "REVOKED", "RESV_DEL_HOLD", "SIGNALING",
}

func (j *job) state() string {
	for _, flag := range first {
		if slices.Contains(j.State, flag) {
			return flag
		}
	}
	if len(j.State) == 0 {
		return ""
	}
	return j.State[0]
}

// field writes a field of squeue. What slurmrestd does not tell is none.
func (j *job) field(name string) (text string, known bool) {
	switch name {
	case "JobID":
		return strconv.FormatInt(j.ID, 10), true
	case "ArrayJobID":
		if j.Array.Number == 0 {
			return strconv.FormatInt(j.ID, 10), true
		}
		return j.Array.text(), true
	case "ArrayTaskID":
		switch {
		case j.Task.Set:
			return j.Task.text(), true
		case j.Tasks != "":
			return j.Tasks, true
		}
		return "N/A", true
	case "State":
		return j.state(), true
	case "Reason":
		return cmp.Or(j.Words, j.Reason), true
	case "UserName":
		return j.User, true
	case "Account":
		return orNone(j.Account), true
	case "Partition":
		return j.Partition, true
	case "Reservation":
		return orNone(j.Reservation), true
	case "NodeList":
		return j.Nodes, true
	case "NumCPUs":
		return j.CPUs.text(), true
	case "StartTime":
		return at(j.Start.Number), true
	case "EndTime":
		return at(j.End.Number), true
	case "SubmitTime":
		return at(j.Submitted.Number), true
	case "EligibleTime":
		return at(j.Eligible.Number), true
	case "NumNodes":
		return j.NodeCount.text(), true
	case "TimeLimit":
		return j.Limit.minutes(), true
	case "exit_code":
		return fmt.Sprintf("%d:%d", j.Exit.Code.Number, j.Exit.Signal.ID.Number), true
	case "STDOUT":
		return orNone(j.Output), true
	case "Comment":
		return orNone(j.Comment), true
	case "Name":
		return orNone(j.Name), true
	case "OverSubscribe", "Exclusive": // v0.0.45 has neither
		return none, true
	}
	return "", false
}

// queue answers for squeue in the form that it is asked for: fields with what stands behind each, or the
// numbers of the jobs of a reservation in some states.
func (a *API) queue(ctx context.Context, q *asked) (string, error) {
	type column struct{ name, mark string }
	var columns []column
	switch {
	case q.options["--Format"] != "":
		for item := range strings.SplitSeq(q.options["--Format"], ",") {
			name, mark, _ := strings.Cut(item, ":")
			if _, known := (&job{}).field(name); !known {
				return "", notAsked("squeue --Format=" + name)
			}
			columns = append(columns, column{name, mark})
		}
	case q.options["--format"] == "%A":
		columns = []column{{"JobID", ""}}
	default:
		return "", notAsked("squeue --format=" + q.options["--format"])
	}
	var states []string
	if list := q.options["--states"]; list != "all" && list != "" {
		states = strings.Split(list, ",")
	}
	reservation, only := q.options["--reservation"]
	var out strings.Builder
	err := a.get(ctx, "jobs/?flags=ALL", parts{"jobs": each(func(j *job) {
		state := j.state()
		switch {
		case only && j.Reservation != reservation, len(states) > 0 && !slices.Contains(states, state):
			return
		case only && len(states) == 0 && !slices.Contains(underWay, state):
			return
		}
		for _, c := range columns {
			text, _ := j.field(c.name)
			out.WriteString(text)
			out.WriteString(c.mark)
		}
		out.WriteByte('\n')
	})})
	return out.String(), err
}

// underWay are the states that squeue shows where it is told none.
var underWay = []string{
	"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "STOPPED", "RESV_DEL_HOLD",
	"SIGNALING", "STAGE_OUT",
}

// job answers for "scontrol show job", with what is asked for of one.
func (a *API) job(ctx context.Context, id string) (string, error) {
	var out strings.Builder
	err := a.get(ctx, "job/"+escaped(id), parts{"jobs": each(func(j *job) {
		fmt.Fprintf(&out, "JobId=%d JobState=%s TimeLimit=%s StartTime=%s EndTime=%s\n", j.ID, j.state(), j.Limit.minutes(), at(j.Start.Number), at(j.End.Number))
	})})
	return out.String(), err
}

// details answers for "scontrol --details show job", with which hardware threads of its nodes each job
// has.
func (a *API) details(ctx context.Context) (string, error) {
	a.mu.Lock()
	threads := a.threads
	a.mu.Unlock()
	var out strings.Builder
	err := a.get(ctx, "jobs/?flags=ALL&flags=DETAIL", parts{"jobs": each(func(j *job) {
		fmt.Fprintf(&out, "JobId=%d", j.ID)
		if j.Resources != nil && j.Resources.Nodes != nil {
			for i := range j.Resources.Nodes.Allocation {
				n := &j.Resources.Nodes.Allocation[i]
				fmt.Fprintf(&out, " Nodes=%s CPU_IDs=%s", oneLine(n.Name), n.cpus(max(1, threads[n.Name])))
			}
		}
		out.WriteByte('\n')
	})})
	return out.String(), err
}

// cpus lists the hardware threads of the cores that a job has, core by core.
func (n *allocation) cpus(threads int) string {
	var ids []string
	for _, socket := range n.Sockets {
		for _, core := range socket.Cores {
			if !slices.Contains(core.Status, "ALLOCATED") {
				continue
			}
			first := (socket.Index*len(socket.Cores) + core.Index) * threads
			if threads == 1 {
				ids = append(ids, strconv.Itoa(first))
			} else {
				ids = append(ids, fmt.Sprintf("%d-%d", first, first+threads-1))
			}
		}
	}
	return strings.Join(ids, ",")
}

// cancel cancels jobs. That one is over already is no failure.
func (a *API) cancel(ctx context.Context, ids []string) error {
	body := struct {
		Jobs []string `json:"jobs"`
	}{ids}
	type status struct {
		Error struct {
			String string `json:"string"`
			Code   int    `json:"code"`
		} `json:"error"`
		ID string `json:"step_id"`
	}
	const over = 2021 // ESLURM_ALREADY_DONE
	var no error
	err := a.wire.ask(ctx, a.now(), http.MethodDelete, "jobs/", body, parts{"status": each(func(s *status) {
		if s.Error.Code != 0 && s.Error.Code != over && no == nil {
			no = refuse("job %s: %s", s.ID, s.Error.String)
		}
	})})
	if err != nil {
		return err
	}
	return no
}

// releaseJob lets a job start that is kept from it.
func (a *API) releaseJob(ctx context.Context, id string) error {
	return a.changeJob(ctx, id, struct {
		Hold bool `json:"hold"`
	}{})
}

// updateJob moves a job to another reservation, or gives it another limit.
func (a *API) updateJob(ctx context.Context, q *asked) error {
	body := struct {
		Reservation string  `json:"reservation,omitempty"`
		Limit       *amount `json:"time_limit,omitempty"`
	}{}
	id := ""
	for _, p := range q.pairs {
		switch p.key {
		case "JobId":
			id = p.value
		case "ReservationName":
			body.Reservation = p.value
		case "TimeLimit":
			n, err := number(p.value)
			if err != nil {
				return err
			}
			body.Limit = n
		default:
			return notAsked("a job with " + p.key + "=")
		}
	}
	return a.changeJob(ctx, id, body)
}

func (a *API) changeJob(ctx context.Context, id string, body any) error {
	type result struct {
		ID    int64  `json:"job_id"`
		Code  int    `json:"error_code"`
		Error string `json:"error"`
	}
	var no error
	err := a.wire.ask(ctx, a.now(), http.MethodPost, "job/"+escaped(id), body, parts{"results": each(func(r *result) {
		if r.Code != 0 && no == nil {
			no = refuse("%s (job %d)", r.Error, r.ID)
		}
	})})
	if err != nil {
		return err
	}
	return no
}
