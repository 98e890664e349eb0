package workload_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

func generate(t interface {
	Helper()
	Fatal(...any)
}, d workload.Daggen, seed uint64,
) *workflow.Workflow {
	t.Helper()
	flow, err := d.Generate(seed)
	if err != nil {
		t.Fatal(err)
	}
	return flow
}

// contents returns tasks and edges in a form that can be compared.
func contents(flow *workflow.Workflow) (tasks []workflow.Task, edges []workflow.Edge) {
	for i := range flow.Len() {
		tasks = append(tasks, flow.Task(i))
		for _, c := range flow.Children(i) {
			edges = append(edges, workflow.Edge{Parent: flow.Task(i).ID, Child: flow.Task(int(c)).ID})
		}
	}
	return tasks, edges
}

// What the description of the program demands of every workflow.
func TestDaggenProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := workload.Daggen{
			Tasks: rapid.IntRange(1, 150).Draw(t, "tasks"), Jump: rapid.IntRange(1, 5).Draw(t, "jump"),
			Width: rapid.Float64Range(0, 1).Draw(t, "width"), Regularity: rapid.Float64Range(0, 1).Draw(t, "regularity"),
			Density: rapid.Float64Range(0, 1).Draw(t, "density"), Alpha: rapid.Float64Range(0, 1).Draw(t, "alpha"),
			MinTime: 60, MaxTime: 36_000,
		}
		seed := rapid.Uint64().Draw(t, "seed")
		flow := generate(t, d, seed)
		levels := d.Levels(seed)
		if flow.Len() != d.Tasks || levels[0] != 0 || levels[len(levels)-1] != d.Tasks {
			t.Fatalf("%d tasks on levels %v", flow.Len(), levels)
		}
		usual := math.Floor(math.Pow(float64(d.Tasks), d.Width) + 1e-9)
		level := 0
		for i := range d.Tasks {
			if i == levels[level+1] {
				level++
			}
			size := levels[level+1] - levels[level]
			least, most := max(1, int(usual*d.Regularity)), max(1, int(usual*(2-d.Regularity)))
			if size > most || size < least && level+2 < len(levels) {
				t.Fatalf("level %d has %d tasks, want %d to %d", level, size, least, most)
			}
			task := flow.Task(i)
			if task.ID != "t"+strconv.Itoa(i) || task.Sequential < 60 || task.Sequential >= 36_000 || task.Alpha < 0 || task.Alpha > d.Alpha {
				t.Fatalf("task %+v", task)
			}
			parents := flow.Parents(i)
			if level == 0 {
				if len(parents) > 0 {
					t.Fatalf("task %d of the first level has parents", i)
				}
				continue
			}
			above := levels[level] - levels[level-1]
			if most := min(1+int(d.Density*float64(above)), above); len(parents) < 1 || len(parents) > most {
				t.Fatalf("task %d has %d parents, want 1 to %d", i, len(parents), most)
			}
			for _, p := range parents {
				if from := levels[max(0, level-d.Jump)]; int(p) < from || int(p) >= levels[level] {
					t.Fatalf("task %d on level %d has the parent %d; levels %v, jump %d", i, level, p, levels, d.Jump)
				}
			}
		}
	})
}

func TestDaggenExtremes(t *testing.T) {
	chain := workload.NewDaggen()
	chain.Width, chain.Density = 0, 1
	if flow := generate(t, chain, 1); flow.Edges() != 49 || len(chain.Levels(1)) != 51 {
		t.Errorf("a width of 0 gives %d edges on %v", flow.Edges(), chain.Levels(1))
	}
	flat := workload.NewDaggen()
	flat.Width, flat.Regularity = 1, 1
	if flow := generate(t, flat, 1); flow.Edges() != 0 {
		t.Errorf("a width of 1 gives %d edges", flow.Edges())
	}
	tree := workload.NewDaggen()
	tree.Density = 0
	if flow, levels := generate(t, tree, 1), tree.Levels(1); flow.Edges() != 50-levels[1] {
		t.Errorf("a density of 0 gives %d edges on levels %v, want one parent each", flow.Edges(), levels)
	}
	square := workload.NewDaggen()
	square.Tasks, square.Regularity = 49, 1 // 49^½ is 7, whatever rounding says
	if levels := square.Levels(9); !slices.Equal(levels, []int{0, 7, 14, 21, 28, 35, 42, 49}) {
		t.Errorf("levels %v, want seven of seven", levels)
	}
}

// Density and jump change neither levels nor times, and no two seeds are alike.
func TestDaggenStreams(t *testing.T) {
	d := workload.NewDaggen()
	tasks, edges := contents(generate(t, d, 7))
	again, sameEdges := contents(generate(t, d, 7))
	if cmp.Diff(tasks, again) != "" || cmp.Diff(edges, sameEdges) != "" {
		t.Error("the same seed gives another workflow")
	}
	other, otherEdges := contents(generate(t, d, 8))
	if cmp.Diff(tasks, other) == "" || cmp.Diff(edges, otherEdges) == "" {
		t.Error("another seed gives the same tasks or edges")
	}
	dense := d
	dense.Density, dense.Jump = .9, 3
	denser, moreEdges := contents(generate(t, dense, 7))
	if diff := cmp.Diff(tasks, denser); diff != "" || !slices.Equal(d.Levels(7), dense.Levels(7)) {
		t.Error("density and jump change the tasks", diff)
	}
	if len(moreEdges) <= len(edges) {
		t.Errorf("a density of .9 gives %d edges, one of .5 %d", len(moreEdges), len(edges))
	}
}

// daggenPlain follows section 2 of the description step by step, with draws
// of its own, and returns how many levels and edges there are.
func daggenPlain(d workload.Daggen, rng *rand.Rand) (levels, edges int) {
	uniform := func(x, y float64) float64 { return x + (y-x)*rng.Float64() }
	var sizes []int
	for left := d.Tasks; left > 0; {
		q := 100 - 100*d.Regularity
		perfect := math.Floor(math.Pow(float64(d.Tasks), d.Width) + 1e-9)
		size := min(left, max(1, int(perfect*(1+uniform(-q, q)/100))))
		sizes = append(sizes, size)
		left -= size
	}
	for i := 1; i < len(sizes); i++ {
		for range sizes[i] {
			children := map[[2]int]bool{}
			parents := min(1+int(uniform(0, d.Density*float64(sizes[i-1]))), sizes[i-1])
			for range parents {
				from := max(0, i-int(uniform(1, float64(d.Jump)+1)))
				at := int(uniform(0, float64(sizes[from])))
				for tries := 0; tries < sizes[from] && children[[2]int{from, at}]; tries++ {
					at = (at + 1) % sizes[from]
				}
				children[[2]int{from, at}] = true
			}
			edges += len(children)
		}
	}
	return len(sizes), edges
}

// Levels and edges are as many on average as the description gives, for the
// defaults and for every parameter at an end of the paper's range.
func TestDaggenAgainstTheDescription(t *testing.T) {
	runs := 400
	if testing.Short() {
		runs = 100
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for name, change := range map[string]func(*workload.Daggen){
		"defaults": func(*workload.Daggen) {},
		"n=10":     func(d *workload.Daggen) { d.Tasks = 10 }, "n=100": func(d *workload.Daggen) { d.Tasks = 100 },
		"width=.1": func(d *workload.Daggen) { d.Width = .1 }, "width=.9": func(d *workload.Daggen) { d.Width = .9 },
		"density=.1": func(d *workload.Daggen) { d.Density = .1 }, "density=.9": func(d *workload.Daggen) { d.Density = .9 },
		"regularity=.1": func(d *workload.Daggen) { d.Regularity = .1 }, "regularity=.9": func(d *workload.Daggen) { d.Regularity = .9 },
		"jump=4": func(d *workload.Daggen) { d.Jump = 4 },
	} {
		d := workload.NewDaggen()
		change(&d)
		var ours, plain [2]moments
		for seed := range runs {
			ours[0].add(float64(len(d.Levels(uint64(seed))) - 1))
			ours[1].add(float64(generate(t, d, uint64(seed)).Edges()))
			levels, edges := daggenPlain(d, rng)
			plain[0].add(float64(levels))
			plain[1].add(float64(edges))
		}
		for i, what := range []string{"levels", "edges"} {
			// 4.5 standard errors: by chance once in 150,000 comparisons.
			off := math.Abs(ours[i].mean() - plain[i].mean())
			if limit := 4.5*math.Sqrt(ours[i].variance()/float64(runs)+plain[i].variance()/float64(runs)) + 1e-9; off > limit {
				t.Errorf("%s: %.2f %s on average, the description gives %.2f", name, ours[i].mean(), what, plain[i].mean())
			}
		}
	}
}

type moments struct{ n, sum, squares float64 }

func (m *moments) add(x float64) {
	m.n++
	m.sum += x
	m.squares += x * x
}
func (m *moments) mean() float64     { return m.sum / m.n }
func (m *moments) variance() float64 { return m.squares/m.n - m.mean()*m.mean() }

// Times and serial fractions are uniform over their ranges.
func TestDaggenLaws(t *testing.T) {
	d := workload.NewDaggen()
	d.Tasks, d.Width = 20_000, 0
	flow := generate(t, d, 1)
	var times, alphas [10]int
	for i := range flow.Len() {
		task := flow.Task(i)
		times[int((task.Sequential-60)/(36_000-60)*10)]++
		alphas[int(task.Alpha/.2*10)]++
	}
	for i := range times {
		// 2,000 expected, standard deviation 42
		if off := max(abs(times[i]-2000), abs(alphas[i]-2000)); off > 190 {
			t.Errorf("tenth %d holds %d times and %d alphas of 20000", i, times[i], alphas[i])
		}
	}
}

func abs(x int) int { return max(x, -x) }

func TestDaggenMistakes(t *testing.T) {
	for field, change := range map[string]func(*workload.Daggen){
		"tasks":      func(d *workload.Daggen) { d.Tasks = 0 },
		"width":      func(d *workload.Daggen) { d.Width = -.1 },
		"regularity": func(d *workload.Daggen) { d.Regularity = 1.1 },
		"density":    func(d *workload.Daggen) { d.Density = math.NaN() },
		"alpha":      func(d *workload.Daggen) { d.Alpha = math.Inf(1) },
		"jump":       func(d *workload.Daggen) { d.Jump = 0 },
		"min-time":   func(d *workload.Daggen) { d.MinTime = -1 },
		"max-time":   func(d *workload.Daggen) { d.MaxTime = 59 },
	} {
		d := workload.NewDaggen()
		change(&d)
		_, err := d.Generate(1)
		wantMistake(t, err, field)
	}
	d := workload.NewDaggen()
	d.MaxTime = 1 << 40
	_, err := d.Generate(1)
	wantMistake(t, err, "max-time", "2^42")
	d.Tasks = 3
	generate(t, d, 1)
}

func BenchmarkDaggen(b *testing.B) {
	for _, n := range []int{10, 100, 1_000, 10_000} {
		d := workload.NewDaggen()
		d.Tasks = n
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if flow := generate(b, d, 1); flow.Len() != n {
					b.Fatal("tasks are missing")
				}
			}
		})
	}
}
