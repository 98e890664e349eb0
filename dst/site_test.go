package dst

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
	"github.com/berth-hpc/berth/site/slurm"
)

const (
	every   = 30 * time.Second     // how often a site is looked at, and some milliseconds that no other has
	horizon = berth.Duration(1200) // how long before its start a promise is real at its site
)

// port is a managed site, which outlives the service.
type port struct {
	name   string
	kind   string // of its adapter
	unit   site.Unit
	cores  berth.Count // of each node
	layout *site.Layout
	nodes  []string
	every  time.Duration

	turn sync.Mutex
	fake *fake.Site
	down []string // nodes that are
}

// port adds a managed site to the world.
func (w *world) port(name string, d site.Description, unit site.Unit, binding berth.Binding) {
	s, layout, err := site.Import(name, &d, unit, binding)
	if err != nil {
		w.t.Fatal(err)
	}
	w.config.Sites = append(w.config.Sites, s)
	p := &port{name: name, kind: "fake", cores: d.Nodes[0].Cores, unit: unit, layout: layout, every: every + time.Duration(7+10*len(w.ports))*time.Millisecond}
	for _, n := range d.Nodes {
		p.nodes = append(p.nodes, n.Name)
	}
	p.fake = fake.New(fake.Config{Name: name, Description: d, NeedsLaunch: unit == site.UnitCore, Run: func(t site.Task) (berth.Duration, site.Result) {
		return berth.Duration(900 * (1 + 5*(len(t.Key)%2))), site.Result{Ending: site.Completed}
	}}, w.now())
	w.ports = append(w.ports, p)
}

// adapter is how a life of the service reaches the site.
func (p *port) adapter(l *life) site.Observer {
	if p.kind == "slurm" {
		return slurm.New(slurm.Options{Site: p.name, Zone: "UTC", Exec: slurmctld{&reach{port: p, life: l}}})
	}
	one := bySelf{&reach{port: p, life: l}}
	if p.unit == site.UnitCore {
		return toldToLaunch{one}
	}
	return one
}

// reach is a site as one life of the service reaches it: in the time of the world, and no more once the
// power has failed.
type reach struct {
	port *port
	life *life
}

// asked does something at the site, about what is named, in the time that it takes.
func asked[T any](r *reach, op, about string, call func(s *fake.Site) (T, error)) (answer T, err error) {
	gone := site.Errorf(site.Unreachable, op, "the power has failed here")
	time.Sleep(r.life.w.pause(r.port.name, op, about))
	if !r.life.step() {
		return answer, gone
	}
	if op != "describe" && op != "observe" {
		r.life.mustLead(op + " at " + r.port.name)
	}
	r.port.turn.Lock()
	r.port.fake.Advance(r.life.w.now())
	answer, err = call(r.port.fake)
	took := r.port.fake.Elapsed()
	r.port.turn.Unlock()
	time.Sleep(time.Duration(took)*time.Second + r.life.w.pause(r.port.name, op, about, "answer"))
	if !r.life.step() {
		return answer, gone
	}
	return answer, err
}

// bySelf is a site that begins promises by itself.
type bySelf struct{ *reach }

func (r bySelf) Describe(ctx context.Context) (*site.Description, error) {
	return asked(r.reach, "describe", "", func(s *fake.Site) (*site.Description, error) { return s.Describe(ctx) })
}

func (r bySelf) Observe(ctx context.Context) (*site.State, error) {
	state, err := asked(r.reach, "observe", "", func(s *fake.Site) (*site.State, error) { return s.Observe(ctx) })
	return r.life.w.plant.observed(r.port, state), err
}

func (r bySelf) Reserve(ctx context.Context, want site.Reservation) (site.Outcome, error) {
	outcome, err := asked(r.reach, "reserve", string(want.Name), func(s *fake.Site) (site.Outcome, error) { return s.Reserve(ctx, want) })
	return r.life.w.plant.booked(r.port, &want, outcome, err)
}

func (r bySelf) Change(ctx context.Context, want site.Reservation) (site.Outcome, error) {
	if outcome, swallowed := r.life.w.plant.changed(r.port, &want); swallowed {
		return outcome, nil
	}
	return asked(r.reach, "change", string(want.Name), func(s *fake.Site) (site.Outcome, error) { return s.Change(ctx, want) })
}

func (r bySelf) Release(ctx context.Context, name site.Name) error {
	if r.life.w.plant.forgoes(r.port, name) {
		return nil
	}
	_, err := asked(r.reach, "release", string(name), func(s *fake.Site) (bool, error) { return true, s.Release(ctx, name) })
	return err
}

func (r bySelf) Submit(ctx context.Context, task site.Task) (site.JobID, error) {
	return asked(r.reach, "submit", task.Key, func(s *fake.Site) (site.JobID, error) { return s.Submit(ctx, task) })
}

func (r bySelf) Cancel(ctx context.Context, job site.JobID) error {
	_, err := asked(r.reach, "cancel", string(job), func(s *fake.Site) (bool, error) { return true, s.Cancel(ctx, job) })
	return err
}

func (r bySelf) Drain(ctx context.Context, node, reason string) error {
	_, err := asked(r.reach, "drain", node, func(s *fake.Site) (bool, error) { return true, s.Drain(ctx, node, reason) })
	return err
}

func (r bySelf) Resume(ctx context.Context, node string) error {
	_, err := asked(r.reach, "resume", node, func(s *fake.Site) (bool, error) { return true, s.Resume(ctx, node) })
	return err
}

// toldToLaunch is one that has to be told when a promise begins.
type toldToLaunch struct{ bySelf }

func (r toldToLaunch) Launch(ctx context.Context, name site.Name, shares []site.Share) error {
	_, err := asked(r.reach, "launch", string(name), func(s *fake.Site) (bool, error) { return true, s.Launch(ctx, name, shares) })
	return err
}

// heal has the site do what it is asked from now on.
func (p *port) heal(now berth.Time) {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.fake.Heal()
	p.fake.Advance(now)
	for _, n := range p.nodes { // drained ones too
		p.fake.Repair(n)
	}
	p.down = nil
}

// state returns what is at the site.
func (p *port) state(now berth.Time) (*site.State, error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.fake.Advance(now)
	return p.fake.Observe(context.Background())
}

// inLine returns how the site and what is promised there differ: every promise that begins within the
// horizon is there once and as promised, and nothing else is there of ours.
func (p *port) inLine(state *site.State, promised []service.Reservation, outbox []service.Errand, now berth.Time) error {
	there := map[string]*site.Booking{}
	for i := range state.Ours {
		there[state.Ours[i].Name] = &state.Ours[i]
	}
	for i := range promised {
		r := &promised[i]
		if r.State.Over() || r.State == service.Pending {
			continue
		}
		if r.Request.IsJob() { // jobs are the business of the site, but for one in which a task was to run
			for _, m := range r.Sites {
				delete(there, string(m.Name))
			}
			continue
		}
		var npe berth.Count
		var start, end berth.Time
		for _, a := range r.Allotments {
			if a.Resource.Site == p.name { // parts at other sites may be longer
				start, end, npe = a.Start, max(end, a.End), npe+a.NPE
			}
		}
		if npe == 0 {
			continue
		}
		at := slices.IndexFunc(r.Sites, func(m service.Materialised) bool { return m.Site == p.name })
		if at < 0 {
			return fmt.Errorf("%s is promised at %s, and nothing says how far it is there", r.ID, p.name)
		}
		m := &r.Sites[at]
		b := there[string(m.Name)]
		delete(there, string(m.Name))
		if start > now.Add(horizon-60) || end <= now.Add(60) {
			continue
		}
		if b == nil || !m.Made || m.Trouble != "" {
			return fmt.Errorf("%s %s is not at %s: made %t, trouble %q", r.State, r.ID, p.name, m.Made, m.Trouble)
		}
		have := b.Cores
		if p.unit == site.UnitNode {
			have = berth.Count(len(b.Shares))
		}
		if b.End != end || b.Start != start && b.Start > now || have != npe {
			return fmt.Errorf("%s is at %s from %d to %d on %d, promised from %d to %d on %d", r.ID, p.name, b.Start, b.End, have, start, end, npe)
		}
	}
	for name, b := range there {
		if b.End > now.Add(60) && b.Start <= now.Add(horizon-60) {
			return fmt.Errorf("%s is at %s and not promised", name, p.name)
		}
	}
	for i := range outbox {
		if e := &outbox[i]; e.Site == p.name && e.Remove {
			return fmt.Errorf("the effect %d on %s is not settled: %+v", e.Number, p.name, *e)
		}
	}
	return nil
}

// runs returns an error if a task runs at the site in a promise that is over.
func (p *port) runs(state *site.State, list []service.Reservation) error {
	ended := map[string]*service.Reservation{} // by the name of the promise at the site
	for i := range list {
		if r := &list[i]; r.State.Over() {
			name, _, _ := site.NameOf(p.name, r.ID, 0).Promise(p.name)
			ended[name] = r
		}
	}
	for i := range state.Running {
		j := &state.Running[i]
		name, _, _ := site.Name(j.Reservation).Promise(p.name)
		if r := ended[name]; r != nil {
			return fmt.Errorf("the task %s runs at %s in %s, which is %s", j.Key, p.name, r.ID, r.State)
		}
	}
	return nil
}
