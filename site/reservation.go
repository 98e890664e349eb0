package site

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site/hostlist"
)

// Reservation is a promise as it is to be at a site. Exactly one of Shares,
// Nodes and Cores says what it holds: these nodes or cores, or a number of them
// which the site may choose from the partition.
type Reservation struct {
	Name      Name        `json:"name"`
	Start     berth.Time  `json:"start"`
	End       berth.Time  `json:"end"`
	Shares    []Share     `json:"shares,omitempty"`
	Nodes     berth.Count `json:"nodes,omitempty"`
	Cores     berth.Count `json:"cores,omitempty"`
	Partition string      `json:"partition,omitempty"`
	Users     []string    `json:"users,omitempty"` // who may use it; a user or an account is needed
	Accounts  []string    `json:"accounts,omitempty"`
	Groups    []string    `json:"groups,omitempty"`   // whose members may use it, instead of users
	Licences  []Licence   `json:"licences,omitempty"` // held with it, by name
}

// Licence is a number of licences of one program, under the name that the site has for it.
type Licence struct {
	Name  string      `json:"name"`
	Count berth.Count `json:"count"`
}

// String returns the name and the count, such as matlab:4.
func (l Licence) String() string { return fmt.Sprintf("%s:%d", l.Name, l.Count) }

// licencesText returns licences in the order of their names.
func licencesText(licences []Licence) string {
	texts := make([]string, len(licences))
	for i := range licences {
		texts[i] = licences[i].String()
	}
	return sortedText(texts)
}

// Check returns an *berth.Error of code Invalid if the reservation contradicts
// itself or holds a name that no site takes, and nil otherwise.
func (r *Reservation) Check() error {
	kinds := 0
	for _, has := range []bool{len(r.Shares) > 0, r.Nodes > 0, r.Cores > 0} {
		if has {
			kinds++
		}
	}
	switch {
	case !ValidWord(string(r.Name)) || strings.Contains(string(r.Name), "."):
		return berth.Errorf(berth.Invalid, "name", "%q; want letters, digits, dashes and underscores", r.Name)
	case !r.Start.Valid() || !r.End.Valid() || r.End <= r.Start:
		return berth.Errorf(berth.Invalid, "end", "%d; want a time after the start %d", r.End, r.Start)
	case kinds != 1 || r.Nodes < 0 || r.Cores < 0:
		return berth.Errorf(berth.Invalid, "shares", "%d shares, %d nodes, %d cores; want one of the three", len(r.Shares), r.Nodes, r.Cores)
	case r.Partition != "" && !ValidWord(r.Partition):
		return berth.Errorf(berth.Invalid, "partition", "%q; want a name of letters, digits, dashes, underscores and points", r.Partition)
	case len(r.Users)+len(r.Accounts)+len(r.Groups) == 0:
		return berth.Errorf(berth.Invalid, "users", "empty; name at least one user, account or group")
	case len(r.Users) > 0 && len(r.Groups) > 0:
		return berth.Errorf(berth.Invalid, "groups", "%s beside users; want one of the two", strings.Join(r.Groups, ","))
	}
	seen := make(map[string]bool, len(r.Shares))
	for i := range r.Shares {
		node := r.Shares[i].Node
		if !hostlist.ValidName(node) || seen[node] || r.Shares[i].Partial {
			return berth.Errorf(berth.Invalid, "shares", "node %q; want node names, each once, whole or with numbers of cores", node)
		}
		seen[node] = true
	}
	for _, l := range r.Licences {
		if !ValidWord(l.Name) || l.Count < 1 {
			return berth.Errorf(berth.Invalid, "licences", "%q, %d of them; want a name of letters, digits, dashes, underscores and points, and at least 1", l.Name, l.Count)
		}
	}
	for _, who := range r.Users {
		if !ValidUser(who) {
			return berth.Errorf(berth.Invalid, "users", "%q; %s", who, UserForm)
		}
	}
	for _, who := range slices.Concat(r.Accounts, r.Groups) {
		if !ValidWord(who) {
			return berth.Errorf(berth.Invalid, "users", "%q; want a name of letters, digits, dashes, underscores and points", who)
		}
	}
	return nil
}

// Differences says in words what of the booking is not as the reservation wants
// it at the time now; nothing means that it is as promised. A booking that was
// made after its start begins when it was made, which is no difference; nor is
// that a second before its start, for clocks that are read in ticks lag behind. What is active has begun,
// even if the site's clock alone says so; and if it was to have begun by now, it is no difference that it did
// earlier, while a change was under way: that cannot be changed, and costs nothing any more. Which
// nodes the site chose is none either, nor which cores of a node: how many they
// are on all nodes together is compared.
func (r *Reservation) Differences(have *Booking, now berth.Time) []string {
	var found []string
	differ := func(what string, want, have any) {
		found = append(found, fmt.Sprintf("%s is %v, promised is %v", what, have, want))
	}
	if have.Active {
		now = max(now, have.Start)
	}
	least := r.Start
	if r.Start <= now {
		least--
	}
	begun := have.Active && r.Start <= now
	if have.Start < least && !begun || have.Start > max(r.Start, now) {
		differ("start", instant(r.Start), instant(have.Start))
	}
	if have.End != r.End {
		differ("end", instant(r.End), instant(have.End))
	}
	switch {
	case r.Nodes > 0 && berth.Count(len(have.Shares)) != r.Nodes:
		differ("number of nodes", r.Nodes, len(have.Shares))
	case r.Cores > 0 && have.Cores != r.Cores:
		differ("number of cores", r.Cores, have.Cores)
	case len(r.Shares) > 0 && !sameNodes(r.Shares, have.Shares):
		differ("nodes", sortedText(NodesOf(r.Shares)), sortedText(NodesOf(have.Shares)))
	case len(r.Shares) > 0 && allWhole(r.Shares) != allWhole(have.Shares):
		differ("whole nodes", allWhole(r.Shares), allWhole(have.Shares))
	case len(r.Shares) > 0 && exactCores(r.Shares) > 0 && exactCores(r.Shares) != have.Cores:
		differ("number of cores", exactCores(r.Shares), have.Cores)
	}
	// Where no partition was asked for, the site may have filled one in.
	if r.Partition != "" && r.Partition != have.Partition {
		differ("partition", r.Partition, have.Partition)
	}
	if !sameNames(r.Users, have.Users) {
		differ("users", sortedText(r.Users), sortedText(have.Users))
	}
	if !sameNames(r.Accounts, have.Accounts) {
		differ("accounts", sortedText(r.Accounts), sortedText(have.Accounts))
	}
	if !sameNames(r.Groups, have.Groups) {
		differ("groups", sortedText(r.Groups), sortedText(have.Groups))
	}
	if !slices.Equal(r.Licences, have.Licences) {
		if want, have := licencesText(r.Licences), licencesText(have.Licences); want != have {
			differ("licences", want, have)
		}
	}
	return found
}

func instant(t berth.Time) string { return time.Unix(int64(t), 0).UTC().Format(time.RFC3339) }

func allWhole(shares []Share) bool {
	return !slices.ContainsFunc(shares, func(s Share) bool { return s.Partial || !s.Cores.Empty() })
}

// exactCores is how many cores the shares have, 0 if one of them is a whole node.
func exactCores(shares []Share) berth.Count {
	var total berth.Count
	for i := range shares {
		n := shares[i].Cores.Count()
		if n == 0 {
			return 0
		}
		total += n
	}
	return total
}

// sameNames reports whether two lists have the same names, in whatever order and however often.
func sameNames(a, b []string) bool {
	return slices.Equal(a, b) || sortedText(a) == sortedText(b)
}

// sameNodes reports whether two lists of shares are of the same nodes.
func sameNodes(a, b []Share) bool {
	return slices.EqualFunc(a, b, func(a, b Share) bool { return a.Node == b.Node }) || sortedText(NodesOf(a)) == sortedText(NodesOf(b))
}

func sortedText(items []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(items))), ",")
}

func sortBookings(bs []Booking) {
	slices.SortFunc(bs, func(a, b Booking) int { return cmp.Compare(a.Name, b.Name) })
}
