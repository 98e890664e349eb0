package workload

import (
	"runtime"
	"strconv"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/stream"
)

// Mix makes requests and ordinary jobs of the records of a log or a model: a
// drawn share of them gets windows, as Transform has it, and asks for promises;
// the others wait in the queue like the jobs they were. The zero value is not
// valid; NewMix gives one without promises.
type Mix struct {
	// Transform has the factors of the windows, which concern requests alone,
	// and the arrival factor, the estimates and the seed, which concern both.
	Transform
	// Reserve is the share of the records that become requests, from 0 to 1:
	// record i does if draw i of a stream of its own is below it. So a larger
	// share only adds requests, and each keeps its window.
	Reserve float64
	// Waiting is how long a job may wait until it is dropped: its deadline is
	// arrival + Waiting + duration. nil is no limit.
	Waiting *berth.Duration
}

// NewMix returns the setting in which every record is an ordinary job, which
// waits as long as it must and whose estimate is its run time.
func NewMix(seed uint64) Mix { return Mix{Transform: NewTransform(seed)} }

// Validate reports the first setting that cannot be right, as an *berth.Error
// with code Invalid and the flag as its field.
func (m *Mix) Validate() error {
	if err := m.Transform.Validate(); err != nil {
		return err
	}
	if !(m.Reserve >= 0 && m.Reserve <= 1) {
		return berth.Errorf(berth.Invalid, "reserve-share", "%v; it must be a number from 0 to 1", m.Reserve)
	}
	if m.Waiting != nil && (*m.Waiting < 0 || *m.Waiting >= berth.TimeLimit) {
		return berth.Errorf(berth.Invalid, "waiting-limit", "%d s; it must lie between 0 and 2^42", *m.Waiting)
	}
	return nil
}

// Requests is Plain with the requests in full.
func (m *Mix) Requests(records []Record, strict bool, report *Report) (requests []berth.Request, runs []berth.Duration, err error) {
	plain, runs, err := m.Plain(records, strict, report)
	if err != nil {
		return nil, nil, err
	}
	requests = make([]berth.Request, len(plain))
	parts, variants := make([]berth.Part, len(plain)), make([]berth.Variant, len(plain))
	for i := range plain {
		requests[i].Parts, parts[i].Variants = parts[i:i+1:i+1], variants[i:i+1:i+1]
		plain[i].Fill(&requests[i])
	}
	return requests, runs, nil
}

// Plain turns records, sorted by submit time, into requests and jobs in the
// same order, with what Transform.Requests says of ids, users, sizes and bad
// ones. runs tells for each how long it really runs: the record's run time,
// which with Estimates may be shorter or longer than what was asked for.
// Cost: O(len(records)) on all cores, one allocation for each piece of ids and each user and a few for all.
func (m *Mix) Plain(records []Record, strict bool, report *Report) (plain []berth.Plain, runs []berth.Duration, err error) {
	if err := m.Validate(); err != nil {
		return nil, nil, err
	}
	if report == nil {
		report = &Report{}
	}
	plain, runs = make([]berth.Plain, len(records)), make([]berth.Duration, len(records))
	shares := max(1, min(runtime.GOMAXPROCS(0), len(records)/leastShare))
	made := make([]madePlain, shares)
	var making sync.WaitGroup
	for k := range shares {
		making.Go(func() { made[k] = m.make(records, k*len(records)/shares, (k+1)*len(records)/shares, plain, runs) })
	}
	making.Wait()
	if err := m.tooFar(records, made); err != nil {
		return nil, nil, err
	}
	n, next := 0, 0 // those that are good, up to next
	for k := range made {
		for i := range made[k].bad {
			bad := &made[k].bad[i]
			n += copy(plain[n:], plain[next:bad.record])
			copy(runs[n-(bad.record-next):], runs[next:bad.record])
			next = bad.record + 1
			report.Usable = max(report.Usable-1, 0) // the reader took it for usable
			if err := report.bad(&bad.line, strict); err != nil {
				return nil, nil, err
			}
		}
		report.NoEstimate += made[k].noEstimate
	}
	copy(runs[n:], runs[next:])
	n += copy(plain[n:], plain[next:])
	return plain[:n], runs[:n], nil
}

// leastShare is how many records are worth a goroutine.
const leastShare = 1 << 13

// madePlain is what came of some records beside requests and jobs.
type madePlain struct {
	bad        []badRecord
	noEstimate int
}

// badRecord is a record that makes no valid request.
type badRecord struct {
	record int
	line   BadLine
}

// idsAtOnce is how many ids share a piece of memory.
const idsAtOnce = 256

// make turns the records from one up to another into requests and jobs at the same places.
func (m *Mix) make(records []Record, from, to int, plain []berth.Plain, runs []berth.Duration) (made madePlain) {
	artime, slack, reserve := stream.New(m.Seed, "artime"), stream.New(m.Seed, "deadline"), stream.New(m.Seed, "reserve")
	full := new(berth.Plain).Request() // to be validated
	users := make(map[int32]string)
	ids := pieceOfIDs{records: records[:to], next: from}
	for i := from; i < to; i++ {
		r, n := &records[i], uint64(i)
		duration, estimated := m.duration(r)
		p := &plain[i]
		*p = berth.Plain{
			ID: ids.take(), User: userName(users, r.User),
			Arrival:  secondsDown(float64(r.Submit) / m.ArrivalFactor),
			Duration: duration, NPE: r.Size(),
		}
		if reserve.Float64(n) < m.Reserve {
			p.Ready = p.Arrival + share(m.ArtimeFactor, artime.Float64(n), duration)
			p.Deadline = p.Ready + berth.Time(duration) + share(m.DeadlineFactor, slack.Float64(n), duration)
		} else {
			m.queue(p)
		}
		p.Fill(full)
		if err := full.Validate(); err != nil {
			bad := badRequest(err)
			bad.Want = "job " + p.ID + ": " + bad.Want
			made.bad = append(made.bad, badRecord{i, bad})
			continue
		}
		runs[i] = r.Run
		if m.Estimates && !estimated {
			made.noEstimate++
		}
	}
	return made
}

// manyTooFar is how many records are no longer told one by one where a factor makes most of them bad.
const manyTooFar = 100

// tooFar is the error of a factor by which many records, and most of all, come to lie beyond all times, nil if none does that.
func (m *Mix) tooFar(records []Record, made []madePlain) error {
	n, first := 0, -1
	for k := range made {
		if n += len(made[k].bad); first < 0 && len(made[k].bad) > 0 {
			first = made[k].bad[0].record
		}
	}
	if n < manyTooFar || 2*n <= len(records) {
		return nil
	}
	r, field, factor := &records[first], "arrival-factor", m.ArrivalFactor
	duration, _ := m.duration(r)
	switch beyond := func(t berth.Time) bool { return t <= -berth.TimeLimit || t >= berth.TimeLimit }; {
	case beyond(secondsDown(float64(r.Submit) / m.ArrivalFactor)):
	case beyond(share(m.ArtimeFactor, stream.New(m.Seed, "artime").Float64(uint64(first)), duration)):
		field, factor = "artime-factor", m.ArtimeFactor
	case beyond(share(m.DeadlineFactor, stream.New(m.Seed, "deadline").Float64(uint64(first)), duration)):
		field, factor = "deadline-factor", m.DeadlineFactor
	default:
		return nil
	}
	return berth.Errorf(berth.Invalid, field, "%v; with it job %d and most others come to lie beyond ±2^42 s", factor, r.Job)
}

// pieceOfIDs makes the ids of records, some at once.
type pieceOfIDs struct {
	records []Record
	next    int // the record whose id is taken next
	left    string
	digits  []byte // the last piece; then the length of each of its ids
	lengths []uint8
}

// take returns the id of the next record.
func (p *pieceOfIDs) take() string {
	at := p.next % idsAtOnce
	if p.left == "" {
		p.digits, p.lengths = p.digits[:0], p.lengths[:0]
		for range at {
			p.lengths = append(p.lengths, 0)
		}
		end := min(p.next-at+idsAtOnce, len(p.records))
		for i := p.next; i < end; i++ {
			was := len(p.digits)
			p.digits = strconv.AppendInt(p.digits, p.records[i].Job, 10)
			p.lengths = append(p.lengths, uint8(len(p.digits)-was))
		}
		p.left = string(p.digits)
	}
	n := p.lengths[at]
	id := p.left[:n]
	p.left, p.next = p.left[n:], p.next+1
	return id
}

// queue makes an ordinary job of a request.
func (m *Mix) queue(p *berth.Plain) {
	p.Job, p.Ready, p.Deadline = true, p.Arrival, berth.Forever
	if m.Waiting != nil {
		p.Deadline = p.Arrival.Add(*m.Waiting).Add(p.Duration)
	}
}
