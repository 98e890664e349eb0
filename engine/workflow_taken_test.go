package engine_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// What is offered is promised when it is taken at once, by deadlines too that are so close that a slow pool,
// in which nothing is over in a second, could not meet them: it counts where PEs are allotted all the same,
// whether tasks before are done or there are none.
func TestOffersByTheNextSecondArePromised(t *testing.T) {
	const now = 49
	taken := 0
	for _, speed := range []berth.Speed{1, 500, 999, 1000, 2000} {
		for _, free := range []berth.Count{0, 1, 2, 3} {
			for _, seconds := range []float64{0, .5, 1, 2} {
				for _, wide := range []berth.Count{2, 3, 4} {
					for _, spread := range []bool{false, true} {
						pools := []berth.Pool{{Name: "slow", PEs: 4, Binding: berth.Late, Speed: speed}, {Name: "p", PEs: 4, Binding: berth.Late}}
						config := engine.Config{Sites: []berth.Site{{Name: "s", Pools: pools}}}
						if spread {
							config.Sites = []berth.Site{{Name: "t", Pools: pools[:1]}, {Name: "s", Pools: pools[1:]}}
						}
						for i := range config.Sites {
							config.Sites[i].Software = []berth.Software{{Name: "cfd"}}
						}
						w := flow("w", now, now+1, berth.WorkflowTask{
							ID: "a", Measured: []berth.Measurement{{NPE: 1, Seconds: 10}, {NPE: wide, Seconds: seconds}},
							Requirements: berth.Requirements{Software: "cfd"},
						})
						if free == 3 {
							w.Tasks = append(w.Tasks, berth.WorkflowTask{ID: "done", Seconds: 1, Done: true})
							w.Tasks[0].After = []int{1}
						}
						w.Algorithm, w.Hold, w.Spread = berth.BestAlgorithm, 5, spread
						if free > 0 {
							w.Free = []berth.Average{{Resource: berth.PoolID("s", "p"), NPE: free}}
						}
						e := newEngine(t, config)
						apply(t, e, now, engine.Wake())
						offers, err := e.WorkflowOffers(w, 4)
						if err != nil {
							t.Fatal(err)
						}
						for i := range offers {
							o := &offers[i]
							of := newEngine(t, config)
							apply(t, of, now, engine.Wake())
							taken++
							for _, c := range apply(t, of, now, engine.SubmitWorkflow(&o.Workflow)) {
								if c.Kind == change.WorkflowRefused {
									t.Errorf("speed %d, %d free, %g s on %d PEs, spread %t: offer %d by %d with %s is refused: %+v",
										speed, free, seconds, wide, spread, i+1, o.Workflow.Deadline, o.Workflow.Algorithm, *c.Refusal)
								}
							}
							if s, _ := of.WorkflowStatus("w"); s.End != o.End {
								t.Errorf("%s ends at %d; it was offered to end at %d", fmt.Sprint(speed, free, seconds, wide, spread), s.End, o.End)
							}
						}
					}
				}
			}
		}
	}
	if taken < 1000 {
		t.Errorf("%d offers were taken", taken)
	}
}
