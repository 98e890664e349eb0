package journaltest

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

	"github.com/berth-hpc/berth/journal"
)

const (
	childPlace = "BERTH_JOURNALTEST_PLACE"
	childSeed  = 77
)

// Main runs a package's tests, or, in a process that Crash started, appends
// records until it is killed. Call it from TestMain.
func Main(m *testing.M, open func(place string) (journal.Store, error)) int {
	place := os.Getenv(childPlace)
	if place == "" {
		return m.Run()
	}
	fmt.Fprintln(os.Stderr, appendForever(place, open))
	return 1
}

// appendForever opens the journal and has clients append to it through a group
// commit, telling each number on standard output once it is acknowledged. It returns if
// something fails.
func appendForever(place string, open func(string) (journal.Store, error)) error {
	s, err := open(place)
	if err != nil {
		return err
	}
	last, err := s.Last(context.Background())
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	var told sync.Mutex
	w := journal.NewWriter(s, nil)
	inFlight := make(chan struct{}, 32)
	for {
		inFlight <- struct{}{}
		r := childRecord(last)
		last = r.Position()
		w.Add(r, func(err error) {
			told.Lock()
			defer told.Unlock()
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Fprintf(out, "%d\n", r.Number) //nolint:errcheck // flushed below
			if err := out.Flush(); err != nil {
				os.Exit(1)
			}
			<-inFlight
		})
		if last.Number%500 == 0 {
			if err := s.SaveSnapshot(context.Background(), journal.Position{}, []byte("state")); err != nil {
				return err
			}
		}
	}
}

// childRecord returns the record that follows a place: always the same.
func childRecord(after journal.Position) journal.Record {
	return Records(after, 1, rand.New(rand.NewPCG(childSeed, after.Number)))[0]
}

// Crash kills a child process with SIGKILL while it appends, round after round
// on one journal: everything that it acknowledged is there, nothing twice, and
// nothing that it did not append. The package's TestMain must call Main.
func Crash(t *testing.T, a Adapter, rounds int) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	rng := seeded(t)
	end := uint64(0)
	for range rounds {
		acked, err := killed(t.Context(), program, place, end, 1+rng.IntN(400))
		if err != nil {
			t.Fatal(err)
		}
		if end, err = chainOf(a, place); err != nil {
			t.Fatal(err)
		}
		if end < acked {
			t.Fatalf("record %d was acknowledged, the journal ends with record %d", acked, end)
		}
	}
	if end == 0 {
		t.Error("no round appended anything")
	}
}

// killed runs a child until it has acknowledged n records and kills it
// then. It returns the last number acknowledged.
func killed(ctx context.Context, program, place string, after uint64, count int) (acked uint64, err error) {
	child := exec.CommandContext(ctx, program)
	child.Env = append(os.Environ(), childPlace+"="+place)
	var complaints strings.Builder
	child.Stderr = &complaints
	out, err := child.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := child.Start(); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(out)
	acked = after
	for lines.Scan() { // what was told before the kill counts, too
		n, err := strconv.ParseUint(lines.Text(), 10, 64)
		if err != nil {
			break // a line cut by the kill
		}
		if n != acked+1 {
			return 0, errors.Join(fmt.Errorf("record %d was acknowledged after %d", n, acked), child.Process.Kill(), child.Wait())
		}
		acked = n
		if count--; count == 0 {
			if err := child.Process.Kill(); err != nil {
				return 0, err
			}
		}
	}
	err = child.Wait()
	var exit *exec.ExitError
	if count > 0 || !errors.As(err, &exit) || exit.Exited() {
		return 0, fmt.Errorf("the child ended by itself: %w\n%s", err, complaints.String())
	}
	return acked, nil
}

// chainOf checks a journal that children wrote and returns its last number.
func chainOf(a Adapter, place string) (uint64, error) {
	s, err := a.Open(place)
	if err != nil {
		return 0, err
	}
	defer s.Close() //nolint:errcheck // what matters has been checked
	var last journal.Position
	for r, err := range s.Read(context.Background(), 1) {
		if err != nil {
			return 0, err
		}
		want := childRecord(last)
		if err := same([]journal.Record{r}, []journal.Record{want}); err != nil {
			return 0, err
		}
		last = r.Position()
	}
	return last.Number, nil
}
