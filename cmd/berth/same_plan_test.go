package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// samePlansTable is the table that TestPlansAreTheSameEverywhere writes, and compares with.
const samePlansTable = "../../docs/results/workflow-plans-equal.md"

// samePlansHead is what stands above the table.
const samePlansHead = `# The same plans in ` + "`plan`, `sim`" + ` and the service

The 15 recorded workflows of the tests' data, among bookings that are tagged in each of four logs of the Parallel Workloads Archive (acknowledgements in
[deviating-workflows.md](deviating-workflows.md)), once for the earliest end and once by a deadline of three times that turn-around. Each is planned by ` + "`berth plan`" + `; promised
by the engine in a simulation; and promised by a service, asked over HTTP, with the same bookings on its journal, whose past of thirty days it has lived through, so that it finds by itself how many
PEs were free on average (q). Start, end and PEs of every task are the same in all three; *plan* is the beginning of their hash.

Written and compared by

    BERTH_DATA=DIR go test ./cmd/berth -run TestPlansAreTheSameEverywhere

which with ` + "`-plan.all`, as in `make test-long`" + `, asks every planner. All lines are equal in all three.

| log | workflow | tasks | bookings | q | bd-cpar: turn-around, s | plan | dl-rc-cpar: CPU-hours | plan |
|---|---|---|---|---|---|---|---|---|
`

// The same workflow among the same bookings gets the same plan, to the second and the PE, from
// berth plan, in a simulation, and from a service that is asked over HTTP.
func TestPlansAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("promises what whole logs have booked")
	}
	folder := realdata.File(t, "workflows")
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([][]string, len(planLogs))
	t.Run("logs", func(t *testing.T) {
		for l := range planLogs {
			t.Run(planLogs[l].file, func(t *testing.T) {
				t.Parallel()
				s := newSamePlans(t, l)
				for _, entry := range entries {
					rows[l] = append(rows[l], s.compare(filepath.Join(folder, entry.Name())))
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	table := samePlansHead + strings.Join(slices.Concat(rows...), "\n") + "\n"
	if *update {
		if err := os.WriteFile(samePlansTable, []byte(table), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(samePlansTable); err != nil || string(was) != table {
		t.Errorf("%s is another than what comes out now (%v); -update writes it", samePlansTable, err)
	}
}

// samePlans is a log with what is booked of it, for berth plan, simulations and a service.
type samePlans struct {
	t        *testing.T
	log      int // of planLogs
	path     string
	bookings []berth.Request
	service  *client.Client
	asked    int
}

// samePlansClock is the time of a service that a test moves.
type samePlansClock struct{ seconds atomic.Int64 }

func (c *samePlansClock) now() time.Time { return time.Unix(c.seconds.Load(), 0) }

func newSamePlans(t *testing.T, l int) *samePlans {
	t.Helper()
	log := &planLogs[l]
	s := &samePlans{t: t, log: l, path: filepath.Join(t.TempDir(), "bookings.jsonl")}
	args := []string{"generate", "bookings", "--workload", realdata.File(t, "swf", log.file), "--now", fmt.Sprint(log.now), "--out", s.path}
	command(t, append(args, log.flags...)...)
	var lines []berth.Line
	begin := workload.Past(-berth.Forever, log.now).Start
	for _, line := range schedule(t, s.path) {
		if *line.End <= begin {
			continue
		}
		start := max(begin, *line.Start) // what had begun before has been cut there, for all three alike
		line.Start = &start
		line.Duration, line.Arrival, line.Ready = line.End.Sub(start), start, start
		lines = append(lines, line)
		s.bookings = append(s.bookings, berth.Rigid(fmt.Sprint("x", len(s.bookings)), begin-1, start, *line.End, line.NPE, line.End.Sub(start)))
	}
	var text []byte
	for i := range lines {
		line, err := json.Marshal(&lines[i])
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	if err := os.WriteFile(s.path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.serve(begin - 1)
	return s
}

// serve starts a service at a time, which promises all that is booked and lives until the time
// of planning.
func (s *samePlans) serve(from berth.Time) {
	t, log := s.t, &planLogs[s.log]
	t.Helper()
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	clock := &samePlansClock{}
	clock.seconds.Store(int64(from))
	h, err := service.Open(t.Context(), service.Options{
		Config: engine.Config{Sites: sim.OnePool(log.pes, berth.Late)}, Journal: store, Version: "test",
		Clock: clock.now, Monotonic: func() time.Duration { return time.Duration(clock.seconds.Load()) * time.Second },
	})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := token.Open(t.TempDir(), "root", h.Now())
	if err != nil {
		t.Fatal(err)
	}
	secret, _, err := tokens.Add(token.Wanted{User: "ann", Role: service.User}, h.Now())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Options{Service: h, Tokens: tokens, Limits: policy.Limits{{Name: policy.LimitRate, Value: policy.NoLimit}}}))
	t.Cleanup(func() {
		server.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if s.service, err = client.New(server.URL, secret, http.DefaultClient); err != nil {
		t.Fatal(err)
	}
	const together = 64 // so that the journal is synced once for many
	var all sync.WaitGroup
	for first := range together {
		all.Go(func() {
			for i := first; i < len(s.bookings); i += together {
				r := s.bookings[i]
				if a, err := h.Submit(t.Context(), service.Ask{By: service.Principal{User: "bob", Role: service.User}}, r); err != nil || len(a.Reservation.Allotments) != 1 || a.Reservation.Allotments[0].Start != r.Ready {
					t.Errorf("booking %s is not promised: %+v %v", r.ID, a, err)
					return
				}
			}
		})
	}
	all.Wait()
	clock.seconds.Store(int64(log.now))
}

// compare plans a workflow in all three ways and returns its line of the table.
func (s *samePlans) compare(path string) string {
	t := s.t
	t.Helper()
	file, err := workload.OpenWorkflow(path, workload.WorkflowOptions{Alpha: defaultAlpha})
	if err != nil {
		t.Fatal(err)
	}
	planners := []string{"bd-cpar", "dl-rc-cpar"}
	if *allPlans {
		planners = planners[:1]
		for _, p := range workflow.Planners {
			if p.Name != "bd-cpar" {
				planners = append(planners, p.Name)
			}
		}
	}
	deadline := berth.Forever
	cells := map[string][]string{}
	free := berth.Count(0)
	for _, name := range planners {
		plan := s.planned(path, name, deadline)
		what := fmt.Sprintf("%s: %s of %s by %d", filepath.Base(s.path), name, filepath.Base(path), deadline)
		want := plan.Tasks
		if got := s.simulated(file.Flow, name, deadline, plan.Free); !slices.Equal(got, want) {
			t.Errorf("%s: a simulation has %s, berth plan %s", what, planHash(got), planHash(want))
		}
		if got := s.served(file.Flow, name, deadline); !slices.Equal(got, want) {
			t.Errorf("%s: the service has %s, berth plan %s", what, planHash(got), planHash(want))
		}
		switch {
		case plan.Reason != "":
			cells[name] = []string{"–", string(plan.Reason)}
		case name == "bd-cpar":
			cells[name] = []string{fmt.Sprint(*plan.Turnaround), planHash(want)}
			deadline = planLogs[s.log].now.Add(3 * *plan.Turnaround)
		default:
			cells[name] = []string{fmt.Sprintf("%.3f", *plan.CPUHours), planHash(want)}
		}
		free = plan.Free
	}
	row := slices.Concat([]string{
		strings.TrimSuffix(planLogs[s.log].file, "-cln.swf.gz"), strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".json"),
		fmt.Sprint(file.Flow.Len()), fmt.Sprint(len(s.bookings)), fmt.Sprint(free),
	}, cells["bd-cpar"], cells["dl-rc-cpar"])
	return "| " + strings.Join(row, " | ") + " |"
}

// planHash is the beginning of a hash of a plan.
func planHash(tasks []taskOutput) string {
	text, err := json.Marshal(tasks)
	if err != nil {
		panic(err) // of numbers and strings
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// planned asks berth plan.
func (s *samePlans) planned(path, planner string, deadline berth.Time) (plan planOutput) {
	s.t.Helper()
	log := &planLogs[s.log]
	args := []string{"plan", path, "--pes", fmt.Sprint(log.pes), "--bookings", s.path, "--now", fmt.Sprint(log.now), "--algorithm", planner, "-o", "json"}
	if deadline != berth.Forever {
		args = append(args, "--deadline", fmt.Sprint(deadline))
	}
	var out, messages strings.Builder
	if code := run(args, strings.NewReader(""), &out, &messages); code != exitOK && code != exitRefused {
		s.t.Fatalf("berth %s: exit code %d\n%s", strings.Join(args, " "), code, messages.String())
	}
	if err := json.Unmarshal([]byte(out.String()), &plan); err != nil {
		s.t.Fatal(err)
	}
	return plan
}

// simulated has the engine promise a workflow among the bookings in a simulation.
func (s *samePlans) simulated(flow *workflow.Workflow, planner string, deadline berth.Time, free berth.Count) (tasks []taskOutput) {
	s.t.Helper()
	log := &planLogs[s.log]
	w := berth.Workflow{
		ID: "w", Arrival: log.now, Deadline: deadline, Algorithm: planner, Repair: berth.RepairHold,
		Free: []berth.Average{{Resource: berth.PoolID(sim.DefaultSite, sim.OnePool(log.pes, berth.Late)[0].Pools[0].Name), NPE: free}},
	}
	for i := range flow.Len() {
		k := flow.Task(i)
		task := berth.WorkflowTask{ID: k.ID, Seconds: k.Sequential, Alpha: k.Alpha}
		for _, parent := range flow.Parents(i) {
			task.After = append(task.After, int(parent))
		}
		w.Tasks = append(w.Tasks, task)
	}
	result, err := sim.Play(s.t.Context(), engine.Config{Sites: sim.OnePool(log.pes, berth.Late)}, sim.Workload{Requests: s.bookings, Flows: []sim.Flow{{Workflow: w}}}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	at := map[string]*berth.Line{}
	for i := range result.Tasks {
		at[result.Tasks[i].Task] = &result.Tasks[i]
	}
	for i := range flow.Len() {
		if line := at[flow.Task(i).ID]; line != nil {
			tasks = append(tasks, taskOutput{ID: line.Task, NPE: line.NPE, Start: *line.Start, End: *line.End})
		}
	}
	return tasks
}

// served has the service promise a workflow, and takes it back.
func (s *samePlans) served(flow *workflow.Workflow, planner string, deadline berth.Time) (tasks []taskOutput) {
	s.t.Helper()
	s.asked++
	w := form.WorkflowRequest{ID: fmt.Sprint("w", s.asked), Algorithm: planner}
	if deadline != berth.Forever {
		w.Deadline = form.Time(deadline)
	}
	for i := range flow.Len() {
		k := flow.Task(i)
		task := form.TaskToRun{ID: k.ID, Seconds: k.Sequential, Alpha: k.Alpha}
		for _, parent := range flow.Parents(i) {
			task.After = append(task.After, flow.Task(int(parent)).ID)
		}
		w.Tasks = append(w.Tasks, task)
	}
	answer, err := s.service.SubmitWorkflow(s.t.Context(), &w, client.Action{})
	if err != nil {
		s.t.Fatal(err)
	}
	if answer.Decision != "promised" {
		return nil
	}
	for i := range answer.Workflow.Tasks {
		k := &answer.Workflow.Tasks[i]
		tasks = append(tasks, taskOutput{ID: k.ID, NPE: k.NPE, Start: berth.Time(k.PlannedStart), End: berth.Time(k.PlannedEnd)})
	}
	if _, err := s.service.CancelWorkflow(s.t.Context(), w.ID, client.Action{}); err != nil {
		s.t.Fatal(err)
	}
	return tasks
}
