package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// flowLab is a service in front of a cluster at which it runs tasks as their owners, and one of
// those, who is not there.
type flowLab struct {
	*lab
	ask  service.Ask
	home string // of the owner
	dir  string // where the owner may write
	file string // to which each task adds its name
}

// newFlowLab starts both.
func newFlowLab(t *testing.T, o slurmtest.Options) *flowLab {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can run tasks as their owners")
	}
	const owner = "games" // Slurm 26.05 takes nobody for none
	who, err := user.Lookup(owner)
	if err != nil {
		t.Skip(err)
	}
	l := &flowLab{lab: newLabOf(t, slurmtest.Start(t, o), site.UnitNode, false), home: who.HomeDir}
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	deputy, err := slurm.NewDeputy(slurm.Options{Site: "lab", Conf: l.cluster.Conf}, 0o027)
	if err != nil {
		t.Fatal(err)
	}
	l.manager.Adapter = deputy
	l.mortal = &mortal{Store: l.store}
	l.open()
	l.ask.By = service.Principal{User: owner, Role: service.User}
	l.dir, err = os.MkdirTemp("", "flow") // which others may enter, as they may not that of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(l.dir) }) // a late file of a task is no failure of the test
	if err := os.Chmod(l.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	l.file = filepath.Join(l.dir, "ran")
	return l
}

// task returns a task that notes that it ran, and as whom, and then does something more.
func (l *flowLab) task(id string, seconds float64, more string, after ...int) berth.WorkflowTask {
	script := fmt.Sprintf("echo %s $(id -un) >> %s; %s", id, l.file, more)
	return berth.WorkflowTask{ID: id, Seconds: seconds, Alpha: 1, After: after, Work: berth.Work{Command: []string{"sh", "-c", script}, Dir: l.dir}}
}

// flow returns a workflow of tasks that is to end soon.
func (l *flowLab) flow(id string, tasks ...berth.WorkflowTask) berth.Workflow {
	return berth.Workflow{ID: id, User: l.ask.By.User, Deadline: l.host.Now().Add(600), Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth, Tasks: tasks}
}

// submit has a workflow promised.
func (l *flowLab) submit(w berth.Workflow) {
	l.t.Helper()
	a, err := l.host.SubmitWorkflow(l.t.Context(), l.ask, w)
	if err != nil || a.Workflow.State.Over() {
		l.t.Fatalf("%+v, %v", a, err)
	}
}

// see returns a workflow as it is.
func (l *flowLab) see(id string) service.Workflow {
	l.t.Helper()
	f, err := l.host.Workflow(l.t.Context(), l.ask.By, id)
	if err != nil {
		l.t.Fatal(err)
	}
	return f
}

// over waits until a workflow is over, and returns it.
func (l *flowLab) over(id string, within time.Duration) service.Workflow {
	l.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); ; <-tick.C {
		if f := l.see(id); f.State.Over() {
			return f
		} else if time.Now().After(end) {
			queue, _ := l.cluster.Command("squeue", "--states=all", "--Format=JobID,State,Reason,Reservation:40,Name,Comment:60")
			l.t.Fatalf("%s is not over: %+v\n%s\n%s\n%s", id, f.Tasks, queue, l.shown("reservation"), l.log.String())
		}
	}
}

// ran returns what the tasks have noted, in the order in which they did.
func (l *flowLab) ran() []string {
	l.t.Helper()
	text, err := os.ReadFile(l.file)
	if err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(s string) bool { return s == "" })
}

// wantRan fails the test unless the tasks have noted just this.
func (l *flowLab) wantRan(want ...string) {
	l.t.Helper()
	if ran := l.ran(); !slices.Equal(ran, want) {
		l.t.Errorf("ran: %q, want %q", ran, want)
	}
}

// Tasks of a workflow run at a Slurm site as their owner, who is not there, one after the other.
func TestSlurmRunsAWorkflowAsItsOwner(t *testing.T) {
	t.Parallel()
	l := newFlowLab(t, slurmtest.Options{})
	script := l.task("third", 20, "", 1)
	script.Work.Command, script.Work.Script = nil, "#!/bin/sh\necho third $(id -un) $HOME $BERTH_TASK_ID >> "+l.file+"\npwd\n"
	script.Work.Inputs, script.Work.Outputs = []string{"ran"}, []string{l.file}
	second := l.task("second", 20, "echo second", 0)
	second.Work.Output = "%x-%j.txt" // as Slurm expands it
	l.submit(l.flow("chain", l.task("first", 20, "pwd"), second, script))
	f := l.over("chain", 2*time.Minute)
	if f.State != service.FlowSucceeded {
		t.Errorf("%+v\n%s", f, l.log.String())
	}
	l.wantRan("first games", "second games", "third games "+l.home+" third")
	if text, err := os.ReadFile(f.OutputOf(1)); strings.TrimSpace(string(text)) != "second" {
		t.Errorf("the output of the second task is %q: %q, %v", f.OutputOf(1), text, err)
	}
	for _, name := range []string{"berth-chain.1.out", "berth-chain.3.out"} {
		if text, err := os.ReadFile(filepath.Join(l.dir, name)); strings.TrimSpace(string(text)) != l.dir {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if info, err := os.Stat(l.file); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v; want what the umask 027 leaves", info.Mode(), err)
	}
	// Its variables are for the job alone: sbatch on this machine would load no such library.
	open := l.task("odd", 20, `[ "$LD_PRELOAD:$ODD:$LOGNAME" = "/nonexistent.so:a,b
c=d:games" ]`)
	open.Work.Env = []string{"LD_PRELOAD=/nonexistent.so", "SLURM_CONF=/nonexistent", "SBATCH_PARTITION=none", "ODD=a,b\nc=d"}
	l.submit(l.flow("odd", open))
	if f := l.over("odd", 2*time.Minute); f.State != service.FlowSucceeded {
		t.Errorf("%+v\n%s", f, l.log.String())
	}
	unwritten := l.task("unwritten", 20, "")
	unwritten.Work.Outputs = []string{"result"}
	l.submit(l.flow("files", unwritten, l.task("behind", 20, "", 0)))
	if f := l.over("files", 2*time.Minute); f.State != service.FlowFailed || f.Tasks[0].Why != "exit code 122: an output of it is not there; its output says which" || f.Tasks[1].Outcome != berth.Skipped {
		t.Errorf("%+v", f)
	}
	l.wantRan("first games", "second games", "third games "+l.home+" third", "odd games", "unwritten games")
	lost := l.task("lost", 20, "")
	lost.Work.Dir = "/nonexistent/folder"
	l.submit(l.flow("lost", lost))
	if f := l.over("lost", 2*time.Minute); f.State != service.FlowFailed || !strings.Contains(f.Tasks[0].Why, "its folder or its output file") {
		t.Errorf("%+v", f)
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// dying is a site at which the service is killed at a moment.
type dying struct {
	*slurm.Deputy
	at   string
	kill func()
	dead chan struct{}
}

// die kills the service if it is the moment, and then does not return before it is buried.
func (d *dying) die(ctx context.Context, at string) error {
	if d.at != at {
		return nil
	}
	d.kill()
	close(d.dead)
	<-ctx.Done()
	return ctx.Err()
}

func (d *dying) Hand(ctx context.Context, task site.Task) (site.JobID, error) {
	if err := d.die(ctx, "before it is handed in"); err != nil {
		return "", err
	}
	job, err := d.Deputy.Hand(ctx, task)
	if err == nil {
		err = d.die(ctx, "before it is on record that it was")
	}
	return job, err
}

func (d *dying) Start(ctx context.Context, user string, job site.JobID) error {
	if err := d.die(ctx, "before it is told to start"); err != nil {
		return err
	}
	err := d.Deputy.Start(ctx, user, job)
	if err == nil {
		err = d.die(ctx, "when it was told to start")
	}
	return err
}

// However far the service has got with a task when it is killed, the task runs once.
func TestKilledServiceRunsTasksAtSlurmOnce(t *testing.T) {
	t.Parallel()
	l := newFlowLab(t, slurmtest.Options{})
	deputy := l.manager.Adapter.(*slurm.Deputy)
	var want []string
	for i, at := range []string{"before it is handed in", "before it is on record that it was", "before it is told to start", "when it was told to start"} {
		journal := l.mortal
		d := &dying{Deputy: deputy, at: at, kill: func() { journal.dead.Store(true) }, dead: make(chan struct{})}
		if err := l.host.Close(); err != nil {
			t.Fatal(err)
		}
		l.manager.Adapter = d
		l.open()
		id, first, second := fmt.Sprint("w", i), fmt.Sprint("first", i), fmt.Sprint("second", i)
		l.submit(l.flow(id, l.task(first, 30, "sleep 1"), l.task(second, 30, "", 0)))
		select {
		case <-d.dead:
		case <-time.After(time.Minute):
			t.Fatalf("the service does not die %s: %s", at, l.log.String())
		}
		_ = l.host.Close() // it cannot say goodbye
		l.mortal, l.manager.Adapter = &mortal{Store: l.store}, deputy
		l.open()
		if f := l.over(id, 2*time.Minute); f.State != service.FlowSucceeded {
			t.Errorf("%s: %+v\n%s", at, f, l.log.String())
		}
		want = append(want, first+" games", second+" games")
		l.wantRan(want...)
	}
	out, err := l.cluster.Command("squeue", "--noheader", "--states=all", "--format=%j %T")
	if jobs := strings.Fields(out); err != nil || len(jobs) != 2*len(want) || strings.Contains(out, "PENDING") {
		t.Errorf("want a job for each task: %s, %v", out, err)
	}
}

// In front of a real cluster a node is drained in the midst of a workflow of thirty tasks, a task
// takes longer than it was to, and slurmctld is killed. The deadline is kept, each task has run,
// and of every reservation it is known what became of it.
func TestSlurmWorkflowMeetsTheWorld(t *testing.T) {
	t.Parallel()
	l := newFlowLab(t, slurmtest.Options{Nodes: 8})
	const levels, wide = 5, 6
	var tasks []berth.WorkflowTask
	for i := range levels * wide {
		var after []int
		if above := (i/wide - 1) * wide; above >= 0 {
			after = []int{above + i%wide, above + (i+1)%wide}
		}
		more := fmt.Sprint("sleep ", 1+i%3)
		if i == wide {
			more = "sleep 25" // it was to take ten seconds
		}
		task := l.task(fmt.Sprint("t", i), 10, more, after...)
		task.Retries = 5 // a busy machine may start a job so late that its ten seconds are over
		tasks = append(tasks, task)
	}
	w := l.flow("thirty", tasks...)
	w.Deadline = l.host.Now().Add(600)
	l.submit(w)
	done := func() (n int) {
		f := l.see("thirty")
		for i := range f.Tasks {
			if f.Tasks[i].Outcome == berth.Succeeded {
				n++
			}
		}
		return n
	}

	l.untilIn("some tasks are over", 2*time.Minute, func() bool { return done() >= wide })
	drained := ""
	l.until("a task waits on a node", func() bool {
		f := l.see("thirty")
		for i := range f.Tasks {
			if f.Tasks[i].State == service.Confirmed {
				drained = l.nodes(f.Tasks[i].Reservation)
				return true
			}
		}
		return false
	})
	l.administer("update", "NodeName="+drained, "State=DRAIN", "Reason=disk")
	l.until("nothing waits on the drained node", func() bool {
		f := l.see("thirty")
		return !slices.ContainsFunc(f.Tasks, func(k service.FlowTask) bool {
			return k.State == service.Confirmed && l.nodes(k.Reservation) == drained
		})
	})
	l.untilIn("half of the tasks are over", 3*time.Minute, func() bool { return done() >= levels*wide/2 })
	l.killController()
	f := l.over("thirty", 5*time.Minute)

	if f.State != service.FlowSucceeded || f.End > f.Workflow.Deadline {
		t.Errorf("%s, %d s after its deadline: %+v\n%s", f.State, f.End.Sub(f.Workflow.Deadline), f.Tasks, l.log.String())
	}
	if f.Replanned == 0 || f.Tasks[wide].End.Sub(f.Tasks[wide].Start) < 20 {
		t.Errorf("replanned %d times; the late task: %+v", f.Replanned, f.Tasks[wide])
	}
	times := map[string]int{}
	for _, line := range l.ran() {
		times[strings.TrimSuffix(line, " "+l.ask.By.User)]++
	}
	for i := range f.Tasks {
		if n := times[w.Tasks[i].ID]; n < 1 || n > f.Tasks[i].Tries {
			t.Errorf("%s ran %d times in %d tries\n%s", w.Tasks[i].ID, n, f.Tasks[i].Tries, l.log.String())
		}
	}
	l.account()
}

// account fails the test unless nothing is left at the site, of every reservation it is on
// record what became of it, and the record is a valid schedule.
func (l *flowLab) account() {
	l.t.Helper()
	// A slurmctld that was killed may hear of the end of a job again only when it asks its node next.
	left, tick := "", time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); ; <-tick.C {
		queue, err := l.cluster.Command("squeue", "--noheader", "--format=%A %T %N %r")
		booked := l.shown("reservation")
		if err == nil && queue == "" && !strings.Contains(booked, "ReservationName=berth_") {
			break
		}
		if left = fmt.Sprintf("%s, %v\n%s", queue, err, booked); time.Now().After(end) {
			l.t.Fatalf("at the site is left: %s\n%s", left, l.log.String())
		}
	}
	list, _, err := l.host.List(l.t.Context(), l.by.By, service.Filter{})
	if err != nil || len(list) == 0 {
		l.t.Fatal(list, err)
	}
	for i := range list {
		if r := &list[i]; !slices.Contains([]service.State{service.Finished, service.Cancelled, service.Failed}, r.State) {
			l.t.Errorf("%s is %s", r.ID, r.State)
		}
	}
	if err := l.host.Check(l.t.Context()); err != nil {
		l.t.Error(err)
	}
	lines, err := service.Schedule(l.t.Context(), l.store)
	if err != nil {
		l.t.Fatal(err)
	}
	var file bytes.Buffer
	encoder := json.NewEncoder(&file)
	for i := range lines {
		if err := encoder.Encode(&lines[i]); err != nil {
			l.t.Fatal(err)
		}
	}
	if report, err := check.File(&file, "journal", check.Against(l.sites, 0)); err != nil || !report.Valid() {
		l.t.Error(report, err)
	}
}

// killController kills slurmctld when it has saved all jobs, since one that it forgets is
// tried again, and their starts, since it starts others twice. Then it starts slurmctld again.
func (l *flowLab) killController() {
	l.t.Helper()
	marker := "marker"
	out, err := l.cluster.Command("sbatch", "--parsable", "--hold", "--time=1", "--output=/dev/null", "--job-name="+marker, "--wrap=true")
	if err != nil {
		l.t.Fatal(err, out)
	}
	l.cluster.KillControllerSaved(marker)
	l.untilIn("the site is not reached", time.Minute, func() bool { // each command under way tries for ten seconds
		views, err := l.host.Sites(l.t.Context(), l.by.By)
		return err == nil && !views[0].Reachable
	})
	l.cluster.RestartController()
	if out, err := l.cluster.Command("scancel", strings.TrimSpace(out)); err != nil {
		l.t.Error(err, out)
	}
}
