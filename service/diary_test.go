package service

import (
	"testing"

	"github.com/berth-hpc/berth"
)

// The diary says what changed between two records or that it does not know; it is not kept
// without readers, and is bounded.
func TestDiary(t *testing.T) {
	some := ink{promise: &berth.Reservation{}}
	var read readers
	d := diarist{read: &read}
	note := func(number uint64) {
		d.begin(number)
		d.note(number, ink{}, some)
		d.note(number, some, ink{})
		d.note(number, ink{}, ink{}) // nothing is drawn before or after it
	}
	since := func(what string, number, until uint64, want int) {
		t.Helper()
		entries, known := d.since(number, until)
		if !known {
			entries = make([]redrawn, 0)
		}
		if known != (want >= 0) || len(entries) != max(0, want) {
			t.Errorf("%s: since %d until %d: %d entries, known is %t; want %d", what, number, until, len(entries), known, want)
		}
	}
	note(1)
	since("without readers", 0, 1, -1)
	read.wanted.Store(true)
	note(2)
	note(3)
	since("from before it began", 0, 3, -1)
	since("all", 1, 3, 4)
	since("some", 2, 3, 2)
	since("of an older model", 1, 2, 2)
	since("nothing", 3, 3, 0)
	old := d.diary
	d.stop()
	since("after changes that are not in it", 2, 3, -1)
	note(4)
	since("begun again", 3, 4, 2)
	since("not from before", 2, 4, -1)
	if entries, known := old.since(1, 3); !known || len(entries) != 4 {
		t.Errorf("what a model shares changed: %d entries", len(entries))
	}
	for number := uint64(5); number <= maxDiary/2+4; number++ {
		read.newest.Store(number)
		note(number)
	}
	if len(d.entries) > maxDiary || len(d.entries) < maxDiary/2 {
		t.Errorf("%d entries", len(d.entries))
	}
	since("dropped", 3, maxDiary/2+4, -1)
	since("the newest", maxDiary/2, maxDiary/2+4, 8)
	for number := uint64(maxDiary); number < 2*maxDiary; number++ {
		note(number)
	}
	if read.wanted.Load() || len(d.entries) != 0 {
		t.Errorf("no reader came for long, and the diary has %d entries", len(d.entries))
	}
}

// Workflows of the most tasks that there may be, one after the other, are all there for who has read what was before them.
func TestTheDiaryHasTheLargestWorkflows(t *testing.T) {
	var read readers
	d := diarist{read: &read}
	read.saw(1)
	d.begin(2)
	some := ink{promise: &berth.Reservation{}}
	const each = berth.MaxWorkflowTasks
	for number := uint64(2); number < 20; number++ {
		for range each {
			d.note(number, ink{}, some)
		}
		for _, behind := range []uint64{1, 2, 3} {
			want := int(min(behind, number-1)) * each
			if entries, known := d.since(number-min(behind, number-1), number); !known || len(entries) != want {
				t.Errorf("at record %d: %d changes of the last %d records, known is %t; want %d", number, len(entries), behind, known, want)
			}
		}
		read.saw(number)
	}
	if len(d.entries) > maxDiary {
		t.Errorf("%d entries", len(d.entries))
	}
}

// What is forgotten is a change like others, until the diary would keep more of it than it may.
func TestDiaryKeepsLittleOfWhatIsForgotten(t *testing.T) {
	var read readers
	read.wanted.Store(true)
	d := diarist{read: &read}
	request := berth.Rigid("a", 0, 0, 10, 1, 10)
	request.Parts[0].Eligible = everySecond(100_000)
	k := &card{id: "a", request: &request, promise: &berth.Reservation{Request: &request}}
	small := *k
	small.request = new(berth.Rigid("b", 0, 0, 10, 1, 10))
	refused := *k
	refused.promise = nil
	d.begin(1)
	for range 1000 {
		d.forgot(1, &small)
		d.forgot(1, &refused) // it is in no entry
	}
	if !d.kept || len(d.entries) != 1000 || d.entries[0].became.promise != nil || d.entries[0].was.promise != k.promise {
		t.Fatalf("it is kept: %t, with %d entries", d.kept, len(d.entries))
	}
	n := 1
	for d.forgot(2, k); d.kept; n++ {
		d.forgot(2, k)
	}
	if n < 10 || int64(n)*k.cost() > 2*maxForgotten || len(d.entries) != 0 {
		t.Errorf("it ended after %d that take %d bytes each", n, k.cost())
	}
	d.begin(3)
	if d.forgot(3, k); !d.kept {
		t.Error("begun again, it remembers how much it had kept")
	}
}
