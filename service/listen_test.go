package service

import (
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
			h.tell([]Notice{{Number: (record + 1) << noticeBits}})
		}
	})
	for range many {
		h.tellBeside(Notice{})
	}
	telling.Wait()
	if len(h.log) != 2*many {
		t.Fatalf("%d notices, want %d", len(h.log), 2*many)
	}
	for i := 1; i < len(h.log); i++ {
		if h.log[i].Number <= h.log[i-1].Number {
			t.Fatalf("notice %d has number %d, the one before %d", i, h.log[i].Number, h.log[i-1].Number)
		}
	}
}
