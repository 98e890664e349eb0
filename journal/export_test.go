package journal

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
)

// list is a log in memory that ends in an error, if there is one.
type list struct {
	records []Record
	err     error
}

func (l list) Read(_ context.Context, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, r := range l.records[from-1:] {
			if !yield(r, nil) {
				return
			}
		}
		if l.err != nil {
			yield(Record{}, l.err)
		}
	}
}

func TestExportOfUnknownPayloads(t *testing.T) {
	r := Record{At: 7, Version: "v<1>", Event: []byte("event"), Changes: []byte{0xff, 0}, Effects: []byte("told")}
	r.Seal(Position{})
	var out strings.Builder
	last, err := Export(&out, list{records: []Record{r}}.Read(t.Context(), 1), Plain)
	want := `{"number":1,"at":7,"version":"v<1>","event":"ZXZlbnQ=","changes":"/wA=","effects":"dG9sZA==","hash":"` + r.Hash.String() + `"}` + "\n"
	if err != nil || last != r.Position() || out.String() != want {
		t.Errorf("%s, %d, %v; want %s", out.String(), last.Number, err, want)
	}
}

func TestWhatComesBeforeADamageIsExported(t *testing.T) {
	damage := &Damage{Reason: "test"}
	records := chain(3)
	var out strings.Builder
	last, err := Export(&out, list{records, damage}.Read(t.Context(), 1), Plain)
	if !errors.Is(err, damage) || last != records[2].Position() || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("%s%d, %v", out.String(), last.Number, err)
	}
	refused := errors.New("unreadable payload")
	last, err = Export(&out, list{records: records}.Read(t.Context(), 1), func(r *Record) (Line, error) {
		if r.Number == 3 {
			return Line{}, refused
		}
		return Plain(r)
	})
	if !errors.Is(err, refused) || last.Number != 2 {
		t.Errorf("%d, %v", last.Number, err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("broken pipe")

func TestExportTellsThatNobodyReads(t *testing.T) {
	if _, err := Export(brokenPipe{}, list{records: chain(3)}.Read(t.Context(), 1), Plain); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}

func TestVerifyCountsAndLooks(t *testing.T) {
	records := chain(5)
	var seen []uint64
	last, n, err := Verify(t.Context(), list{records: records}, 3, func(r *Record) error {
		seen = append(seen, r.Number)
		return nil
	})
	if err != nil || n != 3 || last != records[4].Position() || len(seen) != 3 || seen[0] != 3 {
		t.Errorf("%d, %d, %v, %v", last.Number, n, seen, err)
	}
	other := errors.New("decided otherwise")
	last, n, err = Verify(t.Context(), list{records: records}, 1, func(r *Record) error {
		if r.Number == 4 {
			return other
		}
		return nil
	})
	if !errors.Is(err, other) || n != 3 || last.Number != 3 {
		t.Errorf("%d, %d, %v", last.Number, n, err)
	}
	damage := &Damage{Reason: "test"}
	if last, n, err := Verify(t.Context(), list{records, damage}, 1, nil); !errors.Is(err, damage) || n != 5 || last.Number != 5 {
		t.Errorf("%d, %d, %v", last.Number, n, err)
	}
}
