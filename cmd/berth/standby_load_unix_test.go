//go:build unix

package main

import (
	"flag"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"
)

var takeOverLive = flag.Int("standby.live", 0, "how many reservations are live when TestStandbyTakesOverUnderLoad kills the leader")

// The leader is killed under load: how long it takes until the one that stood by accepts the first request.
func TestStandbyTakesOverUnderLoad(t *testing.T) {
	if *takeOverLive == 0 {
		t.Skip("measures, with -standby.live=100000")
	}
	p := newPair(t, "sites:\n  - {name: big, pes: 100000}\n")
	leader := p.first()
	const array = 990 // of the 999 that there may be
	body := fmt.Sprintf(`"npe":1,"duration":36000,"deadline":%q}`, time.Now().Add(1000*time.Hour).UTC().Format(time.RFC3339))
	live := 0
	for ; live < *takeOverLive; live += array {
		status, answer, err := p.to(leader).plain("operator", http.MethodPost, "/v1/requests", fmt.Sprintf(`{"array":%d,`, array)+body, fmt.Sprint("fill ", live))
		if err != nil || status >= 300 {
			t.Fatalf("%d %.300s %v", status, answer, err)
		}
	}
	follower := p.beside(leader)
	var asking sync.WaitGroup
	for c := range 4 {
		asking.Go(func() {
			a := &asker{url: leader.url, tokens: p.asker.tokens}
			for k := 0; ; k++ {
				if _, _, err := a.plain("operator", http.MethodPost, "/v1/requests", "{"+body, fmt.Sprint("load ", c, k)); err != nil {
					return
				}
			}
		})
	}
	time.Sleep(2 * time.Second) // of load
	began := time.Now()
	p.signal(leader, syscall.SIGKILL)
	p.until(follower, http.MethodPost, "/v1/requests", "{"+body, "first", func(status int, _ string) bool { return status == http.StatusCreated })
	took := time.Since(began)
	asking.Wait()
	t.Logf("%d live: the first request was accepted after %v", live, took.Round(time.Millisecond))
	if took > 5*time.Second {
		t.Errorf("that is more than 5 s")
	}
}
