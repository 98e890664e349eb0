package service_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	sacct "github.com/berth-hpc/berth/site/slurm/accounting"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// accounted returns the runs of all jobs from slurmdbd, also of jobs that ran again.
func (l *lab) accounted() []sacct.Run {
	l.t.Helper()
	out, err := l.cluster.Command("env", "SLURM_TIME_FORMAT=%s", "sacct", "--allusers", "--allocations", "--parsable2", "--duplicates", "--starttime=now-2hours", "--format="+sacct.Format)
	if err != nil {
		l.t.Fatal(err, out)
	}
	runs, err := sacct.Read(strings.NewReader(out), time.UTC)
	if err != nil {
		l.t.Fatal(err, out)
	}
	for i := range runs {
		runs[i].PEs = runs[i].Nodes
	}
	return runs
}

// counted returns the runs of jobs in a reservation as its history has them.
func (l *lab) counted(id string) (runs []sacct.Run) {
	l.t.Helper()
	past, _, err := l.host.History(l.t.Context(), l.by.By, id)
	if err != nil {
		l.t.Fatal(err)
	}
	open := map[site.JobID]sacct.Run{}
	for _, h := range past.List {
		switch {
		case h.Task == nil:
		case h.What == service.TaskStarted:
			open[h.Task.ID] = sacct.Run{Job: string(h.Task.ID), PEs: h.PEs, Start: h.Task.Start}
		case h.What == service.TaskEnded:
			delete(open, h.Task.ID)
			runs = append(runs, sacct.Run{Job: string(h.Task.ID), PEs: h.PEs, Start: h.Task.Start, End: h.Task.End})
		case h.What == service.TaskRequeued:
			r := open[h.Task.ID]
			r.End, r.Ending = h.At, sacct.Requeued
			runs = append(runs, r)
			delete(open, h.Task.ID)
		}
	}
	if len(open) > 0 {
		l.t.Errorf("of %s these runs have no end: %v", id, open)
	}
	return runs
}

// What berth report tells is what slurmdbd has accounted, to the PE-second but for differences that have a known reason, by user, account and month, over promises
// that were used, left unused, given up, moved, cancelled, given back early, overrun, shared, and hit by the death of a node.
func TestReportAgreesWithTheAccountingOfSlurm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can run jobs of others")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{Accounting: true, Nodes: 8}), site.UnitNode, false)
	for _, line := range []string{"add account project", "add account course", "add user games account=project", "add user games account=course", "add user daemon account=project"} {
		l.cluster.Account(line)
	}
	l.until("slurmctld knows them", func() bool {
		known, err := l.cluster.Command("scontrol", "--oneliner", "show", "assoc_mgr", "flags=assoc", "users=daemon")
		both, unread := l.cluster.Command("scontrol", "--oneliner", "show", "assoc_mgr", "flags=assoc", "users=games")
		return err == nil && unread == nil && strings.Contains(known, "Account=project") && strings.Contains(both, "Account=project") && strings.Contains(both, "Account=course")
	})
	var ids []string
	owners := map[string]string{} // of reservations by the part of their name that stays
	ask := func(user string, with berth.Sharing, in, length, noShow berth.Duration) string {
		t.Helper()
		start := l.host.Now().Add(in)
		r := berth.Rigid("", 0, start, start.Add(length), 1, length)
		r.User, r.Sharing, r.NoShow = user, with, noShow
		a, err := l.host.Submit(t.Context(), l.by, r)
		if err != nil || !isPromised(a.Reservation) {
			t.Fatal(a, err)
		}
		owners[generation.ReplaceAllString(l.made(a.Reservation.ID), "")] = fmt.Sprint(user, " ", with.Account, " ", policy.MonthOf(start))
		ids = append(ids, a.Reservation.ID)
		return a.Reservation.ID
	}
	job := func(user, account, id, length string, more ...string) string {
		t.Helper()
		args := append([]string{"sbatch", "--parsable", "--account=" + account, "--reservation=" + l.made(id), "--time=1", "--output=/dev/null", "--chdir=/tmp"}, more...)
		out, err := l.as(user, append(args, "--wrap=sleep "+length)...)
		if err != nil {
			t.Fatal(err, out)
		}
		return strings.TrimSpace(out)
	}
	scontrol := func(args ...string) {
		t.Helper()
		if out, err := l.cluster.Command("scontrol", args...); err != nil {
			t.Fatal(args, err, out)
		}
	}
	began := func(job string) {
		t.Helper()
		l.until(job+" has run for 3 s", func() bool { return ranFor.MatchString(l.shown("job", job)) })
	}

	project, course := berth.Sharing{Account: "project"}, berth.Sharing{Account: "course"}
	used := ask("games", berth.Sharing{Account: "project", Users: []string{"daemon"}}, 4, 80, 0)
	overrun := ask("games", course, 4, 75, 0)
	early := ask("games", course, 4, 80, 0)
	dies := ask("daemon", project, 4, 100, 0)
	ask("daemon", project, 4, 20, 0) // unused
	ask("games", project, 4, 80, 10) // no show
	moved := ask("daemon", project, 25, 80, 0)
	cancelled := ask("daemon", project, 60, 80, 0)

	job("games", "project", used, "7")
	job("games", "project", used, "3", "--array=1-3")
	job("games", "project", used, "0") // over between two looks
	job("daemon", "project", used, "5")
	longer, ends, lost := job("games", "course", overrun, "1000"), job("games", "course", early, "1000"), job("daemon", "project", dies, "20", "--requeue")
	job("daemon", "project", moved, "4")
	if err := l.host.Drain(t.Context(), l.by, "lab", l.nodes(moved), "tired"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.host.Release(t.Context(), l.by, cancelled); err != nil {
		t.Fatal(err)
	}
	began(longer)
	scontrol("update", "jobid="+longer, "timelimit=10")
	began(lost)
	began(ends)
	scontrol("update", "nodename="+l.nodes(dies), "state=down", "reason=dead")
	if _, err := l.host.Release(t.Context(), l.by, early); err != nil {
		t.Fatal(err)
	}
	again := job("games", "project", used, "2")
	l.until("it is over", func() bool { return !strings.Contains(l.shown("job", again), "JobState=PENDING") })
	l.untilIn("all promises are over", 150*time.Second, func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return !l.get(id).State.Over() })
	})

	var runs []sacct.Run
	l.until("all jobs are over", func() bool {
		runs = l.accounted()
		return !slices.ContainsFunc(runs, func(r sacct.Run) bool { return r.State == "RUNNING" || r.State == "PENDING" || r.End == 0 })
	})
	// Each difference has a reason that is known, and what the report adds up is what the histories have.
	want, counted, taken := map[string]int64{}, map[string]int64{}, map[int]bool{}
	nameless := map[string][]int64{} // of want what each run has that was killed and no longer knows its reservation
	for _, id := range ids {
		promise := site.NamesAt("lab").Promise(id)
		owner := owners[promise]
		ours, theirs := l.counted(id), []sacct.Run(nil)
		for i, r := range runs {
			if of := generation.ReplaceAllString(r.Reservation, ""); of == promise || of == "" && slices.ContainsFunc(ours, func(o sacct.Run) bool { return o.Job == r.Job }) {
				theirs, taken[i] = append(theirs, r), true
			}
		}
		for _, d := range sacct.Compare(ours, theirs) {
			if t.Logf("%s: %+v", id, d); !d.Reason.Named() {
				t.Errorf("%s: %+v has no reason: counted %+v, accounted %+v", id, d, ours, theirs)
			}
		}
		if n := sacct.Total(theirs); n > 0 {
			want[owner] += n
			for _, r := range theirs {
				if r.Reservation == "" && strings.HasPrefix(r.State, "CANCELLED") {
					nameless[owner] = append(nameless[owner], sacct.Total([]sacct.Run{r}))
				}
			}
		}
		if n := sacct.Total(ours); n > 0 {
			counted[owner] += n
		}
	}
	for i, r := range runs {
		if !taken[i] && r.Start > 0 && r.End > r.Start {
			t.Errorf("%+v is in no reservation of ours", r)
		}
	}
	report, _, err := l.host.Usage(t.Context(), l.by.By, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, u := range report.List {
		t.Logf("%+v", u)
		got[fmt.Sprint(u.User, " ", u.Account, " ", u.Month)] = u.Ran
	}
	maps.DeleteFunc(got, func(_ string, n int64) bool { return n == 0 })
	if len(want) != 3 || !maps.Equal(got, counted) {
		t.Errorf("the report has %v, histories %v, sacct %v; want the first two the same, and three owners", got, counted, want)
	}

	out, err := l.cluster.Command("sreport", "--parsable2", "--noheader", "-t", "Seconds", "--tres=cpu", "reservation", "utilization", "start=now-2hours", "end=now+2hours",
		"format=Name,Allocated")
	if err != nil {
		t.Fatal(err, out)
	}
	reported, rows := map[string]int64{}, 0
	for line := range strings.Lines(out) {
		name, seconds, _ := strings.Cut(strings.TrimSpace(line), "|")
		owner, is := owners[generation.ReplaceAllString(name, "")]
		if n, err := strconv.ParseInt(seconds, 10, 64); is && err == nil {
			reported[owner], rows = reported[owner]+n, rows+1
		}
	}
	if rows == 0 && time.Now().Minute() < 30 {
		t.Log("sreport rounds to hours and does not count this one before its second half; it is not compared:", out)
		return
	}
	// Each job has one CPU of one node. Slurm may forget where one ran that was killed because its reservation went: sreport has it or not.
	for owner, n := range want {
		may := map[int64]bool{n: true}
		for _, without := range nameless[owner] {
			for sum := range maps.Clone(may) {
				may[sum-without] = true
			}
		}
		if !may[reported[owner]] {
			t.Errorf("sreport has %d of %s, sacct %d, runs without a reservation %d\n%s%+v", reported[owner], owner, n, nameless[owner], out, runs)
		}
	}
	if len(reported) > len(want) {
		t.Errorf("sreport has %v, sacct %v\n%s", reported, want, out)
	}
}

// ranFor is what Slurm shows of a job that has run for three to nine seconds.
var ranFor = regexp.MustCompile(`JobState=RUNNING .* RunTime=00:00:0[3-9] `)

// generation is what grows in the name of a reservation when it is made anew.
var generation = regexp.MustCompile(`_[0-9]+$`)
