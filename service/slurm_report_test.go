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
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// accounted is a job, or one of its runs, as sacct tells it.
type accounted struct {
	id, user, reservation, state string
	nodes                        berth.Count
	start, end                   berth.Time // 0 is unknown
}

// accounted returns the runs of all jobs in reservations from slurmdbd, also of jobs that ran again.
func (l *lab) accounted() (runs []accounted) {
	l.t.Helper()
	out, err := l.cluster.Command("env", "SLURM_TIME_FORMAT=%s", "sacct", "--allusers", "--allocations", "--parsable2", "--noheader", "--duplicates",
		"--starttime=now-2hours", "--format=JobIDRaw,User,ReservationID,State,NNodes,Start,End")
	if err != nil {
		l.t.Fatal(err, out)
	}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 7 {
			l.t.Fatalf("sacct says %q", line)
		}
		number := func(text string) int64 {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil && text != "Unknown" && text != "None" {
				l.t.Fatalf("sacct says %q: %v", line, err)
			}
			return n
		}
		runs = append(runs, accounted{f[0], f[1], f[2], f[3], berth.Count(number(f[4])), berth.Time(number(f[5])), berth.Time(number(f[6]))})
	}
	return runs
}

// What berth report tells is what slurmdbd has accounted, to the PE-second but for what is named below, by user, account and month, over promises
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
		if out, err := l.cluster.Command("sacctmgr", append([]string{"--immediate"}, strings.Fields(line)...)...); err != nil {
			t.Fatal(line, err, out)
		}
	}
	l.until("slurmctld knows them", func() bool {
		users, err := l.cluster.Command("scontrol", "--oneliner", "show", "assoc_mgr", "flags=assoc", "users=daemon")
		return err == nil && strings.Contains(users, "Account=project")
	})
	var ids []string
	owners := map[string]string{} // of reservations by the part of their name that stays
	ask := func(user string, with berth.Sharing, in, length, noShow berth.Duration) string {
		t.Helper()
		start := l.host.Now().Add(in)
		r := berth.Rigid("", 0, start, start.Add(length), 1, length)
		r.User, r.Sharing, r.NoShow = user, with, noShow
		a, err := l.host.Submit(t.Context(), l.by, r)
		if err != nil || a.Reservation.State != service.Confirmed {
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

	var runs []accounted
	l.until("all jobs are over", func() bool {
		runs = l.accounted()
		return !slices.ContainsFunc(runs, func(r accounted) bool { return r.state == "RUNNING" || r.state == "PENDING" || r.end == 0 })
	})
	names, err := l.cluster.Command("sacctmgr", "--noheader", "--parsable2", "show", "reservation", "format=ID,Name")
	if err != nil {
		t.Fatal(err, names)
	}
	named := map[string]string{}
	for line := range strings.Lines(names) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), "|")
		named[id] = generation.ReplaceAllString(name, "")
	}
	// How much more may be counted: a run that Slurm put back into its queue counts until the look that shows so, and a
	// job that 24.11 killed was seen to count a second more.
	want, more := map[string]int64{}, map[string]int64{}
	for _, r := range runs {
		t.Logf("%+v", r)
		owner, is := owners[named[r.reservation]]
		switch {
		case r.start == 0 || r.end == r.start:
		case !is:
			t.Errorf("%+v is in no reservation of ours", r)
		default:
			want[owner] += berth.Area(r.nodes, r.end.Sub(r.start))
			switch {
			case r.state == "NODE_FAIL" || r.state == "REQUEUED":
				more[owner] += 5
			case strings.HasPrefix(r.state, "CANCELLED"):
				more[owner]++
			}
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
	if len(want) != 3 || len(more) != 2 {
		t.Fatalf("sacct has %v, and %v more may be counted; want three owners and two", want, more)
	}
	for owner, n := range want {
		if got[owner] < n || got[owner] > n+more[owner] {
			t.Errorf("%s has used %d, sacct has %d", owner, got[owner], n)
		}
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
	} else if !maps.Equal(reported, want) { // each job has one CPU of one node
		t.Errorf("sreport has %v, sacct %v\n%s", reported, want, out)
	}
}

// ranFor is what Slurm shows of a job that has run for three to nine seconds.
var ranFor = regexp.MustCompile(`JobState=RUNNING .* RunTime=00:00:0[3-9] `)

// generation is what grows in the name of a reservation when it is made anew.
var generation = regexp.MustCompile(`_[0-9]+$`)
