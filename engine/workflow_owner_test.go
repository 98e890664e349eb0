package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/policy"
)

// holdings is an engine with workflows whose tasks' reservations are treated as any others are.
type holdings struct {
	rng    *rand.Rand
	config engine.Config
	e      *engine.Engine
	now    berth.Time
	flows  int
	ids    []string // of reservations and of tasks
}

func drawOwned(seed uint64) *holdings {
	o := &holdings{rng: rand.New(rand.NewPCG(seed, 21)), config: shores(berth.Late)}
	for i := range o.config.Sites {
		s := &o.config.Sites[i]
		if s.Pools[0].PEs = 8; o.rng.IntN(3) == 0 {
			s.Pools[0].Binding = berth.Early
		}
		s.Managed = o.rng.IntN(3) == 0
		if o.rng.IntN(2) == 0 {
			s.Software = []berth.Software{{Name: "cfd", Licences: 2}}
		}
	}
	if o.rng.IntN(2) == 0 {
		o.config.Uplink = 1500
	}
	if o.rng.IntN(3) == 0 {
		o.config.Preempt = true
	}
	if o.rng.IntN(3) == 0 {
		o.config.Limits = policy.Limits{{Name: policy.LimitActive, Value: int64(4 + o.rng.IntN(20))}, {Name: policy.LimitShare, Value: int64(40 + o.rng.IntN(60))}}
	}
	return o
}

// workflow draws one that may read files over the uplink and take licences.
func (o *holdings) workflow() *berth.Workflow {
	o.flows++
	w := flow(fmt.Sprint("w", o.flows), o.now, berth.Forever)
	for i := range 2 + o.rng.IntN(6) {
		one := berth.WorkflowTask{ID: fmt.Sprint("t", i), Seconds: float64(10 + o.rng.IntN(60)), Alpha: .2, Most: berth.Count(1 + o.rng.IntN(4)), Retries: o.rng.IntN(2)}
		for parent := range i {
			if o.rng.IntN(3) == 0 {
				one.After = append(one.After, parent)
				one.Reads = append(one.Reads, int64(o.rng.IntN(2))*4_000_000)
			}
		}
		if o.rng.IntN(4) == 0 {
			one.Site = []string{"left", "right"}[o.rng.IntN(2)]
		}
		if o.rng.IntN(6) == 0 {
			one.Software, one.Licences = "cfd", 1
		}
		w.Tasks = append(w.Tasks, one)
		o.ids = append(o.ids, engine.TaskID(w.ID, i, 1))
	}
	w.Routes = []berth.Route{{From: "left", To: "right"}, {From: "right", To: "left"}}
	if o.rng.IntN(3) == 0 {
		w.Deadline, w.Algorithm = o.now+berth.Time(200+o.rng.IntN(600)), "dl-bd-cpar"
	}
	if o.rng.IntN(4) == 0 {
		w.Hold = 60
	}
	return w
}

// event draws what callers and sites may send about anything that has an id.
func (o *holdings) event() (string, engine.Event) {
	id := "none"
	if live := slices.Collect(o.e.Reservations()); len(live) > 0 && o.rng.IntN(8) > 0 {
		id = live[o.rng.IntN(len(live))].Request.ID
	} else if len(o.ids) > 0 {
		id = o.ids[max(0, len(o.ids)-1-o.rng.IntN(12))]
	}
	pool := berth.PoolID([]string{"left", "right"}[o.rng.IntN(2)], "p")
	pes := berth.NewPESet(berth.Run{Lo: 0, Hi: berth.PE(1 + o.rng.IntN(8))})
	request := func(id string) *berth.Request {
		r := berth.Rigid(id, o.now, o.now+berth.Time(o.rng.IntN(80)), o.now+berth.Time(100+o.rng.IntN(500)), berth.Count(1+o.rng.IntN(6)), berth.Duration(5+o.rng.IntN(80)))
		r.User = []string{"ada", "bob"}[o.rng.IntN(2)]
		if o.rng.IntN(5) == 0 {
			r.Hold = 30
		}
		return &r
	}
	switch o.rng.IntN(18) {
	case 0, 1:
		return "submit", engine.SubmitWorkflow(o.workflow())
	case 2:
		id := fmt.Sprint("r", len(o.ids))
		if o.rng.IntN(4) == 0 { // the id that a task has, or would have next
			id = engine.TaskID(fmt.Sprint("w", o.flows+o.rng.IntN(2)), o.rng.IntN(3), 1+o.rng.IntN(2))
		}
		o.ids = append(o.ids, id)
		return "reserve", engine.Submit(request(id))
	case 3, 4:
		return "modify", engine.Modify(request(id))
	case 5:
		return "extend", engine.Extend(id, o.now+berth.Time(10+o.rng.IntN(200)))
	case 6:
		return "cancel", engine.Cancel(id)
	case 7:
		return "confirm", engine.Confirm(id)
	case 8:
		return "check in", engine.CheckIn(id)
	case 9:
		return "down", engine.Down(berth.Outage{Resource: pool, PEs: pes, Until: berth.Forever})
	case 10:
		return "announce", engine.Down(berth.Outage{Name: fmt.Sprint("o", o.now), Resource: pool, PEs: pes, From: o.now + 30, Until: o.now + 90})
	case 11:
		return "up", engine.Up(pool, pes)
	case 12:
		return "report", engine.Report(id, []berth.Outcome{berth.Succeeded, berth.FailedForGood, berth.StillRunning}[o.rng.IntN(3)], "")
	case 13:
		return "finish", engine.Finish(id)
	case 14:
		return "reject", engine.Reject(id, &berth.Refusal{Reason: berth.SiteRefused, Wanted: 1})
	case 15:
		return "relocate", engine.Relocate(id, pool, pes)
	case 16:
		if flow := fmt.Sprint("w", max(1, o.flows-o.rng.IntN(3))); o.rng.IntN(3) > 0 {
			return "confirm workflow", engine.ConfirmWorkflow(flow)
		} else {
			return "cancel workflow", engine.CancelWorkflow(flow)
		}
	}
	return "wake", engine.Wake()
}

// The reservation of a task can be treated as any other: whatever is asked about it, the state stays
// sound, a restored engine decides alike, who only folds has the same state, and what is refused by an
// error changes nothing.
func TestTasksOfWorkflowsAreTreatedAsReservations(t *testing.T) {
	done := map[string]int{}
	for seed := range uint64(effort.Cases(100)) {
		o := drawOwned(seed)
		o.e = newEngine(t, o.config)
		folded := newEngine(t, o.config)
		for step := range 60 {
			o.now += berth.Time(o.rng.IntN(15))
			// What is due comes first, so that an error can be seen to change nothing.
			changes, _, err := o.e.Apply(o.now, engine.Wake())
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if err := folded.Fold(changes); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			before := o.e.Hash()
			twin, err := engine.Restore(o.config, o.e.Snapshot())
			if err != nil || twin.Hash() != before {
				t.Fatalf("seed %d, step %d: it is restored otherwise, %v", seed, step, err)
			}
			what, event := o.event()
			changes, effects, err := o.e.Apply(o.now, event)
			alike, effectsToo, again := twin.Apply(o.now, event)
			if fmt.Sprint(err) != fmt.Sprint(again) || len(alike) != len(changes) || len(effects) != len(effectsToo) || twin.Hash() != o.e.Hash() {
				t.Fatalf("seed %d, step %d, %s %s: a restored engine decides otherwise: %v, %v", seed, step, what, event.ID, err, again)
			}
			if err != nil && o.e.Hash() != before {
				t.Fatalf("seed %d, step %d, %s %s: %v, and the state is another one", seed, step, what, event.ID, err)
			}
			if err := folded.Fold(changes); err != nil || folded.Hash() != o.e.Hash() {
				t.Fatalf("seed %d, step %d, %s %s: folded it is another state, %v", seed, step, what, event.ID, err)
			}
			if err := o.e.Check(); err != nil {
				t.Fatalf("seed %d, step %d, %s %s: %v", seed, step, what, event.ID, err)
			}
			if strings.HasPrefix(event.ID, "w") && !strings.Contains(what, "workflow") {
				what += " a task"
			}
			if err != nil {
				what += ": error"
			}
			done[what]++
		}
	}
	var table []string
	for what, n := range done {
		table = append(table, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(table)
	t.Logf("%s", strings.Join(table, "\n"))
	for _, what := range []string{"modify", "extend", "cancel", "confirm", "check in", "report", "finish", "reject", "relocate"} {
		if effort.Full() && done[what+" a task"]+done[what+" a task: error"] < 30 {
			t.Errorf("%s a task: %d times", what, done[what+" a task"])
		}
	}
}
