package policy

import "github.com/berth-hpc/berth"

// Batch is a matcher that answers order and match together: it decides in one
// round which of the pending jobs go to which pools now. The rest is deferred.
// It claims no best answer, only that what it assigns fits together.
type Batch interface {
	// Assign appends the assignments of a round to dst, in the order in which
	// they were decided, each job at most once. Taken in that order, each
	// finds as many free PEs as it needs. It writes to nothing in the round.
	Assign(r *Round, dst []Assignment) []Assignment
}

// Round is what a batch matcher decides about: jobs that may start now, and
// the pools as they are now.
type Round struct {
	Now   berth.Time
	Jobs  []BatchJob  // in the order of arrival, then of submission
	Pools []BatchPool // in the order of the sites file
	// Stocks holds what is left, by site and kind, of what jobs hold at a site
	// beside PEs: storage in MB, licences of one software. The kinds are
	// numbered as the caller likes. The number of berth.Endless is not counted, nor
	// is a kind or a site beyond the end.
	Stocks [][]int64

	// The next three are asked often and must cost O(1). They answer the same
	// throughout a round.

	// Run returns how long a job takes in a pool, in seconds rounded up, and
	// berth.Endless where it never can run. An accelerator that is lacking is
	// better said by Serves, because unaware matchers do not look for it.
	Run func(job, pool int) berth.Duration
	// Stage returns how long the job's data take to get there, in seconds
	// rounded up, and berth.Endless if they never do.
	Stage func(job, pool int) berth.Duration
	// Serves reports whether the pool has, in use or not, what the job
	// requires: accelerators, memory, software of its version, licences.
	Serves func(job, pool int) bool
	// Tiers, if not nil, returns all pools in tiers, in which the job runs for the same time. No tier
	// runs it for longer than the next one. Most pools then need not be looked at. With serving, pools that
	// do not serve the job may be left out. The tiers are valid until the next call.
	Tiers func(job int, serving bool) []Tier
	// Draw returns the i-th random number of this round. Only mga draws.
	Draw func(i int) uint64
}

// BatchJob is a job that waits for a round's decision.
type BatchJob struct {
	NPE      berth.Count
	Deadline berth.Time // by when it must have ended; berth.Forever is no deadline
	Needs    []Need     // of the site's stocks, each kind at most once
}

// Need is an amount of one kind of a site's stocks.
type Need struct {
	Kind   int
	Amount int64
}

// BatchPool is a pool as a round begins.
type BatchPool struct {
	PEs  berth.Count // in all
	Free berth.Count // now; negative where capacity was lost
	Site int         // index of its site in Stocks; pools of one site share them
}

// Tier is pools in ascending order, one at least, in which a job runs equally long.
type Tier []int32

// Assignment sends a job to a pool, both by their index in the round.
type Assignment struct {
	Job  int
	Pool int
}

// BatchOptions are the options of all batch matchers.
type BatchOptions struct {
	// Aware restricts a job to pools that serve it, whose site has enough of
	// its stocks left, and where it ends by its deadline, transfer included
	// (Tang and Liao, requirements 8 to 10). An unaware matcher looks at PEs
	// only, as those that the paper compares with; its assignments must be
	// checked, and those that do not work refused.
	Aware bool
}

// NamedBatch is a row of the table of batch matchers.
type NamedBatch struct {
	Name  string
	About string
	New   func(BatchOptions) Batch
}

// Batches lists the batch matchers; the first is the default.
var Batches = []NamedBatch{
	{"ajsm", "the job that ends first, where it ends first, transfer included", newAJSM},
	{"min-min", "the shortest job first, where it runs shortest", newMinMin},
	{"max-min", "the longest job first, where it runs shortest", newMaxMin},
	{"sufferage", "the job first that loses most in its second best pool", newSufferage},
	{"mct", "first come, first served, where the job is completed first", newMCT},
	{"met", "first come, first served, where the job runs shortest, or it waits", newMET},
	{"mga", "a genetic search for the least load of the most loaded pool, from min-min", newMGA},
}

// BatchNamed returns the row of that name.
func BatchNamed(name string) (NamedBatch, bool) {
	for _, row := range Batches {
		if row.Name == name {
			return row, true
		}
	}
	return NamedBatch{}, false
}
