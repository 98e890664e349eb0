package workload_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("broken")

func TestWriteSchedule(t *testing.T) {
	var out strings.Builder
	lines := []berth.Line{{ID: "<a>", Kind: berth.KindJob, NPE: 2}, {ID: "b", Kind: berth.KindJob, NPE: 1}}
	if err := workload.WriteSchedule(&out, berth.Each(lines)); err != nil || strings.Count(out.String(), "\n") != 2 || !strings.Contains(out.String(), `"id":"<a>"`) {
		t.Errorf("%v %s", err, out.String())
	}
	if err := workload.WriteSchedule(brokenWriter{}, berth.Each(lines)); !errors.Is(err, errBroken) {
		t.Errorf("%v, want that of the writer", err)
	}
}
