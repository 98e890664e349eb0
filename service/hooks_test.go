package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

// post is a messenger that writes down what it is given.
type post struct {
	mu    sync.Mutex
	lines []string
	ids   []string
	// says what comes of a notice; nil is that all arrive.
	says func(ctx context.Context, hook *service.Hook, o *service.Owed) service.Sent
}

func (p *post) Send(ctx context.Context, hook *service.Hook, o *service.Owed) service.Sent {
	about := hook.ID + " " + string(o.Kind)
	if r, is := o.Reservation(); is {
		about += " " + r.ID + " " + string(r.State)
	}
	if o.Flow != nil {
		about += " workflow " + o.Flow.ID
	}
	if o.Missed > 0 {
		about += fmt.Sprint(" ", o.Missed)
	}
	var sent service.Sent
	if p.says != nil {
		sent = p.says(ctx, hook, o)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent.Words != "" {
		about += " failed"
	}
	p.lines, p.ids = append(p.lines, about), append(p.ids, fmt.Sprint(hook.ID, o.Number))
	return sent
}

func (p *post) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.lines
	p.lines = nil
	return list
}

// hooked is a service in a bubble whose notices go to post.
type hooked struct {
	t    *testing.T
	dir  string
	host *service.Host
	post *post
	shut func()
	// leads, if it is not nil, says whether the service may lead still.
	leads func() error
	off   atomic.Int64    // by how much the clock is off, in nanoseconds
	log   strings.Builder // read when nothing runs
}

func inHooked(t *testing.T, test func(t *testing.T, w *hooked)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &hooked{t: t, dir: t.TempDir(), post: &post{}}
		w.open()
		defer func() { w.shut() }()
		test(t, w)
	})
}

func (w *hooked) open() {
	store, err := sqlite.Open(w.dir, sqlite.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	began := time.Now()
	h, err := service.Open(w.t.Context(), service.Options{
		Config: onePool(4), Journal: store, Version: "test", SnapshotEvery: 7, Leads: w.leads,
		Clock: func() time.Time { return time.Now().Add(time.Duration(w.off.Load())) }, Monotonic: func() time.Duration { return time.Since(began) },
		Uptime: func() (string, time.Duration) { return "", 0 }, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	h.SendNotices(w.post)
	w.host = h
	w.shut = func() {
		if err := service.SameAgain(w.t.Context(), h, store); err != nil {
			w.t.Error(err)
		}
		if err := h.Close(); err != nil {
			w.t.Error(err)
		}
		if err := store.Close(); err != nil {
			w.t.Error(err)
		}
	}
	synctest.Wait()
}

func (w *hooked) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *hooked) add(ask service.Ask, hook service.Hook, kinds ...notice.Kind) {
	w.t.Helper()
	if hook.Kinds = kinds; len(kinds) == 0 {
		for _, a := range notice.Kinds() {
			hook.Kinds = append(hook.Kinds, a.Kind)
		}
	}
	if _, err := w.host.AddHook(w.t.Context(), ask, hook); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *hooked) want(what string, lines ...string) {
	w.t.Helper()
	synctest.Wait()
	if got := w.post.take(); !slices.Equal(got, lines) {
		w.t.Errorf("%s: sent\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

// reserve asks for the whole pool for a minute, which begins in seconds from now.
func (w *hooked) reserve(ask service.Ask, id string, in berth.Duration) {
	w.t.Helper()
	at := w.host.Now().Add(in)
	r := berth.Rigid(id, 0, at, at.Add(9000), 4, 60)
	r.User = ask.By.User
	submit(w.t, w.host, ask, r)
	synctest.Wait()
}

// A user is told of what is theirs, by the hooks that want it, once, also across a restart.
func TestNoticesGoToTheHooksOfTheirUser(t *testing.T) {
	inHooked(t, func(t *testing.T, w *hooked) {
		w.add(ann, service.Hook{ID: "all"})
		w.add(ann, service.Hook{ID: "ends"}, notice.Ended, notice.Cancelled)
		w.add(ann, service.Hook{ID: "elsewhere", Site: "other"})
		w.add(bob, service.Hook{ID: "bob"})
		w.reserve(ann, "a", 1000)
		w.want("promised", "all granted a confirmed")
		w.reserve(bob, "b", 2000)
		w.want("promised to bob", "bob granted b confirmed")
		if _, err := w.host.Extend(t.Context(), ann, "a", w.host.Now()+1200); err != nil {
			t.Fatal(err)
		}
		w.want("extended", "all moved a confirmed")
		w.shut()
		w.open()
		w.want("after a restart")
		if _, err := w.host.Release(t.Context(), ann, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		slices.Sort(w.post.lines)
		w.want("cancelled", "all cancelled a cancelled", "ends cancelled a cancelled")
		if err := w.host.RemoveHook(t.Context(), ann, "all"); err != nil {
			t.Fatal(err)
		}
		wantCode(t, w.host.RemoveHook(t.Context(), ann, "bob"), berth.NotFound)
		wantCode(t, w.host.TestHook(t.Context(), ann, "all"), berth.NotFound)
		if err := w.host.TestHook(t.Context(), bob, "bob"); err != nil {
			t.Fatal(err)
		}
		w.want("a test", "bob test")
		narrow := bob // which must not have what all sites tell sent elsewhere
		narrow.By.Sites = service.NewSiteSet([]string{"site"})
		_, err := w.host.ChangeHook(t.Context(), narrow, "bob", func(*service.Hook) error { return nil })
		wantCode(t, err, berth.Denied)
		if err := w.host.RemoveHook(t.Context(), narrow, "bob"); err != nil {
			t.Error(err)
		}
	})
}

// What is to come is told in time, once for each time.
func TestNoticesByTheTime(t *testing.T) {
	inHooked(t, func(t *testing.T, w *hooked) {
		w.add(ann, service.Hook{ID: "h", Starts: 300, Ends: 20, Unused: 30}, notice.Starting, notice.Ending, notice.Unused)
		w.reserve(ann, "a", 1000)
		w.pass(650 * time.Second)
		w.want("long before the start")
		w.pass(66 * time.Second)
		w.want("five minutes before", "h starting a confirmed")
		w.shut()
		w.open()
		w.pass(300 * time.Second) // sixteen seconds after the start
		w.want("not twice")
		w.pass(45 * time.Second)
		synctest.Wait()
		slices.Sort(w.post.lines)
		w.want("in it", "h ending a active", "h unused a active")
	})
}

// A notice that fails is tried again, and what is about the same reservation waits for it, while others
// go on. What fails for a day is a dead letter, which can be sent again with its number.
func TestNoticesThatFailAreTriedAgainInOrder(t *testing.T) {
	inHooked(t, func(t *testing.T, w *hooked) {
		var failing atomic.Bool
		failing.Store(true)
		w.post.says = func(_ context.Context, _ *service.Hook, o *service.Owed) service.Sent {
			if r, _ := o.Reservation(); r.ID == "a" && failing.Load() {
				return service.Sent{Status: 500, Words: "500 Internal Server Error"}
			}
			return service.Sent{Status: 200}
		}
		w.add(ann, service.Hook{ID: "h"}, notice.Granted, notice.Cancelled)
		w.reserve(ann, "a", 900_000)
		w.want("first", "h granted a confirmed failed")
		if _, err := w.host.Release(t.Context(), ann, "a"); err != nil {
			t.Fatal(err)
		}
		w.reserve(ann, "b", 910_000)
		w.pass(3 * time.Second)
		w.want("others go on", "h granted b confirmed")
		w.pass(4 * time.Second)
		w.want("after 5 s", "h granted a confirmed failed")
		w.shut()
		w.open()
		w.pass(10 * time.Minute)
		w.want("after 5 min, across a restart", "h granted a confirmed failed")
		w.pass(27 * time.Hour)
		if got := w.post.take(); len(got) < 8 || slices.ContainsFunc(got[:7], func(s string) bool { return s != "h granted a confirmed failed" }) || got[7] != "h cancelled a cancelled failed" {
			t.Errorf("within the day: %q", got)
		}
		list, err := w.host.Deliveries(t.Context(), ann.By, "h")
		if err != nil || len(list.Dead) != 1 || len(list.Dead[0].Tries) != 10 || list.Dead[0].Kind != notice.Granted || len(list.Owed) != 1 || len(list.Done) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		failing.Store(false)
		w.pass(14 * time.Hour)
		w.want("mended", "h cancelled a cancelled")
		number := list.Dead[0].Number
		wantCode(t, w.host.Resend(t.Context(), ann, "h", []uint64{number + 1}), berth.NotFound)
		wantCode(t, w.host.Resend(t.Context(), bob, "h", nil), berth.NotFound)
		w.post.ids = nil
		if err := w.host.Resend(t.Context(), ann, "h", nil); err != nil {
			t.Fatal(err)
		}
		w.want("sent again", "h granted a confirmed")
		if w.post.ids[0] != fmt.Sprint("h", number) {
			t.Errorf("sent again as %s, want %d", w.post.ids[0], number)
		}
		wantCode(t, w.host.Resend(t.Context(), ann, "h", nil), berth.NotFound)
		if err := w.host.Resend(t.Context(), ann, "h", []uint64{number, number}); err != nil {
			t.Fatal(err)
		}
		w.want("named twice, it is sent once", "h granted a confirmed")
	})
}

// A receiver that fails for four days, or asks for no more, is disabled and its owner sees why. Enabled again, it is told
// how much it missed.
func TestReceiversAreDisabled(t *testing.T) {
	inHooked(t, func(t *testing.T, w *hooked) {
		answer := service.Sent{Words: "connection refused"}
		w.post.says = func(context.Context, *service.Hook, *service.Owed) service.Sent { return answer }
		w.add(ann, service.Hook{ID: "h"}, notice.Granted)
		for day := range 5 {
			w.reserve(ann, fmt.Sprint(day), 90_000)
			w.pass(24 * time.Hour)
		}
		w.post.take()
		list, err := w.host.Hooks(t.Context(), ann.By)
		if err != nil || len(list) != 1 || !strings.Contains(list[0].Disabled, "connection refused") || list[0].Owed != 0 || list[0].Dead < 4 {
			t.Fatalf("%+v, %v", list, err)
		}
		w.reserve(ann, "6", 90_000)
		w.want("disabled")
		wantCode(t, w.host.TestHook(t.Context(), ann, "h"), berth.Conflict)
		answer = service.Sent{Status: 200}
		if _, err := w.host.ChangeHook(t.Context(), ann, "h", func(h *service.Hook) error {
			h.Disabled = ""
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Second)
		w.want("enabled", "h gap 1")
		answer = service.Sent{Status: 410, Words: "410 Gone", Disable: "gone"}
		if err := w.host.TestHook(t.Context(), ann, "h"); err != nil {
			t.Fatal(err)
		}
		w.want("gone", "h test failed")
		for why, n := range map[string]int{"connection refused": 1, "why=gone": 1, "": 2} { // once each time
			told := 0
			for line := range strings.Lines(w.log.String()) {
				if strings.Contains(line, `msg="a receiver of notices is disabled" hook=h user=ann`) && strings.Contains(line, why) {
					told++
				}
			}
			if told != n {
				t.Errorf("that it is disabled (%s) was logged %d times, want %d:\n%s", why, told, n, w.log.String())
			}
		}
		if list, err = w.host.Hooks(t.Context(), ann.By); err != nil || list[0].Disabled != "gone" {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// A receiver that hangs delays no other one, and takes no more than its lanes.
func TestAHangingReceiverDelaysNoOther(t *testing.T) {
	inHooked(t, func(t *testing.T, w *hooked) {
		w.post.says = func(ctx context.Context, hook *service.Hook, _ *service.Owed) service.Sent {
			if hook.ID != "hangs" {
				return service.Sent{Status: 200}
			}
			select {
			case <-ctx.Done():
			case <-time.After(15 * time.Second):
			}
			return service.Sent{Words: "no answer in time"}
		}
		w.add(ann, service.Hook{ID: "hangs"}, notice.Granted)
		w.add(ann, service.Hook{ID: "works"}, notice.Granted)
		for i := range 20 {
			w.reserve(ann, fmt.Sprint(i), 1000)
		}
		synctest.Wait()
		if got := w.post.take(); len(got) != 20 {
			t.Errorf("%d notices at once, want 20: %q", len(got), got)
		}
		w.pass(17 * time.Second)
		if got := w.post.take(); len(got) != 4 {
			t.Errorf("%q, want four tries", got)
		}
	})
}

// More than a hook can be owed is one gap at the end.
func TestWhatIsTooMuchIsAGap(t *testing.T) {
	inHooked(t, func(t *testing.T, w *hooked) {
		if err := w.host.OweAtMost(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		var fails atomic.Bool
		fails.Store(true)
		w.post.says = func(context.Context, *service.Hook, *service.Owed) service.Sent {
			if fails.Load() {
				return service.Sent{Words: "down"}
			}
			return service.Sent{Status: 200}
		}
		w.add(ann, service.Hook{ID: "h"}, notice.Granted)
		for i := range 9 {
			w.reserve(ann, fmt.Sprint(i), 100_000)
		}
		fails.Store(false)
		w.post.take()
		w.pass(time.Hour)
		synctest.Wait()
		got, want := w.post.take(), []string{"h granted 0 confirmed", "h granted 1 confirmed", "h granted 2 confirmed", "h granted 3 confirmed", "h granted 4 confirmed", "h gap 4"}
		slices.Sort(got[:max(0, len(got)-1)]) // those of different reservations are sent beside each other
		if !slices.Equal(got, want) {
			t.Errorf("up again: sent %q, want %q", got, want)
		}
	})
}

// Notices by e-mail about one reservation name the first of them, also across a restart, until it is over; a refusal for
// good is a dead letter at once, and what waits behind it goes on.
func TestLettersAreThreads(t *testing.T) {
	inHooked(t, func(t *testing.T, w *hooked) {
		refuse := false
		firsts := map[string][]string{}
		var mu sync.Mutex // several notices are sent at a time
		w.post.says = func(_ context.Context, hook *service.Hook, o *service.Owed) service.Sent {
			mu.Lock()
			defer mu.Unlock()
			r, _ := o.Reservation()
			if refuse {
				return service.Sent{Status: 550, Words: "no such user", Final: true}
			}
			if of := firsts[hook.ID+r.ID]; o.First == 0 {
				firsts[hook.ID+r.ID] = []string{fmt.Sprint(o.Number)}
			} else {
				firsts[hook.ID+r.ID] = append(of, fmt.Sprint(o.First))
			}
			return service.Sent{Status: 250}
		}
		w.add(ann, service.Hook{ID: "mail", Form: service.MailForm}, notice.Granted, notice.Moved, notice.Cancelled)
		w.add(ann, service.Hook{ID: "late", Form: service.MailForm}, notice.Moved, notice.Cancelled)
		w.add(ann, service.Hook{ID: "post", Form: service.WebhookForm})
		w.reserve(ann, "a", 1000)
		w.reserve(ann, "b", 5000)
		w.shut()
		w.open()
		extend := func(id string, to berth.Time) {
			t.Helper()
			if _, err := w.host.Extend(t.Context(), ann, id, w.host.Now()+to); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		extend("a", 1200)
		extend("b", 5200)
		if _, err := w.host.Release(t.Context(), ann, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, of := range []struct {
			of   string
			want int
		}{{"maila", 3}, {"mailb", 2}, {"latea", 2}, {"lateb", 1}, {"posta", 1}} {
			if got := firsts[of.of]; len(got) != of.want || len(slices.Compact(slices.Clone(got))) != 1 {
				t.Errorf("%s: of the threads %q, want %d times the same", of.of, got, of.want)
			}
		}
		refuse = true
		w.post.take()
		extend("b", 5300)
		refuse = false
		w.pass(time.Minute)
		extend("b", 5400)
		w.pass(time.Minute)
		list, err := w.host.Deliveries(t.Context(), ann.By, "mail")
		if err != nil || len(list.Dead) != 1 || len(list.Dead[0].Tries) != 1 || len(list.Owed) != 0 {
			t.Fatalf("%+v, %v", list, err)
		}
		w.shut()
		w.open()
		if err := w.host.Resend(t.Context(), ann, "mail", nil); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		if list, err = w.host.Deliveries(t.Context(), ann.By, "mail"); err != nil || len(list.Dead)+len(list.Owed) != 0 || len(firsts["mailb"]) != 4 {
			t.Errorf("%+v, %q, %v", list, firsts["mailb"], err)
		}
	})
}
