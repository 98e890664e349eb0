package dst

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var heardFile = flag.String("dst.heard", "", "TestHeard: write a hash of all that is heard in each seed to this file, to compare two versions of the simulator")

// A change that only makes the simulator faster leaves everything that is heard as it was, to the nanosecond.
func TestHeard(t *testing.T) {
	if *heardFile == "" {
		t.Skip("-dst.heard names no file")
	}
	var text strings.Builder
	for seed := *from; seed < *from+wanted(); seed++ {
		o := happen(t, seed, &plant{less: byFlags(), whole: true}, newLedger())
		sum := sha256.New()
		for _, line := range o.trace {
			fmt.Fprintln(sum, line)
		}
		fmt.Fprintf(&text, "%d %x %d lives, %d events, %d operations, %v\n", seed, sum.Sum(nil)[:8], o.lives, o.events, o.operations, o.wrong)
	}
	if err := os.WriteFile(*heardFile, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
