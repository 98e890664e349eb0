package service

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/site"
)

// What happens to a task, as Notice.What has it.
const (
	TaskStarted = "task_started"
	TaskEnded   = "task_ended"
	// TaskRequeued is that a task which ran waits again, as when its node died. Histories have it.
	TaskRequeued = "task_requeued"
)

// taskEvent is what a look at a site has shown of a task of ours that was not known
// before. The journal has it, so that it is told once, whatever happens to the service.
type taskEvent struct {
	reservation string
	task        Task
	what        string // TaskStarted, TaskEnded, TaskLeft or SiteChanged; empty if it is not told
	// gone says that the site lists the task no more, or that it waits again.
	gone    bool
	trouble string      // of TaskLeft and SiteChanged, which have no task
	pes     berth.Count // that the task holds or held, in the PEs of its site; 0 is unknown
	// listed says that it ended and that the look lists it so. No record has it.
	listed bool
}

// news returns what is told of an event of a task.
func (e *taskEvent) news() news {
	n := news{what: e.what, trouble: e.trouble}
	if e.what != TaskLeft && e.what != SiteChanged {
		n.task = &e.task
	}
	return n
}

// taskLook is what a look at a site has shown of tasks.
type taskLook struct {
	site   string
	events []taskEvent
}

// knownTask is a task that a site lists and that has started, as it was last seen.
type knownTask struct {
	reservation string
	task        Task
	look        uint64 // the last one that listed it
}

// siteTasks is the known tasks of a site.
type siteTasks struct {
	byJob map[site.JobID]*knownTask
	flows map[string][]*knownTask // those of workflows, by reservation, mostly one
	// ended is what the last look listed as ended, if all of it is known, and open is the known tasks
	// that are not among it: a site may list what has ended for a day, and most of it is as it was.
	ended []site.Job
	open  map[site.JobID]*knownTask
}

func newSiteTasks() *siteTasks {
	return &siteTasks{byJob: map[site.JobID]*knownTask{}, flows: map[string][]*knownTask{}, open: map[site.JobID]*knownTask{}}
}

// put notes how a task was seen, and whether it is listed as ended.
func (s *siteTasks) put(t *knownTask, listed bool) {
	s.drop(t.task.ID)
	if s.byJob[t.task.ID] = t; !listed {
		s.open[t.task.ID] = t
	}
	if t.task.Key == flowKey {
		s.flows[t.reservation] = append(s.flows[t.reservation], t)
	}
}

// drop forgets a task.
func (s *siteTasks) drop(id site.JobID) {
	t := s.byJob[id]
	if t == nil {
		return
	}
	delete(s.byJob, id)
	delete(s.open, id)
	if t.task.Key != flowKey {
		return
	}
	rest := slices.DeleteFunc(s.flows[t.reservation], func(other *knownTask) bool { return other == t })
	if s.flows[t.reservation] = rest; len(rest) == 0 {
		delete(s.flows, t.reservation)
	}
}

// tasksAt returns the known tasks of a site, to be read.
func (c *Core) tasksAt(name string) *siteTasks {
	if s := c.tasks[name]; s != nil {
		return s
	}
	return &siteTasks{}
}

// afresh returns what a list of ended jobs has beyond what the last look listed, and whether that is all
// there still and as it was.
func (s *siteTasks) afresh(ended []site.Job) (more []site.Job, same bool) {
	n := len(s.ended)
	if n == 0 || n > len(ended) {
		return ended, false
	}
	for i := range s.ended {
		if a, b := &s.ended[i], &ended[i]; a != b && (a.ID != b.ID || a.Start != b.Start || a.End != b.End || a.Reservation != b.Reservation) {
			return ended, false
		}
	}
	return ended[n:], true
}

// newTasks returns what a look at a site shows of tasks that is not known yet: which
// have started, which have ended, and which are listed no more. A task that is first
// seen after its end has started too, if it has run. One that ran and is listed no more
// has ended, and how is unknown; it ran until a time. Owner returns the reservation of a job, empty if it is
// none of ours. Cost: O(n) for the jobs of the site, little for those that the last look listed as ended at the same
// place, and sorting what is new.
func (c *Core) newTasks(at string, state *site.State, until berth.Time, owner func(*site.Job) string) []taskEvent {
	var events []taskEvent
	c.looks++
	tasks := c.tasksAt(at)
	known, others := tasks.byJob, map[site.JobID]bool{} // others are listed and not known
	ended, same := tasks.afresh(state.Ended)
	tasks.ended = state.Ended
	take := func(jobs []site.Job, stage site.Stage) {
		for i := range jobs {
			j := &jobs[i]
			if j.Reservation == "" {
				continue
			}
			was, is := known[j.ID]
			if is && was.look == c.looks || !is && others[j.ID] || same && stage == site.Ended && is && tasks.open[j.ID] == nil {
				tasks.ended = nil
				continue // twice in one look: what runs comes first
			}
			if is {
				was.look = c.looks
			} else {
				others[j.ID] = true
			}
			ranAgain := is && was.task.Stage == site.Ended && (stage == site.Running || j.End > was.task.End && j.Start >= was.task.End)
			if ranAgain {
				tasks.ended = nil
			}
			if is && !ranAgain && was.task.Stage == stage {
				if stage == site.Ended {
					delete(tasks.open, j.ID)
				}
				continue
			}
			reservation := owner(j)
			if reservation == "" {
				tasks.ended = nil // it may be found out yet
				continue
			}
			task := Task{Site: at, Report: site.Report{Job: *j, Stage: stage}}
			ran := stage == site.Running || len(j.Shares) > 0
			if ran && (!is || ranAgain || was.task.Stage == site.Waiting) {
				begun := task
				begun.Stage = site.Running
				if stage == site.Ended {
					begun.End, begun.Result, begun.Reason = 0, site.Result{}, ""
				}
				events = append(events, taskEvent{reservation: reservation, task: begun, what: TaskStarted})
			}
			if stage == site.Ended {
				events = append(events, taskEvent{reservation: reservation, task: task, what: TaskEnded, listed: true})
			}
		}
	}
	take(state.Running, site.Running)
	take(ended, site.Ended)
	waits := map[site.JobID]bool{}
	for i := range state.Pending {
		waits[state.Pending[i].ID] = true
	}
	left := tasks.open
	if !same {
		left = known
	}
	for id, was := range left {
		if was.look == c.looks || was.task.Stage == site.Waiting && (waits[id] || state.At <= was.task.Submitted) {
			continue // or it was handed in after that look began
		}
		// A task of a workflow is remembered until its reservation is over, so that it is not
		// handed in again.
		flow := was.task.Key == flowKey && c.goesOn(was.reservation)
		e := taskEvent{reservation: was.reservation, task: was.task, gone: !flow}
		switch {
		case flow && was.task.Stage == site.Ended:
			tasks.open[id] = was
			continue
		case waits[id]:
			e.task.Stage, e.task.Start = site.Waiting, 0
		case was.task.Stage != site.Ended:
			e.what = TaskEnded
			e.task.Stage, e.task.End, e.task.Reason = site.Ended, max(until, e.task.Start), "the site no longer lists it"
		}
		events = append(events, e)
	}
	slices.SortStableFunc(events, func(a, b taskEvent) int {
		return cmp.Or(site.CompareJobs(a.task.ID, b.task.ID), cmp.Compare(a.task.ID, b.task.ID))
	})
	return events
}

// seeTasks notes what a look at a site has shown of tasks, and returns the record of it
// and what is new for those who listen.
func (c *Core) seeTasks(now berth.Time, look *taskLook) (*journal.Record, []news) {
	rec := &journal.Record{At: now, Version: c.version, Event: appendTasks(nil, look)}
	c.place(rec)
	c.noteTasks(look, rec.Number)
	return rec, c.newsOfTasks(look, rec.Number, now)
}

// newsOfTasks returns what a look at a site, with a record of a number, has shown that is told.
func (c *Core) newsOfTasks(look *taskLook, number uint64, now berth.Time) (list []news) {
	for i := range look.events {
		e := &look.events[i]
		k := c.card(e.reservation)
		if e.what == "" || k == nil {
			continue
		}
		n := e.news()
		n.number, n.at, n.card = number<<noticeBits|uint64(len(list)), now, *k
		list = append(list, n)
	}
	return list
}

// goesOn reports whether a reservation is not over yet.
func (c *Core) goesOn(reservation string) bool {
	k := c.card(reservation)
	return k != nil && k.end == ""
}

// noteTasks remembers how tasks were last seen, with a record of a number.
func (c *Core) noteTasks(look *taskLook, number uint64) {
	known := c.tasks[look.site]
	if known == nil {
		known = newSiteTasks()
		c.tasks[look.site] = known
	}
	for i := range look.events {
		switch e := &look.events[i]; {
		case e.what == TaskLeft || e.what == SiteChanged: // what is known of tasks stays
		case e.gone:
			known.drop(e.task.ID)
		default:
			t := &knownTask{reservation: e.reservation, task: e.task}
			known.put(t, e.listed)
			c.noteEnd(t)
			c.noteOutput(t, number)
		}
	}
}

// noteEnd notes when the task of a workflow ended.
func (c *Core) noteEnd(t *knownTask) {
	if t.task.Key != flowKey || !c.goesOn(t.reservation) {
		return
	}
	if t.task.Stage == site.Ended {
		c.taskEnds[t.reservation] = t.task.End
	} else {
		delete(c.taskEnds, t.reservation)
	}
}

// tasksAtOnce is how many events of tasks go into one record, far fewer than notices
// of a record can be numbered.
const tasksAtOnce = 1000

// tellTasks tells what a look at a site shows of the tasks of its reservations, and returns the reservations
// in which tasks have ended.
func (h *Host) tellTasks(k *keeper, state *site.State) (ended []string) {
	events := h.core.newTasks(k.name, state, k.lastKnown(state.At), func(j *site.Job) string { return h.ownerOf(k, state, site.Name(j.Reservation)) })
	for i := range events {
		events[i].pes = k.pesOf(&events[i].task.Job)
		if events[i].what == TaskEnded {
			ended = append(ended, events[i].reservation)
		}
	}
	for some := range slices.Chunk(events, tasksAtOnce) {
		h.recordTasks(&taskLook{site: k.name, events: some})
	}
	return ended
}

// recordTasks puts events of tasks on record, and tells them.
func (h *Host) recordTasks(look *taskLook) {
	rec, list := h.core.seeTasks(h.clock(), look)
	h.counts.add(list)
	h.persist(rec, consequences{news: list})
}

// tellLeft tells that tasks cannot follow a promise at a site.
func (h *Host) tellLeft(ctx context.Context, at, id, trouble string) {
	_, _ = call(ctx, h, "", func(answer func(struct{}, error)) { // the error is that the service stops
		if h.core.card(id) != nil {
			h.recordTasks(&taskLook{site: at, events: []taskEvent{{reservation: id, what: TaskLeft, trouble: trouble}}})
		}
		answer(struct{}{}, nil)
	})
}

// handedIn returns the jobs of a reservation that wait or run, as the site tells it now or, if it does not, as a look has shown it.
func (k *keeper) handedIn(ctx context.Context, state *site.State, name site.Name) []site.Report {
	reports, err := k.report(ctx, name)
	if err != nil {
		reports = state.Reports(k.name, name)
	}
	return slices.DeleteFunc(reports, func(r site.Report) bool { return r.Stage == site.Ended })
}

// strandedReason is why a job has ended whose promise is at another site by now.
const strandedReason = "its promise has moved to another site; hand it in again"

// tellStranded tells that jobs have ended with the reservation that they waited or ran in, since no site takes jobs over from
// another. Tasks of workflows are handed in again without that.
func (h *Host) tellStranded(ctx context.Context, k *keeper, id string, jobs []site.Report) {
	jobs = slices.DeleteFunc(jobs, func(r site.Report) bool { return r.Key == flowKey })
	if len(jobs) == 0 {
		return
	}
	_, _ = call(ctx, h, "", func(answer func(struct{}, error)) { // the error is that the service stops
		var events []taskEvent
		for _, r := range jobs {
			if known := h.core.tasksAt(k.name).byJob[r.ID]; known != nil && known.task.Stage == site.Ended || h.core.card(id) == nil {
				continue // a look was sooner
			}
			r.Stage, r.End, r.Result, r.Reason = site.Ended, h.clock(), site.Result{Ending: site.Cancelled}, strandedReason
			events = append(events, taskEvent{reservation: id, task: Task{Site: k.name, Report: r}, what: TaskEnded, pes: k.pesOf(&r.Job)})
		}
		for some := range slices.Chunk(events, tasksAtOnce) {
			h.recordTasks(&taskLook{site: k.name, events: some})
		}
		answer(struct{}{}, nil)
	})
}

// ownerOf returns the id of the promise whose reservation a job is or was in, empty if that is
// none of this service's. Cost: O(remembered requests) for a look with a job of a
// reservation that was not seen before.
func (h *Host) ownerOf(k *keeper, state *site.State, reservation site.Name) string {
	p := k.promiseOf(reservation)
	if id, known := k.ids[p]; known || p == "" {
		return id
	}
	for _, jobs := range [][]site.Job{state.Running, state.Ended, state.Pending} {
		for i := range jobs {
			if q := k.promiseOf(site.Name(cmp.Or(jobs[i].Left, jobs[i].Reservation))); q != "" && k.ids[q] == "" {
				k.ids[q] = ""
			}
		}
	}
	h.core.cards.Scan(func(c *card) bool {
		q := k.promise(c.id)
		if _, asked := k.ids[q]; asked {
			k.ids[q] = c.id
		}
		return true
	})
	return k.ids[p]
}

// code writes or reads what a look has shown.
func (l *taskLook) code(c *wire.Coder) {
	wire.String(c, 1, &l.site)
	wire.List(c, 2, &l.events, func(c *wire.Coder, e *taskEvent) {
		wire.Name(c, 1, &e.reservation)
		codeTask(c, 2, &e.task)
		wire.Name(c, 3, &e.what)
		wire.Bool(c, 4, &e.gone)
		wire.String(c, 5, &e.trouble)
		wire.Int(c, 6, &e.pes)
		if c.End(); c.Reading() {
			e.task.Site = l.site
		}
	})
	c.End()
}

// codeTask writes or reads what is told of a task, if there is one; its site is known.
func codeTask(c *wire.Coder, number byte, t *Task) {
	wire.Struct(c, number, t, t.ID == "", func(c *wire.Coder, t *Task) {
		wire.String(c, 1, &t.ID)
		wire.Name(c, 2, &t.Array)
		wire.String(c, 3, &t.Key)
		wire.Name(c, 4, &t.Name)
		wire.Name(c, 5, &t.User)
		wire.Name(c, 6, &t.Stage)
		wire.Int(c, 7, &t.Submitted)
		wire.Int(c, 8, &t.Start)
		wire.Int(c, 9, &t.End)
		wire.Name(c, 10, &t.Result.Ending)
		wire.Int(c, 11, &t.Result.Code)
		wire.Int(c, 12, &t.Result.Signal)
		wire.Name(c, 13, &t.Reason)
		wire.String(c, 14, &t.Output)
		c.End()
	})
}

// savedTasks is the tasks of a site in their written form.
type savedTasks struct {
	Site  string
	Tasks []knownTask // by id
}

func (s *savedTasks) code(c *wire.Coder) {
	wire.String(c, 1, &s.Site)
	wire.List(c, 2, &s.Tasks, func(c *wire.Coder, k *knownTask) {
		wire.Name(c, 1, &k.reservation)
		codeTask(c, 2, &k.task)
		if c.End(); c.Reading() {
			k.task.Site = s.Site
		}
	})
	c.End()
}

// savedTasks returns the tasks of all sites, by site.
func (c *Core) savedTasks() []savedTasks {
	var all []savedTasks
	for _, name := range slices.Sorted(maps.Keys(c.tasks)) {
		s := savedTasks{Site: name}
		byJob := c.tasks[name].byJob
		for _, id := range slices.Sorted(maps.Keys(byJob)) {
			s.Tasks = append(s.Tasks, *byJob[id])
		}
		if len(s.Tasks) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// restoreTasks reads what savedTasks wrote.
func (c *Core) restoreTasks(all []savedTasks) {
	for i := range all {
		known := newSiteTasks()
		for j := range all[i].Tasks {
			t := &all[i].Tasks[j]
			known.put(t, false)
			c.noteEnd(t)
		}
		c.tasks[all[i].Site] = known
	}
}
