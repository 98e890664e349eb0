package check_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/internal/cputime"
)

// pack returns a valid schedule of n requests that keeps a machine busy: a PE
// is free from the time in its entry on, and each request takes the PEs that
// become free first.
func pack(n, pes int, named bool) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	freeFrom := make([]int, pes)
	var b bytes.Buffer
	for i := range n {
		npe := 1 << random.IntN(5)
		first := random.IntN(pes/npe) * npe
		other := random.IntN(pes/npe) * npe
		if freeFrom[other] < freeFrom[first] {
			first = other
		}
		start := 0
		for pe := first; pe < first+npe; pe++ {
			start = max(start, freeFrom[pe])
		}
		duration := 1 + random.IntN(5000)
		for pe := first; pe < first+npe; pe++ {
			freeFrom[pe] = start + duration
		}
		fmt.Fprintf(&b, `{"id":"%d","kind":"request","site":"cm5","arrival":0,"ready":%d,"deadline":%d,"duration":%d,"npe":%d,"accepted":true,"start":%d,"end":%d`,
			i, start/2, start+duration+i%7, duration, npe, start, start+duration)
		if named {
			b.WriteString(`,"pes":"`)
			if npe > 1 {
				fmt.Fprintf(&b, "%d-%d,%d", first+npe/2, first+npe-1, first)
				if npe > 2 {
					fmt.Fprintf(&b, ",%d-%d", first+1, first+npe/2-1)
				}
			} else {
				fmt.Fprint(&b, first)
			}
			b.WriteByte('"')
		}
		b.WriteString("}\n")
	}
	return b.Bytes()
}

func TestPackedScheduleIsValid(t *testing.T) {
	for _, named := range []bool{false, true} {
		if report := on(t, 1024, string(pack(2_500, 1024, named))); !report.Valid() {
			t.Error(report.Violations[0])
		}
	}
}

func BenchmarkFile(b *testing.B) {
	for _, named := range []bool{false, true} {
		for _, n := range []int{2_500, 25_000, 250_000} {
			b.Run(fmt.Sprintf("pes=1024/named=%t/lines=%d", named, n), func(b *testing.B) {
				data := pack(n, 1024, named)
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					report, err := check.File(bytes.NewReader(data), "f", check.Options{PEs: 1024})
					if err != nil || !report.Valid() {
						b.Fatal(err, report)
					}
				}
			})
		}
	}
}

// hostile returns files made to take long.
func hostile(n int) map[string]string {
	line := func(format string, args ...any) string { return fmt.Sprintf(format, args...) + "\n" }
	files := map[string]string{}
	var one, same, sites, wide, nested, chain, staged, moved strings.Builder
	var comb strings.Builder
	comb.WriteString("0")
	for pe := 2; pe < 1<<17; pe += 2 {
		fmt.Fprintf(&comb, ",%d", pe)
	}
	wide.WriteString(line(`{"id":"comb","kind":"booking","npe":65536,"start":0,"end":%d,"pes":"%s"}`, 10*n, &comb))
	moves := strings.TrimSuffix(strings.Repeat(`{"at":5,"start":9,"end":12,"npe":1,"cause":"o"},`, n), ",")
	moved.WriteString(line(`{"id":"all","arrival":0,"ready":0,"deadline":99,"duration":3,"npe":1,"accepted":true,"start":9,"end":12,"promised_start":9,"moved_from":[%s]}`, moves))
	for i := range n {
		moved.WriteString(line(`{"id":"o","kind":"outage","npe":1,"start":5,"end":%d,"pes":"%d"}`, 20+i, i))
		moved.WriteString(line(`{"id":"%d","arrival":0,"ready":0,"deadline":99,"duration":3,"npe":1,"accepted":true,"start":30,"end":33,"promised_start":9,"moved_from":[{"at":5,"start":9,"end":12,"npe":1,"cause":"o"}],"stretches":[{"from":31,"npe":0,"cause":"o"}]}`, i))
		staged.WriteString(line(`{"id":"s","kind":"job","npe":1,"part":%d,"start":%d,"end":%d,"software":"%d","licences":2,"storage_mb":9}`, i, i, 3*n, i))
		staged.WriteString(line(`{"id":"s","kind":"staging","start":%d,"end":%d}`, i, i+1))
		one.WriteString(line(`{"id":"%d","kind":"booking","npe":1,"start":0,"end":%d,"pes":"0"}`, i, n+i))
		same.WriteString(line(`{"id":"x","kind":"booking","npe":1,"start":%d,"end":%d,"after":["x","x"]}`, i, i+1))
		sites.WriteString(line(`{"id":"%d","site":"%d","kind":"booking","npe":1,"start":0,"end":9,"pes":"1048575"}`, i, i))
		wide.WriteString(line(`{"id":"%d","kind":"booking","npe":2,"start":%d,"end":%d,"pes":"%d,1048575"}`, i, i, 5*n, 2*(i%65536)))
		nested.WriteString(line(`{"id":"%d","kind":"booking","npe":1048576,"start":%d,"end":%d,"pes":"0-1048575"}`, i, i, 3*n-i))
		chain.WriteString(line(`{"id":"%d","kind":"job","npe":1000,"start":%d,"end":%d}`, i, 2*i, 2*i+1))
		chain.WriteString(line(`{"id":"k%d","kind":"job","npe":1,"start":0,"end":%d}`, i, 2*n))
	}
	files["one PE"], files["one id"], files["many sites"] = one.String(), same.String(), sites.String()
	files["many stagings"], files["many moves"] = staged.String(), moved.String()
	files["wide"], files["nested"], files["many excesses"] = wide.String(), nested.String(), chain.String()
	return files
}

// TestHostileFilesEnd: the time does not explode. A check in proportion to the
// square of the lines would need minutes.
func TestHostileFilesEnd(t *testing.T) {
	const n = 5_000
	for name, data := range hostile(n) {
		t.Run(name, func(t *testing.T) {
			opts := check.Options{PEs: berth.MaxPEs, Storage: func(string) (int64, bool) { return 8, true }}
			if name == "many excesses" {
				opts = check.Options{PEs: berth.Count(n + 500)}
			}
			var report *check.Report
			var err error
			took := cputime.Of(func() { report, err = check.File(strings.NewReader(data), "f", opts) })
			if err != nil {
				t.Fatal(err)
			}
			if report.Valid() == (name != "many sites") {
				t.Error("violations:", len(report.Violations))
			}
			if named := identityIDs(report); (name == "one PE" || name == "wide" || name == "nested") && len(named) < n {
				t.Errorf("only %d of %d lines that share a PE are named", len(named), n)
			}
			if took > 20*time.Second {
				t.Errorf("took %v of CPU time", took)
			}
		})
	}
}

func identityIDs(report *check.Report) map[string]bool {
	ids := map[string]bool{}
	for _, v := range report.Violations {
		if v.Class == check.Identity {
			for _, id := range v.IDs {
				ids[id] = true
			}
		}
	}
	return ids
}
