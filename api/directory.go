package api

import (
	"cmp"
	"context"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

// Directory knows the owners of service accounts, and the groups of people on the machine and at the OpenID provider, as that said
// last.
type Directory struct {
	Tokens   *token.Store
	Identity *identity.Ways // nil is the provider's groups alone
	Now      func() berth.Time
}

var _ service.Directory = (*Directory)(nil)

// Person returns the owner of a service account, and others as they are.
func (d *Directory) Person(user string) string {
	account, _ := d.Tokens.Account(user)
	return cmp.Or(account.Owner, user)
}

// Groups returns the groups of a person, as service.GroupsFrom has those of each directory. A name is one person in both.
func (d *Directory) Groups(ctx context.Context, person string) ([]string, error) {
	groups, err := d.Identity.GroupsOf(ctx, person)
	if err != nil {
		return nil, err
	}
	groups = service.GroupsFrom(service.MachineGroup, groups)
	if said, known := d.Tokens.Member(person, d.Now()); known && d.Identity != nil && d.Identity.OIDC != nil {
		groups = append(groups, service.GroupsFrom(service.ProviderGroup, said)...)
	}
	return groups, nil
}
