package policy_test

import (
	"cmp"
	"fmt"
	"iter"
	"math/big"
	"slices"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// plainGroup is what a round serves together: the requests of some users in
// their order; each user has at most a share of them.
type plainGroup struct {
	merged []policy.Pending
	share  int
}

// plainGroups is every order in its plain form: sort everything.
func plainGroups(name string, pending []policy.Pending, o policy.OrderOptions, now berth.Time) []plainGroup {
	const all = 1 << 30
	var compare func(a, b policy.Pending) int
	switch name {
	case "fcfs":
		compare = func(a, b policy.Pending) int { return cmp.Compare(a.Request.Arrival, b.Request.Arrival) }
	case "sjf":
		compare = func(a, b policy.Pending) int { return cmp.Compare(a.Length, b.Length) }
	case "ljf":
		compare = func(a, b policy.Pending) int { return cmp.Compare(b.Length, a.Length) }
	case "edf":
		compare = func(a, b policy.Pending) int { return cmp.Compare(a.Request.Deadline, b.Request.Deadline) }
	case "arwp":
		compare = func(policy.Pending, policy.Pending) int { return 0 }
	case "priority":
		within := plainInUser(o, policy.FirstInUser)
		compare = func(a, b policy.Pending) int {
			byAge := plainPriority(b.Priority, b.Request.Arrival, o, now).Cmp(plainPriority(a.Priority, a.Request.Arrival, o, now))
			return cmp.Or(byAge, within(a, b))
		}
	case "dpsar":
		return plainDPSAR(pending, o, now)
	}
	sorted := slices.Clone(pending)
	slices.SortFunc(sorted, func(a, b policy.Pending) int {
		return cmp.Or(compare(a, b), cmp.Compare(a.Sequence, b.Sequence))
	})
	return []plainGroup{{sorted, all}}
}

// plainPriority is prio + waited/A.
func plainPriority(priority int, since berth.Time, o policy.OrderOptions, now berth.Time) *big.Rat {
	x := big.NewRat(int64(priority), 1)
	if o.Aging > 0 {
		x.Add(x, big.NewRat(int64(now-since), int64(o.Aging)))
	}
	return x
}

func plainInUser(o policy.OrderOptions, fallback policy.InUser) func(a, b policy.Pending) int {
	switch cmp.Or(o.InUser, fallback) {
	case policy.FirstInUser:
		return func(a, b policy.Pending) int { return cmp.Compare(a.Request.Arrival, b.Request.Arrival) }
	case policy.LongestInUser:
		return func(a, b policy.Pending) int { return cmp.Compare(b.Length, a.Length) }
	}
	return func(a, b policy.Pending) int { return cmp.Compare(a.Length, b.Length) }
}

// plainDPSAR is specification 3, b.1, line by line.
func plainDPSAR(pending []policy.Pending, o policy.OrderOptions, now berth.Time) []plainGroup {
	type user struct {
		sequence uint64
		priority *big.Rat
		requests []policy.Pending // G_u
	}
	limit := func(n int) int {
		if n == 0 {
			return 1 << 30
		}
		return n
	}
	significant := big.NewRat(int64(o.Scale), 2)
	if o.SD != nil {
		significant = big.NewRat(int64(*o.SD), 1000)
	}
	within := plainInUser(o, policy.ShortestInUser)

	bySequence := map[uint64][]policy.Pending{}
	for _, p := range pending {
		bySequence[p.UserSequence] = append(bySequence[p.UserSequence], p)
	}
	var users []user
	for sequence, requests := range bySequence {
		oldest := requests[0].Request.Arrival
		for _, p := range requests {
			oldest = min(oldest, p.Request.Arrival)
		}
		slices.SortFunc(requests, func(a, b policy.Pending) int {
			return cmp.Or(within(a, b), cmp.Compare(a.Sequence, b.Sequence))
		})
		users = append(users, user{sequence, plainPriority(requests[0].Priority, oldest, o, now), requests})
	}
	slices.SortFunc(users, func(a, b user) int {
		return cmp.Or(b.priority.Cmp(a.priority), cmp.Compare(a.sequence, b.sequence))
	})
	near := func(i int) bool { // users i and i+1
		if i+1 >= len(users) {
			return false
		}
		gap := new(big.Rat).Sub(users[i].priority, users[i+1].priority)
		return (o.SD != nil && *o.SD == policy.AnyGap) || gap.Cmp(significant) <= 0
	}
	class := plainClasses(pending, o)

	var groups []plainGroup
	for i := 0; i < len(users); {
		last := i + 1
		if near(i) {
			last = i + 2
			for o.Chain && near(last-1) {
				last++
			}
		}
		group := plainGroup{share: limit(o.NUJP)}
		if last == i+1 {
			group.share = limit(o.N)
		}
		position := map[uint64]int{}
		for at, u := range users[i:last] {
			position[u.sequence] = at // priority descending, then the user's sequence
			group.merged = append(group.merged, u.requests...)
		}
		slices.SortStableFunc(group.merged, func(a, b policy.Pending) int {
			between := within(a, b)
			if o.LengthClasses > 0 {
				between = within(policy.Pending{Length: class(a)}, policy.Pending{Length: class(b)})
			}
			return cmp.Or(between, cmp.Compare(position[a.UserSequence], position[b.UserSequence]))
		})
		groups = append(groups, group)
		i = last
	}
	return groups
}

// plainClasses numbers the k equal parts between the least and the most
// pending length by counting the upper ends that a length has reached.
func plainClasses(pending []policy.Pending, o policy.OrderOptions) func(policy.Pending) int64 {
	if len(pending) == 0 {
		return nil
	}
	least, most := pending[0].Length, pending[0].Length
	for _, p := range pending {
		least, most = min(least, p.Length), max(most, p.Length)
	}
	k := int64(o.LengthClasses)
	return func(p policy.Pending) int64 {
		var class int64
		for class+1 < k && least < most && (p.Length-least)*k >= (class+1)*(most-least) {
			class++
		}
		return class
	}
}

// plainRound splits what is pending into what a round yields and the rest.
func plainRound(name string, pending []policy.Pending, o policy.OrderOptions, now berth.Time) (out, rest []policy.Pending) {
	for _, group := range plainGroups(name, pending, o, now) {
		taken := map[uint64]int{}
		for _, p := range group.merged {
			if taken[p.UserSequence]++; taken[p.UserSequence] <= group.share {
				out = append(out, p)
			} else {
				rest = append(rest, p)
			}
		}
	}
	return out, rest
}

// plainDiscards is what the rest becomes.
func plainDiscards(rest []policy.Pending, o policy.OrderOptions) []policy.Pending {
	if o.Overflow == policy.Discard {
		return rest
	}
	return nil
}

// newQueue returns a queue of the table with something in it.
func newQueue(name string, o policy.OrderOptions, pending []policy.Pending) policy.Queue {
	row, ok := policy.QueueNamed(name)
	if !ok {
		panic("no queue " + name)
	}
	q := row.New(o)
	for _, p := range pending {
		q.Add(p)
	}
	return q
}

func collect(seq iter.Seq[policy.Pending]) []policy.Pending { return slices.Collect(seq) }

// names writes requests by their ids.
func names(pending []policy.Pending) string {
	var ids []string
	for _, p := range pending {
		ids = append(ids, p.Request.ID)
	}
	return fmt.Sprint(ids)
}

// somePending draws requests of few users, with many ties; sequences are
// unique but in no order, and arrivals need not follow them.
func somePending(t *rapid.T, users, most int) []policy.Pending {
	priorities := rapid.SliceOfN(rapid.IntRange(0, 9), users, users).Draw(t, "priorities")
	sequences := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 1000), 0, most, rapid.ID).Draw(t, "sequences")
	pending := make([]policy.Pending, len(sequences))
	for i, sequence := range sequences {
		pending[i] = someRequest(t, sequence, priorities)
	}
	return pending
}

func someRequest(t *rapid.T, sequence uint64, priorities []int) policy.Pending {
	user := rapid.IntRange(0, len(priorities)-1).Draw(t, "user")
	arrival := berth.Time(rapid.IntRange(0, 20).Draw(t, "arrival"))
	length := rapid.OneOf(rapid.Int64Range(1, 4), rapid.Int64Range(1, 100)).Draw(t, "length")
	r := berth.Rigid(fmt.Sprintf("u%d/%d", user, sequence), arrival, arrival,
		arrival+berth.Time(length)+berth.Time(rapid.IntRange(0, 9).Draw(t, "slack")), 1, berth.Duration(length))
	return policy.Pending{
		Request: &r, Sequence: sequence, Length: length,
		Priority: priorities[user], UserSequence: uint64(user),
	}
}

func someOptions(t *rapid.T) policy.OrderOptions {
	o := policy.OrderOptions{
		Scale:    rapid.IntRange(0, 10).Draw(t, "scale"),
		N:        rapid.IntRange(0, 3).Draw(t, "n"),
		NUJP:     rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "n_ujp"),
		Overflow: rapid.SampledFrom([]policy.Overflow{"", policy.Defer, policy.Discard}).Draw(t, "overflow"),
		Chain:    rapid.Bool().Draw(t, "chain"),
		InUser: rapid.SampledFrom([]policy.InUser{
			"", policy.ShortestInUser, policy.FirstInUser, policy.LongestInUser,
		}).Draw(t, "in_user"),
		Aging: rapid.SampledFrom([]berth.Duration{0, 0, 1, 3, 8}).Draw(t, "aging"),
	}
	if rapid.Bool().Draw(t, "with sd") {
		o.SD = new(rapid.OneOf(
			rapid.Map(rapid.IntRange(-2, 18), func(halves int) policy.Levels { return policy.Levels(halves) * 500 }),
			rapid.SampledFrom([]policy.Levels{-1, 333, 334, 999, 1001, policy.AnyGap}),
		).Draw(t, "sd"))
	}
	if o.InUser != policy.FirstInUser {
		o.LengthClasses = rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(t, "length_classes")
	}
	return o
}

// pull begins a round, or what it discards.
func pull(q policy.Queue, discards bool) (next func() (policy.Pending, bool), stop func()) {
	if discards {
		return iter.Pull(q.Discards(20))
	}
	return iter.Pull(q.Round(20))
}
