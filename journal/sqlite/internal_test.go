package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/berth-hpc/berth/journal"
)

func sealed(n int) []journal.Record {
	records := make([]journal.Record, n)
	var last journal.Position
	for i := range records {
		records[i].Event = []byte{byte(i)}
		last = records[i].Seal(last)
	}
	return records
}

// A batch that was committed before its append failed is found by the next
// attempt, and is not written twice.
func TestABatchOfUnknownFateIsAppendedOnce(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	records := sealed(6)
	good := s.mark
	if s.mark, err = os.Open(filepath.Join(s.dir, markName)); err != nil { // for reading only
		t.Fatal(err)
	}
	defer s.mark.Close()
	if err := s.Append(t.Context(), records[:3]...); err == nil || !journal.CanRetry(err) {
		t.Fatalf("a mark that cannot be written: %v", err)
	}
	s.mark = good
	for range 2 {
		if err := s.Append(t.Context(), records...); err != nil {
			t.Fatal(err)
		}
	}
	if last, n, err := journal.Verify(t.Context(), s, 1, nil); err != nil || n != 6 || last != records[5].Position() {
		t.Errorf("%d records up to %d, %v", n, last.Number, err)
	}
}

func TestAMarkIsReadAsWrittenOrTold(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, markName)
	if p, err := readMark(dir); err != nil || p != (journal.Position{}) {
		t.Errorf("no mark: %v, %v", p, err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	want := sealed(3)[2].Position()
	if err := errors.Join(writeMark(f, sealed(2)[1].Position()), writeMark(f, want), f.Close()); err != nil {
		t.Fatal(err)
	}
	if p, err := readMark(dir); err != nil || p != want {
		t.Fatalf("%v, %v", p, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(content) {
		content[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := readMark(dir); !errors.Is(err, errMark) || p != (journal.Position{}) {
			t.Fatalf("with bit %d flipped: %v, %v", bit, p, err)
		}
		content[bit/8] ^= 1 << (bit % 8)
	}
	for name, content := range map[string][]byte{"empty": nil, "zeros": make([]byte, markSize)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := readMark(dir); err != nil || p != (journal.Position{}) {
			t.Errorf("%s, as a loss of power leaves it: %v, %v", name, p, err)
		}
	}
	if err := os.WriteFile(path, content[:markSize-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readMark(dir); !errors.Is(err, errMark) {
		t.Errorf("cut short: %v", err)
	}
}

// FuzzInspect: no bytes of a log make the look at it fail or run on.
func FuzzInspect(f *testing.F) {
	dir := f.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		f.Fatal(err)
	}
	if err := s.Append(f.Context(), sealed(3)...); err != nil {
		f.Fatal(err)
	}
	log, err := os.ReadFile(s.file() + walSuffix)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	f.Add(log, uint32(0), byte(0))
	f.Add(log, uint32(40), byte(1))
	f.Add(log[:len(log)-5], uint32(0), byte(0))
	f.Add([]byte{}, uint32(0), byte(0))
	f.Fuzz(func(t *testing.T, log []byte, at uint32, flip byte) {
		path := filepath.Join(t.TempDir(), "log")
		if int64(at) < int64(len(log)) {
			log[at] ^= flip
		}
		if err := os.WriteFile(path, log, 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := inspect(path)
		if err != nil {
			t.Fatal(err)
		}
		if w.good > int64(len(log)) || w.size > int64(len(log)) || w.bad >= int64(max(len(log), 1)) || w.bad >= 0 && w.bad < w.good && w.good > walHeader {
			t.Errorf("%+v of a log of %d bytes", w, len(log))
		}
	})
}

// A disk that does not come to the end of a checkpoint makes the writer wait, rather than the log
// grow for ever.
func TestTheWriterWaitsForASlowCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		slow := &checkpointing{copied: make(chan struct{}), ended: make(chan struct{})}
		s.beside = slow
		records := sealed(100)
		var last journal.Position
		for i := range records {
			records[i].Changes = make([]byte, 100<<10)
			last = records[i].Seal(last)
		}
		done, ended := 0, make(chan error, 1)
		go func() {
			for ; done < len(records); done++ {
				if err := s.Append(t.Context(), records[done]); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
		synctest.Wait()
		if want := growMeanwhile / (100 << 10); done < want/2 || done > want {
			t.Errorf("%d records of 100 KB were appended beside a checkpoint, want at most %d and half of them at least", done, want)
		}
		close(slow.copied)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(s.file() + walSuffix)
		if err != nil || info.Size() > 2*growMeanwhile {
			t.Errorf("the log has %d bytes, %v", info.Size(), err)
		}
		close(slow.ended)
	})
}
