package service

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidwall/btree"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

// Core is the service without the world: an engine, and what clients want to
// know beyond what the engine keeps. One input at a time goes in, a record comes
// out; nothing in it reads a clock or waits for anything. Not safe for
// concurrent use.
type Core struct {
	engine   *engine.Engine
	config   engine.Config
	position journal.Position // of the last record
	// configured is the record that put the configuration into force, 0 of one from before all that are followed.
	configured uint64
	version    string        // of the program, for records
	deciding   *engine.Event // what is being applied, until its record is sealed
	stored     uint64        // the record of the snapshot that Recover began with, 0 if with none

	cards *btree.BTreeG[*card] // by id
	hint  btree.PathHint       // where the last one was: new ones come behind it
	key   card                 // with which cards are looked for
	asked string               // the id last asked for: changes to a request come together
	last  *card                // what is known of it
	over  []string             // ids of those that are over, in the order in which they ended

	overCost int64 // what they take, in bytes
	keep     int   // as many of them are remembered
	keys     keys

	shadows map[string]*shadow    // by site
	looks   uint64                // that were taken note of since it was opened
	tasks   map[string]*siteTasks // by site, of those that the site lists
	// taskEnds are when tasks of workflows ended by their sites, by reservations that go on.
	taskEnds map[string]berth.Time
	// delivered are the generations of live promises that sites have, by site and id; 0 where
	// a site has none.
	delivered map[string]map[string]uint64
	flows     flows
	series    seriesBook
	hooks     hooks

	maintenance map[string]*Maintenance // by name

	asks func(*berth.Reservation) bool // whether a site is asked before a promise is told; nil if none is

	// What a display follows, if one does: then the cards of earlier records are not
	// written any more.
	shows       bool
	fresh       []*card        // cards written since takeShown, in order; one without a request is forgotten
	seriesFresh []*seriesCard  // series written since then; one without a series is forgotten
	flowed      []*flowCard    // workflows written since then, in order; one without a workflow is forgotten
	touches     []touch        // what holds PEs otherwise since then
	arrived     []string       // reservations that sites have otherwise since then
	outages     []berth.Outage // as they are; nil if they have to be asked for
	public      *engine.Config // a copy of config; nil if there is none yet
	notes       outageNotes

	found struct { // the promise that was asked of the engine last, for one list of changes
		id      string
		promise *berth.Reservation
	}
	// Memory that is used again for the next record.
	done     step
	news     []news
	flowNews []flowNews
	written  []byte
	event    []byte
	sealer   journal.Sealer

	// apart says that records are sealed elsewhere: then the position has no hash, and later writes what
	// the last record says, if that is much.
	apart bool
	later *laterRecord

	diarist diarist // of what is drawn

	freshTasks freshTasks // of the record that was made last
	// lacking is how many PEs the promises that the last record resized lacked before, by id, of those that lacked some.
	lacking map[string]berth.Count
}

// card is what is known of one request: live, or over and still remembered. One without a
// request says that it is forgotten.
type card struct {
	id      string
	request *berth.Request
	// promise is the reservation as it last was; nil while nothing is promised.
	// It is shared with changes and never written.
	promise *berth.Reservation
	end     State // how it ended; empty while it is live
	refusal *berth.Refusal
	version uint64
	created berth.Time
	changed berth.Time
	until   berth.Time // when it ended; that may have been noticed later
	written uint64     // the record that wrote it last
	// asking says that its sites are asked before what is promised is told.
	asking bool
	// cause says for people why what was promised is as it is; empty since a restart.
	cause string
	// answers is the key whose answer is the card as it is, if one is.
	answers *keyed
}

func newCore(config engine.Config, version string, keep int) (*Core, error) {
	e, err := engine.New(config)
	if err != nil {
		return nil, err
	}
	return &Core{engine: e, config: config, version: version, cards: newCards(), keep: keep, keys: newKeys(), shadows: map[string]*shadow{}, tasks: map[string]*siteTasks{}, taskEnds: map[string]berth.Time{}, delivered: map[string]map[string]uint64{}, flows: newFlows(), series: newSeriesBook()}, nil
}

func newCards() *btree.BTreeG[*card] {
	return btree.NewBTreeGOptions(func(a, b *card) bool { return a.id < b.id }, btree.Options{NoLocks: true})
}

// card returns what is known of an id, nil if nothing is.
func (c *Core) card(id string) *card {
	if c.asked != id || id == "" {
		c.listFresh()
		c.asked, c.key.id = id, id
		c.last, _ = c.cards.GetHint(&c.key, &c.hint)
	}
	return c.last
}

// Step applies an event under the key that it came with, if any. The record says
// what came of it; it is nil if nothing did. The error concerns the event alone,
// as Engine.Apply has it. What follows from the record must not be told to
// a caller before the record is durable.
func (c *Core) Step(now berth.Time, event *engine.Event, key Key) (rec *journal.Record, notices []Notice, err error) {
	s := c.apply(now, event)
	for i := range s.news {
		notices = append(notices, s.news[i].notice())
	}
	return c.seal(s, &asked{key: key, id: subject(event)}), notices, s.err
}

// flowNews is what a change says of a workflow.
type flowNews struct {
	what string
	flow *FlowNews
}

// step is an event that has been applied and is not on record yet.
type step struct {
	now     berth.Time
	event   *engine.Event // nil if nothing was decided
	changes []change.Change
	effects []change.Effect
	news    []news
	flows   []news // of workflows, whose numbers are behind those of news
	err     error  // of the event
}

// apply applies an event. The step must be sealed next, and is another one after the
// next apply; its news are the caller's.
func (c *Core) apply(now berth.Time, event *engine.Event) *step {
	if c.deciding != nil {
		panic("service: a step within a step")
	}
	s := &c.done
	*s = step{now: now, event: event, changes: again(s.changes), effects: again(s.effects)}
	c.deciding = event
	if s.changes, s.effects, s.err = c.engine.AppendApply(s.changes, s.effects, now, event); s.err != nil && len(s.changes) == 0 {
		s.event = nil
	}
	number := c.position.Number + 1
	c.flowNews = c.flowNews[:0]
	s.news = c.follow(number, now, s.changes, true)
	s.flows = c.newsOfFlows(number, now, len(s.news))
	return s
}

// newsOfFlows returns what the changes of a record say of workflows, behind other news of it.
func (c *Core) newsOfFlows(number uint64, now berth.Time, others int) (list []news) {
	for i := range c.flowNews {
		n := &c.flowNews[i]
		list = append(list, news{number: number<<noticeBits | uint64(others+i), at: now, what: n.what, flow: n.flow})
	}
	return list
}

// mostKept is for how many items memory is kept: more than nearly all records have.
const mostKept = 1024

// again empties a list whose memory is for the next one.
func again[T any](list []T) []T {
	if cap(list) > mostKept {
		return nil
	}
	clear(list)
	return list[:0]
}

// seal returns the record of a step with who asked for it and the answers that are
// given, nil if there is nothing to be said.
func (c *Core) seal(s *step, a *asked) *journal.Record {
	defer func() { c.deciding = nil }()
	if s.err != nil && len(a.told) == 0 {
		a.key = Key{} // it may be tried again
	}
	if len(s.changes) == 0 && a.key == (Key{}) && len(a.told) == 0 {
		return nil
	}
	rec := &journal.Record{At: s.now, Version: c.version}
	if size := s.size(); c.apart && size > mostWritten {
		c.later = &laterRecord{laterPayloads(s, a), size}
	} else {
		c.payloads(rec, s, a)
	}
	c.place(rec)
	c.heard(s.now, a)
	c.askNoMore(rec.Number, a.over)
	c.owe(rec.Number, s.now, s.changes)
	return rec
}

// place gives a record its place behind the last one.
func (c *Core) place(rec *journal.Record) {
	if c.apart {
		rec.Number = c.position.Number + 1
		c.position = journal.Position{Number: rec.Number}
		return
	}
	c.position = c.sealer.Seal(rec, c.position)
}

// mostWritten is how large a record may be, in bytes, that is written in the loop: to write a large one takes longer than to decide about it.
const mostWritten = 150 << 10

// size returns about how many bytes the record of a step takes.
func (s *step) size() int {
	const each = 150 // of a change
	size := each * len(s.changes)
	switch {
	case s.event == nil:
	case s.event.Request != nil:
		size += int(requestCost(s.event.Request))
	case s.event.Series != nil: // its request is in what was asked, in what came of it, and in the answer
		size += 3 * int(requestCost(&s.event.Series.Request))
	}
	if s.event != nil {
		for i := range s.event.Requests { // in what was asked and in what came of it
			size += 2 * int(requestCost(&s.event.Requests[i]))
		}
	}
	return size
}

// payloads writes what a record says, in one piece of memory.
func (c *Core) payloads(rec *journal.Record, s *step, a *asked) {
	const most = 1 << 16 // bytes that are kept for the next record: more than nearly all take
	a.event = c.event[:0]
	all := appendInput(c.written[:0], s.event, a)
	if c.event = a.event; cap(c.event) > most {
		c.event = nil
	}
	event := len(all)
	all = record.AppendChanges(all, s.changes)
	changes := len(all)
	all = record.AppendEffects(all, s.effects)
	if c.written = all; cap(all) > most {
		c.written = nil
	}
	if c.written != nil {
		all = slices.Clone(all)
	}
	rec.Event, rec.Changes, rec.Effects = all[:event:event], all[event:changes:changes], all[changes:]
}

// tell has an outcome go on record with the step that has been applied, under a key; under the
// one that was asked under if the name is empty.
func (c *Core) tell(a *asked, name keyName, o *outcome) {
	if name == a.key.name() {
		name = keyName{}
	}
	t, r := told{name: name}, &o.Answer.Reservation
	if o.Failed == nil && o.Flow == nil && o.Series == nil && c.leaves(&o.Answer) {
		if t.version, t.charge = r.Version, r.Charge; name != (keyName{}) || r.ID != a.id {
			t.id = r.ID
		}
	} else if o.later != nil {
		t.late = newLateOutcome(o)
	} else {
		t.outcome = o.bytes()
	}
	a.told = append(a.told, t)
}

// leaves reports whether an answer is a reservation as the step leaves it. What is over may be
// forgotten before its key is, and of what the step does not change others may be looking
// at the card.
func (c *Core) leaves(answer *Answer) bool {
	r := &answer.Reservation
	if answer.Refusal != nil || len(answer.Offers) > 0 {
		return false
	}
	k := c.card(r.ID)
	return k != nil && k.promise != nil && k.end == "" && !k.asking && k.version == r.Version && k.written == c.position.Number+1
}

// heard remembers what was asked under a key, and the answers, after what the record
// changes.
func (c *Core) heard(now berth.Time, a *asked) {
	own := c.keys.add(now, a.key, a.id)
	for i := range a.told {
		t, k := &a.told[i], own
		if t.name != (keyName{}) {
			k = c.keys.of(t.name)
		}
		switch {
		case t.late != nil:
			c.keys.answerLate(k, t.late)
		case len(t.outcome) > 0:
			c.keys.answer(k, t.outcome)
		default:
			c.keys.refer(k, c.card(cmp.Or(t.id, a.id)), t.version, t.charge)
		}
	}
}

// See notes what a look at a site has shown, and returns the record of it.
func (c *Core) See(now berth.Time, s sighting) *journal.Record {
	rec := &journal.Record{At: now, Version: c.version, Event: appendSighting(nil, &s)}
	c.place(rec)
	c.see(now, &s)
	return rec
}

// Configure puts another configuration into force, with a record of it. It is
// nil if that is the one in force.
func (c *Core) Configure(now berth.Time, config engine.Config) (*journal.Record, error) {
	if c.position.Number > 0 && sameConfig(&c.config, &config) {
		return nil, nil
	}
	if err := c.configure(config); err != nil {
		return nil, err
	}
	rec := &journal.Record{At: now, Version: c.version, Event: appendConfig(nil, &config)}
	c.place(rec)
	return rec, nil
}

// configure carries everything that is live over to an engine of another
// configuration. The error is of code Invalid: a reservation has no place in it.
func (c *Core) configure(config engine.Config) error {
	e, err := engine.Restore(config, c.engine.Snapshot())
	if err != nil {
		return err
	}
	c.engine, c.config, c.public, c.configured = e, config, nil, c.position.Number+1
	if !c.shows { // else others look at the cards
		c.cards.Scan(func(k *card) bool {
			if r := e.Promise(k.id); r != nil && k.end == "" {
				k.id, k.request, k.promise = r.Request.ID, r.Request, r
			}
			return true
		})
	}
	return nil
}

func sameConfig(a, b *engine.Config) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && slices.Equal(x, y)
}

// ends says how a request ended if the last change to it is of that kind.
var ends = map[change.Kind]State{
	change.Refused: Refused, change.Withdrawn: Cancelled, change.Cancelled: Cancelled, change.Expired: Expired,
	change.NoShow: NoShow, change.Failed: Failed, change.Lost: Failed, change.Rejected: Failed, change.Ended: Finished,
}

// noticeBits is how far a record's number stands above that of a notice in it:
// a step makes fewer than 2^20 changes to requests.
const noticeBits = 20

// follow brings the cards up to date with changes that the engine has made, and
// says what is new if it is to be told. Of several changes to one request each is
// told.
func (c *Core) follow(number uint64, now berth.Time, changes []change.Change, told bool) []news {
	c.found.id, c.found.promise = "", nil
	c.freshTasks = freshTasks{}
	c.lacking = c.lackingBefore(changes)
	list := again(c.news)
	if told && len(changes) > mostKept { // in one go: a notice is large
		list = make([]news, 0, len(changes)/2+mostKept)
	}
	if told {
		c.diarist.begin(number)
	}
	at := now // of the change: what was due while the service was stopped is decided as of then
	for i := range changes {
		x := &changes[i]
		switch x.Kind {
		case change.Advanced:
			at = min(x.Now, now)
		case change.WentDown, change.CameUp, change.OutageBegan:
			c.outages = nil
			c.notes.follow(x, at)
			if told {
				c.touchOutage(x, now)
			}
		case change.Accepted, change.Refused, change.SeriesPromised, change.SeriesRefused, change.SeriesProlonged:
			c.followSeries(now, x, number)
		}
		if flow := c.followFlow(now, x, number); flow != nil {
			if told {
				c.flowNews = append(c.flowNews, flowNews{what: string(x.Kind), flow: flow})
			}
			c.hooks.followFlow(i, x.Kind, flow)
		}
		if x.ID == "" && x.Kind != change.Accepted {
			continue
		}
		k := c.freshTasks.take(x)
		if k == nil {
			k = c.card(x.ID)
		} else {
			*k = card{id: x.ID, request: x.Request, created: now}
			c.wrote(k, number)
		}
		if k == nil {
			if x.Kind != change.Queued {
				continue // forgotten: it cannot be asked for any more
			}
			k = &card{id: x.ID, request: x.Request, created: now}
			c.write(k, number)
		}
		if c.shows && k.written != number { // others may look at it
			own := *k
			k = &own
			c.write(k, number)
		}
		if k.answers != nil {
			c.keys.settle(k.answers)
			k.answers = nil
		}
		later := k.later(x)
		if told && k.promise != nil {
			c.touched(k.promise.Allotments, now)
		}
		was := k.ink()
		c.update(k, changes[i:], now, told)
		if _, is := ends[x.Kind]; is && k.end != "" {
			k.until = max(k.until, c.endedAt(k, at))
		}
		c.diarist.note(number, was, k.ink())
		if len(c.over) > c.keep+min(c.keep/8, atOnce) || c.overCost > maxOver {
			c.forget(number)
		}
		if told && k.promise != nil {
			c.touched(k.promise.Allotments, now)
		}
		if w := c.shadows[k.request.Site]; w != nil {
			w.follow(x)
		}
		if !told || x.Kind == change.Vacated || x.Kind == change.Queued && k.promise != nil {
			continue // a step of something that is told
		}
		n := news{number: number<<noticeBits | uint64(len(list)), at: now, what: string(x.Kind), card: *k, later: later, lacked: c.lacking[k.id]}
		if x.Kind == change.ChangeRefused {
			n.refusal = x.Refusal
		}
		list = append(list, n)
	}
	c.listFresh()
	if c.news = list; cap(list) > mostKept { // it is not used again
		c.news = nil
		return list
	}
	return slices.Clone(list)
}

// write puts a card where the one of its id is, with a record.
func (c *Core) write(k *card, number uint64) {
	c.cards.SetHint(k, &c.hint)
	c.wrote(k, number)
}

// wrote notes that a record has written a card.
func (c *Core) wrote(k *card, number uint64) {
	k.written = number
	c.last, c.asked = k, k.id
	if c.shows {
		c.fresh = append(c.fresh, k)
	}
}

// later returns by how much later data are expected than before.
func (k *card) later(x *change.Change) berth.Duration {
	if x.Kind != change.Staged || k.promise == nil || len(k.promise.Transfers) == 0 {
		return 0
	}
	return arrival(x.Transfers).Sub(arrival(k.promise.Transfers))
}

// arrival returns when the last data arrive.
func arrival(transfers []berth.Transfer) berth.Time {
	var last berth.Time
	for i := range transfers {
		last = max(last, transfers[i].End)
	}
	return last
}

// update brings a card up to date with the first of some changes.
func (c *Core) update(k *card, changes []change.Change, now berth.Time, told bool) {
	x := &changes[0]
	k.version, k.changed = k.version+1, now
	switch x.Kind {
	case change.Queued:
		if k.end != "" { // the id is used again
			c.over = slices.DeleteFunc(c.over, func(id string) bool { return id == k.id })
			c.overCost -= k.cost()
			*k = card{id: k.id, version: k.version, changed: now, created: now, written: k.written}
		}
		k.request = x.Request
	case change.QueuedAsJob, change.Requeued, change.Preempted:
		k.request, k.promise = x.Request, nil
	case change.Refused, change.Lost, change.Rejected:
		k.refusal = x.Refusal
	case change.Accepted:
		k.refusal = nil // it may have been refused in the same step, at an earlier turn of its series
	}
	if told {
		k.cause = causeOf(x.Kind, c.deciding, k.cause)
	}
	if x.Kind == change.Accepted && told && c.asks != nil {
		k.asking = c.asks(x.Reservation)
	}
	if p := c.promise(k.id, changes); p != nil {
		k.promise, k.request = p, p.Request
		return
	}
	if x.Kind == change.Accepted { // over in the same step
		k.promise = x.Reservation
	}
	if end, is := ends[x.Kind]; is {
		c.finish(k, end)
	}
}

// promise returns the promise of an id after a list of changes, some of which have been
// followed; nil if there is none. It is not written any more, and where the changes
// bring it whole it is that.
func (c *Core) promise(id string, changes []change.Change) *berth.Reservation {
	if c.found.id == id && changes[0].Kind != change.Accepted {
		return c.found.promise
	}
	if x := &changes[0]; x.Kind == change.Queued && c.freshTasks.of != nil && len(changes) > 1 && changes[1].Kind == change.Accepted && changes[1].ID == id {
		return changes[1].Reservation // which is followed next
	}
	r := c.engine.Promise(id)
	if r == nil {
		return nil
	}
	if x := &changes[0]; x.Kind == change.Accepted && r.State != berth.Active && r.Generation != x.Reservation.Generation {
		return x.Reservation // what became of it in the same step is followed next
	}
	c.found.id, c.found.promise = id, r
	return r
}

// finish notes how a request ended.
func (c *Core) finish(k *card, end State) {
	if k.end != "" {
		k.end = end // co-allocated parts end one by one
		return
	}
	k.end = end
	for _, known := range c.delivered {
		delete(known, k.id)
	}
	c.over = append(c.over, k.id)
	c.overCost += k.cost()
}

// endedAt returns when what a card is about ended, if it was noticed at a time: a watched job
// and the task of a workflow when their site says that they did.
func (c *Core) endedAt(k *card, noticed berth.Time) berth.Time {
	ended, told := c.taskEnds[k.id]
	delete(c.taskEnds, k.id)
	if k.promise == nil {
		return noticed
	}
	start := k.promise.Start()
	if w := c.shadows[k.request.Site]; w != nil {
		if j := w.jobs[k.id]; j != nil && j.Phase == JobEnded {
			return min(noticed, start.Add(j.ran()))
		}
	}
	if told {
		return min(noticed, max(ended, start.Add(1)))
	}
	return noticed
}

// view shows a card to clients.
func (k *card) view() Reservation {
	r := Reservation{
		ID: k.id, State: k.state(), Version: k.version, Request: *k.request,
		Refusal: k.refusal, Created: k.created, Changed: k.changed,
	}
	if p := k.promise; p != nil && k.state() != Pending {
		r.Allotments, r.Data, r.Missing, r.Expires, r.CheckedIn = p.Allotments, p.Transfers, p.Missing, p.Expires, p.CheckedIn
		r.Extended = p.Terms.Extended
	}
	if k.end != "" {
		r.Expires = 0
	}
	return r
}

// state is where a request is in its life.
func (k *card) state() State {
	switch {
	case k.end != "":
		return k.end
	case k.asking:
		return Pending
	case k.promise != nil:
		return State(k.promise.State)
	}
	return Pending
}

// Check recomputes everything that follows from something else, and reports the
// first contradiction.
func (c *Core) Check() error {
	if err := c.engine.Check(); err != nil {
		return err
	}
	live := 0
	var wrong error
	c.cards.Scan(func(k *card) bool {
		if k.end != "" {
			return true
		}
		live++
		status, is := c.engine.Status(k.id)
		switch {
		case !is:
			wrong = fmt.Errorf("the card of %q is live, the engine does not know it", k.id)
		case (status.Reservation == nil) != (k.promise == nil):
			wrong = fmt.Errorf("the card of %q has a promise: %t", k.id, k.promise != nil)
		case k.promise != nil && k.promise.State != status.Reservation.State:
			wrong = fmt.Errorf("the card of %q is %s, the engine's reservation is %s", k.id, k.promise.State, status.Reservation.State)
		case k.promise != nil && k.promise.Generation != status.Reservation.Generation:
			wrong = fmt.Errorf("the card of %q is of generation %d, the engine's reservation of %d", k.id, k.promise.Generation, status.Reservation.Generation)
		}
		return wrong == nil
	})
	if n := c.engine.Live(); wrong == nil && n != live {
		wrong = fmt.Errorf("%d live cards, the engine has %d", live, n)
	}
	return wrong
}
