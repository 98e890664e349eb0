package engine_test

import (
	"fmt"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

func Example() {
	e, err := engine.New(engine.Config{Sites: []berth.Site{{Name: "here", Pools: []berth.Pool{{Name: "batch", PEs: 8, Binding: berth.Early}}}}})
	if err != nil {
		panic(err)
	}
	r := berth.Rigid("wind", 0, 600, 7200, 6, 3600) // arrives at 0; 6 PEs for 3600 s within [600,7200)
	changes, _, err := e.Apply(0, engine.Submit(&r))
	if err != nil {
		panic(err)
	}
	for _, c := range changes {
		fmt.Println("change:", c.Kind)
		switch c.Kind {
		case change.Accepted:
			fmt.Println("PEs", c.Reservation.Allotments[0].PEs, "from", c.Reservation.Start(), "to", c.Reservation.End())
		case change.Refused:
			fmt.Println("no:", c.Refusal.Reason)
		}
	}
	// Output:
	// change: queued
	// change: accepted
	// PEs 0-5 from 600 to 4200
}
