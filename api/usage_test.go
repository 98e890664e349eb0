package api_test

import (
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
)

// What was used is told in PE-hours, for months from one to another; what is no month is at fault.
func TestUsage(t *testing.T) {
	w := newWorld(t, api.Options{})
	want := form.Used{User: "alice", Account: "phys", Month: "2027-01", Reservations: 3, NoShows: 1, Charged: 1.5, Held: 2, Promised: 5000, Delivered: 4000, Ran: 3000, Moved: 3, Late: 2, Broken: 1}
	for _, path := range []string{"/v1/usage", "/v1/usage?from=2026-12", "/v1/usage?to=2027-01", "/v1/usage?from=2027-01&to=2027-01"} {
		if got := into[form.Usage](t, w.do("alice", "GET", path, ""), 200); len(got.Used) != 1 || got.Used[0] != want || got.Since != 0 {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	if got := into[form.Usage](t, w.do("alice", "GET", "/v1/usage?to=2026-12", ""), 200); len(got.Used) != 0 {
		t.Errorf("until the month before: %+v", got)
	}
	for query, field := range map[string]string{"from=2027": "from: ", "to=2027-13": "to: ", "from=": "from: "} {
		wantProblem(t, w.do("alice", "GET", "/v1/usage?"+query, ""), 422, field)
	}
}
