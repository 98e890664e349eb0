package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/site/slurm"
)

// paste takes over a pasted line of scontrol create reservation, if there is one. What
// flags say counts more.
func (a *app) paste(cmd *cobra.Command, q *ask, args []string) error {
	var words []string
	for _, arg := range args { // a line may come in quotes
		words = append(words, strings.Fields(arg)...)
	}
	for _, word := range []string{"scontrol", "create", "reservation"} {
		if len(words) > 0 && strings.EqualFold(words[0], word) {
			words = words[1:]
		}
	}
	if len(words) == 0 {
		if len(args) > 0 {
			return usagef(cmd, "nothing behind %q; want KEY=VALUE such as StartTime=now+1hour Duration=120 NodeCnt=4", strings.Join(args, " "))
		}
		return nil
	}
	if _, err := hpctime.Parse(words[0]); err == nil && cmd.Flags().Changed("hold") { // --hold takes its value behind = alone
		return usagef(cmd, "unexpected %q; want --hold=%s", words[0], words[0])
	}
	line, err := slurm.ParseAsked(words, q.NPE, time.Now())
	if err != nil {
		return usagef(cmd, "%v", err)
	}
	q.add(line)
	for _, text := range line.LeftOut {
		a.say("left out: %s", text)
	}
	a.say("read from Slurm: %d PEs for %s", q.NPE, hpctime.Format(q.Duration))
	return nil
}

// add takes from a line of Slurm what no flag says; a window takes the place of
// Slurm's exact start.
func (q *ask) add(line *slurm.Asked) {
	start := moment{text: line.StartText, at: line.Start}
	if strings.HasPrefix(strings.ToLower(line.StartText), "now") {
		start.read = hpctime.ParseSlurmInstant
	}
	switch {
	case q.start.given() || !start.given():
	case !q.ready.given() && !q.deadline.given():
		q.start = start
	case !q.ready.given():
		q.ready = start
	}
	fill(&q.NPE, line.NPE)
	fill(&q.Duration, line.Duration)
	fill(&q.Partition, line.Partition)
	fill(&q.Constraint, line.Constraint)
	fill(&q.Nodelist, line.Nodelist)
	fill(&q.Software, line.Software)
	fill(&q.Licences, line.Licences)
	fill(&q.Accelerators, line.Accelerators)
	fill(&q.User, line.User)
	fill(&q.Account, line.Account)
	fill(&q.QOS, line.QOS)
	if q.Group == "" && len(q.Users) == 0 {
		q.Group, q.Users = line.Group, line.Users
	}
	fill(&q.NoShow, line.NoShow)
}

// fill sets what is not set.
func fill[T comparable](into *T, value T) {
	var none T
	if *into == none {
		*into = value
	}
}
