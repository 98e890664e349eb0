package dst

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/berth-hpc/berth/service"
)

// What clients did and heard, with the times at which they asked and were answered, has to be explained by one order in
// which each call took effect at one instant between the two (linearizability; Herlihy and Wing 1990). The check is
// that of Wing and Gong with the refinements of Lowe, as porcupine has it. Each reservation is judged by itself,
// which loses nothing: a history is linearizable if that of each object is.
//
// What the model knows of a reservation is small: it is made once, it is confirmed and cancelled by clients alone, what is
// over stays over, and its version grows with each change. All else may happen by itself at any time.
// A call without an answer may have taken effect at any time since it was sent, or not at all.

// deed is what an operation of a history is.
type deed int

const (
	makes       deed = iota // the reservation is made
	sees                    // it is seen in a state, of a version
	misses                  // it is not there
	confirms                // it is confirmed, which the answer says
	mayConfirm              // it was asked to be confirmed, which was not answered
	releases                // it is given back
	mayRelease              // it was asked to be given back, likewise
	confirmedAs             // it is confirmed, and seen as it is then
	releasedAs              // it is given back, and seen as it is then
)

var deeds = []string{"makes", "sees", "misses", "confirms", "may confirm", "releases", "may release", "confirms and sees", "releases and sees"}

// operation is what a client did about one reservation.
type operation struct {
	id           string
	deed         deed
	seen         sight
	asked, heard int64  // nanoseconds since 1970; what was never heard is heard at the end
	job, forgets bool   // a job; what is over may have been forgotten
	why          string // the call
}

// sight is a reservation as a client sees it.
type sight struct {
	ID      string
	State   service.State
	Version uint64
}

func (o *operation) String() string {
	seen := ""
	if o.seen.State != "" {
		seen = fmt.Sprintf(" %s, version %d", o.seen.State, o.seen.Version)
	}
	heard := "never"
	if o.heard != never {
		heard = time.Unix(0, o.heard).UTC().Format("15:04:05.000000")
	}
	return fmt.Sprintf("asked %s, heard %s: %s %s%s", time.Unix(0, o.asked).UTC().Format("15:04:05.000000"), heard, o.why, deeds[o.deed], seen)
}

// never is when an answer comes that does not.
const never = math.MaxInt64

// may is a set of states that a reservation may be in.
type may uint16

var allStates = []service.State{
	service.Pending, service.Held, service.Confirmed, service.Degraded, service.Active, service.Finished,
	service.Cancelled, service.Expired, service.NoShow, service.Failed, service.Refused,
}

func mayBe(states ...service.State) (m may) {
	for _, s := range states {
		m |= 1 << slices.Index(allStates, s)
	}
	return m
}

var (
	over   = mayBe(service.Finished, service.Cancelled, service.Expired, service.NoShow, service.Failed, service.Refused)
	ending = mayBe(service.Finished, service.NoShow, service.Failed)
	living = mayBe(service.Confirmed, service.Degraded, service.Active) | ending
)

// later is what each state may become without a client.
var later = map[service.State]may{
	service.Pending:   mayBe(service.Pending, service.Held, service.Expired, service.Refused) | living,
	service.Held:      mayBe(service.Held, service.Expired, service.Failed),
	service.Confirmed: living,
	service.Degraded:  living,
	service.Active:    living,
	service.Finished:  ending, // the parts of one of several end one by one
	service.NoShow:    ending,
	service.Failed:    ending,
	service.Cancelled: mayBe(service.Cancelled),
	service.Expired:   mayBe(service.Expired),
	service.Refused:   mayBe(service.Refused),
}

// from returns all that may become of states without a client, at once or later. A job may wait again.
func (m may) from(job bool) (all may) {
	for i, s := range allStates {
		if m&(1<<i) > 0 {
			all |= later[s]
			if job && m&^over > 0 {
				all |= later[service.Pending]
			}
		}
	}
	return all
}

// model is what is known of a reservation after some operations. The zero value is before it was made.
type model struct {
	made, gone bool
	version    uint64 // the last one seen, and in what state; 0 for none
	was        service.State
	may        may
}

// step takes an operation in; ok is false if it cannot be next.
func (m model) step(o *operation) (next model, ok bool) {
	if o.deed == makes {
		return model{made: true, may: mayBe(service.Pending).from(o.job)}, !m.made
	}
	if o.deed == misses {
		if !m.made {
			return m, true
		}
		m.gone = true
		return m, o.forgets && m.may&over > 0
	}
	acts := o.deed == mayConfirm || o.deed == mayRelease
	if !m.made || m.gone {
		return m, acts
	}
	switch held := m.may&mayBe(service.Held) > 0; {
	case o.deed == mayConfirm && held:
		m.may |= living
	case o.deed == confirms || o.deed == confirmedAs:
		if !held {
			return m, false
		}
		m.may = living
	case o.deed == mayRelease && m.may&^over > 0:
		m.may |= mayBe(service.Cancelled, service.Finished)
	case o.deed == releases || o.deed == releasedAs:
		if m.may&^over > 0 {
			m.may |= mayBe(service.Cancelled, service.Finished)
		}
		m.may &= over
	}
	if o.deed != sees && o.deed != confirmedAs && o.deed != releasedAs {
		return m, true
	}
	s := &o.seen
	switch is := mayBe(s.State); {
	case s.Version < m.version, s.Version == m.version && s.State != m.was, is&m.may == 0:
		return m, false
	default:
		m.version, m.was, m.may = s.Version, s.State, is.from(o.job)
	}
	return m, true
}

// linear is the model of one reservation for porcupine.
var linear = porcupine.Model{
	Init: func() any { return model{} },
	Step: func(state, input, _ any) (bool, any) {
		next, ok := state.(model).step(input.(*operation))
		return ok, next
	},
	Equal: func(a, b any) bool { return a == b },
}

// patience is for how long an order is looked for: histories of one reservation are short.
const patience = 20 * time.Second

// linearizable returns the history of the first reservation that no order explains.
func linearizable(history []operation) error {
	of := map[string][]porcupine.Operation{}
	for i := range history {
		o := &history[i]
		of[o.id] = append(of[o.id], porcupine.Operation{Input: o, Call: o.asked, Return: o.heard})
	}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		if porcupine.CheckOperationsTimeout(linear, of[id], patience) != porcupine.Illegal {
			continue
		}
		slices.SortStableFunc(of[id], func(a, b porcupine.Operation) int { return int(min(1, max(-1, a.Call-b.Call))) })
		var text strings.Builder
		for i := range of[id] {
			fmt.Fprintf(&text, "\n%s", of[id][i].Input.(*operation))
		}
		return fmt.Errorf("the history of %s is not linearizable: %s", id, text.String())
	}
	return nil
}

// sights returns all reservations that an answer shows.
func sights(answer string) (all []sight) {
	_, body, _ := strings.Cut(answer, "\n")
	type shown struct {
		sight
		Reservation *sight
	}
	var said struct {
		shown
		Array        []shown
		Reservations []shown
	}
	if json.Unmarshal([]byte(body), &said) != nil {
		return nil
	}
	for _, s := range slices.Concat([]shown{said.shown}, said.Array, said.Reservations) {
		if s.Reservation != nil {
			s.sight = *s.Reservation
		}
		if s.ID != "" && s.Version > 0 && slices.Contains(allStates, s.State) {
			all = append(all, s.sight)
		}
	}
	return all
}

// look is a client that looks at a reservation, at those of a name or at all.
type look struct {
	path, id, name string // all of them if neither is given
	user           string
	asked, heard   int64
	status         int
	seen           []sight
}

// looks makes up what clients look at: their draws shift no other.
func (w *world) looks() (all []*look) {
	for range w.reads.IntN(3) {
		at := &look{user: "operator"}
		switch n := len(w.calls); {
		case n > 0 && w.reads.IntN(3) == 0:
			at.name = fmt.Sprint("c", w.calls[max(0, n-1-w.reads.IntN(12))].number)
			at.path = "/v1/reservations?name=" + at.name
		case len(w.ids) > 0:
			at.id = recent(w.reads, w.ids, 12)
			at.path = "/v1/reservations/" + at.id
		default:
			continue
		}
		all = append(all, at)
	}
	return all
}

// see has a client look.
func (w *world) see(l *life, at *look) {
	w.mu.Lock()
	w.looked = append(w.looked, at)
	w.mu.Unlock()
	asked := time.Now().UnixNano()
	status, answer := l.send(l.ctx, at.user, http.MethodGet, at.path, "", "", 0)
	time.Sleep(w.pause("looked", at.path))
	w.mu.Lock()
	defer w.mu.Unlock()
	at.asked, at.heard, at.status, at.seen = asked, time.Now().UnixNano(), status, sights(answer)
	if status == http.StatusInternalServerError {
		w.fault("GET %s: %d %s", at.path, status, answer)
	}
}

// lookAfter has a client look at what it has just been told of, now and then.
func (w *world) lookAfter(l *life, c *call) {
	if seen := sights(c.answer); len(seen) > 0 && w.pause("look", c.path)%3 == 0 {
		w.see(l, &look{user: c.user, id: seen[0].ID, path: "/v1/reservations/" + seen[0].ID})
	}
}

// lookAtAll is what a client sees who looks at everything.
func (w *world) lookAtAll(list []service.Reservation) {
	now := time.Now().UnixNano()
	at := &look{path: "/v1/reservations", asked: now - 1, heard: now, status: http.StatusOK}
	for i := range list {
		at.seen = append(at.seen, sight{list[i].ID, list[i].State, list[i].Version})
	}
	w.looked = append(w.looked, at)
}

// history returns what clients did and heard about all reservations that any of them has heard of.
func (w *world) history() (all []operation) {
	known := w.heardOf()
	forgets := w.plan.keep < 4*len(w.calls) // a call makes at most four reservations
	add := func(o operation) {
		if by := known[o.id]; by != nil {
			o.job, o.forgets = strings.Contains(by.body, `"kind":"job"`), forgets
			all = append(all, o)
		}
	}
	for id, c := range known {
		o := operation{id: id, deed: makes, asked: c.first, heard: never, why: fmt.Sprint("call ", c.number)}
		if slices.Contains(c.ids, id) {
			o.heard = c.at.UnixNano()
		}
		add(o)
	}
	for _, c := range w.calls {
		if c.first > 0 {
			w.acted(c, known, add)
		}
	}
	for _, at := range w.looked {
		if at.status == http.StatusOK || at.status == http.StatusNotFound {
			at.saw(known, add)
		}
	}
	return all
}

// heardOf returns all reservations that clients have heard of, with the calls that they were made by, which may never
// have been answered.
func (w *world) heardOf() map[string]*call {
	known := map[string]*call{}
	for _, c := range w.calls {
		for _, id := range c.ids {
			known[id] = c
		}
	}
	for _, at := range w.looked {
		n, named := number(at.name)
		if !named || n < 1 || n > len(w.calls) || w.calls[n-1].wants == nil {
			continue
		}
		for _, s := range at.seen {
			if known[s.ID] == nil {
				known[s.ID] = w.calls[n-1]
			}
		}
	}
	return known
}

// acted adds what a call did.
func (w *world) acted(c *call, known map[string]*call, add func(operation)) {
	done := c.status != 0 && c.status < 300
	at := operation{id: c.about, asked: c.first, heard: never, why: fmt.Sprintf("call %d %s %s", c.number, c.method, c.path)}
	unheard := at
	if c.status != 0 {
		at.heard = c.at.UnixNano()
	}
	at.deed = sees
	both := sees
	switch {
	case c.method == http.MethodDelete && strings.HasPrefix(c.path, "/v1/reservations/"):
		at.deed, unheard.deed, both = releases, mayRelease, releasedAs
	case strings.HasPrefix(c.path, "/v1/reservations/") && strings.HasSuffix(c.path, "/confirm"):
		at.deed, unheard.deed, both = confirms, mayConfirm, confirmedAs
	case strings.HasPrefix(c.path, "/v1/series/") && (c.status == 0 || done): // some or all of them
		for id := range known {
			if unheard.id, unheard.deed = id, mayRelease; whole(id) == c.about {
				add(unheard)
			}
		}
		return
	}
	switch {
	case at.deed == sees:
	case c.status == 0:
		add(unheard)
	case done && c.sendings > 1: // it may have been done by one sending, and seen as it was by a later one
		add(at)
	}
	if !done {
		return
	}
	for _, s := range sights(c.answer) {
		o := at
		if o.id, o.deed, o.seen = s.ID, sees, s; c.sendings == 1 {
			o.deed = both
		}
		add(o)
	}
}

// saw adds what a client saw, and what it did not see that it would have.
func (at *look) saw(known map[string]*call, add func(operation)) {
	o := operation{asked: at.asked, heard: at.heard, deed: sees, why: "GET " + at.path}
	seen := map[string]bool{}
	for _, s := range at.seen {
		if at.id == "" || s.ID == at.id { // what is found by a word may be another one
			seen[s.ID] = true
			o.id, o.seen = s.ID, s
			add(o)
		}
	}
	o.deed, o.seen = misses, sight{}
	for id, c := range known {
		n, _ := number(at.name)
		would := at.id == id || at.id == "" && at.name == "" || at.id == "" && c.number == n && c.wants != nil && c.wants.most == 1
		if o.id = id; would && !seen[id] {
			add(o)
		}
	}
}
