package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/hostlist"
	"github.com/berth-hpc/berth/site/slurm"
)

// submission is what berth submit was asked to do.
type submission struct {
	reservation string // to run it in, or empty to ask for one
	task        form.Task
	array       berth.PESet
	env         []string // names of variables that are asked for
}

// submitCommand returns berth submit.
func (a *app) submitCommand() *cobra.Command {
	var q *ask
	var r *remote
	var s submission
	cmd := &cobra.Command{
		Use:   "submit [--reservation ID | --npe N --duration D --deadline T] SCRIPT [ARG...] | -- COMMAND [ARG...]",
		Short: "Reserve, and run a command or a batch script in the reservation",
		Long: `Asks for a reservation, unless one is named, and hands in what is to be run there
when it starts. At a Slurm site your own sbatch does that, under your name; at a
local site the service runs it. No shell reads the words of a command.

A task at a local site gets the variables PATH, HOME, USER, LOGNAME, SHELL, LANG,
LC_*, TZ and TMPDIR of your environment, and those that --env names; the site keeps
them as long as it remembers the task. sbatch hands on all of it, unless --env names
some. BERTH_TOKEN is never handed on.

With --wait the exit code is that of the task: its own, or 128 and the signal that
ended it; the largest one of an array. What failed is told on stderr. A reservation
stays until its end: berth release gives the rest back.`,
		Example: `  berth submit -n 4 -t 30m --deadline now+2h -- ./solver input.dat
  berth submit --reservation 01KA2B3C4D5E6F7G8H9JKMNPQR --out run.log job.sh`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.read(cmd, args); err != nil {
				return err
			}
			if err := a.settle(cmd, q); err != nil {
				return err
			}
			if s.reservation == "" {
				if err := q.missing(cmd); err != nil {
					return err
				}
			} else if !unchanged(cmd) {
				return usagef(cmd, "--reservation: given beside flags for a new one; berth modify changes what there is")
			}
			return a.submit(cmd, r, q, &s)
		},
	}
	q = askFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&q.User, "user", "", "in the name of this `USER`, which operators may")
	f.StringVar(&s.reservation, "reservation", "", "run it in the reservation of this `ID`")
	f.StringVar(&s.task.Name, "name", "", "`NAME` of the job, for people")
	f.StringVar(&s.task.Output, "out", "", "`FILE` for its output (default: the site's)")
	f.StringVar(&s.task.ErrorOutput, "err", "", "`FILE` for its messages (default: the site's)")
	f.StringVar(&s.task.Dir, "dir", "", "`DIR` to run it in (default: this one)")
	f.StringSliceVar(&s.env, "env", nil, "hand on these environment variables too: `NAME[,NAME]`, where OMP_* is all that begin so, or all")
	f.Var(&peList{&s.array}, "array", "run it once for each of these indices, such as 1-10")
	f.Var(&whole[berth.Count]{&s.task.Nodes, 1, berth.MaxPEs}, "nodes", "on how many of the reservation's nodes (default: all, for each index of an array the site's own)")
	f.Var(&whole[berth.Count]{&s.task.Cores, 1, berth.MaxPEs}, "cpus-per-task", "cores of each of its processes (default: the site's)")
	f.Var(&span{value: &s.task.Limit, least: 1}, "limit", "how long it may take (default: until the end of the reservation)")
	r = remoteFlags(cmd)
	r.waitFlag(cmd, "the task has ended, with its exit code")
	return cmd
}

// read reads what is to be run.
func (s *submission) read(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef(cmd, "nothing to run; want a SCRIPT, or -- and a COMMAND")
	}
	switch dash := cmd.ArgsLenAtDash(); {
	case dash == 0:
		s.task.Command = args
	case dash > 0:
		return usagef(cmd, "%q stands before --; want flags there, and the COMMAND behind it", args[0])
	default:
		data, err := os.ReadFile(args[0])
		if err != nil {
			return cannotRead(args[0], err)
		}
		if !strings.HasPrefix(string(data), "#!") {
			return berth.Errorf(berth.Invalid, "", "%s begins with no #!; a script does, and a command stands behind --", args[0])
		}
		s.task.Script, s.task.Args = string(data), args[1:]
		if s.task.Name == "" {
			s.task.Name = filepath.Base(args[0])
		}
	}
	dir, err := filepath.Abs(s.task.Dir)
	if err != nil {
		return fmt.Errorf("this folder: %w", err)
	}
	s.task.Dir, s.task.Array, s.task.Key = dir, s.array, rand.Text()
	s.task.Env, err = environment(os.Environ(), s.env)
	return err
}

// submit runs the command.
func (a *app) submit(cmd *cobra.Command, r *remote, q *ask, s *submission) error {
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	reservation, err := a.place(ctx, c, r, q, s)
	if err != nil {
		return err
	}
	made, err := a.real(ctx, c, &reservation, r.wait)
	if err != nil {
		return err
	}
	where, err := c.Site(ctx, reservation.Site)
	if err != nil {
		return err
	}
	job := ""
	if where.Adapter == "slurm" {
		if len(s.env) == 0 { // it stays with the user, whose sbatch hands all of it on
			if s.task.Env, err = environment(os.Environ(), []string{everyVariable}); err != nil {
				return err
			}
		}
		job, err = sbatch(ctx, &reservation, made, &s.task)
	} else {
		job, err = c.Run(ctx, reservation.ID, &s.task, client.Action{Key: s.task.Key})
	}
	if err != nil {
		return err
	}
	a.say("job %s runs in reservation %s from %s on", job, reservation.ID, localTime(reservation.Start))
	var ended []form.TaskReport
	if r.wait {
		if ended, err = a.awaitTask(ctx, c, reservation.ID, job); err != nil {
			return err
		}
		if reservation, err = c.Get(ctx, reservation.ID); err != nil {
			return err
		}
	}
	if r.format == "json" {
		err = printForm(a.stdout, struct {
			Job         string            `json:"job"`
			Reservation form.Reservation  `json:"reservation"`
			Tasks       []form.TaskReport `json:"tasks,omitempty"`
		}{job, reservation, ended})
	} else {
		err = a.show(fmt.Sprintf("job %s\n%s%s", job, describeReservation(&reservation), describeTasks(reservation.ID, ended)))
	}
	if err != nil {
		return err
	}
	return a.tellFailed(ended)
}

// place returns the reservation to run it in.
func (a *app) place(ctx context.Context, c *client.Client, r *remote, q *ask, s *submission) (form.Reservation, error) {
	if s.reservation != "" {
		return c.Get(ctx, s.reservation)
	}
	answer, err := a.request(ctx, c, r, &q.Request)
	switch {
	case err != nil:
		return form.Reservation{}, err
	case answer.Decision == form.Refused:
		return form.Reservation{}, a.answered(r, &answer)
	}
	a.say("reservation %s is promised", answer.ID)
	return *answer.Reservation, nil
}

// makingTime is how long a promise may take to become real at its site if
// nothing keeps it from that, and lookEvery how often that is looked at.
const (
	makingTime = 20 * time.Second
	lookEvery  = 200 * time.Millisecond
)

// real waits until the site has the reservation, and returns its name there. A
// far promise is made real only shortly before its start; without --wait that is
// too long.
func (a *app) real(ctx context.Context, c *client.Client, reservation *form.Reservation, wait bool) (site.Name, error) {
	limit := ctx
	if !wait {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, makingTime)
		defer cancel()
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if over(reservation) {
			return "", berth.Errorf(berth.Conflict, "", "reservation %s is %s", reservation.ID, reservation.State)
		}
		for _, m := range reservation.Sites {
			if m.Made {
				return site.Name(m.Name), nil
			}
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return "", &interrupted{"reservation " + reservation.ID + " stays"}
			}
			return "", fmt.Errorf("%s does not have reservation %s yet, a far promise gets there shortly before its start; then: berth submit --reservation %s …: %w",
				orDash(reservation.Site), reservation.ID, reservation.ID, context.DeadlineExceeded)
		}
		now, err := c.Get(ctx, reservation.ID)
		if err != nil {
			return "", err
		}
		*reservation = now
	}
}

// saysWhere matches a script that says itself on what it runs.
var saysWhere = regexp.MustCompile(`(?m)^#SBATCH\s+(-[nNc]|--(nodes|ntasks|ntasks-per-\w+|cpus-per-\w+|exclusive|nodelist|gpus)\b)`)

// onAllNodes gives a task that says nothing about nodes all those of a reservation
// of nodes. The indices of an array share them as Slurm sees fit.
func onAllNodes(r *form.Reservation, task *form.Task) {
	if task.Nodes == 0 && task.Cores == 0 && task.Array.Empty() && len(r.Nodes) == int(r.NPE) && !saysWhere.MatchString(task.Script) {
		task.Nodes = r.NPE
	}
}

// sbatch hands a task to Slurm, as whoever runs this program.
func sbatch(ctx context.Context, r *form.Reservation, name site.Name, task *form.Task) (string, error) {
	onAllNodes(r, task)
	variables := site.Variables{
		ID: r.ID, Site: r.Site, Reservation: name, Start: berth.Time(r.Start), End: berth.Time(r.End), Deadline: berth.Time(r.Deadline),
		Nodes: hostlist.Fold(r.Nodes),
	}
	job, err := slurm.NewClient(slurm.Options{Site: r.Site, Conf: os.Getenv(slurmConf)}).Submit(ctx, site.Task{
		Key: task.Key, Name: task.Name, Reservation: name, Partition: r.Partition,
		Command: task.Command, Script: task.Script, Args: task.Args, Dir: task.Dir, Env: task.Env, Variables: variables,
		Output: task.Output, ErrorOutput: task.ErrorOutput, Array: task.Array,
		Limit: task.Limit, Nodes: task.Nodes, Cores: task.Cores, MemoryMB: task.MemoryMB,
	})
	if err != nil {
		return "", fmt.Errorf("reservation %s stays: %w", r.ID, err)
	}
	return string(job), nil
}
