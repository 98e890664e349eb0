// Package calendartest proves that a structure is a calendar: every form of
// calendar.Forms must pass Run. It holds a model that answers each question by
// looking at every second, the worked example of the availability paper, laws,
// all small cases, and the workloads by which forms are measured. It does not
// judge speed.
package calendartest

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Run tests one form of calendar under both bindings. The number of random
// cases is that of -rapid.checks.
func Run(t *testing.T, form calendar.New) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		t.Run(string(binding), func(t *testing.T) {
			for _, test := range tests {
				if test.only == "" || test.only == binding {
					t.Run(test.name, func(t *testing.T) { test.run(t, form, binding) })
				}
			}
		})
	}
	t.Run("drafts", func(t *testing.T) { draftLaws(t, form) })
}

var tests = []struct {
	name string
	only berth.Binding // empty for both
	run  func(*testing.T, calendar.New, berth.Binding)
}{
	// The availability paper, Figure 1 and section 4.
	{"paper records", "", paperRecords},
	{"paper candidates", "", paperCandidates},
	{"paper rectangles", "", paperRectangles},
	{"paper policies", "", paperPolicies},
	{"paper step 3 merges equal sets only", "", paperStep3},
	{"paper step 4 keeps the first record", "", paperStep4},
	{"paper addition before the first record", "", paperAddBeforeFirst},
	{"paper end of the fourth interval", "", paperSharedPE},
	{"paper edge cases", "", paperEdges},
	{"paper empty calendar", "", paperEmpty},

	// Single behaviours at the limits of what a calendar holds.
	{"sizes", "", sizes},
	{"limits of time", "", limitsOfTime},
	{"malformed blocks", "", malformedBlocks},
	{"malformed queries", "", malformedQueries},
	{"iterators stop", "", iteratorsStop},
	{"no deadline", "", noDeadline},
	{"eligible PEs", berth.Early, eligiblePEs},
	{"counts join where sets do not", berth.Late, countsJoin},

	{"remove what was never booked", "", neverBooked},
	{"remove some of the PEs", "", removePartOfPEs},

	{"all small cases", "", smallCases},

	// Laws over random calendars.
	{"machine", "", machineLaws},
	{"remove undoes add", "", removeUndoesAdd},
	{"order of adding is irrelevant", "", orderIsIrrelevant},
	{"numbers of PEs are names only", berth.Early, renumbering},
	{"early end frees the rest", "", earlyEnd},
	{"early fits late", berth.Early, earlyFitsLate},
	{"questions within answers", "", questionsWithinAnswers},
}
