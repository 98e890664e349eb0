package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// machine is a log, the PEs that the paper, or else the archive, gives its
// machine, and which of its jobs are taken, all if keep is nil.
type machine struct {
	name, file string
	pes        berth.Count
	keep       func(*workload.Record) bool
}

var (
	ctc  = machine{"CTC", "CTC-SP2-1996-3.1-cln.swf.gz", 430, nil}
	osc  = machine{"OSC", "OSC-Clust-2000-3.1-cln.swf.gz", 57, nil}
	blue = machine{"SDSC-BLUE", "SDSC-BLUE-2000-4.2-cln.swf.gz", 1152, nil}
	ds   = machine{"SDSC-DS", "SDSC-DS-2004-2.1-cln.swf.gz", 224, completedIn3}

	// Not in the paper.
	hpc2n = machine{"HPC2N", "HPC2N-2002-2.2-cln.swf.gz", 240, nil}
	lanl  = machine{"LANL-CM5", "LANL-CM5-1994-4.1-cln.swf.gz", 1024, nil}
)

// completedIn3 takes the jobs that the paper's Tables 2 and 3 describe: those of
// partition 3 that completed.
func completedIn3(r *workload.Record) bool { return r.Partition == 3 && r.Status == 1 }

// records reads the jobs of the log.
func (m machine) records(folder string) ([]workload.Record, error) {
	log, err := workload.Open(filepath.Join(folder, m.file), workload.Options{Keep: m.keep})
	if err != nil {
		return nil, err
	}
	return log.Records, nil
}

// setting is a machine with bookings at a time.
type setting struct {
	calendar calendar.Calendar
	now      berth.Time
	free     berth.Count
}

// book tags jobs and books what comes of it.
func book(t workload.Tagging, records []workload.Record) (setting, error) {
	tagged, err := t.Bookings(records)
	if err != nil {
		return setting{}, err
	}
	s := setting{calendar.NewFast(t.PEs, berth.Late), t.Now, tagged.Free}
	for _, b := range tagged.Bookings {
		if b.End <= t.Now {
			continue
		}
		if err := s.calendar.Add(calendar.Block{Start: b.Start, End: b.End, NPE: b.NPE}); err != nil {
			return setting{}, fmt.Errorf("booking %q: %w", b.ID, err)
		}
	}
	return s, nil
}

// usual is the setting of the speed goals: φ = .2, expo, a third through the
// log.
func (m machine) usual(folder string) (setting, error) {
	records, err := m.records(folder)
	if err != nil {
		return setting{}, err
	}
	return book(workload.Tagging{Share: .2, Thinning: workload.Expo, Now: records[len(records)/3].Submit, PEs: m.pes, Seed: 1}, records)
}

// problem is a workflow to be planned there.
func (s setting) problem(w *workflow.Workflow) workflow.Problem {
	return workflow.Problem{Workflow: w, Calendar: s.calendar, Now: s.now, Free: s.free}
}

// daggen draws a workflow with the defaults of the paper's Table 1 but these.
func daggen(tasks int, density float64, seed uint64) (*workflow.Workflow, error) {
	d := workload.NewDaggen()
	d.Tasks, d.Density = tasks, density
	return d.Generate(seed)
}

// drawTask draws a task as the paper does.
func drawTask(rng *rand.Rand, i int) workflow.Task {
	return workflow.Task{ID: strconv.Itoa(i), Sequential: 60 + 35940*rng.Float64(), Alpha: .2 * rng.Float64()}
}

// fanned draws two tasks that feed all others, and two that all others feed:
// the shape of BLAST and BWA.
func fanned(rng *rand.Rand, n int) (*workflow.Workflow, error) {
	tasks := make([]workflow.Task, n)
	var edges []workflow.Edge
	for i := range tasks {
		tasks[i] = drawTask(rng, i)
		if i < 2 || i >= n-2 {
			continue
		}
		for _, from := range []int{0, 1} {
			edges = append(edges, workflow.Edge{Parent: strconv.Itoa(from), Child: strconv.Itoa(i)})
		}
		for _, to := range []int{n - 2, n - 1} {
			edges = append(edges, workflow.Edge{Parent: strconv.Itoa(i), Child: strconv.Itoa(to)})
		}
	}
	return workflow.New(tasks, edges)
}

// layered draws levels of a hundred tasks with three parents each, from the
// level above.
func layered(rng *rand.Rand, n int) (*workflow.Workflow, error) {
	const width = 100
	tasks := make([]workflow.Task, n)
	var edges []workflow.Edge
	for i := range tasks {
		tasks[i] = drawTask(rng, i)
		if i < width {
			continue
		}
		for _, k := range rng.Perm(width)[:3] {
			edges = append(edges, workflow.Edge{Parent: strconv.Itoa(i - i%width - width + k), Child: strconv.Itoa(i)})
		}
	}
	return workflow.New(tasks, edges)
}

// packed fills a machine with n bookings at random places of a span, as many
// as fit, so that about half of its time is free. It returns how many fitted.
func packed(rng *rand.Rand, size berth.Count, n, span int) (calendar.Calendar, int) {
	c := calendar.NewFast(size, berth.Late)
	mean := int(.5 * float64(size) * float64(span) / float64(n) / 64)
	booked := 0
	for range n {
		b := calendar.Block{Start: berth.Time(rng.IntN(span)), NPE: 1 + berth.Count(rng.IntN(127))}
		b.End = b.Start + 1 + berth.Time(rng.IntN(2*mean))
		if c.Add(b) == nil {
			booked++
		}
	}
	return c, booked
}
