package api

import (
	"net/http"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

var compactBody = body[berth.Duration]{
	{"keep_history", "How long a time before now stays on record; 0 if it is not given.", duration(), func(keep *berth.Duration, v value) (err error) {
		*keep, err = v.length(0)
		return err
	}},
}

// compact drops old records. It may take minutes, so the answer has no deadline.
func (c *call) compact() error {
	var keep berth.Duration
	ask, err := read(c, compactBody, &keep)
	if err != nil {
		return err
	}
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Time{}) // a recorder of a test has none
	done, err := c.Compact(c.r.Context(), ask, keep)
	if err != nil {
		return err
	}
	f := form.Compacted{First: done.First, Dropped: done.Dropped, Before: done.Before, After: done.After}
	if done.At != 0 {
		f.At = form.TimeOf(done.At)
	}
	return c.answer(http.StatusOK, &f)
}
