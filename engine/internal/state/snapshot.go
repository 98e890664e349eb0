package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/change"
)

// saved is the state in its canonical written form. Calendars, timers and idle
// sets follow from it and from the configuration.
type saved struct {
	Now          berth.Time         `json:"now"`
	Sequence     uint64             `json:"sequence"`
	Effects      uint64             `json:"effects"`
	Decided      uint64             `json:"decided"`
	Submitted    uint64             `json:"submitted"`
	Users        []string           `json:"users,omitempty"` // in the order of their appearance
	Pass         *berth.Time        `json:"pass,omitempty"`
	Pending      []savedPending     `json:"pending,omitempty"`      // by number
	Jobs         []savedJob         `json:"jobs,omitempty"`         // in their order
	Reservations []savedReservation `json:"reservations,omitempty"` // by sequence
	Outbox       []change.Effect    `json:"outbox,omitempty"`
	Outages      []*berth.Outage    `json:"outages,omitempty"`
	OutageNumber uint64             `json:"outage_number,omitempty"`
	Forecasts    []*berth.Forecast  `json:"forecasts,omitempty"` // by site
	Workflows    []savedWorkflow    `json:"workflows,omitempty"` // in the order in which they were promised
	Unused       []unused           `json:"unused,omitempty"`    // by time
	Open         []savedOpen        `json:"open,omitempty"`      // by number
	Charged      []savedCharge      `json:"charged,omitempty"`   // by holder and month
}

type savedPending struct {
	Request *berth.Request `json:"request"`
	Number  uint64         `json:"number"`
}

type savedJob struct {
	Request    *berth.Request   `json:"request"`
	Number     uint64           `json:"number"`
	Plan       *berth.Allotment `json:"plan,omitempty"`
	Generation uint64           `json:"generation,omitempty"`
}

type savedReservation struct {
	*berth.Reservation
	// Over lists the parts that hold nothing any more.
	Over []int `json:"over,omitempty"`
}

// Snapshot writes the state in canonical form: equal states give equal bytes.
// Cost: O(n log n) for n live reservations.
func (s *State) Snapshot() []byte {
	out := saved{
		Now: s.now, Sequence: s.sequence, Effects: s.effects, Decided: s.decided,
		Outbox: s.outbox, Submitted: s.submitted, Users: s.users.list, OutageNumber: s.outage,
		Unused: s.unused, Charged: s.savedCharges(),
	}
	for _, o := range s.outages {
		out.Outages = append(out.Outages, &o.Outage)
	}
	for _, site := range slices.Sorted(maps.Keys(s.forecasts)) {
		out.Forecasts = append(out.Forecasts, s.forecasts[site])
	}
	if at := s.Pass(); at < berth.Forever {
		out.Pass = &at
	}
	for _, p := range s.Requests() {
		out.Pending = append(out.Pending, savedPending{Request: p.Request, Number: p.Sequence})
	}
	for j := range s.backlog.All() {
		out.Jobs = append(out.Jobs, savedJob{Request: j.request, Number: j.number, Plan: j.plan, Generation: j.generation})
	}
	live := s.ledger.inOrder()
	out.Reservations = make([]savedReservation, 0, len(live))
	for _, e := range live {
		r := savedReservation{Reservation: e.r}
		for part := range e.r.Allotments {
			if !e.Holds(part) {
				r.Over = append(r.Over, part)
			}
		}
		out.Reservations = append(out.Reservations, r)
	}
	out.Workflows = s.workflows.saved()
	for _, o := range s.open {
		out.Open = append(out.Open, savedOpen{Series: o.series, Number: o.number, Progress: o.progress})
	}
	return encodeSaved(&out)
}

// Restore returns the state of a snapshot. The error says what is wrong with it, or
// that it belongs to another configuration.
func Restore(config Config, snapshot []byte) (*State, error) {
	var in saved
	if err := decodeSaved(snapshot, &in); err != nil {
		return nil, err
	}
	s := New(config)
	if err := s.restore(&in); err != nil {
		return nil, err
	}
	return s, nil
}

// taken notes the numbers of the pending entries that were read.
type taken map[uint64]bool

// take notes a pending entry, and reports whether its id or number is another's.
func (t taken) take(s *State, id string, number uint64) error {
	switch {
	case s.ledger.live[id] != nil || s.backlog.byID[id] != nil || s.queue.of(id).Request != nil:
		return fmt.Errorf("%q is there twice", id)
	case t[number]:
		return fmt.Errorf("two pending entries have the number %d", number)
	}
	t[number] = true
	return nil
}

func (s *State) restore(in *saved) error {
	if !in.Now.Valid() {
		return fmt.Errorf("the time is %d, beyond ±2^42 s", in.Now)
	}
	s.now, s.sequence, s.effects, s.decided = in.Now, in.Sequence, in.Effects, in.Decided
	s.submitted = in.Submitted
	if err := s.restoreUnused(in.Unused); err != nil {
		return err
	}
	if err := s.restoreCharges(in.Charged); err != nil {
		return err
	}
	for _, f := range in.Forecasts {
		if err := s.takeForecast(f); err != nil {
			return err
		}
	}
	for _, user := range in.Users {
		s.users.sequence(user)
	}
	if err := s.restoreReservations(in.Reservations); err != nil {
		return err
	}
	if err := s.restoreWorkflows(in.Workflows, in.Reservations); err != nil {
		return err
	}
	if err := s.restoreOpen(in.Open); err != nil {
		return err
	}
	taken := taken{}
	for _, p := range in.Pending {
		if p.Request == nil || p.Request.IsJob() || p.Request.Validate() != nil {
			return fmt.Errorf("pending entry %d is not a valid request", p.Number)
		}
		if err := taken.take(s, p.Request.ID, p.Number); err != nil {
			return err
		}
		s.queue.add(s.describe(p.Request, p.Number))
	}
	if in.Pass != nil {
		s.schedule(*in.Pass)
	}
	s.outbox = append(s.outbox, in.Outbox...)
	s.outage = in.OutageNumber
	for i, o := range in.Outages {
		switch {
		case o.Until < s.now || o.Until > berth.Forever || !o.From.Valid() || o.From >= o.Until:
			return fmt.Errorf("outage %d lasts from %d until %d, which is not from now, %d, on", o.Number, o.From, o.Until, s.now)
		case i > 0 && o.Number <= in.Outages[i-1].Number:
			return fmt.Errorf("outage %d comes after outage %d", o.Number, in.Outages[i-1].Number)
		}
		if err := s.addOutage(o); err != nil {
			return err
		}
	}
	for _, saved := range in.Jobs {
		if saved.Request == nil || !saved.Request.IsJob() || saved.Request.Validate() != nil {
			return fmt.Errorf("pending entry %d is not a valid job", saved.Number)
		}
		if err := taken.take(s, saved.Request.ID, saved.Number); err != nil {
			return err
		}
		j := &Job{request: saved.Request, number: saved.Number, generation: saved.Generation, order: s.describe(saved.Request, saved.Number)}
		s.addJob(j)
		if saved.Plan != nil {
			if err := s.plan(j, saved.Plan); err != nil {
				return err
			}
		}
	}
	return nil
}

// restoreReservations puts reservations into the ledger as they come, which is by
// sequence, and then takes what they hold in the order of their starts. That
// leads to the same state as any other order, but neighbours in a calendar come
// one after the other, and a timer goes to the end of the heap.
func (s *State) restoreReservations(list []savedReservation) error {
	type place struct {
		start    berth.Time
		sequence uint64
		entry    *Entry
	}
	s.ledger.live = make(map[string]*Entry, len(list))
	order := make([]place, len(list)) // to sort without looking at the entries
	for i := range list {
		r := &list[i]
		if err := s.sound(r.Reservation); err != nil {
			return err
		}
		_, twice := s.ledger.live[r.Request.ID]
		if twice || i > 0 && r.Sequence <= list[i-1].Sequence {
			return fmt.Errorf("reservation %q is there twice, or reservations are out of order", r.Request.ID)
		}
		entry := &Entry{r: r.Reservation}
		s.ledger.add(entry)
		for _, part := range r.Over {
			if part < 0 || part >= len(r.Allotments) || !entry.Holds(part) {
				return fmt.Errorf("reservation %q has no part %d to be over", r.Request.ID, part)
			}
			s.ledger.dropPart(entry, part)
		}
		if entry.running == 0 {
			return fmt.Errorf("reservation %q is over", r.Request.ID)
		}
		s.complement(entry)
		order[i] = place{r.Start(), r.Sequence, entry}
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.sequence, b.sequence))
	})
	for i := range order {
		if err := s.restoreHeld(order[i].entry); err != nil {
			return err
		}
	}
	return nil
}

// restoreHeld takes what an entry of the ledger holds, and sets its timers.
func (s *State) restoreHeld(entry *Entry) error {
	s.ledger.setApart(entry)
	s.enterPools(entry)
	if entry.r.State == berth.Active {
		s.awaitCheckIn(entry)
	} else {
		s.timers.add(s.waitFor(entry))
	}
	for part := range entry.r.Allotments {
		if !entry.Holds(part) {
			continue
		}
		a := &entry.r.Allotments[part]
		if from := max(a.Start, s.now); from < a.End {
			if err := s.book(a, from); err != nil {
				return fmt.Errorf("reservation %q: %w", entry.ID(), err)
			}
		}
		if entry.r.State == berth.Active {
			s.timers.reset(entry.timer(part), endOf(entry, part))
			if i, _ := s.Index(a.Resource); s.pools[i].idle != nil {
				s.pools[i].idle.Delete(a.PEs)
			}
		}
	}
	if err := s.takeBeside(entry, every); err != nil {
		return fmt.Errorf("reservation %q: %w", entry.ID(), err)
	}
	s.noteNames(entry)
	return nil
}

// sound reports what cannot be right with a reservation that is read.
func (s *State) sound(r *berth.Reservation) error {
	if r.Request == nil || r.Request.Validate() != nil || len(r.Allotments) != len(r.Request.Parts) {
		return fmt.Errorf("reservation %d has an invalid request", r.Sequence)
	}
	switch r.State {
	case berth.Held, berth.Confirmed, berth.Degraded, berth.Active:
	default:
		return fmt.Errorf("reservation %q is %q", r.Request.ID, r.State)
	}
	if !r.Expires.Valid() || r.Missing < 0 || r.Missing > berth.MaxPEs {
		return fmt.Errorf("reservation %q expires at %d and lacks %d PEs", r.Request.ID, r.Expires, r.Missing)
	}
	if t := &r.Terms; len(t.Variants) > 0 && (len(t.Variants) != len(r.Request.Parts) || t.Extended < 0 || t.Delay < 0 || t.Idle < 0 || t.Extended >= 2*berth.TimeLimit || !t.Deadline.Valid() || !t.Expires.Valid()) {
		return fmt.Errorf("the terms of reservation %q are %+v", r.Request.ID, *t)
	}
	for _, v := range r.Terms.Variants {
		if v.NPE < 1 || v.NPE > berth.MaxPEs || v.Duration < 1 || v.Duration >= berth.TimeLimit {
			return fmt.Errorf("reservation %q was promised %d PEs for %d s", r.Request.ID, v.NPE, v.Duration)
		}
	}
	for i := range r.Transfers {
		t := &r.Transfers[i]
		if !t.Start.Valid() || !t.End.Valid() && t.End != berth.Forever || !t.Since.Valid() || t.End < t.Start || t.Kilobytes < 0 || t.Kilobytes > 1000*berth.MaxMegabytes || t.Rate < 0 {
			return fmt.Errorf("a transfer of reservation %q is %+v", r.Request.ID, *t)
		}
	}
	for i := range r.Stocks {
		a := &r.Stocks[i]
		if st := s.stocks[a.Resource]; !st.Counted() || a.NPE < 1 || a.NPE > st.calendar.Size() || !a.Start.Valid() || !a.End.Valid() || a.Start >= a.End || !a.PEs.Empty() {
			return fmt.Errorf("reservation %q holds %d of %s %s of %s from %s to %s", r.Request.ID, a.NPE, a.Resource.Kind, a.Resource.Name, a.Resource.Site, a.Start.RFC3339(), a.End.RFC3339())
		}
	}
	for i := range r.Allotments {
		a := &r.Allotments[i]
		at, known := s.Index(a.Resource)
		if !known {
			return fmt.Errorf("reservation %q is on %s %s of %s, which the configuration does not have", r.Request.ID, a.Resource.Kind, a.Resource.Name, a.Resource.Site)
		}
		c := s.pools[at].calendar
		named := c.Binding() == berth.Early || r.State == berth.Active || !a.PEs.Empty() && s.NamesAhead(a.Resource) && r.State != berth.Held
		switch {
		case !a.Start.Valid() || !a.End.Valid() || a.Start >= a.End || a.NPE < 0 || a.NPE > c.Size(),
			named && a.PEs.Count() != a.NPE, !named && !a.PEs.Empty(), !a.PEs.Empty() && a.PEs.Max() >= berth.PE(c.Size()):
			return fmt.Errorf("reservation %q has %s from %s to %s%s", r.Request.ID, held(a), a.Start.RFC3339(), a.End.RFC3339(), whyNot(a, c))
		}
	}
	return nil
}

// held says what a reservation has of a pool.
func held(a *berth.Allotment) string {
	text := fmt.Sprintf("%d PEs of %s/%s", a.NPE, a.Resource.Site, a.Resource.Name)
	if !a.PEs.Empty() {
		text += fmt.Sprintf(" (%v)", a.PEs)
	}
	return text
}

// whyNot says what of a pool as it is configured keeps it from having an allotment; nothing if it is not the pool.
func whyNot(a *berth.Allotment, c calendar.Calendar) string {
	switch {
	case a.NPE > c.Size() || !a.PEs.Empty() && a.PEs.Max() >= berth.PE(c.Size()):
		return fmt.Sprintf(", and the configuration has %d PEs there", c.Size())
	case a.PEs.Empty() && c.Binding() == berth.Early:
		return ", and the configuration binds early there, so that it would have to have PEs by their numbers"
	case !a.PEs.Empty() && c.Binding() == berth.Late:
		return ", and the configuration binds late there, so that it would have no PEs by their numbers before its start"
	}
	return ""
}
