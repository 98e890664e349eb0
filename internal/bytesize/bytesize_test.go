package bytesize_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/bytesize"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string][2]int64{ // offered, needed
		"1MB": {1, 1}, "64GB": {64_000, 64_000}, "64 GB": {64_000, 64_000}, "64GiB": {68_719, 68_720}, "1.5TB": {1_500_000, 1_500_000},
		"1.5 TiB": {1_649_267, 1_649_268}, "1MiB": {1, 2}, "2.9MB": {2, 3}, "1PB": {1_000_000_000, 1_000_000_000},
		"1PiB": {1_125_899_906, 1_125_899_907}, "0.1GB": {100, 100}, "4398046.511103TB": {berth.MaxMegabytes - 1, berth.MaxMegabytes - 1},
	} {
		offered, err := bytesize.Offered(text)
		needed, err2 := bytesize.Needed(text)
		if err != nil || err2 != nil || offered != want[0] || needed != want[1] {
			t.Errorf("%s is %d to %d MB %v %v, want %d", text, offered, needed, err, err2, want)
		}
	}
	for _, text := range []string{
		"", "GB", "1", "1 ", "1  GB", "1gb", "1KB", "-1GB", "1.GB", ".5GB", "1e3GB", "4398046.511104TB", "1GB ", "1.2.3GB", "٣GB",
		"0MB", strings.Repeat("9", 30) + "GB", ".", "..MB",
	} {
		got, err := bytesize.Needed(text)
		var mistake *berth.Error
		if !errors.As(err, &mistake) || mistake.Code != berth.Invalid {
			t.Errorf("%q reads as %d MB, %v", text, got, err)
		}
	}
}

// Whatever the text: no panic; what is needed is at least what is offered, and
// at most one more.
func FuzzSizes(f *testing.F) {
	for _, seed := range []string{"64GiB", "1.5 TB", "", ".", "9e9MB", "99999999999999999999PB"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		needed, err := bytesize.Needed(text)
		if err != nil {
			return
		}
		if needed < 1 || needed >= berth.MaxMegabytes {
			t.Fatalf("%q is %d", text, needed)
		}
		if offered, err := bytesize.Offered(text); err == nil && (offered > needed || offered < needed-1) {
			t.Fatalf("%q is %d to %d", text, offered, needed)
		}
	})
}
