package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/plot"
)

// workflowCommand returns berth workflow.
func (a *app) workflowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workflow",
		Short: "Submit workflows, follow them, and end or retry them",
		Long: `A workflow is a file of tasks, each of which starts when those before it have
succeeded. The service promises all of them or says why not, runs them in their
reservations, and moves what follows when a task ends early or late.`,
	}
	cmd.AddCommand(a.workflowSubmitCommand(), a.workflowOffersCommand(), a.workflowListCommand(), a.workflowShowCommand(), a.workflowWatchCommand(),
		a.workflowActCommand("confirm", "Make a held workflow a confirmed one", (*client.Client).ConfirmWorkflow),
		a.workflowActCommand("cancel", "Stop what runs of a workflow and give the rest back", (*client.Client).CancelWorkflow),
		a.workflowRetryCommand(), a.workflowImport())
	return cmd
}

func (a *app) workflowSubmitCommand() *cobra.Command {
	var q flowAsk
	var r *remote
	key := ""
	cmd := &cobra.Command{
		Use:   "submit FILE",
		Short: "Submit a workflow: all of its tasks are promised, or none",
		Long: `Asks for a reservation for each task of a workflow in Berth's YAML or in WfFormat
(- is stdin). The answer is a plan that is promised as a whole, or a reasoned no
with the tightest deadline that was found and what later ones cost (exit code 3).

Tasks with a command or a script run when their reservations begin. Their output goes
to files in the folder that they run in, this one unless the file says otherwise: berth
workflow show names them. Where no task has any, what runs in a reservation is handed in
there with berth submit --reservation.`,
		Example: `  berth workflow submit mosaic.yaml --deadline "tomorrow 8:00"
  berth workflow submit mosaic.yaml --deadline now+2h --hold 10m`,
		Args: wantFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.read(a, cmd, args[0]); err != nil {
				return err
			}
			a.echo("deadline", &q.deadline)
			q.Hold = form.Hold(*q.held.value)
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if key == "" {
				key = rand.Text()
			}
			answer, err := c.SubmitWorkflow(ctx, &q.WorkflowRequest, client.Action{Key: key})
			if err != nil {
				return err
			}
			if answer.Decision != "refused" && r.wait {
				if answer.Workflow, err = a.awaitWorkflow(ctx, c, answer.Workflow.ID, nil); err != nil {
					return err
				}
			}
			return a.workflowAnswered(r, &answer, submitAgain)
		},
	}
	q.Repair = "both"
	q.held.value, q.held.least = new(berth.Duration), 1
	q.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&q.ID, "id", "", "`ID` of the workflow (default: a new one)")
	f.Var(&q.held, "hold", "hold it for so long instead of promising it")
	f.StringSliceVar(&q.env, "env", nil, "hand on these environment variables too: `NAME[,NAME]`, where OMP_* is all that begin so, or all")
	f.StringVar(&key, "key", "", "`NAME` that makes asking twice the same as asking once")
	r = formFlags(cmd, "table", "json", "csv", "svg")
	q.offer(cmd, r)
	r.waitFlag(cmd, "the workflow is over")
	return cmd
}

// wantFile wants the name of one file.
func wantFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef(cmd, "%d files; want one workflow FILE, or - for stdin", len(args))
	}
	return nil
}

// workflowAnswered shows the answer to a workflow; again says how what is offered instead is
// asked for. A refusal, and a workflow that did not succeed, is an error of its own exit code.
func (a *app) workflowAnswered(r *remote, answer *form.WorkflowAnswer, again string) error {
	w := &answer.Workflow
	if answer.Decision != "refused" {
		if err := a.showWorkflow(r, w, answer); err != nil {
			return err
		}
		if w.State == "held" && r.format == "table" {
			a.say("Confirm it, or it expires:\n\n    berth workflow confirm%s %s\n", r.again(), w.ID)
		}
		return workflowFailed(w)
	}
	if r.format == "json" {
		if err := printForm(a.stdout, answer); err != nil {
			return err
		}
		return &exitError{exitRefused}
	}
	why := "refused"
	if w.Refusal != nil {
		why = fmt.Sprintf("refused: %s: %s", w.Refusal.Reason, w.Refusal.Detail)
	}
	a.say("%s", why)
	if err := a.showOffers(r, answer.Offers, again); err != nil {
		return err
	}
	return &exitError{exitRefused}
}

// workflowFailed returns an error if a workflow is over and has not succeeded.
func workflowFailed(w *form.Workflow) error {
	switch w.State {
	case "failed", "expired", "cancelled":
		return &exitError{exitFailed}
	}
	return nil
}

// submitAgain says how a workflow is submitted by a deadline that is offered.
const submitAgain = "Each can be held: berth workflow submit the file with such a --deadline and --algorithm, and with --hold 10m."

// showOffers shows what deadlines cost, and says how one is asked for.
func (a *app) showOffers(r *remote, offers []form.WorkflowOffer, again string) error {
	switch {
	case r.format == "json":
		return printForm(a.stdout, form.WorkflowOffers{Offers: offers})
	case r.format == "csv":
		var rows [][]string
		for i := range offers {
			o := &offers[i]
			rows = append(rows, []string{timeCell(o.Deadline), o.Algorithm, timeCell(o.End), strconv.FormatFloat(o.CPUHours, 'f', 4, 64), strings.Join(o.Critical, " ")})
		}
		return printRows(a.stdout, []string{"deadline", "algorithm", "end", "cpu_hours", "critical"}, rows)
	case len(offers) == 0:
		a.say("no deadline was found that can be met")
		return nil
	}
	out := newTable("deadlines that can be met, and what they cost")
	out.AppendHeader(table.Row{"deadline", "--algorithm", "ends", "CPU-hours", "what binds"})
	for i := range offers {
		o := &offers[i]
		out.AppendRow(table.Row{localTime(o.Deadline), o.Algorithm, localTime(o.End), fmt.Sprintf("%.3f", o.CPUHours), pathInShort(o.Critical)})
	}
	if err := a.show(out.Render() + "\n"); err != nil {
		return err
	}
	a.say("%s", again)
	return nil
}

// pathInShort names some things, and how many more there are.
func pathInShort(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, " → ")
	}
	return fmt.Sprintf("%s → … (%d tasks)", strings.Join(names[:most], " → "), len(names))
}

func (a *app) workflowOffersCommand() *cobra.Command {
	var q flowAsk
	var r *remote
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "List what deadlines of a workflow would cost now, without holding anything",
		Args:  wantFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.read(a, cmd, args[0]); err != nil {
				return err
			}
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			offers, err := c.OfferWorkflow(ctx, &q.WorkflowRequest)
			if err != nil {
				return err
			}
			if err := a.showOffers(r, offers, submitAgain); err != nil {
				return err
			}
			if len(offers) == 0 {
				return &exitError{exitRefused}
			}
			return nil
		},
	}
	q.Repair = "both"
	q.flags(cmd)
	r = listFlags(cmd)
	q.offer(cmd, r)
	return cmd
}

// The states of workflows, in the order of a life.
var (
	liveWorkflows = []string{"held", "promised", "running"}
	overWorkflows = []string{"succeeded", "failed", "cancelled", "expired", "refused"}
)

func (a *app) workflowListCommand() *cobra.Command {
	var r *remote
	var states []string
	user, all := "", false
	cmd := &cobra.Command{
		Use: "list", Short: "List workflows: the live ones, or all", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if states == nil && !all {
				states = liveWorkflows
			}
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			page := form.Workflows{Workflows: []form.Workflow{}}
			for w, err := range c.Workflows(ctx, user, states) {
				if err != nil {
					return err
				}
				page.Workflows = append(page.Workflows, w)
			}
			return a.listWorkflows(r, &page)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&user, "user", "", "only of this `USER`")
	f.Var(&list{&states, "state", slices.Concat(liveWorkflows, overWorkflows), "all"}, "state", "only in these states: "+strings.Join(slices.Concat(liveWorkflows, overWorkflows), ", "))
	f.BoolVarP(&all, "all", "a", false, "those that are over too")
	r = listFlags(cmd)
	return cmd
}

func (a *app) listWorkflows(r *remote, page *form.Workflows) error {
	switch {
	case r.format == "json":
		return printForm(a.stdout, page)
	case r.format == "csv":
		var rows [][]string
		for i := range page.Workflows {
			w := &page.Workflows[i]
			rows = append(rows, []string{w.ID, w.Name, w.User, w.State, timeCell(w.Deadline), timeCell(w.End), timeCell(w.PlannedEnd), strconv.FormatFloat(w.CPUHours, 'f', 4, 64), strconv.Itoa(w.Replanned)})
		}
		return printRows(a.stdout, []string{"id", "name", "user", "state", "deadline", "end", "planned_end", "cpu_hours", "replanned"}, rows)
	case len(page.Workflows) == 0:
		a.say("no workflows; --all lists those that are over too")
		return nil
	}
	out := newTable("workflows")
	out.AppendHeader(table.Row{"id", "name", "state", "user", "ends", "deadline", "slack", "CPU-hours"})
	for i := range page.Workflows {
		w := &page.Workflows[i]
		out.AppendRow(table.Row{w.ID, orDash(w.Name), w.State, orDash(w.User), localTime(w.End), localTime(w.Deadline), slackOf(w), fmt.Sprintf("%.3f", w.CPUHours)})
	}
	return a.show(out.Render() + "\n")
}

// slackOf says how much time is left to the deadline, or by how much it is missed.
func slackOf(w *form.Workflow) string {
	switch {
	case w.Slack == nil:
		return "-"
	case *w.Slack < 0:
		return "late by " + lasting(berth.Duration(-*w.Slack))
	case *w.Slack == 0:
		return "none"
	}
	return lasting(berth.Duration(*w.Slack))
}

func (a *app) workflowShowCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a workflow and its tasks", Args: wantFlow,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			w, err := c.Workflow(ctx, args[0])
			if err != nil {
				return err
			}
			return a.showWorkflow(r, &w, &w)
		},
	}
	r = formFlags(cmd, "table", "json", "csv", "svg")
	r.offerWorkflows(cmd)
	return cmd
}

// showWorkflow shows a workflow; as JSON the answer that it came in.
func (a *app) showWorkflow(r *remote, w *form.Workflow, whole any) error {
	switch r.format {
	case "json":
		return printForm(a.stdout, whole)
	case "csv":
		return a.workflowRows(w)
	case "svg":
		return a.drawWorkflow(w)
	}
	var f facts
	f.add("id", w.ID)
	f.add("name", w.Name)
	f.add("user", w.User)
	f.add("account", w.Account)
	f.add("QOS", w.QOS)
	f.add("state", w.State)
	f.add("why", w.Why)
	f.add("ends", localTime(w.End))
	if w.PlannedEnd != w.End {
		f.add("planned end", localTime(w.PlannedEnd))
	}
	f.add("deadline", localTime(w.Deadline))
	f.add("held until", localTime(w.Expires))
	f.add("slack", slackOf(w))
	f.add("planner", w.Planner)
	f.add("repair", w.Repair)
	switch {
	case w.Replanned == 1:
		f.add("moved", "once, because "+causeOf(w.Cause))
	case w.Replanned > 1:
		f.add("moved", fmt.Sprintf("%d times, last because %s", w.Replanned, causeOf(w.Cause)))
	}
	f.add("CPU-hours", fmt.Sprintf("%.3f", w.CPUHours))
	out := newTable("tasks")
	out.AppendHeader(table.Row{"", "task", "state", "PEs", "start", "end", "planned", "reservation", "output"})
	for i := range w.Tasks {
		t := &w.Tasks[i]
		mark, state, planned := "", t.State, ""
		if t.Critical {
			mark = "*"
		}
		if t.Why != "" && t.State != "succeeded" {
			state += ": " + t.Why
		}
		if t.Tries > 1 {
			state += fmt.Sprintf(" (try %d)", t.Tries)
		}
		if t.Missing > 0 {
			state += fmt.Sprintf(", degraded: lacks %d PEs", t.Missing)
		}
		if t.PlannedEnd != t.End {
			planned = localTime(t.PlannedEnd)
		}
		name := printable(t.ID)
		if t.Account != "" {
			name += ", account " + printable(t.Account)
		}
		if t.QOS != "" {
			name += ", QOS " + printable(t.QOS)
		}
		out.AppendRow(table.Row{mark, name, state, t.NPE, localTime(t.Start), localTime(t.End), planned, orDash(t.Reservation), orDash(t.Output)})
	}
	return a.show(f.String() + out.Render() + "\n")
}

// printable writes a name that may hold anything on one line.
func printable(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

func (a *app) workflowRows(w *form.Workflow) error {
	rows := make([][]string, len(w.Tasks))
	for i := range w.Tasks {
		t := &w.Tasks[i]
		rows[i] = []string{
			w.ID, t.ID, strings.Join(t.After, " "), t.State, t.Why, strconv.Itoa(t.Tries), t.Site, t.Pool, strconv.Itoa(int(t.NPE)), timeCell(t.Start), timeCell(t.End),
			timeCell(t.PlannedStart), timeCell(t.PlannedEnd), strconv.FormatBool(t.Critical), t.Reservation, t.Output, firstOf(t.Account, w.Account), firstOf(t.QOS, w.QOS),
		}
	}
	return printRows(a.stdout, []string{
		"workflow", "task", "after", "state", "why", "tries", "site", "pool", "npe", "start", "end", "planned_start", "planned_end", "critical", "reservation", "output", "account", "qos",
	}, rows)
}

// drawWorkflow writes the picture of a workflow.
func (a *app) drawWorkflow(w *form.Workflow) error {
	figure := plot.Gantt{Title: firstOf(w.Name, w.ID) + ": " + w.State, Now: berth.Time(w.Created), Deadline: berth.Forever, Facts: fmt.Sprintf("%.3f CPU-hours", w.CPUHours)}
	if !w.Deadline.IsZero() {
		figure.Deadline = berth.Time(w.Deadline)
	}
	used := map[berth.Time]berth.Count{}
	for i := range w.Tasks {
		t := &w.Tasks[i]
		if t.Start.IsZero() || t.End < t.Start {
			continue
		}
		end := max(t.End, t.Start+1) // what ended within its first second can be seen too
		used[berth.Time(t.Start)] += t.NPE
		used[berth.Time(end)] -= t.NPE
		figure.Tasks = append(figure.Tasks, plot.Bar{Label: printable(t.ID), NPE: t.NPE, Start: berth.Time(t.Start), End: berth.Time(end), Critical: t.Critical})
	}
	if len(figure.Tasks) == 0 {
		return berth.Errorf(berth.Invalid, "output", "workflow %s has no task with a place that could be drawn", w.ID)
	}
	times := make([]berth.Time, 0, len(used))
	for at := range used {
		times = append(times, at)
	}
	slices.Sort(times)
	now := berth.Count(0)
	for _, at := range times {
		now += used[at]
		figure.PEs = max(figure.PEs, now)
	}
	var picture bytes.Buffer
	if err := plot.WriteGantt(&picture, "svg", figure); err != nil {
		return fmt.Errorf("drawing workflow %s: %w", w.ID, err)
	}
	return a.show(picture.String())
}

func (a *app) workflowWatchCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "watch ID", Short: "Follow a workflow until it is over", Args: wantFlow,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.wait = true
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			w, err := a.awaitWorkflow(ctx, c, args[0], a.tellWorkflow)
			if err != nil {
				return err
			}
			if err := a.showWorkflow(r, &w, &w); err != nil {
				return err
			}
			return workflowFailed(&w)
		},
	}
	r = formFlags(cmd, "table", "json", "csv", "svg")
	r.offerWorkflows(cmd, liveWorkflows...)
	return cmd
}

// startedTask returns the name of the task that a reservation of a workflow is for: behind its id stand the place of
// the task, from 1, and what tells tries apart.
func startedTask(of *form.Workflow, reservation string) string {
	place := strings.TrimPrefix(reservation, of.ID+".")
	if end := strings.IndexAny(place, "-."); end >= 0 {
		place = place[:end]
	}
	if n, err := strconv.Atoi(place); err == nil && 0 < n && n <= len(of.Tasks) {
		return of.Tasks[n-1].ID
	}
	return reservation
}

// tellWorkflow says on stderr what happened to a workflow.
func (a *app) tellWorkflow(of *form.Workflow, e *form.Event) {
	w := e.Workflow
	at := localTime(e.At)
	switch {
	case w == nil:
		if e.What == "started" {
			a.say("%s  task %s: started", at, printable(startedTask(of, e.Reservation.ID)))
		}
	case w.Task != "":
		a.say("%s  task %s: %s%s", at, printable(w.Task), w.Outcome, because(w.Why))
	case e.What == "workflow_replanned":
		late := ""
		if w.Late {
			late = ", after its deadline " + localTime(w.Deadline) + ": cancel it, or let it end late"
		}
		moved := ", so other tasks stay where they are"
		switch {
		case w.Moved > 1:
			moved = fmt.Sprintf(", so %d tasks are moved", w.Moved)
		case w.Moved > 0:
			moved = ", so 1 task is moved"
		case w.Cause == "displaced":
			moved = "" // what moved with it, moved as it was displaced
		}
		a.say("%s  %s%s; the workflow ends %s%s", at, causeOf(w.Cause), moved, localTime(w.End), late)
	default:
		a.say("%s  workflow %s: %s%s", at, w.ID, w.State, because(w.Why))
	}
}

// causeOf says in words why a workflow was planned again.
func causeOf(cause string) string {
	switch cause {
	case "early":
		return "a task ended early"
	case "late":
		return "a task is late"
	case "failed":
		return "a task failed"
	case "data":
		return "the files of a task come late"
	default:
		return "a task was " + cause
	}
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// awaitWorkflow waits until a workflow is over, and tells what happens to it, if tell is not
// nil.
func (a *app) awaitWorkflow(ctx context.Context, c *client.Client, id string, tell func(*form.Workflow, *form.Event)) (form.Workflow, error) {
	for {
		w, missed, err := a.followWorkflow(ctx, c, id, tell)
		switch {
		case missed:
		case errors.Is(err, context.Canceled):
			return w, &interrupted{"workflow " + id + " goes on"}
		default:
			return w, err
		}
	}
}

func (a *app) followWorkflow(ctx context.Context, c *client.Client, id string, tell func(*form.Workflow, *form.Event)) (w form.Workflow, missed bool, err error) {
	for event, err := range c.Events(ctx, 0) {
		coded, is := errors.AsType[*berth.Error](err)
		switch {
		case is && coded.Code == berth.NotFound:
			return w, true, nil
		case err != nil:
			return w, false, err
		case event.ID != 0 && (event.Workflow == nil || event.Workflow.ID != id):
			if tell != nil && strings.HasPrefix(event.Reservation.ID, id+".") {
				tell(&w, &event)
			}
			continue
		}
		if event.ID != 0 && tell != nil {
			tell(&w, &event)
		}
		if event.ID == 0 || slices.Contains(overWorkflows, event.Workflow.State) {
			if w, err = c.Workflow(ctx, id); err != nil || slices.Contains(overWorkflows, w.State) {
				return w, false, err
			}
		}
	}
	return w, false, fmt.Errorf("waiting for workflow %s: %w", id, ctx.Err())
}

// workflowActCommand returns a command that does one thing to a workflow.
func (a *app) workflowActCommand(name, short string, do func(*client.Client, context.Context, string, client.Action) (form.WorkflowAnswer, error)) *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: name + " ID", Short: short, Args: wantFlow,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			answer, err := do(c, ctx, args[0], client.Action{Key: rand.Text()})
			if err != nil {
				return err
			}
			return a.showWorkflow(r, &answer.Workflow, &answer.Workflow)
		},
	}
	r = formFlags(cmd, "table", "json", "csv", "svg")
	r.offerWorkflows(cmd, liveWorkflows...)
	return cmd
}

func (a *app) workflowRetryCommand() *cobra.Command {
	var r *remote
	var deadline moment
	cmd := &cobra.Command{
		Use: "retry ID", Short: "Submit what has not succeeded of a workflow that is over", Args: wantFlow,
		RunE: func(cmd *cobra.Command, args []string) error {
			var q form.WorkflowRetry
			var err error
			if q.Deadline, q.DeadlineIn, err = deadline.deadline(cmd); err != nil {
				return err
			}
			a.echo("deadline", &deadline)
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			answer, err := c.RetryWorkflow(ctx, args[0], q, client.Action{Key: rand.Text()})
			if err != nil {
				return err
			}
			return a.workflowAnswered(r, &answer, fmt.Sprintf("Each can be asked for: berth workflow retry%s %s with such a --deadline.", r.again(), args[0]))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&deadline, "deadline", "by when it must have ended now (default: its deadline if that is to come, else none)")
	r = formFlags(cmd, "table", "json", "csv", "svg")
	r.offerWorkflows(cmd, overWorkflows...)
	return cmd
}
