//go:build unix

package servicebench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/workload"
)

// stage is a local site whose tasks are no processes: each takes a part of its time and succeeds.
// Like site/local it is one node of many cores, must be told when a reservation begins, announces
// what starts and ends, and remembers what has ended.
type stage struct {
	name    string
	cores   berth.Count
	changed chan struct{}

	mu       sync.Mutex
	random   *rand.Rand
	bookings map[string]*onStage
	names    []string    // of the bookings, sorted; some may be gone
	tasks    []*site.Job // that wait or run, by id
	past     []site.Job
	last     int
	ended    map[string]time.Time // by promise: when its task succeeded
	acts     sync.WaitGroup
	closed   bool
}

// onStage is a reservation with its task, of which it has one at most.
type onStage struct {
	site.Booking
	launched bool
	job      *site.Job // that waits or runs
}

var (
	_ site.Booker    = (*stage)(nil)
	_ site.Runner    = (*stage)(nil)
	_ site.Launcher  = (*stage)(nil)
	_ site.Announcer = (*stage)(nil)
)

func newStage(name string, cores berth.Count) *stage {
	return &stage{
		name: name, cores: cores, changed: make(chan struct{}, 1), random: rand.New(rand.NewPCG(1, 3)), bookings: map[string]*onStage{},
		ended: map[string]time.Time{},
	}
}

func (s *stage) Changed() <-chan struct{} { return s.changed }

func (s *stage) announce() {
	select {
	case s.changed <- struct{}{}:
	default: // it is said and not heard yet
	}
}

func (s *stage) Describe(context.Context) (*site.Description, error) {
	return &site.Description{
		Cluster: s.name, Manager: "simulated", Zone: "UTC", Rights: site.Rights{Reserve: true, Submit: true},
		Nodes: []site.Node{{Name: "n1", Cores: s.cores, Sockets: 1, MemoryMB: 1 << 20}},
	}, nil
}

func seconds() berth.Time { return berth.Time(time.Now().Unix()) }

func (s *stage) Observe(context.Context) (*site.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := &site.State{At: seconds(), Boot: 1, Nodes: []site.NodeState{{Name: "n1", Condition: site.Up}}, Ended: slices.Clip(s.past)}
	state.Running = make([]site.Job, 0, len(s.tasks))
	for _, j := range s.tasks {
		if j.Start > 0 {
			state.Running = append(state.Running, *j)
			state.Nodes[0].Busy += j.Cores
		}
	}
	s.names = slices.DeleteFunc(s.names, func(name string) bool { return s.bookings[name] == nil })
	state.Ours = make([]site.Booking, 0, len(s.names))
	for _, name := range s.names {
		b := s.bookings[name]
		if b.Active = b.Start <= state.At; b.End <= state.At && b.job == nil {
			delete(s.bookings, name)
			continue
		}
		if b.job != nil && !b.launched {
			state.Pending = append(state.Pending, *b.job)
		}
		state.Ours = append(state.Ours, b.Booking)
	}
	return state, nil
}

// put makes a reservation as it is wanted.
func (s *stage) put(want *site.Reservation) (site.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bookings[string(want.Name)]
	if b == nil {
		b = &onStage{}
		s.bookings[string(want.Name)] = b
		if at, is := slices.BinarySearch(s.names, string(want.Name)); !is {
			s.names = slices.Insert(s.names, at, string(want.Name))
		}
	}
	b.Booking = site.Booking{
		Name: string(want.Name), Start: want.Start, End: want.End, Cores: want.Cores, Partition: want.Partition, Users: want.Users, Accounts: want.Accounts, Groups: want.Groups,
		Shares: []site.Share{{Node: "n1", Partial: true}}, Active: want.Start <= seconds(),
	}
	made := b.Booking
	return site.Outcome{Verdict: site.Made, Booking: &made}, nil
}

func (s *stage) Reserve(_ context.Context, want site.Reservation) (site.Outcome, error) {
	return s.put(&want)
}

func (s *stage) Change(_ context.Context, want site.Reservation) (site.Outcome, error) {
	return s.put(&want)
}

func (s *stage) Release(_ context.Context, name site.Name) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bookings[string(name)]; b != nil && b.job != nil {
		s.end(b, site.Cancelled)
	}
	delete(s.bookings, string(name))
	return nil
}

func (s *stage) Submit(_ context.Context, task site.Task) (site.JobID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bookings[string(task.Reservation)]
	if b == nil {
		return "", site.Errorf(site.NotFound, "submit", "no reservation %s", task.Reservation)
	}
	if b.job != nil {
		return b.job.ID, nil
	}
	s.last++
	b.job = &site.Job{
		ID: site.JobID(fmt.Sprint(s.last)), Key: task.Key, Name: task.Name, User: task.User, Reservation: b.Name, Submitted: seconds(), Cores: b.Cores, Reason: "waits for its reservation",
	}
	s.tasks = append(s.tasks, b.job)
	s.begin(b)
	return b.job.ID, nil
}

func (s *stage) Launch(_ context.Context, name site.Name, _ []site.Share) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bookings[string(name)]
	if b == nil {
		return site.Errorf(site.NotFound, "launch", "no reservation %s", name)
	}
	if !b.launched {
		b.launched = true
		s.begin(b)
	}
	return nil
}

// begin has the task of a reservation run that is launched: mostly for .5 to .85 of the time that is
// left to it, one of twenty for longer than that, unless it is given more.
func (s *stage) begin(b *onStage) {
	if !b.launched || b.job == nil || b.job.Start > 0 {
		return
	}
	b.job.Start, b.job.End, b.job.Reason, b.job.Shares = seconds(), b.End, "", []site.Share{{Node: "n1", Partial: true}}
	part := .5 + .35*s.random.Float64()
	if s.random.IntN(20) == 0 {
		part = 1.05
	}
	left := time.Until(time.Unix(int64(b.End), 0))
	s.acts.Add(1)
	time.AfterFunc(time.Duration(part*float64(left)), func() {
		defer s.acts.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.bookings[b.Name] == b && b.job != nil && !s.closed {
			s.end(b, site.Completed)
		}
	})
	s.announce()
}

// end ends the task of a reservation.
func (s *stage) end(b *onStage, how site.Ending) {
	j := b.job
	b.job = nil
	s.tasks = slices.DeleteFunc(s.tasks, func(t *site.Job) bool { return t == j })
	j.End, j.Result = seconds(), site.Result{Ending: how}
	s.past = append(s.past, *j)
	if p, _, is := site.Name(b.Name).Promise(s.name); is && how == site.Completed {
		s.ended[p] = time.Now()
	}
	s.announce()
}

func (s *stage) Cancel(_ context.Context, id site.JobID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bookings {
		if b.job != nil && b.job.ID == id {
			s.end(b, site.Cancelled)
		}
	}
	return nil
}

// close lets no more tasks end.
func (s *stage) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.acts.Wait()
}

// lasting is a workflow by daggen of so many tasks, each of which takes a few seconds on up to four PEs.
func lasting(t *testing.T, tasks int, longest berth.Duration, seed uint64) berth.Workflow {
	t.Helper()
	d := workload.NewDaggen()
	d.Tasks, d.MinTime, d.MaxTime = tasks, longest/2, longest
	drawn, err := d.Generate(seed)
	if err != nil {
		t.Fatal(err)
	}
	w := berth.Workflow{Deadline: berth.Forever, Algorithm: berth.SlackAlgorithm, Repair: berth.RepairBoth, Tasks: make([]berth.WorkflowTask, drawn.Len())}
	for i := range w.Tasks {
		k := drawn.Task(i)
		w.Tasks[i] = berth.WorkflowTask{ID: k.ID, Seconds: k.Sequential, Alpha: k.Alpha, Most: 4, Retries: 1, Work: berth.Work{Command: []string{"true"}, Dir: "/"}}
		for _, parent := range drawn.Parents(i) {
			w.Tasks[i].After = append(w.Tasks[i].After, int(parent))
		}
	}
	return w
}

// delays are how long it took from events until what was decided on them was durable and told.
type delays struct {
	starts, ends latencies
	over         map[string]service.FlowState // workflows
	told, gaps   int                          // events that were heard, and how often some were no longer kept when they were to be
}

// follow listens until that number of workflows is over. If it falls too far behind, it does what every
// listener has to do: it reads the whole state again and goes on from there. Events missed meanwhile are in no figure.
func (d *delays) follow(ctx context.Context, h *service.Host, s *stage, after uint64, flows int) error {
	for {
		err := d.hear(ctx, h, s, after, flows)
		if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Unavailable && coded.Code != berth.NotFound || ctx.Err() != nil {
			return err
		}
		d.gaps++
		after = h.LastEvent()
		list, _, err := h.Workflows(ctx, root, service.FlowFilter{Limit: 2 * flows})
		if err != nil {
			return err
		}
		for i := range list {
			if w := &list[i]; w.State.Over() {
				d.over[w.Workflow.ID] = w.State
			}
		}
		if len(d.over) >= flows {
			return nil
		}
	}
}

// hear is follow until events are missing.
func (d *delays) hear(ctx context.Context, h *service.Host, s *stage, after uint64, flows int) error {
	due := map[string]time.Time{} // the starts, as they were told last
	for n, err := range h.Listen(ctx, root, after) {
		now := time.Now()
		d.told++
		switch {
		case err != nil:
			return err
		case n.What == "workflow_over":
			if d.over[n.Workflow.ID] = n.Workflow.State; len(d.over) == flows {
				return nil
			}
		case n.Workflow != nil || n.Task != nil || len(n.Reservation.Allotments) == 0:
		case n.What == "started":
			if at, is := due[n.Reservation.ID]; is {
				d.starts = append(d.starts, now.Sub(at))
			}
		case n.What == "ended":
			p, _, _ := site.NameOf(s.name, n.Reservation.ID, 0).Promise(s.name)
			s.mu.Lock()
			if at, is := s.ended[p]; is {
				d.ends = append(d.ends, now.Sub(at))
			}
			s.mu.Unlock()
		default:
			start := n.Reservation.Allotments[0].Start
			if due[n.Reservation.ID] = time.Unix(int64(start), 0); start <= n.At { // it begins at once, in the middle of a second
				due[n.Reservation.ID] = now
			}
		}
	}
	return ctx.Err()
}

// running: workflows that run at once at a local site whose tasks are simulated. How long it takes from
// what happens, a start that is due or a task that has ended, until it is decided, durable and told.
func running(t *testing.T, size *sizes, lines *table) {
	s := newStage("site0", 64*berth.Count(size.ranFlows))
	description, _ := s.Describe(t.Context())
	managed, layout, err := site.Import(s.name, description, site.UnitCore, berth.Late)
	if err != nil {
		t.Fatal(err)
	}
	managed.Managed = true
	store, config := openStore(t, t.TempDir()), clusters(0, 0)
	config.Sites = []berth.Site{managed}
	h := open(t, &service.Options{
		Config: config, Journal: store, Managers: map[string]service.Manager{s.name: {Kind: "simulated", Adapter: s, Layout: layout, Every: time.Second, Horizon: 5}},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	d := &delays{over: map[string]service.FlowState{}}
	followed, after, watch := make(chan error, 1), h.LastEvent(), stopwatch()
	go func() { followed <- d.follow(ctx, h, s, after, size.ranFlows) }()
	crowd(t, 8, size.ranFlows, 1, func(ctx context.Context, _ *rand.Rand, i int) error {
		ask := ann
		ask.By.User = fmt.Sprint("user", i%8)
		a, err := h.SubmitWorkflow(ctx, ask, lasting(t, size.ranTasks, size.ranLongest, uint64(i)))
		if err == nil && a.Workflow.State.Over() {
			err = fmt.Errorf("answered %q, refusal %+v", a.Workflow.State, a.Workflow.Refusal)
		}
		return err
	})
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	all := watch()
	succeeded := 0
	for _, state := range d.over {
		if state == service.FlowSucceeded {
			succeeded++
		}
	}
	n := size.ranFlows * size.ranTasks
	if succeeded != size.ranFlows || d.gaps == 0 && len(d.ends) < n || len(d.ends) == 0 {
		t.Errorf("the workflows came out as %v, with %d ends of tasks; all %d succeed, with at least %d", d.over, len(d.ends), size.ranFlows, n)
	}
	err = h.Close()
	s.close()
	_, wrong := service.Verify(t.Context(), store, nil)
	if err := errors.Join(err, wrong, store.Close()); err != nil {
		t.Fatal(err)
	}
	lines.add(fmt.Sprintf("%d workflows of %d tasks at once: an end to its decision", size.ranFlows, size.ranTasks), "p99 50 ms", "%s; %d of %d heard, of %d events with %d gaps, %s", d.ends, len(d.ends), n, d.told, d.gaps, all)
	lines.add("  a start that is due, or told to be at once, to its decision", "p99 50 ms", "%s; %d of them", d.starts, len(d.starts))
}
