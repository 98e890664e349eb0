// Package measure computes what a finished schedule was worth: rates, means
// and sums over its requests, a hash of its decisions, and intervals over
// replications. It neither decides nor checks; a schedule that breaks its own
// rules gives figures that mean nothing.
package measure

import (
	"cmp"
	"iter"
	"math"
	"math/bits"
	"slices"

	"github.com/berth-hpc/berth"
)

// Metrics are the figures of one schedule. A mean or rate over nothing is nil,
// null in JSON. PE-seconds saturate at the largest int64.
type Metrics struct {
	Jobs     int `json:"jobs"` // requests; one with several parts counts once
	Accepted int `json:"accepted"`
	// AcceptanceRate is Accepted / Jobs.
	AcceptanceRate *float64 `json:"acceptance_rate"`
	// MeanSlowdown is the mean over accepted requests of
	// (start − ready + duration) / duration.
	MeanSlowdown *float64 `json:"mean_slowdown"`
	// MeanWait is the mean over accepted requests of start − ready, in
	// seconds: the availability paper counts from the instant from which a
	// request could run, and so does MeanSlowdown.
	MeanWait *float64 `json:"mean_wait"`
	// MeanWaitFromArrival is the mean over accepted requests of
	// start − arrival, in seconds, as in the papers on dynamic priority and on
	// limited waiting.
	MeanWaitFromArrival *float64 `json:"mean_wait_from_arrival"`
	// Utilization is AcceptedPESeconds / (PEs · (last end − first arrival)):
	// the last end of an accepted request, the first arrival of any. It is nil
	// if nothing was accepted.
	Utilization *float64 `json:"utilization"`
	// RequestedPESeconds is npe · duration summed over all requests, as their
	// lines say; AcceptedPESeconds over the accepted ones.
	RequestedPESeconds int64 `json:"requested_pe_seconds"`
	AcceptedPESeconds  int64 `json:"accepted_pe_seconds"`
	// Refusals counts refused requests by reason, in the order of
	// berth.Reasons, unknown reasons last in alphabetical order. Reasons that
	// did not occur are left out.
	Refusals []ReasonCount `json:"refusals"`
	// SizeClasses splits the requests by size, smallest first. Classes
	// without a request are left out.
	SizeClasses []SizeClass `json:"size_classes"`
	// Queue is about ordinary jobs, which nothing above counts; nil, and not in
	// JSON, if there is none.
	Queue *Queue `json:"queue,omitempty"`
	// Promises is about how promises were kept; nil, and not in JSON, where
	// nothing but the decisions themselves could touch them.
	Promises *Promises `json:"promises,omitempty"`
	// Used is there where one of the two is.
	Used *Used `json:"used,omitempty"`
}

// ReasonCount is how many requests were refused for one reason.
type ReasonCount struct {
	Reason berth.Reason `json:"reason"`
	Count  int          `json:"count"`
}

// SizeClass is the part of the requests with sizes from MinNPE to MaxNPE: 1,
// 2, 3–4, 5–8 and so on, each ending at a power of two. The size of a request
// with several parts is the sum of theirs. A size below 1, which no valid
// request has, falls into the first class.
type SizeClass struct {
	MinNPE             int64    `json:"min_npe"`
	MaxNPE             int64    `json:"max_npe"`
	Jobs               int      `json:"jobs"`
	Accepted           int      `json:"accepted"`
	AcceptanceRate     *float64 `json:"acceptance_rate"`
	RequestedPESeconds int64    `json:"requested_pe_seconds"`
	AcceptedPESeconds  int64    `json:"accepted_pe_seconds"`
}

// job is a request: one line, or the lines of all its parts.
type job struct {
	accepted  bool // all parts
	reason    berth.Reason
	arrival   berth.Time // of the first part, as for ready
	ready     berth.Time
	start     berth.Time // earliest
	end       berth.Time // latest
	duration  berth.Duration
	npe       int64
	requested int64 // PE-seconds
}

// Of returns the figures of a finished schedule on a machine of pes PEs. Only
// request lines count (a line without a kind is one), and only accepted
// requests have a slowdown and a wait. A request is accepted if all its parts
// are; its duration is that of its longest part, its arrival and ready time are
// those of its first. An accepted line that lacks its start or end counts as
// refused without a reason. Cost: O(n) for n lines.
func Of(lines []berth.Line, pes berth.Count) Metrics { return OfRuns(berth.Each(lines), pes, nil) }

// OfRuns is Of where things may run for another time than they were given, or
// be lost: wanted says for each line how long it would have run at its place had
// nothing cut it short, the last piece alone for a job that was stopped before; 0
// is as long as it was given. nil is 0 for all, and leaves out Promises unless a
// line shows that something came between. The lines are gone through twice, and none is
// needed any more when the next one comes.
func OfRuns(lines iter.Seq[*berth.Line], pes berth.Count, wanted []berth.Duration) Metrics {
	before := piecesOf(lines)
	var (
		requests = requestSums{sums: sums{refusals: map[berth.Reason]int{}}}
		queue    = newQueueSums(before)
		promises = promiseSums{touched: wanted != nil}
		used     = usedSums{before: before}
		i        int
		parted   bool // a line has had a part number: from there on requests may have several
	)
	for line := range lines {
		parted = parted || line.Part != 0
		switch run := wantedOf(line, wanted, i); {
		case isRequest(line):
			requests.add(line, parted)
			promises.add(line, run, parted)
			used.add(line)
		case line.Kind == berth.KindJob:
			queue.add(line, run)
			used.add(line)
		case line.Kind == berth.KindOutage:
			used.outage(line)
		}
		i++
	}
	m := requests.metrics(pes)
	m.Queue, m.Promises = queue.figures(), promises.figures()
	if m.Queue != nil || m.Promises != nil {
		m.Used = used.figures(pes)
	}
	return m
}

// requestSums sums up requests, and gathers those that may have several parts: only lines
// with a part number are joined by id.
type requestSums struct {
	sums
	jobs  []job          // from the first that has a part number on, in the order in which each first appears
	parts map[string]int // id of a request with parts → index into jobs
}

// add takes in the line of a request.
func (s *requestSums) add(line *berth.Line, parted bool) {
	j := jobOf(line)
	if !parted {
		s.sums.add(&j)
		return
	}
	if line.Part != 0 {
		if first, seen := s.parts[line.ID]; seen {
			s.jobs[first].join(&j)
			return
		}
		if s.parts == nil {
			s.parts = map[string]int{}
		}
		s.parts[line.ID] = len(s.jobs)
	}
	s.jobs = append(s.jobs, j)
}

func (s *requestSums) metrics(pes berth.Count) Metrics {
	for i := range s.jobs {
		s.sums.add(&s.jobs[i])
	}
	return s.sums.metrics(pes)
}

// sums are those of the requests so far.
type sums struct {
	m                     Metrics // without what follows from all of them
	slowdown              float64
	wait, fromArrival     int64
	firstArrival, lastEnd berth.Time
	refusals              map[berth.Reason]int
	classes               [65]SizeClass
}

func (s *sums) add(j *job) {
	m := &s.m
	if m.Jobs == 0 || j.arrival < s.firstArrival {
		s.firstArrival = j.arrival
	}
	m.Jobs++
	class := &s.classes[sizeClass(j.npe)]
	class.Jobs++
	class.RequestedPESeconds = addSaturated(class.RequestedPESeconds, j.requested)
	m.RequestedPESeconds = addSaturated(m.RequestedPESeconds, j.requested)
	if !j.accepted {
		s.refusals[j.reason]++
		return
	}
	if m.Accepted == 0 || j.end > s.lastEnd {
		s.lastEnd = j.end
	}
	m.Accepted++
	class.Accepted++
	class.AcceptedPESeconds = addSaturated(class.AcceptedPESeconds, j.requested)
	m.AcceptedPESeconds = addSaturated(m.AcceptedPESeconds, j.requested)
	s.wait += int64(j.start - j.ready)
	s.fromArrival += int64(j.start - j.arrival)
	duration := max(1, int64(j.duration)) // less is no valid request
	s.slowdown += float64(int64(j.start-j.ready)+duration) / float64(duration)
}

// metrics returns the figures of all requests.
func (s *sums) metrics(pes berth.Count) Metrics {
	m := s.m
	m.AcceptanceRate = ratio(float64(m.Accepted), float64(m.Jobs))
	m.MeanSlowdown = ratio(s.slowdown, float64(m.Accepted))
	m.MeanWait = ratio(float64(s.wait), float64(m.Accepted))
	m.MeanWaitFromArrival = ratio(float64(s.fromArrival), float64(m.Accepted))
	if m.Accepted > 0 {
		m.Utilization = ratio(float64(m.AcceptedPESeconds), float64(float64(pes)*float64(s.lastEnd-s.firstArrival)))
	}
	m.Refusals = refusalsInOrder(s.refusals)
	m.SizeClasses = []SizeClass{}
	for k, class := range s.classes {
		if class.Jobs == 0 {
			continue
		}
		class.MinNPE, class.MaxNPE = sizeBounds(k)
		class.AcceptanceRate = ratio(float64(class.Accepted), float64(class.Jobs))
		m.SizeClasses = append(m.SizeClasses, class)
	}
	return m
}

// isRequest reports whether a line is of a request. A task that its workflow gave up before it began is none: it
// was neither refused nor does it hold PEs.
func isRequest(line *berth.Line) bool {
	return (line.Kind == berth.KindRequest || line.Kind == "") && (line.Accepted || len(line.ReplannedFrom) == 0)
}

func jobOf(line *berth.Line) job {
	j := job{
		reason:   line.Reason,
		arrival:  line.Arrival,
		ready:    line.Ready,
		duration: line.Duration,
		npe:      int64(line.NPE),
	}
	j.requested = berth.Area(line.NPE, line.Duration)
	if line.Accepted && line.Start != nil && line.End != nil {
		j.accepted = true
		j.start, j.end = *line.Start, *line.End
	}
	return j
}

// join adds another part to the request.
func (j *job) join(part *job) {
	if j.accepted && part.accepted {
		j.start = min(j.start, part.start)
		j.end = max(j.end, part.end)
	} else if j.accepted {
		j.accepted = false
		j.reason = part.reason
	}
	j.duration = max(j.duration, part.duration)
	j.npe += part.npe
	j.requested = addSaturated(j.requested, part.requested)
}

func refusalsInOrder(refusals map[berth.Reason]int) []ReasonCount {
	counts := make([]ReasonCount, 0, len(refusals))
	for reason, n := range refusals {
		counts = append(counts, ReasonCount{Reason: reason, Count: n})
	}
	rank := func(r berth.Reason) uint { return uint(r.Rank()) } // unknown is -1: last
	slices.SortFunc(counts, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(rank(a.Reason), rank(b.Reason)), cmp.Compare(a.Reason, b.Reason))
	})
	return counts
}

// sizeClass returns k such that 2^(k−1) < npe ≤ 2^k, and 0 for npe ≤ 1.
func sizeClass(npe int64) int {
	if npe <= 1 {
		return 0
	}
	return bits.Len64(uint64(npe - 1))
}

func sizeBounds(k int) (lo, hi int64) {
	if k == 0 {
		return 1, 1
	}
	return 1<<(k-1) + 1, 1 << k
}

// ratio returns a/b, and nil if b is 0.
func ratio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	q := a / b
	return &q
}

// addSaturated returns a+b for non-negative operands, at most the largest int64.
func addSaturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
