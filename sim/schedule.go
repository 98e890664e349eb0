package sim

import (
	"iter"

	"github.com/berth-hpc/berth"
)

// Schedule is what became of the requests and jobs of a workload. It keeps of each what
// its line says beside the request, 80 bytes, and makes the line when it is asked for. It
// refers to the requests of the workload, which must not be written to meanwhile.
type Schedule struct {
	work    *Workload
	records []record
	first   []int32        // by request that has arrived: its first record
	places  []place        // where things ran; the first is nowhere
	reasons []berth.Reason // of refusals; the first is none
	more    []berth.Line   // of outages, what stopped jobs had run, and transfers
}

// place is a pool as lines name it.
type place struct{ site, pool string }

// record is what the line of a part says beside its request.
type record struct {
	start, end, actual berth.Time     // where flags say that they are known
	duration           berth.Duration // as reserved
	pes                berth.PESet
	rare               *rare // nil if there is nothing of it
	npe                berth.Count
	place              uint32 // among those of the schedule
	live               int32  // of the first part: parts that are not over
	reason             uint16 // among those of the schedule
	flags
}

// rare is what few lines have.
type rare struct {
	wanted          *berth.Wanted
	promised, limit *berth.Time
	transfer        berth.Duration
	movedFrom       []berth.FormerPlace
	stretches       []berth.Stretch
}

// flags say what is known of a part.
type flags uint8

const (
	accepted flags = 1 << iota
	placed         // start and end are known
	ended          // the actual end is known
	isJob
	demoted // a request that waits as a job
)

func (f flags) is(one flags) bool { return f&one != 0 }

func (f *flags) set(some flags) { *f |= some }

func (f *flags) unset(some flags) { *f &^= some }

// none is what most parts have of what is rare.
var none rare

// seldom returns what is rare of a part. It must not be written to.
func (r *record) seldom() *rare {
	if r.rare == nil {
		return &none
	}
	return r.rare
}

// some returns what is rare of a part, to be written to.
func (r *record) some() *rare {
	if r.rare == nil {
		r.rare = new(rare)
	}
	return r.rare
}

// parts returns how many parts a request has.
func (s *Schedule) parts(request int) int {
	next := len(s.records)
	if request+1 < len(s.first) {
		next = int(s.first[request+1])
	}
	return next - int(s.first[request])
}

// fill makes the line of a part, which points to the times of its record.
func (s *Schedule) fill(line *berth.Line, request, part int) {
	r := &s.records[int(s.first[request])+part]
	*line = berth.Line{}
	if s.work.Plain != nil {
		p := &s.work.Plain[request]
		line.ID, line.User, line.Arrival, line.Ready, line.Deadline = p.ID, p.User, p.Arrival, p.Ready, p.Deadline
	} else {
		q := &s.work.Requests[request]
		line.ID, line.User, line.Arrival, line.Ready, line.Deadline = q.ID, q.User, q.Arrival, q.Ready, q.Deadline
		if variants := q.Parts[part].Variants; len(variants) > 1 {
			line.Variants = variants
		}
		if len(q.Parts) > 1 {
			line.Part = part + 1
		}
	}
	line.Kind = berth.KindRequest
	if r.is(isJob) {
		line.Kind = berth.KindJob
		if r.is(demoted) || line.Deadline >= berth.Forever {
			line.Deadline = 0
		}
	}
	line.Duration, line.NPE, line.PEs = r.duration, r.npe, r.pes
	line.Accepted, line.Reason = r.is(accepted), s.reasons[r.reason]
	line.Site, line.Pool = s.places[r.place].site, s.places[r.place].pool
	if r.is(placed) {
		line.Start, line.End = &r.start, &r.end
	}
	if r.is(ended) {
		line.ActualEnd = &r.actual
	}
	if rare := r.rare; rare != nil {
		line.Wanted, line.PromisedStart, line.Limit, line.Transfer = rare.wanted, rare.promised, rare.limit, rare.transfer
		line.MovedFrom, line.Stretches = rare.movedFrom, rare.stretches
	}
}

// Len returns how many lines there are.
func (s *Schedule) Len() int { return len(s.records) + len(s.more) }

// All goes through the lines in the order of Replay. Each is good until the next one, and
// may be written to until then, except what it points to. Cost: O(n) for n lines, and
// memory for one.
func (s *Schedule) All() iter.Seq[*berth.Line] {
	return func(yield func(*berth.Line) bool) {
		var line berth.Line
		for request := range s.first {
			for part := range s.parts(request) {
				if s.fill(&line, request, part); !yield(&line) {
					return
				}
			}
		}
		for i := range s.more {
			if line = s.more[i]; !yield(&line) {
				return
			}
		}
	}
}

// Lines returns all lines, 400 bytes for each.
func (s *Schedule) Lines() []berth.Line {
	lines := make([]berth.Line, 0, s.Len())
	for line := range s.All() {
		lines = append(lines, *line)
	}
	return lines
}
