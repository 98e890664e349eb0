package wire

import "github.com/berth-hpc/berth"

// The numbers of fields and the order of words are the form of journals that
// exist: they are only ever added to.

var (
	kinds   = []berth.Kind{berth.KindRequest, berth.KindBooking, berth.KindOutage, berth.KindStaging, berth.KindJob}
	reasons = berth.Reasons()
	states  = []berth.State{berth.Confirmed, berth.Active, berth.Finished, berth.Cancelled, berth.Held, berth.Degraded}
)

// Request is the form of a request.
func Request(c *Coder, r *berth.Request) {
	String(c, 1, &r.ID)
	Enum(c, 2, &r.Kind, kinds)
	Name(c, 3, &r.User)
	Int(c, 4, &r.Arrival)
	Int(c, 5, &r.Ready)
	Int(c, 6, &r.Deadline)
	List(c, 7, &r.Parts, Part)
	Struct(c, 8, &r.Requirements, r.RequiresNothing(), Requirements)
	Name(c, 9, &r.Site)
	Name(c, 10, &r.Pool)
	Int(c, 11, &r.Hold)
	Int(c, 12, &r.NoShow)
	Name(c, 13, &r.Role)
	List(c, 14, &r.Sites, func(c *Coder, name *string) {
		Name(c, 1, name)
		c.End()
	})
	Pointer(c, 15, &r.Task, TaskRef)
	Name(c, 16, &r.Account)
	List(c, 17, &r.Users, func(c *Coder, name *string) {
		Name(c, 1, name)
		c.End()
	})
	Name(c, 18, &r.Group)
	Name(c, 19, &r.Nodelist)
	Name(c, 20, &r.Exclude)
	Name(c, 21, &r.Name)
	Pointer(c, 22, &r.Series, seriesRef)
	Name(c, 23, &r.QOS)
	Name(c, 27, &r.Owner)
	c.End()
}

// Part is the form of a part of a request.
func Part(c *Coder, p *berth.Part) {
	List(c, 1, &p.Variants, Variant)
	PESet(c, 2, &p.Eligible)
	Name(c, 3, &p.Constraint)
	List(c, 4, &p.Only, poolPEs)
	List(c, 5, &p.Never, poolPEs)
	Name(c, 6, &p.Nodelist)
	Name(c, 7, &p.Exclude)
	c.End()
}

func poolPEs(c *Coder, p *berth.PoolPEs) {
	Struct(c, 1, &p.Resource, p.Resource == berth.ResourceID{}, ResourceID)
	PESet(c, 2, &p.PEs)
	c.End()
}

// Variant is the form of a variant: both numbers, without more.
func Variant(c *Coder, v *berth.Variant) {
	BareInt(c, &v.NPE)
	BareInt(c, &v.Duration)
}

// Requirements is the form of what a request requires beside PEs.
func Requirements(c *Coder, r *berth.Requirements) {
	Name(c, 1, &r.Software)
	Name(c, 2, &r.Version)
	Int(c, 3, &r.Licences)
	Int(c, 4, &r.MemoryMB)
	Int(c, 5, &r.StorageMB)
	Int(c, 6, &r.Accelerators)
	Name(c, 7, &r.Partition)
	Name(c, 8, &r.Constraint)
	c.End()
}

// ResourceID is the form of a resource's name.
func ResourceID(c *Coder, r *berth.ResourceID) {
	Name(c, 1, &r.Site)
	Name(c, 2, &r.Kind)
	Name(c, 3, &r.Name)
	c.End()
}

// Allotment is the form of what a part got. The end is written as its distance
// from the start.
func Allotment(c *Coder, a *berth.Allotment) {
	Struct(c, 1, &a.Resource, a.Resource == berth.ResourceID{}, ResourceID)
	Int(c, 2, &a.Start)
	var length berth.Time
	if !c.Reading() {
		length = a.End - a.Start
	}
	if Int(c, 3, &length); c.Reading() {
		a.End = a.Start + length
	}
	Int(c, 4, &a.NPE)
	PESet(c, 5, &a.PEs)
	c.End()
}

// Reservation is the form of a promise.
func Reservation(c *Coder, r *berth.Reservation) {
	Pointer(c, 1, &r.Request, Request)
	Enum(c, 2, &r.State, states)
	Uint(c, 3, &r.Sequence)
	ListInto(c, 4, &r.Allotments, Allotment)
	Int(c, 5, &r.Expires)
	Uint(c, 6, &r.Generation)
	Int(c, 7, &r.Missing)
	Bool(c, 8, &r.CheckedIn)
	List(c, 9, &r.Stocks, Allotment)
	Earlier(c, 10, r.Allotments, &r.Stocks, &r.Transfers)
	Struct(c, 11, &r.Terms, r.Terms.Variants == nil && r.Terms.Extended == 0 && r.Terms.Deadline == 0 && r.Terms.Expires == 0 && r.Terms.Delay == 0 && r.Terms.Idle == 0, Terms)
	List(c, 12, &r.Transfers, Transfer)
	c.End()
}

// Terms is the form of what was promised.
func Terms(c *Coder, t *berth.Terms) {
	List(c, 1, &t.Variants, Variant)
	Int(c, 2, &t.Extended)
	Int(c, 3, &t.Deadline)
	Int(c, 4, &t.Expires)
	Int(c, 5, &t.Delay)
	Int(c, 6, &t.Idle)
	c.End()
}

// Transfer is the form of a transfer of data.
func Transfer(c *Coder, t *berth.Transfer) {
	Int(c, 1, &t.Start)
	Int(c, 2, &t.End)
	Int(c, 3, &t.Since)
	Int(c, 4, &t.Kilobytes)
	Name(c, 5, &t.Site)
	Int(c, 6, &t.Rate)
	c.End()
}

// Earlier reads the field of the one transfer of an earlier format, to the site of the
// first part, whose share of the uplink stands among the stocks there. It is never
// written.
func Earlier(c *Coder, number byte, allotments []berth.Allotment, stocks *[]berth.Allotment, transfers *[]berth.Transfer) {
	var one *berth.Transfer
	if Pointer(c, number, &one, Transfer); one == nil {
		return
	}
	if len(allotments) > 0 {
		one.Site = allotments[0].Resource.Site
	}
	var rest []berth.Allotment
	for _, a := range *stocks {
		if a.Resource.Kind == berth.UplinkKind {
			one.Rate = a.NPE
			continue
		}
		rest = append(rest, a)
	}
	*stocks, *transfers = rest, []berth.Transfer{*one}
}

// Outage is the form of an outage.
func Outage(c *Coder, o *berth.Outage) {
	Uint(c, 1, &o.Number)
	Struct(c, 2, &o.Resource, o.Resource == berth.ResourceID{}, ResourceID)
	PESet(c, 3, &o.PEs)
	Int(c, 4, &o.Until)
	Int(c, 5, &o.From)
	Name(c, 6, &o.Name)
	c.End()
}

// Forecast is the form of a forecast: of the kilobytes each period's own.
func Forecast(c *Coder, f *berth.Forecast) {
	String(c, 1, &f.Site)
	Int(c, 2, &f.From)
	Int(c, 3, &f.Period)
	steps := make([]int64, 0, len(f.Kilobytes))
	for i := range f.Kilobytes {
		steps = append(steps, f.By(i+1)-f.By(i))
	}
	if List(c, 4, &steps, BareInt[int64]); c.Reading() {
		sum := int64(0)
		for _, step := range steps {
			sum += step
			f.Kilobytes = append(f.Kilobytes, sum)
		}
	}
	c.End()
}

// Refusal is the form of a no.
func Refusal(c *Coder, r *berth.Refusal) {
	Enum(c, 1, &r.Reason, reasons)
	Struct(c, 2, &r.Resource, r.Resource == berth.ResourceID{}, ResourceID)
	Int(c, 3, &r.Wanted)
	Int(c, 4, &r.Limit)
	Int(c, 5, &r.Possible)
	Pointer(c, 6, &r.Nearest, Nearest)
	Pointer(c, 7, &r.Exceeded, Exceeded)
	String(c, 8, &r.Words)
	String(c, 9, &r.Task)
	c.End()
}

// Exceeded is the form of a limit that a request would exceed.
func Exceeded(c *Coder, x *berth.Exceeded) {
	Name(c, 1, &x.Limit)
	Int(c, 2, &x.Allowed)
	Int(c, 3, &x.Asked)
	Int(c, 4, &x.Frees)
	Name(c, 5, &x.Account)
	Name(c, 6, &x.Partition)
	Name(c, 7, &x.QOS)
	Name(c, 8, &x.Owner)
	c.End()
}

// Nearest is the form of how close a request came.
func Nearest(c *Coder, n *berth.Nearest) {
	Int(c, 1, &n.NPE)
	Int(c, 2, &n.Duration)
	Int(c, 3, &n.Start)
	c.End()
}
