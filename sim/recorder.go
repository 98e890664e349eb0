package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// recorder turns the engine's changes into the lines of a schedule.
type recorder struct {
	lines  []berth.Line
	times  []times                   // by line
	index  map[string]int            // of a request that is not over, in the order of their coming
	known  known                     // the request looked for last
	first  []int                     // by request: its first line
	live   []int                     // by request: parts that are not over
	pools  bool                      // lines name the pool, since a site has several
	speeds map[[2]string]*berth.Pool // by site and pool, as lines name them; only those that are not of standard speed
	now    berth.Time

	outages []berth.Line               // and what stopped jobs had run
	staged  map[string][]berth.Staging // when data of requests were moved, each piece at one rate
	shared  bool                       // transfers share an uplink, so that rates matter
	pieces  map[string]pieces          // by job that was stopped
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

func newRecorder(config *engine.Config, requests []berth.Request) *recorder {
	r := &recorder{
		speeds: map[[2]string]*berth.Pool{},
		lines:  make([]berth.Line, 0, len(requests)),
		times:  make([]times, 0, len(requests)),
		index:  map[string]int{},
		pieces: map[string]pieces{},
		first:  make([]int, 0, len(requests)),
		live:   make([]int, 0, len(requests)),
		shared: config.Uplink > 0,
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
func (r *recorder) record(changes []engine.Change) {
	for i := range changes {
		c := &changes[i]
		switch c.Kind {
		case engine.Advanced:
			r.now = c.Now
		case engine.Queued:
			r.open(c.Request)
		case engine.Accepted:
			r.accept(c.Reservation)
			r.stage(c.ID, c.Reservation.Staging)
		case engine.Refused:
			for part := range c.Request.Parts {
				r.line(c.ID, part).Reason = c.Refusal.Reason
			}
			r.close(c.ID)
		case engine.Waits:
			line := r.line(c.ID, 0)
			line.Kind, line.Deadline = berth.KindJob, 0
		case engine.Expired:
			for part := range r.live[r.find(c.ID)] {
				r.revoke(r.line(c.ID, part), berth.Expired)
			}
			r.close(c.ID)
		case engine.Failed:
			parts := r.parts(c.ID)
			for part := range parts {
				// One of several may be over; the only one may be beyond its limit.
				if line := r.line(c.ID, part); parts == 1 || (line.ActualEnd == nil && *line.End > r.now) {
					r.ended(c.ID, part)
				}
			}
			r.close(c.ID)
		case engine.Requeued:
			r.revoke(r.line(c.ID, 0), "")
		case engine.Shortened:
			line := r.line(c.ID, 0)
			until := c.Until
			line.End, line.Duration = &until, until.Sub(*line.Start)
		case engine.Preempted:
			r.segment(c.ID, c.Request.Parts[0].Variants[0].Duration)
		case engine.Lost:
			for part := range r.parts(c.ID) {
				line := r.line(c.ID, part)
				promised := *cmp.Or(line.PromisedStart, line.Start)
				r.revoke(line, c.Refusal.Reason)
				line.PromisedStart = &promised // says that there was a promise
			}
			r.close(c.ID)
		case engine.WentDown:
			r.outage(c.Outage)
		case engine.CameUp:
			r.back(c.Outage)
		case engine.Moved:
			for part := range c.Moved {
				r.move(c.ID, part, &c.Moved[part])
			}
			if c.Moved != nil {
				r.stage(c.ID, c.Staging)
			}
		case engine.Staged:
			r.stage(c.ID, c.Staging)
		case engine.Started:
			for part, pes := range c.PEs {
				if !pes.Empty() {
					r.line(c.ID, part).PEs = pes
				}
			}
		case engine.Ended:
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

// stage notes when the data of a promise are moved; nil if there are none.
func (r *recorder) stage(id string, s *berth.Staging) {
	if s == nil {
		delete(r.staged, id)
		return
	}
	if r.staged == nil {
		r.staged = map[string][]berth.Staging{}
	}
	pieces := r.staged[id]
	last := len(pieces) - 1
	if last < 0 || !r.shared || pieces[last].Start != s.Start {
		r.staged[id] = []berth.Staging{*s}
		return
	}
	// The same transfer goes on otherwise: what was moved before is a piece.
	before := &pieces[last]
	before.End, before.Kilobytes = min(before.End, max(r.now, before.Since)), before.Kilobytes-s.Kilobytes
	if before.Kilobytes == 0 {
		pieces = pieces[:last]
	}
	r.staged[id] = append(pieces, *s)
}

// stagings returns a line for each piece of the transfer of everything that kept
// its promise until it started, in the order of the requests.
func (r *recorder) stagings() []berth.Line {
	if len(r.staged) == 0 {
		return nil
	}
	var lines []berth.Line
	for i := range r.lines {
		of := &r.lines[i]
		if !of.Accepted || of.Part > 1 {
			continue
		}
		for _, s := range r.staged[of.ID] {
			start, end := s.Start, s.End
			line := berth.Line{ID: of.ID, Kind: berth.KindStaging, Site: of.Site}
			if r.shared {
				if s, end = until(s, of); end <= s.Since {
					continue
				}
				start, line.Kilobytes = s.Since, s.Kilobytes
			}
			line.Arrival, line.Ready, line.Start, line.End, line.Duration = start, start, &start, &end, end.Sub(start)
			lines = append(lines, line)
		}
	}
	return lines
}

// until returns what is moved of a piece before what needs it is over, and when
// that ends: nothing where the link stands still.
func until(s berth.Staging, of *berth.Line) (berth.Staging, berth.Time) {
	over := *cmp.Or(of.ActualEnd, of.End)
	switch {
	case s.End >= berth.Forever:
		return s, s.Since
	case s.End <= over || over <= s.Since:
		return s, min(s.End, max(over, s.Since))
	}
	high, low := bits.Mul64(uint64(s.Kilobytes), uint64(over-s.Since))
	moved, _ := bits.Div64(high, low, uint64(s.End-s.Since)) // less than all, since it goes on
	s.Kilobytes = int64(moved)
	return s, over
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
		return pool.SpeedFor(&line.Requirements)
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

// close notes that a request is over.
func (r *recorder) close(id string) {
	delete(r.index, id)
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
	r.first, r.live = append(r.first, len(r.lines)), append(r.live, len(request.Parts))
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
		line.ID, line.Kind, line.User, line.Requirements = request.ID, berth.KindRequest, request.User, request.Requirements
		line.Arrival, line.Ready, line.Deadline = request.Arrival, request.Ready, request.Deadline
		line.Duration, line.NPE = shown.Duration, shown.NPE
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
	line.PEs = a.PEs
}

// move notes that an accepted line starts elsewhere or at another time than was
// promised.
func (r *recorder) move(id string, part int, to *berth.Allotment) {
	if line := r.line(id, part); line.PromisedStart == nil {
		promised := *line.Start
		line.PromisedStart = &promised
	}
	r.put(id, part, to)
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
	line.Start, line.End, line.PEs, line.PromisedStart = nil, nil, berth.PESet{}, nil
}

// segment notes that a job was stopped: what it ran is a booking of its own, and
// the job's line tells of what is left.
func (r *recorder) segment(id string, left berth.Duration) {
	line := r.line(id, 0)
	if at := r.now; *line.Start < at {
		piece := r.pieces[id]
		piece.number++
		ran, start := *line, *line.Start
		ran.ID, ran.Kind = fmt.Sprintf("%s/%d", id, piece.number), berth.KindBooking
		ran.Start, ran.End, ran.Duration = &start, &at, at.Sub(start)
		r.outages = append(r.outages, ran)
		piece.done += r.speed(line).Work(ran.Duration)
		r.pieces[id] = piece
	}
	r.revoke(line, "")
	line.Duration = left
}

// outage notes an outage; its end is where it was expected, if at all.
func (r *recorder) outage(o *engine.Outage) {
	from, pes := r.now, o.PEs
	line := berth.Line{
		ID: fmt.Sprintf("outage-%d", o.Number), Kind: berth.KindOutage, Site: o.Resource.Site,
		Arrival: from, Ready: from, NPE: pes.Count(), Start: &from, PEs: pes,
	}
	if r.pools {
		line.Pool = o.Resource.Name
	}
	if o.Until < berth.Forever {
		line.End = &o.Until
	}
	r.outages = append(r.outages, line)
}

// back notes that an outage is over.
func (r *recorder) back(o *engine.Outage) {
	id, at := fmt.Sprintf("outage-%d", o.Number), r.now
	for i := len(r.outages) - 1; i >= 0; i-- { // mostly it is one of the last
		if r.outages[i].ID == id {
			r.outages[i].ActualEnd = &at
			return
		}
	}
}

// requestError names the request that an error is about.
func requestError(r *berth.Request, err error) error {
	if e, ok := errors.AsType[*berth.Error](err); ok {
		return &berth.Error{Code: e.Code, Field: e.Field, Msg: fmt.Sprintf("request %q: %s", r.ID, e.Msg)}
	}
	return err
}
