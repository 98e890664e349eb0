package sim_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// A simulation that ends with the last decision has the lines of one that goes on until the last end,
// which is its plain form, but for the PEs of pools that bind late.
func TestPromisesEqualPlain(t *testing.T) {
	early, accepted := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		s := &scene{T: rt}
		s.drawSites(t)
		s.drawConfig()
		s.drawWork()
		s.config.Compress, s.config.Preempt = false, false
		if s.config.Immediate == engine.ImmediateQueue {
			s.config.Immediate = ""
		}
		s.work = sim.Workload{Requests: s.work.Requests}
		var requests []berth.Request
		for i := range s.work.Requests {
			if r := &s.work.Requests[i]; !r.IsJob() {
				r.Hold = 0
				requests = append(requests, *r)
			}
		}
		s.work.Requests = requests
		replay := func() []berth.Line {
			lines, err := sim.Replay(t.Context(), s.config, s.work, nil)
			if err != nil {
				t.Fatalf("%v\nin %s", err, s.text)
			}
			return lines
		}
		want := replay()
		s.work.Promises = true
		got := replay()
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d\nin %s", len(got), len(want), s.text)
		}
		for i := range got {
			if got[i].Accepted {
				accepted++
			}
			if !got[i].PEs.Empty() {
				early++
			} else {
				want[i].PEs = got[i].PEs
			}
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("%+v, want %+v\nin %s %+v", got[i], want[i], s.text, s.config)
			}
		}
	})
	if accepted == 0 || early == 0 {
		t.Errorf("%d accepted, %d with PEs; want some", accepted, early)
	}
}

// What may change a promise after it was given is refused where only promises are asked for.
func TestPromisesAlone(t *testing.T) {
	request := berth.Rigid("r", 0, 0, 100, 1, 10)
	job := berth.Rigid("j", 0, 0, berth.Forever, 1, 10)
	job.Kind = berth.KindJob
	held, unused := request, request
	held.Hold, unused.NoShow = 5, 5
	simple := sim.Workload{Requests: []berth.Request{request}, Promises: true}
	for _, change := range []func(*engine.Config){
		func(c *engine.Config) { c.Compress = true }, func(c *engine.Config) { c.Preempt = true }, func(c *engine.Config) { c.Immediate = engine.ImmediateQueue },
	} {
		config := engine.Config{Sites: sim.OnePool(4, berth.Late)}
		change(&config)
		if _, err := sim.Replay(t.Context(), config, simple, nil); err == nil || !strings.Contains(err.Error(), "promises move") {
			t.Errorf("%v, want an error about promises that move", err)
		}
	}
	for name, w := range map[string]sim.Workload{
		"runs":    {Requests: []berth.Request{request}, Runs: []berth.Duration{3}},
		"plain":   {Plain: []berth.Plain{{ID: "r", Deadline: 100, NPE: 1, Duration: 10}}},
		"outages": {Requests: []berth.Request{request}, Outages: func(func(sim.Outage) bool) {}},
		"monitor": {Requests: []berth.Request{request}, Monitor: &watch{}},
		"job":     {Requests: []berth.Request{job}},
		"held":    {Requests: []berth.Request{held}},
		"no show": {Requests: []berth.Request{unused}},
	} {
		w.Promises = true
		_, err := sim.Replay(t.Context(), engine.Config{Sites: sim.OnePool(4, berth.Late)}, w, nil)
		if mistake, is := errors.AsType[*berth.Error](err); !is || mistake.Code != berth.Invalid {
			t.Errorf("%s: %v, want an error of code Invalid", name, err)
		}
	}
}
