package service

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

// past is what a record of an earlier life says.
type past struct {
	number  uint64
	at      berth.Time
	hash    journal.Hash
	in      input
	changes []change.Change
}

// parsePast reads what Follow needs of a record: of what came in no more than
// what the changes do not say.
func parsePast(rec *journal.Record, decoder *record.Decoder) (p past, err error) {
	p = past{number: rec.Number, at: rec.At, hash: rec.Hash}
	if len(rec.Event) == 0 || rec.Event[0] != plainInput {
		if p.in, err = parseInput(rec.Event, decoder); err != nil {
			return p, err
		}
	}
	p.changes, err = decoder.Changes(rec.Changes)
	return p, err
}

// Follow applies a record of an earlier life without deciding anything.
func (c *Core) Follow(rec *journal.Record, decoder *record.Decoder) error {
	p, err := parsePast(rec, decoder)
	if err != nil {
		return err
	}
	return c.followPast(&p)
}

func (c *Core) followPast(p *past) error {
	_, err := c.pass(p, false)
	return err
}

// pass applies a record of an earlier life, or of another server, and returns its news if
// they are to be told: with the numbers that they had there.
func (c *Core) pass(p *past, told bool) (list []news, err error) {
	in := &p.in
	if in.config != nil {
		if err := c.configure(*in.config); err != nil {
			return nil, err
		}
	}
	if err := c.engine.Fold(p.changes); err != nil {
		return nil, err
	}
	c.position = journal.Position{Number: p.number, Hash: p.hash}
	switch {
	case in.sighting != nil:
		c.see(p.at, in.sighting)
	case in.tasks != nil:
		c.noteTasks(in.tasks, p.number)
	case in.delivery != nil:
		c.noteDelivered(in.delivery)
	case in.hooks != nil:
		c.noteHooks(p.number, p.at, in.hooks)
	case in.maintenance != nil:
		c.noteMaintenance(p.at, in.maintenance)
	}
	c.flowNews = c.flowNews[:0]
	list = c.follow(p.number, p.at, p.changes, told)
	if told {
		list = append(list, c.newsOfFlows(p.number, p.at, len(list))...)
	}
	if agreed := c.followAsking(in, p.at); told {
		list = append(list, agreed...)
	}
	if told && in.tasks != nil {
		list = append(list, c.newsOfTasks(in.tasks, p.number, p.at)...)
	}
	if in.sighting == nil && in.tasks == nil && in.delivery == nil && in.hooks == nil && in.maintenance == nil && in.config == nil {
		c.heard(p.at, &in.asked)
	}
	c.askNoMore(p.number, in.asked.over)
	c.owe(p.number, p.at, p.changes)
	if in.delivery != nil {
		c.oweAgreed(p.number, p.at, in.delivery.agreed)
	}
	return list, nil
}
