package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

// historyCommand returns berth history.
func (a *app) historyCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "List what happened to a reservation, and who requested it",
		Long: `Tells what has happened to a reservation, one sentence for each thing: when, what, and
who asked for it, from the beginning of the journal on. Operators see by which token and
from which address.`,
		Example: "  berth history 01KA2B3C4D5E6F7G8H9JKMNPQR",
		Args:    one("ID of a reservation, as berth list has them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if args, err = ids(ctx, c, args); err != nil {
				return err
			}
			h, err := c.History(ctx, args[0])
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &h)
			}
			var text strings.Builder
			if h.Since != 0 {
				fmt.Fprintf(&text, "the journal goes back to %s; what happened before is no longer on record\n", localTime(h.Since))
			}
			for _, told := range sentences(h.History) {
				text.WriteString(told + "\n")
			}
			if h.Delivered != nil {
				text.WriteString(given(h.Delivered) + "\n")
			}
			return a.show(text.String())
		},
	}
	r = remoteFlags(cmd)
	r.offerIDs(cmd, false)
	return cmd
}

// happened says in words what the changes of a reservation are.
var happened = map[string]string{
	"queued": "asked for", "accepted": "promised", "refused": "refused", "withdrawn": "cancelled before it was decided", "queued_as_job": "waits as a job",
	"confirmed": "confirmed", "expired": "not confirmed in time, and gone", "started": "started", "failed": "failed: its PEs went out of use",
	"requeued": "waits again", "rejected": "failed: its site will not have it", "lost": "lost: there is no other place", "extended": "extended", "shortened": "shortened", "preempted": "stopped, and waits again",
	"moved": "moved", "named": "its nodes are named", "resized": "has other PEs", "modified": "modified", "change_refused": "a change was refused", "checked_in": "in use",
	"made": "there as promised", "unmade": "not there as promised",
	"no_show": "not used in time, and gone", "ended": "ended", "cancelled": "cancelled", "staged": "its data are expected at another time",
	"task_started": "a task started", "task_ended": "a task ended", "task_requeued": "a task waits again", "task_left": "a task could not follow to another place", "site_changed": "it was changed by hand at its site",
}

// given says in words what was delivered of a promise.
func given(d *form.Delivered) string {
	text := fmt.Sprintf("delivered: %d PEs promised from %s to %s", d.NPE, localTime(d.Start), localTime(d.End))
	if d.Made == 0 {
		text += ", never there as promised"
	} else {
		text += ", there as promised since " + localTime(d.Made)
	}
	if d.Whole != 0 {
		text += ", whole from " + localTime(d.Whole)
	}
	return text + fmt.Sprintf(", short by %d PE-seconds", d.ShortPESeconds)
}

// sentences tells each thing, one after the other.
func sentences(list []form.Happening) []string {
	told, was := make([]string, len(list)), form.Place{}
	for i := range list {
		h := &list[i]
		told[i] = sentence(h, &was)
		if h.Start != 0 {
			was = h.Place
		}
	}
	return told
}

// whatHappened says in words what has happened to what was at a place, the zero value of none.
func whatHappened(h *form.Happening, was *form.Place) string {
	what, known := happened[h.What]
	switch {
	case !known:
		return strings.ReplaceAll(h.What, "_", " ")
	case h.What != "resized" || h.Start == 0:
	case h.NPE == 0:
		return "lacks all of its PEs"
	case was.Start != 0 && h.NPE != was.NPE:
		return fmt.Sprintf("has %d PEs instead of %d", h.NPE, was.NPE)
	}
	return what
}

// sentence tells one thing that has happened to what was at a place, the zero value of none.
func sentence(h *form.Happening, was *form.Place) string {
	what, start := whatHappened(h, was), was.Start
	text := localTime(h.At) + ": " + what
	if h.By != "" {
		text += " by " + h.By
	}
	if t := h.Task; t != nil {
		text += taskSentence(t)
	}
	if h.Trouble != "" {
		text += ": " + h.Trouble
	}
	if h.What == "made" || h.What == "unmade" {
		return text + ", at " + h.Site
	}
	if h.Site != "" {
		text += fmt.Sprintf(", %d PEs at %s/%s", h.NPE, h.Site, h.Pool)
	} else if len(h.Parts) > 0 {
		text += fmt.Sprintf(", %d parts", len(h.Parts))
	}
	if h.Site != "" || len(h.Parts) > 0 {
		text += " from " + localTime(h.Start) + " to " + localTime(h.End)
		if d := h.Start - start; h.What == "moved" && start != 0 && d > 0 {
			text += ", " + lasting(berth.Duration(d)) + " later"
		} else if h.What == "moved" && start != 0 && d < 0 {
			text += ", " + lasting(berth.Duration(-d)) + " earlier"
		}
	} else if h.What == "extended" {
		text += " to " + localTime(h.End)
	}
	if h.Reason != "" {
		text += fmt.Sprintf(" (%s)", h.Reason)
	}
	if h.Detail != "" {
		text += ": " + h.Detail
	}
	if len(h.Outages) > 0 {
		text += "; out of use: " + outOfUse(h.Outages)
	}
	if h.Token != "" {
		text += fmt.Sprintf(" [token %s, %s, call %s]", h.Token, h.Address, h.Call)
	}
	return text
}

// outOfUse says what is out of use, or is going to be.
func outOfUse(list []form.Outage) string {
	var told []string
	for i := range list {
		o := &list[i]
		var text string
		switch n := len(o.Nodes); {
		case n == 0:
			text = fmt.Sprintf("%d PEs of %s/%s", o.NPE, o.Site, o.Pool)
		case n > 4:
			text = fmt.Sprintf("%d nodes of %s/%s", n, o.Site, o.Pool)
		default:
			text = strings.Join(o.Nodes, ",")
		}
		if o.From != 0 {
			text += " from " + localTime(o.From) + " on"
		}
		told = append(told, text)
	}
	return together(told)
}

// together says several things, each once: outages that overlap can take the same.
func together(texts []string) string {
	var each []string
	for _, text := range texts {
		if !slices.Contains(each, text) {
			each = append(each, text)
		}
	}
	return strings.Join(each, " and ")
}

// taskSentence says which task it was, where, and how it ended.
func taskSentence(t *form.TaskReport) string {
	text := ": " + t.Job
	if t.Name != "" {
		text += " (" + t.Name + ")"
	}
	text += " at " + t.Site
	if t.Over() {
		text += ", " + taskState(t)
	}
	if t.Reason != "" {
		text += " (" + t.Reason + ")"
	}
	return text
}
