package engine_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// share is what a reservation holds of the uplink, nil if nothing.
func share(r *berth.Reservation) *berth.Transfer {
	for i := range r.Transfers {
		if r.Transfers[i].Rate > 0 {
			return &r.Transfers[i]
		}
	}
	return nil
}

// centre is two sites of 10 PEs whose links send a number of kB/s, from a centre that
// sends 100 MB/s in all.
func centre(staging engine.Staging, links ...int64) engine.Config {
	config := engine.Config{Staging: staging, Uplink: 100_000, Match: "earliest-finish"}
	for i, link := range links {
		config.Sites = append(config.Sites, berth.Site{
			Name:  fmt.Sprintf("s%d", i),
			Pools: []berth.Pool{{Name: "pool", PEs: 10, Binding: berth.Early}},
			Link:  berth.Link{KilobytesPerSecond: link},
		})
	}
	return config
}

// to is a request for a site with data.
func to(site, id string, now, deadline berth.Time, megabytes int64) berth.Request {
	r := heavy(id, now, deadline, megabytes)
	r.Site = site
	return r
}

// moves says when a request's data are moved and when it starts.
func moves(e *engine.Engine, id string) string {
	r, live := e.Reservation(id)
	if !live || r.Transfers == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d-%d then %d", r.Transfers[0].Start, r.Transfers[0].End, r.Start())
}

// Transfers take turns where the uplink is too narrow for both, go side by side
// where it is not, and are no faster than the uplink. Without one each has its
// link for itself.
func TestTransfersShareTheUplink(t *testing.T) {
	for _, c := range []struct {
		name    string
		config  engine.Config
		a, b, c string
	}{
		{"links as fast as the uplink", centre(engine.StagingBefore, 100_000, 100_000), "0-20 then 20", "20-40 then 40", "40-60 then 60"},
		{"faster links", centre(engine.StagingBefore, 900_000, 900_000), "0-20 then 20", "20-40 then 40", "40-60 then 60"},
		{"half as fast", centre(engine.StagingBefore, 50_000, 50_000), "0-40 then 40", "0-40 then 40", "40-80 then 80"},
		{"of unknown speed", centre(engine.StagingBefore, 0, 0), "0-20 then 20", "20-40 then 40", "40-60 then 60"},
		{"PEs held meanwhile", centre(engine.StagingHold, 100_000, 100_000), "0-20 then 0", "20-40 then 20", "40-60 then 40"},
	} {
		e := newEngine(t, c.config)
		submit(t, e, 0, to("s0", "a", 0, 1000, 2000))
		submit(t, e, 0, to("s1", "b", 0, 1000, 2000))
		submit(t, e, 0, to("s0", "c", 0, 1000, 2000))
		if a, b, third := moves(e, "a"), moves(e, "b"), moves(e, "c"); a != c.a || b != c.b || third != c.c {
			t.Errorf("%s: %s, %s, %s; want %s, %s, %s", c.name, a, b, third, c.a, c.b, c.c)
		}
		alone := c.config
		alone.Uplink = 0
		e = newEngine(t, alone)
		submit(t, e, 0, to("s0", "a", 0, 1000, 2000))
		submit(t, e, 0, to("s1", "b", 0, 1000, 2000))
		a, _ := e.Reservation("a")
		if b, _ := e.Reservation("b"); b.Start() != a.Start() || share(&b) != nil {
			t.Errorf("%s, each with its link for itself: %d and %d", c.name, a.Start(), b.Start())
		}
	}
}

// A refusal for want of the uplink names it. What is given back is there for
// others, and a promise that still waits for its data may be moved forward.
func TestUplinkIsGivenBack(t *testing.T) {
	e := newEngine(t, centre(engine.StagingBefore, 100_000, 100_000))
	submit(t, e, 0, to("s0", "a", 0, 1000, 2000))
	submit(t, e, 0, to("s1", "b", 0, 1000, 2000))
	refusal := refused(t, submit(t, e, 0, to("s1", "c", 0, 150, 2000)))
	if refusal.Reason != berth.NoCapacity || refusal.Resource != berth.UplinkID() || refusal.Limit != 100_000 {
		t.Errorf("c: %+v", refusal)
	}
	if got := refused(t, submit(t, e, 0, to("s1", "d", 0, 119, 2000))); got.Reason != berth.DeadlineMissed || got.Possible != 120 {
		t.Errorf("d: %+v", got)
	}
	apply(t, e, 5, engine.Cancel("a"))
	modified := to("s1", "b", 5, 130, 2000)
	if got := kinds(apply(t, e, 5, engine.Modify(&modified))); got != "vacated:b modified:b" {
		t.Errorf("b: %s", got)
	}
	if got := moves(e, "b"); got != "5-25 then 25" {
		t.Errorf("b: %s", got)
	}
	submit(t, e, 10, to("s0", "e", 10, 1000, 2000))
	if got := moves(e, "e"); got != "25-45 then 45" {
		t.Errorf("e: %s", got)
	}
	// b's data are on their way: they stay, also while b is changed.
	modified = to("s1", "b", 10, 500, 2000)
	modified.Ready = 60
	apply(t, e, 10, engine.Modify(&modified))
	if got := moves(e, "b"); got != "5-25 then 60" {
		t.Errorf("b, later: %s", got)
	}
}

// Data on their way do not stand in the way of what takes their place: other data
// for the same promise, or the same at another site.
func TestTransfersThatAreReplacedTakeNothing(t *testing.T) {
	e := newEngine(t, centre(engine.StagingBefore, 100_000, 100_000))
	submit(t, e, 0, to("s0", "a", 0, 1000, 2000))
	smaller := to("s0", "a", 5, 115, 1000)
	if got := kinds(apply(t, e, 5, engine.Modify(&smaller))); got != "advanced vacated:a modified:a" {
		t.Errorf("less data: %s", got)
	}
	if got := moves(e, "a"); got != "5-15 then 15" {
		t.Errorf("less data: %s", got)
	}
	elsewhere := to("s1", "a", 7, 117, 1000)
	if got := kinds(apply(t, e, 7, engine.Modify(&elsewhere))); got != "advanced vacated:a modified:a" {
		t.Errorf("at another site: %s", got)
	}
	if got := moves(e, "a"); got != "7-17 then 17" {
		t.Errorf("at another site: %s", got)
	}
	submit(t, e, 7, to("s0", "b", 7, 1000, 1000))
	if got := moves(e, "b"); got != "17-27 then 27" {
		t.Errorf("b: %s", got)
	}
}

// Where room for the data is short too, a transfer waits for both, and moves as
// soon as it may.
func TestUplinkAndStorage(t *testing.T) {
	config := centre(engine.StagingBefore, 100_000, 100_000)
	config.Sites[0].StorageMB = 3000
	e := newEngine(t, config)
	submit(t, e, 0, to("s0", "a", 0, 1000, 2000)) // runs throughout [20,120)
	submit(t, e, 0, to("s0", "b", 0, 1000, 2000)) // no room before 120
	submit(t, e, 0, to("s1", "c", 0, 1000, 11_000))
	submit(t, e, 0, to("s0", "d", 0, 1000, 1000)) // beside a and beside b
	for id, want := range map[string]string{"a": "0-20 then 20", "b": "120-140 then 140", "c": "140-250 then 250", "d": "20-30 then 30"} {
		if got := moves(e, id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

// Storage is taken for a transfer that waits from when it begins, also when another one
// puts it off and the promise itself cannot follow.
func TestStorageFollowsATransferThatIsPutOff(t *testing.T) {
	config := centre(engine.StagingBefore, 100_000, 100_000)
	config.Sites[1].StorageMB = 3000
	e := newEngine(t, config)
	submit(t, e, 0, to("s0", "a", 0, 1000, 2000))
	submit(t, e, 0, to("s1", "b", 0, 145, 2000)) // at 45 at the latest
	since := func() berth.Time {
		b, _ := e.Reservation("b")
		return b.Stocks[0].Start
	}
	if got := moves(e, "b"); got != "20-40 then 40" || since() != 20 {
		t.Fatalf("b: %s, with storage from %d", got, since())
	}
	apply(t, e, 10, engine.Event{Kind: engine.EventUpdateForecast, Forecast: &berth.Forecast{Site: "s0", From: 10, Period: 1, Kilobytes: []int64{40_000}}})
	if got := moves(e, "b"); got != "35-55 then 40" || since() != 35 {
		t.Errorf("b, behind slower data: %s, with storage from %d; want it from 35", got, since())
	}
}

// A forecast that says the same again changes nothing. When a link slows down,
// what is on its way keeps its place and what waits makes room for it, with the
// promises that hang on it; a faster one is used where there is room.
func TestForecastsOverTheUplink(t *testing.T) {
	e := newEngine(t, centre(engine.StagingBefore, 100_000, 100_000))
	forecast := func(now berth.Time, site string, rate int64) string {
		return kinds(apply(t, e, now, engine.Event{Kind: engine.EventUpdateForecast, Forecast: &berth.Forecast{Site: site, From: now, Period: 1, Kilobytes: []int64{rate}}}))
	}
	submit(t, e, 0, to("s0", "a", 0, 1000, 2000))
	submit(t, e, 0, to("s1", "b", 0, 1000, 2000))
	submit(t, e, 0, to("s1", "c", 0, 170, 2000)) // at 60 at the earliest; 70 at the latest
	if got := forecast(10, "s0", 100_000); got != "advanced forecasted" {
		t.Fatalf("the same again: %s", got)
	}
	// 1,000 MB of a are left, which take 25 s now and leave 60 MB/s.
	if got := forecast(10, "s0", 40_000); got != "forecasted staged:b staged:c staged:a staged:b staged:c vacated:a moved:a vacated:b moved:b change_refused:c" {
		t.Fatalf("slower: %s", got)
	}
	for id, want := range map[string]string{"a": "0-35 then 35", "b": "35-55 then 55", "c": "55-75 then 60"} {
		if got := moves(e, id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	// At 20 there are 600 MB left of a, which could be sent in 6 s.
	if got := forecast(20, "s0", 500_000); got != "advanced forecasted staged:a" {
		t.Errorf("faster: %s", got)
	}
	if got := moves(e, "a"); got != "0-26 then 35" {
		t.Errorf("a, faster: %s", got)
	}
	// The link stands still: a takes nothing, and b may go when it is asked for anew.
	forecast(22, "s0", 0)
	if a, _ := e.Reservation("a"); a.Transfers[0].End != berth.Forever || share(&a) != nil {
		t.Errorf("a stands still: %+v, %+v", a.Transfers, a.Stocks)
	}
	submit(t, e, 22, to("s1", "d", 22, 1000, 1000))
	if got := moves(e, "d"); got != "22-32 then 32" {
		t.Errorf("d: %s", got)
	}
	// It goes on when there is room: 400 MB are left of a.
	forecast(23, "s0", 100_000)
	if got := moves(e, "a"); got[:4] != "0-79" {
		t.Errorf("a goes on: %s", got)
	}
	for _, bad := range []int64{-1, 1 << 42} {
		config := centre(engine.StagingBefore, 1)
		config.Uplink = bad
		_, err := engine.New(config)
		wantCode(t, err, berth.Invalid, "uplink")
	}
}
