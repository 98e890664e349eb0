package service

import (
	"slices"

	"github.com/tidwall/btree"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// model is what clients may see after a record. Nothing in it is written any more, so
// that everybody may look at it beside the loop.
type model struct {
	cards   *btree.BTreeG[*card] // by id
	config  *engine.Config
	outages []berth.Outage
	number  uint64 // of the record
	// generations are the records with which the pictures of pools changed last; of others
	// it is at most base.
	generations map[berth.ResourceID]uint64
	base        uint64
	diary       diary
}

// model returns what is to be seen now. Cost: O(1), and for each card that is written
// next a copy of it and of its path in the tree.
func (c *Core) model() *model {
	if c.outages == nil {
		c.outages = slices.AppendSeq([]berth.Outage{}, c.engine.Outages())
	}
	if c.shown == 0 {
		c.base = c.position.Number
	}
	c.shown = c.position.Number
	return &model{cards: c.cards.Copy(), config: &c.config, outages: c.outages, number: c.position.Number, generations: c.generations, base: c.base, diary: c.diarist.diary}
}

// seen returns what is durable, also while the journal cannot be written.
func (h *Host) seen() (*model, error) {
	select {
	case <-h.closed:
		return nil, berth.Errorf(berth.Unavailable, "service", "it has stopped")
	default:
		return h.model.Load(), nil
	}
}
