package service

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/notice"
)

// Hook is a receiver of notices, and what a user has chosen to be told there.
type Hook struct {
	ID   string
	User string
	// Form is what is sent: see HookForms.
	Form  string
	Host  string // that it is sent to, for people
	Note  string
	Kinds []notice.Kind
	Site  string // only what has to do with the site; empty is all
	Text  string // of a chat
	// Starts is how long before its start a promise is told of as starting, Ends how long before its
	// end as ending, and Unused how long after its start as unused.
	Starts, Ends, Unused berth.Duration
	Created              berth.Time
	Rotated              berth.Time // when its secret was replaced last
	// Parent is the token with which it was made, and Sites those that the token was good for.
	Parent string
	Sites  SiteSet
	// Sealed is the address and the secrets, which the journal does not show.
	Sealed []byte

	Disabled string     // why nothing is sent; empty if something is
	Failing  berth.Time // since when each try has failed; 0 if the last one has not
	Missed   int        // notices that it was not sent and will not be
	// Dated says that its notices are named by their times as well: numbers are given again after a backup was restored. Earlier
	// versions made hooks without it, and what they have named keeps its name.
	Dated bool
	// Exchanged says that a promise which gets other PEs and lacked none is told of as moved. Earlier versions made hooks without it,
	// which are told of it as whole.
	Exchanged bool
}

// HookForms lists the forms of what is sent: a message of Standard Webhooks, a text for a chat, and e-mail.
func HookForms() []string { return []string{WebhookForm, ChatForm, MailForm} }

// The forms of hooks.
const (
	WebhookForm = "webhook"
	ChatForm    = "chat"
	MailForm    = "email"
)

// Try is one attempt to send a notice.
type Try struct {
	At     berth.Time
	Status int    // of the answer; 0 if there was none
	Words  string // why it failed; empty if it did not
	Final  bool   // it is in vain to try it again
}

// Owed is a notice for a hook. It is not written any more once it is in a list.
type Owed struct {
	Number uint64
	At     berth.Time
	Kind   notice.Kind
	Flow   *FlowNews // of a workflow
	Missed int       // of a gap: how many notices it stands for
	// First is the number of the first notice for the hook about the same, 0 if this is that; of MailForm alone, whose
	// notices of one reservation or workflow are one thread.
	First   uint64
	FirstAt berth.Time // and its time, 0 if it is not named by it
	Dated   bool       // it is named by its time as well
	Tries   []Try
	// Since is how many of the tries count: those since it was last asked for.
	Since int
	Dead  bool       // it is not tried again
	Done  berth.Time // when the receiver took it
	card  card       // of a reservation, as it was then
}

// Reservation returns the reservation that a notice is about, as it was then; false if it is
// about none.
func (o *Owed) Reservation() (Reservation, bool) {
	if o.card.request == nil {
		return Reservation{}, false
	}
	return o.card.view(), true
}

// about names what a notice is about: of two with the same the earlier one is sent first.
func (o *Owed) about() string {
	switch {
	case o.Flow != nil:
		return "workflow " + o.Flow.ID
	case o.card.request != nil:
		return o.card.id
	}
	return string(o.Kind) + " of hook"
}

// Next returns when a notice is tried next; false if it is not.
func (o *Owed) Next() (berth.Time, bool) {
	n := len(o.Tries) - o.Since
	if n <= 0 {
		return o.At, true
	}
	if o.Tries[len(o.Tries)-1].Final {
		return 0, false
	}
	return notice.Next(o.Tries[o.Since].At, n, o.Number)
}

// waits reports whether a notice was tried, so that the next try is at its time. One that was tried at a time that the clock has
// not reached, since it was set back, waits for nothing: it would for as long as that.
func (o *Owed) waits(now berth.Time) bool {
	n := len(o.Tries)
	return n > o.Since && o.Tries[n-1].At <= now
}

const (
	// mostOwed is how many notices wait for a hook: a day of many. Those beyond are told as a gap.
	mostOwed = 10_000
	// maxDead is how many dead letters of a hook are kept, and keepDone how many notices that it got.
	maxDead  = 1000
	keepDone = 50
	// maxHooks is how many hooks a user has at most: some for each of some programs.
	maxHooks = 16
)

// hookState is a hook with what it is owed. Lists are by number; those who look share them, so they
// are appended to or replaced.
type hookState struct {
	Hook
	owed []*Owed
	dead []*Owed
	done []*Owed
	told map[dueNotice]berth.Time // the start, or end, that was told of
	// first names the first notice about each reservation and workflow that is not over, by
	// what it is about; of MailForm alone.
	first map[string]firstNotice
}

// hooks is all hooks. It is of the loop.
type hooks struct {
	byID    map[string]*hookState
	byUser  map[string][]*hookState // by id
	flows   []flowOwed              // of the record that is followed
	most    int                     // instead of mostOwed, if not 0; only tests set it
	shows   bool
	touched map[string]bool // since take, if shows is set
}

// flowOwed is what a change says of a workflow.
type flowOwed struct {
	index int
	kind  change.Kind
	news  *FlowNews
}

func (h *hooks) touch(id string) {
	if h.shows {
		if h.touched == nil {
			h.touched = map[string]bool{}
		}
		h.touched[id] = true
	}
}

// followFlow notes what a record says of a workflow, until its notices are noted.
func (h *hooks) followFlow(index int, kind change.Kind, news *FlowNews) {
	if len(h.byID) > 0 {
		h.flows = append(h.flows, flowOwed{index, kind, news})
	}
}

// put adds or replaces a hook.
func (h *hooks) put(s *hookState) {
	if h.byID == nil {
		h.byID, h.byUser = map[string]*hookState{}, map[string][]*hookState{}
	}
	h.remove(s.ID)
	h.byID[s.ID] = s
	list := append(slices.Clone(h.byUser[s.User]), s)
	slices.SortFunc(list, func(a, b *hookState) int { return strings.Compare(a.ID, b.ID) })
	h.byUser[s.User] = list
	h.touch(s.ID)
}

func (h *hooks) remove(id string) {
	s := h.byID[id]
	if s == nil {
		return
	}
	delete(h.byID, id)
	if h.byUser[s.User] = slices.DeleteFunc(slices.Clone(h.byUser[s.User]), func(o *hookState) bool { return o == s }); len(h.byUser[s.User]) == 0 {
		delete(h.byUser, s.User)
	}
	h.touch(id)
}

// shownHook is what of a hook is sent.
type shownHook struct {
	id   string
	hook *Hook // nil of one that was removed
	owed []*Owed
}

// show returns some hooks as they are.
func (h *hooks) show(ids []string) (list []shownHook) {
	for _, id := range ids {
		shown := shownHook{id: id}
		if s := h.byID[id]; s != nil {
			own := s.Hook
			shown.hook, shown.owed = &own, s.owed
		}
		list = append(list, shown)
	}
	return list
}

// take returns the hooks that have changed since it was asked last.
func (h *hooks) take() []shownHook {
	if len(h.touched) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(h.touched))
	clear(h.touched)
	return h.show(ids)
}

// insert puts a notice where its number is.
func insert(list []*Owed, o *Owed) []*Owed {
	at, found := search(list, o.Number)
	switch {
	case found:
		return list
	case at == len(list):
		return append(list, o)
	}
	return slices.Insert(slices.Clone(list), at, o)
}

// search returns where the notice of a number is in a list.
func search(list []*Owed, number uint64) (at int, found bool) {
	return slices.BinarySearchFunc(list, number, func(o *Owed, number uint64) int { return cmp.Compare(o.Number, number) })
}

// find returns the notice of a number; nil if there is none.
func find(list []*Owed, number uint64) *Owed {
	if at, found := search(list, number); found {
		return list[at]
	}
	return nil
}

// takeOut returns a list without the notice of a number, which it returns too.
func takeOut(list []*Owed, number uint64) ([]*Owed, *Owed) {
	at, found := search(list, number)
	if !found {
		return list, nil
	}
	o := list[at]
	if at == 0 {
		return list[1:], o
	}
	return slices.Delete(slices.Clone(list), at, at+1), o
}

// owe has a hook get a notice.
func (h *hooks) owe(s *hookState, o *Owed) {
	h.touch(s.ID)
	o.Dated = s.Dated
	switch last := len(s.owed) - 1; {
	case s.Disabled != "":
		s.Missed++
	case len(s.owed) < cmp.Or(h.most, mostOwed):
		s.join(o)
		s.owed = insert(s.owed, o)
	case s.owed[last].Kind == notice.Gap && last > 0: // and so not being sent, see courier
		gap := *s.owed[last]
		gap.Missed++
		s.owed = append(slices.Clone(s.owed[:last]), &gap)
		s.Missed++
	default:
		s.Missed++
		s.owed = insert(s.owed, &Owed{Number: o.Number, At: o.At, Dated: o.Dated, Kind: notice.Gap, Missed: 1})
	}
}

// NamedAt returns the time by which a notice is named beside its number; 0 if it is not.
func (o *Owed) NamedAt() berth.Time {
	if !o.Dated {
		return 0
	}
	return o.At
}

// firstNotice names the first notice of a thread.
type firstNotice struct {
	number uint64
	at     berth.Time // 0 if it is not named by it
}

// join has a notice be of the thread of what it is about.
func (s *hookState) join(o *Owed) {
	if s.Form != MailForm || o.Flow == nil && o.card.request == nil {
		return
	}
	about := o.about()
	first, known := s.first[about]
	switch {
	case known:
		o.First, o.FirstAt = first.number, first.at
	case s.first == nil:
		s.first = map[string]firstNotice{}
	}
	if !known {
		s.first[about] = firstNotice{o.Number, o.NamedAt()}
	}
}

// last reports whether a notice of a kind is the last about a reservation or workflow that is over.
func last(kind notice.Kind) bool {
	return kind == notice.Refused || kind == notice.Lost || kind == notice.Cancelled || kind == notice.Ended
}

// sees reports whether a hook is told of a reservation.
func (s *hookState) sees(k *card) bool {
	by := Principal{User: s.User, Role: User, Sites: s.Sites}
	return k.seenBy(by) && (s.Site == "" || k.at(s.Site))
}

// at reports whether a request has to do with a site.
func (k *card) at(site string) bool {
	return k.request.Site == site || k.promise != nil && slices.ContainsFunc(k.promise.Allotments, func(a berth.Allotment) bool { return a.Resource.Site == site })
}

// alone returns a card as a notice has it, which is shown and nothing else.
func (k *card) alone() card {
	own := *k
	own.answers = nil
	return own
}

func (s *hookState) wants(kind notice.Kind) bool { return slices.Contains(s.Kinds, kind) }

// tells reports whether notices are sent about a request. Ordinary jobs and what is watched are
// not promised, and tasks are told of as their workflow.
func (c *Core) tells(k *card) bool {
	return k != nil && k.request != nil && !k.asking && !k.request.IsJob() && k.request.Task == nil && c.shadows[k.request.Site] == nil
}

// lackingBefore returns by id how many PEs promises lack, before the changes of a record are followed, that have others by them.
func (c *Core) lackingBefore(changes []change.Change) (lacking map[string]berth.Count) {
	for i := range changes {
		if changes[i].Kind != change.Resized {
			continue
		}
		if k := c.card(changes[i].ID); k != nil && k.promise != nil && k.promise.Missing > 0 {
			if lacking == nil {
				lacking = map[string]berth.Count{}
			}
			lacking[k.id] = k.promise.Missing
		}
	}
	return lacking
}

// owe notes which notices follow from a record. It is called when the cards are as the record leaves
// them, and gives the same when the record is followed again.
func (c *Core) owe(number uint64, at berth.Time, changes []change.Change) {
	h := &c.hooks
	if len(h.byID) == 0 {
		return
	}
	for _, f := range h.flows {
		c.oweFlow(number<<noticeBits|uint64(f.index), at, f.kind, f.news)
	}
	h.flows = h.flows[:0]
	type what struct {
		id        string
		kind      notice.Kind
		exchanged bool
	}
	var told map[what]bool
	for i := range changes {
		x := &changes[i]
		kind, tells := notice.OfChange(x.Kind, 0, 0)
		if !tells || x.ID == "" {
			continue
		}
		k := c.card(x.ID)
		if !c.tells(k) || len(h.byUser[k.request.User]) == 0 || kind == notice.Ended && k.end == "" {
			continue
		}
		if x.Kind == change.Resized && k.promise != nil {
			kind, _ = notice.OfChange(x.Kind, c.lacking[x.ID], k.promise.Missing)
		}
		is := what{x.ID, kind, kind == notice.Moved && x.Kind == change.Resized}
		if told[is] {
			continue
		}
		if told == nil {
			told = map[what]bool{}
		}
		told[is] = true
		c.oweCard(number<<noticeBits|uint64(i), at, kind, is.exchanged, k)
	}
}

// oweCard notes a notice about a request for all hooks of its user that want it. Exchanged says that it has other PEs, and that is all.
func (c *Core) oweCard(number uint64, at berth.Time, kind notice.Kind, exchanged bool, k *card) {
	for _, s := range c.hooks.byUser[k.request.User] {
		if exchanged {
			if kind = notice.Moved; !s.Exchanged {
				kind = notice.Whole
			}
		}
		if k.end != "" {
			s.forget(k.id)
		}
		if s.wants(kind) && s.sees(k) {
			c.hooks.owe(s, &Owed{Number: number, At: at, Kind: kind, card: k.alone()})
		}
		if k.end != "" && last(kind) {
			delete(s.first, k.id)
		}
	}
}

// oweAgreed notes the notices about promises that are told now, since their sites have them.
func (c *Core) oweAgreed(number uint64, at berth.Time, ids []string) {
	for i, id := range ids {
		if k := c.card(id); c.tells(k) {
			c.oweCard(number<<noticeBits|uint64(i), at, notice.Granted, false, k)
		}
	}
}

// oweFlow notes a notice about a workflow.
func (c *Core) oweFlow(number uint64, at berth.Time, what change.Kind, news *FlowNews) {
	var kind notice.Kind
	switch {
	case what == change.WorkflowPromised:
		kind = notice.Granted
	case what == change.WorkflowRefused:
		kind = notice.Refused
	case what == change.WorkflowReplanned && news.Late:
		kind = notice.Deadline
	case what == change.WorkflowReplanned:
		kind = notice.Moved
	case what != change.WorkflowOver:
		return
	case news.State == FlowSucceeded:
		kind = notice.Ended
	case news.State == FlowCancelled:
		kind = notice.Cancelled
	default:
		kind = notice.Lost
	}
	for _, s := range c.hooks.byUser[news.User] {
		if s.wants(kind) && s.Sites.All() && s.Site == "" {
			c.hooks.owe(s, &Owed{Number: number, At: at, Kind: kind, Flow: news})
		}
		if last(kind) {
			delete(s.first, "workflow "+news.ID)
		}
	}
}

// dueNotice is a notice that follows from the time alone.
type dueNotice struct {
	hook, id string
	kind     notice.Kind
}

// dueOf returns for which time of a promise a notice is due now; false if it is not.
func (s *Hook) dueOf(kind notice.Kind, k *card, now berth.Time) (of berth.Time, due bool) {
	if k.end != "" || k.promise == nil || !slices.Contains(s.Kinds, kind) {
		return 0, false
	}
	p := k.promise
	start, end := p.Start(), p.Allotments[0].End
	for i := range p.Allotments {
		end = max(end, p.Allotments[i].End)
	}
	switch kind {
	case notice.Starting:
		return start, p.State != berth.Active && start > now && start <= now.Add(s.Starts)
	case notice.Ending:
		return end, p.State == berth.Active && end > now && end <= now.Add(s.Ends)
	case notice.Unused:
		return start, p.State == berth.Active && !p.CheckedIn && start.Add(s.Unused) <= now && now < end
	}
	return 0, false
}

// byTime lists the kinds that follow from the time alone.
func byTime() []notice.Kind { return []notice.Kind{notice.Starting, notice.Ending, notice.Unused} }

// forget drops what was told of a request that is over.
func (s *hookState) forget(id string) {
	for _, kind := range byTime() {
		delete(s.told, dueNotice{s.ID, id, kind})
	}
}

// hookNews is what is new of hooks. The journal has it.
type hookNews struct {
	by       Origin
	kind     engine.EventKind // of what is put, as it is audited
	put      []Hook
	removed  []string
	tests    []string // ids of hooks that are sent a test
	due      []dueNotice
	tried    []tried
	again    []sentAgain
	disabled []disabledHook
}

// tried is a try of a notice; it has delivered it if its words are empty.
type tried struct {
	hook   string
	number uint64
	try    Try
}

// sentAgain is a notice that is to be sent again.
type sentAgain struct {
	hook   string
	number uint64
}

type disabledHook struct{ hook, why string }

func (n *hookNews) empty() bool {
	return len(n.put)+len(n.removed)+len(n.tests)+len(n.due)+len(n.tried)+len(n.again)+len(n.disabled) == 0
}

// hookRecord notes what is new of hooks, and returns the record of it. Nothing is decided by it.
func (c *Core) hookRecord(now berth.Time, n *hookNews) *journal.Record {
	rec := &journal.Record{At: now, Version: c.version, Event: appendHooks(nil, n)}
	c.place(rec)
	c.noteHooks(rec.Number, now, n)
	return rec
}

// noteHooks brings the hooks up to date. What is no longer there is passed over.
func (c *Core) noteHooks(number uint64, at berth.Time, n *hookNews) {
	h := &c.hooks
	next := number << noticeBits
	owe := func(s *hookState, o *Owed) {
		o.Number, o.At = next, at
		next++
		h.owe(s, o)
	}
	for i := range n.put {
		s := &hookState{Hook: n.put[i], told: map[dueNotice]berth.Time{}}
		was := h.byID[s.ID]
		if was != nil {
			s.owed, s.dead, s.done, s.told, s.first = was.owed, was.dead, was.done, was.told, was.first
		}
		h.put(s)
		if was != nil && was.Disabled != "" && s.Disabled == "" && s.Missed > 0 {
			owe(s, &Owed{Kind: notice.Gap, Missed: s.Missed})
			s.Missed = 0
		}
	}
	for _, id := range n.removed {
		h.remove(id)
	}
	for _, id := range n.tests {
		if s := h.byID[id]; s != nil {
			owe(s, &Owed{Kind: notice.Test})
		}
	}
	for _, d := range n.due {
		s, k := h.byID[d.hook], c.card(d.id)
		if s == nil || !c.tells(k) || !s.sees(k) {
			continue
		}
		if of, due := s.dueOf(d.kind, k, at); due && s.told[d] != of {
			s.told[d] = of
			owe(s, &Owed{Kind: d.kind, card: k.alone()})
		}
	}
	for i := range n.tried {
		if s := h.byID[n.tried[i].hook]; s != nil {
			h.noteTried(s, &n.tried[i])
		}
	}
	for _, a := range n.again {
		if s := h.byID[a.hook]; s != nil {
			h.sendAgain(s, a.number)
		}
	}
	for _, d := range n.disabled {
		if s := h.byID[d.hook]; s != nil {
			h.disable(s, d.why)
		}
	}
}

// noteTried notes what came of a try.
func (h *hooks) noteTried(s *hookState, t *tried) {
	list, o := takeOut(s.owed, t.number)
	if o == nil {
		return
	}
	h.touch(s.ID)
	own := *o
	own.Tries = append(slices.Clip(own.Tries), t.try)
	if t.try.Words == "" {
		own.Done, s.owed, s.Failing = t.try.At, list, 0
		s.done = keep(s.done, &own, keepDone)
		return
	}
	if s.Failing == 0 {
		s.Failing = t.try.At
	}
	if _, more := own.Next(); more {
		s.owed = insert(list, &own)
	} else {
		own.Dead, s.owed = true, list
		s.dead = keep(s.dead, &own, maxDead)
	}
	if t.try.At.Sub(s.Failing) >= notice.Patience {
		h.disable(s, "it has failed for four days on end, the last time so: "+t.try.Words)
	}
}

// keep adds to a list that has the latest of some.
func keep(list []*Owed, o *Owed, most int) []*Owed {
	list = insert(slices.Clone(list), o)
	return list[max(0, len(list)-most):]
}

// sendAgain has a notice be sent again.
func (h *hooks) sendAgain(s *hookState, number uint64) {
	list, o := takeOut(s.dead, number)
	if s.dead = list; o == nil {
		if s.done, o = takeOut(s.done, number); o == nil {
			return
		}
	}
	own := *o
	own.Since, own.Dead, own.Done = len(own.Tries), false, 0
	h.touch(s.ID)
	s.owed = insert(s.owed, &own)
}

// disable has a hook get nothing any more. What it is owed are dead letters from then on.
func (h *hooks) disable(s *hookState, why string) {
	h.touch(s.ID)
	s.Disabled = why
	for _, o := range s.owed {
		own := *o
		own.Dead = true
		s.dead = insert(s.dead, &own)
	}
	s.dead = slices.Clone(s.dead[max(0, len(s.dead)-maxDead):])
	s.owed = nil
}

func appendHooks(dst []byte, n *hookNews) []byte {
	w := wire.Writer(append(dst, hookInput))
	n.code(w)
	return w.Bytes()
}
