package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/heardlog"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// quays is a service in front of fake sites at which others start jobs by themselves, so that they
// are asked about what begins before they are looked at again. It is in a bubble of time.
type quays struct {
	t       *testing.T
	host    *service.Host
	sites   map[string]*quay
	store   *sqlite.Store
	options service.Options
	log     heardlog.Log
}

// quay is one of the sites.
type quay struct {
	*fake.Site
	mu    sync.Mutex
	slow  atomic.Int64 // seconds that each command takes beside what faults add
	looks atomic.Int64 // seconds that each look takes
	asked []string     // every command that changes something, in order
}

// slowly runs a command in the time of the bubble.
func slowly[T any](q *quay, op, what string, call func() (T, error)) (T, error) {
	slow := &q.slow
	if op == fake.Observe {
		slow = &q.looks
	}
	time.Sleep(time.Duration(slow.Load()) * time.Second)
	q.mu.Lock()
	q.Advance(berth.Time(time.Now().Unix()))
	if op != fake.Observe {
		q.asked = append(q.asked, op+" "+what)
	}
	value, err := call()
	took := q.Elapsed()
	q.mu.Unlock()
	time.Sleep(time.Duration(took) * time.Second)
	return value, err
}

func (q *quay) Observe(ctx context.Context) (*site.State, error) {
	return slowly(q, fake.Observe, "", func() (*site.State, error) { return q.Site.Observe(ctx) })
}

func (q *quay) Reserve(ctx context.Context, r site.Reservation) (site.Outcome, error) {
	return slowly(q, fake.Reserve, string(r.Name), func() (site.Outcome, error) { return q.Site.Reserve(ctx, r) })
}

func (q *quay) Change(ctx context.Context, r site.Reservation) (site.Outcome, error) {
	return slowly(q, fake.Change, string(r.Name), func() (site.Outcome, error) {
		if state, err := q.Site.Observe(ctx); err == nil && r.Start > q.Now() { // as Slurm has it
			for i := range state.Ours {
				if b := &state.Ours[i]; b.Name == string(r.Name) && b.Active {
					return site.Outcome{Verdict: site.Refused, Reason: berth.RefusedConflict, Words: "Reservation already started"}, nil
				}
			}
		}
		return q.Site.Change(ctx, r)
	})
}

func (q *quay) Release(ctx context.Context, name site.Name) error {
	_, err := slowly(q, fake.Release, string(name), func() (struct{}, error) { return struct{}{}, q.Site.Release(ctx, name) })
	return err
}

// Retire leaves a reservation with jobs as it is.
func (q *quay) Retire(ctx context.Context, name site.Name) error {
	state, err := q.Site.Observe(ctx)
	if err != nil {
		return err
	}
	for _, jobs := range [][]site.Job{state.Pending, state.Running} {
		for i := range jobs {
			if jobs[i].Reservation == string(name) {
				return site.Errorf(site.Conflict, fake.Release, "%s has jobs", name)
			}
		}
	}
	return q.Release(ctx, name)
}

// Carry is not needed: a fake changes reservations in place.
func (q *quay) Carry(_ context.Context, from, _ site.Name) error {
	return site.Errorf(site.Conflict, "carry", "the jobs of %s stay", from)
}

// byUsers is a site to which users hand in jobs by themselves.
type byUsers struct {
	site.Observer
	site.Booker
	site.Carrier
	site.Runner
	site.Recaller
	site.Drainer
}

// atQuays runs a test in front of sites of four nodes each, which are looked at so seldom that what happens there
// is not seen. Nodes get their names when they are promised or, if that is given, so long before the start.
func atQuays(t *testing.T, ahead berth.Duration, names []string, test func(t *testing.T, w *quays)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := &quays{t: t, sites: map[string]*quay{}}
		w.options = service.Options{Version: "test", Managers: map[string]service.Manager{}, Log: slog.New(slog.NewTextHandler(&w.log, nil))}
		w.options.WishesAreAsMadeAnew(func(kept, anew string) { t.Errorf("a promise is wanted as %s, and is to be %s", kept, anew) })
		for _, name := range names {
			config := fake.Config{Name: name, Description: fake.Nodes(4, 4), Timeout: 60, Run: func(site.Task) (berth.Duration, site.Result) {
				return 100_000, site.Result{Ending: site.Completed}
			}}
			q := &quay{Site: fake.New(config, berth.Time(time.Now().Unix()))}
			binding := berth.Early
			if ahead > 0 {
				binding = berth.Late
			}
			s, layout, err := site.Import(name, &config.Description, site.UnitNode, binding)
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.Pools {
				s.Pools[i].NameAhead = ahead
			}
			w.sites[name] = q
			w.options.Config.Sites = append(w.options.Config.Sites, s)
			w.options.Managers[name] = service.Manager{Kind: "fake", Adapter: byUsers{q, q, q, q.Site, q.Site, q.Site}, Layout: layout, Every: time.Minute, Horizon: horizon}
		}
		var err error
		if w.store, err = sqlite.Open(t.TempDir(), sqlite.Options{}); err != nil {
			t.Fatal(err)
		}
		w.options.Journal = w.store
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

func (w *quays) open() {
	w.t.Helper()
	var err error
	if w.host, err = service.Open(w.t.Context(), w.options); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

// restart stops the service and starts it again.
func (w *quays) restart() {
	w.t.Helper()
	if err := w.host.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
}

func (w *quays) now() berth.Time { return berth.Time(time.Now().Unix()) }

// pass lets time pass.
func (w *quays) pass(seconds int) {
	time.Sleep(time.Duration(seconds) * time.Second)
	synctest.Wait()
}

func (w *quays) get(id string) service.Reservation {
	w.t.Helper()
	r, err := w.host.Get(w.t.Context(), root.By, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// reserve asks for nodes from a time from now on.
func (w *quays) reserve(id string, npe berth.Count, in, length berth.Duration) service.Reservation {
	w.t.Helper()
	start := w.now().Add(in)
	r := submit(w.t, w.host, ann, berth.Rigid(id, 0, start, start.Add(length), npe, length)).Reservation
	if r.State != service.Confirmed && r.State != service.Active {
		w.t.Fatalf("%s is %+v", id, r)
	}
	return r
}

// taken has jobs of others run on nodes of a site, which no look has seen yet.
func (w *quays) taken(at string, nodes ...string) {
	w.sites[at].Advance(w.now())
	for _, n := range nodes {
		w.sites[at].Occupy("eve", []site.Share{{Node: n}}, 100_000, 100_000)
	}
}

// where tells on which nodes, from when and until when after a time a promise is, by its parts.
func (w *quays) where(id string, after berth.Time) string {
	r := w.get(id)
	var parts []string
	for i, a := range r.Allotments {
		nodes := "?"
		if i < len(r.Nodes) && len(r.Nodes[i]) > 0 {
			nodes = strings.Join(r.Nodes[i], ",")
		}
		parts = append(parts, fmt.Sprintf("%s %s %d-%d", a.Resource.Site, nodes, a.Start-after, a.End-after))
	}
	return strings.Join(parts, "; ")
}

// at tells what a site has of the service, in the form of where.
func (w *quays) at(name string, after berth.Time) string {
	w.t.Helper()
	q := w.sites[name]
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Advance(w.now())
	state, err := q.Site.Observe(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for i := range state.Ours {
		b := &state.Ours[i]
		list = append(list, fmt.Sprintf("%s %s %d-%d", name, strings.Join(site.NodesOf(b.Shares), ","), b.Start-after, b.End-after))
	}
	return strings.Join(list, "; ")
}

// toNow asks for a promise to begin now.
func (w *quays) toNow(id string, npe berth.Count, length, slack berth.Duration) (service.Answer, error) {
	now := w.now()
	return w.host.Modify(w.t.Context(), ann, id, berth.Rigid(id, 0, now, now.Add(length+slack), npe, length))
}
