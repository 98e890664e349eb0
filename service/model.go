package service

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// model is what clients may see after a record. Once it is given out nothing in it is
// written any more, so that everybody may look at it beside the loop.
type model struct {
	cards   *btree.BTreeG[*card]       // by id
	flows   *btree.BTreeG[*flowCard]   // by id
	series  *btree.BTreeG[*seriesCard] // by id
	config  *engine.Config
	outages []berth.Outage
	notes   []outageNote
	number  uint64 // of the record
	// generations are the records with which the pictures of pools changed last; of others
	// it is at most base.
	generations map[berth.ResourceID]uint64
	base        uint64
	diary       diary
}

// shown is what a record changes of what clients see.
type shown struct {
	number  uint64
	cards   []*card // as they are after it; not written any more
	flows   []*flowCard
	series  []*seriesCard
	config  *engine.Config
	outages []berth.Outage
	notes   []outageNote
	touches []touch
	redrawn bool // every picture may be another one: touches are not known
	diary   diary
	arrived []string // reservations that sites have otherwise than before
	hooks   []shownHook
}

// display is what those who only look see. It follows the durable records, one at a
// time, and is copied only when a reader comes who has not seen the last one: a
// service that answers many requests and is looked at now and then copies next to
// nothing. It is safe for concurrent use.
type display struct {
	given atomic.Pointer[model] // a copy of now; nil if there is none

	mu   sync.Mutex
	now  model
	hint btree.PathHint // where the last card was: new ones come behind it
	lent bool           // the generations are those of a copy too

	feeds feedRecords
}

// begin shows what a core holds, all of it durable, and has the core tell what
// its records change from then on.
func (d *display) begin(c *Core) {
	c.shows, c.hooks.shows = true, true
	d.now = model{cards: c.cards.Copy(), flows: c.shownFlows(), series: c.shownSeries(), config: c.shownConfig(), outages: c.shownOutages(), notes: c.notes.lend(), number: c.position.Number, base: c.position.Number, diary: c.diarist.diary}
}

// beginAgain takes in what has changed in cards since begin without a record.
func (d *display) beginAgain(c *Core) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.given.Store(nil)
	d.now.cards = c.cards.Copy()
	d.feeds = feedRecords{base: d.feeds.base, anew: d.feeds.anew + 1}
}

// show takes in what a record has changed. Cost: O(log n) for each card.
func (d *display) show(s *shown) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.given.Store(nil)
	m := &d.now
	for _, k := range s.cards {
		var was *card
		if k.request == nil {
			was, _ = m.cards.DeleteHint(k, &d.hint)
		} else {
			was, _ = m.cards.SetHint(k, &d.hint)
		}
		d.feeds.wrote(was, s.number)
		d.feeds.wrote(k, s.number)
	}
	for _, f := range s.flows {
		var was *flowCard
		if f.w == nil {
			was, _ = m.flows.Delete(f)
		} else {
			was, _ = m.flows.Set(f)
		}
		d.feeds.wroteFlow(was, s.number)
		d.feeds.wroteFlow(f, s.number)
	}
	for _, one := range s.series {
		if one.s == nil {
			m.series.Delete(one)
		} else {
			m.series.Set(one)
		}
	}
	for _, id := range s.arrived {
		d.feeds.wrote(m.card(id), s.number)
	}
	d.feeds.wroteAll(m, s)
	m.number, m.config, m.outages, m.notes, m.diary = s.number, s.config, s.outages, s.notes, s.diary
	if s.redrawn {
		m.base, m.generations, d.lent = s.number, nil, false
		return
	}
	if len(s.touches) == 0 {
		return
	}
	if d.lent || m.generations == nil {
		m.generations, d.lent = maps.Clone(m.generations), false
		if m.generations == nil {
			m.generations = map[berth.ResourceID]uint64{}
		}
	}
	for i := range s.touches {
		m.generations[s.touches[i].pool] = s.number
	}
}

// look returns what is to be seen now. Cost: O(1), and for each card that is written
// next a copy of its path in the tree.
func (d *display) look() *model {
	if m := d.given.Load(); m != nil {
		return m
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.given.Load(); m != nil { // another was faster
		return m
	}
	m := d.now
	m.cards, m.flows, m.series, d.lent = m.cards.Copy(), m.flows.Copy(), m.series.Copy(), true
	d.given.Store(&m)
	return &m
}

// card returns what is shown of a reservation; nil if there is nothing.
func (m *model) card(id string) *card {
	k, _ := m.cards.Get(&card{id: id})
	return k
}

// shownFlows returns all workflows, by id.
func (c *Core) shownFlows() *btree.BTreeG[*flowCard] {
	all := btree.NewBTreeGOptions(func(a, b *flowCard) bool { return a.id < b.id }, btree.Options{NoLocks: true})
	for _, f := range c.flows.byID {
		all.Set(f)
	}
	return all
}

// shownConfig returns the configuration as clients see it.
func (c *Core) shownConfig() *engine.Config {
	if c.public == nil {
		config := c.config
		c.public = &config
	}
	return c.public
}

// shownOutages returns the outages as clients see them.
func (c *Core) shownOutages() []berth.Outage {
	if c.outages == nil {
		c.outages = slices.AppendSeq([]berth.Outage{}, c.engine.Outages())
	}
	return c.outages
}

// takeShown returns what the records since it was asked last have changed.
func (c *Core) takeShown() shown {
	s := shown{
		number: c.position.Number, cards: slices.Clone(c.fresh), flows: slices.Clone(c.flowed), series: slices.Clone(c.seriesFresh),
		config: c.shownConfig(), outages: c.shownOutages(), notes: c.notes.lend(), arrived: slices.Clone(c.arrived), touches: slices.Clone(c.touches), diary: c.diarist.diary,
		hooks: c.hooks.take(),
	}
	clear(c.fresh)
	clear(c.flowed)
	clear(c.seriesFresh)
	c.seriesFresh = c.seriesFresh[:0]
	c.fresh, c.flowed, c.touches, c.arrived = c.fresh[:0], c.flowed[:0], c.touches[:0], c.arrived[:0]
	return s
}

// seen returns what is durable, also while the journal cannot be written.
func (h *Host) seen() (*model, error) {
	select {
	case <-h.closed:
		return nil, berth.Errorf(berth.Unavailable, "service", "it has stopped")
	default:
		return h.display.look(), nil
	}
}
