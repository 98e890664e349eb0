package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/policy"
)

// readyCase is an engine with a workflow that was planned on it, and what happened since.
type readyCase struct {
	config engine.Config
	events []engine.Event // before the plan
	since  []engine.Event // behind it
	now    berth.Time     // of the decision
	w      *berth.Workflow
}

func drawReady(rng *rand.Rand) readyCase {
	c := readyCase{config: onePool(berth.Count(8+rng.IntN(24)), berth.Late), w: meshed("w", 64+rng.IntN(60), berth.Forever)}
	if rng.IntN(6) == 0 {
		c.config.Sites[0].Pools[0].Binding = berth.Early
	}
	pools := &c.config.Sites[0].Pools
	if rng.IntN(2) == 0 {
		*pools = append(*pools, berth.Pool{Name: "second", PEs: 16, Binding: berth.Late, Speed: 1500})
	}
	c.config.Sites[0].Managed = rng.IntN(3) == 0
	if rng.IntN(3) == 0 {
		c.config.Limits = policy.Limits{
			{Name: policy.LimitActive, Value: int64(60 + rng.IntN(150))},
			{Name: policy.LimitPESeconds, Value: int64(5000 + rng.IntN(40_000))},
			{Name: policy.LimitShare, Value: int64(30 + rng.IntN(70))},
		}
	}
	if c.w.User = "ann"; rng.IntN(6) == 0 { // jobs are planned around promises, which go first
		c.config.Jobs = "conservative"
		for i := range 6 + rng.IntN(10) {
			j := berth.Job(fmt.Sprint("j", i), 0, berth.Count(1+rng.IntN(8)), berth.Duration(10+rng.IntN(200)))
			c.events = append(c.events, engine.Submit(&j))
		}
	}
	if rng.IntN(3) == 0 {
		c.w.Hold = 500
	}
	if rng.IntN(3) == 0 {
		c.w.Deadline = berth.Time(300 + rng.IntN(5000))
	}
	request := func(name string, i int) engine.Event {
		r := berth.Rigid(fmt.Sprint(name, i), 0, berth.Time(rng.IntN(700)), 9000, berth.Count(1+rng.IntN(8)), berth.Duration(10+rng.IntN(90)))
		if rng.IntN(2) == 0 {
			r.User = "ann"
		}
		return engine.Submit(&r)
	}
	for i := range rng.IntN(40) {
		c.events = append(c.events, request("r", i))
	}
	switch rng.IntN(4) {
	case 0: // the plan is decided about as it was made
	case 1:
		for i := range 1 + rng.IntN(3) {
			c.since = append(c.since, request("s", i))
		}
	case 2:
		c.since = append(c.since, engine.Cancel(fmt.Sprint("r", rng.IntN(40))))
	default:
		r := berth.Rigid("w.7", 0, 8000, 9000, 1, 10) // the id of a task
		c.since = append(c.since, engine.Submit(&r))
	}
	c.now = berth.Time(rng.IntN(4))
	return c
}

// decided returns what is decided about the workflow, followed beside or not.
func (c *readyCase) decided(t *testing.T, ready, last bool) (string, bool, bool) {
	t.Helper()
	e := newEngine(t, c.config)
	for _, event := range c.events {
		apply(t, e, 0, event)
	}
	plan, _, err := e.PlanWorkflow(c.w, engine.PlanOptions{From: 2})
	if err != nil {
		t.Fatal(err)
	}
	made := plan.IsReady()
	if plan.Last = last; !ready {
		plan.Unready()
	}
	for _, event := range c.since {
		_, _, _ = e.Apply(0, event) // what it comes to is the same for both
	}
	changes, effects, err := e.Apply(c.now, engine.SubmitPlanned(c.w, plan))
	if checked := e.Check(); checked != nil {
		t.Fatal(checked)
	}
	words := fmt.Sprint(err, e.Hash(), len(changes), effects)
	for i := range changes {
		text, err := json.Marshal(&changes[i])
		if err != nil {
			t.Fatal(err)
		}
		words += "\n" + string(text)
	}
	again := newEngine(t, c.config) // folds to the same
	for _, event := range append(append([]engine.Event{}, c.events...), c.since...) {
		_, _, _ = again.Apply(0, event)
	}
	if foldErr := again.Fold(changes); foldErr != nil || again.Hash() != e.Hash() {
		t.Fatalf("folded it is another state: %v", foldErr)
	}
	coded, is := errors.AsType[*berth.Error](err)
	return words, made && !plan.IsReady() && err == nil, is && coded.Code == berth.Conflict
}

// A plan that was followed beside is decided about as one that is followed where it is decided: to the
// last change, number and hash, whatever happened since it was made.
func TestAPlanMadeReadyIsDecidedAlike(t *testing.T) {
	used, conflicts, given := 0, 0, 0
	for seed := range uint64(effort.Cases(400)) {
		c := drawReady(rand.New(rand.NewPCG(seed, 15)))
		last := seed%2 == 0
		fast, quick, _ := c.decided(t, true, last)
		slow, _, conflict := c.decided(t, false, last)
		if fast != slow {
			t.Fatalf("seed %d: made ready it is\n%.2000s\nfollowed in place\n%.2000s", seed, fast, slow)
		}
		switch {
		case quick:
			used++
		case conflict:
			conflicts++
		default:
			given++
		}
	}
	if effort.Full() && (used < 100 || conflicts < 20 || given < 20) {
		t.Errorf("%d were used, %d in conflict, %d decided otherwise", used, conflicts, given)
	}
	t.Logf("%d were used, %d in conflict, %d decided otherwise", used, conflicts, given)
}

// What was made ready for another workflow is not used.
func TestAPlanIsReadyForItsWorkflowAlone(t *testing.T) {
	e := amongBookings(t, berth.Late)
	w, other := meshed("w", 80, berth.Forever), meshed("v", 80, berth.Forever)
	plan := planned(t, e, w, engine.PlanOptions{})
	if !plan.IsReady() {
		t.Fatal("it is not made ready")
	}
	changes := apply(t, e, 0, engine.SubmitPlanned(other, plan))
	if !plan.IsReady() || changes[0].Workflow.ID != "v" || !reflect.DeepEqual(changes[0].Workflow, other) {
		t.Errorf("%+v", changes[0].Workflow.ID)
	}
}

// Where jobs yield to promises, what they hold is no obstacle that a calendar shows: a plan is
// followed where it is decided about.
func TestAPlanAmongJobsThatYieldIsNotReady(t *testing.T) {
	for _, yields := range []bool{false, true} {
		config := onePool(64, berth.Late)
		config.Preempt = yields
		e := newEngine(t, config)
		submit(t, e, 0, berth.Job("j", 0, 64, 1000))
		w := meshed("w", 80, berth.Forever)
		plan := planned(t, e, w, engine.PlanOptions{})
		if plan.IsReady() == yields {
			t.Errorf("jobs yield %t: made ready %t", yields, plan.IsReady())
		}
		changes := apply(t, e, 0, engine.SubmitPlanned(w, plan))
		if last := changes[len(changes)-1].Kind; !slices.ContainsFunc(changes, func(c change.Change) bool { return c.Kind == change.WorkflowPromised }) {
			t.Errorf("jobs yield %t: it is not promised, %s comes last", yields, last)
		}
	}
}

// What takes a licence beside its PEs is placed where it is decided about: others may have taken the
// licences meanwhile, which counts of PEs do not show.
func TestAPlanWithLicencesIsNotReady(t *testing.T) {
	for _, licensed := range []bool{false, true} {
		config := onePool(64, berth.Late)
		config.Sites[0].Software = []berth.Software{{Name: "cfd", Licences: 1}}
		e := newEngine(t, config)
		w := meshed("w", 80, berth.Forever)
		if licensed {
			w.Tasks[79].Software, w.Tasks[79].Licences = "cfd", 1
		}
		plan := planned(t, e, w, engine.PlanOptions{})
		if plan.IsReady() == licensed {
			t.Errorf("a licence %t: made ready %t", licensed, plan.IsReady())
		}
		other := berth.Rigid("other", 0, 0, 100_000, 1, 100_000)
		other.Software, other.Licences = "cfd", 1
		accepted(t, submit(t, e, 0, other))
		_, _, err := e.Apply(0, engine.SubmitPlanned(w, plan))
		if coded, is := errors.AsType[*berth.Error](err); licensed != (is && coded.Code == berth.Conflict && coded.Field == "plan") {
			t.Errorf("a licence %t, which another has meanwhile: %v", licensed, err)
		}
	}
}

// What moves files over the uplink beside its PEs is placed where it is decided about too.
func TestAPlanWithTransfersIsNotReady(t *testing.T) {
	for _, moves := range []bool{false, true} {
		config := shores(berth.Late)
		config.Uplink = 1000
		e := newEngine(t, config)
		w := meshed("w", 80, berth.Forever)
		w.Routes = []berth.Route{{From: "left", To: "right"}}
		for i := range w.Tasks {
			w.Tasks[i].Site = "left"
		}
		last := &w.Tasks[79]
		last.Site = "right"
		if last.Reads = make([]int64, len(last.After)); moves {
			last.Reads[0] = 5e6
		}
		plan := planned(t, e, w, engine.PlanOptions{})
		if plan.IsReady() == moves {
			t.Errorf("files move %t: made ready %t", moves, plan.IsReady())
		}
	}
}

// A plan that was made ready is used once: submitted again, its workflow is known already, and nothing
// changes.
func TestAPlanIsUsedOnce(t *testing.T) {
	e := amongBookings(t, berth.Late)
	w := meshed("w", 80, berth.Forever)
	plan := planned(t, e, w, engine.PlanOptions{})
	apply(t, e, 0, engine.SubmitPlanned(w, plan))
	for _, at := range []berth.Time{0, 5000} { // while it is live, and behind its end
		if at > 0 {
			apply(t, e, at, engine.Wake())
		}
		before := e.Hash()
		_, _, err := e.Apply(at, engine.SubmitPlanned(w, plan))
		coded, is := errors.AsType[*berth.Error](err)
		if !is || coded.Code != berth.Conflict || e.Hash() != before {
			t.Errorf("at %d: %v, the state changed: %t", at, err, e.Hash() != before)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	}
}
