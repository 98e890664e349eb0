package state

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
)

// What is over is as it was while its moment lasts. Its memory is used again when time moves
// on, but for what a managed site has still to be told of.
func TestMemoryOfWhatIsOver(t *testing.T) {
	for _, managed := range []bool{false, true} {
		t.Run(fmt.Sprintf("managed=%t", managed), func(t *testing.T) {
			config := smallConfig()
			config.Sites[0].Managed = managed
			s := foldedBy(t, config, "late")
			fold := func(c change.Change) {
				t.Helper()
				if err := s.Fold(&c, Ref{}); err != nil {
					t.Fatal(err)
				}
			}
			accepted := func(id string, sequence uint64) *Entry {
				r := berth.Rigid(id, 0, 0, 100, 4, 2)
				fold(change.Change{Kind: change.Queued, ID: id, Request: &r})
				fold(change.Change{Kind: change.Accepted, ID: id, Reservation: &berth.Reservation{Request: &r, State: berth.Confirmed, Sequence: sequence, Allotments: []berth.Allotment{place("late", berth.Time(30+2*sequence), berth.Time(32+2*sequence))}}})
				return s.Entry(id)
			}
			a := s.Entry("a")
			fold(change.Change{Kind: change.Cancelled, ID: "a"})
			if c := accepted("c", 3); c == a || a.ID() != "a" || a.Start() != 5 {
				t.Errorf("at the moment of its end a is %q from %d on, c is in its place: %t", a.ID(), a.Start(), c == a)
			}
			fold(change.Change{Kind: change.Advanced, Now: 1})
			if d := accepted("d", 4); (d == a) == managed || d.ID() != "d" || d.Start() != 38 || d.End() != 40 {
				t.Errorf("later d is %q from %d to %d, in the place of a: %t", d.ID(), d.Start(), d.End(), d == a)
			}
		})
	}
}

// A job that takes the memory of another is another one.
func TestMemoryOfJobs(t *testing.T) {
	s := small()
	fold := func(c change.Change) {
		t.Helper()
		if err := s.Fold(&c, Ref{}); err != nil {
			t.Fatal(err)
		}
	}
	queue := func(id string, npe berth.Count) *Job {
		r := berth.Rigid(id, 0, 0, berth.Forever, npe, 2)
		r.Kind = berth.KindJob
		fold(change.Change{Kind: change.Queued, ID: id, Request: &r})
		return s.Job(id)
	}
	a := queue("a", 4)
	fold(change.Change{Kind: change.Withdrawn, ID: "a"})
	if b := queue("b", 3); b == a || a.Request().ID != "a" {
		t.Error("a is written while it may still be looked at")
	}
	number := a.Number()
	fold(change.Change{Kind: change.Advanced, Now: 1})
	if c := queue("c", 2); c != a || c.Number() == number || c.Variant().NPE != 2 || c.PlannedStart() != berth.Forever || c.Generation() != 0 {
		t.Errorf("c is %+v, the room of a: %t, whose number was %d", c, c == a, number)
	}
}

// What was promised stays as it was once others have it: changes write a copy, and its memory is not used again.
func TestPromisesAreNotWrittenOnceOthersHaveThem(t *testing.T) {
	s := foldedBy(t, smallConfig(), "late")
	fold := func(c change.Change) {
		t.Helper()
		if err := s.Fold(&c, Ref{}); err != nil {
			t.Fatal(err)
		}
	}
	a := s.Entry("a")
	promise := a.Promise()
	if again := a.Promise(); again != promise || a.Look() != promise {
		t.Error("what has not changed is promised in other memory")
	}
	if given := &promise.Terms.Variants[0]; given != &promise.Request.Parts[0].Variants[0] {
		t.Error("the variant that was promised is not that of the request")
	}
	was := promise.Clone()
	fold(change.Change{Kind: change.Extended, ID: "a", Until: promise.End() + 3})
	if a.End() != was.End()+3 || a.Promise() == promise {
		t.Errorf("a lasts until %d, want %d, in memory of its own", a.End(), was.End()+3)
	}
	extended := a.Promise()
	longer := extended.Clone()
	fold(change.Change{Kind: change.Cancelled, ID: "a"})
	fold(change.Change{Kind: change.Advanced, Now: 1})
	r := berth.Rigid("c", 0, 0, 100, 4, 2)
	fold(change.Change{Kind: change.Queued, ID: "c", Request: &r})
	fold(change.Change{Kind: change.Accepted, ID: "c", Reservation: &berth.Reservation{Request: &r, State: berth.Confirmed, Sequence: 3, Allotments: []berth.Allotment{place("late", 36, 38)}}})
	if s.Entry("c") != a {
		t.Fatal("c is not in the memory of a, which this test is about")
	}
	if !reflect.DeepEqual(*promise, was) || !reflect.DeepEqual(*extended, longer) {
		t.Errorf("promised was\n%+v\nand then\n%+v;\nnow these are\n%+v\nand\n%+v", was, longer, *promise, *extended)
	}
}

// A million promises are live at once, so that each byte of an entry takes a megabyte.
func TestEntriesAreSmall(t *testing.T) {
	if size := reflect.TypeFor[Entry]().Size(); size > 96 {
		t.Errorf("an entry has %d bytes, want at most 96", size)
	}
}
