package service

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// Window says which starts are asked about: those from First, at the earliest now, to Last. 0 stands for the ready time of
// the request, and for the time before its deadline. Without both only starts count after which it ends by its
// deadline. At most Most stretches are answered about each shape in each pool.
type Window struct {
	First, Last berth.Time
	Most        int
}

// InTime reports whether only starts count after which a request ends by its deadline.
func (w *Window) InTime() bool { return w.First == 0 && w.Last == 0 }

// Of returns the window for a request.
func (w *Window) Of(r *berth.Request) (first, last berth.Time) {
	return cmp.Or(w.First, r.Ready), cmp.Or(w.Last, r.Deadline-1)
}

// Starts is when one shape of a request can start in a pool, and what stands against the
// other starts.
type Starts struct {
	Pool    berth.ResourceID
	Variant int // of the request's part
	// First and Last are those of the window; with Window.InTime nothing is told behind the last start in time.
	First, Last berth.Time
	engine.Starts
}

// stretchesAtOnce is how many stretches are found in one go, for which everybody waits: of
// 30,000 promises they take a few milliseconds.
const stretchesAtOnce = 32

// Starts tells when a request would be promised now, by variant and pool, and what is short
// at other times. Nothing is held. It is worked out in pieces between which others are
// answered, so that a piece may know of what has been promised since the one before. The
// errors are those of Offers; of code NotFound, that no pool is meant.
func (h *Host) Starts(ctx context.Context, ask Ask, r berth.Request, w Window) ([]Starts, error) {
	if err := h.mayAsk(&ask, &r); err != nil {
		return nil, err
	}
	if err := h.inProject(ctx, r.User, &r.Account); err != nil {
		return nil, err
	}
	if r.ID == "" {
		r.ID = "starts"
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if len(r.Parts) > 1 {
		return nil, berth.Errorf(berth.Invalid, "parts", "%d; starts are told of requests of one part: ask for each part by itself", len(r.Parts))
	}
	seen, err := h.seen()
	if err != nil {
		return nil, err
	}
	var list []Starts
	meant := false
	for i := range seen.config.Sites {
		on := &seen.config.Sites[i]
		if r.Site != "" && r.Site != on.Name || len(r.Sites) > 0 && !slices.Contains(r.Sites, on.Name) {
			continue
		}
		closed, err := h.closedFor(ctx, on, &r)
		if err != nil {
			return nil, err
		}
		for k := range on.Pools {
			if r.Pool != "" && r.Pool != on.Pools[k].Name {
				continue
			}
			meant = true
			for v := range r.Parts[0].Variants {
				s := Starts{Pool: berth.PoolID(on.Name, on.Pools[k].Name), Variant: v}
				s.First, s.Last = w.Of(&r)
				if closed[v] != nil {
					s.NPE, s.Duration, s.Refusal = r.Parts[0].Variants[v].NPE, r.Parts[0].Variants[v].Duration, closed[v]
				} else if err := h.starts(ctx, &ask, r, w, &s); err != nil {
					return nil, err
				}
				list = append(list, s)
			}
		}
	}
	if !meant {
		return nil, berth.Errorf(berth.NotFound, "site", "no pool %q at site %q; leave out what need not be so", r.Pool, r.Site)
	}
	return list, nil
}

// closedFor returns, for each variant of a request of one part, the refusal of a site that takes
// nothing of it now, nil if it does.
func (h *Host) closedFor(ctx context.Context, on *berth.Site, r *berth.Request) ([]*berth.Refusal, error) {
	closed := make([]*berth.Refusal, len(r.Parts[0].Variants))
	for v := range closed {
		one := r.Clone()
		one.Parts[0].Variants = one.Parts[0].Variants[v : v+1]
		err := h.closedTo(ctx, on, one, false)
		no, is := errors.AsType[*berth.Error](err)
		if err != nil && !is {
			return nil, err
		}
		if is {
			closed[v] = &berth.Refusal{Reason: berth.SiteRefused, Resource: berth.PoolID(on.Name, ""), Words: no.Msg}
		}
	}
	return closed, nil
}

// starts works out the starts of one shape in a pool, piece by piece. The request arrives with the first.
func (h *Host) starts(ctx context.Context, ask *Ask, r berth.Request, w Window, s *Starts) error {
	var at, last berth.Time // from 0, until it has arrived
	for from := ask.FromNow; ; from = (FromNow{}) {
		piece, err := call(ctx, h, ask.By.User, func(answer func(engine.Starts, error)) {
			now := h.awake()
			if from.arrive(&r, now); at == 0 {
				s.First, s.Last = w.Of(&r)
				s.First = max(s.First, now)
				at, last = s.First, s.Last
			}
			look := engine.Look{Pool: s.Pool, Variant: s.Variant, First: max(at, now), Last: max(last, now), Steps: min(stretchesAtOnce, w.Most+1)}
			found, err := h.core.engine.Starts(&r, look)
			if err == nil {
				err = h.unknownPartition(ask.By, r.Partition)
			}
			if err != nil {
				answer(engine.Starts{}, err)
				return
			}
			h.whenDurable(func(err error) { answer(found, err) })
		})
		if err != nil {
			return err
		}
		if s.NPE, s.Duration, s.Refusal = piece.NPE, piece.Duration, piece.Refusal; s.Refusal != nil {
			s.Stretches = nil
			return nil
		}
		if w.InTime() {
			if last = min(last, r.Deadline.Add(-s.Duration)); last < at && len(s.Stretches) == 0 {
				s.Refusal = &berth.Refusal{Reason: berth.DeadlineMissed, Resource: s.Pool, Wanted: s.NPE, Possible: at.Add(s.Duration)}
				return nil
			}
		}
		for _, next := range piece.Stretches {
			if next.First > last {
				break
			}
			next.Last = min(next.Last, last)
			if n := len(s.Stretches); n > 0 && s.Stretches[n-1].Refusal == nil && next.Refusal == nil {
				s.Stretches[n-1].Last = next.Last
			} else if n == w.Most {
				return nil
			} else {
				s.Stretches = append(s.Stretches, next)
			}
			at = next.Last + 1
		}
		if at > last || len(piece.Stretches) == 0 {
			return nil
		}
	}
}
