package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// experiment is the paper's comparison of plans (sections 3 to 5), with our
// planners beside the published ones.
type experiment struct {
	each, stride int
	seed         uint64
	files        string // a folder of workflows that are planned rather than those of the paper, if any
}

// contest is planners compared by some figures, the smaller the better. Figures
// are compared within an instance, their degradations from the best of it
// averaged over the instances of a scenario and then over scenarios; who has
// the smallest mean of a scenario wins it, and equals all do.
type contest struct {
	planners []string
	figures  []string
	play     play

	scenario, total [][]float64   // sums of degradations
	single          [][][]float64 // degradations of all instances
	wins            [][]int
	instances, left int // in this scenario; left out everywhere
	scenarios       int
}

// play returns the figures of an instance at a time, by planner and figure; none
// if a planner has no plan.
type play func(in *workflow.Instance, now berth.Time, planners []string) ([][]float64, error)

func newContest(figures, planners []string, how play) *contest {
	c := &contest{planners: planners, figures: figures, play: how}
	for range planners {
		c.scenario = append(c.scenario, make([]float64, len(figures)))
		c.total = append(c.total, make([]float64, len(figures)))
		c.wins = append(c.wins, make([]int, len(figures)))
		c.single = append(c.single, make([][]float64, len(figures)))
	}
	return c
}

// add plays one instance.
func (c *contest) add(problem workflow.Problem) error {
	in, err := workflow.Prepare(problem)
	if err != nil {
		return err
	}
	got, err := c.play(in, problem.Now, c.planners)
	if err != nil {
		return err
	}
	if got == nil {
		c.left++
		return nil
	}
	c.judge(got)
	return nil
}

// judge counts the figures of an instance.
func (c *contest) judge(got [][]float64) {
	c.instances++
	for f := range c.figures {
		best := got[0][f]
		for _, of := range got {
			best = min(best, of[f])
		}
		for i, of := range got {
			above := (of[f] - best) / best
			c.scenario[i][f] += above
			c.single[i][f] = append(c.single[i][f], above)
		}
	}
}

// end closes a scenario.
func (c *contest) end() {
	if c.instances == 0 {
		return
	}
	c.scenarios++
	for f := range c.figures {
		best := c.scenario[0][f]
		for _, of := range c.scenario {
			best = min(best, of[f])
		}
		for i, of := range c.scenario {
			c.total[i][f] += of[f] / float64(c.instances)
			if of[f] == best {
				c.wins[i][f]++
			}
		}
	}
	for _, of := range c.scenario {
		clear(of)
	}
	c.instances = 0
}

// mean returns the degradation of a planner, averaged over scenarios.
func (c *contest) mean(planner, figure int) float64 {
	return c.total[planner][figure] / float64(c.scenarios)
}

// tail returns what 99 of 100 instances are above the best at most.
func (c *contest) tail(planner, figure int) float64 {
	all := slices.Sorted(slices.Values(c.single[planner][figure]))
	return all[(99*len(all)+99)/100-1]
}

// print writes the table.
func (c *contest) print() {
	fmt.Print("| planner |")
	for _, f := range c.figures {
		fmt.Printf(" %s %% | p99 %% | wins |", f)
	}
	fmt.Println("\n|---|" + strings.Repeat("---|---|---|", len(c.figures)))
	for i, name := range c.planners {
		fmt.Printf("| %s |", name)
		for f := range c.figures {
			fmt.Printf(" %.2f | %.2f | %d |", 100*c.mean(i, f), 100*c.tail(i, f), c.wins[i][f])
		}
		fmt.Println()
	}
	fmt.Printf("\n%d scenarios; %d instances left out\n", c.scenarios, c.left)
}

// forEarliest plans for the earliest end.
func forEarliest(in *workflow.Instance, _ berth.Time, planners []string) ([][]float64, error) {
	var got [][]float64
	for _, name := range planners {
		plan, refusal, err := in.Plan(named(name), berth.Forever)
		if err != nil || refusal != nil {
			return nil, err
		}
		got = append(got, []float64{float64(plan.Turnaround), float64(plan.CPUSeconds)})
	}
	return got, nil
}

// forDeadlines searches each planner's tightest deadline, and then plans for the
// loose one of the paper: half as long again as the latest of them. An instance
// in which one finds nothing by the loose one is left out.
func forDeadlines(in *workflow.Instance, now berth.Time, planners []string) ([][]float64, error) {
	var got [][]float64
	latest := berth.Duration(0)
	for _, name := range planners {
		at, _, ok := in.Tightest(named(name))
		if !ok {
			return nil, nil
		}
		got = append(got, []float64{float64(at.Sub(now)), 0})
		latest = max(latest, at.Sub(now))
	}
	for i, name := range planners {
		plan, refusal, err := in.Plan(named(name), now.Add(latest*3/2))
		if err != nil || refusal != nil {
			return nil, err
		}
		got[i][1] = float64(plan.CPUSeconds)
	}
	return got, nil
}

// meanTask is what a task of the paper takes on one PE on average, in seconds.
const meanTask = 18030

// source makes workflows of one kind.
type source func(seed uint64) (*workflow.Workflow, error)

// sources returns the kinds of workflow that are planned: those of the paper's Table 1, or one for each file of WfFormat in the folder
// with at most 2,000 tasks, whose α are drawn up to 0.2, and whose tasks are made longer alike until they take meanTask on average.
func (e *experiment) sources() (list []source, err error) {
	if e.files == "" {
		for _, spec := range specs() {
			list = append(list, spec.Generate)
		}
		return list, nil
	}
	names, err := filepath.Glob(filepath.Join(e.files, "*.json*"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		read := func(seed uint64) (*workflow.Workflow, error) {
			rng := rand.New(rand.NewPCG(seed, 1))
			file, err := workload.OpenWorkflow(name, workload.WorkflowOptions{Draw: func(int) float64 { return .2 * rng.Float64() }})
			if err != nil {
				return nil, err
			}
			var sum float64
			for i := range file.Flow.Len() {
				sum += file.Flow.Task(i).Sequential
			}
			return file.Flow.Scaled(meanTask * float64(file.Flow.Len()) / sum)
		}
		w, err := read(0)
		if err != nil {
			return nil, err
		}
		if w.Len() <= 2000 {
			list = append(list, read)
		}
	}
	return list, nil
}

// specs are the workflows of the paper's Table 1: one value at a time differs
// from the defaults.
func specs() []workload.Daggen {
	var list []workload.Daggen
	with := func(change func(d *workload.Daggen)) {
		d := workload.NewDaggen()
		change(&d)
		list = append(list, d)
	}
	for _, n := range []int{10, 25, 50, 75, 100} {
		with(func(d *workload.Daggen) { d.Tasks = n })
	}
	for _, a := range []float64{.05, .10, .15, .20} {
		with(func(d *workload.Daggen) { d.Alpha = a })
	}
	for k := 1; k <= 9; k++ {
		x := float64(k) / 10
		with(func(d *workload.Daggen) { d.Width = x })
		with(func(d *workload.Daggen) { d.Density = x })
		with(func(d *workload.Daggen) { d.Regularity = x })
	}
	for j := 1; j <= 4; j++ {
		with(func(d *workload.Daggen) { d.Jump = j })
	}
	return list
}

// ofSetting is a log with a share and a thinning of its bookings.
type ofSetting struct {
	share    float64
	thinning workload.Thinning
}

// settings are the paper's shares and methods.
func settings() []ofSetting {
	var list []ofSetting
	for _, share := range []float64{.1, .2, .5} {
		for _, t := range workload.Thinnings() {
			list = append(list, ofSetting{share, t})
		}
	}
	return list
}

// contests are those for the earliest end and for deadlines.
func contests() (earliest, deadlines *contest) {
	earliest = newContest([]string{"turn-around", "CPU-hours"}, []string{"bd-all", "bd-half", "bd-cpa", "bd-cpar", "bd-mcpar", "bd-thrift", "bd-portfolio"}, forEarliest)
	deadlines = newContest([]string{"tightest", "CPU-hours"}, []string{"dl-bd-cpa", "dl-bd-cpar", "dl-rc-cpar", "dl-rc-cpar-lambda", "dl-rcbd-cpar-lambda", "dl-thrift-lambda", "dl-portfolio"}, forDeadlines)
	return earliest, deadlines
}

// print runs the experiment on the logs of the paper, and on two others.
func (e *experiment) print(folder string) error {
	for _, part := range []struct {
		name     string
		machines []machine
	}{{"logs of the paper", []machine{ctc, osc, blue, ds}}, {"other logs", []machine{hpc2n, lanl}}} {
		earliest, deadlines := contests()
		var took duel
		for _, m := range part.machines {
			records, err := m.records(folder)
			if err != nil {
				return err
			}
			if err := e.onMachine(m, records, earliest, deadlines, &took); err != nil {
				return err
			}
		}
		fmt.Printf("\n%s, for the earliest end\n\n", part.name)
		earliest.print()
		took.print()
		fmt.Printf("\n%s, for deadlines\n\n", part.name)
		deadlines.print()
	}
	return nil
}

// onMachine plays every scenario of a machine.
func (e *experiment) onMachine(m machine, records []workload.Record, earliest, deadlines *contest, took *duel) error {
	number := 0
	kinds, err := e.sources()
	if err != nil {
		return err
	}
	for _, s := range settings() {
		for k, generate := range kinds {
			number++
			if number%max(1, e.stride) != 0 {
				continue
			}
			rng := rand.New(rand.NewPCG(e.seed, uint64(number)))
			for range e.each {
				// Not within the first thirty days, for q is their average, nor the last.
				now := records[len(records)/10+rng.IntN(len(records)*8/10)].Submit
				tagging := workload.Tagging{Share: s.share, Thinning: s.thinning, Now: now, PEs: m.pes, Seed: rng.Uint64()}
				at, err := book(tagging, records)
				if err != nil {
					return fmt.Errorf("%s: %w", m.name, err)
				}
				w, err := generate(rng.Uint64())
				if err != nil {
					return fmt.Errorf("workflow %d: %w", k, err)
				}
				problem := at.problem(w)
				if err := earliest.add(problem); err != nil {
					return err
				}
				if err := deadlines.add(problem); err != nil {
					return err
				}
				if err := took.add(problem); err != nil {
					return err
				}
			}
			earliest.end()
			deadlines.end()
		}
	}
	return nil
}

// timed are the planners whose planning times are compared, the first being the
// measure.
var timed = [...]string{"bd-cpar", "bd-cpa", "bd-thrift", "bd-portfolio"}

// duel is their planning time, each the shortest of three runs of every
// instance, in turns.
type duel [len(timed)]time.Duration

func (d *duel) add(problem workflow.Problem) error {
	var best duel
	for range 3 {
		for i, name := range timed {
			before := time.Now()
			in, err := workflow.Prepare(problem)
			if err != nil {
				return err
			}
			if _, _, err := in.Plan(named(name), berth.Forever); err != nil {
				return err
			}
			if took := time.Since(before); best[i] == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	for i := range d {
		d[i] += best[i]
	}
	return nil
}

func (d *duel) print() {
	for i, name := range timed[1:] {
		fmt.Printf("%s plans in %.2f times the time of %s\n", name, float64(d[i+1])/float64(d[0]), timed[0])
	}
}
