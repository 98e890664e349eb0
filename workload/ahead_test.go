package workload

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

// TestReadingAheadReadsTheSame reads through blocks of odd sizes up to the end, or up to an
// error in the middle.
func TestReadingAheadReadsTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	broken := errors.New("broken")
	for _, size := range []int{0, 1, aheadBytes - 1, aheadBytes, aheadBytes + 1, 5*aheadBytes + 7} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		for _, end := range []error{io.EOF, broken} {
			in := io.MultiReader(bytes.NewReader(want), iotest.ErrReader(end))
			if size > 0 && size < 2*aheadBytes {
				in = iotest.HalfReader(in)
			}
			a := readAhead(in)
			var got []byte
			var err error
			for err == nil {
				p, n := make([]byte, 1+rng.IntN(100_000)), 0
				n, err = a.Read(p)
				got = append(got, p[:n]...)
			}
			if _, again := a.Read(make([]byte, 1)); err != end || again != end { //nolint:errorlint // the error itself is passed on
				t.Errorf("%d bytes end with %v, then %v; want %v", size, err, again, end)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("of %d bytes %d came, or others", size, len(got))
			}
			a.stop()
		}
	}
}

// TestReadingAheadStops stops readers that were read from a little or not at all; none of
// their goroutines reads on.
func TestReadingAheadStops(t *testing.T) {
	for range 100 {
		in := &counted{}
		a := readAhead(in)
		if rand.IntN(2) == 0 {
			if _, err := a.Read(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
		}
		a.stop()
		read := in.bytes // by no other goroutine any more, or the race detector tells
		if read > aheadBlocks*aheadBytes {
			t.Fatalf("%d bytes were read ahead; want at most %d", read, aheadBlocks*aheadBytes)
		}
	}
}

// counted has as many zeros as are asked for.
type counted struct{ bytes int }

func (c *counted) Read(p []byte) (int, error) {
	clear(p)
	c.bytes += len(p)
	return len(p), nil
}
