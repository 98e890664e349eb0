package slurm

import (
	"os/user"
	"strconv"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// A look tells by how much slurmctld's clock is ahead or behind.
func TestSkewOfTheController(t *testing.T) {
	t.Parallel()
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 1})
	s := New(Options{Site: "lab", Conf: cluster.Conf})
	for _, ahead := range []time.Duration{0, 40 * time.Second, -40 * time.Second} {
		s.now = func() time.Time { return time.Now().Add(-ahead) }
		state, err := s.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(state.Skew) * time.Second; (got - ahead).Abs() > time.Second {
			t.Errorf("%s ahead, want %s", got, ahead)
		}
	}
}

// A controller whose clock is ahead or behind, and whose time zone is another one, has what is promised as it is
// promised: what has begun by one clock and not by the other is neither refused nor taken for
// something that others have changed.
func TestControllerWithAnotherClock(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Zone: "Pacific/Auckland"})
	for _, ahead := range []time.Duration{0, 40 * time.Second, -40 * time.Second, time.Hour, -time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			s := New(Options{Site: "lab", Conf: cluster.Conf, Zone: "Pacific/Auckland"})
			s.now = func() time.Time { return time.Now().Add(-ahead) }
			if _, err := s.Observe(t.Context()); err != nil { // as a service does at first
				t.Fatal(err)
			}
			var all []site.Reservation
			for i, in := range []int64{-5, 0, 1, 20, 30, 7200} {
				want := site.Reservation{
					Name: site.NameOf("lab", ahead.String()+strconv.Itoa(i), 1), Start: s.unix().Add(berth.Duration(in)), Users: []string{me.Username},
					Shares: []site.Share{{Node: cluster.Nodes()[i%4]}}, Partition: "main",
				}
				if want.End = want.Start + 5400; i > 3 {
					want.Start, want.End = want.Start+7000, want.End+7000
				}
				for _, verdict := range []site.Verdict{site.Made, site.Already} {
					got, err := s.Reserve(t.Context(), want)
					if err != nil || got.Verdict != verdict {
						t.Errorf("one that begins in %d s: %+v, %v; want it %s", in, got, err, verdict)
					}
				}
				all = append(all, want)
			}
			see := func() {
				t.Helper()
				state, err := s.Observe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if drift := site.FindDrift(all, state); len(drift) > 0 {
					t.Errorf("%+v", drift)
				}
			}
			see()
			for i := range all {
				all[i].End += 600
				for _, verdict := range []site.Verdict{site.Made, site.Already} {
					if got, err := s.Change(t.Context(), all[i]); err != nil || got.Verdict != verdict {
						t.Errorf("longer: %+v, %v; want it %s", got, err, verdict)
					}
				}
			}
			see()
			for i := range all {
				if err := s.Release(t.Context(), all[i].Name); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
