package workload_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

func TestSizesStandOnTheFirstLineOfEachPool(t *testing.T) {
	line := func(site, pool string, kind berth.Kind) berth.Line {
		return berth.Line{ID: "a", Kind: kind, Site: site, Pool: pool}
	}
	lines := []berth.Line{
		line("north", "gpu", berth.KindStaging), line("north", "gpu", berth.KindRequest), line("", "", berth.KindRequest),
		line("north", "gpu", berth.KindRequest), line("south", "", berth.KindRequest), line("west", "", berth.KindRequest),
	}
	berth.TellSizes(lines, fleet)
	for i, want := range []berth.Count{0, 4, 0, 0, 8, 0} {
		if lines[i].PoolPEs != want {
			t.Errorf("line %d says %d PEs, want %d", i, lines[i].PoolPEs, want)
		}
	}
	one := []berth.Line{line("", "", berth.KindRequest), line("south", "", berth.KindRequest)}
	if berth.TellSizes(one, fleet[1:]); one[0].PoolPEs != 8 || one[1].PoolPEs != 0 {
		t.Errorf("%+v, want the only pool's size on the first line", one)
	}
	berth.TellSizes(nil, fleet)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("broken")

func TestWriteSchedule(t *testing.T) {
	var out strings.Builder
	lines := []berth.Line{{ID: "<a>", Kind: berth.KindJob, NPE: 2}, {ID: "b", Kind: berth.KindJob, NPE: 1}}
	if err := workload.WriteSchedule(&out, lines); err != nil || strings.Count(out.String(), "\n") != 2 || !strings.Contains(out.String(), `"id":"<a>"`) {
		t.Errorf("%v %s", err, out.String())
	}
	if err := workload.WriteSchedule(brokenWriter{}, lines); !errors.Is(err, errBroken) {
		t.Errorf("%v, want that of the writer", err)
	}
}
