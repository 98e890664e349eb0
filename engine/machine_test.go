package engine_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/policy"
)

var (
	machineSeed   = flag.Uint64("machine.seed", 0, "run only the history of this seed")
	machineEvents = flag.Int("machine.events", 0, "run about this number of events; 0 is the default run")
	machineOnly   = flag.String("machine.only", "", "report violations of this invariant alone")
	machineSurvey = flag.Bool("machine.survey", false, "count the violations of all invariants and go on")
)

// history is all that a run needs to happen again.
type history struct {
	config engine.Config
	care   care
	steps  []step
}

// failure is an invariant that does not hold.
type failure struct {
	invariant, message string
}

// machine runs one history: the engine, the model beside it, and what watches it.
type machine struct {
	history
	e        *engine.Engine
	m        *model
	twins    []*twin
	consumer *consumer
	looked   []look
	cover    *coverage
	features []feature // of the configuration
	applied  int       // events, wakes included
	known    map[string]*violations
	trace    func(at berth.Time, event *engine.Event, changes []change.Change, err error)
}

// violations are those of one invariant, in a survey.
type violations struct {
	count int
	first string // its message
	seed  uint64
}

// newMachine prepares a run; what it returns has an empty history.
func newMachine(h *history, cover *coverage) *machine {
	x := &machine{history: history{config: h.config, care: h.care}, cover: cover, known: map[string]*violations{}}
	e, err := engine.New(x.config)
	if err != nil {
		panic(err)
	}
	x.e, x.m, x.consumer = e, newModel(&x.config), newConsumer(&x.config)
	x.m.fault = func(invariant, format string, args ...any) {
		if !reported(invariant) {
			x.count(invariant, fmt.Sprintf(format, args...))
			return
		}
		panic(&failure{invariant, fmt.Sprintf(format, args...)})
	}
	x.m.hit = func(o *occasion, c *change.Change, r *berth.Request, p *promise) { x.cover.hit(x, o, c, r, p) }
	x.features = configFeatures(&x.config)
	x.newTwins()
	return x
}

// count counts a violation that does not end the run.
func (x *machine) count(invariant, message string) {
	if x.known[invariant] == nil {
		x.known[invariant] = &violations{first: message}
	}
	x.known[invariant].count++
}

// reported reports whether a violation of an invariant ends the run.
func reported(invariant string) bool {
	if *machineOnly != "" {
		return invariant == *machineOnly
	}
	return !*machineSurvey
}

// guard runs a part of a history, and returns why it failed.
func (x *machine) guard(do func()) (failed *failure) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case *failure:
			failed = f
		default:
			failed = &failure{"panic", fmt.Sprintf("%v\n%s", f, debug.Stack())}
			if !reported("panic") {
				x.count("panic", failed.message)
				failed = nil
			}
		}
	}()
	do()
	return nil
}

// draw runs a history that is drawn as it goes.
func (x *machine) draw(d dice, s *setup, length int) *failure {
	draws := &drawer{dice: d, setup: s, m: x.m, e: x.e, told: x.consumer}
	return x.guard(func() {
		if s.scene != nil {
			s.scene.play(&stage{draws, x})
		}
		for range length {
			x.do(draws.next(x.m.now))
		}
		x.same()
		x.restore()
		x.check()
	})
}

// replay runs a history again.
func (x *machine) replay(steps []step) *failure {
	return x.guard(func() {
		for _, s := range steps {
			x.do(s)
		}
		x.same()
		x.restore()
		x.check()
	})
}

// do does a step: first everything that is due before it.
func (x *machine) do(s step) {
	x.steps = append(x.steps, s)
	switch s.act {
	case actApply:
		x.reach(s.at, s.event.Kind)
		x.apply(s.at, s.event, s.event.Kind == engine.EventWake, true)
	case actOffer:
		x.reach(s.at, engine.EventSubmit)
		x.offer(s)
	case actLook:
		x.look()
	case actRestore:
		x.restore()
	case actTakeOver:
		x.takeOver()
	}
	if x.care == careCheck {
		x.check()
	}
}

func (x *machine) check() {
	if err := x.e.Check(); err != nil {
		x.m.fault("check", "%v", err)
	}
}

// reach wakes the engine whenever it wants to be woken before a time, and lets
// everything happen that comes before an event at that time.
func (x *machine) reach(at berth.Time, kind engine.EventKind) {
	for wakes := 0; ; wakes++ {
		next, due := x.e.Next()
		next = max(next, x.m.now) // what was confirmed late is due at once
		switch {
		case !due || next > at || next == at && kind == engine.EventWake:
			return
		case wakes > 10*span:
			x.m.fault("due", "the engine wants to be woken at %d again and again", next)
			return
		case next < at:
			x.apply(next, engine.Event{Kind: engine.EventWake}, true, false)
		default:
			x.apply(at, probe(kind), true, false)
			return
		}
	}
}

// apply lets the engine have one event, and judges what it makes of it: timer says
// that it does no more than let happen what is due, and told that the jumper hears
// of it.
func (x *machine) apply(at berth.Time, event engine.Event, timer, told bool) {
	x.applied++
	m := x.m
	m.now = at
	m.outages = m.outages.over(at)
	o := &occasion{event: &event, timer: timer}
	m.before(o)
	wrong := no
	if !timer {
		wrong = m.mistaken(&event, x.e)
	}
	given := event
	if event.Request != nil {
		given.Request = copied(event.Request)
	}
	displaced, foretold := x.displaced(at, &event)
	changes, effects, err := x.e.Apply(at, given)
	if foretold && err == nil {
		m.judgeForetold(displaced, changes)
	}
	if x.trace != nil {
		x.trace(at, &event, changes, err)
	}
	o.changes = changes
	if !timer && (err != nil && wrong == no || err == nil && wrong == yes) {
		invariant := "answers"
		if r := event.Request; r != nil && wrong == no && m.short(r) {
			invariant = "fast-window"
		}
		m.fault(invariant, "%s answers %v", event.Kind, err)
	}
	if err == nil && (event.Kind == engine.EventDown || event.Kind == engine.EventUp) {
		m.outageTold(&event)
	}
	m.take(o)
	m.settle(o, x.e)
	x.consumer.take(m, o, effects)
	x.alike(at, &event, told, changes, err)
	if given.Request != nil && reported("owner") {
		scramble(given.Request)
	}
}

// scramble writes over a request that was given away, as its owner may.
func scramble(r *berth.Request) {
	r.ID, r.User, r.Ready, r.Deadline, r.StorageMB = "scrambled", "scrambled", -1, -1, -1
	for i := range r.Parts {
		for k := range r.Parts[i].Variants {
			r.Parts[i].Variants[k] = berth.Variant{}
		}
		r.Parts[i].Eligible = berth.PEsOf(63)
	}
	r.Parts = nil
}

// displaced asks what would give up its place for an outage that is to be announced, where no other one is known.
func (x *machine) displaced(at berth.Time, event *engine.Event) (ids []string, asked bool) {
	until := cmp.Or(event.Until, berth.Forever)
	pool := x.m.poolNamed(event.Resource)
	if event.Kind != engine.EventDown || x.e.Now() != at || event.From <= at || until <= event.From || pool < 0 || x.m.unknownPEs(event, pool) || len(x.m.outages) > 0 {
		return nil, false
	}
	before := x.e.Hash()
	ids = x.e.Displaced(berth.Outage{Resource: event.Resource, PEs: event.PEs, From: event.From, Until: until})
	if x.e.Hash() != before {
		x.m.fault("queries", "asking what is in the way of an outage changes the state")
	}
	return ids, true
}

// judgeDisplaced judges that just that gives up its place, where no job has to give back what it goes on with: then more may.
func (m *model) judgeForetold(ids []string, changes []change.Change) {
	var vacated []string
	preempted := false
	for i := range changes {
		c := &changes[i]
		preempted = preempted || c.Kind == change.Preempted
		if p := m.byID[c.ID]; c.Kind == change.Vacated && (p == nil || !p.job) {
			vacated = append(vacated, c.ID)
		}
		if c.Kind == change.WentDown {
			break
		}
	}
	if !preempted && !slices.Equal(ids, vacated) {
		m.fault("displaced", "%q would give up their places, and %q did", ids, vacated)
	}
}

// offer asks for offers, and for the one that is picked.
func (x *machine) offer(s step) {
	x.apply(s.at, probe(engine.EventSubmit), true, true) // offers are made at the time that the engine has reached
	r := s.event.Request
	before := x.e.Hash()
	offers, err := x.e.Offers(copied(r), 8)
	if wrong := x.m.mistakenRequest(r, true); (err == nil) != (wrong == no) && wrong != perhaps && x.m.requestOf(r.ID) == nil {
		if !x.m.short(r) {
			x.m.fault("answers", "offers for %q answer %v", r.ID, err)
		}
	}
	x.judgeCosts(offers)
	if x.e.Hash() != before {
		x.m.fault("queries", "asking for offers changes the state")
	}
	if x.decidesAtOnce() && err == nil {
		x.judgeOffers(r, offers)
	}
	if s.pick < len(offers) {
		take := offers[s.pick].Request
		x.apply(s.at, engine.Event{Kind: engine.EventSubmit, Request: &take}, false, true)
	}
}

// decidesAtOnce reports whether a request is decided when it arrives, by itself.
func (x *machine) decidesAtOnce() bool {
	if _, batch := policy.BatchNamed(x.config.Match); batch {
		return false
	}
	row, _ := policy.QueueNamed(x.config.Order)
	return x.config.Trigger == engine.TriggerOnArrival || x.config.Trigger == "" && !row.Gathers
}

// judgeOffers judges that offers see what a submission sees, and that each, taken as
// it is, gives exactly the place offered.
func (x *machine) judgeOffers(r *berth.Request, offers []engine.Offer) {
	asked := x.wouldGet(r)
	asAsked := len(offers) > 0 && offers[0].Difference == engine.OfferAsAsked
	if asAsked != (asked != nil) || asAsked && !sameAllotments(asked, offers[0].Allotments) {
		x.m.fault("offers", "the offers for %q are %v; submitted it gets %v", r.ID, offers, asked)
	}
	for i := range offers {
		if got := x.wouldGet(&offers[i].Request); !sameAllotments(got, offers[i].Allotments) {
			x.m.fault("offers", "%s offers %v for %+v; taken it gives %v", offers[i].Difference, offers[i].Allotments, offers[i].Request, got)
		}
	}
}

// judgeCosts judges that what offers cost adds up, and that each can be promised.
func (x *machine) judgeCosts(offers []engine.Offer) {
	costs, err := x.e.Costs(offers, engine.Foresight{Looks: 2000})
	if err != nil || len(costs) != len(offers) {
		x.m.fault("costs", "of %v: %v, %v", offers, costs, err)
		return
	}
	for i, c := range costs {
		switch {
		case c == nil:
			x.m.fault("costs", "%s at %v cannot be promised", offers[i].Difference, offers[i].Allotments)
		case c.Delayed > c.Followed, c.Sum > c.Largest*berth.Duration(c.Delayed), c.Sum < c.Largest, c.Delayed > 0 && c.Largest < 1, c.Idle < 0:
			x.m.fault("costs", "%s at %v costs %+v", offers[i].Difference, offers[i].Allotments, *c)
		}
	}
}

// wouldGet returns what a request would get if it was submitted now.
func (x *machine) wouldGet(r *berth.Request) []berth.Allotment {
	again, err := engine.Restore(x.config, x.e.Snapshot())
	if err != nil {
		x.m.fault("restore", "the snapshot cannot be read: %v", err)
		return nil
	}
	changes, _, _ := again.Apply(x.m.now, engine.Event{Kind: engine.EventSubmit, Request: copied(r)})
	for i := range changes {
		if changes[i].Kind == change.Accepted && changes[i].ID == r.ID && !changes[i].Reservation.Request.IsJob() {
			return changes[i].Reservation.Allotments
		}
	}
	return nil
}

// runSeed runs the history of a seed.
func runSeed(seed uint64, cover *coverage) (*machine, *failure) {
	d := newDice(seed)
	s := d.newSetup()
	lengths := []int{20, 60, 120}
	if int(seed/shards)%historiesRound < scenesRound {
		d.addScene(s)
		lengths = []int{0, 5, 10} // behind the scene
	}
	x := newMachine(&history{config: s.config, care: min(care(d.IntN(int(cares)+2)), careNone)}, cover)
	return x, x.draw(d, s, pick(d, lengths...))
}

// shards is into how many parts the run is split, to use more than one processor.
const shards = 4

// defaultHistories is how many histories a default run has with full effort.
const defaultHistories = 34000

// Whatever happens, under whatever configuration, every promise is kept or its
// owner is told why not, nothing is promised twice, what could be promised is, and
// the state survives being followed, saved and restored. One line repeats a failure.
func TestMachine(t *testing.T) {
	histories := uint64(effort.Cases(defaultHistories))
	if testing.Short() {
		histories /= 8
	}
	first := uint64(1)
	if *machineSeed > 0 {
		first, histories = *machineSeed, 1
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1600)) // histories leave much behind, and little of it for long
	covers, known, events := make([]*coverage, shards), make([]map[string]*violations, shards), make([]int, shards)
	t.Run("histories", func(t *testing.T) {
		for shard := range covers {
			covers[shard], known[shard] = newCoverage(), map[string]*violations{}
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for seed := first + uint64(shard); ; seed += shards {
					if *machineEvents > 0 && events[shard] >= *machineEvents/shards || *machineEvents == 0 && seed >= first+histories {
						return
					}
					x, failed := runSeed(seed, covers[shard])
					events[shard] += x.applied
					join(known[shard], x.known, seed)
					if failed != nil {
						report(t, seed, x, failed)
					}
				}
			})
		}
	})
	total, sum := newCoverage(), 0
	for shard := range covers {
		total.add(covers[shard])
		sum += events[shard]
		if shard > 0 {
			join(known[0], known[shard], 0)
		}
	}
	t.Logf("%d events", sum)
	for _, name := range slices.Sorted(maps.Keys(known[0])) {
		v := known[0][name]
		message, _, _ := strings.Cut(v.first, "\n")
		t.Errorf("%s, %d times, first with -machine.seed=%d: %s", name, v.count, v.seed, message)
	}
	total.report(t, effort.Full() && *machineSeed == 0 && *machineEvents == 0 && !testing.Short() && !t.Failed())
}

// join adds violations to others; seed is that of their history, or 0 if they know.
func join(all, more map[string]*violations, seed uint64) {
	for name, v := range more {
		if seed > 0 {
			v.seed = seed
		}
		if all[name] == nil {
			all[name] = &violations{first: v.first, seed: v.seed}
		} else if v.seed < all[name].seed {
			all[name].first, all[name].seed = v.first, v.seed
		}
		all[name].count += v.count
	}
}
