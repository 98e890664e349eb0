package service

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

const (
	day  = 86_400
	mebi = 1 << 20
)

// DefaultLimits are the limits of those for whom a configuration says nothing else. No
// user takes more than half of a pool at any one time, nor anything for longer than a
// week or later than in three months (what the ARS of national centres allows is of this
// kind), nor what fills the memory; operators run portals, which ask for many. A rate
// leaves a person's script alone and stops one that has run wild from taking all of a
// service that answers about 4,000 requests a second.
func DefaultLimits() policy.Limits {
	var l policy.Limits
	add := func(role Role, values map[policy.LimitName]int64) {
		for _, row := range policy.EachUser(values) {
			row.Role = string(role)
			l = append(l, row)
		}
	}
	add(Viewer, map[policy.LimitName]int64{
		policy.LimitRate: 200_000, policy.LimitBurst: 2000, policy.LimitStreams: 128, policy.LimitRequest: mebi, policy.LimitRemembered: 128 * mebi,
	})
	add(User, map[policy.LimitName]int64{
		policy.LimitLead: 90 * day, policy.LimitLength: 7 * day, policy.LimitHold: day, policy.LimitActive: 2000, policy.LimitReservations: 10_000,
		policy.LimitShare: 500,
		policy.LimitRate:  500_000, policy.LimitBurst: 5000, policy.LimitStreams: 128, policy.LimitRequest: mebi, policy.LimitRemembered: 128 * mebi,
	})
	add(Operator, map[policy.LimitName]int64{
		policy.LimitLead: 3660 * day, policy.LimitLength: 366 * day, policy.LimitHold: 30 * day, policy.LimitActive: 1_000_000, policy.LimitReservations: 1_000_000,
		policy.LimitRate: 20_000_000, policy.LimitBurst: 40_000, policy.LimitStreams: 128, policy.LimitRequest: mebi, policy.LimitRemembered: 128 * mebi,
	})
	return l
}

// Allowed is a limit of a user, and how much of it is used.
type Allowed struct {
	policy.LimitKind
	Limited bool
	Value   int64 // in the unit of the kind; of a share in PEs
	Counted bool  // Used is known
	Used    int64
	// Held is the part of Used that reservations have which are not over, of a budget.
	Held int64
	// Frees is when something of Used is given back or counts no longer as promised, 0 if that is not known.
	Frees berth.Time
	// Resource is the pool of a share.
	Resource berth.ResourceID
}

// Quota is the limits of a user.
type Quota struct {
	User   string
	Role   Role
	Limits []Allowed // in the order of policy.LimitKinds, a share for each pool
	// Sites are those at which was counted what others have who are asked about by a principal limited to them;
	// nil if all count.
	Sites []string
}

// SharedQuota is the limits of an account, a QOS or a partition, which count all that is promised in
// it.
type SharedQuota struct {
	Account, QOS, Partition string    // one of them
	Limits                  []Allowed // as in a Quota, of those that an account, a QOS or a partition may have
}

// SharedQuotas returns the limits of the accounts, the QOS and the partitions that have any, for users,
// as they count now. Where each account or QOS has some, those are listed that are named or have something. The error is of code Denied unless an operator of all sites asks.
func (h *Host) SharedQuotas(ctx context.Context, by Principal) ([]SharedQuota, error) {
	if !by.Can(Operator) || !by.Sites.All() {
		return nil, berth.Errorf(berth.Denied, "role", "only an operator of all sites sees the limits of accounts, QOS and partitions; ask with such a token")
	}
	return countedOrSeen(ctx, h, by.User, func(answer func([]SharedQuota, error)) {
		h.awake()
		limits, e := h.core.config.Limits, h.core.engine
		var list []SharedQuota
		accounts, qualities, partitions := e.Limited()
		for _, name := range accounts {
			q := sharedQuota(policy.Scope{Account: name}, limits, e.AccountUsage(name))
			list = append(list, q)
		}
		for _, name := range qualities {
			q := sharedQuota(policy.Scope{QOS: name}, limits, e.QOSUsage(name))
			list = append(list, q)
		}
		for _, name := range partitions {
			q := sharedQuota(policy.Scope{Partition: name}, limits, e.PartitionUsage(name))
			list = append(list, q)
		}
		h.whenDurable(func(err error) { answer(list, err) })
	}, func(m *model) []SharedQuota { return h.sharedQuotasSeen(m, "", limitedSeen(m)) })
}

// AccountQuotas returns the limits of those accounts that have any and that requests of the principal may name, where there are projects, or have named which
// are live or remembered, as they count now for all who use them: for who is limited to sites none. Cost: O(requests that
// are live or remembered), beside the loop.
func (h *Host) AccountQuotas(ctx context.Context, by Principal) ([]SharedQuota, error) {
	if by.User == "" || !by.Sites.All() {
		return nil, nil
	}
	m, err := h.seen()
	if err != nil {
		return nil, err
	}
	own, err := h.OwnProjects(ctx, by.User)
	if err != nil {
		return nil, err
	}
	names := own.Accounts
	m.cards.Scan(func(k *card) bool {
		if name := k.request.Account; k.request.User == by.User && name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return true
	})
	if len(names) == 0 {
		return nil, nil
	}
	slices.Sort(names)
	return countedOrSeen(ctx, h, by.User, func(answer func([]SharedQuota, error)) {
		h.awake()
		limits := h.core.config.Limits
		limited := limits.Accounts()
		var list []SharedQuota
		for _, name := range names {
			if policy.Named(limited, name) {
				list = append(list, sharedQuota(policy.Scope{Role: string(by.Role), Account: name}, limits, h.core.engine.AccountUsage(name)))
			}
		}
		h.whenDurable(func(err error) { answer(list, err) })
	}, func(m *model) []SharedQuota {
		var holders []policy.Scope
		for _, name := range names {
			if policy.Named(m.config.Limits.Accounts(), name) {
				holders = append(holders, policy.Scope{Account: name})
			}
		}
		return h.sharedQuotasSeen(m, by.Role, holders)
	})
}

// sharedQuota is the quota of an account, a QOS or a partition.
func sharedQuota(of policy.Scope, limits policy.Limits, usage engine.Usage) SharedQuota {
	everywhere := func(string) bool { return true }
	return SharedQuota{Account: of.Account, QOS: of.QOS, Partition: of.Partition, Limits: countedLimits(limits.For(of), &usage, true, of.Takes, everywhere)}
}

// countedLimits lists the limits of an allowance of some kinds, with what counts towards each: shares of the pools of
// some sites. What the engine counts only where there are limits is marked so.
func countedLimits(allowance policy.Allowance, usage *engine.Usage, counted bool, takes func(policy.LimitName) bool, at func(site string) bool) (list []Allowed) {
	for _, kind := range policy.LimitKinds {
		if !takes(kind.Name) {
			continue
		}
		a := Allowed{LimitKind: kind}
		a.Value, a.Limited = allowance.Limit(kind.Name)
		switch kind.Name {
		case policy.LimitReservations:
			a.Counted, a.Used = counted, int64(usage.Open)
		case policy.LimitActive:
			a.Counted, a.Used, a.Frees = true, int64(usage.Live), usage.FirstEnd
		case policy.LimitNoShow:
			a.Counted, a.Used = a.Limited, int64(usage.Unused) // is counted where there is such a limit
		case policy.LimitPESeconds:
			a.Counted, a.Used, a.Frees = true, usage.PESeconds, usage.FirstEnd
		case policy.LimitBudget:
			a.Counted, a.Used = a.Limited, usage.Charged.All
			a.Held = usage.Charged.Live
		case policy.LimitMonthBudget:
			a.Counted, a.Used = a.Limited, usage.Month.All
			if a.Held = usage.Month.Live; a.Used > 0 && a.Counted {
				a.Frees = usage.NextMonth
			}
		case policy.LimitShare:
			for _, p := range usage.Pools {
				if !at(p.Resource.Site) {
					continue
				}
				a.Resource, a.Counted, a.Used = p.Resource, counted, int64(p.Peak)
				most, limited := allowance.ShareOf(p.PEs)
				a.Value, a.Limited = int64(most), limited
				list = append(list, a)
			}
			continue
		}
		list = append(list, a)
	}
	return list
}

// Quotas returns the limits of some users who are asked for by roles, as they count now,
// those of a few users at the same time. Of others than the principal no more is counted than they may see. The error is of code Denied about anyone else, unless by an operator. Cost: O(what
// those users have), and of requests that are live or remembered for a principal who is limited to sites.
func (h *Host) Quotas(ctx context.Context, by Principal, of []Principal) ([]Quota, error) {
	for i := range of {
		if !by.Can(Operator) && of[i].User != by.User {
			return nil, berth.Errorf(berth.Denied, "user", "%q may not see the limits of %q", by.User, of[i].User)
		}
	}
	all := make([]Quota, 0, len(of))
	for some := range slices.Chunk(of, quotasAtOnce) {
		list, err := countedOrSeen(ctx, h, by.User, func(answer func([]Quota, error)) {
			h.awake() // what is over by now does not count
			list := make([]Quota, len(some))
			for i := range some {
				list[i] = h.quota(by, some[i])
			}
			h.whenDurable(func(err error) { answer(list, err) })
		}, func(m *model) []Quota { return h.quotasSeen(m, by, some) })
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	if !by.Sites.All() {
		return all, h.countSeen(by, all)
	}
	return all, nil
}

// countSeen counts in the limits of others what a principal may see, as the last durable record has it.
func (h *Host) countSeen(by Principal, list []Quota) error {
	m, err := h.seen()
	if err != nil {
		return err
	}
	used := map[string]*engine.Usage{}
	for i := range list {
		if list[i].User != by.User {
			used[list[i].User] = new(engine.Usage)
		}
	}
	m.cards.Scan(func(k *card) bool {
		if k.end != "" || !k.seenBy(by) {
			return true
		}
		for _, holder := range [...]string{k.request.User, k.request.Owner} {
			u := used[holder]
			if u == nil {
				continue
			}
			if u.Open++; k.promise != nil && !k.request.IsJob() {
				u.Live++
				for i := range k.promise.Allotments {
					a := &k.promise.Allotments[i]
					u.PESeconds = berth.AddAreas(u.PESeconds, berth.Area(a.NPE, a.End.Sub(a.Start)))
				}
			}
		}
		return true
	})
	for i := range list {
		q := &list[i]
		u := used[q.User]
		if u == nil {
			continue
		}
		q.Sites = by.Sites.Names()
		for k := range q.Limits {
			a := &q.Limits[k]
			switch {
			case !a.Counted:
			case a.Name == policy.LimitReservations:
				a.Used = int64(u.Open)
			case a.Name == policy.LimitActive:
				a.Used = int64(u.Live)
			case a.Name == policy.LimitPESeconds:
				a.Used = u.PESeconds
			case a.Name == policy.LimitRemembered, a.Name == policy.LimitBudget, a.Name == policy.LimitMonthBudget: // which say nothing of sites
				a.Counted, a.Used, a.Held = false, 0, 0
			}
			a.Frees = 0
		}
	}
	return nil
}

// quotasAtOnce is of how many users the limits are looked at in one go, for which
// everybody waits: those of a user who has much take some tenths of a millisecond.
const quotasAtOnce = 8

// quota is what Quotas returns of one user.
func (h *Host) quota(by, of Principal) Quota {
	usage := h.core.engine.Usage(of.User)
	q := quotaOf(&h.core.config, by, of, &usage)
	for i := range q.Limits {
		if a := &q.Limits[i]; a.Name == policy.LimitRemembered {
			a.Counted, a.Used = true, h.core.keys.used(of.User)
		}
	}
	return q
}

// quotaOf is the limits of a user who has something, but for what the service remembers of them.
func quotaOf(config *engine.Config, by, of Principal, usage *engine.Usage) Quota {
	counted := len(config.Limits) > 0 // else the engine does not count for each user
	every := func(policy.LimitName) bool { return true }
	return Quota{User: of.User, Role: of.Role, Limits: countedLimits(config.Limits.Of(string(of.Role), of.User), usage, counted, every, by.Sites.Has)}
}

// known returns what was asked under a key, as keys.find has it. What is under way is not on record yet: under its key
// nothing is known, and anything else is a conflict.
func (h *Host) known(a *asked) (*keyed, error) {
	most := int64(maxUserKeys)
	allowance := h.core.config.Limits.Of(string(a.by.Role), a.by.User)
	if limit, limited := allowance.Limit(policy.LimitRemembered); limited {
		most = limit
	}
	if u := h.underway[a.key.name()]; u != nil && u.body != a.key.Body {
		return nil, usedBefore(a.key.Name)
	}
	return h.core.keys.find(a.key, most)
}

// readConfig reads a configuration from a record or a snapshot. Those of before the
// table of limits had a quota for every user alike.
func readConfig(text []byte) (engine.Config, error) {
	var config engine.Config
	if err := json.Unmarshal(text, &config); err != nil {
		return config, err
	}
	var before struct {
		Quota struct {
			Reservations int64 `json:"reservations"`
			PESeconds    int64 `json:"pe_seconds"`
		} `json:"quota"`
	}
	if err := json.Unmarshal(text, &before); err != nil {
		return config, err
	}
	values := map[policy.LimitName]int64{}
	if n := before.Quota.Reservations; n > 0 {
		values[policy.LimitActive] = n
	}
	if n := before.Quota.PESeconds; n > 0 {
		values[policy.LimitPESeconds] = n
	}
	config.Limits = append(policy.EachUser(values), config.Limits...)
	return config, nil
}

// Users returns who has something that is not over, in order. The error is of code
// Denied unless an operator asks. Cost: O(requests that are live or remembered).
func (h *Host) Users(_ context.Context, by Principal) ([]string, error) {
	if !by.Can(Operator) {
		return nil, berth.Errorf(berth.Denied, "role", "only an operator sees the users; ask with an operator's token")
	}
	m, err := h.seen()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	m.cards.Scan(func(k *card) bool {
		if k.end == "" && k.request.User != "" && k.seenBy(by) {
			seen[k.request.User] = true
		}
		return true
	})
	users := make([]string, 0, len(seen))
	for user := range seen {
		users = append(users, user)
	}
	slices.Sort(users)
	return users, nil
}
