package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// While the journal cannot be written, what the engine has decided since is on no record and must not be shown. Quotas are then counted from
// what is shown, as the last durable record has it. What was charged and what went unused is known to the engine alone, and is not counted.

// quotaPatience is how long those who ask for quotas wait for what they look at to become durable before it is looked at again whether it can.
const quotaPatience = 2 * time.Second

// countedOrSeen is call for quotas, or what otherwise counts from what is shown while the journal cannot be written.
func countedOrSeen[T any](ctx context.Context, h *Host, who string, count func(answer func(T, error)), seen func(*model) T) (T, error) {
	for {
		if h.failing.Load() {
			m, err := h.seen()
			if err != nil {
				var none T
				return none, err
			}
			return seen(m), nil
		}
		patience := time.NewTimer(quotaPatience)
		value, err := callUntil(ctx, h, who, patience.C, count)
		patience.Stop()
		if !errors.Is(err, errPatience) {
			return value, err
		}
	}
}

// isCharge reports whether a limit is of what the engine alone counts.
func isCharge(name policy.LimitName) bool {
	switch name {
	case policy.LimitNoShow, policy.LimitBudget, policy.LimitMonthBudget, policy.LimitRemembered:
		return true
	}
	return false
}

// uncharged marks as not counted what is not known of what is shown.
func uncharged(list []Allowed) {
	for i := range list {
		if a := &list[i]; isCharge(a.Name) {
			a.Counted, a.Used, a.Held, a.Frees = false, 0, 0, 0
		}
	}
}

// seenUses is what some holders have, counted from what is shown. A holder is a scope without a role.
type seenUses struct {
	now   berth.Time
	sites []berth.Site
	of    map[policy.Scope]*seenUse
}

type seenUse struct {
	engine.Usage
	card  *card // that was counted last
	steps map[berth.ResourceID][]seenStep
}

// seenStep is a change of how many PEs are promised.
type seenStep struct {
	at  berth.Time
	npe berth.Count
}

// usesSeen counts what some holders have. Cost: O(requests that are live or remembered).
func (h *Host) usesSeen(m *model, holders []policy.Scope) *seenUses {
	s := &seenUses{now: h.Now(), sites: m.config.Sites, of: make(map[policy.Scope]*seenUse, len(holders))}
	for _, holder := range holders {
		s.of[holder] = &seenUse{steps: map[berth.ResourceID][]seenStep{}}
	}
	m.cards.Scan(func(k *card) bool {
		if k.end == "" {
			s.count(k)
		}
		return true
	})
	return s
}

// count adds a card that is live to what its holders have.
func (s *seenUses) count(k *card) {
	r := k.request
	for _, holder := range [...]policy.Scope{{User: r.User}, {User: r.Owner}, {Account: r.Account}, {QOS: r.QOS}} {
		u := s.of[holder]
		if u == nil || u.card == k {
			continue
		}
		if u.open(k); k.promise == nil {
			continue
		}
		for i := range k.promise.Allotments {
			u.take(k, i, s.now)
		}
	}
	if k.promise == nil {
		return
	}
	for i := range k.promise.Allotments {
		a := &k.promise.Allotments[i]
		at := slices.IndexFunc(s.sites, func(site berth.Site) bool { return site.Name == a.Resource.Site })
		if at < 0 {
			continue
		}
		partition, _ := s.sites[at].PartitionOf(a.Resource.Name, r.Partition, false)
		if partition == nil {
			continue
		}
		if u := s.of[policy.Scope{Partition: partition.Name}]; u != nil {
			if u.card != k {
				u.open(k)
			}
			u.take(k, i, s.now)
		}
	}
}

// open counts a card, but not its PEs.
func (u *seenUse) open(k *card) {
	u.card = k
	if u.Open++; k.promise == nil || k.request.IsJob() {
		return
	}
	u.Live++
	if end := k.promise.End(); u.FirstEnd == 0 || end < u.FirstEnd {
		u.FirstEnd = end
	}
}

// take counts the PEs of a part of a promise.
func (u *seenUse) take(k *card, part int, now berth.Time) {
	a := &k.promise.Allotments[part]
	if k.request.IsJob() {
		return
	}
	u.PESeconds = berth.AddAreas(u.PESeconds, berth.Area(a.NPE, a.End.Sub(a.Start)))
	if a.End > now {
		u.steps[a.Resource] = append(u.steps[a.Resource], seenStep{max(a.Start, now), a.NPE}, seenStep{a.End, -a.NPE})
	}
}

// usage returns what a holder has, with all pools in the order of the configuration, of a partition those that have it.
func (s *seenUses) usage(holder policy.Scope) *engine.Usage {
	u := s.of[holder]
	for i := range s.sites {
		site := &s.sites[i]
		for k := range site.Pools {
			id, pes := berth.PoolID(site.Name, site.Pools[k].Name), site.Pools[k].PEs
			if holder.Partition != "" {
				p, has := site.PartitionOf(id.Name, holder.Partition, false)
				if !has {
					continue
				}
				if p != nil && !p.PEs.Empty() {
					pes = p.PEs.Count()
				}
			}
			u.Pools = append(u.Pools, engine.PoolUse{Resource: id, PEs: pes, Peak: peakOf(u.steps[id])})
		}
	}
	return &u.Usage
}

// peakOf returns the most PEs at any one time.
func peakOf(steps []seenStep) (most berth.Count) {
	slices.SortFunc(steps, func(a, b seenStep) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.npe, b.npe)) })
	n := berth.Count(0)
	for i := range steps {
		n += steps[i].npe
		most = max(most, n)
	}
	return most
}

// quotasSeen is Quotas of what is shown.
func (h *Host) quotasSeen(m *model, by Principal, of []Principal) []Quota {
	holders := make([]policy.Scope, len(of))
	for i := range of {
		holders[i] = policy.Scope{User: of[i].User}
	}
	uses, list := h.usesSeen(m, holders), make([]Quota, len(of))
	uses.each(holders, func(i int, usage *engine.Usage) {
		list[i] = quotaOf(m.config, by, of[i], usage)
		uncharged(list[i].Limits)
	})
	return list
}

// sharedQuotasSeen is the quotas of some accounts, QOS and partitions by what is shown.
func (h *Host) sharedQuotasSeen(m *model, role Role, holders []policy.Scope) []SharedQuota {
	list := make([]SharedQuota, len(holders))
	h.usesSeen(m, holders).each(holders, func(i int, usage *engine.Usage) {
		of := holders[i]
		of.Role = string(role)
		list[i] = sharedQuota(of, m.config.Limits, *usage)
		uncharged(list[i].Limits)
	})
	return list
}

// each tells what some holders have, one that is there twice as well.
func (s *seenUses) each(holders []policy.Scope, tell func(i int, usage *engine.Usage)) {
	known := map[policy.Scope]*engine.Usage{}
	for i, holder := range holders {
		if known[holder] == nil {
			known[holder] = s.usage(holder)
		}
		tell(i, known[holder])
	}
}

// limitedSeen returns the accounts, QOS and partitions that have limits: those that the table names and, where each has some, those that
// something which is not over is of, and all partitions.
func limitedSeen(m *model) (holders []policy.Scope) {
	limits := m.config.Limits
	accounts, qualities, partitions := limits.Accounts(), limits.Qualities(), limits.Partitions()
	add := func(list *[]string, name string) {
		if name != "" && slices.Contains(*list, policy.Every) && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	m.cards.Scan(func(k *card) bool {
		if k.end == "" {
			add(&accounts, k.request.Account)
			add(&qualities, k.request.QOS)
		}
		return true
	})
	for i := range m.config.Sites {
		for k := range m.config.Sites[i].Partitions {
			add(&partitions, m.config.Sites[i].Partitions[k].Name)
		}
	}
	for _, one := range []struct {
		names []string
		scope func(string) policy.Scope
	}{
		{accounts, func(name string) policy.Scope { return policy.Scope{Account: name} }},
		{qualities, func(name string) policy.Scope { return policy.Scope{QOS: name} }},
		{partitions, func(name string) policy.Scope { return policy.Scope{Partition: name} }},
	} {
		for _, name := range one.names {
			if name != policy.Every {
				holders = append(holders, one.scope(name))
			}
		}
	}
	return holders
}
