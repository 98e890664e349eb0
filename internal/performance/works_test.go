package performance_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/calendar/calendartest"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// works lists what is counted, in the order of the page.
func works() []work {
	var list []work
	for _, s := range simulations {
		list = append(list, s.work(nil))
	}
	list = append(list, reading())
	for _, binding := range []berth.Binding{berth.Late, berth.Early} {
		list = append(list, admitting(binding, "first-fit"))
	}
	list = append(list, admitting(berth.Early, "pe-worst"))
	return append(list,
		reserving(), changing(), coallocating(), requiring(), recording(), hosting(),
		planning("bd-cpar"), planning("dl-rc-cpar"), promising(),
	)
}

const (
	pes  = 1024 // of most machines here
	jobs = 10_000
)

// records draws a log of the model of small machines.
func records(t *testing.T) []workload.Record {
	t.Helper()
	m, err := workload.NewModel("lublin:typeless", workload.Params{PEs: pes})
	if err != nil {
		t.Fatal(err)
	}
	return m.Generate(jobs, 1)
}

// simulation is a replay of a drawn log, as promises or as ordinary jobs.
type simulation struct {
	name   string
	config engine.Config
	jobs   bool
}

var simulations = []simulation{
	{"simulation, early binding, first-fit", engine.Config{Sites: sim.OnePool(pes, berth.Early)}, false},
	{"simulation, early binding, pe-worst", engine.Config{Sites: sim.OnePool(pes, berth.Early), Place: "pe-worst"}, false},
	{"simulation, late binding, first-fit", engine.Config{Sites: sim.OnePool(pes, berth.Late)}, false},
	{"simulation, ordinary jobs, EASY, late binding", engine.Config{Sites: sim.OnePool(pes, berth.Late), Jobs: "easy"}, true},
	{"simulation, ordinary jobs, conservative with compression, late binding", engine.Config{Sites: sim.OnePool(pes, berth.Late), Jobs: "conservative", Compress: true}, true},
}

func (s *simulation) work(monitor sim.Monitor) work {
	return work{s.name, "job", jobs, func(t *testing.T) func() {
		mix := workload.NewMix(1)
		if !s.jobs {
			mix.Reserve = 1
		}
		plain, runs, err := mix.Plain(records(t), true, nil)
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			w := sim.Workload{Plain: plain, Monitor: monitor}
			if s.jobs {
				w.Runs = runs
			}
			result, err := sim.Play(context.Background(), s.config, w, nil)
			if err != nil {
				t.Fatal(err)
			}
			if result.Schedule.Len() != jobs {
				t.Fatalf("%d lines", result.Schedule.Len())
			}
		}
	}}
}

// reading reads a log in the Standard Workload Format.
func reading() work {
	return work{"workload, reading SWF", "record", jobs, func(t *testing.T) func() {
		var file bytes.Buffer
		if err := workload.WriteSWF(&file, nil, records(t)); err != nil {
			t.Fatal(err)
		}
		return func() {
			w, err := workload.ReadSWF(bytes.NewReader(file.Bytes()), "log.swf", workload.Options{})
			if err != nil || len(w.Records) != jobs {
				t.Fatalf("%v, %d records", err, len(w.Records))
			}
		}
	}}
}

// admitting removes the oldest of 10,000 bookings, finds a place for another and books it.
func admitting(binding berth.Binding, place string) work {
	const live, steps = 10_000, 2_500
	name := fmt.Sprintf("calendar, %s binding, %s, 10,000 live: remove, find and add", binding, place)
	return work{name, "step", steps, func(t *testing.T) func() {
		rule, ok := policy.PlacementNamed(place)
		if !ok {
			t.Fatal("no such placement")
		}
		w := calendartest.Workload{Mode: calendartest.Advance, PEs: pes, K: 8, Load: .7, Requests: live, Seed: 42}
		requests := w.Take(live + calls*steps)
		c := calendar.NewFast(pes, binding)
		bookings, next := make([]calendar.Block, 0, len(requests)), 0
		admit := func() {
			r := &requests[len(bookings)]
			fit, ok := c.Find(calendar.Query{Ready: r.Ready, Deadline: berth.Forever, Duration: r.Duration, NPE: r.NPE}, rule)
			if !ok {
				t.Fatalf("no start for %+v", r)
			}
			b := calendar.Block{Start: fit.Start, End: fit.End, NPE: r.NPE, PEs: fit.PEs}
			if err := c.Add(b); err != nil {
				t.Fatal(err)
			}
			bookings = append(bookings, b)
		}
		for range live {
			admit()
		}
		return func() {
			for range steps {
				if err := c.Remove(bookings[next]); err != nil {
					t.Fatal(err)
				}
				next++
				admit()
			}
		}
	}}
}

// machine is an engine with promises, and requests that are drawn beforehand. Each piece of work asks for one, and gives it
// back if it was promised.
type machine struct {
	t        *testing.T
	engine   *engine.Engine
	requests []berth.Request
	next     int
	promised int
}

// newMachine has live of the requests decided.
func newMachine(t *testing.T, config engine.Config, live int, requests []berth.Request) *machine {
	t.Helper()
	e, err := engine.New(config)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, engine: e, requests: requests}
	for range live {
		m.ask()
	}
	if m.promised < live/2 {
		t.Fatalf("%d of %d promised", m.promised, live)
	}
	return m
}

// ask has the next request decided, and returns whether it was promised.
func (m *machine) ask() bool {
	r := &m.requests[m.next]
	m.next++
	changes, _, err := m.engine.Apply(0, engine.Submit(r))
	if err != nil {
		m.t.Fatal(err)
	}
	for i := range changes {
		if changes[i].Kind == change.Accepted {
			m.promised++
			return true
		}
	}
	return false
}

func (m *machine) askAndCancel(times int) {
	for range times {
		id := m.requests[m.next].ID
		if m.ask() {
			if _, _, err := m.engine.Apply(0, engine.Cancel(id)); err != nil {
				m.t.Fatal(err)
			}
		}
	}
}

// drawn draws n requests of up to widest PEs that offer 70 % of a machine while live of them are promised.
func drawn(n, live, parts int, widest, pes berth.Count) []berth.Request {
	rng := rand.New(rand.NewPCG(1, 22))
	const mean = 7200
	span := int64(live) * int64(parts) * mean * int64(widest) / 2 * 10 / (7 * int64(pes))
	list := make([]berth.Request, n)
	for i := range list {
		ready, d := berth.Time(1+rng.Int64N(span)), berth.Duration(60+rng.Int64N(2*mean-120))
		list[i] = berth.Rigid(fmt.Sprint("r", i), 0, ready, ready.Add(8*d), 1+berth.Count(rng.Int64N(int64(widest))), d)
		for range parts - 1 {
			list[i].Parts = append(list[i].Parts, berth.Part{Variants: list[i].Parts[0].Variants})
		}
	}
	return list
}

// reserving is a request and its cancellation in an engine of one site.
func reserving() work {
	const live, steps = 10_000, 2_500
	return work{"engine, one reservation and its cancellation, early binding, 10,000 live", "reservation", steps, func(t *testing.T) func() {
		m := newMachine(t, engine.Config{Sites: sim.OnePool(pes, berth.Early)}, live, drawn(live+calls*steps, live, 1, 128, pes))
		return func() { m.askAndCancel(steps) }
	}}
}

// changing holds a promise, confirms it, changes it to half the PEs and cancels it.
func changing() work {
	const live, steps = 2_000, 500
	return work{"engine, a hold that is confirmed, modified and cancelled, early binding, 2,000 live", "reservation", steps, func(t *testing.T) func() {
		requests := drawn(live+calls*steps, live, 1, 128, pes)
		m := newMachine(t, engine.Config{Sites: sim.OnePool(pes, berth.Early)}, live, requests)
		half := make([]berth.Request, len(requests))
		for i := live; i < len(requests); i++ {
			requests[i].Hold = 60
			half[i] = *requests[i].Clone()
			half[i].Hold, half[i].Parts[0].Variants[0].NPE = 0, (half[i].Parts[0].Variants[0].NPE+1)/2
		}
		return func() {
			for range steps {
				i := m.next
				if !m.ask() {
					continue
				}
				for _, event := range []engine.Event{engine.Confirm(half[i].ID), engine.Modify(&half[i]), engine.Cancel(half[i].ID)} {
					if _, _, err := m.engine.Apply(0, event); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}}
}

// recording writes what a decision says as the payload of a record, and reads it again.
func recording() work {
	const records = 1_000
	return work{"journal, the payload of a decision written and read", "record", records, func(t *testing.T) func() {
		e, err := engine.New(engine.Config{Sites: sim.OnePool(pes, berth.Early)})
		if err != nil {
			t.Fatal(err)
		}
		events, changes := make([]engine.Event, records), make([][]change.Change, records)
		requests := drawn(records, records, 1, 128, pes)
		for i := range requests {
			events[i] = engine.Submit(&requests[i])
			if changes[i], _, err = e.Apply(0, events[i]); err != nil {
				t.Fatal(err)
			}
		}
		var d record.Decoder
		var event, changed []byte
		return func() {
			for i := range events {
				event, changed = record.AppendEvent(event[:0], &events[i]), record.AppendChanges(changed[:0], changes[i])
				if _, err := d.Event(event); err != nil {
					t.Fatal(err)
				}
				if got, err := d.Changes(changed); err != nil || len(got) != len(changes[i]) {
					t.Fatalf("%v, %d changes", err, len(got))
				}
			}
		}
	}}
}

// sitesOf returns sites of one pool each.
func sitesOf(n int, each berth.Count) []berth.Site {
	list := make([]berth.Site, n)
	for i := range list {
		list[i] = berth.Site{Name: fmt.Sprintf("s%02d", i), Pools: []berth.Pool{{Name: "p", PEs: each, Binding: berth.Late}}}
	}
	return list
}

// coallocating is the same with 8 parts that begin together at any of 20 sites.
func coallocating() work {
	const live, steps = 1_000, 100
	return work{"engine, co-allocation of 8 parts over 20 sites and its cancellation, 1,000 live", "reservation", steps, func(t *testing.T) func() {
		m := newMachine(t, engine.Config{Sites: sitesOf(20, 128)}, live, drawn(live+calls*steps, live, 8, 64, 20*128))
		return func() { m.askAndCancel(steps) }
	}}
}

// requiring is a request that takes licences, storage and the uplink beside its PEs.
func requiring() work {
	const live, steps = 2_000, 500
	return work{"engine, the same with licences, storage and the uplink, 2,000 live", "reservation", steps, func(t *testing.T) func() {
		config := engine.Config{Sites: sitesOf(4, 256), Uplink: 1_000_000}
		for i := range config.Sites {
			s := &config.Sites[i]
			s.StorageMB, s.Software = 10_000_000, []berth.Software{{Name: "solver", Licences: 64}}
		}
		requests := drawn(live+calls*steps, live, 1, 64, pes)
		for i := range requests {
			requests[i].Software, requests[i].Licences, requests[i].StorageMB = "solver", berth.Count(1+i%4), int64(100+i%900)
		}
		m := newMachine(t, config, live, requests)
		return func() { m.askAndCancel(steps) }
	}}
}

// hosting is a promise of a service that keeps its journal in SQLite: decided, on record, answered.
func hosting() work {
	const live, steps = 500, 250
	return work{"service, one reservation on record, late binding", "reservation", steps, func(t *testing.T) func() {
		store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		stopped := time.Unix(1_800_000_000, 0)
		h, err := service.Open(t.Context(), service.Options{
			Config: engine.Config{Sites: sim.OnePool(pes, berth.Late)}, Journal: store, Version: "counted", Clock: func() time.Time { return stopped },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		requests, next := drawn(live+calls*steps, live, 1, 128, pes), 0
		for i := range requests {
			r := &requests[i]
			r.ID, r.Ready, r.Deadline = "", r.Ready+h.Now()+3600, r.Deadline+h.Now()+3600
		}
		ask := service.Ask{By: service.Principal{User: "ann", Role: service.User}}
		submit := func(times int) {
			for range times {
				if _, err := h.Submit(t.Context(), ask, requests[next]); err != nil {
					t.Fatal(err)
				}
				next++
			}
		}
		submit(live)
		return func() { submit(steps) }
	}}
}

// flow draws a workflow of 100 tasks.
func flow(t *testing.T, seed uint64) *workflow.Workflow {
	t.Helper()
	d := workload.NewDaggen()
	d.Tasks = 100
	w, err := d.Generate(seed)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// planning plans a workflow of 100 tasks among bookings, from nothing.
func planning(name string) work {
	const times = 4
	return work{"workflow, planning 100 tasks, " + name, "plan", times, func(t *testing.T) func() {
		p, ok := workflow.PlannerNamed(name)
		if !ok {
			t.Fatal("no such planner")
		}
		w := calendartest.Workload{Mode: calendartest.Advance, PEs: pes, K: 8, Load: .5, Requests: 500, Seed: 42}
		c := calendar.NewFast(pes, berth.Late)
		if _, err := w.Admit(c); err != nil {
			t.Fatal(err)
		}
		problem := workflow.Problem{Workflow: flow(t, 1), Calendar: c, Free: pes / 2}
		prepare := func() *workflow.Instance {
			in, err := workflow.Prepare(problem)
			if err != nil {
				t.Fatal(err)
			}
			return in
		}
		deadline := berth.Forever
		if p.Goal == workflow.Deadline {
			if deadline, _, ok = prepare().Tightest(p); !ok {
				t.Fatal("no deadline can be met")
			}
		}
		return func() {
			for range times {
				if _, ok := prepare().Try(p, deadline); !ok {
					t.Fatal("no plan")
				}
			}
		}
	}}
}

// promising promises such a workflow in an engine, and cancels it.
func promising() work {
	const live, times = 2_000, 4
	return work{"engine, a workflow of 100 tasks and its cancellation, 2,000 live", "workflow", times, func(t *testing.T) func() {
		m := newMachine(t, engine.Config{Sites: sim.OnePool(pes, berth.Late)}, live, drawn(live, live, 1, 128, pes))
		g := flow(t, 1)
		w := &berth.Workflow{User: "ann", Deadline: berth.Forever, Algorithm: berth.SlackAlgorithm, Repair: berth.RepairBoth}
		for i := range g.Len() {
			task := berth.WorkflowTask{ID: g.Task(i).ID, Seconds: g.Task(i).Sequential, Alpha: g.Task(i).Alpha}
			for _, parent := range g.Parents(i) {
				task.After = append(task.After, int(parent))
			}
			w.Tasks = append(w.Tasks, task)
		}
		next := 0
		return func() {
			for range times {
				w.ID = fmt.Sprint("w", next)
				next++
				changes, _, err := m.engine.Apply(0, engine.SubmitWorkflow(w))
				if err != nil || changes[0].Kind != change.WorkflowPromised {
					t.Fatalf("%v, %+v", err, changes)
				}
				if _, _, err := m.engine.Apply(0, engine.CancelWorkflow(w.ID)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}}
}
