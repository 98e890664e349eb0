package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
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
}

// keeper brings a managed site and what is promised there into line. It works
// from what is so, not from what has happened: each round compares what should
// be at the site with what is, so a lost answer, a restart and a site that
// forgets are all the same to it. The outbox says that there is something to do.
type keeper struct {
	name    string
	manager Manager
	agent   *site.Agent
	wake    chan struct{} // of one place

	// What was last told to the engine, of the loop: the PEs that are out of use,
	// with the time until which they are, by pool.
	told map[string]map[berth.PE]berth.Time

	mu      sync.Mutex
	view    SiteView
	trouble map[string]string // by reservation
	made    map[string]uint64 // the generation that is at the site, by reservation
}

func (h *Host) startManagers() {
	for name, manager := range h.options.Managers {
		manager.Every = cmp.Or(manager.Every, 5*time.Second)
		manager.Horizon = cmp.Or(manager.Horizon, 60)
		k := &keeper{
			name: name, manager: manager, agent: site.NewAgent(manager.Adapter, manager.Every),
			wake: make(chan struct{}, 1), told: map[string]map[berth.PE]berth.Time{},
			trouble: map[string]string{}, made: map[string]uint64{},
		}
		for o := range h.core.engine.Outages() {
			if o.Resource.Site == name {
				k.remember(&o)
			}
		}
		h.sites[name] = k
		ctx, cancel := context.WithCancel(context.Background())
		h.keepers.cancel = append(h.keepers.cancel, cancel)
		h.keepers.running.Go(func() { h.keep(ctx, k) })
	}
}

// remember notes what the engine was told in an earlier life.
func (k *keeper) remember(o *engine.Outage) {
	pool := k.told[o.Resource.Name]
	if pool == nil {
		pool = map[berth.PE]berth.Time{}
		k.told[o.Resource.Name] = pool
	}
	for _, run := range o.PEs.Runs() {
		for pe := run.Lo; pe < run.Hi; pe++ {
			pool[pe] = o.Until
		}
	}
}

func (h *Host) stopManagers() {
	for _, cancel := range h.keepers.cancel {
		cancel()
	}
	h.keepers.running.Wait()
}

// wakeManagers has the sites looked after that something happened at.
func (h *Host) wakeManagers(notices []Notice) {
	for i := range notices {
		for _, a := range notices[i].Reservation.Allotments {
			if k := h.sites[a.Resource.Site]; k != nil {
				k.poke()
			}
		}
	}
}

func (k *keeper) poke() {
	select {
	case k.wake <- struct{}{}:
	default: // it has been told and has not looked yet
	}
}

// keep looks after a site until ctx ends.
func (h *Host) keep(ctx context.Context, k *keeper) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-k.wake:
		}
		h.round(ctx, k)
		timer.Reset(k.manager.Every)
	}
}

// round looks at a site once and does what is to be done there.
func (h *Host) round(ctx context.Context, k *keeper) {
	state, err := k.agent.Observe(ctx)
	if err != nil {
		k.unreachable(err)
		if ctx.Err() == nil {
			h.log.Warn("site cannot be looked at", "site", k.name, "error", err)
		}
		return
	}
	want, err := call(ctx, h, func(answer func(wanted, error)) {
		h.outOfUse(k, state)
		h.seen(k, state)
		answer(h.wanted(k), nil)
	})
	if err != nil {
		return // the service stops
	}
	changed := h.arrange(ctx, k, state, &want)
	if changed {
		k.agent.Forget()
	}
	k.reached(state, &want)
	_ = h.do(ctx, func() { h.settle(k, &want) })
}

// wanted is what should be at a site.
type wanted struct {
	now          berth.Time
	reservations []site.Reservation
	promises     []berth.Reservation // the same ones
	effect       uint64              // number of the last effect that it answers
}

// wanted returns what should be real at a site by now: what runs, and what
// starts within the horizon.
func (h *Host) wanted(k *keeper) wanted {
	w := wanted{now: h.clock()}
	for r := range h.core.engine.Due(k.name, w.now.Add(k.manager.Horizon)) {
		at, ok := k.site(&r)
		if ok {
			w.reservations, w.promises = append(w.reservations, at), append(w.promises, r)
		}
	}
	if box := h.core.engine.Outbox(); len(box) > 0 {
		w.effect = box[len(box)-1].Number
	}
	return w
}

// site returns a promise as it is to be at the site; ok is false if nothing of
// it can be there yet.
func (k *keeper) site(r *berth.Reservation) (site.Reservation, bool) {
	at := site.Reservation{
		Name: site.NameOf(k.name, r.Request.ID, r.Generation), Start: r.Start(), End: r.End(),
		Partition: r.Request.Partition, Users: []string{r.Request.User},
	}
	for i := range r.Allotments {
		a := &r.Allotments[i]
		if a.Resource.Site != k.name {
			continue
		}
		shares, known := k.manager.Layout.Shares(a.Resource.Name, a.PEs)
		if known && len(shares) > 0 {
			at.Shares = append(at.Shares, shares...)
		} else {
			at.Cores += a.NPE // a late promise: how many, not yet which
		}
	}
	if len(at.Shares) > 0 {
		at.Cores = 0
	}
	return at, len(at.Shares) > 0 || at.Cores > 0
}

// arrange makes, changes and takes down reservations at a site until it has what
// is wanted; changed is false if nothing was to be done.
func (h *Host) arrange(ctx context.Context, k *keeper, state *site.State, want *wanted) (changed bool) {
	booker, can := k.manager.Adapter.(site.Booker)
	if !can {
		return false
	}
	have := map[site.Name]*site.Booking{}
	for i := range state.Ours {
		have[site.Name(state.Ours[i].Name)] = &state.Ours[i]
	}
	promised := map[site.Name]bool{}
	for i := range want.reservations {
		promised[want.reservations[i].Name] = true
	}
	// What is not wanted goes first: it may be in the way of what is.
	for i := range state.Ours {
		if name := site.Name(state.Ours[i].Name); !promised[name] {
			changed = true
			if err := booker.Release(ctx, name); err != nil {
				h.log.Warn("a reservation cannot be taken down at its site", "site", k.name, "name", name, "error", err)
			}
		}
	}
	launcher, _ := k.manager.Adapter.(site.Launcher)
	for i := range want.reservations {
		r, promise := &want.reservations[i], &want.promises[i]
		var err error
		booking := have[r.Name]
		switch {
		case booking == nil:
			changed = true
			err = reserve(ctx, booker, r)
		case len(r.Differences(booking, want.now)) > 0:
			changed = true
			err = outcome(booker.Change(ctx, *r))
		}
		if err == nil && launcher != nil && promise.State == berth.Active {
			err = launcher.Launch(ctx, r.Name, r.Shares)
		}
		k.note(promise, err)
		if err != nil && ctx.Err() == nil {
			h.log.Warn("a promise is not real at its site", "site", k.name, "reservation", promise.Request.ID, "name", r.Name, "error", err)
		}
	}
	return changed
}

// reserve makes a reservation; in doubt it asks again, which is harmless.
func reserve(ctx context.Context, booker site.Booker, r *site.Reservation) error {
	result, err := booker.Reserve(ctx, *r)
	if err != nil && result.Verdict == site.Doubt {
		result, err = booker.Reserve(ctx, *r)
	}
	return outcome(result, err)
}

// outcome makes an error of what is neither there nor made.
func outcome(o site.Outcome, err error) error {
	if err == nil && o.Verdict == site.Refused {
		return errors.New("the site refused it: " + o.Words)
	}
	return err
}

// note remembers how far a promise is real.
func (k *keeper) note(r *berth.Reservation, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.trouble[r.Request.ID] = err.Error()
		return
	}
	delete(k.trouble, r.Request.ID)
	k.made[r.Request.ID] = r.Generation
}

// settle takes the effects out of the outbox that a round has answered. What
// could not be done is wanted in the next round again.
func (h *Host) settle(k *keeper, want *wanted) {
	for _, effect := range h.core.engine.Outbox() {
		if effect.Number <= want.effect && effect.Site == k.name {
			h.step(&engine.Event{Kind: engine.Settle, Effect: effect.Number}, Key{}, nil)
		}
	}
}

// outOfUse tells the engine which PEs are out of use at a site: those of nodes
// that are not up, and those that run what is not ours, until its limit. Only
// what is new is told.
func (h *Host) outOfUse(k *keeper, state *site.State) {
	now := h.clock()
	layout := k.manager.Layout
	is := map[string]map[berth.PE]berth.Time{}
	take := func(shares []site.Share, until berth.Time) {
		for pool, pes := range layout.PEs(shares) {
			if is[pool] == nil {
				is[pool] = map[berth.PE]berth.Time{}
			}
			for _, run := range pes.Runs() {
				for pe := run.Lo; pe < run.Hi; pe++ {
					is[pool][pe] = max(is[pool][pe], until)
				}
			}
		}
	}
	ours := map[string]bool{}
	for i := range state.Ours {
		ours[state.Ours[i].Name] = true
	}
	for i := range state.Running {
		if job := &state.Running[i]; !ours[job.Reservation] && job.End > now {
			take(job.Shares, job.End)
		}
	}
	for i := range state.Foreign {
		if b := &state.Foreign[i]; b.Active && b.End > now {
			take(b.Shares, b.End)
		}
	}
	for i := range state.Nodes {
		if node := &state.Nodes[i]; node.Condition == site.Down || node.Condition == site.Drained {
			take([]site.Share{{Node: node.Name}}, berth.Forever)
		}
	}
	pools := map[string]bool{}
	for pool := range is {
		pools[pool] = true
	}
	for pool := range k.told {
		pools[pool] = true
	}
	names := make([]string, 0, len(pools))
	for pool := range pools {
		names = append(names, pool)
	}
	slices.Sort(names)
	for _, pool := range names {
		h.tellOutOfUse(k, pool, is[pool], now)
	}
}

// tellOutOfUse tells what is new about one pool: first what is back or out of use
// for another time than was told, then what is out of use, by time.
func (h *Host) tellOutOfUse(k *keeper, pool string, is map[berth.PE]berth.Time, now berth.Time) {
	told := k.told[pool]
	var back []berth.PE
	fresh := map[berth.Time][]berth.PE{}
	for pe, until := range told {
		if is[pe] != until && until > now {
			back = append(back, pe)
		}
	}
	for pe, until := range is {
		if told[pe] != until {
			fresh[until] = append(fresh[until], pe)
		}
	}
	resource := berth.PoolID(k.name, pool)
	if len(back) > 0 {
		h.step(&engine.Event{Kind: engine.Up, Resource: resource, PEs: berth.PEsOf(back...)}, Key{}, nil)
	}
	times := make([]berth.Time, 0, len(fresh))
	for until := range fresh {
		times = append(times, until)
	}
	slices.Sort(times)
	for _, until := range times {
		event := engine.Event{Kind: engine.Down, Resource: resource, PEs: berth.PEsOf(fresh[until]...)}
		if until < berth.Forever {
			event.Until = until
		}
		h.step(&event, Key{}, func(err error) {
			if err != nil {
				h.log.Error("the engine does not take what a site says", "site", k.name, "pool", pool, "error", err)
			}
		})
	}
	k.told[pool] = is
}

// seen notes which reservations are in use: a job runs in them.
func (h *Host) seen(k *keeper, state *site.State) {
	used := map[string]bool{}
	for i := range state.Running {
		used[state.Running[i].Reservation] = true
	}
	if len(used) == 0 {
		return
	}
	for r := range h.core.engine.Due(k.name, h.clock()) {
		if r.State == berth.Active && !r.Shown && used[string(site.NameOf(k.name, r.Request.ID, r.Generation))] {
			h.step(&engine.Event{Kind: engine.Show, ID: r.Request.ID}, Key{}, nil)
		}
	}
}

func (k *keeper) unreachable(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.view.Reachable, k.view.Trouble = false, err.Error()
}

func (k *keeper) reached(state *site.State, want *wanted) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.view.Reachable, k.view.Trouble, k.view.Seen = true, "", state.At
	k.view.Nodes, k.view.Drift = state.Nodes, site.FindDrift(want.reservations, state)
}

// named adds the names of nodes, and how far a promise is real at its sites.
func (h *Host) named(r *Reservation) {
	for i := range r.Allotments {
		a := &r.Allotments[i]
		k := h.sites[a.Resource.Site]
		if k == nil {
			continue
		}
		if shares, known := k.manager.Layout.Shares(a.Resource.Name, a.PEs); known && len(shares) > 0 {
			if r.Nodes == nil {
				r.Nodes = make([][]string, len(r.Allotments))
			}
			r.Nodes[i] = site.NodesOf(shares)
		}
		if slices.ContainsFunc(r.Sites, func(m Materialised) bool { return m.Site == k.name }) || r.State.Over() {
			continue
		}
		promise, live := h.core.engine.Reservation(r.ID)
		if !live {
			continue
		}
		k.mu.Lock()
		r.Sites = append(r.Sites, Materialised{
			Site: k.name, Name: site.NameOf(k.name, r.ID, promise.Generation),
			Made: k.made[r.ID] == promise.Generation, Trouble: k.trouble[r.ID],
		})
		k.mu.Unlock()
	}
}
