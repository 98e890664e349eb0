package service

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

// followEvery is how often a host that stands by looks for new records: what it shows is
// that much behind, and the time that it takes to read and follow them.
const followEvery = 100 * time.Millisecond

// Stand recovers what the journal has, like Open, and then follows what another server
// appends to it. The host decides nothing, writes nothing and touches no site: it answers
// from its model those who only look, and whatever takes the loop, a site or a decision
// with an error of code Unavailable that names the leader. leader says in words who that
// is. Config and Managers are not looked at: the configuration is the journal's, which
// must have a record.
func Stand(ctx context.Context, options Options, leader func() string) (*Host, error) {
	options.Config = untilRecorded
	core, err := recovered(ctx, &options)
	if err != nil {
		return nil, err
	}
	h := newHost(options, core)
	h.leader = leader
	go h.stand()
	return h, nil
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
	return start(options, h.core)
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
		err := h.catchUp(ctx, h.options.Journal)
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

// followShown follows a record and shows what it changes.
func (h *Host) followShown(rec *journal.Record, decoder *record.Decoder) error {
	p, err := parsePast(rec, decoder)
	if err != nil {
		return err
	}
	if err := h.core.followPast(&p); err != nil {
		return err
	}
	if p.in.config != nil {
		fleet := h.core.config.Sites
		h.fleet.Store(&fleet)
	}
	s := h.core.takeShown()
	s.redrawn = true
	h.display.show(&s)
	h.durable.reach(rec.Number, nil)
	return nil
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
