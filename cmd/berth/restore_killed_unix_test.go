//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/internal/withparent"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/journal/postgres/postgrestest"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

var killings = effort.Flag("restore.kills", 24, "how many times berth journal restore is killed, on each store")

// promiseMany has a service on a data directory promise n more reservations, so that what restores it writes several batches.
func promiseMany(t *testing.T, dir string, n int) {
	t.Helper()
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	host, err := service.Open(t.Context(), service.Options{
		Config:  engine.Config{Sites: []berth.Site{{Name: "cm5", Pools: []berth.Pool{{Name: "batch", PEs: 64, Binding: berth.Late}}}}},
		Journal: store, Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	now := berth.Time(time.Now().Unix())
	var asking sync.WaitGroup
	for range 32 {
		asking.Go(func() {
			for range n / 32 {
				if _, err := host.Submit(t.Context(), service.Ask{By: service.Principal{User: "ann", Role: service.User}}, berth.Rigid("", 0, now+3600, now+9_000_000, 1, 60)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	asking.Wait()
	if err := errors.Join(host.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
}

// killedAfter runs berth journal restore and kills it with -9 when that says so, which is called with a channel that is closed once the
// process has ended. It reports whether the process was killed.
func killedAfter(t *testing.T, args []string, when func(ended <-chan struct{})) bool {
	t.Helper()
	child := exec.CommandContext(t.Context(), "berth", append([]string{"journal", "restore"}, args...)...) //nolint:gosec // of the test
	child.SysProcAttr = withparent.Attr()
	var said bytes.Buffer
	child.Stdout, child.Stderr = &said, &said
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = child.Wait() // how it ended is looked at below
		close(ended)
	}()
	when(ended)
	_ = child.Process.Kill() // it may have ended
	<-ended
	status, is := child.ProcessState.Sys().(syscall.WaitStatus)
	if !is || status.Signal() != syscall.SIGKILL && !child.ProcessState.Success() {
		t.Fatalf("restore %v: %v: %s", args, child.ProcessState, said.String())
	}
	return status.Signal() == syscall.SIGKILL
}

// some returns what waits for a part of a length of time, or until the process has ended.
func some(of time.Duration, part, parts int) func(<-chan struct{}) {
	return func(ended <-chan struct{}) {
		select {
		case <-time.After(of * time.Duration(part+1) / time.Duration(parts)):
		case <-ended:
		}
	}
}

// endOf is where a journal ends that can be read; the error is the one of opening it.
func endOf(t *testing.T, place string) (last journal.Position, err error) {
	t.Helper()
	var s store
	if postgres.IsURL(place) {
		s, err = postgres.Open(t.Context(), place, postgres.Options{ReadOnly: true})
	} else {
		s, err = sqlite.Open(place, sqlite.Options{ReadOnly: true})
	}
	if err != nil {
		return last, err
	}
	last, err = s.Last(t.Context())
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return last, nil
}

// tokensIn are those of a data directory; empty if it has none.
func tokensIn(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, "tokens.json")) //nolint:gosec // then there are none
	return string(text)
}

// cutShort wants an error to say that a restore was, and the same of a service that starts there.
func cutShort(t *testing.T, err error, serve ...string) {
	t.Helper()
	if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Conflict || !strings.Contains(err.Error(), "was cut short") {
		t.Fatalf("it is %v", err)
	}
	config := filepath.Join(t.TempDir(), "sites.yaml")
	if err := os.WriteFile(config, []byte("sites:\n  - {name: cm5, pes: 64}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	said, err := exec.CommandContext(ctx, "berth", append([]string{"serve", "--config", config, "--listen", "127.0.0.1:0"}, serve...)...).CombinedOutput() //nolint:gosec // of the test
	if err == nil || ctx.Err() != nil || !strings.Contains(string(said), "was cut short") {
		t.Fatalf("a service starts: %v: %s", err, said)
	}
}

// again restores what was cut short, or was not begun, and wants the journal and the tokens of the backup to be there.
func again(t *testing.T, args []string, place, dir string, want journal.Position, tokens string) string {
	t.Helper()
	code, out, said := restoring(args...)
	if code != exitOK || !strings.Contains(out, "restored to ") {
		t.Fatalf("again: exit %d: %s%s", code, out, said)
	}
	if last, err := endOf(t, place); err != nil || last != want || tokensIn(dir) != tokens {
		t.Fatalf("again: it ends with %d, %v, with the tokens %q", last.Number, err, tokensIn(dir))
	}
	return out
}

// backedUp makes a data directory with many promises and a backup of it, and tells where the backup ends and which tokens it has.
func backedUp(t *testing.T) (data, backup string, end journal.Position, tokens string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	stopped(t, data, 1)
	promiseMany(t, data, 1600)
	backup = backupOf(t, data)
	end, err := endOf(t, backup)
	if err != nil {
		t.Fatal(err)
	}
	return data, backup, end, tokensIn(backup)
}

// A restore into a directory that is killed at any time has left all of what was there, or restored all; or no service starts there,
// and the same command brings it to its end and says what was lost. What was there is whole, in one folder.
func TestRestoreKilledAtAnyTime(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: kills a command that does one thing after another")
	}
	data, backup, want, tokens := backedUp(t)
	promiseMany(t, data, 64)
	old, err := endOf(t, data)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "tokens.json"), []byte("[]\n"), 0o600); err != nil { // revoked since
		t.Fatal(err)
	}
	began := time.Now()
	killedAfter(t, []string{backup, "--data", changed(t, data, onlyOurs), "--aside"}, func(ended <-chan struct{}) { <-ended })
	takes := time.Since(began)
	// The test waits for the folder that says that all is ready, so that one round at least is killed with files in two places.
	ready := func(dir string) func(<-chan struct{}) {
		return func(ended <-chan struct{}) {
			for !sqlite.CutShort(dir) {
				select {
				case <-ended:
					return
				case <-time.After(100 * time.Microsecond):
				}
			}
		}
	}
	n, was := killings(), map[string]int{}
	for round := 0; round < n || was["cut short"] == 0 && round < 10*n; round++ {
		dir := changed(t, data, onlyOurs)
		when := some(takes, round, n)
		if round%2 == 1 {
			when = ready(dir)
		}
		args := []string{backup, "--data", dir, "--aside"}
		killed := killedAfter(t, args, when)
		last, err := endOf(t, dir)
		switch {
		case err != nil:
			was["cut short"]++
			cutShort(t, err, "--data", dir)
			if code, _, said := restoring(append(args, "--dry-run")...); code != exitConflict || !strings.Contains(said, "without --dry-run") {
				t.Fatalf("dry: exit %d: %s", code, said)
			}
			if out := again(t, args, dir, dir, want, tokens); !strings.Contains(out, "acknowledged after the backup and not in it: 64") || !strings.Contains(out, "tokens revoked since and good again: 1") {
				t.Fatal(out)
			}
		case last == old && killed:
			was["as it was"]++
			if tokensIn(dir) != "[]\n" {
				t.Fatalf("round %d: the tokens are %q", round, tokensIn(dir))
			}
			again(t, args, dir, dir, want, tokens)
		case last == want && tokensIn(dir) == tokens:
			was["restored"]++
		default:
			t.Fatalf("round %d: it ends with %d", round, last.Number)
		}
		aside := filepath.Join(dir, "before-restore-1")
		if last, err := endOf(t, aside); err != nil || last != old || tokensIn(aside) != "[]\n" {
			t.Fatalf("round %d: aside is %d, %v, %q", round, last.Number, err, tokensIn(aside))
		}
	}
	if was["cut short"] == 0 {
		t.Errorf("after %d rounds: %v", n, was)
	}
	t.Logf("after %d rounds: %v", n, was)
}

// onlyOurs gives a copy of a data directory the modes that a service wants.
func onlyOurs(folder string) error {
	return filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.Chmod(path, 0o700) //nolint:gosec // a folder
		}
		return os.Chmod(path, 0o600)
	})
}

// So has a restore into a database, with what is beside the journal in a directory.
func TestRestoreIntoPostgreSQLKilledAtAnyTime(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: kills a command that does one thing after another")
	}
	server := postgrestest.Start(t)
	data, backup, want, tokens := backedUp(t)
	root := t.TempDir()
	trial := func(round int) (args []string, url, dir string) {
		url, dir = server.URL(fmt.Sprintf("round%d", round)), filepath.Join(root, fmt.Sprint("dir", round))
		return []string{backup, "--data", dir, "--journal", url}, url, dir
	}
	n, was := killings(), map[string]int{}
	began := time.Now()
	args, _, _ := trial(n)
	killedAfter(t, args, func(ended <-chan struct{}) { <-ended })
	takes := time.Since(began)
	// One round in two is killed as soon as the database says that it is not whole.
	marked := func(url string) func(<-chan struct{}) {
		return func(ended <-chan struct{}) {
			for {
				s, err := postgres.Open(t.Context(), url, postgres.Options{ReadOnly: true, Fill: true})
				if err == nil {
					by, err := s.FilledBy(t.Context())
					if err := errors.Join(err, s.Close()); err != nil {
						t.Error(err)
						return
					}
					if by != "" {
						return
					}
				}
				select {
				case <-ended:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}
	}
	for round := range n {
		args, url, dir := trial(round)
		when := some(takes, round, n)
		switch {
		case round == n-1:
			when = func(ended <-chan struct{}) { <-ended }
		case round%2 == 1:
			when = marked(url)
		}
		killedAfter(t, args, when)
		last, err := endOf(t, url)
		coded, is := errors.AsType[*berth.Error](err)
		switch {
		case is && coded.Code == berth.NotFound, err == nil && last.Number == 0:
			was["empty"]++
			if tokensIn(dir) != "" {
				t.Fatalf("round %d: the tokens are %q", round, tokensIn(dir))
			}
			again(t, args, url, dir, want, tokens)
		case err != nil:
			was["cut short"]++
			cutShort(t, err, "--data", filepath.Join(root, fmt.Sprint("other", round)), "--journal", url)
			if other := changed(t, data, onlyOurs); round%4 == 1 {
				code, _, said := restoring(backupOf(t, promised(t, other)), "--data", dir, "--journal", url)
				if code != exitConflict || !strings.Contains(said, "is not whole: berth journal restore of a backup up to record") {
					t.Fatalf("another backup: exit %d: %s", code, said)
				}
			}
			again(t, args, url, dir, want, tokens)
		case last == want && tokensIn(dir) == tokens:
			was["restored"]++
			if code, _, said := restoring(args...); code != exitConflict || !strings.Contains(said, "has the journal of this backup already") {
				t.Fatalf("once more: exit %d: %s", code, said)
			}
			code, _, said := restoring(backupOf(t, promised(t, changed(t, data, onlyOurs))), "--data", dir, "--journal", url)
			if code != exitConflict || !matches(`has a journal up to record \d+, and restore writes over none: want an empty database, or another schema`, said) {
				t.Fatalf("another backup: exit %d: %s", code, said)
			}
		default:
			t.Fatalf("round %d: it ends with %d, %v", round, last.Number, err)
		}
	}
	if was["cut short"] == 0 || was["restored"] == 0 {
		t.Errorf("after %d rounds: %v", n, was)
	}
	t.Logf("after %d rounds: %v", n, was)
}

// promised has a service promise one more reservation.
func promised(t *testing.T, dir string) string {
	t.Helper()
	promiseMany(t, dir, 32)
	return dir
}
