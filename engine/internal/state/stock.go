package state

import (
	"fmt"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Stock is a renewable resource beside PEs: the licences of a program, the storage
// of a site, the uplink. Its calendar is of late binding, since one unit is as
// good as another. The zero Stock is no limit.
type Stock struct{ *stock }

type stock struct {
	id       berth.ResourceID
	calendar calendar.Calendar
	amount   int64 // of all units
	unit     int64 // the amount that is one unit; the last is larger by what is left over
	state    *State
	pruned   berth.Time
}

// newStock returns a stock of an amount, the zero Stock if that is 0. An amount
// larger than a calendar is counted in larger units, rounded in favour of keeping
// within it.
func (s *State) newStock(id berth.ResourceID, amount int64, form calendar.Form) Stock {
	if amount <= 0 {
		return Stock{}
	}
	if known, twice := s.stocks[id]; twice {
		return known
	}
	unit := (amount + berth.MaxPEs - 1) / berth.MaxPEs
	st := Stock{&stock{id: id, calendar: form.New(berth.Count(amount/unit), berth.Late), amount: amount, unit: unit, state: s, pruned: before}}
	s.stocks[id] = st
	s.order = append(s.order, st)
	return st
}

// Counted reports whether there is a limit.
func (st Stock) Counted() bool { return st.stock != nil }

// ID returns the name of the stock.
func (st Stock) ID() berth.ResourceID { return st.id }

// Units returns how many units an amount is, rounded up; no more than there are if the
// stock has that much.
func (st Stock) Units(amount int64) berth.Count {
	units := berth.Count((amount + st.unit - 1) / st.unit)
	if amount <= st.amount {
		return min(units, st.calendar.Size())
	}
	return units
}

// Amount returns the amount that a number of units is.
func (st Stock) Amount(units berth.Count) int64 {
	if units == st.calendar.Size() {
		return st.amount
	}
	return int64(units) * st.unit
}

// View returns the calendar of the stock, from now on.
func (st Stock) View() View {
	st.prune()
	return viewOf(st.calendar)
}

func (st Stock) prune() {
	if st.pruned < st.state.now {
		st.calendar.Prune(st.state.now)
		st.pruned = st.state.now
	}
}

// Licences returns the stock of licences of a program of a site, both by their
// places in the configuration.
func (s *State) Licences(site, program int) Stock { return s.licences[site][program] }

// Storage returns the stock of storage of a site.
func (s *State) Storage(site int) Stock { return s.storage[site] }

// Uplink returns the stock that all transfers share.
func (s *State) Uplink() Stock { return s.uplink }

// Stock returns the stock of that name; the zero Stock if there is none.
func (s *State) Stock(id berth.ResourceID) Stock { return s.stocks[id] }

// takeStocks takes from stocks what a reservation holds of them, from now on.
func (s *State) takeStocks(held []berth.Allotment) error {
	return s.eachStock(held, calendar.Calendar.Add)
}

// giveStocks gives it back.
func (s *State) giveStocks(held []berth.Allotment) error {
	return s.eachStock(held, calendar.Calendar.Remove)
}

func (s *State) eachStock(held []berth.Allotment, do func(calendar.Calendar, calendar.Block) error) error {
	for i := range held {
		a := &held[i]
		st := s.stocks[a.Resource]
		if !st.Counted() {
			return fmt.Errorf("no stock %v", a.Resource)
		}
		if from := max(a.Start, s.now); from < a.End {
			st.prune() // what began before now begins now
			if err := do(st.calendar, blockOf(a, from)); err != nil {
				return err
			}
		}
	}
	return nil
}

// share is what a transfer takes of the uplink from now on; ok is false if that
// is nothing.
func (s *State) share(t *berth.Transfer) (a berth.Allotment, ok bool) {
	from := max(t.Since, s.now)
	if t.Rate == 0 || from >= t.End {
		return a, false
	}
	return berth.Allotment{Resource: s.uplink.id, Start: from, End: t.End, NPE: t.Rate}, true
}

// takeUplink takes the shares of transfers; only those that have begun, or have
// not, if so asked.
func (s *State) takeUplink(transfers []berth.Transfer, which func(*berth.Transfer) bool) error {
	return s.eachShare(transfers, which, calendar.Calendar.Add)
}

// giveUplink gives them back.
func (s *State) giveUplink(transfers []berth.Transfer, which func(*berth.Transfer) bool) error {
	return s.eachShare(transfers, which, calendar.Calendar.Remove)
}

func (s *State) eachShare(transfers []berth.Transfer, which func(*berth.Transfer) bool, do func(calendar.Calendar, calendar.Block) error) error {
	for i := range transfers {
		t := &transfers[i]
		if t.Rate > 0 && !s.uplink.Counted() {
			return fmt.Errorf("a transfer to %q shares an uplink that is not configured", t.Site)
		}
		a, ok := s.share(t)
		if !ok || !which(t) {
			continue
		}
		s.uplink.prune()
		if err := do(s.uplink.calendar, blockOf(&a, a.Start)); err != nil {
			return err
		}
	}
	return nil
}

func every(*berth.Transfer) bool { return true }

// Begun reports whether data of a reservation are on their way, or there. What has not begun may be
// sent elsewhere instead, or at another time, as may what goes with the start of a task that has not started.
func (s *State) Begun(e *Entry, t *berth.Transfer) bool {
	return t.Start <= s.now && (e.r.Request.Task == nil || e.r.State == berth.Active)
}

// begun returns Begun for the transfers of a reservation, and waiting the opposite.
func (s *State) begun(e *Entry) func(*berth.Transfer) bool {
	return func(t *berth.Transfer) bool { return s.Begun(e, t) }
}

func (s *State) waiting(e *Entry) func(*berth.Transfer) bool {
	return func(t *berth.Transfer) bool { return !s.Begun(e, t) }
}

// blockOf is an allotment's block from a time on.
func blockOf(a *berth.Allotment, from berth.Time) calendar.Block {
	return calendar.Block{Start: from, End: a.End, NPE: a.NPE, PEs: a.PEs}
}
