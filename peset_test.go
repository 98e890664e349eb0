package berth_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
)

func drawPEs(t *rapid.T) []berth.PE {
	return rapid.SliceOf(rapid.Custom(func(t *rapid.T) berth.PE {
		return berth.PE(rapid.IntRange(0, 40).Draw(t, "pe"))
	})).Draw(t, "pes")
}

// A PESet is what a sorted list of its members is.
func TestPESetIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pes := drawPEs(t)
		set := berth.PEsOf(pes...)
		slices.Sort(pes)
		pes = slices.Compact(pes)
		if int(set.Count()) != len(pes) || set.Empty() != (len(pes) == 0) {
			t.Fatalf("%v has %d PEs", pes, set.Count())
		}
		highest := berth.PE(-1)
		if len(pes) > 0 {
			highest = pes[len(pes)-1]
		}
		if set.Max() != highest {
			t.Fatalf("%v: highest is %d", pes, set.Max())
		}
		for pe := range berth.PE(42) {
			if set.Contains(pe) != slices.Contains(pes, pe) {
				t.Fatalf("%v contains %d: %v", pes, pe, set.Contains(pe))
			}
		}
		for i, run := range set.Runs() {
			if run.Lo >= run.Hi || (i > 0 && set.Runs()[i-1].Hi >= run.Lo) {
				t.Fatalf("runs of %v are not sorted, disjoint and apart: %v", pes, set.Runs())
			}
		}
		again, err := berth.ParsePESet(set.String())
		if err != nil || !again.Equal(set) {
			t.Fatalf("%q reads back as %q, %v", set, again, err)
		}
	})
}

func TestAndIsIntersection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := berth.PEsOf(drawPEs(t)...), berth.PEsOf(drawPEs(t)...)
		var both []berth.PE
		for pe := range berth.PE(42) {
			if a.Contains(pe) && b.Contains(pe) {
				both = append(both, pe)
			}
		}
		if got := a.And(b); !got.Equal(berth.PEsOf(both...)) || !got.Equal(b.And(a)) {
			t.Fatalf("%s and %s is %s", a, b, got)
		}
	})
}

// The operations on sets are those on lists of members, and their results are
// canonical: equal sets have equal runs.
func TestPESetOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := berth.PEsOf(drawPEs(t)...), berth.PEsOf(drawPEs(t)...)
		n := berth.Count(rapid.IntRange(-1, 45).Draw(t, "n"))
		var minus, or, lowest []berth.PE
		var overlap, below berth.Count
		for pe := range berth.PE(42) {
			inA, inB := a.Contains(pe), b.Contains(pe)
			if inA && !inB {
				minus = append(minus, pe)
			}
			if inA || inB {
				or = append(or, pe)
			}
			if inA && inB {
				overlap++
			}
			if inA && pe < berth.PE(n) {
				below++
			}
			if inA && berth.Count(len(lowest)) < n {
				lowest = append(lowest, pe)
			}
		}
		for _, c := range []struct {
			name      string
			got, want berth.PESet
		}{
			{"minus", a.Minus(b), berth.PEsOf(minus...)},
			{"or", a.Or(b), berth.PEsOf(or...)},
			{"lowest", a.Lowest(n), berth.PEsOf(lowest...)},
		} {
			if !c.got.Equal(c.want) || c.got.Empty() != (c.got.Runs() == nil) {
				t.Fatalf("%v %s %v (n=%d) is %v, want %v", a, c.name, b, n, c.got, c.want)
			}
		}
		if a.Overlap(b) != overlap || a.Below(n) != below {
			t.Fatalf("%v and %v share %d, want %d; below %d it has %d, want %d", a, b, a.Overlap(b), overlap, n, a.Below(n), below)
		}
	})
}

func TestPESetText(t *testing.T) {
	set := berth.NewPESet(berth.Run{Lo: 64, Hi: 96}, berth.Run{Lo: 0, Hi: 32}, berth.Run{Lo: 100, Hi: 101}, berth.Run{Lo: 7, Hi: 7})
	data, err := json.Marshal(struct {
		PEs  berth.PESet `json:"pes,omitzero"`
		None berth.PESet `json:"none,omitzero"`
	}{PEs: set})
	if want := `{"pes":"0-31,64-95,100"}`; err != nil || string(data) != want {
		t.Fatalf("%s %v, want %s", data, err, want)
	}
	for _, bad := range []string{"-", "1-", "-1", "a", "3-1", "1,1", "0-5,5", "1,,2", " 1", "1-2-3", "1048576", "99999999999999999999", "+1", "1_0"} {
		if got, err := berth.ParsePESet(bad); err == nil {
			t.Errorf("%q reads as %q", bad, got)
		}
	}
	if got, err := berth.ParsePESet("5,0-3,1048575"); err != nil || got.String() != "0-3,5,1048575" {
		t.Errorf("%q %v", got, err)
	}
}

func FuzzParsePESet(f *testing.F) {
	f.Add("0-31,64-95,100")
	f.Add("5,0-3")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := berth.ParsePESet(text)
		if err != nil {
			return
		}
		again, err := berth.ParsePESet(set.String())
		if err != nil || !again.Equal(set) || again.Count() != set.Count() {
			t.Fatalf("%q became %q became %q, %v", text, set, again, err)
		}
	})
}
