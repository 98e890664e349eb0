package fake_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
	"github.com/berth-hpc/berth/site/sitetest"
)

func TestConformance(t *testing.T) {
	for _, needsLaunch := range []bool{false, true} {
		t.Run("launch="+strconv.FormatBool(needsLaunch), func(t *testing.T) {
			sitetest.Run(t, func(*testing.T) *sitetest.Subject { return subject(needsLaunch) })
		})
	}
}

func subject(needsLaunch bool) *sitetest.Subject {
	s := fake.New(fake.Config{Name: "harbour", Description: fake.Nodes(4, 4), NeedsLaunch: needsLaunch, Run: run}, 1_800_000_000)
	return &sitetest.Subject{
		Name: "harbour", Observer: s, Booker: s, Runner: s, Drainer: s, Now: s.Now,
		Wait: func(most berth.Duration, until func() bool) bool {
			for end := s.Now().Add(most); !until(); s.Advance(s.Now() + 1) {
				if s.Now() >= end {
					return false
				}
			}
			return true
		},
		Places: [2]site.Share{{Node: "n1"}, {Node: "n2", Cores: berth.PEsOf(0, 1)}},
		Count:  site.Reservation{Nodes: 2}, Partition: "main", User: "ada", Dir: sitetest.Nowhere, Settle: 5,
		Foreign: func(t *testing.T, start, end berth.Time, share site.Share) string {
			s.Book(site.Booking{Name: "maintenance", Start: start, End: end, Shares: []site.Share{share}, Users: []string{"root"}})
			t.Cleanup(func() { s.Unbook("maintenance") })
			return "maintenance"
		},
	}
}

// run imitates the ends that tasks of the suite ask for.
func run(task site.Task) (berth.Duration, site.Result) {
	length, result := berth.Duration(1), site.Result{Ending: site.Completed}
	for _, e := range task.Env {
		name, value, _ := strings.Cut(e, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case sitetest.MarkCode:
			result = site.Result{Ending: site.Failed, Code: n}
		case sitetest.MarkSleep:
			length = berth.Duration(n)
		}
	}
	return length, result
}
