package api

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

var tasksParams = []param{
	{"limit", "How many at most; 100 by default.", whole(1, maxPage)},
	{"cursor", "The next of the page before.", text("")},
}

func (c *call) tasks() error {
	query, err := c.query(tasksParams)
	if err != nil {
		return err
	}
	var wrong faults
	limit, after := pageOf(query, &wrong)
	if err := wrong.err(); err != nil {
		return err
	}
	tasks, err := c.Tasks(c.r.Context(), c.by, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	list := tasks.List
	if after != "" {
		at := slices.IndexFunc(list, func(t service.Task) bool { return taskMark(&t) == after })
		if at < 0 {
			return berth.Errorf(berth.Invalid, "cursor", "the site no longer remembers the task before; begin with the first page")
		}
		list = list[at+1:]
	}
	f := form.Tasks{Tasks: make([]form.TaskReport, 0, min(len(list), limit)), Untold: tasks.Untold}
	if len(list) > limit {
		list = list[:limit]
		f.Next = cursor(taskMark(&list[limit-1]))
	}
	for i := range list {
		f.Tasks = append(f.Tasks, taskReport(&list[i]))
	}
	return c.answer(http.StatusOK, &f)
}

// taskMark identifies a task among those of a reservation.
func taskMark(t *service.Task) string { return t.Site + "/" + string(t.ID) }

// taskReport shows a task.
func taskReport(t *service.Task) form.TaskReport {
	f := form.TaskReport{
		Job: string(t.ID), Array: string(t.Array), Key: t.Key, Name: t.Name, Site: t.Site, State: string(t.Stage), Reason: t.Reason, Output: t.Output,
		Submitted: form.TimeOf(t.Submitted), Start: form.TimeOf(t.Start),
	}
	if t.Stage != site.Ended {
		return f
	}
	f.State, f.End, f.Signal = cmp.Or(string(t.Result.Ending), "unknown"), form.TimeOf(t.End), t.Result.Signal
	if told := t.Result.Ending == site.Completed || t.Result.Ending == site.Failed; t.Result.Signal == 0 && (told || t.Result.Code != 0) {
		f.ExitCode = new(t.Result.Code)
	}
	return f
}
