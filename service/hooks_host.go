package service

import (
	"context"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/notice"
)

// HookView is a hook as its owner sees it.
type HookView struct {
	Hook
	Owed, Dead int
	// Last is what was tried last; nil if nothing was.
	Last *Owed
}

// Deliveries is the notices of a hook: those that wait, the dead letters, and the latest that its receiver
// took, each by number.
type Deliveries struct{ Owed, Dead, Done []*Owed }

func noHook(id string) error { return berth.Errorf(berth.NotFound, "id", "no hook %q", id) }

// hasHook reports whether a principal may see and remove a hook: their own, and operators of all sites any.
func (p Principal) hasHook(h *Hook) bool {
	return p.User == h.User && p.Can(User) || p.Can(Operator) && p.Sites.All()
}

// hook returns a hook that a principal may change. It is of the loop. The error is Denied if it is told of sites
// that they may not see: its address would get what they do not.
func (h *Host) hook(by Principal, id string) (*hookState, error) {
	s := h.core.hooks.byID[id]
	switch {
	case s == nil || !by.hasHook(&s.Hook):
		return nil, noHook(id)
	case by.Sites.And(s.Sites) != s.Sites:
		return nil, berth.Errorf(berth.Denied, "sites", "it is told of sites that are not open to this token; use another token, or remove it")
	}
	return s, nil
}

// keepHooks puts on record what is new of hooks.
func (h *Host) keepHooks(n *hookNews) {
	h.persist(h.core.hookRecord(h.clock(), n), consequences{who: n.by.User})
}

// AddHook adds a hook of who asks. Errors: Denied for a viewer, Conflict if the user has as many as there can be.
func (h *Host) AddHook(ctx context.Context, ask Ask, hook Hook) (Hook, error) {
	if !ask.By.Can(User) {
		return Hook{}, berth.Errorf(berth.Denied, "role", "a %s has no reservations to be told of", ask.By.Role)
	}
	return call(ctx, h, ask.By.User, func(answer func(Hook, error)) {
		if has := len(h.core.hooks.byUser[ask.By.User]); has >= maxHooks {
			answer(Hook{}, berth.Errorf(berth.Conflict, "hooks", "%s has %d, which is the most there can be; berth notify remove ends one", ask.By.User, has))
			return
		}
		hook.User, hook.Sites, hook.Created, hook.Dated, hook.Exchanged = ask.By.User, ask.By.Sites, h.clock(), true, true
		h.keepHooks(&hookNews{by: ask.asked().by, kind: auditAddReceiver, put: []Hook{hook}})
		h.whenDurable(func(failed error) { answer(hook, failed) })
	})
}

// Hooks returns the hooks that a principal may see, by id.
func (h *Host) Hooks(ctx context.Context, by Principal) ([]HookView, error) {
	return call(ctx, h, by.User, func(answer func([]HookView, error)) {
		list := []HookView{}
		for _, s := range h.core.hooks.byID {
			if by.hasHook(&s.Hook) {
				list = append(list, s.view())
			}
		}
		slices.SortFunc(list, func(a, b HookView) int {
			if a.Created != b.Created {
				return int(a.Created - b.Created)
			}
			if a.ID < b.ID {
				return -1
			}
			return 1
		})
		h.whenDurable(func(failed error) { answer(list, failed) })
	})
}

func (s *hookState) view() HookView {
	v := HookView{Hook: s.Hook, Owed: len(s.owed), Dead: len(s.dead)}
	for _, list := range [][]*Owed{s.owed, s.dead, s.done} {
		for _, o := range list {
			if len(o.Tries) > 0 && (v.Last == nil || v.Last.Tries[len(v.Last.Tries)-1].At <= o.Tries[len(o.Tries)-1].At) {
				v.Last = o
			}
		}
	}
	return v
}

// ChangeHook changes a hook as a function does, which may also refuse to. Who it belongs to, its id and what it may
// see stay.
func (h *Host) ChangeHook(ctx context.Context, ask Ask, id string, change func(*Hook) error) (Hook, error) {
	return call(ctx, h, ask.By.User, func(answer func(Hook, error)) {
		s, err := h.hook(ask.By, id)
		if err != nil {
			answer(Hook{}, err)
			return
		}
		own := s.Hook
		own.Kinds = slices.Clone(own.Kinds)
		if err := change(&own); err != nil {
			answer(Hook{}, err)
			return
		}
		own.ID, own.User, own.Parent, own.Sites, own.Created, own.Dated, own.Exchanged = s.ID, s.User, s.Parent, s.Sites, s.Created, s.Dated, true
		if s.Disabled != "" && own.Disabled == "" {
			own.Failing = 0
		}
		kind := auditChangeReceiver
		if own.Rotated != s.Rotated {
			kind = auditRotateReceiver
		}
		h.keepHooks(&hookNews{by: ask.asked().by, kind: kind, put: []Hook{own}})
		h.whenDurable(func(failed error) { answer(own, failed) })
	})
}

// aboutHook has something done about a hook that who asks may change.
func (h *Host) aboutHook(ctx context.Context, ask Ask, id string, do func(s *hookState, n *hookNews) error) error {
	_, err := call(ctx, h, ask.By.User, func(answer func(struct{}, error)) {
		s, err := h.hook(ask.By, id)
		n := &hookNews{by: ask.asked().by}
		if err == nil {
			err = do(s, n)
		}
		if err != nil {
			answer(struct{}{}, err)
			return
		}
		h.keepHooks(n)
		h.whenDurable(func(failed error) { answer(struct{}{}, failed) })
	})
	return err
}

// RemoveHook removes a hook with what it is owed.
func (h *Host) RemoveHook(ctx context.Context, ask Ask, id string) error {
	_, err := call(ctx, h, ask.By.User, func(answer func(struct{}, error)) {
		if s := h.core.hooks.byID[id]; s == nil || !ask.By.hasHook(&s.Hook) {
			answer(struct{}{}, noHook(id))
			return
		}
		h.keepHooks(&hookNews{by: ask.asked().by, removed: []string{id}})
		h.whenDurable(func(failed error) { answer(struct{}{}, failed) })
	})
	return err
}

// TestHook sends a test to a hook, like any other notice. The error is Conflict if it is disabled.
func (h *Host) TestHook(ctx context.Context, ask Ask, id string) error {
	return h.aboutHook(ctx, ask, id, func(s *hookState, n *hookNews) error {
		n.tests = []string{s.ID}
		return s.enabled()
	})
}

func (s *hookState) enabled() error {
	if s.Disabled == "" {
		return nil
	}
	return berth.Errorf(berth.Conflict, "hook", "it is disabled: %s. Enable it first", s.Disabled)
}

// Deliveries returns the notices of a hook.
func (h *Host) Deliveries(ctx context.Context, by Principal, id string) (Deliveries, error) {
	return call(ctx, h, by.User, func(answer func(Deliveries, error)) {
		s, err := h.hook(by, id)
		if err != nil {
			answer(Deliveries{}, err)
			return
		}
		d := Deliveries{Owed: s.owed, Dead: s.dead, Done: s.done}
		h.whenDurable(func(failed error) { answer(d, failed) })
	})
}

// Resend sends notices of a hook again that are dead letters or were delivered, with the ids that they had; no numbers are
// all dead letters. Errors: NotFound if there is none such, Conflict if the hook is disabled.
func (h *Host) Resend(ctx context.Context, ask Ask, id string, numbers []uint64) error {
	return h.aboutHook(ctx, ask, id, func(s *hookState, n *hookNews) error {
		if err := s.enabled(); err != nil {
			return err
		}
		if len(numbers) == 0 {
			for _, o := range s.dead {
				numbers = append(numbers, o.Number)
			}
		}
		left := map[uint64]bool{} // whether it is to be sent again, by number
		for _, list := range [][]*Owed{s.dead, s.done} {
			for _, o := range list {
				left[o.Number] = true
			}
		}
		for _, number := range numbers {
			switch again, is := left[number]; {
			case is && !again:
				continue // it is named twice
			case !is:
				return berth.Errorf(berth.NotFound, "number", "notice %d of hook %s is no dead letter, and none that was delivered lately", number, id)
			}
			left[number] = false
			n.again = append(n.again, sentAgain{s.ID, number})
		}
		if len(n.again) == 0 {
			return berth.Errorf(berth.NotFound, "number", "hook %s has no dead letters", id)
		}
		return nil
	})
}

// tellTried puts on record what came of tries.
func (h *Host) tellTried(list []tried, disabled []disabledHook) {
	n := hookNews{disabled: disabled}
	for i := range list {
		if h.core.hooks.byID[list[i].hook] != nil {
			n.tried = append(n.tried, list[i])
		}
	}
	if !n.empty() {
		h.keepHooks(&n)
	}
	for _, id := range n.hooks() {
		if s := h.core.hooks.byID[id]; s != nil && s.Disabled != "" {
			h.log.Warn("a receiver of notices is disabled", "hook", s.ID, "user", s.User, "host", s.Host, "why", s.Disabled)
		}
	}
}

// hooks returns the ids of the hooks that were tried or disabled.
func (n *hookNews) hooks() (ids []string) {
	for i := range n.tried {
		if n.tried[i].try.Words != "" {
			ids = append(ids, n.tried[i].hook)
		}
	}
	for i := range n.disabled {
		ids = append(ids, n.disabled[i].hook)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// tellDue puts on record which notices are due by the time and were not told.
func (h *Host) tellDue(list []dueNotice) {
	now := h.clock()
	n := hookNews{due: slices.DeleteFunc(list, func(d dueNotice) bool {
		s, k := h.core.hooks.byID[d.hook], h.core.card(d.id)
		if s == nil || !h.core.tells(k) || !s.sees(k) {
			return true
		}
		of, due := s.dueOf(d.kind, k, now)
		return !due || s.told[d] == of
	})}
	if !n.empty() {
		h.keepHooks(&n)
	}
}

// hasTimes reports whether a hook wants notices that follow from the time alone.
func (s *Hook) hasTimes() bool {
	return slices.ContainsFunc(byTime(), func(k notice.Kind) bool { return slices.Contains(s.Kinds, k) })
}
