package place

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
)

func sortRunning(running []*state.Entry) {
	slices.SortFunc(running, func(a, b *state.Entry) int {
		return cmp.Or(cmp.Compare(b.Start(), a.Start()), cmp.Compare(b.Sequence(), a.Sequence()))
	})
}

// impossible reports why a part, decided at a time, could not be served even if
// everything were free, testing in the order of berth.Reasons; nil if it could. Of
// several pools the one where the part got furthest is reported, the first of
// equals.
func (x *search) impossible(part int, from berth.Time) *berth.Refusal {
	worst := obstacle{reason: berth.NoSuitableSite, wanted: fewest(x.variants(part))} // if the pool that is asked for does not exist
	for i, first := 0, true; i < len(x.pools); i++ {
		p := &x.pools[i]
		if !x.meant(p) {
			continue
		}
		o := x.obstacle(part, p, from)
		if o.reason == "" {
			return nil
		}
		if first || o.beyond(&worst) {
			worst, first = o, false
		}
	}
	return worst.refusal()
}

// fewest returns the fewest PEs that would do for a part.
func fewest(variants []berth.Variant) berth.Count {
	n := variants[0].NPE
	for _, v := range variants[1:] {
		n = min(n, v.NPE)
	}
	return n
}

// obstacle is why a pool could not serve a part even if everything were free; the
// zero value is that it could.
type obstacle struct {
	reason   berth.Reason
	resource berth.ResourceID
	wanted   berth.Count // the fewest PEs of any variant
	limit    berth.Count
	possible berth.Time // the earliest end, of a deadline that is missed
}

// beyond reports whether a request gets further with an obstacle than with another.
func (o *obstacle) beyond(other *obstacle) bool {
	if o.reason != other.reason {
		return o.reason.Rank() > other.reason.Rank()
	}
	return o.limit > other.limit || o.possible < other.possible
}

// refusal returns the refusal for what is an obstacle.
func (o *obstacle) refusal() *berth.Refusal {
	return &berth.Refusal{Reason: o.reason, Resource: o.resource, Wanted: o.wanted, Limit: o.limit, Possible: o.possible}
}

// obstacle returns the first test that a part, decided at a time, fails in a pool.
// Its duration is tested last, because that is the most expensive test.
func (x *search) obstacle(part int, p *pool, from berth.Time) obstacle {
	variants := x.variants(part)
	eligible := x.widest(part, p)
	suits := func(v berth.Variant) bool { return v.NPE <= eligible && x.suits(p, v) }
	unmet, possible := x.unmet(p), berth.Forever
	if unmet == "" {
		for i := range variants {
			if suits(variants[i]) {
				possible = min(possible, max(x.notBefore, from.Add(x.transferBefore(p))).Add(x.scaled(p, variants[i]).Duration))
			}
		}
		if possible <= x.deadline && possible.Valid() {
			return obstacle{}
		}
	}
	o := obstacle{resource: p.id, wanted: fewest(variants)}
	switch {
	case o.wanted > p.config.PEs:
		o.reason, o.limit = berth.TooLarge, p.config.PEs
	case unmet == berth.NoSuitableSite || !slices.ContainsFunc(variants, suits):
		o.reason, o.limit = berth.NoSuitableSite, eligible
	case unmet != "":
		o.reason = unmet
	default:
		o.reason, o.possible = berth.DeadlineMissed, possible
	}
	return o
}

// unmet returns what a pool does not have that the request requires, by the reason
// to report, or "". A site that has the hardware but not the program gets further
// than one that has neither, and one that has too few licences further still. What
// the sites file leaves unknown is not checked, except accelerators: a node without
// the entry has 0. Present use of licences and storage is not considered. Jobs take no
// stocks, so counted stocks exclude them.
func (x *search) unmet(p *pool) berth.Reason {
	need := &x.r.Requirements
	switch {
	case !x.meant(p), !x.partitioned(p):
		return berth.NoSuitableSite
	case need.RequiresNothing():
		return ""
	case !p.config.Suits(need),
		p.site.StorageMB > 0 && need.StorageMB > p.site.StorageMB,
		x.r.IsJob() && x.state.Storage(p.siteAt).Counted() && need.StorageMB > 0:
		return berth.NoSuitableSite
	case need.Software == "":
		return ""
	}
	switch program := x.program(p.siteAt); {
	case program == noProgram:
		return berth.NoSoftware
	case program == noLicences, x.r.IsJob() && need.Licences > 0 && x.state.Licences(p.siteAt, int(program)).Counted():
		return berth.NoLicence
	}
	return ""
}

// meant reports whether a request may use this pool: it names this pool, or no pool.
func (x *search) meant(p *pool) bool { return x.everyPool || x.addressed(p) }

func (x *search) addressed(p *pool) bool {
	return (len(x.r.Sites) == 0 || slices.Contains(x.r.Sites, p.id.Site)) && (x.r.Site == "" || x.r.Site == p.id.Site) && (x.r.Pool == "" || x.r.Pool == p.id.Name) &&
		(x.only.Name == "" || x.only == p.id)
}

// Countable returns an error if a job needs a stock that is counted in every pool in
// which it could run: the passes for jobs do not consider stocks, so only a request can
// take them.
func (f *Finder) Countable(job *berth.Request) *berth.Error {
	if !job.IsJob() || job.Licences == 0 && job.StorageMB == 0 {
		return nil
	}
	var counted *berth.Error
	promised := *job
	promised.Kind = berth.KindRequest
	asJob, asRequest := f.search(job, nil), f.search(&promised, nil)
	for i := range f.pools {
		switch p := &f.pools[i]; {
		case asJob.unmet(p) == "":
			return nil
		case counted != nil || asRequest.unmet(p) != "":
		case f.state.Storage(p.siteAt).Counted() && job.StorageMB > 0:
			counted = berth.Errorf(berth.Invalid, "storage_mb",
				"%d for an ordinary job, and site %s counts its storage; want 0, or a request with a deadline", job.StorageMB, p.id.Site)
		default:
			counted = berth.Errorf(berth.Invalid, "licences",
				"%d of %s for an ordinary job, and site %s counts them; want 0, or a request with a deadline", job.Licences, job.Software, p.id.Site)
		}
	}
	return counted
}

// Impossible reports why the first part of a request, decided at a time, could not
// be served even if everything were free; nil if it could.
func (f *Finder) Impossible(r *berth.Request, from berth.Time) *berth.Refusal {
	x := f.search(r, nil)
	return x.impossible(0, from)
}

// partition returns the partition of a pool whose limits hold for the request: the one
// that it names, else the site's default. It is nil if there are none, or if the pool
// does not serve the request at all.
func (x *search) partition(p *pool) *berth.Partition {
	if x.r.Partition == "" {
		return p.assumed
	}
	partition, _ := p.site.PartitionOf(p.config.Name, x.r.Partition, false)
	return partition
}

// partitioned reports whether the request may come to a pool by its partition.
func (x *search) partitioned(p *pool) bool {
	if x.r.Partition == "" {
		return p.known || x.r.Pool != ""
	}
	return x.partition(p) != nil
}

// permits reports whether the partition of the request, if any, takes a variant, scaled
// already.
func (x *search) permits(p *pool, v berth.Variant) bool {
	part := x.partition(p)
	return x.partitioned(p) && (part == nil || (part.MaxNPE == 0 || v.NPE <= part.MaxNPE) && (part.MaxDuration == 0 || v.Duration <= part.MaxDuration))
}

// suits is permits for a variant that is not scaled yet.
func (x *search) suits(p *pool, v berth.Variant) bool {
	return x.r.Partition == "" && p.assumed == nil && p.known || x.permits(p, x.scaled(p, v))
}

// eligible returns the PEs of the pool that a part may use: those the part names,
// within those of the request's partition, except those to be avoided.
// Empty is all, unless eligibleCount is 0.
func (x *search) eligible(part int, p *pool) berth.PESet {
	set := x.named(part, p)
	if x.avoid.Empty() || x.pool != p.id {
		return set
	}
	if !x.restricted(part, p) {
		set = berth.NewPESet(berth.Run{Hi: berth.PE(p.config.PEs)})
	}
	return set.Minus(x.avoid)
}

// named returns the PEs that a part and the partition of its request name, of those that
// have what it requires.
func (x *search) named(part int, p *pool) berth.PESet {
	if x.whole(p) {
		return berth.PESet{}
	}
	set, some := x.classed(part, p)
	if allowed, is := x.r.Parts[part].Allowed(p.id); is {
		if some {
			allowed = allowed.And(set)
		}
		set, some = allowed, true
	}
	if partition := x.partition(p); partition != nil && !partition.PEs.Empty() {
		if !some {
			return partition.PEs
		}
		return set.And(partition.PEs)
	}
	return set
}

// restricted reports whether a part may not use all PEs of the pool: it or the partition
// of its request names some, or only some have what it requires. What is left may be
// empty.
func (x *search) restricted(part int, p *pool) bool {
	if x.whole(p) {
		return false
	}
	partition := x.partition(p)
	if _, is := x.r.Parts[part].Allowed(p.id); is || partition != nil && !partition.PEs.Empty() {
		return true
	}
	_, some := x.classed(part, p)
	return some
}

// eligibleCount returns how many PEs of the pool a part may use.
func (x *search) eligibleCount(part int, p *pool) berth.Count {
	switch {
	case !x.restricted(part, p) && (x.avoid.Empty() || x.pool != p.id):
		return p.config.PEs
	case p.config.Binding == berth.Late:
		return 0 // its PEs have no numbers before they start
	}
	return x.eligible(part, p).Below(p.config.PEs)
}

// compareVersions compares two versions by their components between points, so
// that "2.12" is later than "2.9"; a missing component counts as 0, so that it is
// equal to "2.12.0" (spec 5, equation 8).
func compareVersions(a, b string) int {
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if c := compareComponents(x, y); c != 0 {
			return c
		}
	}
	return 0
}

// compareComponents compares components as numbers and texts by turns, beginning
// with a number, which is 0 if it is missing: "R10" is later than "R9", and "1w"
// than "1". A tilde comes before the end of a text: "0~rc1" is before "0".
func compareComponents(x, y string) int {
	for x != "" || y != "" {
		var m, n string
		m, x = cutAt(x, func(c rune) bool { return !digit(c) })
		n, y = cutAt(y, func(c rune) bool { return !digit(c) })
		m, n = strings.TrimLeft(m, "0"), strings.TrimLeft(n, "0")
		if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
			return c
		}
		m, x = cutAt(x, digit)
		n, y = cutAt(y, digit)
		if c := cmp.Compare(sortable(m), sortable(n)); c != 0 {
			return c
		}
	}
	return 0
}

func digit(c rune) bool { return c >= '0' && c <= '9' }

// cutAt cuts a text before the first character that a function wants.
func cutAt(text string, wanted func(rune) bool) (before, after string) {
	if i := strings.IndexFunc(text, wanted); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

func sortable(text string) string { return strings.ReplaceAll(text, "~", "\x00") + "\x01" }
