package dst

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// What clients know by themselves: what they asked for, by the name that each call gives its reservations, and what
// was over when they asked. The service is judged by that, and not by what it says about itself.

// wants is what a call asks for: how many reservations there may be, and what all of them have.
type wants struct {
	most     int
	noShow   berth.Duration
	software string
	licences berth.Count
	qos      string
	account  string
}

// The limits of a QOS, for users: how long a reservation may be, and how many there may be.
const (
	capped     = "capped"
	cappedSpan = berth.Duration(5400)
	cappedLive = 4
)

// cappedLimits are the rows of the table.
func cappedLimits() policy.Limits {
	scope := policy.Scope{Role: string(service.User), QOS: capped}
	return policy.Limits{{Scope: scope, Name: policy.LimitLength, Value: int64(cappedSpan)}, {Scope: scope, Name: policy.LimitActive, Value: cappedLive}}
}

// The costs that a QOS may come to: how much an ordinary job may be delayed, and what may be left idle.
const (
	gentle      = "gentle"
	gentleDelay = 600
	gentleIdle  = 4 * 3600
)

func gentleLimits() policy.Limits {
	scope := policy.Scope{QOS: gentle}
	return policy.Limits{{Scope: scope, Name: policy.LimitDelay, Value: gentleDelay}, {Scope: scope, Name: policy.LimitIdle, Value: gentleIdle}}
}

// Which share of each pool, in thousandths, may be promised further ahead than some seconds.
const (
	aheadBeyond = berth.Duration(3600)
	aheadShare  = policy.Permille(500)
)

// ahead returns an error if more is promised ahead than may be. What has changed since it was promised counts for
// nothing: what loses its place, or PEs, gets others in any case.
func (w *world) ahead(list []service.Reservation) error {
	if !w.plan.has(featureAhead) || w.plan.has(faultClock) {
		return nil
	}
	type held struct {
		berth.Interval
		npe berth.Count
		id  string
	}
	of := map[berth.ResourceID][]held{}
	for i := range list {
		r := &list[i]
		if r.State.Over() || r.State == service.Pending || r.Request.IsJob() || r.Version > 2 {
			continue
		}
		for _, a := range r.Allotments {
			of[a.Resource] = append(of[a.Resource], held{a.Interval(), a.NPE, r.ID})
		}
	}
	from := w.life.host.Now().Add(aheadBeyond)
	for i := range w.config.Sites {
		for k := range w.config.Sites[i].Pools {
			pool := &w.config.Sites[i].Pools[k]
			most := w.config.Ahead[0].Of(pool.PEs)
			all := of[berth.PoolID(w.config.Sites[i].Name, pool.Name)]
			for _, at := range all {
				moment := max(at.Start, from)
				if moment >= at.End {
					continue
				}
				sum := berth.Count(0)
				for i := range all {
					if all[i].Start <= moment && moment < all[i].End {
						sum += all[i].npe
					}
				}
				if sum > most {
					ids := ""
					for _, h := range all {
						if h.Start <= moment && moment < h.End {
							ids += fmt.Sprintf(" %s (%d from %d to %d)", h.id, h.npe, h.Start, h.End)
						}
					}
					return fmt.Errorf("%d PEs of %s at %s are promised at %d, more than %d s ahead, to%s; %d may be", sum, pool.Name, w.config.Sites[i].Name, moment, aheadBeyond, ids, most)
				}
			}
		}
	}
	return nil
}

// learn notes what an answer names.
func (w *world) learn(c *call) {
	if strings.HasSuffix(c.path, "/run") && c.status < 300 {
		w.tasked = append(w.tasked, c.about)
	}
	_, body, _ := strings.Cut(c.answer, "\n")
	var said struct {
		ID     string
		Series struct {
			ID          string
			Occurrences []occurrence
		}
		Offers   []struct{ ID string }
		Array    []struct{ ID string }
		Workflow struct{ ID string }
	}
	if json.Unmarshal([]byte(body), &said) != nil {
		return
	}
	root := w.root(c)
	made := func(id string) {
		w.ids, w.made[id] = append(w.ids, id), root
		if c.wants != nil || strings.HasPrefix(c.path, "/v1/offers/") {
			c.ids = append(c.ids, id)
		}
	}
	if said.ID != "" {
		w.made[said.ID] = root
	}
	if said.Workflow.ID != "" {
		w.flows = append(w.flows, said.Workflow.ID)
	}
	switch {
	case said.Series.ID != "" && c.wants != nil:
		w.series = append(w.series, said.Series.ID)
		w.first[said.Series.ID] = said.Series.Occurrences
		for _, o := range said.Series.Occurrences {
			if o.ID != "" {
				made(o.ID)
			}
		}
	case said.ID != "" && len(said.Array) == 0:
		made(said.ID)
	}
	for _, of := range said.Array {
		made(of.ID)
	}
	for _, o := range said.Offers {
		if o.ID != "" {
			w.offers = append(w.offers, o.ID)
			w.offered[o.ID] = root
		}
	}
}

// root returns the call that asked first for what a call is about: reservations that follow from it are named after that.
func (w *world) root(c *call) *call {
	switch {
	case c.wants != nil:
		return c
	case strings.HasPrefix(c.path, "/v1/offers/"):
		return w.offered[c.about]
	}
	return w.made[c.about]
}

// heard judges the answer to a call about a reservation that was over, as its client had heard, when it was called.
func (w *world) heard(c *call, wasOver bool) {
	if of := w.outsider(c); of != "" && c.status < 300 {
		w.fault("%s %s of %s is answered %d %s, and account %s is no project of theirs", c.path, c.body, c.user, c.status, c.answer, of)
	}
	if wasOver && c.status < 300 && c.method != "DELETE" {
		w.fault("%s %s %s is answered %d %s, and the reservation was over", c.method, c.path, c.body, c.status, c.answer)
	}
}

// number returns the number of the call that a reservation is named after; ok is false if it is named after none.
func number(name string) (n int, ok bool) {
	rest, named := strings.CutPrefix(name, "c")
	if !named {
		return 0, false
	}
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(rest[:end])
	return n, err == nil
}

// whole returns the id of the series of an occurrence, or of the reservation itself.
func whole(id string) string {
	id, _, _ = strings.Cut(id, ".")
	return id
}

// claims returns what of all reservations goes against what clients know.
func (w *world) claims(list []service.Reservation) error {
	cancelled, checked, raised := map[string]bool{}, map[string]bool{}, map[string]bool{}
	most := map[int]int{}
	owner := map[string]string{}
	for i := range list {
		owner[list[i].ID] = list[i].Request.User
	}
	for _, c := range w.calls {
		if done := c.status == 0 || c.status < 300; done && strings.HasPrefix(c.path, "/v1/offers/") && w.offered[c.about] != nil {
			most[w.offered[c.about].number]++
		}
		switch {
		case c.method == "DELETE" || strings.HasSuffix(c.path, "/cancel"):
			cancelled[c.about] = true
		case strings.HasSuffix(c.path, "/check-in") || strings.HasSuffix(c.path, "/run") || strings.HasSuffix(c.path, "/confirm"): // what is confirmed when it has begun is in use
			checked[c.about] = true
		case c.user == "operator" && c.about != "": // who has no such limits
			raised[c.about] = true
		}
		if of := owner[c.about]; c.status != 0 && c.status < 300 && of != "" && of != c.user && c.user != "operator" {
			return fmt.Errorf("%s %s of %s is answered %d, and the reservation is of %s", c.method, c.path, c.user, c.status, of)
		}
	}
	have := map[int]int{}
	live := 0
	for i := range list {
		r := &list[i]
		if c := w.asker(&r.Request); c != nil && c.account != "" && (r.Request.Account != c.account || r.Request.User != c.user) {
			return fmt.Errorf("%s of %s is charged to account %q; %s asked for %s", r.ID, r.Request.User, r.Request.Account, c.user, c.body)
		}
		n, named := number(r.Request.Name)
		if !named || n < 1 || n > len(w.calls) || w.calls[n-1].wants == nil {
			continue
		}
		c := w.calls[n-1]
		if r.State != service.Refused {
			have[n]++
		}
		if have[n] > c.wants.most+most[n] {
			return fmt.Errorf("%s %s by %s has %d reservations, the last one %s; want %d", c.path, c.body, c.user, have[n], r.ID, c.wants.most+most[n])
		}
		q := &r.Request
		if q.User != c.user || q.NoShow != c.wants.noShow || q.Software != c.wants.software || q.Licences != c.wants.licences || q.QOS != c.wants.qos || q.Account != w.accountOf(c) {
			return fmt.Errorf("%s of %s has no_show %d, software %q, %d licences, qos %q and account %q; %s asked for %s", r.ID, q.User, q.NoShow, q.Software, q.Licences, q.QOS, q.Account, c.user, c.body)
		}
		if r.State == service.Cancelled && !cancelled[r.ID] && !cancelled[whole(r.ID)] {
			return fmt.Errorf("%s is cancelled, which no client asked for", r.ID)
		}
		if r.CheckedIn && q.NoShow > 0 && !checked[r.ID] && r.State == service.Active {
			return fmt.Errorf("%s is in use, which no client told", r.ID)
		}
		if q.QOS != capped || c.user == "operator" || r.State.Over() || r.State == service.Pending {
			continue
		}
		if !raised[whole(r.ID)] || whole(r.ID) == r.ID { // a series that an operator changed goes on with an operator's rights
			live++
		}
		for _, a := range r.Allotments {
			if length := a.End.Sub(a.Start); length > cappedSpan && !raised[r.ID] {
				return fmt.Errorf("%s of %s lasts %d s, and its QOS allows %d", r.ID, q.User, length, cappedSpan)
			}
		}
	}
	if err := errors.Join(w.ahead(list), w.windows(list)); err != nil {
		return err
	}
	if live > cappedLive+w.raised() {
		return fmt.Errorf("%d reservations of the QOS %s are live, and it allows %d", live, capped, cappedLive)
	}
	return nil
}

// occurrence is what the first answer about a series says of one of its occurrences.
type occurrence struct {
	ID    string
	Ready time.Time
}

// apart returns by how much the windows of two occurrences of a series are apart at least; ok is false if the second one was not promised
// at first: it is asked for again as it was, whatever changes meanwhile. A window that had begun then began later than asked for.
func (w *world) apart(id string, before, n int) (least berth.Duration, ok bool) {
	least, first := berth.Duration(3600*(n-before)), w.first[id]
	switch {
	case n > len(first):
		return least, true
	case first[n-1].ID == "":
		return 0, false
	case before == 0:
		return least, true
	}
	return min(least, berth.Duration(first[n-1].Ready.Sub(first[before-1].Ready)/time.Second)), true
}

// windows returns an error if the windows of two occurrences of a series are nearer together than an hour apiece: they are asked
// for hourly, and are moved later, all that are to come together. What was asked for when its window had begun has another one.
func (w *world) windows(list []service.Reservation) error {
	of := map[string]map[int]*service.Reservation{}
	changed := map[string]bool{}
	for _, c := range w.calls {
		changed[c.about] = changed[c.about] || c.method == http.MethodPatch && c.sent
	}
	for i := range list {
		r := &list[i]
		id, n, is := strings.Cut(r.ID, ".")
		if !is || changed[r.ID] || r.State.Over() || r.Request.Ready <= r.Request.Arrival || !slices.Contains(w.series, id) {
			continue
		}
		if at, err := strconv.Atoi(n); err == nil {
			if of[id] == nil {
				of[id] = map[int]*service.Reservation{}
			}
			of[id][at] = r
		}
	}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		before := 0
		for _, n := range slices.Sorted(maps.Keys(of[id])) {
			least, ok := w.apart(id, before, n)
			if !ok {
				continue
			}
			if was, r := of[id][before], of[id][n]; was != nil && r.Request.Ready.Sub(was.Request.Ready) < least {
				return fmt.Errorf("occurrence %d of series %s may begin at %d, and number %d at %d", n, id, r.Request.Ready, before, was.Request.Ready)
			}
			before = n
		}
	}
	return nil
}

// turns returns what of open series goes against their rule: an occurrence that is near enough has had its turn, and what could
// not be promised is asked for again.
func (w *world) turns() error {
	list, _, err := w.life.host.ListSeries(context.Background(), operator, service.SeriesFilter{})
	if err != nil {
		return err
	}
	ago := w.life.host.Now() - 60 // the service may not have been woken yet
	given := map[string]bool{}
	for _, c := range w.calls {
		given[c.path] = true
	}
	for i := range list {
		s, p := &list[i].Series, list[i].Progress
		switch {
		case s.Ahead == 0 || list[i].Refused || w.before > 0 && !slices.Contains(w.series, s.ID):
		case p == nil:
			return fmt.Errorf("series %s is open and has come nowhere", s.ID)
		case p.Decided < min(near(s, ago), p.Last):
			return fmt.Errorf("series %s has come to occurrence %d, and number %d has been near enough for a minute", s.ID, p.Decided, p.Decided+1)
		case (p.Last < len(s.Occurrences) || len(p.Skipped) > 0) && !given["/v1/series/"+s.ID+"/cancel"]:
			return fmt.Errorf("series %s asks for %d of %d occurrences without %v, which no client asked for", s.ID, p.Last, len(s.Occurrences), p.Skipped)
		case len(p.Waiting) > 0 && p.Again < ago:
			return fmt.Errorf("occurrences %v of series %s should have been asked for again at %d", p.Waiting, s.ID, p.Again)
		}
	}
	return nil
}

// near returns how many occurrences of an open series begin soon enough to have had their turn.
func near(s *berth.Series, now berth.Time) (n int) {
	for i := range s.Occurrences {
		if s.Occurrences[i].Ready <= now+openAhead {
			n++
		}
	}
	return n
}

// raised is how many reservations the operator, who has no such limit, may have added to those of the QOS.
func (w *world) raised() (n int) {
	for _, c := range w.calls {
		if c.user == "operator" && strings.HasPrefix(c.path, "/v1/offers/") {
			n++
		}
	}
	return n
}

// openAhead is how many seconds before it begins an occurrence of an open series is asked for.
const openAhead = 4000

// seriesCall asks for a series, changes all of one, or gives back some of it.
func (w *world) seriesCall(c *call, id string) {
	rng := w.driver
	c.features = []string{featureSeries}
	if rng.IntN(4) == 0 {
		c.path, c.about = "/v1/series/"+id+"/cancel", id
		if c.number%2 == 0 { // all that is to come changes, or none
			c.path, c.body = "/v1/series/"+id+"/modify", fmt.Sprintf(`{"by":%d}`, 60*(c.number%5+1))
			return
		}
		if c.body = "{}"; rng.IntN(2) == 0 {
			from := 1 + rng.IntN(3)
			c.body = fmt.Sprintf(`{"from":%d,"to":%d}`, from, from)
		}
		return
	}
	times, ahead := 2+rng.IntN(3), ""
	if c.number%2 == 0 { // the last ones have their turns later
		times, ahead, c.features = times+2, fmt.Sprintf(`"ahead":%d,`, openAhead), append(c.features, featureOpen)
	}
	c.path, c.wants = "/v1/series", &wants{most: times}
	held := ""
	if rng.IntN(4) == 0 {
		held = `,"hold":600`
	}
	if w.plan.has(featureLimit) && rng.IntN(2) == 0 {
		c.wants.qos = capped
		held += fmt.Sprintf(`,"qos":%q`, capped)
	}
	c.body = fmt.Sprintf(`{"name":"c%d","npe":%d,"duration":%d,"repeat":"hourly",%s"times":%d,"at_least":1,"window":%d%s}`,
		c.number, 1+rng.IntN(2), 300+60*rng.IntN(10), ahead, times, 1200+60*rng.IntN(30), held)
}

// isOver reports whether a reservation is over, as its client has heard.
func (h *watcher) isOver(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return service.State(h.states[id]).Over()
}

// in returns those of some reservations, the last few, that are in a state, as the client has heard.
func (h *watcher) in(state service.State, ids []string) (some []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids[max(0, len(ids)-40):] {
		if h.states[id] == string(state) {
			some = append(some, id)
		}
	}
	return some
}
