package engine_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// Who reads what is undecided, requests and then jobs, may stop after any of it.
func TestReadingStopsWhenTheReaderDoes(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Trigger, config.Period, config.Jobs = engine.TriggerOnPeriod, 100, "fcfs"
	e := newEngine(t, config)
	for _, id := range []string{"a", "b"} {
		apply(t, e, 1, engine.Submit(new(berth.Rigid(id, 1, 1, 1000, 1, 10))))
		apply(t, e, 1, engine.Submit(new(berth.Job("job-"+id, 1, 1, 10))))
	}
	var all []string
	for r := range e.Pending() {
		all = append(all, r.ID)
	}
	if len(all) != 4 {
		t.Fatalf("pending are %v, want two requests and two jobs", all)
	}
	for n := 1; n <= len(all); n++ {
		read := 0
		for range e.Pending() {
			if read++; read == n {
				break
			}
		}
		if read != n {
			t.Errorf("%d read, want %d", read, n)
		}
	}
}
