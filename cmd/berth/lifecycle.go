package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// action returns a command that does one thing to each of some reservations, and
// ends at the first that it cannot be done to.
// The shell offers reservations in some states, or all that are not over.
func (a *app) action(use, short string, do func(*client.Client, context.Context, string, client.Action) (form.Reservation, error), states ...string) *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: use + " ID...", Short: short, Args: wantIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if args, err = ids(ctx, c, args); err != nil {
				return err
			}
			shown := a.showing(r, len(args))
			for _, id := range args {
				reservation, err := do(c, ctx, id, client.Action{Key: rand.Text()})
				if err == nil {
					err = shown.add(&reservation)
				}
				if err != nil {
					return errors.Join(shown.end(), err)
				}
			}
			return shown.end()
		},
	}
	r = remoteFlags(cmd)
	r.offerIDs(cmd, true, states...)
	return cmd
}

func (a *app) showReservation(r *remote, reservation *form.Reservation) error {
	if r.format == "json" {
		return printForm(a.stdout, reservation)
	}
	return a.show(describeReservation(reservation))
}

// showing shows reservations as they come: as JSON the one that was asked about, or one object of several.
type showing struct {
	app  *app
	r    *remote
	of   int // how many were asked about
	list []form.Reservation
}

func (a *app) showing(r *remote, of int) *showing { return &showing{app: a, r: r, of: of} }

func (s *showing) add(reservation *form.Reservation) error {
	if s.r.format == "json" && s.of > 1 {
		s.list = append(s.list, *reservation)
		return nil
	}
	return s.app.showReservation(s.r, reservation)
}

func (s *showing) end() error {
	if s.r.format == "json" && s.of > 1 {
		return printForm(s.app.stdout, form.Page{Reservations: s.list})
	}
	return nil
}

func (a *app) confirmCommand() *cobra.Command {
	return a.action("confirm", "Make a held reservation a confirmed one", (*client.Client).Confirm, "held")
}

func (a *app) releaseCommand() *cobra.Command {
	return a.action("release", "Give back what is left of a reservation, running or not", a.ending((*client.Client).Release))
}

// ending has what ends a reservation tell which jobs end with it.
func (a *app) ending(do func(*client.Client, context.Context, string, client.Action) (form.Reservation, error)) func(*client.Client, context.Context, string, client.Action) (form.Reservation, error) {
	return func(c *client.Client, ctx context.Context, id string, action client.Action) (form.Reservation, error) {
		tasks, unknown := c.Tasks(ctx, id) // where they cannot be told it is ended all the same
		r, err := do(c, ctx, id, action)
		if err != nil || unknown != nil {
			return r, err
		}
		var jobs []string
		for i := range tasks.Tasks {
			if t := &tasks.Tasks[i]; !t.Over() {
				jobs = append(jobs, t.Job+" ("+t.State+")")
			}
		}
		if len(jobs) > 0 {
			a.say("these jobs end with it: %s", strings.Join(jobs, ", "))
		}
		return r, nil
	}
}

func (a *app) cancelCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "cancel ID...", Short: "Take a reservation back, or a job with its reservation",
		Long: `Takes reservations back, and ends what runs in them. An ID that berth submit
--parsable printed is a job: its reservation is taken back if nothing else runs
there, and it is no mistake that it is over.`,
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
			return a.cancelJobs(ctx, c, r, args)
		},
	}
	r = remoteFlags(cmd)
	r.offerIDs(cmd, true)
	return cmd
}

// modifyCommand returns berth modify.
func (a *app) modifyCommand() *cobra.Command {
	var q *ask
	var r *remote
	cmd := &cobra.Command{
		Use:   "modify ID [--npe N] [--duration D] [--ready T] [--deadline T] ...",
		Short: "Change a reservation: all that is asked for, or nothing",
		Long: `Changes a reservation that has not started. What
is not given stays; what is given empty, such as --constraint "", is asked for no
more. If it is refused (exit code 3) the reservation is as it was.`,
		Example: `  berth modify 01KA2B3C4D5E6F7G8H9JKMNPQR --npe 32 --deadline "tomorrow 20:00"
  berth modify 01KA2B3C4D5E6F7G8H9JKMNPQR --constraint "" --nodelist ""`,
		Args: wantID,
		RunE: func(cmd *cobra.Command, args []string) error {
			asLong := q.start.given() && q.Duration == 0 && q.Variants == nil // as it lasts now
			if !asLong {
				if err := a.settle(cmd, q); err != nil {
					return err
				}
			}
			if unchanged(cmd) {
				return usagef(cmd, "nothing to change; want at least one flag that says what")
			}
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if args, err = ids(ctx, c, args); err != nil {
				return err
			}
			if asLong {
				was, err := c.Get(ctx, args[0])
				if err != nil {
					return err
				}
				if over(&was) {
					return berth.Errorf(berth.Conflict, "id", "%q is %s", was.ID, was.State)
				}
				q.length = berth.Duration(was.End - was.Start)
				if err := a.settle(cmd, q); err != nil {
					return err
				}
			}
			answer, err := c.Modify(ctx, args[0], &q.Request, client.Action{Key: rand.Text()}, emptied(cmd)...)
			if err != nil {
				return err
			}
			if answer.Refusal != nil && answer.Reason == berth.NoSuitableSite {
				if asks := kindsGiven(cmd); len(asks) > 0 {
					a.say("no site has this and all else that it asks for: %s", strings.Join(asks, ", "))
				}
			}
			return a.answered(r, &answer)
		},
	}
	q = askFlags(cmd)
	nameFlag(cmd, &q.Name)
	r = remoteFlags(cmd)
	r.offerSiteFlags(cmd)
	r.offerIDs(cmd, false)
	return cmd
}

// unchanged reports whether no flag says what to change.
func unchanged(cmd *cobra.Command) bool {
	changed := 0
	for _, name := range []string{
		"name", "npe", "duration", "ready", "deadline", "start", "window", "variants", "site", "pool", "partition", "account", "qos", "users", "group", "constraint", "nodelist", "exclude", "pes", "software", "software-version",
		"licences", "memory-mb", "storage-mb", "accelerators", "no-show",
	} {
		if cmd.Flags().Changed(name) {
			changed++
		}
	}
	return changed == 0
}

// kindsGiven returns the flags that were given of those that say which sites and PEs will do, as they were.
func kindsGiven(cmd *cobra.Command) (given []string) {
	for _, name := range []string{
		"site", "pool", "partition", "constraint", "nodelist", "exclude", "pes", "software", "software-version", "licences", "memory-mb", "storage-mb", "accelerators",
	} {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() != "" {
			given = append(given, "--"+name+" "+quoted(f.Value.String()))
		}
	}
	return given
}

// emptied returns the keys of what was given and is empty.
func emptied(cmd *cobra.Command) (keys []string) {
	for _, f := range []struct{ flag, key string }{
		{"name", "name"},
		{"site", "site"},
		{"pool", "pool"},
		{"partition", "partition"},
		{"account", "account"},
		{"qos", "qos"},
		{"users", "users"},
		{"group", "group"},
		{"constraint", "constraint"},
		{"nodelist", "nodelist"},
		{"exclude", "exclude"},
		{"pes", "pes"},
		{"software", "software"},
		{"software-version", "version"},
		{"licences", "licences"},
		{"memory-mb", "memory_mb"},
		{"storage-mb", "storage_mb"},
		{"accelerators", "accelerators"},
	} {
		if flag := cmd.Flags().Lookup(f.flag); flag.Changed && (flag.Value.String() == "" || flag.Value.String() == "0" || flag.Value.String() == "[]") {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// extendCommand returns berth extend.
func (a *app) extendCommand() *cobra.Command {
	var r *remote
	var until moment
	var by berth.Duration
	longer := span{value: &by, least: 1}
	cmd := &cobra.Command{
		Use:   "extend ID --until T | --by D",
		Short: "Extend a reservation on its PEs",
		Example: `  berth extend 01KA2B3C4D5E6F7G8H9JKMNPQR --by 30m
  berth extend 01KA2B3C4D5E6F7G8H9JKMNPQR --until 20:00`,
		Args: wantID,
		RunE: func(cmd *cobra.Command, args []string) error {
			if until.given() == longer.given {
				return usagef(cmd, "want either --until, its new end, or --by, how much longer")
			}
			a.echo("until", &until)
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if args, err = ids(ctx, c, args); err != nil {
				return err
			}
			var answer form.Answer
			if longer.given {
				answer, err = c.ExtendBy(ctx, args[0], by, client.Action{Key: rand.Text()})
			} else {
				answer, err = c.Extend(ctx, args[0], form.Time(until.at.Unix()), client.Action{Key: rand.Text()})
			}
			if err != nil {
				return err
			}
			return a.answered(r, &answer)
		},
	}
	cmd.Flags().Var(&until, "until", "its new end")
	cmd.Flags().Var(&longer, "by", "how much longer")
	r = remoteFlags(cmd)
	r.offerIDs(cmd, false)
	return cmd
}
