package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// Programs that run workflows elsewhere hand in one job script after the other, and ask how each
// of them is: berth submit --parsable prints the ID of a job in one word, berth status says in one
// word how it is, and berth cancel takes it back.

// jobID is a job in a reservation, as programs write it: the reservation, a colon and the job.
// Without a job it is all that runs in the reservation.
type jobID struct{ reservation, job string }

func (j jobID) String() string {
	if j.job == "" {
		return j.reservation
	}
	return j.reservation + ":" + j.job
}

// readJobID reads it. Jobs have no colons in their names.
func readJobID(text string) jobID {
	if at := strings.LastIndexByte(text, ':'); at > 0 {
		return jobID{text[:at], text[at+1:]}
	}
	return jobID{reservation: text}
}

// The words for how a job is. Snakemake knows these three and no others.
const (
	jobRunning = "running" // or it waits for its reservation
	jobSuccess = "success"
	jobFailed  = "failed"
)

// jobStatus is how a job is.
type jobStatus struct {
	ID          string            `json:"id"`
	Status      string            `json:"status" enum:"running,success,failed"`
	Reason      string            `json:"reason,omitempty"`
	Reservation form.Reservation  `json:"reservation"`
	Tasks       []form.TaskReport `json:"tasks,omitempty"`
}

// statusCommand returns berth status.
func (a *app) statusCommand() *cobra.Command {
	var r *remote
	var release bool
	cmd := &cobra.Command{
		Use:   "status ID...",
		Short: "Say in one word how a job is: running, success or failed",
		Long: `Says how jobs are, for programs: running until it has ended, success if its exit code
was 0, failed otherwise. An ID is what berth submit --parsable prints; that of a
reservation stands for all that runs in it. Of several each line is an ID and its
word. Why a job failed is told on stderr.

While the service does not answer it is asked again, until --timeout.`,
		Example: `  ID=$(berth submit --parsable -n 4 -t 30m --deadline now+2h job.sh)
  berth status --release $ID`,
		Args: wantIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if args, err = jobIDs(ctx, c, args); err != nil {
				return err
			}
			return a.status(ctx, c, r, args, release)
		},
	}
	cmd.Flags().BoolVar(&release, "release", false, "release a reservation once everything in it has ended")
	r = remoteFlags(cmd)
	r.offerIDs(cmd, true)
	return cmd
}

// status runs the command. An ID that the service does not know keeps no other from being told.
func (a *app) status(ctx context.Context, c *client.Client, r *remote, ids []string, release bool) error {
	list := []jobStatus{}
	var unknown error
	for _, id := range ids {
		var s jobStatus
		err := patiently(ctx, func() (err error) {
			s, err = lookAtJob(ctx, c, readJobID(id), release)
			return err
		})
		if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.NotFound && len(ids) > 1 {
			a.say("%s: %v", id, err)
			unknown = &exitError{exitNotFound}
			continue
		}
		if err != nil {
			return err
		}
		s.ID = id
		if s.Status == jobFailed {
			a.say("%s failed: %s", id, s.Reason)
		}
		list = append(list, s)
	}
	if r.format == "json" {
		return errors.Join(printForm(a.stdout, map[string][]jobStatus{"jobs": list}), unknown)
	}
	for i := range list {
		line := list[i].Status + "\n"
		if len(ids) > 1 {
			line = list[i].ID + " " + line
		}
		if _, err := io.WriteString(a.stdout, line); err != nil {
			return err
		}
	}
	return unknown
}

// patiently asks again while the service does not answer.
func patiently(ctx context.Context, ask func() error) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		err := ask()
		if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Unavailable {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// lookAtJob returns how a job is.
func lookAtJob(ctx context.Context, c *client.Client, id jobID, release bool) (s jobStatus, err error) {
	if s.Reservation, err = c.Get(ctx, id.reservation); err != nil {
		return s, err
	}
	tasks, err := c.Tasks(ctx, id.reservation) // after the reservation: what ends with it has ended by now
	if err != nil {
		return s, err
	}
	s.Tasks, _ = jobsOf(tasks.Tasks, id.job)
	if id.job == "" {
		s.Tasks = tasks.Tasks
	}
	if len(s.Tasks) == 0 { // its site may have forgotten it
		if s.Tasks, err = endedJobs(ctx, c, id); err != nil {
			return s, err
		}
	}
	s.judge(id)
	if release && s.Status != jobRunning && !over(&s.Reservation) && allOver(tasks.Tasks) {
		done, err := c.Release(ctx, id.reservation, client.Action{Key: rand.Text()})
		if coded, is := errors.AsType[*berth.Error](err); is && (coded.Code == berth.Conflict || coded.Code == berth.NotFound) {
			return s, nil // it ended meanwhile
		}
		if err != nil {
			return s, err
		}
		s.Reservation = done
	}
	return s, nil
}

// endedJobs returns the tasks that are on record as having ended.
func endedJobs(ctx context.Context, c *client.Client, id jobID) ([]form.TaskReport, error) {
	h, err := c.History(ctx, id.reservation)
	var ended []form.TaskReport
	for i := range h.History {
		if t := h.History[i].Task; t != nil && t.Over() && (id.job == "" || t.Job == id.job || t.Array == id.job) {
			ended = append(ended, *t)
		}
	}
	return ended, err
}

func allOver(tasks []form.TaskReport) bool {
	for i := range tasks {
		if !tasks[i].Over() {
			return false
		}
	}
	return true
}

// judge says how a job is by its tasks and its reservation.
func (s *jobStatus) judge(id jobID) {
	switch {
	case len(s.Tasks) == 0 && over(&s.Reservation):
		s.Status, s.Reason = jobFailed, fmt.Sprintf("reservation %s is %s, and its site does not tell of the job", id.reservation, s.Reservation.State)
		return
	case len(s.Tasks) == 0 || !allOver(s.Tasks):
		s.Status = jobRunning
		return
	}
	s.Status = jobSuccess
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.State == "completed" {
			continue
		}
		s.Status, s.Reason = jobFailed, fmt.Sprintf("task %s: %s", t.Job, taskState(t))
		if t.Reason != "" {
			s.Reason += ": " + t.Reason
		}
		s.Reason += "; output: " + orDash(t.Output)
		return
	}
}

// cancelJobs takes jobs back with their reservations. A reservation in which others run stays as
// it is: its own ID takes it back. One that is over already is no mistake, since a job may end
// at any time.
func (a *app) cancelJobs(ctx context.Context, c *client.Client, r *remote, ids []string) error {
	named := map[string]bool{}
	for _, id := range ids {
		named[id] = true
	}
	done, shown := map[string]bool{}, a.showing(r, len(ids))
	for _, text := range ids {
		id := readJobID(text)
		if done[id.reservation] {
			continue
		}
		done[id.reservation] = true
		if err := a.cancelJob(ctx, c, shown, id, named); err != nil {
			return errors.Join(shown.end(), err)
		}
	}
	return shown.end()
}

// cancelJob cancels the reservation of a job, or one.
func (a *app) cancelJob(ctx context.Context, c *client.Client, shown *showing, id jobID, named map[string]bool) error {
	cancel := a.ending((*client.Client).Cancel)
	if id.job != "" {
		gone, err := a.mayCancel(ctx, c, id, named)
		if err != nil {
			return err
		}
		if gone && shown.r.format != "json" { // which has been said
			return nil
		}
		if gone {
			cancel = func(c *client.Client, ctx context.Context, id string, _ client.Action) (form.Reservation, error) {
				return c.Get(ctx, id)
			}
		}
	}
	reservation, err := cancel(c, ctx, id.reservation, client.Action{Key: rand.Text()})
	if err != nil {
		return err
	}
	return shown.add(&reservation)
}

// mayCancel reports whether the reservation of a job is over already. That others run in it is
// an error of code Conflict.
func (a *app) mayCancel(ctx context.Context, c *client.Client, id jobID, named map[string]bool) (gone bool, err error) {
	reservation, err := c.Get(ctx, id.reservation)
	if err != nil {
		return false, err
	}
	if over(&reservation) {
		a.say("%s: its reservation is %s already", id, reservation.State)
		return true, nil
	}
	tasks, err := c.Tasks(ctx, id.reservation)
	if err != nil {
		return false, err
	}
	var others []string
	for i := range tasks.Tasks {
		t := &tasks.Tasks[i]
		own := t.Job == id.job || t.Array == id.job || named[jobID{id.reservation, t.Job}.String()] || named[jobID{id.reservation, t.Array}.String()]
		if !own && !t.Over() {
			others = append(others, t.Job)
		}
	}
	if len(others) > 0 {
		return false, berth.Errorf(berth.Conflict, "id", "%s: its reservation runs %s too; cancel these with it, or all by berth cancel %s", id, strings.Join(others, ", "), id.reservation)
	}
	return false, nil
}
