package place

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

// Limits of users, accounts, QOS and partitions, asked here whichever way a request came in. What
// does not depend on the place is asked once, by overLimit; what depends on it for each variant
// in each pool, by limited; and those that depend on the time narrow the search: lead bounds the
// start, and share is taken like a stock that each holder has in each pool.
// So a later place within the limits is found if there is one.
//
// A request keeps to what is allowed to its user, to the owner of that, to its account, to its QOS and, in each pool, to the
// partition that takes it there. A promise that loses its place is placed again without being
// asked: it was admitted once.

// allowance is what is allowed to a holder of a request.
type allowance struct {
	of state.Holder
	policy.Allowance
	ahead []policy.AheadRow // of everyone, for who asks
	owner string            // whom it is allowed to, if that is the owner of who asks
}

// limits reports whether anything is limited.
func (f *Finder) limits() bool { return len(f.Limits) > 0 || len(f.Ahead) > 0 }

// exceeds is Exceeds with the holder that is limited.
func (a *allowance) exceeds(at policy.LimitIndex, asked int64) *berth.Exceeded {
	if value, limited := a.By(at); !limited || asked <= value {
		return nil
	}
	return a.over(at, asked)
}

// over is exceeds of a limit that is exceeded.
func (a *allowance) over(at policy.LimitIndex, asked int64) *berth.Exceeded {
	over := a.Exceeds(at, asked)
	a.names(over)
	return over
}

// names says whose limit is exceeded.
func (a *allowance) names(over *berth.Exceeded) {
	over.Owner, over.Account, over.QOS, over.Partition = a.owner, a.of.Account(), a.of.QOS(), a.of.Partition()
}

// LimitedPartitions returns the names of the partitions that have limits.
func (f *Finder) LimitedPartitions() []string { return slices.Clone(f.partitions) }

// limitedPartitions returns the names of the partitions that have limits: of those that sites
// have, where each of them does.
func limitedPartitions(rules *Rules) []string {
	names := rules.Limits.Partitions()
	if !slices.Contains(names, policy.Every) {
		return names
	}
	for i := range rules.Sites {
		for k := range rules.Sites[i].Partitions {
			if name := rules.Sites[i].Partitions[k].Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == policy.Every })
}

// maxKnown bounds how many allowances are remembered, and how many lists of them.
const maxKnown = 4096

// allowedTo returns what the table allows to a scope. It is remembered, since the whole table is looked through for it: for each holder of each
// request that was most of what limits cost. Cost: O(1), the first time O(rows).
func (f *Finder) allowedTo(of policy.Scope) policy.Allowance {
	if a, known := f.known[of]; known {
		return a
	}
	if f.known == nil || len(f.known) >= maxKnown {
		f.known = map[policy.Scope]policy.Allowance{}
	}
	a := f.Limits.For(of)
	f.known[of] = a
	return a
}

// asker is what the allowances of a request depend on.
type asker struct {
	role, user, owner, account, qos, partition string
	job                                        bool
}

// allowances returns what is allowed to the holders of a request that have limits: to
// its user, its owner, its account, its QOS, and the partitions that it may come to. The list is remembered and must not be
// written. Cost: O(1), the first time O(rows, and partitions with limits times pools).
func (f *Finder) allowances(r *berth.Request) []allowance {
	by := asker{role: r.Role, user: r.User, owner: r.Owner, account: r.Account, qos: r.QOS, job: r.IsJob()}
	if len(f.partitions) > 0 {
		by.partition = r.Partition
	}
	if len(f.Ahead) > 0 && !by.job { // what is allowed ahead goes by the user's priority, which changes
		return f.allowancesNow(r)
	}
	if f.askers != nil && f.asked == by {
		return f.answer
	}
	list, known := f.askers[by]
	if !known {
		if f.askers == nil || len(f.askers) >= maxKnown {
			f.askers = map[asker][]allowance{}
		}
		list = f.allowancesNow(r)
		f.askers[by] = list
	}
	f.asked, f.answer = by, list
	return list
}

// allowancesNow is allowances, looked up in the table.
func (f *Finder) allowancesNow(r *berth.Request) []allowance {
	var list []allowance
	add := func(of state.Holder, a policy.Allowance) {
		if !a.Unlimited() {
			list = append(list, allowance{of: of, Allowance: a})
		}
	}
	if r.User != "" {
		add(state.OfUser(r.User), f.allowedTo(policy.Scope{Role: r.Role, User: r.User}))
	}
	if r.Owner != "" {
		if a := f.allowedTo(policy.Scope{Role: r.Role, User: r.Owner}); !a.Unlimited() {
			list = append(list, allowance{of: state.OfUser(r.Owner), Allowance: a, owner: r.Owner})
		}
	}
	if r.Account != "" {
		add(state.OfAccount(r.Account), f.allowedTo(policy.Scope{Role: r.Role, Account: r.Account}))
	}
	if r.QOS != "" {
		add(state.OfQOS(r.QOS), f.allowedTo(policy.Scope{Role: r.Role, QOS: r.QOS}))
	}
	if len(f.Ahead) > 0 && !r.IsJob() {
		if rows := f.Ahead.For(f.state.PriorityOf(r.User)); len(rows) > 0 {
			list = append(list, allowance{of: state.Everyone(), ahead: rows})
		}
	}
	for _, name := range f.partitions {
		if r.Partition == name || r.Partition == "" && slices.ContainsFunc(f.pools, func(p pool) bool { return p.assumed != nil && p.assumed.Name == name }) {
			add(state.OfPartition(name), f.allowedTo(policy.Scope{Role: r.Role, Partition: name}))
		}
	}
	return list
}

// without is some allowances without some of their limits.
func without(list []allowance, names ...policy.LimitIndex) []allowance {
	less := slices.Clone(list)
	for i := range less {
		for _, name := range names {
			if less[i].Allowance = less[i].Without(name); name == policy.ByShare {
				less[i].ahead = nil
			}
		}
	}
	return less
}

// admission has the admission policies asked about a search from now on.
func (x *search) admission() {
	x.admit = true
	if !x.limits() {
		return
	}
	x.allowed = x.allowances(x.r)
	x.over = x.overLimit()
}

// in reports whether an allowance counts in a pool: that of a partition does where the
// partition takes the request, and that of an account or a QOS if the request names it.
func (x *search) in(p *pool, a *allowance) bool {
	if !a.of.NamedBy(x.r) {
		return false // it is that of another task
	}
	name := a.of.Partition()
	if name == "" {
		return true
	}
	partition := x.partition(p)
	return partition != nil && partition.Name == name
}

// overLimit returns the refusal of a limit that does not depend on the place; nil if
// there is none.
func (x *search) overLimit() *berth.Refusal {
	for i := range x.allowed {
		if a := &x.allowed[i]; a.of.Partition() == "" {
			if over := x.overNow(a); over != nil {
				return &berth.Refusal{Reason: berth.Quota, Wanted: fewest(x.variants(0)), Exceeded: over}
			}
		}
	}
	return nil
}

// overNow says which limit a request exceeds at a holder whatever it takes there, nil if it
// exceeds none.
func (x *search) overNow(a *allowance) *berth.Exceeded {
	if over := x.overCount(a); over != nil || x.r.IsJob() {
		return over
	}
	now := x.state.Now()
	over := a.exceeds(policy.ByLead, int64(max(x.notBefore, now).Sub(now)))
	if over != nil {
		over.Frees = x.notBefore.Add(-berth.Duration(over.Allowed))
	}
	return over
}

// overCount says which limit a further request exceeds at a holder, nil if it exceeds none. A
// modification holds nothing anew, and adds one only to a holder that did not have it.
func (x *search) overCount(a *allowance) *berth.Exceeded {
	if x.again != nil && x.state.Holds(a.of, x.again) {
		return nil
	}
	if over := a.exceeds(policy.ByHold, int64(x.r.Hold)); over != nil && x.again == nil {
		return over
	}
	open, live := x.state.Counts(a.of)
	if !x.isPending() {
		open++ // it is not among them yet
	}
	if over := a.exceeds(policy.ByReservations, int64(open)); over != nil {
		over.Frees = x.whenOver(a.of, open-int(over.Allowed), true)
		return over
	}
	if x.r.IsJob() {
		return nil
	}
	live++
	if over := a.exceeds(policy.ByActive, int64(live)); over != nil {
		over.Frees = x.whenOver(a.of, live-int(over.Allowed), false)
		return over
	}
	return x.overNoShow(a)
}

// overNoShow says that too much of a holder has gone unused, nil if it has not.
func (f *Finder) overNoShow(a *allowance) *berth.Exceeded {
	if _, limited := a.By(policy.ByNoShow); !limited {
		return nil
	}
	unused := f.state.Unused(a.of)
	over := a.exceeds(policy.ByNoShow, int64(len(unused)))
	if over != nil {
		over.Frees = unused[len(unused)-1-int(over.Allowed)].Add(policy.NoShowWindow)
	}
	return over
}

// full reports whether the user, the account or the QOS may have no further reservation, whatever it
// is.
func (x *search) full() bool {
	other := *x
	other.allowed = without(x.allowed, policy.ByHold, policy.ByLead)
	return other.overLimit() != nil
}

// isPending reports whether the request is among the pending ones already.
func (x *search) isPending() bool {
	if !x.looked { // for each of its holders it is asked for again
		x.looked, x.pending = true, x.state.Job(x.r.ID) != nil || x.state.Request(x.r.ID) != nil
	}
	return x.pending
}

// whenOver returns when n of the holder's reservations will be over, 0 if there are
// fewer; jobs that run count too if they are asked for.
func (x *search) whenOver(of state.Holder, n int, jobs bool) berth.Time {
	ends := x.ends[:0]
	for _, e := range x.state.Owned(of) {
		if jobs || !e.Request().IsJob() {
			ends = append(ends, e.End())
		}
	}
	x.ends = ends
	if n < 1 || n > len(ends) {
		return 0
	}
	return nth(ends, n-1)
}

// nth returns what stands at a place in order, and leaves the times in another order:
// Hoare's selection, since each part of an array that is refused asks for it. Cost: O(n)
// on average.
func nth(times []berth.Time, at int) berth.Time {
	for lo, hi := 0, len(times)-1; lo < hi; {
		pivot, i, j := times[lo+(hi-lo)/2], lo, hi
		for i <= j {
			for times[i] < pivot {
				i++
			}
			for times[j] > pivot {
				j--
			}
			if i <= j {
				times[i], times[j] = times[j], times[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case at <= j:
			hi = j
		case at >= i:
			lo = i
		default:
			return times[at]
		}
	}
	return times[at]
}

// limited returns the refusal of a limit that a variant, scaled already, exceeds in a
// pool whenever it starts; nil if it exceeds none.
func (x *search) limited(p *pool, v berth.Variant) *berth.Refusal {
	for i := range x.allowed {
		a := &x.allowed[i]
		if !x.in(p, a) {
			continue
		}
		if over := x.overIn(p, a, v); over != nil {
			return &berth.Refusal{Reason: berth.Quota, Resource: p.id, Wanted: v.NPE, Exceeded: over}
		}
	}
	return nil
}

// overIn says which limit of a holder that counts in a pool a variant exceeds there.
func (x *search) overIn(p *pool, a *allowance, v berth.Variant) *berth.Exceeded {
	if a.of.Partition() != "" {
		if over := x.overNow(a); over != nil {
			return over
		}
	}
	if over := a.exceeds(policy.ByLength, int64(v.Duration)); over != nil || x.r.IsJob() {
		return over
	}
	if most, limited := x.shareOf(p, a); limited && v.NPE > most {
		return x.exceedsShare(a, most, v.NPE, x.state.Now())
	}
	if over := x.overArea(a, v.Area()); over != nil {
		return over
	}
	if !a.HasBudget() {
		return nil
	}
	return x.overBudget(a, x.price(p, v.Area()))
}

// exceedsShare says that some PEs are more than a share at a time. Where less may be promised the further ahead it is, part of
// both is what may not be promised then, and there will be more by the time at which that is no longer so far ahead.
func (x *search) exceedsShare(a *allowance, most, asked berth.Count, at berth.Time) *berth.Exceeded {
	if len(a.ahead) > 0 {
		row := a.ahead[0]
		for _, next := range a.ahead {
			if next.Beyond <= at.Sub(x.state.Now()) {
				row = next
			}
		}
		now := row.Of(most)
		return &berth.Exceeded{Limit: string(policy.LimitAhead), Allowed: int64(now), Asked: int64(asked - (most - now)), Frees: at.Add(-row.Beyond)}
	}
	over := &berth.Exceeded{Limit: string(policy.LimitShare), Allowed: int64(most), Asked: int64(asked)}
	a.names(over)
	return over
}

// overArea says that a holder may not have that many PE-seconds more, nil if it may.
func (x *search) overArea(a *allowance, area int64) *berth.Exceeded {
	if _, limited := a.By(policy.ByPESeconds); !limited {
		return nil
	}
	has := x.state.Usage(a.of)
	over := a.exceeds(policy.ByPESeconds, berth.AddAreas(has.PESeconds, area))
	if over == nil || area > over.Allowed {
		return over
	}
	ends := slices.DeleteFunc(slices.Clone(x.state.Owned(a.of)), func(e *state.Entry) bool {
		return e.Request().IsJob() || e == x.again || e.Vacant()
	})
	slices.SortFunc(ends, func(a, b *state.Entry) int { return cmp.Compare(a.End(), b.End()) })
	for _, e := range ends {
		for part := range e.Parts() {
			if held := e.Part(part); x.state.Has(a.of, e, part) {
				has = has.Without(berth.Area(held.NPE, held.End.Sub(held.Start)))
			}
		}
		if has.PESeconds+area <= over.Allowed {
			over.Frees = e.End()
			return over
		}
	}
	return over
}

// latest returns the last start in a pool within the leads of the request's holders; limited
// is false if there is none.
func (x *search) latest(p *pool) (last berth.Time, limited bool) {
	for i := range x.allowed {
		a := &x.allowed[i]
		lead, leads := a.By(policy.ByLead)
		if !leads || !x.in(p, a) {
			continue
		}
		if until := x.state.Now().Add(berth.Duration(lead)); !limited || until < last {
			last, limited = until, true
		}
	}
	return last, limited
}

// inTime returns a deadline for a duration in a pool that keeps the start within the lead.
func (x *search) inTime(p *pool, deadline berth.Time, d berth.Duration) berth.Time {
	latest, limited := x.latest(p)
	if !limited || deadline <= latest.Add(d) {
		return deadline
	}
	x.bound = true
	return latest.Add(d)
}

// narrowings are the limits that narrow a search, in the order in which it is tried without them.
var narrowings = [][]policy.LimitIndex{
	{policy.ByLead},
	{policy.ByShare},
	{policy.ByLead, policy.ByShare},
	{policy.ByMonthBudget},
	{policy.ByLead, policy.ByMonthBudget},
	{policy.ByShare, policy.ByMonthBudget},
	{policy.ByLead, policy.ByShare, policy.ByMonthBudget},
}

// beyond says how a place is beyond a limit that narrows a search, nil if it is not.
func (x *search) beyond(name policy.LimitIndex, found []berth.Allotment) (berth.ResourceID, *berth.Exceeded) {
	switch name {
	case policy.ByShare:
		return x.shareBeyond(found)
	case policy.ByMonthBudget:
		return x.monthBeyond(found)
	}
	return x.leadBeyond(found)
}

// bounded says which limit it was that a request found no room for, if the limits that
// narrow a search did so: it is placed again without them, one after the other.
func (x *search) bounded(t *state.Trial, refusal *berth.Refusal) *berth.Refusal {
	if refusal.Reason != berth.NoCapacity || !x.bound {
		return refusal
	}
	allowed := x.allowed
	for _, names := range narrowings {
		less := without(allowed, names...)
		if slices.EqualFunc(less, allowed, func(a, b allowance) bool { return a.Allowance == b.Allowance && len(a.ahead) == len(b.ahead) }) {
			continue
		}
		x.allowed = less
		found, no := x.somewhere(t)
		x.allowed = allowed
		if no != nil {
			continue
		}
		for _, name := range slices.Backward(names) {
			if id, over := x.beyond(name, found); over != nil {
				return &berth.Refusal{Reason: berth.Quota, Resource: id, Wanted: refusal.Wanted, Exceeded: over}
			}
		}
	}
	return refusal
}

// leadBeyond says by how much a place is too far ahead, nil if it is not.
func (x *search) leadBeyond(found []berth.Allotment) (id berth.ResourceID, over *berth.Exceeded) {
	for k := range found {
		p, start := x.poolOf(found[k].Resource), found[k].Start
		for i := range x.allowed {
			a := &x.allowed[i]
			if !x.in(p, a) {
				continue
			}
			one := a.exceeds(policy.ByLead, int64(start.Sub(x.state.Now())))
			if one != nil && (over == nil || one.Allowed < over.Allowed) {
				id, over = p.id, one
				over.Frees = start.Add(-berth.Duration(over.Allowed))
			}
		}
	}
	return id, over
}

// shareBeyond says in which pool a place takes too much beside what a holder has, and
// from when on it would not; nil if it does in none.
func (x *search) shareBeyond(found []berth.Allotment) (berth.ResourceID, *berth.Exceeded) {
	for i := range found {
		id := found[i].Resource
		p := x.poolOf(id)
		for a, s := range x.shared(p) {
			if asked, at := s.beside(found, id); asked > s.most {
				over := x.exceedsShare(a, s.most, asked, at)
				if len(a.ahead) == 0 {
					over.Frees, _ = x.sharesIn(p).together(found, id, found[0].Start)
				}
				return id, over
			}
		}
	}
	return berth.ResourceID{}, nil
}

// Forbidden returns the refusal of a request or job that has just arrived and that its
// user, account or QOS may not have wherever and whenever it is placed; nil if they may.
func (f *Finder) Forbidden(r *berth.Request) *berth.Refusal {
	if !f.limits() {
		return nil
	}
	x := f.search(r, nil)
	x.admission()
	x.allowed = without(x.allowed, policy.ByActive) // there may be room when it is decided
	refusal := x.overLimit()
	if refusal == nil && r.IsJob() {
		refusal = x.longJob()
	}
	if refusal == nil {
		return nil
	}
	for part := range r.Parts {
		if no := x.impossible(part, f.state.Now()); no != nil {
			return no
		}
	}
	return refusal
}

// longJob returns the refusal of a job that would run too long in a pool that it may
// run in: which of them it will be is not known before it starts.
func (x *search) longJob() *berth.Refusal {
	if len(x.allowed) == 0 {
		return nil
	}
	for i := range x.pools {
		p := &x.pools[i]
		if x.obstacle(0, p, x.state.Now()).reason != "" {
			continue
		}
		if refusal := x.limited(p, x.scaled(p, x.variants(0)[0])); refusal != nil {
			return refusal
		}
	}
	return nil
}

// OverLonger says which limit of its holders a task exceeds that goes on until a later time, as an extension would, nil if it exceeds none. Those
// that make way for it leave their shares, and are charged as ever.
func (f *Finder) OverLonger(d *state.Entry, until berth.Time, yielding []*state.Entry) *berth.Exceeded {
	if !f.limits() {
		return nil
	}
	if no := f.overExtension(d, until, d.Request().Role, yielding); no != nil {
		return no.Exceeded
	}
	return nil
}

// overExtension returns the refusal of a later end of a reservation that exceeds a limit
// of one of its holders, asked for by a role; nil if it exceeds none. Those that yield to it leave their shares.
func (f *Finder) overExtension(d *state.Entry, until berth.Time, role string, yielding []*state.Entry) *berth.Refusal {
	r := *d.Request()
	r.Role = role
	x := f.search(&r, d)
	x.admission()
	held := d.Part(0)
	held.NPE = d.Variant(0).NPE // what it lacks it may have again
	p := f.poolOf(held.Resource)
	for i := range x.allowed {
		a := &x.allowed[i]
		if !x.in(p, a) {
			continue
		}
		over := a.exceeds(policy.ByLength, int64(until.Sub(held.Start)))
		if over == nil {
			over = x.overArea(a, berth.Area(held.NPE, until.Sub(held.End)))
		}
		if over == nil && !r.IsJob() {
			over = x.overLonger(a, d, x.price(p, berth.Area(held.NPE, until.Sub(held.Start)))-x.price(p, berth.Area(held.NPE, held.End.Sub(held.Start))))
		}
		if most, limited := x.shareOf(p, a); over == nil && limited && !r.IsJob() {
			from := max(held.End, f.state.Now())
			if len(a.ahead) > 0 {
				from = max(from, f.state.Now().Add(a.ahead[0].Beyond))
			}
			s := x.shareBy(p, a, most)
			for _, other := range yielding {
				s = f.without(s, a.of, other, p.id)
			}
			if used, at := s.peakAt(from, until); used+held.NPE > most && from < until {
				over = x.exceedsShare(a, most, used+held.NPE, at)
			}
		}
		if over != nil {
			return &berth.Refusal{Reason: berth.Quota, Resource: held.Resource, Wanted: held.NPE, Exceeded: over}
		}
	}
	return nil
}
