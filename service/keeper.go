package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// Manager is how a managed site is reached. Adapter is a site.Observer and as
// much more of package site as it can be.
type Manager struct {
	Kind    string // "local", "slurm", …
	Adapter site.Observer
	Layout  *site.Layout
	// Every is how often the site is looked at; 0 is 5 s.
	Every time.Duration
	// Horizon is how long before its start a reservation is made real there;
	// 0 is a minute.
	Horizon berth.Duration
	// Shadow says that the site is only watched: whatever else the adapter can do,
	// nothing is asked of it but how the site is, and what the engine promises there
	// is a guess that is compared with what happens.
	Shadow bool
	// Adopt says that reservations which another service has made there, or this one
	// from other data, become this service's at the first look: those of no promise
	// here are taken down, with the jobs in them.
	Adopt bool
	// GiveUpAfter is how long the site may refuse for good what was promised before the
	// promise fails: the cause may be a moment's. 0 is at once.
	GiveUpAfter berth.Duration
	// Meanwhile, if it is not nil, is done beside all that, until it returns or the
	// context ends, which it does when the service stops.
	Meanwhile func(ctx context.Context, m *Meantime)
}

// keeper brings a managed site and what is promised there into line. It works
// from what is so, not from what has happened: each round compares what should
// be at the site with what is, so a lost answer, a restart and a site that
// forgets are all the same to it.
//
// The outbox is not what it works from, but what it is measured by: an effect
// leaves it once a round has found or made the site as it is promised by then.
// What a round could not do keeps its effects, and is wanted in the next round
// again.
type keeper struct {
	name    string
	names   site.Names // of promises there
	manager Manager
	agent   *site.Agent
	wake    chan struct{} // of one place
	ground  atomic.Pointer[ground]
	changed chan struct{} // of one place: other nodes were seen than those of the ground
	looked  berth.Time    // when the state was that was last counted; of the loop
	known   berth.Time    // when it was last known what runs there; of the loop
	takenIn uint64        // number of the last look that was taken in; of the loop
	heard   chan struct{} // of one place: what the site announced was taken in
	soon    time.Time     // when a look was asked for besides; of the loop
	// last is the last state that the engine was told what is out of use in, and foreseen
	// up to when the returns of reservations of others were; of the loop.
	last     *site.State
	foreseen berth.Time
	// queue is the ordinary jobs that waited in the state queued; of the loop.
	queue  []berth.Request
	queued *site.State
	// early are the ids of promises that are at the site before the horizon; of
	// the loop.
	early  map[promise]string
	cost   atomic.Int64  // CPU time of the last look, in nanoseconds
	away   bool          // the last look at it failed; of the keeper's goroutine
	suited bool          // promises are on PEs that have what they require; of the loop
	skewed bool          // the last look told that its clock is off; of the keeper's goroutine
	silent []string      // controllers that did not answer at the last look, while another did; of the keeper's goroutine
	round  uint64        // number of the last look that a round was given; of the keeper's goroutine
	lately time.Duration // that it took; of the keeper's goroutine
	// mine says of each promise whose name was seen at the site whether it is this
	// service's; served that something may be made there; strangers are the names that
	// were last told to be another's; all of the loop.
	mine map[promise]bool
	ids  map[promise]string // of promises with names that were seen, empty of those of others; of the loop
	// adopted are the promises of others that the service took over, and namesKept is how many entries mine and ids may have before
	// those that are needed no more are forgotten; of the loop.
	adopted   map[promise]bool
	namesKept int
	served    bool
	// wishes are those that were asked for lately, by id, and turn is how often all of them were; of the loop.
	wishes map[string]*keptWish
	turn   uint64
	// shared is who was let in by hand, and told what else was last told to be changed by
	// hand, of promises; of the loop.
	shared    map[promise]sharing
	told      map[promise]string
	strangers []string
	// standoffs are the promises that the site refuses; of the keeper's goroutine.
	standoffs map[promise]*standoff

	mu   sync.Mutex
	view SiteView
	// partitions are as last seen.
	partitions []site.Partition
	// unserved says why nothing is made at the site; empty if all is well.
	unserved string
	asked    time.Time        // when the look now under way began; zero if there is none
	took     time.Duration    // the quicker one of the last two looks
	rounds   chan struct{}    // closed and replaced after each round
	made     map[promise]made // what is at the site as it is promised
	// trouble is what is wrong, in words, of promises and of what should be gone.
	trouble map[promise]string
	// doomed says when the promises fail that the site refuses for good, if it goes on to.
	doomed map[promise]berth.Time
}

// promise is the name of a promise at a site, the same for all its generations.
type promise string

// made is what a site has of a promise.
type made struct {
	name       site.Name
	generation uint64 // of the promise
}

// promise returns the name of the promise about a request.
func (k *keeper) promise(id string) promise {
	return promise(k.names.Promise(id))
}

// promiseOf returns the promise that a reservation at the site belongs to, empty
// if it is not ours.
func (k *keeper) promiseOf(name site.Name) promise {
	p, _, _ := k.names.Split(name)
	return promise(p)
}

func (h *Host) startManagers() {
	for _, name := range slices.Sorted(maps.Keys(h.options.Managers)) {
		manager := h.options.Managers[name]
		manager.Every = cmp.Or(manager.Every, 5*time.Second)
		manager.Horizon = cmp.Or(manager.Horizon, 60)
		if a, goes := manager.Adapter.(site.Clocked); goes {
			a.SetClock(h.timekeeper.seconds)
		}
		if manager.Shadow {
			manager.Adapter = site.Watch(manager.Adapter)
		}
		k := &keeper{
			name: name, names: site.NamesAt(name), manager: manager, agent: site.NewAgent(manager.Adapter, manager.Every),
			wake: make(chan struct{}, 1), heard: make(chan struct{}, 1), changed: make(chan struct{}, 1), early: map[promise]string{}, mine: map[promise]bool{}, ids: map[promise]string{}, wishes: map[string]*keptWish{}, rounds: make(chan struct{}),
			shared: map[promise]sharing{}, told: map[promise]string{},
			made: map[promise]made{}, trouble: map[promise]string{},
		}
		k.known = h.timekeeper.alive
		k.view.Starting, k.view.Trouble = true, "not looked at yet"
		on := new(berth.Site)
		if at := slices.IndexFunc(h.core.config.Sites, func(s berth.Site) bool { return s.Name == name }); at >= 0 {
			on = &h.core.config.Sites[at]
		}
		k.ground.Store(newGround(manager.Layout, on))
		for _, ahead := range k.ground.Load().ahead {
			k.manager.Horizon = max(k.manager.Horizon, ahead)
		}
		h.sites[name] = k
		ctx, cancel := context.WithCancel(context.Background())
		h.keepers.cancel = append(h.keepers.cancel, cancel)
		h.keepers.running.Go(func() {
			defer h.boundary("looking after site " + name)
			h.keep(ctx, k)
		})
		if a, can := manager.Adapter.(site.Announcer); can {
			h.keepers.running.Go(func() {
				defer h.boundary("listening to site " + name)
				h.listen(ctx, k, a.Changed())
			})
		}
		if manager.Meanwhile != nil {
			h.keepers.running.Go(func() {
				defer h.boundary("asking site " + name + " what it is")
				manager.Meanwhile(ctx, h.meantime(k))
			})
		}
	}
}

func (h *Host) stopManagers() {
	for _, cancel := range h.keepers.cancel {
		cancel()
	}
	h.keepers.running.Wait()
}

// wakeManagers has the sites looked after where something happened that is real
// there by now, or should be.
func (h *Host) wakeManagers(list []news) {
	if len(h.sites) == 0 {
		return
	}
	now := h.clock()
	for i := range list {
		p := list[i].card.promise
		if p == nil {
			continue
		}
		for _, a := range p.Allotments {
			if k := h.sites[a.Resource.Site]; k != nil && !k.manager.Shadow &&
				(a.Start <= now.Add(k.manager.Horizon) || k.isEarly(list[i].card.id)) {
				k.poke()
			}
		}
	}
}

// farApart is how many looks may fail and what runs still counts as known in between.
const farApart = 4

// lastKnown returns until when something is known to have run that is not listed now: until
// the look before, if that is long ago, since it ran then; else until now.
func (k *keeper) lastKnown(now berth.Time) berth.Time {
	was := k.known
	k.known = now
	if was == 0 || now-was <= berth.Time(farApart*max(1, int64(k.pace().Seconds()))) {
		return now
	}
	return was
}

func (k *keeper) poke() {
	select {
	case k.wake <- struct{}{}:
	default: // it has been told and has not looked yet
	}
}

// lookSoon has the site looked at without waiting for the next look, if a further one costs no more than
// looks may. It is of the loop.
func (k *keeper) lookSoon() {
	if time.Since(k.soon) < time.Duration(lookShare*k.cost.Load()) {
		return
	}
	k.soon = time.Now()
	k.agent.Forget()
	k.poke()
}

// restPart is which part of the time between two looks a keeper rests after a
// round however often it is poked, so that a stream of small things is one round.
// It does not rest after a round for which it was not poked, at most one
// in that time.
const restPart = 20

// restShare is how many times as long as a round took a keeper rests after it at least if a site says that
// something has happened there, so that rounds are no more than a third of the time however often it does; and how
// many times as long as it took to take in what was announced it does not listen after that.
const restShare = 2

// lookShare is which part of a core the commands of looks may use on average: with what Berth
// does with their answers, half as much again in front of Slurm, that is 5 %.
const lookShare = 30

// pace returns how often the site is looked at, less often than configured where a look costs
// much.
func (k *keeper) pace() time.Duration {
	return max(k.manager.Every, time.Duration(lookShare*k.cost.Load()))
}

// keep looks after a site until ctx ends.
func (h *Host) keep(ctx context.Context, k *keeper) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for again, heard := false, false; ; {
		poked := again || heard
		if !heard {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			case <-k.wake:
				poked = true
			case <-k.heard:
				poked = true
			}
		}
		heard = false
		select {
		case <-k.wake: // the round that begins now is the answer to that too, whichever of them came first
			poked = true
		default:
		}
		began := time.Now()
		again = h.round(ctx, k) && !again // once, or a site that never has it right is never left in peace
		rest, least, wait := k.pace()/restPart, restShare*time.Since(began), k.pace()
		switch {
		case again:
			wait = 0
		case !poked:
			timer.Reset(rest + wait)
			continue
		}
		timer.Reset(min(rest, least))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(max(0, rest-least))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-k.heard:
			heard = true
		}
		timer.Reset(wait)
	}
}

// listen takes in what a site announces until ctx ends, also while a round is under way there: what became of tasks
// is told and decided upon at once, and the next round has done at the site what follows from it. It does
// not listen all the time either.
func (h *Host) listen(ctx context.Context, k *keeper, changed <-chan struct{}) {
	deaf := time.NewTimer(0)
	defer deaf.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-deaf.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		began := time.Now()
		k.agent.Forget()
		state, err := k.agent.Observe(ctx)
		took := time.Since(began)
		if err == nil { // else the next round says so
			took, _ = call(ctx, h, "", func(answer func(time.Duration, error)) { // the error is that the service stops
				began := time.Now()
				if state, _ := h.own(k, state); k.suited && k.isFresh(state) { // else the first round takes in what there is
					h.tellOutOfUse(k, state)
					h.reportEnded(k, h.tellTasks(k, state)) // the next round looks at all of them
				}
				answer(took+time.Since(began), nil)
			})
		}
		deaf.Reset(restShare * took) // not for as long as it waited for its turn too
		select {
		case k.heard <- struct{}{}:
		default: // the round is still to come
		}
	}
}

// isFresh reports whether no later look at the site is taken in already, and notes that this one is. It is of the loop.
func (k *keeper) isFresh(state *site.State) bool {
	fresh := state.Look >= k.takenIn
	k.takenIn = max(k.takenIn, state.Look)
	return fresh
}

// round looks at a site once and does what is to be done there. It says whether
// the site was changed, so that it is worth another look at once.
func (h *Host) round(ctx context.Context, k *keeper) (again bool) {
	before := k.appearance()
	defer func() {
		if k.appearance() != before {
			h.tellSite(k.name)
		}
	}()
	began := time.Now()
	k.asks(began)
	limit := k.silence()
	silent := time.AfterFunc(limit+time.Millisecond, func() {
		h.Guard("telling that site "+k.name+" is silent", func() { h.tellSite(k.name) })
	})
	state, err := k.agent.Observe(ctx)
	silent.Stop()
	k.asks(time.Time{})
	if err == nil {
		k.cost.Store(int64(state.Cost))
		if k.away || time.Since(began) > limit {
			h.log.Info("site is back", "site", k.name)
		}
		k.away = false
		if state.Look != k.round { // else it was not looked at again
			h.saySlow(k, state.Took)
			k.round = state.Look
		}
		h.saySkew(k, state.Skew)
		h.saySilent(k, state.Silent)
	}
	if err != nil {
		k.away = ctx.Err() == nil
		if k.unreachable(err) && ctx.Err() == nil {
			h.log.Warn("site cannot be looked at", "site", k.name, "error", err)
		}
		return false
	}
	k.noticeNodes(state)
	if k.manager.Shadow {
		h.watch(ctx, k, state)
		return false
	}
	var strangers []site.Booking
	want, err := call(ctx, h, "", func(answer func(wanted, error)) {
		state, strangers = h.own(k, state)
		fresh := k.isFresh(state)
		if fresh { // a task that went with its node is tried where that is known to be lost
			h.tellOutOfUse(k, state)
		}
		h.tellUsed(k, state)
		if !k.suited {
			k.suited = true
			h.suit(k)
		}
		h.countIdle(k, state)
		if fresh {
			h.tellTasks(k, state)
			h.reportTasks(k, state)
		}
		h.renew(k)
		h.proposeAgain(k)
		want := h.wanted(k, state)
		h.whenDurable(func(err error) { answer(want, err) })
	})
	if err != nil {
		return false // the service stops
	}
	if len(strangers) > 0 {
		k.refuse(state, &want, strangers)
		return false
	}
	if h.leads() != nil {
		return false // what is wanted here is not what the leader wants
	}
	did := h.arrange(ctx, k, state, &want)
	if did.changed {
		k.agent.Forget()
	}
	k.endure(h.Now(), &did)
	k.reached(state, &want, &did)
	h.tellDelivered(ctx, k, &want, &did)
	h.settle(ctx, k, &want, &did)
	h.reject(ctx, k, did.never)
	h.replace(ctx, k, did.refused)
	return did.changed && len(did.failed) == 0
}

// maxSkew is from when on a site's clock is told of: promises are kept to the second, and
// what Slurm allows itself is about that.
const maxSkew berth.Duration = 2

// saySkew writes down that a site's clock is off, and when that is over: what is promised
// there begins and ends by that clock.
func (h *Host) saySkew(k *keeper, skew berth.Duration) {
	off := skew > maxSkew || skew < -maxSkew
	switch {
	case off && !k.skewed:
		h.log.Warn("the clock of a site is off, so what is promised there begins and ends at the wrong time; let both keep time with the same server", "site", k.name, "ahead_s", skew)
	case !off && k.skewed:
		h.log.Info("the clock of a site is right again", "site", k.name)
	}
	k.skewed = off
	k.mu.Lock()
	defer k.mu.Unlock()
	k.view.Skew = skew
}

// silence returns for how long a site may leave a question open before it counts as unreachable: twice as long as the
// time between two looks or, of a site that is slow, as its looks take. So it does not come and go with each look.
func (k *keeper) silence() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.silenceNow()
}

func (k *keeper) silenceNow() time.Duration { return 2 * max(k.manager.Every, k.took) }

// isSlow reports whether a look that took so long makes a site a slow one.
func (k *keeper) isSlow(took time.Duration) bool { return took > 2*k.manager.Every }

// saySlow writes down that looks at a site take long, two on end, and when that is over. What is promised there for later stands all
// the same; what begins now waits for its answers.
func (h *Host) saySlow(k *keeper, took time.Duration) {
	k.lately, took = took, min(took, k.lately)
	k.mu.Lock()
	was := k.isSlow(k.took)
	k.took = took
	k.mu.Unlock()
	switch is := k.isSlow(took); {
	case is && !was:
		h.log.Warn("a site is slow, so what is to begin there at once waits; look at the load of its controller, or ask it less often (every)", "site", k.name, "look_s", int(took.Seconds()))
	case was && !is:
		h.log.Info("a site is quick again", "site", k.name)
	}
}

// saySilent writes down that one controller of a site does not answer and another has taken over, and when that
// is over. Nothing of what is promised depends on it.
func (h *Host) saySilent(k *keeper, silent []string) {
	switch {
	case slices.Equal(silent, k.silent):
		return
	case len(silent) > 0:
		h.log.Warn("a controller of a site does not answer; another serves, and has every promise", "site", k.name, "silent", silent)
	default:
		h.log.Info("all controllers of a site answer again", "site", k.name)
	}
	k.silent = silent
	k.mu.Lock()
	defer k.mu.Unlock()
	k.view.Silent = silent
}

// settledAtOnce is how many effects are looked at in one turn of the loop.
const settledAtOnce = 1024

// settle takes the effects out of the outbox that a round has answered.
func (h *Host) settle(ctx context.Context, k *keeper, want *wanted, did *done) {
	last := uint64(0) // the number of the last effect that was looked at
	for more := true; more && ctx.Err() == nil; {
		var err error
		more, err = call(ctx, h, "", func(answer func(bool, error)) {
			began, late := time.Now(), false
			list := h.core.engine.OutboxAfter(last, settledAtOnce)
			for i := range list {
				effect := &list[i]
				if effect.Number > want.effect {
					list = nil // what follows was not asked for
					break
				}
				last = effect.Number
				if effect.Site != k.name {
					continue
				}
				about := k.promise(effect.Reservation)
				if _, failed := did.failed[about]; !failed && !did.asksAbout(about) {
					h.tell(k, engine.Settle(effect.Number))
					if late = time.Since(began) > h.options.turn; late {
						break
					}
				}
			}
			if late && h.options.turned != nil {
				h.options.turned(h)
			}
			answer(late || len(list) == settledAtOnce, nil)
		})
		if err != nil {
			return // the service stops
		}
	}
}

// appearance is how a site looks from afar.
type appearance struct {
	reachable, starting bool
	trouble             string
}

// appearance returns how the site was found last.
func (k *keeper) appearance() appearance {
	k.mu.Lock()
	defer k.mu.Unlock()
	return appearance{k.view.Reachable, k.view.Starting, k.view.Trouble}
}

func (k *keeper) asks(at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = at
}

// unreachable notes that a site cannot be looked at; it says whether that is new.
func (k *keeper) unreachable(err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.roundIsOver()
	fresh := k.view.Trouble != err.Error()
	k.view.Reachable, k.view.Starting, k.view.Trouble = false, false, err.Error()
	return fresh
}

// reached notes how the site is after a round.
func (k *keeper) reached(state *site.State, want *wanted, did *done) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.roundIsOver()
	k.made, k.trouble, k.unserved = did.made, did.failed, ""
	k.view.Reachable, k.view.Starting, k.view.Trouble, k.view.Seen = true, false, did.words(), state.At
	k.view.Nodes, k.view.Drift, k.partitions = state.Nodes, nil, state.Partitions
	_, books := k.manager.Adapter.(site.Booker)
	for _, d := range site.FindDrift(want.reservations(), state) {
		if _, still := did.failed[k.promiseOf(d.Name)]; still || !books {
			k.view.Drift = append(k.view.Drift, d)
		}
	}
}

// look returns what was last seen of a site. One that leaves a question open for
// longer than silence says counts as unreachable before the adapter gives up, which
// may take minutes.
func (k *keeper) look() SiteView {
	k.mu.Lock()
	defer k.mu.Unlock()
	view := k.view
	view.Adapter, view.Shadow = k.manager.Kind, k.manager.Shadow
	if view.Trouble == "" && (view.Skew > maxSkew || view.Skew < -maxSkew) {
		view.Trouble = fmt.Sprintf("its clock is %d s ahead of this one: let both keep time with the same server", view.Skew)
	}
	if view.Trouble == "" && len(view.Silent) > 0 {
		view.Trouble = fmt.Sprintf("controller %s does not answer; another serves", strings.Join(view.Silent, ", "))
	}
	if view.Trouble == "" && k.isSlow(k.took) {
		view.Trouble = fmt.Sprintf("it is slow: a look takes %d s, so what is to begin there at once waits", int(k.took.Seconds()))
	}
	if open := time.Since(k.asked); (view.Reachable || view.Starting) && !k.asked.IsZero() && open > k.silenceNow() {
		view.Reachable, view.Starting, view.Trouble = false, false, fmt.Sprintf("no answer for %d s", int(open.Seconds()))
	}
	return view
}

// at returns what the site has of a promise, or will have: its name, whether it
// is there as promised, and what is wrong with it.
func (k *keeper) at(id string, generation uint64) Materialised {
	p := k.promise(id)
	k.mu.Lock()
	defer k.mu.Unlock()
	m := Materialised{Site: k.name, Name: k.names.Of(id, generation), Trouble: k.trouble[p]}
	if at, doomed := k.doomed[p]; doomed {
		m.Trouble += "; it fails at " + instant(at) + " if the site still refuses it then"
	}
	if is, there := k.made[p]; there && is.generation == generation {
		m.Name, m.Made = is.name, true
	}
	return m
}
