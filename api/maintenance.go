package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/recurrence"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/hostlist"
)

// maintained is maintenance as it was read.
type maintained struct {
	recurring
	service.Maintenance
	start, end *berth.Time
	lasts      berth.Duration
	try        bool
}

var maintenanceBody = append(body[maintained]{
	{"name", "What it is called, in outages, calendars and notices too.", text("cooling"), func(a *maintained, v value) (err error) {
		a.Name, err = v.word()
		return err
	}},
	{"site", "At which managed site.", text("cm5"), func(a *maintained, v value) (err error) {
		a.Site, err = v.word()
		return err
	}},
	{"nodes", "The nodes that are taken out of use, alone or as n[1-4]; all that the site has at each time if it is not given.", listOf(text("n[1-4]")), func(a *maintained, v value) error {
		list, err := v.texts()
		if err == nil && len(list) == 0 {
			return errors.New("an empty list; want some nodes, or leave it out for all")
		}
		for _, text := range list {
			nodes, err := hostlist.Expand(text)
			if err != nil {
				return err
			}
			if a.Nodes = append(a.Nodes, nodes...); len(a.Nodes) > berth.MaxPEs {
				return fmt.Errorf("more than %d nodes", berth.MaxPEs)
			}
		}
		return err
	}},
	{"start", "When it begins, and if it repeats, from when on.", instant(), func(a *maintained, v value) error {
		t, err := v.instant(down)
		a.start = &t
		return err
	}},
	{"end", "When it ends, if it does not repeat and has no duration.", instant(), func(a *maintained, v value) error {
		t, err := v.instant(up)
		a.end = &t
		return err
	}},
	{"duration", "How long it lasts each time.", duration(), func(a *maintained, v value) (err error) {
		a.lasts, err = v.length(1)
		return err
	}},
	{"reason", "Why, for those who wonder.", text("the pumps are cleaned"), func(a *maintained, v value) (err error) {
		a.Reason, err = v.word()
		return err
	}},
	{"dry_run", "Only says which reservations are in its way, and does nothing.", &schema{Type: "boolean"}, func(a *maintained, v value) (err error) {
		a.try, err = v.truth()
		return err
	}},
}, lifted(recurringBody(service.MaxTimes), func(a *maintained) *recurring { return &a.recurring })...)

// times returns when it is, and what a change of the clock has made of some.
func (a *maintained) times(now berth.Time) (list []berth.Interval, notes map[berth.Time]string, err error) {
	if a.start == nil {
		a.start = &now
	}
	switch {
	case a.lasts > 0 && a.end != nil:
		return nil, nil, berth.Errorf(berth.Invalid, "end", "given beside duration; want one of them")
	case a.lasts == 0 && a.end == nil:
		return nil, nil, berth.Errorf(berth.Invalid, "duration", "missing; want how long it lasts, such as 4h")
	case a.repeats() && a.end != nil:
		return nil, nil, berth.Errorf(berth.Invalid, "end", "given beside repeat or add; want duration, which is that of each time")
	case a.end != nil:
		return []berth.Interval{{Start: *a.start, End: *a.end}}, nil, nil
	case !a.repeats():
		return []berth.Interval{{Start: *a.start, End: a.start.Add(a.lasts)}}, nil, nil
	}
	a.how.From, a.how.Open, a.how.Most = time.Unix(int64(*a.start), 0), true, service.MaxTimes
	starts, err := recurrence.Expand(&a.how)
	if err != nil {
		return nil, nil, err
	}
	notes = map[berth.Time]string{}
	for _, o := range starts {
		at := berth.Time(o.At.Unix())
		list = append(list, berth.Interval{Start: at, End: at.Add(a.lasts)})
		if note := shiftNote(o.Shift, a.zone); note != "" {
			notes[at] = note
		}
	}
	return list, notes, nil
}

func (c *call) addMaintenance() error {
	var a maintained
	ask, err := read(c, maintenanceBody, &a)
	if err != nil {
		return err
	}
	switch {
	case a.Name == "":
		return berth.Errorf(berth.Invalid, "name", "missing; want a name, such as cooling")
	case a.Site == "":
		return berth.Errorf(berth.Invalid, "site", "missing; want the managed site whose nodes it takes")
	}
	a.settle()
	list, notes, err := a.times(c.Now())
	if err != nil {
		return err
	}
	if a.Times = list; a.repeats() {
		a.Rule, a.Zone = a.how.Rule, a.zone
	}
	m, inTheWay, err := c.AddMaintenance(c.r.Context(), ask, a.Maintenance, a.try)
	if err != nil {
		return err
	}
	f := form.MaintenanceAnswer{Maintenance: c.maintenance(&m, notes), InTheWay: inTheWay}
	if a.try {
		return c.answer(http.StatusOK, &f)
	}
	c.w.Header().Set("Location", "/v1/maintenance/"+m.Name)
	return c.answer(http.StatusCreated, &f)
}

// maintenance shows maintenance with its times that are not over.
func (c *call) maintenance(m *service.Maintenance, notes map[berth.Time]string) form.Maintenance {
	f := form.Maintenance{Name: m.Name, Site: m.Site, Nodes: m.Nodes, Reason: m.Reason, Repeat: m.Rule, TimeZone: m.Zone, By: m.By, Created: form.TimeOf(m.Created), Times: []form.MaintenanceTime{}}
	now := c.Now()
	for _, at := range m.Times {
		if at.End > now {
			f.Times = append(f.Times, form.MaintenanceTime{Start: form.TimeOf(at.Start), End: form.TimeOf(at.End), Note: notes[at.Start]})
		}
	}
	return f
}

func (c *call) listMaintenance() error {
	if _, err := c.query(nil); err != nil {
		return err
	}
	list, err := c.ListMaintenance(c.r.Context(), c.by)
	if err != nil {
		return err
	}
	f := form.MaintenanceList{Maintenance: make([]form.Maintenance, len(list))}
	for i := range list {
		f.Maintenance[i] = c.maintenance(&list[i], nil)
	}
	return c.answer(http.StatusOK, &f)
}

var removeMaintenanceParams = []param{
	{"start", "Only the time that begins then; all if it is not given.", instant()},
}

func (c *call) removeMaintenance() error {
	query, err := c.query(removeMaintenanceParams)
	if err != nil {
		return err
	}
	var only berth.Time
	if text, given := query["start"]; given {
		var wrong faults
		only, err = parseInstant(text, down)
		if err == nil && only == 0 {
			err = errors.New("0; want when one of its times begins")
		}
		wrong.add("start", err)
		if err := wrong.err(); err != nil {
			return err
		}
	}
	ask, err := c.ask()
	if err != nil {
		return err
	}
	return c.done(c.RemoveMaintenance(c.r.Context(), ask, c.r.PathValue("name"), only))
}
