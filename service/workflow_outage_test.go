package service_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

var isleRounds = effort.Flag("isles.seeds", 8, "how many histories TestSitesGoAwayWhileFilesAreMoved draws")

// isles is a service in front of three fake sites of two nodes that share no folder. Tasks of
// workflows bring their files from one to another, which takes time, while nodes and sites go away.
type isles struct {
	t       *testing.T
	seed    uint64
	dice    *rand.Rand
	host    *service.Host
	store   *sqlite.Store
	options service.Options
	sites   map[string]*quay
	mu      sync.Mutex           // of what several sites write
	runs    map[string][]isleRun // by site, in the order of their jobs
	flows   []berth.Workflow
	down    map[string]bool // nodes, by site and name
	cells   map[string]int
}

// isleRun is one job of a task, as the service handed it in.
type isleRun struct {
	flow, task string
	id         string   // of the promise
	brings     []string // "site path" of each file that it brings
	haul       berth.Duration
}

// isle is a site that takes tasks in the time of the bubble.
type isle struct{ *quay }

func (s isle) Submit(ctx context.Context, task site.Task) (site.JobID, error) {
	return slowly(s.quay, fake.Submit, task.Name, func() (site.JobID, error) { return s.Site.Submit(ctx, task) })
}

func (s isle) Cancel(ctx context.Context, id site.JobID) error {
	_, err := slowly(s.quay, fake.Cancel, string(id), func() (struct{}, error) { return struct{}{}, s.Site.Cancel(ctx, id) })
	return err
}

var isleNames = []string{"east", "north", "west"}

// atIsles runs a history.
func atIsles(t *testing.T, seed uint64, cells map[string]int, test func(w *isles)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := &isles{
			t: t, seed: seed, dice: rand.New(rand.NewPCG(seed, 18)), sites: map[string]*quay{}, runs: map[string][]isleRun{}, down: map[string]bool{}, cells: cells,
			options: service.Options{Version: "test", Managers: map[string]service.Manager{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))},
		}
		w.options.WishesAreAsMadeAnew(func(kept, anew string) { t.Errorf("a promise is wanted as %s, and is to be %s", kept, anew) })
		w.options.Config.Staging = engine.StagingBefore
		for _, name := range isleNames {
			config := fake.Config{Name: name, Description: fake.Nodes(2, 1), Timeout: 10, Run: func(task site.Task) (berth.Duration, site.Result) { return w.run(name, &task) }}
			q := &quay{Site: fake.New(config, w.now())}
			s, layout, err := site.Import(name, &config.Description, site.UnitNode, berth.Early)
			if err != nil {
				t.Fatal(err)
			}
			s.Link = berth.Link{KilobytesPerSecond: 1000}
			w.sites[name] = q
			w.options.Config.Sites = append(w.options.Config.Sites, s)
			w.options.Managers[name] = service.Manager{Kind: "fake", Adapter: struct {
				site.Observer
				site.Booker
				site.Runner
				site.Recaller
				site.Drainer
			}{q, q, isle{q}, q.Site, q.Site}, Layout: layout, Every: 5 * time.Second, Horizon: 60}
			for _, to := range isleNames {
				if to != name {
					w.options.Transfers = append(w.options.Transfers, service.Transfer{From: name, To: to, Command: []string{"mover", "{from}", "{to}"}})
				}
			}
		}
		var err error
		if w.store, err = sqlite.Open(t.TempDir(), sqlite.Options{}); err != nil {
			t.Fatal(err)
		}
		w.options.Journal = w.store
		w.open()
		defer func() {
			if err := errors.Join(w.host.Check(t.Context()), w.host.Close()); err != nil {
				t.Error(err)
			}
			if _, err := service.Verify(t.Context(), w.store, nil); err != nil {
				t.Error(err)
			}
			if err := w.store.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(w)
	})
}

func (w *isles) open() {
	w.t.Helper()
	var err error
	if w.host, err = service.Open(w.t.Context(), w.options); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *isles) now() berth.Time { return berth.Time(time.Now().Unix()) }

func (w *isles) pass(seconds int) {
	time.Sleep(time.Duration(seconds) * time.Second)
	synctest.Wait()
}

func (w *isles) chance(percent int) bool { return w.dice.IntN(100) < percent }

// brought finds which files a task brings, and from which sites.
var brought = regexp.MustCompile(`(?m)^berth_site='(.*)'\nberth_bring '(.*)' '(.*)'$`)

// run says for how long a task runs and how it ends: it moves its files at about the speed of the
// link, now and then in vain, and then takes about as long as was said. It is called by a site.
func (w *isles) run(at string, task *site.Task) (berth.Duration, site.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := isleRun{flow: task.Variables.Workflow, task: task.Variables.Task, id: task.Variables.ID}
	flow := &w.flows[slices.IndexFunc(w.flows, func(f berth.Workflow) bool { return f.ID == r.flow })]
	i := slices.IndexFunc(flow.Tasks, func(k berth.WorkflowTask) bool { return k.ID == r.task })
	k := &flow.Tasks[i]
	for _, m := range brought.FindAllStringSubmatch(strings.Join(task.Command, "\n"), -1) {
		if m[2] != m[3] {
			w.t.Errorf("seed %d: %s of %s brings %s to %s", w.seed, r.task, r.flow, m[2], m[3])
		}
		r.brings = append(r.brings, m[1]+" "+m[2])
		for n, parent := range k.After {
			if strings.HasSuffix(m[2], "/"+flow.Tasks[parent].Work.Outputs[0]) {
				r.haul += berth.Duration(k.Reads[n] / 1_000_000)
			}
		}
	}
	tries := 0
	for _, runs := range w.runs {
		for n := range runs {
			if runs[n].task == r.task {
				tries++
			}
		}
	}
	dice := rand.New(rand.NewPCG(w.seed<<32+uint64(i), uint64(tries)<<32+uint64(slices.IndexFunc(w.flows, func(f berth.Workflow) bool { return f.ID == r.flow }))))
	r.haul = r.haul * berth.Duration(70+dice.IntN(60)) / 100
	w.runs[at] = append(w.runs[at], r)
	took := berth.Duration(1 + int(k.Seconds)*(60+dice.IntN(60))/100)
	switch {
	case r.haul > 0 && dice.IntN(100) < 8:
		w.cells["the mover fails"]++
		return r.haul, site.Result{Ending: site.Failed, Code: 123}
	case dice.IntN(100) < 4:
		return r.haul + took, site.Result{Ending: site.Failed, Code: 1}
	}
	return r.haul + took, site.Result{Ending: site.Completed}
}

// workflow submits one whose tasks are anywhere.
func (w *isles) workflow() {
	f := berth.Workflow{
		ID: fmt.Sprint("w", len(w.flows)), Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: []berth.Repair{berth.RepairBoth, berth.RepairBoth, berth.RepairLate}[w.dice.IntN(3)], Spread: true,
	}
	for i := range 3 + w.dice.IntN(4) {
		k := berth.WorkflowTask{ID: fmt.Sprint(f.ID, ".t", i), Seconds: float64(10 + w.dice.IntN(50)), Alpha: 1, Most: 1, Retries: []int{0, 2, 5}[w.dice.IntN(3)]}
		if w.chance(50) {
			k.Site = isleNames[w.dice.IntN(len(isleNames))]
		}
		k.Work = berth.Work{Command: []string{"work"}, Dir: "/isle", Outputs: []string{k.ID + ".out"}}
		for parent := range i {
			if w.chance(50) || parent == i-1 && len(k.After) == 0 {
				k.After = append(k.After, parent)
				k.Reads = append(k.Reads, int64(10+w.dice.IntN(40))*1_000_000)
				k.Work.Inputs = append(k.Work.Inputs, f.Tasks[parent].Work.Outputs[0])
			}
		}
		f.Tasks = append(f.Tasks, k)
	}
	if w.chance(30) {
		f.Deadline = w.now() + 2000
	}
	w.mu.Lock()
	w.flows = append(w.flows, f)
	w.mu.Unlock()
	a, err := w.host.SubmitWorkflow(w.t.Context(), ann, *f.Clone())
	synctest.Wait() // for what begins at once
	switch {
	case err != nil:
		w.t.Fatalf("seed %d: %v", w.seed, err)
	case a.Workflow.Refusal != nil:
		w.mu.Lock()
		w.flows = w.flows[:len(w.flows)-1]
		w.mu.Unlock()
	}
}

// data submits a request whose data are moved first.
func (w *isles) data(n int) {
	length := berth.Duration(20 + w.dice.IntN(60))
	r := berth.Rigid(fmt.Sprint("d", n), 0, w.now(), w.now()+berth.Time(300+w.dice.IntN(600)), 1, length)
	r.StorageMB = int64(10 + w.dice.IntN(50))
	submit(w.t, w.host, bob, r)
	synctest.Wait()
}

// moving returns where a job moves files now, and from where; ok is false if none does.
func (w *isles) moving() (at, node, from string, ok bool) {
	for _, name := range isleNames {
		q := w.sites[name]
		q.mu.Lock()
		q.Advance(w.now())
		state, err := q.Site.Observe(w.t.Context())
		q.mu.Unlock()
		if err != nil {
			continue // it is away
		}
		for i := range state.Running {
			j := &state.Running[i]
			if r := w.runOf(name, j.ID); r != nil && j.Start <= w.now() && w.now() < j.Start.Add(r.haul) {
				from, _, _ = strings.Cut(r.brings[0], " ")
				return name, j.Shares[0].Node, from, true
			}
		}
	}
	return "", "", "", false
}

// runOf returns what a job of a site was handed in as.
func (w *isles) runOf(at string, job site.JobID) *isleRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	var n int
	if _, err := fmt.Sscan(string(job), &n); err != nil || n < 1 || n > len(w.runs[at]) {
		w.t.Errorf("seed %d: %s has job %s of %d", w.seed, at, job, len(w.runs[at]))
		return nil
	}
	return &w.runs[at][n-1]
}

func (w *isles) fail(at, node string) {
	q := w.sites[at]
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Advance(w.now())
	q.Fail(node, "fire")
	w.down[at+" "+node] = true
}

func (w *isles) repair(which string) {
	at, node, _ := strings.Cut(which, " ")
	q := w.sites[at]
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Advance(w.now())
	q.Repair(node)
	delete(w.down, which)
}

func (w *isles) inject(at, faults string) {
	list, err := fake.ParseFaults(faults)
	if err != nil {
		w.t.Fatal(err)
	}
	w.sites[at].Inject(list...)
}

// restart stops the service, for some time, and starts it again.
func (w *isles) restart(seconds int) {
	if err := w.host.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.pass(seconds)
	w.open()
}

// mishap has something happen, mostly while files are moved.
func (w *isles) mishap() {
	at, node, from, moves := w.moving()
	if all := slices.Sorted(maps.Keys(w.down)); len(all) > 0 && w.chance(40) {
		w.repair(all[w.dice.IntN(len(all))])
		return
	}
	if !w.chance(map[bool]int{true: 60, false: 10}[moves]) {
		return
	}
	if !moves {
		at = isleNames[w.dice.IntN(len(isleNames))]
		node, from = []string{"n1", "n2"}[w.dice.IntN(2)], at
	}
	what := ""
	switch n := w.dice.IntN(84); {
	case n < 22:
		what = "a node fails"
		w.fail(at, node)
	case n < 30:
		what = "a site fails"
		w.fail(at, "n1")
		w.fail(at, "n2")
	case n < 38:
		what = "the site with the files fails"
		w.fail(from, "n1")
		w.fail(from, "n2")
	case n < 46:
		what = "a site is silent"
		w.inject(at, "* * down")
		w.pass(3 + w.dice.IntN(15))
		w.sites[at].Heal()
	case n < 54:
		what = "answers are lost"
		w.inject(at, []string{"submit 1 lost", "submit 1 late 4", "submit 1 unsent", "reserve 1 lost", "change 1 lost", "release 1 lost", "observe 1 stale"}[w.dice.IntN(7)])
	case n < 62:
		what = "a node is drained"
		if err := w.host.Drain(w.t.Context(), root, at, node, "to be looked at"); err == nil {
			w.down[at+" "+node] = true
		}
		synctest.Wait()
	case n < 76:
		what = "the service is restarted"
		w.restart(w.dice.IntN(20))
	default:
		what = "a node fails while the service is stopped"
		if err := w.host.Close(); err != nil {
			w.t.Fatal(err)
		}
		w.pass(w.dice.IntN(10))
		w.fail(at, node)
		w.pass(w.dice.IntN(10))
		w.open()
	}
	if moves {
		what += " while files are moved"
	}
	w.mu.Lock()
	w.cells[what]++
	w.mu.Unlock()
	w.t.Logf("%d: %s at %s %s", w.now(), what, at, node)
}

// heal repairs all and waits until every workflow is over.
func (w *isles) heal() {
	for _, which := range slices.Sorted(maps.Keys(w.down)) {
		w.repair(which)
	}
	for _, q := range w.sites {
		q.Heal()
	}
	for range 400 {
		w.pass(20)
		open := 0
		for i := range w.flows {
			if !w.see(i).State.Over() {
				open++
			}
		}
		if open == 0 {
			w.pass(120)
			return
		}
	}
	for i := range w.flows {
		if f := w.see(i); !f.State.Over() {
			w.t.Errorf("seed %d: %s is %s: %+v", w.seed, f.Workflow.ID, f.State, f.Tasks)
		}
	}
}

func (w *isles) see(flow int) service.Workflow {
	f, err := w.host.Workflow(w.t.Context(), ann.By, w.flows[flow].ID)
	if err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	return f
}

// ran is a job that ran.
type ran struct {
	isleRun
	at        string
	from, end berth.Time
	completed bool
}

// judge compares what ran at the sites with what was asked for and with what the service tells.
func (w *isles) judge() {
	jobs := map[string][]ran{} // by task
	for _, name := range isleNames {
		q := w.sites[name]
		q.mu.Lock()
		q.Advance(w.now())
		state, err := q.Site.Observe(w.t.Context())
		q.mu.Unlock()
		if err != nil {
			w.t.Fatal(err)
		}
		if len(state.Running)+len(state.Pending)+len(state.Ours) > 0 {
			w.t.Errorf("seed %d: %s still has %+v %+v %+v", w.seed, name, state.Running, state.Pending, state.Ours)
		}
		for i := range state.Ended {
			if j := &state.Ended[i]; len(j.Shares) > 0 {
				r := w.runOf(name, j.ID)
				jobs[r.task] = append(jobs[r.task], ran{*r, name, j.Start, j.End, j.Result.Ending == site.Completed})
			}
		}
	}
	for _, list := range jobs {
		slices.SortFunc(list, func(a, b ran) int { return cmp.Compare(a.from, b.from) })
	}
	for n := range w.flows {
		w.judgeFlow(n, jobs)
	}
}

func (w *isles) judgeFlow(n int, jobs map[string][]ran) {
	seen := w.see(n)
	w.cells["workflow "+string(seen.State)]++
	if seen.Cause != "" {
		w.cells["replanned "+string(seen.Cause)]++
	}
	flow := &w.flows[n]
	done := make([]*ran, len(flow.Tasks))
	for i := range flow.Tasks {
		k, sites := &flow.Tasks[i], map[string]bool{}
		list := jobs[k.ID]
		for r := range list {
			sites[list[r].at] = true
			if list[r].completed && done[i] != nil && done[i].end < w.promised(done[i].id) {
				w.t.Errorf("seed %d: %s ran twice: %+v", w.seed, k.ID, list)
			}
			if list[r].completed {
				done[i] = &list[r]
			}
		}
		if len(sites) > 1 {
			w.cells["tried at another site"]++
		}
		outcome := seen.Tasks[i].Outcome
		switch {
		case outcome == berth.Succeeded && done[i] == nil:
			w.t.Errorf("seed %d: %s has succeeded, and its jobs are %+v", w.seed, k.ID, list)
		case outcome == berth.Skipped && len(list) > 0:
			w.t.Errorf("seed %d: %s was skipped, and its jobs are %+v", w.seed, k.ID, list)
		case outcome == berth.FailedForGood && seen.Tasks[i].Why == "":
			w.t.Errorf("seed %d: %s has failed, and its owner is not told why", w.seed, k.ID)
		}
		for r := range list {
			for _, parent := range k.After {
				file, by := flow.Tasks[parent].Work.Outputs[0], done[parent]
				switch {
				case by == nil || by.end > list[r].from:
					w.t.Errorf("seed %d: %s began at %d, and %s is %+v", w.seed, k.ID, list[r].from, file, by)
				case by.at != list[r].at && !slices.Contains(list[r].brings, by.at+" /isle/"+file):
					w.t.Errorf("seed %d: %s at %s brings %q, and %s is at %s", w.seed, k.ID, list[r].at, list[r].brings, file, by.at)
				case by.at == list[r].at && len(list[r].brings) > 0 && strings.Contains(strings.Join(list[r].brings, " "), file):
					w.t.Errorf("seed %d: %s at %s brings %q, and %s is there", w.seed, k.ID, list[r].at, list[r].brings, file)
				}
			}
		}
	}
}

// promised returns until when a promise was to last. What ends in its last second may be heard of too late.
func (w *isles) promised(id string) berth.Time {
	r, err := w.host.Get(w.t.Context(), ann.By, id)
	if err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	return r.Allotments[0].End
}

// account wants nothing left to do, and a schedule that is valid.
func (w *isles) account() {
	if box, err := w.host.Effects(w.t.Context()); err != nil || len(box) > 0 {
		w.t.Errorf("seed %d: still to do: %+v, %v", w.seed, box, err)
	}
	lines, err := service.Schedule(w.t.Context(), w.store)
	if err != nil {
		w.t.Fatal(err)
	}
	var file bytes.Buffer
	encoder := json.NewEncoder(&file)
	for i := range lines {
		if err := encoder.Encode(&lines[i]); err != nil {
			w.t.Fatal(err)
		}
	}
	report, err := check.File(&file, "journal", check.Against(w.options.Config.Sites, 0))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, v := range report.Violations {
		if v.Class != check.Resized { // which it wants to have begun
			w.t.Errorf("seed %d: %v", w.seed, v)
		}
	}
}

// Nodes and sites go away while tasks bring their files from other sites, and the service is stopped and started
// in between. No task begins before those that it reads of have succeeded, each brings every file from the site
// that has it, none that succeeded runs again, and what becomes of each is told.
func TestSitesGoAwayWhileFilesAreMoved(t *testing.T) {
	cells := map[string]int{}
	seeds := isleRounds()
	if testing.Short() {
		seeds = 2
	}
	for seed := range uint64(seeds) {
		atIsles(t, seed, cells, func(w *isles) {
			w.pass(6)
			for n := range 60 {
				switch {
				case n%6 == 0 && len(w.flows) < 8:
					w.workflow()
				case n%7 == 0:
					w.data(n)
				default:
					w.mishap()
				}
				w.pass(3 + w.dice.IntN(15))
			}
			w.heal()
			w.judge()
			w.account()
		})
		if t.Failed() {
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		t.Logf("%s: %d times", name, cells[name])
	}
	for _, name := range isleCells {
		if !testing.Short() && effort.Full() && seeds >= 8 && cells[name] == 0 {
			t.Errorf("%s: never", name)
		}
	}
}

// isleCells is what must have happened.
var isleCells = []string{
	"a node fails while files are moved", "a site fails while files are moved", "a node is drained while files are moved", "a site is silent while files are moved",
	"the site with the files fails while files are moved", "the service is restarted while files are moved", "a node fails while the service is stopped while files are moved",
	"the mover fails", "tried at another site", "workflow succeeded", "workflow failed", "replanned failed",
}
