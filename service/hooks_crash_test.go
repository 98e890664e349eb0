package service_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

var noticeRounds = effort.Flag("service.noticerounds", 2, "how many times a service that sends notices is killed")

// crashHooks tells a child process to send notices too, and to tell each on standard output when its receiver
// has it.
const crashHooks = "BERTH_SERVICETEST_HOOKS"

// teller is a receiver that tells what it gets, and answers one in ten wrongly: at first, so that such a notice
// is tried again.
type teller func(o *service.Owed) error

func (tell teller) Send(_ context.Context, _ *service.Hook, o *service.Owed) service.Sent {
	if o.Number%10 == 0 && len(o.Tries) == 0 {
		return service.Sent{Status: 500, Words: "500 Internal Server Error"}
	}
	if err := tell(o); err != nil {
		return service.Sent{Words: err.Error()}
	}
	return service.Sent{Status: 200}
}

// noticeLine writes a notice in a line.
func noticeLine(o *service.Owed) string {
	r, _ := o.Reservation()
	return fmt.Sprintf("! %d %s %s", o.Number, r.ID, o.Kind)
}

// tellNotices has a service send notices about what the clients of load ask for.
func tellNotices(h *service.Host, told *sync.Mutex, out *bufio.Writer) error {
	list, err := h.Hooks(context.Background(), ann.By)
	if err == nil && len(list) == 0 {
		_, err = h.AddHook(context.Background(), ann, service.Hook{ID: "h", Kinds: []notice.Kind{notice.Granted, notice.Cancelled}})
	}
	h.SendNotices(teller(func(o *service.Owed) error {
		told.Lock()
		defer told.Unlock()
		_, _ = out.WriteString(noticeLine(o) + "\n") // the error stays for Flush
		return out.Flush()
	}))
	return err
}

// heard is what was answered, and what a receiver has got.
type heard struct {
	mu      sync.Mutex
	told    answers
	kinds   map[string][]string // by reservation, in the order in which they came first
	numbers map[uint64]string   // what each number was about
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
	var number uint64
	var id, kind string
	if _, err := fmt.Sscanf(line, "! %d %s %s", &number, &id, &kind); err != nil {
		return // cut off
	}
	switch was, known := h.numbers[number]; {
	case known && was != id+kind:
		h.wrong = append(h.wrong, fmt.Sprintf("number %d was about %s, then about %s%s", number, was, id, kind))
	case known:
		h.again++
	default:
		h.numbers[number] = id + kind
		h.kinds[id] = append(h.kinds[id], kind)
	}
}

// A service killed at any moment loses no notice: each is sent, in order for one reservation, and
// again only with its number.
func TestKilledServiceLosesNoNotice(t *testing.T) {
	place := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &heard{told: answers{}, kinds: map[string][]string{}, numbers: map[uint64]string{}}
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
	host.SendNotices(teller(func(o *service.Owed) error {
		h.add(noticeLine(o))
		return nil
	}))
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		list, err := host.Deliveries(t.Context(), ann.By, "h")
		if err != nil || time.Now().After(until) {
			t.Fatalf("%d notices still wait: %v", len(list.Owed), err)
		}
		if len(list.Owed) == 0 {
			if len(list.Dead) > 0 {
				t.Errorf("%d dead letters", len(list.Dead))
			}
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
		if got := strings.Join(h.kinds[id], " "); got != want && got != "granted cancelled" {
			t.Errorf("%s was answered %q, its notices are %q", id, line, got)
		}
	}
	if len(h.told) == 0 || len(h.numbers) == 0 || len(h.wrong) > 0 {
		t.Errorf("%d answers, %d notices: %v", len(h.told), len(h.numbers), h.wrong)
	}
	t.Logf("%d answers, %d notices over %d rounds, %d of them twice", len(h.told), len(h.numbers), noticeRounds(), h.again)
}
