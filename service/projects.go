package service

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// Projects says which accounts users may name. The zero value restricts nothing.
type Projects struct {
	List []Project
	// From are managed sites whose accounting knows accounts of users, beside the list.
	From []string
	// Open lets everyone name accounts that are not listed, and users of no project name none.
	Open bool
	// Directory says of whom names are, and in which groups they are; nil knows of none.
	Directory Directory
}

// Project is an account with its members. The first account of a user is that of requests that name none, unless another one is
// DefaultFor them.
type Project struct {
	Account       string
	Users, Groups []string
	DefaultFor    []string
}

// Directory knows users.
type Directory interface {
	// Person returns for whom a user acts: the owner of a service account, else the user.
	Person(user string) string
	// Groups returns the groups of a person on the machine and at the OpenID provider, as GroupsFrom has them. The error is of code Unavailable if they
	// cannot be known now.
	Groups(ctx context.Context, person string) ([]string, error)
}

// OwnProjects is the accounts of a user.
type OwnProjects struct {
	Accounts []string // by name; nil if the service restricts nothing
	Default  string   // of requests that name none
}

// restricts reports whether it matters who is in which project.
func (p *Projects) restricts() bool { return len(p.List)+len(p.From) > 0 }

// listed reports whether an account has members.
func (p *Projects) listed(account string) bool {
	return slices.ContainsFunc(p.List, func(one Project) bool { return one.Account == account })
}

// of returns the accounts of a user who acts for a person in some groups: their own before those of the person.
func (p *Projects) of(user, person string, groups []string) (own OwnProjects) {
	rank := 0
	for i := range p.List {
		one := &p.List[i]
		r := 0
		take := func(is bool, as int) {
			if is {
				r = max(r, as)
			}
		}
		member := slices.Contains(one.Users, user) || slices.Contains(one.Users, person) ||
			slices.ContainsFunc(one.Groups, func(g string) bool { return slices.Contains(groups, g) })
		take(member, 1)
		take(member && slices.Contains(one.DefaultFor, person), 2)
		take(slices.Contains(one.Users, user) && user != person, 3)
		take(member && slices.Contains(one.DefaultFor, user), 4)
		if !member {
			continue
		}
		if own.Accounts = append(own.Accounts, one.Account); r > rank {
			own.Default, rank = one.Account, r
		}
	}
	return own
}

// hasGroups reports whether groups are members of projects.
func (p *Projects) hasGroups() bool {
	return slices.ContainsFunc(p.List, func(one Project) bool { return len(one.Groups) > 0 })
}

// accounting remembers what accounting databases have said of users, for when they do not answer.
type accounting struct {
	mu   sync.Mutex
	said map[string]said // by site and user
}

// said is what an accounting database has said of a user.
type said struct {
	accounts []string // the default one first
	at       berth.Time
}

// saidStands is for how long what the accounting of a site has said counts while it does not answer: what it said of a user, and that it let
// a reservation of theirs be in an account. It is a long weekend with a maintenance, and less than it takes to forget who has left.
const saidStands berth.Duration = 7 * 86_400

// maxSaid bounds the memory.
const maxSaid = 10_000

// accountsAt returns the accounts of a user at a site, as it says or has said last. The error is of code Unavailable.
func (h *Host) accountsAt(ctx context.Context, name, user string) ([]string, error) {
	key := name + "\x00" + user
	k := h.sites[name]
	if k == nil {
		return nil, nil
	}
	of, knows := k.manager.Adapter.(site.Accountant)
	if !knows {
		return nil, nil
	}
	list, err := of.Accounts(ctx, user)
	h.accounting.mu.Lock()
	defer h.accounting.mu.Unlock()
	if err != nil {
		was, known := h.accounting.said[key]
		if !known || h.Now().Sub(was.at) > saidStands {
			h.log.Warn("a site does not tell the accounts of a user", "site", name, "user", user, "error", err)
			return nil, berth.Errorf(berth.Unavailable, "account", "the accounting of site %s does not answer, and so it is not known what %s may be charged for; ask again", name, user)
		}
		return was.accounts, nil
	}
	if h.accounting.said == nil || len(h.accounting.said) >= maxSaid {
		h.accounting.said = map[string]said{}
	}
	h.accounting.said[key] = said{slices.Clone(list), h.Now()}
	return list, nil
}

// OwnProjects returns the accounts of a user. The error is of code Unavailable if they cannot be known now. Cost: O(projects), and a command
// of each site whose accounting is asked.
func (h *Host) OwnProjects(ctx context.Context, user string) (own OwnProjects, err error) {
	p := &h.options.Projects
	if !p.restricts() {
		return own, nil
	}
	person, groups := user, []string(nil)
	if p.Directory != nil {
		person = p.Directory.Person(user)
		if p.hasGroups() {
			if groups, err = p.Directory.Groups(ctx, person); err != nil {
				return own, err
			}
		}
	}
	own = p.of(user, person, groups)
	for _, name := range p.From {
		list, err := h.accountsAt(ctx, name, person)
		if err != nil {
			return own, err
		}
		for _, account := range list {
			if !p.listed(account) && !slices.Contains(own.Accounts, account) { // a listed one has the members that are listed
				own.Default = cmp.Or(own.Default, account)
				own.Accounts = append(own.Accounts, account)
			}
		}
	}
	slices.Sort(own.Accounts)
	return own, nil
}

// inProject has what a user asks for name an account of theirs: their default one if it names none. The error is of code Denied if they
// may not name that, or of code Unavailable. A promise is asked about the account where its request is taken; that membership ends later
// does not end it, and what asks for more, or for something else, is asked again.
func (h *Host) inProject(ctx context.Context, user string, account *string) error {
	p := &h.options.Projects
	if !p.restricts() || user == "" {
		return nil
	}
	own, err := h.OwnProjects(ctx, user)
	switch {
	case err != nil:
		return err
	case *account == "":
		if *account = own.Default; *account == "" && !p.Open {
			return berth.Errorf(berth.Denied, "account", "none given, and %s is in no project; an operator adds them to one by the key projects of the service's configuration", user)
		}
		return nil
	case slices.Contains(own.Accounts, *account) || p.Open && !p.listed(*account):
		return nil
	case len(own.Accounts) == 0:
		return berth.Errorf(berth.Denied, "account", "%q; %s is in no project; an operator adds them to one by the key projects of the service's configuration", *account, user)
	}
	return berth.Errorf(berth.Denied, "account", "%q is no project of %s; name %s, or none for %s", *account, user, strings.Join(own.Accounts, " or "), own.Default)
}

// stillInProject returns why a user may not name an account any more in which something was promised or offered to them, as of reports in
// the loop with when it was asked for; no user is nothing to ask about. The error is that of inProject, but while the accounting does not
// answer, which may have been so since the service began, what it let in counts for as long as what it says.
func (h *Host) stillInProject(ctx context.Context, ask *Ask, of func() (user, account string, since berth.Time)) error {
	if !h.options.Projects.restricts() {
		return nil
	}
	var user, account string
	var since, now berth.Time
	_, err := call(ctx, h, ask.By.User, func(answer func(struct{}, error)) {
		user, account, since = of()
		now = h.clock()
		answer(struct{}{}, nil)
	})
	if err != nil || user == "" || !ask.By.Owns(user) {
		return err // which is told by what follows
	}
	named := account
	if err = h.inProject(ctx, user, &account); unanswered(err) && named != "" && now.Sub(since) <= saidStands {
		return nil
	}
	return err
}

// changedInProject is inProject for the changed request of a reservation: while the accounting does not answer, the account in which the
// reservation is counts for as long as what the accounting says.
func (h *Host) changedInProject(ctx context.Context, by, id string, r *berth.Request) error {
	named := r.Account
	err := h.inProject(ctx, r.User, &r.Account)
	if !unanswered(err) || named == "" {
		return err
	}
	letIn, asked := call(ctx, h, by, func(answer func(bool, error)) {
		k := h.core.card(id)
		answer(k != nil && k.request != nil && k.request.User == r.User && k.request.Account == named && h.clock().Sub(k.created) <= saidStands, nil)
	})
	if letIn {
		return nil
	}
	return cmp.Or(asked, err)
}

// unanswered reports whether an error of inProject says that an accounting does not answer.
func unanswered(err error) bool {
	coded, is := errors.AsType[*berth.Error](err)
	return is && coded.Code == berth.Unavailable && coded.Field == "account"
}

// denied reports whether an error says that something may not be.
func denied(err error) bool {
	coded, is := errors.AsType[*berth.Error](err)
	return is && coded.Code == berth.Denied
}

// shrinks has a change that is denied be tried all the same if it asks for no more than is promised: what one has can be given back in part, as
// it can be as a whole. It stays at its sites then. Else it returns why it is denied as err, and otherwise as ended.
func (h *Host) shrinks(ctx context.Context, by, id string, r *berth.Request, why error) (ended, err error) {
	return call(ctx, h, by, func(answer func(error, error)) {
		k := h.core.card(id)
		if k == nil || !k.shrinks(&h.core.config, r) {
			answer(nil, why)
			return
		}
		if r.Site == "" {
			r.Sites = nil
			for i := range k.promise.Allotments {
				if at := k.promise.Allotments[i].Resource.Site; !slices.Contains(r.Sites, at) {
					r.Sites = append(r.Sites, at)
				}
			}
		}
		answer(why, nil)
	})
}

// shrinks reports whether a changed request of a promise asks for no more than it has, and leaves in it the variants alone that do: those of no
// more PEs than the variant that is promised, and no longer than it lasts with its extensions. The window is within the former one, or within what it
// was extended to, and all else is as it was. Where it may be is not looked at.
func (k *card) shrinks(config *engine.Config, r *berth.Request) bool {
	if k.promise == nil || len(r.Parts) != len(k.request.Parts) || len(k.promise.Terms.Variants) != len(r.Parts) {
		return false
	}
	until := k.request.Deadline
	if k.promise.Terms.Extended > 0 {
		until = max(until, k.promise.End())
	}
	if r.Ready < k.request.Ready || r.Deadline > until {
		return false
	}
	same, was := *r, *k.request
	same.Parts, r.Parts = slices.Clone(r.Parts), slices.Clone(r.Parts)
	for i := range same.Parts {
		most, speed := k.promise.Terms.Variants[i], speedAt(config, k.promise.Allotments[i].Resource, &r.Requirements)
		lasts := speed.Scale(most.Duration) + k.promise.Terms.Extended
		r.Parts[i].Variants = slices.DeleteFunc(slices.Clone(r.Parts[i].Variants), func(v berth.Variant) bool {
			return v.NPE > most.NPE || v.Duration > most.Duration && speed.Scale(v.Duration) > lasts
		})
		if len(r.Parts[i].Variants) == 0 {
			return false
		}
		same.Parts[i].Variants = was.Parts[i].Variants
	}
	same.ID, same.User, same.Owner, same.Role = was.ID, was.User, was.Owner, was.Role
	same.Arrival, same.Ready, same.Deadline, same.Sites = was.Arrival, was.Ready, was.Deadline, was.Sites
	return reflect.DeepEqual(same, was)
}

// What a group of a project begins with if it is one of the machine alone, or of the OpenID provider alone.
const (
	MachineGroup  = "machine:"
	ProviderGroup = "oidc:"
)

// GroupsFrom returns groups of one directory as projects may name them: as they are, and behind what says where they are from. A group
// whose own name begins so counts only behind it, so that none passes for one of the other directory.
func GroupsFrom(from string, groups []string) []string {
	list := make([]string, 0, 2*len(groups))
	for _, g := range groups {
		if !strings.HasPrefix(g, MachineGroup) && !strings.HasPrefix(g, ProviderGroup) {
			list = append(list, g)
		}
		list = append(list, from+g)
	}
	return list
}

// GroupNames returns the groups at the OpenID provider that may make users members of projects, by name.
func (p *Projects) GroupNames() []string {
	names := map[string]bool{}
	for i := range p.List {
		for _, g := range p.List[i].Groups {
			if !strings.HasPrefix(g, MachineGroup) {
				names[strings.TrimPrefix(g, ProviderGroup)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
