package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// recorder turns the engine's changes into the lines of a schedule.
type recorder struct {
	lines  []berth.Line
	times  []times                   // by line
	index  map[string]int            // of a request that is not over, in the order of their coming
	known  known                     // the request looked for last
	first  []int                     // by request: its first line
	live   []int                     // by request: parts that are not over
	asked  []*berth.Request          // in the order of their coming
	over   []*berth.Request          // made of requests in short, and over
	again  bool                      // there may be such, for nothing else refers to them
	pools  bool                      // lines name the pool, since a site has several
	speeds map[[2]string]*berth.Pool // by site and pool, as lines name them; only those that are not of standard speed
	now    berth.Time

	outages []berth.Line                // and what stopped jobs had run
	staged  map[string][]berth.Transfer // when data of requests were moved, each piece at one rate
	shared  bool                        // transfers share an uplink, so that rates matter
	holds   bool                        // PEs are held while data are moved
	expects map[delivery]berth.Time     // when they were expected when their request got its place
	pieces  map[string]pieces           // by job that was stopped

	tasks   map[string]bool     // reservations of tasks of workflows, which have no lines here; nil without
	cause   string              // id of the outage or overrun of this step to which promises yield
	late    map[string]bool     // requests whose data are expected at another time since this step
	lacking map[string][]string // by reservation that lacks PEs: the outages that took some
}

// pieces is how often a job was stopped, and how much it did before, in
// standard seconds.
type pieces struct {
	number int
	done   berth.Duration
}

// times are those that a line points to. They lie apart from what the engine
// made, so that it need not live as long as the line.
type times struct{ start, end, actual berth.Time }

// known is a request that is not over and its index; the zero value is none,
// since every request has an id.
type known struct {
	id string
	at int
}

func newRecorder(config *engine.Config, w *Workload) *recorder {
	requests := w.Len()
	r := &recorder{
		speeds: map[[2]string]*berth.Pool{},
		lines:  make([]berth.Line, 0, requests),
		times:  make([]times, 0, requests),
		index:  map[string]int{},
		pieces: map[string]pieces{},

		first: make([]int, 0, requests),
		live:  make([]int, 0, requests),
		asked: make([]*berth.Request, 0, requests),
		// Effects for managed sites refer to requests until they are settled.
		again:  w.Plain != nil && !slices.ContainsFunc(config.Sites, func(s berth.Site) bool { return s.Managed }),
		shared: config.Uplink > 0,
		holds:  config.Staging == engine.StagingHold,
		pools:  slices.ContainsFunc(config.Sites, func(s berth.Site) bool { return len(s.Pools) > 1 }),
	}
	for _, site := range config.Sites {
		for i := range site.Pools {
			pool, name := &site.Pools[i], ""
			if r.pools {
				name = pool.Name
			}
			if pool.Speed != 0 && pool.Speed != berth.StandardSpeed || pool.Node.AcceleratorSpeed != 0 {
				r.speeds[[2]string{site.Name, name}] = pool
			}
		}
	}
	return r
}

// record takes in the changes of one step.
func (r *recorder) record(changes []change.Change) {
	r.cause = ""
	clear(r.late)
	for i := range changes {
		c := &changes[i]
		if r.tasks != nil {
			if c.Kind == change.Queued && c.Request.Task != nil {
				r.tasks[c.ID] = true
			}
			if r.tasks[c.ID] {
				continue
			}
		}
		switch c.Kind {
		case change.Advanced:
			r.now = c.Now
		case change.Queued:
			r.open(c.Request)
		case change.Accepted:
			r.accept(c.Reservation)
			r.stage(c.ID, c.Reservation.Transfers)
			r.transfer(c.ID, c.Reservation.Transfers)
		case change.Refused:
			for part := range c.Request.Parts {
				r.line(c.ID, part).Reason = c.Refusal.Reason
			}
			r.close(c.ID)
		case change.QueuedAsJob:
			line := r.line(c.ID, 0)
			line.Kind, line.Deadline = berth.KindJob, 0
		case change.Expired:
			for part := range r.parts(c.ID) {
				line := r.line(c.ID, part)
				r.leave(line)
				r.revoke(line, berth.Expired)
			}
			r.close(c.ID)
		case change.Failed:
			parts := r.parts(c.ID)
			for part := range parts {
				// One of several may be over; the only one may be beyond its limit.
				if line := r.line(c.ID, part); parts == 1 || (line.ActualEnd == nil && *line.End > r.now) {
					r.ended(c.ID, part)
				}
			}
			r.close(c.ID)
		case change.Requeued:
			r.yield(c.ID, 0)
			r.revoke(r.line(c.ID, 0), "")
		case change.Extended:
			until := c.Until
			r.line(c.ID, 0).Limit = &until
			r.cause = c.ID
		case change.Shortened:
			r.shorten(r.line(c.ID, 0), c.Until)
		case change.Preempted:
			r.segment(c.ID, c.Request.Parts[0].Variants[0].Duration)
		case change.Lost:
			for part := range r.parts(c.ID) {
				line := r.line(c.ID, part)
				promised := *cmp.Or(line.PromisedStart, line.Start)
				r.yield(c.ID, part)
				r.revoke(line, c.Refusal.Reason)
				line.PromisedStart = &promised // says that there was a promise
			}
			r.close(c.ID)
		case change.WentDown:
			r.outage(c.Outage)
			r.cause = outageID(c.Outage)
		case change.OutageBegan:
			r.cause = outageID(c.Outage)
		case change.CameUp:
			r.back(c.Outage)
		case change.Moved:
			for part := range c.Moved {
				r.move(c.ID, part, &c.Moved[part])
			}
			r.stage(c.ID, c.Transfers)
			r.transfer(c.ID, c.Transfers)
		case change.Staged:
			r.stage(c.ID, c.Transfers)
			if r.late == nil {
				r.late = map[string]bool{}
			}
			r.late[c.ID] = true
		case change.Resized:
			r.resize(c.ID, &c.Moved[0])
		case change.Started:
			for part, pes := range c.PEs {
				line := r.line(c.ID, part)
				switch last := len(line.Stretches) - 1; {
				case pes.Empty():
				case last >= 0:
					line.Stretches[last].PEs = pes
				default:
					line.PEs = pes
				}
			}
		case change.Ended:
			if line := r.line(c.ID, c.Part); line.Kind == berth.KindJob || r.now != *line.End {
				r.ended(c.ID, c.Part)
			}
			if request := r.find(c.ID); r.live[request] > 1 {
				r.live[request]--
			} else {
				r.close(c.ID)
			}
		}
	}
}

// parts returns how many parts a request has.
func (r *recorder) parts(id string) int {
	request := r.find(id)
	if request+1 < len(r.first) {
		return r.first[request+1] - r.first[request]
	}
	return len(r.lines) - r.first[request]
}

// speed returns the speed at which the pool that a line names serves it.
func (r *recorder) speed(line *berth.Line) berth.Speed {
	if len(r.speeds) == 0 {
		return berth.StandardSpeed
	}
	if pool := r.speeds[[2]string{line.Site, line.Pool}]; pool != nil {
		return pool.SpeedFor(&line.Wants().Requirements)
	}
	return berth.StandardSpeed
}

// find returns the index of a request that is not over. Most changes concern the
// request of the one before.
func (r *recorder) find(id string) int {
	if r.known.id != id {
		r.known = known{id, r.index[id]}
	}
	return r.known.at
}

// id returns the id of a request.
func (r *recorder) id(request int) string { return r.lines[r.first[request]].ID }

// close notes that a request is over.
func (r *recorder) close(id string) {
	if at, open := r.index[id]; open && r.again {
		r.over, r.asked[at] = append(r.over, r.asked[at]), nil
	}
	delete(r.index, id)
	delete(r.lacking, id)
	r.known = known{}
}

// place returns where the line of a part is.
func (r *recorder) place(id string, part int) int { return r.first[r.find(id)] + part }

// line returns the line of a part.
func (r *recorder) line(id string, part int) *berth.Line { return &r.lines[r.place(id, part)] }

// open appends the undecided lines of a request. A moldable part shows its
// first variant that is short enough for the window until one is chosen. A job
// without a deadline shows 0.
func (r *recorder) open(request *berth.Request) {
	r.known = known{request.ID, len(r.first)}
	r.index[request.ID] = len(r.first)
	r.first, r.live, r.asked = append(r.first, len(r.lines)), append(r.live, len(request.Parts)), append(r.asked, request)
	for i := range request.Parts {
		part := &request.Parts[i]
		shown := part.Variants[0]
		if at := slices.IndexFunc(part.Variants, func(v berth.Variant) bool {
			return request.Ready.Add(v.Duration) <= request.Deadline
		}); at >= 0 {
			shown = part.Variants[at]
		}
		r.lines, r.times = append(r.lines, berth.Line{}), append(r.times, times{})
		line := &r.lines[len(r.lines)-1]
		line.ID, line.Kind, line.User = request.ID, berth.KindRequest, request.User
		line.Arrival, line.Ready, line.Deadline = request.Arrival, request.Ready, request.Deadline
		line.Duration, line.NPE = shown.Duration, shown.NPE
		line.Wanted = berth.WantedOf(request, i)
		if request.IsJob() {
			line.Kind = berth.KindJob
			if line.Deadline >= berth.Forever {
				line.Deadline = 0
			}
		}
		if len(part.Variants) > 1 {
			line.Variants = part.Variants
		}
		if len(request.Parts) > 1 {
			line.Part = i + 1
		}
	}
}

func (r *recorder) accept(reservation *berth.Reservation) {
	for part := range reservation.Allotments {
		r.line(reservation.Request.ID, part).Accepted = true
		r.put(reservation.Request.ID, part, &reservation.Allotments[part])
	}
}

// put notes where and when a part is to run.
func (r *recorder) put(id string, part int, a *berth.Allotment) {
	at := r.place(id, part)
	line, t := &r.lines[at], &r.times[at]
	line.Site = a.Resource.Site
	if r.pools {
		line.Pool = a.Resource.Name
	}
	line.NPE, line.Duration = a.NPE, a.End.Sub(a.Start)
	t.start, t.end = a.Start, a.End
	line.Start, line.End = &t.start, &t.end
	line.PEs, line.Stretches = a.PEs, nil
	delete(r.lacking, id)
}

// shorten notes that a running job has to go before its limit, or before that to
// which it has been extended.
func (r *recorder) shorten(line *berth.Line, until berth.Time) {
	if line.Limit == nil {
		limit := *line.End
		line.Limit = &limit
	}
	if until < *line.End {
		line.End, line.Duration = &until, until.Sub(*line.Start)
	}
}

// ended notes that a part has ended now.
func (r *recorder) ended(id string, part int) {
	at := r.place(id, part)
	r.times[at].actual = r.now
	r.lines[at].ActualEnd = &r.times[at].actual
}

// revoke takes back that a line was accepted.
func (r *recorder) revoke(line *berth.Line, reason berth.Reason) {
	line.Accepted, line.Reason, line.Site, line.Pool = false, reason, "", ""
	line.Start, line.End, line.PEs, line.PromisedStart, line.Limit, line.Transfer = nil, nil, berth.PESet{}, nil, nil, 0
	line.Stretches = nil
}

// segment notes that a job was stopped: what it ran is a booking of its own, and
// the job's line tells of what is left.
func (r *recorder) segment(id string, left berth.Duration) {
	line := r.line(id, 0)
	if at := r.now; *line.Start < at {
		piece := r.pieces[id]
		piece.number++
		ran, start := *line, *line.Start
		ran.ID, ran.Kind, ran.MovedFrom = fmt.Sprintf("%s/%d", id, piece.number), berth.KindBooking, nil
		ran.Start = &start
		if end := *ran.End; at > end {
			ran.End, ran.ActualEnd = &end, &at // it had gone on beyond its limit
		} else {
			ran.End, ran.Duration = &at, at.Sub(start)
		}
		r.outages = append(r.outages, ran)
		piece.done += r.speed(line).Work(at.Sub(start))
		r.pieces[id] = piece
	}
	r.revoke(line, "")
	line.Duration = left
}

// schedule returns all lines. It copies those of the requests only if others
// follow, since they are most of the memory.
func (r *recorder) schedule() []berth.Line {
	stagings := r.stagings()
	if len(r.outages)+len(stagings) == 0 {
		return r.lines
	}
	lines := slices.Grow(r.lines, len(r.outages)+len(stagings))
	return append(appendDisjoint(lines, r.outages), stagings...)
}

// requestError names the request that an error is about.
func requestError(r *berth.Request, err error) error {
	if e, ok := errors.AsType[*berth.Error](err); ok {
		return &berth.Error{Code: e.Code, Field: e.Field, Msg: fmt.Sprintf("request %q: %s", r.ID, e.Msg)}
	}
	return err
}
