package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// crowd is a number of users with priorities from 1 to 10 and a number of requests
// each, with lengths as in the paper's experiment, in the order of submission.
func crowd(users, each int) []policy.Pending {
	rng := rand.New(rand.NewPCG(1, 2))
	pending := make([]policy.Pending, users*each)
	requests := make([]berth.Request, len(pending))
	priorities := make([]int, users)
	for u := range priorities {
		priorities[u] = 1 + rng.IntN(10)
	}
	for i := range pending {
		user, length := rng.IntN(users), 10_000+rng.Int64N(90_000)
		requests[i] = berth.Rigid(fmt.Sprint(i), berth.Time(i), berth.Time(i), berth.TimeLimit-1, 1, berth.Duration(length))
		pending[i] = policy.Pending{
			Request: &requests[i], Sequence: uint64(i), Length: length,
			Priority: priorities[user], UserSequence: uint64(user),
		}
	}
	return pending
}

// crowds are the sizes of the benchmarks; the largest is the one the goals are
// about, the smallest runs as a test.
var crowds = [][2]int{{10, 10}, {100, 100}, {1000, 1000}}

// forms are the options that cost most in some way: everything yielded, in
// pairs, in one chain, with all additions; and the paper's N, where a round is
// short however much is deferred.
var forms = []struct {
	name    string
	options policy.OrderOptions
}{
	{"pairs", policy.OrderOptions{Scale: 10}},
	{"chain", policy.OrderOptions{Scale: 10, Chain: true}},
	{"shares", policy.OrderOptions{Scale: 10, N: 3, NUJP: 3}},
	{"aging-classes", policy.OrderOptions{Scale: 10, Aging: 3600, LengthClasses: 10}},
}

func benchmarkCrowds(b *testing.B, run func(b *testing.B, pending []policy.Pending, options policy.OrderOptions)) {
	for _, size := range crowds {
		if size[0] > 10 && testing.Short() {
			continue
		}
		pending := crowd(size[0], size[1])
		for _, form := range forms {
			b.Run(fmt.Sprintf("form=%s/users=%d/each=%d", form.name, size[0], size[1]), func(b *testing.B) {
				run(b, pending, form.options)
			})
		}
	}
}

func drain(q policy.Queue) (n int, last policy.Pending) {
	for p := range q.Round(berth.TimeLimit / 2) {
		n, last = n+1, p
	}
	return n, last
}

// BenchmarkRound is a whole round, nothing deferred.
func BenchmarkRound(b *testing.B) {
	benchmarkCrowds(b, func(b *testing.B, pending []policy.Pending, options policy.OrderOptions) {
		q := newQueue("dpsar", options, pending)
		want, _ := plainRound("dpsar", pending, options, berth.TimeLimit/2)
		if !slices.Equal(collect(q.Round(0)), want) {
			b.Fatal("the round is not the plain one")
		}
		for b.Loop() {
			if n, last := drain(q); n != len(want) || last != want[n-1] {
				b.Fatal("another round")
			}
		}
	})
}

// BenchmarkRoundDeciding is the same with each request removed as it comes.
func BenchmarkRoundDeciding(b *testing.B) {
	benchmarkCrowds(b, func(b *testing.B, pending []policy.Pending, options policy.OrderOptions) {
		for b.Loop() {
			b.StopTimer()
			q := newQueue("dpsar", options, pending)
			b.StartTimer()
			for p := range q.Round(0) {
				q.Remove(p.Sequence)
			}
			if options.N == 0 && q.Len() != 0 {
				b.Fatal("something is left")
			}
		}
	})
}

// BenchmarkRoundPlain sorts everything, which the plain form does for a whole
// round and for each arrival alike.
func BenchmarkRoundPlain(b *testing.B) {
	benchmarkCrowds(b, func(b *testing.B, pending []policy.Pending, options policy.OrderOptions) {
		for b.Loop() {
			if out, rest := plainRound("dpsar", pending, options, berth.TimeLimit/2); len(out)+len(rest) != len(pending) {
				b.Fatal("a round of another length")
			}
		}
	})
}

// BenchmarkArrival is one arrival and the first request of the round begun
// again, which is decided.
func BenchmarkArrival(b *testing.B) {
	benchmarkCrowds(b, func(b *testing.B, pending []policy.Pending, options policy.OrderOptions) {
		checkArrivals(b, pending, options)
		q := newQueue("dpsar", options, pending)
		sequence := uint64(len(pending))
		for b.Loop() {
			arrival := pending[sequence%uint64(len(pending))]
			arrival.Sequence = sequence
			q.Add(arrival)
			sequence++
			for p := range q.Round(0) {
				q.Remove(p.Sequence)
				break
			}
		}
		if q.Len() != len(pending) {
			b.Fatal("what came is not what went")
		}
	})
}

// checkArrivals compares some arrivals with the plain form.
func checkArrivals(tb testing.TB, pending []policy.Pending, options policy.OrderOptions) {
	q := newQueue("dpsar", options, pending)
	model := slices.Clone(pending)
	for i := range 3 {
		arrival := pending[i]
		arrival.Sequence = uint64(len(pending) + i)
		model = append(model, arrival)
		q.Add(arrival)
		want, _ := plainRound("dpsar", model, options, berth.TimeLimit/2)
		for p := range q.Round(0) {
			if p != want[0] {
				tb.Fatalf("request %d comes first, want %d", p.Sequence, want[0].Sequence)
			}
			q.Remove(p.Sequence)
			model = slices.DeleteFunc(model, func(m policy.Pending) bool { return m.Sequence == p.Sequence })
			break
		}
	}
}

// BenchmarkQueueAdd fills a queue.
func BenchmarkQueueAdd(b *testing.B) {
	benchmarkCrowds(b, func(b *testing.B, pending []policy.Pending, options policy.OrderOptions) {
		for b.Loop() {
			if q := newQueue("dpsar", options, pending); q.Len() != len(pending) {
				b.Fatal("something is missing")
			}
		}
	})
}

// The smallest of the benchmarks' crowds, so that they stay right.
func TestCrowd(t *testing.T) {
	for _, form := range forms {
		pending := crowd(crowds[0][0], crowds[0][1])
		want, _ := plainRound("dpsar", pending, form.options, berth.TimeLimit/2)
		if got := collect(newQueue("dpsar", form.options, pending).Round(0)); !slices.Equal(got, want) {
			t.Errorf("%s: %s, want %s", form.name, names(got), names(want))
		}
		checkArrivals(t, pending, form.options)
	}
}
