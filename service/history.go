package service

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/site"
)

// Happening is one thing that has happened to a reservation, or to a task in it, as it is
// on record.
type Happening struct {
	At   berth.Time
	What change.Kind // or TaskStarted, TaskEnded, TaskRequeued or TaskLeft
	// By is who asked for it; the zero value if no one did: its time had come, or it
	// follows from something else. Its token, address and call are there for operators.
	By Origin
	// Allotments are what it has from then on, if that changed.
	Allotments []berth.Allotment
	Until      berth.Time // of an extension
	Refusal    *berth.Refusal
	// Task is the one that has started or ended, as it was then, and PEs are those that it holds or held, in the PEs of its site; 0 is unknown.
	Task *Task
	PEs  berth.Count
	// Trouble says which task could not follow a promise that moved, and what its owner
	// can do.
	Trouble string
	Site    string // of Made and Unmade
	// Out is what went out of use, or is known from then on to do so, of the place that it had,
	// where it follows from that.
	Out []PoolOutage
}

// follows are the changes that may follow from an outage.
var follows = map[change.Kind]bool{change.Moved: true, change.Resized: true, change.Failed: true, change.Lost: true, change.Requeued: true}

// untold are the changes that are steps of others, or of no interest to people.
var untold = map[change.Kind]bool{change.Vacated: true, change.Emitted: true, change.Settled: true, change.Planned: true}

// History is what is on record about a reservation.
type History struct {
	List []Happening
	// Since is when the records begin that are still kept, where older ones were dropped
	// and some of them may have been about the reservation; else 0.
	Since berth.Time
	// Delivered is what was given of the last promise; nil if it was at no managed site, or
	// its time has not come.
	Delivered *Delivered
}

// History returns what has happened to a reservation since the beginning of the journal,
// and how many records were looked at. The error is NotFound if there is none that
// the principal may see. Cost: O(records since its id was made; all that are kept for an id that the service has not made), beside the loop.
func (h *Host) History(ctx context.Context, by Principal, id string) (past History, looked int, err error) {
	r, err := h.Get(ctx, by, id)
	if err != nil {
		return past, 0, err
	}
	for {
		begin := journal.Position{}
		if c, drops := h.options.Journal.(journal.Compactor); drops {
			if begin, err = c.Begin(ctx); err != nil {
				return past, looked, err
			}
		}
		from, n := begin.Number+1, 0
		if made := madeAt(id); made > 0 {
			from, err = h.recordSince(ctx, from, min(made, r.Created)-idSlack, fewRecords)
		}
		if err == nil {
			past, n, err = h.historyFrom(ctx, by, id, from)
		}
		looked += n
		if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.NotFound {
			continue // what was to be read next has been dropped meanwhile
		}
		if begin.Number == 0 || from > begin.Number+1 || past.Since < r.Created {
			past.Since = 0
		}
		return past, looked, err
	}
}

// idSlack is how much earlier than an id was made records of it are looked for: ids are made by the same clock, which may be put back.
const idSlack = 60

// fewRecords are read faster than it is found out where to begin.
const fewRecords = 4096

// madeAt returns when the service made an id, or that of the array or the workflow that it begins with; 0 if it has not.
func madeAt(id string) berth.Time {
	own, err := ulid.ParseStrict(id[:min(len(id), ulid.EncodedSize)])
	if err != nil {
		return 0
	}
	return berth.Time(own.Timestamp().Unix())
}

// recordSince returns the number of a record from one on before which none is of a time or later, and which has fewer than some such behind it that
// are earlier. Records are in the order of time. Cost: a look at the journal for each halving of their number down to these few.
func (h *Host) recordSince(ctx context.Context, from uint64, since berth.Time, few uint64) (uint64, error) {
	m, err := h.seen()
	if err != nil {
		return from, err
	}
	for high := m.number; high > from+few; {
		middle := from + (high-from)/2
		earlier := false
		for rec, err := range h.options.Journal.Read(ctx, middle) {
			if err != nil {
				return from, err
			}
			earlier = rec.At < since
			break
		}
		if earlier {
			from = middle
		} else {
			high = middle
		}
	}
	return from, nil
}

// historyFrom reads the records from one on. Since is the time of the first of them.
func (h *Host) historyFrom(ctx context.Context, by Principal, id string, from uint64) (past History, looked int, err error) {
	past.Since = h.Now()
	var decoder record.Decoder
	name := []byte(id)
	given := tally{managed: func(site string) bool { return h.sites[site] != nil }, id: id, there: map[string]bool{}}
	for rec, err := range h.options.Journal.Read(ctx, from) {
		if err != nil {
			return past, looked, err
		}
		if looked++; looked == 1 {
			past.Since = rec.At
		}
		isOfSite := len(rec.Event) > 0 && (rec.Event[0] == tasksInput || rec.Event[0] == madeInput)
		if !bytes.Contains(rec.Changes, name) && (!isOfSite || !bytes.Contains(rec.Event, name)) {
			continue
		}
		p, err := parsePast(&rec, &decoder)
		if err != nil {
			return past, looked, err
		}
		news := p.about(id, by)
		for i := range news {
			if follows[news[i].What] && news[i].By == (Origin{}) {
				for _, o := range p.outages(placeOf(past.List), by) {
					news[i].Out = append(news[i].Out, h.withNodes(o))
				}
			}
		}
		past.List = append(append(past.List, news...), p.aboutTasks(id, by)...)
		given.follow(&p)
	}
	past.Delivered = given.result(h.Now())
	return past, looked, ctx.Err()
}

// about returns what a record says about a reservation. Who asked for something else is
// not told.
func (p *past) about(id string, by Principal) (list []Happening) {
	var who Origin
	if p.in.asked.id == id {
		who = p.in.asked.by
		if !by.Can(Operator) {
			who = Origin{User: who.User, Role: who.Role}
		}
	}
	if news, is := p.in.delivery.about(id); is && !news.isOfProposal() && by.Sites.Has(p.in.delivery.site) {
		h := Happening{At: p.at, What: Unmade, Site: p.in.delivery.site}
		if news.generation > 0 {
			h.What = Made
		}
		list = append(list, h)
	}
	for i := range p.changes {
		x := &p.changes[i]
		if x.ID != id || untold[x.Kind] {
			continue
		}

		h := Happening{At: p.at, What: x.Kind, Until: x.Until, Refusal: x.Refusal, Allotments: x.Moved}
		if x.Reservation != nil {
			h.Allotments = x.Reservation.Allotments
		}
		if asksFor[x.Kind] {
			h.By = who
		}
		if !by.sees(&berth.Request{User: by.User}, h.Allotments, h.Refusal) && by.Can(User) {
			continue // it was at a site that they may not see
		}
		list = append(list, h)
	}
	return list
}

// placeOf returns the place that a reservation has after what has happened to it; nil if that is
// not known.
func placeOf(list []Happening) []berth.Allotment {
	for _, x := range slices.Backward(list) {
		if len(x.Allotments) > 0 {
			return x.Allotments
		}
	}
	return nil
}

// outages returns what a record has go out of use of a place, all of it if that is not known.
func (p *past) outages(place []berth.Allotment, by Principal) (list []berth.Outage) {
	for i := range p.changes {
		x := &p.changes[i]
		if x.Kind != change.WentDown && x.Kind != change.OutageBegan || !by.Sites.Has(x.Outage.Resource.Site) {
			continue
		}
		hit := func(a berth.Allotment) bool {
			return a.Resource == x.Outage.Resource && (a.PEs.Empty() || a.PEs.Overlap(x.Outage.PEs) > 0)
		}
		if len(place) == 0 || slices.ContainsFunc(place, hit) {
			list = append(list, *x.Outage)
		}
	}
	return list
}

// aboutTasks returns what a record says about the tasks of a reservation.
func (p *past) aboutTasks(id string, by Principal) (list []Happening) {
	look := p.in.tasks
	if look == nil || !by.Sites.Has(look.site) {
		return nil
	}
	for i := range look.events {
		e := &look.events[i]
		what := e.what
		if what == "" && e.task.Stage == site.Waiting {
			what = TaskRequeued // which is told here alone
		}
		if e.reservation == id && what != "" {
			n := e.news()
			list = append(list, Happening{At: p.at, What: change.Kind(what), Task: n.task, PEs: e.pes, Trouble: n.trouble})
		}
	}
	return list
}

// asksFor are the changes that callers ask for; the others follow from them, or from
// the time.
var asksFor = map[change.Kind]bool{
	change.Queued: true, change.Withdrawn: true, change.Confirmed: true, change.Extended: true, change.Modified: true, change.ChangeRefused: true,
	change.CheckedIn: true, change.Cancelled: true, change.Ended: true,
}
