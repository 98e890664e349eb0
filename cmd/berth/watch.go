package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/site/hostlist"
)

// watchCommand returns berth watch.
func (a *app) watchCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use:   "watch [ID...]",
		Short: "Follow what happens to your reservations, or to some",
		Long: `Tells what happens, a line each, as it happens: starts, moves with how far and from
where to where, ends, what runs. Without an ID it is told of your own reservations,
until Ctrl-C; of those that are named, until all of them are over.

With -o json each line is an event, as the API has it.`,
		Example: `  berth watch
  berth watch MNPQR`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.wait = true
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if args, err = ids(ctx, c, args); err != nil {
				return err
			}
			err = a.watch(ctx, c, r, args)
			if errors.Is(err, context.Canceled) {
				return &interrupted{"reservations stay as they are"}
			}
			return err
		},
	}
	r = remoteFlags(cmd)
	r.offerIDs(cmd, true)
	return cmd
}

// watched is what is known of reservations that are followed.
type watched struct {
	user  string   // whose are followed, if none are named
	named []string // those that are followed
	as    map[string]form.Reservation
}

// watch runs the command. If events were missed everything is looked at anew.
func (a *app) watch(ctx context.Context, c *client.Client, r *remote, named []string) error {
	me, err := c.Me(ctx)
	if err != nil {
		return err
	}
	w := &watched{user: me.User, named: named, as: map[string]form.Reservation{}}
	for {
		missed, err := a.watchOnce(ctx, c, r, w)
		if !missed {
			return err
		}
		a.say("events were missed; what follows begins anew")
	}
}

func (a *app) watchOnce(ctx context.Context, c *client.Client, r *remote, w *watched) (missed bool, err error) {
	for event, err := range c.Events(ctx, 0) {
		coded, is := errors.AsType[*berth.Error](err)
		switch {
		case is && coded.Code == berth.NotFound:
			return true, nil
		case err != nil:
			return false, err
		case event.ID == 0: // what is now, once nothing is missed any more
			err = w.look(ctx, c)
		case w.follows(&event.Reservation):
			err = a.tellEvent(r, w, &event)
		}
		if err != nil || w.over() {
			return false, err
		}
	}
	return false, ctx.Err()
}

// look takes in what is followed as it is.
func (w *watched) look(ctx context.Context, c *client.Client) error {
	for _, id := range w.named {
		one, err := c.Get(ctx, id)
		if err != nil {
			return err
		}
		w.as[id] = one
	}
	if len(w.named) > 0 {
		return nil
	}
	for one, err := range c.List(ctx, client.Filter{States: liveStates, User: w.user}) {
		if err != nil {
			return err
		}
		w.as[one.ID] = one
	}
	return nil
}

func (w *watched) follows(r *form.Reservation) bool {
	if len(w.named) > 0 {
		return slices.Contains(w.named, r.ID)
	}
	return r.ID != "" && r.User == w.user
}

// over reports whether all that were named are over.
func (w *watched) over() bool {
	for _, id := range w.named {
		if one := w.as[id]; !over(&one) {
			return false
		}
	}
	return len(w.named) > 0
}

// tellEvent writes an event.
func (a *app) tellEvent(r *remote, w *watched, e *form.Event) error {
	was, known := w.as[e.Reservation.ID]
	w.as[e.Reservation.ID] = e.Reservation
	if r.format == "json" {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("writing the event: %w", err)
		}
		return a.show(string(line) + "\n")
	}
	what, is := happened[e.What]
	if !is {
		what = strings.ReplaceAll(e.What, "_", " ")
	}
	text := fmt.Sprintf("%s  %s  %s", localTime(e.At), called(&e.Reservation), what)
	if e.Task != nil {
		text += taskSentence(e.Task)
	}
	if known && e.Reservation.Start != 0 {
		text += differences(&was, &e.Reservation)
	} else if e.Reservation.Start != 0 {
		text += fmt.Sprintf(": %d PEs at %s from %s to %s", e.Reservation.NPE, where(&e.Reservation.Place), localTime(e.Reservation.Start), localTime(e.Reservation.End))
	}
	if e.Refusal != nil {
		text += ": " + string(e.Refusal.Reason) + ": " + e.Refusal.Detail
	}
	if e.Trouble != "" {
		text += ": " + e.Trouble
	}
	return a.show(text + "\n")
}

// called is the id of a reservation, with the name that it has.
func called(r *form.Reservation) string {
	if r.Name == "" {
		return r.ID
	}
	return r.ID + " (" + r.Name + ")"
}

// differences says what of a reservation is another than it was.
func differences(was, is *form.Reservation) string {
	var text strings.Builder
	if was.Start != is.Start && was.Start != 0 {
		later, by := "later", is.Start-was.Start
		if by < 0 {
			later, by = "earlier", -by
		}
		fmt.Fprintf(&text, ", %s %s: from %s on", hpctime.Format(berth.Duration(by)), later, localTime(is.Start))
	}
	if was.End != is.End {
		text.WriteString(", to " + localTime(is.End))
	}
	if before, now := where(&was.Place), where(&is.Place); before != now {
		if text.WriteString(", at " + now); was.Start != 0 { // else it was nowhere yet
			text.WriteString(" instead of " + before)
		}
	}
	if before, now := hostlist.Fold(was.Nodes), hostlist.Fold(is.Nodes); before != now && now != "" {
		text.WriteString(", on " + now)
		if before != "" {
			text.WriteString(" instead of " + before)
		}
	}
	if was.NPE != is.NPE {
		fmt.Fprintf(&text, ", %d PEs instead of %d", is.NPE, was.NPE)
	}
	if was.Missing != is.Missing {
		fmt.Fprintf(&text, ", %d PEs are missing", is.Missing)
	}
	return text.String()
}
