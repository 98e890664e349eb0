package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

// followEvery is how often a host that stands by looks for new records: what it shows is
// that much behind, and the time that it takes to read and follow them.
const followEvery = 100 * time.Millisecond

// Stand recovers what the journal has, like Open, and then follows what another server
// appends to it. The host decides nothing, writes nothing and touches no site: it answers
// from its model those who only look or listen, and whatever takes the loop, a site or a
// decision with an error of code Unavailable that names the leader. leader says in words who
// that is. before, if it is not nil, is a host of this process that has led and resigned: who
// listened there goes on here. Config and Managers are not looked at: the configuration is
// the journal's, which must have a record.
func Stand(ctx context.Context, options Options, leader func() string, before *Host) (*Host, error) {
	options.Config = untilRecorded
	said := sayings{unasked: unasked{}}
	if before != nil {
		said.after = before.durable.reached()
	}
	core, err := recovered(ctx, &options, said.follow)
	if err != nil {
		return nil, err
	}
	core.takeShown() // which is what it holds
	h := newHost(options, core)
	if said.log.mu != nil {
		h.hearers.goOn(&said.log)
	}
	if before != nil && h.hearers.lost == said.after<<noticeBits { // all since is there
		h.hearers.goOn(&before.hearers)
	}
	if h.unasked = said.unasked; len(h.unasked) == 0 {
		h.unasked.begin(core)
	}
	h.leader = leader
	h.followed.Store(&followed{core.position.Number, time.Now()})
	go h.stand()
	return h, nil
}

// sayings is what is told of the records that a host follows when it begins to stand by.
type sayings struct {
	after   uint64 // record behind which it is told
	log     hearers
	unasked unasked
}

// follow follows a record.
func (s *sayings) follow(c *Core, p *past) error {
	if p.number <= s.after {
		return c.followPast(p)
	}
	if s.log.mu == nil {
		s.log = newHearers(p.number - 1)
		s.unasked.begin(c)
	}
	list, err := c.pass(p, true)
	if err == nil {
		s.log.tell(s.unasked.told(c.notShadowed(list), &p.in))
	}
	return err
}

// notShadowed returns the news that are told: those of reservations that are, not of jobs of
// sites that are only watched.
func (c *Core) notShadowed(list []news) []news {
	if len(c.shadows) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(n news) bool { return n.card.request != nil && c.shadows[n.card.request.Site] != nil })
}

// untilRecorded stands for the configuration in front of the first record, which has one.
var untilRecorded = engine.Config{Sites: []berth.Site{{Name: "none", Pools: []berth.Pool{{Name: "none", PEs: 1, Binding: berth.Early}}}}}

// Lead has the journal, which this server writes from now on, take over from where the
// host stands: what is still to be followed is, and the host that is returned is another
// one, which goes on from there as after a start. The one that stood by is to be closed;
// until then it answers as before.
func (h *Host) Lead(ctx context.Context, options Options) (*Host, error) {
	h.closing.Do(func() { close(h.stop) })
	<-h.stopped
	if err := h.Err(); err != nil {
		return nil, err
	}
	if err := h.catchUp(ctx, options.Journal); err != nil {
		return nil, err
	}
	options.settle()
	next, err := start(options, h.core)
	if err == nil {
		next.hearers.goOn(&h.hearers)
	}
	return next, err
}

// stand follows the journal until the host is stopped.
func (h *Host) stand() {
	defer close(h.stopped)
	defer h.boundary(following)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-h.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for away := false; ; {
		select {
		case <-h.stop:
			return
		case <-tick.C:
		}
		h.timekeeper.now() // and writes down that the clock is right
		began := time.Now()
		err := h.catchUp(ctx, h.options.Journal)
		if err == nil {
			h.followed.Store(&followed{h.core.position.Number, began})
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && away:
			h.log.Info("the journal is followed again")
			away = false
		case err == nil, away && journal.CanRetry(err):
		case journal.CanRetry(err):
			h.log.Warn("the journal cannot be followed for now, so what is shown is old", "error", err)
			away = true
		default:
			h.log.Error("the journal cannot be followed", "error", err)
			if f := faultOf(err); f != nil {
				f.read(ctx, h.options.Journal)
				h.stopAt(f)
			} else {
				h.die(err)
			}
			return
		}
	}
}

// followed is up to where a journal was followed.
type followed struct {
	number uint64
	at     time.Time // when there was no more
}

// Followed returns the last record that a host that stands by has followed, and how long
// ago it had followed all that there was.
func (h *Host) Followed() (number uint64, behind time.Duration) {
	f := h.followed.Load()
	if f == nil {
		return h.durable.reached(), 0
	}
	return f.number, time.Since(f.at)
}

// catchUp follows all records that a journal has by now. After an error that does not
// say that it can be tried again the core must not be used any more.
func (h *Host) catchUp(ctx context.Context, from journal.Store) error {
	last, err := from.Last(ctx)
	if err != nil || last.Number == h.core.position.Number {
		return err
	}
	var decoder record.Decoder
	for rec, err := range from.Read(ctx, h.core.position.Number+1) {
		if err != nil {
			return fmt.Errorf("reading the journal after record %d: %w", h.core.position.Number, err)
		}
		err := caught(rec.Number, following, func() error { return h.followShown(&rec, &decoder) })
		if err != nil && faultOf(err) == nil { // which says it
			err = fmt.Errorf("record %d: %w", rec.Number, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// followShown follows a record, shows what it changes, and tells those who listen.
func (h *Host) followShown(rec *journal.Record, decoder *record.Decoder) error {
	p, err := parsePast(rec, decoder)
	if err != nil {
		return err
	}
	list, err := h.core.pass(&p, true)
	if err != nil {
		return err
	}
	list = h.unasked.told(h.core.notShadowed(list), &p.in)
	if p.in.config != nil {
		fleet := h.core.config.Sites
		h.fleet.Store(&fleet)
	}
	s := h.core.takeShown()
	s.redrawn = true
	h.display.show(&s)
	h.durable.reach(rec.Number, nil)
	h.hearers.tell(list)
	h.occupancy.tell(s.touches, rec.Number)
	return nil
}

// unasked are the promises that a server that stands by tells nothing of, since the leader
// asks their sites about them, by id; true of one that has ended meanwhile, and is placed
// anew. It is what questions are to the leader.
type unasked map[string]bool

// begin notes what is asked about where a server begins to follow.
func (u unasked) begin(c *Core) {
	c.cards.Scan(func(k *card) bool {
		if k.asking && k.end == "" {
			u[k.id] = false
		}
		return true
	})
}

// told returns what is told of the news of a record.
func (u unasked) told(all []news, in *input) []news {
	for _, id := range in.asked.asking {
		u[id] = false
	}
	if in.delivery != nil {
		for _, id := range in.delivery.agreed {
			delete(u, id)
		}
	}
	if len(u) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(n news) bool {
		lost, is := u[n.card.id]
		switch {
		case !is:
			return false
		case n.card.end == "":
			return lost || n.card.asking || n.card.promise == nil || slices.Contains(in.asked.asking, n.card.id)
		case slices.Contains(in.asked.asking, n.card.id), change.Kind(n.what) == change.Failed, change.Kind(n.what) == change.Lost: // earlier versions do not list the last two
			u[n.card.id] = true
			return true
		}
		delete(u, n.card.id)
		return false
	})
}

// standsBy is the error of a host that stands by, nil of one that leads.
func (h *Host) standsBy() error {
	if h.leader == nil {
		return nil
	}
	return berth.Errorf(berth.Unavailable, "service", "it stands by: %s", h.leader())
}

// leads returns nil unless another server may lead by now.
func (h *Host) leads() error {
	if h.options.Leads == nil {
		return nil
	}
	return h.options.Leads()
}
