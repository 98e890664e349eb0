package service

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/site"
)

// Maintenance is nodes of a managed site that an operator takes out of use at times that are known
// before. Each time is an outage to the engine: what is promised then moves within its window at once or
// is degraded, its owner is told, and nothing is promised there any more.
type Maintenance struct {
	Name  string
	Site  string
	Nodes []string // in order; none is all that the site has
	// Times are in order; none begins before the one before has ended.
	Times      []berth.Interval
	Rule, Zone string // how they repeat, as it was asked for; empty if they do not
	Reason     string // for people
	By         string // the operator
	Created    berth.Time
}

// MaxTimes bounds how often one maintenance repeats: all its times are told to the engine at once.
const MaxTimes = 1000

const (
	// maxMaintenance is how many there are at most that are not over, and maxMaintenanceTimes how many times these have
	// together that are to come or go on: each is an outage, and the loop tells a thousand in some tenths of a second.
	maxMaintenance      = 256
	maxMaintenanceTimes = 2000
	// maxReason is how many bytes a reason has at most.
	maxReason = 200
)

// over reports whether none of the times is to come or going on.
func (m *Maintenance) over(now berth.Time) bool { return m.Times[len(m.Times)-1].End <= now }

// left yields the times that are not over.
func (m *Maintenance) left(now berth.Time) iter.Seq[berth.Interval] {
	return func(yield func(berth.Interval) bool) {
		for _, at := range m.Times {
			if at.End > now && !yield(at) {
				return
			}
		}
	}
}

// maintenancePrefix is what the names of outages begin with that are maintenance.
const maintenancePrefix = "maintenance "

// outage returns the name of the outage that one of the times is.
func (m *Maintenance) outage(at berth.Time) string {
	return maintenancePrefix + m.Name + " at " + at.RFC3339()
}

// isMaintenance reports whether an outage of that name is maintenance.
func isMaintenance(name string) bool { return strings.HasPrefix(name, maintenancePrefix) }

// shares returns what it takes of a site as it is.
func (m *Maintenance) shares(layout *site.Layout) []site.Share {
	nodes := m.Nodes
	if len(nodes) == 0 {
		nodes = layout.Nodes()
	}
	list := make([]site.Share, len(nodes))
	for i, node := range nodes {
		list[i].Node = node
	}
	return list
}

// check reports whether it may be as it is said to.
func (m *Maintenance) check(now berth.Time) error {
	switch {
	case !berth.ValidName(m.Name):
		return berth.Errorf(berth.Invalid, "name", "%.80q; want 1 to %d letters, digits, dots, dashes and underscores", m.Name, berth.MaxName)
	case len(m.Reason) > maxReason:
		return berth.Errorf(berth.Invalid, "reason", "%d bytes; want at most %d", len(m.Reason), maxReason)
	case len(m.Times) == 0:
		return berth.Errorf(berth.Invalid, "start", "missing; want when it begins, or how it repeats")
	case len(m.Times) > MaxTimes:
		return berth.Errorf(berth.Invalid, "repeat", "%d times; want at most %d", len(m.Times), MaxTimes)
	}
	end := berth.Time(-berth.TimeLimit)
	for _, at := range m.Times {
		switch {
		case at.End <= at.Start || !at.Start.Valid() || !at.End.Valid():
			return berth.Errorf(berth.Invalid, "end", "%s; must be after the start, %s, and before 2^42 seconds after 1970", at.End.RFC3339(), at.Start.RFC3339())
		case at.Start < end:
			return berth.Errorf(berth.Invalid, "duration", "one time ends at %s, after the next has begun, at %s; want less, or fewer times", end.RFC3339(), at.Start.RFC3339())
		}
		end = at.End
	}
	if m.over(now) {
		return berth.Errorf(berth.Invalid, "end", "%s; it is over by then, want an end after now, %s", end.RFC3339(), now.RFC3339())
	}
	return nil
}

// maintenanceNews is what is new of maintenance. The journal has it.
type maintenanceNews struct {
	by      Origin
	put     *Maintenance // added, or as it is from now on
	removed string
}

func (n *maintenanceNews) code(c *wire.Coder) {
	wire.Struct(c, 1, &n.by, n.by == Origin{}, codeOrigin)
	wire.Pointer(c, 2, &n.put, func(c *wire.Coder, m *Maintenance) { m.code(c) })
	wire.String(c, 3, &n.removed)
	c.End()
}

func (m *Maintenance) code(c *wire.Coder) {
	wire.String(c, 1, &m.Name)
	wire.Name(c, 2, &m.Site)
	wire.List(c, 3, &m.Nodes, wire.BareText[string])
	wire.List(c, 4, &m.Times, func(c *wire.Coder, at *berth.Interval) {
		wire.Int(c, 1, &at.Start)
		wire.Int(c, 2, &at.End)
		c.End()
	})
	wire.String(c, 5, &m.Rule)
	wire.Name(c, 6, &m.Zone)
	wire.String(c, 7, &m.Reason)
	wire.Name(c, 8, &m.By)
	wire.Int(c, 9, &m.Created)
	if c.End(); c.Reading() && c.Err() == nil && len(m.Times) == 0 {
		c.Fail("maintenance without a time")
	}
}

func appendMaintenance(dst []byte, n *maintenanceNews) []byte {
	w := wire.Writer(append(dst, maintenanceInput))
	n.code(w)
	return w.Bytes()
}

// maintenanceRecord notes what is new of maintenance, and returns the record of it. Nothing is decided by it.
func (c *Core) maintenanceRecord(now berth.Time, n *maintenanceNews) *journal.Record {
	rec := &journal.Record{At: now, Version: c.version, Event: appendMaintenance(nil, n)}
	c.place(rec)
	c.noteMaintenance(now, n)
	return rec
}

// noteMaintenance brings maintenance up to date, and forgets what was over long ago. What is there is not written any more.
func (c *Core) noteMaintenance(at berth.Time, n *maintenanceNews) {
	if c.maintenance == nil {
		c.maintenance = map[string]*Maintenance{}
	}
	maps.DeleteFunc(c.maintenance, func(_ string, m *Maintenance) bool { return m.over(at.Add(-keepOutages)) })
	delete(c.maintenance, n.removed)
	if n.put != nil {
		c.maintenance[n.put.Name] = n.put
	}
}

// maintenanceAhead returns how much maintenance is not over, and how many times of it.
func (c *Core) maintenanceAhead(now berth.Time) (n, times int) {
	for _, m := range c.maintenance {
		if !m.over(now) {
			n++
		}
		for range m.left(now) {
			times++
		}
	}
	return n, times
}

// savedMaintenance returns all maintenance, by name.
func (c *Core) savedMaintenance() (list []Maintenance) {
	for _, name := range slices.Sorted(maps.Keys(c.maintenance)) {
		list = append(list, *c.maintenance[name])
	}
	return list
}

// restoreMaintenance takes in what savedMaintenance returned.
func (c *Core) restoreMaintenance(list []Maintenance) {
	if len(list) > 0 {
		c.maintenance = make(map[string]*Maintenance, len(list))
	}
	for i := range list {
		c.maintenance[list[i].Name] = &list[i]
	}
}

// audited returns what was asked for about which maintenance.
func (n *maintenanceNews) audited() (kind engine.EventKind, id string) {
	switch {
	case n.put == nil:
		return auditRemoveMaintenance, n.removed
	case n.removed != "":
		return auditChangeMaintenance, n.put.Name
	}
	return auditAddMaintenance, n.put.Name
}

// mayTakeNodes returns an error unless a principal may take nodes out of use.
func (p Principal) mayTakeNodes() error {
	if p.Can(Operator) {
		return nil
	}
	return berth.Errorf(berth.Denied, "role", "only an operator takes nodes out of use; ask with an operator's token")
}

func noManagedSite(name string) error {
	return berth.Errorf(berth.NotFound, "site", "no managed site %q; berth sites list names all sites", name)
}

// maintained returns the keeper of the site at which maintenance is to be. It is of the loop.
func (h *Host) maintained(m *Maintenance) (*keeper, error) {
	k := h.sites[m.Site]
	switch is := func(s berth.Site) bool { return s.Name == m.Site }; {
	case k == nil && slices.ContainsFunc(h.core.config.Sites, is):
		return nil, berth.Errorf(berth.Conflict, "site", "%q has no adapter, so its nodes are not managed from here; maintenance needs one in the sites file", m.Site)
	case k == nil:
		return nil, noManagedSite(m.Site)
	case k.manager.Shadow:
		return nil, berth.Errorf(berth.Conflict, "site", "%q is only watched, and nothing is promised there", m.Site)
	}
	for _, node := range m.Nodes {
		if layout := k.ground.Load().layout; !layout.Has(node) {
			return nil, berth.Errorf(berth.NotFound, "nodes", "site %q has no node %.80q; berth sites show %s --nodes lists them", m.Site, node, m.Site)
		}
	}
	return k, nil
}

// AddMaintenance takes nodes of a site out of use at times that are known before, and returns it with the ids of
// the reservations that are in its way, in order, which move or are degraded. If it is only tried, nothing is done, and the reservations are those
// that would be. In pools of late binding, whose reservations have no numbers of PEs before they start, these are as few as leave
// room for the rest. Errors: Denied unless who asks is an operator of the site; NotFound for a site that is not managed or has no such
// node; Conflict for a site that is only watched, a name that is taken by other maintenance, or if there is too much; Invalid for
// a bad name, times that are over, or overlap. Asked again for the same times it answers the same, and does nothing.
func (h *Host) AddMaintenance(ctx context.Context, ask Ask, m Maintenance, try bool) (Maintenance, []string, error) {
	if err := ask.By.mayTakeNodes(); err != nil {
		return m, nil, err
	}
	if !ask.By.Sites.Has(m.Site) {
		return m, nil, noManagedSite(m.Site)
	}
	m.Nodes = slices.Compact(slices.Sorted(slices.Values(m.Nodes)))
	type answer struct {
		is       Maintenance
		inTheWay []string
	}
	a, err := call(ctx, h, ask.By.User, func(give func(answer, error)) {
		now := h.clock()
		k, err := h.maintained(&m)
		if err == nil {
			err = m.check(now)
		}
		if err != nil {
			give(answer{}, err)
			return
		}
		m.By, m.Created = ask.By.User, now
		was := h.core.maintenance[m.Name]
		if was != nil && was.over(now) { // its name is free
			was = nil
		}
		there, times := h.core.maintenanceAhead(now)
		switch {
		case was != nil && !was.same(&m):
			give(answer{}, berth.Errorf(berth.Conflict, "name", "there is maintenance %s already, of %s; choose another name, or remove that", was.Name, was.Site))
			return
		case was == nil && (there >= maxMaintenance || times+len(m.Times) > maxMaintenanceTimes):
			give(answer{}, berth.Errorf(berth.Conflict, "maintenance", "there can be %d with %d times together, and there are %d with %d; berth maintenance remove ends one, and fewer times take less",
				maxMaintenance, maxMaintenanceTimes, there, times))
			return
		case was != nil:
			m = *was
		}
		a := answer{m, h.inTheWay(k, &m, now)}
		if was == nil && !try {
			h.keepMaintenance(k, &maintenanceNews{by: ask.asked().by, put: &m})
		}
		h.whenDurable(func(failed error) { give(a, failed) })
	})
	return a.is, a.inTheWay, err
}

// same reports whether two ask for the same.
func (m *Maintenance) same(o *Maintenance) bool {
	return m.Site == o.Site && slices.Equal(m.Nodes, o.Nodes) && slices.Equal(m.Times, o.Times) && m.Rule == o.Rule && m.Zone == o.Zone && m.Reason == o.Reason
}

// keepMaintenance puts on record what is new of maintenance at a site, and has the engine know.
func (h *Host) keepMaintenance(k *keeper, n *maintenanceNews) {
	h.persist(h.core.maintenanceRecord(h.clock(), n), consequences{who: n.by.User})
	switch {
	case k == nil:
		return
	case k.last == nil: // the site has not been looked at yet
		h.tellMaintenance(k)
	default:
		h.tellOutOfUse(k, k.last)
	}
	k.poke()
}

// inTheWay returns the ids of reservations that hold PEs which maintenance takes, or for which there will be too few.
func (h *Host) inTheWay(k *keeper, m *Maintenance, now berth.Time) []string {
	ids := []string{}
	takes := k.ground.Load().layout.PEs(m.shares(k.ground.Load().layout))
	for r := range h.core.engine.Due(k.name, berth.Forever) {
		if slices.ContainsFunc(r.Allotments, func(a berth.Allotment) bool { return a.Resource.Site == k.name && m.takes(&a, takes, now) }) {
			ids = append(ids, r.Request.ID)
		}
	}
	for pool := range k.ground.Load().ahead {
		o := berth.Outage{Resource: berth.PoolID(k.name, pool), PEs: takes[pool]}
		for at := range m.left(now) {
			if o.From, o.Until = at.Start, at.End; !o.PEs.Empty() {
				ids = append(ids, h.core.engine.Displaced(o)...)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// takes reports whether it takes some PEs of an allotment in some of its time.
func (m *Maintenance) takes(a *berth.Allotment, takes map[string]berth.PESet, now berth.Time) bool {
	if a.PEs.Overlap(takes[a.Resource.Name]) == 0 {
		return false
	}
	at, _ := slices.BinarySearchFunc(m.Times, max(a.Start, now), func(i berth.Interval, start berth.Time) int {
		if i.End <= start {
			return -1
		}
		return 1
	})
	return at < len(m.Times) && m.Times[at].Start < a.End
}

// ListMaintenance returns the maintenance at the sites of a principal that is not over, by site and name.
func (h *Host) ListMaintenance(ctx context.Context, by Principal) ([]Maintenance, error) {
	if !by.Can(Viewer) {
		return nil, berth.Errorf(berth.Denied, "role", "%q is no role; want viewer, user or operator", by.Role)
	}
	return call(ctx, h, by.User, func(answer func([]Maintenance, error)) {
		list, now := []Maintenance{}, h.clock()
		for _, m := range h.core.maintenance {
			if by.Sites.Has(m.Site) && !m.over(now) {
				list = append(list, *m)
			}
		}
		slices.SortFunc(list, func(a, b Maintenance) int {
			if c := strings.Compare(a.Site, b.Site); c != 0 {
				return c
			}
			return strings.Compare(a.Name, b.Name)
		})
		h.whenDurable(func(failed error) { answer(list, failed) })
	})
}

// RemoveMaintenance calls maintenance off, or only the time of it that begins at one, which is not 0: its nodes are in use again then, and
// promises that it degraded get PEs again. What goes on ends at once. Errors: Denied unless who asks is an operator; NotFound.
func (h *Host) RemoveMaintenance(ctx context.Context, ask Ask, name string, only berth.Time) error {
	if err := ask.By.mayTakeNodes(); err != nil {
		return err
	}
	_, err := call(ctx, h, ask.By.User, func(answer func(struct{}, error)) {
		m := h.core.maintenance[name]
		if m == nil || !ask.By.Sites.Has(m.Site) || m.over(h.clock()) {
			answer(struct{}{}, berth.Errorf(berth.NotFound, "name", "no maintenance %.80q; berth maintenance list shows all", name))
			return
		}
		n := &maintenanceNews{by: ask.asked().by, removed: name}
		if only != 0 {
			left := slices.DeleteFunc(slices.Clone(m.Times), func(at berth.Interval) bool { return at.Start == only })
			switch {
			case len(left) == len(m.Times):
				answer(struct{}{}, berth.Errorf(berth.NotFound, "start", "maintenance %s does not begin at %s; berth maintenance list shows when it does", name, only.RFC3339()))
				return
			case len(left) > 0:
				changed := *m
				changed.Times, n.put = left, &changed
			}
		}
		h.keepMaintenance(h.sites[m.Site], n)
		h.whenDurable(func(failed error) { answer(struct{}{}, failed) })
	})
	return err
}
