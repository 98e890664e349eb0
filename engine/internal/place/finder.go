package place

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/workflow"
)

// Staging says what becomes of PEs while data are on their way.
type Staging uint8

// The modes.
const (
	NoStaging Staging = iota // data are not considered
	Before                   // PEs are promised from when the data have arrived
	Hold                     // PEs are held from the beginning of the transfer
)

// Rules say how places are chosen.
type Rules struct {
	Sites     []berth.Site
	Match     policy.Match
	Placement policy.Placement
	Choice    policy.Choice
	Horizon   calendar.Horizon
	Explain   bool // a refusal for want of room says how many PEs were free
	Eager     *policy.Eager
	Ahead     policy.Ahead
	Limits    policy.Limits
	Prices    policy.Prices
	Staging   Staging
	Preempt   bool          // running jobs are no obstacle
	Draws     stream.Stream // of the match
}

// Finder finds places on a state.
type Finder struct {
	Rules
	state    *state.State
	compare  policy.Comparer // nil if the first pool with room is taken
	pools    []pool
	placeOf  []int32 // by the index of a pool in the state, its place in pools
	programs programs
	// partitions are those that have limits of their own, by their names.
	partitions []string
	known      map[policy.Scope]policy.Allowance // of allowedTo
	askers     map[asker][]allowance             // of allowances
	asked      asker                             // the last of them
	answer     []allowance                       // to it

	candidates []policy.Candidate // scratch space of ranked
	searched   search             // scratch space of Place
	ends       []berth.Time       // scratch space of whenOver
	taken      []take             // scratch space of bestVariant
	within     shares             // likewise
	rooms      []*workflow.Room   // memory for planning, see room
	lent       int                // of these
}

// pool is what the configuration says of a pool.
type pool struct {
	index  int // in the state
	id     berth.ResourceID
	site   *berth.Site
	siteAt int // place of the site in the configuration
	config *berth.Pool
	// uniform says that it has no classes and no partition is assumed.
	uniform bool
	// assumed is the partition of requests that name none; known is false if the site
	// has a default partition and this pool is none of its.
	assumed *berth.Partition
	known   bool
}

// NewFinder returns a finder for a state of the same sites.
func NewFinder(rules Rules, s *state.State) *Finder {
	f := &Finder{Rules: rules, state: s, programs: newPrograms(rules.Sites), partitions: limitedPartitions(&rules)}
	f.compare, _ = rules.Match.(policy.Comparer)
	for i := range rules.Sites {
		site := &rules.Sites[i]
		for k := range site.Pools {
			id := berth.PoolID(site.Name, site.Pools[k].Name)
			index, known := s.Index(id)
			if !known {
				panic("engine: a pool that the state does not have")
			}
			p := pool{index: index, id: id, site: site, siteAt: i, config: &site.Pools[k]}
			p.assumed, p.known = site.PartitionOf(id.Name, "", false)
			p.uniform = p.assumed == nil && len(p.config.Classes) == 0
			f.placeOf = append(f.placeOf, make([]int32, max(0, index+1-len(f.placeOf)))...)
			f.placeOf[index] = int32(len(f.pools))
			f.pools = append(f.pools, p)
		}
	}
	return f
}

// Want says what to place and what to consider.
type Want struct {
	// Request is what to place; nil for the promise Again by its terms.
	Request *berth.Request
	// Again is the promise that is modified or gets another place: what it holds
	// counts as free, and data on their way to it need not be moved again. nil for
	// a new one.
	Again *state.Entry
	// Admit says that the admission policies are asked.
	Admit bool
	// Avoid is PEs of Pool that must not be used.
	Pool  berth.ResourceID
	Avoid berth.PESet
	// Beside is vacated reservations that keep what is left of their places and stocks
	// while Again gets its place, which may be one of them and keeps nothing.
	Beside []*state.Entry
	// Overdue allows a place after the window, in the same pool.
	Overdue bool
}

// Place is where a request fits, with everything that it takes there.
type Place struct {
	Allotments []berth.Allotment
	Terms      berth.Terms
	Stocks     []berth.Allotment
	Transfers  []berth.Transfer
}

// Place finds a place for all parts of a request, or returns the reason against it. A new
// or modified request is placed by the rules of admission: a single part where the
// match and the placement choose, several parts at their earliest common start. A
// promise that is placed again is placed nearest to what was promised: on the same
// PEs at the same start if they are free, else at the same start, else at the
// earliest start in its window; with its variants, and with others of its request
// only where those fit nowhere. The state is as it was afterwards.
func (f *Finder) Place(w Want) (Place, *berth.Refusal) {
	t := f.state.Try()
	defer t.Close()
	f.clear(t, w.Again)
	if w.Request == nil {
		return f.replace(t, &w)
	}
	f.searched = f.search(w.Request, w.Again)
	x := &f.searched
	if w.Admit {
		x.admission()
	}
	allotments, refusal := x.find(t)
	if refusal != nil {
		return Place{}, refusal
	}
	return x.complete(t, allotments), nil
}

// clear releases what may be displaced: the promise that is placed again and, where
// jobs yield, running jobs.
func (f *Finder) clear(t *state.Trial, again *state.Entry) {
	if again != nil {
		t.Release(again)
	}
	if f.Preempt {
		for _, j := range f.RunningJobs() {
			t.Release(j)
		}
	}
}

// replace finds another place for a promise.
func (f *Finder) replace(t *state.Trial, w *Want) (Place, *berth.Refusal) {
	d := w.Again
	x := f.search(d.Request(), d)
	x.pool, x.avoid = w.Pool, w.Avoid
	x.deadline, x.extended, x.pinned = d.Deadline(), d.Extended(), d.Terms().Variants
	if w.Overdue { // a promise that is delayed does not begin before its time
		x.notBefore = d.Start()
	}
	beside := f.beside(t, w)
	allotments, refusal := x.nearest(t)
	for refusal == nil && beside.inTheWay(allotments) {
		allotments, refusal = x.nearest(t)
	}
	if refusal == nil {
		return x.complete(t, allotments), nil
	}
	if x.extended == 0 && moldable(d.Request()) {
		beside.keepAll()
		other := x
		other.pinned = nil
		if found, no := other.possibly(t); no == nil {
			return other.complete(t, found), nil
		}
	}
	if !w.Overdue {
		return Place{}, refusal
	}
	beside.keepAll()
	for _, npe := range []berth.Count{d.Variant(0).NPE, d.Part(0).NPE} { // all that is owed, else as much as it had
		if npe == 0 {
			continue
		}
		late := x
		late.deadline, late.only, late.everyPool = berth.TimeLimit-1, d.Part(0).Resource, false
		late.pinned = []berth.Variant{{NPE: npe, Duration: d.Variant(0).Duration}}
		if found, no := late.nearest(t); no == nil {
			place := late.complete(t, found)
			place.Terms = d.Terms()
			place.Terms.Deadline = max(place.Terms.Deadline, lastEnd(found))
			return place, nil
		}
	}
	return Place{}, refusal
}

func moldable(r *berth.Request) bool {
	for i := range r.Parts {
		if len(r.Parts[i].Variants) > 1 {
			return true
		}
	}
	return false
}

// search is one request that is being placed.
type search struct {
	*Finder
	r         *berth.Request
	again     *state.Entry
	anywhere  bool // the request names no PEs, partition or features
	everyPool bool // the request names no site or pool, nor is there an only one
	admit     bool
	uses      []int32          // programs that the request takes, by site; nil until one is asked for
	pool      berth.ResourceID // the pool of the PEs to avoid
	avoid     berth.PESet
	only      berth.ResourceID // the only pool that will do, if it has a name
	notBefore berth.Time
	deadline  berth.Time
	extended  berth.Duration   // by how much it lasts longer than its variant
	pinned    []berth.Variant  // of each part, if they are fixed
	allowed   []allowance      // to the holders that have limits; it is not written
	bound     bool             // a limit has narrowed the search
	looked    bool             // pending is known
	pending   bool             // the request is among the pending ones
	vacant    []*state.Entry   // have left their places, and are charged as they were
	placed    map[inPool]share // with what was placed before and is on no record; nil is what is promised
	over      *berth.Refusal   // of a limit that does not depend on the place
	rated     *pool            // what rate is of; nil until one is asked for
	rate      policy.Rate      // what the request is charged there
	// Of classes of PEs:
	way         int           // of those in which the constraints can be met
	constraints []constrained // of each part; nil until they are needed
	suiting     suiting
}

func (f *Finder) search(r *berth.Request, again *state.Entry) search {
	return search{
		Finder: f, r: r, again: again, notBefore: r.Ready, deadline: r.Deadline, anywhere: anywhere(r),
		everyPool: r.Site == "" && r.Pool == "" && len(r.Sites) == 0,
	}
}

// anywhere reports whether a request names no PEs, partition or features.
func anywhere(r *berth.Request) bool {
	for i := range r.Parts {
		if p := &r.Parts[i]; len(p.Only) > 0 || len(p.Never) > 0 || p.Constraint != "" || !p.Eligible.Empty() {
			return false
		}
	}
	return r.Partition == "" && r.Constraint == ""
}

// whole reports whether all PEs of a pool will do for a request if any do, which is so of most.
func (x *search) whole(p *pool) bool {
	return x.anywhere && (p.uniform || p.assumed == nil && x.r.MemoryMB <= 0 && x.r.Accelerators <= 0)
}

// variants returns the shapes that a part may take.
func (x *search) variants(part int) []berth.Variant {
	if x.pinned != nil {
		return x.pinned[part : part+1]
	}
	return x.r.Parts[part].Variants
}

// view returns the calendar of a pool as it is now, with what is tried.
func (f *Finder) view(p *pool) state.View {
	if t := f.state.Trying(); t != nil {
		return t.View(p.index)
	}
	return f.state.View(p.index)
}

// scaled returns a variant with its duration on a pool: its run at the speed of the
// pool, by how much it was extended, and its transfer where PEs are held meanwhile.
func (x *search) scaled(p *pool, v berth.Variant) berth.Variant {
	v.Duration = min(p.config.SpeedFor(&x.r.Requirements).Scale(v.Duration)+x.extended, berth.TimeLimit)
	if x.staging() == Hold {
		v.Duration = min(v.Duration+x.transferTime(p), berth.TimeLimit)
	}
	return v
}

// find places a request by the rules of admission.
func (x *search) find(t *state.Trial) ([]berth.Allotment, *berth.Refusal) {
	allotments, refusal := x.possibly(t)
	if refusal != nil {
		return nil, x.bounded(t, refusal)
	}
	return allotments, nil
}

// possibly is find whose refusal does not say which limit it was that left no room.
func (x *search) possibly(t *state.Trial) ([]berth.Allotment, *berth.Refusal) {
	for part := range x.r.Parts {
		if refusal := x.impossible(part, x.state.Now()); refusal != nil {
			return nil, refusal
		}
	}
	return x.somewhere(t)
}

// somewhere places a request that is not impossible.
func (x *search) somewhere(t *state.Trial) ([]berth.Allotment, *berth.Refusal) {
	if len(x.r.Parts) > 1 {
		return x.coallocate(t)
	}
	o, refusal := x.matched()
	if refusal != nil {
		return nil, refusal
	}
	return []berth.Allotment{o.allotment()}, nil
}

// matched asks the pools that could serve a part in the order of the match. Each is
// asked for admission, then for room. Of the refusals the most informative is
// reported, the one that got furthest in the order of berth.Reasons, the first of
// equals.
func (x *search) matched() (best offer, refusal *berth.Refusal) {
	for _, candidate := range x.ranked(0) {
		p := &x.pools[candidate.Index]
		o, denied := x.bestVariant(p)
		if denied == nil && x.compare == nil {
			return o, nil
		}
		if denied == nil {
			if best.pool == nil || x.compare.Better(o.fit, best.fit) {
				best = o
			}
			continue
		}
		if refusal == nil || denied.Reason.Rank() > refusal.Reason.Rank() || closer(denied, refusal) {
			refusal = denied
		}
		if denied.Reason == berth.PolicyRefused && x.Eager.RefuseAll {
			break
		}
	}
	if best.pool != nil {
		return best, nil
	}
	return best, refusal
}

// closer reports whether refusal a came closer to a place than b, of the same reason.
func closer(a, b *berth.Refusal) bool {
	return a.Reason == b.Reason && a.Nearest != nil && b.Nearest != nil && a.Nearest.NPE > b.Nearest.NPE
}

// ranked returns the pools that could serve a part, in the order of the match.
func (x *search) ranked(part int) []policy.Candidate {
	candidates := x.candidates[:0]
	for i := range x.pools {
		p := &x.pools[i]
		if o := x.obstacle(part, p, x.state.Now()); o.reason == "" {
			candidates = append(candidates, policy.Candidate{Index: i, PEs: p.config.PEs, Speed: p.config.SpeedFor(&x.r.Requirements)})
		}
	}
	x.candidates = candidates
	if len(candidates) > 1 {
		x.Match.Rank(candidates, x.draw)
	}
	return candidates
}

// drawsPerDecision is how many random numbers one decision may draw: more than
// any sites file has pools.
const drawsPerDecision = 1 << 20

// draw returns the i-th random number of the present decision.
func (f *Finder) draw(i int) uint64 {
	return f.Draws.Uint64(f.state.Decided()*drawsPerDecision + uint64(i))
}

// offer is a fit of a variant in a pool.
type offer struct {
	pool    *pool
	variant berth.Variant // its duration is that in the pool
	fit     calendar.Fit
}

func (o *offer) allotment() berth.Allotment {
	return berth.Allotment{
		Resource: o.pool.id, Start: o.fit.Start, End: o.fit.End, NPE: o.variant.NPE, PEs: o.fit.PEs,
	}
}

// bestVariant returns the best fit of the only part in a pool over the variants
// that are admitted there, or the reason against it.
func (x *search) bestVariant(p *pool) (best offer, refusal *berth.Refusal) {
	view := x.view(p)
	takes := x.takes(p)
	x.within = x.appendShares(x.within[:0], p)
	var denied *berth.Refusal
	admitted := false
	for x.way = range x.ways(0) {
		eligible := x.eligibleCount(0, p)
		for _, v := range policy.Undominated(x.admitted(p, eligible, &denied)) {
			v = x.scaled(p, v)
			if v.NPE > eligible || !x.permits(p, v) {
				continue
			}
			admitted = true
			q := x.query(0, v, p)
			fit, ok := view.Find(q, x.Placement)
			x.taken = x.takesFor(p, append(x.taken[:0], takes...), x.within, v)
			fit, ok = x.withStocks(view, x.taken, q, fit, ok)
			if ok && (best.pool == nil || x.Choice.Better(v, fit, best.variant, best.fit)) {
				best = offer{pool: p, variant: v, fit: fit}
			}
		}
	}
	switch {
	case best.pool != nil:
		return best, nil
	case !admitted && denied != nil:
		return best, denied
	}
	return best, x.noCapacity(0, p)
}

// admitted returns the variants of the only part that are admitted in a pool. denied is
// set to the refusal of the narrowest variant that is not.
func (x *search) admitted(p *pool, eligible berth.Count, denied **berth.Refusal) []berth.Variant {
	variants := x.variants(0)
	if !x.admit || x.Eager == nil && len(x.allowed) == 0 {
		return variants
	}
	var list []berth.Variant
	for i, v := range variants {
		on := x.scaled(p, v)
		if on.NPE > eligible || !x.permits(p, on) {
			continue
		}
		no := x.denies(p, on)
		if no == nil {
			if len(list) == i { // a part of the request is no copy of it
				list = variants[: i+1 : i+1]
				continue
			}
			list = append(list, v)
		} else if *denied == nil || no.Wanted < (*denied).Wanted {
			*denied = no
		}
	}
	return list
}

// query returns the query for a variant, scaled already, in what is left of the window.
func (x *search) query(part int, v berth.Variant, p *pool) calendar.Query {
	return calendar.Query{
		Now: x.state.Now(), Ready: max(x.notBefore, x.arrival(p)), Deadline: x.inTime(p, x.deadline, v.Duration),
		Duration: v.Duration, NPE: v.NPE, Eligible: x.eligible(part, p), Horizon: x.Horizon,
	}
}

func lastEnd(allotments []berth.Allotment) berth.Time {
	end := allotments[0].End
	for i := range allotments[1:] {
		end = max(end, allotments[i+1].End)
	}
	return end
}

// noCapacity is the refusal of a part that has no room in a pool beside other bookings.
// If a licence, storage or the uplink is short, it names that stock and its size. With
// Explain it names the most PEs that are free for the duration of the narrowest
// variant.
func (x *search) noCapacity(part int, p *pool) *berth.Refusal {
	x.widest(part, p)
	narrowest := x.narrowest(part, p)
	refusal := &berth.Refusal{Reason: berth.NoCapacity, Resource: p.id, Wanted: narrowest.NPE}
	if t := x.scarce(p, x.query(part, narrowest, p)); t != nil {
		refusal.Resource, refusal.Wanted, refusal.Limit = t.stock.ID(), t.n, t.stock.View().Size()
		return refusal
	}
	if x.Explain {
		free, start := x.view(p).MostFree(x.query(part, narrowest, p))
		refusal.Nearest = &berth.Nearest{NPE: free, Duration: narrowest.Duration, Start: start}
	}
	return refusal
}

// narrowest returns the variant of the fewest PEs that is short enough for the
// window, the shortest of equals, scaled to the pool.
func (x *search) narrowest(part int, p *pool) berth.Variant {
	var best berth.Variant
	for _, v := range x.variants(part) {
		v = x.scaled(p, v)
		fits := x.permits(p, v) && max(x.notBefore, x.state.Now().Add(x.transferBefore(p))).Add(v.Duration) <= x.deadline
		if fits && (best.NPE == 0 || v.NPE < best.NPE || (v.NPE == best.NPE && v.Duration < best.Duration)) {
			best = v
		}
	}
	return best
}

// denies asks the admission policies about a variant, scaled already, in a pool, in
// the order of berth.Reasons; nil admits it.
func (x *search) denies(p *pool, v berth.Variant) *berth.Refusal {
	if !x.admit {
		return nil
	}
	if x.Eager != nil && !x.eager(p, v) {
		return &berth.Refusal{Reason: berth.PolicyRefused, Resource: p.id, Wanted: v.NPE, Limit: p.config.PEs}
	}
	if x.over != nil {
		over := *x.over
		over.Resource, over.Wanted = p.id, v.NPE
		return &over
	}
	return x.limited(p, v)
}

// eager is the filter C of the waiting-time paper, with T = ω+β the time that is
// left until the deadline.
func (x *search) eager(p *pool, v berth.Variant) bool {
	filter := x.Eager
	if filter.Wide(v.NPE, p.config.PEs) {
		return true
	}
	ahead := berth.Interval{Start: x.state.Now(), End: x.deadline}
	if !filter.Grid {
		return filter.Idle(x.view(p).Booked(ahead), berth.Area(p.config.PEs, ahead.Length()))
	}
	var booked, total int64
	for i := range x.pools {
		other := &x.pools[i]
		booked += x.view(other).Booked(ahead)
		total += berth.Area(other.config.PEs, ahead.Length())
	}
	return filter.Idle(booked, total)
}

// RunningJobs returns the jobs that run and are not over now, those that started
// last first.
func (f *Finder) RunningJobs() []*state.Entry {
	running := f.state.Active(func(e *state.Entry) bool { return e.Request().IsJob() && e.End() > f.state.Now() })
	sortRunning(running)
	return running
}
