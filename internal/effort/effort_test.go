package effort_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/effort"
)

var given = effort.Flag("effort.given", 20, "given by the test")

func TestMain(m *testing.M) {
	effort.Waits()
	os.Exit(m.Run())
}

// Four tests run at once, or as many as there are processors, or as many as -parallel says.
func TestWaits(t *testing.T) {
	const child = "EFFORT_CHILD"
	if os.Getenv(child) != "" {
		fmt.Println("at once:", flag.Lookup("test.parallel").Value)
		return
	}
	for given, want := range map[string]int{"": max(4, runtime.GOMAXPROCS(0)), "-test.parallel=1": 1, "-test.parallel=9": 9} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWaits$", "-test.v")
		if given != "" {
			cmd.Args = append(cmd.Args, given)
		}
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		if said := fmt.Sprintln("at once:", want); err != nil || !strings.Contains(string(out), said) {
			t.Errorf("%q: %v, want %q in\n%s", given, err, said, out)
		}
	}
}

// All cases are drawn unless a quarter is asked for, which is never none.
func TestCases(t *testing.T) {
	for _, c := range []struct {
		asked      string
		full, want int
	}{
		{"quarter", 16400, 4100},
		{"quarter", 20, 5},
		{"quarter", 21, 6},
		{"quarter", 2, 1},
		{"quarter", 1, 1},
		{"quarter", 0, 0},
		{"", 16400, 16400},
		{"full", 21, 21},
		{"some", 21, 21},
	} {
		t.Setenv("BERTH_EFFORT", c.asked)
		if got := effort.Cases(c.full); got != c.want {
			t.Errorf("BERTH_EFFORT=%s: %d of %d cases, want %d", c.asked, got, c.full, c.want)
		}
		if full := c.asked != "quarter"; effort.Full() != full {
			t.Errorf("BERTH_EFFORT=%s: full effort is %v, want %v", c.asked, !full, full)
		}
	}
}

// What the flag says goes before what the effort would be.
func TestFlag(t *testing.T) {
	t.Setenv("BERTH_EFFORT", "quarter")
	if got := given(); got != 5 {
		t.Errorf("without the flag %d cases of a quarter, want 5", got)
	}
	t.Setenv("BERTH_EFFORT", "")
	if got := given(); got != 20 {
		t.Errorf("without the flag %d cases, want 20", got)
	}
	if err := flag.Set("effort.given", "7"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := flag.Set("effort.given", "0"); err != nil {
			t.Error(err)
		}
	}()
	if got := given(); got != 7 {
		t.Errorf("with -effort.given=7 %d cases", got)
	}
}
