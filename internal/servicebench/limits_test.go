//go:build unix

package servicebench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/cputime"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// limitsOf are the scopes that count for every request of the comparison.
func limitsOf(names ...policy.LimitName) (l policy.Limits) {
	for _, name := range names {
		value := int64(1) << 40
		switch name {
		case policy.LimitShare:
			value = 999 // of 1000, which is no limit
		case policy.LimitActive, policy.LimitReservations:
			value = 1 << 30
		}
		for _, scope := range []policy.Scope{{User: policy.Every}, {User: "ann"}, {Account: "chem"}, {QOS: policy.Every}} {
			if scope.Takes(name) {
				l = append(l, policy.Limit{Scope: scope, Name: name, Value: value})
			}
		}
	}
	return l
}

// checked is a way in which admissions are checked.
type checked struct {
	name     string
	config   engine.Config
	projects service.Projects
}

// groups is a directory of users, who are in one group.
type groups struct{}

func (groups) Person(user string) string { return user }

func (groups) Groups(context.Context, string) ([]string, error) { return []string{"chemists"}, nil }

// checks are the ways that are compared, each with what those before it have: the first has nothing.
func checks(config engine.Config) []checked {
	limits := limitsOf(policy.LimitHold, policy.LimitLead, policy.LimitActive, policy.LimitReservations, policy.LimitNoShow, policy.LimitLength, policy.LimitPESeconds)
	shares := append(slices.Clip(limits), limitsOf(policy.LimitShare)...)
	budgets := append(slices.Clip(shares), limitsOf(policy.LimitBudget, policy.LimitMonthBudget)...)
	prices := policy.Prices{{Site: config.Sites[0].Name, Factor: 1500}, {Partition: "gpu", Factor: 4000}, {QOS: "high", Factor: 2000}}
	projects := service.Projects{Directory: groups{}}
	for i := range 100 {
		projects.List = append(projects.List, service.Project{Account: fmt.Sprint("account", i), Users: []string{fmt.Sprint("user", i)}, Groups: []string{fmt.Sprint("group", i)}})
	}
	projects.List = append(projects.List, service.Project{Account: "chem", Groups: []string{"chemists"}})
	of := func(l policy.Limits, p policy.Prices) engine.Config {
		c := config
		c.Limits, c.Prices = l, p
		return c
	}
	return []checked{
		{"nothing", config, service.Projects{}},
		{"limits without shares", of(limits, nil), service.Projects{}},
		{"limits", of(shares, nil), service.Projects{}},
		{"and budgets", of(budgets, nil), service.Projects{}},
		{"and prices", of(budgets, prices), service.Projects{}},
		{"and projects", of(budgets, prices), projects},
	}
}

// asking draws the requests that all ways are asked, so that all promise the same.
func asking(i int) berth.Request {
	r := rand.New(rand.NewPCG(uint64(i), 23))
	ready, d := 1000+berth.Time(r.IntN(2_000_000)), berth.Duration(60+r.IntN(14_341))
	q := berth.Rigid(fmt.Sprint("r", i), 0, ready, ready.Add(8*d), berth.Count(1)<<r.IntN(5), d)
	q.User, q.Account, q.QOS, q.Role = "ann", "chem", "high", "user"
	return q
}

// half is one way while it is compared. It admits and gives back, so that it has as much in the end as in the beginning.
type half struct {
	admit, giveBack func(i int)
	spent           func(do func()) time.Duration
}

// measured returns the processor time and the allocations of each of some admissions.
func (h *half) measured(from, n int) (each time.Duration, allocations float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	spent := h.spent(func() {
		for i := range n {
			h.admit(from + i)
		}
	})
	runtime.ReadMemStats(&after)
	for i := range n {
		h.giveBack(from + i)
	}
	return spent / time.Duration(n), float64(after.Mallocs-before.Mallocs) / float64(n)
}

// engineHalf is one way of the engine alone.
func engineHalf(tb testing.TB, c *checked) half {
	e, err := engine.New(c.config)
	if err != nil {
		tb.Fatal(err)
	}
	return half{func(i int) {
		q := asking(i)
		if _, _, err := e.Apply(0, engine.Submit(&q)); err != nil {
			tb.Fatal(err)
		}
		if _, is := e.Reservation(q.ID); !is {
			tb.Fatalf("%s: %s is not promised", c.name, q.ID)
		}
	}, func(i int) {
		if _, _, err := e.Apply(0, engine.Cancel(fmt.Sprint("r", i))); err != nil {
			tb.Fatal(err)
		}
	}, cputime.Of}
}

// TestLimitsCost compares admissions with limits, budgets, prices and projects to those without, in alternating pairs in one process: of the engine
// alone, and of the service with a durable record. All of them are promised, at the same time. The interval of the difference is that of the
// means of the pairs. In full:
//
//	go test -v ./internal/servicebench -run LimitsCost -servicebench.full
func TestLimitsCost(t *testing.T) {
	pairs, sizes := 2, map[string]struct{ live, each int }{"engine": {200, 20}, "service": {200, 20}}
	if *full { // the clock of processor time ticks in milliseconds
		pairs, sizes = 20, map[string]struct{ live, each int }{"engine": {10_000, 4000}, "service": {2000, 100}}
	}
	ways := checks(clusters(1, 1024))
	for room, of := range map[string]func(c *checked) half{
		"engine": func(c *checked) half {
			return engineHalf(t, c)
		},
		"service": func(c *checked) half {
			store := openStore(t, t.TempDir())
			h := open(t, &service.Options{Config: c.config, Journal: store, Projects: c.projects, Clock: func() time.Time { return time.Unix(0, 0) }})
			t.Cleanup(func() {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			})
			return half{func(i int) {
				if a, err := h.Submit(t.Context(), ann, asking(i)); err != nil || a.Reservation.State != service.Confirmed || a.Reservation.Request.Account != "chem" {
					t.Fatalf("%s: %+v, %v", c.name, a.Reservation, err)
				}
			}, func(i int) {
				if _, err := h.Release(t.Context(), ann, fmt.Sprint("r", i)); err != nil {
					t.Fatal(err)
				}
			}, func(do func()) time.Duration {
				before := cputime.Used()
				do()
				return cputime.Used() - before
			}}
		},
	} {
		var halves []half
		live, each := sizes[room].live, sizes[room].each
		from := live
		for i := range ways {
			if room == "engine" && len(ways[i].projects.List) > 0 {
				continue // it knows of none
			}
			h := of(&ways[i])
			for n := range live {
				h.admit(n)
			}
			halves = append(halves, h)
		}
		plain := &halves[0]
		for w := 1; w < len(halves); w++ {
			var slower, more []float64
			var base time.Duration
			for pair := range pairs {
				order := []*half{plain, &halves[w]}
				if pair%2 == 1 {
					order[0], order[1] = order[1], order[0]
				}
				spent, allocations := map[*half]time.Duration{}, map[*half]float64{}
				for _, h := range order {
					spent[h], allocations[h] = h.measured(from, each)
				}
				from += each // ids are used once
				slower = append(slower, 100*(float64(spent[&halves[w]])/float64(spent[plain])-1))
				more = append(more, allocations[&halves[w]]-allocations[plain])
				base += spent[plain] / time.Duration(pairs)
			}
			cost, memory := measure.EstimateOf(slower), measure.EstimateOf(more)
			if *full {
				t.Logf("%s, %d live, %d pairs of %d: %s: %+.1f %% of %v (%.1f to %.1f), %+.1f allocations", room, live, pairs, each, ways[w].name, *cost.Mean, base.Round(100*time.Nanosecond), cost.CI95[0], cost.CI95[1], *memory.Mean)
			}
			if *memory.Mean > 40 {
				t.Errorf("%s: %s takes %.1f allocations more for each admission", room, ways[w].name, *memory.Mean)
			}
		}
	}
}

// BenchmarkLimits admits with each of these checks beside 10,000 live reservations of the same holders, and gives back outside of what is measured.
func BenchmarkLimits(b *testing.B) {
	for _, way := range checks(clusters(1, 1024)) {
		if len(way.projects.List) > 0 {
			continue // the engine knows of none
		}
		b.Run("check="+strings.ReplaceAll(way.name, " ", "-"), func(b *testing.B) {
			h, round := engineHalf(b, &way), 0
			for n := range 10_000 {
				h.admit(n)
			}
			b.ReportAllocs()
			for b.Loop() {
				h.admit(10_000 + round)
				if round++; round%1000 == 0 {
					b.StopTimer()
					for i := range 1000 {
						h.giveBack(10_000 + round - 1000 + i)
					}
					b.StartTimer()
				}
			}
		})
	}
}
