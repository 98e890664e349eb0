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

// promisesOf returns how promises were kept, nil if nothing was asked for, or
// it is not known how long things would have run and no line tells otherwise.
func promisesOf(lines []berth.Line, wanted []berth.Duration) *Promises {
	touched := wanted != nil
	var p Promises
	var offsets berth.Time
	some, single := false, len(beforeParts(lines))
	var all []kept            // of the requests from the first with parts on
	parts := map[string]int{} // id of a request with parts → index into all
	for i := range lines {
		line := &lines[i]
		if !isRequest(line) {
			continue
		}
		some, touched = true, touched || line.PromisedStart != nil || line.ActualEnd != nil
		k := keptOf(line, wantedOf(line, wanted, i))
		if i < single {
			offsets += p.add(&k)
			continue
		}
		if first, again := parts[line.ID]; again && line.Part > 0 {
			all[first].fate = max(all[first].fate, k.fate) // all parts start together
			continue
		}
		if line.Part > 0 {
			parts[line.ID] = len(all)
		}
		all = append(all, k)
	}
	if !touched || !some {
		return nil
	}
	for i := range all {
		offsets += p.add(&all[i])
	}
	p.MeanOffset = ratio(float64(offsets), float64(p.Given-p.Broken))
	return &p
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

func usedOf(lines []berth.Line, pes berth.Count) *Used {
	var u Used
	var first, last berth.Time
	some, ran := false, false
	before := piecesOf(lines)
	for i := range lines {
		line := &lines[i]
		if !isRequest(line) && line.Kind != berth.KindJob {
			continue
		}
		if !some || line.Arrival < first {
			first, some = line.Arrival, true
		}
		if !line.Accepted || line.Start == nil || line.End == nil {
			continue
		}
		end := ending(line)
		if line.Kind == berth.KindJob {
			u.PESeconds = addSaturated(u.PESeconds, before[line.ID].peSeconds)
		}
		u.PESeconds = addSaturated(u.PESeconds, usedBy(line, end))
		if !ran || end > last {
			last, ran = end, true
		}
	}
	if !ran {
		return &u
	}
	for i := range lines {
		line := &lines[i]
		if line.Kind != berth.KindOutage || line.Start == nil {
			continue
		}
		until := last
		if line.End != nil || line.ActualEnd != nil {
			until = min(until, ending(line))
		}
		if from := max(*line.Start, first); from < until {
			u.DownPESeconds = addSaturated(u.DownPESeconds, berth.Area(line.NPE, until.Sub(from)))
		}
	}
	u.Utilization = ratio(float64(u.PESeconds), float64(float64(pes)*float64(last-first)))
	return &u
}
