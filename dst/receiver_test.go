package dst

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

// receiver is what a user has notices sent to. It outlives the service, and knows by what arrives alone.
type receiver struct {
	user, id string
	hangs    bool // it never answers, where receivers hang

	mu     sync.Mutex
	from   berth.Time // since when what happens to reservations of the user is told; 0 if it is not
	tries  map[uint64]int
	came   map[string][]uint64               // numbers of what came for the first time, in that order, by reservation
	kinds  map[string]map[notice.Kind]uint64 // by reservation
	before map[uint64]bool
	others []string // what came about reservations of other users
}

// newReceivers returns those that there are: two of one user, and one that hangs of another.
func newReceivers() (all []*receiver) {
	for i, user := range []string{"alice", "bob", "alice"} {
		all = append(all, &receiver{
			user: user, id: fmt.Sprintf("%015xa", i+1), hangs: user == "bob",
			tries: map[uint64]int{}, came: map[string][]uint64{}, kinds: map[string]map[notice.Kind]uint64{}, before: map[uint64]bool{},
		})
	}
	return all
}

// hear has notices sent in a life.
func (w *world) hear(l *life) {
	l.host.SendNotices(w.plant.messages(delivering{l}, w.lives))
	for _, r := range w.hearing {
		r.attach(l)
	}
}

// owed returns an error while notices wait that are not told.
func (w *world) owed(l *life) (err error) {
	for _, r := range w.hearing {
		err = errors.Join(err, r.owed(l))
	}
	return err
}

// told returns what was not told, and what was told in another order than it happened in.
func (w *world) told(list []service.Reservation) (err error) {
	for _, r := range w.hearing {
		err = errors.Join(err, r.check(list, r.hangs && w.plan.has(faultHangs)))
	}
	return err
}

// attach makes the receiver known if it is not.
func (r *receiver) attach(l *life) {
	ctx := context.Background()
	by := service.Principal{User: r.user, Role: service.User}
	known, err := l.host.Hooks(ctx, by)
	if err != nil || slices.ContainsFunc(known, func(h service.HookView) bool { return h.ID == r.id }) {
		return
	}
	var all []notice.Kind
	for _, k := range notice.Kinds() {
		all = append(all, k.Kind)
	}
	if hook, err := l.host.AddHook(ctx, service.Ask{By: by}, service.Hook{ID: r.id, Form: service.WebhookForm, Kinds: all, Starts: 900, Ends: 600, Unused: 600}); err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.from = hook.Created
	}
}

// delivering brings notices to receivers for as long as a life lasts.
type delivering struct{ l *life }

// fails is how often a notice fails at most: the next tries come five minutes and half an hour behind the first.
const fails = 2

// answersWithin is for how long an answer of a receiver is waited for.
const answersWithin = 15 * time.Second

func (d delivering) Send(ctx context.Context, hook *service.Hook, o *service.Owed) service.Sent {
	w := d.l.w
	at := slices.IndexFunc(w.hearing, func(r *receiver) bool { return r.id == hook.ID })
	if at < 0 {
		return service.Sent{Words: "there is no such receiver", Final: true}
	}
	r, about := w.hearing[at], fmt.Sprint(o.Number)
	time.Sleep(w.pause("notice", hook.ID, about))
	if !d.l.step() {
		return service.Sent{Words: "the power has failed"}
	}
	d.l.mustLead("a notice")
	if r.hangs && w.plan.has(faultHangs) {
		d.l.meet(faultHangs)
		if w.pause("hangs", about)%2 == 0 {
			r.take(o) // and its answer is lost
		}
		select {
		case <-ctx.Done():
		case <-time.After(answersWithin + w.pause("hangs", about)):
		}
		return service.Sent{Words: "the receiver does not answer"}
	}
	r.mu.Lock()
	r.tries[o.Number]++
	failed := w.plan.has(faultReceiver) && !d.l.isCalm() && r.tries[o.Number] <= fails && w.pause("receiver", hook.ID, about)%3 == 0
	r.mu.Unlock()
	if failed {
		d.l.meet(faultReceiver)
		return service.Sent{Status: 500, Words: "the receiver fails"}
	}
	r.take(o)
	d.l.note(featureNotice)
	time.Sleep(w.pause("notice", hook.ID, about, "answer"))
	return service.Sent{Status: 200}
}

// take takes a notice, which may have come before.
func (r *receiver) take(o *service.Owed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	about, is := o.Reservation()
	if !is || r.before[o.Number] {
		return
	}
	if about.Request.User != r.user {
		r.others = append(r.others, fmt.Sprintf("%s, and is of %s", about.ID, about.Request.User))
	}
	r.before[o.Number] = true
	r.came[about.ID] = append(r.came[about.ID], o.Number)
	if r.kinds[about.ID] == nil {
		r.kinds[about.ID] = map[notice.Kind]uint64{}
	}
	r.kinds[about.ID][o.Kind] = o.Number
}

// owed returns an error while notices wait that are not told.
func (r *receiver) owed(l *life) error {
	if !l.w.plan.has(featureNotice) || r.hangs && l.w.plan.has(faultHangs) {
		return nil
	}
	hooks, err := l.host.Hooks(context.Background(), service.Principal{User: r.user, Role: service.User})
	for i := range hooks {
		if err == nil && hooks[i].ID == r.id && hooks[i].Owed > 0 {
			err = fmt.Errorf("%d notices for %s wait", hooks[i].Owed, r.user)
		}
	}
	return err
}

// told is the kinds by which a reservation of a state has been told of, one of them.
var told = map[service.State][]notice.Kind{
	service.Held: {notice.Granted}, service.Confirmed: {notice.Granted}, service.Degraded: {notice.Granted}, service.Active: {notice.Granted},
	service.Finished: {notice.Ended}, service.Cancelled: {notice.Cancelled}, service.Expired: {notice.Lost}, service.NoShow: {notice.Lost},
	service.Failed: {notice.Lost}, service.Refused: {notice.Refused},
}

// check returns what was not told, and what was told in another order than it happened in.
func (r *receiver) check(list []service.Reservation, hanging bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		of := &list[i]
		if r.from == 0 || hanging || of.Created <= r.from || of.Request.User != r.user || of.Request.IsJob() || of.State == service.Pending || !strings.HasPrefix(of.Request.Name, "c") {
			continue
		}
		if !slices.ContainsFunc(told[of.State], func(k notice.Kind) bool { return r.kinds[of.ID][k] > 0 }) {
			return fmt.Errorf("%s is %s, and its user was told %v by receiver %s", of.ID, of.State, r.kinds[of.ID], r.id)
		}
	}
	if len(r.others) > 0 {
		return fmt.Errorf("receiver %s of %s is told of %s", r.id, r.user, r.others[0])
	}
	for _, id := range slices.Sorted(maps.Keys(r.came)) {
		if numbers := r.came[id]; !slices.IsSorted(numbers) {
			return fmt.Errorf("notices about %s came in the order %v", id, numbers)
		}
	}
	return nil
}
