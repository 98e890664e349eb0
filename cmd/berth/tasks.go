package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// tasksCommand returns berth tasks.
func (a *app) tasksCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use:   "tasks [ID...]",
		Short: "List tasks and how they ended",
		Long: `Lists the tasks of reservations: their state, exit code or signal, the reason if they
failed, and the file with their output. Without an ID the reservations that are
active are looked at.

Sites remember ended tasks for a time: a local site for a day, Slurm for MinJobAge,
5 minutes by default.`,
		Example: `  berth tasks
  berth tasks 01KA2B3C4D5E6F7G8H9JKMNPQR`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if len(args) == 0 {
				args, err = active(ctx, c)
			} else {
				args, err = ids(ctx, c, args)
			}
			if err != nil {
				return err
			}
			return a.tasks(ctx, c, r, args)
		},
	}
	r = listFlags(cmd)
	r.offerIDs(cmd, true, append(liveStates, overStates...)...)
	return cmd
}

// active returns the reservations that are active.
func active(ctx context.Context, c *client.Client) ([]string, error) {
	var ids []string
	for reservation, err := range c.List(ctx, client.Filter{States: []string{"active"}}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, reservation.ID)
	}
	return ids, nil
}

// taskOf is a task and the reservation it is in.
type taskOf struct {
	Reservation string `json:"reservation"`
	form.TaskReport
}

func (a *app) tasks(ctx context.Context, c *client.Client, r *remote, ids []string) error {
	list := []taskOf{}
	for _, id := range ids {
		tasks, err := c.Tasks(ctx, id)
		if err != nil {
			return err
		}
		a.sayUntold(id, &tasks)
		for i := range tasks.Tasks {
			list = append(list, taskOf{id, tasks.Tasks[i]})
		}
	}
	switch {
	case r.format == "json":
		return printForm(a.stdout, map[string][]taskOf{"tasks": list})
	case r.format == "csv":
		return taskRows(a.stdout, list)
	case len(list) == 0:
		a.say("no tasks")
		return nil
	}
	return a.show(taskTable(list) + "\n")
}

// sayUntold names the sites that do not tell of a reservation's tasks.
func (a *app) sayUntold(id string, tasks *form.Tasks) {
	if len(tasks.Untold) > 0 {
		a.say("%s does not tell what runs in reservation %s: nothing manages it", strings.Join(tasks.Untold, ", "), id)
	}
}

// taskTable writes tasks for people. There is a column for the reservation only if
// there are several.
func taskTable(list []taskOf) string {
	out := newTable("tasks")
	header := table.Row{"job", "name", "state", "start", "end", "output", "reason"}
	several := slices.ContainsFunc(list, func(t taskOf) bool { return t.Reservation != list[0].Reservation })
	if several {
		header = append(table.Row{"reservation"}, header...)
	}
	out.AppendHeader(header)
	for i := range list {
		t := &list[i]
		row := table.Row{
			t.Job, orDash(t.Name), taskState(&t.TaskReport), localTime(t.Start), localTime(t.End), orDash(t.Output), orDash(t.Reason),
		}
		if several {
			row = append(table.Row{t.Reservation}, row...)
		}
		out.AppendRow(row)
	}
	return out.Render()
}

// taskState is the state of a task with the exit code or signal that says more.
func taskState(t *form.TaskReport) string {
	switch {
	case t.Signal != 0:
		return fmt.Sprintf("%s, signal %d", t.State, t.Signal)
	case t.ExitCode != nil && *t.ExitCode != 0:
		return fmt.Sprintf("%s, exit code %d", t.State, *t.ExitCode)
	}
	return strings.ReplaceAll(t.State, "_", " ")
}

// describeTasks writes the tasks of a reservation below it.
func describeTasks(id string, tasks []form.TaskReport) string {
	if len(tasks) == 0 {
		return ""
	}
	list := make([]taskOf, len(tasks))
	for i := range tasks {
		list[i] = taskOf{id, tasks[i]}
	}
	return taskTable(list) + "\n"
}

// awaitTask waits until a job, or all of an array, has ended, and returns how. While
// the service or the site does not answer it goes on asking. A site that does not
// tell of the job once the reservation is over is an error.
func (a *app) awaitTask(ctx context.Context, c *client.Client, id, job string) ([]form.TaskReport, error) {
	const longest = 2 * time.Second
	wait := lookEvery
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		parts, ended, err := a.lookAtTask(ctx, c, id, job)
		if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.Unavailable {
			err = nil
		}
		switch {
		case errors.Is(ctx.Err(), context.Canceled):
			return nil, &interrupted{"reservation " + id + " and its task are as they are"}
		case ctx.Err() != nil && !ended:
			return nil, fmt.Errorf("job %s has not ended in the time of --timeout; it and reservation %s are as they are: %w", job, id, ctx.Err())
		case err != nil:
			return nil, err
		case ended:
			return parts, nil
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		wait = min(wait*3/2, longest)
		timer.Reset(wait)
	}
}

// lookAtTask returns a job, or all elements of an array, and whether all have ended.
func (a *app) lookAtTask(ctx context.Context, c *client.Client, id, job string) ([]form.TaskReport, bool, error) {
	reservation, err := c.Get(ctx, id)
	if err != nil {
		return nil, false, err
	}
	tasks, err := c.Tasks(ctx, id) // after the reservation: what ends with it has ended by now, or is listed
	if err != nil {
		return nil, false, err
	}
	parts, ended := jobsOf(tasks.Tasks, job)
	if len(parts) == 0 && over(&reservation) {
		err = fmt.Errorf("how job %s ended is unknown: reservation %s is %s, and its site no longer tells of the job", job, id, reservation.State)
	}
	return parts, ended, err
}

// jobsOf returns a job, or all elements of an array, and whether all have ended.
func jobsOf(tasks []form.TaskReport, job string) (parts []form.TaskReport, ended bool) {
	ended = true
	for i := range tasks {
		if t := &tasks[i]; t.Job == job || t.Array == job {
			parts = append(parts, *t)
			ended = ended && t.Over()
		}
	}
	return parts, ended && len(parts) > 0
}

// tellFailed says how each task that did not complete ended, and returns the largest
// exit status of all, as an *exitError unless it is 0.
func (a *app) tellFailed(tasks []form.TaskReport) error {
	status := 0
	for i := range tasks {
		t := &tasks[i]
		if t.State == "completed" {
			continue
		}
		text := fmt.Sprintf("task %s: %s", t.Job, taskState(t))
		if t.Reason != "" {
			text += ": " + t.Reason
		}
		a.say("%s; output: %s", text, orDash(t.Output))
		status = max(status, t.ExitStatus())
	}
	if status != 0 {
		return &exitError{status}
	}
	return nil
}

// exitCell writes an exit code as JSON does.
func exitCell(code *int) string {
	if code == nil {
		return ""
	}
	return strconv.Itoa(*code)
}
