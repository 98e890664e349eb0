package service_test

import (
	"fmt"
	"sync"
	"slices"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

func TestTmpSet(t *testing.T) {
	h := flooded(t, 100)
	root := service.Ask{By: service.Principal{User: "root", Role: service.Operator}}
	for range 20 {
		r := berth.Rigid("", 0, h.Now()+86400, h.Now()+8640000, 1, 60)
		if _, err := h.SubmitArray(t.Context(), root, r, 1000); err != nil { t.Fatal(err) }
	}
	var runs []berth.Run
	for i := 0; i < 175_000; i++ {
		runs = append(runs, berth.Run{Lo: berth.PE(2 * i), Hi: berth.PE(2*i + 1)})
	}
	set := berth.NewPESet(runs...)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	for range 8 {
	wg.Go(func(){
	for range 20 {
		r := berth.Rigid("", 0, h.Now()+3600, h.Now()+360000, 1, 60)
		r.Parts[0].Eligible = set
		began := time.Now()
		_, err := h.Submit(t.Context(), root, r)
		if err != nil {
			t.Error(err)
		}
		mu.Lock(); all = append(all, time.Since(began)); mu.Unlock()
	}
	})
	}
	wg.Wait()
	slices.Sort(all)
	fmt.Println(all[len(all)/2], all[len(all)-1])
}
