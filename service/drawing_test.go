package service_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// A picture that follows what changes is the one that is drawn from everything, whatever
// happens to promises, jobs and PEs, in pools of both bindings, also when requests are
// forgotten meanwhile.
func TestPicturesFollow(t *testing.T) {
	for seed := range 6 {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c := &clock{}
			c.seconds.Store(1000)
			config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "early", PEs: 9, Binding: berth.Early}, {Name: "late", PEs: 600, Binding: berth.Late}}}}}
			h, err := service.Open(t.Context(), service.Options{Config: config, Journal: store, Version: "test", Clock: c.now, Keep: 20})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			}()
			var ids []string
			follows := 0
			for i := range 250 {
				now := berth.Time(c.seconds.Load())
				ask := []service.Ask{ann, bob}[r.IntN(2)]
				switch r.IntN(4) {
				case 0, 1:
					start := now + berth.Time(r.IntN(300))
					length := berth.Duration(1 + r.IntN(100))
					q := berth.Rigid(fmt.Sprint("r", i), now, start, start.Add(length)+berth.Time(r.IntN(50)), berth.Count(1+r.IntN(9)), length)
					if r.IntN(4) == 0 {
						q.Hold = 20
					}
					submit(t, h, ask, q)
					ids = append(ids, q.ID)
				case 2:
					if len(ids) > 0 { // that it is too late, or another's, is fine
						_, _ = h.Release(t.Context(), ask, ids[max(0, len(ids)-1-r.IntN(10))])
					}
				case 3:
					c.seconds.Add(int64(r.IntN(40)))
				}
				if r.IntN(3) == 0 {
					continue
				}
				for _, pool := range []string{"early", "late"} {
					followed, err := h.CheckPicture(berth.PoolID("site", pool))
					if err != nil {
						t.Fatal(err)
					}
					if followed {
						follows++
					}
				}
			}
			if follows < 60 {
				t.Errorf("followed %d times only", follows)
			}
		})
	}
}
