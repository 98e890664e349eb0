package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sites"
)

const (
	// lookForLeader is how often who stands by looks who leads, and whether tokens have changed.
	lookForLeader = 500 * time.Millisecond
	// untilItEnds is longer than a service stands by.
	untilItEnds = 100 * 365 * 24 * time.Hour
)

// checkStandBy refuses to stand by where that can come to nothing.
func (s *setup) checkStandBy(reached string) error {
	if reached != "" {
		u, err := url.Parse(reached)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
			return berth.Errorf(berth.Invalid, "advertise", "--advertise: %q: want a URL such as https://a.example.org:7117", reached)
		}
	}
	if !s.standBy {
		return nil
	}
	if s.journal == "" {
		return berth.Errorf(berth.Invalid, "standby", "--standby: the journal is in %s, which one service has to itself: want --journal with a database that both reach", s.data)
	}
	for name, a := range s.adapters {
		if a.Kind == sites.Local {
			return berth.Errorf(berth.Invalid, "standby", "--standby: site %q is this machine, which another service cannot take over: want sites that both reach", name)
		}
	}
	return nil
}

// address returns where others reach this service when it leads.
func (s *serving) address() string {
	switch {
	case s.reached != "":
		return s.reached
	case s.public != nil:
		return s.public.String()
	}
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		return ""
	}
	if net.ParseIP(host).IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return s.scheme() + net.JoinHostPort(host, port)
}

// acquired is the journal with the lease to write it.
type acquired struct {
	store *postgres.Store
	err   error
}

// acquire waits until the journal may be written, however long that takes. progress says how
// far this service is meanwhile.
func (s *serving) acquire(ctx context.Context, progress func() postgres.Progress) acquired {
	for {
		store, err := postgres.Open(ctx, s.journal, postgres.Options{Address: s.address(), Wait: untilItEnds, Progress: progress, Clock: s.clock})
		if err == nil || ctx.Err() != nil || !journal.CanRetry(err) {
			return acquired{store, err}
		}
		select {
		case <-ctx.Done():
			return acquired{err: ctx.Err()}
		case <-time.After(lookForLeader):
		}
	}
}

// takeTurns stands by and leads in turns, until the service is told to stop or cannot go on.
// before, if there is one, has handed over.
func (s *serving) takeTurns(ctx context.Context, before *leading) error {
	for {
		l, err := s.follow(ctx, before)
		if err != nil || l == nil {
			return err
		}
		handed, err := s.wait(ctx, l)
		if !handed {
			return errors.Join(err, l.close())
		}
		before = l
	}
}

// follow follows the service that leads, and returns what leads here once that ends, which
// answers already; at once if none leads, nil when the service was told to stop. before is
// closed when another one answers.
func (s *serving) follow(ctx context.Context, before *leading) (_ *leading, err error) {
	defer func() {
		if before != nil {
			err = errors.Join(err, before.close())
		}
	}()
	waiting, stopWaiting := context.WithCancel(ctx)
	taken := make(chan acquired, 1)
	var standing atomic.Pointer[service.Host]
	go func() {
		taken <- s.acquire(waiting, func() (p postgres.Progress) {
			if h := standing.Load(); h != nil {
				p.Number, p.Behind = h.Followed()
			}
			return p
		})
	}()
	defer func() {
		stopWaiting()
		select {
		case a := <-taken: // when it was told to stop
			if a.store != nil {
				err = errors.Join(err, a.store.Close())
			}
		default:
		}
	}()
	reader, now, err := s.findLeader(ctx, taken)
	switch {
	case err != nil && before != nil: // else it takes no connections yet
		if ctx.Err() != nil {
			err = nil // it was told to stop
		}
		return nil, errors.Join(err, s.served.end(before.host))
	case err != nil:
		return nil, err
	case reader == nil:
		return s.begin(ctx, &leading{store: now.store})
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	b, err := s.standBeside(ctx, reader, before)
	switch {
	case err == nil:
	case ctx.Err() != nil && before != nil: // it was told to stop
		return nil, s.served.end(before.host)
	default:
		return nil, err
	}
	standing.Store(b.host)
	defer b.end()
	if s.served == nil {
		if s.served, err = s.accept(b.host); err != nil {
			return nil, errors.Join(err, b.host.Close())
		}
	}
	if before != nil {
		err, before = before.close(), nil
		if err != nil {
			return nil, errors.Join(err, s.served.end(b.host))
		}
	}
	if _, err := fmt.Fprintf(s.stdout, "berth %s stands by at %s%s: %s\n", version(), s.scheme(), s.listener.Addr(), b.words()); err != nil {
		return nil, errors.Join(err, s.served.end(b.host))
	}
	var a acquired
	select {
	case <-ctx.Done():
		s.log.Info("stopping")
		return nil, s.served.end(b.host)
	case <-b.host.Stopped():
		return nil, errors.Join(b.host.Err(), s.served.end(b.host))
	case err = <-s.served.failed:
		return nil, errors.Join(err, s.served.end(b.host))
	case a = <-taken:
	}
	if a.err != nil {
		if ctx.Err() != nil { // it was told to stop, and waits for the journal no more
			a.err = nil
		}
		return nil, errors.Join(a.err, s.served.end(b.host))
	}
	b.taken.Store(true)
	s.log.Warn("the journal is free: this service takes over", "before", b.words())
	l, err := s.begin(ctx, &leading{store: a.store, kept: b.kept, tokens: b.tokens, standby: b.host})
	if err != nil {
		if ctx.Err() != nil {
			s.log.Info("told to stop while it took over", "what ended", err)
			err = nil
		}
		return nil, errors.Join(err, s.served.end(b.host))
	}
	b.end()
	if err := b.host.Close(); err != nil {
		return nil, errors.Join(err, s.served.end(l.host), l.close())
	}
	return l, nil
}

// begin begins to lead and to answer. After an error nothing is left open.
func (s *serving) begin(ctx context.Context, l *leading) (*leading, error) {
	l, err := s.lead(ctx, l)
	if err != nil {
		return nil, err
	}
	if err := s.answer(ctx, l); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// leadAtOnce serves as the leader from the start.
func (s *serving) leadAtOnce(ctx context.Context) error {
	l, err := s.begin(ctx, &leading{})
	if err != nil {
		return err
	}
	_, err = s.wait(ctx, l) // who does not stand by does not hand over
	return errors.Join(err, l.close())
}

// findLeader waits until there is a service to follow, and returns its journal for
// reading; nil if this one may lead before that.
func (s *serving) findLeader(ctx context.Context, taken <-chan acquired) (*postgres.Store, acquired, error) {
	for said := false; ; {
		select {
		case a := <-taken:
			return nil, a, a.err
		case <-ctx.Done():
			return nil, acquired{}, ctx.Err()
		case <-time.After(lookForLeader):
		}
		reader, err := s.openFollowed(ctx)
		if err == nil {
			return reader, acquired{}, nil
		}
		if !said && ctx.Err() == nil {
			s.log.Info("waits for a service to follow, or to be the one that leads", "why", err)
			said = true
		}
	}
}

// openFollowed opens the journal of a service that leads for reading. The error says that
// it has nothing to follow yet.
func (s *serving) openFollowed(ctx context.Context) (*postgres.Store, error) {
	reader, err := postgres.Open(ctx, s.journal, postgres.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	last, err := reader.Last(ctx)
	if err == nil && last.Number == 0 {
		err = berth.Errorf(berth.NotFound, "journal", "there is no record yet")
	}
	for _, name := range []string{courier.KeyFile, token.File} {
		if err == nil {
			_, err = reader.Kept(ctx, name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return reader, nil
}

// follower is what a service has while it stands by.
type follower struct {
	*serving
	reader *postgres.Store
	kept   *keptFiles
	tokens *token.Store
	host   *service.Host
	leader atomic.Pointer[postgres.Leader]
	taken  atomic.Bool        // this service has the lease
	end    context.CancelFunc // of looking who leads
}

// standBeside begins to follow a journal, and has what answers from it answer.
func (s *serving) standBeside(ctx context.Context, reader *postgres.Store, before *leading) (*follower, error) {
	var resigned *service.Host
	if before != nil {
		resigned = before.host
	}
	b := &follower{serving: s, reader: reader, kept: &keptFiles{folder: s.data, log: s.log}}
	b.kept.in.Store(reader)
	b.look(ctx)
	version, err := reader.KeptVersion(ctx)
	if err != nil {
		return nil, err
	}
	if b.tokens, err = token.OpenAt(b.kept, s.data, userName(), berth.Time(time.Now().Unix())); err != nil {
		return nil, err
	}
	if b.host, err = service.Stand(ctx, s.options(reader), b.words, resigned); err != nil {
		return nil, err
	}
	mail, err := courier.Open(courier.Options{Place: b.kept, Allow: s.noticesTo, Relay: s.relay})
	if err != nil {
		return nil, errors.Join(err, b.host.Close())
	}
	handler, err := s.answers(b.host, b.tokens, func(o *api.Options) { o.Others, o.Courier = b, mail })
	if err != nil {
		return nil, errors.Join(err, b.host.Close())
	}
	s.leads.Store(false)
	s.handler.Store(&handler)
	ctx, b.end = context.WithCancel(ctx)
	go b.host.Guard("looking who leads", func() { b.watch(ctx, version) })
	return b, nil
}

// watch keeps up who leads and which tokens there are, until the context ends.
func (b *follower) watch(ctx context.Context, version uint64) {
	tick := time.NewTicker(lookForLeader)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b.look(ctx)
		if now, err := b.reader.KeptVersion(ctx); err == nil && now != version {
			if err := b.tokens.Reload(); err != nil {
				b.log.Warn("the tokens cannot be read, so those from before count", "error", err)
				continue
			}
			version = now
		}
	}
}

// look looks who leads. While that cannot be seen it is who it was.
func (b *follower) look(ctx context.Context) {
	if l, err := b.reader.Leader(ctx); err == nil {
		b.leader.Store(&l)
	}
}

// Elsewhere says who leads.
func (b *follower) Elsewhere() error { return b.host.Ready() }

// Leader returns where the service that leads is reached: this one, if it has the lease and
// leads in a moment.
func (b *follower) Leader(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, mostHeld)
	defer cancel()
	for {
		l := b.leader.Load()
		switch {
		case b.leads.Load():
			return b.address()
		case b.taken.Load():
		case l == nil || l.Free:
			return ""
		case l.Ready && l.Address != b.address():
			return l.Address
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(lookForHeir):
			b.look(ctx)
		}
	}
}

// Leading returns who leads.
func (b *follower) Leading() form.Leading {
	number, _ := b.host.Followed()
	f := form.Leading{Record: number, Standbys: []form.Standby{}}
	if l := b.leader.Load(); l != nil && !l.Free {
		f.Leader = l.Address
	}
	return f
}

// HandOver is for the service that leads, to which the call goes on.
func (b *follower) HandOver(context.Context, string, string) (string, error) {
	return "", b.host.Ready()
}

// words says who leads.
func (b *follower) words() string {
	l := b.leader.Load()
	switch {
	case l == nil || l.Free:
		return "no service leads at the moment; try again"
	case l.Address == b.address():
		return "it is about to lead; try again"
	}
	return cmp.Or(l.Address, l.Holder) + " leads"
}
