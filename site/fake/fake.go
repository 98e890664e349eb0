// Package fake is a site in memory that misbehaves on command: slow, lost,
// duplicated, late and wrong answers, nodes that fail, reservations of others, a
// manager that forgets. It reads no clock and starts no goroutine: its time is
// what Advance says, so the same calls always have the same answers. It runs no
// real commands.
package fake

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Config is what a fake is made of.
type Config struct {
	Name        string // of the site
	Description site.Description
	// Timeout is how long a caller waits for an answer; 0 is 10 seconds.
	Timeout berth.Duration
	// NeedsLaunch makes reservations wait for Launch before their tasks run.
	NeedsLaunch bool
	// Run says how long a task runs and how it ends; nil is a minute and well.
	Run func(site.Task) (berth.Duration, site.Result)
}

// Site is a fake site.
type Site struct {
	config Config

	mu       sync.Mutex
	now      berth.Time
	boot     berth.Time
	elapsed  berth.Duration
	faults   []Fault
	nodes    map[string]*site.NodeState
	bookings map[string]*booking
	jobs     []*job // in the order of their ids
	keys     map[site.TaskKey]submitted
	deeds    []deed
	undo     []undo
	lastJob  int
	seen     *site.State // the last observation
}

type booking struct {
	site.Booking
	launched bool
}

// deed is something done later than it was asked for.
type deed struct {
	at berth.Time
	do func()
}

// undo is what a write replaced: the booking of that name, nil if there was none.
type undo struct {
	name   string
	before *booking
}

var (
	_ site.Observer   = (*Site)(nil)
	_ site.Booker     = (*Site)(nil)
	_ site.ManyBooker = (*Site)(nil)
	_ site.Runner     = (*Site)(nil)
	_ site.Recaller   = (*Site)(nil)
	_ site.Launcher   = (*Site)(nil)
	_ site.Drainer    = (*Site)(nil)
	_ site.Doctor     = (*Site)(nil)
)

// maxUndo is how many writes a Restart can make forgotten at most.
const maxUndo = 1000

// New returns a site at time now, booted then, all nodes up and nothing booked.
func New(config Config, now berth.Time) *Site {
	if config.Timeout == 0 {
		config.Timeout = 10
	}
	if config.Run == nil {
		config.Run = func(site.Task) (berth.Duration, site.Result) { return 60, site.Result{Ending: site.Completed} }
	}
	s := &Site{config: config, now: now, boot: now, nodes: map[string]*site.NodeState{}, bookings: map[string]*booking{}, keys: map[site.TaskKey]submitted{}}
	for _, n := range config.Description.Nodes {
		s.nodes[n.Name] = &site.NodeState{Name: n.Name, Condition: site.Up}
	}
	return s
}

// Nodes returns a description of n equal nodes n1, n2, … with some cores each and
// one partition, main, for tests.
func Nodes(n, cores berth.Count) site.Description {
	d := site.Description{
		Cluster: "fake", Manager: "fake", Version: "1", Zone: "UTC",
		Partitions: []site.Partition{{Name: "main", Default: true, Up: true, MaxTime: 86400}},
		Rights:     site.Rights{As: "fake", Reserve: true, Drain: true, Submit: true},
	}
	for i := range n {
		name := "n" + decimal(int(i)+1)
		d.Nodes = append(d.Nodes, site.Node{Name: name, Cores: cores, Sockets: 1, MemoryMB: 4096})
		d.Partitions[0].Nodes = append(d.Partitions[0].Nodes, name)
	}
	return d
}

// Inject makes faults happen from now on, beside those injected before. Of
// several that meet in one call the first injected happens.
func (s *Site) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Heal takes all faults away. What is late still comes.
func (s *Site) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Elapsed returns how many seconds the last call took in the site's time. The
// call itself returned at once; who simulates delivers the answer that much
// later.
func (s *Site) Elapsed() berth.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elapsed
}

// Now returns the time of the site.
func (s *Site) Now() berth.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// call is one call underway: which fault befalls it, if any.
type call struct {
	op    string
	fault Fault
}

// begin starts a call and says what goes wrong with it.
func (s *Site) begin(ctx context.Context, op string) (call, error) {
	c := call{op: op}
	s.elapsed = 0
	if err := ctx.Err(); err != nil {
		return c, &site.Error{Kind: site.Unreachable, Op: op, Msg: "not asked", Err: err}
	}
	hit := -1
	for i := range s.faults {
		f := &s.faults[i]
		if f.Op != op && f.Op != All {
			continue
		}
		if f.Nth > 1 {
			f.Nth--
		} else if hit < 0 {
			hit = i
		}
	}
	if hit >= 0 {
		c.fault = s.faults[hit]
		if c.fault.Nth == 1 {
			s.faults = slices.Delete(s.faults, hit, hit+1)
		}
	}
	switch c.fault.What {
	case Down:
		return c, site.Errorf(site.Unreachable, op, "the site is down")
	case Deny:
		return c, site.Errorf(site.Denied, op, "no right to do this")
	case Unsent:
		return c, s.lost(op)
	}
	return c, nil
}

// lost is the answer of a call whose caller hears nothing.
func (s *Site) lost(op string) error {
	s.elapsed = s.config.Timeout
	return site.Errorf(site.Unreachable, op, "no answer within %d s", s.config.Timeout)
}

// late puts off what a call does, and says whether it did.
func (s *Site) late(c call, do func()) bool {
	if c.fault.What == Late {
		s.deeds = append(s.deeds, deed{at: s.now.Add(c.fault.After), do: do})
		return true
	}
	if c.fault.What == Twice {
		s.deeds = append(s.deeds, deed{at: s.now.Add(c.fault.After), do: do})
	}
	return false
}

// end returns the error with which a call ends that did what it should.
func (s *Site) end(c call) error {
	switch c.fault.What {
	case Lost, Late:
		return s.lost(c.op)
	case Slow:
		if c.fault.After > s.config.Timeout {
			return s.lost(c.op)
		}
		s.elapsed = c.fault.After
	}
	return nil
}

// Describe returns the configured description.
func (s *Site) Describe(ctx context.Context) (*site.Description, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.begin(ctx, Describe)
	if err != nil {
		return nil, err
	}
	if err := s.end(c); err != nil {
		return nil, err
	}
	d := s.config.Description
	return &d, nil
}

// Observe returns the state at the site's time.
func (s *Site) Observe(ctx context.Context) (*site.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.begin(ctx, Observe)
	if err != nil {
		return nil, err
	}
	if err := s.end(c); err != nil {
		return nil, err
	}
	if c.fault.What == Stale && s.seen != nil {
		return s.seen, nil
	}
	state := s.state()
	s.seen = s.state()
	if c.fault.What == Wrong {
		state.Ours = nil
	}
	return state, nil
}

func (s *Site) state() *site.State {
	state := &site.State{At: s.now, Boot: s.boot}
	for _, n := range s.config.Description.Nodes {
		state.Nodes = append(state.Nodes, *s.nodes[n.Name])
	}
	busy := map[string]berth.Count{}
	for _, j := range s.jobs {
		switch {
		case j.over():
			state.Ended = append(state.Ended, j.Job)
		case j.running:
			state.Running = append(state.Running, j.Job)
			for _, share := range j.Shares {
				busy[share.Node] += s.coresOf(share)
			}
		default:
			state.Pending = append(state.Pending, j.Job)
		}
	}
	for i := range state.Nodes {
		state.Nodes[i].Busy = busy[state.Nodes[i].Name]
	}
	state.Ours, state.Foreign = site.Split(s.config.Name, s.all())
	return state
}

// all returns copies of the bookings, by name.
func (s *Site) all() []site.Booking {
	all := make([]site.Booking, 0, len(s.bookings))
	for _, b := range s.bookings {
		c := b.Booking
		c.Shares = slices.Clone(c.Shares)
		c.Active = c.Start <= s.now
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b site.Booking) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Doctor finds what the configured rights allow.
func (s *Site) Doctor(context.Context) []site.Finding {
	finding := site.Finding{Check: "rights", Level: site.Good, Text: "reservations can be made"}
	if !s.config.Description.Rights.Reserve {
		finding = site.Finding{Check: "rights", Level: site.Bad, Text: "reservations cannot be made", Hint: "configure the fake with the right"}
	}
	return []site.Finding{finding}
}
