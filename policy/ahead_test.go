package policy_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

func TestRowsThatBindAPriority(t *testing.T) {
	all := policy.Ahead{{Beyond: 700, Share: 500}, {Beyond: 100, Share: 800}, {Beyond: 100, Share: 300, Below: new(5)}, {Beyond: 50, Share: 1000}, {Beyond: 900, Share: 900}, {Beyond: 800, Share: 0, Below: new(0)}}
	for priority, want := range map[int][]policy.AheadRow{
		5:  {{Beyond: 100, Share: 800}, {Beyond: 700, Share: 500}},
		4:  {{Beyond: 100, Share: 300, Below: new(5)}},
		0:  {{Beyond: 100, Share: 300, Below: new(5)}},
		-1: {{Beyond: 100, Share: 300, Below: new(5)}, {Beyond: 800, Share: 0, Below: new(0)}},
	} {
		if diff := cmp.Diff(want, all.For(priority)); diff != "" {
			t.Errorf("priority %d: %s", priority, diff)
		}
	}
	if rows := policy.Ahead(nil).For(0); len(rows) != 0 {
		t.Errorf("%v", rows)
	}
	for share, want := range map[policy.Permille]berth.Count{0: 0, 1: 1, 333: 4, 500: 5, 501: 6, 1000: 10} {
		if row := (policy.AheadRow{Share: share}); row.Of(10) != want {
			t.Errorf("%d thousandths of 10 PEs are %d, want %d", share, row.Of(10), want)
		}
	}
}

func TestRowsThatSayNothing(t *testing.T) {
	for field, row := range map[string]policy.AheadRow{
		"ahead.beyond": {Beyond: -1, Share: 500}, "ahead.share": {Share: 1001},
	} {
		var err *berth.Error
		if !errors.As(policy.Ahead{{Share: 1}, row}.Validate(), &err) || err.Code != berth.Invalid || err.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := (policy.Ahead{{Beyond: berth.TimeLimit - 1, Share: 1000}, {}}).Validate(); err != nil {
		t.Error(err)
	}
}
