package service

import (
	"time"

	"github.com/berth-hpc/berth"
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
