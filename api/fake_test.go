package api_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/chance"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

var _ api.Service = (*fake)(nil)

// fake is a service in memory: one pool of size PEs at the site cm5, whose
// requests start at their ready time or are refused. It keeps the promises of
// api.Service about roles, ownership, versions and keys.
type fake struct {
	pictured
	hooked
	flows    flows
	series   series
	window   service.Window // of the starts that were asked about last
	foreseen []berth.Forecast
	allowed  []service.Allowed // to everyone
	users    []string          // who have reservations
	starting bool              // the site was not looked at yet
	mu       sync.Mutex
	size     berth.Count
	now      berth.Time
	made     []*service.Reservation // by id
	offered  map[string]berth.Request
	keys     map[string]keyed
	notices  []service.Notice
	more     chan struct{} // closed when there is another notice
	lost     uint64        // notices up to this one are no longer kept
	drained  map[string]string
	tasks    []site.Task
	reported service.Tasks
	outages  []service.Span // that hold PEs beside what was made
	// maintenance is all that was added.
	maintenance []service.Maintenance
	// feedOutages are those of the feed of a site.
	feedOutages []service.FeedOutage
	fails       error // what everything answers, if not nil
	projects    service.OwnProjects
	panics      bool
	// streamPanics has Listen panic while it is read.
	streamPanics bool
	refused      func(*berth.Request) bool
	refusal      *berth.Refusal // of everything, if not nil
}

type keyed struct {
	body [32]byte
	id   string
}

// start is when the fake's clock stands still: 2026-11-21T12:00:00Z.
const start berth.Time = 1_795_262_400

func newFake() *fake {
	return &fake{size: 100, now: start, offered: map[string]berth.Request{}, keys: map[string]keyed{}, users: []string{"alice", "bob"}, more: make(chan struct{}), drained: map[string]string{}}
}

func (f *fake) lock() func() {
	f.mu.Lock()
	if f.panics {
		f.mu.Unlock()
		panic("the fake was told to")
	}
	return f.mu.Unlock
}

func (f *fake) tell(what string, r *service.Reservation) {
	r.Version++
	r.Changed = f.now
	f.notify(service.Notice{What: what, Reservation: *r})
}

// tellTask tells of a task in a reservation, which it does not change.
func (f *fake) tellTask(what, id string, task *service.Task) {
	defer f.lock()()
	of := slices.IndexFunc(f.made, func(r *service.Reservation) bool { return r.ID == id })
	f.notify(service.Notice{What: what, Reservation: *f.made[of], Task: task})
}

func (f *fake) notify(n service.Notice) {
	n.Number, n.At = uint64(len(f.notices)+1), f.now
	f.notices = append(f.notices, n)
	close(f.more)
	f.more = make(chan struct{})
}

// find returns a reservation that a principal may act on.
func (f *fake) find(ask *service.Ask, id string) (*service.Reservation, error) {
	if f.fails != nil {
		return nil, f.fails
	}
	for _, r := range f.made {
		if r.ID != id || !ask.By.Owns(r.Request.User) {
			continue
		}
		if ask.IfVersion != 0 && ask.IfVersion != r.Version {
			return nil, berth.Errorf(berth.Conflict, "version", "%d; it is %d by now", ask.IfVersion, r.Version)
		}
		return r, nil
	}
	return nil, berth.Errorf(berth.NotFound, "id", "no reservation %q", id)
}

// again returns what was asked under the same key.
func (f *fake) again(ask *service.Ask) (*service.Reservation, error) {
	was, known := f.keys[ask.By.User+"\x00"+ask.Key]
	switch {
	case ask.Key == "" || !known:
		return nil, nil
	case was.body != ask.Body:
		return nil, berth.Errorf(berth.Conflict, "idempotency_key", "%q was used for something else", ask.Key)
	}
	return f.find(&service.Ask{By: ask.By}, was.id)
}

func (f *fake) remember(ask *service.Ask, id string) {
	if ask.Key != "" {
		f.keys[ask.By.User+"\x00"+ask.Key] = keyed{ask.Body, id}
	}
}

func (f *fake) Quotas(_ context.Context, by service.Principal, of []service.Principal) ([]service.Quota, error) {
	defer f.lock()()
	var list []service.Quota
	for _, p := range of {
		if !by.Can(service.Operator) && p.User != by.User {
			return nil, berth.Errorf(berth.Denied, "user", "may not see the limits of %q", p.User)
		}
		list = append(list, service.Quota{User: p.User, Role: p.Role, Limits: f.allowed})
	}
	return list, f.fails
}

func (f *fake) SharedQuotas(context.Context, service.Principal) ([]service.SharedQuota, error) {
	defer f.lock()()
	return []service.SharedQuota{{Account: "phys", Limits: f.allowed}, {QOS: "high"}, {Partition: "gpu"}}, f.fails
}

func (f *fake) OwnProjects(context.Context, string) (service.OwnProjects, error) {
	return f.projects, f.fails
}

func (f *fake) AccountQuotas(_ context.Context, by service.Principal) ([]service.SharedQuota, error) {
	defer f.lock()()
	if by.User != "alice" {
		return nil, f.fails
	}
	return []service.SharedQuota{{Account: "phys", Limits: f.allowed}}, f.fails
}

func (f *fake) Usage(_ context.Context, by service.Principal, from, to policy.Month) (used service.UsedSince, looked int, err error) {
	defer f.lock()()
	used.List = []service.Used{{User: by.User, Account: "phys", Month: max(from, 2027*12), Reservations: 3, NoShows: 1, Charged: 5400, Held: 7200, Given: service.Given{Promised: 5000, Delivered: 4000, Ran: 3000, Moved: 3, Late: 2, Broken: 1}}}
	if used.List[0].Month >= to {
		used.List = nil
	}
	return used, 2, f.fails
}

func (f *fake) Users(context.Context, service.Principal) ([]string, error) {
	defer f.lock()()
	return f.users, f.fails
}

func (f *fake) AcceptClock(context.Context, service.Ask) error {
	defer f.lock()()
	return f.fails
}

func (f *fake) Compact(context.Context, service.Ask, berth.Duration) (service.Compacted, error) {
	defer f.lock()()
	return service.Compacted{First: 8, At: 1000, Dropped: 7, Before: 900, After: 90}, f.fails
}

func (f *fake) Recall(_ context.Context, ask service.Ask, parts int) ([]service.Answer, error) {
	defer f.lock()()
	r, err := f.again(&ask)
	if r == nil || parts > 0 {
		return nil, err
	}
	return []service.Answer{{Reservation: *r}}, nil
}

func (f *fake) Refuse(_ context.Context, _ service.Ask, why error) error { return why }

func (f *fake) Submit(_ context.Context, ask service.Ask, r berth.Request) (service.Answer, error) {
	defer f.lock()()
	return f.submit(&ask, r)
}

func (f *fake) submit(ask *service.Ask, r berth.Request) (service.Answer, error) {
	if f.fails != nil {
		return service.Answer{}, f.fails
	}
	if r.User == "" {
		r.User = ask.By.User
	}
	switch {
	case !ask.By.Can(service.User):
		return service.Answer{}, berth.Errorf(berth.Denied, "role", "a %s may only look", ask.By.Role)
	case !ask.By.Owns(r.User):
		return service.Answer{}, berth.Errorf(berth.Denied, "user", "may not ask in the name of %q", r.User)
	}
	if was, err := f.again(ask); was != nil || err != nil {
		if err != nil {
			return service.Answer{}, err
		}
		return service.Answer{Reservation: *was}, nil
	}
	made := &service.Reservation{ID: cmp.Or(r.ID, fmt.Sprintf("R%06d", len(f.made)+1)), Created: f.now, Request: r}
	made.Request.ID = made.ID
	if err := made.Request.Validate(); err != nil {
		return service.Answer{}, err
	}
	f.made = append(f.made, made)
	f.remember(ask, made.ID)
	if refusal := f.place(made); refusal != nil {
		made.State, made.Refusal = service.Refused, refusal
		f.tell(string(change.Refused), made)
		return service.Answer{Reservation: *made, Offers: f.offer(r)}, nil
	}
	f.tell(string(change.Accepted), made)
	return service.Answer{Reservation: *made}, nil
}

// place gives a reservation its place, or says why there is none.
func (f *fake) place(r *service.Reservation) *berth.Refusal {
	pool := berth.PoolID("cm5", "batch")
	var places []berth.Allotment
	for _, part := range r.Request.Parts {
		v := part.Variants[0]
		if v.NPE > f.size {
			return &berth.Refusal{Reason: berth.TooLarge, Resource: pool, Wanted: v.NPE, Limit: f.size}
		}
		places = append(places, berth.Allotment{Resource: pool, Start: r.Request.Ready, End: r.Request.Ready.Add(v.Duration), NPE: v.NPE})
	}
	if f.refusal != nil {
		return f.refusal
	}
	if f.refused != nil && f.refused(&r.Request) {
		return &berth.Refusal{
			Reason: berth.NoCapacity, Resource: pool, Wanted: places[0].NPE,
			Nearest: &berth.Nearest{NPE: 48, Duration: 7200, Start: f.now.Add(3600)},
		}
	}
	r.State, r.Allotments = service.Confirmed, places
	if r.Request.Hold > 0 {
		r.State, r.Expires = service.Held, f.now.Add(r.Request.Hold)
	}
	return nil
}

func (f *fake) offer(r berth.Request) []service.Offer {
	v := r.Parts[0].Variants[0]
	v.NPE = min(v.NPE, f.size)
	later := berth.Rigid("", f.now, r.Ready.Add(3600), r.Ready.Add(3600+v.Duration), v.NPE, v.Duration)
	later.User = r.User
	id := fmt.Sprintf("offer%d", len(f.offered)+1)
	f.offered[id] = later
	return []service.Offer{{ID: id, Expires: f.now.Add(1800), Offer: engine.Offer{
		Difference: engine.OfferLater, Request: later, Idle: 77,
		Allotments: []berth.Allotment{{Resource: berth.PoolID("cm5", "batch"), Start: later.Ready, End: later.Deadline, NPE: v.NPE}},
	}}}
}

func (f *fake) Chances(_ context.Context, _ service.Ask, r berth.Request) ([]service.Chance, int, error) {
	defer f.lock()()
	known := service.Chance{Question: chance.Question{Kind: chance.Accepted, Later: 3600}, Chance: chance.Chance{Enough: true, Share: 0.75, Low: 0.7, High: 0.8, Sample: int(r.Parts[0].Variants[0].NPE)}}
	return []service.Chance{known, {Question: chance.Question{Kind: chance.Started, Later: 60}}}, 1000, nil
}

func (f *fake) Starts(_ context.Context, ask service.Ask, r berth.Request, w service.Window) ([]service.Starts, error) {
	defer f.lock()()
	switch by := ask.By; {
	case !by.Can(service.User):
		return nil, berth.Errorf(berth.Denied, "role", "a %s may only look", by.Role)
	case r.User != "" && !by.Owns(r.User):
		return nil, berth.Errorf(berth.Denied, "user", "may not ask in the name of %q", r.User)
	}
	f.window = w
	v := r.Parts[0].Variants[0]
	s := service.Starts{Pool: berth.PoolID("cm5", "batch"), Starts: engine.Starts{NPE: v.NPE, Duration: v.Duration}}
	s.First, s.Last = w.Of(&r)
	s.First = max(s.First, f.now)
	s.Stretches = []engine.Stretch{
		{First: s.First, Last: s.First + 9},
		{First: s.First + 10, Last: s.Last, Refusal: &berth.Refusal{Reason: berth.NoCapacity, Resource: s.Pool, Wanted: v.NPE, Nearest: &berth.Nearest{NPE: 1, Duration: v.Duration, Start: s.First + 20}}},
	}
	return []service.Starts{s}, f.fails
}

func (f *fake) Offers(_ context.Context, ask service.Ask, r berth.Request, most int) ([]service.Offer, error) {
	defer f.lock()()
	by := ask.By
	if !by.Can(service.User) {
		return nil, berth.Errorf(berth.Denied, "role", "a %s may only look", by.Role)
	}
	if r.User == "" {
		r.User = by.User
	}
	if !by.Owns(r.User) {
		return nil, berth.Errorf(berth.Denied, "user", "may not ask in the name of %q", r.User)
	}
	list := f.offer(r)
	return list[:min(most, len(list))], f.fails
}

func (f *fake) Hold(_ context.Context, ask service.Ask, offer string, hold berth.Duration) (service.Answer, error) {
	defer f.lock()()
	r, known := f.offered[offer]
	if !known || !ask.By.Owns(r.User) {
		return service.Answer{}, berth.Errorf(berth.NotFound, "offer", "no offer %q", offer)
	}
	r.Hold, r.ID = hold, "offered"
	return f.submit(&ask, r)
}

// change does something to a reservation, once for each key.
func (f *fake) change(ask *service.Ask, id, what string, do func(*service.Reservation) error) (service.Reservation, error) {
	defer f.lock()()
	if was, err := f.again(ask); was != nil || err != nil {
		if err != nil {
			return service.Reservation{}, err
		}
		return *was, nil
	}
	r, err := f.find(ask, id)
	if err != nil {
		return service.Reservation{}, err
	}
	if err := do(r); err != nil {
		return service.Reservation{}, err
	}
	f.remember(ask, id)
	f.tell(what, r)
	return *r, nil
}

func (f *fake) Confirm(_ context.Context, ask service.Ask, id string) (service.Reservation, error) {
	return f.change(&ask, id, "confirmed", func(r *service.Reservation) error {
		if r.State != service.Held {
			return berth.Errorf(berth.Conflict, "id", "%q is %s", id, r.State)
		}
		r.State, r.Expires = service.Confirmed, 0
		return nil
	})
}

func (f *fake) Modify(_ context.Context, ask service.Ask, id string, q berth.Request) (service.Answer, error) {
	var refusal *berth.Refusal
	r, err := f.change(&ask, id, "modified", func(r *service.Reservation) error {
		q.User = r.Request.User
		if err := q.Validate(); err != nil {
			return err
		}
		changed := *r
		changed.Request = q
		if refusal = f.place(&changed); refusal == nil {
			*r = changed
		}
		return nil
	})
	return service.Answer{Reservation: r, Refusal: refusal}, err
}

func (f *fake) Extend(_ context.Context, ask service.Ask, id string, until berth.Time) (service.Answer, error) {
	r, err := f.change(&ask, id, "extended", func(r *service.Reservation) error {
		if until <= r.Allotments[0].End {
			return berth.Errorf(berth.Invalid, "until", "not after its end")
		}
		r.Allotments = slices.Clone(r.Allotments)
		r.Allotments[0].End = until
		return nil
	})
	return service.Answer{Reservation: r}, err
}

func (f *fake) CheckIn(_ context.Context, ask service.Ask, id string) (service.Reservation, error) {
	return f.change(&ask, id, "checked_in", func(r *service.Reservation) error {
		r.CheckedIn = true
		return nil
	})
}

func (f *fake) Release(_ context.Context, ask service.Ask, id string) (service.Reservation, error) {
	return f.change(&ask, id, "cancelled", func(r *service.Reservation) error {
		r.State = service.Cancelled
		return nil
	})
}

func (f *fake) Prepare(_ context.Context, ask service.Ask, id string) (service.Reservation, error) {
	defer f.lock()()
	r, err := f.find(&ask, id)
	if err != nil {
		return service.Reservation{}, err
	}
	r.Sites = []service.Materialised{{Site: "cm5", Name: site.NameOf("cm5", r.ID, 1), Made: true}}
	return *r, nil
}

func (f *fake) Run(_ context.Context, ask service.Ask, id string, task site.Task) (site.JobID, error) {
	defer f.lock()()
	r, err := f.find(&ask, id)
	if err != nil {
		return "", err
	}
	if task.Key == "" {
		task.Key = "task"
	}
	task.Reservation = site.NameOf("cm5", r.ID, 1)
	if err := task.Check(); err != nil {
		return "", err
	}
	f.tasks = append(f.tasks, task)
	return "job-1", nil
}

// Audit has two records of each user.
func (f *fake) Audit(_ context.Context, by service.Principal, filter service.AuditFilter) (list []service.Audited, next uint64, looked int, err error) {
	if !by.Can(service.Operator) {
		return nil, 0, 0, berth.Errorf(berth.Denied, "role", "a %s may not", by.Role)
	}
	number := max(filter.After, 6) + 1
	if list = []service.Audited{{Number: number, At: 1_800_000_000, By: service.Origin{User: filter.User, Role: service.User}, Kind: filter.Kind}}; number == 7 {
		next = number
	}
	return list, next, 1, nil
}

func (f *fake) History(_ context.Context, by service.Principal, id string) (service.History, int, error) {
	defer f.lock()()
	r, err := f.find(&service.Ask{By: by}, id)
	if err != nil {
		return service.History{}, 0, err
	}
	return service.History{List: []service.Happening{{At: r.Created, What: change.Queued, By: service.Origin{User: r.Request.User}}}}, 1, nil
}

func (f *fake) Asked(_ context.Context, by service.Principal, from, to berth.Time) (requests []berth.Request, looked int, err error) {
	defer f.lock()()
	for _, r := range f.made {
		if by.Owns(r.Request.User) && from <= r.Created && r.Created < to {
			requests = append(requests, r.Request)
		}
	}
	return requests, len(f.made), f.fails
}

func (f *fake) Tasks(_ context.Context, by service.Principal, id string) (service.Tasks, error) {
	defer f.lock()()
	_, err := f.find(&service.Ask{By: by}, id)
	return f.reported, err
}

func (f *fake) Get(_ context.Context, by service.Principal, id string) (service.Reservation, error) {
	defer f.lock()()
	r, err := f.find(&service.Ask{By: by}, id)
	if err != nil {
		return service.Reservation{}, err
	}
	return *r, nil
}

func (f *fake) Find(_ context.Context, by service.Principal, word string) (service.Reservation, int, error) {
	defer f.lock()()
	var found []*service.Reservation
	for _, r := range f.made {
		if by.Owns(r.Request.User) && r.Request.Name == word {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return service.Reservation{}, len(f.made), berth.Errorf(berth.NotFound, "id", "no reservation %q", word)
	case 1:
		return *found[0], len(f.made), nil
	}
	return service.Reservation{}, len(f.made), berth.Errorf(berth.Conflict, "id", "%q could be any of %d reservations", word, len(found))
}

func (f *fake) List(_ context.Context, by service.Principal, q service.Filter) ([]service.Reservation, int, error) {
	defer f.lock()()
	if f.fails != nil {
		return nil, 0, f.fails
	}
	var list []service.Reservation
	for _, r := range f.made {
		switch {
		case len(list) == q.Limit,
			r.ID <= q.After,
			!by.Owns(r.Request.User),
			q.User != "" && q.User != r.Request.User,
			q.Name != "" && q.Name != r.Request.Name,
			len(q.States) > 0 && !slices.Contains(q.States, r.State),
			q.To != 0 && (len(r.Allotments) == 0 || r.Allotments[0].Start >= q.To || r.Allotments[0].End <= q.From),
			q.Site != "" && q.Site != "cm5":
		default:
			list = append(list, *r)
		}
	}
	return list, len(f.made), nil
}

func (f *fake) Sites(_ context.Context, by service.Principal) ([]service.SiteView, error) {
	defer f.lock()()
	return []service.SiteView{{
		Site:    berth.Site{Name: "cm5", Pools: []berth.Pool{{Name: "batch", PEs: f.size, Binding: berth.Late}}},
		Loads:   []engine.Load{{Resource: berth.PoolID("cm5", "batch"), PEs: f.size, Free: 40, Running: 1}},
		Adapter: "slurm", Reachable: !f.starting, Starting: f.starting, Seen: f.now, Trouble: "secret trouble",
		Nodes: []site.NodeState{{Name: "n1", Condition: site.Drained, Reason: "secret reason", Since: f.now}},
		Drift: []site.Drift{{Kind: site.Missing, Name: "berth_cm5_x_1"}},
	}}, f.fails
}

func (f *fake) Occupation(_ context.Context, by service.Principal, name string, from, to berth.Time, after service.Mark, limit int) ([]service.Span, error) {
	defer f.lock()()
	if name != "cm5" {
		return nil, berth.Errorf(berth.NotFound, "site", "no site %q", name)
	}
	spans := slices.Clone(f.outages)
	for i, r := range f.made {
		mark := service.Mark{Start: r.Allotments[0].Start, Accepted: true, Number: uint64(i + 1)}
		s := service.Span{Kind: berth.KindRequest, Allotment: r.Allotments[0], State: r.State, Mark: mark}
		if by.Owns(r.Request.User) {
			s.ID, s.User, s.Name = r.ID, r.Request.User, r.Request.Name
		}
		if mark.Compare(after) > 0 && s.Start < to && s.End > from && len(spans) < limit {
			spans = append(spans, s)
		}
	}
	return spans, f.fails
}

func (f *fake) Score(_ context.Context, by service.Principal, name string, most int) (service.Score, error) {
	defer f.lock()()
	if !by.Can(service.Operator) {
		return service.Score{}, berth.Errorf(berth.Denied, "role", "a %s may not", by.Role)
	}
	if name != "cm5" {
		return service.Score{}, berth.Errorf(berth.NotFound, "site", "no site %q", name)
	}
	s := service.Score{
		Site: name, Since: start, Reachable: true, Looked: f.now, Tolerance: 60, Open: 2, Overdue: 1,
		Figures: service.Figures{
			Seen: 9, LeftOut: map[service.LeftOut]int{service.LeftBefore: 1}, Asked: 8, Partial: 3, Promised: 7, Refused: map[berth.Reason]int{berth.TooLarge: 1},
			Moved: 2, Broken: 1, Cancelled: 1, Vanished: 1, Ended: 4, BeforeLimit: 3, Compared: 5, Earlier: 1, Same: 2, Later: 2,
		},
		PromisedWaits: service.Spread{Mean: 10, P50: 9, P95: 30}, ActualWaits: service.Spread{Mean: 11, P50: 8, P95: 31},
		Jobs: []service.ShadowJob{
			{ID: "cm5-7", Job: "7", User: "alice", Partition: "batch", NPE: 2, Limit: 60, Asked: start, Ready: start, Phase: service.JobEnded, Start: start + 1, End: start + 9, Ending: site.Completed, Said: service.Said{Promised: start + 2, Moved: true}},
			{ID: "cm5-8", Job: "8", User: "bob", NPE: 200, Limit: 60, Asked: start, Ready: start, Phase: service.JobWaits, Said: service.Said{Refusal: berth.TooLarge}},
		},
	}
	s.Jobs = s.Jobs[:min(most, len(s.Jobs))]
	return s, f.fails
}

func (f *fake) UpdateForecast(_ context.Context, ask service.Ask, forecast berth.Forecast) error {
	defer f.lock()()
	switch {
	case !ask.By.Can(service.Operator):
		return berth.Errorf(berth.Denied, "role", "a %s may not", ask.By.Role)
	case forecast.Site != "cm5":
		return berth.Errorf(berth.NotFound, "site", "no site %q", forecast.Site)
	}
	f.foreseen = append(f.foreseen, forecast)
	return nil
}

func (f *fake) Drain(_ context.Context, ask service.Ask, name, node, reason string) error {
	defer f.lock()()
	if !ask.By.Can(service.Operator) {
		return berth.Errorf(berth.Denied, "role", "a %s may not", ask.By.Role)
	}
	if name != "cm5" || !strings.HasPrefix(node, "n") {
		return berth.Errorf(berth.NotFound, "node", "no node %q at %q", node, name)
	}
	f.drained[node] = reason
	return nil
}

func (f *fake) Outages(context.Context, service.Principal) ([]service.PoolOutage, error) {
	defer f.lock()()
	down := berth.Outage{Number: 4, Name: "pumps", Resource: berth.PoolID("cm5", "batch"), PEs: berth.NewPESet(berth.Run{Lo: 2, Hi: 5}), From: f.now + 60, Until: berth.Forever}
	return []service.PoolOutage{{Outage: down, Nodes: []string{"n1", "n2"}}}, f.fails
}

func (f *fake) AddMaintenance(_ context.Context, ask service.Ask, m service.Maintenance, try bool) (service.Maintenance, []string, error) {
	defer f.lock()()
	switch {
	case !ask.By.Can(service.Operator):
		return m, nil, berth.Errorf(berth.Denied, "role", "a %s may not", ask.By.Role)
	case m.Site != "cm5":
		return m, nil, berth.Errorf(berth.NotFound, "site", "no managed site %q", m.Site)
	}
	m.By, m.Created = ask.By.User, f.now
	if !try {
		f.maintenance = append(f.maintenance, m)
	}
	return m, []string{"R000000"}, f.fails
}

func (f *fake) ListMaintenance(_ context.Context, by service.Principal) ([]service.Maintenance, error) {
	defer f.lock()()
	if !by.Can(service.User) {
		return nil, berth.Errorf(berth.Denied, "role", "a %s may not", by.Role)
	}
	return f.maintenance, f.fails
}

func (f *fake) RemoveMaintenance(_ context.Context, ask service.Ask, name string, only berth.Time) error {
	defer f.lock()()
	if !ask.By.Can(service.Operator) {
		return berth.Errorf(berth.Denied, "role", "a %s may not", ask.By.Role)
	}
	at := slices.IndexFunc(f.maintenance, func(m service.Maintenance) bool {
		return m.Name == name && (only == 0 || slices.ContainsFunc(m.Times, func(at berth.Interval) bool { return at.Start == only }))
	})
	if at < 0 {
		return berth.Errorf(berth.NotFound, "name", "no maintenance %q", name)
	}
	f.maintenance = slices.Delete(f.maintenance, at, at+1)
	return f.fails
}

func (f *fake) Outbox(_ context.Context, by service.Principal) ([]service.Errand, error) {
	defer f.lock()()
	if !by.Can(service.Operator) {
		return nil, berth.Errorf(berth.Denied, "role", "a %s may not", by.Role)
	}
	return []service.Errand{
		{Number: 3, Site: "cm5", Reservation: "R000001", Generation: 1, State: service.Confirmed, Since: f.now, Trouble: "no such licence"},
		{Number: 4, Site: "cm5", Reservation: "R000000", Remove: true},
	}, f.fails
}

func (f *fake) Doctor(_ context.Context, by service.Principal, name string) ([]site.Finding, error) {
	if !by.Can(service.Operator) {
		return nil, berth.Errorf(berth.Denied, "role", "a %s may not", by.Role)
	}
	if name != "cm5" {
		return nil, berth.Errorf(berth.NotFound, "site", "no managed site %q", name)
	}
	return []site.Finding{{Check: "reach", Level: site.Good, Text: "it answers"}, {Check: "limits", Level: site.Warning, Text: "none", Hint: "set some"}}, nil
}

func (f *fake) Resume(ctx context.Context, ask service.Ask, name, node string) error {
	if err := f.Drain(ctx, ask, name, node, ""); err != nil {
		return err
	}
	defer f.lock()()
	delete(f.drained, node)
	return nil
}

func (f *fake) LastEvent() uint64 {
	defer f.lock()()
	return uint64(len(f.notices))
}

func (f *fake) Listen(ctx context.Context, by service.Principal, after uint64) iter.Seq2[service.Notice, error] {
	f.mu.Lock()
	lost, next := f.lost, len(f.notices)
	if after > 0 {
		next = int(after)
	}
	f.mu.Unlock()
	return func(yield func(service.Notice, error) bool) {
		if after > 0 && after < lost {
			yield(service.Notice{}, berth.Errorf(berth.NotFound, "last_event_id", "what followed %d is no longer kept", after))
			return
		}
		for {
			if f.streamPanics {
				panic("the fake was told to")
			}
			f.mu.Lock()
			list, more := slices.Clone(f.notices[min(next, len(f.notices)):]), f.more
			f.mu.Unlock()
			for _, n := range list {
				next++
				user := n.Reservation.Request.User
				if n.Workflow != nil {
					user = n.Workflow.User
				}
				if by.Owns(user) && !yield(n, nil) {
					return
				}
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (f *fake) Now() berth.Time {
	defer f.lock()()
	return f.now
}

// pass lets time pass.
func (f *fake) pass(d berth.Duration) {
	defer f.lock()()
	f.now = f.now.Add(d)
}

func (f *fake) Ready() error { return f.fails }

func (f *fake) SubmitArray(_ context.Context, ask service.Ask, r berth.Request, parts int) ([]service.Answer, error) {
	defer f.lock()()
	var answers []service.Answer
	id := fmt.Sprintf("A%06d", len(f.made)+1)
	for i := range parts {
		one := ask
		r.ID = fmt.Sprintf("%s_%d", id, i+1)
		if i > 0 && ask.Key != "" {
			one.Key += fmt.Sprint("\x00", i)
		}
		a, err := f.submit(&one, r)
		if err != nil {
			return nil, err
		}
		if len(answers) > 0 {
			a.Offers = nil
		}
		answers = append(answers, a)
	}
	return answers, nil
}
