package engine_test

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// What was promised by a program whose records had no terms has those that follow from it as
// soon as its record is read, not only once it is restored.
func TestPromisesOfEarlierRecordsHaveTerms(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(8, binding)
		e := newEngine(t, config)
		r := berth.Rigid("r", 0, 0, 100, 4, 30)
		r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: 2, Duration: 60})
		r.Hold = 20
		changes := slices.Clone(submit(t, e, 0, r))
		for i := range changes {
			if changes[i].Kind == change.Accepted {
				without := *changes[i].Reservation
				without.Terms = berth.Terms{}
				changes[i].Reservation = &without
			}
		}
		late, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := late.Fold(changes); err != nil {
			t.Fatal(err)
		}
		want, _ := e.Reservation("r")
		got, _ := late.Reservation("r")
		if len(want.Terms.Variants) != 1 || !slices.Equal(got.Terms.Variants, want.Terms.Variants) || got.Terms.Deadline != want.Terms.Deadline || got.Terms.Expires != want.Terms.Expires {
			t.Errorf("%s: %+v, want %+v", binding, got.Terms, want.Terms)
		}
	}
}
