package service

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/policy"
)

// Used is what the reservations of a user come to that name an account, or none, and start in a month.
type Used struct {
	User, Account string
	Month         policy.Month
	Reservations  int
	NoShows       int   // of those, given up unused
	Charged       int64 // PE-seconds for those that are over, by the rule of budgets
	Held          int64 // of those that are live, as promised
	Given
}

// UsedSince is what was used as far back as the records go.
type UsedSince struct {
	List []Used // by user, account and month
	// Since is when the records begin where older ones were dropped; 0 if they are all there. What was over before does not count.
	Since berth.Time
}

// mostReads is how often records are read anew that are dropped meanwhile. Once is enough where the journal is not compacted again and again.
const mostReads = 5

// Usage returns what reservations come to that start in months from one on and before another, of the principal,
// or, for an operator, of all users: counted from the records of the journal. It returns how many records were looked at too. The error is
// the context's if that has ended, and Unavailable if records that are to be read are not there, however often they were asked for. Cost: O(records that are kept), beside the loop.
func (h *Host) Usage(ctx context.Context, by Principal, from, to policy.Month) (used UsedSince, looked int, err error) {
	for tries := 1; ; tries++ {
		begin := journal.Position{}
		c, drops := h.options.Journal.(journal.Compactor)
		if drops {
			if begin, err = c.Begin(ctx); err != nil {
				return used, looked, err
			}
		}
		u := newUsage(by, from, to)
		if u.config, err = h.configAt(ctx, begin.Number); err != nil {
			return used, looked, err
		}
		n, err := h.usedSince(ctx, u, begin.Number+1)
		looked += n
		if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.NotFound {
			switch {
			case ctx.Err() != nil:
				return used, looked, ctx.Err()
			case drops && tries < mostReads:
				continue // what was to be read next has been dropped meanwhile
			}
			err = berth.Errorf(berth.Unavailable, "journal", "%s; ask again", coded.Msg)
		}
		if begin.Number > 0 {
			used.Since = u.since
		}
		used.List = u.list()
		return used, looked, err
	}
}

// configAt returns the configuration that was in force at a record behind which the journal begins, nil if it begins with the first one.
// Cost: reading the snapshot that is kept there.
func (h *Host) configAt(ctx context.Context, number uint64) (*engine.Config, error) {
	if number == 0 {
		return nil, nil
	}
	snapshot, err := h.options.Journal.Snapshot(ctx, number)
	if err != nil || snapshot.Number != number { // it has been dropped meanwhile, with the records behind it
		return nil, err
	}
	config, err := configIn(snapshot.Data)
	return &config, err
}

// usedSince counts from the records from one on. What was promised before them is known from what is remembered.
func (h *Host) usedSince(ctx context.Context, u *usage, number uint64) (looked int, err error) {
	m, err := h.seen()
	if err != nil {
		return 0, err
	}
	u.known = func(id string) *berth.Reservation {
		if k, is := m.cards.Get(&card{id: id}); is {
			return k.promise
		}
		return nil
	}
	u.shadowed, u.config = h.shadowed, cmp.Or(u.config, m.config)
	u.managed = func(site string) bool { return h.sites[site] != nil }
	var decoder record.Decoder
	for rec, err := range h.options.Journal.Read(ctx, number) {
		if err != nil {
			return looked, err
		}
		if rec.Number > m.number {
			break // what is remembered knows no more
		}
		if looked++; looked == 1 {
			u.since, u.now = rec.At, rec.At
		}
		p, err := parsePast(&rec, &decoder)
		if err != nil {
			return looked, err
		}
		if p.in.config != nil { // what is over is charged at the prices of its time
			u.config = p.in.config
		}
		for i := range p.changes {
			u.note(&p.changes[i])
		}
		u.follow(&p)
	}
	now := h.Now()
	for _, r := range u.running {
		u.ran(r, now)
	}
	u.config = m.config
	m.cards.Scan(func(k *card) bool {
		if k.end != "" || k.promise == nil {
			return true
		}
		f := u.live[k.id]
		if f == nil {
			if f = u.adopt(k.id); f == nil {
				return true
			}
		}
		f.Reservation = *k.promise
		u.count(f, func(x *Used, area int64) { x.Held = addArea(x.Held, area) }, berth.Forever, now)
		return true
	})
	return looked, ctx.Err()
}

// usage counts what was used, change by change.
type usage struct {
	by       Principal
	from, to policy.Month
	now      berth.Time
	since    berth.Time
	known    func(id string) *berth.Reservation // of what was promised before
	shadowed func(*berth.Request) bool
	config   *engine.Config // in force at the time
	managed  func(site string) bool
	live     map[string]*reckoned
	over     map[string]int // parts that have ended, of several
	used     map[Used]*Used // by user, account and month alone
	running  map[taskAt]runs
	done     map[string]counted
	many     int // of these, which are looked through then
}

func newUsage(by Principal, from, to policy.Month) *usage {
	return &usage{
		by: by, from: from, to: to, live: map[string]*reckoned{}, over: map[string]int{}, used: map[Used]*Used{},
		running: map[taskAt]runs{}, done: map[string]counted{}, many: fewCounted,
	}
}

// begin returns a reservation whose records are read from a time on.
func (u *usage) begin(r *berth.Reservation, at berth.Time) *reckoned {
	f := &reckoned{Reservation: r.Clone()}
	f.given = tally{managed: u.managed, id: r.Request.ID, there: map[string]bool{}, at: at}
	f.given.promise(f.Allotments)
	u.live[r.Request.ID] = f
	return f
}

// note takes in a change.
func (u *usage) note(c *change.Change) {
	switch c.Kind {
	case change.Advanced:
		u.now = c.Now
		return
	case change.Accepted:
		u.begin(c.Reservation, u.now)
		return
	}
	r := u.live[c.ID]
	if r == nil {
		if r = u.adopt(c.ID); r == nil {
			return
		}
	}
	r.given.advance(u.now)
	r.given.take(c)
	if c.Kind == change.Moved {
		r.moved++
	}
	until, paid := c.PaidUntil(u.now)
	switch c.Kind {
	case change.Modified, change.Moved, change.Resized:
		if r.Allotments = slices.Clone(c.Moved); c.Request != nil {
			r.Request = c.Request
		}
		if c.Terms != nil {
			r.Terms = *c.Terms
		}
	case change.Extended:
		if r.Allotments[0].End = c.Until; c.Terms != nil {
			r.Terms.Idle = c.Terms.Idle
		}
	case change.Lost, change.Failed, change.Rejected, change.Preempted, change.Requeued:
		u.close(c.ID, u.count(r, func(*Used, int64) {}, 0, u.now))
	case change.Ended:
		if u.over[c.ID]++; u.over[c.ID] < len(r.Allotments) {
			return
		}
		delete(u.over, c.ID)
	}
	if !paid {
		return
	}
	u.close(c.ID, u.count(r, func(x *Used, area int64) {
		if x.Charged = addArea(x.Charged, area); c.Kind == change.NoShow {
			x.NoShows++
		}
	}, until, u.now))
}

// adopt returns a reservation that was promised before the first record, as it was last: what the changes still say of it brings it
// there. It is nil if there is none that is remembered. Its sites count as having had it until the records say otherwise.
func (u *usage) adopt(id string) *reckoned {
	known := u.known(id)
	if known == nil {
		return nil
	}
	r := u.begin(known, u.since)
	for i := range r.Allotments {
		r.given.there[r.Allotments[i].Resource.Site] = true
		if r.Allotments[i].End <= u.since {
			u.over[id]++
		}
	}
	if len(r.Allotments) == 1 {
		delete(u.over, id)
	}
	if start := r.Start(); start < u.since {
		r.given.delivered.Whole = start
	}
	return r
}

// count adds a reservation, with its area until a time and what became of it up to now, and returns where; nil if it is not to be counted.
func (u *usage) count(r *reckoned, add func(x *Used, area int64), until, now berth.Time) *Used {
	m := policy.MonthOf(r.Start())
	if r.Request.IsJob() || m < u.from || m >= u.to || u.shadowed(r.Request) || !u.by.sees(r.Request, r.Allotments, nil) {
		return nil
	}
	key := Used{User: r.Request.User, Account: r.Request.Account, Month: m}
	x := u.used[key]
	if x == nil {
		x = &Used{User: key.User, Account: key.Account, Month: m}
		u.used[key] = x
	}
	charge := u.config.Charge(r.Request, r.Allotments, until)
	if x.Reservations++; charge > 0 {
		charge = addArea(charge, r.ChargedIdle())
	}
	add(x, charge)
	x.add(r.until(now))
	return x
}

// addArea adds PE-seconds that are not negative, with the bound of the sums of the engine, so that none overflows.
func addArea(a, b int64) int64 {
	const most = int64(berth.Endless) - 1
	return min(min(a, most)+min(b, most), most)
}

func (u *usage) list() []Used {
	var list []Used
	for x := range maps.Values(u.used) {
		list = append(list, *x)
	}
	slices.SortFunc(list, func(a, b Used) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Month, b.Month))
	})
	return list
}
