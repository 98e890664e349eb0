package journaltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/journal"
)

// counter counts appends.
type counter struct {
	journal.Log
	appends int
}

func (c *counter) Append(ctx context.Context, records ...journal.Record) error {
	c.appends++
	return c.Log.Append(ctx, records...)
}

// testDamage changes bytes of a journal that was left without being closed, and
// cuts files short. Whatever is hit: nothing is shown that was not written,
// nothing acknowledged is missed in silence, and a repair keeps all that the
// damage let be read.
func testDamage(t *testing.T, a Adapter) {
	if a.Repair == nil {
		t.Skip("the adapter keeps no files that could be damaged")
	}
	rng := seeded(t)
	place := t.TempDir()
	s := open(t, a, place)
	records := Records(journal.Position{}, 120, rng)
	appended(t, s, records[:80])
	if err := s.SaveSnapshot(t.Context(), records[59].Position(), []byte("a state")); err != nil {
		t.Fatal(err)
	}
	closed := t.TempDir() // as a clean end leaves it
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copyTree(t, place, closed)
	s = open(t, a, place)
	for batch := range slices.Chunk(records[80:], 4) {
		appended(t, s, batch)
	}
	left := t.TempDir() // as kill -9 leaves it
	copyTree(t, place, left)

	found := map[string]int{}
	for _, base := range []struct {
		from string
		want []journal.Record
	}{{closed, records[:80]}, {left, records}} {
		for _, name := range a.Files {
			for _, d := range damages(t, filepath.Join(base.from, name), a, rng) {
				damaged := t.TempDir()
				copyTree(t, base.from, damaged)
				if err := os.WriteFile(filepath.Join(damaged, name), d.content, 0o600); err != nil {
					t.Fatal(err)
				}
				outcome, err := checkDamage(a, damaged, base.want)
				if err != nil {
					t.Errorf("%s, %s: %v", name, d.what, err)
				}
				found[outcome]++
				if err := os.RemoveAll(damaged); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Logf("outcomes: %v", found)
	if found["cut"] == 0 || found["harmless"] == 0 {
		t.Errorf("outcomes: %v; the test must meet damage that hurts and damage that does not", found)
	}
}

type damaged struct {
	what    string
	content []byte
}

// damages returns changed copies of a file's content.
func damages(t *testing.T, path string, a Adapter, rng *rand.Rand) []damaged {
	t.Helper()
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	n := effort.Cases(8 * max(a.Cases, 1))
	if testing.Short() {
		n = 2
	}
	var list []damaged
	for range n {
		at, bit := rng.IntN(len(content)), byte(1)<<rng.IntN(8)
		flipped := slices.Clone(content)
		flipped[at] ^= bit
		list = append(list, damaged{fmt.Sprintf("byte %d with bit %#x flipped", at, bit), flipped})
	}
	for range max(n/4, 1) {
		at := rng.IntN(len(content))
		list = append(list, damaged{fmt.Sprintf("cut short to %d of %d bytes", at, len(content)), content[:at]})
		zeroed := slices.Clone(content)
		clear(zeroed[at:min(len(zeroed), at+1+rng.IntN(5000))])
		list = append(list, damaged{fmt.Sprintf("zeros from byte %d", at), zeroed})
	}
	return append(list, damaged{"emptied", nil})
}

// checkDamage opens, reads and repairs a damaged journal whose want was
// acknowledged.
func checkDamage(a Adapter, place string, want []journal.Record) (outcome string, err error) {
	told := readDamaged(a, place, want)
	if errors.Is(told, errLied) {
		return "lie", told
	}
	damage, err := a.Repair(place)
	switch {
	case err != nil && told == nil:
		return "no repair", fmt.Errorf("nothing was wrong, but the repair says %w", err)
	case err != nil:
		return "beyond repair", nil // told, and left as it is
	case damage == nil && told == nil:
		return "harmless", nil
	case damage == nil:
		return "unseen", fmt.Errorf("opening says %w, but the repair found nothing", told)
	}
	s, err := a.Open(place)
	if err != nil {
		return "cut", fmt.Errorf("after the repair: %w", err)
	}
	defer s.Close() //nolint:errcheck // what matters has been checked
	begin := journal.Position{}
	if c, ok := s.(journal.Compactor); ok {
		if begin, err = c.Begin(context.Background()); err != nil {
			return "cut", err
		}
	}
	got, err := all(s, begin.Number+1)
	if err == nil && uint64(len(want)) < damage.After.Number {
		err = errors.New("more than there was")
	}
	if err == nil {
		err = same(got, want[begin.Number:damage.After.Number])
	}
	if err != nil {
		return "cut", fmt.Errorf("after %w the repair left: %w", damage, err)
	}
	more := Records(damage.After, 3, rand.New(rand.NewPCG(9, 9)))
	if err := s.Append(context.Background(), more...); err != nil {
		return "cut", fmt.Errorf("append after the repair: %w", err)
	}
	var d *journal.Damage
	if errors.As(told, &d) && d.After.Number > damage.After.Number {
		return "cut", fmt.Errorf("record %d was good, the repair kept %d", d.After.Number, damage.After.Number)
	}
	return "cut", nil
}

var errLied = errors.New("the journal lied")

// readDamaged opens and reads a damaged journal. It returns nil if all that was
// wanted is there, errLied if it is not and no error says so.
func readDamaged(a Adapter, place string, want []journal.Record) error {
	s, err := a.Open(place)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // what matters has been checked
	got, err := all(s, 1)
	if len(got) > len(want) {
		return fmt.Errorf("%w: more records than there were", errLied)
	}
	if wrong := same(got, want[:len(got)]); wrong != nil {
		return fmt.Errorf("%w: %w", errLied, wrong)
	}
	if err != nil {
		return err
	}
	if len(got) < len(want) {
		return fmt.Errorf("%w: %d records of %d, and no error", errLied, len(got), len(want))
	}
	snapshot, err := s.Snapshot(context.Background(), ^uint64(0))
	switch {
	case err != nil:
		return err
	case len(snapshot.Damaged) > 0:
		return nil // told, and no record is lost
	case snapshot.Number != 60 || string(snapshot.Data) != "a state":
		return fmt.Errorf("%w: a snapshot of record %d that was never saved", errLied, snapshot.Number)
	}
	return nil
}

// copyTree copies the files of a directory, as they are at the moment.
func copyTree(t testing.TB, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		if err := copyFile(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // what matters has been checked
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
