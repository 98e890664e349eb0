package policy

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Placement chooses among the maximum availability rectangles of the feasible
// starts of a request: the smallest key wins, ties go to the earliest start
// (Li et al., section 4.3; spec 1, b.6). Values are comparable.
type Placement = calendar.Rule

// NamedPlacement is a row of the table of placements.
type NamedPlacement struct {
	Name      string
	About     string
	Placement Placement
}

// Placements lists the placements in the order in which "all" runs them: the seven
// of Li et al., where "best" takes the smallest that fits and "worst" the largest,
// and then ours.
var Placements = []NamedPlacement{
	{"first-fit", "the earliest feasible start", FirstFit{}},
	{"pe-best", "the rectangle with the fewest free PEs", PEBest{}},
	{"pe-worst", "the rectangle with the most free PEs", PEWorst{}},
	{"duration-best", "the shortest rectangle", DurationBest{}},
	{"duration-worst", "the longest rectangle", DurationWorst{}},
	{"area-best", "the rectangle of least PEs × duration", AreaBest{}},
	{"area-worst", "the rectangle of most PEs × duration", AreaWorst{}},
	{"least-pressure", "the start with the least booked around it, near rather than far", LeastPressure{}},
}

// PlacementNamed returns the placement of that name.
func PlacementNamed(name string) (Placement, bool) {
	for _, row := range Placements {
		if row.Name == name {
			return row.Placement, true
		}
	}
	return nil, false
}

// Choice says which variant of a moldable request is booked, out of one fit
// for each undominated variant.
type Choice string

// The choices. Each falls back on the next figure in this order where the
// fits tie: the earliest finish, the fewest PE-seconds, the placement's key,
// and last the order of the variants in the request (spec 1, d).
const (
	EarliestFinish Choice = "earliest-finish" // finish, PE-seconds, key
	LeastArea      Choice = "least-area"      // PE-seconds, finish, key
	PolicyKey      Choice = "policy-key"      // key, finish, PE-seconds
)

// Choices lists the choices; the first is the default.
func Choices() []Choice { return []Choice{EarliestFinish, LeastArea, PolicyKey} }

// Valid reports whether c is one of the choices.
func (c Choice) Valid() bool { return slices.Contains(Choices(), c) }

// Better reports whether variant a at fit fa is to be preferred to variant b
// at fit fb. It is a strict order; variants that tie in everything are equal.
func (c Choice) Better(a berth.Variant, fa calendar.Fit, b berth.Variant, fb calendar.Fit) bool {
	finish := [2]int64{int64(fa.End), int64(fb.End)}
	area := [2]int64{a.Area(), b.Area()}
	key := [2]int64{fa.Key, fb.Key}
	order := [3][2]int64{finish, area, key}
	switch c {
	case LeastArea:
		order = [3][2]int64{area, finish, key}
	case PolicyKey:
		order = [3][2]int64{key, finish, area}
	}
	for _, figure := range order {
		if figure[0] != figure[1] {
			return figure[0] < figure[1]
		}
	}
	return false
}

// Undominated returns the variants worth trying, in their order: a variant is
// left out if an earlier or smaller one is no longer and no wider.
func Undominated(variants []berth.Variant) []berth.Variant {
	if len(variants) == 1 {
		return variants
	}
	kept := make([]berth.Variant, 0, len(variants))
	for i, v := range variants {
		dominated := false
		for j, o := range variants {
			if o.NPE <= v.NPE && o.Duration <= v.Duration && (o != v || j < i) {
				dominated = true
				break
			}
		}
		if !dominated {
			kept = append(kept, v)
		}
	}
	return kept
}
