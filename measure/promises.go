package measure

import "github.com/berth-hpc/berth"

// Promises tells how promises were kept where something could come between: an
// overrun of other work, or an outage. A request of several parts counts once.
type Promises struct {
	Given int `json:"given"` // accepted, and those that were broken
	// Moved counts those that did not start when, or not where, it was first
	// promised.
	Moved int `json:"moved"`
	// Broken counts those that were taken back: refused lines with a promised
	// start.
	Broken int `json:"broken"`
	Failed int `json:"failed"` // started, and lost to an outage
	Killed int `json:"killed"` // ended at their limit, before they were done
	// MeanOffset is the mean of start − first promised start over those that
	// were not broken, in seconds, and MaxOffset the largest.
	MeanOffset *float64    `json:"mean_offset"`
	MaxOffset  *berth.Time `json:"max_offset"`
}

// promiseSums sums up how promises were kept.
type promiseSums struct {
	p       Promises // without what follows from all of them
	some    bool     // something was asked for
	touched bool     // something could come between
	offsets berth.Time
	all     []kept         // of the requests from the first with parts on
	parts   map[string]int // id of a request with parts → index into all
}

// add takes in the line of a request that would have run for wanted.
func (s *promiseSums) add(line *berth.Line, wanted berth.Duration, parted bool) {
	s.some, s.touched = true, s.touched || line.PromisedStart != nil || line.ActualEnd != nil
	k := keptOf(line, wanted)
	if !parted {
		s.offsets += s.p.add(&k)
		return
	}
	if line.Part > 0 {
		if first, again := s.parts[line.ID]; again {
			s.all[first].fate = max(s.all[first].fate, k.fate) // all parts start together
			return
		}
		if s.parts == nil {
			s.parts = map[string]int{}
		}
		s.parts[line.ID] = len(s.all)
	}
	s.all = append(s.all, k)
}

// figures returns how promises were kept, nil if nothing was asked for, or
// it is not known how long things would have run and no line tells otherwise.
func (s *promiseSums) figures() *Promises {
	if !s.touched || !s.some {
		return nil
	}
	for i := range s.all {
		s.offsets += s.p.add(&s.all[i])
	}
	s.p.MeanOffset = ratio(float64(s.offsets), float64(s.p.Given-s.p.Broken))
	return &s.p
}

// kept is what became of the promise of one request.
type kept struct {
	fate   fate
	moved  bool // not where it was first promised
	offset berth.Time
}

func keptOf(line *berth.Line, wanted berth.Duration) kept {
	k := kept{fate: fateOf(line, wanted), moved: line.PromisedStart != nil}
	if k.moved && k.fate > refused {
		k.offset = *line.Start - *line.PromisedStart
	}
	return k
}

// add counts one more promise and returns by how much it was moved.
func (p *Promises) add(k *kept) berth.Time {
	switch k.fate {
	case undecided:
		return 0
	case refused:
		if k.moved {
			p.Given++
			p.Broken++
		}
		return 0
	case finished:
	case killed:
		p.Killed++
	case failed:
		p.Failed++
	}
	p.Given++
	if k.moved {
		p.Moved++
	}
	if p.MaxOffset == nil || k.offset > *p.MaxOffset {
		offset := k.offset
		p.MaxOffset = &offset
	}
	return k.offset
}

// Used is what a machine really did, by requests and jobs alike.
type Used struct {
	// PESeconds is PEs · time summed over all that ran, until its actual end.
	PESeconds int64 `json:"pe_seconds"`
	// DownPESeconds is what outages took, from the first arrival to the last
	// actual end.
	DownPESeconds int64 `json:"down_pe_seconds"`
	// Utilization is PESeconds / (PEs · that time); nil if nothing ran.
	Utilization *float64 `json:"utilization"`
}

// usedBy returns the PE-seconds that a line has until its end, of the PEs that it
// has from when on.
func usedBy(line *berth.Line, end berth.Time) int64 {
	var used int64
	from, npe := *line.Start, line.NPE
	for i := range line.Stretches {
		s := &line.Stretches[i]
		until := min(max(s.From, from), end)
		used = addSaturated(used, berth.Area(npe, until.Sub(from)))
		from, npe = until, s.NPE
	}
	return addSaturated(used, berth.Area(npe, end.Sub(from)))
}

// usedSums sums up what a machine did.
type usedSums struct {
	before      map[string]pieces
	peSeconds   int64
	first, last berth.Time // arrival and end
	some, ran   bool       // there is one
	outages     []outage
}

// outage is PEs that were out of use, until the last end if it is not known.
type outage struct {
	npe         berth.Count
	start, over berth.Time
}

// add takes in the line of a request or a job.
func (s *usedSums) add(line *berth.Line) {
	if !s.some || line.Arrival < s.first {
		s.first, s.some = line.Arrival, true
	}
	if !line.Accepted || line.Start == nil || line.End == nil {
		return
	}
	end := ending(line)
	if line.Kind == berth.KindJob {
		s.peSeconds = addSaturated(s.peSeconds, s.before[line.ID].peSeconds)
	}
	s.peSeconds = addSaturated(s.peSeconds, usedBy(line, end))
	if !s.ran || end > s.last {
		s.last, s.ran = end, true
	}
}

// outage takes in the line of an outage.
func (s *usedSums) outage(line *berth.Line) {
	if line.Start == nil {
		return
	}
	o := outage{line.NPE, *line.Start, berth.Forever}
	if line.End != nil || line.ActualEnd != nil {
		o.over = ending(line)
	}
	s.outages = append(s.outages, o)
}

// figures returns what a machine of pes PEs did.
func (s *usedSums) figures(pes berth.Count) *Used {
	u := Used{PESeconds: s.peSeconds}
	if !s.ran {
		return &u
	}
	for _, o := range s.outages {
		until := min(s.last, o.over)
		if from := max(o.start, s.first); from < until {
			u.DownPESeconds = addSaturated(u.DownPESeconds, berth.Area(o.npe, until.Sub(from)))
		}
	}
	u.Utilization = ratio(float64(u.PESeconds), float64(float64(pes)*float64(s.last-s.first)))
	return &u
}
