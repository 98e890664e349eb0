package state

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/policy"
)

// mostCharged bounds what a holder is charged for, in PE-seconds: larger sums count as this, so that none overflows however
// often a holder promises itself much. It is below berth.Endless, which is more than every finite area.
const mostCharged = int64(berth.Endless) - 1

// AddCharges adds PE-seconds that are not negative. The sum is less than berth.Endless: what is beyond that counts as the most below.
func AddCharges(a, b int64) int64 { return berth.AddAreas(a, b) }

// charges is the PE-seconds that holders are charged for what is over, by the month in which a reservation starts, and
// of all of them under policy.Always. Nothing is kept of what is 0, and no sum is above mostCharged.
type charges byHolder[map[policy.Month]int64]

func (c charges) add(h Holder, m policy.Month, n int64) {
	if n == 0 {
		return
	}
	of := c[h.kind][h.name]
	if of == nil {
		of = map[policy.Month]int64{}
		c[h.kind][h.name] = of
	}
	of[m] = AddCharges(of[m], n)
}

// debt is a sum of PE-seconds that may be above mostCharged, so that what was added can be taken out again exactly:
// endless times berth.Endless and the rest, which is at least 0 and less than that.
type debt struct{ endless, rest int64 }

// plus returns it with some PE-seconds more or fewer, at most mostCharged of them.
func (d debt) plus(n int64) debt {
	switch d.rest += n; {
	case d.rest < 0:
		d.endless, d.rest = d.endless-1, d.rest+int64(berth.Endless)
	case d.rest >= int64(berth.Endless):
		d.endless, d.rest = d.endless+1, d.rest-int64(berth.Endless)
	}
	return d
}

// charge returns what counts of it.
func (d debt) charge() int64 {
	if d.endless > 0 {
		return mostCharged
	}
	return d.rest
}

// owe adds to what a holder is charged for what starts in a month, or for all.
func (t *tally) owe(m policy.Month, n int64) {
	d := t.owed[m]
	if d == nil {
		if t.owed == nil {
			t.owed = map[policy.Month]*debt{}
		}
		d = new(debt)
		t.owed[m] = d
	}
	if *d = d.plus(n); *d == (debt{}) {
		delete(t.owed, m)
	}
}

// chargeOf returns what a reservation is charged to a holder if its PEs are held until a time: those of its
// parts that count for the holder from their start to that time, or to their end if that is earlier, at their prices, and what
// it was foreseen to leave idle in front of it.
func (l *ledger) chargeOf(h Holder, e *Entry, until berth.Time) (n int64) {
	for i := range e.r.Allotments {
		a := &e.r.Allotments[i]
		if end := min(a.End, until); end > a.Start && l.holding.has(h, e.r.Request, a.Resource) {
			n = AddCharges(n, RateOf(l.holding.sites, l.holding.prices, e.r.Request, a.Resource).Charge(berth.Area(a.NPE, end.Sub(a.Start))))
		}
	}
	if n > 0 {
		n = AddCharges(n, e.r.ChargedIdle())
	}
	return n
}

// ChargeOf returns what a live reservation is charged to one of its holders, as promised.
func (s *State) ChargeOf(h Holder, e *Entry) int64 { return s.ledger.chargeOf(h, e, berth.Forever) }

// bill is what a reservation is charged to its holders if its PEs are held until a time. All are charged for all of it but partitions,
// which are for what they take: so it is worked out once.
type bill struct {
	e     *Entry
	until berth.Time
	month policy.Month // in which it starts
	whole int64
}

// billOf returns the bill of a reservation; nothing is worked out where there are no budgets.
func (l *ledger) billOf(e *Entry, until berth.Time) bill {
	b := bill{e: e, until: until}
	if l.budgets {
		b.month, b.whole = policy.MonthOf(e.Start()), l.chargeOf(OfUser(e.r.Request.User), e, until)
	}
	return b
}

// charged returns what a holder is charged by a bill.
func (l *ledger) charged(h Holder, b *bill) int64 {
	if h.kind == ofPartition {
		return l.chargeOf(h, b.e, b.until)
	}
	return b.whole
}

// owe adds to what a holder is charged for the whole of a live reservation, or takes it out.
func (l *ledger) owe(h Holder, t *tally, b *bill, sign int64) {
	if !l.budgets || h.kind == ofEveryone {
		return
	}
	if n := sign * l.charged(h, b); n != 0 {
		t.owe(policy.Always, n)
		t.owe(b.month, n)
	}
}

// monthsKept is for how many months charges are kept by month: nothing starts in a month that is over, and what
// started then and still runs may be extended.
const monthsKept = 24

// settle charges for a reservation that is about to be over by a change, until when change.Change.PaidUntil says.
// Nothing is charged where there are no budgets, and nothing for jobs.
func (s *State) settle(c *change.Change, e *Entry) {
	l := &s.ledger
	if !l.budgets || e.r.Request.IsJob() || e.vacant {
		return
	}
	until, paid := c.PaidUntil(s.now)
	if !paid || c.Kind == change.Ended && e.running != 1 {
		return
	}
	bill, now := l.billOf(e, until), policy.MonthOf(s.now)
	charge := func(h Holder) {
		n := l.charged(h, &bill)
		s.charged.add(h, policy.Always, n)
		s.charged.add(h, bill.month, n)
		for m := range s.charged[h.kind][h.name] {
			if m < now-monthsKept && m != policy.Always {
				delete(s.charged[h.kind][h.name], m)
			}
		}
	}
	if user := e.r.Request.User; user != "" {
		charge(OfUser(user))
	}
	for _, h := range l.holding.beside(e.r) {
		if h.kind != ofEveryone {
			charge(h)
		}
	}
}

// Charged returns the PE-seconds that a holder is charged for reservations that start in a month from now on, or for all:
// the live ones as promised and those that are over as charged. It is 0 where there are no budgets, and less than berth.Endless.
func (s *State) Charged(h Holder, m policy.Month) int64 {
	return AddCharges(s.Owed(h, m), s.charged[h.kind][h.name][m])
}

// Owed is the part of Charged that is of live reservations.
func (s *State) Owed(h Holder, m policy.Month) int64 {
	if t := s.ledger.has(h); t != nil {
		if d := t.owed[m]; d != nil {
			return d.charge()
		}
	}
	return 0
}

// savedCharge is what a holder, one of the four, was charged for what is over.
type savedCharge struct {
	User, Account, Partition, QOS string
	Month                         policy.Month
	PESeconds                     int64
}

// holder returns whose it is; ok is false if it is not of one holder.
func (c *savedCharge) holder() (h Holder, ok bool) {
	for kind, name := range [...]string{ofUser: c.User, ofAccount: c.Account, ofPartition: c.Partition, ofQOS: c.QOS} {
		if name == "" {
			continue
		}
		if ok {
			return h, false
		}
		h, ok = Holder{holderKind(kind), name}, true
	}
	return h, ok
}

// savedCharges returns the charges by holder and month.
func (s *State) savedCharges() (list []savedCharge) {
	for _, h := range byHolder[map[policy.Month]int64](s.charged).sorted() {
		of := s.charged[h.kind][h.name]
		for _, m := range slices.Sorted(maps.Keys(of)) {
			c := savedCharge{Account: h.Account(), Partition: h.Partition(), QOS: h.QOS(), Month: m, PESeconds: of[m]}
			if h.kind == ofUser {
				c.User = h.name
			}
			list = append(list, c)
		}
	}
	return list
}

// restoreCharges takes over what a snapshot has of them, also where there are no budgets at present.
func (s *State) restoreCharges(list []savedCharge) error {
	for i := range list {
		c := &list[i]
		h, ok := c.holder()
		if !ok || c.PESeconds <= 0 || s.charged[h.kind][h.name][c.Month] != 0 {
			return fmt.Errorf("a charge of %d PE-seconds to %s is not of one holder, not positive or there twice", c.PESeconds, h.text())
		}
		s.charged.add(h, c.Month, c.PESeconds)
	}
	return nil
}

func codeCharge(c *wire.Coder, x *savedCharge) {
	wire.Name(c, 1, &x.User)
	wire.Name(c, 2, &x.Account)
	wire.Name(c, 3, &x.Partition)
	wire.Name(c, 4, &x.QOS)
	wire.Int(c, 5, &x.Month)
	wire.Int(c, 6, &x.PESeconds)
	c.End()
}
