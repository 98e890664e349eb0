//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/site"
)

// job is a task, or one index of it, in a folder of its own:
//
//	spec.json     what is to run; written before the job is acknowledged
//	limit         when it must have ended, in Unix seconds, and the time of the site then, in milliseconds; may change
//	lock          locked as long as its shepherd lives
//	started.json  who keeps it, and what it runs as
//	ended.json    how it ended
type job struct {
	spec  spec
	dir   string
	stage site.Stage
	cores berth.PESet // while it runs, and after
	start berth.Time
	limit berth.Time
	ended ended
	gone  chan struct{} // closed once it is over
	over  *site.Job     // as others see it once it is over; nil until they do
}

// submitted is the task that was submitted under a key.
type submitted struct {
	job    site.JobID
	digest string // empty of a task that an older program wrote down
}

// spec is what a shepherd needs to know.
type spec struct {
	ID    site.JobID `json:"id"`
	Array site.JobID `json:"array,omitempty"`
	Index int        `json:"index"` // -1 if it is no array
	Task  site.Task  `json:"task"`
	// Apart says that the script of the task is in a file beside this, once for all indices of an array.
	Apart   bool     `json:"script_apart,omitempty"`
	Digest  string   `json:"digest,omitempty"` // of the task as it was submitted
	User    string   `json:"user"`
	Account *account `json:"account,omitempty"` // nil is the shepherd's own
	Grace   int64    `json:"grace_ms"`
	Umask   int      `json:"umask,omitempty"` // 0 is 022
	// NoCgroup keeps the task out of a cgroup of its own.
	NoCgroup bool       `json:"no_cgroup,omitempty"`
	Queued   berth.Time `json:"queued"`
}

// account is whom a task runs as.
type account struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups"`
}

// Submit takes a task in. It runs once its reservation is launched and enough of
// its cores are idle: as many as the task asks for, all of the reservation's if
// it does not say. The indices of an array run one after the other, or beside
// each other where there are cores.
func (s *Site) Submit(ctx context.Context, task site.Task) (site.JobID, error) {
	const op = "submit"
	if err := task.Check(); err != nil {
		return "", err
	}
	if err := s.enter(ctx, op); err != nil {
		return "", err
	}
	defer s.mu.Unlock()
	if task.User == "" {
		task.User = s.me
	}
	if was, err := s.recall(&task); err != nil || was != "" {
		return was, err
	}
	b := s.table.bookings[string(task.Reservation)]
	if b == nil {
		return "", site.Errorf(site.NotFound, op, "no reservation %s", task.Reservation)
	}
	if !slices.Contains(b.Users, task.User) && (task.Account == "" || !slices.Contains(b.Accounts, task.Account)) {
		return "", site.Errorf(site.Denied, op, "%s is not for user %s", task.Reservation, task.User)
	}
	as, err := s.account(op, task.User)
	if err != nil {
		return "", err
	}
	if task.Nodes > 1 || task.Cores > b.Cores.Count() {
		return "", berth.Errorf(berth.Invalid, "cores", "%d nodes, %d cores; %s has %d cores of one node", task.Nodes, task.Cores, task.Reservation, b.Cores.Count())
	}
	digest := task.Digest()
	id, err := s.writeTask(spec{Index: -1, Task: task, Digest: digest, User: task.User, Account: as})
	if err != nil {
		return "", err
	}
	s.keys[task.KeyAt(s.options.Site, task.User)] = submitted{job: id, digest: digest}
	s.dispatch()
	return id, nil
}

// Recall implements site.Recaller. A key is known for as long as its job.
func (s *Site) Recall(ctx context.Context, task site.Task) (site.JobID, error) {
	if err := s.enter(ctx, "recall"); err != nil {
		return "", err
	}
	defer s.mu.Unlock()
	if task.User == "" {
		task.User = s.me
	}
	return s.recall(&task)
}

// recall returns the job of a key; empty if there is none.
func (s *Site) recall(task *site.Task) (site.JobID, error) {
	was, known := s.keys[task.KeyAt(s.options.Site, task.User)]
	if known && was.digest != "" && was.digest != task.Digest() {
		return "", site.ErrKeyTaken(task.Key)
	}
	return was.job, nil
}

// Represents says why tasks cannot be run for a user.
func (s *Site) Represents(_ context.Context, name string) error {
	_, err := s.account("submit", name)
	return err
}

// account returns whom the tasks of a user run as.
func (s *Site) account(op, name string) (*account, error) {
	if len(s.options.Users) == 0 {
		if name != s.me {
			return nil, &site.Error{
				Kind: site.Denied, Op: op, Msg: fmt.Sprintf("tasks run as %s here, not as %s", s.me, name),
				Hint: "to serve several users start the service as root with a map of users",
			}
		}
		return nil, nil
	}
	login, known := s.options.Users[name]
	if !known {
		return nil, site.Errorf(site.Denied, op, "user %s is not in the map of users", name)
	}
	u, err := user.Lookup(login)
	if err != nil {
		return nil, &site.Error{Kind: site.Denied, Op: op, Msg: "user " + name + " has no account here", Err: err, Hint: "correct the map of users"}
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, &site.Error{Kind: site.Denied, Op: op, Msg: "the groups of " + login + " are unknown", Err: err}
	}
	as := &account{}
	if as.UID, err = number(u.Uid); err == nil {
		as.GID, err = number(u.Gid)
	}
	for _, id := range ids {
		var group uint32
		if err == nil {
			group, err = number(id)
		}
		as.Groups = append(as.Groups, group)
	}
	if err != nil {
		return nil, &site.Error{Kind: site.Denied, Op: op, Msg: "the account " + login + " has no numbers", Err: err}
	}
	return as, nil
}

func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

// writeTask writes a task down as a job, or one for each index, and returns the
// id of all. A task that the process wrote only in part is dropped at the next
// start, because its key has not been answered.
func (s *Site) writeTask(base spec) (site.JobID, error) {
	s.last++
	id := site.JobID(strconv.Itoa(s.last))
	base.ID, base.Grace, base.Umask, base.NoCgroup, base.Queued = id, s.options.Grace.Milliseconds(), s.options.Umask, s.options.NoCgroups, s.now()
	specs := []spec{base}
	if array := base.Task.Array; !array.Empty() {
		specs = specs[:0]
		for _, r := range array.Runs() {
			for pe := r.Lo; pe < r.Hi; pe++ {
				one := base
				one.ID, one.Array, one.Index = id+"_"+site.JobID(strconv.Itoa(int(pe))), id, int(pe)
				specs = append(specs, one)
			}
		}
	}
	var made []*job
	for _, sp := range specs {
		j := &job{spec: sp, dir: filepath.Join(s.options.Dir, "jobs", string(sp.ID)), stage: site.Waiting, gone: make(chan struct{})}
		err := os.Mkdir(j.dir, 0o700)
		if err == nil && sp.Task.Script != "" {
			err = j.setScriptApart(made)
		}
		if err == nil {
			err = writeJSON(filepath.Join(j.dir, "spec.json"), &j.spec)
		}
		if err != nil {
			for _, m := range append(made, j) {
				_ = os.RemoveAll(m.dir) // the disk is in trouble; a rest is cleared at the next start
			}
			return "", &site.Error{Kind: site.Unreachable, Op: "submit", Msg: "cannot write the task down", Err: err, Hint: "is the disk of " + s.options.Dir + " full?"}
		}
		made = append(made, j)
	}
	for _, j := range made {
		s.add(j)
	}
	return id, nil
}

// scriptFile is the script of a task as it was handed in. It may be large, and those of ended tasks are
// kept for a day: so an array has it once, and the site holds none in memory.
const scriptFile = "script"

// setScriptApart puts the script of a task into a file of its own, or the file of the first of an array.
func (j *job) setScriptApart(array []*job) error {
	script, path := j.spec.Task.Script, filepath.Join(j.dir, scriptFile)
	j.spec.Task.Script, j.spec.Apart = "", true
	if len(array) > 0 && os.Link(filepath.Join(array[0].dir, scriptFile), path) == nil {
		return nil
	}
	return wholefile.Write(path, []byte(script))
}

func (s *Site) add(j *job) {
	s.jobs[j.spec.ID] = j
	s.order = append(s.order, j.spec.ID)
}

// dispatch starts what can start, in the order of submission within each
// reservation: a task that must wait holds back those behind it.
func (s *Site) dispatch() {
	if s.drain.Reason != "" || s.closed {
		return
	}
	now, believed := s.clock()
	if !believed {
		s.held = true
		return
	}
	busy := map[string]berth.PESet{}
	for _, id := range s.order {
		if j := s.jobs[id]; j.stage == site.Running {
			name := string(j.spec.Task.Reservation)
			busy[name] = union(busy[name], j.cores)
		}
	}
	held := map[string]bool{}
	for _, id := range slices.Clone(s.order) {
		j := s.jobs[id]
		name := string(j.spec.Task.Reservation)
		b := s.table.bookings[name]
		if j.stage != site.Waiting || held[name] || b == nil || !b.Launched || b.Start > now {
			continue
		}
		if j.spec.Task.Cores > b.Cores.Count() {
			continue // until it has as many again; it holds back none that fit
		}
		cores, ok := idle(b.Cores, busy[name], j.spec.Task.Cores)
		if !ok {
			held[name] = true
			continue
		}
		busy[name] = union(busy[name], cores)
		s.start(j, b, cores)
	}
}

func union(a, b berth.PESet) berth.PESet {
	return berth.NewPESet(slices.Concat(a.Runs(), b.Runs())...)
}

// idle returns the lowest n cores of all that are not busy; 0 is all of them.
func idle(all, busy berth.PESet, n berth.Count) (berth.PESet, bool) {
	if n == 0 {
		n = all.Count()
	}
	var cores []berth.PE
	for _, r := range all.Runs() {
		for core := r.Lo; core < r.Hi && berth.Count(len(cores)) < n; core++ {
			if !busy.Contains(core) {
				cores = append(cores, core)
			}
		}
	}
	return berth.PEsOf(cores...), berth.Count(len(cores)) == n
}

// inUse reports whether a task runs in the reservation.
func (s *Site) inUse(name string) bool {
	for _, j := range s.jobs {
		if j.stage == site.Running && string(j.spec.Task.Reservation) == name {
			return true
		}
	}
	return false
}

// limitOf is when a job that starts at start must have ended.
func (j *job) limitOf(b *booking) berth.Time {
	if j.spec.Task.Limit > 0 {
		return min(b.End, j.start.Add(j.spec.Task.Limit))
	}
	return b.End
}

// limitJobs tells the shepherds of a reservation of its new end.
func (s *Site) limitJobs(b *booking) {
	for _, id := range s.order {
		j := s.jobs[id]
		if j.stage != site.Running || string(j.spec.Task.Reservation) != b.Name || j.limit == j.limitOf(b) {
			continue
		}
		j.limit = j.limitOf(b)
		if err := j.writeLimit(s.clock); err == nil {
			j.signal(signalLimit)
		}
	}
}

// writeLimit tells the shepherd when the job must have ended, and what time it is now: it
// does not go by the machine's clock.
func (j *job) writeLimit(clock site.Clock) error {
	now, _ := clock()
	told := time.Unix(int64(now), 0)
	if wall := time.Now(); wall.Unix() == told.Unix() { // which has parts of seconds
		told = wall
	}
	return wholefile.Write(filepath.Join(j.dir, "limit"), fmt.Appendf(nil, "%d %d\n", j.limit, told.UnixMilli()))
}

// Cancel ends a job, or every index of an array.
func (s *Site) Cancel(ctx context.Context, id site.JobID) error {
	const op = "cancel"
	if err := s.enter(ctx, op); err != nil {
		return err
	}
	defer s.mu.Unlock()
	found := false
	for _, other := range s.order {
		if j := s.jobs[other]; other == id || j.spec.Array == id {
			found = true
			if err := s.cancel(j); err != nil {
				return fmt.Errorf("local site: job %s is not cancelled: %w", other, err)
			}
		}
	}
	if !found {
		return site.Errorf(site.NotFound, op, "no job %s", id)
	}
	s.dispatch()
	return nil
}

// cancel ends a job that waits, and asks the shepherd of one that runs.
func (s *Site) cancel(j *job) error {
	switch j.stage {
	case site.Waiting:
		return s.tryEnd(j, site.Result{Ending: site.Cancelled}, "cancelled before it began")
	case site.Running:
		j.signal(signalCancel)
	}
	return nil
}

// end writes down the end of a job that has no shepherd.
func (s *Site) end(j *job, result site.Result, reason string) {
	if s.tryEnd(j, result, reason) != nil {
		// The job is found waiting or lost at the next start, and ends then.
		s.finish(j)
	}
}

// tryEnd is end, but for a job whose end cannot be written down, which goes on as it was: what a
// restart would not know is not told.
func (s *Site) tryEnd(j *job, result site.Result, reason string) error {
	j.ended = ended{At: s.now(), Result: result, Reason: reason}
	if err := writeJSON(filepath.Join(j.dir, endedFile), &j.ended); err != nil {
		return err
	}
	s.finish(j)
	return nil
}

func (s *Site) finish(j *job) {
	j.stage = site.Ended
	close(j.gone)
	s.announce()
}

// announce says that a task has started or ended.
func (s *Site) announce() {
	select {
	case s.changed <- struct{}{}:
	default: // it is said and not heard yet
	}
}

// Changed returns the channel of site.Announcer.
func (s *Site) Changed() <-chan struct{} { return s.changed }

// describeJob is a job as others see it.
func (s *Site) describeJob(j *job) site.Job {
	if j.over != nil && j.stage == site.Ended { // no more than that becomes of it
		return *j.over
	}
	t := &j.spec.Task
	out := site.Job{
		ID: j.spec.ID, Array: j.spec.Array, Key: t.Key, Name: t.Name, User: j.spec.User, Account: t.Account, Reservation: string(t.Reservation),
		Submitted: j.spec.Queued, Start: j.start, End: j.limit, Cores: j.cores.Count(), Output: j.spec.output(),
	}
	if !j.cores.Empty() {
		out.Shares = []site.Share{{Node: s.options.Node, Cores: j.cores}}
	}
	switch j.stage {
	case site.Waiting:
		out.Reason = "waits for its reservation or its cores"
		if b := s.table.bookings[string(t.Reservation)]; b != nil && t.Cores > b.Cores.Count() {
			out.Reason = fmt.Sprintf("needs %d cores; its reservation has %d by now", t.Cores, b.Cores.Count())
		}
	case site.Ended:
		out.End, out.Result, out.Reason = j.ended.At, j.ended.Result, j.ended.Reason
		if out.Start == 0 {
			out.Start = out.End
		}
		over := out
		j.over = &over
	}
	return out
}

// Report returns the jobs of a reservation as they are now. Cost: O(jobs).
func (s *Site) Report(ctx context.Context, name site.Name) ([]site.Report, error) {
	const op = "report"
	if err := s.owns(op, name); err != nil {
		return nil, err
	}
	if err := s.enter(ctx, op); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	promise, _, _ := name.Promise(s.options.Site)
	var reports []site.Report
	for _, id := range s.order {
		if j := s.jobs[id]; s.keyOf(j).Promise == promise {
			reports = append(reports, site.Report{Job: s.describeJob(j), Stage: j.stage})
		}
	}
	return reports, nil
}

// prune forgets jobs that ended long ago.
func (s *Site) prune() {
	now, believed := s.clock()
	if !believed {
		return
	}
	oldest := now - berth.Time(s.options.Keep.Seconds())
	young := map[site.TaskKey]bool{} // keys of tasks with something that is not old: an array goes as a whole
	for _, j := range s.jobs {
		if j.stage != site.Ended || j.ended.At > oldest {
			young[s.keyOf(j)] = true
		}
	}
	s.forget(func(j *job) bool { return !young[s.keyOf(j)] })
}

func (s *Site) keyOf(j *job) site.TaskKey {
	return j.spec.Task.KeyAt(s.options.Site, j.spec.User)
}

// forget takes jobs and their folders away.
func (s *Site) forget(which func(*job) bool) {
	s.order = slices.DeleteFunc(s.order, func(id site.JobID) bool {
		j := s.jobs[id]
		if !which(j) || os.RemoveAll(j.dir) != nil {
			return false
		}
		delete(s.jobs, id)
		delete(s.keys, s.keyOf(j))
		return true
	})
}

// findJobs reads the folders of all jobs.
func (s *Site) findJobs() error {
	folders, err := os.ReadDir(filepath.Join(s.options.Dir, "jobs"))
	if err != nil {
		return fmt.Errorf("local site: %w", err)
	}
	for _, folder := range folders {
		j := &job{dir: filepath.Join(s.options.Dir, "jobs", folder.Name()), stage: site.Waiting, gone: make(chan struct{})}
		err := readJSON(filepath.Join(j.dir, "spec.json"), &j.spec)
		if errors.Is(err, os.ErrNotExist) {
			_ = os.RemoveAll(j.dir) // it was not acknowledged
			continue
		}
		if err != nil { // it may run: what cannot be read is not dropped
			return fmt.Errorf("local site: %s cannot be read; repair it, or move the folder away if the task is not needed: %w", filepath.Join(j.dir, "spec.json"), err)
		}
		number, _, _ := strings.Cut(string(j.spec.ID), "_")
		n, err := strconv.Atoi(number)
		if err != nil || folder.Name() != string(j.spec.ID) {
			return fmt.Errorf("local site: %s is no job's folder", j.dir)
		}
		s.last = max(s.last, n)
		s.keys[s.keyOf(j)] = submitted{job: site.JobID(number), digest: j.spec.Digest}
		s.add(j)
	}
	found := map[site.TaskKey]berth.Count{}
	for _, j := range s.jobs {
		found[s.keyOf(j)]++
	}
	s.forget(func(j *job) bool { return found[s.keyOf(j)] < max(1, j.spec.Task.Array.Count()) })
	slices.SortFunc(s.order, site.CompareJobs) // they are numbered as they were submitted
	for _, id := range s.order {
		s.recover(s.jobs[id])
	}
	return nil
}
