package state

import (
	"fmt"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Trial is a decision under way: it takes and gives back on the calendars, stocks
// and usage themselves, remembers each step, and undoes them newest first. While it
// is open, all that reads the state sees what is tried, and Fold refuses changes.
// At most one is open at a time.
type Trial struct {
	state *State
	open  bool
	plans bool // on the calendars with the plans of jobs, not on those of promises
	log   []undoable
}

// undoable is what a trial has done: a block taken from a calendar or given back, a
// reservation that counts no longer, one that was counted, or one that left its place.
type undoable struct {
	calendar calendar.Calendar // nil for the others
	block    calendar.Block
	given    bool
	released *Entry // what its holders use no longer; else nil
	counted  *Entry // what was promised; else nil
	was      *Entry // the reservation of its id that left its place before; else nil
	vacated  *Entry // what left its place; else nil
}

// Now returns the time of the state.
func (t *Trial) Now() berth.Time { return t.state.now }

// Mark is a point in a trial to which Undo can return.
type Mark int

// Try opens a trial on the calendars of promises and running jobs.
func (s *State) Try() *Trial { return s.openTrial(false) }

// TryPlans opens a trial on the calendars on which the plans of jobs are booked
// too; on those of promises where no such are kept.
func (s *State) TryPlans() *Trial { return s.openTrial(true) }

func (s *State) openTrial(plans bool) *Trial {
	t := &s.trial
	if t.open {
		panic("engine: a trial within a trial")
	}
	s.planned.complete()
	t.open, t.plans, t.log = true, plans, t.log[:0]
	return t
}

// Trying returns the trial that is open, nil if none is.
func (s *State) Trying() *Trial {
	if !s.trial.open {
		return nil
	}
	return &s.trial
}

// Close undoes everything and ends the trial.
func (t *Trial) Close() {
	t.Undo(0)
	t.open = false
}

// Mark returns the present point of the trial.
func (t *Trial) Mark() Mark { return Mark(len(t.log)) }

// Undo undoes everything since a mark, newest first.
func (t *Trial) Undo(to Mark) {
	for i := len(t.log) - 1; i >= int(to); i-- {
		switch x := &t.log[i]; {
		case x.counted != nil:
			for part := range x.counted.r.Allotments {
				t.state.ledger.dropPart(x.counted, part)
			}
			if x.was != nil {
				t.state.ledger.live[x.was.ID()] = x.was
			}
		case x.vacated != nil:
			x.vacated.vacant = false
			t.state.ledger.count(x.vacated, 1)
		case x.released != nil:
			t.state.ledger.use(x.released, 1)
		case x.given:
			must(x.calendar.Add(x.block))
		default:
			must(x.calendar.Remove(x.block))
		}
		t.log[i] = undoable{}
	}
	t.log = t.log[:to]
}

// View returns the calendar of the i-th pool as the trial has it.
func (t *Trial) View(i int) View { return viewOf(t.calendar(i)) }

func (t *Trial) calendar(i int) calendar.Calendar {
	if t.plans {
		if c, ok := t.state.planned.view(i); ok {
			return c
		}
	}
	t.state.prune(i)
	return t.state.pools[i].calendar
}

// Book takes an allotment. It panics if that is not free: look before.
func (t *Trial) Book(a *berth.Allotment) {
	if a.NPE > 0 {
		t.take(t.of(a.Resource), blockOf(a, a.Start))
	}
}

// Promise takes what a new reservation holds, or one that has left its place before, but for its transfers, and
// counts it for its holders.
func (t *Trial) Promise(r *berth.Reservation) {
	for i := range r.Allotments {
		t.Book(&r.Allotments[i])
	}
	for i := range r.Stocks {
		t.Book(&r.Stocks[i])
	}
	e := &Entry{r: r, lent: true}
	was := t.state.ledger.live[r.Request.ID]
	t.state.ledger.add(e)
	t.log = append(t.log, undoable{counted: e, was: was})
}

// Unplan gives back the plan of a pending job.
func (t *Trial) Unplan(j *Job) {
	if from := max(j.plan.Start, t.state.now); from < j.plan.End {
		t.give(t.of(j.plan.Resource), blockOf(j.plan, from))
	}
}

// Release gives back everything that a reservation or running job holds from now
// on: its PEs, its stocks, the shares of its transfers and the usage of its holders.
func (t *Trial) Release(e *Entry) {
	s := t.state
	for i := range e.r.Transfers {
		if tr := &e.r.Transfers[i]; !e.vacant || s.Begun(e, tr) {
			t.giveShare(tr)
		}
	}
	if e.vacant {
		return
	}
	s.ledger.use(e, -1)
	t.log = append(t.log, undoable{released: e})
	t.leave(e)
}

// Vacate has a reservation that has not started leave its place, as a change of that kind does: data on their way
// to it keep their share of the uplink until Release. It must not be vacant.
func (t *Trial) Vacate(e *Entry) {
	s := t.state
	for i := range e.r.Transfers {
		if tr := &e.r.Transfers[i]; !s.Begun(e, tr) {
			t.giveShare(tr)
		}
	}
	t.leave(e)
	s.ledger.count(e, -1)
	e.vacant = true
	t.log = append(t.log, undoable{vacated: e})
}

// leave gives back the PEs and stocks that a reservation or running job holds from now on.
func (t *Trial) leave(e *Entry) {
	s := t.state
	for part := range e.r.Allotments {
		a := &e.r.Allotments[part]
		if from := max(a.Start, s.now); from < a.End && a.NPE > 0 && e.Holds(part) {
			left := *a
			left.Start = from
			if e.r.State == berth.Active {
				t.Give(&left)
			} else { // outages have taken what they claim of it
				t.give(t.of(left.Resource), blockOf(&left, from))
			}
		}
	}
	for i := range e.r.Stocks {
		a := &e.r.Stocks[i]
		if from := max(a.Start, s.now); from < a.End {
			s.stocks[a.Resource].prune()
			t.give(s.stocks[a.Resource].calendar, blockOf(a, from))
		}
	}
}

func (t *Trial) giveShare(tr *berth.Transfer) {
	if a, ok := t.state.share(tr); ok {
		t.state.uplink.prune()
		t.give(t.state.uplink.calendar, blockOf(&a, a.Start))
	}
}

// Give gives back one block of a pool or stock that is booked from its start or from
// now on. What of it is in an outage, which it has held since before that, is out of
// use then.
func (t *Trial) Give(a *berth.Allotment) { t.Shorten(a, a.Start) }

// Shorten gives back what such a block takes from a time on. Before that, it stays
// booked.
func (t *Trial) Shorten(a *berth.Allotment, until berth.Time) {
	c, kept, gone := t.of(a.Resource), *a, *a
	kept.Start = max(a.Start, t.state.now)
	t.give(c, blockOf(a, kept.Start))
	if kept.End = until; kept.Start < kept.End {
		t.take(c, blockOf(&kept, kept.Start))
	}
	gone.Start = max(kept.Start, until)
	for _, out := range t.state.Claimed(&gone) {
		t.take(c, blockOf(&out, out.Start))
	}
}

func (t *Trial) of(id berth.ResourceID) calendar.Calendar {
	if i, ok := t.state.Index(id); ok {
		return t.calendar(i)
	}
	st := t.state.stocks[id]
	if !st.Counted() {
		panic(fmt.Sprintf("engine: no pool or stock %v", id))
	}
	st.prune()
	return st.calendar
}

func (t *Trial) take(c calendar.Calendar, b calendar.Block) {
	if err := c.Add(b); err != nil {
		panic("engine: what was found cannot be booked: " + err.Error())
	}
	t.log = append(t.log, undoable{calendar: c, block: b})
}

func (t *Trial) give(c calendar.Calendar, b calendar.Block) {
	must(c.Remove(b))
	t.log = append(t.log, undoable{calendar: c, block: b, given: true})
}
