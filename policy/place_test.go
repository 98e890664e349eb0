package policy_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// The seven strategies of the availability paper, section 5, in its order, what
// each of them compares (specification 1, b.6), and then ours.
func TestPlacements(t *testing.T) {
	want := []struct {
		name  string
		order calendar.Order
	}{
		{"first-fit", calendar.Order{By: calendar.ByStart}},
		{"pe-best", calendar.Order{By: calendar.ByFree}},
		{"pe-worst", calendar.Order{By: calendar.ByFree, Largest: true}},
		{"duration-best", calendar.Order{By: calendar.ByLength}},
		{"duration-worst", calendar.Order{By: calendar.ByLength, Largest: true}},
		{"area-best", calendar.Order{By: calendar.ByArea}},
		{"area-worst", calendar.Order{By: calendar.ByArea, Largest: true}},
		{"least-pressure", calendar.Order{By: calendar.Custom}},
	}
	if len(want) != len(policy.Placements) {
		t.Fatalf("%d placements, want %d", len(policy.Placements), len(want))
	}
	for i, row := range policy.Placements {
		if row.Name != want[i].name || row.Placement.Order() != want[i].order {
			t.Errorf("placement %d is %s by %+v, want %s by %+v", i, row.Name, row.Placement.Order(), want[i].name, want[i].order)
		}
	}
}

// Names are unique and lead to their row; values can be compared.
func TestPlacementNamed(t *testing.T) {
	seen := map[policy.Placement]string{}
	names := map[string]bool{}
	for _, row := range policy.Placements {
		placement, ok := policy.PlacementNamed(row.Name)
		if !ok || placement != row.Placement {
			t.Errorf("PlacementNamed(%q) = %v, %t", row.Name, placement, ok)
		}
		if other := seen[row.Placement]; other != "" || names[row.Name] {
			t.Errorf("%q stands in the table twice, or is the same as %q", row.Name, other)
		}
		if row.About == "" {
			t.Errorf("%q has no description", row.Name)
		}
		seen[row.Placement], names[row.Name] = row.Name, true
	}
	for _, name := range []string{"", "First-Fit", "no such placement"} {
		if placement, ok := policy.PlacementNamed(name); ok {
			t.Errorf("PlacementNamed(%q) = %v", name, placement)
		}
	}
}

// figure returns what a criterion names, and whether it is endless.
func figure(by calendar.Criterion, r berth.Rectangle) (n int64, endless bool) {
	switch by {
	case calendar.ByStart:
		return int64(r.Start), false
	case calendar.ByFree:
		return int64(r.Free), false
	case calendar.ByLength:
		return int64(r.End - r.Begin), r.End == berth.Forever
	case calendar.ByArea:
		return int64(r.Free) * int64(r.End-r.Begin), r.End == berth.Forever
	}
	panic("a criterion that the test does not know")
}

// someRectangle is a rectangle such as calendars make, half of them endless,
// with equal figures now and then.
func someRectangle(t *rapid.T, label string) berth.Rectangle {
	begin := rapid.OneOf(rapid.Int64Range(-5, 5), rapid.Int64Range(1-berth.TimeLimit, berth.TimeLimit-10)).Draw(t, label+" begin")
	length := rapid.OneOf(rapid.Int64Range(1, 5), rapid.Int64Range(1, berth.TimeLimit-1-begin)).Draw(t, label+" length")
	length = min(length, berth.TimeLimit-1-begin)
	r := berth.Rectangle{
		Begin: berth.Time(begin), End: berth.Time(begin + length),
		Start: berth.Time(rapid.Int64Range(begin, begin+length-1).Draw(t, label+" start")),
		Free:  berth.Count(rapid.OneOf(rapid.Int32Range(1, 4), rapid.Int32Range(1, berth.MaxPEs)).Draw(t, label+" free")),
	}
	if rapid.Bool().Draw(t, label+" endless") {
		r.End = berth.Forever
	}
	return r
}

// A key is the declared criterion, negated if the largest wins. An endless
// figure is Forever; finite ones stay below it, if need be cut to Forever−1.
func TestKeyIsTheDeclaredCriterion(t *testing.T) {
	for _, row := range policy.Placements {
		if row.Placement.Order().By == calendar.Custom {
			continue // a key of its own
		}
		t.Run(row.Name, rapid.MakeCheck(func(t *rapid.T) {
			r := someRectangle(t, "r")
			order := row.Placement.Order()
			want, endless := figure(order.By, r)
			want = min(want, int64(berth.Endless)-1)
			if endless {
				want = int64(berth.Endless)
			}
			if order.Largest {
				want = -want
			}
			if got := row.Placement.Key(r); got != want {
				t.Fatalf("key of %+v is %d, want %d", r, got, want)
			}
		}))
	}
}

// The smallest key is the best rectangle: any endless one is longer than any
// finite one, and all endless ones are equal (specification 1, b.6).
func TestKeysOrderRectangles(t *testing.T) {
	for _, row := range policy.Placements {
		if row.Placement.Order().By == calendar.Custom {
			continue // a key of its own
		}
		t.Run(row.Name, rapid.MakeCheck(func(t *rapid.T) {
			a, b := someRectangle(t, "a"), someRectangle(t, "b")
			order := row.Placement.Order()
			less := func(a, b berth.Rectangle) bool { // a's figure is less than b's
				x, endlessX := figure(order.By, a)
				y, endlessY := figure(order.By, b)
				if endlessX || endlessY {
					return !endlessX
				}
				return min(x, int64(berth.Endless)-1) < min(y, int64(berth.Endless)-1)
			}
			if order.Largest {
				a, b = b, a
			}
			want := less(a, b) && !less(b, a)
			if order.Largest {
				a, b = b, a
			}
			if got := row.Placement.Key(a) < row.Placement.Key(b); got != want {
				t.Fatalf("%s prefers %+v to %+v: %t, want %t", row.Name, a, b, got, want)
			}
		}))
	}
}

// The widest and longest finite rectangle has a smaller area than a short
// endless one of a single PE.
func TestNoFiniteAreaReachesAnEndlessOne(t *testing.T) {
	finite := berth.Rectangle{Begin: 1 - berth.TimeLimit, End: berth.TimeLimit - 1, Free: berth.MaxPEs}
	endless := berth.Rectangle{Begin: berth.TimeLimit - 2, End: berth.Forever, Free: 1}
	if f, e := (policy.AreaBest{}).Key(finite), (policy.AreaBest{}).Key(endless); f >= e || f <= 0 {
		t.Errorf("area-best: the finite key is %d, the endless one %d", f, e)
	}
	if f, e := (policy.AreaWorst{}).Key(finite), (policy.AreaWorst{}).Key(endless); f <= e || f >= 0 {
		t.Errorf("area-worst: the finite key is %d, the endless one %d", f, e)
	}
}
