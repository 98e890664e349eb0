package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/withparent"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/journal/postgres"
)

// ownVar tells a child process of a test the place of a journal that it is to write until it cannot.
const ownVar = "BERTH_POSTGRESTEST_OWN"

// writeOn appends records one batch after the other and tells each number once it is
// acknowledged. It returns the error that it ended with.
func writeOn(place string) error {
	s, err := open(place)
	if err != nil {
		return err
	}
	last, err := s.Last(context.Background())
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for {
		records := journaltest.Records(last, 1+rng.IntN(20), rng)
		if err := s.Append(context.Background(), records...); err != nil {
			return err
		}
		last = records[len(records)-1].Position()
		if _, err := fmt.Println(last.Number); err != nil {
			return err
		}
	}
}

// child runs writeOn in a process of its own.
type child struct {
	*exec.Cmd
	mu    sync.Mutex
	acked uint64
	said  strings.Builder // on stderr
	told  chan struct{}   // closed when it has acknowledged something
	ended chan struct{}
}

func (c *child) acknowledged() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acked
}

func startChild(t *testing.T, place string) *child {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command(program), told: make(chan struct{}), ended: make(chan struct{})}
	c.Env = append(os.Environ(), ownVar+"="+place)
	c.SysProcAttr = withparent.Attr()
	c.Stderr = &c.said
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	go func() {
		defer close(c.ended)
		lines := bufio.NewScanner(out)
		for first := true; lines.Scan(); first = false {
			n, err := strconv.ParseUint(lines.Text(), 10, 64)
			if err != nil {
				break
			}
			c.mu.Lock()
			c.acked = n
			c.mu.Unlock()
			if first {
				close(c.told)
			}
		}
		_ = c.Wait() // what it said tells more
	}()
	select {
	case <-c.told:
	case <-c.ended:
		t.Fatalf("the child ended: %s", &c.said)
	}
	return c
}

// Whoever lost the lease learns it by a conflict, also where it had the numbers right.
func TestTheOldWriterLearnsByConflict(t *testing.T) {
	shared(t)
	place := t.TempDir()
	old, err := opened(place, postgres.Options{Holder: "the old one"})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	records := journaltest.Records(journal.Position{}, 30, rand.New(rand.NewPCG(1, 1)))
	if err := old.Append(t.Context(), records[:10]...); err != nil {
		t.Fatal(err)
	}
	var e *berth.Error
	if _, err := opened(place, postgres.Options{Wait: -1}); !errors.As(err, &e) || e.Code != berth.Conflict || !strings.Contains(err.Error(), "the old one") {
		t.Fatalf("%v; want a conflict that names the holder", err)
	}
	if _, err := exec1(t, place, "UPDATE lease SET until = '-infinity'"); err != nil { // as if it had not renewed it
		t.Fatal(err)
	}
	next, err := opened(place, postgres.Options{Wait: -1})
	for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); { // it may have been renewed meanwhile
		if _, err := exec1(t, place, "UPDATE lease SET until = '-infinity'"); err != nil {
			t.Fatal(err)
		}
		next, err = opened(place, postgres.Options{Wait: -1})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	err = old.Append(t.Context(), records[10:20]...)
	for journal.CanRetry(err) { // its sessions were ended
		err = old.Append(t.Context(), records[10:20]...)
	}
	if !errors.As(err, &e) || e.Code != berth.Conflict {
		t.Errorf("append: %v, want a conflict", err)
	}
	for name, write := range map[string]func() error{
		"a snapshot":   func() error { return old.SaveSnapshot(t.Context(), records[9].Position(), []byte("x")) },
		"a compaction": func() error { return old.(journal.Compactor).Compact(t.Context(), 10) },
	} {
		if err := write(); !errors.As(err, &e) || e.Code != berth.Conflict {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	select {
	case <-old.(*postgres.Store).Lost():
	case <-time.After(10 * time.Second):
		t.Error("it does not know that it has lost the lease")
	}
	if err := next.Append(t.Context(), records[10:]...); err != nil {
		t.Error(err)
	}
}
