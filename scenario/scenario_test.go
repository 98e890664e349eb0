package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/scenario"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/workload"
)

// Two placements compared on a log, as berth sim compares them.
func Example() {
	options := scenario.NewOptions()
	options.Workload = "../examples/first-light.swf"
	options.Policies = []string{"first-fit", "pe-worst"}
	machine, config, err := options.Settle(nil)
	if err != nil {
		log.Fatal(err)
	}
	replay, first, err := options.Open(machine, scenario.Input{})
	if err != nil {
		log.Fatal(err)
	}
	batch := scenario.Batch{Runs: options.Runs(replay.Jobs), Scenario: replay, First: first, Machine: machine, Config: config}
	results, err := batch.Do(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Printf("%s accepts %d of %d requests on %d PEs\n", r.Run.Policy, r.Metrics.Accepted, r.Metrics.Jobs, replay.PEs)
	}
	// Output:
	// first-fit accepts 112 of 150 requests on 64 PEs
	// pe-worst accepts 119 of 150 requests on 64 PEs
}

func TestOptionsThatAreMissingOrUnknownAreNamed(t *testing.T) {
	for _, c := range []struct{ workload, option, want string }{
		{"lublin:nope", "workload", "unknown model"},
		{"r.jsonl", "pes", "a file of requests does not tell"},
		{"r.swf", "pes", "has no MaxProcs"},
	} {
		options := scenario.NewOptions()
		options.Workload = c.workload
		machine, _, err := options.Settle(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = options.Open(machine, scenario.Input{Log: func(path string, opt workload.Options) (*workload.Workload, error) {
			text := `{"id":"r","arrival":0,"ready":0,"deadline":30,"duration":10,"npe":2}`
			if strings.HasSuffix(path, ".swf") {
				text = "1 0 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 -1 -1 -1 -1"
			}
			return workload.Read(strings.NewReader(text), path, opt)
		}})
		option, is := errors.AsType[*scenario.OptionError](err)
		if !is || option.Option != c.option || !strings.Contains(option.Msg, c.want) {
			t.Errorf("%s: %v, want %s: %s", c.workload, err, c.option, c.want)
		}
		if mistake, is := errors.AsType[*berth.Error](err); !is || mistake.Code != berth.Invalid || mistake.Field != c.option {
			t.Errorf("%s: %v is no mistake of the caller", c.workload, err)
		}
	}
}

func TestGivenOptionsRuleOverTheSitesFile(t *testing.T) {
	file, err := sites.Read(strings.NewReader("sites: [{name: n, pools: [{name: a, pes: 4, binding: late}, {name: b, pes: 8}]}]\npolicies: {place: pe-best, order: sjf}\n"), "s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	options := scenario.NewOptions()
	machine, config, err := options.Settle(file)
	if err != nil || options.Policies[0] != "pe-best" || config.Order != "sjf" || options.Binds[0] != scenario.Mixed {
		t.Errorf("%v, %v, %q, %v; want the file's placement and order, and its own bindings", err, options.Policies, config.Order, options.Binds)
	}
	if largest, all := machine.PEs(); largest != 8 || all != 12 || machine.Pools() != 2 || machine.Links() {
		t.Errorf("%d of %d PEs in %d pools", largest, all, machine.Pools())
	}
	options = scenario.NewOptions()
	options.Order, options.Given = "fcfs", func(name string) bool { return name == "policy" || name == "bind" }
	if machine, config, err = options.Settle(file); err != nil || options.Policies[0] != "first-fit" || config.Order != "fcfs" || options.Binds[0] != "early" {
		t.Errorf("%v, %v, %q, %v; want what was given", err, options.Policies, config.Order, options.Binds)
	}
	if on := machine.Sites(0, berth.Early); on[0].Pools[0].Binding != berth.Early || file.Sites[0].Pools[0].Binding != berth.Late {
		t.Errorf("%v of %v, want a copy bound early", on, file.Sites)
	}
}
