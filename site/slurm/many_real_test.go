package slurm_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// hooked runs Slurm's commands, and something of the test's own before some.
type hooked struct {
	before func(line string)
}

func (h hooked) Run(ctx context.Context, c slurm.Command) (slurm.Result, error) {
	h.before(strings.Join(c.Argv, " "))
	return slurm.Host{}.Run(ctx, c)
}

// slots are reservations of whole nodes, two behind each other on each of four
// nodes for every two of n.
func slots(t *testing.T, n int) []site.Reservation {
	wants := make([]site.Reservation, n)
	for i := range wants {
		wants[i] = far(t, i, []string{"n1", "n2", "n3", "n4"}[i/2%4])
		wants[i].Start += 2000 * berth.Time(2*(i/8)+i%2)
		wants[i].End = wants[i].Start + 2000
	}
	return wants
}

// Of many, those in the way of each other and of what others hold are refused, or
// taken down where Slurm gives them all the same, and all others are made.
func TestManyWithConflicts(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{})
	s := slurm.New(options(cluster))
	wants := slots(t, 40)
	cores := far(t, 100, "n3") // beneath the fifth, where Slurm gives the whole node
	cores.Name, cores.Shares[0].Cores = site.NameOf(siteName, t.Name()+"cores", 1), berth.PEsOf(0, 1)
	cores.Start, cores.End = wants[4].Start, wants[4].End
	mustReserve(t, s, cores, site.Made)
	rival := wants[30]
	rival.Name = site.NameOf(siteName, t.Name()+"rival", 1)
	wants = append(wants, rival)
	wants[7].Shares = []site.Share{{Node: "n1"}} // where the second is
	lists := 0
	var mu sync.Mutex
	o := options(cluster)
	o.Exec = hooked{func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if line == list {
			lists++
		}
	}}
	many := slurm.New(o)
	kept := []site.Reservation{cores}
	for i, got := range many.ReserveMany(t.Context(), wants) {
		want := site.Made
		if i == 4 || i == 7 || i == 40 {
			want = site.Refused
		}
		if got.Err != nil || got.Outcome.Verdict != want || want == site.Refused && got.Outcome.Reason != berth.NoCapacity {
			t.Errorf("number %d: %+v %v, want it %s", i, got.Outcome, got.Err, want)
		}
		if want == site.Made {
			kept = append(kept, wants[i])
		}
	}
	if drift := site.FindDrift(kept, observe(t, s)); len(drift) > 0 {
		t.Errorf("drift %+v", drift)
	}
	if lists > 3 {
		t.Errorf("%d lists for %d reservations", lists, len(wants))
	}
}

// A slurmctld that is killed while many are made, or between that and the look at
// them, leaves all in doubt that it may have made, whether it is back then or not,
// and asked again, all are there.
func TestControllerDiesAmongMany(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		at   string // the command before which it is killed
		nth  int
		back bool
	}{
		"while they are made":           {"scontrol create", 10, false},
		"before the look":               {list, 1, false},
		"and is back before the look":   {list, 1, true},
		"and is back for the last half": {"scontrol create", 10, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cluster := slurmtest.Start(t, slurmtest.Options{})
			var mu sync.Mutex
			count := 0
			o := options(cluster)
			o.Exec = hooked{func(line string) {
				mu.Lock()
				defer mu.Unlock()
				if !strings.HasPrefix(line, c.at) {
					return
				}
				if count++; count != c.nth {
					return
				}
				cluster.KillController()
				if c.back {
					cluster.StartController()
				}
			}}
			wants := slots(t, 24)
			for i, got := range slurm.New(o).ReserveMany(t.Context(), wants) {
				v := got.Outcome.Verdict
				if (v == site.Made) != (got.Err == nil) || got.Err != nil && v != "" && v != site.Doubt {
					t.Errorf("number %d: %+v %v", i, got.Outcome, got.Err)
				}
				if !c.back && got.Err == nil {
					t.Errorf("number %d is said to be made, and no look can have seen it", i)
				}
				if c.at == list && v == "" {
					t.Errorf("number %d: %v, and nothing is said of doubt", i, got.Err)
				}
			}
			if !c.back {
				cluster.StartController()
			}
			s := slurm.New(options(cluster))
			for i, got := range s.ReserveMany(t.Context(), wants) {
				if v := got.Outcome.Verdict; got.Err != nil || v != site.Made && v != site.Already {
					t.Errorf("number %d again: %+v %v", i, got.Outcome, got.Err)
				}
			}
			if drift := site.FindDrift(wants, observe(t, s)); len(drift) > 0 {
				t.Errorf("drift %+v", drift)
			}
		})
	}
}
