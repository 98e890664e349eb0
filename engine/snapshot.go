package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"iter"
	"maps"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
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
	Outbox       []Effect           `json:"outbox,omitempty"`
	Outages      []*Outage          `json:"outages,omitempty"`
	OutageNumber uint64             `json:"outage_number,omitempty"`
	Forecasts    []*Forecast        `json:"forecasts,omitempty"` // by site
}

type savedPending struct {
	Request *berth.Request `json:"request"`
	Number  uint64         `json:"number"`
}

type savedJob struct {
	Request *berth.Request   `json:"request"`
	Number  uint64           `json:"number"`
	Plan    *berth.Allotment `json:"plan,omitempty"`
}

type savedReservation struct {
	berth.Reservation
	// Over lists the parts that hold nothing any more.
	Over []int `json:"over,omitempty"`
}

// Snapshot writes the state in canonical form: equal states give equal bytes.
// Cost: O(n log n) for n live reservations.
func (e *Engine) Snapshot() []byte {
	s := e.state
	out := saved{
		Now: s.now, Sequence: s.sequence, Effects: s.effects, Decided: s.decided,
		Outbox: s.outbox, Submitted: s.submitted, Users: s.users.list,
		Outages: s.outages, OutageNumber: s.outageNumber,
	}
	for _, site := range slices.Sorted(maps.Keys(s.forecasts)) {
		out.Forecasts = append(out.Forecasts, s.forecasts[site])
	}
	if at := s.passAt(); at < berth.Forever {
		out.Pass = &at
	}
	for _, p := range s.queue.byID {
		out.Pending = append(out.Pending, savedPending{Request: p.Request, Number: p.Sequence})
	}
	slices.SortFunc(out.Pending, func(a, b savedPending) int { return cmp.Compare(a.Number, b.Number) })
	for j := range s.jobs.all() {
		out.Jobs = append(out.Jobs, savedJob{Request: j.request, Number: j.number, Plan: j.plan})
	}
	live := s.ledger.inOrder()
	out.Reservations = make([]savedReservation, 0, len(live))
	for _, entry := range live {
		r := savedReservation{Reservation: entry.Reservation}
		for part := range entry.Allotments {
			if !entry.holds(part) {
				r.Over = append(r.Over, part)
			}
		}
		out.Reservations = append(out.Reservations, r)
	}
	return encodeSaved(&out)
}

// Restore returns an engine in the state of a snapshot. The error is of code
// Invalid: the snapshot is damaged, or belongs to another configuration.
func Restore(config Config, snapshot []byte) (*Engine, error) {
	e, err := New(config)
	if err != nil {
		return nil, err
	}
	var in saved
	if err := decodeSaved(snapshot, &in); err != nil {
		return nil, berth.Errorf(berth.Invalid, "snapshot", "%v", err)
	}
	if err := e.state.restore(&in); err != nil {
		return nil, berth.Errorf(berth.Invalid, "snapshot", "%v", err)
	}
	return e, nil
}

func (s *state) restore(in *saved) error {
	s.now, s.sequence, s.effects, s.decided = in.Now, in.Sequence, in.Effects, in.Decided
	s.submitted = in.Submitted
	for _, f := range in.Forecasts {
		if err := s.takeForecast(f); err != nil {
			return err
		}
	}
	for _, user := range in.Users {
		s.users.sequence(user)
	}
	numbers := map[uint64]bool{}
	for _, p := range in.Pending {
		numbers[p.Number] = true
	}
	for _, j := range in.Jobs {
		numbers[j.Number] = true
	}
	if len(numbers) < len(in.Pending)+len(in.Jobs) {
		return fmt.Errorf("two that are pending have the same number")
	}
	for _, p := range in.Pending {
		if p.Request == nil || p.Request.IsJob() || p.Request.Validate() != nil {
			return fmt.Errorf("pending request %d is none", p.Number)
		}
		s.queue.add(s.describe(p.Request, p.Number))
	}
	if in.Pass != nil {
		s.schedule(*in.Pass)
	}
	s.outbox = append(s.outbox, in.Outbox...)
	if err := s.restoreReservations(in.Reservations); err != nil {
		return err
	}
	s.outageNumber = in.OutageNumber
	numbers = map[uint64]bool{}
	for _, o := range in.Outages {
		if o == nil || o.Until < s.now || o.Until > berth.Forever || o.From >= o.Until || o.PEs.Empty() || numbers[o.Number] {
			return fmt.Errorf("an outage that is over at %d, of no PEs, or there twice", s.now)
		}
		numbers[o.Number] = true
		if c := s.calendarOf(o.Resource); c == nil || o.PEs.Max() >= berth.PE(c.Size()) {
			return fmt.Errorf("outage %d is of PEs %v of %v, which the configuration does not have", o.Number, o.PEs, o.Resource)
		}
		if err := s.addOutage(o); err != nil {
			return err
		}
	}
	for _, saved := range in.Jobs {
		if saved.Request == nil || !saved.Request.IsJob() || saved.Request.Validate() != nil {
			return fmt.Errorf("pending job %d is none", saved.Number)
		}
		j := &job{request: saved.Request, number: saved.Number, order: s.describe(saved.Request, saved.Number)}
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
func (s *state) restoreReservations(list []savedReservation) error {
	type place struct {
		start    berth.Time
		sequence uint64
		entry    *entry
	}
	s.ledger.expect(len(list))
	order := make([]place, len(list)) // to sort without looking at the entries
	for i := range list {
		r := &list[i]
		if err := s.sound(&r.Reservation); err != nil {
			return err
		}
		_, twice := s.ledger.live[r.Request.ID]
		if twice || i > 0 && r.Sequence <= list[i-1].Sequence {
			return fmt.Errorf("reservation %q is there twice, or reservations are out of order", r.Request.ID)
		}
		entry := s.ledger.add(new(entry), &r.Reservation)
		for _, part := range r.Over {
			if part < 0 || part >= len(r.Allotments) || !entry.holds(part) {
				return fmt.Errorf("reservation %q has no part %d to be over", r.Request.ID, part)
			}
			s.ledger.dropPart(entry, part)
		}
		if entry.running == 0 {
			return fmt.Errorf("reservation %q is over", r.Request.ID)
		}
		s.lacks(entry, entry.Missing)
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
func (s *state) restoreHeld(entry *entry) error {
	if entry.State == berth.Active {
		s.awaitShow(entry)
	} else {
		s.timers.add(waitTimer(entry))
	}
	for part := range entry.Allotments {
		if !entry.holds(part) {
			continue
		}
		a := &entry.Allotments[part]
		if from := max(a.Start, s.now); from < a.End {
			if err := s.book(a, from); err != nil {
				return fmt.Errorf("reservation %q: %w", entry.Request.ID, err)
			}
		}
		if entry.State == berth.Active {
			s.timers.add(endTimer(entry, part))
			if idle, late := s.idleOf(a.Resource); late {
				idle.Delete(a.PEs)
			}
		}
	}
	if err := s.besides(entry.Held, s.now, calendar.Calendar.Add); err != nil {
		return fmt.Errorf("reservation %q: %w", entry.Request.ID, err)
	}
	return nil
}

// sound reports what cannot be right with a reservation that is read.
func (s *state) sound(r *berth.Reservation) error {
	if r.Request == nil || r.Request.Validate() != nil || len(r.Allotments) != len(r.Request.Parts) {
		return fmt.Errorf("reservation %d is of no valid request", r.Sequence)
	}
	switch r.State {
	case berth.Held, berth.Confirmed, berth.Degraded, berth.Active:
	default:
		return fmt.Errorf("reservation %q is %q", r.Request.ID, r.State)
	}
	if !r.Expires.Valid() || r.Missing < 0 || r.Missing > berth.MaxPEs {
		return fmt.Errorf("reservation %q expires at %d and lacks %d PEs", r.Request.ID, r.Expires, r.Missing)
	}
	if g := r.Staging; g != nil && (!g.Start.Valid() || !g.End.Valid() && g.End != berth.Forever || !g.Since.Valid() || g.End < g.Start || g.Kilobytes < 0 || g.Kilobytes > 1000*berth.MaxMegabytes) {
		return fmt.Errorf("the data of reservation %q are %+v", r.Request.ID, *g)
	}
	for i := range r.Held {
		a := &r.Held[i]
		if st := s.stocks[a.Resource]; st == nil || a.NPE < 1 || a.NPE > st.calendar.Size() || !a.Start.Valid() || !a.End.Valid() || a.Start >= a.End || !a.PEs.Empty() {
			return fmt.Errorf("reservation %q holds %d of %v throughout [%d,%d)", r.Request.ID, a.NPE, a.Resource, a.Start, a.End)
		}
	}
	for i := range r.Allotments {
		a := &r.Allotments[i]
		c := s.calendarOf(a.Resource)
		if c == nil {
			return fmt.Errorf("reservation %q is on %v, which the configuration does not have", r.Request.ID, a.Resource)
		}
		named := c.Binding() == berth.Early || r.State == berth.Active
		switch {
		case !a.Start.Valid() || !a.End.Valid() || a.Start >= a.End || a.NPE < 0 || a.NPE > c.Size(),
			named && a.PEs.Count() != a.NPE, !named && !a.PEs.Empty(), !a.PEs.Empty() && a.PEs.Max() >= berth.PE(c.Size()):
			return fmt.Errorf("reservation %q has %d PEs %v throughout [%d,%d)", r.Request.ID, a.NPE, a.PEs, a.Start, a.End)
		}
	}
	return nil
}

// Fold applies changes of an earlier run without deciding anything. After an
// error, of code Invalid, the engine must not be used any more.
func (e *Engine) Fold(changes []Change) error {
	for i := range changes {
		c := changes[i]
		c.entry, c.job = nil, nil
		if err := e.state.fold(&c); err != nil {
			return berth.Errorf(berth.Invalid, "changes", "change %d (%s): %v", i, changes[i].Kind, err)
		}
	}
	return nil
}

// Hash returns the SHA-256, in hex, of the state: of its snapshot and of every
// calendar's records, which the snapshot does not contain.
func (e *Engine) Hash() string {
	h := sha256.New()
	h.Write(e.Snapshot())
	for _, res := range e.state.resources {
		hashRecords(h, e.state.calendar(res.id).Records())
		if e.state.hasPlans {
			hashRecords(h, e.state.planned(res.id))
		}
	}
	for _, st := range e.state.stockOrder {
		st.calendar.Prune(e.state.now)
		hashRecords(h, st.calendar.Records())
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashRecords(h hash.Hash, records iter.Seq[calendar.Record]) {
	var buf []byte
	for record := range records {
		buf = binary.AppendVarint(buf[:0], int64(record.Time))
		buf = binary.AppendVarint(buf, int64(record.Free))
		for _, run := range record.Busy.Runs() {
			buf = binary.AppendVarint(buf, int64(run.Lo))
			buf = binary.AppendVarint(buf, int64(run.Hi))
		}
		h.Write(buf)
	}
	h.Write([]byte{0})
}
