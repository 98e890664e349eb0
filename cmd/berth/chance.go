package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/chance"
	"github.com/berth-hpc/berth/internal/hpctime"
)

// chanceFlags is what the command line of chance says.
type chanceFlags struct {
	pes      berth.Count // 0 if the lines are to tell
	npe      berth.Count // 0 if not given
	duration berth.Duration
	notice   berth.Duration
	slack    berth.Duration
	evaluate bool
	format   string
}

// The forms of chances; the first is the default.
var chanceFormats = []string{"table", "json"}

// The questions of the command: an hour, a day.
const (
	chanceHour = berth.Duration(3600)
	chanceDay  = 24 * chanceHour
)

// chanceCommand returns berth chance.
func (a *app) chanceCommand() *cobra.Command {
	flags := &chanceFlags{format: chanceFormats[0]}
	cmd := &cobra.Command{
		Use:   "chance FILE.jsonl --npe N --duration D",
		Short: "How probable acceptance, moves and starts are, by a schedule's history",
		Long: `Reads a schedule file and tells, by what became of requests and jobs in it, how
probable it is that a request is accepted if it is made in an hour or in a day, that
a promise for it moves, and that an ordinary job of its size starts within its window.
The request is made when the last entry of the file arrives. Each figure is a share
of past cases that looked as promising, with their number and its 95 % interval; with
fewer than 200 cases there is none.

--evaluate asks the same of every entry of the file with what was known at that time,
and prints by tenths what was said and what came true.

A schedule file is what berth sim --schedule and berth journal export --form
schedule write.`,
		Example: `  berth sim --workload log.swf.gz --schedule out.jsonl
  berth chance out.jsonl --npe 64 --duration 4h --notice 2h --slack 6h
  berth chance out.jsonl --evaluate`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(cmd, "want one FILE.jsonl (or - for stdin), got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch given := flags.npe > 0 || flags.duration > 0 || flags.notice > 0 || flags.slack > 0; {
			case flags.evaluate && given:
				return usagef(cmd, "--evaluate: asks about the entries of the file; leave out --npe, --duration, --notice and --slack")
			case !flags.evaluate && (flags.npe == 0 || flags.duration == 0):
				return usagef(cmd, "--npe and --duration are missing; give the size of a request, or --evaluate")
			}
			return a.chance(args[0], flags)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&whole[berth.Count]{&flags.npe, 1, berth.MaxPEs}, "npe", "PEs of the request")
	f.Var(&length{&flags.duration, 1}, "duration", "duration of the request, such as 2h")
	f.Var(&length{&flags.notice, 0}, "notice", "time from the request to its ready time")
	f.Var(&length{&flags.slack, 0}, "slack", "time from the earliest end to the deadline")
	f.BoolVar(&flags.evaluate, "evaluate", false, "tell how reliable the chances were in this file")
	f.Var(&whole[berth.Count]{&flags.pes, 1, berth.MaxPEs}, "pes", "size of the machine (default: what the lines tell)")
	f.VarP(&choice{&flags.format, "form", chanceFormats}, "output", "o", "form of the result: "+strings.Join(chanceFormats, ", "))
	complete(cmd, "output", chanceFormats)
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"jsonl", "gz"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return cmd
}

// chance runs the command.
func (a *app) chance(path string, flags *chanceFlags) error {
	in, name, err := a.input(path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read from: nothing can be lost
	history, told, widest, err := readEntries(in, name)
	if err != nil {
		return err
	}
	pes := flags.pes
	switch {
	case len(history) == 0:
		return berth.Errorf(berth.Invalid, "", "%s: has no line; want a schedule", name)
	case pes == 0 && told == 0:
		return berth.Errorf(berth.Invalid, "", "%s: no line tells the size of a pool (pool_pes); give it by --pes", name)
	case pes == 0:
		pes = told
	default:
		if widest = pes; told > 0 && told != pes {
			_, _ = fmt.Fprintf(a.stderr, "berth: --pes: %d; the lines of %s tell of %d PEs\n", pes, name, told)
		}
	}
	switch {
	case flags.npe > pes:
		return berth.Errorf(berth.Invalid, "", "--npe: %d; the machine has %d PEs", flags.npe, pes)
	case flags.npe > widest:
		return berth.Errorf(berth.Invalid, "", "--npe: %d; the largest pool has %d PEs", flags.npe, widest)
	}
	out := bufio.NewWriter(a.stdout)
	if flags.evaluate {
		printReliability(out, flags.format, history, pes)
	} else {
		printChances(out, flags, history, pes)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the chances: %w", err)
	}
	return nil
}

// readEntries reads a schedule file, and how many PEs its pools have together, and the largest of them, where it tells.
func readEntries(in io.Reader, name string) (entries []chance.Entry, pes, widest berth.Count, err error) {
	decoder := json.NewDecoder(bufio.NewReaderSize(in, 1<<16))
	sizes := map[[2]string]berth.Count{}
	for number := 1; ; number++ {
		var lines [1]berth.Line
		l := &lines[0]
		err := decoder.Decode(l)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, 0, berth.Errorf(berth.Invalid, "", "%s:%d: cannot be read as a line of a schedule: %v", name, number, err)
		}
		if l.NPE < 0 || l.NPE > berth.MaxPEs || l.PoolPEs > berth.MaxPEs || l.Duration < 0 || l.Arrival < 0 || l.Arrival >= berth.TimeLimit {
			return nil, 0, 0, berth.Errorf(berth.Invalid, "", "%s:%d: npe %d, pool_pes %d, duration %d, arrival %d; want sizes and times that a schedule has", name, number, l.NPE, l.PoolPEs, l.Duration, l.Arrival)
		}
		if at := [2]string{l.Site, l.Pool}; l.PoolPEs > 0 {
			sizes[at] = max(sizes[at], l.PoolPEs)
		}
		entries = append(entries, chance.FromLines(lines[:])...)
	}
	for _, n := range sizes {
		pes, widest = pes+n, max(widest, n)
	}
	return entries, pes, widest, nil
}

// printChances answers about the request of the flags.
func printChances(out io.Writer, flags *chanceFlags, history []chance.Entry, pes berth.Count) {
	now := berth.Time(0)
	for i := range history {
		now = max(now, history[i].Arrival)
	}
	ready := now.Add(flags.notice)
	like := chance.Entry{
		Arrival: now, Ready: ready, Deadline: ready.Add(flags.duration).Add(flags.slack), Duration: flags.duration, NPE: flags.npe,
		Promised: berth.Interval{Start: ready, End: ready.Add(flags.duration)},
	}
	within := flags.notice + flags.slack
	var list []form.Chance
	for _, q := range []chance.Question{{Kind: chance.Accepted, Later: chanceHour}, {Kind: chance.Accepted, Later: chanceDay}, {Kind: chance.Moved}, {Kind: chance.Started, Later: within}} {
		c := chance.Ask(history, pes, q, now, like.At(q))
		f := form.Chance{Event: string(q.Kind), Later: q.Later}
		if c.Enough {
			f.Share = &form.Share{Percent: 100 * c.Share, Low: 100 * c.Low, High: 100 * c.High, Cases: c.Sample}
		}
		list = append(list, f)
	}
	if flags.format == "json" {
		printIndented(out, list)
		return
	}
	_, _ = io.WriteString(out, describeChances(list)) // Flush tells
}

// describeChances writes chances as a table.
func describeChances(list []form.Chance) string {
	if len(list) == 0 {
		return ""
	}
	text := newTable("chances")
	text.AppendHeader(table.Row{"event", "chance, %", "95 % interval", "past cases"})
	for i := range list {
		c := &list[i]
		event := chanceEvent(chance.Question{Kind: chance.Kind(c.Event), Later: c.Later})
		if c.Share == nil {
			text.AppendRow(table.Row{event, "not enough history", "-", "-"})
			continue
		}
		text.AppendRow(table.Row{event, fmt.Sprintf("%.0f", c.Share.Percent), fmt.Sprintf("%.0f to %.0f", c.Share.Low, c.Share.High), c.Share.Cases})
	}
	return text.Render() + "\n"
}

// chanceEvent is what may happen, in words.
func chanceEvent(q chance.Question) string {
	switch q.Kind {
	case chance.Accepted:
		return "the request is accepted if made in " + hpctime.Format(q.Later)
	case chance.Moved:
		return "its promise moves"
	}
	return "an ordinary job starts within " + hpctime.Format(q.Later)
}

// reliabilityJSON is how reliable the answers to one question were.
type reliabilityJSON struct {
	Event  chance.Kind    `json:"event"`
	Later  berth.Duration `json:"later_seconds"`
	Untold int            `json:"not_enough_history"`
	Told   int            `json:"told"`
	Brier  float64        `json:"brier"`
	Base   float64        `json:"brier_of_the_mean"`
	Tenths []tenthJSON    `json:"tenths"`
}

// tenthJSON is the answers between two tenths.
type tenthJSON struct {
	From     float64 `json:"from_percent"`
	Cases    int     `json:"cases"`
	Said     float64 `json:"said_percent"`
	Happened float64 `json:"happened_percent"`
}

// printReliability evaluates each question that the history has cases of.
func printReliability(out io.Writer, format string, history []chance.Entry, pes berth.Count) {
	questions := []chance.Question{
		{Kind: chance.Accepted, Later: chanceHour},
		{Kind: chance.Accepted, Later: chanceDay},
		{Kind: chance.Moved},
		{Kind: chance.Started, Later: chanceHour},
		{Kind: chance.Started, Later: 4 * chanceHour},
		{Kind: chance.Started, Later: chanceDay},
	}
	list := []reliabilityJSON{}
	for _, q := range questions {
		r := chance.Judge(chance.Evaluate(history, pes, q))
		if r.Told+r.Untold == 0 {
			continue
		}
		j := reliabilityJSON{Event: q.Kind, Later: q.Later, Untold: r.Untold, Told: r.Told, Brier: r.Brier, Base: r.Base, Tenths: []tenthJSON{}}
		text := newTable("")
		text.AppendHeader(table.Row{"chance, %", "cases", "said, %", "came true, %", "off, points"})
		for i := range r.Deciles {
			d := &r.Deciles[i]
			if d.N == 0 {
				continue
			}
			t := tenthJSON{From: float64(10 * i), Cases: d.N, Said: 100 * d.Said, Happened: 100 * float64(d.Happened) / float64(d.N)}
			j.Tenths = append(j.Tenths, t)
			text.AppendRow(table.Row{fmt.Sprintf("%d to %d", 10*i, 10*i+10), d.N, fmt.Sprintf("%.1f", t.Said), fmt.Sprintf("%.1f", t.Happened), fmt.Sprintf("%+.1f", 100*d.Off())})
		}
		if list = append(list, j); format == "json" {
			continue
		}
		_, _ = fmt.Fprintf(out, "%s: %d cases, %d without enough history", chanceEvent(q), r.Told+r.Untold, r.Untold) // Flush tells
		if r.Told > 0 {
			_, _ = fmt.Fprintf(out, "; mean square error %.4f, of always saying %.1f %% %.4f\n%s\n", r.Brier, 100*float64(r.Happened)/float64(r.Told), r.Base, text.Render())
		}
		_, _ = fmt.Fprintln(out)
	}
	if format == "json" {
		printIndented(out, list)
	}
}

// printIndented writes JSON for people and programs; Flush tells of errors.
func printIndented(out io.Writer, v any) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(v)
}
