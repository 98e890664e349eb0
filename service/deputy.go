package service

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// At a site that is a site.Deputy tasks of workflows run as their owners, who need not be
// there. It is on record which job a task is before that may start, so that it runs once.

// handingIn is a task that is being handed in.
type handingIn struct {
	ask       Ask
	id        string // of its reservation
	task      site.Task
	variables site.Variables
	keeper    *keeper
	deputy    site.Deputy // nil where the site runs tasks by itself
	job       site.JobID  // at a deputy, once it is on record; it may have been told to start
}

// try hands a task in. A deputy is told to start it only when it is on record which job it
// is: one that is not on record has not run.
func (h *Host) try(in *handingIn) error {
	if in.job == "" {
		job, err := h.runAs(h.tasksEnd, in.ask, in.id, in.task, in.variables)
		if err != nil || in.deputy == nil {
			return err
		}
		if err := h.noteHandedIn(in, job); err != nil {
			return err
		}
		in.job = job
	}
	err := in.deputy.Start(h.tasksEnd, in.ask.By.User, in.job)
	if site.KindOf(err) == site.NotFound {
		return nil // the next look tells that it is gone
	}
	return err
}

// noteHandedIn puts it on record which job a task is.
func (h *Host) noteHandedIn(in *handingIn, job site.JobID) error {
	_, err := call(h.tasksEnd, h, "", func(answer func(struct{}, error)) {
		k := h.core.card(in.id)
		if k == nil || k.end != "" {
			answer(struct{}{}, berth.Errorf(berth.Conflict, "id", "%q is over", in.id))
			return
		}
		task := Task{Site: in.keeper.name, Report: site.Report{
			Job:   site.Job{ID: job, Key: flowKey, Name: in.task.Name, User: in.ask.By.User, Submitted: h.clock()},
			Stage: site.Waiting,
		}}
		h.recordTasks(&taskLook{site: in.keeper.name, events: []taskEvent{{reservation: in.id, task: task}}})
		h.whenDurable(func(err error) { answer(struct{}{}, err) })
	})
	return err
}

// handedIn returns the job of the task of a reservation at a site that is on record and has
// not been seen to start, empty if there is none.
func (c *Core) handedIn(at, id string) site.JobID {
	for _, t := range c.tasksAt(at).flows[id] {
		if t.task.Stage == site.Waiting {
			return t.task.ID // there is one
		}
	}
	return ""
}
