package dst

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/withparent"
)

// tally counts what happens.
type tally struct {
	Lives, Events, Operations, Failed int
	Cells                             []cell
	g                                 *ledger
}

// cell is a cell of the table of features and faults.
type cell struct {
	Feature, Fault string
	Lives          int
}

// failsAtMost is after how many seeds that fail no more happen.
const failsAtMost = 10

// live has the seeds of the flags happen.
func (s *tally) live(t *testing.T) {
	t.Helper()
	began, told := time.Now(), time.Now()
	happened := 0
	for seed := *from; seed < *from+wanted() && s.Failed < failsAtMost; seed += *step {
		o := happen(t, seed, &plant{less: byFlags()}, s.g)
		happened++
		s.Lives, s.Events, s.Operations = s.Lives+o.lives, s.Events+o.events, s.Operations+o.operations
		if o.wrong != nil {
			s.Failed++
			fmt.Fprintf(os.Stderr, "dst: seed %d: %.300s\n", seed, o.wrong.Error())
			small := byFlags()
			if !*tracing {
				small = shrink(seed, small, time.Minute, func(seed uint64, l less) bool { return happen(t, seed, &plant{less: l}, newLedger()).wrong != nil })
			}
			t.Errorf("seed %d: %.3000s\nrepeat it with: %s\nor, smaller, with: %s", seed, o.wrong.Error(), byFlags().command(seed), small.command(seed))
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			passed := time.Since(began).Seconds()
			fmt.Fprintf(os.Stderr, "dst: up to seed %d, %.1f seeds/s, %d lives, %.0f lives/s, %d failed\n", seed, float64(happened)/passed, s.Lives, float64(s.Lives)/passed, s.Failed)
		}
	}
}

// share divides the seeds among processes of this program.
func (s *tally) share(t *testing.T, n int) {
	t.Helper()
	n = int(min(uint64(n), wanted()))
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	var all sync.WaitGroup
	failed := make([]error, n)
	for i := range n {
		all.Go(func() { failed[i] = s.child(program, filepath.Join(folder, fmt.Sprint("tally-", i)), i, n) })
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Error(err)
	}
	for i := range n {
		if err := s.add(filepath.Join(folder, fmt.Sprint("tally-", i))); err != nil {
			t.Error(err)
		}
	}
}

// child has every nth seed happen in a process of its own.
func (s *tally) child(program, file string, i, n int) error {
	l := byFlags()
	c := exec.Command(program, "-test.run", "^TestLives$", "-test.timeout", "0", "-dst.from", fmt.Sprint(*from+uint64(i)), "-dst.seeds", fmt.Sprint(wanted()-uint64(i)), //nolint:gosec // small numbers
		"-dst.step", fmt.Sprint(n), "-dst.tell", file, "-dst.without", strings.Join(l.without, ","), "-dst.lives", fmt.Sprint(l.lives), "-dst.events", fmt.Sprint(l.events))
	c.SysProcAttr = withparent.Attr()
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("process %d: %w\n%s", i, err, out)
	}
	return nil
}

// save writes what was counted to a file, which add reads.
func (s *tally) save(file string) error {
	for at, lives := range s.g.cells {
		s.Cells = append(s.Cells, cell{at[0], at[1], lives})
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

func (s *tally) add(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var more tally
	if err := json.Unmarshal(text, &more); err != nil {
		return err
	}
	s.Lives, s.Events, s.Operations, s.Failed = s.Lives+more.Lives, s.Events+more.Events, s.Operations+more.Operations, s.Failed+more.Failed
	for _, c := range more.Cells {
		s.g.cells[[2]string{c.Feature, c.Fault}] += c.Lives
	}
	return nil
}
