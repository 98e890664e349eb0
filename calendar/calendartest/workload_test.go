package calendartest

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
)

// The published first outputs of splitmix64 for this seed.
func TestSplitmix64(t *testing.T) {
	s := splitmix64(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423} {
		if got := s.next(); got != want {
			t.Fatalf("output %d is %d, want %d", i, got, want)
		}
	}
}

// Horizons worked out outside the module, with the same order of operations.
func TestHorizon(t *testing.T) {
	for _, row := range []struct {
		w    Workload
		want berth.Time
	}{
		{Workload{PEs: 1024, K: 8, Load: .7, Requests: 1_000}, 321508},
		{Workload{PEs: 1024, K: 8, Odd: true, Load: .7, Requests: 1_000}, 650579},
		{Workload{PEs: 100_000, K: 14, Load: .9, Requests: 100_000}, 9400722},
		{Workload{PEs: 1024, K: 8, Load: .95, Requests: 1_000_000}, 236899929},
	} {
		if got := row.w.Horizon(); got != row.want {
			t.Errorf("%v: horizon %d, want %d", row.w, got, row.want)
		}
	}
}

// The first requests of seed 42, worked out outside the module.
func TestFirstRequests(t *testing.T) {
	for _, row := range []struct {
		mode Mode
		odd  bool
		want []WorkloadRequest
	}{
		{Advance, false, []WorkloadRequest{{50778, 7439, 32}, {238478, 10728, 16}, {213641, 13024, 32}}},
		{Backlog, false, []WorkloadRequest{{0, 7439, 32}, {0, 10728, 16}, {0, 13024, 32}}},
		{Stream, false, []WorkloadRequest{{0, 7439, 32}, {321, 10728, 16}, {643, 13024, 32}}},
		{Backlog, true, []WorkloadRequest{{0, 7439, 22}, {0, 10728, 21}, {0, 13024, 94}}},
	} {
		w := Workload{Mode: row.mode, PEs: 1024, K: 8, Odd: row.odd, Load: .7, Requests: 1000, Seed: 42}
		if got := w.All()[:3]; !slices.Equal(got, row.want) {
			t.Errorf("%v begins with %+v, want %+v", w, got, row.want)
		}
	}
}
