package service_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// accountable is a site with an accounting that may be silent.
type accountable struct {
	byUsers
	silent *bool
}

func (a accountable) Accounts(context.Context, string) ([]string, error) {
	if *a.silent {
		return nil, site.Errorf(site.Unreachable, "accounts", "the database does not answer")
	}
	return []string{"chem"}, nil
}

// While the accounting does not answer, what it said last counts for a week, and after a restart what it has let in does: a reservation goes on
// in its account. What is new is not let in then, nor is anything after that week.
func TestWhatTheAccountingSaidCountsForAWeek(t *testing.T) {
	atQuays(t, 0, []string{"east"}, func(t *testing.T, w *quays) {
		silent := false
		m := w.options.Managers["east"]
		m.Adapter = accountable{m.Adapter.(byUsers), &silent}
		w.options.Managers["east"] = m
		w.options.Projects = service.Projects{From: []string{"east"}}
		w.restart()
		const day = 86_400
		n := 0
		ask := func() error {
			n++
			start := w.now() + 100*day
			r := berth.Rigid(fmt.Sprint("new", n), 0, start, start+100, 1, 100)
			_, err := w.host.Submit(t.Context(), ann, r)
			return err
		}
		until := w.now() + 50*day
		extend := func() error {
			until += 10
			_, err := w.host.Extend(t.Context(), ann, "old", until)
			return err
		}
		window := w.now() + 60*day
		modify := func(account string, npe berth.Count) error {
			r := berth.Rigid("", 0, window, window+day, npe, day)
			r.User, r.Account = "ann", account
			_, err := w.host.Modify(t.Context(), ann, "other", r)
			return err
		}
		submit(t, w.host, ann, berth.Rigid("other", 0, window, window+day, 1, day))
		start := w.now() + 49*day
		if r := submit(t, w.host, ann, berth.Rigid("old", 0, start, start+day, 1, day)).Reservation; r.Request.Account != "chem" {
			t.Fatalf("%+v", r)
		}
		silent = true
		if err := ask(); err != nil {
			t.Errorf("what it said a moment ago: %v", err)
		}
		w.restart()
		if err := extend(); err != nil {
			t.Errorf("what it has let in: %v", err)
		}
		wantCode(t, ask(), berth.Unavailable)
		if err := modify("chem", 2); err != nil {
			t.Errorf("a change in the account that it has let in: %v", err)
		}
		wantCode(t, modify("phys", 2), berth.Unavailable)
		wantCode(t, modify("", 2), berth.Unavailable)
		time.Sleep(8 * day * time.Second)
		wantCode(t, extend(), berth.Unavailable)
		wantCode(t, modify("chem", 1), berth.Unavailable)
		silent = false
		if err := extend(); err != nil {
			t.Errorf("it answers again: %v", err)
		}
		silent = true
		if err := ask(); err != nil {
			t.Errorf("what it said a moment ago: %v", err)
		}
		time.Sleep(8 * day * time.Second)
		wantCode(t, ask(), berth.Unavailable)
	})
}
