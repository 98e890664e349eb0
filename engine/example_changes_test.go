package engine_test

import (
	"fmt"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// promised is an engine over a managed site of four PEs that has promised two of
// them, 0 and 1, from 10 to 20 within a window that ends at 60.
func promised() *engine.Engine {
	e, err := engine.New(engine.Config{Sites: []berth.Site{{
		Name: "here", Pools: []berth.Pool{{Name: "batch", PEs: 4, Binding: berth.Early}}, Managed: true,
	}}})
	if err != nil {
		panic(err)
	}
	r := berth.Rigid("wind", 0, 10, 60, 2, 10)
	if _, _, err := e.Apply(0, engine.Submit(&r)); err != nil {
		panic(err)
	}
	return e
}

// answerTo applies an event and returns the changes and effects, and what reservation
// "wind" is afterwards.
func answerTo(e *engine.Engine, now berth.Time, event engine.Event) string {
	changes, effects, err := e.Apply(now, event)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, c := range changes {
		b.WriteString(string(c.Kind) + " ")
	}
	for _, x := range effects {
		fmt.Fprintf(&b, "| effect %d: bring %s at %s to generation %d ", x.Number, x.Reservation, x.Site, x.Generation)
	}
	r, live := e.Reservation("wind")
	if !live {
		return b.String() + "| over"
	}
	return b.String() + fmt.Sprintf("| %s: PEs %s from %d to %d", r.State, r.Allotments[0].PEs, r.Start(), r.End())
}

// An outage displaces a promise: it keeps its start on other PEs. When there are
// too few of those it moves within its window. Each time its site gets an effect,
// which stays in the outbox until it is settled.
func ExampleDown() {
	e, pool := promised(), berth.PoolID("here", "batch")
	fmt.Println(answerTo(e, 1, engine.Down(berth.Outage{Resource: pool, PEs: berth.PEsOf(0), Until: 40})))
	fmt.Println(answerTo(e, 2, engine.Down(berth.Outage{Resource: pool, PEs: berth.PEsOf(1, 2), Until: 30})))
	fmt.Println(answerTo(e, 3, engine.Settle(1)))
	fmt.Println(len(e.Outbox()), "effects are not settled")
	// Output:
	// advanced vacated went_down moved emitted | effect 2: bring wind at here to generation 2 | confirmed: PEs 1-2 from 10 to 20
	// advanced vacated went_down moved emitted | effect 3: bring wind at here to generation 3 | confirmed: PEs 1-2 from 30 to 40
	// advanced settled | confirmed: PEs 1-2 from 30 to 40
	// 2 effects are not settled
}

// A modification takes place as a whole or not at all.
func ExampleModify() {
	e := promised()
	wider := berth.Rigid("wind", 0, 10, 60, 4, 20)
	fmt.Println(answerTo(e, 1, engine.Modify(&wider)))
	wider.Parts[0].Variants[0].NPE = 5
	fmt.Println(answerTo(e, 2, engine.Modify(&wider)))
	// Output:
	// advanced vacated modified emitted | effect 2: bring wind at here to generation 2 | confirmed: PEs 0-3 from 10 to 30
	// advanced change_refused | confirmed: PEs 0-3 from 10 to 30
}

// Time alone moves things on: the engine says when it wants to be woken next.
func ExampleEngine_Next() {
	e := promised()
	for {
		at, ok := e.Next()
		if !ok {
			break
		}
		fmt.Printf("%d: %s\n", at, answerTo(e, at, engine.Wake()))
	}
	// Output:
	// 10: advanced started emitted | effect 2: bring wind at here to generation 1 | active: PEs 0-1 from 10 to 20
	// 20: advanced ended emitted | effect 3: bring wind at here to generation 1 | over
}

// A refusal names the constraint with numbers; offers are what would be accepted.
func ExampleEngine_Offers() {
	e := promised()
	r := berth.Rigid("rain", 0, 10, 25, 4, 10)
	changes, _, err := e.Apply(0, engine.Submit(&r))
	if err != nil {
		fmt.Println(err)
		return
	}
	if c := changes[len(changes)-1]; c.Kind == change.Refused {
		fmt.Println(c.Refusal.Reason, "at", c.Refusal.Resource.Site, c.Refusal.Resource.Name)
	}
	offers, err := e.Offers(&r, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range offers {
		fmt.Println(o.Difference, o.Allotments[0].NPE, "PEs from", o.Allotments[0].Start, "to", o.Allotments[0].End)
	}
	// Output:
	// no_capacity at here batch
	// later 4 PEs from 20 to 30
	// earlier 4 PEs from 0 to 10
	// fewer_pes 2 PEs from 10 to 20
}
