package api

import (
	"net/http"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

// history tells what has happened to a reservation. The records that are looked at
// count like reservations of a list.
func (c *call) history() error {
	past, looked, err := c.History(c.r.Context(), c.by, c.r.PathValue("id"))
	c.rates.charge(c.asker(), looked/lookedAtOnce)
	if err != nil {
		return err
	}
	f := form.History{History: make([]form.Happening, len(past.List))}
	for i := range past.List {
		f.History[i] = c.happened(&past.List[i])
	}
	if past.Since != 0 {
		f.Since = form.TimeOf(past.Since)
	}
	if d := past.Delivered; d != nil {
		f.Delivered = &form.Delivered{
			Start: form.TimeOf(d.Start), End: form.TimeOf(d.End), NPE: d.NPE, Made: form.TimeOf(d.Made), Whole: form.TimeOf(d.Whole), ShortPESeconds: d.Short,
		}
	}
	return c.answer(http.StatusOK, &f)
}

func (c *call) happened(h *service.Happening) form.Happening {
	f := form.Happening{
		At: form.TimeOf(h.At), What: string(h.What), By: h.By.User, Role: string(h.By.Role), Token: h.By.Token, Address: h.By.Address, Call: h.By.Request,
	}
	f.Site = h.Site
	if len(h.Allotments) > 0 {
		places(&f.Place, &f.Parts, h.Allotments)
	}
	if h.Until != 0 {
		f.End = form.TimeOf(h.Until)
	}
	if h.Refusal != nil {
		f.Reason, f.Detail = h.Refusal.Reason, h.Refusal.Words
	}
	if h.Task != nil {
		f.Task, f.NPE = new(taskReport(h.Task)), h.PEs
	}
	f.Trouble = h.Trouble
	for i := range h.Out {
		f.Outages = append(f.Outages, c.outage(&h.Out[i]))
	}
	return f
}
