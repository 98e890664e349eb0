package measure

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"iter"
	"strings"

	"github.com/berth-hpc/berth"
)

// Queue are the figures of the ordinary jobs of a schedule.
type Queue struct {
	Jobs int `json:"jobs"`
	// What became of them; who is in none of these was waiting when nothing
	// could happen any more.
	Finished int `json:"finished"` // ran as long as they wanted
	Killed   int `json:"killed"`   // ended at their limit, or where it could be extended no more
	Failed   int `json:"failed"`   // lost to an outage
	Dropped  int `json:"dropped"`  // never started: impossible, or over their waiting limit
	// MeanWait is the mean over the jobs that started of the time from arrival
	// to end in which they did not run, in seconds. For one that ran in one
	// piece that is start − arrival.
	MeanWait *float64 `json:"mean_wait"`
	// MeanBoundedSlowdown is the mean over the same of
	// (wait + run) / max(run, 10 s), at least 1 each, with the run that was.
	MeanBoundedSlowdown *float64 `json:"mean_bounded_slowdown"`
	// UsedPESeconds is npe · run summed over them.
	UsedPESeconds int64 `json:"used_pe_seconds"`
	// DecisionHash is of the form of Hash, over the lines of jobs, with the
	// actual end behind.
	DecisionHash string `json:"decision_hash"`
}

// queueSums sums up ordinary jobs.
type queueSums struct {
	q        Queue // without what follows from all of them
	before   map[string]pieces
	wait     berth.Duration
	slowdown float64
	started  int
	sum      hash.Hash
	buffer   []byte
}

func newQueueSums(before map[string]pieces) *queueSums {
	return &queueSums{before: before, sum: sha256.New()}
}

// add takes in the line of a job that would have run for wanted.
func (s *queueSums) add(line *berth.Line, wanted berth.Duration) {
	q := &s.q
	q.Jobs++
	s.buffer = append(appendTime(appendDecision(s.buffer[:0], line), line.ActualEnd), '\n')
	s.sum.Write(s.buffer)
	switch fateOf(line, wanted) {
	case refused:
		q.Dropped++
		return
	case undecided:
		return
	case finished:
		q.Finished++
	case killed:
		q.Killed++
	case failed:
		q.Failed++
	}
	s.started++
	last, before := ending(line).Sub(*line.Start), s.before[line.ID]
	ran := last + before.ran
	waited := ending(line).Sub(line.Arrival) - ran
	s.wait += waited
	s.slowdown += max(1, float64(waited+ran)/float64(max(ran, bound)))
	q.UsedPESeconds = addSaturated(q.UsedPESeconds, addSaturated(before.peSeconds, berth.Area(line.NPE, last)))
}

// figures returns the figures of the jobs, nil if there is none.
func (s *queueSums) figures() *Queue {
	if s.q.Jobs == 0 {
		return nil
	}
	s.q.MeanWait = ratio(float64(s.wait), float64(s.started))
	s.q.MeanBoundedSlowdown = ratio(s.slowdown, float64(s.started))
	s.q.DecisionHash = hex.EncodeToString(s.sum.Sum(nil))
	return &s.q
}

// pieces is what a job ran before it was stopped for the last time.
type pieces struct {
	ran       berth.Duration
	peSeconds int64
}

// piecesOf gathers the bookings that stand for pieces of jobs, whose ids are the
// job's and a number behind a slash; nil if there are no bookings.
func piecesOf(lines iter.Seq[*berth.Line]) map[string]pieces {
	var all map[string]pieces
	for line := range lines {
		if line.Kind != berth.KindBooking || line.Start == nil || line.End == nil {
			continue
		}
		at := strings.LastIndexByte(line.ID, '/')
		if at < 0 {
			continue
		}
		if all == nil {
			all = map[string]pieces{}
		}
		ran, id := ending(line).Sub(*line.Start), line.ID[:at]
		all[id] = pieces{all[id].ran + ran, addSaturated(all[id].peSeconds, berth.Area(line.NPE, ran))}
	}
	return all
}

// fate is what became of a request or job.
type fate int

const (
	undecided fate = iota
	refused
	finished
	killed
	failed
)

// fateOf tells what became of a line that would have run for wanted. What was
// lost to an outage after its limit counts as killed.
func fateOf(line *berth.Line, wanted berth.Duration) fate {
	switch {
	case !line.Accepted && line.Reason == "":
		return undecided
	case !line.Accepted || line.Start == nil || line.End == nil:
		return refused
	case ending(line).Sub(*line.Start) >= wanted:
		return finished
	case ending(line) >= *line.End:
		return killed
	}
	return failed
}

// ending returns when an accepted line with a start and an end was over.
func ending(line *berth.Line) berth.Time {
	if line.ActualEnd != nil {
		return *line.ActualEnd
	}
	return *line.End
}

// wantedOf returns how long line i would have run: as long as it was given
// where that is not known.
func wantedOf(line *berth.Line, wanted []berth.Duration, i int) berth.Duration {
	if i < len(wanted) && wanted[i] > 0 {
		return wanted[i]
	}
	return line.Duration
}
