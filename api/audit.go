package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/service"
)

var auditParams = []param{
	{"user", "Only what this user asked for.", text("alice")},
	{"token", "Only what was asked for with the token of this id.", text("1f2e3d4c5b6a")},
	{"address", "Only what was asked for from this address.", text("10.0.0.1")},
	{"kind", "Only what is of this kind.", text("cancel")},
	{"id", "Only what was about the reservation, the workflow or the receiver of notices of this id.", text("01KA2B3C4D5E6F7G8H9JKMNPQR")},
	{"since", "Only from this time on.", instant()},
	{"until", "Only before this time.", instant()},
	{"limit", "How many at most; 100 by default. A page may have fewer although there is a next one.", whole(1, maxPage)},
	{"cursor", "The next of the page before.", text("")},
}

// audit tells who asked for what. The records that are looked at count like reservations of a list.
func (c *call) audit() error {
	query, err := c.query(auditParams)
	if err != nil {
		return err
	}
	var wrong faults
	filter := service.AuditFilter{User: query["user"], Token: query["token"], Address: query["address"], ID: query["id"], Kind: engine.EventKind(query["kind"])}
	if _, given := query["kind"]; given && !slices.Contains(service.AuditKinds(), filter.Kind) {
		wrong.add("kind", fmt.Errorf("%.40q; want one of %s", filter.Kind, joined(service.AuditKinds())))
	}
	for _, p := range []struct {
		name string
		to   *berth.Time
	}{{"since", &filter.Since}, {"until", &filter.Until}} {
		if text, given := query[p.name]; given {
			*p.to, err = parseInstant(text, up)
			wrong.add(p.name, err)
		}
	}
	limit, after := pageOf(query, &wrong)
	if after != "" {
		if filter.After, err = strconv.ParseUint(after, 10, 63); err != nil {
			wrong.add("cursor", fmt.Errorf("%.40q; want the next of the page before", query["cursor"]))
		}
	}
	if err := wrong.err(); err != nil {
		return err
	}
	filter.Limit = limit
	list, next, looked, err := c.Audit(c.r.Context(), c.by, filter)
	c.rates.charge(c.asker(), looked/lookedAtOnce)
	if err != nil {
		return err
	}
	f := form.Audit{Records: make([]form.Audited, len(list))}
	for i := range list {
		a := &list[i]
		f.Records[i] = form.Audited{
			Number: a.Number, At: form.TimeOf(a.At), User: a.By.User, Role: string(a.By.Role), Token: a.By.Token, Scopes: a.By.Scopes, Address: a.By.Address, Call: a.By.Request, Kind: string(a.Kind), ID: a.ID,
		}
	}
	if next > 0 {
		f.Next = cursor(strconv.FormatUint(next, 10))
	}
	return c.answer(http.StatusOK, &f)
}
