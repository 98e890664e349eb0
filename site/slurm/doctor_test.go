package slurm

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// A partition without a limit is found, with what it means for promises there.
func TestLimitFinding(t *testing.T) {
	limited, endless := site.Partition{Name: "day", MaxTime: 86_400}, site.Partition{Name: "open"}
	for _, c := range []struct {
		list  []site.Partition
		taken berth.Duration
		level site.Level
		text  string
	}{
		{[]site.Partition{limited}, 0, site.Good, "every partition has a time limit"},
		{[]site.Partition{limited}, 300, site.Good, "every partition has a time limit"},
		{[]site.Partition{limited, endless}, 0, site.Warning, "no time limit in partition open: every promise there must be made real at once, and a running job may stand in its way for ever"},
		{[]site.Partition{limited, endless}, 300, site.Warning, "no time limit in partition open: jobs there are taken to last 00:05:00 (no_limit), and one that runs longer may stand in the way of a promise"},
	} {
		if f := limitFinding(c.list, c.taken); f.Check != "limits" || f.Level != c.level || f.Text != c.text {
			t.Errorf("%+v; want %q", f, c.text)
		}
	}
}
