package api

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// Rate bounds how often somebody may ask: so many times a second in the long
// run, and Burst at once.
type Rate struct {
	PerSecond float64
	Burst     int
}

// defaultRates leave a person's script alone and stop one that has run wild from
// taking all of a service that answers about 4,000 requests a second (design,
// speed). Operators run portals, which ask for many.
var defaultRates = map[service.Role]Rate{
	service.Viewer:   {200, 2000},
	service.User:     {500, 5000},
	service.Operator: {20_000, 40_000},
}

// rates counts by principal.
type rates struct {
	of      map[service.Role]Rate
	buckets *sync.Map // service.Principal → *rate.Limiter; as many as there are tokens
}

func newRates(given map[service.Role]Rate) rates {
	of := map[service.Role]Rate{}
	for _, role := range service.Roles() {
		r, is := given[role]
		if !is {
			r = defaultRates[role]
		}
		of[role] = r
	}
	return rates{of: of, buckets: new(sync.Map)}
}

// allow reports whether somebody may ask so many times now.
func (r *rates) allow(by service.Principal, times int) bool {
	bucket, known := r.buckets.Load(by)
	if !known {
		limit := r.of[by.Role]
		if limit.PerSecond == 0 {
			return true
		}
		bucket, _ = r.buckets.LoadOrStore(by, rate.NewLimiter(rate.Limit(limit.PerSecond), limit.Burst))
	}
	return bucket.(*rate.Limiter).AllowN(time.Now(), times)
}

// charge makes somebody pay for so many times more, who has asked already: what comes
// next waits for it.
func (r *rates) charge(by service.Principal, times int) {
	if bucket, known := r.buckets.Load(by); known && times > 0 {
		limiter := bucket.(*rate.Limiter)
		limiter.ReserveN(time.Now(), min(times, limiter.Burst()))
	}
}

// most returns how often somebody may ask at once at the most.
func (r *rates) most(by service.Principal) int {
	limit := r.of[by.Role]
	if limit.PerSecond == 0 {
		return math.MaxInt
	}
	return limit.Burst
}

func tooFast(by service.Principal) error {
	return berth.Errorf(berth.Exhausted, "", "too many requests of %s; slow down", by.User)
}
