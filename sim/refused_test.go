package sim_test

import (
	"errors"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// A listener hears of each refusal while the engine is as it was then, and its error ends the
// simulation.
func TestRefused(t *testing.T) {
	request := func(id string, arrival berth.Time) berth.Plain {
		return berth.Plain{ID: id, Arrival: arrival, Ready: arrival, Deadline: arrival + 10, Duration: 10, NPE: 3}
	}
	work := sim.Workload{Plain: []berth.Plain{request("a", 0), request("b", 5), request("c", 10), request("d", 12)}}
	var heard []string
	failing := errors.New("enough")
	work.Refused = func(e *engine.Engine, r *berth.Request) error {
		heard = append(heard, r.ID)
		if e.Now() != r.Arrival {
			t.Errorf("%s was refused at %d, and it is %d", r.ID, r.Arrival, e.Now())
		}
		if r.ID == "d" {
			return failing
		}
		offers, err := e.Offers(r, 1)
		if err == nil && (len(offers) != 1 || offers[0].Allotments[0].Start != 10) {
			t.Errorf("%s: %+v", r.ID, offers)
		}
		return err
	}
	config := engine.Config{Sites: sim.OnePool(4, berth.Early), Place: "first-fit"}
	if _, err := sim.Replay(t.Context(), config, work, nil); !errors.Is(err, failing) {
		t.Errorf("error %v", err)
	}
	if len(heard) != 2 || heard[0] != "b" || heard[1] != "d" {
		t.Errorf("heard of %v, want b and d", heard)
	}
}
