package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// sharing draws accounts and QOS of tasks, what these may have together, and what others ask for in them: series, elements of
// arrays, requests that are modified. It has dice of its own.
type sharing struct {
	dice   *rand.Rand
	priced *rand.Rand // draws prices, by dice of their own
	on     bool
	bills  bills
	has    map[holder]possessed // before the event
}

// possessed is what a holder has.
type possessed struct {
	live        int
	area        int64
	all, charge int64 // for all time, and in the first month
}

func newSharing(seed uint64) sharing {
	s := sharing{dice: rand.New(rand.NewPCG(seed, 41)), priced: rand.New(rand.NewPCG(seed, 43)), on: seed%2 == 1, has: map[holder]possessed{}}
	s.bills = bills{
		price: unpriced,
		live:  map[string]*bill{}, paid: map[holder]map[policy.Month]int64{},
		holders: func(r *berth.Reservation) []holder { return sharersOf(r.Request) }, has: func(holder, *berth.Reservation, berth.ResourceID) bool { return true },
	}
	return s
}

// sharersOf returns the account and the QOS of a request.
func sharersOf(r *berth.Request) (list []holder) {
	if r.Account != "" {
		list = append(list, holder{account: r.Account})
	}
	if r.QOS != "" {
		list = append(list, holder{qos: r.QOS})
	}
	return list
}

func (s *sharing) chance(percent int) bool { return s.on && s.dice.IntN(100) < percent }

// limit draws what accounts and QOS may have.
func (s *sharing) limit(config *engine.Config) {
	if !s.on {
		return
	}
	if s.priced.IntN(3) > 0 {
		for _, site := range config.Sites {
			if s.priced.IntN(2) == 0 {
				config.Prices = append(config.Prices, policy.Price{Site: site.Name, Factor: 1 + s.priced.Int64N(3000)})
			}
		}
		config.Prices = append(config.Prices, policy.Price{QOS: "low", Factor: 1 + s.priced.Int64N(1500)})
		s.bills.price = func(r *berth.Reservation, pool berth.ResourceID, area int64) int64 {
			return priceBy(config.Prices, r.Request.Partition, r, pool, area)
		}
	}
	for _, l := range []struct {
		name        policy.LimitName
		least, most int
	}{
		{policy.LimitActive, 2, 14},
		{policy.LimitReservations, 2, 14},
		{policy.LimitLength, 10, 60},
		{policy.LimitLead, 20, 200},
		{policy.LimitShare, 300, 900},
		{policy.LimitPESeconds, 30, 300},
		{policy.LimitBudget, 40, 500},
		{policy.LimitMonthBudget, 40, 500},
	} {
		budget := l.name == policy.LimitBudget || l.name == policy.LimitMonthBudget
		if !s.chance(map[bool]int{false: 35, true: 60}[budget]) {
			continue
		}
		scope := []policy.Scope{{Account: "bio"}, {Account: policy.Every}, {QOS: "low"}, {QOS: policy.Every}}[s.dice.IntN(4)]
		config.Limits = append(config.Limits, policy.Limit{Scope: scope, Name: l.name, Value: int64(l.least + s.dice.IntN(l.most-l.least))})
	}
}

// one draws an account and a QOS.
func (s *sharing) one() (account, qos string) {
	return []string{"", "bio", "bio", "chem"}[s.dice.IntN(4)], []string{"", "low", "high"}[s.dice.IntN(3)]
}

// name draws the accounts and QOS of a workflow and its tasks.
func (s *sharing) name(w *berth.Workflow) {
	if !s.on {
		return
	}
	w.Account, w.QOS = s.one()
	for i := range w.Tasks {
		if s.chance(20) {
			w.Tasks[i].Account, w.Tasks[i].QOS = s.one()
		}
	}
}

// event draws what others ask for in the accounts.
func (s *sharing) event(x *flows) (engine.Event, bool) {
	d := berth.Duration(1 + s.dice.IntN(30))
	ready := x.now + berth.Time(s.dice.IntN(80))
	r := berth.Rigid("", x.now, ready, ready.Add(d)+berth.Time(s.dice.IntN(60)), berth.Count(1+s.dice.IntN(3)), d)
	switch {
	case s.chance(5):
		r.ID = fmt.Sprintf("a_%d", x.ids+1)
		x.ids++
		r.Account, r.QOS = s.one()
		x.beside("array")
		return engine.Submit(&r), true
	case s.chance(5):
		list := &berth.Series{ID: "s" + x.name(), Rule: "daily", Zone: "UTC", Least: 1, Request: r}
		list.Request.Account, list.Request.QOS = s.one()
		for i := range 1 + s.dice.IntN(4) {
			ready := x.now + berth.Time(20*i)
			list.Occurrences = append(list.Occurrences, berth.Occurrence{Ready: ready, Deadline: ready.Add(d) + berth.Time(s.dice.IntN(20))})
		}
		x.beside("series")
		return engine.SubmitSeries(list), true
	case s.chance(6):
		for other := range x.e.Reservations() {
			if q := other.Request; q.Task == nil && q.Series == nil && !q.IsJob() && other.State == berth.Confirmed && len(sharersOf(q)) > 0 {
				again := r
				again.ID, again.User = q.ID, q.User
				again.Account, again.QOS = s.one()
				x.beside("modified request")
				return engine.Modify(&again), true
			}
		}
	case s.chance(10):
		for one := range x.e.Reservations() { // which is what another try is charged beside
			if one.Request.Task != nil && one.State == berth.Active && len(sharersOf(one.Request)) > 0 && s.chance(50) {
				return engine.Report(one.Request.ID, berth.FailedForGood, "it did"), true
			}
		}
	case s.chance(4):
		site := &x.config.Sites[s.dice.IntN(len(x.config.Sites))]
		p := &site.Pools[s.dice.IntN(len(site.Pools))]
		from := x.now + 10 + berth.Time(s.dice.IntN(100))
		x.beside("maintenance")
		return engine.Down(berth.Outage{Resource: berth.PoolID(site.Name, p.Name), PEs: berth.NewPESet(berth.Run{Hi: berth.PE(p.PEs)}), From: from, Until: from + 20}), true
	}
	return engine.Event{}, false
}

// jump draws by how much the clock jumps.
func (s *sharing) jump(x *flows) berth.Time {
	if !s.chance(3) {
		return 0
	}
	x.beside("clock jump")
	return berth.Time(100 + s.dice.IntN(3000))
}

// beside counts what happens beside a live workflow in an account or with a QOS.
func (x *flows) beside(what string) {
	for _, s := range x.live {
		if s.w.Account != "" || s.w.QOS != "" {
			x.cells["workflow in an account beside "+what]++
			return
		}
	}
}

// ownsOf counts what a holder has.
func (x *flows) ownsOf(h holder) possessed {
	o := possessed{all: x.sharing.bills.charged(h, policy.Always), charge: x.sharing.bills.charged(h, policy.MonthOf(x.now))}
	for r := range x.e.Reservations() {
		if !r.Request.IsJob() && slices.Contains(sharersOf(r.Request), h) {
			o.live++
			o.area += berth.Area(r.Allotments[0].NPE, r.End().Sub(r.Start()))
		}
	}
	return o
}

// chargedAlike compares what a holder is charged with the sums of the engine.
func (x *flows) chargedAlike(h holder, is possessed) {
	if !x.config.Limits.HasBudgets() {
		return
	}
	accounts, qualities, _ := x.e.Limited()
	usage := x.e.AccountUsage(h.account)
	switch {
	case h.qos != "" && slices.Contains(qualities, h.qos):
		usage = x.e.QOSUsage(h.qos)
	case !slices.Contains(accounts, h.account):
		return // which is not counted
	}
	if usage.Charged.All != is.all || usage.Month.All != is.charge {
		x.fatalf("%+v is charged for %d, in this month %d, want %d and %d", h, usage.Charged.All, usage.Month.All, is.all, is.charge)
	}
	if len(x.config.Prices) > 0 && is.all > 0 {
		x.cells["holder of tasks charged at prices"]++
	}
}

// withinLimits says that what tasks of workflows are given anew, or go on with, is within what is allowed to their accounts and
// QOS. What is moved, or runs on at a site that is not managed, is not asked.
func (x *flows) withinLimits(changes []change.Change) {
	s := &x.sharing
	if !s.on {
		return
	}
	added, promised, unasked := false, false, x.hauls.on
	for i := range changes {
		c := &changes[i]
		b := s.bills.live[c.ID]
		of := func() *berth.TaskRef {
			if b == nil {
				return nil
			}
			return b.Request.Task
		}
		switch c.Kind {
		case change.WorkflowPromised:
			promised, added = true, true
		case change.WorkflowRefused:
			if over := c.Refusal.Exceeded; over != nil {
				x.cells["workflow beyond "+over.Limit+" of "+whose(over)]++
				if len(over.Account)+len(over.QOS) > 0 {
					x.cells["workflow beyond "+over.Limit]++
				}
			}
		case change.TaskOver:
			for _, words := range []string{"another try is beyond the limit", "more is beyond the limit"} {
				if strings.Contains(c.Flow.Why, words) {
					x.cells["task: "+words]++
				}
			}
		case change.Accepted:
			added = added || c.Reservation.Request.Task != nil
		case change.Extended:
			added = added || of() != nil
			unasked = unasked || of() == nil
		case change.Moved, change.Resized, change.Vacated:
			unasked = true
		case change.Modified:
			unasked = unasked || of() == nil
		}
		s.bills.note(c)
	}
	for _, h := range []holder{{account: "bio"}, {account: "chem"}, {qos: "low"}, {qos: "high"}} {
		was, is := s.has[h], x.ownsOf(h)
		s.has[h] = is
		x.chargedAlike(h, is)
		if !added || unasked {
			continue
		}
		allowed := x.config.Limits.For(policy.Scope{Account: h.account, QOS: h.qos})
		check := func(name policy.LimitName, was, is int64) {
			most, limited := allowed.Limit(name)
			if !limited {
				return
			}
			if x.cells["task within "+string(name)+" of its holders"]++; is > most && is > was {
				x.fatalf("%+v has %s of %d, allowed are %d; it had %d", h, name, is, most, was)
			}
		}
		check(policy.LimitPESeconds, was.area, is.area)
		check(policy.LimitBudget, was.all, is.all)
		check(policy.LimitMonthBudget, was.charge, is.charge)
		if promised {
			check(policy.LimitActive, int64(was.live), int64(is.live))
		}
	}
}
