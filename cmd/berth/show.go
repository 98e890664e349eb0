package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// showCommand returns berth show.
func (a *app) showCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a reservation, what has happened to it, and its tasks", Args: wantID,
		Long: `Shows a reservation by its ID, its name, or the first or last letters of its ID: its
place, what has happened to it since it was promised, and its tasks. berth history
tells all of it, with who asked.`,
		Example: `  berth show weekly-run
  berth show MNPQR -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if args, err = ids(ctx, c, args); err != nil {
				return err
			}
			var reservation form.Reservation
			if r.wait {
				reservation, err = a.await(ctx, c, args[0], over)
			} else {
				reservation, err = c.Get(ctx, args[0])
			}
			if err != nil {
				return err
			}
			return a.showWhole(ctx, c, r, &reservation)
		},
	}
	r = remoteFlags(cmd)
	r.offerIDs(cmd, false)
	r.waitFlag(cmd, "it is over")
	return cmd
}

// shown is a reservation with its tasks and what has happened to it.
type shown struct {
	form.Reservation
	Tasks   []form.TaskReport `json:"tasks,omitempty"`
	History []told            `json:"history,omitempty"`
}

// told is a happening with the sentence that tells it.
type told struct {
	form.Happening
	Text string `json:"text"`
}

func (a *app) showWhole(ctx context.Context, c *client.Client, r *remote, reservation *form.Reservation) error {
	tasks, err := c.Tasks(ctx, reservation.ID)
	if err != nil {
		a.say("its tasks are not shown: %v", err)
	}
	past, err := c.History(ctx, reservation.ID)
	if err != nil {
		a.say("its history is not shown: %v", err)
	}
	now := time.Now()
	whole := shown{*reservation, tasks.Tasks, tales(past.History, now)}
	if r.format == "json" {
		return printForm(a.stdout, whole)
	}
	if err := a.show(describeReservation(reservation) + describeHistory(reservation.ID, whole.History, now) + describeTasks(reservation.ID, tasks.Tasks)); err != nil {
		return err
	}
	a.tellUse(ctx, c, reservation)
	return nil
}

// tales tells each thing in a short sentence: what, and by how much later and why, if it moved.
func tales(list []form.Happening, now time.Time) []told {
	var was form.Place
	all := make([]told, len(list))
	for i := range list {
		h := &list[i]
		all[i] = told{*h, tale(h, &was, now)}
		if h.Start != 0 {
			was = h.Place
		}
	}
	return all
}

// tale tells what has happened to what was at a place, the zero value of none.
func tale(h *form.Happening, was *form.Place, now time.Time) string {
	what := whatHappened(h, was)
	switch {
	case h.What == "moved" || h.What == "modified":
		what += shift(h, was, now)
	case h.What == "extended":
		what += " to " + shortTime(h.End, now)
	case h.What == "accepted" && h.Start != 0:
		what += " from " + shortTime(h.Start, now) + " to " + endAfter(h.Start, h.End, now)
	case h.What == "made" || h.What == "unmade":
		what += ", at " + h.Site
	}
	if h.By != "" {
		what += " by " + h.By
	}
	if h.Task != nil {
		what += taskSentence(h.Task)
	}
	if h.Trouble != "" {
		what += ": " + h.Trouble
	}
	if len(h.Outages) > 0 {
		head, rest, cut := strings.Cut(what, ": ")
		what = head + " because " + causes(h.Outages, now)
		if cut && h.What != "failed" { // which says nothing else
			what += ": " + rest
		}
	}
	if h.Reason != "" {
		what += fmt.Sprintf(" (%s)", h.Reason)
	}
	if h.Detail != "" {
		what += ": " + h.Detail
	}
	return what
}

// shift says how far what was at a place has moved, and where to.
func shift(h *form.Happening, was *form.Place, now time.Time) string {
	if was.Start == 0 || h.Start == 0 {
		return ""
	}
	var parts []string
	switch d := h.Start - was.Start; {
	case d > 0:
		parts = append(parts, lasting(berth.Duration(d))+" later, to "+shortTime(h.Start, now))
	case d < 0:
		parts = append(parts, lasting(berth.Duration(-d))+" earlier, to "+shortTime(h.Start, now))
	case where(&h.Place) == where(was) && h.NPE == was.NPE && !h.PEs.Equal(was.PEs):
		parts = append(parts, "to other PEs at the same start")
	}
	if where(&h.Place) != where(was) {
		parts = append(parts, "to "+where(&h.Place))
	}
	if h.NPE != was.NPE {
		parts = append(parts, fmt.Sprintf("%d PEs instead of %d", h.NPE, was.NPE))
	}
	if len(parts) == 0 {
		return ""
	}
	return " " + strings.Join(parts, ", ")
}

// causes says which nodes went out of use, or are going to.
func causes(list []form.Outage, now time.Time) string {
	said := make([]string, len(list))
	for i := range list {
		o := &list[i]
		one := *o
		one.From = 0
		said[i] = outOfUse([]form.Outage{one})
		switch {
		case o.From == 0:
			said[i] += " went out of use"
		case len(o.Nodes) == 1:
			said[i] += " goes out of use at " + shortTime(o.From, now)
		default:
			said[i] += " go out of use at " + shortTime(o.From, now)
		}
	}
	return together(said)
}

// routine is what everything goes through, and what is shown beside a history.
var routine = []string{"queued", "accepted", "named", "made", "task_started", "task_ended"}

// maxTales is how many sentences of a history are shown: the last ones.
const maxTales = 12

// describeHistory writes what is out of the ordinary of a history.
func describeHistory(id string, all []told, now time.Time) string {
	list := slices.DeleteFunc(slices.Clone(all), func(t told) bool { return slices.Contains(routine, t.What) })
	if len(list) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("\n history" + timesAt(now) + "\n")
	if before := len(list) - maxTales; before > 0 {
		fmt.Fprintf(&text, "  %d before these: berth history %s\n", before, id)
		list = list[before:]
	}
	for i := range list {
		fmt.Fprintf(&text, "  %s  %s\n", shortTime(list[i].At, now), list[i].Text)
	}
	return text.String()
}
