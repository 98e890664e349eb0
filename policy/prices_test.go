package policy_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

func TestTheNarrowestPriceOfAPlaceCountsAndThatOfTheQOSIsMultiplied(t *testing.T) {
	prices := policy.Prices{
		{Site: "east", Factor: 1500},
		{Partition: "gpu", Factor: 4000},
		{Site: "east", Partition: "gpu", Factor: 5000},
		{QOS: "urgent", Factor: 2000},
		{QOS: "idle", Factor: 0},
	}
	if err := prices.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		site, partition, qos string
		want                 policy.Rate
	}{
		{"west", "", "", policy.FullRate},
		{"west", "batch", "long", policy.FullRate},
		{"east", "", "", 1_500_000},
		{"east", "batch", "", 1_500_000},
		{"west", "gpu", "", 4_000_000},
		{"east", "gpu", "", 5_000_000},
		{"east", "gpu", "urgent", 10_000_000},
		{"west", "", "urgent", 2_000_000},
		{"east", "gpu", "idle", 0},
	} {
		if got := prices.Of(c.site, c.partition, c.qos); got != c.want {
			t.Errorf("%s/%s with %q: %d millionths, want %d", c.site, c.partition, c.qos, got, c.want)
		}
	}
	// The order of the rows does not matter where one is narrower.
	turned := policy.Prices{prices[2], prices[1], prices[0]}
	if got := turned.Of("east", "gpu", ""); got != 5_000_000 {
		t.Errorf("turned around: %d millionths, want 5000000", got)
	}
}

func TestPricesThatCannotBeRightAreInvalid(t *testing.T) {
	for name, prices := range map[string]policy.Prices{
		"for nothing": {{Factor: 1000}},
		"negative":    {{Site: "a", Factor: -1}},
		"too much":    {{Site: "a", Factor: policy.MaxFactor + 1}},
		"two at once": {{Site: "a", QOS: "b", Factor: 1}},
		"twice":       {{Site: "a", Factor: 1}, {Site: "a", Factor: 2}},
	} {
		if prices.Validate() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// A charge is the exact product rounded up, never more than the most that is kept.
func TestChargesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		area := rapid.Int64Range(0, int64(berth.Endless)-1).Draw(t, "area")
		if rapid.Bool().Draw(t, "small") {
			area %= 1 << 40
		}
		rate := rapid.Int64Range(0, policy.MaxFactor*1000).Draw(t, "rate") * rapid.SampledFrom([]int64{1, 1000}).Draw(t, "times")
		want := new(big.Int).Mul(big.NewInt(area), big.NewInt(rate))
		want.Add(want, big.NewInt(999_999)).Div(want, big.NewInt(1_000_000))
		if most := big.NewInt(int64(berth.Endless) - 1); want.Cmp(most) > 0 {
			want = most
		}
		if got := policy.Rate(rate).Charge(area); got != want.Int64() {
			t.Fatalf("%d PE-seconds at %d millionths: %d, want %d", area, rate, got, want)
		}
	})
}
