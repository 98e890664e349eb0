package policy

import (
	"math"
	"math/bits"

	"github.com/berth-hpc/berth"
)

// Levels is a difference of priorities in thousandths of a level: 4500 is four
// and a half.
type Levels int64

// AnyGap is larger than every difference of priorities.
const AnyGap Levels = math.MaxInt64

// maxGap is the largest difference that priorities can have.
const maxGap Levels = 2 * MaxPriority * 1000

// MaxAging bounds OrderOptions.Aging, in seconds: 34 years.
const MaxAging berth.Duration = 1 << 30

// maxClasses bounds OrderOptions.LengthClasses; more would tell nothing apart.
const maxClasses = 1 << 20

// Overflow says what becomes of a request beyond its user's share of a round.
type Overflow string

// The two ways.
const (
	Defer   Overflow = "defer"   // it waits for another round; also the empty string
	Discard Overflow = "discard" // it is refused
)

// InUser is an order among the requests of one user.
type InUser string

// The orders among the requests of one user. The empty string leaves it to
// the order.
const (
	ShortestInUser InUser = "sjf"
	FirstInUser    InUser = "fcfs"
	LongestInUser  InUser = "ljf"
)

// OrderOptions are the options of all orders. The zero value is valid.
type OrderOptions struct {
	// Scale is the number of levels of priority that the configuration
	// provides for, the paper's L: highest − lowest + 1.
	Scale int `json:"scale,omitempty"`
	// SD is the significant difference: users whose priorities differ by
	// more are served one after the other. nil is half the Scale. Every
	// difference exceeds a negative one, none exceeds AnyGap.
	SD *Levels `json:"sd,omitempty"`
	// N is how many requests a user served alone has in a round; 0 is all.
	N int `json:"n,omitempty"`
	// NUJP is the same for users served together.
	NUJP int `json:"n_ujp,omitempty"`
	// Overflow says what becomes of the others.
	Overflow Overflow `json:"overflow,omitempty"`
	// Chain serves all users of a run together in which each differs from
	// the next by at most SD, instead of two at most.
	Chain bool `json:"chain,omitempty"`
	// LengthClasses divides the range of all pending lengths into that many
	// equal classes, and compares the lengths of different users' requests only
	// by their class, so that priority counts among similar lengths; 0 compares exactly.
	LengthClasses int `json:"length_classes,omitempty"`
	// InUser is the order among the requests of one user.
	InUser InUser `json:"in_user,omitempty"`
	// Aging is how long a wait is worth one level of priority; 0 is no wait.
	Aging berth.Duration `json:"aging,omitempty"`
}

// ScaleOf returns the number of levels between the lowest and the highest
// priority of the users, 0 if there are none.
func ScaleOf(users []berth.User) int {
	if len(users) == 0 {
		return 0
	}
	lowest, highest := users[0].Priority, users[0].Priority
	for _, u := range users[1:] {
		lowest, highest = min(lowest, u.Priority), max(highest, u.Priority)
	}
	return highest - lowest + 1
}

// Validate reports an option out of range; the error is of code Invalid and
// names its field.
func (o *OrderOptions) Validate() error {
	if o.Scale < 0 || o.Scale > 2*MaxPriority+1 {
		return berth.Errorf(berth.Invalid, "scale", "%d levels of priority; 0 to %d are possible", o.Scale, 2*MaxPriority+1)
	}
	if o.SD != nil && *o.SD != AnyGap && (*o.SD < -maxGap || *o.SD > maxGap) {
		return berth.Errorf(berth.Invalid, "sd", "%d thousandths of a level; beyond ±%d only %d is possible, which is any difference",
			*o.SD, maxGap, AnyGap)
	}
	if o.N < 0 {
		return berth.Errorf(berth.Invalid, "n", "%d requests a round; 0 is no limit", o.N)
	}
	if o.NUJP < 0 {
		return berth.Errorf(berth.Invalid, "n_ujp", "%d requests a round; 0 is no limit", o.NUJP)
	}
	switch o.Overflow {
	case "", Defer, Discard:
	default:
		return berth.Errorf(berth.Invalid, "overflow", "unknown overflow %q; want %q or %q", o.Overflow, Defer, Discard)
	}
	switch o.InUser {
	case "", ShortestInUser, FirstInUser, LongestInUser:
	default:
		return berth.Errorf(berth.Invalid, "in_user", "unknown order %q; it is %q, %q or %q",
			o.InUser, ShortestInUser, FirstInUser, LongestInUser)
	}
	if o.LengthClasses < 0 || o.LengthClasses > maxClasses {
		return berth.Errorf(berth.Invalid, "length_classes", "%d; 0 to %d are possible", o.LengthClasses, maxClasses)
	}
	if o.LengthClasses > 0 && o.InUser == FirstInUser {
		return berth.Errorf(berth.Invalid, "length_classes", "in_user %q does not compare lengths", FirstInUser)
	}
	if o.Aging < 0 || o.Aging > MaxAging {
		return berth.Errorf(berth.Invalid, "aging", "%d seconds; 0 to %d are possible", o.Aging, MaxAging)
	}
	return nil
}

// significant returns the significant difference.
func (o *OrderOptions) significant() Levels {
	if o.SD == nil {
		return Levels(o.Scale) * 500
	}
	return *o.SD
}

// rank is a priority that has waited since then, as a number that does not
// change with time: priority + (now−since)/Aging times Aging, less now. All
// age at the same rate, so their order and their differences stay.
func (o *OrderOptions) rank(priority int, since berth.Time) int64 {
	level := int64(min(max(priority, -MaxPriority), MaxPriority))
	if o.Aging == 0 {
		return level
	}
	return level*int64(o.Aging) - int64(since)
}

// near reports whether two ranks, the higher first, differ by at most the
// significant difference. For valid operands nothing overflows: ranks differ
// by less than 2^52, and sd·Aging is below 2^62.
func (o *OrderOptions) near(higher, lower int64) bool {
	sd := o.significant()
	return sd == AnyGap || (higher-lower)*1000 <= int64(sd)*max(1, int64(o.Aging))
}

// inUser returns the key of the order among the requests of one user.
func (o *OrderOptions) inUser(fallback InUser) func(*Pending) int64 {
	order := o.InUser
	if order == "" {
		order = fallback
	}
	switch order {
	case FirstInUser:
		return func(p *Pending) int64 { return int64(p.Request.Arrival) }
	case LongestInUser:
		return func(p *Pending) int64 { return -p.Length }
	}
	return func(p *Pending) int64 { return p.Length }
}

// classes divides the range of keys from least to most into a number of parts of
// equal width. The zero value tells all keys apart.
type classes struct {
	least, most int64
	parts       int
}

// of returns the part of a key, from 0; the upper end belongs to the last part,
// and what lies outside the range to the part at that end.
func (c *classes) of(key int64) int64 {
	if c.parts == 0 {
		return key
	}
	key = min(max(key, c.least), c.most)
	width := uint64(c.most) - uint64(c.least)
	if width == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(key)-uint64(c.least), uint64(c.parts))
	part, _ := bits.Div64(hi, lo, width)
	return min(int64(part), int64(c.parts)-1)
}
