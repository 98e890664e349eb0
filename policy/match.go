package policy

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Candidate is a resource that could serve a request, as a match sees it.
type Candidate struct {
	Index int // its place in the sites file
	PEs   berth.Count
	Speed berth.Speed
}

// Match says in which order the resources that could serve a request are
// asked for room. The first that has some gets the request, unless the match
// is also a Comparer.
type Match interface {
	// Rank sorts the candidates, which come in the order of the sites file.
	// draw returns the i-th random number of this decision.
	Rank(candidates []Candidate, draw func(i int) uint64)
}

// Comparer is the ability of a match to choose among the fits of all
// candidates. Of equal fits the one ranked first is taken.
type Comparer interface {
	Better(a, b calendar.Fit) bool
}

// NamedMatch is a row of the table of matches.
type NamedMatch struct {
	Name  string
	About string
	Match Match
}

// Matches lists the matches; the first is the default.
var Matches = []NamedMatch{
	{"best-key", "the pool where the placement's key is best, the fastest of equals", BestKey{}},
	{"smallest-fit", "the smallest pool that has room", SmallestFit{}},
	{"random", "pools in random order, the first that has room", Random{}},
	{"fastest-first", "the fastest pool that has room", FastestFirst{}},
	{"earliest-finish", "the pool where the request ends first", EarliestFinishMatch{}},
}

// MatchNamed returns the match of that name.
func MatchNamed(name string) (Match, bool) {
	for _, row := range Matches {
		if row.Name == name {
			return row.Match, true
		}
	}
	return nil, false
}

// SmallestFit asks pools by size, ascending (Sahakyan and Petrosyan, section
// 5: the resource selector); ties in the order of the sites file.
type SmallestFit struct{}

// Rank sorts by size.
func (SmallestFit) Rank(candidates []Candidate, _ func(int) uint64) {
	slices.SortStableFunc(candidates, func(a, b Candidate) int { return cmp.Compare(a.PEs, b.PEs) })
}

// Random asks pools in random order (Ahuja et al.: resources are taken "in a
// random manner").
type Random struct{}

// Rank shuffles (Fisher and Yates), with the high half of a product instead of
// a remainder, so that no draw is rejected and each decision has its own.
func (Random) Rank(candidates []Candidate, draw func(int) uint64) {
	for i := len(candidates) - 1; i > 0; i-- {
		j := int(draw(i) >> 32 * uint64(i+1) >> 32)
		candidates[i], candidates[j] = candidates[j], candidates[i]
	}
}

// FastestFirst asks pools by speed, descending; ties in the order of the sites
// file.
type FastestFirst struct{}

// Rank sorts by speed.
func (FastestFirst) Rank(candidates []Candidate, _ func(int) uint64) {
	slices.SortStableFunc(candidates, func(a, b Candidate) int { return cmp.Compare(speed(b), speed(a)) })
}

func speed(c Candidate) berth.Speed { return cmp.Or(c.Speed, berth.StandardSpeed) }

// EarliestFinishMatch asks every pool and takes the fit that ends first; ties
// in the order of the sites file.
type EarliestFinishMatch struct{}

// Rank leaves the order of the sites file.
func (EarliestFinishMatch) Rank([]Candidate, func(int) uint64) {}

// Better prefers the earlier end.
func (EarliestFinishMatch) Better(a, b calendar.Fit) bool { return a.End < b.End }

// BestKey asks every pool, the fastest first, and takes the fit with the
// smallest key of the placement (spec 1, d: heterogeneous PEs).
type BestKey struct{ FastestFirst }

// Better prefers the smaller key.
func (BestKey) Better(a, b calendar.Fit) bool { return a.Key < b.Key }
