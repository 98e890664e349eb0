package service

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// maxOver bounds what is remembered of requests that are over, in bytes.
const maxOver = 256 << 20

// Forgetting takes some microseconds for each, for which everybody waits, so it is of a thousand at a time, or a few megabytes.
const (
	atOnce      = 1024
	bytesAtOnce = 2 << 20
)

// cost returns about how many bytes a card takes with its request.
func (k *card) cost() int64 { return 512 + requestCost(k.request) }

// requestCost returns about how many bytes a request takes.
func requestCost(r *berth.Request) int64 {
	cost := len(r.ID)
	for i := range r.Parts {
		p := &r.Parts[i]
		cost += 64 + 16*len(p.Variants) + 8*len(p.Eligible.Runs())
	}
	return int64(cost)
}

// forget forgets the oldest that are over, some more than has to be, so that this is
// rare. It is part of what a record has changed.
func (c *Core) forget(number uint64) {
	n := 0
	c.listFresh()
	for ; n < len(c.over) && (len(c.over)-n > c.keep || c.overCost > maxOver-bytesAtOnce); n++ {
		k, _ := c.cards.Delete(&card{id: c.over[n]})
		c.overCost -= k.cost()
		c.diarist.forgot(number, k)
		if c.shows {
			c.fresh = append(c.fresh, &card{id: k.id})
		}
	}
	c.asked, c.last = "", nil
	c.over = slices.Clone(c.over[n:])
}
