package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sites"
)

// lifecycleCommands returns the commands that speak to a service.
func (a *app) lifecycleCommands() []*cobra.Command {
	return []*cobra.Command{
		a.reserveCommand(), a.offersCommand(), a.holdCommand(), a.confirmCommand(), a.showCommand(), a.watchCommand(), a.freeCommand(), a.listCommand(),
		a.modifyCommand(), a.extendCommand(), a.releaseCommand(), a.cancelCommand(), a.submitCommand(), a.sbatchCommand(), a.statusCommand(), a.tasksCommand(), a.historyCommand(), a.auditCommand(), a.limitsCommand(), a.quotaCommand(), a.usageCommand(), a.reportCommand(), a.sitesCommand(),
		a.loginCommand(), a.logoutCommand(), a.whoamiCommand(), a.openCommand(), a.tokenCommand(), a.serviceAccountCommand(), a.sessionCommand(), a.feedCommand(), a.notifyCommand(), a.maintenanceCommand(), a.exportCommand(), a.clockCommand(), a.leadCommand(),
	}
}

// reserveCommand returns berth reserve.
func (a *app) reserveCommand() *cobra.Command {
	var q *ask
	var r *remote
	again := &repetition{}
	cmd := &cobra.Command{
		Use:   "reserve --npe N --duration D --deadline T [scontrol create reservation KEY=VALUE...]",
		Short: "Request a reservation: a promise, or a refusal with a reason and offers",
		Long: `Asks for PEs within a window. The answer is a promise, or a reasoned no with the
nearest offers and the command that holds each of them (exit code 3).

With --name it can be called by a name of your own wherever an ID is wanted. Several may
have the same name: the one that is not over is meant, and if there are more you are
asked for the ID.

With --array each of the equal parts is a reservation of its own, whose id is
that of the array, an underscore and its number, and so is its name; some may be promised
and others refused (exit code 3). With --hold they can be confirmed once all are there.

With --repeat it repeats: the answer is one for all occurrences, which are promised
together or not at all, or a number of them (--at-least); berth series shows them.

A line for Slurm may be pasted: its keys are read with Slurm's units, and what
Berth has no word for is refused by name.`,
		Example: `  berth reserve -n 64 -t 2h --ready 09:00 --deadline "tomorrow 18:00"
  berth reserve -n 4 -t 30m --start now+1hour --hold
  berth reserve -n 8 -t 4h --start "monday 09:00" --name weekly-run
  berth reserve -n 4 -t 50m --deadline tomorrow --array 100 --software namd --licences 1
  berth reserve -n 8 -t 1h --repeat "every weekday 09:00" --tz Europe/Berlin --times 20 --at-least 15
  berth reserve scontrol create reservation StartTime=now+1hour Duration=120 NodeCnt=4`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.paste(cmd, q, args); err != nil {
				return err
			}
			if err := again.check(cmd, q, r); err != nil {
				return err
			}
			if again.given() {
				return a.reserveSeries(cmd, r, again, q)
			}
			if err := a.settle(cmd, q); err != nil {
				return err
			}
			if err := q.missing(cmd); err != nil {
				return err
			}
			if q.Array > 0 && r.wait {
				return usagef(cmd, "--wait: given beside --array; want berth show --wait for each part")
			}
			return a.reserve(cmd, r, q)
		},
	}
	q = askFlags(cmd)
	nameFlag(cmd, &q.Name)
	cmd.Flags().StringVar(&q.User, "user", "", "in the name of this `USER`, which operators may")
	cmd.Flags().Var(&whole[int]{&q.Array, 1, service.MaxArray}, "array", "ask for this number of equal, independent reservations")
	holdFlag(cmd, &q.Hold)
	again.flags(cmd)
	r = remoteFlags(cmd)
	r.offerSiteFlags(cmd)
	r.waitFlag(cmd, "it has started")
	return cmd
}

// reserve runs the command.
func (a *app) reserve(cmd *cobra.Command, r *remote, q *ask) error {
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	q.lastsThere(ctx, c)
	answer, err := a.request(ctx, c, r, &q.Request)
	if err != nil {
		return err
	}
	if r.wait && answer.Decision != form.Refused {
		a.say("reservation %s is promised; waiting for its start", answer.ID)
		reservation, err := a.await(ctx, c, answer.ID, started)
		if err != nil {
			return err
		}
		answer.Reservation = &reservation
	}
	if err := a.answered(r, &answer); err != nil {
		return err
	}
	if answer.Reservation != nil && r.format == "table" {
		a.tellUse(ctx, c, answer.Reservation)
	}
	return nil
}

// tellUse tells how jobs are run in a reservation of a site under Slurm, if it can be used.
func (a *app) tellUse(ctx context.Context, c *client.Client, r *form.Reservation) {
	var lines strings.Builder
	for i := range r.Sites {
		s := &r.Sites[i]
		if !s.Made || r.State == string(service.Held) || over(r) {
			continue
		}
		at, err := c.Site(ctx, s.Site)
		if err != nil || at.Adapter != sites.Slurm {
			continue // a hint is missing
		}
		partition := ""
		if r.Partition != "" {
			partition = " --partition=" + r.Partition
		}
		fmt.Fprintf(&lines, "\n    sbatch --reservation=%s%s JOB.sh", s.Name, partition)
	}
	if lines.Len() > 0 {
		a.say("Run jobs in it with\n%s\n", lines.String())
	}
}

// request asks for a reservation under a key of its own, so that a connection
// that breaks cannot make two of one. Where the decision takes time and the caller
// waits, it is waited for.
func (a *app) request(ctx context.Context, c *client.Client, r *remote, q *form.Request) (form.Answer, error) {
	answer, err := c.Request(ctx, q, client.Action{Key: rand.Text()})
	if err != nil || answer.Decision != form.Pending || !r.wait {
		return answer, err
	}
	reservation, err := a.await(ctx, c, answer.ID, func(r *form.Reservation) bool { return r.State != form.Pending })
	if err != nil {
		return answer, err
	}
	answer.Decision, answer.Reservation = form.Accepted, &reservation
	if reservation.State == form.Refused || reservation.State == string(service.Failed) {
		answer.Decision, answer.Reservation, answer.Reason, answer.Refusal = form.Refused, nil, reservation.Reason, reservation.Refusal
	}
	return answer, nil
}

// answered shows the answer to a request. A refusal exits with its own code.
func (a *app) answered(r *remote, answer *form.Answer) error {
	switch {
	case r.format == "json":
		if err := printForm(a.stdout, answer); err != nil {
			return err
		}
	case answer.Array != nil:
		if err := a.tellArray(r, answer); err != nil {
			return err
		}
	case answer.Decision == form.Refused:
		if err := a.tellRefusal(r, answer); err != nil {
			return err
		}
	default:
		if err := a.show(describeReservation(answer.Reservation)); err != nil {
			return err
		}
		if answer.Reservation.State == "held" {
			if end := firstEnd(answer.Reservation); answer.Reservation.Expires == end {
				a.say("It is held until it would end: no hold lasts longer.\n")
			}
			a.say("Confirm it before %s:\n\n    berth confirm%s %s\n", localTime(answer.Reservation.Expires), r.again(), answer.ID)
		}
	}
	if answer.Decision == form.Refused || answer.Decision == form.Partly {
		return &exitError{exitRefused}
	}
	return nil
}

// firstEnd returns when the first part of a reservation ends.
func firstEnd(r *form.Reservation) form.Time {
	end := r.End
	for i := range r.Parts {
		end = min(end, r.Parts[i].End)
	}
	return end
}

// tellArray tells what became of the parts of an array, and why some were
// refused.
func (a *app) tellArray(r *remote, answer *form.Answer) error {
	now := time.Now()
	out := newTable("parts" + timesAt(now))
	out.AppendHeader(table.Row{"id", "state", "PEs", "site", "start", "end"})
	promised, pending, refused, until := 0, 0, 0, ""
	var held []int
	for i := range answer.Array {
		part := &answer.Array[i]
		p := part.Reservation
		switch {
		case part.Decision == form.Refused:
			refused++
			out.AppendRow(table.Row{part.ID, part.Decision, "-", "-", "-", "-"})
			continue
		case part.Decision == form.Pending:
			pending++
		case p.State == string(service.Held):
			held, until = append(held, i+1), localTime(p.Expires)
			promised++
		case !service.State(p.State).Over(): // it may have been taken back meanwhile
			promised++
		}
		out.AppendRow(table.Row{part.ID, p.State, p.NPE, where(&p.Place), shortTime(p.Start, now), endAfter(p.Start, p.End, now)})
	}
	parts := len(answer.Array)
	text := fmt.Sprintf("array %s: %d of %d parts are %s", answer.ID, promised, parts, map[bool]string{true: "held", false: "promised"}[len(held) > 0])
	if pending > 0 {
		text += fmt.Sprintf(", %d pending", pending)
	}
	text += "\n\n" + out.Render() + "\n"
	if refused > 0 {
		text += fmt.Sprintf("\nrefused %d times: the first: %s: %s\n", refused, answer.Reason, answer.Refusal.Detail)
	}
	if len(answer.Offers) > 0 {
		text += "\n" + describeOffers(answer.Offers, "berth hold"+r.again())
	}
	if err := a.show(text); err != nil {
		return err
	}
	if len(held) > 0 {
		a.say("Confirm them before %s:\n\n    berth confirm%s%s\n", until, r.again(), partsOf(answer.ID, held))
	}
	return nil
}

// partsOf writes the ids of parts of an array, whose numbers ascend, as a shell
// expands them.
func partsOf(id string, numbers []int) string {
	var text strings.Builder
	for i := 0; i < len(numbers); i++ {
		first := numbers[i]
		for i+1 < len(numbers) && numbers[i+1] == numbers[i]+1 {
			i++
		}
		if first == numbers[i] {
			fmt.Fprintf(&text, " %s_%d", id, first)
			continue
		}
		fmt.Fprintf(&text, " %s_{%d..%d}", id, first, numbers[i])
	}
	return text.String()
}

// tellRefusal tells why not, and what could be had instead.
func (a *app) tellRefusal(r *remote, answer *form.Answer) error {
	kept := ""
	if answer.Reservation != nil {
		kept = fmt.Sprintf("\nreservation %s stays as it is", answer.ID)
	}
	text := fmt.Sprintf("refused: %s: %s%s\n", answer.Reason, answer.Refusal.Detail, kept)
	if len(answer.Offers) > 0 {
		text += "\n" + describeOffers(answer.Offers, "berth hold"+r.again())
	}
	return a.show(text)
}

// again is what has to be typed again to speak to the same service.
func (r *remote) again() string {
	var text strings.Builder
	if r.server != "" {
		text.WriteString(" --server " + quoted(r.server))
	}
	if r.tokenFile != "" {
		text.WriteString(" --token-file " + quoted(r.tokenFile))
	}
	return text.String()
}

// quoted writes a word so that a shell reads it back.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=") == "" && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// show writes to stdout.
func (a *app) show(text string) error {
	if _, err := fmt.Fprint(a.stdout, text); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// offersCommand returns berth offers.
func (a *app) offersCommand() *cobra.Command {
	var q *ask
	var r *remote
	most, chance := 0, false
	cmd := &cobra.Command{
		Use:     "offers --npe N --duration D --deadline T",
		Short:   "List offers for a request without making it",
		Example: `  berth offers -n 64 -t 2h --deadline "tomorrow 18:00"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.paste(cmd, q, args); err != nil {
				return err
			}
			if err := a.settle(cmd, q); err != nil {
				return err
			}
			if err := q.missing(cmd); err != nil {
				return err
			}
			return a.offers(cmd, r, q, most, chance)
		},
	}
	q = askFlags(cmd)
	nameFlag(cmd, &q.Name)
	cmd.Flags().StringVar(&q.User, "user", "", "in the name of this `USER`, which operators may")
	cmd.Flags().Var(&whole[int]{&most, 1, 50}, "most", "how many offers at most (default 5)")
	cmd.Flags().BoolVar(&chance, "chance", false, "tell how probable acceptance is in an hour and in a day, and that an ordinary job starts in time")
	r = listFlags(cmd)
	r.offerSiteFlags(cmd)
	return cmd
}

func (a *app) offers(cmd *cobra.Command, r *remote, q *ask, most int, chance bool) error {
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	q.lastsThere(ctx, c)
	var answer form.Offers
	if chance {
		answer, err = c.OffersAndChances(ctx, &q.Request, most)
	} else {
		answer.Offers, err = c.Offers(ctx, &q.Request, most)
	}
	list := answer.Offers
	switch {
	case err != nil:
		return err
	case r.format == "json":
		if err := printForm(a.stdout, answer); err != nil {
			return err
		}
	case r.format == "csv":
		if err := offerRows(a.stdout, list); err != nil {
			return err
		}
	case len(list) > 0:
		return a.show(describeOffers(list, "berth hold"+r.again()) + describeChances(answer.Chances))
	default:
		a.say("refused: nothing like that can be had; if berth reserve refuses it too, it says why")
		if len(answer.Chances) > 0 {
			if err := a.show(describeChances(answer.Chances)); err != nil {
				return err
			}
		}
	}
	if len(list) == 0 {
		return &exitError{exitRefused}
	}
	return nil
}

// holdCommand returns berth hold.
func (a *app) holdCommand() *cobra.Command {
	var r *remote
	hold := form.DefaultHold
	cmd := &cobra.Command{
		Use:     "hold OFFER",
		Short:   "Hold an offer until it is confirmed",
		Example: `  berth hold 5d1c0a9e77b2f3a4c6d8e9f0 --for 10m`,
		Args:    one("OFFER, an id that berth offers or a refusal named"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			answer, err := c.Hold(ctx, args[0], hold, client.Action{Key: rand.Text()})
			if err != nil {
				return err
			}
			return a.answered(r, &answer)
		},
	}
	cmd.Flags().Var(&holdTime{&hold}, "for", "for how long")
	cmd.Flags().Lookup("for").DefValue = "30m"
	r = remoteFlags(cmd)
	return cmd
}

// one wants exactly one word.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef(cmd, "want one %s, got %d", what, len(args))
		}
		return nil
	}
}

// wantID is one for reservations.
var wantID = one("ID of a reservation, as berth list has them")

// wantFlow is one for workflows.
var wantFlow = one("ID of a workflow, as berth workflow list has them")

// wantIDs is for at least one reservation, such as the parts of an array.
func wantIDs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef(cmd, "want at least one ID of a reservation, as berth list has them, got 0")
	}
	return nil
}
