package place

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

// Limits of users, asked here whichever way a request came in. What does not depend on
// the place is asked once, by overLimit; what depends on it for each variant in each
// pool, by limited; and those that depend on the time narrow the search: lead bounds the
// start, and share is taken like a stock that each user has in each pool.
// So a later place within the limits is found if there is one.
//
// A promise that loses its place is placed again without being asked: it was admitted
// once. Requests without a user have no limits.

// admission has the admission policies asked about a search from now on.
func (x *search) admission() {
	x.admit = true
	if x.r.User == "" || len(x.Limits) == 0 {
		return
	}
	x.allow(x.Limits.Of(x.r.Role, x.r.User))
	x.over = x.overLimit()
}

func (x *search) allow(a policy.Allowance) {
	lead, limited := a.Limit(policy.LimitLead)
	x.allowed, x.leads = a, limited
	x.latest = x.state.Now().Add(berth.Duration(lead))
}

// overLimit returns the refusal of a limit that does not depend on the place; nil if
// there is none.
func (x *search) overLimit() *berth.Refusal {
	if x.allowed.Unlimited() {
		return nil
	}
	now := x.state.Now()
	var over *berth.Exceeded
	if x.again == nil { // a modification neither holds anew nor adds one
		over = x.overCount()
	}
	if over == nil && !x.r.IsJob() {
		if over = x.allowed.Exceeds(policy.LimitLead, int64(max(x.notBefore, now).Sub(now))); over != nil {
			over.Frees = x.notBefore.Add(-berth.Duration(over.Allowed))
		}
	}
	if over == nil {
		return nil
	}
	return &berth.Refusal{Reason: berth.Quota, Wanted: fewest(x.variants(0)), Exceeded: over}
}

// overCount says which limit a further request exceeds, nil if it exceeds none.
func (x *search) overCount() *berth.Exceeded {
	if over := x.allowed.Exceeds(policy.LimitHold, int64(x.r.Hold)); over != nil {
		return over
	}
	open := x.state.Open(x.r.User)
	if !x.isPending() {
		open++ // it is not among them yet
	}
	if over := x.allowed.Exceeds(policy.LimitReservations, int64(open)); over != nil {
		over.Frees = x.whenOver(open-int(over.Allowed), true)
		return over
	}
	if x.r.IsJob() {
		return nil
	}
	live := x.state.Usage(x.r.User).Reservations + 1
	over := x.allowed.Exceeds(policy.LimitActive, int64(live))
	if over != nil {
		over.Frees = x.whenOver(live-int(over.Allowed), false)
	}
	return over
}

// full reports whether the user may have no further reservation, whatever it is.
func (x *search) full() bool {
	other := *x
	other.allowed = x.allowed.Without(policy.LimitHold).Without(policy.LimitLead)
	return other.overLimit() != nil
}

// isPending reports whether the request is among the pending ones already.
func (x *search) isPending() bool {
	return x.state.Job(x.r.ID) != nil || x.state.Request(x.r.ID) != nil
}

// whenOver returns when n of the user's reservations will be over, 0 if there are
// fewer; jobs that run count too if they are asked for.
func (x *search) whenOver(n int, jobs bool) berth.Time {
	ends := x.ends[:0]
	for _, e := range x.state.Owned(x.r.User) {
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
	if x.allowed.Unlimited() {
		return nil
	}
	over := x.allowed.Exceeds(policy.LimitLength, int64(v.Duration))
	if most, limited := x.allowed.ShareOf(p.config.PEs); over == nil && limited && v.NPE > most && !x.r.IsJob() {
		over = &berth.Exceeded{Limit: string(policy.LimitShare), Allowed: int64(most), Asked: int64(v.NPE)}
	}
	if over == nil && !x.r.IsJob() {
		over = x.overArea(v.Area())
	}
	if over == nil {
		return nil
	}
	return &berth.Refusal{Reason: berth.Quota, Resource: p.id, Wanted: v.NPE, Exceeded: over}
}

// overArea says that the user may not have that many PE-seconds more, nil if they may.
func (x *search) overArea(area int64) *berth.Exceeded {
	has := x.state.Usage(x.r.User).PESeconds
	over := x.allowed.Exceeds(policy.LimitPESeconds, has+area)
	if over == nil || area > over.Allowed {
		return over
	}
	type end struct {
		at    berth.Time
		gives int64
	}
	var ends []end
	for _, e := range x.state.Owned(x.r.User) {
		if e.Request().IsJob() || e == x.again {
			continue
		}
		given := end{at: e.End()}
		for part := range e.Parts() {
			a := e.Part(part)
			given.gives += berth.Area(a.NPE, a.End.Sub(a.Start))
		}
		ends = append(ends, given)
	}
	slices.SortFunc(ends, func(a, b end) int { return int(a.at - b.at) })
	for _, e := range ends {
		if has -= e.gives; has+area <= over.Allowed {
			over.Frees = e.at
			return over
		}
	}
	return over
}

// inTime returns a deadline for a duration that keeps the start within the user's lead.
func (x *search) inTime(deadline berth.Time, d berth.Duration) berth.Time {
	if !x.leads || deadline <= x.latest.Add(d) {
		return deadline
	}
	x.bound = true
	return x.latest.Add(d)
}

// share is how many PEs of a pool are promised to a user over time.
type share struct {
	most  berth.Count
	steps state.Promised
}

// shareIn returns what a user's share of a pool leaves; nil if that is no limit.
func (x *search) shareIn(p *pool) *share {
	most, limited := x.allowed.ShareOf(p.config.PEs)
	if !limited || x.r.IsJob() {
		return nil
	}
	if s := x.placed[p]; s != nil {
		return s
	}
	s := x.used(x.r.User, x.again, p.id, most)
	if x.placed != nil {
		s.steps = slices.Clone(s.steps) // for what is added to it
		x.placed[p] = s
	}
	return s
}

// Peak returns the most PEs of a pool that are promised to a user at any one time.
func (f *Finder) Peak(user string, pool berth.ResourceID) berth.Count {
	return f.used(user, nil, pool, 0).peak(f.state.Now(), berth.Forever)
}

// used returns what is promised to a user in a pool, but for one reservation.
func (f *Finder) used(user string, but *state.Entry, pool berth.ResourceID, most berth.Count) *share {
	s := &share{most: most, steps: f.state.Promised(user, pool)}
	if but == nil || but.Request().IsJob() {
		return s
	}
	for part := range but.Parts() {
		if a := but.Part(part); a.Resource == pool && a.NPE > 0 && a.Start < a.End && but.Holds(part) {
			s.steps = slices.Clone(s.steps).Add(a.Start, a.End, -a.NPE)
		}
	}
	return s
}

// from returns the first start from a time on at which the share leaves n PEs for a
// duration.
func (s *share) from(start berth.Time, n berth.Count, d berth.Duration) berth.Time {
	for i := max(0, s.steps.At(start)); i+1 < len(s.steps) && s.steps[i].At < start.Add(d); i++ { // the last step uses nothing
		if s.steps[i].NPE+n > s.most {
			start = s.steps[i+1].At
		}
	}
	return start
}

// drops returns when less is promised than before, when something may fit that did not.
func (s *share) drops() (times []berth.Time) {
	for i := 1; i < len(s.steps); i++ {
		if s.steps[i].NPE < s.steps[i-1].NPE {
			times = append(times, s.steps[i].At)
		}
	}
	return times
}

// reach is what a share leaves from a start on, until each later time.
type reach struct {
	*share // nil if there is no limit
	start  berth.Time
	first  int
	peaks  []berth.Count // from the first step on, the most so far
}

// begin looks from a start on.
func (r *reach) begin(start berth.Time) {
	if r.share != nil {
		r.start, r.first, r.peaks = start, max(0, r.steps.At(start)), r.peaks[:0]
	}
}

// left returns the most PEs that the share leaves throughout until an end; limited is
// false if there is none. Cost: O(log n), and O(n) in all for the ends behind one start.
func (r *reach) left(end berth.Time) (n berth.Count, limited bool) {
	if r.share == nil {
		return 0, false
	}
	last := r.steps.At(end-1) - r.first
	for i := len(r.peaks); i <= last; i++ {
		most := r.steps[r.first+i].NPE
		if i > 0 {
			most = max(most, r.peaks[i-1])
		}
		r.peaks = append(r.peaks, most)
	}
	if last < 0 {
		return r.most, true
	}
	return r.most - r.peaks[last], true
}

// takesFor returns what a variant, scaled already, would take in a pool beside PEs: the
// stocks, and a part of the user's share.
func (x *search) takesFor(takes []take, s *share, v berth.Variant) []take {
	if s == nil || len(s.steps) == 0 {
		return takes
	}
	return append(slices.Clip(takes), take{share: s, n: v.NPE})
}

// sharedFrom returns the first start from a time on at which the user's shares leave
// room for all of some allotments, which begin together; false if there is none by the
// deadline.
func (x *search) sharedFrom(allotments []berth.Allotment, start berth.Time) (berth.Time, bool) {
	if _, limited := x.allowed.ShareOf(1000); !limited {
		return start, true
	}
	var seen []berth.ResourceID
	for again := true; again; {
		again, seen = false, seen[:0]
		for i := range allotments {
			id := allotments[i].Resource
			if slices.Contains(seen, id) {
				continue
			}
			seen = append(seen, id)
			at, ok := x.shareIn(x.poolOf(id)).together(allotments, id, start)
			if x.bound = x.bound || !ok || at > start; !ok {
				return 0, false
			}
			if at > start {
				start, again = at, true
			}
		}
	}
	return start, lastEnd(allotments).Add(start.Sub(allotments[0].Start)) <= x.deadline
}

// together is from for those allotments that are of one pool.
func (s *share) together(allotments []berth.Allotment, id berth.ResourceID, start berth.Time) (berth.Time, bool) {
	var blocks []berth.Variant // the longest first: in the k-th stretch the first of them are there
	for i := range allotments {
		if a := &allotments[i]; a.Resource == id {
			blocks = append(blocks, berth.Variant{NPE: a.NPE, Duration: a.End.Sub(a.Start)})
		}
	}
	slices.SortFunc(blocks, func(a, b berth.Variant) int { return int(b.Duration - a.Duration) })
	n := berth.Count(0)
	for i := range blocks {
		n += blocks[i].NPE
		blocks[i].NPE = n // needed until the end of this one
	}
	if n > s.most {
		return 0, false
	}
	for again := true; again; {
		again = false
		for i := range blocks {
			if at := s.from(start, blocks[i].NPE, blocks[i].Duration); at > start {
				start, again = at, true
			}
		}
	}
	return start, true
}

// bounded says which limit it was that a request found no room for, if the limits that
// narrow a search did so: it is placed again without them, one after the other.
func (x *search) bounded(t *state.Trial, refusal *berth.Refusal) *berth.Refusal {
	if refusal.Reason != berth.NoCapacity || !x.bound {
		return refusal
	}
	allowed := x.allowed
	for _, without := range [][]policy.LimitName{{policy.LimitLead}, {policy.LimitShare}, {policy.LimitLead, policy.LimitShare}} {
		a := allowed
		for _, name := range without {
			a = a.Without(name)
		}
		if a == allowed {
			continue
		}
		x.allow(a)
		found, no := x.somewhere(t)
		x.allow(allowed)
		if no != nil {
			continue
		}
		id, over := x.leadBeyond(found)
		if without[len(without)-1] == policy.LimitShare {
			id, over = x.shareBeyond(found)
		}
		if over != nil {
			return &berth.Refusal{Reason: berth.Quota, Resource: id, Wanted: refusal.Wanted, Exceeded: over}
		}
	}
	return refusal
}

// leadBeyond says by how much a place is too far ahead, nil if it is not.
func (x *search) leadBeyond(found []berth.Allotment) (berth.ResourceID, *berth.Exceeded) {
	start := found[0].Start
	over := x.allowed.Exceeds(policy.LimitLead, int64(start.Sub(x.state.Now())))
	if over != nil {
		over.Frees = start.Add(-berth.Duration(over.Allowed))
	}
	return found[0].Resource, over
}

// shareBeyond says in which pool a place takes too much beside what the user has, and
// from when on it would not; nil if it does in none.
func (x *search) shareBeyond(found []berth.Allotment) (berth.ResourceID, *berth.Exceeded) {
	for i := range found {
		id := found[i].Resource
		s := x.shareIn(x.poolOf(id))
		if s == nil {
			continue
		}
		if asked := s.beside(found, id); asked > s.most {
			over := &berth.Exceeded{Limit: string(policy.LimitShare), Allowed: int64(s.most), Asked: int64(asked)}
			over.Frees, _ = s.together(found, id, found[0].Start)
			return id, over
		}
	}
	return berth.ResourceID{}, nil
}

// beside returns the most PEs of a pool that are used at once if some allotments, which
// begin together, come to what is used.
func (s *share) beside(allotments []berth.Allotment, id berth.ResourceID) berth.Count {
	most := berth.Count(0)
	at := func(from, to berth.Time, used berth.Count) {
		for i := range allotments {
			if a := &allotments[i]; a.Resource == id && a.Start < to && from < a.End {
				used += a.NPE
			}
		}
		most = max(most, used)
	}
	start, end := allotments[0].Start, lastEnd(allotments)
	at(start, start+1, s.peak(start, start+1))
	for i := range s.steps {
		if from := s.steps[i].At; from > start && from < end {
			at(from, from+1, s.steps[i].NPE)
		}
	}
	return most
}

// peak returns the most PEs that are used at once in an interval.
func (s *share) peak(from, to berth.Time) berth.Count {
	most := berth.Count(0)
	for i := max(0, s.steps.At(from)); i < len(s.steps) && s.steps[i].At < to; i++ {
		most = max(most, s.steps[i].NPE)
	}
	return most
}

// Forbidden returns the refusal of a request or job that has just arrived and that its
// user may not have wherever and whenever it is placed; nil if they may.
func (f *Finder) Forbidden(r *berth.Request) *berth.Refusal {
	if r.User == "" || len(f.Limits) == 0 {
		return nil
	}
	x := f.search(r, nil)
	x.admission()
	x.allowed = x.allowed.Without(policy.LimitActive) // there may be room when it is decided
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
	if x.allowed.Unlimited() {
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

// overExtension returns the refusal of a later end of a reservation that exceeds a limit
// of its user, who is asked for by a role; nil if it exceeds none.
func (f *Finder) overExtension(d *state.Entry, until berth.Time, role string) *berth.Refusal {
	r := *d.Request()
	r.Role = role
	x := f.search(&r, d)
	x.admission()
	a := d.Part(0)
	a.NPE = d.Variant(0).NPE // what it lacks it may have again
	over := x.allowed.Exceeds(policy.LimitLength, int64(until.Sub(a.Start)))
	if over == nil {
		over = x.overArea(berth.Area(a.NPE, until.Sub(a.End)))
	}
	if s := x.shareIn(f.poolOf(a.Resource)); over == nil && s != nil {
		if used := s.peak(max(a.End, f.state.Now()), until) + a.NPE; used > s.most {
			over = &berth.Exceeded{Limit: string(policy.LimitShare), Allowed: int64(s.most), Asked: int64(used)}
		}
	}
	if over == nil {
		return nil
	}
	return &berth.Refusal{Reason: berth.Quota, Resource: a.Resource, Wanted: a.NPE, Exceeded: over}
}
