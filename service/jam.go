package service

import (
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// jam tells those who wait for the journal that it has not been written for as long as they have patience: they may ask again, and
// what they asked for may still be done.
type jam struct {
	told chan struct{} // closed then
	why  error         // set before that

	since time.Time // of the journal's writer alone, as what follows
	over  bool      // it is told
}

func newJam() *jam { return &jam{told: make(chan struct{})} }

// lasts notes that the journal could not be written once more.
func (j *jam) lasts(err error) {
	now := time.Now()
	switch {
	case j.since.IsZero():
		j.since = now
	case !j.over && now.Sub(j.since) >= patience:
		j.why = berth.Errorf(berth.Unavailable, "journal", "%v; whether it was done can be seen when the journal can be written: ask again then, under the same key if there is one", err)
		j.over = true
		close(j.told)
	}
}

// appendFailed is told by the writer that a batch could not be appended; it says
// whether to try again.
func (h *Host) appendFailed(err error) bool {
	if f := faultOf(err); f != nil {
		f.At = h.Now()
		h.stopAt(f)
		return false
	}
	if !journal.CanRetry(err) {
		h.log.Error("the journal cannot go on", "error", err)
		return false
	}
	if h.failing.CompareAndSwap(false, true) {
		h.log.Warn("the journal cannot be written; it is tried every second until it can", "error", err)
	}
	h.setDead(berth.Errorf(berth.Unavailable, "journal", "%v", err))
	h.jam.Load().lasts(err)
	select {
	case <-time.After(time.Second):
		h.setDead(nil)
		return true
	case <-h.stop:
		return false
	}
}
