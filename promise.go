package berth

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

// Length returns End−Begin, saturating at Forever.
func (r Rectangle) Length() Duration { return r.End.Sub(r.Begin) }

// Area returns Free times Length in PE-seconds, saturating at Forever.
func (r Rectangle) Area() int64 { return Area(r.Free, r.Length()) }

// ResourceID names one calendar: a pool of a site, and in time a licence or a
// link. Kind is part of the key, so a pool and a licence may share a name.
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
	Request    *Request    `json:"request"`
	State      State       `json:"state"`
	Sequence   uint64      `json:"sequence"` // order of acceptance within the engine
	Allotments []Allotment `json:"allotments"`
	// Held is what it holds beside its PEs: licences, room for its data, and
	// while they are moved, of a shared uplink. NPE is how much.
	Held []Allotment `json:"held,omitempty"`
	// Staging says when its data are moved to the site; nil if there are none.
	Staging *Staging `json:"staging,omitempty"`
	// Generation counts the places that the reservation has had, beginning with
	// 1: whatever is made of it at a site belongs to one of them.
	Generation uint64 `json:"generation,omitempty"`
	// Missing is how many PEs of those promised are out of use and not replaced
	// yet.
	Missing Count `json:"missing,omitempty"`
	// Shown says that it has been used.
	Shown bool `json:"shown,omitempty"`
	// Expires is when a held reservation is gone unless it was confirmed.
	Expires Time `json:"expires,omitempty"`
}

// Staging is a transfer of data to a site throughout [Start, End), as it is
// expected: since a time there are so many kilobytes, of 1000 bytes, left of it.
type Staging struct {
	Start     Time  `json:"start"`
	End       Time  `json:"end"`
	Since     Time  `json:"since"`
	Kilobytes int64 `json:"kilobytes"`
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
}

// Nearest is how close a request came: at most NPE of its PEs were free at
// once for the Duration it needs, from Start on.
type Nearest struct {
	NPE      Count    `json:"npe"`
	Duration Duration `json:"duration"`
	Start    Time     `json:"start"`
}
