package state

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// ledger holds the live reservations by id. A reservation that has ended leaves
// it; its history is in the changes.
type ledger struct {
	apart   []*Entry // what is held or active, in no particular order
	live    map[string]*Entry
	of      byHolder[*tally] // of those that have something
	holding holding
	counted []counted // room for holdersOf
	limited bool      // what holders own is kept
	budgets bool      // what they are charged is kept
	shares  bool      // what they are promised over time was asked for
	// recent is of each kind the holder that was written last: one admission looks for the same few again and again.
	recent [holderKinds]struct {
		name string
		has  *tally // nil if it is none
	}
}

// tally is what a holder has: one value, because each admission looks at all of it, for each holder.
type tally struct {
	usage Usage
	owned []*Entry // live reservations and running jobs, in no particular order; none of everyone, nor where there are no limits
	// promised is how many PEs they have over time in pools, of those that were asked for.
	promised map[berth.ResourceID]*Promised
	lately   struct { // the pool of them that was looked for last
		pool berth.ResourceID
		has  *Promised
	}
	// owed is what they are charged for live reservations by the month in which these start, and for all under policy.Always. Nothing
	// is kept of what is 0.
	owed map[policy.Month]*debt
}

// Usage is what the live reservations of a holder come to, as promised. Running jobs are
// no promises.
type Usage struct {
	Reservations int
	PESeconds    int64 // less than berth.Endless: larger sums count as the most below
	area         debt  // the whole sum, so that what was added can be taken out again
}

// Without returns it with some PE-seconds fewer, which are among them.
func (u Usage) Without(area int64) Usage { return u.plus(-area) }

// plus returns it with some PE-seconds more or fewer, of one area.
func (u Usage) plus(area int64) Usage {
	u.area = u.area.plus(area)
	u.PESeconds = u.area.charge()
	return u
}

// Entry is a live reservation, or a running job. It is a handle to look at: its
// methods change nothing. It is valid until the next change of the reservation, and the
// last one until time moves on.
type Entry struct {
	r        *berth.Reservation // it is written by what write returns alone
	running  int32              // parts that still hold PEs
	unbooked int32              // place in the list of flat.unbooked, from 1
	owned    int32              // place in the list of its user
	apart    int32              // place in the list of what is held or active, from 1; 0 if it is neither
	active   int32              // place in the list of what has started in its pool, or of what has several parts, from 1; 0 if it has not started
	vacant   bool               // it has given up its place
	lent     bool               // others have the reservation, which is not written any more
	first    timer              // the start, then the end of the first part
	rare     *rare              // nil until it is needed
	round    uint64             // in which it was touched last
}

func newKept() *berth.Reservation {
	k := new(kept)
	k.Allotments = k.own[:0]
	return &k.Reservation
}

// rare is what few entries need in addition.
type rare struct {
	multi  *multipart // nil until it is needed
	noShow *timer     // nil if there is none
	// places are those in the lists of its holders beside its user, in their order.
	places []int32
	room   [4]int32 // for places
}

// kept is a reservation with room for one allotment: most have no more.
type kept struct {
	berth.Reservation
	own [1]berth.Allotment
}

// multipart is what an entry of several parts needs in addition.
type multipart struct {
	over   []bool  // by part
	timers []timer // the ends of the parts; the first is not used
}

// ID returns the id of the request.
func (e *Entry) ID() string { return e.r.Request.ID }

// Request returns what was asked for. It must not be written.
func (e *Entry) Request() *berth.Request { return e.r.Request }

// State returns the reservation's place in its life.
func (e *Entry) State() berth.State { return e.r.State }

// Sequence returns its place in the order of acceptance.
func (e *Entry) Sequence() uint64 { return e.r.Sequence }

// Generation returns its generation.
func (e *Entry) Generation() uint64 { return e.r.Generation }

// Missing returns how many PEs it lacks of what was promised.
func (e *Entry) Missing() berth.Count { return e.r.Missing }

// CheckedIn reports whether it was used.
func (e *Entry) CheckedIn() bool { return e.r.CheckedIn }

// Start returns the common start of its parts.
func (e *Entry) Start() berth.Time { return e.r.Allotments[0].Start }

// End returns the latest end of its parts.
func (e *Entry) End() berth.Time { return e.r.End() }

// FirstEnd returns the earliest end of its parts.
func (e *Entry) FirstEnd() berth.Time { return firstEnd(e.r.Allotments) }

func firstEnd(allotments []berth.Allotment) berth.Time {
	end := allotments[0].End
	for i := range allotments[1:] {
		end = min(end, allotments[i+1].End)
	}
	return end
}

// Parts returns the number of its parts.
func (e *Entry) Parts() int { return len(e.r.Allotments) }

// Part returns what a part got.
func (e *Entry) Part(i int) berth.Allotment { return e.r.Allotments[i] }

// Holds reports whether a part still holds its PEs.
func (e *Entry) Holds(part int) bool {
	return e.running > 0 && !e.vacant && (e.rare == nil || e.rare.multi == nil || !e.rare.multi.over[part])
}

// Vacant reports whether it has given up its place and has no other yet.
func (e *Entry) Vacant() bool { return e.vacant }

// Deadline returns the end of its window.
func (e *Entry) Deadline() berth.Time { return e.r.Terms.Deadline }

// Extended returns how much longer than its variant it lasts.
func (e *Entry) Extended() berth.Duration { return e.r.Terms.Extended }

// Variant returns what a part was promised, in standard seconds.
func (e *Entry) Variant(part int) berth.Variant { return e.r.Terms.Variants[part] }

// ChargedIdle returns what it was foreseen to leave idle, and is charged for.
func (e *Entry) ChargedIdle() int64 { return e.r.ChargedIdle() }

// Terms returns a copy of what was promised.
func (e *Entry) Terms() berth.Terms {
	terms := e.r.Terms
	terms.Variants = slices.Clone(terms.Variants)
	return terms
}

// Stocks yields what it takes beside PEs.
func (e *Entry) Stocks() iter.Seq[berth.Allotment] { return slices.Values(e.r.Stocks) }

// Transfers yields when its data are moved.
func (e *Entry) Transfers() iter.Seq[berth.Transfer] { return slices.Values(e.r.Transfers) }

// OnlyPEs reports whether it takes nothing but PEs: no licences or storage, and no data are moved.
func (e *Entry) OnlyPEs() bool { return len(e.r.Stocks) == 0 && len(e.r.Transfers) == 0 }

// Moving reports whether data of it have still to be moved.
func (e *Entry) Moving(now berth.Time) bool {
	return slices.ContainsFunc(e.r.Transfers, func(t berth.Transfer) bool { return t.End > now })
}

// At reports whether a part is at a site.
func (e *Entry) At(site string) bool {
	for i := range e.r.Allotments {
		if e.r.Allotments[i].Resource.Site == site {
			return true
		}
	}
	return false
}

// Reservation returns a copy of it.
func (e *Entry) Reservation() berth.Reservation { return e.r.Clone() }

// Look returns it as it is. It must not be written, and holds until the next change.
func (e *Entry) Look() *berth.Reservation { return e.r }

// Promise returns it as it is, for good: it is not written any more, neither here nor by those who have it.
func (e *Entry) Promise() *berth.Reservation {
	if r := e.r; !e.lent && len(r.Terms.Variants) == 1 && len(r.Request.Parts) == 1 {
		list := r.Request.Parts[0].Variants
		if i := slices.Index(list, r.Terms.Variants[0]); i >= 0 { // that of the request needs no more memory
			r.Terms.Variants = list[i : i+1 : i+1]
		}
	}
	e.lent = true
	return e.r
}

// write returns its reservation to be written: a copy if others have it. What pointed into it points to theirs then.
func (e *Entry) write() *berth.Reservation {
	if e.lent {
		was := e.r
		e.r, e.lent = nil, false
		e.copy(was)
	}
	return e.r
}

// copy gives it a reservation of its own, equal to that one, in the memory of the one before.
func (e *Entry) copy(r *berth.Reservation) {
	if e.r == nil {
		e.r = newKept()
	}
	own := append(e.r.Allotments[:0], r.Allotments...)
	*e.r = *r
	e.r.Allotments = own
}

// timer returns the timer of a part; that of the first part is also the one of
// the start.
func (e *Entry) timer(part int) *timer {
	if part == 0 {
		return &e.first
	}
	return &e.several().timers[part]
}

// addition returns what few entries need, to be written.
func (e *Entry) addition() *rare {
	if e.rare == nil {
		e.rare = new(rare)
	}
	return e.rare
}

// several returns what an entry of several parts needs in addition.
func (e *Entry) several() *multipart {
	x := e.addition()
	if x.multi == nil {
		x.multi = &multipart{over: make([]bool, len(e.r.Allotments)), timers: make([]timer, len(e.r.Allotments))}
	}
	return x.multi
}

// allot gives it allotments of its own, equal to those.
func (e *Entry) allot(to []berth.Allotment) {
	r := e.write()
	r.Allotments = append(r.Allotments[:0], to...)
}

func newLedger(config *Config) ledger {
	l := ledger{
		live: map[string]*Entry{}, of: newByHolder[*tally](), holding: newHolding(config),
		limited: config.Limited, budgets: config.Budgets,
	}
	if l.holding.everyone {
		l.of[ofEveryone][""] = &tally{}
	}
	return l
}

// has returns what a holder has, nil if that is nothing.
func (l *ledger) has(h Holder) *tally {
	if last := &l.recent[h.kind]; last.has != nil && last.name == h.name {
		return last.has
	}
	return l.of[h.kind][h.name]
}

// tally returns what a holder has, to be written: it is made for one who has nothing.
func (l *ledger) tally(h Holder) *tally {
	t := l.has(h)
	if t == nil {
		t = &tally{}
		l.of[h.kind][h.name] = t
	}
	l.recent[h.kind].name, l.recent[h.kind].has = h.name, t
	return t
}

// counted is a holder for whom something is counted, with what they have.
type counted struct {
	of  Holder
	has *tally // nil for a user without a name
}

// holdersOf returns the holders for whom a reservation is counted, its user first, of whom each change writes all: they are looked for once.
// There are none of jobs where there are no limits. It is valid until it is called again.
func (l *ledger) holdersOf(e *Entry) []counted {
	list := l.counted[:0]
	if l.limited || !e.r.Request.IsJob() {
		user := counted{of: OfUser(e.r.Request.User)}
		if user.of.name != "" {
			user.has = l.tally(user.of)
		}
		list = append(list, user)
		for _, h := range l.holding.beside(e.r) {
			list = append(list, counted{h, l.tally(h)})
		}
	}
	l.counted = list
	return list
}

// tidy forgets a holder who has nothing. Everyone is never forgotten: they own no list, and what is promised to them counts also
// while the only reservation is left out of their usage to be placed again.
func (l *ledger) tidy(h Holder, t *tally) {
	if h.kind != ofEveryone && t.usage.Reservations == 0 && len(t.owned) == 0 {
		delete(l.of[h.kind], h.name)
		l.recent[h.kind].has = nil
	}
}

// owners returns the holders that own something, in order.
func (l *ledger) owners() []Holder {
	return slices.DeleteFunc(l.of.sorted(), func(h Holder) bool { return len(l.of[h.kind][h.name].owned) == 0 })
}

// add enters an entry, which has its reservation.
func (l *ledger) add(e *Entry) {
	r := e.r
	e.running = int32(len(r.Allotments))
	l.live[r.Request.ID] = e
	l.count(e, 1)
	if user := r.Request.User; l.limited && user != "" {
		t := l.tally(OfUser(user))
		e.owned = int32(len(t.owned))
		t.owned = append(t.owned, e)
	}
}

// setApart enters an entry in the list of what is held or active if it is, else it takes it out.
func (l *ledger) setApart(e *Entry) {
	switch is := e.r.State == berth.Held || e.r.State == berth.Active; {
	case is && e.apart == 0:
		l.apart = append(l.apart, e)
		e.apart = int32(len(l.apart))
	case !is:
		l.joinRest(e)
	}
}

// joinRest takes an entry out of the list of what is held or active, if it is there.
func (l *ledger) joinRest(e *Entry) {
	if e.apart == 0 {
		return
	}
	last := len(l.apart) - 1
	moved := l.apart[last]
	l.apart[e.apart-1], moved.apart = moved, e.apart
	l.apart[last], e.apart = nil, 0
	l.apart = l.apart[:last]
}

// forget drops a reservation that holds nothing; of one that is vacant the holders are not asked for.
func (l *ledger) forget(e *Entry, holders []counted) {
	delete(l.live, e.ID())
	l.joinRest(e)
	if !e.vacant {
		l.enlist(e, holders, -1)
	}
	if user := OfUser(e.r.Request.User); l.limited && user.name != "" {
		l.disown(&counted{user, l.has(user)}, int(e.owned))
	}
}

// disown takes what is at a place out of the list of a holder.
func (l *ledger) disown(by *counted, at int) {
	h, t := by.of, by.has
	list := t.owned
	last := len(list) - 1
	moved := list[last]
	if list[at] = moved; h == OfUser(moved.r.Request.User) {
		moved.owned = int32(at)
	} else {
		var room [8]Holder // the list of beside is being gone through
		moved.rare.places[slices.Index(l.holding.appendBeside(room[:0], moved.r), h)] = int32(at)
	}
	list[last] = nil
	t.owned = list[:last]
	l.tidy(h, t)
}

// enlist enters a reservation or running job in the lists of its owner, account, QOS and partitions,
// or takes it out. Cost: O(these).
func (l *ledger) enlist(e *Entry, holders []counted, sign int) {
	if !l.limited {
		return
	}
	if sign > 0 && len(holders) > 1 {
		x := e.addition()
		x.places = x.room[:0]
	}
	for i := range holders[1:] {
		h := &holders[1+i]
		switch t := h.has; {
		case h.of.kind == ofEveryone: // whose list is live
			if sign > 0 {
				e.rare.places = append(e.rare.places, 0)
			}
		case sign > 0:
			e.rare.places = append(e.rare.places, int32(len(t.owned)))
			t.owned = append(t.owned, e)
		default:
			l.disown(h, int(e.rare.places[i]))
		}
	}
}

// dropPart ends one part's hold; with the last one the reservation leaves.
func (l *ledger) dropPart(e *Entry, part int) {
	holders := l.holdersOf(e)
	l.hold(e, holders, part, -1)
	if e.running--; e.running == 0 {
		l.forget(e, holders)
		l.useBy(e, holders, -1)
		return
	}
	e.several().over[part] = true
}

// use adds a reservation to the usage of its holders, or takes it out.
func (l *ledger) use(e *Entry, sign int64) { l.useBy(e, l.holdersOf(e), sign) }

// useBy is use by its holders.
func (l *ledger) useBy(e *Entry, holders []counted, sign int64) {
	if e.r.Request.IsJob() {
		return
	}
	bill := l.billOf(e, berth.Forever)
	for i := range holders {
		if holders[i].has != nil {
			l.useOf(holders[i].of, holders[i].has, e, &bill, sign)
		}
	}
}

func (l *ledger) useOf(h Holder, t *tally, e *Entry, bill *bill, sign int64) {
	t.usage.Reservations += int(sign)
	for i := range e.r.Allotments {
		if a := &e.r.Allotments[i]; l.holding.has(h, e.r.Request, a.Resource) {
			t.usage = t.usage.plus(sign * berth.Area(a.NPE, a.End.Sub(a.Start)))
		}
	}
	l.owe(h, t, bill, sign)
	l.tidy(h, t)
}

// inOrder returns the live reservations by sequence.
func (l *ledger) inOrder() []*Entry {
	type place struct {
		sequence uint64
		entry    *Entry
	}
	order := make([]place, 0, len(l.live)) // to sort without looking at the entries
	for _, e := range l.live {
		order = append(order, place{e.r.Sequence, e})
	}
	slices.SortFunc(order, func(a, b place) int { return cmp.Compare(a.sequence, b.sequence) })
	entries := make([]*Entry, len(order))
	for i := range order {
		entries[i] = order[i].entry
	}
	return entries
}

// Entry returns the live reservation or running job of that id, nil if there is
// none.
func (s *State) Entry(id string) *Entry { return s.ledger.live[id] }

// Entries returns the live reservations and running jobs by sequence. Cost:
// O(n log n).
func (s *State) Entries() []*Entry { return s.ledger.inOrder() }

// Select returns the live reservations and running jobs that are wanted, by
// sequence. Cost: O(n) for n that are live, and sorting what is wanted.
func (s *State) Select(wanted func(*Entry) bool) []*Entry {
	var list []*Entry
	for _, e := range s.ledger.live {
		if wanted(e) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *Entry) int { return cmp.Compare(a.r.Sequence, b.r.Sequence) })
	return list
}

// Active returns the reservations that have started and the running jobs that are wanted, by
// sequence. Cost: O(n) for n that are held or active, and sorting what is wanted.
func (s *State) Active(wanted func(*Entry) bool) []*Entry {
	var list []*Entry
	for _, e := range s.ledger.apart {
		if e.r.State == berth.Active && wanted(e) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *Entry) int { return cmp.Compare(a.r.Sequence, b.r.Sequence) })
	return list
}

// Loads returns how many parts of live reservations and running jobs run in each pool, and how many wait for their
// start, in the order of the configuration. Cost: O(n) for n that are held or active.
func (s *State) Loads() (running, waiting []int) {
	running, waiting = make([]int, len(s.pools)), make([]int, len(s.pools))
	for i := range s.pools {
		waiting[i] = s.pools[i].parts
	}
	for _, e := range s.ledger.apart {
		for part := range e.r.Allotments {
			if e.r.State != berth.Active {
				break
			}
			i, _ := s.Index(e.r.Allotments[part].Resource)
			waiting[i]--
			if e.Holds(part) {
				running[i]++
			}
		}
	}
	return running, waiting
}

// Soon returns the reservations and running jobs that have started or start until a time, which must not be
// past, and that are wanted, in no particular order. Cost: O(n) for n that are held, active or due.
func (s *State) Soon(until berth.Time, wanted func(*Entry) bool) []*Entry {
	return s.soon(s.timers.until(until), func(e *Entry) bool { return e.Start() <= until && wanted(e) })
}

// Within is Soon for those alone that end after another time, from. Cost: O(n) for n that are held or active, or overlap that
// time and the longest reservation before it, a few hours more at either end.
func (s *State) Within(from, until berth.Time, wanted func(*Entry) bool) []*Entry {
	due := s.timers.until(until)
	if low := from.Add(-s.timers.reach); low > s.now {
		due = s.timers.between(low, until)
	}
	return s.soon(due, func(e *Entry) bool { return e.End() > from && e.Start() <= until && wanted(e) })
}

// soon returns what is wanted of what is held or active, or waits for a timer. What is neither held nor active waits for
// its start, or for its PEs to get names before.
func (s *State) soon(due iter.Seq[*timer], wanted func(*Entry) bool) []*Entry {
	var list []*Entry
	for _, e := range s.ledger.apart {
		if wanted(e) {
			list = append(list, e)
		}
	}
	for t := range due {
		if e := t.entry; e != nil && e.apart == 0 && wanted(e) {
			list = append(list, e)
		}
	}
	return list
}

// Live returns how many requests, jobs and reservations are pending or live.
func (s *State) Live() int { return len(s.ledger.live) + s.backlog.Len() + s.queue.len() }

// Usage returns what the live reservations of a holder come to; nothing of an account, a QOS or a
// partition without limits.
func (s *State) Usage(h Holder) Usage {
	if t := s.ledger.has(h); t != nil {
		return t.usage
	}
	return Usage{}
}

// Owned returns the live reservations and running jobs of a holder, in no particular
// order. The list must not be written. It is empty where there are no limits.
func (s *State) Owned(h Holder) []*Entry {
	if t := s.ledger.has(h); t != nil {
		return t.owned
	}
	return nil
}

// Counts returns how many requests, jobs and reservations of a holder are not over, as Open does, and how many live reservations are among them.
func (s *State) Counts(h Holder) (open, live int) {
	if t := s.ledger.has(h); t != nil {
		open, live = len(t.owned), t.usage.Reservations
	}
	return open + s.queue.pendingOf(h), live
}

// Open returns how many requests, jobs and reservations of a user, an account or a QOS are not
// over; 0 where there are no limits.
func (s *State) Open(h Holder) int {
	return len(s.Owned(h)) + s.queue.pendingOf(h)
}

// Accounts returns the accounts with limits that have something which is not over, in order.
func (s *State) Accounts() []string { return s.withSomething(ofAccount) }

// Qualities returns the QOS with limits that have something which is not over, in order.
func (s *State) Qualities() []string { return s.withSomething(ofQOS) }

func (s *State) withSomething(kind holderKind) []string {
	of := s.ledger.of[kind]
	owners := slices.DeleteFunc(slices.Sorted(maps.Keys(of)), func(name string) bool { return len(of[name].owned) == 0 })
	names := slices.Concat(owners, slices.Sorted(maps.Keys(s.queue.waiting.of[kind])))
	if r := s.queue.lone.Request; r != nil && s.ledger.limited {
		for _, h := range s.ledger.holding.named(r, nil) {
			if h.kind == kind {
				names = append(names, h.name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Holds reports whether an entry is one of a holder.
func (s *State) Holds(h Holder, e *Entry) bool {
	switch h.kind {
	case ofUser:
		return e.r.Request.User == h.name || e.r.Request.Owner == h.name
	case ofAccount:
		return e.r.Request.Account == h.name
	case ofQOS:
		return e.r.Request.QOS == h.name
	case ofEveryone:
		return true
	}
	for part := range e.r.Allotments {
		if s.Has(h, e, part) {
			return true
		}
	}
	return false
}

// Has reports whether a part of an entry counts for one of its holders.
func (s *State) Has(h Holder, e *Entry, part int) bool {
	return s.ledger.holding.has(h, e.r.Request, e.r.Allotments[part].Resource)
}

// ByStart orders reservations by their starts, equals by acceptance.
func ByStart(a, b *Entry) int {
	return cmp.Or(cmp.Compare(a.Start(), b.Start()), cmp.Compare(a.r.Sequence, b.r.Sequence))
}

// Degraded returns the live reservations that lack PEs, by start.
func (s *State) Degraded() []*Entry {
	if len(s.degraded) == 0 {
		return nil
	}
	list := make([]*Entry, 0, len(s.degraded))
	for _, e := range s.degraded {
		list = append(list, e)
	}
	slices.SortFunc(list, ByStart)
	return list
}

// Visit shows every live reservation and running job, in no particular order: what
// is done with them must not depend on it.
func (s *State) Visit(visit func(*Entry)) {
	for _, e := range s.ledger.live {
		visit(e)
	}
}
