package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/site/hostlist"
)

var (
	_ pflag.Value = (*span)(nil)
	_ pflag.Value = (*moment)(nil)
	_ pflag.Value = (*shapes)(nil)
	_ pflag.Value = (*peList)(nil)
	_ pflag.Value = (*holdTime)(nil)
	_ pflag.Value = (*constraint)(nil)
	_ pflag.Value = (*ownName)(nil)
	_ pflag.Value = (*nodelist)(nil)
)

// ask is a request on a command line.
type ask struct {
	form.Request
	ready, start, deadline moment
	window                 window
	lasts, noShow          span
	length                 berth.Duration // with start, if no duration is given
}

// askFlags adds the flags that say what is wanted.
func askFlags(cmd *cobra.Command) *ask {
	q := &ask{}
	q.lasts = span{value: &q.Duration, least: 1}
	q.noShow = span{value: &q.NoShow, least: 1}
	f := cmd.Flags()
	f.SortFlags = false
	f.VarP(&whole[berth.Count]{&q.NPE, 1, berth.MaxPEs}, "npe", "n", "how many PEs")
	f.VarP(&q.lasts, "duration", "t", "for how long, such as 2h30m, 02:30:00, 1-12:00:00 or PT2H30M")
	f.Var(&q.ready, "ready", "earliest start, such as 18:00, \"tomorrow 18:00\", now+1hour or RFC 3339 (default now)")
	f.Var(&q.deadline, "deadline", "by when it must have ended")
	f.Var(&q.start, "start", "exact start, instead of --ready and --deadline")
	f.Var(&q.window, "window", "earliest start and deadline in one, such as \"next tue 14:00–18:00\"")
	f.Var(&shapes{&q.Variants}, "variants", "alternative shapes, such as 64x1h,32x2h, instead of --npe and --duration")
	f.StringVar(&q.Site, "site", "", "the only `SITE` that will do")
	f.StringVar(&q.Pool, "pool", "", "the only `POOL` that will do")
	f.StringVar(&q.Partition, "partition", "", "a `PARTITION` of the site")
	f.Var(&constraint{&q.Constraint}, "constraint", "`FEATURES` that its PEs have, such as \"intel&ib\", or \"[rack1|rack2]\" where all are to have the same")
	f.Var(&nodelist{&q.Nodelist}, "nodelist", "only these `NODES` will do, such as n[01-03,07]")
	f.Var(&nodelist{&q.Exclude}, "exclude", "these `NODES` will not do, such as n[04-06]")
	f.StringVar(&q.Account, "account", "", "an `ACCOUNT` of the site; only jobs in it may run")
	f.StringVar(&q.QOS, "qos", "", "a `QOS` of the site, with which jobs run")
	f.StringSliceVar(&q.Users, "users", nil, "who may run in it beside you: `USER[,USER]`, or '*' for all of the account")
	f.StringVar(&q.Group, "group", "", "a `GROUP` of yours at the site, whose members may run in it")
	f.Var(&peList{&q.PEs}, "pes", "only these PEs will do, such as 0-31,64-95")
	f.StringVar(&q.Software, "software", "", "a `PROGRAM` that the site must have")
	f.StringVar(&q.Version, "software-version", "", "its least `VERSION`")
	f.Var(&whole[berth.Count]{&q.Licences, 0, berth.MaxLicences}, "licences", "how many licences of it")
	f.Var(&megabytes{&q.MemoryMB}, "memory-mb", "memory of one PE in 10^6 bytes")
	f.Var(&megabytes{&q.StorageMB}, "storage-mb", "size of the data in 10^6 bytes")
	f.Var(&whole[int]{&q.Accelerators, 0, berth.MaxAccelerators}, "accelerators", "accelerators of one PE")
	f.Var(&q.noShow, "no-show", "release it if it is unused for this long after its start")
	return q
}

// nameFlag adds the flag for a name of one's own.
func nameFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().Var(&ownName{into}, "name", "a `NAME` of your own for it, such as weekly-run")
}

// settle turns what was written into instants and tells which they are.
func (a *app) settle(cmd *cobra.Command, q *ask) error {
	now := time.Now()
	if q.window.text != "" {
		if q.start.given() || q.ready.given() || q.deadline.given() {
			return usagef(cmd, "--window: given beside --start, --ready or --deadline; want one of the ways")
		}
		q.ready, q.deadline = q.window.from, q.window.to
	}
	for _, m := range []*moment{&q.ready, &q.deadline, &q.start} {
		if err := m.settle(now); err != nil {
			return usagef(cmd, "%v", err) // it could be read a moment ago
		}
	}
	if q.start.given() {
		switch {
		case q.ready.given() || q.deadline.given():
			return usagef(cmd, "--start: given beside --ready or --deadline; want one of the two ways")
		case q.Variants != nil:
			return usagef(cmd, "--start: given beside --variants, which last differently long; want --ready and --deadline, or --npe and --duration")
		case q.Duration == 0 && q.length == 0:
			return usagef(cmd, "--start: without --duration its end is unknown; give --duration")
		}
		q.begins(&q.start, now)
		q.ends(&q.start, now, cmp.Or(q.Duration, q.length))
	}
	if q.ready.given() {
		q.begins(&q.ready, now)
	}
	if q.deadline.given() {
		q.ends(&q.deadline, now, 0)
	}
	if least := q.Duration + valueAt(q.ReadyIn); q.Duration > 0 && q.Ready == 0 && q.deadline.fromNow && q.DeadlineIn < least {
		return usagef(cmd, "--deadline: %s is before --ready and --duration, which take until now+%s; want --deadline now+%s or later", q.deadline.text, hpctime.Format(least), hpctime.Format(least))
	}
	a.echo("start", &q.start)
	a.echo("ready", &q.ready)
	a.echo("deadline", &q.deadline)
	return nil
}

// begins has it begin at a moment at the earliest. What is so far from now the service counts from when it
// decides: a second later there is no room for what was to take all the time until the deadline.
func (q *ask) begins(m *moment, now time.Time) {
	if !m.fromNow {
		q.Ready = form.Time(m.at.Unix())
		return
	}
	q.ReadyIn = new(wholeSeconds(m.at.Sub(now)))
}

// lastsThere has what is to start at an exact time end as its pool makes it last, where all pools that will do are equally fast: its window is
// as long as it would last at the standard speed else, in which a slower pool could never be done.
func (q *ask) lastsThere(ctx context.Context, c *client.Client) {
	if !q.start.given() || q.Duration == 0 {
		return
	}
	list, err := c.Sites(ctx)
	if err != nil {
		return // the request itself says what is wrong
	}
	speeds := map[berth.Speed]bool{}
	for i := range list {
		for j := range list[i].Pools {
			if p := &list[i].Pools[j]; (q.Site == "" || q.Site == list[i].Name) && (q.Pool == "" || q.Pool == p.Name) {
				speeds[cmp.Or(p.Speed, berth.StandardSpeed)] = true
			}
		}
	}
	if len(speeds) != 1 {
		return
	}
	for speed := range speeds {
		if more := speed.Scale(q.Duration) - q.Duration; q.DeadlineIn > 0 {
			q.DeadlineIn += more
		} else {
			q.Deadline += form.Time(more)
		}
	}
}

// ends has it end so long after a moment at the latest.
func (q *ask) ends(m *moment, now time.Time, after berth.Duration) {
	q.Deadline, q.DeadlineIn = m.end(now, after)
}

// end returns what is so long after a moment: a time, or how long after now, whenever that is.
func (m *moment) end(now time.Time, after berth.Duration) (at form.Time, in berth.Duration) {
	if in = wholeSeconds(m.at.Sub(now)) + after; m.fromNow && in > 0 {
		return 0, in
	}
	return form.Time(m.at.Unix()) + form.Time(after), 0
}

// deadline reads a deadline, which need not be given.
func (m *moment) deadline(cmd *cobra.Command) (at form.Time, in berth.Duration, err error) {
	now := time.Now()
	if err := m.settle(now); err != nil {
		return 0, 0, usagef(cmd, "%v", err) // it could be read a moment ago
	}
	if m.given() {
		at, in = m.end(now, 0)
	}
	return at, in, nil
}

func wholeSeconds(d time.Duration) berth.Duration { return berth.Duration(d / time.Second) }

func valueAt(d *berth.Duration) berth.Duration {
	if d == nil {
		return 0
	}
	return *d
}

// missing reports what is missing for a new request.
func (q *ask) missing(cmd *cobra.Command) error {
	switch {
	case q.NPE == 0 && q.Variants == nil:
		return usagef(cmd, "--npe: missing; want how many PEs")
	case q.Duration == 0 && q.Variants == nil:
		return usagef(cmd, "--duration: missing; want for how long, such as 2h30m")
	case q.Deadline == 0 && q.DeadlineIn == 0:
		return usagef(cmd, "--deadline: missing; want by when it must have ended, such as \"tomorrow 18:00\", or --start for an exact start")
	}
	return nil
}

// window is two points in time as people write them.
type window struct {
	text     string
	from, to moment
}

func (w *window) Type() string { return "T-T" }

func (w *window) String() string { return w.text }

func (w *window) Set(text string) error {
	end := func(of func(from, to time.Time) time.Time) moment {
		return moment{text: text, read: func(text string, now time.Time) (time.Time, error) {
			from, to, err := hpctime.ParseRange(text, now)
			return of(from, to), err
		}}
	}
	w.text, w.from, w.to = text, end(func(from, _ time.Time) time.Time { return from }), end(func(_, to time.Time) time.Time { return to })
	now := time.Now()
	return cmp.Or(w.from.settle(now), w.to.settle(now))
}

// shapes is a list of variants.
type shapes struct{ value *[]berth.Variant }

func (s *shapes) Type() string { return "NxD,..." }

func (s *shapes) String() string {
	if s.value == nil {
		return ""
	}
	list := make([]string, len(*s.value))
	for i, v := range *s.value {
		list[i] = strconv.Itoa(int(v.NPE)) + "x" + hpctime.Format(v.Duration)
	}
	return strings.Join(list, ",")
}

func (s *shapes) Set(text string) error {
	var list []berth.Variant
	for item := range strings.SplitSeq(text, ",") {
		count, length, _ := strings.Cut(item, "x")
		var v berth.Variant
		if err := (&whole[berth.Count]{&v.NPE, 1, berth.MaxPEs}).Set(count); err != nil {
			return berth.Errorf(berth.Invalid, "", "%q: %v, an x and a duration, such as 64x1h", item, err)
		}
		if err := (&span{value: &v.Duration, least: 1}).Set(length); err != nil {
			return err
		}
		list = append(list, v)
	}
	*s.value = list
	return nil
}

// peList is a list of PEs.
type peList struct{ value *berth.PESet }

func (p *peList) Type() string { return "LIST" }

func (p *peList) String() string {
	if p.value == nil {
		return ""
	}
	return p.value.String()
}

func (p *peList) Set(text string) (err error) {
	*p.value, err = berth.ParsePESet(text)
	return err
}

// ownName is a name of a reservation, which is checked before the service is asked.
type ownName struct{ value *string }

func (n *ownName) Type() string { return "NAME" }

func (n *ownName) String() string { return valueOf(n.value) }

func (n *ownName) Set(text string) error {
	if text != "" && !berth.ValidName(text) {
		return fmt.Errorf("%.80q; %s", text, berth.WantName)
	}
	*n.value = text
	return nil
}

// constraint is an expression over features, which is checked before the service is asked.
type constraint struct{ value *string }

func (c *constraint) Type() string { return "FEATURES" }

func (c *constraint) String() string { return valueOf(c.value) }

func (c *constraint) Set(text string) error {
	if text != "" {
		if _, err := berth.ParseConstraint(text); err != nil {
			return berth.Errorf(berth.Invalid, "", "%.80q; want %s", text, berth.WantConstraint)
		}
	}
	*c.value = text
	return nil
}

// nodelist is names of nodes; their form is checked before the service is asked.
type nodelist struct{ value *string }

func (n *nodelist) Type() string { return "NODES" }

func (n *nodelist) String() string { return valueOf(n.value) }

func (n *nodelist) Set(text string) error {
	if text != "" {
		if _, err := hostlist.Expand(text); err != nil {
			return berth.Errorf(berth.Invalid, "", "%.80q: %v", text, err)
		}
	}
	*n.value = text
	return nil
}

// valueOf returns a text that a flag may not have yet.
func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// megabytes is a size.
type megabytes struct{ value *int64 }

func (m *megabytes) Type() string { return "N" }

func (m *megabytes) String() string {
	if m.value == nil || *m.value == 0 {
		return ""
	}
	return strconv.FormatInt(*m.value, 10)
}

func (m *megabytes) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n >= berth.MaxMegabytes {
		return berth.Errorf(berth.Invalid, "", "%q; want a whole number of 10^6 bytes below 2^42", text)
	}
	*m.value = n
	return nil
}

// holdTime is for how long to hold; without a value it is the service's default.
type holdTime struct{ value *form.Hold }

func (h *holdTime) Type() string { return "D" }

func (h *holdTime) String() string {
	switch {
	case h.value == nil || *h.value == 0:
		return ""
	case *h.value == form.DefaultHold:
		return defaultWord
	}
	return hpctime.Format(berth.Duration(*h.value))
}

const defaultWord = "default"

func (h *holdTime) Set(text string) error {
	if text == defaultWord {
		*h.value = form.DefaultHold
		return nil
	}
	var d berth.Duration
	err := (&span{value: &d, least: 1}).Set(text)
	*h.value = form.Hold(d)
	return err
}

// holdFlag adds --hold[=D].
func holdFlag(cmd *cobra.Command, value *form.Hold) {
	cmd.Flags().Var(&holdTime{value}, "hold", "only hold it, for so long (--hold=10m) or half an hour (--hold); confirm it to keep it")
	cmd.Flags().Lookup("hold").NoOptDefVal = defaultWord
}
