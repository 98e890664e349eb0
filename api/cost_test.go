package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/cputime"
)

// Bodies of a megabyte that are wrong throughout must cost little more than their
// reading, which takes 10 to 20 ms.
func TestWrongBodiesAreCheap(t *testing.T) {
	if testing.Short() {
		t.Skip("measures CPU time, which the race detector multiplies")
	}
	fields := func(n int, name string) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `,"`+name+`":1`, i)
		}
		return text.String()[1:]
	}
	variants := strings.Repeat("{"+fields(60, "npf%d")+"},", 1000)
	for name, body := range map[string]string{
		"80,000 unknown fields":               "{" + fields(80_000, "npf%d") + "}",
		"a name of a megabyte":                `{"` + strings.Repeat("n", 1<<20-10) + `":1}`,
		"20 names of 50 kB":                   "{" + fields(20, strings.Repeat("n", 50_000)+"%d") + "}",
		"60 unknown fields in 1,000 variants": `{"variants":[` + variants[:len(variants)-1] + "]}",
	} {
		least := time.Hour
		for range 3 { // the shortest, as others use the processors too
			before := cputime.Used()
			if err := valid([]byte(body)); err != nil {
				t.Fatal(err)
			}
			var a asked
			var wrong faults
			requestBody.read(value(body), &a, &wrong)
			least = min(least, cputime.Used()-before)
			if len(wrong) == 0 || len(wrong) > maxFaults {
				t.Errorf("%s: %d faults", name, len(wrong))
			}
			if err := wrong.err(); len(err.Error()) > 200*maxFaults {
				t.Errorf("%s: told in %d bytes", name, len(err.Error()))
			}
		}
		if most := 100 * time.Millisecond; least > most {
			t.Errorf("%s cost %s of CPU time, want at most %s", name, least, most)
		} else {
			t.Logf("%s cost %s of CPU time", name, least)
		}
	}
}
