package policy

// cheapest assigns again and again the job whose best pool costs least of all
// (spec 5, b.3 and b.4).
//
// ajsm is algorithm 2 of Tang and Liao: the cost is the time at which the job
// is finished, transfer included (their JFT). min-min is Ibarra and Kim's, in
// the form of Maheswaran et al.: the cost leaves the transfer out.
//
// Deviations and what the papers leave open:
//   - The printed loop of algorithm 2 never removes a job that it defers; here
//     a job without a pool is left out of the round.
//   - A pool is ready now if it has the PEs, else not in this round: jobs do
//     not queue at pools. What finds no room waits for the next round.
//   - An unaware ajsm does without the requirements and the deadline, but
//     reckons with the transfer.
//   - Ties: between pools the first in the sites file, between jobs the first
//     to arrive, then the first submitted.
//   - Each job stands in a heap with its best pool, and looks for another when
//     its turn comes and that one has filled. Because costs do not fall in a
//     round this equals the papers' double loop.
//
// Cost: O(jobs · pools), and O(log jobs) for each time a job finds its pool
// filled, at most once a pool, with a scan of the pools for every
// shortlistLength of these. Memory: O(jobs · shortlistLength + pools).
type cheapest struct {
	options BatchOptions
	staged  bool
}

func newAJSM(o BatchOptions) Batch   { return cheapest{options: o, staged: true} }
func newMinMin(o BatchOptions) Batch { return cheapest{options: o} }

// bid is a job with the best pool known for it: it cannot cost less.
type bid struct {
	choice
	job int32
}

func (a bid) before(b bid) bool {
	return a.cost < b.cost || (a.cost == b.cost && a.job < b.job)
}

// Assign implements Batch.
func (m cheapest) Assign(r *Round, dst []Assignment) []Assignment {
	t := newTally(r, m.options)
	t.staged = m.staged
	s := newShortlists(t)
	bids := heap[bid]{make([]bid, 0, len(r.Jobs)), bid.before}
	for job := range r.Jobs {
		if best := s.best(job, 1); len(best) > 0 {
			bids.items = append(bids.items, bid{best[0], int32(job)})
		}
	}
	bids.settle()
	for len(bids.items) > 0 {
		b := &bids.items[0]
		job, pool := int(b.job), int(b.pool)
		if t.room(job, pool) {
			t.take(job, pool)
			dst = append(dst, Assignment{job, pool})
			bids.drop()
		} else if best := s.best(job, 1); len(best) > 0 {
			b.choice = best[0]
			bids.sink(0)
		} else {
			bids.drop()
		}
	}
	return dst
}

// inTurn assigns the jobs one by one as they come (spec 5, b.4; Maheswaran et
// al.). mct takes the pool that completes the job first, met the one in which
// it runs shortest, whatever its load.
//
// Deviations: a pool is ready now or not in this round, as in cheapest. So mct
// takes the pool with the shortest run among those with room, and a job of met
// waits if the pool it wants has none; an aware one wants only what serves it
// and lets it end by its deadline. Ties: the first in the sites file.
//
// Cost: O(jobs · pools).
type inTurn struct {
	options BatchOptions
	waits   bool // for the pool it wants
}

func newMCT(o BatchOptions) Batch { return inTurn{options: o} }
func newMET(o BatchOptions) Batch { return inTurn{options: o, waits: true} }

// Assign implements Batch.
func (m inTurn) Assign(r *Round, dst []Assignment) []Assignment {
	t := newTally(r, m.options)
	wanted := t
	if m.waits {
		wanted = t.emptied()
	}
	list := make([]choice, 0, 1)
	for job := range r.Jobs {
		list = wanted.scan(job, list)
		if len(list) == 0 {
			continue
		}
		if pool := int(list[0].pool); t.room(job, pool) {
			t.take(job, pool)
			dst = append(dst, Assignment{job, pool})
		}
	}
	return dst
}
