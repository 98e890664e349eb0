package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/service"
)

var (
	_ pflag.Value = (*zoneName)(nil)
	_ pflag.Value = (*atLeast)(nil)
)

// repetition is what a command line says about how a request repeats.
type repetition struct {
	form.SeriesRequest
	until  moment
	within span
	ahead  span
}

// flags adds the flags that say how it repeats.
func (q *repetition) flags(cmd *cobra.Command) {
	q.within, q.ahead = span{value: &q.Window, least: 1}, span{value: &q.Ahead, least: 1}
	f := cmd.Flags()
	f.StringVar(&q.Repeat, "repeat", "", "how it repeats, from --ready on: a `RULE` such as \"every weekday 09:00\", \"first monday of the month 18:00\" or RRULE:FREQ=WEEKLY;BYDAY=MO")
	f.Var(&zoneName{&q.TimeZone}, "tz", "with --repeat: by whose clock, such as Europe/Berlin (default: this machine's)")
	f.Var(&q.until, "until", "with --repeat: the latest start")
	f.Var(&whole[int]{&q.Times, 1, berth.MaxOccurrences}, "times", "with --repeat: how often, before exceptions are taken out")
	f.StringSliceVar(&q.Except, "except", nil, "with --repeat: `DAYS` or times at which it does not occur, such as 2026-12-24 or \"2026-12-24 09:00\"")
	f.StringSliceVar(&q.Add, "add", nil, "with --repeat: further `TIMES` at which it occurs, such as \"2026-12-23 09:00\"")
	f.Var(&q.ahead, "ahead", "with --repeat: how far ahead occurrences are promised, such as 42d; it is prolonged as time goes, without an end if none is given")
	f.Var(&q.within, "within", "with --repeat: how long after its time each occurrence must have ended at the latest (default: its duration)")
	f.Var(&atLeast{&q.AtLeast}, "at-least", "with --repeat: how many occurrences must be possible, or none is promised; all, or a number")
}

// given reports whether it repeats.
func (q *repetition) given() bool { return q.Repeat != "" || len(q.Add) > 0 }

// check reports what does not go together on a command line.
func (q *repetition) check(cmd *cobra.Command, one *ask, r *remote) error {
	if !q.given() {
		for _, name := range []string{"tz", "until", "times", "except", "ahead", "within", "at-least"} {
			if cmd.Flags().Changed(name) {
				return usagef(cmd, "--%s: given without --repeat; it says more about that", name)
			}
		}
		return nil
	}
	for name, given := range map[string]bool{"deadline": one.deadline.given(), "start": one.start.given(), "window": one.window.text != "", "array": one.Array > 0, "wait": r.wait} {
		if given {
			return usagef(cmd, "--%s: given beside --repeat; the times of occurrences are those of the rule, from --ready on, and end --within so long", name)
		}
	}
	if one.NPE == 0 && one.Variants == nil {
		return usagef(cmd, "--npe: missing; want how many PEs")
	}
	if one.Duration == 0 && one.Variants == nil {
		return usagef(cmd, "--duration: missing; want for how long, such as 2h30m")
	}
	return nil
}

// reserveSeries asks for a request that repeats.
func (a *app) reserveSeries(cmd *cobra.Command, r *remote, q *repetition, one *ask) error {
	now := time.Now()
	for _, m := range []*moment{&one.ready, &q.until} {
		if err := m.settle(now); err != nil {
			return usagef(cmd, "%v", err) // it could be read a moment ago
		}
	}
	q.Request = one.Request
	if one.ready.given() {
		q.Ready = form.Time(one.ready.at.Unix())
		a.echo("ready", &one.ready)
	}
	if q.until.given() {
		q.Until = form.Time(q.until.at.Unix())
		a.echo("until", &q.until)
	}
	if q.TimeZone == "" {
		q.TimeZone = localZone()
	}
	return a.withSeries(cmd, r, "", func(ctx context.Context, c *client.Client, _ string) (form.SeriesAnswer, error) {
		return c.SubmitSeries(ctx, &q.SeriesRequest, client.Action{Key: rand.Text()})
	})
}

// withSeries does something about the series that a word means, or about a new one if it is empty, and shows the answer. What is
// refused, and a new series that is promised in part, exit with their own code.
func (a *app) withSeries(cmd *cobra.Command, r *remote, word string, do func(ctx context.Context, c *client.Client, id string) (form.SeriesAnswer, error)) error {
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	id := ""
	if word != "" {
		if id, err = seriesID(ctx, c, word); err != nil {
			return err
		}
	}
	answer, err := do(ctx, c, id)
	if err != nil {
		return err
	}
	if r.format == "json" {
		err = printForm(a.stdout, &answer)
	} else if err = a.showSeries(r, &answer); err == nil {
		a.sayHeld(r, &answer.Series)
	}
	if refused := len(answer.Refusals) > 0 || word == "" && answer.Decision != form.Accepted; err == nil && refused {
		err = &exitError{exitRefused}
	}
	return err
}

// standsInTheWay says which occurrences stand in the way of a change, so that none has changed.
func standsInTheWay(refusals []form.OccurrenceRefusal) string {
	if len(refusals) == 0 {
		return ""
	}
	text := strings.Builder{}
	text.WriteString("refused: no occurrence has changed\n")
	for i := range refusals {
		u := &refusals[i]
		fmt.Fprintf(&text, "number %d cannot change: %s: %s\n", u.Number, u.Reason, u.Refusal.Detail)
	}
	return text.String() + "\n"
}

// showSeries shows a series with what became of each occurrence, below what refuses a change of it.
func (a *app) showSeries(r *remote, answer *form.SeriesAnswer) error {
	s, now := &answer.Series, time.Now()
	fitting := 0
	out := newTable("occurrences" + timesAt(now))
	out.AppendHeader(table.Row{"number", "id", "state", "PEs", "site", "start", "end"})
	var notes, instead strings.Builder
	for i := range s.Occurrences {
		o := &s.Occurrences[i]
		switch {
		case o.ID != "" && o.Refusal == nil || o.NPE > 0:
			out.AppendRow(table.Row{o.Number, o.ID, o.State, o.NPE, where(&o.Place), shortTime(o.Start, now), endAfter(o.Start, o.End, now)})
		case o.Refusal != nil:
			out.AppendRow(table.Row{o.Number, cmp.Or(o.ID, "-"), form.Refused, "-", "-", shortTime(o.Ready, now), "-"})
		case o.State == form.Skipped:
			fitting--
			out.AppendRow(table.Row{o.Number, "-", o.State, "-", "-", shortTime(o.Ready, now), "-"})
		default:
			out.AppendRow(table.Row{o.Number, "-", "possible", "-", "-", shortTime(o.Ready, now), "-"})
		}
		switch {
		case o.Refusal == nil:
			fitting++
		case o.NPE > 0:
			fitting++
			fmt.Fprintf(&notes, "\nnumber %d could not be as asked (%s), and is what was offered instead\n", o.Number, o.Reason)
		default:
			fmt.Fprintf(&notes, "\nnumber %d is refused: %s: %s\n", o.Number, o.Reason, o.Refusal.Detail)
		}
		if o.Note != "" {
			fmt.Fprintf(&notes, "\nnumber %d: %s\n", o.Number, o.Note)
		}
		if len(o.Offers) > 0 {
			fmt.Fprintf(&instead, "\nInstead of number %d:\n%s\n", o.Number, describeOffers(o.Offers, "berth hold"+r.again()))
		}
	}
	text := standsInTheWay(answer.Refusals) + fmt.Sprintf("series %s: %q by the clock of %s: ", s.ID, s.Repeat, s.TimeZone)
	if s.Decision == form.Refused {
		text += fmt.Sprintf("refused: %d of %d are possible, at least %d must be\n\n", fitting, s.Count, s.AtLeast)
	} else {
		text += fmt.Sprintf("%d of %d were promised, %d are not over\n", fitting, s.Count, s.Live) + chargedLine(s.Charge) + movedLine(s.Moved) + prolongation(s, now) + "\n"
	}
	return a.show(text + out.Render() + "\n" + notes.String() + instead.String())
}

// chargedLine says what budgets are charged for what is not over, where there are prices.
func chargedLine(charge *int64) string {
	if charge == nil {
		return ""
	}
	return "charged PE-hours: " + peHours(*charge) + "\n"
}

// movedLine says which occurrences come at another time than the rule says, since they were changed.
func movedLine(list []form.MovedOccurrences) string {
	if len(list) == 0 {
		return ""
	}
	parts := make([]string, len(list))
	for i, m := range list {
		which, by := fmt.Sprintf("numbers %d to %d come ", m.From, m.To), hpctime.Format(m.By)+" later"
		if m.From == m.To {
			which = fmt.Sprintf("number %d comes ", m.From)
		}
		if m.By < 0 {
			by = hpctime.Format(-m.By) + " earlier"
		}
		parts[i] = which + by
	}
	return "changed since: " + strings.Join(parts, ", ") + " than the rule says\n"
}

// prolongation says until when an open series is promised, and what comes next.
func prolongation(s *form.Series, now time.Time) string {
	if s.Ahead == 0 {
		return ""
	}
	text := fmt.Sprintf("promised until %s, %s ahead", shortTime(s.PromisedUntil, now), hpctime.Format(s.Ahead))
	if s.Prolonged != 0 {
		text += "; the next is asked for " + shortTime(s.Prolonged, now)
	}
	if s.Again != 0 {
		text += "; what could not be promised is asked for again " + shortTime(s.Again, now)
	}
	var left []string
	for _, number := range s.Skipped {
		if number > s.Count { // those before are listed
			left = append(left, strconv.Itoa(number))
		}
	}
	switch {
	case len(left) == 1:
		text += "; number " + left[0] + " will be left out"
	case len(left) > 1:
		text += "; numbers " + strings.Join(left, ", ") + " will be left out"
	}
	if !s.Open {
		text += "; nothing more is asked for"
	}
	return text + "\n"
}

// sayHeld says how what is held of a series is confirmed, and before when the first has to be.
func (a *app) sayHeld(r *remote, s *form.Series) {
	first := form.Time(0)
	for i := range s.Occurrences {
		if o := &s.Occurrences[i]; o.State == string(service.Held) && (first == 0 || o.Expires < first) {
			first = o.Expires
		}
	}
	if first != 0 {
		a.say("Confirm them before %s:\n\n    berth series confirm%s %s\n", localTime(first), r.again(), s.ID)
	}
}

// seriesCommand returns berth series.
func (a *app) seriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "series",
		Short: "List requests that repeat, look at them, and give occurrences back",
		Long: `A series is a request that repeats, which berth reserve --repeat asks for. Each
occurrence that is promised is a reservation, whose id is that of the series, a point
and its number: it is modified, extended, confirmed and released like any other. The
name of a series, or the first or last letters of its id, stand for the id.`,
	}
	cmd.AddCommand(a.seriesListCommand(), a.seriesShowCommand(), a.seriesConfirmCommand(), a.seriesModifyCommand(), a.seriesCancelCommand(), a.seriesSkipCommand())
	return cmd
}

func (a *app) seriesListCommand() *cobra.Command {
	var r *remote
	user := ""
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List series",
		Example: `  berth series list --user alice`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			list := []form.Series{}
			for s, err := range c.SeriesList(ctx, user) {
				if err != nil {
					return err
				}
				list = append(list, s)
			}
			if r.format == "json" {
				return printForm(a.stdout, form.SeriesList{Series: list})
			}
			return a.show(seriesTable(list, time.Now()))
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "only of this `USER`")
	r = remoteFlags(cmd)
	return cmd
}

// seriesTable lists series, with names and with until when open ones are promised if any has these.
func seriesTable(list []form.Series, now time.Time) string {
	names := slices.ContainsFunc(list, func(s form.Series) bool { return s.Name != "" })
	ahead := slices.ContainsFunc(list, func(s form.Series) bool { return s.Ahead != 0 })
	out := newTable("series" + timesAt(now))
	row := func(id, name, user, repeats, zone, decision, count, live, until, asked any) {
		row := table.Row{id}
		if names {
			row = append(row, name)
		}
		row = append(row, user, repeats, zone, decision, count, live)
		if ahead {
			row = append(row, until)
		}
		row = append(row, asked)
		if id == "id" {
			out.AppendHeader(row)
		} else {
			out.AppendRow(row)
		}
	}
	row("id", "name", "user", "repeats", "time zone", "decision", "occurrences", "not over", "promised until", "asked")
	for i := range list {
		s := &list[i]
		repeats := s.Repeat
		if len(s.Moved) > 0 {
			repeats += ", moved"
		}
		row(s.ID, orDash(s.Name), s.User, repeats, s.TimeZone, s.Decision, s.Count, s.Live, promisedUntil(s, now), shortTime(s.Created, now))
	}
	return out.Render() + "\n"
}

// promisedUntil says until when an open series is promised; of others it says nothing.
func promisedUntil(s *form.Series, now time.Time) string {
	switch {
	case s.Ahead == 0 || s.Decision == form.Refused:
		return "-"
	case s.Open:
		return shortTime(s.PromisedUntil, now) + ", open"
	}
	return shortTime(s.PromisedUntil, now) + ", ended"
}

// wantSeries is one for series.
var wantSeries = one("ID or the name of a series, as berth series list has them")

// seriesID returns the id of the series that a word on a command line means, as the service understands it: by id, by name, or by the
// first or last letters of the id. The error is Conflict, with the candidates, if there are several.
func seriesID(ctx context.Context, c *client.Client, word string) (string, error) {
	if len(word) >= wholeID && !berth.ValidName(word) {
		return word, nil
	}
	s, err := c.Series(ctx, word)
	return s.ID, err
}

func (a *app) seriesShowCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show a series with what became of each occurrence",
		Example: `  berth series show 01KB2M3N4P5Q6R7S8T9V0W1X2Y`,
		Args:    wantSeries,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			s, err := c.Series(ctx, args[0])
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &s)
			}
			return a.showSeries(r, &form.SeriesAnswer{Series: s})
		},
	}
	r = remoteFlags(cmd)
	r.offerSeries(cmd)
	return cmd
}

func (a *app) seriesConfirmCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use:     "confirm ID",
		Short:   "Confirm all held occurrences of a series, one after the other",
		Example: `  berth series confirm 01KB2M3N4P5Q6R7S8T9V0W1X2Y`,
		Args:    wantSeries,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSeries(cmd, r, args[0], func(ctx context.Context, c *client.Client, id string) (answer form.SeriesAnswer, err error) {
				if answer.Series, err = c.Series(ctx, id); err != nil {
					return answer, err
				}
				held := 0
				for i := range answer.Series.Occurrences {
					if o := &answer.Series.Occurrences[i]; o.State == string(service.Held) {
						held++
						if _, err := c.Confirm(ctx, o.ID, client.Action{Key: rand.Text()}); err != nil {
							return answer, err
						}
					}
				}
				if held == 0 {
					return answer, berth.Errorf(berth.Conflict, "id", "no occurrence of series %q is held", args[0])
				}
				answer.Series, err = c.Series(ctx, id)
				answer.Decision = answer.Series.Decision
				return answer, err
			})
		},
	}
	r = remoteFlags(cmd)
	r.offerSeries(cmd)
	return cmd
}

func (a *app) seriesModifyCommand() *cobra.Command {
	var r *remote
	x, later, earlier := form.SeriesModify{}, berth.Duration(0), berth.Duration(0)
	cmd := &cobra.Command{
		Use:   "modify ID",
		Short: "Change occurrences of a series that are to come: all that are named, or none",
		Example: `  berth series modify 01KB2M3N4P5Q6R7S8T9V0W1X2Y --from 3 --later 1h
  berth series modify 01KB2M3N4P5Q6R7S8T9V0W1X2Y --from 3 --to 3 -n 8 -t 2h`,
		Args: wantSeries,
		RunE: func(cmd *cobra.Command, args []string) error {
			if later > 0 && earlier > 0 {
				return usagef(cmd, "--earlier: given beside --later; want one of them")
			}
			if x.By = later - earlier; x.By == 0 && x.NPE == 0 && x.Duration == 0 {
				return usagef(cmd, "--later: missing; want --later, --earlier, --npe or --duration, which say what changes")
			}
			return a.withSeries(cmd, r, args[0], func(ctx context.Context, c *client.Client, id string) (form.SeriesAnswer, error) {
				return c.ModifySeries(ctx, id, x, client.Action{Key: rand.Text()})
			})
		},
	}
	f := cmd.Flags()
	f.Var(&whole[int]{&x.From, 1, berth.MaxOccurrences}, "from", "the number of the first that changes (default 1)")
	f.Var(&whole[int]{&x.To, 1, berth.MaxOccurrences}, "to", "the number of the last that changes (default: the last, and what an open series is still to ask for)")
	f.Var(&span{value: &later, least: 1}, "later", "by how much later each is")
	f.Var(&span{value: &earlier, least: 1}, "earlier", "by how much earlier each is")
	f.VarP(&whole[berth.Count]{&x.NPE, 1, berth.MaxPEs}, "npe", "n", "how many PEs each has from then on")
	f.VarP(&span{value: &x.Duration, least: 1}, "duration", "t", "how long each lasts from then on")
	r = remoteFlags(cmd)
	r.offerSeries(cmd)
	return cmd
}

func (a *app) seriesCancelCommand() *cobra.Command {
	var r *remote
	which := form.SeriesCancel{}
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Give all occurrences of a series back, or one and those after it",
		Example: `  berth series cancel 01KB2M3N4P5Q6R7S8T9V0W1X2Y
  berth series cancel 01KB2M3N4P5Q6R7S8T9V0W1X2Y --from 3`,
		Args: wantSeries,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSeries(cmd, r, args[0], func(ctx context.Context, c *client.Client, id string) (form.SeriesAnswer, error) {
				return c.CancelSeries(ctx, id, which, client.Action{Key: rand.Text()})
			})
		},
	}
	cmd.Flags().Var(&whole[int]{&which.From, 1, berth.MaxOccurrences}, "from", "the number of the first that is given back (default 1)")
	r = remoteFlags(cmd)
	r.offerSeries(cmd)
	return cmd
}

func (a *app) seriesSkipCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use:     "skip ID NUMBER",
		Short:   "Give one occurrence of a series back",
		Example: `  berth series skip 01KB2M3N4P5Q6R7S8T9V0W1X2Y 2`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef(cmd, "want the ID or the name of a series and the NUMBER of an occurrence, got %d words", len(args))
			}
			if n, err := strconv.Atoi(args[1]); err != nil || n < 1 || n > berth.MaxOccurrences {
				return usagef(cmd, "%q; want the number of an occurrence, from 1 to %d", args[1], berth.MaxOccurrences)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			n, _ := strconv.Atoi(args[1]) // which was checked
			return a.withSeries(cmd, r, args[0], func(ctx context.Context, c *client.Client, id string) (form.SeriesAnswer, error) {
				return c.CancelSeries(ctx, id, form.SeriesCancel{From: n, To: n}, client.Action{Key: rand.Text()})
			})
		},
	}
	r = remoteFlags(cmd)
	r.offerSeries(cmd)
	return cmd
}

// zoneName is the name of a time zone; whether the service knows it, the service says.
type zoneName struct{ value *string }

func (z *zoneName) Type() string { return "ZONE" }

func (z *zoneName) String() string { return valueOf(z.value) }

func (z *zoneName) Set(text string) error {
	if text == "" || text == "Local" {
		return fmt.Errorf("%q; want the name of a time zone, such as Europe/Berlin or UTC", text)
	}
	*z.value = text
	return nil
}

// localZone returns the name of this machine's time zone, UTC if it has none.
func localZone() string {
	if name := strings.TrimPrefix(os.Getenv("TZ"), ":"); name != "" {
		if _, err := time.LoadLocation(name); err == nil {
			return name
		}
	}
	if path, err := os.Readlink("/etc/localtime"); err == nil {
		if _, name, is := strings.Cut(path, "zoneinfo/"); is {
			return name
		}
	}
	return "UTC"
}

// atLeast is how many occurrences must be possible; 0 is all.
type atLeast struct{ value *int }

func (l *atLeast) Type() string { return "K|all" }

func (l *atLeast) String() string {
	if l.value == nil || *l.value == 0 {
		return ""
	}
	return strconv.Itoa(*l.value)
}

func (l *atLeast) Set(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case text == "all":
		n = 0
	case err != nil || n < 1 || n > berth.MaxOccurrences:
		return errors.New(strconv.Quote(text) + "; want all, or a number from 1 to " + strconv.Itoa(berth.MaxOccurrences))
	}
	*l.value = n
	return nil
}
