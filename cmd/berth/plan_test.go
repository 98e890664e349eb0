package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

var allPlans = flag.Bool("plan.all", false, "plan every workflow around every log with every algorithm, not a quarter of them")

// planLogs are the logs of the mixed-parallel paper that are public, each with
// a time well inside it.
var planLogs = []struct {
	file  string
	flags []string // of generate bookings
	pes   berth.Count
	now   berth.Time
}{
	{"CTC-SP2-1996-3.1-cln.swf.gz", nil, 338, 10_000_000},
	{"OSC-Clust-2000-3.1-cln.swf.gz", nil, 178, 20_000_000},
	{"SDSC-BLUE-2000-4.2-cln.swf.gz", nil, 1152, 40_000_000},
	{"SDSC-DS-2004-2.1-cln.swf.gz", []string{"--partition", "3", "--pes", "224"}, 224, 15_000_000},
}

// TestEveryPlanIsValid plans recorded workflows around bookings from real logs:
// the independent validator accepts every plan together with the bookings, and
// the plan has every task once, as long as its PEs make it, behind its parents.
// Of the algorithms a quarter has its turn with each log, so that every
// workflow meets all of them, and so does every log.
func TestEveryPlanIsValid(t *testing.T) {
	t.Parallel()
	workflows := realdata.File(t, "workflows")
	entries, err := os.ReadDir(workflows)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 15 {
		t.Fatalf("%d workflows, want 15", len(entries))
	}
	if testing.Short() {
		entries = entries[:4]
	}
	for l, log := range planLogs {
		t.Run(log.file, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			bookings := filepath.Join(folder, "bookings.jsonl")
			args := []string{"generate", "bookings", "--workload", realdata.File(t, "swf", log.file), "--now", fmt.Sprint(log.now), "--out", bookings}
			command(t, append(args, log.flags...)...)
			others := len(schedule(t, bookings))
			for w, entry := range entries {
				var chosen []workflow.Planner
				for i, p := range workflow.Planners {
					if *allPlans || (i+l+w)%4 == 0 {
						chosen = append(chosen, p)
					}
				}
				trial := planTrial{
					path: filepath.Join(workflows, entry.Name()), bookings: bookings, folder: folder,
					pes: log.pes, now: log.now, others: others, planners: chosen,
				}
				ends := trial.run(t)
				deadline := slices.Max(ends)
				if got := trial.run(t, "--deadline", fmt.Sprint(deadline)); len(got) == 0 {
					t.Errorf("%s: no plan meets %d, which all reached", entry.Name(), deadline)
				}
			}
		})
	}
}

// planTrial is a workflow to be planned around bookings by some planners.
type planTrial struct {
	path, bookings, folder string
	pes                    berth.Count
	now                    berth.Time
	others                 int // bookings
	planners               []workflow.Planner
}

// run plans and looks at every schedule. It returns the ends of the plans.
func (p *planTrial) run(t *testing.T, more ...string) []berth.Time {
	t.Helper()
	names := strings.Join(namesOf(p.planners, func(p workflow.Planner) string { return p.Name }), ",")
	args := append([]string{
		"plan", p.path, "--pes", strconv.Itoa(int(p.pes)), "--bookings", p.bookings, "--now", fmt.Sprint(p.now), "--algorithm", names,
		"--schedule", filepath.Join(p.folder, "s.jsonl"), "-o", "json",
	}, more...)
	var out plansOutput
	if err := json.Unmarshal([]byte(command(t, args...)), &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Plans) != len(p.planners) {
		t.Fatalf("%q: %d plans, want %d", args, len(out.Plans), len(p.planners))
	}
	file, err := workload.OpenWorkflow(p.path, workload.WorkflowOptions{Alpha: defaultAlpha})
	if err != nil {
		t.Fatal(err)
	}
	var ends []berth.Time
	for i := range out.Plans {
		plan := &out.Plans[i]
		if plan.Reason != "" {
			if len(more) == 0 || plan.TightestDeadline == nil {
				t.Errorf("%q: %s refused", args, plan.Algorithm)
			}
			continue
		}
		path := filepath.Join(p.folder, "s-"+strings.ReplaceAll(plan.Algorithm, "/", "-")+".jsonl")
		if got := command(t, "check", path, "--pes", strconv.Itoa(int(p.pes))); got != "valid\n" {
			t.Fatalf("%q: %s: %s", args, plan.Algorithm, got)
		}
		ends = append(ends, p.whole(t, file.Flow, schedule(t, path), plan))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	return ends
}

// whole checks that a schedule holds the bookings and the plan as it was
// printed: what the validator cannot know. It returns the last end.
func (p *planTrial) whole(t *testing.T, flow *workflow.Workflow, lines []berth.Line, plan *planOutput) berth.Time {
	t.Helper()
	tasks := lines[p.others:]
	if len(tasks) != flow.Len() || len(plan.Tasks) != flow.Len() {
		t.Fatalf("%s: %d lines and %d tasks beside %d bookings, want %d", plan.Algorithm, len(tasks), len(plan.Tasks), p.others, flow.Len())
	}
	last, area := p.now, int64(0)
	for i := range tasks {
		line, told, task := &tasks[i], plan.Tasks[i], flow.Task(i)
		var parents []string
		for _, parent := range flow.Parents(i) {
			parents = append(parents, tasks[parent].ID)
		}
		if line.Kind != berth.KindRequest || line.Task != task.ID || line.Workflow != plan.Workflow || !slices.Equal(line.After, parents) ||
			line.Duration != task.Duration(line.NPE) || told != (taskOutput{task.ID, line.NPE, *line.Start, *line.End}) {
			t.Fatalf("%s: task %d (%s) after %v: %+v, told as %+v", plan.Algorithm, i, task.ID, parents, line, told)
		}
		last = max(last, *line.End)
		area += berth.Area(line.NPE, line.Duration)
	}
	if *plan.Turnaround != last.Sub(p.now) || *plan.CPUHours != float64(area)/3600 || last < plan.LowerBound {
		t.Fatalf("%s: %d s, %v h; want %d s, %d CPU-seconds, not before %d", plan.Algorithm, *plan.Turnaround, *plan.CPUHours, last.Sub(p.now), area, plan.LowerBound)
	}
	if plan.TightestDeadline != nil && *plan.TightestDeadline < last {
		t.Fatalf("%s: ends at %d, after the deadline %d", plan.Algorithm, last, *plan.TightestDeadline)
	}
	return last
}

// The specification's worked example b.9: every planner of its table. What
// resource conservative planners keep free is allotted once (docs/adr/0009), so
// dl-rc-cpar by 130 and by 160 differs from there.
func TestPlanWorkedExample(t *testing.T) {
	folder := t.TempDir()
	flow := written(t, folder, "diamond.json", `{"name":"diamond","schemaVersion":"1.4","workflow":{"tasks":[
{"id":"0","name":"0","runtimeInSeconds":40,"parents":[],"children":["1","2"]},
{"id":"1","name":"1","runtimeInSeconds":120,"parents":["0"],"children":["3"]},
{"id":"2","name":"2","runtimeInSeconds":60,"parents":["0"],"children":["3"]},
{"id":"3","name":"3","runtimeInSeconds":40,"parents":["1","2"],"children":[]}]}}`)
	bookings := written(t, folder, "b.jsonl", `{"id":"b","kind":"booking","npe":3,"start":20,"end":60}`+"\n")
	for _, c := range []struct {
		algorithm, deadline string
		want                string // start×PEs of each task, or nothing
	}{
		{"bd-all", "", "0×4 60×4 90×4 105×4"},
		{"bd-half", "", "0×2 60×2 20×1 120×2"},
		{"bd-cpa", "", "0×3 60×4 90×2 120×2"},
		{"bd-cpar", "", "0×2 60×2 20×1 120×1"},
		{"bl-cpar/bd-cpar", "", "0×2 60×2 20×1 120×1"},
		{"dl-bd-all", "130", "65×4 75×4 105×4 120×4"},
		{"dl-bd-cpa", "130", ""},
		{"dl-bd-cpa", "160", "66×3 80×2 110×2 140×2"},
		{"dl-bd-cpar", "160", "20×1 60×2 60×1 120×1"},
		{"dl-rc-cpa", "160", "20×1 60×2 60×1 120×1"},
		{"dl-rc-cpar", "130", "20×1 60×2 90×2 120×4"},
		{"dl-rc-cpar", "160", "0×2 20×1 80×1 140×2"},
		{"dl-rc-cpar-lambda", "200", "0×1 40×1 100×1 160×1"},
	} {
		args := []string{"plan", flow, "--pes", "4", "--bookings", bookings, "--q", "2", "--alpha", "0", "--algorithm", c.algorithm, "-o", "json"}
		want := exitOK
		if c.deadline != "" {
			args = append(args, "--deadline", c.deadline)
		}
		if c.want == "" {
			want = exitRefused
		}
		var stdout, messages bytes.Buffer
		if code := run(args, strings.NewReader(""), &stdout, &messages); code != want {
			t.Fatalf("%q: exit code %d\n%s", args, code, &messages)
		}
		var out planOutput
		if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, task := range out.Tasks {
			got = append(got, fmt.Sprintf("%d×%d", task.Start, task.NPE))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s by %q: %q, want %q", c.algorithm, c.deadline, got, c.want)
		}
		if met := out.DeadlineMet; (met != nil) != (c.deadline != "") || met != nil && *met != (c.want != "") {
			t.Errorf("%s by %q: deadline met %v", c.algorithm, c.deadline, met)
		}
	}
}
