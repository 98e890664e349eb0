package service_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

var noticeRounds = effort.Flag("service.noticerounds", 10, "how many times a service that sends notices is killed")

// crashHooks tells a child process to send notices too, and to tell each on standard output when its receiver
// has it.
const crashHooks = "BERTH_SERVICETEST_HOOKS"

// teller is a receiver that tells what it gets, and answers one in ten wrongly: at first, so that such a notice
// is tried again.
type teller func(hook *service.Hook, o *service.Owed) error

func (tell teller) Send(_ context.Context, hook *service.Hook, o *service.Owed) service.Sent {
	if o.Number%10 == 0 && len(o.Tries) == 0 {
		return service.Sent{Status: 500, Words: "500 Internal Server Error"}
	}
	if err := tell(hook, o); err != nil {
		return service.Sent{Words: err.Error()}
	}
	return service.Sent{Status: 200}
}

// crashReceivers are the forms of the receivers, by which each is called.
var crashReceivers = map[string]bool{service.WebhookForm: true, service.MailForm: true}

// noticeLine writes a notice in a line.
func noticeLine(hook *service.Hook, o *service.Owed) string {
	r, _ := o.Reservation()
	return fmt.Sprintf("! %s %d %d %s %s", hook.ID, o.Number, o.First, r.ID, o.Kind)
}

// tellNotices has a service send notices about what the clients of load ask for.
func tellNotices(h *service.Host, told *sync.Mutex, out *bufio.Writer) error {
	list, err := h.Hooks(context.Background(), ann.By)
	for form := range crashReceivers {
		if err == nil && len(list) == 0 {
			_, err = h.AddHook(context.Background(), ann, service.Hook{ID: form, Form: form, Kinds: []notice.Kind{notice.Granted, notice.Cancelled}})
		}
	}
	h.SendNotices(teller(func(hook *service.Hook, o *service.Owed) error {
		told.Lock()
		defer told.Unlock()
		_, _ = out.WriteString(noticeLine(hook, o) + "\n") // the error stays for Flush
		return out.Flush()
	}))
	return err
}

// heard is what was answered, and what a receiver has got.
type heard struct {
	mu      sync.Mutex
	told    answers
	kinds   map[string][]string // by receiver and reservation, in the order in which they came first
	firsts  map[string][]string // in the same order, the first of its thread, or its own number if it is that
	numbers map[string]string   // by receiver and number, what each number was about
	again   int
	wrong   []string
}

func (h *heard) add(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !strings.HasPrefix(line, "! ") {
		h.told.add(line)
		return
	}
	var number, first uint64
	var hook, id, kind string
	if _, err := fmt.Sscanf(line, "! %s %d %d %s %s", &hook, &number, &first, &id, &kind); err != nil {
		return // cut off
	}
	key, about := fmt.Sprint(hook, number), fmt.Sprint(id, kind, first)
	switch was, known := h.numbers[key]; {
	case known && was != about:
		h.wrong = append(h.wrong, fmt.Sprintf("number %d for %s was about %s, then about %s", number, hook, was, about))
	case known:
		h.again++
	default:
		h.numbers[key] = about
		h.kinds[hook+id] = append(h.kinds[hook+id], kind)
		h.firsts[hook+id] = append(h.firsts[hook+id], fmt.Sprint(cmp.Or(first, number)))
	}
}

// A service killed at any moment loses no notice: each is sent, in order for one reservation, and
// again only with its number, by e-mail in the same thread.
func TestKilledServiceLosesNoNotice(t *testing.T) {
	place := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &heard{told: answers{}, kinds: map[string][]string{}, firsts: map[string][]string{}, numbers: map[string]string{}}
	rng := rand.New(rand.NewPCG(5, 23))
	for round := range noticeRounds() {
		if err := killed(t.Context(), program, []string{crashPlace + "=" + place, crashHooks + "=yes"}, 50+rng.IntN(150), time.Duration(rng.IntN(20_000))*time.Microsecond, h); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	store, err := openPlace(place)
	if err != nil {
		t.Fatal(err)
	}
	host, err := service.Open(t.Context(), crashOptions(store))
	if err != nil {
		t.Fatal(err)
	}
	host.SendNotices(teller(func(hook *service.Hook, o *service.Owed) error {
		h.add(noticeLine(hook, o))
		return nil
	}))
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		list, err := host.Hooks(t.Context(), ann.By)
		waits, dead := 0, 0
		for i := range list {
			waits, dead = waits+list[i].Owed, dead+list[i].Dead
		}
		if err != nil || time.Now().After(until) || dead > 0 {
			t.Fatalf("%d notices still wait, %d are dead letters: %v", waits, dead, err)
		}
		if waits == 0 && len(list) == len(crashReceivers) {
			break
		}
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	for id, line := range h.told {
		want := "granted"
		if strings.Contains(line, string(service.Refused)) {
			continue
		}
		if strings.Contains(line, string(service.Cancelled)) {
			want += " cancelled"
		}
		for hook := range crashReceivers {
			if got := strings.Join(h.kinds[hook+id], " "); got != want && got != "granted cancelled" {
				t.Errorf("%s was answered %q, its notices to the %s are %q", id, line, hook, got)
			}
			if threads := len(slices.Compact(slices.Clone(h.firsts[hook+id]))); hook == service.MailForm && threads != 1 {
				t.Errorf("the notices about %s are of %d threads: %q", id, threads, h.firsts[hook+id])
			}
		}
	}
	if len(h.told) == 0 || len(h.numbers) == 0 || len(h.wrong) > 0 {
		t.Errorf("%d answers, %d notices: %v", len(h.told), len(h.numbers), h.wrong)
	}
	t.Logf("%d answers, %d notices over %d rounds, %d of them twice", len(h.told), len(h.numbers), noticeRounds(), h.again)
}
