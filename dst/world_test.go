package dst

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/journal/sqlite/lossy"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// world is everything that a seed has happen: a service that lives several times on one journal, the
// sites that it serves, its clients, and what goes wrong.
type world struct {
	t        *testing.T
	seed     uint64
	plan     *plan
	plant    *plant
	keys     *keyring
	tokens   *token.Store // made in the bubble
	driver   *rand.Rand   // of what happens when
	reads    *rand.Rand   // of what clients look at
	accounts *rand.Rand   // of what is charged to an account
	flowing  *rand.Rand   // of workflows that are
	moors    *rand.Rand   // of what goes to the site with Slurm
	settings *rand.Rand   // of what is configured otherwise
	config   engine.Config
	ports    []*port

	kept   keeping
	offset atomic.Int64 // of the clock of the machine, in nanoseconds
	life   *life
	former *life // the one before, cut off from the journal, which another server leads now; nil if there is none
	lives  int
	events int

	mu      sync.Mutex // of what clients hear
	calls   []*call    // in the order in which they were made
	ids     []string
	offers  []string
	offered map[string]*call // by offer
	made    map[string]*call // by reservation
	series  []string
	first   map[string][]occurrence // of series, as they were promised at first
	flows   []string
	tasked  []string // reservations in which something is to run
	watcher *watcher
	hearing []*receiver
	looked  []*look          // in the order in which they were asked
	upkept  []*upkeepLook    // likewise, when sites were in line
	before  uint64           // the last record of an earlier version; 0 if there is none
	group   int              // the first of the last group of calls
	debits  map[string]debit // by reservation, when they were looked at last
	settled tab
	charges charges

	replayed replay

	trace  []string // what happened, a line each
	ledger *ledger
	wrong  []error
}

// keyring is the tokens of the clients, the same for all seeds.
type keyring struct {
	folder string
	secret map[string]string // by user
}

// keeping is where a journal is kept from one life to the next.
type keeping interface {
	// open opens it for a life, whose steps it counts.
	open(l *life) (journal.Store, error)
	// fall returns when the life is over: what a loss of power leaves is what the next one opens.
	fall(l *life, store journal.Store) error
}

// life is one run of the service, from its start to its end.
type life struct {
	w       *world
	host    *service.Host
	handler http.Handler
	store   journal.Store
	began   uint64          // the last record of the life before
	ctx     context.Context //nolint:containedctx // of the clients, who go away with it
	leave   context.CancelFunc
	asking  sync.WaitGroup

	mu      sync.Mutex
	steps   int // until the power fails; negative is never
	dead    bool
	calm    bool // all faults have ended
	full    bool // the disk is
	failing int  // writes that fail
	lost    int  // writes that are done, and said to have failed
	late    int  // writes that a database commits when the connection is lost already
	slow    time.Duration
	last    bool            // no other one follows
	usurped bool            // another server leads
	did     map[string]bool // features that were answered well
	met     map[string]bool // faults that happened
	said    []error         // what the service has told of that it never should
}

// step counts one thing that the service does to the world, and reports whether it is still alive.
func (l *life) step() bool {
	l.w.plant.shake()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.steps > 0 {
		if l.steps--; l.steps == 0 {
			l.dead = true
			l.met[faultCrash] = true
		}
	}
	return !l.dead
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

func (l *life) isUsurped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.usurped
}

// mustLead has it be a fault that something is done to the world by a service while another one leads.
func (l *life) mustLead(what string) {
	if l.w.life != l && l.isUsurped() {
		l.w.fault("%s by a server that leads no more", what)
	}
}

func (l *life) isCalm() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calm
}

func (l *life) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	l.met[faultCrash] = true
}

func (l *life) meet(fault string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.met[fault] = true
}

func (l *life) note(feature string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.did[feature] = true
}

var errPower = errors.New("the power has failed")

// meets is what befalls a write of the journal in memory.
func (l *life) meets(what string) mishap {
	l.mu.Lock()
	late := l.late > 0 && what == "append"
	if late {
		l.late--
	}
	l.mu.Unlock()
	return mishap{
		late: late,
		before: func() error {
			if !l.step() {
				return errPower
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			switch {
			case l.full:
				return berth.Errorf(berth.Exhausted, "journal", "no room left on the device")
			case l.failing > 0:
				l.failing--
				return berth.Errorf(berth.Unavailable, "journal", "input/output error")
			}
			return nil
		},
		after: func() error {
			if !l.step() {
				return errPower
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.lost > 0 {
				l.lost--
				return berth.Errorf(berth.Unavailable, "journal", "input/output error")
			}
			return nil
		},
	}
}

// inMemory keeps the journal on media.
type inMemory struct{ media *media }

func (k *inMemory) open(l *life) (journal.Store, error) {
	s, err := openMemory(k.media, l.meets)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (k *inMemory) fall(_ *life, store journal.Store) error {
	err := store.Close()
	k.media = k.media.image()
	return err
}

// inDatabase keeps it in a database, which several servers may share.
type inDatabase struct{ db *database }

func (k *inDatabase) open(l *life) (journal.Store, error) {
	s, err := k.db.take(l.meets)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (k *inDatabase) fall(_ *life, store journal.Store) error { return store.Close() }

// onDisk keeps it in SQLite, on a disk that forgets what was not synced.
type onDisk struct {
	folder string
	n      int
	disk   *lossy.Disk
	rng    *rand.Rand
	torn   bool // the image has been taken
	failed error
}

func (k *onDisk) place() string { return filepath.Join(k.folder, fmt.Sprint("life-", k.n)) }

func (k *onDisk) open(l *life) (journal.Store, error) {
	disk, err := lossy.New()
	if err != nil {
		return nil, err
	}
	k.disk, k.torn = disk, false
	store, err := sqlite.Open(k.place(), sqlite.Options{VFS: disk.Name(), InlineCheckpoints: true})
	if err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	disk.Loose(filepath.Join(k.place(), "mark"))
	disk.Before(func(int) {
		if !l.step() && !k.torn {
			k.tear()
		}
	})
	return store, nil
}

// tear takes what the loss of power at this moment leaves.
func (k *onDisk) tear() {
	k.torn = true
	k.failed = k.disk.Image(k.place(), filepath.Join(k.folder, fmt.Sprint("life-", k.n+1)), k.rng)
}

func (k *onDisk) fall(l *life, store journal.Store) error {
	if l.isDead() && !k.torn {
		k.tear()
	}
	k.disk.Before(nil)
	err := errors.Join(store.Close(), k.disk.Close(), k.failed)
	if k.torn {
		k.n++
	}
	return err
}

// draw returns the source of one purpose.
func (w *world) draw(purpose string) *rand.Rand { return stream.New(w.seed, purpose).Rand() }

// clock is the time of the service's machine, which can be wrong.
func (w *world) clock() time.Time { return time.Now().Add(time.Duration(w.offset.Load())) }

// now is the right time.
func (w *world) now() berth.Time { return berth.Time(time.Now().Unix()) }

// draws opens the sources of the seed.
func (w *world) draws() {
	w.driver, w.reads, w.accounts, w.moors, w.settings = w.draw("driver"), w.draw("reads"), w.draw("accounts"), w.draw("moors"), w.draw("settings")
	w.flowing = w.draw("flowing")
}

// newWorld draws what a seed is about.
func newWorld(t *testing.T, seed uint64, keys *keyring, p *plant, l *ledger) *world {
	t.Helper()
	w := &world{t: t, seed: seed, keys: keys, plant: p, ledger: l, offered: map[string]*call{}, made: map[string]*call{}, first: map[string][]occurrence{}, hearing: newReceivers()}
	w.plan = planOf(seed)
	w.plan.leave(p.less)
	if p.from != "" {
		w.plan.begin(p.from)
	}
	w.draws()
	if w.plan.has(faultUpgrade) {
		time.Sleep(time.Until(time.Unix(int64(goldens[w.plan.before].last)+60, 0)))
	}
	if w.plan.has(featureBudget) {
		nearMonth()
	}
	var err error
	if w.tokens, err = token.Open(keys.folder, "operator", w.now()); err != nil {
		t.Fatal(err)
	}
	w.kept = &inMemory{media: newMedia()}
	if w.plan.disk {
		w.kept = &onDisk{folder: t.TempDir(), rng: w.draw("disk")}
	}
	if w.plan.shared {
		w.kept = &inDatabase{newDatabase()}
	}
	w.config = engine.Config{Sites: []berth.Site{
		{Name: "open", Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Early}}},
		{Name: "licensed", Pools: []berth.Pool{{Name: "p", PEs: 16, Binding: berth.Late}}, Software: []berth.Software{{Name: "solver", Licences: 2}}},
	}}
	w.config.Limits = cappedLimits()
	if w.plan.has(featureAhead) {
		w.config.Ahead = policy.Ahead{{Beyond: aheadBeyond, Share: aheadShare}}
	}
	if w.plan.has(featureCost) {
		w.config.Limits = append(w.config.Limits, gentleLimits()...)
	}
	if w.plan.has(featureBudget) {
		w.config.Limits = append(w.config.Limits, budgetLimits()...)
	}
	w.port("harbour", fake.Nodes(4, 4), site.UnitNode, berth.Early)
	w.port("quay", fake.Nodes(3, 2), site.UnitCore, berth.Late)
	if w.plan.has(faultUpgrade) {
		w.upgrade(goldens[w.plan.before])
	}
	if w.plan.has(featureSlurm) {
		w.port("pier", fake.Nodes(3, 4), site.UnitNode, berth.Early)
		w.ports[len(w.ports)-1].kind = "slurm"
	}
	w.watcher = newWatcher(w)
	return w
}

// begin starts a life.
func (w *world) begin(last bool) error {
	w.lives++
	l := &life{w: w, last: last, steps: -1, did: map[string]bool{}, met: map[string]bool{}}
	l.ctx, l.leave = context.WithCancel(context.Background())
	if w.plan.has(faultCrash) && w.driver.IntN(4) > 0 {
		l.steps = 1 + w.driver.IntN(w.plan.stepsPerLife)
	}
	if w.plan.has(faultSlowDisk) {
		l.slow = time.Duration(w.driver.IntN(40)) * 10 * time.Millisecond
		l.meet(faultSlowDisk)
	}
	w.life = l
	w.reconfigure()
	if w.plan.has(faultUpgrade) {
		l.meet(faultUpgrade)
	}
	store, err := w.kept.open(l)
	if err != nil {
		return err
	}
	l.store = store
	end, err := store.Last(l.ctx)
	if err != nil {
		return err
	}
	l.began = end.Number
	began := time.Now()
	managers := map[string]service.Manager{}
	for _, p := range w.ports {
		managers[p.name] = service.Manager{
			Kind: p.kind, Adapter: p.adapter(l), Layout: p.layout, Every: p.every, Horizon: horizon, GiveUpAfter: w.plan.giveUp,
		}
	}
	var leads func() error
	if s, is := store.(*shared); is {
		leads = w.plant.leads(s.leads)
	}
	l.host, err = service.Open(context.Background(), service.Options{
		Leads:    leads,
		Projects: w.projects(), Config: w.plant.configured(w.config), Journal: paced(l, w.plant.journal(store)), Version: "test", SnapshotEvery: w.plan.snapshotEvery, Keep: w.plan.keep,
		Managers: managers, Log: slog.New(&listening{l}),
		Clock: w.clock, Monotonic: func() time.Duration { return time.Since(began) }, Uptime: func() (string, time.Duration) { return "", 0 },
	})
	if err != nil {
		if l.isDead() {
			return nil
		}
		return err
	}
	l.handler = w.plant.answers(api.New(api.Options{Service: l.host, Tokens: w.tokens, Heartbeat: time.Hour}), w.lives)
	synctest.Wait()
	w.watcher.attach(l)
	if w.plan.has(featureNotice) {
		w.hear(l)
	}
	synctest.Wait()
	return nil
}

// finish ends a life, by a loss of power if it is dead. What is cut off from the journal goes on beside the next one.
func (w *world) finish() {
	w.watcherLeaves()
	w.retire()
	if l := w.life; l.isUsurped() && !l.isDead() {
		l.asking.Wait()
		w.former = l
		return
	}
	w.end(w.life)
}

// watcherLeaves has the client that follows the events leave, whose connections to what has ended or is cut off are gone.
func (w *world) watcherLeaves() {
	w.life.leave()
	w.watcher.detach()
}

// end ends a life that its clients have left.
func (w *world) end(l *life) {
	l.leave()
	if l.host != nil {
		if err := l.host.Close(); err != nil && !l.isDead() && !l.usurped && !journal.CanRetry(err) { // a disk may fail to the end
			w.fault("closing the service: %w", err)
		}
	}
	l.asking.Wait()
	if err := w.kept.fall(l, l.store); err != nil {
		w.fault("closing the journal: %w", err)
	}
	for _, err := range l.said {
		w.fault("the service says: %w", err)
	}
	w.ledger.add(l)
}

func (w *world) fault(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Errorf("life %d, %s: "+format, append([]any{w.lives, time.Now().UTC().Format("15:04:05")}, args...)...))
}

// record adds to the trace, which is the same for the same seed.
func (w *world) record(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%d ", time.Now().UnixNano())+fmt.Sprintf(format, args...))
	if *tracing {
		w.t.Logf("%s "+format, append([]any{time.Now().UTC().Format("15:04:05.000")}, args...)...)
	}
}

// listening keeps what the service says that it never should: that it found a fault of its own.
type listening struct{ life *life }

func (s *listening) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError || *tracing
}
func (s *listening) WithAttrs([]slog.Attr) slog.Handler { return s }
func (s *listening) WithGroup(string) slog.Handler      { return s }

func (s *listening) Handle(_ context.Context, r slog.Record) error {
	var text strings.Builder
	text.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		text.WriteString(" " + a.String())
		return true
	})
	if *tracing {
		s.life.w.t.Log("    log: ", text.String())
	}
	if lost := s.life.isUsurped() && r.Message == "the journal cannot go on"; lost {
		return nil
	}
	if r.Level < slog.LevelError || s.life.isDead() || strings.HasPrefix(r.Message, "the clock is not believed") {
		return nil
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	s.life.said = append(s.life.said, errors.New(text.String()))
	return nil
}
