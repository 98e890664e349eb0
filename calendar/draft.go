package calendar

import (
	"github.com/berth-hpc/berth"
)

// Draft is a trial on several calendars at once: book, look, and undo back to
// a mark, or keep everything by undoing nothing. While a draft is open nothing
// else may change or prune its calendars. It works on the calendars themselves, since removing a
// block restores the records exactly; nothing is copied.
type Draft struct {
	calendars map[berth.ResourceID]Calendar
	log       []booking
}

// booking is one step of a draft: a block taken on a resource.
type booking struct {
	resource berth.ResourceID
	block    Block
}

// Mark is a point in a draft to which Undo can return.
type Mark int

// NewDraft opens a draft over the calendars. The map is used, not copied.
func NewDraft(calendars map[berth.ResourceID]Calendar) *Draft {
	return &Draft{calendars: calendars}
}

// Calendar shows a resource's calendar with everything drafted so far. For an
// unknown resource it returns the zero View.
func (d *Draft) Calendar(id berth.ResourceID) View {
	c, ok := d.calendars[id]
	if !ok {
		return View{}
	}
	return ViewOf(c)
}

// Mark returns the present point of the draft.
func (d *Draft) Mark() Mark { return Mark(len(d.log)) }

// Book takes a block. Its errors are those of Calendar.Add, and code NotFound
// for an unknown resource; nothing has changed then.
func (d *Draft) Book(id berth.ResourceID, b Block) error {
	c, ok := d.calendars[id]
	if !ok {
		return berth.Errorf(berth.NotFound, "resource", "no calendar for %s/%s/%s", id.Site, id.Kind, id.Name)
	}
	if err := c.Add(b); err != nil {
		return err
	}
	d.log = append(d.log, booking{id, b})
	return nil
}

// Undo gives back everything booked since the mark, newest first. It panics if
// a booking of the draft is no longer there.
func (d *Draft) Undo(to Mark) {
	for len(d.log) > int(to) {
		last := d.log[len(d.log)-1]
		d.log = d.log[:len(d.log)-1]
		if err := d.calendars[last.resource].Remove(last.block); err != nil {
			panic("calendar: what a draft booked is not there to undo: " + err.Error())
		}
	}
}
