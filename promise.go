package berth

import "slices"

// Rectangle is a start's maximal availability: the PEs free throughout
// [Start, Start+duration), and the longest time around it through which
// exactly those PEs stay free (availability paper, section 4). Free is their
// number; under late binding it is the least free count over the run.
type Rectangle struct {
	Start Time  `json:"start"`
	Begin Time  `json:"begin"`
	End   Time  `json:"end"` // Forever if nothing bounds it
	Free  Count `json:"free"`
}

// Length returns End−Begin, saturating at Endless.
func (r Rectangle) Length() Duration { return r.End.Sub(r.Begin) }

// Area returns Free times Length in PE-seconds, as the function Area does.
func (r Rectangle) Area() int64 { return Area(r.Free, r.Length()) }

// ResourceID names one calendar: of a pool, a licence, storage or the uplink. Kind
// is part of the key, so a pool and a licence may share a name.
type ResourceID struct {
	Site string `json:"site"`
	Kind string `json:"kind"` // "pool"
	Name string `json:"name"`
}

// PoolKind is the ResourceID.Kind of a pool of PEs.
const PoolKind = "pool"

// The kinds of what a site has beside PEs.
const (
	LicenceKind = "licence"
	StorageKind = "storage"
)

// UplinkKind is the ResourceID.Kind of the link of the centre that all data leave,
// which is of no site.
const UplinkKind = "uplink"

// UplinkID returns the ResourceID of that link.
func UplinkID() ResourceID { return ResourceID{Kind: UplinkKind, Name: "uplink"} }

// LicenceID returns the ResourceID of the licences of a program of a site.
func LicenceID(site string, s *Software) ResourceID {
	name := s.Name
	if s.Version != "" {
		name += " " + s.Version
	}
	return ResourceID{Site: site, Kind: LicenceKind, Name: name}
}

// StorageID returns the ResourceID of the storage of a site.
func StorageID(site string) ResourceID {
	return ResourceID{Site: site, Kind: StorageKind, Name: "storage"}
}

// PoolID returns the ResourceID of a pool.
func PoolID(site, name string) ResourceID { return ResourceID{Site: site, Kind: PoolKind, Name: name} }

// Less orders resources by site, kind, name.
func (r ResourceID) Less(o ResourceID) bool {
	if r.Site != o.Site {
		return r.Site < o.Site
	}
	if r.Kind != o.Kind {
		return r.Kind < o.Kind
	}
	return r.Name < o.Name
}

// Allotment is what one part of a request got: a variant of it on a resource
// from Start to End. PEs is empty under late binding until the part starts.
type Allotment struct {
	Resource ResourceID `json:"resource"`
	Start    Time       `json:"start"`
	End      Time       `json:"end"`
	NPE      Count      `json:"npe"`
	PEs      PESet      `json:"pes,omitzero"`
}

// Interval returns [Start, End).
func (a *Allotment) Interval() Interval { return Interval{Start: a.Start, End: a.End} }

// State is a reservation's place in its life.
type State string

// The states. A reservation is live in the first four.
const (
	Held      State = "held" // it keeps its place until it expires, unless it is confirmed before
	Confirmed State = "confirmed"
	Degraded  State = "degraded" // confirmed, but with fewer PEs than promised until others are found
	Active    State = "active"
	Finished  State = "finished"
	Cancelled State = "cancelled"
)

// Reservation is a promise: a request, which is not written any more, with one
// allotment for each of its parts.
type Reservation struct {
	Request *Request `json:"request"`
	State   State    `json:"state"`
	// Sequence is the order of acceptance within the engine, from 1.
	Sequence   uint64      `json:"sequence"`
	Allotments []Allotment `json:"allotments"`
	// Terms are what was promised, which the allotments fulfil or, while the
	// reservation is degraded, fall short of. A running job has none.
	Terms Terms `json:"terms,omitzero"`
	// Stocks are what the reservation takes beside PEs: licences, and storage for
	// its data, at each of its sites. NPE is the number of units.
	Stocks []Allotment `json:"stocks,omitempty"`
	// Transfers say when its data are moved, one to each of its sites.
	Transfers []Transfer `json:"transfers,omitempty"`
	// Generation grows with every change of what a site has to make of the
	// reservation, beginning with 1.
	Generation uint64 `json:"generation,omitempty"`
	// Missing is the number of PEs promised and not held: those that are out of
	// use and not replaced yet.
	Missing Count `json:"missing,omitempty"`
	// CheckedIn says that the reservation has been used.
	CheckedIn bool `json:"checked_in,omitempty"`
	// Expires is when a held reservation is gone unless it was confirmed: at the
	// end of its hold or at its first end, whichever is first.
	Expires Time `json:"expires,omitempty"`
}

// Terms are what a reservation was promised. They change with a modification or
// an extension only.
type Terms struct {
	// Variants holds the variant of each part, as the request has it: in standard
	// seconds, with the number of PEs that is owed.
	Variants []Variant `json:"variants,omitempty"`
	// Extended is how much longer than its variant the reservation lasts, in
	// seconds at its pool.
	Extended Duration `json:"extended,omitempty"`
	// Deadline is the end of the window. It is that of the request, or the end of
	// an extension or delay that goes beyond it.
	Deadline Time `json:"deadline,omitempty"`
	// Expires is when the hold ends, 0 for a reservation that was never held.
	Expires Time `json:"expires,omitempty"`
	// Delay is the largest delay of an ordinary job, and Idle the PE-seconds left idle, that were foreseen for the
	// reservation where a limit bounds them, each a sum with what was foreseen for its changes.
	Delay Duration `json:"delay,omitempty"`
	Idle  int64    `json:"idle_pe_seconds,omitempty"`
}

// Transfer is data that are moved to a site throughout [Start, End), as
// expected: at Since there are Kilobytes left, of 1000 bytes. End is Forever for
// data that never arrive.
type Transfer struct {
	Site      string `json:"site"`
	Start     Time   `json:"start"`
	End       Time   `json:"end"`
	Since     Time   `json:"since"`
	Kilobytes int64  `json:"kilobytes"`
	// Rate is the number of units of a shared uplink that it takes throughout
	// [Since, End); 0 where none is shared.
	Rate Count `json:"rate,omitempty"`
}

// Clone returns a copy that shares no memory with the reservation, except PE
// sets, which are immutable, and names.
func (r *Reservation) Clone() Reservation {
	c := *r
	c.Request = r.Request.Clone()
	c.Allotments = slices.Clone(r.Allotments)
	c.Stocks, c.Transfers = slices.Clone(r.Stocks), slices.Clone(r.Transfers)
	c.Terms.Variants = slices.Clone(r.Terms.Variants)
	return c
}

// ChargedIdle returns the PE-seconds that it was foreseen to leave idle and that are charged with its own: none of an occurrence
// of a series or a task of a workflow, each of which has in its terms what all of them leave idle together.
func (r *Reservation) ChargedIdle() int64 {
	if r.Request.Series != nil || r.Request.Task != nil {
		return 0
	}
	return r.Terms.Idle
}

// Start returns the common start of all parts.
func (r *Reservation) Start() Time { return r.Allotments[0].Start }

// End returns the latest end of any part.
func (r *Reservation) End() Time {
	end := r.Allotments[0].End
	for _, a := range r.Allotments[1:] {
		end = max(end, a.End)
	}
	return end
}

// Refusal is a reasoned no. It names the binding constraint with numbers: what
// was wanted, on the resource the request got furthest with, and of what there
// was too little.
type Refusal struct {
	Reason   Reason     `json:"reason"`
	Resource ResourceID `json:"resource,omitzero"`
	// Wanted is the fewest PEs that would have done.
	Wanted Count `json:"wanted"`
	// Limit is the resource's size with TooLarge, the number of eligible PEs
	// it has with NoSuitableSite.
	Limit Count `json:"limit,omitempty"`
	// Possible is, with DeadlineMissed, the earliest end on an empty site.
	Possible Time `json:"possible,omitempty"`
	// Nearest is, with NoCapacity, the most that was to be had; nil if the
	// engine was not asked to find out.
	Nearest *Nearest `json:"nearest,omitempty"`
	// Exceeded is, with Quota, the limit that is reached; nil where an order shares out
	// its rounds.
	Exceeded *Exceeded `json:"exceeded,omitempty"`
	// Words are, with SiteRefused, those of the site.
	Words string `json:"words,omitempty"`
	// Task is the task of a workflow that cannot be there, whatever is free; empty where it is all of
	// them together.
	Task string `json:"task,omitempty"`
}

// Exceeded is a limit that a request would exceed. The numbers are in the limit's unit:
// seconds, thousandths of a share as PEs, PE-seconds, or a count.
type Exceeded struct {
	Limit string `json:"limit"` // its name
	// Owner, Account, QOS or Partition is that which is limited; without them it is the user. Owner is the owner of the service
	// account that the user is, with all that they have in both names.
	Owner     string `json:"owner,omitempty"`
	Account   string `json:"account,omitempty"`
	QOS       string `json:"qos,omitempty"`
	Partition string `json:"partition,omitempty"`
	Allowed   int64  `json:"allowed"`
	// Asked is with what the user, account, QOS or partition has already. Of delay and idle it is what was foreseen, with
	// what was foreseen before for a reservation that is changed; if that is no more than Allowed, some jobs could not be followed.
	Asked int64 `json:"asked"`
	// Frees is when as much would be allowed if nothing else is asked for meanwhile, and of month_budget the first start
	// for which it is; 0 if that is never or not known.
	Frees Time `json:"frees,omitempty"`
}

// Nearest is how close a request came: at most NPE of its PEs were free at
// once for the Duration it needs, from Start on.
type Nearest struct {
	NPE      Count    `json:"npe"`
	Duration Duration `json:"duration"`
	Start    Time     `json:"start"`
}
