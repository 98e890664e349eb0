package service

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/site"
)

// taskWorld draws what a site shows of jobs of one reservation and of others.
type taskWorld struct {
	jobs map[site.JobID]*site.Report
	now  berth.Time
}

// step lets jobs come, start, end, wait again and be forgotten.
func (w *taskWorld) step(t *rapid.T) {
	w.now += berth.Time(rapid.IntRange(1, 5).Draw(t, "time"))
	id := site.JobID(rapid.SampledFrom([]string{"1", "2", "10", "11_1", "11_2"}).Draw(t, "job"))
	j := w.jobs[id]
	key := rapid.SampledFrom([]string{"", flowKey}).Draw(t, "key")
	switch act := rapid.SampledFrom([]string{"start", "end", "requeue", "forget"}).Draw(t, "act"); {
	case j == nil && act == "start":
		w.jobs[id] = &site.Report{Job: site.Job{ID: id, Reservation: "ours", Key: key, Name: "n", Start: w.now, End: w.now + 100, Shares: []site.Share{{Node: "n1"}}}, Stage: site.Running}
	case j == nil:
		w.jobs[id] = &site.Report{Job: site.Job{ID: id, Reservation: "ours", Key: key, Name: "n"}, Stage: site.Waiting}
	case act == "start" && j.Stage != site.Running:
		j.Stage, j.Start, j.End, j.Shares, j.Result = site.Running, w.now, w.now+100, []site.Share{{Node: "n1"}}, site.Result{}
	case act == "end" && j.Stage != site.Ended:
		if j.Stage == site.Waiting {
			j.Start, j.Shares = w.now, nil
		}
		j.Stage, j.End, j.Result = site.Ended, w.now, site.Result{Ending: site.Failed, Code: 3}
	case act == "requeue":
		j.Stage = site.Waiting
	case act == "forget":
		delete(w.jobs, id)
	}
}

func (w *taskWorld) state() *site.State {
	s := &site.State{At: w.now}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) { // in the order of the last look
		j := w.jobs[id]
		switch j.Stage {
		case site.Running:
			s.Running = append(s.Running, j.Job)
			if j.End%3 == 0 {
				s.Ended = append(s.Ended, j.Job) // what runs comes first
			}
		case site.Ended:
			s.Ended = append(s.Ended, j.Job)
		default:
			s.Pending = append(s.Pending, j.Job)
		}
	}
	return s
}

// Whatever a site shows, each task that is told to have started ends once before it is
// told to have started again; a look that shows what the last one did tells nothing; and
// the records alone, or a snapshot and the rest, lead to what was known.
func TestTasksAreToldInOrderAndFromRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		core := taskCore(t)
		w := taskWorld{jobs: map[site.JobID]*site.Report{}, now: 1000}
		owner := func(*site.Job) string { return "r" }
		var records []*journal.Record
		var snapshot []byte
		var at journal.Position
		runs := map[site.JobID]bool{}
		for i := range 60 {
			for range rapid.IntRange(0, 3).Draw(t, "steps") {
				w.step(t)
			}
			state := w.state()
			plainly := plainTasks(core, state, owner)
			events := core.newTasks("s", state, state.At, owner)
			if !reflect.DeepEqual(events, plainly) {
				t.Fatalf("a look shows\n%+v\nwith nothing remembered of the last one\n%+v", events, plainly)
			}
			if len(events) > 0 {
				rec, list := core.seeTasks(w.now, &taskLook{site: "s", events: events})
				records = append(records, rec)
				wantFlows(t, core.tasksAt("s"))
				for k := range list {
					n := &list[k]
					if n.what == TaskEnded && n.task.Stage != site.Ended || n.what == TaskStarted && (n.task.Stage != site.Running || runs[n.task.ID]) {
						t.Fatalf("%s is told as %s in %+v, it runs: %t", n.task.ID, n.what, n.task, runs[n.task.ID])
					}
					runs[n.task.ID] = n.what == TaskStarted
				}
			}
			for id, j := range w.jobs {
				if runs[id] != (j.Stage == site.Running) && j.Stage != site.Waiting {
					t.Fatalf("job %s is %s, told to run: %t", id, j.Stage, runs[id])
				}
				if j.Stage == site.Waiting {
					runs[id] = false // it was taken back, which is not told
				}
			}
			if events := core.newTasks("s", state, state.At, owner); len(events) > 0 {
				t.Fatalf("the same look once more: %+v", events)
			}
			if i == 30 {
				var err error
				if snapshot, err = core.Snapshot(); err != nil {
					t.Fatal(err)
				}
				at = core.position
			}
		}
		want, err := core.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		restored, err := restoreCore(snapshot, at, "v1", 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, again := range []*Core{taskCore(t), restored} {
			for _, rec := range records {
				if rec.Number <= again.position.Number {
					continue
				}
				if err := again.Follow(rec, new(record.Decoder)); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := again.Snapshot(); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("from the records: %q, %v, want %q", got, err, want)
			}
		}
	})
}

// plainTasks returns what a look shows if nothing is remembered of what the last one listed as ended.
func plainTasks(core *Core, state *site.State, owner func(*site.Job) string) []taskEvent {
	was := core.tasks["s"]
	if was == nil {
		return core.newTasks("s", state, state.At, owner)
	}
	defer func() { core.tasks["s"] = was }()
	plain := newSiteTasks()
	for _, k := range was.byJob {
		again := *k
		plain.put(&again, false)
	}
	core.tasks["s"] = plain
	return core.newTasks("s", state, state.At, owner)
}

// wantFlows wants the tasks of workflows to be found by their reservation, and no others.
func wantFlows(t *rapid.T, s *siteTasks) {
	t.Helper()
	found := 0
	for reservation, list := range s.flows {
		for _, k := range list {
			if found++; s.byJob[k.task.ID] != k || k.reservation != reservation || k.task.Key != flowKey {
				t.Fatalf("task %s is found by reservation %s, and is not of it: %+v", k.task.ID, reservation, k)
			}
		}
	}
	want := 0
	for _, k := range s.byJob {
		if k.task.Key == flowKey {
			want++
		}
	}
	if found != want {
		t.Fatalf("%d tasks of workflows are found by their reservations, there are %d", found, want)
	}
}

// taskCore returns a core with a promise r.
func taskCore(t *rapid.T) *Core {
	core, err := newCore(engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Early}}}}}, "v1", 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := core.Configure(1, core.config); err != nil {
		t.Fatal(err)
	}
	r := berth.Rigid("r", 0, 0, 100_000, 1, 90_000)
	event := engine.Submit(&r)
	if _, _, err := core.Step(1, &event, Key{}); err != nil {
		t.Fatal(err)
	}
	return core
}
