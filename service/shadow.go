package service

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/site"
)

// A shadow is a site that is only watched. Every job that its users ask for is
// asked of the engine too, and what the engine promises is compared with what
// becomes of the job. What was seen of a job is recorded in the journal beside
// what the engine decided, and everything here follows from the two.

// ShadowJob is a job of a site that is only watched.
type ShadowJob struct {
	ID        string     // of the request made of it
	Job       site.JobID // at the site
	User      string
	Partition string
	NPE       berth.Count
	Limit     berth.Duration
	// Partial says that it asks for fewer cores than the PEs asked for it have.
	Partial bool
	// Left is why the engine was not asked for it; empty if it was.
	Left LeftOut
	// Asked is when it was, or when the job was first seen; Ready from when on it
	// could run.
	Asked berth.Time
	Ready berth.Time

	// What became of it at the site: Start if it has started, End if it is over.
	Phase  Phase
	Start  berth.Time
	End    berth.Time
	Ending site.Ending // empty if its end was not seen

	Said
}

// Said is what the engine said of a job: the start that it promised first, or why
// it refused.
type Said struct {
	Promised berth.Time
	Refusal  berth.Reason
	// Moved says that the promise got other PEs or another time since, Broken
	// that there was no place left for it.
	Moved  bool
	Broken bool
}

// Phase is where a job is at a site that is only watched.
type Phase string

// The phases.
const (
	JobWaits     Phase = "waiting"
	JobRuns      Phase = "running"
	JobEnded     Phase = "ended"     // it has run
	JobCancelled Phase = "cancelled" // it has never run
	JobVanished  Phase = "vanished"  // it waited, and then the site knew nothing of it
)

var phases = []Phase{JobWaits, JobRuns, JobEnded, JobCancelled, JobVanished}

// LeftOut is why a job is not asked of the engine. Its nodes are out of use
// while it runs.
type LeftOut string

// The reasons.
const (
	LeftBefore      LeftOut = "before"      // it ran when the watch began
	LeftUnseen      LeftOut = "unseen"      // it ran for longer than the tolerance before it was seen
	LeftReservation LeftOut = "reservation" // it is for a reservation that the site has made
	LeftNoLimit     LeftOut = "no_limit"    // nothing says how long it may run
	LeftNoSize      LeftOut = "no_size"     // nothing says how much it wants, or no request can say that
)

var leftOuts = []LeftOut{LeftBefore, LeftUnseen, LeftReservation, LeftNoLimit, LeftNoSize}

const (
	// ShadowTolerance is up to which difference two starts are the same: a minute,
	// in which Slurm counts limits, and twice its backfill interval.
	ShadowTolerance berth.Duration = 60
	// shadowWindow is how much later than it could a job may be promised to
	// start. Longer waits than a month are of no use.
	shadowWindow berth.Duration = 30 * 86_400
	// maxShadowJobs bounds the jobs that are followed at a time, and
	// maxShadowPast those remembered after that.
	maxShadowJobs = 100_000
	maxShadowPast = 10_000
)

// over reports whether nothing more becomes of the job at the site.
func (j *ShadowJob) over() bool { return j.Phase != JobWaits && j.Phase != JobRuns }

// ran returns for how long a job has run that has ended.
func (j *ShadowJob) ran() berth.Duration { return max(1, j.End.Sub(j.Start)) }

// compared reports whether a promise stands against a start.
func (j *ShadowJob) compared() bool { return j.Promised != 0 && j.Start != 0 }

// waits returns how long the job would have waited by the first promise, and
// how long it has.
func (j *ShadowJob) waits() (promised, actual berth.Duration) {
	return j.Promised.Sub(j.Ready), max(j.Start, j.Ready).Sub(j.Ready)
}

// request is what is asked of the engine: as soon as possible, at that site.
func (j *ShadowJob) request(at string) *berth.Request {
	r := berth.Rigid(j.ID, j.Asked, j.Ready, j.Ready.Add(shadowWindow+j.Limit), j.NPE, j.Limit)
	r.User, r.Site, r.Partition = j.User, at, j.Partition
	r.Role = roleOfSite
	return &r
}

// roleOfSite is the role by which jobs of a site that is only watched are asked for: that
// of no user of the service, so that its limits do not change what is compared.
const roleOfSite = "site"

// Figures count jobs of a site that is only watched.
type Figures struct {
	Seen    int             `json:"seen"`
	LeftOut map[LeftOut]int `json:"left_out,omitempty"`
	Asked   int             `json:"asked"` // those seen and not left out
	Partial int             `json:"partial"`
	// Of those asked: what the engine said. Moved and Broken are of those promised.
	Promised int                  `json:"promised"`
	Refused  map[berth.Reason]int `json:"refused,omitempty"`
	Moved    int                  `json:"moved"`
	Broken   int                  `json:"broken"`
	// Of those asked: what became of them.
	Cancelled   int `json:"cancelled"`
	Vanished    int `json:"vanished"`
	Ended       int `json:"ended"`        // they have run, and were seen to end
	BeforeLimit int `json:"before_limit"` // of Ended, those that ended by themselves before
	// Compared are those promised that have started: before, at, or after the time
	// promised first. Earlier and Later say what Berth would have done.
	Compared     int            `json:"compared"`
	Earlier      int            `json:"earlier"`
	Same         int            `json:"same"`
	Later        int            `json:"later"`
	PromisedWait berth.Duration `json:"promised_wait"` // seconds of all compared together
	ActualWait   berth.Duration `json:"actual_wait"`
}

// add counts a job.
func (f *Figures) add(j *ShadowJob) {
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	f.Seen++
	if j.Left != "" {
		f.LeftOut[j.Left]++
		return
	}
	f.Asked++
	count(&f.Partial, j.Partial)
	count(&f.Promised, j.Promised != 0)
	if j.Refusal != "" {
		f.Refused[j.Refusal]++
	}
	count(&f.Moved, j.Moved)
	count(&f.Broken, j.Broken)
	count(&f.Cancelled, j.Phase == JobCancelled)
	count(&f.Vanished, j.Phase == JobVanished)
	if j.Phase == JobEnded && j.Ending != "" {
		f.Ended++
		count(&f.BeforeLimit, j.Ending != site.TimedOut && j.End.Sub(j.Start) < j.Limit)
	}
	if !j.compared() {
		return
	}
	f.Compared++
	promised, actual := j.waits()
	count(&f.Earlier, promised+ShadowTolerance < actual)
	count(&f.Later, actual+ShadowTolerance < promised)
	f.Same = f.Compared - f.Earlier - f.Later
	f.PromisedWait += promised
	f.ActualWait += actual
}

func newFigures() Figures {
	return Figures{LeftOut: map[LeftOut]int{}, Refused: map[berth.Reason]int{}}
}

// shadow is what is known of a site that is only watched.
type shadow struct {
	since berth.Time            // when the watch began
	jobs  map[string]*ShadowJob // by the id of the request, those that are followed
	past  []ShadowJob           // the last that are not, in the order in which they were let go
	sum   Figures               // of all that are not
}

// sighting is what a look at a site has shown: a job as it is now, or that it
// need not be followed any more. One without a job begins the watch.
type sighting struct {
	site string
	job  *ShadowJob
	gone bool
}

// see takes a sighting in. What the engine said of a job stays.
func (c *Core) see(now berth.Time, s *sighting) {
	w := c.shadows[s.site]
	if w == nil {
		w = &shadow{since: now, jobs: map[string]*ShadowJob{}, sum: newFigures()}
		c.shadows[s.site] = w
	}
	if s.job == nil {
		return
	}
	j, was := *s.job, w.jobs[s.job.ID]
	if was != nil {
		j.Said = was.Said
	}
	if !s.gone {
		w.jobs[j.ID] = &j
		return
	}
	delete(w.jobs, j.ID)
	w.sum.add(&j)
	w.past = append(w.past, j)
	if extra := len(w.past) - maxShadowPast; extra >= maxShadowPast/8 {
		w.past = slices.Clone(w.past[extra:])
	}
}

// follow notes what the engine has decided about a job.
func (w *shadow) follow(c *change.Change) {
	j := w.jobs[c.ID]
	if j == nil {
		return
	}
	switch c.Kind {
	case change.Accepted:
		j.Promised = c.Reservation.Start()
	case change.Refused:
		j.Refusal = c.Refusal.Reason
	case change.Moved, change.Resized:
		j.Moved = true
	case change.Lost, change.Failed, change.Rejected:
		j.Broken = true
	}
}

// figures counts all jobs.
func (w *shadow) figures() Figures {
	f := w.sum
	f.LeftOut, f.Refused = maps.Clone(f.LeftOut), maps.Clone(f.Refused)
	for _, j := range w.jobs {
		f.add(j)
	}
	return f
}

// latest returns up to most jobs, those asked last first; ties by id.
func (w *shadow) latest(most int) []ShadowJob {
	all := slices.Clone(w.past)
	for _, j := range w.jobs {
		all = append(all, *j)
	}
	slices.SortFunc(all, func(a, b ShadowJob) int {
		return cmp.Or(cmp.Compare(b.Asked, a.Asked), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(most, len(all))]
}

// Spread is how values lie: their mean, and the least values that given shares of them do
// not exceed.
type Spread struct {
	Mean berth.Duration `json:"mean"` // rounded down
	P50  berth.Duration `json:"p50"`
	P95  berth.Duration `json:"p95"`
}

// spreads returns how the waits lie of the jobs that are remembered.
func (w *shadow) spreads(f *Figures) (promised, actual Spread) {
	var ps, as []berth.Duration
	take := func(j *ShadowJob) {
		if j.compared() {
			p, a := j.waits()
			ps, as = append(ps, p), append(as, a)
		}
	}
	for i := range w.past {
		take(&w.past[i])
	}
	for _, j := range w.jobs {
		take(j)
	}
	return spread(ps, f.PromisedWait, f.Compared), spread(as, f.ActualWait, f.Compared)
}

// spread returns the mean of n values with that sum, and where the latest lie.
func spread(latest []berth.Duration, sum berth.Duration, n int) Spread {
	if len(latest) == 0 {
		return Spread{}
	}
	slices.Sort(latest)
	at := func(percent int) berth.Duration { return latest[(len(latest)*percent+99)/100-1] }
	return Spread{Mean: sum / berth.Duration(n), P50: at(50), P95: at(95)}
}

// codeShadowJob writes or reads a job.
func codeShadowJob(c *wire.Coder, j *ShadowJob) {
	wire.String(c, 1, &j.ID)
	wire.String(c, 2, &j.Job)
	wire.Name(c, 3, &j.User)
	wire.Name(c, 4, &j.Partition)
	wire.Int(c, 5, &j.NPE)
	wire.Int(c, 6, &j.Limit)
	wire.Bool(c, 7, &j.Partial)
	wire.Enum(c, 8, &j.Left, leftOuts)
	wire.Int(c, 9, &j.Asked)
	wire.Int(c, 10, &j.Ready)
	wire.Enum(c, 11, &j.Phase, phases)
	wire.Int(c, 12, &j.Start)
	wire.Int(c, 13, &j.End)
	wire.Name(c, 14, &j.Ending)
	wire.Int(c, 15, &j.Promised)
	wire.Name(c, 16, &j.Refusal)
	wire.Bool(c, 17, &j.Moved)
	wire.Bool(c, 18, &j.Broken)
	c.End()
}

// code writes or reads a sighting.
func (s *sighting) code(c *wire.Coder) {
	wire.String(c, 1, &s.site)
	wire.Pointer(c, 2, &s.job, codeShadowJob)
	wire.Bool(c, 3, &s.gone)
	c.End()
}

// savedShadow is a shadow in its written form.
type savedShadow struct {
	Site  string
	Since berth.Time
	Jobs  []ShadowJob // by id
	Past  []ShadowJob
	Sum   []byte // in JSON
}

func codeShadow(c *wire.Coder, s *savedShadow) {
	wire.String(c, 1, &s.Site)
	wire.Int(c, 2, &s.Since)
	wire.List(c, 3, &s.Jobs, codeShadowJob)
	wire.List(c, 4, &s.Past, codeShadowJob)
	wire.Raw(c, 5, &s.Sum)
	c.End()
}

// savedShadows returns all shadows by site.
func (c *Core) savedShadows() ([]savedShadow, error) {
	var all []savedShadow
	for _, name := range slices.Sorted(maps.Keys(c.shadows)) {
		w := c.shadows[name]
		sum, err := json.Marshal(&w.sum)
		if err != nil {
			return nil, err
		}
		s := savedShadow{Site: name, Since: w.since, Past: w.past, Sum: sum}
		for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
			s.Jobs = append(s.Jobs, *w.jobs[id])
		}
		all = append(all, s)
	}
	return all, nil
}

// restoreShadows reads what savedShadows wrote.
func (c *Core) restoreShadows(all []savedShadow) error {
	for i := range all {
		s := &all[i]
		w := &shadow{since: s.Since, jobs: map[string]*ShadowJob{}, past: s.Past, sum: newFigures()}
		if err := json.Unmarshal(s.Sum, &w.sum); err != nil {
			return berth.Errorf(berth.Invalid, "snapshot", "the figures of %s: %v", s.Site, err)
		}
		for k := range s.Jobs {
			w.jobs[s.Jobs[k].ID] = &s.Jobs[k]
		}
		c.shadows[s.Site] = w
	}
	return nil
}
