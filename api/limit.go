package api

import (
	"math"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// rates counts how often each user asks, by the limits of rate and burst: together, with whatever token and in whatever role.
type rates struct {
	limits policy.Limits
	began  time.Time
	spent  *sync.Map // user → *spending; as many as there are users with tokens
}

// spending is how much of their time a user has used: a call uses what its role's rate gives it, so that calls in several roles
// share one allowance (the generic cell rate algorithm, ITU-T I.371, with a cell time for each role).
type spending struct {
	mu    sync.Mutex
	until float64 // in seconds since rates began; less than now is nothing
}

// asker is whose requests are counted together. Those of a service account count for it and for its owner.
type asker struct {
	user  string
	owner string // of a service account
	role  service.Role
}

// all returns the askers for whom a request counts: the owner first.
func (a asker) all() []asker {
	self := asker{user: a.user, role: a.role}
	if a.owner == "" {
		return []asker{self}
	}
	return []asker{{user: a.owner, role: a.role}, self}
}

func newRates(limits policy.Limits) rates {
	return rates{limits: limits, began: time.Now(), spent: new(sync.Map)}
}

// limit returns how often a principal may ask; limited is false if there is no limit.
func (r *rates) limit(by asker) (perSecond float64, burst int, limited bool) {
	allowance := r.limits.Of(string(by.role), by.user)
	thousandths, limited := allowance.Limit(policy.LimitRate)
	if !limited {
		return math.Inf(1), math.MaxInt, false
	}
	burst = math.MaxInt
	if at, bounded := allowance.Limit(policy.LimitBurst); bounded {
		burst = int(at)
	}
	return float64(thousandths) / 1000, burst, true
}

// allow reports whether a caller may ask n times now, and counts that if so.
func (r *rates) allow(by asker, times int) bool {
	for _, one := range by.all() {
		if perSecond, burst, limited := r.limit(one); limited && !r.spend(one.user, float64(times)/perSecond, float64(burst)/perSecond) {
			return false
		}
	}
	return true
}

// charge charges n more calls to a caller who has asked already: the
// next call waits for it.
func (r *rates) charge(by asker, times int) {
	if times <= 0 {
		return
	}
	for _, one := range by.all() {
		if perSecond, burst, limited := r.limit(one); limited {
			r.spend(one.user, float64(min(times, burst))/perSecond, math.Inf(1))
		}
	}
}

// spend uses some seconds of a user, and reports whether that is within the most that may be used ahead of time; else nothing is used.
func (r *rates) spend(user string, seconds, most float64) bool {
	held, known := r.spent.Load(user)
	if !known {
		held, _ = r.spent.LoadOrStore(user, new(spending))
	}
	s, now := held.(*spending), time.Since(r.began).Seconds()
	s.mu.Lock()
	defer s.mu.Unlock()
	until := max(s.until, now) + seconds
	const lost = 1e-6 // by floating point, of the seconds of a year
	if until-now > most+lost {
		return false
	}
	s.until = until
	return true
}

// most returns how many calls a caller may make at once.
func (r *rates) most(by asker) int {
	least := math.MaxInt
	for _, one := range by.all() {
		_, burst, _ := r.limit(one)
		least = min(least, burst)
	}
	return least
}

// tooFastRest is how long the answer 429 is held back. A client that repeats a refused call
// at once makes ten calls a second on a connection then. Without this, refusals alone keep
// all processors busy.
const tooFastRest = 100 * time.Millisecond

// slowDown waits for tooFastRest, or until the client has gone.
func (c *call) slowDown() {
	timer := time.NewTimer(tooFastRest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.r.Context().Done():
	}
}

func tooFast(by asker) error {
	return berth.Errorf(berth.Exhausted, "", "too many requests of %s; slow down", by.user)
}

// asker returns whose request this is.
func (c *call) asker() asker { return asker{c.by.User, c.tokens.OwnerOf(c.by.User), c.by.Role} }

// largest is the largest body of those whose bodies have no limit.
const largest = 64 << 20

// maxBody returns the largest body that may be sent.
func (c *call) maxBody() int64 {
	if c.by.Role == "" { // the caller is not known yet
		return lightBody
	}
	allowance := c.rates.limits.Of(string(c.by.Role), c.by.User)
	if most, limited := allowance.Limit(policy.LimitRequest); limited {
		return min(most, largest)
	}
	return largest
}

// streams returns how many streams of events may be listened to at once.
func (r *rates) streams(by asker) int {
	allowance := r.limits.Of(string(by.role), by.user)
	if most, limited := allowance.Limit(policy.LimitStreams); limited {
		return int(most)
	}
	return maxStreams
}
