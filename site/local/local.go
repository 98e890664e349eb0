//go:build linux

// Package local is a site made of this machine: its cores are booked, and
// commands run on them inside their reservations, each kept by a shepherd, a
// process of its own that survives the service. It needs Linux. It decides
// nothing about who goes first: who asks for a core that is free gets it.
//
// The site serves the user it runs as. Started as root with a map of users it
// runs each user's tasks as that user.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/hostlist"
)

// Options says what the site is made of. The zero value of each field but Site
// and Dir is a good choice.
type Options struct {
	Site string // the site's name in Berth; reservations are named after it
	Dir  string // folder for what the site must remember; made if it is not there
	Node string // what this machine is called; empty is its host name
	Zone string // of the site's people, as in the tz database
	// Cores is how many cores to hand out; 0 is as many as this process may
	// use. More than those share them.
	Cores berth.Count
	// Shepherd is the command whose process keeps a task; the name of its folder
	// comes behind. It must call Shepherd. Empty is this program with the
	// argument "shepherd".
	Shepherd []string
	// Users maps users of Berth to accounts of this machine. Only root can run
	// tasks as others; nil is the user of this process alone.
	Users map[string]string
	Grace time.Duration // from the signal that asks a task to end to the one that ends it; 0 is 10 s
	// Umask is that of the tasks; 0 is 022.
	Umask int
	// NoCgroups runs tasks without cgroups even where they are offered.
	NoCgroups bool
	Keep      time.Duration // for how long ended jobs are remembered; 0 is a day
	// Clock is what the site goes by; nil is the machine's. With ClockLater nothing begins,
	// ends or is forgotten until SetClock gives one.
	Clock      site.Clock
	ClockLater bool
}

// Site is this machine.
type Site struct {
	options  Options
	me       string
	cpus     []int // the CPUs behind the cores, by core
	lock     *os.File
	closing  chan struct{}
	stop     *os.File // readable once the site is closed
	watchers sync.WaitGroup
	changed  chan struct{} // of one place, for the Announcer

	mu     sync.Mutex
	clock  site.Clock
	held   bool // something was not started or ended: the clock was not believed, or the disk was full
	table  *table
	log    *bookingLog
	drain  note
	jobs   map[site.JobID]*job
	order  []site.JobID // of submission
	keys   map[site.TaskKey]submitted
	last   int
	closed bool
	opened berth.Time

	panicked *site.Panic // of a goroutine of ours; nil if none did
}

// note is why and since when the machine is drained.
type note struct {
	Reason string     `json:"reason,omitempty"`
	Since  berth.Time `json:"since,omitempty"`
}

var (
	_ site.Observer       = (*Site)(nil)
	_ site.Booker         = (*Site)(nil)
	_ site.Runner         = (*Site)(nil)
	_ site.Recaller       = (*Site)(nil)
	_ site.Representative = (*Site)(nil)
	_ site.Launcher       = (*Site)(nil)
	_ site.Reporter       = (*Site)(nil)
	_ site.Announcer      = (*Site)(nil)
	_ site.Drainer        = (*Site)(nil)
	_ site.Doctor         = (*Site)(nil)
	_ site.Clocked        = (*Site)(nil)
)

const (
	defaultGrace = 10 * time.Second
	defaultKeep  = 24 * time.Hour
	defaultUmask = 0o022
)

// Open opens the site and finds again what runs there: jobs whose shepherd lives
// go on, those whose shepherd is gone are ended and lost, those that had not
// begun wait. A folder that another process has open is an *berth.Error of code
// Conflict.
func Open(o Options) (*Site, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("local site: %w", err)
	}
	if len(o.Users) > 0 && os.Geteuid() != 0 {
		return nil, berth.Errorf(berth.Invalid, "users", "only root can run tasks as others; this is %s", me.Username)
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "jobs"), 0o700); err != nil {
		return nil, fmt.Errorf("local site: %w", err)
	}
	lock, err := lockFile(filepath.Join(o.Dir, "lock"))
	if errors.Is(err, errLocked) {
		return nil, berth.Errorf(berth.Conflict, "dir", "%s is open in another process", o.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("local site: %w", err)
	}
	s := &Site{
		options: o, me: me.Username, lock: lock, jobs: map[site.JobID]*job{}, keys: map[site.TaskKey]submitted{},
		closing: make(chan struct{}), changed: make(chan struct{}, 1), clock: o.Clock,
	}
	s.opened, _ = s.clock()
	if err := s.open(); err != nil {
		_ = s.Close() // the first failure is the one to tell
		return nil, err
	}
	return s, nil
}

func (o *Options) complete() error {
	if o.Site == "" || o.Dir == "" {
		return berth.Errorf(berth.Invalid, "dir", "%q for site %q; want both", o.Dir, o.Site)
	}
	if o.Node == "" {
		o.Node, _ = os.Hostname() // none is as good as an odd one
		if !hostlist.ValidName(o.Node) {
			o.Node = "localhost"
		}
	}
	if !hostlist.ValidName(o.Node) {
		return berth.Errorf(berth.Invalid, "node", "%q; want letters, digits, points, dashes and underscores", o.Node)
	}
	if o.Cores < 0 || o.Cores > berth.MaxPEs {
		return berth.Errorf(berth.Invalid, "cores", "%d; want 0 to %d", o.Cores, berth.MaxPEs)
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.Umask == 0 {
		o.Umask = defaultUmask
	}
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	if o.Clock == nil {
		believed := !o.ClockLater
		o.Clock = func() (berth.Time, bool) { return berth.Time(time.Now().Unix()), believed }
	}
	if len(o.Shepherd) == 0 {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("local site: %w", err)
		}
		o.Shepherd = []string{self, "shepherd"}
	}
	dir, err := filepath.Abs(o.Dir)
	o.Dir = dir
	return err
}

func (s *Site) open() error {
	var err error
	if s.cpus, err = usableCPUs(s.options.Cores); err != nil {
		return err
	}
	if s.stop, err = newStop(); err != nil {
		return err
	}
	s.table = newTable(s.options.Site, berth.Count(len(s.cpus)))
	if s.log, err = openLog(filepath.Join(s.options.Dir, "bookings.jsonl"), s.table, &s.drain); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.findJobs(); err != nil {
		return err
	}
	s.expire()
	s.dispatch()
	return nil
}

// usableCPUs returns the CPU behind each core: those that this process may use,
// over again if more are wanted.
func usableCPUs(want berth.Count) ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("local site: sched_getaffinity: %w", err)
	}
	var usable []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			usable = append(usable, cpu)
		}
	}
	if want == 0 {
		return usable, nil
	}
	cpus := make([]int, want)
	for i := range cpus {
		cpus[i] = usable[i%len(usable)]
	}
	return cpus, nil
}

// Close lets go of the site. Jobs run on.
func (s *Site) Close() error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	if already {
		return nil
	}
	close(s.closing)
	if s.stop != nil {
		signalStop(s.stop)
	}
	s.watchers.Wait()
	var errs []error
	if s.stop != nil {
		errs = append(errs, s.stop.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.close())
	}
	errs = append(errs, unlockFile(s.lock))
	return errors.Join(errs...)
}

// enter begins a call: the site is locked, and up to date. The caller unlocks.
func (s *Site) enter(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return &site.Error{Kind: site.Unreachable, Op: op, Msg: "not asked", Err: err}
	}
	s.mu.Lock()
	if p := s.panicked; p != nil {
		s.mu.Unlock()
		panic(p)
	}
	if s.closed {
		s.mu.Unlock()
		return site.Errorf(site.Unreachable, op, "the site is closed")
	}
	s.expire()
	if _, believed := s.clock(); believed && s.held {
		s.held = false
		s.dispatch()
	}
	return nil
}

// SetClock has the site go by a clock of the caller's.
func (s *Site) SetClock(clock site.Clock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = clock
	s.opened, _ = clock()
	if !s.closed {
		s.expire()
		s.dispatch()
	}
}

// now returns the time, if it is known: what is decided by it for good asks whether
// the clock is believed.
func (s *Site) now() berth.Time {
	now, _ := s.clock()
	return now
}

// Describe returns this machine.
func (s *Site) Describe(ctx context.Context) (*site.Description, error) {
	if err := s.enter(ctx, "describe"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	d := &site.Description{
		Cluster: s.options.Node, Manager: "local", Version: kernel(), Zone: s.options.Zone,
		Nodes:  []site.Node{{Name: s.options.Node, Cores: berth.Count(len(s.cpus)), Sockets: 1, MemoryMB: memoryMB(), Features: []string{runtime.GOARCH}}},
		Rights: site.Rights{As: s.me, Reserve: true, Drain: true, Submit: true},
	}
	return d, nil
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

func memoryMB() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0 // unknown
	}
	const megabyte = 1_000_000
	return int64(info.Totalram) / megabyte * int64(info.Unit)
}

// Observe returns what is booked and what runs.
func (s *Site) Observe(ctx context.Context) (*site.State, error) {
	if err := s.enter(ctx, "observe"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	s.prune()
	state := &site.State{At: s.now(), Boot: s.opened}
	node := site.NodeState{Name: s.options.Node, Condition: site.Up}
	if s.drain.Reason != "" {
		node.Condition, node.Reason, node.Since = site.Drained, s.drain.Reason, s.drain.Since
	}
	for _, id := range s.order {
		j := s.jobs[id]
		out := s.describeJob(j)
		switch j.stage {
		case site.Waiting:
			state.Pending = append(state.Pending, out)
		case site.Running:
			state.Running = append(state.Running, out)
			node.Busy += out.Cores
		default:
			state.Ended = append(state.Ended, out)
		}
	}
	state.Nodes = []site.NodeState{node}
	state.Ours, state.Foreign = site.Split(s.options.Site, s.all())
	return state, nil
}

// all returns the bookings.
func (s *Site) all() []site.Booking {
	all := make([]site.Booking, 0, len(s.table.bookings))
	for _, b := range s.table.bookings {
		all = append(all, s.present(b))
	}
	return all
}

// present is a booking as others see it.
func (s *Site) present(b *booking) site.Booking {
	at := s.now()
	out := site.Booking{
		Name: b.Name, Start: b.Start, End: b.End, Cores: b.Cores.Count(), Users: b.Users, Accounts: b.Accounts,
		Shares: []site.Share{{Node: s.options.Node, Cores: b.Cores}}, Active: b.Start <= at && at < b.End,
	}
	if int(out.Cores) == len(s.cpus) {
		out.Shares[0].Cores = berth.PESet{}
	}
	return out
}

// Drain starts no more tasks.
func (s *Site) Drain(ctx context.Context, node, reason string) error {
	if reason == "" {
		return berth.Errorf(berth.Invalid, "reason", "none; say why")
	}
	return s.turn(ctx, "drain", node, reason)
}

// Resume starts tasks again.
func (s *Site) Resume(ctx context.Context, node string) error {
	return s.turn(ctx, "resume", node, "")
}

// turn has tasks start no more, for a reason, or again without one.
func (s *Site) turn(ctx context.Context, op, node, reason string) error {
	if err := s.enter(ctx, op); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if node != s.options.Node {
		return site.Errorf(site.NotFound, op, "no node %s; this machine is %s", node, s.options.Node)
	}
	to := note{}
	if reason != "" {
		to = note{Reason: reason, Since: s.now()}
	}
	if err := s.log.write(record{Drain: &to}); err != nil {
		return err
	}
	s.drain = to
	s.dispatch()
	return nil
}

// Doctor says what this machine offers and what it lacks.
func (s *Site) Doctor(context.Context) []site.Finding {
	var found []site.Finding
	add := func(check string, level site.Level, hint, text string, args ...any) {
		found = append(found, site.Finding{Check: check, Level: level, Text: fmt.Sprintf(text, args...), Hint: hint})
	}
	usable, err := usableCPUs(0)
	switch {
	case err != nil:
		add("cores", site.Bad, "", "%v", err)
	case len(s.cpus) > len(usable):
		add("cores", site.Warning, "hand out no more cores than there are", "%d cores are handed out, %d are there: tasks share them", len(s.cpus), len(usable))
	default:
		add("cores", site.Good, "", "%d of %d cores are handed out", len(s.cpus), len(usable))
	}
	groups := &cgroups{why: "they are turned off"}
	if !s.options.NoCgroups {
		groups = findCgroups()
	}
	switch {
	case groups.why != "":
		add("cgroup", site.Warning, "start the service where cgroup v2 is delegated to it (in systemd: Delegate=yes)",
			"tasks run without a cgroup (%s): processes that leave their task are found by their descent, and memory is not limited", groups.why)
	case !groups.has("memory"):
		add("cgroup", site.Warning, "delegate the memory controller to the service", "tasks run in cgroups of their own, but memory is not limited: the controller is not offered")
	default:
		add("cgroup", site.Good, "", "tasks run in cgroups of their own, with limited memory")
	}
	switch {
	case len(s.options.Users) > 0:
		add("users", site.Good, "", "tasks of %d users run as themselves", len(s.options.Users))
	case os.Geteuid() == 0:
		add("users", site.Warning, "start the service as an ordinary user, or give it a map of users", "tasks run as root")
	default:
		add("users", site.Good, "", "tasks run as %s, and only that user may submit", s.me)
	}
	if err := syscall.Access(s.options.Shepherd[0], 1); err != nil {
		add("shepherd", site.Bad, "start the service by a path that stays valid", "%s cannot be run: %v", s.options.Shepherd[0], err)
	} else {
		add("shepherd", site.Good, "", "tasks survive a restart of the service; in a systemd unit this needs KillMode=process")
	}
	return found
}
