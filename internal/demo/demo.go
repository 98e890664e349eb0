// Package demo is the service with its pages in front of a simulated site of a thousand
// nodes, under a load that moves: for a first look, for pictures and for measurements of the
// pages. It does not pretend to be a real site's history; the jobs are those of the
// Lublin–Feitelson model.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/laboratory"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
	"github.com/berth-hpc/berth/web"
	"github.com/berth-hpc/berth/workload"
)

// Options says what is shown.
type Options struct {
	Folder string // for its data
	Listen string // such as 127.0.0.1:7117
	Seed   uint64
	Log    *slog.Logger  // nil is none
	Pace   time.Duration // between two movements of the load; 0 is a second
	// Compare begins the command line that compares schedulers, as berth lab does; without it
	// there is no laboratory.
	Compare []string
	// Instead returns what is shown instead of the service, for measurements; nil shows it.
	Instead func(*service.Host) api.Service
}

const (
	// Nodes is the size of the site.
	Nodes = 1000
	// past is for how long the site has worked when it is first seen, and ahead for how
	// long promises are made: the window of the harbour is two hours and the day behind them.
	past  = 2 * time.Hour
	ahead = 20 * time.Hour
	// stride is how far the past moves at a time, and settling how long the site has to
	// follow. What starts within a stride must be at the site before.
	stride   = 10 * time.Minute
	settling = 40 * time.Millisecond
)

// Guest is who looks: an operator, with promises of their own.
const Guest = "olga"

var users = []string{Guest, Guest, "alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "mallory"}

// promise is one that its user may give back.
type promise struct{ id, user string }

// Demo is a running demonstration.
type Demo struct {
	URL  string
	Host *service.Host

	site    *fake.Site
	store   *sqlite.Store
	tokens  *token.Store
	links   *api.Links
	bench   *laboratory.Laboratory // nil if there is none
	server  *http.Server
	records []workload.Record
	next    int
	random  *rand.Rand
	pace    time.Duration
	offset  atomic.Int64 // of the demonstration's clock behind the machine's, in nanoseconds
	running sync.WaitGroup
	made    []promise
}

// Start starts it. It is full when Start returns; Run has it move.
func Start(ctx context.Context, o Options) (d *Demo, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d = &Demo{links: &api.Links{}, random: rand.New(rand.NewPCG(o.Seed, 1)), pace: cmp.Or(o.Pace, time.Second)}
	d.offset.Store(int64(past))
	if d.store, err = sqlite.Open(o.Folder, sqlite.Options{}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	model, err := workload.NewModel("lublin:batch", workload.Params{PEs: Nodes})
	if err != nil {
		return nil, err
	}
	d.records = model.Generate(20_000, o.Seed)
	description := fake.Nodes(Nodes, 1)
	d.site = fake.New(fake.Config{Name: "harbour", Description: description}, berth.Time(d.now().Unix()))
	managed, layout, err := site.Import("harbour", &description, site.UnitNode, berth.Early)
	if err != nil {
		return nil, err
	}
	managed.Managed = true
	d.Host, err = service.Open(ctx, service.Options{
		Config:   engine.Config{Explain: true, Sites: []berth.Site{managed}},
		Journal:  d.store,
		Version:  "demo",
		Log:      o.Log,
		Clock:    d.now,
		Managers: map[string]service.Manager{"harbour": {Kind: "simulated", Adapter: d.site, Layout: layout, Every: 20 * time.Millisecond, Horizon: 3600}},
	})
	if err != nil {
		return nil, err
	}
	if err := d.serve(ctx, &o); err != nil {
		return nil, err
	}
	return d, d.fill(ctx)
}

// now is the time of the demonstration.
func (d *Demo) now() time.Time { return time.Now().Round(0).Add(-time.Duration(d.offset.Load())) }

func (d *Demo) serve(ctx context.Context, o *Options) error {
	var err error
	if d.tokens, err = token.Open(o.Folder, Guest, berth.Time(d.now().Unix())); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return berth.Errorf(berth.Invalid, "listen", "%v; give another address, such as 127.0.0.1:0", err)
	}
	if o.Compare != nil {
		if d.bench, err = laboratory.Open(laboratory.Options{Folder: filepath.Join(o.Folder, "laboratory"), Program: o.Compare, Log: o.Log}); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	shown := api.Service(d.Host)
	if o.Instead != nil {
		shown = o.Instead(d.Host)
	}
	d.server = api.Server(api.New(api.Options{
		Service: shown, Tokens: d.tokens, Log: o.Log, Version: "demo", Links: d.links, Laboratory: d.bench, Root: web.Handler("", http.HandlerFunc(api.NotFound)), Limits: generous,
	}))
	d.URL = "http://" + listener.Addr().String()
	d.running.Go(func() { _ = d.server.Serve(listener) }) // it ends with Close
	return nil
}

// generous is for measurements that ask more often than people do.
var generous = policy.Limits{{Name: policy.LimitRate, Value: policy.NoLimit}}

// Link returns the address of a page with a login for an operator, once and within two minutes.
func (d *Demo) Link(page string) (string, error) {
	operator, known := d.tokens.Lasting()
	if !known {
		return "", errors.New("the demonstration has no operator")
	}
	return d.URL + "/" + page + "#login=" + d.links.Make(operator.ID, d.Host.Now()), nil
}

// fill lets the past happen: the clock strides to the present while promises are made for
// the day to come.
func (d *Demo) fill(ctx context.Context) error {
	strides := int(past / stride)
	for _, node := range []int{17, 18, 19, 404, 405, 406, 407} {
		d.site.Fail(fmt.Sprint("n", node), "power supply")
	}
	for range strides {
		for n := range 1500 / strides {
			if err := d.ask(ctx, n%5 == 0); err != nil {
				return err
			}
		}
		d.offset.Add(-int64(stride))
		d.site.Advance(berth.Time(d.now().Unix()))
		timer := time.NewTimer(settling)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
	}
	d.site.Fail("n731", "power supply") // of those that were up when promises were made
	return nil
}

// ask has a user ask for PEs: soon, or at some time of the day. That there is no room is fine.
func (d *Demo) ask(ctx context.Context, soon bool) error {
	r := &d.records[d.next%len(d.records)]
	d.next++
	now := d.Host.Now()
	length := min(max(r.Run, 600), 8*3600)
	ready := now.Add(berth.Duration(stride/time.Second) + 60)
	if !soon {
		ready = ready.Add(berth.Duration(d.random.Int64N(int64((past + ahead) / time.Second))))
	}
	id := fmt.Sprintf("d%05d", d.next)
	q := berth.Rigid(id, now, ready, ready.Add(length+berth.Duration(d.random.Int64N(4*3600))), min(r.Size(), Nodes/8), length)
	if d.random.IntN(12) == 0 {
		q.Hold = 1800
	}
	user := users[d.random.IntN(len(users))]
	a, err := d.Host.Submit(ctx, service.Ask{By: service.Principal{User: user, Role: service.User}}, q)
	if err == nil && a.Reservation.State != service.Refused {
		d.made = append(d.made, promise{id, user})
	}
	return err
}

// Run has the load move until ctx ends: promises are made and given back at each pace or two,
// nodes fail and come back.
func (d *Demo) Run(ctx context.Context) error {
	tick := time.NewTicker(d.pace)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		d.site.Advance(berth.Time(d.now().Unix()))
		if err := d.move(ctx, n); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (d *Demo) move(ctx context.Context, n int) error {
	switch {
	case n%45 == 0:
		d.site.Fail(fmt.Sprint("n", 1+d.random.IntN(Nodes)), "does not answer")
	case n%60 == 30:
		for node := range Nodes {
			d.site.Repair(fmt.Sprint("n", node+1))
		}
	case n%3 == 0 && len(d.made) > 0:
		i := d.random.IntN(len(d.made))
		p := d.made[i]
		d.made = slices.Delete(d.made, i, i+1)
		_, err := d.Host.Release(ctx, service.Ask{By: service.Principal{User: p.user, Role: service.User}}, p.id)
		if e, is := errors.AsType[*berth.Error](err); is && (e.Code == berth.NotFound || e.Code == berth.Conflict) {
			return nil // it is over
		}
		return err
	}
	return d.ask(ctx, n%4 == 0)
}

// Close ends it.
func (d *Demo) Close() error {
	var err error
	if d.Host != nil {
		err = d.Host.Close()
	}
	if d.server != nil {
		err = errors.Join(err, d.server.Close())
	}
	if d.bench != nil {
		err = errors.Join(err, d.bench.Close())
	}
	d.running.Wait()
	if d.store != nil {
		err = errors.Join(err, d.store.Close())
	}
	return err
}
