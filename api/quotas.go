package api

import (
	"net/http"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

var quotasParams = []param{{"user", "Only of this user. Others than yourself only operators may name.", text("alice")}}

// quotas answers with the limits of a user and what is used of them: one's own with those of the accounts that one uses, or, for
// an operator, those of all who have something, and of accounts, QOS and partitions.
func (c *call) quotas() error {
	query, err := c.query(quotasParams)
	if err != nil {
		return err
	}
	user, named := query["user"]
	var users []string
	switch {
	case named:
		users = []string{user}
	case c.by.Can(service.Operator):
		if users, err = c.Users(c.r.Context(), c.by); err != nil {
			return err
		}
		if !slices.Contains(users, c.by.User) {
			users = append(users, c.by.User)
		}
	default:
		users = []string{c.by.User}
	}
	of := make([]service.Principal, len(users))
	for i, name := range users {
		of[i] = service.Principal{User: name, Role: c.roleOf(name)}
	}
	list, err := c.Quotas(c.r.Context(), c.by, of)
	if err != nil {
		return err
	}
	f := form.Quotas{Quotas: make([]form.Quota, len(list))}
	for i := range list {
		f.Quotas[i] = quota(&list[i])
	}
	var shared []service.SharedQuota
	switch {
	case !named && c.by.Can(service.Operator) && c.by.Sites.All():
		shared, err = c.SharedQuotas(c.r.Context(), c.by)
	case !named || user == c.by.User:
		shared, err = c.AccountQuotas(c.r.Context(), c.by)
	}
	if err != nil {
		return err
	}
	for i := range shared {
		q := &shared[i]
		f.Shared = append(f.Shared, form.SharedQuota{Account: q.Account, QOS: q.QOS, Partition: q.Partition, Limits: limits(q.Limits)})
	}
	return c.answer(http.StatusOK, &f)
}

// roleOf returns by which role the limits of a user are chosen: the own one of who asks,
// else the widest that a token of theirs has.
func (c *call) roleOf(user string) service.Role {
	if user == c.by.User {
		return c.by.Role
	}
	role := service.User
	for _, e := range c.tokens.List() {
		if e.User == user && (service.Principal{Role: e.Role}).Can(role) {
			role = e.Role
		}
	}
	return role
}

// quota is the form of a user's limits.
func quota(q *service.Quota) form.Quota {
	return form.Quota{User: q.User, Role: string(q.Role), Limits: limits(q.Limits), Sites: q.Sites}
}

// limits is the form of limits, and of what is used of them.
func limits(allowed []service.Allowed) []form.Limit {
	list := make([]form.Limit, len(allowed))
	for i := range allowed {
		a := &allowed[i]
		l := form.Limit{Limit: string(a.Name), Unit: unitOf(a.Unit), Site: a.Resource.Site, Pool: a.Resource.Name, About: a.About}
		if a.Limited {
			l.Allowed = new(inUnit(a.Unit, a.Value))
		}
		if a.Counted {
			l.Used = new(inUnit(a.Unit, a.Used))
		}
		if a.Held > 0 {
			l.Held = new(inUnit(a.Unit, a.Held))
		}
		if a.Frees != 0 && a.Frees.Valid() {
			l.Frees = form.TimeOf(a.Frees)
		}
		list[i] = l
	}
	return list
}

// inUnit is a value in the unit in which the API shows it.
func inUnit(unit policy.Unit, value int64) float64 {
	switch unit {
	case policy.InPESeconds:
		return float64(value) / 3600
	case policy.InRate:
		return float64(value) / 1000
	}
	return float64(value)
}

// unitOf names the unit in which the API shows a value.
func unitOf(unit policy.Unit) string {
	switch unit {
	case policy.InPermille:
		return "PEs"
	case policy.InPESeconds:
		return "PE-hours"
	case policy.InRate:
		return "a second"
	}
	return string(unit)
}

// exceeded is the form of a limit that a request would exceed.
func exceeded(x *berth.Exceeded) *form.Exceeded {
	if x == nil {
		return nil
	}
	kind, known := policy.LimitNamed(policy.LimitName(x.Limit))
	if x.Limit == string(policy.LimitAhead) { // which is in no table of limits
		kind, known = policy.LimitKind{Unit: policy.InPermille}, true
	}
	if !known {
		return nil
	}
	f := &form.Exceeded{Limit: x.Limit, Owner: x.Owner, Account: x.Account, QOS: x.QOS, Partition: x.Partition, Unit: unitOf(kind.Unit), Allowed: inUnit(kind.Unit, x.Allowed), Asked: inUnit(kind.Unit, x.Asked)}
	if x.Frees != 0 && x.Frees.Valid() {
		f.Frees = form.TimeOf(x.Frees)
	}
	return f
}
