package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/form"
)

// sendLog sends a log and returns its id.
func (w *attacked) sendLog(user, name string, data []byte) string {
	w.t.Helper()
	r, err := w.request(w.t.Context(), user, http.MethodPost, "/v1/lab/logs?name="+url.QueryEscape(name), string(data))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	got, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	var log form.Log
	if err != nil || got.StatusCode != http.StatusCreated || json.Unmarshal(text, &log) != nil {
		w.t.Fatalf("status %d: %s, %v", got.StatusCode, text, err)
	}
	return log.ID
}

// compare starts a comparison and returns its id.
func (w *attacked) compare(user, body string) string {
	w.t.Helper()
	var c form.Comparison
	w.must(http.StatusCreated, user, http.MethodPost, "/v1/lab/comparisons", body, &c)
	return c.ID
}

// compared waits for a comparison to be as wanted: another process does it, which tells
// no other.
func (w *attacked) compared(user, id string, good func(*form.Comparison) bool) form.Comparison {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		var c form.Comparison
		w.must(http.StatusOK, user, http.MethodGet, "/v1/lab/comparisons/"+id, "", &c)
		if good(&c) {
			return c
		}
		if time.Since(began) > time.Minute || c.State == "failed" {
			w.t.Fatalf("it is %+v", c)
		}
	}
}

func isDone(c *form.Comparison) bool { return c.State == "done" }

func isRunning(c *form.Comparison) bool { return c.State == "running" && c.Done > 0 }

func (w *attacked) file(user, id, name string) []byte {
	w.t.Helper()
	status, data := w.do(w.t.Context(), user, http.MethodGet, "/v1/lab/comparisons/"+id+"/files/"+name, "")
	if status != http.StatusOK {
		w.t.Fatalf("%s: status %d: %s", name, status, data)
	}
	return data
}

const long = `"sweep":[{"name":"policy","values":["all"]},{"name":"deadline-factor","values":["1","2","3","5"]}],"replications":20}`

// The command that is shown does the same, byte for byte.
func TestTheCommandOfAComparisonDoesTheSame(t *testing.T) {
	w := newAttacked(t)
	w.user("alice", "user")
	log := modelLog(t, 300)
	id := w.compare("alice", `{"log":"`+w.sendLog("alice", "my log.swf.gz", log)+`","settings":{"as":"mixed","failures":"30d,4h,16"},"sweep":[{"name":"policy","values":["first-fit","pe-worst"]}],"replications":3,"seed":7,"baseline":"pe-worst"}`)
	c := w.compared("alice", id, isDone)
	const want = "berth lab --workload my_log.swf.gz --as=mixed --failures=30d,4h,16 --sweep=policy=first-fit,pe-worst --replications=3 --seed=7 --baseline=pe-worst --out report"
	if c.Command != want || c.Runs != 6 || c.Done != 6 {
		t.Errorf("%+v, want the command %s", c, want)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "my_log.swf.gz"), log, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", c.Command)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"summary.csv", "runs.csv", "report.html", "summary.json", "mean_wait-over-policy.svg"} {
		ours, err := os.ReadFile(filepath.Join(dir, "report", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, w.file("alice", id, name)) {
			t.Errorf("%s differs", name)
		}
	}
	var results form.ComparisonResults
	w.must(http.StatusOK, "alice", http.MethodGet, "/v1/lab/comparisons/"+id+"/results", "", &results)
	if len(results.Rows) != 2 || !results.Rows[1].Baseline || results.Against != "pe-worst" {
		t.Errorf("%+v", results)
	}
}

// The service's own past is replayed on its own sites, and can be replayed again elsewhere.
func TestTheServicesOwnPastIsCompared(t *testing.T) {
	w := newAttacked(t)
	w.user("alice", "user")
	w.user("bob", "user")
	w.fill(50)
	at := time.Now().Add(25 * time.Hour).UTC().Format(time.RFC3339)
	for range 3 {
		w.must(http.StatusCreated, "alice", http.MethodPost, "/v1/requests", `{"npe":4000,"duration":7200,"deadline":"`+at+`","site":"cm5","pool":"batch"}`, nil)
	}
	const ask = `{"sweep":[{"name":"policy","values":["first-fit","area-worst"]}]}`
	for user, want := range map[string]int{"alice": 3, "root": 53} {
		id := w.compare(user, ask)
		c := w.compared(user, id, isDone)
		if got := bytes.Count(w.file(user, id, "history.jsonl"), []byte("\n")); got != want {
			t.Errorf("%s replays %d requests, want %d", user, got, want)
		}
		var results form.ComparisonResults
		w.must(http.StatusOK, user, http.MethodGet, "/v1/lab/comparisons/"+id+"/results", "", &results)
		if !strings.HasPrefix(results.Title, "history.jsonl on 4368 PEs of 2 sites") || len(c.Notes) != 0 {
			t.Errorf("%s: %+v, %v", user, results, c.Notes)
		}
		dir := t.TempDir()
		for _, name := range []string{"history.jsonl", "sites.yaml"} {
			if err := os.WriteFile(filepath.Join(dir, name), w.file(user, id, name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c.Command)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if ours, err := os.ReadFile(filepath.Join(dir, "report", "summary.csv")); err != nil || !bytes.Equal(ours, w.file(user, id, "summary.csv")) {
			t.Errorf("the command does something else: %v", err)
		}
	}
	// Who has requested nothing has nothing to replay.
	id := w.compare("bob", ask)
	if c := w.compared("bob", id, func(c *form.Comparison) bool { return c.Ended != 0 }); !strings.Contains(c.Trouble, "nothing was requested") {
		t.Errorf("%+v", c)
	}
}

// workers returns the processes that compare for a service.
func (w *attacked) workers() (pids []string) {
	w.t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, link := range folders {
		at, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(at, filepath.Join(w.data, "laboratory")) {
			pids = append(pids, filepath.Base(filepath.Dir(link)))
		}
	}
	return pids
}

// gone waits until no process compares any more, since there is no signal for that.
func (w *attacked) gone() {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); len(w.workers()) > 0; <-tick.C {
		if time.Since(began) > 20*time.Second {
			w.t.Fatal("a process still compares")
		}
	}
}

func TestAComparisonRunsAtTheLowestPriorityAndEndsWithItsService(t *testing.T) {
	w := newAttacked(t)
	log := modelLog(t, 3000)
	id := w.compare("root", `{"log":"`+w.sendLog("root", "a.swf.gz", log)+`",`+long)
	w.compared("root", id, isRunning)
	pids := w.workers()
	if len(pids) != 1 {
		t.Fatalf("%d processes compare, want 1", len(pids))
	}
	threads, err := filepath.Glob("/proc/" + pids[0] + "/task/*/stat")
	if err != nil || len(threads) == 0 {
		t.Fatal(err)
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if nice := fields[16]; nice != "19" {
			t.Errorf("a thread has nice %s, want 19", nice)
		}
	}
	limits, err := os.ReadFile("/proc/" + pids[0] + "/limits")
	if err != nil || !strings.Contains(string(limits), "Max data size             2147483648") {
		t.Errorf("its memory has no bound: %s, %v", limits, err)
	}
	var c form.Comparison
	w.must(http.StatusOK, "root", http.MethodDelete, "/v1/lab/comparisons/"+id, "", &c)
	if c.State != "cancelled" {
		t.Errorf("%+v", c)
	}
	w.gone()
	id = w.compare("root", `{"log":"`+w.sendLog("root", "a.swf.gz", log)+`",`+long)
	w.compared("root", id, isRunning)
	if err := w.server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = w.server.Wait() // it was killed
	w.gone()
	w.serve()
	status, text := w.do(context.Background(), "root", http.MethodGet, "/v1/lab/comparisons/"+id, "")
	if status != http.StatusNotFound || !strings.Contains(string(text), "has been restarted since") {
		t.Errorf("status %d: %s", status, text)
	}
}

// Whatever the laboratory does, others are answered soon: within bounds that leave room for a
// machine that does much else, and with -flood.full within those of TestFlood.
func TestAComparisonLeavesOthersAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("compares for some seconds")
	}
	live, watch, slower := 2000, time.Second, 5*time.Second
	if *floodFull {
		live, watch, slower = 20_000, 10*time.Second, 50*time.Millisecond
	}
	w := newAttacked(t)
	w.fill(live)
	s := w.listen()
	w.askQuietly(s, watch) // which warms it
	before := w.askQuietly(s, watch)
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
	log := w.sendLog("root", "a.swf.gz", modelLog(t, 5000))
	for name, ask := range map[string]string{"a log": `{"log":"` + log + `",` + long, "the past": `{"sweep":[{"name":"policy","values":["all"]},{"name":"noise","values":["0.1","0.2","0.3"]}],"replications":50}`} {
		id := w.compare("root", ask)
		if name == "a log" {
			w.compared("root", id, isRunning)
		}
		during := w.askQuietly(s, watch)
		var c form.Comparison
		w.must(http.StatusOK, "root", http.MethodDelete, "/v1/lab/comparisons/"+id, "", &c)
		t.Logf("%s: p99 of others %s, in peace %s; longest %s; latest start %s; %.0f of %d runs were done", name, ms(during.at(99)), ms(before.at(99)), ms(during.at(100)), ms(during.late), c.Done, c.Runs)
		if more := during.at(99) - before.at(99); more > slower {
			t.Errorf("%s: the p99 of others is %s, %s above the one in peace", name, ms(during.at(99)), ms(more))
		}
		w.gone()
	}
}
