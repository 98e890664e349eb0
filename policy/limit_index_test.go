package policy

import "testing"

// Each limit is found at its place in LimitKinds, and nothing else is found.
func TestLimitsAreAtTheirPlaces(t *testing.T) {
	if len(LimitKinds) != numLimits {
		t.Fatalf("%d kinds of limits, want %d", len(LimitKinds), numLimits)
	}
	for i := range LimitKinds {
		if at := limitIndex(LimitKinds[i].Name); at != i {
			t.Errorf("%s is found at %d, and is at %d", LimitKinds[i].Name, at, i)
		}
	}
	if at := limitIndex("nothing"); at != -1 {
		t.Errorf("a limit that there is not is found at %d", at)
	}
}
