package api_test

import (
	"context"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

// A group makes a member wherever it is from, or from one directory alone if it says so; a group of one directory never passes for one of the other.
func TestGroupsOfProjectsSayWhereTheyAreFrom(t *testing.T) {
	tokens, err := token.Open(t.TempDir(), "operator", 0)
	if err != nil {
		t.Fatal(err)
	}
	const now = 1000
	said := []string{"both", "grid", "machine:hep", "oidc:hep"}
	if err := tokens.Meet("ann", said, now); err != nil {
		t.Fatal(err)
	}
	machine := map[string][]string{"ann": {"hep", "both", "oidc:grid"}, "bob": {"hep"}}
	ways := &identity.Ways{OIDC: new(identity.Provider), Accounts: identity.NewAccounts(func(_ context.Context, key string) (identity.Account, bool, error) {
		groups, known := machine[key]
		return identity.Account{Name: key, Groups: groups}, known, nil
	})}
	d := &api.Directory{Tokens: tokens, Identity: ways, Now: func() berth.Time { return now }}
	for _, c := range []struct {
		user, group string
		member      bool
	}{
		{"ann", "hep", true},
		{"ann", "machine:hep", true},
		{"ann", "oidc:hep", false},
		{"ann", "grid", true},
		{"ann", "oidc:grid", true},
		{"ann", "machine:grid", false},
		{"ann", "both", true},
		{"ann", "machine:both", true},
		{"ann", "oidc:both", true},
		{"ann", "oidc:machine:hep", true},
		{"ann", "oidc:oidc:hep", true},
		{"ann", "machine:oidc:grid", true},
		{"bob", "hep", true},
		{"bob", "machine:hep", true},
		{"bob", "oidc:hep", false},
		{"bob", "grid", false},
		{"cid", "hep", false},
		{"cid", "machine:hep", false},
	} {
		groups, err := d.Groups(t.Context(), c.user)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(groups, c.group) != c.member {
			t.Errorf("%s is in %s: %v; want %v", c.user, c.group, !c.member, c.member)
		}
	}
	p := service.Projects{List: []service.Project{{Account: "a", Groups: []string{"hep", "machine:staff", "oidc:grid"}}, {Account: "b", Groups: []string{"oidc:hep", "oidc:machine:x"}}}}
	if got, want := p.GroupNames(), []string{"grid", "hep", "machine:x"}; !slices.Equal(got, want) {
		t.Errorf("of the provider %v count; want %v", got, want)
	}
}
