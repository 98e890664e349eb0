package workflow_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/workflow"
)

// instances is how many random problems the comparisons with the plain form
// take.
var instances = effort.Flag("instances", 1000, "random problems on which planners are compared with the plain form")

// compared returns how many problems to compare on.
func compared(tb testing.TB) int {
	tb.Helper()
	if testing.Short() {
		return min(instances(), 100)
	}
	return instances()
}

// randomProblem draws a small problem that has everything: tasks in no
// particular order, of whole, broken, tiny and no time, many of one length, from
// perfectly parallel to not at all; several entries and exits; bookings that
// leave few PEs, some running now; every rule of stopping, and both ways
// to allot what reserves are computed from.
func randomProblem(rng *rand.Rand, maxTasks int) workflow.Problem {
	now := berth.Time(rng.IntN(1000) - 300)
	size := berth.Count(1 + rng.IntN(12))
	if rng.IntN(4) == 0 {
		size = berth.Count(1 + rng.IntN(100))
	}
	c := calendar.NewPlain(size, berth.Late)
	randomBookings(rng, c, now, rng.IntN(25))
	return workflow.Problem{
		Workflow: randomWorkflow(rng, 1+rng.IntN(maxTasks)), Calendar: c, Now: now,
		Free: berth.Count(rng.IntN(int(size) + 2)), Epsilon: workflow.Epsilon(rng.IntN(3)),
		Anew: rng.IntN(2) == 0,
	}
}

// randomBookings tries to add up to n bookings around now.
func randomBookings(rng *rand.Rand, c calendar.Calendar, now berth.Time, n int) {
	for range n {
		start := now + berth.Time(rng.IntN(1200)-200)
		b := calendar.Block{
			Start: start, End: start + 1 + berth.Time(rng.IntN(300)), NPE: 1 + berth.Count(rng.IntN(int(c.Size()))),
		}
		_ = c.Add(b) // one that does not fit is left out
	}
}

// copied returns a calendar of the same records.
func copied(c calendar.Reader) calendar.Calendar {
	copied := calendar.NewPlain(c.Size(), berth.Late)
	since := calendar.Record{Free: c.Size()}
	for r := range c.Records() {
		if busy := c.Size() - since.Free; busy > 0 {
			if err := copied.Add(calendar.Block{Start: since.Time, End: r.Time, NPE: busy}); err != nil {
				panic(err)
			}
		}
		since = r
	}
	return copied
}

func randomWorkflow(rng *rand.Rand, n int) *workflow.Workflow {
	tasks := make([]workflow.Task, n)
	longest := 1 + rng.IntN(500)
	alike := rng.IntN(4) == 0 // all of one length, so that there are ties
	for i := range tasks {
		t := workflow.Task{ID: strconv.Itoa(i), Sequential: float64(rng.IntN(longest))}
		switch rng.IntN(6) {
		case 0:
			t.Sequential += rng.Float64()
		case 1:
			t.Sequential = float64(longest)
		}
		switch rng.IntN(4) {
		case 0:
			t.Alpha = rng.Float64()
		case 1:
			t.Alpha = .2 * rng.Float64()
		case 2:
			t.Alpha = float64(rng.IntN(11)) / 10
		}
		if alike {
			t.Sequential, t.Alpha = float64(longest), float64(rng.IntN(2))/8
		}
		tasks[i] = t
	}
	var edges []workflow.Edge
	names := rng.Perm(n) // so that the order of the file is no topological one
	density := rng.Float64()
	for child := range n {
		for parent := range child {
			if child-parent < 8 && rng.Float64() < density*.6 {
				edges = append(edges, workflow.Edge{Parent: strconv.Itoa(names[parent]), Child: strconv.Itoa(names[child])})
			}
		}
	}
	w, err := workflow.New(tasks, edges)
	if err != nil {
		panic(err)
	}
	return w
}
