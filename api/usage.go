package api

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/policy"
)

var usageParams = []param{
	{"from", "Only reservations that start in this month, in UTC, or later.", text("2027-01")},
	{"to", "Only reservations that start in this month or earlier.", text("2027-01")},
}

// usage tells what reservations came to. The records that are looked at count like reservations of a list.
func (c *call) usage() error {
	query, err := c.query(usageParams)
	if err != nil {
		return err
	}
	var wrong faults
	from, to := policy.Month(math.MinInt32), policy.Month(math.MaxInt32)
	for name, month := range map[string]*policy.Month{"from": &from, "to": &to} {
		if text, given := query[name]; given {
			*month, err = parseMonth(text)
			wrong.add(name, err)
		}
	}
	if err := wrong.err(); err != nil {
		return err
	}
	used, looked, err := c.Usage(c.r.Context(), c.by, from, to+1)
	c.rates.charge(c.asker(), looked/lookedAtOnce)
	if err != nil {
		return err
	}
	f := form.Usage{Used: make([]form.Used, len(used.List)), Since: form.TimeOf(used.Since)}
	for i := range used.List {
		u := &used.List[i]
		f.Used[i] = form.Used{
			User: u.User, Account: u.Account, Month: fmt.Sprintf("%04d-%02d", u.Month/12, u.Month%12+1), Reservations: u.Reservations, NoShows: u.NoShows,
			Charged: inUnit(policy.InPESeconds, u.Charged), Held: inUnit(policy.InPESeconds, u.Held),
			Promised: u.Promised, Delivered: u.Delivered, Ran: u.Ran, Moved: u.Moved, Late: u.Late, Broken: u.Broken,
		}
	}
	return c.answer(http.StatusOK, &f)
}

// parseMonth reads a month such as 2027-01.
func parseMonth(text string) (policy.Month, error) {
	at, err := time.Parse("2006-01", text)
	if err != nil {
		return 0, fmt.Errorf("%.40q; want a year and a month, such as 2027-01", text)
	}
	return policy.Month(12*at.Year() + int(at.Month()) - 1), nil
}
