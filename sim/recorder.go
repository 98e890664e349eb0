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

// recorder turns the engine's changes into a schedule.
type recorder struct {
	Schedule
	index  map[string]known      // requests that are not over
	known  known                 // the request looked for last
	at     map[place]uint32      // among the places of the schedule
	last   uint32                // the place looked for last
	over   []*berth.Request      // made of requests in short, and over
	again  bool                  // there may be such, for nothing else refers to them
	pools  bool                  // lines name the pool, since a site has several
	speeds map[place]*berth.Pool // only those that are not of standard speed
	now    berth.Time

	outages []berth.Line                // and what stopped jobs had run
	staged  map[string][]berth.Transfer // when data of requests were moved, each piece at one rate
	shared  bool                        // transfers share an uplink, so that rates matter
	holds   bool                        // PEs are held while data are moved
	managed map[string]bool             // sites at which the parts of a request end together
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

// known is a request that is not over and its index in the order of their coming; the
// zero value is none, since every request has an id.
type known struct {
	id      string
	at      int
	request *berth.Request
}

func newRecorder(config *engine.Config, w *Workload) *recorder {
	requests := w.Len()
	r := &recorder{
		speeds: map[place]*berth.Pool{},
		index:  map[string]known{},
		at:     map[place]uint32{},
		pieces: map[string]pieces{},
		Schedule: Schedule{
			work:    w,
			records: make([]record, 0, requests),
			first:   make([]int32, 0, requests),
			places:  make([]place, 1),
			reasons: make([]berth.Reason, 1),
		},
		// Effects for managed sites refer to requests until they are settled.
		again:  w.Plain != nil && !slices.ContainsFunc(config.Sites, func(s berth.Site) bool { return s.Managed }),
		shared: config.Uplink > 0,
		holds:  config.Staging == engine.StagingHold,
		pools:  slices.ContainsFunc(config.Sites, func(s berth.Site) bool { return len(s.Pools) > 1 }),
	}
	for _, site := range config.Sites {
		if site.Managed {
			if r.managed == nil {
				r.managed = map[string]bool{}
			}
			r.managed[site.Name] = true
		}
		for i := range site.Pools {
			pool, name := &site.Pools[i], ""
			if r.pools {
				name = pool.Name
			}
			if pool.Speed != 0 && pool.Speed != berth.StandardSpeed || pool.Node.AcceleratorSpeed != 0 {
				r.speeds[place{site.Name, name}] = pool
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
				if c.Kind == change.Extended {
					r.cause = c.ID
				}
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
				r.of(c.ID, part).reason = r.reason(c.Refusal.Reason)
			}
			r.close(c.ID)
		case change.QueuedAsJob:
			r.of(c.ID, 0).set(isJob | demoted)
		case change.Expired:
			for part := range r.parts(r.find(c.ID)) {
				of := r.of(c.ID, part)
				r.leave(of)
				r.revoke(of, berth.Expired)
			}
			r.close(c.ID)
		case change.Failed:
			parts := r.parts(r.find(c.ID))
			for part := range parts {
				// One of several may be over; the only one may be beyond its limit.
				if of := r.of(c.ID, part); parts == 1 || (!of.is(ended) && of.end > r.now) {
					r.end(of)
				}
			}
			r.close(c.ID)
		case change.Requeued:
			r.yield(c.ID, 0)
			r.revoke(r.of(c.ID, 0), "")
		case change.Extended:
			until := c.Until
			r.of(c.ID, 0).some().limit = &until
			r.cause = c.ID
		case change.Shortened:
			r.shorten(r.of(c.ID, 0), c.Until)
		case change.Preempted:
			r.segment(c.ID, c.Request.Parts[0].Variants[0].Duration)
		case change.Lost:
			for part := range r.parts(r.find(c.ID)) {
				of := r.of(c.ID, part)
				promised := *cmp.Or(of.seldom().promised, &of.start)
				r.yield(c.ID, part)
				r.revoke(of, c.Refusal.Reason)
				of.some().promised = &promised // says that there was a promise
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
				of := r.of(c.ID, part)
				stretches := of.seldom().stretches
				switch last := len(stretches) - 1; {
				case pes.Empty():
				case last >= 0:
					stretches[last].PEs = pes
				default:
					of.pes = pes
				}
			}
		case change.Ended:
			if of := r.of(c.ID, c.Part); of.is(isJob) || r.now != of.end {
				r.end(of)
			}
			if of := r.of(c.ID, 0); of.live > 1 {
				of.live--
			} else {
				r.close(c.ID)
			}
		}
	}
}

// speed returns the speed at which the pool of a part serves it.
func (r *recorder) speed(of *record) berth.Speed {
	if len(r.speeds) == 0 {
		return berth.StandardSpeed
	}
	if pool := r.speeds[r.places[of.place]]; pool != nil {
		line := berth.Line{Wanted: of.seldom().wanted}
		return pool.SpeedFor(&line.Wants().Requirements)
	}
	return berth.StandardSpeed
}

// find returns the index of a request that is not over. Most changes concern the
// request of the one before.
func (r *recorder) find(id string) int {
	if r.known.id != id {
		r.known = r.index[id]
	}
	return r.known.at
}

// request returns a request that is not over.
func (r *recorder) request(id string) *berth.Request {
	r.find(id)
	return r.known.request
}

// id returns the id of a request.
func (r *recorder) id(request int) string {
	if r.work.Plain != nil {
		return r.work.Plain[request].ID
	}
	return r.work.Requests[request].ID
}

// close notes that a request is over.
func (r *recorder) close(id string) {
	if known, open := r.index[id]; open && r.again {
		r.over = append(r.over, known.request)
	}
	delete(r.index, id)
	delete(r.lacking, id)
	r.known = known{}
}

// of returns the record of a part.
func (r *recorder) of(id string, part int) *record { return &r.records[int(r.first[r.find(id)])+part] }

// open appends the undecided records of a request. A moldable part shows its
// first variant that is short enough for the window until one is chosen.
func (r *recorder) open(request *berth.Request) {
	r.known = known{request.ID, len(r.first), request}
	r.index[request.ID] = r.known
	r.first = append(r.first, int32(len(r.records)))
	for i := range request.Parts {
		part := &request.Parts[i]
		shown := part.Variants[0]
		if at := slices.IndexFunc(part.Variants, func(v berth.Variant) bool {
			return request.Ready.Add(v.Duration) <= request.Deadline
		}); at >= 0 {
			shown = part.Variants[at]
		}
		r.records = append(r.records, record{duration: shown.Duration, npe: shown.NPE, live: int32(len(request.Parts))})
		of := &r.records[len(r.records)-1]
		if wanted := berth.WantedOf(request, i); wanted != nil {
			of.some().wanted = wanted
		}
		if request.IsJob() {
			of.set(isJob)
		}
	}
}

func (r *recorder) accept(reservation *berth.Reservation) {
	for part := range reservation.Allotments {
		of := r.of(reservation.Request.ID, part)
		of.set(accepted)
		r.put(of, &reservation.Allotments[part])
	}
	delete(r.lacking, reservation.Request.ID)
}

// put notes where and when a part is to run.
func (r *recorder) put(of *record, a *berth.Allotment) {
	of.place = r.place(a.Resource)
	of.npe, of.duration = a.NPE, a.End.Sub(a.Start)
	of.start, of.end = a.Start, a.End
	of.set(placed)
	if of.pes = a.PEs; of.rare != nil {
		of.rare.stretches = nil
	}
}

// place returns a pool among the places of the schedule.
func (r *recorder) place(pool berth.ResourceID) uint32 {
	p := place{site: pool.Site}
	if r.pools {
		p.pool = pool.Name
	}
	if r.last == 0 || r.places[r.last] != p {
		if r.last = r.at[p]; r.last == 0 {
			r.last = uint32(len(r.places))
			r.places, r.at[p] = append(r.places, p), r.last
		}
	}
	return r.last
}

// reason returns a reason among those of the schedule.
func (r *recorder) reason(reason berth.Reason) uint16 {
	at := slices.Index(r.reasons, reason)
	if at < 0 {
		at = len(r.reasons)
		r.reasons = append(r.reasons, reason)
	}
	return uint16(at)
}

// shorten notes that a running job has to go before its limit, or before that to
// which it has been extended.
func (r *recorder) shorten(of *record, until berth.Time) {
	if of.seldom().limit == nil {
		limit := of.end
		of.some().limit = &limit
	}
	if until < of.end {
		of.end, of.duration = until, until.Sub(of.start)
	}
}

// end notes that a part has ended now.
func (r *recorder) end(of *record) {
	of.actual = r.now
	of.set(ended)
}

// revoke takes back that a part was accepted.
func (r *recorder) revoke(of *record, reason berth.Reason) {
	of.unset(accepted | placed)
	of.reason, of.place, of.pes = r.reason(reason), 0, berth.PESet{}
	if rare := of.rare; rare != nil {
		rare.promised, rare.limit, rare.transfer, rare.stretches = nil, nil, 0, nil
	}
}

// segment notes that a job was stopped: what it ran is a booking of its own, and
// the job's line tells of what is left.
func (r *recorder) segment(id string, left berth.Duration) {
	of := r.of(id, 0)
	if at, start, end := r.now, of.start, of.end; start < at {
		piece := r.pieces[id]
		piece.number++
		var ran berth.Line
		r.fill(&ran, r.find(id), 0)
		ran.ID, ran.Kind, ran.MovedFrom = fmt.Sprintf("%s/%d", id, piece.number), berth.KindBooking, nil
		ran.Start = &start
		if at > end {
			ran.End, ran.ActualEnd = &end, &at // it had gone on beyond its limit
		} else {
			ran.End, ran.Duration = &at, at.Sub(start)
		}
		r.outages = append(r.outages, ran)
		piece.done += r.speed(of).Work(at.Sub(start))
		r.pieces[id] = piece
	}
	r.revoke(of, "")
	of.duration = left
}

// schedule returns what has become of all.
func (r *recorder) schedule() Schedule {
	r.more = append(berth.DisjointOutages(r.outages), r.stagings()...)
	return r.Schedule
}

// requestError names the request that an error is about.
func requestError(r *berth.Request, err error) error {
	if e, ok := errors.AsType[*berth.Error](err); ok {
		return &berth.Error{Code: e.Code, Field: e.Field, Msg: fmt.Sprintf("request %q: %s", r.ID, e.Msg)}
	}
	return err
}
