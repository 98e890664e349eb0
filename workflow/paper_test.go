package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
)

// diamond is the worked example of specification 2, b.9: four tasks on four
// PEs; three of them are booked by others for [20,60).
func diamond(tb testing.TB, epsilon workflow.Epsilon) workflow.Problem {
	tb.Helper()
	w, err := workflow.New(
		[]workflow.Task{{ID: "0", Sequential: 40}, {ID: "1", Sequential: 120}, {ID: "2", Sequential: 60}, {ID: "3", Sequential: 40}},
		[]workflow.Edge{{"0", "1"}, {"0", "2"}, {"1", "3"}, {"2", "3"}},
	)
	if err != nil {
		tb.Fatal(err)
	}
	return workflow.Problem{Workflow: w, Calendar: booked(tb, 4, calendar.Block{Start: 20, End: 60, NPE: 3}), Free: 2, Epsilon: epsilon}
}

// fan is the second example there, with serial fractions.
func fan(tb testing.TB) workflow.Problem {
	tb.Helper()
	w, err := workflow.New(
		[]workflow.Task{
			{ID: "0", Sequential: 600, Alpha: .1},
			{ID: "1", Sequential: 3600, Alpha: .05},
			{ID: "2", Sequential: 1800, Alpha: .2},
			{ID: "3", Sequential: 7200, Alpha: .1},
			{ID: "4", Sequential: 900},
		},
		[]workflow.Edge{{"0", "1"}, {"0", "2"}, {"0", "3"}, {"1", "4"}, {"2", "4"}, {"3", "4"}},
	)
	if err != nil {
		tb.Fatal(err)
	}
	c := booked(tb, 8, calendar.Block{Start: 0, End: 1200, NPE: 4}, calendar.Block{Start: 2400, End: 6000, NPE: 6})
	return workflow.Problem{Workflow: w, Calendar: c, Free: 6}
}

func booked(tb testing.TB, size berth.Count, blocks ...calendar.Block) calendar.Calendar {
	tb.Helper()
	c := calendar.NewFast(size, berth.Late)
	for _, b := range blocks {
		if err := c.Add(b); err != nil {
			tb.Fatal(err)
		}
	}
	return c
}

// drawn writes placements as start+duration×PEs.
func drawn(plan workflow.Plan) string {
	var b strings.Builder
	for i, t := range plan.Tasks {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d+%d×%d", t.Start, t.End-t.Start, t.NPE)
	}
	return b.String()
}

// fails stands for a deadline that a planner does not meet.
const fails = "FAIL"

// The example allots PEs anew before each task (Problem.Anew); rows of the other
// reading are below it.
func TestWorkedExample(t *testing.T) {
	for _, epsilon := range []workflow.Epsilon{workflow.Half, workflow.One, workflow.Zero} {
		for _, plain := range []bool{false, true} {
			problem := diamond(t, epsilon)
			problem.Plain, problem.Anew = plain, true
			in := prepare(t, problem)
			name := fmt.Sprintf("epsilon %d, plain %v", epsilon, plain)
			for _, c := range []struct {
				planner    string
				turnaround berth.Duration
				cpu        int64
				want       string
			}{
				{"bd-all", 115, 260, "0+10×4 60+30×4 90+15×4 105+10×4"},
				{"bd-half", 140, 260, "0+20×2 60+60×2 20+60×1 120+20×2"},
				{"bd-cpa", 140, 262, "0+14×3 60+30×4 90+30×2 120+20×2"},
				{"bd-cpar", 160, 260, "0+20×2 60+60×2 20+60×1 120+40×1"},
				{"bl-cpar/bd-cpar", 160, 260, "0+20×2 60+60×2 20+60×1 120+40×1"},
				// The order is 0, 1, 2, 3 under every allotment.
				{"bl-1/bd-all", 115, 260, "0+10×4 60+30×4 90+15×4 105+10×4"},
				{"bl-all/bd-cpa", 140, 262, "0+14×3 60+30×4 90+30×2 120+20×2"},
				{"bl-cpa/bd-half", 140, 260, "0+20×2 60+60×2 20+60×1 120+20×2"},
			} {
				plan, refusal := planned(t, in, c.planner, berth.Forever)
				if refusal != nil || drawn(plan) != c.want || plan.Turnaround != c.turnaround || plan.CPUSeconds != c.cpu {
					t.Errorf("%s, %s: %d s, %d CPU-s, %s; want %d, %d, %s", name, c.planner,
						plan.Turnaround, plan.CPUSeconds, drawn(plan), c.turnaround, c.cpu, c.want)
				}
			}
			checkRows(t, name, in, deadlineRows)
			problem.Anew = false
			checkRows(t, name+", allotted once", prepare(t, problem), onceRows)
		}
	}
}

// deadlineRow is what a planner answers to a deadline of the diamond, without
// more reserve than at first.
type deadlineRow struct {
	deadline berth.Time
	planner  string
	want     string
}

func checkRows(t *testing.T, name string, in *workflow.Instance, rows []deadlineRow) {
	t.Helper()
	for _, c := range rows {
		plan, refusal := planned(t, in, c.planner, c.deadline)
		got := drawn(plan)
		if refusal != nil {
			got = fails
		}
		if got != c.want || plan.Lambda != 0 {
			t.Errorf("%s, %s by %d: %s at step %d, want %s at 0", name, c.planner, c.deadline, got, plan.Lambda, c.want)
		}
	}
}

// onceRows are those of dl-rc-cpar where PEs are allotted once, to the whole
// workflow: 2, 2, 1 and 1. On two PEs CPA then starts 1 at 20, 2 at 80 and 3 at
// 140. By 160, 3 starts there on two PEs; 2 at 80 on one, as late as CPA would
// start it; 1 at 20 on one; and 0 has the 20 s before it, on two. By 130, 3 has to
// start earlier than at 140, so as late as it can; what comes before 2 and 1 still
// fits in before 80 and 20.
var onceRows = []deadlineRow{
	{130, "dl-rc-cpa", fails},
	{130, "dl-rc-cpar", "20+40×1 60+60×2 90+30×2 120+10×4"},
	{130, "dl-rc-cpar-lambda", "20+40×1 60+60×2 90+30×2 120+10×4"},
	{160, "dl-rc-cpa", "20+40×1 60+60×2 60+60×1 120+40×1"},
	{160, "dl-rc-cpar", "0+20×2 20+120×1 80+60×1 140+20×2"},
	{160, "dl-rc-cpar-lambda", "0+20×2 20+120×1 80+60×1 140+20×2"},
	{160, "dl-rcbd-cpar-lambda", "0+20×2 20+120×1 80+60×1 140+20×2"},
	{200, "dl-rc-cpa", "0+40×1 40+120×1 100+60×1 160+40×1"},
	{200, "dl-rc-cpar", "0+40×1 40+120×1 100+60×1 160+40×1"},
	{300, "dl-rc-cpar", "100+40×1 140+120×1 200+60×1 260+40×1"},
}

// The table of deadlines. Where it says "as" another or gives a first task
// only, the rest follows from due times: a task of the diamond ends when the
// first of its children starts.
var deadlineRows = []deadlineRow{
	{130, "dl-bd-all", "65+10×4 75+30×4 105+15×4 120+10×4"},
	{130, "dl-bd-cpa", fails},
	{130, "dl-bd-cpar", fails},
	{130, "dl-rc-cpa", fails},
	{130, "dl-rc-cpar", "20+40×1 60+40×3 100+20×3 120+10×4"},
	{130, "dl-rc-cpar-lambda", "20+40×1 60+40×3 100+20×3 120+10×4"},
	{160, "dl-bd-all", "95+10×4 105+30×4 135+15×4 150+10×4"},
	{160, "dl-bd-cpa", "66+14×3 80+60×2 110+30×2 140+20×2"},
	{160, "dl-bd-cpar", "20+40×1 60+60×2 60+60×1 120+40×1"},
	{160, "dl-rc-cpa", "20+40×1 60+60×2 60+60×1 120+40×1"},
	{160, "dl-rc-cpar", "0+20×2 20+120×1 110+30×2 140+20×2"},
	{160, "dl-rc-cpar-lambda", "0+20×2 20+120×1 110+30×2 140+20×2"},
	{160, "dl-rcbd-cpar-lambda", "0+20×2 20+120×1 110+30×2 140+20×2"},
	{200, "dl-bd-all", "135+10×4 145+30×4 175+15×4 190+10×4"},
	{200, "dl-bd-cpa", "106+14×3 120+60×2 150+30×2 180+20×2"},
	{200, "dl-bd-cpar", "80+20×2 100+60×2 100+60×1 160+40×1"},
	{200, "dl-rc-cpa", "0+40×1 40+120×1 100+60×1 160+40×1"},
	{200, "dl-rc-cpar", "0+40×1 40+120×1 100+60×1 160+40×1"},
	{200, "dl-rc-cpar-lambda", "0+40×1 40+120×1 100+60×1 160+40×1"},
	{200, "dl-rcbd-cpar-lambda", "0+40×1 40+120×1 100+60×1 160+40×1"},
	{300, "dl-bd-all", "235+10×4 245+30×4 275+15×4 290+10×4"},
	{300, "dl-bd-cpa", "206+14×3 220+60×2 250+30×2 280+20×2"},
	{300, "dl-bd-cpar", "180+20×2 200+60×2 200+60×1 260+40×1"},
	{300, "dl-rc-cpa", "100+40×1 140+120×1 200+60×1 260+40×1"},
	{300, "dl-rc-cpar", "100+40×1 140+120×1 200+60×1 260+40×1"},
	{300, "dl-rc-cpar-lambda", "100+40×1 140+120×1 200+60×1 260+40×1"},
	{300, "dl-rcbd-cpar-lambda", "100+40×1 140+120×1 200+60×1 260+40×1"},
}

func planned(tb testing.TB, in *workflow.Instance, name string, deadline berth.Time) (workflow.Plan, *workflow.Refusal) {
	tb.Helper()
	p, ok := workflow.PlannerNamed(name)
	if !ok {
		tb.Fatalf("no planner %s", name)
	}
	plan, refusal, err := in.Plan(p, deadline)
	if err != nil {
		tb.Fatal(err)
	}
	return plan, refusal
}

func TestWorkedExampleWithSerialFractions(t *testing.T) {
	rc := "300+600×1 4500+3600×1 6300+1800×1 900+7200×1 8100+900×1"
	for _, plain := range []bool{false, true} {
		problem := fan(t)
		problem.Plain, problem.Anew = plain, true
		in := prepare(t, problem)
		for _, c := range []struct {
			planner  string
			deadline berth.Time
			lambda   int
			cpu      int64
			want     string
		}{
			{"bd-all", berth.Forever, 0, 16260, "0+195×4 1200+750×6 4155+1080×2 195+3960×2 5235+450×2"},
			{"bd-half", berth.Forever, 0, 16260, "0+195×4 195+1890×2 1200+720×4 195+3960×2 4155+450×2"},
			{"bd-cpa", berth.Forever, 0, 15060, "0+330×2 330+1890×2 4290+1800×1 330+3960×2 6090+300×3"},
			{"bd-cpar", berth.Forever, 0, 15060, "0+330×2 330+1890×2 4290+1800×1 330+3960×2 6090+450×2"},
			{"dl-bd-all", 9000, 0, 23352, "6081+128×8 7739+608×8 8347+540×8 6209+1530×8 8887+113×8"},
			{"dl-bd-cpa", 9000, 0, 17220, "6354+330×2 6810+1890×2 6900+1800×1 6684+2016×5 8700+300×3"},
			{"dl-bd-cpar", 9000, 0, 17220, "6204+330×2 6660+1890×2 6750+1800×1 6534+2016×5 8550+450×2"},
			{"dl-rc-cpa", 9000, 0, 14100, rc},
			{"dl-rc-cpar", 9000, 0, 14100, rc},
			{"dl-rc-cpar-lambda", 9000, 0, 14100, rc},
			{"dl-rcbd-cpar-lambda", 9000, 0, 14100, rc},
			{"dl-rc-cpar-lambda", 6850, 18, 17700, "40+195×4 4195+1890×2 6085+540×8 235+3960×2 6625+225×4"},
		} {
			plan, refusal := planned(t, in, c.planner, c.deadline)
			if refusal != nil || drawn(plan) != c.want || plan.Lambda != c.lambda || plan.CPUSeconds != c.cpu {
				t.Errorf("plain %v, %s: %d CPU-s, %s at step %d; want %d, %s at %d", plain, c.planner,
					plan.CPUSeconds, drawn(plan), plan.Lambda, c.cpu, c.want, c.lambda)
			}
		}
		if _, refusal := planned(t, in, "dl-rcbd-cpar-lambda", 6850); refusal == nil {
			t.Errorf("plain %v: dl-rcbd-cpar-lambda meets 6850", plain)
		}
		smallestDeadlines(t, in)
	}
}

// smallestDeadlines checks the smallest deadline that each planner meets, in
// steps of 50 s, and the steps of λ at some, which are not monotone.
func smallestDeadlines(t *testing.T, in *workflow.Instance) {
	t.Helper()
	for name, want := range map[string]berth.Time{
		"dl-bd-all": 6700, "dl-bd-cpa": 8100, "dl-bd-cpar": 8250, "dl-rc-cpa": 8700, "dl-rc-cpar": 8700,
		"dl-rc-cpar-lambda": 6700, "dl-rcbd-cpar-lambda": 6900,
	} {
		p, _ := workflow.PlannerNamed(name)
		for deadline := berth.Time(50); ; deadline += 50 {
			if _, ok := in.Try(p, deadline); ok {
				if deadline != want {
					t.Errorf("%s first meets %d, want %d", name, deadline, want)
				}
				break
			}
		}
	}
	for deadline, want := range map[berth.Time]int{6700: 19, 6850: 18, 7050: 16, 7200: 14, 7250: 15, 7600: 9, 7800: 10, 8700: 0} {
		if plan, refusal := planned(t, in, "dl-rc-cpar-lambda", deadline); refusal != nil || plan.Lambda != want {
			t.Errorf("dl-rc-cpar-lambda by %d succeeds at step %d, want %d", deadline, plan.Lambda, want)
		}
	}
}

func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		problem workflow.Problem
		q       berth.Count
		epsilon workflow.Epsilon
		want    []berth.Count
	}{
		{diamond(t, 0), 4, workflow.Half, []berth.Count{3, 4, 2, 2}},
		{diamond(t, 0), 4, workflow.Zero, []berth.Count{3, 4, 2, 2}},
		{diamond(t, 0), 2, workflow.One, []berth.Count{2, 2, 1, 1}},
		{fan(t), 8, workflow.One, []berth.Count{3, 3, 2, 7, 3}},
		{fan(t), 8, workflow.Half, []berth.Count{2, 2, 1, 5, 3}},
		{fan(t), 8, workflow.Zero, []berth.Count{2, 2, 1, 4, 2}},
		{fan(t), 6, workflow.One, []berth.Count{2, 2, 1, 5, 2}},
		{fan(t), 6, workflow.Half, []berth.Count{2, 2, 1, 5, 2}},
		{fan(t), 6, workflow.Zero, []berth.Count{2, 2, 1, 4, 2}},
	} {
		c.problem.Epsilon = c.epsilon
		for _, plain := range []bool{false, true} {
			c.problem.Plain = plain
			got, err := prepare(t, c.problem).Allocate(workflow.CPA, c.q)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("CPA(%d), epsilon %d, plain %v: %v, want %v", c.q, c.epsilon, plain, got, c.want)
			}
		}
	}
}
