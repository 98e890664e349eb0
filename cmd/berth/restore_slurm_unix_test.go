//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// restoredLab is a service with a journal in a directory, in front of a real Slurm.
type restoredLab struct {
	*pair
	cluster *slurmtest.Cluster
	config  string
	at      *server
}

// start starts the service on a data directory, and waits until it has looked at the cluster.
func (l *restoredLab) start(data string, more ...string) {
	l.t.Helper()
	address := freeAddress(l.t)
	l.at = &server{url: "http://" + address, data: data, ended: make(chan struct{})}
	l.at.args = append([]string{"serve", "--data", data, "--listen", address, "--config", l.config}, more...)
	l.run(l.at)
	l.until(l.at, http.MethodGet, "/readyz", "", "", has(http.StatusOK, ""))
}

// end ends it with a signal.
func (l *restoredLab) end(how syscall.Signal) {
	l.t.Helper()
	l.signal(l.at, how)
	<-l.at.ended
}

// window asks for one node from a time on, for so long, under a key, and returns the id of what is promised.
func (l *restoredLab) window(key string, in, length time.Duration) string {
	l.t.Helper()
	answer := l.until(l.at, http.MethodPost, "/v1/requests", windowOf(in, length), key, has(http.StatusCreated, `"accepted"`))
	return idOf(answer)
}

func windowOf(in, length time.Duration) string {
	from := time.Now().Add(in).UTC()
	return fmt.Sprintf(`{"npe":1,"duration":%d,"ready":%q,"deadline":%q}`, int(length.Seconds()), from.Format(time.RFC3339), from.Add(length).Format(time.RFC3339))
}

func (l *restoredLab) get(id string) (r form.Reservation) {
	l.t.Helper()
	answer := l.until(l.at, http.MethodGet, "/v1/reservations/"+id, "", "", has(http.StatusOK, ""))
	_, text, _ := strings.Cut(answer, "\n")
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		l.t.Fatal(answer, err)
	}
	return r
}

// line returns what the cluster has of a name: empty if it is not there.
func (l *restoredLab) line(name string) string {
	l.t.Helper()
	list := booked(l.t, l.cluster)
	at := slices.IndexFunc(list, func(line string) bool { return strings.HasPrefix(line, "ReservationName="+name+" ") })
	if at < 0 {
		return ""
	}
	return list[at]
}

// promised waits until the cluster has a promise where and when it is promised, and returns its name there.
func (l *restoredLab) promised(id string) string {
	l.t.Helper()
	name, shown := "", ""
	l.eventually("the cluster has "+id+" as promised", func() bool {
		r := l.get(id)
		if len(r.Sites) != 1 || !r.Sites[0].Made {
			return false
		}
		name = r.Sites[0].Name
		shown = l.line(name)
		for _, want := range []string{"StartTime=" + slurmTime(r.Start), "EndTime=" + slurmTime(r.End), "Nodes=" + strings.Join(r.Nodes, ",") + " "} {
			if !strings.Contains(shown, want) {
				return false
			}
		}
		return true
	})
	return name
}

func slurmTime(at form.Time) string {
	return time.Unix(int64(at), 0).UTC().Format("2006-01-02T15:04:05")
}

func (l *restoredLab) eventually(what string, holds func() bool) {
	l.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !holds(); <-tick.C {
		if time.Since(began) > time.Minute {
			l.t.Fatalf("in vain: %s; the cluster has %q", what, booked(l.t, l.cluster))
		}
	}
}

func (l *restoredLab) command(name string, args ...string) string {
	l.t.Helper()
	out, err := l.cluster.Command(name, args...)
	if err != nil {
		l.t.Fatalf("%s %q: %v %s", name, args, err, out)
	}
	return strings.TrimSpace(out)
}

// site returns what the service says of the cluster.
func (l *restoredLab) site() (s form.Site) {
	l.t.Helper()
	answer := l.until(l.at, http.MethodGet, "/v1/sites/lab", "", "", has(http.StatusOK, ""))
	_, text, _ := strings.Cut(answer, "\n")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		l.t.Fatal(answer, err)
	}
	return s
}

// ok runs a command that has to succeed.
func (l *restoredLab) ok(args ...string) string {
	l.t.Helper()
	out, err := l.berth(l.at, args...)
	if err != nil {
		l.t.Fatalf("berth %q: %v %s", args, err, out)
	}
	return out
}

// backupLoad is clients that have things promised that the cluster is not told of yet.
type backupLoad struct {
	stop   chan struct{}
	asking sync.WaitGroup
	mu     sync.Mutex
	ids    []string
	wrong  []string
}

func (l *restoredLab) load(clients int) *backupLoad {
	load := &backupLoad{stop: make(chan struct{})}
	a := &asker{url: l.at.url, tokens: l.asker.tokens}
	body := fmt.Sprintf(`{"npe":1,"duration":600,"ready":%q,"deadline":%q}`, hoursFromNow(500), hoursFromNow(2000))
	for n := range clients {
		load.asking.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond) // what is lost is listed up to 1,000
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-load.stop:
					return
				case <-tick.C:
				}
				status, answer, err := a.plain("operator", http.MethodPost, "/v1/requests", body, fmt.Sprint("load-", n, "-", i))
				load.mu.Lock()
				if id := idOf(answer); err == nil && status == http.StatusCreated && id != "" {
					load.ids = append(load.ids, id)
				} else {
					load.wrong = append(load.wrong, fmt.Sprintf("%d %s %v", status, answer, err))
				}
				load.mu.Unlock()
			}
		})
	}
	return load
}

// promises waits until clients have been promised n more reservations.
func (b *backupLoad) promises(l *restoredLab, n int) {
	l.t.Helper()
	has := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.wrong) > 0 {
			l.t.Fatal(b.wrong[0])
		}
		return len(b.ids)
	}
	before := has()
	l.eventually("the clients are promised more", func() bool { return has() >= before+n })
}

// A backup that was made while clients asked is restored elsewhere, beside a Slurm whose reservations have moved on: what is lost, and what Slurm has, is told before
// anything is changed; what is not known is left alone until it is adopted; and then Slurm has what is promised, and what others have there.
func TestABackupMadeUnderLoadIsRestoredBesideASlurm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 8})
	dir := t.TempDir()
	l := &restoredLab{pair: &pair{t: t, asker: &asker{tokens: map[string]string{}}}, cluster: cluster, config: filepath.Join(dir, "berth.yaml")}
	if err := os.WriteFile(l.config, fmt.Appendf(nil, "sites:\n  - {name: lab, adapter: {kind: slurm, conf: %q, every: 1s}}\n", cluster.Conf), 0o600); err != nil {
		t.Fatal(err)
	}
	old, data, backup := filepath.Join(dir, "old"), filepath.Join(dir, "new"), filepath.Join(dir, "backup")
	l.start(old)
	l.asker.tokens["operator"] = l.firstToken(l.at)
	l.command("scontrol", "create", "reservation", "ReservationName=theirs", "StartTime=now+5hours", "Duration=60", "Users=root", "NodeCnt=1")
	theirs := l.line("theirs")

	kept, moves, released := l.window("kept", time.Hour, 10*time.Minute), l.window("moves", time.Hour, 10*time.Minute), l.window("released", time.Hour, 10*time.Minute)
	short := l.window("short", 15*time.Second, 20*time.Second)
	names := map[string]string{}
	for _, id := range []string{kept, moves, released} {
		names[id] = l.promised(id)
	}
	waiting := l.command("sbatch", "--parsable", "--reservation="+names[moves], "--time=1", "--output=/dev/null", "--wrap=sleep 1000")
	first := l.get(moves)

	load := l.load(3)
	load.promises(l, 30)
	l.ok("journal", "backup", backup, "--data", old)
	load.promises(l, 30)
	since := l.window("since", 5*time.Second, 20*time.Minute)
	status, answer, err := l.to(l.at).plain("operator", http.MethodPatch, "/v1/reservations/"+moves, windowOf(2*time.Hour, 10*time.Minute), "move")
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	l.until(l.at, http.MethodDelete, "/v1/reservations/"+released, "", "release", has(http.StatusOK, ""))
	names[since], names[moves] = l.promised(since), l.promised(moves)
	close(load.stop)
	load.asking.Wait()
	if len(load.wrong) > 0 {
		t.Fatal(load.wrong[0])
	}
	running := l.command("sbatch", "--parsable", "--reservation="+names[since], "--time=10", "--output=/dev/null", "--wrap=sleep 1000")
	jobIs := func(job, state string) {
		t.Helper()
		l.eventually("job "+job+" is "+state, func() bool { return strings.Contains(l.command("scontrol", "show", "job", job), "JobState="+state) })
	}
	jobIs(running, "RUNNING")
	l.eventually("what started has ended, and what was given back is gone", func() bool {
		return l.get(short).End <= form.Time(time.Now().Unix()) && len(booked(t, cluster)) == 4 // theirs, kept, moves, since
	})
	l.end(syscall.SIGKILL)
	there := booked(t, cluster)

	told := l.dryRun(backup, data, old)
	l.tellsLost(told, since, released, moves)
	l.ok("journal", "restore", backup, "--data", data, "--old", old)
	l.ok("serve", "--check", "--data", data, "--config", l.config)
	if now := booked(t, cluster); !slices.Equal(now, there) {
		t.Errorf("the cluster had %q, and has %q", there, now)
	}

	l.start(data)
	l.eventually("it says what it does not know", func() bool {
		trouble := l.site().Trouble
		return strings.Contains(trouble, "not served: 1 reservations") && strings.Contains(trouble, names[since])
	})
	if status, answer, err := l.to(l.at).plain("operator", http.MethodPost, "/v1/requests", windowOf(3*time.Hour, time.Minute), "not served"); err != nil || strings.Contains(answer, `"accepted"`) {
		t.Errorf("a site that is not served promises: %d %s %v", status, answer, err)
	}
	jobIs(running, "RUNNING")
	jobIs(waiting, "PENDING")
	if l.line(names[since]) == "" || l.line("theirs") != theirs {
		t.Errorf("what is not known is changed: %q", booked(t, cluster))
	}
	l.end(syscall.SIGINT)

	l.start(data, "--adopt")
	for _, id := range []string{kept, moves, released} {
		l.promised(id)
	}
	if again := l.get(moves); again.Start != first.Start || again.End != first.End || again.State != "confirmed" {
		t.Errorf("it is %+v, and was %+v", again, first)
	}
	jobIs(waiting, "PENDING")
	if job := l.command("scontrol", "--oneliner", "show", "job", waiting); !strings.Contains(job, "Reservation="+l.promised(moves)+" ") {
		t.Errorf("the job that waits is not in its promise: %s", job)
	}
	l.eventually("the cluster has what is promised and what others have, and nothing else", func() bool { return len(booked(t, cluster)) == 4 })
	if l.line("theirs") != theirs || l.line(names[since]) != "" {
		t.Errorf("the cluster has %q", booked(t, cluster))
	}
	if r := l.get(short); r.State != "finished" {
		t.Errorf("what has ended is %+v", r)
	}
	l.nothingSilent(load.ids, told)
	l.window("served again", 3*time.Hour, time.Minute)
	l.end(syscall.SIGINT)
	l.ok("journal", "verify", "--data", data)
	schedule := filepath.Join(dir, "all.jsonl")
	l.ok("journal", "export", "--data", data, "--form", "schedule", "--out", schedule)
	l.ok("check", schedule)
	if log := l.at.said.String(); !strings.Contains(log, names[since]) || !strings.Contains(log, running) {
		t.Errorf("the log does not say that job %s ended with %s: %s", running, names[since], log)
	}
}

// dryRun says what a restore would do, which changes nothing.
func (l *restoredLab) dryRun(backup, data, old string) (told restored) {
	l.t.Helper()
	out := l.ok("journal", "restore", backup, "--data", data, "--old", old, "--dry-run", "-o", "json")
	if err := json.Unmarshal([]byte(out), &told); err != nil || told.Restored || told.Since == nil {
		l.t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Lstat(data); err == nil {
		l.t.Error("a dry run has made the directory")
	}
	return told
}

// tellsLost looks whether what the backup lacks is told: a promise that was made since, one that was given back, and one that has moved.
func (l *restoredLab) tellsLost(told restored, since, released, moves string) {
	l.t.Helper()
	one := func(what string, list lostList, id string) {
		l.t.Helper()
		if list.Count != 1 || list.Promises[0].ID != id {
			l.t.Errorf("%s: %+v; want %s", what, list, id)
		}
	}
	one("live again", told.Since.Again, released)
	one("as before again", told.Since.Otherwise, moves)
	if !slices.ContainsFunc(told.Since.Missing.Promises, func(p lostPromise) bool { return p.ID == since }) || told.Since.Records == 0 || told.Since.Other || told.Since.Damage != "" {
		l.t.Errorf("what was promised since is not told: %+v", told.Since)
	}
	if len(told.Since.Sites) != 1 {
		l.t.Fatalf("sites: %+v", told.Since.Sites)
	}
	if at := told.Since.Sites[0]; at.Name != "lab" || !slices.Equal(at.IDs, []string{since}) || at.Unknown != 1 || at.Absent != 1 || at.Otherwise != 1 {
		l.t.Errorf("at the cluster: %+v", at)
	}
}

// nothingSilent looks whether each promise that a client was given is kept, or was told to be lost.
func (l *restoredLab) nothingSilent(ids []string, told restored) {
	l.t.Helper()
	lost := map[string]bool{}
	for i := range told.Since.Missing.Promises {
		lost[told.Since.Missing.Promises[i].ID] = true
	}
	live := 0
	for _, id := range ids {
		status, answer, err := l.to(l.at).plain("operator", http.MethodGet, "/v1/reservations/"+id, "", "")
		switch {
		case err != nil || status != http.StatusOK && status != http.StatusNotFound:
			l.t.Fatalf("%d %s %v", status, answer, err)
		case (status == http.StatusOK) == lost[id]:
			l.t.Errorf("%s is answered %d, and told to be lost: %t", id, status, lost[id])
		case status == http.StatusOK:
			live++
		}
	}
	l.t.Logf("of %d promises that clients were given about the time of the backup %d are kept, and %d were told to be lost", len(ids), live, len(ids)-live)
	if live < 30 || live == len(ids) {
		l.t.Errorf("%d of %d are kept", live, len(ids))
	}
}
