package calendartest

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// draftMachine drives a draft over several calendars, with a stack of marks
// and what every calendar was at each of them.
type draftMachine struct {
	draft     *calendar.Draft
	ids       []berth.ResourceID
	machines  []*machine
	calendars map[berth.ResourceID]calendar.Calendar
	marks     []draftMark
}

type draftMark struct {
	mark   calendar.Mark
	models []*model
}

func draftLaws(t *testing.T, form calendar.New) {
	t.Run("machine", rapid.MakeCheck(func(t *rapid.T) {
		from := rapidChooser{t}
		d := &draftMachine{calendars: map[berth.ResourceID]calendar.Calendar{}}
		for i := range 2 + from.pick("third calendar", 2) {
			binding := oneOf(from, "binding", berth.Early, berth.Late)
			ma := newMachine(from, form, binding, narrow)
			for range from.pick("blocks beforehand", 4) {
				ma.addFree(t, from)
			}
			id := berth.PoolID("site", fmt.Sprint("pool", i))
			d.ids, d.machines = append(d.ids, id), append(d.machines, ma)
			d.calendars[id] = ma.c
		}
		d.draft = calendar.NewDraft(d.calendars)
		d.mark(t)
		t.Repeat(map[string]func(*rapid.T){
			"":             d.check,
			"book":         d.book,
			"book again":   d.book,
			"book unknown": d.bookUnknown,
			"mark":         d.mark,
			"undo":         d.undo,
		})
	}))
	t.Run("undo notices interference", func(t *testing.T) {
		id := berth.PoolID("site", "pool")
		c := form(4, berth.Early)
		draft := calendar.NewDraft(map[berth.ResourceID]calendar.Calendar{id: c})
		b := calendar.Block{Start: 0, End: 5, NPE: 1, PEs: berth.PEsOf(1)}
		wantCode(t, "Book", draft.Book(id, b), "")
		wantCode(t, "Remove behind the draft's back", c.Remove(b), "")
		defer func() {
			if recover() == nil {
				t.Fatal("Undo of a block that is gone did not panic")
			}
		}()
		draft.Undo(0)
	})
}

func (d *draftMachine) check(t *rapid.T) {
	for i, id := range d.ids {
		checkState(t, d.machines[i].c, d.machines[i].m)
		if d.draft.Calendar(id) != calendar.ViewOf(d.calendars[id]) {
			t.Fatalf("the draft's calendar of %v is another one", id)
		}
	}
	if d.draft.Calendar(berth.PoolID("site", "unknown")) != (calendar.View{}) {
		t.Fatal("the draft has a calendar for an unknown resource")
	}
}

// book books a free block or any block; one that is taken is refused.
func (d *draftMachine) book(t *rapid.T) {
	from := rapidChooser{t}
	i := from.pick("calendar", len(d.ids))
	ma := d.machines[i]
	b := ma.anyBlock(from)
	if free := ma.m.through(b.Start, b.End, berth.PESet{}); free.n > 0 && from.pick("free", 4) > 0 {
		b = ma.block(from, b.Start, b.End, free)
	}
	code := berth.Code("")
	if !ma.m.canAdd(b) {
		code = berth.Conflict
	}
	ma.try(t, "Book", code, func() error { return d.draft.Book(d.ids[i], b) })
	if code == "" {
		ma.m.add(b)
	}
}

func (d *draftMachine) bookUnknown(t *rapid.T) {
	b := calendar.Block{Start: 0, End: 1, NPE: 1, PEs: berth.PEsOf(0)}
	wantCode(t, "Book on an unknown resource", d.draft.Book(berth.PoolID("site", "unknown"), b), berth.NotFound)
}

func (d *draftMachine) mark(*rapid.T) {
	m := draftMark{mark: d.draft.Mark()}
	for _, ma := range d.machines {
		m.models = append(m.models, ma.m.clone())
	}
	d.marks = append(d.marks, m)
}

// undo returns to any mark; that mark stays usable, later ones do not.
func (d *draftMachine) undo(t *rapid.T) {
	i := rapid.IntRange(0, len(d.marks)-1).Draw(t, "mark")
	m := d.marks[i]
	d.draft.Undo(m.mark)
	d.marks = d.marks[:i+1]
	for j, ma := range d.machines {
		ma.m = m.models[j].clone()
	}
}
