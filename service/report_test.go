package service

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/site"
)

// What was promised, delivered and used is counted to the PE-second: what a site had too late, what was moved, lost or
// given back, and jobs that are heard of when their reservation is over.
func TestWhatBecameOfPromises(t *testing.T) {
	u := newUsage(Principal{User: "root", Role: Operator}, 0, policy.Month(1<<20))
	u.shadowed, u.config = func(*berth.Request) bool { return false }, &engine.Config{}
	u.known = func(string) *berth.Reservation { return nil }
	u.managed = func(site string) bool { return site == "lab" }
	at := func(now berth.Time, c change.Change) {
		u.note(&change.Change{Kind: change.Advanced, Now: now})
		u.note(&c)
	}
	place := func(site string, npe berth.Count, start, end berth.Time) []berth.Allotment {
		return []berth.Allotment{{Resource: berth.ResourceID{Site: site, Name: "p"}, NPE: npe, Start: start, End: end}}
	}
	promise := func(now berth.Time, id, user string, where []berth.Allotment) {
		r := berth.Rigid(id, now, where[0].Start, where[0].End, where[0].NPE, where[0].End.Sub(where[0].Start))
		r.User = user
		at(now, change.Change{Kind: change.Accepted, ID: id, Reservation: &berth.Reservation{Request: &r, Allotments: where}})
	}
	made := func(now berth.Time, id string, generation uint64) {
		u.follow(&past{at: now, in: input{delivery: &delivery{site: "lab", news: []delivered{{id, generation}}}}})
	}
	task := func(now berth.Time, id, what string, job site.Job, stage site.Stage) {
		event := taskEvent{reservation: id, what: what, task: Task{Site: "lab", Report: site.Report{Job: job, Stage: stage}}, pes: berth.Count(len(job.Shares))}
		in, err := parseInput(appendTasks(nil, &taskLook{site: "lab", events: []taskEvent{event}}), nil) // as a record has it
		if err != nil {
			t.Fatal(err)
		}
		u.follow(&past{at: now, in: in})
	}
	nodes := make([]site.Share, 2)

	promise(50, "late", "ann", place("lab", 4, 100, 200))
	made(110, "late", 1)
	task(120, "late", TaskStarted, site.Job{ID: "1", Start: 115, End: 200, Shares: nodes}, site.Running)
	task(155, "late", TaskStarted, site.Job{ID: "2", Start: 150, End: 200, Shares: nodes[:1]}, site.Running)
	task(165, "late", TaskEnded, site.Job{ID: "1", Start: 115, End: 160, Shares: nodes}, site.Ended)
	task(165, "late", TaskEnded, site.Job{ID: "never", Start: 0, End: 160}, site.Ended)
	task(170, "late", TaskStarted, site.Job{ID: "3", Start: 168, End: 200, Shares: nodes}, site.Running)
	task(180, "late", "", site.Job{ID: "3"}, site.Waiting) // requeued
	at(200, change.Change{Kind: change.Ended, ID: "late"})
	task(230, "late", TaskEnded, site.Job{ID: "2", Start: 150, End: 210}, site.Ended) // its nodes are forgotten by then

	promise(240, "lost", "bob", place("lab", 2, 300, 400))
	made(250, "lost", 1)
	at(260, change.Change{Kind: change.Moved, ID: "lost", Moved: place("lab", 2, 320, 420)})
	made(270, "lost", 2)
	at(350, change.Change{Kind: change.Lost, ID: "lost"})

	promise(450, "simulated", "cid", place("sim", 1, 500, 600))
	at(550, change.Change{Kind: change.Cancelled, ID: "simulated"})

	promise(560, "short", "dora", place("lab", 3, 600, 700))
	made(570, "short", 1)
	at(620, change.Change{Kind: change.Resized, ID: "short", Moved: place("lab", 1, 600, 700)})
	at(640, change.Change{Kind: change.Resized, ID: "short", Moved: place("lab", 3, 600, 700)})
	at(700, change.Change{Kind: change.Ended, ID: "short"})

	month := policy.MonthOf(0)
	want := []Used{
		{User: "ann", Month: month, Reservations: 1, Charged: 400, Given: Given{Promised: 400, Delivered: 400 - 4*10, Ran: 2*45 + 60 + 2*12, Late: 1}},
		{User: "bob", Month: month, Reservations: 1, Given: Given{Promised: 200, Delivered: 2 * 30, Moved: 1, Broken: 1}},
		{User: "cid", Month: month, Reservations: 1, Charged: 50, Given: Given{Promised: 50, Delivered: 50}},
		{User: "dora", Month: month, Reservations: 1, Charged: 300, Given: Given{Promised: 300, Delivered: 300 - 2*20}},
	}
	got := u.list()
	if len(got) != len(want) {
		t.Fatalf("counted are %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("counted is %+v, want %+v", got[i], want[i])
		}
	}
}

// Of reservations that have been over for long no job is waited for.
func TestReportForgetsWhatIsLongOver(t *testing.T) {
	u := newUsage(Principal{}, 0, 1)
	for i := range 5 * fewCounted {
		u.now = berth.Time(i) * 600
		u.close(string(rune('a'+i)), nil)
	}
	if n := len(u.done); n > 2*fewCounted {
		t.Errorf("%d are remembered", n)
	}
}
