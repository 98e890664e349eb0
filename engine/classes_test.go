package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// PEs that are made otherwise after they were promised are told of those promises that require what they had: of a
// constraint, of one of its alternatives, which is the one that most of them have, of one part, and of memory.
func TestPEsThatLackWhatWasRequiredAreTold(t *testing.T) {
	class := func(name string, memory int64, pes ...berth.PE) berth.Class {
		return berth.Class{Name: name, PEs: berth.PEsOf(pes...), Node: berth.Node{MemoryMB: memory}}
	}
	config := func(classes ...berth.Class) engine.Config {
		return engine.Config{Sites: []berth.Site{{Name: "s", Managed: true, Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Early, Classes: classes}}}}}
	}
	before := config(class("a", 1000, 0, 1, 2, 3), class("b", 4000, 4, 5, 6, 7))
	e := newEngine(t, before)
	for i, change := range []func(r *berth.Request){
		func(*berth.Request) {}, // any
		func(r *berth.Request) { r.Constraint = "a" },
		func(r *berth.Request) { r.Constraint = "[a|b]" },
		func(r *berth.Request) { r.MemoryMB = 2000 },
		func(r *berth.Request) {
			r.Parts = []berth.Part{{Variants: r.Parts[0].Variants}, {Variants: r.Parts[0].Variants, Constraint: "b"}}
		},
	} {
		start := berth.Time(100 * (i + 1))
		r := berth.Rigid(fmt.Sprint("r", i), 0, start, start+50, 4, 50)
		change(&r)
		apply(t, e, 0, engine.Submit(&r))
		if _, live := e.Reservation(r.ID); !live {
			t.Fatalf("%s is not promised", r.ID)
		}
	}
	told := func(e *engine.Engine) string {
		var all []string
		for id, a := range e.Unsuited("s") {
			all = append(all, fmt.Sprintf("%s %s", id, a.PEs))
		}
		return strings.Join(all, "; ")
	}
	if got := told(e); got != "" {
		t.Errorf("as promised, told is %s", got)
	}
	for _, c := range []struct {
		now  engine.Config
		want string
	}{
		{config(class("a", 1000, 0, 1, 2), class("b", 4000, 3, 4, 5, 6, 7)), "r1 3; r2 3"},
		{config(class("a", 1000, 1, 2, 3, 7), class("b", 4000, 0, 4, 5, 6)), "r1 0; r2 0; r3 7; r4 7"},
		{config(class("a", 9000, 0, 1, 2, 3), class("b", 4000, 4, 5, 6, 7)), ""},
	} {
		again, err := engine.Restore(c.now, e.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if got := told(again); got != c.want {
			t.Errorf("told is %s, want %s", got, c.want)
		}
	}
	for id := range e.Unsuited("elsewhere") {
		t.Errorf("told of %s at another site", id)
	}
}
