package advise

import "github.com/berth-hpc/berth"

// Trait is what of a request is changed.
type Trait string

// The traits, in the order of the page.
const (
	Slack  Trait = "slack"  // deadline − ready − duration
	Width  Trait = "width"  // PEs
	Notice Trait = "notice" // ready − arrival
)

// Change is one trait of all requests made another one, while the others stay.
type Change struct {
	Trait Trait
	Name  string
	// Apply changes a request and how long it really runs, on a machine whose largest pool
	// has that many PEs. It draws nothing.
	Apply func(p *berth.Plain, run *berth.Duration, largest berth.Count)
}

const hour = 3600

// Changes returns the changes of the page, in their order. A narrower request takes as many
// times longer, and keeps its slack in seconds; where PEs or seconds are odd, halves are rounded
// up, and what cannot be halved, or would be wider than the largest pool, stays as it is. Another
// notice moves the whole window; one longer by the same for all would change nothing.
func Changes() []Change {
	return []Change{
		{Slack, "1 h more", moreSlack(hour)},
		{Slack, "4 h more", moreSlack(4 * hour)},
		{Width, "half, twice as long", halve},
		{Width, "twice, half as long", double},
		{Notice, "none", notice(func(berth.Time) berth.Time { return 0 })},
		{Notice, "half", notice(func(n berth.Time) berth.Time { return n / 2 })},
		{Notice, "twice", notice(func(n berth.Time) berth.Time { return 2 * n })},
	}
}

func moreSlack(by berth.Time) func(*berth.Plain, *berth.Duration, berth.Count) {
	return func(p *berth.Plain, _ *berth.Duration, _ berth.Count) { p.Deadline += by }
}

func notice(to func(berth.Time) berth.Time) func(*berth.Plain, *berth.Duration, berth.Count) {
	return func(p *berth.Plain, _ *berth.Duration, _ berth.Count) {
		by := to(p.Ready-p.Arrival) - (p.Ready - p.Arrival)
		p.Ready, p.Deadline = p.Ready+by, p.Deadline+by
	}
}

func halve(p *berth.Plain, run *berth.Duration, _ berth.Count) {
	if p.NPE < 2 {
		return
	}
	p.NPE = (p.NPE + 1) / 2
	p.Deadline += berth.Time(p.Duration)
	p.Duration *= 2
	*run *= 2
}

func double(p *berth.Plain, run *berth.Duration, largest berth.Count) {
	if p.NPE > largest/2 || p.Duration < 2 {
		return
	}
	p.NPE *= 2
	half := (p.Duration + 1) / 2
	p.Deadline -= berth.Time(p.Duration - half)
	p.Duration = half
	*run = (*run + 1) / 2
}
