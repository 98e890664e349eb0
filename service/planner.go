package service

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// Planning a large workflow takes seconds. It is done beside the loop, on the other core that
// follows the durable records (see snapshots), so that no one else waits for it; the loop then
// only looks whether the plan still holds. Those who have workflows planned are served in turn,
// one workflow at a time, each on what came of the one before, and a processor is left for others where there are
// several.

// What is small enough is planned in the loop: a number of tasks times pools, among no more than so
// than a number of live reservations, take some ten milliseconds with their offers, which is within a slice; and those
// who have a hundred tasks planned get twice as many answers as beside the loop.
const (
	plannedAtOnce = 128
	plannedAmong  = 20_000
)

// plannedByTwo is how many tasks are planned on two processors at most, where there are more than two: it takes a tenth of a second.
const plannedByTwo = 2000

const (
	// planTime is for how long plans are compared, and plans that leave slack are looked for where
	// nothing is found; the first plan that is found later is taken.
	planTime = 5 * time.Second
	// planMost is for how long any plan is looked for. With the time of one that was planned before it
	// that is within flowPatience.
	planMost = 20 * time.Second
	// flowPatience is how long an answer about a workflow is waited for: connections are given up
	// after a minute.
	flowPatience = 50 * time.Second
	// planTries is how often a workflow is planned whose plan does not hold when it is done.
	planTries = 3
	// planRest is for how many times as long as a large promise holds others, from its step until it is durable, the next
	// workflow of its user is put off where others ask: one call of them in a hundred meets one. It is large if its step
	// takes longer than a slice. planRestMost bounds it: maxPlans workflows are planned within flowPatience.
	planRest     = 99
	planRestMost = 4 * time.Second
	// planAlone is for how many times as long it is looked whether others ask. If not, nothing is put off.
	planAlone = 2
	// maxPlans is how many workflows of a user and of their service accounts wait to be planned.
	maxPlans = 8
)

// planner plans workflows beside the loop.
type planner struct {
	line line // what is to be planned

	mu      sync.Mutex
	waiting map[string]int // how many workflows are, by whose they count as

	pace time.Duration // of a task, lately; with the turn of the snapshots
}

func newPlanner(whose func(who string) string) planner {
	return planner{line: newLine(whose), waiting: map[string]int{}, pace: 100 * time.Microsecond}
}

// startPlanner plans what is handed to the planner until the service ends.
func (h *Host) startPlanner() {
	h.snapshots.making.Go(func() {
		for {
			select {
			case <-h.planner.line.ready:
			case <-h.snapshots.ctx.Done():
				return
			}
			for do, ok := h.planner.line.pop(); ok && h.snapshots.ctx.Err() == nil; do, ok = h.planner.line.pop() {
				do()
			}
		}
	})
}

// enter takes a place among those whose workflows are planned, which leave gives back. A service account's is one of its owner's.
func (p *planner) enter(who string) (leave func(), err error) {
	owner := p.line.whose(who) // at the time: what is given back is what was taken
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[owner] >= maxPlans {
		return nil, berth.Errorf(berth.Exhausted, "workflow", "%d workflows of %s%s are being planned already; want at most %d, so wait for one", p.waiting[owner], owner, andAccounts(who, owner), maxPlans)
	}
	p.waiting[owner]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.waiting[owner]--; p.waiting[owner] == 0 {
			delete(p.waiting, owner)
		}
	}, nil
}

// andAccounts tells a service account that its owner's other accounts count too.
func andAccounts(who, owner string) string {
	if who == owner {
		return ""
	}
	return " and their service accounts"
}

// isSmall reports whether a workflow is planned in the loop.
func (h *Host) isSmall(w *berth.Workflow) bool {
	pools := 0
	for i := range h.core.config.Sites {
		pools += len(h.core.config.Sites[i].Pools)
	}
	return len(w.Tasks)*pools <= plannedAtOnce && h.core.engine.Live() <= plannedAmong
}

// planBeside has something done with an engine that is where this one is now, beside the loop and in
// the turn of who asks; then the loop gets what came of it. What is planned begins when it will be
// decided, as well as can be told, and that much later. It ends soon after wanted returns false. It is of the loop.
func (h *Host) planBeside(who string, tasks int, later berth.Duration, wanted func() bool, do func(e *engine.Engine, o engine.PlanOptions) error, then func(error)) {
	h.awake() // plans are for now
	h.whenDurable(func(failed error) {
		if failed != nil {
			h.line.push(who, func() { then(failed) })
			return
		}
		h.planner.line.push(who, func() {
			err := h.planOn(h.durable.reached(), tasks, later, wanted, do)
			over := make(chan time.Duration, 1) // for how long others were held
			h.line.push("", func() {            // in no one's turn: others' plans do not wait for all that this user has asked for
				began := time.Now()
				then(err)
				large := time.Since(began) > slice
				h.whenDurable(func(error) {
					held := time.Duration(0)
					if large {
						held = time.Since(began)
					}
					over <- held
				})
			})
			select { // the next one is planned on what comes of this one, and not where that will be
			case held := <-over:
				h.putOff(who, held)
			case <-h.snapshots.ctx.Done():
			}
		})
	})
}

// putOff puts off the planning of a user's next workflow after one that held others for a time, as long as others ask.
func (h *Host) putOff(who string, held time.Duration) {
	if held == 0 {
		return
	}
	who = h.planner.line.whose(who)
	h.planner.line.owe(who, maxOwed)
	othersAsked := h.line.watch(who)
	rest := min(planRest*held, planRestMost)
	alone := min(planAlone*held, rest)
	time.AfterFunc(alone, func() {
		more := rest - alone
		if !othersAsked() {
			more = 0
		}
		time.AfterFunc(more, func() { h.planner.line.repay(who, maxOwed) })
	})
}

// planOn has something planned with the engine of the other core, which follows the journal up to a
// record at least. It is of the planner.
func (h *Host) planOn(number uint64, tasks int, later berth.Duration, wanted func() bool, do func(e *engine.Engine, o engine.PlanOptions) error) error {
	s := &h.snapshots
	err := h.onOther(number, "planning a workflow", wanted, func(e *engine.Engine) error {
		began, passed := time.Now(), h.timekeeper.passed()
		options := engine.PlanOptions{
			// To the nearest second: most plans take less than half of one, and hold unless one ends meanwhile.
			From:   h.Now().Add(berth.Duration((time.Duration(tasks)*h.planner.pace).Round(time.Second)/time.Second) + later),
			Enough: func() bool { return time.Since(began) > planTime },
			Quit: func() bool {
				runtime.Gosched() // who asks for little has the processor first
				return s.ctx.Err() != nil || !wanted() || time.Since(began) > planMost
			},
		}
		if tasks <= plannedByTwo && runtime.GOMAXPROCS(0) > 2 {
			options.Both = both
		}
		err := do(e, options)
		if took := (h.timekeeper.passed() - passed) / time.Duration(tasks); took > h.planner.pace {
			h.planner.pace = took
		} else {
			h.planner.pace -= (h.planner.pace - took) / 4
		}
		return err
	})
	switch coded, is := errors.AsType[*berth.Error](err); {
	case errors.Is(err, errOther):
		return unplannable(err)
	case !is || coded.Code != berth.Unavailable:
		return err
	}
	switch { // it was given up
	case s.ctx.Err() != nil:
		return unplannable(s.ctx.Err())
	case !wanted():
		return context.Canceled
	default:
		return berth.Errorf(berth.Unavailable, "workflow", "no plan was found for its %d tasks within %s; ask for a later deadline, for fewer tasks, or for the planner bd-cpar, which is quick", tasks, planMost)
	}
}

// both runs two functions at once. A panic in either is one here, once both have ended.
func both(a, b func()) {
	ended := make(chan *site.Panic, 1)
	go func() { ended <- site.Caught(b) }()
	defer func() {
		if p := <-ended; p != nil {
			panic(p)
		}
	}()
	a()
}

// errOther says that the other core cannot be asked for now.
var errOther = errors.New("the other core cannot be asked")

// onOther has something done with the engine of the other core, which follows the journal up to a
// record at least, with the turn of the snapshots. The error is context.Canceled if it is not wanted any more then, and
// wraps errOther if the core could not follow, or a fault came up. It is of the planner.
func (h *Host) onOther(number uint64, doing string, wanted func() bool, do func(e *engine.Engine) error) error {
	s := &h.snapshots
	s.turn.Lock()
	defer s.turn.Unlock()
	if !wanted() {
		return context.Canceled
	}
	if s.core == nil || s.core.position.Number < number {
		if err := h.followBeside(s.ctx); err != nil {
			return fmt.Errorf("%w: %w", errOther, err)
		}
	}
	err := caught(s.core.position.Number, doing, func() error { return do(s.core.engine) })
	if f := faultOf(err); f != nil {
		s.core = nil // it may be in the middle of something
		f.At = h.Now()
		f.keep(&h.options)
		return fmt.Errorf("%w: %w", errOther, err)
	}
	return err
}

// askFlow has a workflow decided and waits for the answer, for no longer than clients do. Without a
// key the workflow is wanted only as long as its answer is waited for, and is not promised later. Under a key it is
// decided all the same, and asking again tells how.
func (h *Host) askFlow(ctx context.Context, ask *Ask, id string, decide func(ctx context.Context, wanted func() bool) (FlowAnswer, error)) (FlowAnswer, error) {
	limit, end := context.WithTimeout(ctx, flowPatience)
	defer end()
	answer, err := decide(limit, func() bool { return ask.Key != "" || limit.Err() == nil })
	switch {
	case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return answer, err
	case ask.Key != "":
		return FlowAnswer{}, berth.Errorf(berth.Unavailable, "workflow", "%q is still being planned after %s; ask again under the same key, or look for it by this id", id, flowPatience)
	default:
		return FlowAnswer{}, berth.Errorf(berth.Unavailable, "workflow", "%q could not be decided within %s, and is given up unless it can be seen by this id; ask again, under a key to have it planned for longer", id, flowPatience)
	}
}

// unplannable is the error of a workflow that could not be planned for a reason that is not its
// own.
func unplannable(err error) error {
	if errors.Is(err, context.Canceled) {
		return berth.Errorf(berth.Unavailable, "service", "it is stopping; try again")
	}
	return berth.Errorf(berth.Unavailable, "workflow", "it cannot be planned for now, the log says why; try again")
}

// planFlow has a workflow planned beside the loop and decides about it then; where the plan does
// not hold any more it is planned again. It is of the loop.
func (h *Host) planFlow(a asked, w *berth.Workflow, unable map[string]string, wanted func() bool, answer func(FlowAnswer, error)) {
	who := a.by.User
	leave, err := h.planner.enter(who)
	if err != nil {
		answer(FlowAnswer{}, err) // and it may be tried again under the same key
		return
	}
	h.begin(a.key)
	within := w.Deadline.Sub(w.Arrival)
	var try func(n int)
	done := func(result FlowAnswer, err error) {
		leave()
		answer(result, err)
		h.line.push(who, func() {
			for _, answer := range h.finish(a.key) {
				answer(result, err)
			}
		})
	}
	try = func(n int) {
		var plan *engine.WorkflowPlan
		var offers []engine.WorkflowOffer
		var planned uint64 // the record after which it was
		var foreseen *engine.Foreseen
		q, unseen := h.jobsBounded(new(engine.SubmitWorkflow(w)))
		if unseen != nil {
			h.denyFlow(a, unseen, done)
			return
		}
		h.planBeside(who, len(w.Tasks), berth.Duration(n-1), wanted, func(e *engine.Engine, o engine.PlanOptions) (err error) {
			if o.Offers, o.Lead, planned = flowOffers, offerLead, h.snapshots.core.position.Number; a.from.Deadline {
				w.Deadline = o.From.Add(within)
			}
			plan, offers, err = e.PlanWorkflow(w, o)
			if err == nil && q != nil && plan.Refusal == nil {
				foreseen, err = h.foreseeOn(e, new(engine.SubmitPlanned(w, plan)), q, o.From, o.Quit)
			}
			return err
		}, func(err error) {
			if err == nil && !wanted() {
				err = context.Canceled
			}
			if err == nil {
				if err = h.flowTaken(w); err == nil {
					err = h.withinRunners(w, unable)
				}
			}
			if err != nil {
				h.denyFlow(a, err, done)
				return
			}
			if plan.Last = n == planTries; h.core.configured > planned {
				plan.Unready()
			}
			event := engine.SubmitPlanned(w, plan)
			event.Foreseen = foreseen
			h.stepFlow(event, a, w.ID, offers, func(result FlowAnswer, err error) {
				if n >= planTries && isForeseenElsewhere(err) {
					err = errForeseenElsewhere
				}
				if planFails(err) {
					h.line.push(who, func() { try(n + 1) })
					return
				}
				done(result, err)
			})
		})
	}
	try(1)
}
