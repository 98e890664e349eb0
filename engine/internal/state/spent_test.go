package state

import (
	"fmt"
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
