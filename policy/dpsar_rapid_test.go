package policy_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// round is a round of the fast form with what it leaves.
func round(options policy.OrderOptions, pending []policy.Pending) (out, discards []policy.Pending) {
	q := newQueue("dpsar", options, pending)
	return collect(q.Round(20)), collect(q.Discards(20))
}

// mostOf counts what each user has pending.
func mostOf(pending []policy.Pending) map[uint64]int {
	most := map[uint64]int{}
	for _, p := range pending {
		most[p.UserSequence]++
	}
	return most
}

// P1: yielded, deferred and discarded make up what is pending, each once.
func TestInvariantNothingIsLostOrDoubled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		options, pending := someOptions(t), somePending(t, 6, 30)
		options.Overflow = policy.Discard
		out, rest := round(options, pending)
		together := slices.Concat(out, rest)
		bySequence := func(a, b policy.Pending) int { return cmp.Compare(a.Sequence, b.Sequence) }
		slices.SortFunc(together, bySequence)
		slices.SortFunc(pending, bySequence)
		if !slices.Equal(together, pending) {
			t.Fatalf("%s and %s are not %s", names(out), names(rest), names(pending))
		}
		options.Overflow = policy.Defer
		if deferring, none := round(options, pending); !slices.Equal(deferring, out) || len(none) != 0 {
			t.Fatalf("deferring yields %s and discards %s, discarding yields %s", names(deferring), names(none), names(out))
		}
	})
}

// P2: what one user has comes shortest first, and nothing that stays is
// shorter than what comes.
func TestInvariantShortestFirstInUser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		options, pending := someOptions(t), somePending(t, 6, 30)
		options.InUser, options.Overflow = policy.ShortestInUser, policy.Discard
		out, rest := round(options, pending)
		last := map[uint64]int64{}
		for _, p := range slices.Concat(out, rest) { // what is discarded comes after, in order
			if p.Length < last[p.UserSequence] {
				t.Fatalf("%s: %s after one of length %d", names(out), p.Request.ID, last[p.UserSequence])
			}
			last[p.UserSequence] = p.Length
		}
	})
}

// P3, P4, P5: with the users in order, each gap above SD separates all that
// comes before it from all behind, who is alone between gaps has at most N in
// one stretch, and the others at most NUJP.
func TestInvariantGapsSeparate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		options, pending := someOptions(t), somePending(t, 6, 30)
		options.Aging = 0
		sd := int64(options.Scale) * 500
		if options.SD != nil {
			sd = int64(*options.SD)
		}
		out, _ := round(options, pending)

		priority := map[uint64]int{}
		var users []uint64
		for _, p := range pending {
			if _, seen := priority[p.UserSequence]; !seen {
				users = append(users, p.UserSequence)
			}
			priority[p.UserSequence] = p.Priority
		}
		slices.SortFunc(users, func(a, b uint64) int {
			return cmp.Or(cmp.Compare(priority[b], priority[a]), cmp.Compare(a, b))
		})
		gap := func(i int) bool { // below users[i]
			return i < 0 || i == len(users)-1 || int64(priority[users[i]]-priority[users[i+1]])*1000 > sd
		}
		first, last, count := map[uint64]int{}, map[uint64]int{}, map[uint64]int{}
		for at, p := range out {
			if count[p.UserSequence]++; count[p.UserSequence] == 1 {
				first[p.UserSequence] = at
			}
			last[p.UserSequence] = at
		}
		for i, u := range users {
			if count[u] == 0 {
				t.Fatalf("user %d has nothing in %s", u, names(out))
			}
			if gap(i) && i+1 < len(users) {
				for _, above := range users[:i+1] {
					for _, below := range users[i+1:] {
						if last[above] > first[below] {
							t.Fatalf("user %d is not wholly before user %d in %s", above, below, names(out))
						}
					}
				}
			}
			share := max(options.N, options.NUJP)
			if options.N == 0 || options.NUJP == 0 {
				share = len(pending)
			}
			if alone := gap(i-1) && gap(i); alone {
				if last[u]-first[u]+1 != count[u] {
					t.Fatalf("user %d is alone and does not come in one stretch in %s", u, names(out))
				}
				if share = options.N; share == 0 {
					share = len(pending)
				}
			}
			if count[u] > share {
				t.Fatalf("user %d has %d in %s, at most %d are theirs", u, count[u], names(out), share)
			}
		}
	})
}

// P6: the order in which requests come into the queue does not matter.
func TestInvariantOrderOfAddDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		options, pending := someOptions(t), somePending(t, 6, 30)
		out, rest := round(options, pending)
		again, restAgain := round(options, rapid.Permutation(pending).Draw(t, "permuted"))
		if !slices.Equal(out, again) || !slices.Equal(rest, restAgain) {
			t.Fatalf("%s became %s", names(out), names(again))
		}
	})
}

// P7: a constant added to all priorities changes nothing.
func TestInvariantPrioritiesAreRelative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		options, pending := someOptions(t), somePending(t, 6, 30)
		out, rest := round(options, pending)
		constant := rapid.IntRange(-1000, 1000).Draw(t, "constant")
		for i := range pending {
			pending[i].Priority += constant
		}
		again, restAgain := round(options, pending)
		if names(out) != names(again) || names(rest) != names(restAgain) {
			t.Fatalf("%s became %s", names(out), names(again))
		}
	})
}

// X5: with no significant difference at all and chains, DPSAR is shortest job
// first over everything; with every difference significant it is priority.
// Requests that the plain orders do not tell apart are left out: equal lengths
// there, users of equal priority here.
func TestX5(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pending := somePending(t, 6, 30)
		lengths := rapid.SliceOfNDistinct(rapid.Int64Range(1, 1000), len(pending), len(pending), rapid.ID).Draw(t, "lengths")
		constant := rapid.IntRange(-3, 3).Draw(t, "constant")
		for i := range pending {
			pending[i].Length = lengths[i]
			pending[i].Priority = int(pending[i].UserSequence)*5%7 + constant
		}
		same := func(what string, dpsar policy.OrderOptions, name string, options policy.OrderOptions) {
			got := collect(newQueue("dpsar", dpsar, pending).Round(20))
			want := collect(newQueue(name, options, pending).Round(20))
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %s, want %s", what, names(got), names(want))
			}
		}
		anything := policy.OrderOptions{SD: new(policy.AnyGap), Chain: true, Aging: rapid.SampledFrom([]berth.Duration{0, 8}).Draw(t, "aging")}
		same("SD=∞", anything, "sjf", policy.OrderOptions{})
		anything.InUser = policy.LongestInUser
		same("SD=∞, longest first", anything, "ljf", policy.OrderOptions{})
		for _, inUser := range []policy.InUser{policy.ShortestInUser, policy.FirstInUser, policy.LongestInUser} {
			chain := rapid.Bool().Draw(t, "chain")
			below := policy.Levels(rapid.IntRange(-5000, -1).Draw(t, "sd"))
			same("SD<0", policy.OrderOptions{SD: &below, Chain: chain, InUser: inUser}, "priority", policy.OrderOptions{InUser: inUser})
		}
	})
}

// No user starves: without arrivals everything has come after as many rounds as
// the longest line of one user needs at N a round, and each round yields
// something of every user.
func TestNobodyStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		options, pending := someOptions(t), somePending(t, 6, 60)
		options.N = rapid.IntRange(1, 4).Draw(t, "shares")
		options.NUJP = rapid.SampledFrom([]int{0, options.N}).Draw(t, "together")
		options.Overflow = policy.Defer
		q := newQueue("dpsar", options, pending)
		longest := 0
		most := mostOf(pending)
		for _, n := range most {
			longest = max(longest, n)
		}
		rounds := 0
		for ; q.Len() > 0; rounds++ {
			served := map[uint64]bool{}
			for p := range q.Round(20) {
				q.Remove(p.Sequence)
				served[p.UserSequence] = true
				most[p.UserSequence]--
			}
			for user, left := range most {
				if left > 0 && !served[user] {
					t.Fatalf("user %d has %d and none of them in round %d", user, left, rounds+1)
				}
			}
		}
		if bound := (longest + options.N - 1) / options.N; rounds > bound {
			t.Fatalf("%d rounds, at most %d are needed", rounds, bound)
		}
	})
}

// However many more important requests arrive between two rounds, a user's
// request comes after as many rounds as are before it in its user's line.
func TestArrivalsStarveNobody(t *testing.T) {
	options := policy.OrderOptions{Scale: 2, N: 2}
	pending := fig3(1)
	for i := range pending {
		pending[i].UserSequence = 9
	}
	q := newQueue("dpsar", options, pending)
	var low []string
	for sequence := uint64(100); len(low) < 3; {
		if sequence >= 200 {
			t.Fatalf("after many rounds only %v of the lesser user have come", low)
		}
		for range 10 {
			sequence++
			p := fig3(5)[0]
			p.Sequence = sequence
			q.Add(p)
		}
		for p := range q.Round(0) {
			q.Remove(p.Sequence)
			if p.Priority == 1 {
				low = append(low, p.Request.ID)
			}
		}
	}
	if want := []string{"G1L1", "G1L2", "G1L3"}; !slices.Equal(low, want) || q.Len() != 2*10-2*2 {
		t.Errorf("%v with %d others left, want %v and 16", low, q.Len(), want)
	}
}
