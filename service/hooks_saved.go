package service

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/notice"
)

// The forms in which the journal and snapshots have hooks. The numbers of fields are those of
// journals that exist.

func (n *hookNews) code(c *wire.Coder) {
	wire.Struct(c, 1, &n.by, n.by == Origin{}, codeOrigin)
	wire.List(c, 2, &n.put, func(c *wire.Coder, h *Hook) { h.code(c) })
	wire.List(c, 3, &n.removed, wire.BareText[string])
	wire.List(c, 4, &n.tests, wire.BareText[string])
	wire.List(c, 5, &n.due, func(c *wire.Coder, d *dueNotice) {
		wire.Name(c, 1, &d.hook)
		wire.String(c, 2, &d.id)
		wire.Name(c, 3, &d.kind)
		c.End()
	})
	wire.List(c, 6, &n.tried, func(c *wire.Coder, t *tried) {
		wire.Name(c, 1, &t.hook)
		wire.Uint(c, 2, &t.number)
		wire.Struct(c, 3, &t.try, t.try == Try{}, codeTry)
		c.End()
	})
	wire.List(c, 7, &n.again, func(c *wire.Coder, a *sentAgain) {
		wire.Name(c, 1, &a.hook)
		wire.Uint(c, 2, &a.number)
		c.End()
	})
	wire.List(c, 8, &n.disabled, func(c *wire.Coder, d *disabledHook) {
		wire.Name(c, 1, &d.hook)
		wire.String(c, 2, &d.why)
		c.End()
	})
	wire.Name(c, 9, &n.kind)
	c.End()
}

func (h *Hook) code(c *wire.Coder) {
	wire.String(c, 1, &h.ID)
	wire.Name(c, 2, &h.User)
	wire.Name(c, 3, &h.Form)
	wire.String(c, 4, &h.Host)
	wire.String(c, 5, &h.Note)
	wire.List(c, 6, &h.Kinds, wire.BareText[notice.Kind])
	wire.Name(c, 7, &h.Site)
	wire.String(c, 8, &h.Text)
	wire.Int(c, 9, &h.Starts)
	wire.Int(c, 10, &h.Ends)
	wire.Int(c, 11, &h.Unused)
	wire.Int(c, 12, &h.Created)
	wire.Int(c, 13, &h.Rotated)
	wire.String(c, 14, &h.Parent)
	wire.String(c, 15, &h.Sites)
	wire.Raw(c, 16, &h.Sealed)
	wire.String(c, 17, &h.Disabled)
	wire.Int(c, 18, &h.Failing)
	missed := int64(h.Missed)
	wire.Int(c, 19, &missed)
	h.Missed = int(missed)
	wire.Bool(c, 20, &h.Dated)
	wire.Bool(c, 21, &h.Exchanged)
	c.End()
}

func codeTry(c *wire.Coder, t *Try) {
	wire.Int(c, 1, &t.At)
	status := int64(t.Status)
	wire.Int(c, 2, &status)
	t.Status = int(status)
	wire.String(c, 3, &t.Words)
	wire.Bool(c, 4, &t.Final)
	c.End()
}

// savedHook is a hook in a snapshot.
type savedHook struct {
	Hook Hook
	Owed []savedOwed // with dead ones and those that were delivered, by number
	Told []savedDue  // by id and kind
	// First is by what it is about.
	First []savedFirst
}

type savedFirst struct {
	about string
	firstNotice
}

type savedOwed struct {
	Owed Owed
	Card *savedCard
}

type savedDue struct {
	id   string
	kind notice.Kind
	of   berth.Time
}

func (s *savedHook) code(c *wire.Coder) {
	wire.Struct(c, 1, &s.Hook, false, func(c *wire.Coder, h *Hook) { h.code(c) })
	wire.List(c, 2, &s.Owed, func(c *wire.Coder, o *savedOwed) { o.code(c) })
	wire.List(c, 3, &s.Told, func(c *wire.Coder, d *savedDue) {
		wire.String(c, 1, &d.id)
		wire.Name(c, 2, &d.kind)
		wire.Int(c, 3, &d.of)
		c.End()
	})
	wire.List(c, 4, &s.First, func(c *wire.Coder, f *savedFirst) {
		wire.String(c, 1, &f.about)
		wire.Uint(c, 2, &f.number)
		wire.Int(c, 3, &f.at)
		c.End()
	})
	c.End()
}

func (s *savedOwed) code(c *wire.Coder) {
	o := &s.Owed
	missed, since := int64(o.Missed), int64(o.Since)
	wire.Uint(c, 1, &o.Number)
	wire.Int(c, 2, &o.At)
	wire.Name(c, 3, &o.Kind)
	wire.Pointer(c, 4, &s.Card, func(c *wire.Coder, k *savedCard) { k.code(c) })
	wire.Pointer(c, 5, &o.Flow, codeFlowNews)
	wire.Int(c, 6, &missed)
	wire.List(c, 7, &o.Tries, codeTry)
	wire.Int(c, 8, &since)
	wire.Bool(c, 9, &o.Dead)
	wire.Int(c, 10, &o.Done)
	wire.Uint(c, 11, &o.First)
	wire.Int(c, 12, &o.FirstAt)
	o.Missed, o.Since = int(missed), int(since)
	c.End()
}

func codeFlowNews(c *wire.Coder, f *FlowNews) {
	moved := int64(f.Moved)
	wire.String(c, 1, &f.ID)
	wire.String(c, 2, &f.Name)
	wire.Name(c, 3, &f.User)
	wire.Name(c, 4, &f.State)
	wire.Name(c, 5, &f.Outcome)
	wire.String(c, 6, &f.Why)
	wire.Name(c, 7, &f.Cause)
	wire.Int(c, 8, &moved)
	wire.Int(c, 9, &f.End)
	wire.Int(c, 10, &f.Deadline)
	wire.Bool(c, 11, &f.Late)
	f.Moved = int(moved)
	c.End()
}

// savedHooks returns all hooks in their written form, by id.
func (c *Core) savedHooks() (list []savedHook) {
	for _, id := range slices.Sorted(maps.Keys(c.hooks.byID)) {
		s := c.hooks.byID[id]
		saved := savedHook{Hook: s.Hook}
		for _, o := range slices.Concat(s.owed, s.dead, s.done) {
			of := savedOwed{Owed: *o}
			if k := &o.card; k.request != nil {
				of.Card = &savedCard{ID: k.id, Request: k.request, Promise: k.promise, End: k.end, Refusal: k.refusal, Version: k.version, Created: k.created, Changed: k.changed}
			}
			saved.Owed = append(saved.Owed, of)
		}
		for d, of := range s.told {
			saved.Told = append(saved.Told, savedDue{d.id, d.kind, of})
		}
		slices.SortFunc(saved.Told, func(a, b savedDue) int { return strings.Compare(a.id+" "+string(a.kind), b.id+" "+string(b.kind)) })
		for _, about := range slices.Sorted(maps.Keys(s.first)) {
			saved.First = append(saved.First, savedFirst{about: about, firstNotice: s.first[about]})
		}
		list = append(list, saved)
	}
	return list
}

// restoreHooks takes in what savedHooks returned.
func (c *Core) restoreHooks(list []savedHook) {
	for i := range list {
		saved := &list[i]
		s := &hookState{Hook: saved.Hook, told: map[dueNotice]berth.Time{}}
		for j := range saved.Owed {
			o := &saved.Owed[j].Owed
			o.Dated = s.Dated
			if k := saved.Owed[j].Card; k != nil {
				o.card = card{id: k.ID, request: k.Request, promise: k.Promise, end: k.End, refusal: k.Refusal, version: k.Version, created: k.Created, changed: k.Changed}
			}
			switch {
			case o.Dead:
				s.dead = append(s.dead, o)
			case o.Done != 0:
				s.done = append(s.done, o)
			default:
				s.owed = append(s.owed, o)
			}
		}
		for _, d := range saved.Told {
			s.told[dueNotice{s.ID, d.id, d.kind}] = d.of
		}
		if len(saved.First) > 0 {
			s.first = map[string]firstNotice{}
		}
		for _, f := range saved.First {
			s.first[f.about] = f.firstNotice
		}
		c.hooks.put(s)
	}
}
