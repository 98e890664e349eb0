package berth

import "iter"

// Kind says what a line of a schedule file is about.
type Kind string

// The kinds of line.
const (
	KindRequest Kind = "request"
	KindBooking Kind = "booking"
	KindOutage  Kind = "outage"
	KindStaging Kind = "staging" // data on their way to the site of the request of that id
	KindJob     Kind = "job"
)

// Line is one line of a schedule file (JSON Lines): a request with its
// decision, or a booking. Times are whole seconds of the workload's own clock.
// A refused request carries a reason and no start, end or pes. The same form
// without the decision is a workload.
type Line struct {
	ID            string    `json:"id"`
	Kind          Kind      `json:"kind"`
	Site          string    `json:"site,omitempty"`
	Pool          string    `json:"pool,omitempty"`
	User          string    `json:"user,omitempty"`
	Workflow      string    `json:"workflow,omitempty"`
	Task          string    `json:"task,omitempty"`
	After         []string  `json:"after,omitempty"` // ids that must end first
	Part          int       `json:"part,omitempty"`  // 1.. among parts that share an id
	Arrival       Time      `json:"arrival"`
	Ready         Time      `json:"ready"`
	Deadline      Time      `json:"deadline"`
	Duration      Duration  `json:"duration"` // as reserved
	NPE           Count     `json:"npe"`
	Variants      []Variant `json:"variants,omitempty"`
	Accepted      bool      `json:"accepted"`
	Reason        Reason    `json:"reason,omitempty"`
	Start         *Time     `json:"start,omitempty"`
	End           *Time     `json:"end,omitempty"`
	PEs           PESet     `json:"pes,omitzero"`
	PromisedStart *Time     `json:"promised_start,omitempty"`
	ActualEnd     *Time     `json:"actual_end,omitempty"`
	// PromisedEnd, on a staging, is the end that was expected when the promise was
	// made, where a forecast has changed it since.
	PromisedEnd *Time `json:"promised_end,omitempty"`
	// Limit, where it is later than the end, is until when PEs might have been
	// held: the last limit of what overran, and the first one of a job that was
	// stopped before.
	Limit *Time `json:"limit,omitempty"`
	// Transfer is how much of the duration PEs are held for while data are moved.
	Transfer Duration `json:"transfer,omitempty"`
	// Extended is how much of the duration was added to the promise later on. The
	// deadline has moved with it where it had to.
	Extended Duration `json:"extended,omitempty"`
	// MovedFrom lists the places that were given up, in order. The first one is
	// that of PromisedStart.
	MovedFrom []FormerPlace `json:"moved_from,omitempty"`
	// ReplannedFrom lists, in order, where a task of a workflow was to run before its workflow
	// got another plan, or gave the task up. That needs no more reason.
	ReplannedFrom []FormerPlace `json:"replanned_from,omitempty"`
	// Stretches lists the changes of the PEs that are held, in order, where a
	// reservation outlives the loss of PEs. NPE and PEs are what was promised, and
	// hold until the first change.
	Stretches []Stretch `json:"stretches,omitempty"`
	// Kilobytes, of 1000 bytes, is how much a staging moves, where transfers share
	// an uplink. The data of one request may have several stagings, one after the
	// other.
	Kilobytes int64 `json:"kilobytes,omitempty"`
	// PoolPEs is the size of the pool, or of the machine that is one; 0 where the line
	// does not tell. One line for each pool is enough.
	PoolPEs Count `json:"pool_pes,omitempty"`
	*Wanted       // beside PEs and time; nil where that is nothing
}

// Wanted is what the request of a line asked for beside PEs and time. Most ask for
// nothing, so a line refers to it. In a file its fields are fields of the line.
type Wanted struct {
	// WantSite and WantPool are the only site and pool that will do, and Eligible
	// the only PEs; zero is any.
	WantSite string `json:"want_site,omitempty"`
	WantPool string `json:"want_pool,omitempty"`
	Eligible PESet  `json:"eligible,omitzero"`
	// WantSites are the only sites that will do. OnlyPEs are the only PEs of this part that will do, by
	// pool, none of other pools, and NotPEs are PEs that will not do. Empty is any.
	WantSites []string   `json:"want_sites,omitempty"`
	OnlyPEs   []PlacePEs `json:"only,omitempty"`
	NotPEs    []PlacePEs `json:"never,omitempty"`
	// PartConstraint is features that the PEs of this part have, beside Constraint.
	PartConstraint string `json:"part_constraint,omitempty"`
	Requirements
}

// PlacePEs are PEs of one pool, as a line names it.
type PlacePEs struct {
	Site string `json:"site"`
	Pool string `json:"pool"`
	PEs  PESet  `json:"pes"`
}

// WantedOf returns what the request of a part asks for beside PEs and time, nil if
// nothing. It shares the sites with the request.
func WantedOf(r *Request, part int) *Wanted {
	p := &r.Parts[part]
	if r.Site == "" && r.Pool == "" && len(r.Sites) == 0 && p.Eligible.Empty() && len(p.Only) == 0 && len(p.Never) == 0 &&
		p.Constraint == "" && r.RequiresNothing() {
		return nil
	}
	return &Wanted{
		WantSite: r.Site, WantPool: r.Pool, WantSites: r.Sites, Eligible: p.Eligible, OnlyPEs: placesOf(p.Only), NotPEs: placesOf(p.Never),
		PartConstraint: p.Constraint, Requirements: r.Requirements,
	}
}

func placesOf(pools []PoolPEs) []PlacePEs {
	if len(pools) == 0 {
		return nil
	}
	list := make([]PlacePEs, len(pools))
	for i := range pools {
		list[i] = PlacePEs{Site: pools[i].Resource.Site, Pool: pools[i].Resource.Name, PEs: pools[i].PEs}
	}
	return list
}

// Wants returns what the request of the line asked for beside PEs and time; the zero
// value is nothing. It must not be written to.
func (l *Line) Wants() *Wanted {
	if l.Wanted == nil {
		return new(Wanted)
	}
	return l.Wanted
}

// FormerPlace is where and when something was to run before its place was given
// up, and what the reason was: an outage of that pool, something else there that
// went on beyond its end, or data that would have come too late.
type FormerPlace struct {
	At   Time   `json:"at"` // when it was given up
	Site string `json:"site,omitempty"`
	Pool string `json:"pool,omitempty"`
	// NPE PEs were promised throughout [Start, End): these, under early binding.
	Start Time  `json:"start"`
	End   Time  `json:"end"`
	NPE   Count `json:"npe"`
	PEs   PESet `json:"pes,omitzero"`
	// Cause is the id of the outage, or of what overran.
	Cause string `json:"cause,omitempty"`
	// Staged, where data were the reason, is when they were expected then.
	Staged *Time `json:"staged,omitempty"`
}

// Stretch is a change of the PEs that a reservation holds: from that time on they
// are these.
type Stretch struct {
	From Time  `json:"from"`
	NPE  Count `json:"npe"`
	PEs  PESet `json:"pes,omitzero"` // of a pool of late binding known from the start on
	// Cause is the id of the outage that took PEs; "" if PEs were only added.
	Cause string `json:"cause,omitempty"`
}

// Each goes through lines in their order.
func Each(lines []Line) iter.Seq[*Line] {
	return func(yield func(*Line) bool) {
		for i := range lines {
			if !yield(&lines[i]) {
				return
			}
		}
	}
}

// TellSizes notes the size of each pool on its first line, and of a machine of one
// pool on the first line of all. Lines of pools that no site has stay as they are.
func TellSizes(lines []Line, on []Site) {
	for range WithSizes(Each(lines), on) {
	}
}

// WithSizes is TellSizes of lines as one goes through them.
func WithSizes(lines iter.Seq[*Line], on []Site) iter.Seq[*Line] {
	return func(yield func(*Line) bool) {
		var alone Count // of the only pool, until it is told
		var sizes map[ResourceID]Count
		if len(on) == 1 && len(on[0].Pools) == 1 {
			alone = on[0].Pools[0].PEs
		} else {
			sizes = sizesOf(on)
		}
		for line := range lines {
			if alone > 0 {
				line.PoolPEs, alone = alone, 0
			}
			if len(sizes) > 0 {
				at := PoolID(line.Site, line.Pool)
				if pes, untold := sizes[at]; untold && line.Kind != KindStaging {
					line.PoolPEs = pes
					delete(sizes, at)
				}
			}
			if !yield(line) {
				return
			}
		}
	}
}

// sizesOf returns the sizes of pools as lines name them, which may leave out the only pool
// of a site.
func sizesOf(on []Site) map[ResourceID]Count {
	sizes := map[ResourceID]Count{}
	for i := range on {
		for j := range on[i].Pools {
			sizes[PoolID(on[i].Name, on[i].Pools[j].Name)] = on[i].Pools[j].PEs
		}
		if len(on[i].Pools) == 1 {
			sizes[PoolID(on[i].Name, "")] = on[i].Pools[0].PEs
		}
	}
	return sizes
}
