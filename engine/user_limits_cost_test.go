package engine_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// A request of a user who has a share of a pool is not placed by counting all that they
// have there anew: that was most of what an array of 1,000 cost, for which others waited.
// What is allocated for it tells, which no other work on the machine disturbs.
func TestOneWhoHasMuchIsNotCountedAnew(t *testing.T) {
	e, err := engine.New(engine.Config{
		Sites:  []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 1024, Binding: berth.Late}}}},
		Limits: policy.Limits{{Name: policy.LimitShare, Value: 900}},
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ask := func() {
		r := owned(fmt.Sprint(n), berth.Time(100*n), berth.Time(100*n+1000), 3, 60+berth.Duration(n%7))
		n++
		if _, _, err := e.Apply(0, engine.Submit(&r)); err != nil {
			t.Fatal(err)
		}
	}
	bytesOf := func(requests int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range requests {
			ask()
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / uint64(requests)
	}
	for range 100 {
		ask()
	}
	few := bytesOf(100)
	for range 8000 {
		ask()
	}
	many := bytesOf(100)
	if e.Live() != n {
		t.Fatalf("of %d requests %d are promised", n, e.Live())
	}
	if many > 4*few {
		t.Errorf("a request of one who has 8,000 reservations takes %d bytes, of one who has 100 %d", many, few)
	}
}
