package service

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/engine/change"
)

// freshTasks is the tasks of a large workflow whose ids were never used before the record that promises
// it: none of their cards has to be looked for, and they go among all others in the order of their ids.
type freshTasks struct {
	of     *flowCard // nil if there is none
	prefix string    // of the ids
	number uint64    // of the record
	memory []card
	cards  []*card // by task
	listed bool    // among all cards
}

// beginFresh begins to follow a workflow that a record promises.
func (c *Core) beginFresh(f *flowCard, number uint64) {
	n := len(f.w.Tasks)
	if n < mostKept || c.knowsTasks(f.id) {
		return
	}
	c.fresh = slices.Grow(c.fresh, n)
	c.freshTasks = freshTasks{of: f, prefix: f.id + ".", number: number, memory: make([]card, n), cards: make([]*card, n)}
}

// knowsTasks reports whether there is a card whose id may be that of a task of a workflow.
func (c *Core) knowsTasks(id string) (known bool) {
	c.listFresh()
	c.cards.Ascend(&card{id: id + "."}, func(k *card) bool {
		known = strings.HasPrefix(k.id, id+".")
		return false
	})
	return known
}

// take returns memory for the card of such a task, if a change makes one pending; nil if not.
func (f *freshTasks) take(x *change.Change) *card {
	if f.of == nil || f.listed || x.Kind != change.Queued || x.Request.Task == nil || x.Request.Task.Try != 1 || !strings.HasPrefix(x.ID, f.prefix) {
		return nil
	}
	at := f.of.taskOf(x.ID, x.Request.Task)
	if f.cards[at] != nil {
		return nil
	}
	f.cards[at] = &f.memory[at]
	return f.cards[at]
}

// listFresh puts the cards of such tasks among all, if they are not there yet.
func (c *Core) listFresh() {
	f := &c.freshTasks
	if f.of == nil || f.listed {
		return
	}
	f.listed = true
	byDigits(len(f.cards), func(number int) {
		if k := f.cards[number-1]; k != nil {
			c.cards.SetHint(k, &c.hint)
		}
	})
}

// byDigits visits the numbers from 1 to n in the order of their texts.
func byDigits(n int, visit func(number int)) {
	var behind func(number int)
	behind = func(number int) {
		for digit := range 10 {
			if next := number*10 + digit; next > 0 && next <= n {
				visit(next)
				behind(next)
			}
		}
	}
	behind(0)
}

// isFresh reports whether a workflow is a large one that the step which was made last, and is not on
// record yet, has promised. What the step has left of it is not written any more.
func (c *Core) isFresh(f *flowCard) bool {
	n := &c.freshTasks
	return c.shows && n.of != nil && n.of == f && n.number == c.position.Number+1 && !slices.Contains(n.cards, nil)
}

// cardsOf returns what finds the cards of the tasks of a workflow.
func (c *Core) cardsOf(f *flowCard) func(task int) *card {
	if c.isFresh(f) {
		cards := c.freshTasks.cards
		return func(task int) *card { return cards[task] }
	}
	return func(task int) *card { return f.cardOf(task, c.card) }
}

// cardOf returns the card of a task that has or had a reservation; nil if there is none.
func (f *flowCard) cardOf(task int, cards cardsByID) *card {
	if id := f.tasks[task].reservation; id != "" {
		return cards(id)
	}
	return nil
}
