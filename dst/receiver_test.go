package dst

import (
	"context"
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
	mu     sync.Mutex
	from   berth.Time // since when what happens to reservations of the user is told; 0 if it is not
	tries  map[uint64]int
	came   map[string][]uint64               // numbers of what came for the first time, in that order, by reservation
	kinds  map[string]map[notice.Kind]uint64 // by reservation
	before map[uint64]bool
}

// receiverOf is the user who is told, and hookID the receiver's id.
const (
	receiverOf = "alice"
	hookID     = "00000000000000aa"
)

func newReceiver() *receiver {
	return &receiver{tries: map[uint64]int{}, came: map[string][]uint64{}, kinds: map[string]map[notice.Kind]uint64{}, before: map[uint64]bool{}}
}

// attach has notices sent in a life, and makes the receiver known if it is not.
func (r *receiver) attach(l *life) {
	l.host.SendNotices(l.w.plant.messages(delivering{r, l}, l.w.lives))
	ctx := context.Background()
	by := service.Principal{User: receiverOf, Role: service.User}
	known, err := l.host.Hooks(ctx, by)
	if err != nil || len(known) > 0 {
		return
	}
	var all []notice.Kind
	for _, k := range notice.Kinds() {
		all = append(all, k.Kind)
	}
	if hook, err := l.host.AddHook(ctx, service.Ask{By: by}, service.Hook{ID: hookID, Form: service.WebhookForm, Kinds: all, Starts: 900, Ends: 600, Unused: 600}); err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.from = hook.Created
	}
}

// delivering brings notices to the receiver for as long as a life lasts.
type delivering struct {
	r *receiver
	l *life
}

// fails is how often a notice fails at most: the next tries come five minutes and half an hour behind the first.
const fails = 2

func (d delivering) Send(_ context.Context, _ *service.Hook, o *service.Owed) service.Sent {
	about := fmt.Sprint(o.Number)
	time.Sleep(d.l.w.pause("notice", about))
	if !d.l.step() {
		return service.Sent{Words: "the power has failed"}
	}
	d.r.mu.Lock()
	d.r.tries[o.Number]++
	failed := d.l.w.plan.has(faultReceiver) && !d.l.isCalm() && d.r.tries[o.Number] <= fails && d.l.w.pause("receiver", about)%3 == 0
	d.r.mu.Unlock()
	if failed {
		d.l.meet(faultReceiver)
		return service.Sent{Status: 500, Words: "the receiver fails"}
	}
	d.r.take(o)
	d.l.note(featureNotice)
	time.Sleep(d.l.w.pause("notice", about, "answer"))
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
	r.before[o.Number] = true
	r.came[about.ID] = append(r.came[about.ID], o.Number)
	if r.kinds[about.ID] == nil {
		r.kinds[about.ID] = map[notice.Kind]uint64{}
	}
	r.kinds[about.ID][o.Kind] = o.Number
}

// owed returns an error while notices wait that are not told.
func (r *receiver) owed(l *life) error {
	if !l.w.plan.has(featureNotice) {
		return nil
	}
	hooks, err := l.host.Hooks(context.Background(), service.Principal{User: receiverOf, Role: service.User})
	for i := range hooks {
		if err == nil && hooks[i].Owed > 0 {
			err = fmt.Errorf("%d notices wait", hooks[i].Owed)
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
func (r *receiver) check(list []service.Reservation) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		of := &list[i]
		if r.from == 0 || of.Created <= r.from || of.Request.User != receiverOf || of.Request.IsJob() || of.State == service.Pending || !strings.HasPrefix(of.Request.Name, "c") {
			continue
		}
		if !slices.ContainsFunc(told[of.State], func(k notice.Kind) bool { return r.kinds[of.ID][k] > 0 }) {
			return fmt.Errorf("%s is %s, and its user was told %v", of.ID, of.State, r.kinds[of.ID])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.came)) {
		if numbers := r.came[id]; !slices.IsSorted(numbers) {
			return fmt.Errorf("notices about %s came in the order %v", id, numbers)
		}
	}
	return nil
}
