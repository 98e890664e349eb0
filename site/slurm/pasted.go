package slurm

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/site/hostlist"
)

// Asked is what a command line of scontrol create reservation asks for, in Berth's
// words. What the line does not say is zero.
type Asked struct {
	Start        time.Time // exact
	StartText    string    // as it was written
	Duration     berth.Duration
	NPE          berth.Count
	Accelerators int // of each PE
	Partition    string
	Constraint   string
	Nodelist     string
	Software     string
	Licences     berth.Count
	User         string // the first of several
	berth.Sharing
	NoShow  berth.Duration
	LeftOut []string // keys that mean nothing here, each with the reason
}

// ParseAsked reads the keys and values of scontrol create reservation, with Slurm's
// units; times are relative to now, in its zone. npe is how many PEs are meant where no
// key says so, 0 if that is unknown. The names are those of the manual of scontrol; case
// does not matter. A key that Berth has no word for is an error that says what to do
// instead, for a promise of something else would be worse than none.
func ParseAsked(words []string, npe berth.Count, now time.Time) (*Asked, error) {
	p := &asking{Asked: Asked{NPE: npe}, now: now, counts: map[string]berth.Count{}}
	for _, word := range words {
		if err := p.read(word); err != nil {
			return nil, err
		}
	}
	return &p.Asked, p.finish()
}

// asking is a line that is being read.
type asking struct {
	Asked
	now    time.Time
	end    time.Time
	counts map[string]berth.Count // NodeCnt, CoreCnt, node and cpu of TRES
	gpus   berth.Count
	named  berth.Count // nodes
}

// askingKeys are the keys of a reservation, each with what it means here.
var askingKeys = []struct {
	key string
	set func(p *asking, value string) error
}{
	{"StartTime", func(p *asking, value string) (err error) {
		p.StartText = value
		p.Start, err = hpctime.ParseSlurmInstant(value, p.now)
		return err
	}},
	{"EndTime", func(p *asking, value string) (err error) {
		p.end, err = hpctime.ParseSlurmInstant(value, p.now)
		return err
	}},
	{"Duration", func(p *asking, value string) (err error) {
		p.Duration, err = hpctime.ParseSlurm(value)
		return err
	}},
	{"NodeCnt", func(p *asking, value string) error { return p.count("NodeCnt", value) }},
	{"CoreCnt", func(p *asking, value string) error { return p.count("CoreCnt", value) }},
	{"TRES", (*asking).tres},
	{"PartitionName", func(p *asking, value string) error {
		p.Partition = value
		return nil
	}},
	{"Licenses", func(p *asking, value string) error { return p.licence(value, ":") }},
	{"Users", (*asking).users},
	{"Flags", (*asking).flags},
	{"ReservationName", leftOut("ReservationName: Berth names reservations itself")},
	{"Nodes", (*asking).nodes},
	{"Accounts", func(p *asking, value string) error { return one(&p.Account, value, "one account") }},
	{"Groups", func(p *asking, value string) error { return one(&p.Group, value, "one group") }},
	{"QOS", func(p *asking, value string) error { return one(&p.QOS, value, "one QOS") }},
	{"Features", func(p *asking, value string) error {
		if _, err := berth.ParseConstraint(value); err != nil {
			return fmt.Errorf("%q; want %s", value, berth.WantConstraint)
		}
		p.Constraint = value
		return nil
	}},
	{"BurstBuffer", noWord("burst buffers; leave it out")},
	{"MaxStartDelay", noWord("a start delay for jobs; want --no-show")},
	{"Comment", leftOut("Comment: Berth keeps none")},
}

func noWord(what string) func(*asking, string) error {
	return func(*asking, string) error { return fmt.Errorf("no word here for %s", what) }
}

func leftOut(why string) func(*asking, string) error {
	return func(p *asking, _ string) error {
		p.LeftOut = append(p.LeftOut, why)
		return nil
	}
}

// read reads one KEY=VALUE.
func (p *asking) read(word string) error {
	key, value, ok := strings.Cut(word, "=")
	if !ok {
		return fmt.Errorf("unexpected %q; want flags, or KEY=VALUE of scontrol create reservation", word)
	}
	names := make([]string, 0, len(askingKeys))
	for _, k := range askingKeys {
		if !strings.EqualFold(k.key, key) {
			names = append(names, k.key)
			continue
		}
		if err := k.set(p, value); err != nil {
			return fmt.Errorf("%s: %w", k.key, err)
		}
		return nil
	}
	return fmt.Errorf("%s: no key of scontrol create reservation%s", key, nearest.Hint(key, names))
}

// number reads a count from 1 to most.
func number(text string, most berth.Count) (berth.Count, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n < 1 || n > uint64(most) {
		return 0, fmt.Errorf("%q; want a whole number from 1 to %d", text, most)
	}
	return berth.Count(n), nil
}

func (p *asking) count(key, value string) error {
	n, err := number(value, berth.MaxPEs)
	if err == nil {
		p.counts[key] = n
	}
	return err
}

// tres reads what is to be tracked: node=4,gres/gpu=8,license/matlab=3.
func (p *asking) tres(value string) error {
	for item := range strings.SplitSeq(value, ",") {
		name, text, _ := strings.Cut(item, "=")
		var err error
		switch {
		case name == "node" || name == "cpu":
			err = p.count(name, text)
		case name == "gres/gpu":
			p.gpus, err = number(text, berth.MaxPEs)
		case strings.HasPrefix(name, "license/"):
			err = p.licence(strings.TrimPrefix(item, "license/"), "=")
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
func (p *asking) licence(text, between string) (err error) {
	name, count, counted := strings.Cut(text, between)
	if strings.ContainsAny(text, ",") || name == "" {
		return fmt.Errorf("%q; want one program, such as matlab%s3", text, between)
	}
	p.Software, p.Licences = name, 1
	if counted {
		p.Licences, err = number(count, berth.MaxLicences)
	}
	return err
}

func (p *asking) users(value string) error {
	names := strings.Split(value, ",")
	for _, name := range names {
		if strings.ContainsAny(name, "+-=") || name == "" {
			return fmt.Errorf("%q; want names with commas between them", value)
		}
	}
	if p.User = names[0]; len(names) > 1 {
		p.Users = names[1:]
	}
	return nil
}

// one takes a single name.
func one(into *string, value, want string) error {
	if strings.ContainsAny(value, ",+-=") || value == "" {
		return fmt.Errorf("%q; a promise has %s, want one name", value, want)
	}
	*into = value
	return nil
}

// nodes reads names of nodes, which are as many PEs if no key says how many.
func (p *asking) nodes(value string) error {
	if strings.EqualFold(value, "ALL") {
		return fmt.Errorf("%q; want NodeCnt, or names of nodes", value)
	}
	names, err := hostlist.Expand(value)
	if err != nil {
		return fmt.Errorf("%q: %w", value, err)
	}
	p.Nodelist, p.named = value, berth.Count(len(names))
	return nil
}

// purge is when Slurm gives a reservation up that is not used, if PURGE_COMP says
// no other time.
const purge berth.Duration = 300

func (p *asking) flags(value string) error {
	for flag := range strings.SplitSeq(value, ",") {
		name, text, timed := strings.Cut(flag, "=")
		if !strings.EqualFold(name, "PURGE_COMP") {
			return fmt.Errorf("no word here for the flag %q; of Slurm's there is PURGE_COMP", name)
		}
		p.NoShow = purge
		if timed {
			d, err := hpctime.ParseSlurm(text)
			if err != nil {
				return err
			}
			p.NoShow = d
		}
	}
	return nil
}

// finish puts together what several keys say: in Slurm a reservation has one start.
func (p *asking) finish() error {
	if p.named > 0 && p.NPE == 0 {
		p.NPE = p.named
	}
	if len(p.counts) > 1 {
		return fmt.Errorf("several of NodeCnt, CoreCnt and TRES say how many PEs; want the one that is a PE at the site")
	}
	for _, n := range p.counts {
		p.NPE = n
	}
	if p.Account != "" && p.User == "" && p.Group == "" {
		p.Users = []string{berth.EveryUser} // as Slurm has it
	}
	if p.gpus > 0 {
		if p.NPE == 0 || p.gpus%p.NPE != 0 {
			return fmt.Errorf("TRES: %d GPUs for %d PEs; want as many for each", p.gpus, p.NPE)
		}
		p.Accelerators = int(p.gpus / p.NPE)
	}
	switch {
	case p.end.IsZero():
	case p.Duration > 0:
		return fmt.Errorf("EndTime: given beside Duration; want one of the two")
	case p.Start.IsZero():
		return fmt.Errorf("EndTime: without StartTime its length is unknown; give StartTime, or Duration instead")
	default:
		if p.Duration = berth.Duration(p.end.Unix() - p.Start.Unix()); p.Duration < 1 {
			return fmt.Errorf("EndTime: %s is not after StartTime, %s", hpctime.Echo(p.end), hpctime.Echo(p.Start))
		}
	}
	return nil
}
