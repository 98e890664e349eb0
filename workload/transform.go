package workload

import (
	"math"
	"strconv"

	"github.com/berth-hpc/berth"
)

// Transform gives the jobs of a log or a model what advance reservation needs
// and they lack: a ready time and a deadline (availability paper, section 5).
// For job i of the slice, from 0, with U1 and U2 the draws i of two streams,
// uniform on [0,1):
//
//	arrival  = ⌊submit / ArrivalFactor⌋
//	ready    = arrival + ⌊ArtimeFactor · U1 · duration⌋
//	deadline = ready + duration + ⌊DeadlineFactor · U2 · duration⌋
//
// The paper rounds nothing; here every term is a whole second, rounded down.
// The draws depend on Seed and i alone, so they are the same for every policy,
// binding and factor.
//
// The zero value is not valid, for its ArrivalFactor is 0; NewTransform gives
// the paper's setting.
type Transform struct {
	ArrivalFactor  float64 // divides submit times; above 0, more means more load
	ArtimeFactor   float64 // 0 makes every job ready on arrival
	DeadlineFactor float64 // 0 makes every deadline immediate
	// Estimates books the requested time (column 9) instead of the run time,
	// where it is known and above 0.
	Estimates bool
	// Seed of the draws; 0 is a seed. Replication r takes the first one's
	// seed plus r−1.
	Seed uint64
}

// NewTransform returns the setting of the availability paper's main experiment:
// arrival factor 1, artime and deadline factor 3, durations from run times.
func NewTransform(seed uint64) Transform {
	return Transform{ArrivalFactor: 1, ArtimeFactor: 3, DeadlineFactor: 3, Seed: seed}
}

// Validate reports the first factor that cannot be right, as an *berth.Error
// with code Invalid and the factor's flag as its field.
func (t *Transform) Validate() error {
	if !(t.ArrivalFactor > 0) || math.IsInf(t.ArrivalFactor, 0) {
		return berth.Errorf(berth.Invalid, "arrival-factor", "%v; it must be a number above 0", t.ArrivalFactor)
	}
	for _, f := range []struct {
		flag  string
		value float64
	}{{"artime-factor", t.ArtimeFactor}, {"deadline-factor", t.DeadlineFactor}} {
		if !(f.value >= 0) || math.IsInf(f.value, 0) {
			return berth.Errorf(berth.Invalid, f.flag, "%v; it must be a number from 0 up", f.value)
		}
	}
	return nil
}

// Requests turns records, sorted by submit time, into rigid requests in the
// same order. The id is the job number, the user column 12 where it is known,
// the duration the run time or the estimate, the size Record.Size.
//
// A request that cannot be right, for example because its deadline would be
// beyond berth.TimeLimit, is bad: in strict mode it is the error, else it is
// left out and counted in report, which may be nil. Without strict mode only
// the factors can cause an error. Cost: O(len(records)), one allocation for
// each id and each user and a few for all.
func (t *Transform) Requests(records []Record, strict bool, report *Report) ([]berth.Request, error) {
	mix := Mix{Transform: *t, Reserve: 1}
	requests, _, err := mix.Requests(records, strict, report)
	return requests, err
}

// duration returns what is reserved for a record, and whether that is its
// estimate.
func (t *Transform) duration(r *Record) (d berth.Duration, estimated bool) {
	if t.Estimates && r.ReqTime > 0 {
		return r.ReqTime, true
	}
	return r.Run, false
}

// secondsDown rounds down to whole seconds. What does not fit becomes
// ±TimeLimit, which is not a valid time and small enough to be added to.
func secondsDown(seconds float64) berth.Time {
	down := math.Floor(seconds)
	switch {
	case down >= berth.TimeLimit:
		return berth.TimeLimit
	case down <= -berth.TimeLimit:
		return -berth.TimeLimit
	}
	return berth.Time(down)
}

// share returns ⌊factor·u·d⌋. The conversions force each product to be rounded
// by itself, so that no machine fuses it with what follows.
func share(factor, u float64, d berth.Duration) berth.Time {
	product := float64(factor * u)
	product = float64(product * float64(d))
	return secondsDown(product)
}

// userName returns the name of a user number, and none for an unknown one.
func userName(names map[int32]string, number int32) string {
	if number < 0 {
		return ""
	}
	name, known := names[number]
	if !known {
		name = strconv.FormatInt(int64(number), 10)
		names[number] = name
	}
	return name
}
