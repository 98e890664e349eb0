package api

import (
	"net/http"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

func (c *call) outbox() error {
	if _, err := c.query(nil); err != nil {
		return err
	}
	list, err := c.Outbox(c.r.Context(), c.by)
	if err != nil {
		return err
	}
	f := form.Outbox{Errands: make([]form.Errand, len(list))}
	for i := range list {
		e := &list[i]
		what := "make"
		if e.Remove {
			what = "remove"
		}
		f.Errands[i] = form.Errand{
			Number: e.Number, Site: e.Site, Reservation: e.Reservation, What: what, State: string(e.State), Since: form.TimeOf(e.Since), Trouble: e.Trouble,
		}
	}
	return c.answer(http.StatusOK, &f)
}

func (c *call) outages() error {
	if _, err := c.query(nil); err != nil {
		return err
	}
	list, err := c.Outages(c.r.Context(), c.by)
	if err != nil {
		return err
	}
	f := form.Outages{Outages: make([]form.Outage, len(list))}
	for i := range list {
		f.Outages[i] = c.outage(&list[i])
	}
	return c.answer(http.StatusOK, &f)
}

func (c *call) outage(o *service.PoolOutage) form.Outage {
	f := form.Outage{
		Number: uint32(o.Number) | service.OutageBit, Site: o.Resource.Site, Pool: o.Resource.Name, PEs: o.PEs, NPE: o.PEs.Count(), Nodes: o.Nodes,
		From: form.TimeOf(o.From), Until: form.TimeOf(o.Until),
	}
	if c.by.Can(service.Operator) { // names are given by people
		f.Name = o.Name
	}
	return f
}
