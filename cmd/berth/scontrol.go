package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/internal/nearest"
)

// pasted is a line of scontrol create reservation as it was read.
type pasted struct {
	start, end moment
	duration   berth.Duration
	counts     map[string]berth.Count // NodeCnt, CoreCnt, node and cpu of TRES
	gpus       berth.Count
	ignored    []string
}

// slurmKeys are the keys of a reservation, each with what it means here. The
// names are those of the manual of scontrol; case does not matter.
var slurmKeys = []struct {
	key string
	set func(p *pasted, q *ask, value string) error
}{
	{"StartTime", func(p *pasted, _ *ask, value string) error { return p.start.setSlurm(value) }},
	{"EndTime", func(p *pasted, _ *ask, value string) error { return p.end.setSlurm(value) }},
	{"Duration", func(p *pasted, _ *ask, value string) (err error) {
		p.duration, err = hpctime.ParseSlurm(value)
		return err
	}},
	{"NodeCnt", func(p *pasted, _ *ask, value string) error { return p.count("NodeCnt", value) }},
	{"CoreCnt", func(p *pasted, _ *ask, value string) error { return p.count("CoreCnt", value) }},
	{"TRES", (*pasted).tres},
	{"PartitionName", func(_ *pasted, q *ask, value string) error {
		q.Partition = value
		return nil
	}},
	{"Licenses", func(_ *pasted, q *ask, value string) error { return q.licence(value, ":") }},
	{"Users", (*pasted).users},
	{"Flags", (*pasted).flags},
	{"ReservationName", func(p *pasted, _ *ask, _ string) error {
		p.ignored = append(p.ignored, "ReservationName: Berth names reservations itself")
		return nil
	}},
	{"Nodes", noWord("named nodes; want NodeCnt, or --pes with the numbers of PEs")},
	{"Accounts", noWord("accounts; leave it out, and ask as the user")},
	{"Groups", noWord("groups; leave it out, and ask as the user")},
	{"QOS", noWord("qualities of service; leave it out")},
	{"Features", noWord("features; want --site or --pool")},
	{"BurstBuffer", noWord("burst buffers; leave it out")},
	{"MaxStartDelay", noWord("a start delay for jobs; want --no-show")},
	{"Comment", func(p *pasted, _ *ask, _ string) error {
		p.ignored = append(p.ignored, "Comment: Berth keeps none")
		return nil
	}},
}

func noWord(what string) func(*pasted, *ask, string) error {
	return func(*pasted, *ask, string) error { return fmt.Errorf("no word here for %s", what) }
}

// setSlurm reads a time in Slurm's forms.
func (m *moment) setSlurm(text string) error {
	at, err := hpctime.ParseSlurmInstant(text, time.Now())
	m.text, m.at = text, at
	return err
}

func (p *pasted) count(key, value string) error {
	var n berth.Count
	if err := (&whole[berth.Count]{&n, 1, berth.MaxPEs}).Set(value); err != nil {
		return err
	}
	p.counts[key] = n
	return nil
}

// tres reads what is to be tracked: node=4,gres/gpu=8,license/matlab=3.
func (p *pasted) tres(q *ask, value string) error {
	for item := range strings.SplitSeq(value, ",") {
		name, number, _ := strings.Cut(item, "=")
		var err error
		switch {
		case name == "node" || name == "cpu":
			err = p.count(name, number)
		case name == "gres/gpu":
			err = (&whole[berth.Count]{&p.gpus, 1, berth.MaxPEs}).Set(number)
		case strings.HasPrefix(name, "license/"):
			err = q.licence(strings.TrimPrefix(item, "license/"), "=")
		default:
			err = fmt.Errorf("no count here of %q; want node, cpu, gres/gpu or license/NAME", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// licence reads a program and how many licences of it are taken.
func (q *ask) licence(text, between string) error {
	name, number, counted := strings.Cut(text, between)
	if strings.ContainsAny(text, ",") || name == "" {
		return fmt.Errorf("%q; want one program, such as matlab%s3", text, between)
	}
	q.Software, q.Licences = name, 1
	if counted {
		return (&whole[berth.Count]{&q.Licences, 1, berth.MaxLicences}).Set(number)
	}
	return nil
}

func (p *pasted) users(q *ask, value string) error {
	if strings.ContainsAny(value, ",+-=") {
		return fmt.Errorf("%q; a reservation has one user, want one name", value)
	}
	q.User = value
	return nil
}

// purge is when Slurm gives a reservation up that nobody uses, if PURGE_COMP says
// no other time.
const purge berth.Duration = 300

func (p *pasted) flags(q *ask, value string) error {
	for flag := range strings.SplitSeq(value, ",") {
		name, text, timed := strings.Cut(flag, "=")
		if !strings.EqualFold(name, "PURGE_COMP") {
			return fmt.Errorf("no word here for the flag %q; of Slurm's there is PURGE_COMP", name)
		}
		q.NoShow = purge
		if timed {
			d, err := hpctime.ParseSlurm(text)
			if err != nil {
				return err
			}
			q.NoShow = d
		}
	}
	return nil
}

// paste takes over a pasted line of scontrol, if there is one. What flags say
// counts more.
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
	flags := *q
	p := &pasted{counts: map[string]berth.Count{}}
	for _, word := range words {
		if err := p.read(q, word); err != nil {
			return usagef(cmd, "%v", err)
		}
	}
	if err := p.finish(q); err != nil {
		return usagef(cmd, "%v", err)
	}
	q.override(&flags)
	for _, text := range p.ignored {
		a.say("left out: %s", text)
	}
	a.say("read from Slurm: %d PEs for %s", q.NPE, hpctime.Format(q.Duration))
	return nil
}

// read reads one KEY=VALUE.
func (p *pasted) read(q *ask, word string) error {
	key, value, ok := strings.Cut(word, "=")
	if !ok {
		return fmt.Errorf("unexpected %q; want flags, or KEY=VALUE of scontrol create reservation", word)
	}
	for _, k := range slurmKeys {
		if strings.EqualFold(k.key, key) {
			if err := k.set(p, q, value); err != nil {
				return fmt.Errorf("%s: %w", k.key, err)
			}
			return nil
		}
	}
	names := make([]string, len(slurmKeys))
	for i := range slurmKeys {
		names[i] = slurmKeys[i].key
	}
	return fmt.Errorf("%s: no key of scontrol create reservation%s", key, nearest.Hint(key, names))
}

// finish makes a request of what was read: in Slurm a reservation has one start.
func (p *pasted) finish(q *ask) error {
	if len(p.counts) > 1 {
		return fmt.Errorf("several of NodeCnt, CoreCnt and TRES say how many PEs; want the one that is a PE at the site")
	}
	for _, n := range p.counts {
		q.NPE = n
	}
	if p.gpus > 0 {
		if q.NPE == 0 || p.gpus%q.NPE != 0 {
			return fmt.Errorf("TRES: %d GPUs for %d PEs; want as many for each", p.gpus, q.NPE)
		}
		q.Accelerators = int(p.gpus / q.NPE)
	}
	switch {
	case p.end.given() && p.duration > 0:
		return fmt.Errorf("EndTime: given beside Duration; want one of the two")
	case p.end.given() && !p.start.given():
		return fmt.Errorf("EndTime: without StartTime its length is unknown; give StartTime, or Duration instead")
	case p.end.given():
		if p.duration = berth.Duration(p.end.at.Unix() - p.start.at.Unix()); p.duration < 1 {
			return fmt.Errorf("EndTime: %s is not after StartTime, %s", hpctime.Echo(p.end.at), hpctime.Echo(p.start.at))
		}
	}
	q.Duration = p.duration
	if p.start.given() {
		q.start = p.start
	}
	return nil
}

// override takes over what flags say: a window in the place of Slurm's exact
// start, and every other field.
func (q *ask) override(flags *ask) {
	if flags.ready.given() || flags.deadline.given() {
		if q.start.given() && !flags.ready.given() {
			flags.ready = q.start
		}
		q.start, q.ready, q.deadline = moment{}, flags.ready, flags.deadline
	}
	if flags.start.given() {
		q.start = flags.start
	}
	take(&q.NPE, flags.NPE)
	take(&q.Duration, flags.Duration)
	take(&q.Partition, flags.Partition)
	take(&q.Software, flags.Software)
	take(&q.Licences, flags.Licences)
	take(&q.Accelerators, flags.Accelerators)
	take(&q.User, flags.User)
	take(&q.NoShow, flags.NoShow)
}

func take[T comparable](into *T, value T) {
	var none T
	if value != none {
		*into = value
	}
}
