package berth

// Binding says when a pool's reservations get their PE numbers.
type Binding string

// The two bindings.
const (
	Early Binding = "early" // when accepted: the promise names PEs
	Late  Binding = "late"  // at the start: the promise is a count
)

// Variant is one shape a part may take: NPE PEs for Duration seconds.
type Variant struct {
	NPE      Count    `json:"npe"`
	Duration Duration `json:"duration"`
}

// Area returns the variant's PE-seconds.
func (v Variant) Area() int64 { return Area(v.NPE, v.Duration) }

// Part is one block of PEs of a request. A rigid part has one variant, a
// moldable part several, of which exactly one is booked.
type Part struct {
	Variants []Variant `json:"variants"`
	// Eligible restricts a part to these PEs of its pool; empty means all.
	// It needs a pool of early binding.
	Eligible PESet `json:"eligible,omitzero"`
}

// Request asks for PEs within a window: every part must run inside
// [Ready, Deadline), and all parts start together.
type Request struct {
	ID       string `json:"id"`
	User     string `json:"user,omitempty"`
	Arrival  Time   `json:"arrival"`
	Ready    Time   `json:"ready"`
	Deadline Time   `json:"deadline"`
	Parts    []Part `json:"parts"`
}

// Rigid returns a request of one part and one variant without an owner.
func Rigid(id string, arrival, ready, deadline Time, npe Count, duration Duration) Request {
	return Request{
		ID: id, Arrival: arrival, Ready: ready, Deadline: deadline,
		Parts: []Part{{Variants: []Variant{{NPE: npe, Duration: duration}}}},
	}
}

// Validate reports the first field that cannot be right, as an *Error with
// code Invalid. Whether a valid request can be served is another question.
func (r *Request) Validate() error {
	switch {
	case r.ID == "":
		return Errorf(Invalid, "id", "missing; every request needs a name")
	case !r.Arrival.Valid():
		return Errorf(Invalid, "arrival", "%d is beyond ±2^42 s", r.Arrival)
	case !r.Ready.Valid():
		return Errorf(Invalid, "ready", "%d is beyond ±2^42 s", r.Ready)
	case !r.Deadline.Valid():
		return Errorf(Invalid, "deadline", "%d is beyond ±2^42 s", r.Deadline)
	case r.Ready < r.Arrival:
		return Errorf(Invalid, "ready", "%d is before the arrival %d", r.Ready, r.Arrival)
	case len(r.Parts) == 0:
		return Errorf(Invalid, "parts", "missing; a request needs at least one part")
	}
	for _, part := range r.Parts {
		if err := part.validate(r.Ready, r.Deadline); err != nil {
			return err
		}
	}
	return nil
}

func (p *Part) validate(ready, deadline Time) error {
	if len(p.Variants) == 0 {
		return Errorf(Invalid, "variants", "missing; a part needs at least one size and duration")
	}
	shortest := p.Variants[0].Duration
	for _, v := range p.Variants {
		switch {
		case v.NPE < 1:
			return Errorf(Invalid, "npe", "%d; a request needs at least 1 PE", v.NPE)
		case v.NPE > MaxPEs:
			return Errorf(Invalid, "npe", "%d is more than the limit of %d", v.NPE, MaxPEs)
		case v.Duration < 1:
			return Errorf(Invalid, "duration", "%d; a request needs at least 1 s", v.Duration)
		case v.Duration >= TimeLimit:
			return Errorf(Invalid, "duration", "%d is beyond 2^42 s", v.Duration)
		}
		shortest = min(shortest, v.Duration)
	}
	if earliest := ready.Add(shortest); deadline < earliest {
		return Errorf(Invalid, "deadline", "%d is before ready + duration = %d", deadline, earliest)
	}
	return nil
}

// Window returns [Ready, Deadline).
func (r *Request) Window() Interval { return Interval{Start: r.Ready, End: r.Deadline} }
