package engine

import (
	"cmp"
	"strings"

	"github.com/berth-hpc/berth"
)

// lacks returns what a resource does not have that the request requires, by the
// reason to report, or "". A site that has the hardware but not the program gets
// further than one that has neither, and one that lacks only licences further
// still. What the sites file leaves unknown is not checked, except accelerators,
// which nobody has who does not say so. What others use of licences and storage
// is not looked at; jobs, which take none, are not let near what is counted.
func (res *resource) lacks(r *berth.Request) berth.Reason {
	need, node := &r.Requirements, &res.pool.Node
	switch {
	case !res.meant(r):
		return berth.NoSuitableSite
	case *need == (berth.Requirements{}):
		return ""
	case need.Partition != "" && res.partition(need.Partition) == nil,
		node.MemoryMB > 0 && need.MemoryMB > node.MemoryMB,
		res.site.StorageMB > 0 && need.StorageMB > res.site.StorageMB,
		need.Accelerators > node.Accelerators,
		r.IsJob() && res.storage != nil && need.StorageMB > 0:
		return berth.NoSuitableSite
	case need.Software == "":
		return ""
	}
	switch program := res.state.programs.at(res.place, r); {
	case program == noProgram:
		return berth.NoSoftware
	case program == noLicences, r.IsJob() && need.Licences > 0 && res.licences[program] != nil:
		return berth.NoLicence
	}
	return ""
}

// meant reports whether a request leaves the choice of a resource open or means
// this one.
func (res *resource) meant(r *berth.Request) bool {
	return (r.Site == "" || r.Site == res.id.Site) && (r.Pool == "" || r.Pool == res.id.Name)
}

// counted reports what of a job's wishes is counted wherever else it could run:
// the passes for jobs do not look at stocks, so those who want to take of one have
// to ask for a promise.
func (e *Engine) counted(job *berth.Request) *berth.Error {
	if !job.IsJob() || job.Licences == 0 && job.StorageMB == 0 {
		return nil
	}
	var counted *berth.Error
	promised := *job
	promised.Kind = berth.KindRequest
	for i := range e.state.resources {
		switch res := &e.state.resources[i]; {
		case res.lacks(job) == "":
			return nil
		case counted != nil || res.lacks(&promised) != "":
		case res.storage != nil && job.StorageMB > 0:
			counted = berth.Errorf(berth.Invalid, "storage_mb",
				"%d for an ordinary job, and site %s counts its storage; want 0, or a request with a deadline", job.StorageMB, res.id.Site)
		default:
			counted = berth.Errorf(berth.Invalid, "licences",
				"%d of %s for an ordinary job, and site %s counts them; want 0, or a request with a deadline", job.Licences, job.Software, res.id.Site)
		}
	}
	return counted
}

// program returns the index of the program of a site that a request uses;
// negative if it uses none.
func (res *resource) program(r *berth.Request) int {
	if r.Software == "" {
		return noProgram
	}
	return int(res.state.programs.at(res.place, r))
}

// partition returns the resource's partition of that name, or nil.
func (res *resource) partition(name string) *berth.Partition {
	if name == "" {
		return nil
	}
	for i := range res.site.Partitions {
		if p := &res.site.Partitions[i]; p.Name == name && p.Pool == res.pool.Name {
			return p
		}
	}
	return nil
}

// permits reports whether the partition that the request names, if any, takes a
// variant, scaled already.
func (res *resource) permits(r *berth.Request, v berth.Variant) bool {
	if r.Partition == "" {
		return true
	}
	p := res.partition(r.Partition)
	return p != nil && (p.MaxNPE == 0 || v.NPE <= p.MaxNPE) && (p.MaxDuration == 0 || v.Duration <= p.MaxDuration)
}

// suits reports the same of a variant that is not scaled yet.
func (res *resource) suits(r *berth.Request, v berth.Variant) bool {
	return r.Partition == "" || res.permits(r, res.lasts(r, v))
}

// eligible returns the PEs of the resource that a part may use: those the part
// names, within those of the partition that the request names, but for those to
// be avoided. Empty is all, unless eligibleCount is 0.
func (res *resource) eligible(r *berth.Request, part *berth.Part) berth.PESet {
	set := res.named(r, part)
	if res.avoided().Empty() {
		return set
	}
	if set.Empty() {
		set = berth.NewPESet(berth.Run{Hi: berth.PE(res.pool.PEs)})
	}
	return without(set, res.avoided())
}

// avoided returns the PEs of the resource that the placement under way is to be
// apart from.
func (res *resource) avoided() berth.PESet {
	if p := &res.state.placing; p.apart == res {
		return p.from
	}
	return berth.PESet{}
}

// named returns the PEs that a part and the partition of its request name.
func (res *resource) named(r *berth.Request, part *berth.Part) berth.PESet {
	if r.Partition == "" {
		return part.Eligible
	}
	p := res.partition(r.Partition)
	switch {
	case p == nil || p.PEs.Empty():
		return part.Eligible
	case part.Eligible.Empty():
		return p.PEs
	}
	return part.Eligible.And(p.PEs)
}

// eligibleCount returns how many PEs of the resource a part may use.
func (res *resource) eligibleCount(r *berth.Request, part *berth.Part) berth.Count {
	p := res.partition(r.Partition)
	switch {
	case part.Eligible.Empty() && (p == nil || p.PEs.Empty()) && res.avoided().Empty():
		return res.pool.PEs
	case res.pool.Binding == berth.Late:
		return 0 // its PEs have no numbers before they start
	}
	return within(res.eligible(r, part), res.pool.PEs)
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
