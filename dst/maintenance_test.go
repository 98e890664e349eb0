package dst

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
)

// maintenanceCall has an operator take nodes out of use at some times, or call that off.
func (w *world) maintenanceCall(c *call) {
	rng := w.driver
	c.user, c.key, c.features = "operator", "", []string{featureMaintenance}
	name := pick(rng, []string{"cooling", "disks", "kernel"})
	if rng.IntN(3) == 0 {
		c.method, c.path = http.MethodDelete, "/v1/maintenance/"+name
		return
	}
	p := pick(rng, w.ports)
	at := time.Unix(int64(w.now())+60*rng.Int64N(240), 0).UTC().Format(time.RFC3339)
	c.path = "/v1/maintenance"
	c.body = fmt.Sprintf(`{"name":%q,"site":%q,"start":%q,"duration":%d`, name, p.name, at, 60*(1+rng.IntN(120)))
	if rng.IntN(3) > 0 {
		c.body += fmt.Sprintf(`,"nodes":[%q]`, pick(rng, p.nodes))
	}
	if rng.IntN(2) == 0 {
		c.body += fmt.Sprintf(`,"repeat":"every day","times":%d`, 2+rng.IntN(3))
	}
	c.body += "}"
}

// maintained returns how maintenance and what is out of use because of it differ.
func (w *world) maintained() error {
	const slack = 60 // sites are looked at now and then
	list, err := w.life.host.ListMaintenance(context.Background(), operator)
	if err != nil {
		return err
	}
	outages, err := w.life.host.Outages(context.Background(), operator)
	if err != nil {
		return err
	}
	now, out := w.now(), map[string]berth.Time{} // until when something is, by site and name
	for i := range outages {
		if name, is := strings.CutPrefix(outages[i].Name, "maintenance "); is {
			name, _, _ = strings.Cut(name, " at ")
			of := outages[i].Resource.Site + " " + name
			out[of] = max(out[of], outages[i].Until)
		}
	}
	for i := range list {
		m := &list[i]
		of := m.Site + " " + m.Name
		for _, at := range m.Times {
			if at.Start <= now-slack && at.End > now+slack && out[of] == 0 {
				return fmt.Errorf("maintenance %s goes on since %d, and nothing is out of use because of it", of, at.Start)
			}
		}
		delete(out, of)
	}
	for of, until := range out {
		if until > now+slack {
			return fmt.Errorf("PEs are out of use until %d for maintenance %s, which there is not", until, of)
		}
	}
	return nil
}
