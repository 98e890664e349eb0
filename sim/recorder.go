package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// recorder turns the engine's changes into the lines of a schedule.
type recorder struct {
	lines []berth.Line
	first map[string]int // index of a request's first line
	pools bool           // lines name the pool, since a site has several
}

func newRecorder(config *engine.Config, requests []berth.Request) *recorder {
	return &recorder{
		lines: make([]berth.Line, 0, len(requests)),
		first: make(map[string]int, len(requests)),
		pools: slices.ContainsFunc(config.Sites, func(s berth.Site) bool { return len(s.Pools) > 1 }),
	}
}

// record takes in the changes of one step.
func (r *recorder) record(changes []engine.Change) {
	for i := range changes {
		c := &changes[i]
		switch c.Kind {
		case engine.Queued:
			r.open(c.Request)
		case engine.Accepted:
			r.accept(c.Reservation)
		case engine.Refused:
			for part := range c.Request.Parts {
				r.lines[r.first[c.ID]+part].Reason = c.Refusal.Reason
			}
		case engine.Started:
			for part, pes := range c.PEs {
				if !pes.Empty() {
					r.lines[r.first[c.ID]+part].PEs = pes
				}
			}
		}
	}
}

// open appends the undecided lines of a request. A moldable part shows its
// first variant that is short enough for the window until one is chosen.
func (r *recorder) open(request *berth.Request) {
	r.first[request.ID] = len(r.lines)
	for i := range request.Parts {
		part := &request.Parts[i]
		shown := part.Variants[0]
		if at := slices.IndexFunc(part.Variants, func(v berth.Variant) bool {
			return request.Ready.Add(v.Duration) <= request.Deadline
		}); at >= 0 {
			shown = part.Variants[at]
		}
		line := berth.Line{
			ID: request.ID, Kind: berth.KindRequest, User: request.User,
			Arrival: request.Arrival, Ready: request.Ready, Deadline: request.Deadline,
			Duration: shown.Duration, NPE: shown.NPE,
		}
		if len(part.Variants) > 1 {
			line.Variants = part.Variants
		}
		if len(request.Parts) > 1 {
			line.Part = i + 1
		}
		r.lines = append(r.lines, line)
	}
}

func (r *recorder) accept(reservation *berth.Reservation) {
	for part := range reservation.Allotments {
		a := &reservation.Allotments[part]
		line := &r.lines[r.first[reservation.Request.ID]+part]
		line.Accepted = true
		line.Site = a.Resource.Site
		if r.pools {
			line.Pool = a.Resource.Name
		}
		line.NPE, line.Duration = a.NPE, a.End.Sub(a.Start)
		line.Start, line.End = &a.Start, &a.End
		line.PEs = a.PEs
	}
}

// requestError names the request that an error is about.
func requestError(r *berth.Request, err error) error {
	if e, ok := errors.AsType[*berth.Error](err); ok {
		return &berth.Error{Code: e.Code, Field: e.Field, Msg: fmt.Sprintf("request %q: %s", r.ID, e.Msg)}
	}
	return err
}
