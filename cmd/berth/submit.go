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
	"github.com/berth-hpc/berth/sites/adapters"
)

// submission is what berth submit was asked to do.
type submission struct {
	reservation string // to run it in, or empty to ask for one
	task        form.Task
	array       berth.PESet
	env         []string // names of variables that are asked for
	parsable    bool
}

// submitCommand returns berth submit.
func (a *app) submitCommand() *cobra.Command {
	var q *ask
	var r *remote
	var s submission
	cmd := &cobra.Command{
		Use:   "submit [--reservation ID | --npe N --duration D --deadline T] SCRIPT [ARG...] | -- COMMAND [ARG...]",
		Short: "Reserve, and run a command or a batch script in the reservation",
		Long: `Asks for a reservation, unless one is named, hands in what is to be run there, and
returns. The site keeps it and runs it when the reservation starts, even days from
now. At a Slurm site your own sbatch hands it in, under your name; at a local site
the service does. No shell reads the words of a command.

The output goes to a file in --dir, which is named once the task is handed in:
berth-JOB.out at a local site, slurm-JOB.out at a Slurm site, or what --out says.

A task at a local site gets the variables PATH, HOME, USER, LOGNAME, SHELL, LANG,
LC_*, TZ and TMPDIR of your environment, and those that --env names; the site keeps
them as long as it remembers the task. sbatch hands on all of it, unless --env names
some. BERTH_TOKEN is never handed on.

With --parsable the ID of the job is all that is printed: its reservation, a colon and
the job. berth status says how it is, and berth cancel takes it back.

With --wait the exit code is that of the task: its own, or 128 and the signal that
ended it; the largest one of an array. What failed is told on stderr. A reservation
stays until its end: berth release gives the rest back.`,
		Example: `  berth submit -n 4 -t 30m --deadline now+2h -- ./solver input.dat
  berth submit --reservation 01KA2B3C4D5E6F7G8H9JKMNPQR --out run.log job.sh`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.read(cmd, args); err != nil {
				return err
			}
			if s.parsable && r.format == "json" {
				return usagef(cmd, "--parsable: given beside --output json; want one of the two")
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
	f.StringVar(&s.task.Output, "out", "", "`FILE` for its output (default: berth-JOB.out or slurm-JOB.out)")
	f.StringVar(&s.task.ErrorOutput, "err", "", "`FILE` for its messages (default: that of its output)")
	f.StringVar(&s.task.Dir, "dir", "", "`DIR` to run it in (default: this one)")
	f.StringSliceVar(&s.env, "env", nil, "hand on these environment variables too: `NAME[,NAME]`, where OMP_* is all that begin so, or all")
	f.Var(&peList{&s.array}, "array", "run it once for each of these indices, such as 1-10")
	f.Var(&whole[berth.Count]{&s.task.Nodes, 1, berth.MaxPEs}, "nodes", "on how many of the reservation's nodes (default: all, for each index of an array the site's own)")
	f.Var(&whole[berth.Count]{&s.task.Cores, 1, berth.MaxPEs}, "cpus-per-task", "cores of each of its processes (default: the site's)")
	f.Var(&span{value: &s.task.Limit, least: 1}, "limit", "how long it may take (default: until the end of the reservation)")
	f.BoolVar(&s.parsable, "parsable", false, "print the ID of the job and nothing else, for programs")
	r = remoteFlags(cmd)
	r.offerSiteFlags(cmd)
	r.offerIDFlag(cmd, "reservation")
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
		if s.task.Name == "" {
			s.task.Name = filepath.Base(args[0])
		}
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
	made, err := a.atSite(ctx, c, &reservation, r.wait)
	if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.Conflict && s.reservation == "" {
		if _, released := c.Release(ctx, reservation.ID, client.Action{}); released == nil {
			return fmt.Errorf("nothing was handed in, and reservation %s is given back: %w", reservation.ID, coded)
		}
	}
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
		return a.notHandedIn(ctx, c, &reservation, s, err)
	}
	output := outputFile(ctx, c, &reservation, where.Adapter, job, &s.task)
	a.say("job %s runs in reservation %s from %s on", job, reservation.ID, localTime(reservation.Start))
	if output != "" {
		a.say("its output goes to %s", output)
	}
	var ended []form.TaskReport
	if r.wait {
		if ended, err = a.awaitTask(ctx, c, reservation.ID, job); err != nil {
			return err
		}
		if reservation, err = c.Get(ctx, reservation.ID); err != nil {
			return err
		}
	}
	switch {
	case s.parsable:
		err = a.show(jobID{reservation.ID, job}.String() + "\n")
	case r.format == "json":
		err = printForm(a.stdout, struct {
			Job         string            `json:"job"`
			Output      string            `json:"output,omitempty"`
			Reservation form.Reservation  `json:"reservation"`
			Tasks       []form.TaskReport `json:"tasks,omitempty"`
		}{job, output, reservation, ended})
	default:
		err = a.show(fmt.Sprintf("job %s\n%s%s", job, describeReservation(&reservation), describeTasks(reservation.ID, ended)))
	}
	if err != nil {
		return err
	}
	return a.tellFailed(ended)
}

// notHandedIn gives back a reservation that was made for a task which its site, or the service, refuses: nothing
// will run in it. One that was named stays, and so does one where it is unknown.
func (a *app) notHandedIn(ctx context.Context, c *client.Client, r *form.Reservation, s *submission, refused error) error {
	if s.reservation == "" && isRefusal(refused) {
		if _, err := c.Release(ctx, r.ID, client.Action{}); err == nil {
			return fmt.Errorf("reservation %s is given back: %w", r.ID, refused)
		}
	}
	return fmt.Errorf("reservation %s stays: %w", r.ID, refused)
}

// isRefusal reports whether what was to be run was refused for good, so that nothing of it is at the site.
func isRefusal(err error) bool {
	if coded, is := errors.AsType[*berth.Error](err); is {
		return coded.Code == berth.Denied || coded.Code == berth.NotFound || coded.Code == berth.Invalid
	}
	switch site.KindOf(err) {
	case site.Denied, site.NotFound, site.Invalid:
		return true
	}
	return false
}

// place returns the reservation to run it in.
func (a *app) place(ctx context.Context, c *client.Client, r *remote, q *ask, s *submission) (form.Reservation, error) {
	if s.reservation != "" {
		id, err := wholeOf(ctx, c, s.reservation)
		if err != nil {
			return form.Reservation{}, err
		}
		return c.Get(ctx, id)
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

// lookEvery is how often a site is asked again for a reservation.
const lookEvery = time.Second

// atSite has the site make the reservation now, however far away its start is, and
// returns its name there. With --wait a site that is out of reach is waited for.
func (a *app) atSite(ctx context.Context, c *client.Client, reservation *form.Reservation, wait bool) (site.Name, error) {
	id := reservation.ID
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		made, err := c.Prepare(ctx, id, client.Action{})
		if err == nil {
			*reservation = made
			return site.Name(made.Sites[0].Name), nil
		}
		if coded, is := errors.AsType[*berth.Error](err); !wait || !is || coded.Code != berth.Unavailable {
			if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
				return "", &interrupted{"reservation " + id + " stays"}
			}
			return "", fmt.Errorf("nothing was handed in; reservation %s stays, so try again with --reservation %s: %w", id, id, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", &interrupted{"reservation " + id + " stays"}
		}
	}
}

// outputFile returns where a task writes its output; empty if that is unknown.
func outputFile(ctx context.Context, c *client.Client, r *form.Reservation, adapter, job string, task *form.Task) string {
	if adapter == "slurm" {
		switch {
		case task.Output != "":
			return inDir(task.Dir, task.Output)
		case saysOutput.MatchString(task.Script):
			return "" // the script names it
		case !task.Array.Empty():
			return inDir(task.Dir, "slurm-"+job+"_*.out")
		default:
			return inDir(task.Dir, "slurm-"+job+".out")
		}
	}
	tasks, err := c.Tasks(ctx, r.ID)
	if err != nil {
		return "" // it was handed in all the same
	}
	for i := range tasks.Tasks {
		switch t := &tasks.Tasks[i]; job {
		case t.Job:
			return t.Output
		case t.Array: // of the first index, as an example
			return strings.Replace(t.Output, t.Job, job+"_*", 1)
		}
	}
	return ""
}

func inDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// saysOutput matches a script that says itself where its output goes.
var saysOutput = regexp.MustCompile(`(?m)^#SBATCH\s+(-o|--output)\b`)

// saysWhere matches a script that says itself on what it runs.
var saysWhere = regexp.MustCompile(`(?m)^#SBATCH\s+(-[nNc]|--(nodes|ntasks|ntasks-per-\w+|cpus-per-\w+|exclusive|nodelist|gpus)\b)`)

// onAllNodes gives a task that says nothing about nodes all those of a reservation
// of nodes. The indices of an array share them as Slurm sees fit.
func onAllNodes(r *form.Reservation, task *form.Task) {
	if task.Nodes == 0 && task.Cores == 0 && task.Array.Empty() && len(r.Nodes) == int(r.NPE) && !saysWhere.MatchString(task.Script) {
		task.Nodes = r.NPE
	}
}

// sbatch hands a task to Slurm, as the user who runs this program.
func sbatch(ctx context.Context, r *form.Reservation, name site.Name, task *form.Task) (string, error) {
	onAllNodes(r, task)
	variables := site.Variables{
		ID: r.ID, Site: r.Site, Reservation: name, Start: berth.Time(r.Start), End: berth.Time(r.End), Deadline: berth.Time(r.Deadline),
		Nodes: hostlist.Fold(r.Nodes),
	}
	job, err := slurm.NewClient(slurm.Options{Site: r.Site, Conf: os.Getenv(adapters.SlurmConf)}).Submit(ctx, site.Task{
		Key: task.Key, Name: task.Name, Reservation: name, Partition: r.Partition, Account: r.Account, QOS: r.QOS,
		Command: task.Command, Script: task.Script, Args: task.Args, Dir: task.Dir, Env: task.Env, Variables: variables,
		Output: task.Output, ErrorOutput: task.ErrorOutput, Array: task.Array,
		Limit: task.Limit, Nodes: task.Nodes, Cores: task.Cores, MemoryMB: task.MemoryMB,
	})
	return string(job), err
}
