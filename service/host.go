package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
)

// Options says what a host runs on. Log may be nil.
type Options struct {
	Config  engine.Config
	Journal journal.Store
	Version string // of the program, for records
	Log     *slog.Logger
	// Access says which users see and use some sites alone, where others ask in their name.
	Access []Access
	// OwnerOf returns the owner of a service account, which is a user of its own otherwise: what it asks for counts to the owner's
	// limits too, and both wait for one turn. It returns "" of any other name; nil is no service accounts.
	OwnerOf func(user string) string
	// Projects says which accounts users may name.
	Projects Projects
	// Keep is how many requests that are over are remembered; 0 is 100,000.
	Keep int
	// SnapshotEvery is after how many records a snapshot is taken; 0 is 200,000.
	SnapshotEvery uint64
	// KeepHistory is how long records are kept; 0 is for ever. What is promised, and what
	// is remembered of requests that are over, does not depend on it.
	KeepHistory berth.Duration
	// Managers bring managed sites and what the engine promises into line, by
	// the site's name.
	Managers map[string]Manager
	// Transfers says how files of tasks get from one site to another, each pair once.
	Transfers []Transfer
	// ClockFile keeps a time at which the machine's clock was right, for the next start;
	// empty for none.
	ClockFile string
	// FaultFolder is where faults of the program are kept, for reports and to know them
	// again; empty for nowhere.
	FaultFolder string
	// Leads, where several servers share a journal, returns nil while no other one can lead:
	// else sites are not touched and nothing is taken. It is asked often. nil is for ever.
	Leads func() error
	// Clock returns the time, Monotonic how much has passed, whatever the clock says,
	// and Uptime for how long the machine has been up; nil are the machine's. Only tests
	// set them.
	Clock     func() time.Time
	Monotonic func() time.Duration
	Uptime    Uptime

	// turn is for how long effects are settled, and reports of tasks decided, in one go, for which all wait; turned is called in the loop behind
	// each such go that others follow; wished is given a wish that was remembered, and the same made anew. Only tests set them.
	turn   time.Duration
	turned func(*Host)
	wished func(kept, anew wish, same bool)
}

const (
	defaultKeep          = 100_000
	defaultSnapshotEvery = 200_000
)

// Host is a running service: one goroutine owns the core, and everybody else
// hands it something to do.
type Host struct {
	options Options
	log     *slog.Logger
	core    *Core         // of the loop alone
	leader  func() string // of a host that stands by; nil of one that leads
	writer  *journal.Writer
	sealing sealing

	timekeeper *timekeeper
	line       line // what the loop is to do
	display    display
	stop       chan struct{}
	stopped    chan struct{} // the loop does nothing any more
	closed     chan struct{} // and everybody has been answered
	closing    sync.Once

	durable   barrier
	handed    atomic.Uint64 // the last record that was handed to the writer
	offers    offers
	hearers   hearers
	occupancy occupancy
	drawings  drawings
	agenda    agenda
	counts    counts
	sites     map[string]*keeper
	grounds   atomic.Uint64                // how often a site had other nodes
	fleet     atomic.Pointer[[]berth.Site] // the sites of the core's configuration, for who reads them beside the loop
	undecided map[string][]waiting         // by id; of the loop
	deciding  struct {                     // what is being decided; of the loop
		event engine.Event
		asked asked
		told  []told // whose memory is used again
	}
	gathered     gathered              // of the loop
	moment       berth.Time            // at which the clock stands, 0 if it goes; of the loop
	questions    map[string]*question  // by id; of the loop
	evading      []string              // ids of questions that were decided anew, and are to be placed elsewhere; of the loop
	proposals    map[string]*proposal  // by id; of the loop
	underway     map[keyName]*underway // of the loop
	accounting   accounting
	bounded      bounded
	proposed     uint64          // how many proposals there were; of the loop
	handing      map[string]bool // tasks of workflows that are being handed in; of the loop
	heardOverdue time.Time       // when sites were last waited for, of the machine's clock; of the loop
	flowing      atomic.Bool     // workflows are live
	flows        chan struct{}   // of one place: they have begun to be
	tasksEnd     context.Context //nolint:containedctx // ends with the service, for what is handed in beside the loop
	quiet        string          // id about which nothing is told for now; of the loop
	keepers      struct {
		cancel  []context.CancelFunc
		running sync.WaitGroup
	}
	snapshots snapshots
	planner   planner
	courier   courier

	faults sync.Once // the first one counts
	fault  atomic.Pointer[Fault]

	mu      sync.Mutex
	dead    error       // why nothing more can be done
	failing atomic.Bool // the journal cannot be written for now
	jam     atomic.Pointer[jam]

	closeOnce, resignOnce sync.Once
	closeErr, resignErr   error
	resigned              atomic.Bool
	followed              atomic.Pointer[followed] // of a host that stands by
	unasked               unasked                  // of one that stands by
}

// Open recovers what the journal has, without deciding anything again, and
// starts the service. The journal is the host's from then on, until Close. The
// error is of code Invalid if the journal does not go with the configuration, and
// of code Conflict if it is that of a watch and the site is served now, or the
// other way round.
func Open(ctx context.Context, options Options) (*Host, error) {
	core, err := recovered(ctx, &options, (*Core).followPast)
	if err != nil {
		return nil, err
	}
	return start(options, core)
}

// settle fills in what is not said.
func (o *Options) settle() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Keep = cmp.Or(o.Keep, defaultKeep)
	if o.SnapshotEvery == 0 {
		o.SnapshotEvery = defaultSnapshotEvery
	}
	o.turn = cmp.Or(o.turn, slice/4)
}

// recovered returns a core at the end of the journal, by what each does with a record.
func recovered(ctx context.Context, options *Options, each func(*Core, *past) error) (*Core, error) {
	options.settle()
	tellFaults(options)
	core, err := recoverAtStart(ctx, options, each)
	if f := faultOf(err); f != nil {
		f.keep(options)
	}
	return core, err
}

// newHost returns a host of a core that shows what it holds and does nothing yet.
func newHost(options Options, core *Core) *Host {
	h := &Host{
		options: options, log: options.Log, core: core,
		line: newLine(options.turnOf), stop: make(chan struct{}), stopped: make(chan struct{}), closed: make(chan struct{}),
		undecided: map[string][]waiting{}, questions: map[string]*question{}, proposals: map[string]*proposal{}, underway: map[keyName]*underway{}, bounded: newBounded(), offers: newOffers(core), hearers: newHearers(core.position.Number), counts: newCounts(),
		sites: map[string]*keeper{}, handing: map[string]bool{}, flows: make(chan struct{}, 1), planner: newPlanner(options.turnOf),
	}
	h.jam.Store(newJam())
	h.timekeeper = newTimekeeper(&options, core.engine.Now())
	if err := h.timekeeper.err(); err != nil {
		h.log.Error("the clock is not believed", "error", err)
	}
	h.occupancy.guard = h.Guard
	core.diarist = diarist{read: &h.drawings.readers}
	h.durable.number = core.position.Number
	h.display.begin(core)
	h.courier = courier{host: h, wake: make(chan struct{}, 1), of: map[string]*receiver{}}
	h.courier.show(core.hooks.show(slices.Sorted(maps.Keys(core.hooks.byID))))
	h.snapshots.begin(core.stored)
	fleet := core.config.Sites // not where the core has them, which is written
	h.fleet.Store(&fleet)
	return h
}

// start begins to serve what a core holds, all of it durable.
func start(options Options, core *Core) (*Host, error) {
	h := newHost(options, core)
	if err := h.checkShadows(); err != nil {
		return nil, err
	}
	h.sealing.begin(core)
	h.writer = journal.NewWriter(guarded{options.Journal, &h.sealing}, h.appendFailed)
	rec, err := core.Configure(h.clock(), options.Config)
	if err != nil {
		_ = h.writer.Close() // nothing was added
		return nil, unplaced(err)
	}
	if rec != nil {
		h.persist(rec, consequences{})
	}
	fleet := core.config.Sites
	h.fleet.Store(&fleet)
	h.startManagers()
	h.startTasks()
	core.asks = h.asks
	h.askAfterRestart()
	h.startPlanner()
	go h.run()
	return h, nil
}

// clock returns the time in whole seconds, never before the engine's. It is of the loop.
func (h *Host) clock() berth.Time {
	if h.moment != 0 {
		return max(h.moment, h.core.engine.Now())
	}
	return max(h.Now(), h.core.engine.Now())
}

// inOneMoment has the clock of the loop stand until the function that it returns is called: what is asked for from now on
// is decided when its times are counted from, however many steps that takes.
func (h *Host) inOneMoment() (over func()) {
	if h.moment != 0 {
		return func() {}
	}
	h.moment = h.clock()
	return func() { h.moment = 0 }
}

// Now returns the service's time.
func (h *Host) Now() berth.Time {
	now, _ := h.timekeeper.now()
	return berth.Time(now.Unix())
}

// Close answers those who wait, takes a snapshot, and stops. It does not close
// the journal. A second call does nothing.
func (h *Host) Close() error {
	resigned := h.resigned.Load()
	err := h.Resign()
	h.closeOnce.Do(func() {
		h.occupancy.close()
		close(h.closed)
		h.snapshots.end()
		if h.writer != nil && err == nil && !resigned && h.fault.Load() == nil && h.core.position.Number > h.snapshots.stored {
			h.core.position = h.sealing.last // with its hash: all is written
			h.closeErr = caught(h.core.position.Number, "making a snapshot", func() error { return h.saveSnapshot(context.Background(), h.core) })
			if f := faultOf(h.closeErr); f != nil {
				f.At = h.Now()
				f.keep(&h.options)
			}
		}
	})
	return errors.Join(err, h.closeErr)
}

// Resign answers those who wait and decides nothing any more; what was decided is durable
// once it returns nil, and no site is touched. Streams of events end. Those who look are
// answered until Close, which then takes no snapshot, as another server may write the
// journal by then. A second call does nothing.
func (h *Host) Resign() error {
	h.closing.Do(func() { close(h.stop) })
	<-h.stopped
	h.resignOnce.Do(func() {
		h.stopManagers()
		h.courier.end()
		if h.writer != nil { // else it stands by
			h.resignErr = h.writer.Close()
		}
		h.hearers.close()
		h.resigned.Store(true)
	})
	return h.resignErr
}

// run is the loop: it does what it is handed, and wakes the engine when it wants
// to be.
func (h *Host) run() {
	defer close(h.stopped)
	defer h.loopBoundary()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		h.noteFlows()
		h.arm(timer)
		select {
		case <-h.line.ready:
			h.serve()
		case <-timer.C:
			h.wakeIfDue()
		case <-h.stop:
			h.line.forgive()
			for do, ok := h.line.pop(); ok; do, ok = h.line.pop() {
				do()
			}
			h.wakeIfDue()
			h.abandon(berth.Errorf(berth.Unavailable, "service", "it is stopping; try again"))
			return
		}
		h.snapshotWhenDue()
		h.compactWhenDue()
	}
}

// slice is for how long the loop serves those who ask before it looks at the time: no
// promise begins or ends later than that for their sake.
const slice = 20 * time.Millisecond

// serve does what waits, in turn among those who ask, for a slice of time. What is due
// goes first, and what was gathered is decided together after it.
func (h *Host) serve() {
	h.wakeIfDue()
	until := time.Now().Add(slice)
	for do, ok := h.line.pop(); ok; do, ok = h.line.pop() {
		if do(); h.gathered.full() {
			h.wakeIfDue()
		}
		if !time.Now().Before(until) {
			h.line.rest()
			break
		}
	}
	h.wakeIfDue()
}

// wakeIfDue lets everything happen that is due by now, if anything is.
func (h *Host) wakeIfDue() {
	if _, believed := h.timekeeper.now(); believed && h.isDue() {
		h.hearOverdue()
		h.wake()
	}
}

// isDue reports whether the engine wants to be woken by now.
func (h *Host) isDue() bool {
	at, due := h.core.engine.Next()
	return due && at <= h.clock()
}

// arm sets the timer to when the engine wants to be woken.
func (h *Host) arm(timer *time.Timer) {
	now, believed := h.timekeeper.now()
	wait := witnessEvery
	if at, ok := h.core.engine.Next(); ok {
		wait = min(wait, max(0, time.Unix(int64(at), 0).Sub(now)))
	}
	if !believed {
		wait = distrust
	}
	timer.Reset(wait)
}

// do has the loop do something for a caller, in their turn. The error says that it takes
// nothing any more.
func (h *Host) do(who string, f func()) error {
	if err := h.Ready(); err != nil {
		return err
	}
	h.line.push(who, f)
	return nil
}

// step applies an event. conclude, if it is there,
// says what is answered at once; the outcome is on record under the key that was
// asked under. The error concerns the event alone, as Core.Step has it. A caller that tells
// others of either waits until the core's position is durable.
func (h *Host) step(event engine.Event, a asked, conclude func([]news, error) (outcome, bool)) error {
	if a.id == "" {
		a.id = subject(&event)
	}
	h.foresee(&event) // which is steps of its own
	h.deciding.event, h.deciding.asked = event, a
	h.deciding.asked.told = again(h.deciding.told)
	err := h.decide(&h.deciding.event, &h.deciding.asked, conclude)
	h.deciding.told = h.deciding.asked.told
	if ids := h.evading; len(ids) > 0 {
		h.evading = nil
		h.evade(ids)
	}
	return err
}

// decide is step with memory that it may keep until the next one.
func (h *Host) decide(event *engine.Event, a *asked, conclude func([]news, error) (outcome, bool)) error {
	s := h.core.apply(h.clock(), event)
	all := h.public(s.news)
	a.asking = h.ask(all)
	list := h.told(all)
	a.over = askedUntilOver(list)
	decided := h.decided(list)
	if conclude != nil {
		if result, is := conclude(list, s.err); is && a.key != (Key{}) {
			own := result // result stays on the stack where nothing is told
			h.core.tell(a, keyName{}, &own)
		}
	}
	for i := range decided {
		d := &decided[i]
		if h.due(a, &d.waiting.key) {
			h.core.tell(a, d.waiting.key.name(), &outcome{Answer: *d.answer})
		}
	}
	h.counts.add(list)
	h.sayResized(list)
	rec := h.core.seal(s, a)
	if rec == nil {
		return s.err
	}
	h.counts.addFlows(s.flows)
	h.persist(rec, consequences{who: a.by.User, news: append(list, s.flows...), decided: decided})
	h.wakeManagers(all)
	h.runTasks(all)
	return s.err
}

// due reports whether an answer is still to be remembered under a key. What was asked now
// is not answered yet, or it would not have been decided.
func (h *Host) due(a *asked, key *Key) bool {
	return *key != (Key{}) && (*key == a.key || !h.core.keys.answered(key))
}

// remember puts an answer on record under the key that it was asked for under.
func (h *Host) remember(a asked, o outcome) {
	if a.key == (Key{}) {
		return
	}
	a.told = append(a.told, told{outcome: o.bytes()})
	h.persist(h.core.seal(&step{now: h.clock()}, &a), consequences{who: a.by.User})
}

// wake lets everything happen that is due by now.
func (h *Host) wake() {
	began := time.Now()
	defer func() { h.gathered.decided(time.Since(began)) }()
	if err := h.step(engine.Wake(), asked{}, nil); err != nil {
		h.log.Error("the engine cannot be woken", "error", err)
	}
}

// awake has the engine at the service's time, for those who ask what would be promised now, and returns
// the time that it has reached: what is asked about arrives then.
func (h *Host) awake() berth.Time {
	if h.clock() > h.core.engine.Now() {
		h.wake()
	}
	return h.core.engine.Now()
}

// whenDurable calls answer once everything done so far is durable, or cannot
// become so any more.
func (h *Host) whenDurable(answer func(failed error)) {
	h.durable.after(h.core.position.Number, answer)
}

// decision is the answer to a caller that waits for it.
type decision struct {
	waiting waiting
	answer  *Answer // shared by those who asked the same
}

// decided returns the answers to those whose requests have been decided.
func (h *Host) decided(list []news) []decision {
	var decisions []decision
	for i := range list {
		k := &list[i].card
		asked, is := h.undecided[k.id]
		if !is || k.state() == Pending && !k.request.IsJob() {
			continue
		}
		delete(h.undecided, k.id)
		answer := &Answer{Reservation: k.priced(&h.core.config)}
		if k.end == Refused && asked[0].wantsOffers() {
			answer.Offers = h.alternatives(k.request)
		}
		for _, w := range asked { // under one key, and so the same
			if k.end == Refused {
				h.offers.refused(w.offer, k.id)
			}
			decisions = append(decisions, decision{w, answer})
		}
	}
	return decisions
}

// consequences are what follows once a record is durable.
type consequences struct {
	host    *Host
	who     string // asked for it, or owns the service account that did
	bytes   int    // of the record
	shown   shown
	news    []news
	decided []decision
}

// persist hands a record to the writer. Once it is durable those who only look see
// what it says, and the rest of what follows from it comes about.
func (h *Host) persist(rec *journal.Record, follows consequences) {
	follows.host, follows.shown, follows.who = h, h.core.takeShown(), h.options.turnOf(follows.who)
	follows.bytes = len(rec.Event) + len(rec.Changes) + len(rec.Effects)
	if later := h.core.later; later != nil {
		h.core.later = nil
		h.sealing.add(rec.Number, later.write)
		follows.bytes = later.size
	}
	h.line.owe(follows.who, follows.bytes)
	h.handed.Store(rec.Number)
	h.writer.Add(*rec, (&follows).come)
}

// come is called when the record is durable, or cannot become so.
func (c *consequences) come(err error) {
	h := c.host
	defer h.boundary("answering")
	h.line.repay(c.who, c.bytes)
	if faultOf(err) != nil {
		err = errFaulty
	}
	if err != nil {
		h.die(err)
	} else {
		h.display.show(&c.shown)
		if h.failing.CompareAndSwap(true, false) {
			h.log.Info("the journal is written again")
			h.jam.Store(newJam())
		}
	}
	h.durable.reach(c.shown.number, err)
	if err == nil {
		h.hearers.tell(c.news)
		h.courier.show(c.shown.hooks)
		h.occupancy.tell(c.shown.touches, c.shown.number)
	}
	for i := range c.decided {
		c.decided[i].waiting.answer(c.decided[i].answer, err)
	}
}

// die stops the service: what the core holds is ahead of the journal, and cannot
// be told to anyone.
func (h *Host) die(err error) {
	h.setDead(berth.Errorf(berth.Unavailable, "journal", "%v", err))
	h.closing.Do(func() { close(h.stop) })
}

func (h *Host) setDead(err error) {
	h.mu.Lock()
	h.dead = err
	h.mu.Unlock()
}

// Ready returns nil if the service takes requests, and why not otherwise.
func (h *Host) Ready() error {
	select {
	case <-h.stop:
		return berth.Errorf(berth.Unavailable, "service", "it is stopping; try again")
	default:
	}
	h.mu.Lock()
	dead := h.dead
	h.mu.Unlock()
	if dead != nil {
		return dead
	}
	if err := h.standsBy(); err != nil {
		return err
	}
	if err := h.leads(); err != nil {
		return err
	}
	return h.timekeeper.err()
}

// Stopped is closed once the service does nothing any more.
func (h *Host) Stopped() <-chan struct{} { return h.stopped }

// abandon answers those who wait for a decision that will not come.
func (h *Host) abandon(err error) {
	for id, asked := range h.undecided {
		delete(h.undecided, id)
		for _, w := range asked {
			w.answer(nil, err)
		}
	}
}

// newID returns an id that is not in use, later ones behind earlier ones.
func (h *Host) newID() string {
	return ulid.MustNew(ulid.Timestamp(h.clockTime()), rand.Reader).String()
}

func (h *Host) clockTime() time.Time {
	now, _ := h.timekeeper.now()
	return now
}

// barrier lets those go on that wait for a record to be durable.
type barrier struct {
	mu      sync.Mutex
	number  uint64 // all up to this one are
	failed  error
	waiting []waiter // by number
}

type waiter struct {
	number uint64
	done   func(error)
}

// after calls done once a record is durable, at once if it is. Records that errors wait for do not come in order.
func (b *barrier) after(number uint64, done func(error)) {
	b.mu.Lock()
	if b.failed == nil && number > b.number {
		at, _ := slices.BinarySearchFunc(b.waiting, number+1, func(w waiter, n uint64) int { return cmp.Compare(w.number, n) })
		b.waiting = slices.Insert(b.waiting, at, waiter{number, done})
		b.mu.Unlock()
		return
	}
	err := b.failed
	b.mu.Unlock()
	done(err)
}

// reached returns the last record that is durable.
func (b *barrier) reached() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.number
}

// reach notes that all records up to a number are durable, or that none will be
// any more.
func (b *barrier) reach(number uint64, err error) {
	b.mu.Lock()
	if err != nil {
		b.failed = err
	} else {
		b.number = number
	}
	n := 0
	for n < len(b.waiting) && (err != nil || b.waiting[n].number <= number) {
		n++
	}
	ready := b.waiting[:n:n]
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil
	}
	b.mu.Unlock()
	for _, w := range ready {
		w.done(err)
	}
}
