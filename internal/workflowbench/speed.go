package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
)

// named returns a planner of the table.
func named(name string) workflow.Planner {
	p, ok := workflow.PlannerNamed(name)
	if !ok {
		panic("workflowbench: no planner " + name)
	}
	return p
}

// planning is the work of making one plan from nothing. Planners for a deadline
// get the tightest one they meet, at which those with λ try most steps.
func planning(problem workflow.Problem, p workflow.Planner) (func(plain bool) error, error) {
	deadline := berth.Forever
	if p.Goal == workflow.Deadline {
		in, err := workflow.Prepare(problem)
		if err != nil {
			return nil, err
		}
		deadline, _, _ = in.Tightest(p)
	}
	return func(plain bool) error {
		problem.Plain = plain
		in, err := workflow.Prepare(problem)
		if err != nil {
			return err
		}
		if _, refusal, err := in.Plan(p, deadline); err != nil || refusal != nil {
			return fmt.Errorf("%s: %v %w", p.Name, refusal, err)
		}
		return nil
	}, nil
}

// tightest is the work of searching the tightest deadlines of the five planners
// of the paper's Table 6.
func tightest(problem workflow.Problem) func(plain bool) error {
	return func(plain bool) error {
		problem.Plain = plain
		in, err := workflow.Prepare(problem)
		if err != nil {
			return err
		}
		for _, name := range []string{"dl-bd-all", "dl-bd-cpa", "dl-bd-cpar", "dl-rc-cpa", "dl-rc-cpar"} {
			if _, _, ok := in.Tightest(named(name)); !ok {
				return fmt.Errorf("%s meets no deadline", name)
			}
		}
		return nil
	}
}

// goal is a row of the goals; ms is what is to be reached.
type goal struct {
	name  string
	ms    float64
	guess int // see meter.row
	work  func(plain bool) error
}

// daggenGoals are the goals for workflows like the paper's.
func daggenGoals(folder string) ([]goal, error) {
	var goals []goal
	settings := map[string]setting{}
	for _, g := range []struct {
		machine machine
		tasks   int
		planner string
		ms      float64
		guess   int
	}{
		{blue, 50, "bd-cpar", .7, 1000},
		{blue, 100, "bd-cpar", 2.5, 1000},
		{osc, 100, "bd-cpar", .3, 1000},
		{blue, 100, "dl-bd-cpar", 2.5, 1000},
		{blue, 100, "dl-rc-cpar", 25, 500},
		{blue, 100, "dl-rcbd-cpar-lambda", 35, 500},
		{blue, 50, "", 80, 400},
	} {
		s, known := settings[g.machine.name]
		if !known {
			var err error
			if s, err = g.machine.usual(folder); err != nil {
				return nil, err
			}
			settings[g.machine.name] = s
			fmt.Printf("%s: %d PEs, q = %d\n", g.machine.name, g.machine.pes, s.free)
		}
		w, err := daggen(g.tasks, .5, 1)
		if err != nil {
			return nil, err
		}
		row := goal{fmt.Sprintf("%s, n = %d, tightest of five", g.machine.name, g.tasks), g.ms, g.guess, tightest(s.problem(w))}
		if g.planner != "" {
			row.name = fmt.Sprintf("%s, n = %d, %s", g.machine.name, g.tasks, g.planner)
			if row.work, err = planning(s.problem(w), named(g.planner)); err != nil {
				return nil, err
			}
		}
		goals = append(goals, row)
	}
	return goals, nil
}

// largeGoals are the goals for workflows of thousands of tasks; the
// plain form would take hours for the second of them.
func largeGoals(folder string) ([]goal, error) {
	s, err := blue.usual(folder)
	if err != nil {
		return nil, err
	}
	wide, err := fanned(rand.New(rand.NewPCG(3, 1)), 1000)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(3, 3))
	deep, err := layered(rng, 10_000)
	if err != nil {
		return nil, err
	}
	full, booked := packed(rng, 10_000, 100_000, 30*86400)
	var goals []goal
	for _, g := range []struct {
		problem workflow.Problem
		booked  string
		ms      float64
		guess   int
	}{
		{s.problem(wide), "SDSC-BLUE", 150, 200},
		{workflow.Problem{Workflow: deep, Calendar: full, Free: 5000}, fmt.Sprintf("%d bookings", booked), 30_000, 0},
	} {
		work, err := planning(g.problem, named("bd-cpar"))
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%d tasks, %d edges, %d PEs, %s", g.problem.Workflow.Len(), g.problem.Workflow.Edges(), g.problem.Calendar.Size(), g.booked)
		goals = append(goals, goal{name, g.ms, g.guess, work})
	}
	return goals, nil
}

// goals prints the rows of the goals.
func (m *meter) goals(folder string) error {
	goals, err := daggenGoals(folder)
	if err != nil {
		return err
	}
	large, err := largeGoals(folder)
	if err != nil {
		return err
	}
	columns := []string{"work", "reach", "ours", "plain", "plain/ours"}
	fmt.Println()
	printRow(columns)
	fmt.Println(strings.Repeat("|---", len(columns)) + "|")
	var cells [][]string
	for _, g := range append(goals, large...) {
		if !m.wanted(g.name) {
			continue
		}
		fast, plain, err := m.row(g.guess, g.work)
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		row := []string{g.name, fmt.Sprintf("%g", g.ms), ms(fast), ms(plain), times(fast, plain)}
		printRow(row)
		cells = append(cells, row)
	}
	if err := m.put("planners", columns, cells); err != nil {
		return err
	}
	most, err := mostMemory()
	if err != nil {
		return fmt.Errorf("memory used: %w", err)
	}
	fmt.Printf("\nmost memory of the process so far: %d MB\n", most)
	return nil
}

// paperTables prints the paper's Tables 9, times by the number of tasks, and 10,
// times by density at 50 tasks: for each size its figure of the paper, on another
// platform, the paper's steps here, and ours.
func (m *meter) paperTables(folder string) error {
	s, err := blue.usual(folder)
	if err != nil {
		return err
	}
	for _, table := range []struct {
		name, on, by string
		sizes        []size
		rows         []published
	}{
		{"Table 9", "planners-by-tasks", "n", []size{{10, .5}, {25, .5}, {50, .5}, {75, .5}, {100, .5}}, table9},
		{"Table 10", "planners-by-density", "density", []size{{50, .1}, {50, .3}, {50, .5}, {50, .7}, {50, .9}}, table10},
	} {
		if !m.wanted(table.name) {
			continue
		}
		columns := []string{"planner"}
		for _, at := range table.sizes {
			if table.by == "n" {
				columns = append(columns, fmt.Sprint(at.tasks))
			} else {
				columns = append(columns, fmt.Sprint(at.density))
			}
		}
		fmt.Printf("\n%s, ms: of the paper / its steps here / ours\n\n", table.name)
		printRow(columns)
		fmt.Println(strings.Repeat("|---", len(columns)) + "|")
		var cells [][]string
		for _, r := range table.rows {
			row, err := m.paperRow(s, r, table.sizes)
			if err != nil {
				return fmt.Errorf("%s: %w", table.name, err)
			}
			printRow(row)
			cells = append(cells, row)
		}
		if err := m.put(table.on, columns, cells); err != nil {
			return err
		}
	}
	return nil
}

// size is a column of the paper's tables.
type size struct {
	tasks   int
	density float64
}

// published is a row of them; an empty figure is not known.
type published struct {
	planner string
	paper   [5]string
}

// The published figures, in ms.
var (
	table9 = []published{
		{"bd-all", [5]string{".531", "1.981", "5.681", "12.310", "20.264"}},
		{"bd-cpa", [5]string{".217", "1.206", "4.059", "10.025", "17.244"}},
		{"bd-cpar", [5]string{".201", "1.112", "3.753", "9.289", "15.920"}},
		{"dl-bd-all", [5]string{".524", "1.946", "5.585", "12.112", "19.937"}},
		{"dl-bd-cpa", [5]string{".387", "2.197", "7.607", "18.815", "32.588"}},
		{"dl-bd-cpar", [5]string{".205", "1.117", "3.764", "9.272", "15.977"}},
		{"dl-rc-cpa", [5]string{"2.711", "30.084", "200.079", "732.413", "1690.289"}},
		{"dl-rc-cpar", [5]string{"2.303", "24.813", "166.258", "627.961", "1474.890"}},
		{"dl-rc-cpar-lambda", [5]string{"2.347", "24.810", "166.360", "629.305", "1476.448"}},
		{"dl-rcbd-cpar-lambda", [5]string{"2.351", "24.881", "166.140", "628.664", "1474.986"}},
	}
	table10 = []published{
		{"bd-cpar", [5]string{"2.797", "", "", "", "4.361"}},
		{"bd-all", [5]string{"4.971", "", "", "", "6.200"}},
		{"dl-rc-cpar", [5]string{"123.758", "", "", "", "193.274"}},
	}
)

// paperRow measures a row of a table of the paper.
func (m *meter) paperRow(s setting, r published, sizes []size) ([]string, error) {
	cells := []string{r.planner}
	for k, at := range sizes {
		w, err := daggen(at.tasks, at.density, 1)
		if err != nil {
			return nil, err
		}
		work, err := planning(s.problem(w), named(r.planner))
		if err != nil {
			return nil, err
		}
		fast, plain, err := m.row(1, work)
		if err != nil {
			return nil, err
		}
		cells = append(cells, fmt.Sprintf("%s / %s / %s", cmp.Or(r.paper[k], "?"), ms(plain), ms(fast)))
	}
	return cells, nil
}
