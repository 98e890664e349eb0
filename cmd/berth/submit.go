package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site"
)

// submission is what berth submit was asked to do.
type submission struct {
	reservation string // to run it in, or empty to ask for one
	task        form.Task
	array       berth.PESet
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
local site the service runs it. No shell reads the words of a command.`,
		Example: `  berth submit -n 4 -t 30m --deadline now+2h -- ./solver input.dat
  berth submit --reservation 01KA2B3C4D5E6F7G8H9JKMNPQR --output run.log job.sh`,
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
	f.StringVar(&s.task.Name, "name", "", "name of the job, for people")
	f.StringVar(&s.task.Output, "out", "", "`FILE` for its output (default: the site's)")
	f.StringVar(&s.task.ErrorOutput, "err", "", "`FILE` for its messages (default: the site's)")
	f.StringVar(&s.task.Dir, "dir", "", "`DIR` to run it in (default: this one)")
	f.Var(&peList{&s.array}, "array", "run it once for each of these indices, such as 1-10")
	f.Var(&span{value: &s.task.Limit, least: 1}, "limit", "how long it may take (default: until the end of the reservation)")
	r = remoteFlags(cmd)
	r.waitFlag(cmd, "the reservation is over")
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
	s.task.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, tokenVar+"=") })
	return nil
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
		job, err = a.sbatch(ctx, &reservation, made, &s.task)
	} else {
		job, err = c.Run(ctx, reservation.ID, &s.task, client.Action{Key: s.task.Key})
	}
	if err != nil {
		return err
	}
	a.say("job %s runs in reservation %s from %s on", job, reservation.ID, localTime(reservation.Start))
	if r.wait {
		if reservation, err = a.await(ctx, c, reservation.ID, over); err != nil {
			return err
		}
	}
	if r.format == "json" {
		return printForm(a.stdout, struct {
			Job         string           `json:"job"`
			Reservation form.Reservation `json:"reservation"`
		}{job, reservation})
	}
	return a.show(fmt.Sprintf("job %s\n%s", job, describeReservation(&reservation)))
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

// anyCommand is a batch script that runs its arguments: sbatch takes scripts
// alone, and no shell is to read the words of a command.
const anyCommand = "#!/bin/sh\nexec \"$@\"\n"

// sbatch hands a task to Slurm, as whoever runs this program.
func (a *app) sbatch(ctx context.Context, r *form.Reservation, name site.Name, task *form.Task) (string, error) {
	folder, err := os.MkdirTemp("", "berth-submit-")
	if err != nil {
		return "", fmt.Errorf("submit: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // sbatch has its own copy
	script, args := task.Script, task.Args
	if script == "" {
		script, args = anyCommand, task.Command
	}
	path := filepath.Join(folder, "job.sh")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("submit: %w", err)
	}
	words := append(sbatchFlags(r, name, task), path)
	sbatch := exec.CommandContext(ctx, "sbatch", append(words, args...)...)
	variables := site.Variables{
		ID: r.ID, Site: r.Site, Reservation: name, Start: berth.Time(r.Start), End: berth.Time(r.End), Deadline: berth.Time(r.Deadline),
	}
	sbatch.Env = append(slices.Clone(task.Env), variables.Env()...)
	sbatch.Dir = task.Dir
	sbatch.Stderr = a.stderr
	out, err := sbatch.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", berth.Errorf(berth.Unavailable, "", "no sbatch here; submit where the cluster's commands are, into its reservation %s", name)
	case err != nil:
		return "", fmt.Errorf("sbatch: %w; reservation %s stays", err, r.ID)
	}
	job, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";") // job[;cluster]
	return job, nil
}

func sbatchFlags(r *form.Reservation, name site.Name, task *form.Task) []string {
	flags := []string{"--parsable", "--reservation=" + string(name)}
	add := func(flag, text string) {
		if text != "" {
			flags = append(flags, "--"+flag+"="+text)
		}
	}
	add("job-name", task.Name)
	add("output", task.Output)
	add("error", task.ErrorOutput)
	add("partition", r.Partition)
	add("array", task.Array.String())
	if task.Limit > 0 {
		add("time", fmt.Sprint((task.Limit+59)/60)) // in minutes
	}
	return flags
}
