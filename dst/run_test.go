package dst

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/sqlite/lossy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// run has a seed happen.
func (w *world) run() {
	for n := range w.plan.lives {
		last := n == w.plan.lives-1
		if err := w.begin(last); err != nil {
			w.fault("the service does not start: %w", err)
			break
		}
		if last {
			w.life.mu.Lock()
			w.life.steps = -1
			w.life.mu.Unlock()
		}
		if w.life.host != nil {
			w.live(last)
		}
		w.finish()
		w.record("the journal: %s", w.audit(last))
		if len(w.wrong) > 0 {
			break
		}
	}
	w.retire()
	time.Sleep(slowest) // calls to sites come back
}

// slowest is longer than a call to a site may take.
const slowest = 10 * time.Minute

// live is what happens in one life.
func (w *world) live(last bool) {
	l := w.life
	for _, c := range w.calls[max(0, len(w.calls)-40):] { // what was answered is answered again
		if c.key != "" && (c.status == 0 || time.Since(c.at) < remembered) && !l.isDead() {
			l.asking.Go(func() { w.ask(l.ctx, l, c) })
			w.moment()
			w.record("again %d: %d %s", c.number, c.status, c.answer)
		}
	}
	for range w.plan.eventsPerLife {
		if l.isDead() || len(w.wrong) > 0 {
			return
		}
		if l.isUsurped() {
			w.cutOff()
			return
		}
		if w.former != nil && w.driver.IntN(8) == 0 {
			w.retire()
		}
		w.events++
		w.next(last)
	}
	w.retire()
	if l.isDead() || l.isUsurped() || len(w.wrong) > 0 || !last && w.driver.IntN(2) == 0 {
		return
	}
	w.settle()
}

// cutOff is what happens to a service that does not reach the journal any more, until another one may lead: clients ask it in vain.
func (w *world) cutOff() {
	for passed := time.Duration(0); passed < waitTime; passed += time.Second {
		if !w.life.isDead() {
			w.together(1 + w.driver.IntN(2))
		}
		time.Sleep(time.Second + w.pause("cut off"))
	}
}

// retire has the service that was cut off reach the journal again, where it learns that another one leads, and end.
func (w *world) retire() {
	l := w.former
	if l == nil {
		return
	}
	w.former = nil
	s := l.store.(*shared)
	s.back()
	time.Sleep(w.pause("renews", "the lease") * 1000) // up to a second: a batch that waits is tried every second
	s.lose()
	time.Sleep(1100*time.Millisecond + w.pause("retires"))
	w.end(l)
	w.record("retired")
}

// next has one thing happen.
func (w *world) next(last bool) {
	rng, l := w.driver, w.life
	switch n := rng.IntN(20); {
	case n < 11:
		w.together(1 + rng.IntN(1+rng.IntN(4)))
		w.within()
	case n < 15:
		w.pass(pick(rng, []int{1, 1, 5, 30, 30, 120, 600, 1800}))
	case n == 15 && w.plan.has(faultRepeat) && len(w.calls) > 0:
		w.again()
	case n == 16 && !last && w.plan.has(faultCrash) && rng.IntN(12) == 0:
		l.kill()
	case len(w.plan.faults) > 0:
		w.misfortune(pick(rng, w.plan.faults))
	}
}

// within checks what clients know of what is promised by now, where a QOS or an account has limits or what may be promised ahead has.
func (w *world) within() {
	if l := w.life; (w.plan.has(featureLimit) || w.plan.has(featureAhead) || w.plan.has(featureBudget)) && !l.isDead() {
		err := w.budgets()
		list, failed := w.list()
		if err == nil && failed == nil {
			err = w.claims(list)
		}
		if err = errors.Join(err, failed); err != nil && !l.isDead() {
			w.fault("%w", err)
		}
	}
}

// pass lets time pass.
func (w *world) pass(seconds int) {
	time.Sleep(time.Duration(seconds)*time.Second + w.pause("driver"))
	synctest.Wait()
	w.watcher.catchUp()
	w.record("passed %d", seconds)
}

// disk is the disk of the journal, nil if it is in memory.
func (w *world) disk() *lossy.Disk {
	if k, is := w.kept.(*onDisk); is {
		return k.disk
	}
	return nil
}

// siteFaults are what befalls calls to a site, by the fault of the plan.
var siteFaults = map[string][]string{
	faultRefuses: {fake.Refuse, fake.Deny}, faultLies: {fake.Lie, fake.Wrong}, faultSilent: {fake.Down, fake.Unsent, fake.Lost},
	faultLate: {fake.Slow, fake.Late}, faultTwice: {fake.Twice}, faultStale: {fake.Stale},
}

// misfortune has a fault happen.
func (w *world) misfortune(fault string) {
	rng, l := w.driver, w.life
	p := pick(rng, w.ports)
	disk := w.disk()
	l.mu.Lock()
	switch fault {
	case faultFullDisk:
		l.full = !l.full
		if disk != nil {
			disk.Room(map[bool]int64{true: 0, false: -1}[l.full])
		}
	case faultBadWrite:
		if l.failing = 1 + rng.IntN(3); disk != nil {
			disk.Fail(1+rng.IntN(10), lossy.BadWrite)
		}
	case faultLostReply:
		if l.lost = 1; disk != nil {
			disk.FailSyncs(1)
		}
	case faultPending:
		l.late = 1 + rng.IntN(2)
	}
	l.mu.Unlock()
	switch fault {
	case faultCrash, faultSlowDisk, faultRepeat, faultGone, faultReceiver, faultHangs:
		return // elsewhere
	case faultPending:
		if !w.plan.shared {
			return
		}
	case faultLead:
		k, is := w.kept.(*inDatabase)
		if !is || l.last || w.former != nil || rng.IntN(2) > 0 {
			return
		}
		k.db.expire(false)
		l.mu.Lock()
		l.usurped = true
		l.mu.Unlock()
	case faultRot:
		k, is := w.kept.(*inMemory)
		if !is || !k.media.rot() {
			return
		}
	case faultForgets:
		p.turn.Lock()
		p.fake.Restart(1 + rng.IntN(5))
		p.turn.Unlock()
	case faultNodes:
		p.turn.Lock()
		if len(p.down) > 0 && rng.IntN(2) == 0 {
			p.fake.Repair(p.down[0])
			p.down = p.down[1:]
		} else if n := pick(rng, p.nodes); !slices.Contains(p.down, n) {
			p.fake.Fail(n, "broken")
			p.down = append(p.down, n)
		}
		p.turn.Unlock()
	case faultStranger:
		start := w.now().Add(berth.Duration(rng.IntN(3000)))
		b := site.Booking{Name: fmt.Sprint("other", rng.IntN(3)), Start: start, End: start.Add(600), Users: []string{"eve"}, Shares: []site.Share{{Node: pick(rng, p.nodes)}}}
		p.turn.Lock()
		p.fake.Book(b)
		p.turn.Unlock()
	case faultStream:
		w.watcher.breakOff()
	case faultClock:
		w.offset.Store(int64(time.Duration(rng.IntN(5)-2) * pick(rng, []time.Duration{time.Second, time.Minute, time.Hour})))
	default:
		for _, what := range siteFaults[fault] {
			if rng.IntN(2) == 0 {
				continue
			}
			f := fake.Fault{Op: pick(rng, operationsOf[what]), Nth: rng.IntN(3), What: what}
			if what == fake.Slow || what == fake.Late || what == fake.Twice {
				f.After = berth.Duration(1 + rng.IntN(90))
			}
			if f.Nth == 0 && rng.IntN(3) > 0 {
				f.Nth = 1
			}
			p.fake.Inject(f)
		}
	}
	l.meet(fault)
	w.moment()
	w.record("misfortune %s", fault)
}

// operationsOf are the calls that a fault of the fake means something for.
var operationsOf = map[string][]string{
	fake.Refuse: {fake.Reserve, fake.Change, fake.Release, fake.Submit}, fake.Deny: {fake.Reserve, fake.Change, fake.Drain},
	fake.Lie: {fake.Reserve, fake.Change, fake.Release}, fake.Wrong: {fake.Reserve, fake.Change, fake.Release, fake.Observe},
	fake.Down: {fake.All, fake.Reserve, fake.Observe}, fake.Unsent: {fake.All, fake.Reserve}, fake.Lost: {fake.All, fake.Reserve, fake.Change, fake.Release, fake.Launch},
	fake.Slow: {fake.All, fake.Observe}, fake.Late: {fake.Reserve, fake.Change, fake.Release, fake.Launch}, fake.Twice: {fake.Reserve, fake.Release}, fake.Stale: {fake.Observe},
}

// bound is after what time without faults everything must be as promised: the longest that a service
// leaves a site alone that did not answer, and as long for what it does then. What was decided by a clock that was ahead
// comes about when that time has come: it is two hours ahead at most.
const (
	bound      = 3600
	clockAhead = 7200
)

// settle ends all faults, and checks that everything comes to be as promised within the bound.
func (w *world) settle() {
	l := w.life
	l.mu.Lock()
	l.calm, l.full, l.failing, l.lost, l.late, l.slow = true, false, 0, 0, 0, 0
	l.mu.Unlock()
	if disk := w.disk(); disk != nil {
		disk.Room(-1)
		disk.Fail(0, "")
		disk.FailSyncs(0)
	}
	w.offset.Store(0)
	for _, p := range w.ports {
		for n := range 3 {
			p.fake.Unbook(fmt.Sprint("other", n))
		}
		p.heal(w.now())
	}
	w.record("all faults end")
	var wrong error
	within := bound
	if w.plan.has(faultClock) {
		within += clockAhead
	}
	for waited := 0; waited < within; waited += 120 {
		w.pass(120)
		l.send(l.ctx, "operator", "POST", "/v1/clock/accept", "", "", 0)
		w.moment() // what has been due is decided, and told
		if l.isDead() {
			return
		}
		if wrong = errors.Join(w.inLine(), w.owed(l)); wrong == nil {
			break
		}
		w.record("not yet: %v", wrong)
	}
	if l.isDead() {
		return
	}
	if wrong != nil {
		w.fault("%d s after the last fault: %w", within, wrong)
		return
	}
	w.watcher.mu.Lock()
	ended := w.watcher.ended
	w.watcher.mu.Unlock()
	if ended {
		w.watcher.breakOff()
	}
	list, err := w.list()
	if err == nil {
		w.lookAtAll(list)
		err = errors.Join(w.watcher.check(list), w.claims(list), w.budgets(), w.told(list), w.nothingRuns(list), w.turns(), w.upkeepExplained())
	}
	if err != nil && !l.isDead() {
		w.fault("%w", err)
	}
}

// list returns all reservations.
func (w *world) list() (all []service.Reservation, err error) {
	const limit = 500
	for after := ""; ; after = all[len(all)-1].ID {
		page, _, err := w.life.host.List(context.Background(), operator, service.Filter{After: after, Limit: limit})
		if err != nil {
			return all, err
		}
		if all == nil {
			all = page
		} else {
			all = append(all, page...)
		}
		if len(page) < limit {
			return all, nil
		}
	}
}

// inLine returns how the sites and what is promised differ.
func (w *world) inLine() error {
	if err := w.life.host.Ready(); err != nil {
		return err
	}
	list, err := w.list()
	if err != nil {
		return err
	}
	outbox, err := w.life.host.Outbox(context.Background(), operator)
	if err != nil {
		return err
	}
	for i := range list {
		if r := &list[i]; r.State == service.Pending && !r.Request.IsJob() {
			return fmt.Errorf("%s is pending: its site is asked about it", r.ID)
		}
	}
	for _, p := range w.ports {
		state, err := p.state(w.now())
		if err != nil {
			return err
		}
		if err := p.inLine(state, list, outbox, w.now()); err != nil {
			return err
		}
	}
	return w.maintained(list)
}

// nothingRuns returns an error if a task runs in a promise that is over, though all sites are in line. What a site
// forgets to be a reservation it has no reason to end.
func (w *world) nothingRuns(list []service.Reservation) error {
	if w.plan.has(faultForgets) {
		return nil
	}
	for _, p := range w.ports {
		state, err := p.state(w.now())
		if err == nil {
			err = p.runs(state, list)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
