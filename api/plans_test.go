package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/workflow"
)

// diamond is a workflow of four tasks: a, then b and c, then d.
const diamond = `{"name":"diamond","schemaVersion":"1.4","workflow":{"tasks":[
{"id":"a","name":"a","runtimeInSeconds":40,"parents":[],"children":["b","c"]},
{"id":"b","name":"b","runtimeInSeconds":120,"parents":["a"],"children":["d"]},
{"id":"c","name":"c","runtimeInSeconds":60,"parents":["a"],"children":["d"]},
{"id":"d","name":"d","runtimeInSeconds":40,"parents":["b","c"],"children":[]}]}}`

const planFor = `{"workflow":` + diamond + `}`

// plansOf reads the lines of an answer.
func plansOf(t *testing.T, a *answer) []form.PlanLine {
	t.Helper()
	if a.Code != 200 || a.Header().Get("Content-Type") != form.PlansType {
		t.Fatalf("%d %v %s", a.Code, a.Header(), a.text)
	}
	var lines []form.PlanLine
	for decoder := json.NewDecoder(strings.NewReader(a.text)); decoder.More(); {
		var l form.PlanLine
		if err := decoder.Decode(&l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// What plans cost goes with their deadlines: each plan of 400 tasks is one call more.
func TestPlansCountByTheirDeadlines(t *testing.T) {
	var tasks []string
	for i := range 400 {
		tasks = append(tasks, fmt.Sprintf(`{"id":"t%d","runtimeInSeconds":60,"parents":[]}`, i))
	}
	body := fmt.Sprintf(`{"workflow":{"name":"wide","schemaVersion":"1.4","workflow":{"tasks":[%s]}},"planners":["dl-bd-cpa"],"deadlines":[%%s]}`, strings.Join(tasks, ","))
	const deadline = `"2026-11-23T12:00:00Z"`
	left := func(deadlines string) (calls int) {
		w := newWorld(t, api.Options{Limits: rate(1, 6)})
		plansOf(t, w.do("alice", "POST", "/v1/workflows/plans", fmt.Sprintf(body, deadlines)))
		for w.do("alice", "GET", "/v1/me", "").Code == 200 {
			calls++
		}
		return calls
	}
	if one, three := left(deadline), left(deadline+","+deadline+","+deadline); one != 3 || three != 1 {
		t.Errorf("%d calls are left after plans for one deadline, %d for three; want 3 and 1 of 6, the call and its 20 kB being two", one, three)
	}
}

// Plans keep clear of what others hold, and nothing is booked.
func TestPlansOfAWorkflow(t *testing.T) {
	w := newWorld(t, api.Options{})
	w.do("bob", "POST", "/v1/requests", `{"npe":100,"duration":600,"deadline":"2026-11-22T12:00:00Z"}`)
	deadline := form.TimeOf(start + 3600)
	lines := plansOf(t, w.do("alice", "POST", "/v1/workflows/plans", fmt.Sprintf(`{"workflow":%s,"alpha":0,"planners":["bd-cpar","dl-rc-cpar"],"deadlines":["%s","2026-11-21T12:10:01Z"]}`, diamond, deadline)))
	if len(lines) != 5 || !lines[4].Done {
		t.Fatalf("%d lines: %+v", len(lines), lines)
	}
	about := lines[0].Workflow
	if about.Name != "diamond" || about.Site != "cm5" || about.Pool != "batch" || about.PEs != 100 || about.Now != form.TimeOf(start) || len(about.Tasks) != 4 ||
		!slices.Equal(about.Tasks[3].Parents, []int{1, 2}) || about.Tasks[1].Seconds != 120 || len(about.Notes) != 1 {
		t.Errorf("%+v", about)
	}
	if len(about.Held) != 1 || about.Held[0] != (form.Holding{NPE: 100, Start: form.TimeOf(start), End: form.TimeOf(start + 600)}) {
		t.Errorf("held: %+v", about.Held)
	}
	soonest, by, missed := lines[1].Plan, lines[2].Plan, lines[3].Plan
	if soonest.Planner != "bd-cpar" || soonest.Deadline != 0 || soonest.Tasks[0].Start < form.TimeOf(start+600) || soonest.Turnaround <= 600 || soonest.Critical[len(soonest.Critical)-1] != 3 {
		t.Errorf("%+v, want a plan behind the 600 s that are held", soonest)
	}
	if by.Planner != "dl-rc-cpar" || by.Deadline != deadline || by.End > deadline || by.PESeconds >= soonest.PESeconds {
		t.Errorf("%+v, want a plan of fewer PE-seconds than %d by the deadline", by, soonest.PESeconds)
	}
	if missed.Reason != berth.NoCapacity || missed.Tasks != nil {
		t.Errorf("%+v, want that it cannot be met", missed)
	}
	tightest := plansOf(t, w.do("alice", "POST", "/v1/workflows/plans", fmt.Sprintf(`{"workflow":%s,"site":"cm5","pool":"batch","planners":["dl-bd-cpa"]}`, diamond)))[1].Plan
	if tightest.Tightest == 0 || tightest.End > tightest.Tightest {
		t.Errorf("%+v, want the tightest deadline", tightest)
	}
	if all := plansOf(t, w.do("alice", "POST", "/v1/workflows/plans", planFor[:len(planFor)-1]+`,"planners":["all"]}`)); len(all) != len(workflow.Planners)+2 {
		t.Errorf("%d lines of all planners, want %d", len(all), len(workflow.Planners)+2)
	}
	if len(w.fake.made) != 1 {
		t.Errorf("%d reservations, want bob's alone", len(w.fake.made))
	}
}

// An outage with an unknown end is planned around, and what lies under it is not
// counted twice.
func TestPlansAroundAnOutage(t *testing.T) {
	w := newWorld(t, api.Options{})
	w.fake.outages = []service.Span{{Kind: berth.KindOutage, Allotment: berth.Allotment{Resource: berth.PoolID("cm5", "batch"), End: berth.Forever, NPE: 99}}}
	w.do("bob", "POST", "/v1/requests", `{"npe":100,"duration":600,"deadline":"2026-11-22T12:00:00Z"}`)
	lines := plansOf(t, w.do("alice", "POST", "/v1/workflows/plans", planFor))
	want := []form.Holding{{NPE: 100, Start: form.TimeOf(start), End: form.TimeOf(start + 600)}, {NPE: 99, Start: form.TimeOf(start + 600)}}
	if held := lines[0].Workflow.Held; !slices.Equal(held, want) {
		t.Errorf("held: %+v, want %+v", held, want)
	}
	for _, task := range lines[1].Plan.Tasks {
		if task.NPE != 1 || task.Start < form.TimeOf(start+600) {
			t.Errorf("%+v, want one PE once bob's promise is over", task)
		}
	}
}

func TestPlansOfWhatIsNoWorkflow(t *testing.T) {
	w := newWorld(t, api.Options{})
	many := `{"name":"m","schemaVersion":"1.4","workflow":{"tasks":[{"id":"0","runtimeInSeconds":1}`
	for i := range 500 {
		many += fmt.Sprintf(`,{"id":"t%d","runtimeInSeconds":1}`, i)
	}
	for body, detail := range map[string]string{
		`{}`: "workflow: missing", `{"workflow":7}`: "workflow", `{"workflow":{"name":"x"}}`: "schemaVersion: workflow:1:1: missing", `{"workflow":` + many + `]}}}`: "501 tasks; want at most 500",
		planFor[:len(planFor)-1] + `,"alpha":2}`:                            "alpha: 2; want a number from 0 to 1",
		planFor[:len(planFor)-1] + `,"planners":["bd-cpaa"]}`:               "planners[0]: ",
		planFor[:len(planFor)-1] + `,"deadlines":["2020-01-01T00:00:00Z"]}`: "deadlines[0]: ",
		planFor[:len(planFor)-1] + `,"dead":1}`:                             "dead: unknown field",
		planFor[:len(planFor)-1] + `,"deadlines":"soon"}`:                   "deadlines: ",
	} {
		wantProblem(t, w.do("alice", "POST", "/v1/workflows/plans", body), 422, detail)
	}
	wantProblem(t, w.do("alice", "POST", "/v1/workflows/plans", planFor[:len(planFor)-1]+`,"site":"cm6"}`), 404, "no site")
	wantProblem(t, w.do("alice", "POST", "/v1/workflows/plans", planFor[:len(planFor)-1]+`,"pool":"gpu"}`), 404, "no pool")
}
