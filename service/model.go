package service

import (
	"maps"
	"slices"
	"strings"
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
	owned   *btree.BTreeG[*card]       // the same by user, then by id
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
	ours btree.PathHint // where it was among its user's
	lent bool           // the generations are those of a copy too

	feeds feedRecords
}

// begin shows what a core holds, all of it durable, and has the core tell what
// its records change from then on.
func (d *display) begin(c *Core) {
	c.shows, c.hooks.shows = true, true
	d.now = model{cards: c.cards.Copy(), owned: byUser(c.cards), flows: c.shownFlows(), series: c.shownSeries(), config: c.shownConfig(), outages: c.shownOutages(), notes: c.notes.lend(), number: c.position.Number, base: c.position.Number, diary: c.diarist.diary}
}

// byUser returns cards by user, then by id. Cost: O(n).
func byUser(cards *btree.BTreeG[*card]) *btree.BTreeG[*card] {
	owned := btree.NewBTreeGOptions(func(a, b *card) bool {
		if c := strings.Compare(a.request.User, b.request.User); c != 0 {
			return c < 0
		}
		return a.id < b.id
	}, btree.Options{NoLocks: true})
	of := map[string][]*card{}
	cards.Scan(func(k *card) bool {
		of[k.request.User] = append(of[k.request.User], k)
		return true
	})
	for _, user := range slices.Sorted(maps.Keys(of)) {
		for _, k := range of[user] {
			owned.Load(k)
		}
	}
	return owned
}

// each calls what looks at cards behind an id, by id, until it has enough: at all of them, or only at those of a user.
func (m *model) each(user, after string, look func(*card) bool) {
	if user == "" {
		m.cards.Ascend(&card{id: after}, look)
		return
	}
	m.owned.Ascend(&card{id: after, request: &berth.Request{User: user}}, func(k *card) bool { return k.request.User == user && look(k) })
}

// beginAgain takes in cards that have changed since begin without a record.
func (d *display) beginAgain(c *Core, changed []*card) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.given.Store(nil)
	d.now.cards = c.cards.Copy()
	for _, k := range changed {
		d.now.owned.Set(k)
	}
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
		if was != nil && (k.request == nil || k.request.User != was.request.User) {
			m.owned.DeleteHint(was, &d.ours)
		}
		if k.request != nil {
			m.owned.SetHint(k, &d.ours)
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
	m.cards, m.owned, m.flows, m.series, d.lent = m.cards.Copy(), m.owned.Copy(), m.flows.Copy(), m.series.Copy(), true
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
