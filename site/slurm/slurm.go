// Package slurm reaches a cluster under Slurm through its own commands, in forms
// that have lasted: what scontrol shows on one line, and fields of squeue. It is
// tested with Slurm 22.05, 24.11 and 26.05. It never touches a reservation that is not ours.
//
// Every command runs with an argument vector, a clean environment and TZ=UTC;
// nothing is read by a shell. Site needs the right to make reservations
// (SlurmUser, or an operator); Client is for users, and needs none.
package slurm

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Options says how a cluster is reached. The zero value of each field but Site
// is a good choice.
type Options struct {
	Site    string        // the site's name in Berth; reservations are named after it
	Conf    string        // path of slurm.conf; empty leaves it to the commands
	Bin     string        // folder of the commands; empty looks them up on the PATH
	Zone    string        // of the site's people, as in the tz database; empty is that of this machine
	Timeout time.Duration // of one command; 0 is 30 s, three times what Slurm's own take to give up
	Exec    Exec          // who runs the commands; nil is this process, as its own user
	// WholeNodes says that it does not matter which cores of its nodes a job has: to tell it
	// Slurm writes all that it knows of every job.
	WholeNodes bool
	// Watch is for a cluster that is only watched: it is not tried what Berth may do
	// there, and it may do nothing.
	Watch bool
	// NoLimit is how long jobs are taken to last in partitions without a limit; 0 is for ever.
	NoLimit berth.Duration
}

// Site is a cluster seen with the rights to make reservations.
type Site struct {
	commands
	name   string
	zone   string
	bare   bool           // Options.Watch
	coarse bool           // Options.WholeNodes
	taken  berth.Duration // Options.NoLimit
	now    func() time.Time
	ahead  atomic.Int64 // by how many seconds slurmctld's clock is, at the last look

	// books holds back all but one writer. Slurm checks for room and books in
	// one step, but for reservations of cores it can book twice, and what it
	// booked is looked at before the next may try.
	books sync.Mutex

	// shares says that squeue has no field for exclusive nodes, as before Slurm 25.
	shares atomic.Bool
	// sums says that the cores of a reservation are counted on all nodes together, as after
	// 22.05.
	sums atomic.Bool

	coresMu sync.Mutex
	cores   map[string]berth.Count // of each node, as last heard
	cpus    map[string]berth.Count // hardware threads, as well

	config atomic.Pointer[map[string]string] // as last heard
	heard  recent
	queue  atomic.Int64 // how many jobs the next look may see, for room
}

var (
	_ site.Observer   = (*Site)(nil)
	_ site.Booker     = (*Site)(nil)
	_ site.ManyBooker = (*Site)(nil)
	_ site.Carrier    = (*Site)(nil)
	_ site.Drainer    = (*Site)(nil)
	_ site.Gate       = (*Site)(nil)
	_ site.Accountant = (*Site)(nil)
	_ site.Doctor     = (*Site)(nil)
)

const defaultTimeout = 30 * time.Second

// New returns a site. It asks nothing yet.
func New(o Options) *Site {
	zone := o.Zone
	if zone == "" {
		zone = localZone()
	}
	return &Site{commands: newCommands(o), name: o.Site, zone: zone, bare: o.Watch, coarse: o.WholeNodes, taken: o.NoLimit, now: time.Now}
}

func (s *Site) unix() berth.Time { return berth.Time(s.now().Unix()) }

// theirs is the time by slurmctld's clock, by which it judges what has begun.
func (s *Site) theirs() berth.Time { return s.unix().Add(berth.Duration(s.ahead.Load())) }

// Observe asks Slurm five questions: for its configuration, which says when it
// was started, its nodes, partitions, jobs and reservations. squeue writes about jobs while scontrol writes about
// nodes and while what it wrote is read: of a long queue it writes for most of the time.
func (s *Site) Observe(ctx context.Context) (*site.State, error) {
	state := &site.State{At: s.unix()}
	before := s.spent.Load()
	defer func() { state.Cost = time.Duration(s.spent.Load() - before) }()
	settings, err := s.settings(ctx)
	if err != nil {
		return nil, err
	}
	state.Skew = s.skew(settings[asOf], state.At)
	s.ahead.Store(int64(state.Skew))
	state.Silent = wordList(settings[silent])
	if state.Boot, err = parseTime(settings["BOOT_TIME"]); err != nil {
		return nil, odd("observe", "scontrol show config", err)
	}
	if state.Licences, err = parseLicences(settings["Licenses"]); err != nil {
		return nil, odd("observe", "scontrol show config", err)
	}
	var nodes []nodeRecord
	var jobs []jobRecord
	var without error
	beside(func() {
		if nodes, err = s.nodes(ctx); err == nil {
			state.Partitions, err = s.partitions(ctx, "observe")
		}
	}, func() { jobs, without = s.jobs(ctx) })
	if err = cmp.Or(err, without); err != nil {
		return nil, err
	}
	known := make(map[string]*nodeRecord, len(nodes))
	for i := range nodes {
		state.Nodes = append(state.Nodes, nodes[i].state())
		known[nodes[i].Name] = &nodes[i]
	}
	bookings, err := s.reservations(ctx, "observe") // behind the jobs, so that one that a job waits in is among them or is gone
	if err != nil {
		return nil, err
	}
	ends := make(map[string]berth.Time, len(bookings))
	for i := range bookings {
		if bookings[i].Repeat.Each != "" {
			bookings[i].Repeat.Zone = s.zone // slurmctld counts days on its own clock
		}
		ends[bookings[i].Name] = bookings[i].End
	}
	cores, err := s.coresOf(ctx, jobs, known)
	if err != nil {
		return nil, err
	}
	if err := sortInto(state, jobs, cores, ends); err != nil {
		return nil, odd("observe", "squeue", err)
	}
	state.Ours, state.Foreign = site.Split(s.name, bookings)
	return state, nil
}

// beside does two things at once. A panic of the first is raised here, with a *site.Panic.
func beside(first, second func()) {
	ended := make(chan *site.Panic, 1)
	go func() { ended <- site.Caught(first) }()
	second()
	if p := <-ended; p != nil {
		panic(p)
	}
}

// sortInto puts jobs where they belong, in the order in which they were submitted: squeue's own is by priority. ends
// are those of reservations.
func sortInto(state *site.State, jobs []jobRecord, cores map[string]map[string]berth.PESet, ends map[string]berth.Time) error {
	type numbered struct {
		id int64
		at int
	}
	order := make([]numbered, len(jobs))
	var many [over + 1]int
	for i := range jobs {
		order[i] = numbered{jobs[i].number(fieldID), i}
		many[jobs[i].phase()]++
	}
	slices.SortFunc(order, func(a, b numbered) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.at, b.at)) })
	state.Running, state.Pending, state.Ended = slices.Grow(state.Running, many[running]), slices.Grow(state.Pending, many[pending]), slices.Grow(state.Ended, many[over])
	for _, o := range order {
		record := &jobs[o.at]
		job, phase, err := record.job(cores[record.at(fieldID)])
		if err != nil {
			return err
		}
		switch phase {
		case pending:
			// A slurmctld that was killed may not know a reservation any more that jobs in its queue name, and starts them never. One
			// that is over is not shown, and its jobs name it until it goes.
			if _, there := ends[job.Reservation]; !there && job.Reservation != "" {
				job.Left, job.Reservation, job.Held = job.Reservation, "", true
			}
			job.Rank = o.at + 1
			state.Pending = append(state.Pending, job)
		case over:
			state.Ended = append(state.Ended, job)
		default:
			// Slurm ends a job with its reservation, whatever its own limit.
			if end, in := ends[job.Reservation]; in {
				job.End = min(job.End, max(end, job.Start))
			}
			state.Running = append(state.Running, job)
		}
	}
	return nil
}

// Describe asks for nodes, partitions and configuration, and tries what Berth
// may do unless the cluster is only watched: it asks to change a reservation and a node that cannot exist, which
// Slurm refuses in one way to those who may and in another to those who may not.
func (s *Site) Describe(ctx context.Context) (*site.Description, error) {
	settings, err := s.settings(ctx)
	if err != nil {
		return nil, err
	}
	d := &site.Description{Cluster: settings["ClusterName"], Manager: "slurm", Version: settings["SLURM_VERSION"], Zone: s.zone}
	nodes, err := s.nodes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		node, err := nodes[i].describe()
		if err != nil {
			return nil, odd("describe", "scontrol show node", err)
		}
		d.Nodes = append(d.Nodes, node)
	}
	if d.Partitions, err = s.partitions(ctx, "describe"); err != nil {
		return nil, err
	}
	if s.bare {
		return d, nil
	}
	if d.Rights, err = s.rights(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// odd is an answer that cannot be understood.
func odd(op, command string, err error) error {
	return &site.Error{
		Kind: site.Invalid, Op: op, Msg: "cannot read what " + command + " says", Err: err,
		Hint: "this adapter reads Slurm 22.05 to 26.05; see what berth sites doctor says of the version",
	}
}

// settings returns the configuration of slurmctld by name.
func (s *Site) settings(ctx context.Context) (map[string]string, error) {
	out, err := s.read(ctx, "observe", "scontrol", "show", "config")
	if err != nil {
		return nil, err
	}
	settings := parseConfig(out)
	s.config.Store(&settings)
	return settings, nil
}

// skew returns by how much slurmctld's clock is ahead, by what it said when it was asked
// at a time. What is not understood is no skew.
func (s *Site) skew(said string, asked berth.Time) berth.Duration {
	then, err := parseTime(said)
	switch now := s.unix(); {
	case err != nil, then >= asked && then <= now:
		return 0
	case then > now:
		return then.Sub(now)
	}
	return then.Sub(asked)
}

func (s *Site) nodes(ctx context.Context) ([]nodeRecord, error) {
	out, err := s.read(ctx, "observe", nodesCommand[0], nodesCommand[1:]...)
	if err != nil {
		return nil, err
	}
	nodes, err := parseNodes(out)
	if err != nil {
		return nil, odd("observe", "scontrol show node", err)
	}
	cores, cpus := make(map[string]berth.Count, len(nodes)), make(map[string]berth.Count, len(nodes))
	for i := range nodes {
		cores[nodes[i].Name], cpus[nodes[i].Name] = nodes[i].cores(), berth.Count(nodes[i].CPUs)
	}
	s.coresMu.Lock()
	defer s.coresMu.Unlock()
	s.cores, s.cpus = cores, cpus
	return nodes, nil
}

// reservations returns all reservations, and knows of each whether it holds
// whole nodes: which cores it has Slurm says only some time after it was made.
func (s *Site) reservations(ctx context.Context, op string) ([]site.Booking, error) {
	bookings, err := s.bookings(ctx, op)
	if err != nil {
		return nil, err
	}
	for asked := false; !s.markPartial(bookings) && !asked; asked = true {
		if _, err := s.nodes(ctx); err != nil {
			return nil, err
		}
	}
	return bookings, nil
}

// markPartial marks the shares of bookings that have fewer cores than their
// nodes, and reports whether it knew all nodes.
func (s *Site) markPartial(bookings []site.Booking) bool {
	s.coresMu.Lock()
	defer s.coresMu.Unlock()
	for i := range bookings {
		b := &bookings[i]
		var all berth.Count
		for _, share := range b.Shares {
			n, known := s.cores[share.Node]
			if !known {
				return false
			}
			all += n
		}
		for k := range b.Shares {
			b.Shares[k].Partial = b.Cores < all && b.Shares[k].Cores.Empty()
		}
	}
	return true
}

func (s *Site) jobs(ctx context.Context) ([]jobRecord, error) {
	mark, list := newMark(), lookFields
	if s.shares.Load() {
		list = list[:fieldExclusive]
	}
	reader := newJobReader(mark, list, int(s.queue.Load()))
	result, err := s.runWith(ctx, "observe", Command{Argv: append([]string{"squeue"}, jobsArgs(mark, list, "all")...), Env: s.env, Take: reader.take})
	if err == nil && len(list) == len(lookFields) && strings.Contains(result.Stderr, "Invalid job format specification: "+jobFields[fieldExclusive].name) {
		s.shares.Store(true)
		return s.jobs(ctx)
	}
	switch {
	case err != nil:
		return nil, err
	case result.Exit != 0:
		return nil, explain("observe", "squeue", firstLine(result))
	}
	reader.take([]byte(result.Stdout)) // of an Exec that gives nothing before
	jobs, err := reader.all()
	if err != nil {
		return nil, odd("observe", "squeue", err)
	}
	s.queue.Store(int64(len(jobs) + len(jobs)/16))
	return jobs, nil
}

// coresOf returns which cores the jobs have that hold parts of nodes, by job and node. It
// asks only if there are any.
func (s *Site) coresOf(ctx context.Context, jobs []jobRecord, nodes map[string]*nodeRecord) (map[string]map[string]berth.PESet, error) {
	some := false
	for i := 0; i < len(jobs) && !some && !s.coarse; i++ {
		some = jobs[i].phase() == running && jobs[i].partial(nodes)
	}
	if !some {
		return nil, nil //nolint:nilnil // none is a map without entries
	}
	out, err := s.read(ctx, "observe", "scontrol", "--all", "--details", "--oneliner", "show", "job")
	if err != nil {
		return nil, err
	}
	return coresOf(out, nodes), nil
}

// bookings returns all reservations, ours and others'.
func (c *commands) bookings(ctx context.Context, op string) ([]site.Booking, error) {
	out, err := c.read(ctx, op, "scontrol", "show", "reservation", "-o")
	if err != nil {
		return nil, err
	}
	bookings, err := parseReservations(out)
	if err != nil {
		return nil, odd(op, "scontrol show reservation", err)
	}
	return bookings, nil
}

func (c *commands) partitions(ctx context.Context, op string) ([]site.Partition, error) {
	out, err := c.read(ctx, op, "scontrol", "show", "partition", "-o")
	if err != nil {
		return nil, err
	}
	partitions, err := parsePartitions(out)
	if err != nil {
		return nil, odd(op, "scontrol show partition", err)
	}
	return partitions, nil
}
