package berth_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
)

func TestConstraints(t *testing.T) {
	for _, c := range []struct {
		text         string
		alternatives int
		met          string // which of the sets below meet which alternative
	}{
		{"ib", 1, "ib:0 intel,ib:0 amd,ib:0"},
		{"intel&ib", 1, "intel,ib:0"},
		{"intel|amd", 1, "intel:0 intel,ib:0 amd,ib:0"},
		{"(intel|amd)&ib", 1, "intel,ib:0 amd,ib:0"},
		{"[intel|amd]", 2, "intel:0 intel,ib:0 amd,ib:1"},
		{"[ib]", 1, "ib:0 intel,ib:0 amd,ib:0"},
		{"[(intel&ib)|amd|none]", 3, "intel,ib:0 amd,ib:1"},
		{"[intel&ib]", 1, "intel,ib:0"},
		{"intel|a0z9AZ._-:=+@%/é", 1, "intel:0 intel,ib:0"}, // every kind of byte that a name may have
	} {
		parsed, err := berth.ParseConstraint(c.text)
		if err != nil || parsed.Alternatives() != c.alternatives {
			t.Errorf("%s: %v, %d alternatives, want %d", c.text, err, parsed.Alternatives(), c.alternatives)
			continue
		}
		var met []string
		for _, set := range []string{"ib", "intel", "intel,ib", "amd,ib"} {
			has := func(feature string) bool { return slices.Contains(strings.Split(set, ","), feature) }
			for i := range parsed.Alternatives() {
				if parsed.Met(i, has) {
					met = append(met, set+":"+string(rune('0'+i)))
				}
			}
		}
		if got := strings.Join(met, " "); got != c.met {
			t.Errorf("%s is met by %s, want %s", c.text, got, c.met)
		}
	}
	for _, text := range []string{
		"", " ", "a b", "&", "a&", "|a", "a||b", "a&b|c", "(a", "a)", "()", "[a|b", "a|b]", "[a|b]&c", "[]", "[[a]]", "a*2", strings.Repeat("(", 100) + "a" + strings.Repeat(")", 100),
		strings.Repeat("a", 5000), "!a", "a,b",
	} {
		if _, err := berth.ParseConstraint(text); err == nil || !strings.Contains(err.Error(), "constraint: ") || !strings.Contains(err.Error(), "intel&(ib|opa)") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func FuzzParseConstraint(f *testing.F) {
	f.Add("(intel|amd)&ib")
	f.Add("[a|(b&c)]")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := berth.ParseConstraint(text)
		if err != nil {
			return
		}
		for i := range c.Alternatives() {
			none, all := c.Met(i, func(string) bool { return false }), c.Met(i, func(string) bool { return true })
			if none || !all {
				t.Errorf("%q without features: %v, with all: %v", text, none, all)
			}
		}
	})
}

func TestClassesOfAPool(t *testing.T) {
	class := func(name string, lo, hi berth.PE) berth.Class {
		return berth.Class{Name: name, PEs: berth.NewPESet(berth.Run{Lo: lo, Hi: hi})}
	}
	for _, c := range []struct {
		want string // of the message; empty for none
		pool berth.Pool
	}{
		{"", berth.Pool{Name: "p", PEs: 4, Binding: berth.Late}},
		{"", berth.Pool{Name: "p", PEs: 4, Binding: berth.Early, Classes: []berth.Class{class("a", 0, 2), class("b", 2, 4)}}},
		{"binds late", berth.Pool{Name: "p", PEs: 4, Binding: berth.Late, Classes: []berth.Class{class("a", 0, 4)}}},
		{"3 of the 4 PEs", berth.Pool{Name: "p", PEs: 4, Binding: berth.Early, Classes: []berth.Class{class("a", 0, 2), class("b", 3, 4)}}},
		{"of another class too", berth.Pool{Name: "p", PEs: 4, Binding: berth.Early, Classes: []berth.Class{class("a", 0, 3), class("b", 2, 4)}}},
		{"PEs 0 to 3", berth.Pool{Name: "p", PEs: 4, Binding: berth.Early, Classes: []berth.Class{class("a", 0, 5)}}},
		{"PEs 0 to 3", berth.Pool{Name: "p", PEs: 4, Binding: berth.Early, Classes: []berth.Class{class("a", 0, 4), {Name: "b"}}}},
		{"a name of its own", berth.Pool{Name: "p", PEs: 4, Binding: berth.Early, Classes: []berth.Class{class("a", 0, 2), class("a", 2, 4)}}},
		{"give it for the pool", berth.Pool{Name: "p", PEs: 1, Binding: berth.Early, Classes: []berth.Class{
			{Name: "a", PEs: berth.PEsOf(0), Node: berth.Node{AcceleratorSpeed: 2000}},
		}}},
	} {
		err := c.pool.CheckClasses()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Msg, c.want) {
			t.Errorf("%+v: %v, want %q", c.pool, err, c.want)
		}
	}
}

// Each class says what its PEs are made of, and a pool without classes does itself.
func TestNodesOfPools(t *testing.T) {
	alike := berth.Pool{Node: berth.Node{MemoryMB: 1}}
	mixed := berth.Pool{Classes: []berth.Class{{Node: berth.Node{MemoryMB: 2}}, {Node: berth.Node{MemoryMB: 3}}}}
	for p, want := range map[*berth.Pool][]int64{&alike: {1}, &mixed: {2, 3}} {
		var got []int64
		for n := range p.Nodes() {
			got = append(got, n.MemoryMB)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	for n := range mixed.Nodes() {
		if n.MemoryMB != 2 {
			t.Error("a reader who stops is given more")
		}
		break
	}
}
