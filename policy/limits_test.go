package policy_test

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth/policy"
)

// A user's limit is narrower than a role's, that of a user asked for by a role is the
// narrowest, in whatever order the rows stand; of equals the last counts.
func TestNarrowestLimitCounts(t *testing.T) {
	row := func(role, user string, value int64) policy.Limit {
		return policy.Limit{Scope: policy.Scope{Role: role, User: user}, Name: policy.LimitActive, Value: value}
	}
	all, operators, ann, both := row("", "", 1), row("operator", "", 2), row("", "ann", 3), row("operator", "ann", 4)
	for _, c := range []struct {
		name       string
		role, user string
		rows       policy.Limits
		want       int64 // NoLimit for none
	}{
		{"no rows", "operator", "ann", nil, policy.NoLimit},
		{"everyone's", "user", "bob", policy.Limits{all, operators, ann, both}, 1},
		{"a role's and everyone's", "operator", "bob", policy.Limits{all, operators, ann, both}, 2},
		{"a user's and everyone's", "user", "ann", policy.Limits{all, operators, ann, both}, 3},
		{"a user's and a role's", "operator", "ann", policy.Limits{all, operators, ann}, 3},
		{"all of them", "operator", "ann", policy.Limits{all, operators, ann, both}, 4},
		{"none for a user", "user", "ann", policy.Limits{all, row("", "ann", policy.NoLimit)}, policy.NoLimit},
		{"no role is a user's", "", "bob", policy.Limits{all, row(policy.RoleUser, "", 6)}, 6},
		{"of others", "user", "bob", policy.Limits{operators, ann, both}, policy.NoLimit},
	} {
		for _, backwards := range []bool{false, true} {
			rows := slices.Clone(c.rows)
			if backwards {
				slices.Reverse(rows)
			}
			allowed := rows.Of(c.role, c.user)
			got, limited := allowed.Limit(policy.LimitActive)
			if limited != (c.want != policy.NoLimit) || limited && got != c.want {
				t.Errorf("%s, backwards %t: %d %t, want %d", c.name, backwards, got, limited, c.want)
			}
		}
	}
	of := func(s policy.Scope, value int64) policy.Limit {
		return policy.Limit{Scope: s, Name: policy.LimitActive, Value: value}
	}
	rows := policy.Limits{
		of(policy.Scope{Account: policy.Every, Role: "operator"}, 2), of(policy.Scope{Account: policy.Every}, 1), of(policy.Scope{Account: "phys"}, 3),
		of(policy.Scope{QOS: policy.Every}, 4), of(policy.Scope{Partition: policy.Every}, 5), of(policy.Scope{QOS: "none"}, policy.NoLimit),
	}
	for want, asked := range map[int64]policy.Scope{
		1: {Account: "chem"}, 2: {Account: "chem", Role: "operator"}, 3: {Account: "phys", Role: "operator"}, 4: {QOS: "high"}, 5: {Partition: "gpu"}, -1: {QOS: "none"}, -2: {User: "ann"},
	} {
		allowed := rows.For(asked)
		if got, limited := allowed.Limit(policy.LimitActive); limited != (want > 0) || limited && got != want {
			t.Errorf("%+v: %d %t, want %d", asked, got, limited, want)
		}
	}
	allowed := policy.Limits{operators, row("operator", "", 5), all}.Of("operator", "bob")
	if got, _ := allowed.Limit(policy.LimitActive); got != 5 {
		t.Errorf("the last of two equals is 5, and %d counts", got)
	}
}
