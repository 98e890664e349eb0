package service

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// MaxArray bounds the parts of an array. They are decided one behind another, and
// each is answered about.
const MaxArray = 1000

// arrayPiece is how many parts of an array are decided at most before others are served
// and what was decided is durable.
const arrayPiece = 100

// SubmitArray decides about n equal requests that are independent of each
// other, in turn, and answers about each: some may be promised and others
// refused, and what is not decided soon is Pending. Their IDs are one that they
// share, an underscore and their number from 1. Only the first that is refused
// comes with offers. Asked again under the same key those decided are answered
// again, and those that a crash left undecided are decided. A name has the same number behind
// it. Errors: Invalid if
// there are not 1 to MaxArray, and those of Submit; then those before the one it
// is about may have been decided.
func (h *Host) SubmitArray(ctx context.Context, ask Ask, r berth.Request, parts int) ([]Answer, error) {
	if parts < 1 || parts > MaxArray {
		return nil, berth.Errorf(berth.Invalid, "array", "%d; want 1 to %d parts", parts, MaxArray)
	}
	if numbers := len(partSuffix(parts - 1)); len(r.Name)+numbers > berth.MaxName {
		return nil, berth.Errorf(berth.Invalid, "name", "%.80q is too long for an array, whose parts have their numbers behind it; want at most %d letters", r.Name, berth.MaxName-numbers)
	}
	err := h.mayAsk(&ask, &r)
	if err == nil {
		err = h.admit(ctx, &r)
	}
	if err != nil {
		if was, failed := h.Recall(ctx, ask, parts); failed != nil || was != nil {
			return was, failed
		}
		return nil, h.Refuse(ctx, ask, err)
	}
	if r.ID == "" {
		r.ID = h.newID()
	}
	answers, err := patiently(ctx, h, ask.By.User, func(answer func([]Answer, error)) {
		if first, err := h.known(new(ask.asked())); err == nil && h.refusedAll(first, func(err error) { answer(nil, err) }) {
			return
		}
		a := &array{answers: make([]Answer, parts), left: parts, done: answer}
		id, offered := strings.TrimSuffix(h.idUnder(ask.asked(), r.ID), partSuffix(0)), false
		var from func(i int)
		from = func(i int) {
			until, end := time.Now().Add(slice/4), i+h.gathered.piece(weigh(&r))
			for ; i < parts; i++ {
				if i == end || !time.Now().Before(until) {
					// Others are served in between, whose answers would wait behind all that
					// the journal has not written yet.
					h.whenDurable(func(failed error) {
						if failed != nil {
							a.part(i)(nil, failed)
							return
						}
						h.line.push(ask.By.User, func() { from(i) })
					})
					return
				}
				one := r
				if one.ID = id + partSuffix(i); r.Name != "" {
					one.Name += partSuffix(i)
				}
				w := waiting{answer: a.part(i), offered: &offered}
				if h.isBounded(new(engine.Submit(&one))) {
					h.submitBounded(ask.part(i), &one, w, func(err error) {
						if err == nil {
							from(i + 1)
						}
					})
					return
				}
				if err := h.submit(ask.part(i), &one, w); err != nil {
					return // which is answered
				}
			}
		}
		from(0)
	})
	if !errors.Is(err, errPatience) {
		return answers, err
	}
	answers, err = call(ctx, h, ask.By.User, func(answer func([]Answer, error)) {
		id := strings.TrimSuffix(h.idUnder(ask.asked(), r.ID), partSuffix(0))
		a := &array{answers: make([]Answer, parts), left: parts, done: answer}
		for i := range parts {
			h.soFarOf(ask.part(i), id+partSuffix(i), a.part(i))
		}
	})
	return answers, err
}

func partSuffix(i int) string { return "_" + strconv.Itoa(i+1) }

// part returns what is asked with the part of an array. The key of the first is what
// was given, so that something else under it is noticed; clients give no key with a
// zero byte.
func (a *Ask) part(i int) asked {
	one := a.asked()
	if i > 0 && one.key.Name != "" {
		one.key.Name += "\x00" + strconv.Itoa(i+1)
	}
	return one
}

// array gathers the answers to the parts of an array.
type array struct {
	mu      sync.Mutex
	answers []Answer
	left    int // 0 once it is answered
	done    func([]Answer, error)
}

// part returns what takes the answer to a part. The first error is the answer to
// all.
func (a *array) part(i int) answering {
	return func(answer *Answer, err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		switch {
		case a.left == 0:
		case err != nil:
			a.left = 0
			a.done(nil, err)
		default:
			a.answers[i] = *answer
			if a.left--; a.left == 0 {
				a.done(a.answers, nil)
			}
		}
	}
}
