package slurm

import (
	"math/rand/v2"
	"testing"
)

// What a command writes is kept whole and in order, however it comes, up to the bound: beyond it is an error, or what was
// there before.
func TestBoundedKeepsWhatFits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := make([]byte, 3*mostPiece)
	for i := range letters {
		letters[i] = byte('a' + r.IntN(26))
	}
	for _, size := range []int{0, 1, leastPiece, leastPiece + 1, len(letters) - 1, len(letters)} {
		whole, cut := &bounded{room: len(letters) - 1}, &bounded{room: len(letters) - 1, cut: true}
		failed := false
		for rest := letters[:size]; len(rest) > 0; {
			n := min(1+r.IntN(40_000), len(rest))
			_, err := whole.Write(rest[:n])
			failed = failed || err != nil
			if m, err := cut.Write(rest[:n]); m != n || err != nil {
				t.Errorf("of %d bytes %d are taken, %v", n, m, err)
			}
			rest = rest[n:]
		}
		fits := size < len(letters)
		if failed == fits || whole.over == fits || fits && whole.String() != string(letters[:size]) {
			t.Errorf("of %d bytes %d are kept, over is %t", size, len(whole.String()), whole.over)
		}
		if got := cut.String(); cut.over || got != string(letters[:min(size, cut.room)]) {
			t.Errorf("of %d bytes %d are kept before the cut", size, len(got))
		}
	}
}
