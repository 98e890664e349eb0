package service_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// flooded is a service on a clock that runs, with n requests that are over.
func flooded(t *testing.T, over int) *service.Host {
	t.Helper()
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config := onePool(64)
	config.Sites[0].Pools = append(config.Sites[0].Pools, berth.Pool{Name: "quiet", PEs: 8, Binding: berth.Late})
	h, err := service.Open(t.Context(), service.Options{Config: config, Journal: store, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	now := h.Now()
	var filling sync.WaitGroup
	for w := range 16 {
		filling.Go(func() {
			for i := w; i < over; i += 16 {
				r := berth.Rigid(fmt.Sprintf("over%06d", i), 0, now, now+600, 64, 3600) // for which the window is too short
				if _, err := h.Submit(t.Context(), ann, r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	filling.Wait()
	return h
}

// probe asks for something of bob's again and again for a time, and returns how long
// the answers took.
func probe(t *testing.T, h *service.Host, d time.Duration) (took []time.Duration) {
	t.Helper()
	for i, began := 0, time.Now(); time.Since(began) < d; i++ {
		asked := time.Now()
		r := berth.Rigid("", 0, h.Now(), h.Now()+1_000_000, 1, 1)
		r.Site, r.Pool = "site", "p"
		if _, err := h.Submit(t.Context(), bob, r); err != nil {
			t.Error(err)
		}
		took = append(took, time.Since(asked))
	}
	slices.Sort(took)
	return took
}

// starts promises bob something that begins in a second, and returns by how much later
// he is told that it does.
func starts(t *testing.T, h *service.Host) <-chan time.Duration {
	t.Helper()
	heard := h.Listen(t.Context(), bob.By, 0)
	at := h.Now() + 2
	r := berth.Rigid("", 0, at, at+1, 1, 1)
	r.Site, r.Pool = "site", "quiet"
	promised := submit(t, h, bob, r)
	if promised.Reservation.State != service.Confirmed {
		t.Fatal(promised.Reservation.State)
	}
	late := make(chan time.Duration, 1)
	go func() {
		for n, err := range heard {
			if err != nil || n.Reservation.ID == promised.Reservation.ID && n.What == "started" {
				late <- time.Since(time.Unix(int64(at), 0))
				return
			}
		}
	}()
	return late
}

// No user waits for what others ask: with one user flooding the service in each way in
// which one may, requests of another are answered all the same, and what is promised
// begins at its time. The bounds leave room for a machine that does much else.
func TestAFloodDelaysNobodyElse(t *testing.T) {
	if testing.Short() {
		t.Skip("floods a service for eight seconds")
	}
	h := flooded(t, 20_000)
	wide := berth.Rigid("", 0, h.Now(), h.Now()+1_000_000, 1, 10)
	for i := range 999 {
		wide.Parts[0].Variants = append(wide.Parts[0].Variants, berth.Variant{NPE: berth.Count(1 + i%64), Duration: berth.Duration(10 + i)})
	}
	for _, flood := range []struct {
		name string
		ask  func() error
	}{
		{"lists", func() error {
			_, _, err := h.List(t.Context(), ann.By, service.Filter{States: []service.State{service.Failed}, Site: "site"})
			return err
		}},
		{"occupation", func() error {
			_, err := h.Occupation(t.Context(), ann.By, "site", 0, berth.Forever, service.Mark{}, 1000)
			return err
		}},
		{"requests", func() error {
			_, err := h.Submit(t.Context(), ann, berth.Rigid("", 0, h.Now(), h.Now()+600, 64, 3600))
			return err
		}},
		{"offers of a thousand variants", func() error {
			_, err := h.Offers(t.Context(), ann, wide, 5)
			return err
		}},
	} {
		t.Run(flood.name, func(t *testing.T) {
			stop := make(chan struct{})
			var asking sync.WaitGroup
			for range 4 {
				asking.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							if err := flood.ask(); err != nil {
								t.Error(err)
								return
							}
						}
					}
				})
			}
			began := starts(t, h)
			took := probe(t, h, 2*time.Second)
			close(stop)
			asking.Wait()
			t.Logf("%d answers, half within %s, all within %s", len(took), took[len(took)/2], took[len(took)-1])
			if late := <-began; late > 2*time.Second {
				t.Errorf("a promise begins %s late", late)
			}
			if half := took[len(took)/2]; half > 250*time.Millisecond {
				t.Errorf("half of the answers take longer than %s", half)
			}
		})
	}
}
