package workflow_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
)

// lookahead is iCASLB written down once more, on the calendar, with every
// figure computed where it is needed.
type lookahead struct {
	problem workflow.Problem
	before  [][]bool // before[i][j]: task j must end before i starts
}

func newLookahead(p workflow.Problem) *lookahead {
	n := p.Workflow.Len()
	l := &lookahead{problem: p, before: make([][]bool, n)}
	for _, i := range p.Workflow.Topological() {
		l.before[i] = make([]bool, n)
		for _, parent := range p.Workflow.Parents(int(i)) {
			l.before[i][parent] = true
			for j := range n {
				l.before[i][j] = l.before[i][j] || l.before[parent][j]
			}
		}
	}
	return l
}

func (l *lookahead) schedule(npe []berth.Count) ([]workflow.Placement, berth.Time) {
	w := l.problem.Workflow
	bl := make([]berth.Duration, w.Len())
	order := slices.Clone(w.Topological())
	for _, i := range slices.Backward(order) {
		for _, child := range w.Children(int(i)) {
			bl[i] = max(bl[i], bl[child])
		}
		bl[i] += w.Task(int(i)).Duration(npe[i])
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(bl[b], bl[a]) })
	c := copied(l.problem.Calendar)
	out := make([]workflow.Placement, w.Len())
	end := l.problem.Now
	for _, i := range order {
		q := calendar.Query{Now: l.problem.Now, Ready: l.problem.Now, Deadline: berth.Forever, Duration: w.Task(int(i)).Duration(npe[i]), NPE: npe[i]}
		for _, parent := range w.Parents(int(i)) {
			q.Ready = max(q.Ready, out[parent].End)
		}
		fit, ok := calendar.Earliest(c, q)
		if !ok || c.Add(calendar.Block{Start: fit.Start, End: fit.End, NPE: npe[i]}) != nil {
			panic("no place for a task")
		}
		out[i] = workflow.Placement{Task: int(i), NPE: npe[i], Start: fit.Start, End: fit.End}
		end = max(end, fit.End)
	}
	return out, end
}

func (l *lookahead) critical(out []workflow.Placement) []int {
	ends := func(t berth.Time, among func(int) bool) int {
		return slices.IndexFunc(out, func(p workflow.Placement) bool { return p.End == t && among(p.Task) })
	}
	at := 0
	for i := range out {
		if out[i].End > out[at].End {
			at = i
		}
	}
	var path []int
	for at >= 0 {
		path = append(path, at)
		parents := l.problem.Workflow.Parents(at)
		start := out[at].Start
		if at = ends(start, func(i int) bool { return slices.Contains(parents, int32(i)) }); at < 0 {
			at = ends(start, func(int) bool { return true })
		}
	}
	return path
}

// next returns the task of the path that grows, -1 if none.
func (l *lookahead) next(path []int, npe []berth.Count, barred []bool) int {
	w := l.problem.Workflow
	fall := func(i int) float64 { return w.Task(i).Time(npe[i]) - w.Task(i).Time(npe[i]+1) }
	beside := func(i int) float64 {
		area := 0.0
		for j := range npe {
			if j != i && !l.before[i][j] && !l.before[j][i] {
				area += float64(npe[j]) * w.Task(j).Time(npe[j])
			}
		}
		return area
	}
	path = slices.DeleteFunc(slices.Clone(path), func(i int) bool {
		return npe[i] >= l.problem.Calendar.Size() || fall(i) <= 0 || barred != nil && barred[i]
	})
	if len(path) == 0 {
		return -1
	}
	return slices.MinFunc(path, func(a, b int) int {
		return cmp.Or(cmp.Compare(fall(b), fall(a)), cmp.Compare(beside(a), beside(b)), cmp.Compare(a, b))
	})
}

func (l *lookahead) plan() []workflow.Placement {
	n := l.problem.Workflow.Len()
	npe := slices.Repeat([]berth.Count{1}, n)
	best, end := l.schedule(npe)
	barred := make([]bool, n)
	for {
		trial, out, first := slices.Clone(npe), best, -1
		found, foundNPE, foundEnd := best, npe, end
		for step := range 20 {
			var bar []bool
			if step == 0 {
				bar = barred
			}
			task := l.next(l.critical(out), trial, bar)
			if task < 0 {
				break
			}
			if step == 0 {
				first = task
			}
			trial[task]++
			var now berth.Time
			if out, now = l.schedule(trial); now < foundEnd {
				found, foundNPE, foundEnd = out, slices.Clone(trial), now
			}
		}
		switch {
		case first < 0:
			return best
		case foundEnd < end:
			best, npe, end = found, foundNPE, foundEnd
			clear(barred)
		default:
			barred[first] = true
		}
	}
}

func TestICASLBEqualsItsDefinition(t *testing.T) {
	p, _ := workflow.PlannerNamed("icaslb")
	for seed := range min(150, compared(t)) {
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		problem := randomProblem(rng, 7)
		got, _ := prepare(t, problem).Try(p, berth.Forever)
		if want := newLookahead(problem).plan(); !slices.Equal(got.Tasks, want) {
			t.Fatalf("seed %d:\n got %+v\nwant %+v", seed, got.Tasks, want)
		}
	}
}
