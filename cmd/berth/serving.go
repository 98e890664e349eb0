package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/laboratory"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sites/adapters"
	"github.com/berth-hpc/berth/web"
)

// serving is a process that serves, whether it leads or stands by.
type serving struct {
	*app
	*setup
	flags    *serveFlags
	log      *slog.Logger
	umask    int
	listener net.Listener
	socket   net.Listener // nil if there is none

	handler atomic.Pointer[http.Handler] // of the leader, or of who stands by
	served  *served                      // nil until it takes connections
	leads   atomic.Bool                  // handler is that of the leader
}

// ServeHTTP answers as what the process is now.
func (s *serving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*s.handler.Load()).ServeHTTP(w, r)
}

// leading is what a service has while it leads. What of it is there when it begins to
// lead is taken over.
type leading struct {
	store   store
	kept    *keptFiles // nil if they are in the data directory
	tokens  *token.Store
	standby *service.Host // nil at a start

	managed *adapters.Set
	host    *service.Host
	bench   *laboratory.Laboratory
	links   *api.Links
	others  *colleagues // nil if the journal is its own
	handler http.Handler
}

// close ends what is there, in the reverse order.
func (l *leading) close() error {
	var errs []error
	if l.bench != nil {
		errs = append(errs, l.bench.Close())
	}
	if l.others != nil {
		l.others.end()
	}
	if l.host != nil {
		errs = append(errs, l.host.Close())
	}
	if l.store != nil {
		errs = append(errs, l.store.Close())
	}
	if l.managed != nil {
		l.managed.Close()
	}
	return errors.Join(errs...)
}

// lead begins to lead. After an error nothing is left open.
func (s *serving) lead(ctx context.Context, l *leading) (_ *leading, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if s.journal != "" && l.store == nil {
		if l.store, err = s.openStore(ctx, s.address(), s.log); err != nil {
			return nil, err
		}
	}
	shared, isShared := l.store.(*postgres.Store)
	places := adapters.Options{Data: s.data, Log: s.log, Umask: s.umask, Adopt: s.flags.adopt}
	if isShared {
		if l.kept == nil {
			l.kept = &keptFiles{folder: s.data, log: s.log}
		}
		l.kept.in.Store(shared)
		l.kept.leads.Store(true)
		places.Place = l.kept
	}
	if l.managed, err = adapters.Open(ctx, places, s.config.Sites, s.adapters); err != nil {
		return nil, err
	}
	for _, name := range s.config.Limits.Partitions() {
		if name == policy.Every {
			continue
		}
		if !slices.ContainsFunc(s.config.Sites, func(on berth.Site) bool {
			return slices.ContainsFunc(on.Partitions, func(p berth.Partition) bool { return p.Name == name })
		}) {
			s.log.Warn("limits of a partition that no site has; they count once a site has it", "partition", name)
		}
	}
	post := courier.Options{Folder: s.data, Allow: s.noticesTo, Relay: s.relay}
	if l.kept != nil {
		post.Place = l.kept
	}
	mail, err := courier.Open(post)
	if err != nil {
		return nil, err
	}
	switch now := berth.Time(time.Now().Unix()); {
	case l.tokens != nil:
		err = l.tokens.Reload()
	case l.kept != nil:
		l.tokens, err = token.OpenAt(l.kept, s.data, userName(), now)
	default:
		l.tokens, err = token.Open(s.data, userName(), now)
	}
	if err != nil {
		return nil, err
	}
	if l.store == nil {
		if l.store, err = s.openStore(ctx, "", s.log); err != nil {
			return nil, err
		}
	}
	options := s.options(l.store)
	options.Managers, options.OwnerOf = l.managed.Managers, l.tokens.OwnerOf
	options.Projects = s.projects
	options.Projects.Directory = &api.Directory{Tokens: l.tokens, Identity: s.known.ways(), Now: func() berth.Time { return l.host.Now() }}
	if isShared {
		options.Leads = shared.Leads
	}
	if l.standby != nil {
		l.host, err = l.standby.Lead(ctx, options)
	} else {
		l.host, err = service.Open(ctx, options)
	}
	if err != nil {
		return nil, err
	}
	if l.bench, err = openLaboratory(s.data, s.log); err != nil {
		return nil, err
	}
	l.links = &api.Links{}
	if isShared {
		l.others = s.beginOthers(l.host, shared)
	}
	l.handler, err = s.answers(l.host, l.tokens, func(o *api.Options) {
		o.Links, o.Laboratory, o.Courier = l.links, l.bench, mail
		if l.others != nil {
			o.Others = l.others
		}
	})
	if err == nil {
		l.host.SendNotices(&api.Messenger{Courier: mail, Tokens: l.tokens, Identity: s.known.ways(), Access: s.access, Public: s.public, Now: l.host.Now, Version: version()})
	}
	return l, err
}

// options returns what a host runs on, without what only a leader has.
func (s *serving) options(journal store) service.Options {
	return service.Options{
		Config: s.config, Journal: journal, Version: version(), Log: s.log, Transfers: s.transfers, Keep: s.keep, KeepHistory: s.keepHistory,
		ClockFile: filepath.Join(s.data, "clock.json"), FaultFolder: s.data, Access: s.access, Clock: s.clock,
	}
}

// answers returns what answers for a host; more is what that differs in.
func (s *serving) answers(host *service.Host, tokens *token.Store, more func(*api.Options)) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := host.Register(registry); err != nil {
		return nil, err
	}
	o := api.Options{
		Service: host, Tokens: tokens, Identity: s.known.ways(), Registry: registry, Log: s.log, Version: version(), Limits: s.config.Limits, Access: s.access, MetricsToken: s.metricsToken,
		Root: web.Handler(strings.TrimSuffix(s.publicPath(), "/"), http.HandlerFunc(api.NotFound)), Public: s.public, At: "http://" + onThisMachine(s.listener.Addr().String()),
	}
	more(&o)
	return api.New(o), nil
}

// answer has a leader answer, from the start or instead of who stood by.
func (s *serving) answer(ctx context.Context, l *leading) (err error) {
	s.handler.Store(&l.handler)
	s.leads.Store(true)
	if l.others != nil {
		if err := l.others.store.TakesCalls(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	if s.served != nil {
		s.log.Info("this service leads", "at", s.address())
		return nil
	}
	if s.served, err = s.accept(l.host); err != nil {
		return err
	}
	s.greet(s.setup, s.listener.Addr().String(), s.socket)
	if s.flags.link {
		s.greetBrowser(s.scheme(), s.listener.Addr().String(), l.tokens, l.links, l.host.Now())
	}
	return nil
}

// wait waits until a leader is to stop, or cannot go on, and ends it; or until it has handed
// over: then it answers who looks until it is closed, and the process is to stand by.
func (s *serving) wait(ctx context.Context, l *leading) (handed bool, err error) {
	for {
		var asked *handOver
		select {
		case <-ctx.Done():
			s.log.Info("stopping")
		case <-l.host.Stopped():
			err = l.host.Err()
		case <-lost(l.store):
			err = berth.Errorf(berth.Conflict, "journal", "another service writes %s now: this one has stopped, and acknowledges nothing any more", postgres.Name(s.journal))
		case err = <-s.served.failed:
		case asked = <-l.others.handOvers():
		case <-l.others.skewed():
			asked = l.others.giveWay(ctx)
		}
		if asked == nil {
			return false, errors.Join(err, s.served.end(l.host))
		}
		if handed, err = s.handOver(ctx, l, asked); handed || err != nil {
			return handed, err
		}
	}
}

// served is what takes connections.
type served struct {
	server *http.Server
	failed chan error
	at     string // file that says where the service is
}

// accept begins to take connections.
func (s *serving) accept(host *service.Host) (*served, error) {
	v := &served{server: api.Server(s), failed: make(chan error, 2)}
	api.Bound(v.server, maxConnections())
	v.server.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)
	take := func() error { return v.server.Serve(s.listener) }
	if s.tls.cert != "" {
		shown, err := openCertificates(s.tls, s.data, s.log)
		if err != nil {
			return nil, err
		}
		shown.serve(v.server)
		take = func() error { return v.server.ServeTLS(s.listener, "", "") }
	}
	var err error
	if v.at, err = publish(s.data, s.scheme(), s.listener.Addr()); err != nil {
		return nil, err
	}
	go host.Guard("taking connections", func() { v.failed <- take() })
	if s.socket != nil {
		go host.Guard("taking connections of this machine", func() { v.failed <- v.server.Serve(s.socket) })
	}
	return v, nil
}

// end stops taking connections and ends a host. Streams of events end with it; all others
// get their answer.
func (v *served) end(host *service.Host) error {
	limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- v.server.Shutdown(limit) }()
	err := errors.Join(host.Close(), <-stopped)
	_ = os.Remove(v.at) // the lock says whether the service runs
	return err
}
