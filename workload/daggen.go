package workload

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/workflow"
)

// Daggen draws random workflows in layers, as the program daggen of Suter and
// Hunold does, with the times and the serial fractions of Aida and Casanova
// (section 3.1, Table 1). The zero value is not usable; NewDaggen has the
// paper's defaults.
type Daggen struct {
	Tasks int
	// Width says how many tasks a level has: about Tasks^Width. 0 makes a
	// chain, 1 one level.
	Width float64
	// Regularity says how even the levels are, from 0, where a level has up to
	// twice the usual size, to 1, where all but the last are alike.
	Regularity float64
	// Density is the share of the level above that a task may have as parents.
	Density float64
	// Jump is how many levels up a parent may be, at least 1.
	Jump int
	// Alpha bounds the serial fractions, drawn from [0,Alpha).
	Alpha float64
	// MinTime and MaxTime bound the times on one PE in seconds, drawn from
	// [MinTime,MaxTime) as real numbers.
	MinTime, MaxTime berth.Duration
}

// NewDaggen returns the defaults of the paper's Table 1: 50 tasks, .5 for
// width, regularity and density, a jump of 1, an alpha of .2, and times of a
// minute to ten hours.
func NewDaggen() Daggen {
	return Daggen{Tasks: 50, Width: .5, Regularity: .5, Density: .5, Jump: 1, Alpha: .2, MinTime: 60, MaxTime: 36_000}
}

// Validate reports what cannot be right, as an *berth.Error with code Invalid.
func (d *Daggen) Validate() error {
	if d.Tasks < 1 || d.Tasks > workflow.MaxTasks {
		return berth.Errorf(berth.Invalid, "tasks", "%d; want from 1 to %d", d.Tasks, workflow.MaxTasks)
	}
	for _, share := range []struct {
		field string
		value float64
	}{{"width", d.Width}, {"regularity", d.Regularity}, {"density", d.Density}, {"alpha", d.Alpha}} {
		if !(0 <= share.value && share.value <= 1) {
			return berth.Errorf(berth.Invalid, share.field, "%v; want a number from 0 to 1", share.value)
		}
	}
	switch {
	case d.Jump < 1 || d.Jump > workflow.MaxTasks:
		return berth.Errorf(berth.Invalid, "jump", "%d; want from 1, the level above, to %d", d.Jump, workflow.MaxTasks)
	case d.MinTime < 0:
		return berth.Errorf(berth.Invalid, "min-time", "%d s; want 0 or more", d.MinTime)
	case d.MaxTime < d.MinTime:
		return berth.Errorf(berth.Invalid, "max-time", "%d s; want at least the shortest time, %d s", d.MaxTime, d.MinTime)
	case d.MaxTime >= berth.TimeLimit/berth.Duration(d.Tasks)-1:
		return berth.Errorf(berth.Invalid, "max-time", "%d s; all tasks one after another must end within 2^42 s", d.MaxTime)
	}
	return nil
}

// Generate returns the workflow of that seed, or the error of Validate. Tasks
// are named t0, t1 and so on, level by level.
//
// Sizes of levels, parents, times and serial fractions come from four streams,
// and each level and task has a draw, or a block of draws, of its own, so that
// density and jump change neither the levels nor the times.
//
// Deviations from the program: no edge comes twice, which its search for
// another parent lets slip; there are no entry and exit tasks without time, for
// they are never booked; the edges carry no data; n^width is brought up to the
// next whole number if it falls short of it by less than a billionth, so that
// 49^½ is 7. Cost: O(n + e·log e), and for each of its parents a task looks at
// as many as it has already.
func (d *Daggen) Generate(seed uint64) (*workflow.Workflow, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	times, alphas := stream.New(seed, "daggen time"), stream.New(seed, "daggen alpha")
	spread := float64(d.MaxTime - d.MinTime)
	tasks := make([]workflow.Task, d.Tasks)
	for i := range tasks {
		tasks[i] = workflow.Task{
			ID:         "t" + strconv.Itoa(i),
			Sequential: float64(d.MinTime) + float64(spread*times.Float64(uint64(i))),
			Alpha:      d.Alpha * alphas.Float64(uint64(i)),
		}
	}
	levels := d.levels(seed)
	parents := stream.New(seed, "daggen parents").Source()
	draw := parentDraw{rng: rand.New(parents), levels: levels, childOf: make([]int, d.Tasks)}
	var edges []workflow.Edge
	for level := 1; level+1 < len(levels); level++ {
		for task := levels[level]; task < levels[level+1]; task++ {
			parents.SeekBlock(uint32(task))
			for _, parent := range draw.parents(d, level, task) {
				edges = append(edges, workflow.Edge{Parent: tasks[parent].ID, Child: tasks[task].ID})
			}
		}
	}
	return workflow.New(tasks, edges)
}

// levels returns the number of the first task of each level, and at the end
// the number of tasks.
func (d *Daggen) levels(seed uint64) []int {
	sizes := stream.New(seed, "daggen levels")
	usual := math.Floor(exp(d.Width*log(float64(d.Tasks))) + 1e-9)
	levels := []int{0}
	for placed := 0; placed < d.Tasks; {
		off := float64((1 - d.Regularity) * (2*sizes.Float64(uint64(len(levels)-1)) - 1))
		size := max(1, int(usual*(1+off)))
		placed = min(placed+size, d.Tasks)
		levels = append(levels, placed)
	}
	return levels
}

// parentDraw draws parents, task by task.
type parentDraw struct {
	rng     *rand.Rand
	levels  []int
	childOf []int // of each task the last child it was given
	drawn   []int
}

// parents draws the parents of a task of a level below the first, so that
// neither is 0. The slice is valid until the next call.
func (p *parentDraw) parents(d *Daggen, level, task int) []int {
	p.drawn = p.drawn[:0]
	above := p.levels[level] - p.levels[level-1]
	wanted := min(1+int(p.rng.Float64()*float64(d.Density*float64(above))), above)
	for range wanted {
		from := max(0, level-1-int(p.rng.Float64()*float64(d.Jump)))
		first, size := p.levels[from], p.levels[from+1]-p.levels[from]
		at := int(p.rng.Float64() * float64(size))
		// The next one that is not a parent yet, round the level; a level that
		// is all parents gives none.
		for range size {
			if parent := first + at; p.childOf[parent] != task {
				p.childOf[parent] = task
				p.drawn = append(p.drawn, parent)
				break
			}
			at = (at + 1) % size
		}
	}
	return p.drawn
}
