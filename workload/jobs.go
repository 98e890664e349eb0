package workload

import (
	"strconv"

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
// Cost: O(len(records)), one allocation for each id and each user and a few for all.
func (m *Mix) Plain(records []Record, strict bool, report *Report) (plain []berth.Plain, runs []berth.Duration, err error) {
	if err := m.Validate(); err != nil {
		return nil, nil, err
	}
	if report == nil {
		report = &Report{}
	}
	artime, slack, reserve := stream.New(m.Seed, "artime"), stream.New(m.Seed, "deadline"), stream.New(m.Seed, "reserve")
	plain, runs = make([]berth.Plain, 0, len(records)), make([]berth.Duration, 0, len(records))
	full := new(berth.Plain).Request() // to be validated
	users := make(map[int32]string)
	for i := range records {
		r, n := &records[i], uint64(i)
		duration, estimated := m.duration(r)
		p := berth.Plain{
			ID: strconv.FormatInt(r.Job, 10), User: userName(users, r.User),
			Arrival:  secondsDown(float64(r.Submit) / m.ArrivalFactor),
			Duration: duration, NPE: r.Size(),
		}
		if reserve.Float64(n) < m.Reserve {
			p.Ready = p.Arrival + share(m.ArtimeFactor, artime.Float64(n), duration)
			p.Deadline = p.Ready + berth.Time(duration) + share(m.DeadlineFactor, slack.Float64(n), duration)
		} else {
			m.queue(&p)
		}
		p.Fill(full)
		if err := full.Validate(); err != nil {
			bad := badRequest(err)
			bad.Want = "job " + p.ID + ": " + bad.Want
			report.Usable = max(report.Usable-1, 0) // the reader took it for usable
			if err := report.bad(&bad, strict); err != nil {
				return nil, nil, err
			}
			continue
		}
		plain, runs = append(plain, p), append(runs, r.Run)
		if m.Estimates && !estimated {
			report.NoEstimate++
		}
	}
	return plain, runs, nil
}

// queue makes an ordinary job of a request.
func (m *Mix) queue(p *berth.Plain) {
	p.Job, p.Ready, p.Deadline = true, p.Arrival, berth.Forever
	if m.Waiting != nil {
		p.Deadline = p.Arrival.Add(*m.Waiting).Add(p.Duration)
	}
}
