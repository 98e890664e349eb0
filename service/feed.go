package service

import (
	"cmp"
	"context"
	"slices"

	"github.com/berth-hpc/berth"
)

// What people's calendars show of the past: what has ended for a month, and what was not to be for a week,
// in which a program that asks now and then learns of it.
const (
	feedPast berth.Duration = 30 * 86_400
	feedGone berth.Duration = 7 * 86_400
)

// MaxFeed is the most of promises and outages that a feed has. Programs read the whole again each time.
const MaxFeed = 2000

// FeedGeneration says whether a feed may be otherwise. It means nothing after a restart.
type FeedGeneration struct {
	Record uint64 // that changed it last
	Ground uint64 // how often nodes of sites became others
}

// Feed is what a calendar shows.
type Feed struct {
	Generation FeedGeneration
	// Now is when it was so, and Until from when on it may be otherwise though nothing happens.
	Now, Until berth.Time
	Site       string // empty of a user's own promises
	Promises   []FeedPromise
	Workflows  []FeedWorkflow
	Outages    []FeedOutage
	// Left is how many promises and outages are left out, as there are more than MaxFeed: those that ended
	// first, then those that begin last.
	Left int
}

// FeedPromise is a promise, or was one.
type FeedPromise struct {
	// Reservation has, of another user's, nothing but its state, its version, its times and its place; of
	// Sites the names alone.
	Reservation
	Yours  bool // of who asks; of all users for an operator
	Number uint32
	// Start and End are when its parts hold PEs, or held them if it is over; of one that never
	// began when they would have.
	Start, End berth.Time
	// Kinds are the adapters of the sites of its allotments, empty of sites without.
	Kinds []string
}

// FeedWorkflow is a workflow, or was one.
type FeedWorkflow struct {
	Workflow
	// Start and End are when its tasks hold PEs, or held them; of one that never began when they would have.
	Start, End berth.Time
	// Touched is when it or the reservation of a task was changed last.
	Touched berth.Time
}

// FeedOutage is an outage that is announced, goes on, or is over.
type FeedOutage struct {
	PoolOutage            // From is its beginning also once it has begun
	Changed    berth.Time // when it was changed last
	Changes    uint64
	Ended      berth.Time // 0 of one that is announced or goes on; before From of one that was called off
}

// feedRecords remembers which records changed what feeds show.
type feedRecords struct {
	ofUser map[string]uint64
	ofSite map[string]uint64
	base   uint64 // of others it is at most this
	outage uint64
	anew   uint64 // how often all was shown anew without a record
}

func (f *feedRecords) user(name string, number uint64) {
	if f.ofUser == nil {
		f.ofUser, f.ofSite = map[string]uint64{}, map[string]uint64{}
	}
	f.ofUser[name] = number
}

// wrote notes that a card is, or was, as a record has it.
func (f *feedRecords) wrote(k *card, number uint64) {
	if k == nil || k.request == nil {
		return
	}
	f.user(k.request.User, number)
	if k.promise == nil {
		return
	}
	for i := range k.promise.Allotments {
		f.ofSite[k.promise.Allotments[i].Resource.Site] = number
	}
}

func (f *feedRecords) wroteFlow(w *flowCard, number uint64) {
	if w != nil && w.w != nil {
		f.user(w.w.User, number)
	}
}

// wroteAll notes what a record has changed for everybody.
func (f *feedRecords) wroteAll(was *model, s *shown) {
	if s.config != was.config {
		f.base = s.number
	}
	if len(s.notes) != len(was.notes) || len(s.notes) > 0 && &s.notes[0] != &was.notes[0] {
		f.outage = s.number
	}
}

// feedRecord returns the record that changed a feed last, or a later one, and how often all was shown anew.
func (d *display) feedRecord(user, site string) (number, anew uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := &d.feeds; site != "" {
		return max(f.base, f.outage, f.ofSite[site]), f.anew
	}
	return max(d.feeds.base, d.feeds.ofUser[user]), d.feeds.anew
}

// FeedGeneration returns the generation of a feed: of what a user has, or with a site of all that is promised there
// and what is out of use. Errors: Denied for a viewer who asks for their own, NotFound for a site that is none
// or that they may not see. Cost: O(sites).
func (h *Host) FeedGeneration(by Principal, site string) (FeedGeneration, error) {
	m, err := h.seen()
	switch {
	case err != nil:
		return FeedGeneration{}, err
	case site == "" && !by.Can(User):
		return FeedGeneration{}, berth.Errorf(berth.Denied, "role", "a %s has no promises; name a site", by.Role)
	case site != "" && !by.Can(Viewer):
		return FeedGeneration{}, berth.Errorf(berth.Denied, "role", "%q is no role; want viewer, user or operator", by.Role)
	case site != "" && (!by.Sites.Has(site) || !slices.ContainsFunc(m.config.Sites, func(s berth.Site) bool { return s.Name == site })):
		return FeedGeneration{}, noSite(site)
	}
	number, anew := h.display.feedRecord(by.User, site)
	return FeedGeneration{number, h.grounds.Load() + anew}, nil
}

// Feed returns a feed, and how many reservations and tasks were looked at. The errors are those of FeedGeneration, and
// that of ctx. Cost: O(remembered requests) and O(log n) for each one of the feed, beside the loop.
func (h *Host) Feed(ctx context.Context, by Principal, site string) (Feed, int, error) {
	generation, err := h.FeedGeneration(by, site) // before the model, which may be newer then
	if err != nil {
		return Feed{}, 0, err
	}
	m, err := h.seen()
	if err != nil {
		return Feed{}, 0, err
	}
	b := feedBuilder{host: h, model: m, by: by, feed: Feed{Generation: generation, Now: h.Now(), Until: berth.Forever, Site: site}}
	if site == "" {
		b.workflows()
	} else {
		b.outages()
	}
	if err := b.cards(ctx); err != nil {
		return Feed{}, 0, err
	}
	b.choose()
	return b.feed, b.looked, nil
}

// feedBuilder gathers a feed.
type feedBuilder struct {
	host   *Host
	model  *model
	by     Principal
	feed   Feed
	looked int
	inFlow map[string]bool // workflows that are shown, whose tasks are not
	found  []feedEntry
}

// feedEntry is a promise or an outage that may be shown.
type feedEntry struct {
	card       *card
	note       *outageNote // if it is no promise
	start, end berth.Time
	until      berth.Time // from when on it is not shown; Forever of what is not over
}

// keeps reports whether something that was over at a time is still shown, and notes when that is otherwise.
func (b *feedBuilder) keeps(over berth.Time, gone bool) (until berth.Time, shown bool) {
	until = over.Add(feedPast)
	if gone {
		until = over.Add(feedGone)
	}
	return until, until > b.feed.Now
}

func (b *feedBuilder) cards(ctx context.Context) error {
	b.model.cards.Scan(func(k *card) bool {
		b.looked++
		if e, is := b.entry(k); is {
			b.found = append(b.found, e)
		}
		return b.looked%1024 != 0 || ctx.Err() == nil
	})
	return ctx.Err()
}

// entry returns what may be shown of a card; false if nothing is.
func (b *feedBuilder) entry(k *card) (e feedEntry, is bool) {
	if b.feed.Site == "" && k.request.User != b.by.User {
		return e, false
	}
	p := k.promise
	if p == nil || len(p.Allotments) == 0 || k.state() == Pending || k.request.IsJob() || b.host.shadowed(k.request) {
		return e, false
	}
	if b.feed.Site == "" && (!k.seenBy(b.by) || k.request.Task != nil && b.inFlow[k.request.Task.Workflow]) {
		return e, false
	}
	if b.feed.Site != "" && !slices.ContainsFunc(p.Allotments, func(a berth.Allotment) bool { return a.Resource.Site == b.feed.Site }) {
		return e, false
	}
	e = feedEntry{card: k, start: p.Start(), end: p.End(), until: berth.Forever}
	if k.end == "" {
		return e, true
	}
	began := k.until > e.start
	if began {
		e.end = min(e.end, k.until)
	}
	var shown bool
	e.until, shown = b.keeps(k.until, k.end != Finished)
	return e, shown
}

func (b *feedBuilder) workflows() {
	b.inFlow = map[string]bool{}
	b.model.flows.Scan(func(f *flowCard) bool {
		b.looked++
		if f.w.User != b.by.User {
			return true
		}
		b.looked += len(f.tasks)
		if !f.seenBy(b.by, b.model.card) {
			return true
		}
		w := FeedWorkflow{Workflow: f.view(b.model.card), Touched: f.changed}
		if !w.span() {
			return true
		}
		for i := range f.tasks {
			if k := f.cardOf(i, b.model.card); k != nil {
				w.Touched = max(w.Touched, k.changed)
			}
		}
		b.inFlow[f.id] = true
		if w.State.Over() {
			until, shown := b.keeps(w.Workflow.End, w.State == FlowCancelled || w.State == FlowExpired)
			if !shown {
				return true
			}
			b.feed.Until = min(b.feed.Until, until)
		}
		b.feed.Workflows = append(b.feed.Workflows, w)
		return true
	})
}

// span finds out when the tasks of a workflow hold PEs; false if none ever did or would have.
func (w *FeedWorkflow) span() bool {
	var is, was berth.Interval
	for i := range w.Tasks {
		t := &w.Tasks[i]
		is, was = around(is, t.Start, t.End), around(was, t.PlannedStart, t.PlannedEnd)
	}
	if is.Start == is.End {
		is = was
	}
	w.Start, w.End = is.Start, is.End
	return is.Start < is.End
}

// around returns an interval with another one in it.
func around(i berth.Interval, start, end berth.Time) berth.Interval {
	switch {
	case start >= end:
		return i
	case i.Start == i.End:
		return berth.Interval{Start: start, End: end}
	}
	return berth.Interval{Start: min(i.Start, start), End: max(i.End, end)}
}

func (b *feedBuilder) outages() {
	for i := range b.model.notes {
		n := &b.model.notes[i]
		if n.Resource.Site != b.feed.Site {
			continue
		}
		e := feedEntry{note: n, start: n.From, end: n.Until, until: berth.Forever}
		if n.Ended != 0 {
			calledOff := n.Ended <= n.From
			if !calledOff {
				e.end = min(n.Until, n.Ended)
			}
			var shown bool
			if e.until, shown = b.keeps(n.Ended, calledOff); !shown {
				continue
			}
		}
		b.found = append(b.found, e)
	}
}

// choose fills the feed with as much of what was found as it may have: first what is not over, by its start, then
// what ended last. It is shown by start, outages and promises apart.
func (b *feedBuilder) choose() {
	byStart := func(x, y feedEntry) int {
		return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.end, y.end), cmp.Compare(x.id(), y.id()), cmp.Compare(x.number(), y.number()))
	}
	slices.SortFunc(b.found, func(x, y feedEntry) int {
		if xOver, yOver := x.until < berth.Forever, y.until < berth.Forever; xOver || yOver {
			switch {
			case !xOver:
				return -1
			case !yOver:
				return 1
			}
			return cmp.Or(cmp.Compare(y.end, x.end), byStart(x, y))
		}
		return byStart(x, y)
	})
	if len(b.found) > MaxFeed {
		for _, e := range b.found[MaxFeed:] { // what takes its place once it is gone, or is counted no more
			b.feed.Until = min(b.feed.Until, e.until)
		}
		b.feed.Left = len(b.found) - MaxFeed
		b.found = b.found[:MaxFeed]
	}
	slices.SortFunc(b.found, byStart)
	for i := range b.found {
		e := &b.found[i]
		b.feed.Until = min(b.feed.Until, e.until)
		if e.note != nil {
			o := FeedOutage{PoolOutage: b.host.withNodes(e.note.Outage), Changed: e.note.Changed, Changes: e.note.Changes, Ended: e.note.Ended}
			b.feed.Outages = append(b.feed.Outages, o)
			continue
		}
		b.feed.Promises = append(b.feed.Promises, b.promise(e))
	}
}

func (e *feedEntry) id() string {
	if e.card == nil {
		return ""
	}
	return e.card.id
}

func (e *feedEntry) number() uint64 {
	if e.note == nil {
		return 0
	}
	return e.note.Number
}

// promise returns what is shown of a promise.
func (b *feedBuilder) promise(e *feedEntry) FeedPromise {
	found := e.card.find()
	p := FeedPromise{
		Reservation: b.host.named(&found), Yours: e.card.seenBy(b.by), Number: uint32(e.card.promise.Sequence) &^ OutageBit, Start: e.start, End: e.end,
	}
	if !p.Yours {
		r := p.Reservation
		p.Reservation = Reservation{State: r.State, Version: r.Version, Missing: r.Missing, Created: r.Created, Changed: r.Changed}
		for i := range r.Allotments {
			if r.Allotments[i].Resource.Site != b.feed.Site {
				continue // what is elsewhere is no matter of this feed
			}
			p.Allotments = append(p.Allotments, r.Allotments[i])
			var nodes []string
			if i < len(r.Nodes) {
				nodes = r.Nodes[i]
			}
			p.Nodes = append(p.Nodes, nodes)
		}
		return p
	}
	for i := range p.Sites { // how far a site is no matter of calendars, and changes without a record
		p.Sites[i].Made, p.Sites[i].Trouble = false, ""
	}
	p.Kinds = make([]string, len(p.Allotments))
	for i := range p.Allotments {
		if k := b.host.sites[p.Allotments[i].Resource.Site]; k != nil {
			p.Kinds[i] = k.manager.Kind
		}
	}
	return p
}
