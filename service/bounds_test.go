package service

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// oneGoroutine skips a test that does much in one goroutine, in which the race detector has nothing to watch.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("does much in one goroutine")
	}
}

// What is remembered of requests that were refused is bounded by what it takes, and not
// by their number alone.
func TestWhatIsOverIsBoundedInBytes(t *testing.T) {
	oneGoroutine(t)
	core, err := newCore(engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 1, Binding: berth.Late}}}}}, "test", 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	variants := make([]berth.Variant, 20_000)
	for i := range variants {
		variants[i] = berth.Variant{NPE: 2, Duration: berth.Duration(i + 1)}
	}
	for i := range 1000 {
		r := berth.Rigid(fmt.Sprint(i), 0, 0, 100_000, 2, 10)
		r.Parts[0].Variants = variants
		event := engine.Submit(&r)
		core.Step(0, &event, Key{})
	}
	sum := int64(0)
	core.cards.Scan(func(k *card) bool {
		sum += k.cost()
		return true
	})
	if sum != core.overCost || sum > maxOver || len(core.over) != core.cards.Len() {
		t.Errorf("%d bytes of %d are remembered, %d counted; %d of %d cards", sum, maxOver, core.overCost, len(core.over), core.cards.Len())
	}
	if n := core.cards.Len(); n < 500 || n == 1000 {
		t.Errorf("%d are remembered", n)
	}
	if k := core.card("999"); k == nil || k.end != Refused {
		t.Error("the last one is forgotten")
	}
}

// Who has seen a notice that has not been told here, of before a backup was restored, is told so: they
// would hear nothing until as much has happened again.
func TestANoticeOfAnotherJournalIsNoPlace(t *testing.T) {
	h := newHearers(7)
	seven, eight := uint64(7)<<noticeBits, uint64(8)<<noticeBits
	if _, err := h.place(seven+1, 0); err != nil {
		t.Errorf("behind what the last record before the start told: %v", err)
	}
	h.tell([]news{{number: eight}, {number: eight + 1}})
	for after, known := range map[uint64]bool{seven - 1: false, seven: true, seven + 1: true, eight + 1: true, 9 << noticeBits: false, 1<<64 - 1: false} {
		if at, err := h.place(after, 0); (err == nil) != known || known && at != after {
			t.Errorf("behind %d: %d, %v", after, at, err)
		}
	}
}

// Notices are kept up to their bound; who is behind what is
// kept is told so, and who reads goes on in the log that all share.
func TestNoticesAreBoundedInBytes(t *testing.T) {
	h := newHearers(0)
	wide := berth.Rigid("r", 0, 0, 100, 1, 10)
	wide.Parts[0].Variants = make([]berth.Variant, 100_000)
	slow, err := h.place(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		h.tell([]news{{number: uint64(i + 1), card: card{request: &wide}}})
	}
	sum, kept := int64(0), 0
	for _, list := range h.log {
		for i := range list {
			sum, kept = sum+list[i].cost(), kept+1
		}
	}
	if sum != h.cost || kept != h.kept {
		t.Errorf("%d notices of %d bytes are kept, %d of %d counted", kept, sum, h.kept, h.cost)
	}
	if h.cost > maxRecentCost || h.kept < 20 || h.lost == 0 {
		t.Errorf("%d notices of %d bytes, %d are lost", h.kept, h.cost, h.lost)
	}
	if _, _, err := h.read(slow); err == nil {
		t.Error("who is too far behind goes on")
	}
	a, _, errA := h.read(h.lost)
	b, _, errB := h.read(h.lost + 1)
	if errA != nil || errB != nil || len(a) != h.kept || len(b) != len(a)-1 || &a[1] != &b[0] {
		t.Errorf("%d and %d notices of %d, %v %v", len(a), len(b), h.kept, errA, errB)
	}
}

// Of a record that tells more than may be kept the oldest are forgotten too, and who
// listens goes on behind any of the others.
func TestOneRecordOfManyNoticesIsBounded(t *testing.T) {
	h := newHearers(0)
	list := make([]news, 2*maxRecent)
	for i := range list {
		list[i].number = 1<<noticeBits | uint64(i)
	}
	h.tell(list[:10:10])
	h.tell(list[10:])
	if h.kept != maxRecent || h.lost != list[maxRecent-1].number {
		t.Errorf("%d notices are kept, %d; the last that is not is %d, want %d", h.kept, maxRecent, h.lost, list[maxRecent-1].number)
	}
	told, _, err := h.read(h.lost)
	if err != nil || len(told) != 1 || len(told[0]) != maxRecent || told[0][0].number != h.lost+1 {
		t.Errorf("%d records are read, %v", len(told), err)
	}
}
