package policy

import "testing"

// Each limit is found at its place in LimitKinds, and nothing else is found.
func TestLimitsAreAtTheirPlaces(t *testing.T) {
	if len(LimitKinds) != int(numLimits) {
		t.Fatalf("%d kinds of limits, want %d", len(LimitKinds), numLimits)
	}
	for at, name := range map[LimitIndex]LimitName{
		ByHold: LimitHold, ByLead: LimitLead, ByReservations: LimitReservations, ByActive: LimitActive, ByNoShow: LimitNoShow, ByLength: LimitLength,
		ByShare: LimitShare, ByPESeconds: LimitPESeconds, ByBudget: LimitBudget, ByMonthBudget: LimitMonthBudget, ByDelay: LimitDelay, ByIdle: LimitIdle,
		ByRate: LimitRate, ByBurst: LimitBurst, ByStreams: LimitStreams, ByRequest: LimitRequest, ByRemembered: LimitRemembered,
	} {
		if LimitKinds[at].Name != name {
			t.Errorf("%s is at the place of %s", LimitKinds[at].Name, name)
		}
		if got, known := limitIndex(name); got != at || !known {
			t.Errorf("%s is found at %d, %v; it is at %d", name, got, known, at)
		}
	}
	if at, known := limitIndex("nothing"); known {
		t.Errorf("a limit that there is not is found at %d", at)
	}
}
