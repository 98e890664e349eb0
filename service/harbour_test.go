package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// harbour is a service in front of a fake site, in a bubble of time.
type harbour struct {
	t       *testing.T
	host    *service.Host
	site    *fake.Site
	store   *sqlite.Store
	options service.Options
	foreign []site.Booking // that others have made
	cost    atomic.Int64   // CPU time of a look at the site, in nanoseconds
	unknown atomic.Bool    // the manager knows of no node whether it is up
	looks   atomic.Int64   // how often it was looked at
	// outcome says for how long a task runs and how it ends, if it is not nil.
	outcome func(site.Task) (berth.Duration, site.Result)
	skew    atomic.Int64 // by how many seconds its clock is ahead
	silent  atomic.Bool  // its first controller does not answer, and its second does
}

// horizon is how long before its start a promise is real at the site.
const horizon = 600

// timed is a site that keeps the time of the bubble, and takes it for its
// answers.
type timed struct {
	*sync.Mutex
	*fake.Site
	w *harbour
}

func timely[T any](s timed, call func() (T, error)) (T, error) {
	s.Lock()
	s.Advance(berth.Time(time.Now().Unix()))
	value, err := call()
	took := s.Elapsed()
	s.Unlock()
	time.Sleep(time.Duration(took) * time.Second)
	return value, err
}

func (s timed) Observe(ctx context.Context) (*site.State, error) {
	s.w.looks.Add(1)
	state, err := timely(s, func() (*site.State, error) { return s.Site.Observe(ctx) })
	if err == nil {
		if s.w.silent.Load() {
			state.Silent = []string{"ctl1"}
		}
		state.Skew, state.Cost = berth.Duration(s.w.skew.Load()), time.Duration(s.w.cost.Load())
	}
	if err == nil && s.w.unknown.Load() {
		for i := range state.Nodes {
			state.Nodes[i].Condition = site.Unknown
		}
	}
	return state, err
}

func (s timed) Reserve(ctx context.Context, r site.Reservation) (site.Outcome, error) {
	return timely(s, func() (site.Outcome, error) { return s.Site.Reserve(ctx, r) })
}

func (s timed) ReserveMany(ctx context.Context, rs []site.Reservation) []site.Answer {
	answers, _ := timely(s, func() ([]site.Answer, error) { return s.Site.ReserveMany(ctx, rs), nil })
	return answers
}

func (s timed) Change(ctx context.Context, r site.Reservation) (site.Outcome, error) {
	return timely(s, func() (site.Outcome, error) { return s.Site.Change(ctx, r) })
}

func (s timed) Release(ctx context.Context, name site.Name) error {
	_, err := timely(s, func() (struct{}, error) { return struct{}{}, s.Site.Release(ctx, name) })
	return err
}

func (s timed) Launch(ctx context.Context, name site.Name, shares []site.Share) error {
	_, err := timely(s, func() (struct{}, error) { return struct{}{}, s.Site.Launch(ctx, name, shares) })
	return err
}

// byItself is a site that starts what is submitted by itself.
type byItself struct {
	site.Observer
	site.Booker
	site.Runner
	site.Drainer
}

// manyByItself is one that makes many promises real at a time.
type manyByItself struct {
	byItself
	site.ManyBooker
}

// oneByOne is a site that has to be told when a promise begins, and makes one
// real at a time.
type oneByOne struct {
	byItself
	site.Launcher
}

// inHarbour runs a test in front of four nodes of four cores: by nodes with
// early binding at a site that starts jobs by itself, or by cores with late
// binding at one that has to be told.
func inHarbour(t *testing.T, unit site.Unit, test func(t *testing.T, w *harbour)) {
	t.Helper()
	harbourOf(t, unit, true, test)
}

// harbourOf is inHarbour, and says whether the site makes many promises real at a
// time.
func harbourOf(t *testing.T, unit site.Unit, many bool, test func(t *testing.T, w *harbour)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		config := fake.Config{Name: "harbour", Description: fake.Nodes(4, 4), NeedsLaunch: unit == site.UnitCore}
		w := &harbour{t: t}
		config.Run = func(task site.Task) (berth.Duration, site.Result) {
			if w.outcome != nil {
				return w.outcome(task)
			}
			return 100_000, site.Result{Ending: site.Completed}
		}
		w.site = fake.New(config, berth.Time(time.Now().Unix()))
		binding := berth.Early
		if unit == site.UnitCore {
			binding = berth.Late
		}
		s, layout, err := site.Import("harbour", &config.Description, unit, binding)
		if err != nil {
			t.Fatal(err)
		}
		at := timed{new(sync.Mutex), w.site, w}
		one := byItself{at, at, w.site, w.site}
		adapter := map[site.Unit]map[bool]site.Observer{
			site.UnitNode: {false: one, true: manyByItself{one, at}},
			site.UnitCore: {false: oneByOne{one, at}, true: at},
		}[unit][many]
		if w.store, err = sqlite.Open(t.TempDir(), sqlite.Options{}); err != nil {
			t.Fatal(err)
		}
		w.options = service.Options{
			Config: engine.Config{Sites: []berth.Site{s}}, Journal: w.store, Version: "test",
			Managers: map[string]service.Manager{"harbour": {Kind: "fake", Adapter: adapter, Layout: layout, Every: 5 * time.Second, Horizon: horizon}},
		}
		w.options.WishesAreAsMadeAnew(func(kept, anew string) { t.Errorf("a promise is wanted as %s, and is to be %s", kept, anew) })
		w.open()
		defer func() {
			if err := errors.Join(w.host.Check(t.Context()), w.host.Close()); err != nil {
				t.Error(err)
			}
			if _, err := service.Verify(t.Context(), w.store, nil); err != nil {
				t.Error(err)
			}
			if err := w.store.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(t, w)
	})
}

func (w *harbour) open() {
	w.t.Helper()
	var err error
	if w.host, err = service.Open(w.t.Context(), w.options); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *harbour) now() berth.Time { return berth.Time(time.Now().Unix()) }

// pass lets time pass.
func (w *harbour) pass(seconds int) {
	time.Sleep(time.Duration(seconds) * time.Second)
	synctest.Wait()
}

// reserve asks for nodes, or cores, from a time from now on.
func (w *harbour) reserve(id string, npe berth.Count, in, length berth.Duration) service.Reservation {
	w.t.Helper()
	start := w.now().Add(in)
	a := submit(w.t, w.host, ann, berth.Rigid(id, 0, start, start.Add(length), npe, length))
	if a.Reservation.State != service.Confirmed && a.Reservation.State != service.Active {
		w.t.Fatalf("%s is %+v", id, a.Reservation)
	}
	return a.Reservation
}

func (w *harbour) get(id string) service.Reservation {
	w.t.Helper()
	r, err := w.host.Get(w.t.Context(), ann.By, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// nodes returns which nodes a reservation has.
func (w *harbour) nodes(id string) string {
	w.t.Helper()
	r := w.get(id)
	if len(r.Nodes) == 0 {
		return ""
	}
	return strings.Join(r.Nodes[0], ",")
}

// view returns how the site is seen.
func (w *harbour) view() service.SiteView {
	w.t.Helper()
	views, err := w.host.Sites(w.t.Context(), root.By)
	if err != nil || len(views) != 1 {
		w.t.Fatal(views, err)
	}
	return views[0]
}

// state returns what is at the site, whatever goes wrong with it.
func (w *harbour) state() *site.State {
	w.t.Helper()
	w.site.Heal()
	w.site.Advance(w.now())
	state, err := w.site.Observe(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return state
}

// book makes a reservation of another user.
func (w *harbour) book(name string, from, until berth.Time, nodes ...string) {
	b := site.Booking{Name: name, Start: from, End: until, Users: []string{"eve"}}
	for _, n := range nodes {
		b.Shares = append(b.Shares, site.Share{Node: n})
	}
	w.site.Book(b)
	w.foreign = append(w.foreign, b)
}

// run runs a job in a reservation.
func (w *harbour) run(id string) site.JobID {
	w.t.Helper()
	job, err := w.host.Run(w.t.Context(), ann, id, site.Task{Command: []string{"x"}, Dir: "/"})
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// running reports whether a job runs.
func (w *harbour) running(job site.JobID) bool {
	return slices.ContainsFunc(w.state().Running, func(j site.Job) bool { return j.ID == job })
}

// inLine returns how site and service differ: everything promised that starts
// within the horizon is there once, as promised, nothing else is there of ours,
// what others booked is untouched, and nothing is left to be done.
func (w *harbour) inLine() error {
	state := w.state()
	there := map[string]site.Booking{}
	for _, b := range state.Ours {
		there[b.Name] = b
	}
	list, _, err := w.host.List(w.t.Context(), root.By, service.Filter{})
	if err != nil {
		return err
	}
	for i := range list {
		r := &list[i]
		if r.State.Over() || len(r.Allotments) == 0 || r.Allotments[0].NPE == 0 || r.Allotments[0].Start > w.now()+horizon-10 {
			continue
		}
		m := r.Sites[0]
		b, is := there[string(m.Name)]
		if !is || !m.Made || m.Trouble != "" {
			return fmt.Errorf("%s is not there: %+v", r.ID, m)
		}
		delete(there, b.Name)
		a := r.Allotments[0]
		have := slices.Sorted(slices.Values(site.NodesOf(b.Shares)))
		if b.End != a.End || (b.Start != a.Start && b.Start > w.now()) || b.Users[0] != "ann" ||
			len(r.Nodes) > 0 && !slices.Equal(have, slices.Sorted(slices.Values(r.Nodes[0]))) {
			return fmt.Errorf("%s is %+v, promised on %v from %d to %d", r.ID, b, r.Nodes, a.Start, a.End)
		}
	}
	for name, b := range there {
		if b.Start <= w.now()+horizon-10 {
			return fmt.Errorf("%s is there and not promised", name)
		}
	}
	if err := w.untouched(state); err != nil {
		return err
	}
	box, err := w.host.Effects(w.t.Context())
	if err != nil || len(box) > 0 {
		return fmt.Errorf("still to do: %+v, %w", box, err)
	}
	if v := w.view(); !v.Reachable || v.Trouble != "" || len(v.Drift) > 0 {
		return fmt.Errorf("reachable %t, trouble %q, drift %+v", v.Reachable, v.Trouble, v.Drift)
	}
	return nil
}

// untouched returns an error if what others have booked is not as it was.
func (w *harbour) untouched(state *site.State) error {
	for _, b := range w.foreign {
		if b.End > w.now() && !slices.ContainsFunc(state.Foreign, func(o site.Booking) bool { return o.Name == b.Name && o.Start == b.Start && o.End == b.End }) {
			return fmt.Errorf("the foreign reservation %s was touched", b.Name)
		}
	}
	return nil
}
