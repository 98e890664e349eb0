package service

import (
	"slices"
	"sync"
	"testing"
)

// What is told beside the records comes in order with what the journal's writer tells at the
// same time: who listens finds the place to go on by the number.
func TestNoticesBesideTheRecordsComeInOrder(t *testing.T) {
	h := newHearers(0)
	const many = 20_000
	var telling sync.WaitGroup
	telling.Go(func() {
		for record := range uint64(many) {
			h.tell([]news{{number: (record + 1) << noticeBits}})
		}
	})
	for range many {
		h.tellBeside(news{})
	}
	telling.Wait()
	log := slices.Concat(h.log...)
	if len(log) != 2*many {
		t.Fatalf("%d notices, want %d", len(log), 2*many)
	}
	for i := 1; i < len(log); i++ {
		if log[i].number <= log[i-1].number {
			t.Fatalf("notice %d has number %d, the one before %d", i, log[i].number, log[i-1].number)
		}
	}
}
