package api

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/planning"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/workload"
)

// wish is a workflow as it was read: parents by their ids.
type wish struct {
	berth.Workflow
	deadline when
	after    [][]string
	reads    [][]int64 // bytes of what each of them has written
}

var workflowBody = body[wish]{
	{"id", "Its id; made if it is not given.", text("nightly"), func(w *wish, v value) (err error) {
		if w.ID, err = v.word(); err == nil && !site.ValidWord(w.ID) {
			return fmt.Errorf("%q; want 1 to 64 letters, digits, dashes, underscores and points", w.ID)
		}
		return err
	}},
	{"name", "For people.", text("genome"), func(w *wish, v value) (err error) {
		w.Name, err = v.word()
		return err
	}},
	{"user", "In whose name; who asks, if it is not given. Others only operators may name.", text("alice"), func(w *wish, v value) (err error) {
		if w.User, err = v.word(); err == nil && !site.ValidUser(w.User) {
			return fmt.Errorf("%q; %s", w.User, site.UserForm)
		}
		return err
	}},
	word("account", "An account of the site, for tasks that name none. Only jobs in it may run in their reservations.", func(w *wish) *string { return &w.Account }),
	word("qos", "A QOS of the site, for tasks that name none, with which they run.", func(w *wish) *string { return &w.QOS }),
	{"deadline", "By when all must have ended; as early as possible if it is not given.", instant(), func(w *wish, v value) error {
		t, err := v.instant(down)
		w.deadline.at = &t
		return err
	}},
	inField("deadline", "How long after it is decided all must have ended", 1, func(w *wish) *when { return &w.deadline }),
	{"algorithm", "The planner, as berth plan --help lists them, or best, which tries several and leaves part of the time until the deadline; best-N leaves N percent.", text("best"), func(w *wish, v value) (err error) {
		w.Algorithm, err = v.word()
		return err
	}},
	{"repair", "What is done about tasks that end early or late; both if it is not given.", oneOf("hold", "late", "both"), func(w *wish, v value) error {
		word, err := v.word()
		if w.Repair = berth.Repair(word); err == nil && !slices.Contains(berth.Repairs(), w.Repair) {
			return fmt.Errorf("%q; want one of %s", word, joined(berth.Repairs()))
		}
		return err
	}},
	{"site", "The only site that will do.", text("cm5"), func(w *wish, v value) (err error) {
		w.Site, err = v.word()
		return err
	}},
	{"pool", "The only pool that will do.", text("batch"), func(w *wish, v value) (err error) {
		w.Pool, err = v.word()
		return err
	}},
	{"spread", "Its tasks may be at several sites: files that they share have to be at all of them.", truth(), func(w *wish, v value) (err error) {
		w.Spread, err = v.truth()
		return err
	}},
	{"hold", "Hold it instead of promising it: for so long, or true for half an hour.", holding(), func(w *wish, v value) (err error) {
		w.Hold, err = v.hold()
		return err
	}},
	{"tasks", "The tasks. Each starts when those named in its after have succeeded.", listOf(object(stepBody)), func(w *wish, v value) error {
		items, err := v.items()
		switch {
		case err != nil:
			return err
		case len(items) == 0 || len(items) > berth.MaxWorkflowTasks:
			return fmt.Errorf("%d tasks; want 1 to %d", len(items), berth.MaxWorkflowTasks)
		}
		var all faults
		for i, item := range items {
			if all.full() {
				break
			}
			var one step
			var wrong faults
			stepBody.read(item, &one, &wrong)
			if len(wrong) == 0 && !one.timed {
				wrong.add("seconds", errors.New("missing; want how long it takes on one PE, or its times as measured"))
			}
			all.add("["+strconv.Itoa(i)+"]", wrong.err())
			w.Tasks, w.after, w.reads = append(w.Tasks, one.WorkflowTask), append(w.after, one.after), append(w.reads, one.reads)
		}
		return all.err()
	}},
}

// step is a task as it was read.
type step struct {
	berth.WorkflowTask
	after []string
	reads []int64
	timed bool // it says how long it takes
}

var stepBody = body[step]{
	{"id", "Its id in the workflow.", text("align"), func(s *step, v value) (err error) {
		s.ID, err = v.word()
		return err
	}},
	{"seconds", "How long it takes on one PE.", number(), func(s *step, v value) (err error) {
		s.Seconds, err = v.number()
		s.timed = true
		return err
	}},
	{"alpha", "The part of it that does not run in parallel, from 0 to 1.", number(), func(s *step, v value) (err error) {
		s.Alpha, err = v.number()
		return err
	}},
	{"few", "The fewest PEs that it runs on.", whole(0, berth.MaxPEs), func(s *step, v value) error {
		n, err := v.whole(0, berth.MaxPEs)
		s.Few = berth.Count(n)
		return err
	}},
	{"most", "The most PEs that it runs on; 0 is no bound.", whole(0, berth.MaxPEs), func(s *step, v value) error {
		n, err := v.whole(0, berth.MaxPEs)
		s.Most = berth.Count(n)
		return err
	}},
	{"measured", "Run times measured on some numbers of PEs, instead of the fields above; it runs on one of these numbers.", listOf(object(measurementBody)), func(s *step, v value) error {
		s.timed = true
		return each(v, func(item value, wrong *faults) {
			var m berth.Measurement
			measurementBody.read(item, &m, wrong)
			s.Measured = append(s.Measured, m)
		})
	}},
	{"after", "The ids of the tasks that must have succeeded.", listOf(text("fetch")), func(s *step, v value) (err error) {
		s.after, err = v.texts()
		return err
	}},
	{"read_bytes", "How many bytes it reads of what each task in after has written, in that order; 0 is not known. Where these are at another site, the time to move them there is part of the plan.", listOf(whole(0, berth.MaxReads)), func(s *step, v value) error {
		items, err := v.items()
		if err != nil {
			return err
		}
		for i, item := range items {
			n, err := item.whole(0, berth.MaxReads)
			if err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
			s.reads = append(s.reads, n)
		}
		return nil
	}},
	{"retries", "How often it is tried again if it fails.", whole(0, berth.MaxRetries), func(s *step, v value) error {
		n, err := v.whole(0, berth.MaxRetries)
		s.Retries = int(n)
		return err
	}},
	{"command", "The program and its arguments; no shell reads them. Without it and script the task runs what is handed in to its reservation.", listOf(text("hostname")), func(s *step, v value) (err error) {
		s.Work.Command, err = v.texts()
		return err
	}},
	{"script", "Or a batch script, which begins with #!.", text("#!/bin/sh\nhostname\n"), func(s *step, v value) (err error) {
		s.Work.Script, err = v.text()
		return err
	}},
	{"dir", "The folder to run it in.", text("/home/alice"), func(s *step, v value) (err error) {
		s.Work.Dir, err = v.text()
		return err
	}},
	{"env", "Its environment, NAME=value.", listOf(text("LANG=C")), func(s *step, v value) (err error) {
		s.Work.Env, err = v.texts()
		return err
	}},
	{"output", "A file for its output.", text("out.txt"), func(s *step, v value) (err error) {
		s.Work.Output, err = v.text()
		return err
	}},
	{"inputs", "Files, by paths from dir, without which it does not begin.", listOf(text("raw.txt")), func(s *step, v value) (err error) {
		s.Work.Inputs, err = v.texts()
		return err
	}},
	{"outputs", "Files, by paths from dir, without which it has not succeeded.", listOf(text("result.txt")), func(s *step, v value) (err error) {
		s.Work.Outputs, err = v.texts()
		return err
	}},
	needed("software", "A program that the site must have.", func(s *step) *string { return &s.Software }),
	needed("version", "The least version of the software.", func(s *step) *string { return &s.Version }),
	needed("partition", "A partition of the site.", func(s *step) *string { return &s.Partition }),
	word("account", "An account of the site, instead of that of the workflow.", func(s *step) *string { return &s.Account }),
	word("qos", "A QOS of the site, instead of that of the workflow.", func(s *step) *string { return &s.QOS }),
	needed("site", "The only site that will do for it. The others may then be elsewhere.", func(s *step) *string { return &s.Site }),
	{"constraint", "Features that its PEs have, such as intel&ib, or alternatives such as [rack1|rack2]: all PEs have the same one.", text("intel&ib"), func(s *step, v value) (err error) {
		s.Constraint, err = constraint(v)
		return err
	}},
	takes("licences", "How many licences of the software it takes.", berth.MaxLicences, func(s *step, n int64) { s.Licences = berth.Count(n) }),
	takes("memory_mb", "Memory of one PE in 10^6 bytes.", berth.MaxMegabytes-1, func(s *step, n int64) { s.MemoryMB = n }),
	takes("accelerators", "Accelerators of one PE.", berth.MaxAccelerators, func(s *step, n int64) { s.Accelerators = int(n) }),
}

var measurementBody = body[berth.Measurement]{
	{"npe", "On how many PEs.", whole(1, berth.MaxPEs), func(m *berth.Measurement, v value) error {
		n, err := v.whole(1, berth.MaxPEs)
		m.NPE = berth.Count(n)
		return err
	}},
	{"seconds", "How long it took.", number(), func(m *berth.Measurement, v value) (err error) {
		m.Seconds, err = v.number()
		return err
	}},
}

func needed(name, about string, of func(*step) *string) field[step] {
	return field[step]{name, about, text(""), func(s *step, v value) (err error) {
		*of(s), err = v.word()
		return err
	}}
}

func takes(name, about string, most int64, set func(*step, int64)) field[step] {
	return field[step]{name, about, whole(0, most), func(s *step, v value) error {
		n, err := v.whole(0, most)
		set(s, n)
		return err
	}}
}

func number() *schema { return &schema{Type: "number"} }

// number reads a number that is not negative.
func (v value) number() (float64, error) {
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || !(n >= 0) || math.IsInf(n, 1) {
		return 0, fmt.Errorf("%s; want a number of 0 or more", v.short())
	}
	return n, nil
}

func truth() *schema { return &schema{Type: "boolean"} }

func (v value) truth() (bool, error) {
	switch string(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%s; want true or false", v.short())
}

// workflow makes a workflow of what was asked, with what was free on average in the past.
func (c *call) workflow() (service.Ask, berth.Workflow, error) {
	w := wish{Workflow: berth.Workflow{Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth}}
	var wrong faults
	workflowBody.read(c.body, &w, &wrong)
	if len(wrong) == 0 && len(w.Tasks) == 0 {
		wrong.add("tasks", fmt.Errorf("missing; want 1 to %d tasks", berth.MaxWorkflowTasks))
	}
	now := c.Now()
	w.Arrival = now
	if len(wrong) == 0 {
		w.Deadline = w.deadline.by(berth.Forever, now, &wrong)
	}
	if len(wrong) == 0 {
		w.link(&wrong)
	}
	if err := wrong.err(); err != nil {
		return service.Ask{}, w.Workflow, err
	}
	c.rates.charge(c.asker(), len(w.Tasks)/(100*plansAtOnce))
	if err := c.averages(&w.Workflow, now); err != nil {
		return service.Ask{}, w.Workflow, err
	}
	ask, err := c.ask()
	ask.FromNow.Deadline = w.deadline.in != nil
	c.rest()
	return ask, w.Workflow, err
}

// by returns a deadline that is to come, another one if none was given.
func (w *when) by(other, now berth.Time, wrong *faults) berth.Time {
	w.count("deadline", now, wrong)
	switch {
	case w.at == nil:
		return other
	case *w.at <= now:
		wrong.add("deadline", fmt.Errorf("%s is over; it is %s", stamp(*w.at), stamp(now)))
	}
	return *w.at
}

// maxFileName is as long as a path can be (PATH_MAX).
const maxFileName = 4096

// link finds the parents of all tasks, and checks what they run.
func (w *wish) link(wrong *faults) {
	at := make(map[string]int, len(w.Tasks))
	for i := range w.Tasks {
		at[w.Tasks[i].ID] = i
	}
	for i := range w.Tasks {
		t, name := &w.Tasks[i], "tasks["+strconv.Itoa(i)+"]"
		reads := w.reads[i]
		if len(reads) > 0 && len(reads) != len(w.after[i]) {
			wrong.add(name+".read_bytes", fmt.Errorf("%d sizes; want one for each of the %d tasks in after", len(reads), len(w.after[i])))
			reads = nil
		}
		for n, parent := range w.after[i] {
			k, known := at[parent]
			if !known {
				wrong.add(name+".after", fmt.Errorf("%.60q is no task of the workflow", parent))
				continue
			}
			twice := slices.Index(t.After, k)
			switch {
			case twice < 0 && len(reads) > 0:
				t.After, t.Reads = append(t.After, k), append(t.Reads, reads[n])
			case twice < 0:
				t.After = append(t.After, k)
			case len(reads) > 0 && reads[n] != t.Reads[twice]:
				wrong.add(name+".read_bytes", fmt.Errorf("%d and %d bytes of task %.60q, which is in after twice; want one size", t.Reads[twice], reads[n], parent))
			}
		}
		if t.Work.Empty() {
			continue
		}
		task := site.Task{Key: "workflow", Reservation: "berth", Command: t.Work.Command, Script: t.Work.Script, Dir: t.Work.Dir, Env: t.Work.Env, Output: t.Work.Output}
		if err := task.Check(); err != nil {
			wrong.add(name, err)
		}
		for _, file := range slices.Concat(t.Work.Inputs, t.Work.Outputs) {
			if file == "" || len(file) > maxFileName || strings.ContainsFunc(file, func(c rune) bool { return c < ' ' || c == 0x7f }) {
				wrong.add(name+".inputs or outputs", fmt.Errorf("%.60q; want a path of 1 to %d bytes on one line", file, maxFileName))
			}
		}
	}
}

// averages notes how many PEs were free on average in the past, of the pools that will do.
func (c *call) averages(w *berth.Workflow, now berth.Time) error {
	sites, err := c.Sites(c.r.Context(), c.by)
	if err != nil {
		return err
	}
	from := now - berth.Time(history)
	for i := range sites {
		s := &sites[i]
		if w.Site != "" && s.Name != w.Site {
			continue
		}
		// What begins later says nothing of the past, and may be most of what is held.
		spans, err := c.Occupation(c.r.Context(), c.by, s.Name, from, now, service.Mark{Start: math.MinInt64}, math.MaxInt)
		if err != nil {
			return err
		}
		for k := range s.Pools {
			pool := &s.Pools[k]
			if w.Pool != "" && pool.Name != w.Pool {
				continue
			}
			held, past := heldIn(spans, pool, from, now)
			w.Free = append(w.Free, berth.Average{Resource: berth.PoolID(s.Name, pool.Name), NPE: workload.AverageFree(held, pool.PEs, past)})
		}
	}
	return nil
}

// heldIn returns what is held of a pool, and the past that it covers.
func heldIn(spans []service.Span, pool *berth.Pool, from, now berth.Time) ([]workload.Booking, berth.Interval) {
	begin := now
	var all []workload.Booking
	for i := range spans {
		s := &spans[i]
		if s.Resource.Name != pool.Name {
			continue
		}
		if s.Kind != berth.KindOutage {
			begin = min(begin, s.Start)
		}
		all = append(all, workload.Booking{NPE: s.NPE, Start: max(from, s.Start), End: min(s.End, berth.TimeLimit-1)})
	}
	return planning.Held(all, pool.PEs), workload.Past(begin, now)
}

// recallWorkflow answers as was answered before under the same key; known is false if nothing
// was. It is asked before the body is read: times in the body may lie in the past by now.
func (c *call) recallWorkflow(status int) (known bool, err error) {
	ask, err := c.ask()
	if err != nil || ask.Key == "" {
		return err != nil, err
	}
	answer, err := c.RecallWorkflow(c.r.Context(), ask)
	if err != nil || answer == nil {
		return err != nil, err
	}
	return true, c.workflowDecided(status, answer)
}

func (c *call) submitWorkflow() error {
	if known, err := c.recallWorkflow(http.StatusCreated); known {
		return err
	}
	ask, w, err := c.workflow()
	if err != nil {
		return err
	}
	answer, err := c.SubmitWorkflow(c.r.Context(), ask, w)
	if err != nil {
		return err
	}
	return c.workflowDecided(http.StatusCreated, &answer)
}

func (c *call) workflowDecided(status int, answer *service.FlowAnswer) error {
	if err := c.telling(len(answer.Workflow.Tasks)); err != nil {
		return err
	}
	f := form.WorkflowAnswer{Decision: "promised", Workflow: workflowView(&answer.Workflow, true), Offers: workflowOffers(answer.Offers)}
	switch answer.Workflow.State {
	case service.FlowRefused:
		f.Decision = "refused"
	case service.FlowHeld:
		f.Decision = "held"
	}
	c.w.Header().Set("ETag", etag(answer.Workflow.Version))
	return c.answer(status, &f)
}

func (c *call) offerWorkflow() error {
	ask, w, err := c.workflow()
	if err != nil {
		return err
	}
	offers, err := c.WorkflowOffers(c.r.Context(), ask, w)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, form.WorkflowOffers{Offers: workflowOffers(offers)})
}

var workflowsParams = []param{
	{"user", "Only of this user.", text("alice")},
	{"state", "Only in these states, with commas between them.", text("promised,running")},
	{"limit", "How many at most; 100 by default.", whole(1, maxPage)},
	{"cursor", "The next of the page before.", text("")},
}

var flowStates = []service.FlowState{
	service.FlowHeld, service.FlowPromised, service.FlowRunning, service.FlowSucceeded, service.FlowFailed, service.FlowCancelled, service.FlowExpired, service.FlowRefused,
}

func (c *call) listWorkflows() error {
	query, err := c.query(workflowsParams)
	if err != nil {
		return err
	}
	var wrong faults
	filter := service.FlowFilter{User: query["user"]}
	if text, given := query["state"]; given {
		for name := range strings.SplitSeq(text, ",") {
			if !slices.Contains(flowStates, service.FlowState(name)) {
				wrong.add("state", fmt.Errorf("%.40q; want some of %s", name, joined(flowStates)))
			}
			filter.States = append(filter.States, service.FlowState(name))
		}
	}
	limit, after := pageOf(query, &wrong)
	if err := wrong.err(); err != nil {
		return err
	}
	filter.After, filter.Limit = after, min(limit+1, maxPage)
	list, looked, err := c.Workflows(c.r.Context(), c.by, filter)
	c.rates.charge(c.asker(), looked/lookedAtOnce)
	if err != nil {
		return err
	}
	f := form.Workflows{Workflows: []form.Workflow{}}
	if len(list) > limit {
		list = list[:limit]
		f.Next = cursor(list[limit-1].Workflow.ID)
	}
	for i := range list {
		f.Workflows = append(f.Workflows, workflowView(&list[i], false))
	}
	return c.answer(http.StatusOK, &f)
}

func (c *call) getWorkflow() error {
	w, err := c.Workflow(c.r.Context(), c.by, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", etag(w.Version))
	return c.answer(http.StatusOK, new(workflowView(&w, true)))
}

func (c *call) confirmWorkflow() error {
	ask, err := c.ask()
	if err != nil {
		return err
	}
	answer, err := c.ConfirmWorkflow(c.r.Context(), ask, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.workflowDecided(http.StatusOK, &answer)
}

func (c *call) cancelWorkflow() error {
	ask, err := c.ask()
	if err != nil {
		return err
	}
	answer, err := c.CancelWorkflow(c.r.Context(), ask, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.workflowDecided(http.StatusOK, &answer)
}

var retryBody = body[when]{
	{"deadline", "By when all must have ended now; that of the workflow if it is not over, and else none.", instant(), func(w *when, v value) error {
		t, err := v.instant(down)
		w.at = &t
		return err
	}},
	inField("deadline", "How long after it is decided all must have ended now", 1, func(w *when) *when { return w }),
}

func (c *call) retryWorkflow() error {
	if known, err := c.recallWorkflow(http.StatusOK); known {
		return err
	}
	var until when
	ask, err := read(c, retryBody, &until)
	if err != nil {
		return err
	}
	var wrong faults
	deadline := until.by(0, c.Now(), &wrong)
	if err := wrong.err(); err != nil {
		return err
	}
	if ask.FromNow.Deadline = until.in != nil; ask.FromNow.Deadline {
		deadline = berth.Time(*until.in)
	}
	answer, err := c.RetryWorkflow(c.r.Context(), ask, c.r.PathValue("id"), deadline)
	if err != nil {
		return err
	}
	return c.workflowDecided(http.StatusOK, &answer)
}

func cpuHours(peSeconds int64) float64 { return float64(peSeconds) / 3600 }

func workflowOffers(offers []engine.WorkflowOffer) []form.WorkflowOffer {
	list := make([]form.WorkflowOffer, 0, len(offers))
	for i := range offers {
		o := &offers[i]
		list = append(list, form.WorkflowOffer{
			Deadline: form.TimeOf(o.Workflow.Deadline), Algorithm: o.Workflow.Algorithm, End: form.TimeOf(o.End), CPUHours: cpuHours(o.PESeconds), Critical: o.Critical,
		})
	}
	return list
}

// workflowView shows a workflow, with its tasks or without them.
func workflowView(w *service.Workflow, whole bool) form.Workflow {
	q := &w.Workflow
	f := form.Workflow{
		ID: q.ID, Name: q.Name, User: q.User, Account: q.Account, QOS: q.QOS, State: string(w.State), Version: w.Version, Deadline: form.TimeOf(q.Deadline), End: form.TimeOf(w.End),
		PlannedEnd: form.TimeOf(w.Planned), Algorithm: q.Algorithm, Planner: w.Planner, Repair: string(q.Repair), Replanned: w.Replanned, Cause: string(w.Cause),
		Why: whyOf(w.Why), Refusal: refusal(w.Refusal, askedPlace(w)), Expires: form.TimeOf(w.Expires), Created: form.TimeOf(w.Created), Changed: form.TimeOf(w.Changed), Tasks: []form.WorkflowStep{},
	}
	if q.Deadline < berth.Forever && w.End != 0 && w.State != service.FlowRefused {
		f.Slack = new(int64(q.Deadline.Sub(w.End)))
	}
	area := int64(0)
	for i := range w.Tasks {
		t := &w.Tasks[i]
		area += berth.Area(t.NPE, max(0, t.End.Sub(t.Start)))
	}
	f.CPUHours = cpuHours(area)
	if !whole {
		return f
	}
	critical := criticalOf(w)
	for i := range w.Tasks {
		t, task := &w.Tasks[i], &q.Tasks[i]
		s := form.WorkflowStep{
			ID: task.ID, Reservation: t.Reservation, State: stepState(t), Why: whyOf(t.Why), Tries: t.Tries, Retries: task.Retries, Site: t.Resource.Site, Pool: t.Resource.Name,
			Account: task.Account, QOS: task.QOS, NPE: t.NPE, Missing: t.Missing, Start: form.TimeOf(t.Start), End: form.TimeOf(t.End), PlannedStart: form.TimeOf(t.PlannedStart), PlannedEnd: form.TimeOf(t.PlannedEnd), Critical: critical[i],
		}
		for _, parent := range task.After {
			s.After = append(s.After, q.Tasks[parent].ID)
		}
		if !task.Work.Empty() && t.Reservation != "" {
			s.Output = w.OutputOf(i)
		}
		f.Tasks = append(f.Tasks, s)
	}
	return f
}

// askedPlace returns the site and the pool that a workflow asked for, if its refusal is that there
// are none.
func askedPlace(w *service.Workflow) *berth.Request {
	if w.Refusal == nil || w.Refusal.Task == "" && w.Refusal.Resource != (berth.ResourceID{}) {
		return nil
	}
	q := &berth.Request{Site: w.Workflow.Site, Pool: w.Workflow.Pool}
	if k := slices.IndexFunc(w.Workflow.Tasks, func(t berth.WorkflowTask) bool { return t.ID == w.Refusal.Task }); k >= 0 {
		q.Site, q.Requirements = cmp.Or(w.Workflow.Tasks[k].Site, q.Site), w.Workflow.Tasks[k].Requirements
		return q
	}
	if q.Site == "" {
		var names []string // of the sites of tasks
		for i := range w.Workflow.Tasks {
			if name := w.Workflow.Tasks[i].Site; name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		q.Site = strings.Join(names, " or ")
	}
	return q
}

// stepState says where a task is in its life.
func stepState(t *service.FlowTask) string {
	switch {
	case t.Outcome != "":
		return string(t.Outcome)
	case t.State == service.Active:
		return "running"
	case t.State == "":
		return "none"
	case t.State.Over():
		return string(t.State) // with its workflow
	}
	return "waiting"
}

// criticalOf says which tasks are on the critical path: from the task that ends last back over
// the parent that ends last before each, as long as it ends when the next one starts.
func criticalOf(w *service.Workflow) []bool {
	on := make([]bool, len(w.Tasks))
	last := -1
	for i := range w.Tasks {
		if w.Tasks[i].End > 0 && (last < 0 || w.Tasks[i].End > w.Tasks[last].End) {
			last = i
		}
	}
	for last >= 0 && !on[last] {
		on[last] = true
		next := -1
		for _, parent := range w.Workflow.Tasks[last].After {
			if p := &w.Tasks[parent]; p.End == w.Tasks[last].Start && p.End > 0 {
				next = parent
				break
			}
		}
		last = next
	}
	return on
}

// workflowEvent shows what happened to a workflow.
func workflowEvent(n *service.FlowNews) *form.WorkflowEvent {
	if n == nil {
		return nil
	}
	return &form.WorkflowEvent{
		ID: n.ID, Name: n.Name, User: n.User, State: string(n.State), Task: n.Task, Outcome: string(n.Outcome), Why: whyOf(n.Why), Cause: string(n.Cause), Moved: n.Moved,
		End: form.TimeOf(n.End), Deadline: form.TimeOf(n.Deadline), Late: n.Late,
	}
}
