package engine_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/effort"
)

// asker asks an engine among workflows what would be, and has that done in an engine that is
// restored from its state: both must say the same.
type asker struct {
	*flows
	dice *rand.Rand
}

func (a *asker) chance(percent int) bool { return a.dice.IntN(100) < percent }

// twin returns an engine in the same state.
func (a *asker) twin() *engine.Engine {
	e, err := engine.Restore(a.config, a.e.Snapshot())
	if err != nil {
		a.fatalf("%v", err)
	}
	return e
}

// ask asks for one thing that may be asked for, and sees that asking changes nothing.
func (a *asker) ask() {
	a.step(a.now, engine.Wake())
	hash := a.e.Hash()
	switch a.dice.IntN(5) {
	case 0:
		a.offers()
	case 1:
		a.workflowOffers()
	case 2:
		a.planned()
	default:
		a.foretold()
	}
	if a.e.Hash() != hash {
		a.fatalf("what was asked has changed the state")
	}
}

// request draws a request that is asked about, or for a reservation that is there.
func (a *asker) request(id string) berth.Request {
	ready, d := a.now+berth.Time(a.dice.IntN(40)), berth.Duration(1+a.dice.IntN(40))
	r := berth.Rigid(id, a.now, ready, ready.Add(d)+berth.Time(a.dice.IntN(40)), berth.Count(1+a.dice.IntN(5)), d)
	if a.chance(30) {
		r.User = "ada"
	}
	if a.chance(20) {
		r.Software, r.Licences = "cfd", 1
	}
	if a.chance(20) {
		r.StorageMB = 1 + a.dice.Int64N(10)
	}
	if a.chance(25) {
		r.Hold = berth.Duration(1 + a.dice.IntN(60))
	}
	if a.chance(25) {
		r.NoShow = berth.Duration(1 + a.dice.IntN(10))
	}
	if a.chance(20) {
		r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: r.Parts[0].Variants[0].NPE + 1, Duration: max(1, d/2)})
	}
	if a.chance(15) {
		r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 1, Duration: d}}})
	}
	return r
}

// offers takes each offer for a request.
func (a *asker) offers() {
	r := a.request(a.name())
	offers, err := a.e.Offers(&r, 8)
	if err != nil {
		return
	}
	for i := range offers {
		o := &offers[i]
		a.cells["offer "+string(o.Difference)]++
		e := a.twin()
		if _, _, err := e.Apply(a.now, engine.Submit(&o.Request)); err != nil {
			a.fatalf("offer %s: %v", o.Difference, err)
		}
		got, promised := e.Reservation(r.ID)
		if !promised || !sameTimes(got.Allotments, o.Allotments) {
			a.fatalf("the offer %s of %+v\nis %v\nand is taken as %v", o.Difference, r, o.Allotments, got.Allotments)
		}
	}
	e := a.twin()
	_, _, _ = e.Apply(a.now, engine.Submit(&r))
	_, promised := e.Reservation(r.ID)
	if offered := len(offers) > 0 && offers[0].Difference == engine.OfferAsAsked; offered != promised {
		a.fatalf("%+v is offered as asked: %t; it is promised: %t", r, offered, promised)
	}
}

// workflowOffers takes each offer for a workflow.
func (a *asker) workflowOffers() {
	w := a.workflow()
	w.ID = a.name()
	offers, err := a.e.WorkflowOffers(w, 3)
	if err != nil {
		return
	}
	for i := range offers {
		o := &offers[i]
		a.cells["workflow offer"]++
		e := a.twin()
		changes, _, err := e.Apply(a.now, engine.SubmitWorkflow(&o.Workflow))
		for k := range changes {
			if changes[k].Kind == change.WorkflowRefused {
				a.fatalf("offered by %d with %s, to end at %d, and refused: %+v", o.Workflow.Deadline, o.Workflow.Algorithm, o.End, *changes[k].Refusal)
			}
		}
		if err != nil {
			a.fatalf("an offer of a workflow: %v", err)
		}
		area := int64(0)
		for r := range e.Reservations() {
			if r.Request.Task != nil && r.Request.Task.Workflow == w.ID {
				area += berth.Area(r.Allotments[0].NPE, r.End().Sub(r.Start()))
			}
		}
		if s, _ := e.WorkflowStatus(w.ID); s.End > o.Workflow.Deadline || area > o.PESeconds { // the planner may do better in another pool by that time
			a.fatalf("offered by %d with %s, to end at %d for %d PE-seconds; it ends at %d for %d", o.Workflow.Deadline, o.Workflow.Algorithm, o.End, o.PESeconds, s.End, area)
		}
	}
}

// planned submits a workflow with the plan that was made for it, and without.
func (a *asker) planned() {
	w := a.workflow()
	w.ID = a.name()
	plan, _, err := a.e.PlanWorkflow(w, engine.PlanOptions{Offers: a.dice.IntN(3)})
	if err != nil {
		return
	}
	a.cells["planned"]++
	with, without := a.twin(), a.twin()
	_, _, err = with.Apply(a.now, engine.SubmitPlanned(w, plan))
	_, _, other := without.Apply(a.now, engine.SubmitWorkflow(w))
	if (err == nil) != (other == nil) {
		a.fatalf("with a plan: %v; without: %v", err, other)
	}
	for i := range w.Tasks {
		id := engine.TaskID(w.ID, i, w.Tasks[i].Tries+1)
		x, is := with.Reservation(id)
		y, also := without.Reservation(id)
		if is != also || is && !sameTimes(x.Allotments, y.Allotments) {
			a.fatalf("with a plan %s is at %v, without at %v", id, x.Allotments, y.Allotments)
		}
	}
}

// foretold asks what would become of a reservation, and has that done.
func (a *asker) foretold() {
	var ids []string
	for r := range a.e.Reservations() {
		if !r.Request.IsJob() {
			ids = append(ids, r.Request.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	of, _ := a.e.Reservation(ids[a.dice.IntN(len(ids))])
	event := engine.Confirm(of.Request.ID)
	switch n := a.dice.IntN(10); {
	case n < 4 && of.State == berth.Held:
	case n < 4:
		event = engine.Extend(of.Request.ID, of.End()+berth.Time(a.dice.IntN(30)))
	case n < 8:
		r := a.request(of.Request.ID)
		r.User, r.Hold = of.Request.User, of.Request.Hold
		event = engine.Modify(&r)
	}
	told, refusal, err := a.e.Foretell(&event)
	e := a.twin()
	changes, _, other := e.Apply(a.now, event)
	if (err == nil) != (other == nil) || err != nil && err.Error() != other.Error() {
		a.fatalf("%s %s is foretold as %v, and is %v", event.Kind, event.ID, err, other)
	}
	if err != nil {
		return
	}
	var kept *berth.Refusal
	for i := range changes {
		if changes[i].Kind == change.ChangeRefused && changes[i].ID == event.ID {
			kept = changes[i].Refusal
		}
	}
	if !reflect.DeepEqual(kept, refusal) {
		a.fatalf("%s %s is foretold as refused: %+v; it is: %+v", event.Kind, event.ID, refusal, kept)
	}
	if refusal != nil {
		a.cells["foretold refused "+string(event.Kind)]++
		return
	}
	is, live := e.Reservation(event.ID)
	if !live || of.Request.Task != nil || is.State == berth.Active && told.State != berth.Active {
		return // a workflow is mended at once; what starts in the same moment is more than was asked
	}
	a.cells["foretold "+string(event.Kind)]++
	if event.Kind == engine.EventExtend { // which these are left out of
		told.Terms, told.Stocks, told.Transfers = is.Terms, is.Stocks, is.Transfers
	}
	if of.Missing > 0 && event.Kind == engine.EventExtend { // it may be given what it lacks
		return
	}
	told.Generation = is.Generation
	for i := range told.Allotments {
		told.Allotments[i].PEs, is.Allotments[i].PEs = berth.PESet{}, berth.PESet{} // others may have to give way, which GiveWay tells
	}
	if got, want := shown(&told), shown(&is); got != want {
		a.fatalf("%s %s is foretold as\n%s\nand is\n%s", event.Kind, event.ID, got, want)
	}
}

// shown is a reservation with its request in words.
func shown(r *berth.Reservation) string {
	bare, request := *r, *r.Request
	bare.Request = nil
	if request.Series == nil {
		return fmt.Sprintf("%+v of %+v", bare, request)
	}
	series := *request.Series
	request.Series = nil
	return fmt.Sprintf("%+v of %+v of %+v", bare, request, series)
}

// sameTimes reports whether allotments are the same but for the names of their PEs.
func sameTimes(a, b []berth.Allotment) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		x.PEs, y.PEs = berth.PESet{}, berth.PESet{}
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// What is offered is promised when it is taken at once, and what is foretold becomes so.
func TestWhatIsToldBecomesSo(t *testing.T) {
	cells := map[string]int{}
	first, last := uint64(1), uint64(effort.Cases(80))
	if testing.Short() {
		last /= 6
	}
	if *flowSeed > 0 {
		first, last = *flowSeed, *flowSeed
	}
	for seed := first; seed <= last; seed++ {
		a := asker{flows: newFlows(t, seed, cells), dice: rand.New(rand.NewPCG(seed, 24))}
		for range 40 {
			event := a.event()
			if a.chance(15) { // what may be confirmed
				d := berth.Duration(1 + a.dice.IntN(40))
				r := berth.Rigid(a.name(), a.now, a.now, a.now.Add(d)+berth.Time(a.dice.IntN(60)), berth.Count(1+a.dice.IntN(3)), d)
				r.Hold = berth.Duration(5 + a.dice.IntN(60))
				event = engine.Submit(&r)
			}
			a.step(a.now+berth.Time(a.rng.IntN(12)), event)
			a.ask()
		}
	}
	if *flowSeed > 0 || testing.Short() {
		return
	}
	for _, cell := range []string{
		"offer as_asked", "offer earlier", "offer later", "offer fewer_pes", "offer shorter", "offer other_site", "workflow offer", "planned",
		"foretold confirm", "foretold extend", "foretold modify", "foretold refused extend", "foretold refused modify",
	} {
		if effort.Full() && cells[cell] < 5 {
			t.Errorf("%s: %d times, want 5", cell, cells[cell])
		}
		t.Logf("%s: %d times", cell, cells[cell])
	}
}
