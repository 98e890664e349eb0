package state

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// Holder is those whose reservations are counted together: a user with their service accounts, the requests of an
// account or a QOS, those that a partition takes, or everyone.
type Holder struct {
	kind holderKind
	name string
}

type holderKind uint8

const (
	ofUser holderKind = iota
	ofAccount
	ofPartition
	ofQOS
	ofEveryone
	holderKinds
)

// OfUser is a user as a holder, of what is theirs and of what they own.
func OfUser(user string) Holder { return Holder{ofUser, user} }

// OfAccount is the requests that name an account.
func OfAccount(account string) Holder { return Holder{ofAccount, account} }

// OfQOS is the requests that name a QOS.
func OfQOS(qos string) Holder { return Holder{ofQOS, qos} }

// OfPartition is what the partitions of a name take, at whatever sites and in whatever
// pools they are: requests that name it, and where it is the default those that name none.
func OfPartition(name string) Holder { return Holder{ofPartition, name} }

// Everyone is all that have promises, together.
func Everyone() Holder { return Holder{kind: ofEveryone} }

// Account returns the name of an account, "" if the holder is none.
func (h Holder) Account() string { return h.nameOf(ofAccount) }

// QOS returns the name of a QOS, "" if the holder is none.
func (h Holder) QOS() string { return h.nameOf(ofQOS) }

// Partition returns the name of a partition, "" if the holder is none.
func (h Holder) Partition() string { return h.nameOf(ofPartition) }

// NamedBy reports whether what is limited for a holder counts for a request: that of an account or a QOS does if it names that.
func (h Holder) NamedBy(r *berth.Request) bool {
	switch h.kind {
	case ofAccount:
		return h.name == r.Account
	case ofQOS:
		return h.name == r.QOS
	}
	return true
}

func (h Holder) nameOf(kind holderKind) string {
	if h.kind != kind {
		return ""
	}
	return h.name
}

// text names the holder for messages.
func (h Holder) text() string {
	return [...]string{"user", "account", "partition", "QOS", "everyone"}[h.kind] + " \"" + h.name + "\""
}

// byHolder keeps something for each holder.
type byHolder[V any] [holderKinds]map[string]V

func newByHolder[V any]() (b byHolder[V]) {
	for kind := range b {
		b[kind] = map[string]V{}
	}
	return b
}

// len returns for how many holders something is kept.
func (b byHolder[V]) len() (n int) {
	for kind := range b {
		n += len(b[kind])
	}
	return n
}

// sorted returns the holders for which something is kept, in order.
func (b byHolder[V]) sorted() (list []Holder) {
	for kind := range b {
		for name := range b[kind] {
			list = append(list, Holder{holderKind(kind), name})
		}
	}
	slices.SortFunc(list, func(a, b Holder) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	return list
}

// holding tells which holders a reservation has beside its user. Of accounts, QOS and
// partitions only those with limits are holders: the others are not counted.
type holding struct {
	sites                           []berth.Site
	accounts, qualities, partitions []string // policy.Every stands for all
	everyone                        bool
	prices                          policy.Prices
	list                            []Holder // scratch space of beside
}

func newHolding(config *Config) holding {
	return holding{sites: config.Sites, accounts: config.Accounts, qualities: config.Qualities, partitions: config.Partitions, everyone: config.Everyone, prices: config.Prices}
}

// named returns those holders that a request names beside its user: its owner, its account and its QOS.
func (g *holding) named(r *berth.Request, list []Holder) []Holder {
	if r.Owner != "" {
		list = append(list, OfUser(r.Owner))
	}
	if r.Account != "" && policy.Named(g.accounts, r.Account) {
		list = append(list, OfAccount(r.Account))
	}
	if r.QOS != "" && policy.Named(g.qualities, r.QOS) {
		list = append(list, OfQOS(r.QOS))
	}
	return list
}

// beside returns the holders of a reservation but for its user, each once. It is valid
// until it is called again.
func (g *holding) beside(r *berth.Reservation) []Holder {
	g.list = g.appendBeside(g.list[:0], r)
	return g.list
}

// appendBeside is beside, behind a list of the caller's.
func (g *holding) appendBeside(list []Holder, r *berth.Reservation) []Holder {
	list = g.named(r.Request, list)
	if g.everyone {
		list = append(list, Everyone())
	}
	if len(g.partitions) > 0 {
		for i := range r.Allotments {
			name := g.partition(r.Request, r.Allotments[i].Resource)
			if h := OfPartition(name); name != "" && policy.Named(g.partitions, name) && !slices.Contains(list, h) {
				list = append(list, h)
			}
		}
	}
	return list
}

// has reports whether what a request of a holder has in a pool counts for the holder.
func (g *holding) has(h Holder, r *berth.Request, pool berth.ResourceID) bool {
	return h.kind != ofPartition || g.partition(r, pool) == h.name
}

// partition returns the name of the partition that takes a request in a pool, "" if none
// does.
func (g *holding) partition(r *berth.Request, pool berth.ResourceID) string {
	return partitionOf(g.sites, r, pool)
}

func partitionOf(sites []berth.Site, r *berth.Request, pool berth.ResourceID) string {
	for i := range sites {
		if sites[i].Name != pool.Site {
			continue
		}
		if p, _ := sites[i].PartitionOf(pool.Name, r.Partition, false); p != nil {
			return p.Name
		}
	}
	return ""
}

// RateOf returns what a request is charged for a PE-second in a pool.
func RateOf(sites []berth.Site, prices policy.Prices, r *berth.Request, pool berth.ResourceID) policy.Rate {
	if len(prices) == 0 {
		return policy.FullRate
	}
	return prices.Of(pool.Site, partitionOf(sites, r, pool), r.QOS)
}
