package engine_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// ofUser returns the request as one of user u.
func ofUser(r berth.Request) berth.Request {
	r.User = "u"
	return r
}

// All parts of a request count for its user's quota: their PE-seconds together,
// and one reservation.
func TestQuotaCountsEveryPart(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(100, binding)
		config.Limits = quotas(2, 110)
		e := newEngine(t, config)
		ten := berth.Variant{NPE: 1, Duration: 10}
		over := ofUser(parts("over", 100, berth.Variant{NPE: 5, Duration: 10}, berth.Variant{NPE: 7, Duration: 10}))
		if got := refused(t, submit(t, e, 0, over)); got.Reason != berth.Quota {
			t.Errorf("%s: 120 PE-seconds of 110: %s, want %s", binding, got.Reason, berth.Quota)
		}
		submit(t, e, 0, ofUser(parts("first", 100, berth.Variant{NPE: 5, Duration: 10}, ten)))
		if got := refused(t, submit(t, e, 0, ofUser(parts("wide", 100, berth.Variant{NPE: 5, Duration: 10}, ten)))); got.Reason != berth.Quota {
			t.Errorf("%s: 120 PE-seconds of 110 in two: %s, want %s", binding, got.Reason, berth.Quota)
		}
		submit(t, e, 0, ofUser(parts("second", 100, ten, ten)))
		if got := refused(t, submit(t, e, 0, ofUser(parts("third", 100, ten, ten)))); got.Reason != berth.Quota {
			t.Errorf("%s: a third reservation: %s, want %s", binding, got.Reason, berth.Quota)
		}
		wantShape(t, e, "second", "confirmed cm5:1x[0,10) cm5:1x[0,10)")
		settled(t, config, e)
	}
}

// A modification to several parts is held to the quota too.
func TestQuotaHoldsForModifiedParts(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(100, binding)
		config.Limits = quotas(1, 100)
		e := newEngine(t, config)
		ten := berth.Variant{NPE: 1, Duration: 10}
		submit(t, e, 0, ofUser(parts("a", 100, ten, ten)))
		over := ofUser(parts("a", 100, berth.Variant{NPE: 6, Duration: 10}, berth.Variant{NPE: 5, Duration: 10}))
		changes := apply(t, e, 0, engine.Modify(&over))
		if last := changes[len(changes)-1]; last.Refusal == nil || last.Refusal.Reason != berth.Quota {
			t.Errorf("%s: 110 PE-seconds of 100: %s %+v", binding, last.Kind, last.Refusal)
		}
		wantShape(t, e, "a", "confirmed cm5:1x[0,10) cm5:1x[0,10)")
		within := ofUser(parts("a", 100, berth.Variant{NPE: 5, Duration: 10}, berth.Variant{NPE: 5, Duration: 10}))
		apply(t, e, 0, engine.Modify(&within))
		wantShape(t, e, "a", "confirmed cm5:5x[0,10) cm5:5x[0,10)")
		settled(t, config, e)
	}
}

// The eager filter refuses narrow parts where too much is booked, as it refuses a
// narrow request.
func TestEagerFilterHoldsForParts(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(10, binding)
		config.Eager = &policy.Eager{K1: 500, K2: 200}
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("busy", 0, 0, 100, 7, 100))
		narrow := berth.Variant{NPE: 1, Duration: 10}
		if got := refused(t, submit(t, e, 0, berth.Rigid("one", 0, 0, 100, 1, 10))); got.Reason != berth.PolicyRefused {
			t.Errorf("%s: one part: %s, want %s", binding, got.Reason, berth.PolicyRefused)
		}
		if got := refused(t, submit(t, e, 0, parts("two", 100, narrow, narrow))); got.Reason != berth.PolicyRefused {
			t.Errorf("%s: two parts: %s, want %s", binding, got.Reason, berth.PolicyRefused)
		}
		settled(t, config, e)
	}
}

// A variant that would exceed the quota is not booked; another that fits is. If
// none fits, the quota is the reason.
func TestQuotaChoosesAmongVariants(t *testing.T) {
	for _, c := range []struct {
		peSeconds int64
		want      string
	}{{5000, "confirmed cm5:100x[0,50)"}, {4999, "confirmed cm5:1x[0,100)"}, {100, "confirmed cm5:1x[0,100)"}, {99, "gone"}} {
		for _, binding := range bindings() {
			config := onePool(100, binding)
			config.Limits = quotas(0, c.peSeconds)
			e := newEngine(t, config)
			changes := submit(t, e, 0, ofUser(moldable("m", 0, 1000, berth.Variant{NPE: 1, Duration: 100}, berth.Variant{NPE: 100, Duration: 50})))
			if got := shape(e, "m"); got != c.want {
				t.Errorf("%s, %d PE-seconds: m is %q, want %q", binding, c.peSeconds, got, c.want)
			}
			if c.want == "gone" {
				if got := refused(t, changes); got.Reason != berth.Quota {
					t.Errorf("%s: %s, want %s", binding, got.Reason, berth.Quota)
				}
			}
			settled(t, config, e)
		}
	}
}

// The narrowest variant may cost more than a wider one: the quota is held against
// what is booked.
func TestQuotaAdmitsACheaperWideVariant(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(10, binding)
		config.Limits = quotas(0, 50)
		e := newEngine(t, config)
		submit(t, e, 0, ofUser(moldable("m", 0, 1000, berth.Variant{NPE: 1, Duration: 100}, berth.Variant{NPE: 5, Duration: 10})))
		wantShape(t, e, "m", "confirmed cm5:5x[0,10)")
		settled(t, config, e)
	}
}

// The eager filter judges the variant that is booked: the wide one passes where
// the narrow one would not.
func TestEagerFilterJudgesTheBookedVariant(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(10, binding)
		config.Eager = &policy.Eager{K1: 300, K2: 200}
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("busy", 0, 0, 100, 7, 100))
		submit(t, e, 0, moldable("m", 0, 100, berth.Variant{NPE: 1, Duration: 10}, berth.Variant{NPE: 3, Duration: 12}))
		wantShape(t, e, "m", "confirmed cm5:3x[0,12)")
		settled(t, config, e)
	}
}

// Whatever the batch matcher, a user never has more than the quota.
func TestQuotaHoldsUnderBatchMatchers(t *testing.T) {
	for _, batch := range policy.Batches {
		for name, quota := range map[string]policy.Limits{"reservations": quotas(1, 0), "PE-seconds": quotas(0, 199)} {
			config := onePool(100, berth.Late)
			config.Match, config.Limits = batch.Name, quota
			e := newEngine(t, config)
			for i := range 5 {
				submit(t, e, 0, ofUser(berth.Rigid(fmt.Sprint(i), 0, 0, 1000, 10, 10)))
			}
			apply(t, e, 1, wake())
			n := 0
			for range e.Reservations() {
				n++
			}
			if n != 1 {
				t.Errorf("%s, quota of %s: %d reservations, want 1", batch.Name, name, n)
			}
			settled(t, config, e)
		}
	}
}

// Whatever the batch matcher, the eager filter refuses narrow requests where too
// much is booked, and admits wide ones.
func TestEagerFilterHoldsUnderBatchMatchers(t *testing.T) {
	for _, batch := range policy.Batches {
		config := onePool(10, berth.Late)
		config.Match, config.Eager = batch.Name, &policy.Eager{K1: 300, K2: 200}
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("busy", 0, 0, 100, 6, 100))
		apply(t, e, 1, wake())
		submit(t, e, 1, berth.Rigid("narrow", 1, 1, 100, 1, 10))
		submit(t, e, 1, berth.Rigid("wide", 1, 1, 100, 3, 10))
		apply(t, e, 2, wake())
		if _, live := e.Reservation("narrow"); live {
			t.Errorf("%s: narrow is admitted", batch.Name)
		}
		if _, live := e.Reservation("wide"); !live {
			t.Errorf("%s: wide is not admitted", batch.Name)
		}
		settled(t, config, e)
	}
}

// Where the quota leaves the first part no shape that fits, the refusal is about the
// first part: its narrow shape is too long, its wide one too large beside the second.
func TestQuotaThatLeavesTheFirstPartNoShape(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(6, binding)
		config.Limits = quotas(0, 100)
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("later", 0, 20, 60, 6, 40))
		r := ofUser(parts("r", 60, berth.Variant{NPE: 1, Duration: 50}, berth.Variant{NPE: 2, Duration: 20}))
		r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: 4, Duration: 20})
		if got := refused(t, submit(t, e, 0, r)); got.Wanted != 1 {
			t.Errorf("%s: the refusal is %+v, want one of 1 PE", binding, got)
		}
	}
}

// quotas limits the live reservations and PE-seconds of each user; 0 is no limit.
func quotas(active, peSeconds int64) policy.Limits {
	values := map[policy.LimitName]int64{}
	if active > 0 {
		values[policy.LimitActive] = active
	}
	if peSeconds > 0 {
		values[policy.LimitPESeconds] = peSeconds
	}
	return policy.EachUser(values)
}
