package journaltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/journal"
)

// testFaults lets each operation of a small run fail in each way, one run for each; few
// of them unless there are many cases, and fewer still with little effort.
func testFaults(t *testing.T, a Adapter) {
	for _, how := range disk(t, a).Faults() {
		t.Run(strings.ReplaceAll(how, " ", "-"), func(t *testing.T) {
			step := 9
			switch {
			case a.Cases > 1:
				step = 1
			case !effort.Full():
				step = 27
			}
			runs, told := 0, 0
			for at := 0; ; at += step {
				d := disk(t, a)
				failed, err := CheckFault(a, d, t.TempDir(), at, how)
				if !d.Failed() {
					if err != nil {
						t.Errorf("without a fault: %v", err)
					}
					break
				}
				runs++
				if failed != nil {
					told++
				}
				if err != nil {
					t.Errorf("operation %d, when %v was told: %v", at, failed, err)
				}
			}
			if runs < 40/step || told == 0 {
				t.Errorf("%d runs met the fault, and %d told of it; the test must see more", runs, told)
			}
			t.Logf("%d runs met the fault, %d told of it", runs, told)
		})
	}
}

// CheckFault runs a journal in which one operation fails, which failed tells. A journal
// that is opened then without the fault, and one after a loss of power too, holds all that
// was acknowledged. What fails says whether trying again helps, and takes no failure of
// the disk for damage.
func CheckFault(a Adapter, d Disk, folder string, at int, how string) (failed, err error) {
	place := filepath.Join(folder, "journal")
	rng := rand.New(rand.NewPCG(3, 3))
	records := Records(journal.Position{}, 40, rng)
	d.Fail(at, how)
	acked, failed := appendUntilError(d, place, records)
	d.Fail(0, "")
	if failed != nil {
		var known *berth.Error
		if !errors.As(failed, &known) || known.Code != berth.Exhausted && known.Code != berth.Unavailable || !journal.CanRetry(failed) {
			return failed, fmt.Errorf("the failure is %T, want code %s or %s, and that trying again can help", failed, berth.Exhausted, berth.Unavailable)
		}
		if !strings.Contains(failed.Error(), place) {
			return failed, fmt.Errorf("the failure does not name %s", place)
		}
	}
	left := filepath.Join(folder, "left")
	if err := d.Image(place, left, nil); err != nil {
		return failed, err
	}
	if err := survived(a, outage{place: left, acked: acked}, records); err != nil {
		return failed, fmt.Errorf("%d were acknowledged, and after a loss of power: %w", acked, err)
	}
	a.Open = d.Open
	if err := survived(a, outage{place: place, acked: acked}, records); err != nil {
		return failed, fmt.Errorf("%d were acknowledged, and after a restart: %w", acked, err)
	}
	return failed, nil
}

// appendUntilError opens a journal, appends, saves a snapshot, reads and closes, until one
// of them fails.
func appendUntilError(d Disk, place string, records []journal.Record) (acked int, err error) {
	s, err := d.Open(place)
	if err != nil {
		return 0, err
	}
	defer s.Close() //nolint:errcheck // a failure of it after all was acknowledged must lose nothing either
	for acked < len(records) {
		batch := records[acked : acked+8]
		if err := s.Append(context.Background(), batch...); err != nil {
			return acked, err
		}
		acked += len(batch)
		if acked == 16 {
			if err := s.SaveSnapshot(context.Background(), batch[len(batch)-1].Position(), make([]byte, 30_000)); err != nil {
				return acked, err
			}
		}
	}
	_, err = all(s, 1)
	return acked, err
}
