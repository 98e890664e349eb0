package service_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/heardlog"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// twoSlurms is a service in front of two real clusters of different sizes, west and east, each
// of them does what is asked of it in steps.
type twoSlurms struct {
	t        *testing.T
	clusters map[string]*slurmtest.Cluster
	managers map[string]service.Manager
	sites    []berth.Site
	store    *sqlite.Store
	mortal   *mortal
	host     *service.Host
	by       service.Ask
	log      heardlog.Log
	now      atomic.Pointer[mishap] // what is to go wrong
	slow     atomic.Int64           // how long each command at west takes beside its own time
}

// The names of the sites, and how many nodes they have.
const (
	west, east           = "west", "east"
	westNodes, eastNodes = 3, 5
)

// newTwoSlurms starts them, with tasks that run as their owners or without any.
func newTwoSlurms(t *testing.T, owners bool) *twoSlurms {
	t.Helper()
	if testing.Short() {
		t.Skip("starts two clusters")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	two := &twoSlurms{t: t, clusters: map[string]*slurmtest.Cluster{}, managers: map[string]service.Manager{}}
	two.by.By = service.Principal{User: me.Username, Role: service.Operator}
	for _, name := range []string{west, east} {
		two.clusters[name] = slurmtest.Start(t, slurmtest.Options{Nodes: map[string]int{west: westNodes, east: eastNodes}[name]})
		line := &link{two: two, of: name}
		adapter := slurm.New(slurm.Options{Site: name, Conf: two.clusters[name].Conf, Exec: line})
		description, err := adapter.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		description.Together = true
		s, layout, err := site.Import(name, description, site.UnitNode, berth.Early)
		if err != nil {
			t.Fatal(err)
		}
		two.sites = append(two.sites, s)
		at := &stepwise{Site: adapter, name: name, two: two}
		two.managers[name] = service.Manager{
			Kind: "slurm", Adapter: at, Layout: layout, Every: 500 * time.Millisecond, Horizon: horizon,
		}
		if owners {
			deputy, err := slurm.NewDeputy(slurm.Options{Site: name, Conf: two.clusters[name].Conf, Exec: line}, 0)
			if err != nil {
				t.Skip(err)
			}
			m := two.managers[name]
			m.Adapter = stepDeputy{at, deputy}
			two.managers[name] = m
		}
	}
	if two.store, err = sqlite.Open(t.TempDir(), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	two.open()
	t.Cleanup(func() {
		if err := errors.Join(two.host.Close(), two.store.Close()); err != nil {
			t.Error(err)
		}
	})
	return two
}

func (two *twoSlurms) open() {
	two.t.Helper()
	two.mortal = &mortal{Store: two.store}
	var err error
	two.host, err = service.Open(two.t.Context(), service.Options{
		Config: engine.Config{Sites: two.sites}, Journal: two.mortal, Version: "test", Managers: two.managers, Log: slog.New(slog.NewTextHandler(&two.log, nil)),
	})
	if err != nil {
		two.t.Fatal(err)
	}
}

// The victims.
const (
	theService    = "the service"
	theController = "slurmctld"
	theLink       = "the link"
)

// mishap is what goes wrong with one promise: at one step, once, a victim dies. West is asked
// before east.
type mishap struct {
	step    string // such as "before west reserves"
	victim  string
	refuses string        // the site that does not want the promise; empty if there is none
	once    sync.Once     // it dies
	dead    chan struct{} // closed when it has
	cut     atomic.Bool   // the link of the site of the step
	done    map[string]*step
}

// step is closed when west has done something, for which east waits.
type step struct {
	once sync.Once
	ch   chan struct{}
}

func (s *step) pass() { s.once.Do(func() { close(s.ch) }) }

func newMishap(at, victim, refuses string) *mishap {
	m := &mishap{step: at, victim: victim, refuses: refuses, dead: make(chan struct{}), done: map[string]*step{}}
	for _, what := range []string{"reserves", "changes", "releases"} {
		m.done[what] = &step{ch: make(chan struct{})}
	}
	return m
}

var errCut = &site.Error{Kind: site.Unreachable, Op: "test", Msg: "the link is cut"}

// link carries the commands for a site, unless it is cut.
type link struct {
	slurm.Host
	two *twoSlurms
	of  string
}

func (l *link) Run(ctx context.Context, c slurm.Command) (slurm.Result, error) {
	if m := l.two.now.Load(); m != nil && m.cut.Load() && strings.Contains(m.step, " "+l.of+" ") {
		return slurm.Result{}, errCut
	}
	if slow := time.Duration(l.two.slow.Load()); slow > 0 && l.of == west {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return slurm.Result{}, ctx.Err()
		}
	}
	return l.Host.Run(ctx, c)
}

// stepwise is a site at which something dies at a step.
type stepwise struct {
	*slurm.Site
	name string
	two  *twoSlurms
}

// die has the victim die if this is the step. A service that is dead does nothing more.
func (s *stepwise) die(ctx context.Context, when, what string) error {
	m := s.two.now.Load()
	if m == nil || m.step != when+" "+s.name+" "+what {
		return nil
	}
	err := error(nil)
	m.once.Do(func() {
		switch m.victim {
		case theService:
			s.two.mortal.dead.Store(true)
			close(m.dead)
			<-ctx.Done()
			err = ctx.Err()
			return
		case theController:
			s.two.clusters[s.name].KillController()
			s.two.clusters[s.name].RestartController()
		case theLink:
			m.cut.Store(true)
			err = errCut
		}
		close(m.dead)
	})
	return err
}

// do does something in steps: east waits for west.
func (s *stepwise) do(ctx context.Context, what string, call func() error) error {
	m := s.two.now.Load()
	if m != nil && s.name == east && (strings.HasSuffix(m.step, " "+what) || m.refuses == east && what == "reserves") {
		select {
		case <-m.done[what].ch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := s.die(ctx, "before", what); err != nil {
		return err
	}
	err := call()
	lost := s.die(ctx, "after", what)
	if m != nil && s.name == west && ctx.Err() == nil {
		m.done[what].pass()
	}
	return cmp.Or(lost, err)
}

func (s *stepwise) Reserve(ctx context.Context, want site.Reservation) (o site.Outcome, err error) {
	if m := s.two.now.Load(); m != nil && m.refuses == s.name {
		want.Users = []string{"berth-no-such-user"} // Slurm says no
	}
	var answered bool
	err = s.do(ctx, "reserves", func() error {
		var err error
		o, err = s.Site.Reserve(ctx, want)
		answered = err == nil
		return err
	})
	if err != nil && answered {
		o = site.Outcome{Verdict: site.Doubt}
	}
	return o, err
}

func (s *stepwise) Change(ctx context.Context, want site.Reservation) (o site.Outcome, err error) {
	var answered bool
	err = s.do(ctx, "changes", func() error {
		var err error
		o, err = s.Site.Change(ctx, want)
		answered = err == nil
		return err
	})
	if err != nil && answered {
		o = site.Outcome{Verdict: site.Doubt}
	}
	return o, err
}

func (s *stepwise) ReserveMany(ctx context.Context, want []site.Reservation) []site.Answer {
	answers := make([]site.Answer, len(want))
	for i := range want {
		answers[i].Outcome, answers[i].Err = s.Reserve(ctx, want[i])
	}
	return answers
}

func (s *stepwise) Release(ctx context.Context, name site.Name) error {
	return s.do(ctx, "releases", func() error { return s.Site.Release(ctx, name) })
}

// stepDeputy is one that hands in tasks as their owners, in steps too.
type stepDeputy struct {
	*stepwise
	site.Deputy
}

func (s stepDeputy) Hand(ctx context.Context, task site.Task) (site.JobID, error) {
	if err := s.die(ctx, "before", "hands"); err != nil {
		return "", err
	}
	job, err := s.Deputy.Hand(ctx, task)
	if lost := s.die(ctx, "after", "hands"); lost != nil {
		return "", lost
	}
	return job, err
}

func (s stepDeputy) Start(ctx context.Context, user string, job site.JobID) error {
	if err := s.die(ctx, "before", "starts"); err != nil {
		return err
	}
	err := s.Deputy.Start(ctx, user, job)
	return cmp.Or(s.die(ctx, "after", "starts"), err)
}

// has returns the reservations of ours that a cluster has.
func (two *twoSlurms) has(name string) []string {
	two.t.Helper()
	out, err := two.clusters[name].Command("scontrol", "--oneliner", "show", "reservation")
	if err != nil {
		return []string{"no one answers: " + out}
	}
	var found []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "ReservationName=berth_") {
			found = append(found, between(line, "StartTime=", " ")+" "+between(line, "NodeCnt=", " "))
		}
	}
	return found
}

// agrees fails the test unless both clusters come to have just what is promised.
func (two *twoSlurms) agrees(what, id string, state service.State) {
	two.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(60 * time.Second); ; <-tick.C {
		r, err := two.host.Get(two.t.Context(), two.by.By, id)
		want := map[string][]string{}
		if err == nil && state == service.Confirmed {
			for i := range r.Allotments {
				a := &r.Allotments[i]
				want[a.Resource.Site] = []string{time.Unix(int64(a.Start), 0).UTC().Format("2006-01-02T15:04:05") + " " + fmt.Sprint(a.NPE)}
			}
		}
		westHas, eastHas := two.has(west), two.has(east)
		if err == nil && r.State == state && slices.Equal(westHas, want[west]) && slices.Equal(eastHas, want[east]) {
			return
		}
		if time.Now().After(end) {
			two.t.Fatalf("%s: %s is %s, want %s; west has %q and east %q, want %q; %v\n%s", what, id, r.State, state, westHas, eastHas, want, err, two.log.String())
		}
	}
}

// goesWrong has something go wrong while something is done, and puts it right again.
func (two *twoSlurms) goesWrong(m *mishap, do func()) {
	two.t.Helper()
	two.now.Store(m)
	do()
	select {
	case <-m.dead:
	case <-time.After(60 * time.Second):
		two.t.Fatalf("%s does not die %s\n%s", m.victim, m.step, two.log.String())
	}
	switch m.victim {
	case theService:
		_ = two.host.Close() // it cannot say goodbye
		if m.refuses == "" {
			two.now.Store(nil)
		} else {
			still := newMishap("", "", m.refuses) // the site has not changed its mind
			for _, s := range still.done {
				s.pass()
			}
			two.now.Store(still)
		}
		two.open()
	case theLink:
		two.unreachable(strings.Fields(m.step)[1])
		m.cut.Store(false)
	}
}

// unreachable waits until the service has seen that a site cannot be reached.
func (two *twoSlurms) unreachable(name string) {
	two.t.Helper()
	two.waits(name+" is seen to be away", func() bool {
		views, err := two.host.Sites(two.t.Context(), two.by.By)
		return err == nil && slices.ContainsFunc(views, func(v service.SiteView) bool { return v.Name == name && !v.Reachable })
	})
}

// waits waits for a condition that nobody signals.
func (two *twoSlurms) waits(what string, holds func() bool) {
	two.t.Helper()
	two.waitsIn(what, 60*time.Second, holds)
}

func (two *twoSlurms) waitsIn(what string, within time.Duration, holds func() bool) {
	two.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); !holds(); <-tick.C {
		if time.Now().After(end) {
			two.t.Fatalf("in vain: %s; west has %q and east %q\n%s", what, two.has(west), two.has(east), two.log.String())
		}
	}
}

// both is a request for nodes of both clusters at once.
func (two *twoSlurms) both(id string) {
	two.t.Helper()
	start := two.host.Now().Add(400)
	r := berth.Rigid(id, 0, start, start.Add(600), eastNodes-1, 60) // for which west is too small
	r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: westNodes, Duration: 60}}})
	if a := submit(two.t, two.host, two.by, r); a.Reservation.State != service.Confirmed || len(a.Reservation.Allotments) != 2 {
		two.t.Fatalf("%s is %+v", id, a.Reservation)
	}
}

// A promise of nodes of two clusters is kept by both or by none, whatever dies at whichever
// step between the two: the service, a slurmctld or the link to a cluster. Each victim has clusters
// of its own, since most of the time is spent waiting.
func TestTwoSlurmsHaveAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{theService, theController, theLink} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			allOrNothing(t, victim)
		})
	}
}

func allOrNothing(t *testing.T, victim string) {
	t.Helper()
	two := newTwoSlurms(t, false)
	release := func(id string) {
		if _, err := two.host.Release(t.Context(), two.by, id); err != nil {
			t.Error(err)
		}
	}
	for n, at := range []string{"before west reserves", "after west reserves", "before east reserves", "after east reserves"} {
		id := fmt.Sprint("made", n)
		m := newMishap(at, victim, "")
		two.goesWrong(m, func() { two.both(id) })
		two.agrees(victim+" dies "+at, id, service.Confirmed)
		two.now.Store(nil)
		release(id)
		two.agrees("released", id, service.Cancelled)
	}
	for n, at := range []string{"before east reserves", "after east reserves", "before west releases", "after west releases"} {
		id := fmt.Sprint("refused", n)
		two.goesWrong(newMishap(at, victim, east), func() { two.both(id) })
		two.agrees(victim+" dies "+at+" and east refuses", id, service.Failed)
		r, err := two.host.Get(t.Context(), two.by.By, id)
		if err != nil || r.Refusal == nil || r.Refusal.Reason != berth.SiteRefused || r.Refusal.Resource.Site != east {
			t.Errorf("%s: %+v, %v", id, r.Refusal, err)
		}
		two.now.Store(nil)
	}
	for n, at := range []string{"before west releases", "after west releases", "before east releases", "after east releases"} {
		id := fmt.Sprint("released", n)
		two.now.Store(nil)
		two.both(id)
		two.agrees("before "+at, id, service.Confirmed)
		two.goesWrong(newMishap(at, victim, ""), func() { release(id) })
		two.agrees(victim+" dies "+at, id, service.Cancelled)
	}
	if err := two.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := service.Verify(t.Context(), two.store, nil); err != nil {
		t.Error(err)
	}
}

// flows are workflows across two clusters, of a user who runs them in a folder of its own.
type flows struct {
	*twoSlurms
	owner service.Ask
	uid   string
	dir   string
	text  string // what the tasks have written so far
}

func newFlows(t *testing.T) *flows {
	t.Helper()
	two := newTwoSlurms(t, true)
	who, err := user.Lookup("games")
	if err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "flow") // which others may enter, as they may not that of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := two.host.Check(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return &flows{two, service.Ask{By: service.Principal{User: "games", Role: service.User}}, who.Uid, dir, ""}
}

// across returns a workflow of four tasks one after the other, at the clusters by turns, each of
// which adds its name to a file.
func (f *flows) across(id string, retries int) berth.Workflow {
	w := berth.Workflow{ID: id, User: "games", Deadline: f.host.Now().Add(500), Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth}
	for i, at := range []string{west, east, west, east} {
		task := berth.WorkflowTask{
			ID: fmt.Sprint(at, i), Seconds: 20, Alpha: 1, Site: at, Retries: retries,
			Work: berth.Work{Dir: f.dir, Command: []string{"sh", "-c", fmt.Sprintf("echo %s %s%d $SLURM_JOB_UID $BERTH_SITE >> ran", id, at, i)}},
		}
		if i > 0 {
			task.After = []int{i - 1}
		}
		w.Tasks = append(w.Tasks, task)
	}
	return w
}

// ends submits a workflow while something goes wrong, and waits until it has come out as it is to.
func (f *flows) ends(m *mishap, id string, retries int, want service.FlowState) {
	f.t.Helper()
	f.goesWrong(m, func() {
		if a, err := f.host.SubmitWorkflow(f.t.Context(), f.owner, f.across(id, retries)); err != nil || a.Workflow.State.Over() {
			f.t.Fatal(a, err)
		}
	})
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); ; <-tick.C {
		flow, err := f.host.Workflow(f.t.Context(), f.owner.By, id)
		left := slices.DeleteFunc(slices.Concat(f.has(west), f.has(east)), func(s string) bool { return strings.HasSuffix(s, fmt.Sprint(" ", westNodes)) })
		if err == nil && flow.State == want && len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			f.t.Fatalf("%s dies %s: %s is %s (%s), want %s: %+v; west has %q and east %q; %v\n%s", m.victim, m.step, id, flow.State, flow.Why, want, flow.Tasks, f.has(west), f.has(east), err, f.log.String())
		}
	}
	f.now.Store(nil)
}

// ran returns what the tasks have written since it was called last.
func (f *flows) ran() []string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, "ran"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.t.Fatal(err)
	}
	more := strings.TrimPrefix(string(text), f.text)
	f.text = string(text)
	return slices.Collect(strings.Lines(more))
}

// byTurns has points at which something goes wrong tried on clusters of their own, a few each, side by side,
// since most of the time is spent waiting.
func byTurns(t *testing.T, points []string, try func(f *flows, i int, at string)) {
	t.Helper()
	const each = 4
	for i := 0; i < len(points); i += each {
		t.Run(points[i], func(t *testing.T) {
			t.Parallel()
			f := newFlows(t)
			for k, at := range points[i:min(i+each, len(points))] {
				try(f, k, at)
			}
		})
	}
}

// A workflow runs across two clusters, each task once, at whichever step the service is killed.
func TestAWorkflowAcrossTwoSlurms(t *testing.T) {
	t.Parallel()
	byTurns(t, []string{
		"before west reserves", "after west reserves", "before east reserves", "after east reserves", "after west releases", "before east releases",
	}, func(f *flows, i int, at string) {
		id := fmt.Sprint("runs", i)
		f.ends(newMishap(at, theService, ""), id, 0, service.FlowSucceeded)
		var want []string
		for k, site := range []string{west, east, west, east} {
			want = append(want, fmt.Sprintf("%s %s%d %s %s\n", id, site, k, f.uid, site))
		}
		if ran := f.ran(); !slices.Equal(ran, want) {
			f.t.Errorf("killed %s: ran %q; want %q", at, ran, want)
		}
	})
}

// Where one of two clusters refuses a task of a workflow before any has begun, nothing of it is left at
// either, at whichever step the service is killed.
func TestAWorkflowThatOneOfTwoSlurmsRefuses(t *testing.T) {
	t.Parallel()
	f := newFlows(t)
	// All of west is taken for now, so that no task begins before east refuses.
	now := f.host.Now()
	if a, err := f.host.Submit(t.Context(), f.by, berth.Request{
		ID: "taken", Site: west, Ready: now, Deadline: now + 300, Parts: []berth.Part{{Variants: []berth.Variant{{NPE: westNodes, Duration: 300}}}},
	}); err != nil || a.Reservation.Allotments[0].Start > now+5 {
		t.Fatal(a, err)
	}
	for i, at := range []string{"before east reserves", "after east reserves", "before west releases", "after west releases"} {
		id := fmt.Sprint("refused", i)
		f.ends(newMishap(at, theService, east), id, 0, service.FlowFailed)
		if flow, err := f.host.Workflow(t.Context(), f.owner.By, id); err != nil || !strings.Contains(fmt.Sprint(flow.Tasks[1].Why, flow.Tasks[3].Why), "its site refuses it, and no task has begun") {
			t.Errorf("%s: %+v, %v", id, flow.Tasks, err)
		}
	}
	if again := f.ran(); len(again) > 0 {
		t.Errorf("of a workflow that is refused something ran: %q", again)
	}
}

// A workflow runs across two clusters, each task once, at whichever step the link to one of them is
// cut.
func TestAWorkflowAcrossTwoSlurmsWithoutALink(t *testing.T) { runsWithout(t, theLink) }

// A workflow runs across two clusters at whichever step the slurmctld of one of them is killed; that
// may forget a task, which is tried again then.
func TestAWorkflowAcrossTwoSlurmsWithoutSlurmctld(t *testing.T) { runsWithout(t, theController) }

func runsWithout(t *testing.T, victim string) {
	t.Parallel()
	byTurns(t, []string{
		"before west reserves", "after west reserves", "before east reserves", "after east reserves", "before west hands", "after west hands", "before west starts", "after west starts",
		"before east hands", "after east hands", "before east starts", "after east starts", "before west releases", "after west releases", "before east releases", "after east releases",
	}, func(f *flows, i int, at string) {
		f.ends(newMishap(at, victim, ""), fmt.Sprint("runs", i), map[string]int{theController: 3}[victim], service.FlowSucceeded)
		ran := f.ran()
		var names []string
		for _, line := range ran {
			names = append(names, strings.Fields(line)[1])
		}
		if victim == theController { // what it forgot ran again, next to where it ran before
			names = slices.Compact(names)
		}
		if want := []string{west + "0", east + "1", west + "2", east + "3"}; !slices.Equal(names, want) {
			f.t.Errorf("%s dies %s: ran %q, want %q", victim, at, ran, want)
		}
	})
}
