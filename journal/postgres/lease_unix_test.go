//go:build unix

package postgres_test

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
)

// A writer that is stopped loses the lease within seconds, and acknowledges nothing any
// more when it goes on, wherever it was stopped.
func TestAStoppedWriterIsFencedOff(t *testing.T) {
	shared(t)
	rounds := 6
	if testing.Short() {
		rounds = 1
	}
	for round := range rounds {
		place := t.TempDir()
		c := startChild(t, place)
		time.Sleep(time.Duration(rand.IntN(40_000)) * time.Microsecond) // to be stopped anywhere
		if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		s, err := open(place)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("the lease took %v", took)
		}
		last, err := s.Last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ours := journaltest.Records(last, 5, rand.New(rand.NewPCG(2, uint64(round))))
		if err := s.Append(t.Context(), ours...); err != nil {
			t.Fatal(err)
		}
		if err := c.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		select {
		case <-c.ended:
		case <-time.After(20 * time.Second):
			t.Fatal("the old writer goes on")
		}
		if acked := c.acknowledged(); acked > last.Number {
			t.Errorf("the old writer acknowledged record %d, when another one wrote after %d", acked, last.Number)
		}
		if !strings.Contains(c.said.String(), "another server") && !strings.Contains(c.said.String(), "append") {
			t.Errorf("the old writer says %q", &c.said)
		}
		if at, n, err := journal.Verify(t.Context(), s, 1, nil); err != nil || at != ours[4].Position() {
			t.Errorf("%d records up to %d, %v", n, at.Number, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
