package berth_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
)

// A time is written as package time writes it.
func TestTimeByRFC3339(t *testing.T) {
	draw := rand.New(rand.NewPCG(29, 2))
	times := []int64{0, -1, 1_796_457_600, 951_782_399, 951_782_400, 951_868_800, 4_107_542_399, 4_107_542_400, -2_208_988_800, 253_402_300_799, 1 << 42}
	for range 10_000 {
		times = append(times, draw.Int64N(253_402_300_800)-draw.Int64N(4_000_000_000))
	}
	for _, at := range times {
		if got, want := berth.Time(at).RFC3339(), time.Unix(at, 0).UTC().Format("2006-01-02T15:04:05Z"); got != want {
			t.Fatalf("%d is %s, want %s", at, got, want)
		}
	}
}
