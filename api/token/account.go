package token

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// AccountFile has the service accounts of a data folder.
const AccountFile = "accounts.json"

const (
	// AccountPrefix is what the name of a service account begins with, so that it is not taken for that of a person.
	AccountPrefix = "svc-"
	// accountTokenLasts is for how long a token of a service account is good if nothing is said.
	accountTokenLasts berth.Duration = 90 * 86_400
	// maxAccounts is how many service accounts a user has at most.
	maxAccounts = 32
	// maxAccountNames is how many names of service accounts a user has at most, those of removed ones too.
	maxAccountNames = 256
	// Overlap is for how long a token of a service account is good beside the one that renews it, if nothing is said: the programs that show it have a day to change over.
	Overlap berth.Duration = 86_400
	// maxAccountTokens is how many tokens a service account has at most: some for each of some programs.
	maxAccountTokens = 32
)

// AccountScopes are what a token of a service account is good for at most: it makes no tokens.
const AccountScopes = ScopeRead | ScopeReserve | ScopeCancel | ScopeRun | ScopeFeeds | ScopeOperate

// Account is a service account: a principal for programs, as which no person logs in. It may do no more than its role, its sites, and what
// its owner may do at the time.
type Account struct {
	Name    string          `json:"name"`
	Owner   string          `json:"owner"`
	Role    service.Role    `json:"role"`
	Sites   service.SiteSet `json:"sites,omitempty"`
	Note    string          `json:"note,omitempty"`
	Created berth.Time      `json:"created"`
	// Removed is when it was removed, 0 if it was not. Its name stays its owner's, since there may be reservations of that name.
	Removed berth.Time `json:"removed,omitempty"`
}

// readAccounts reads the service accounts; no file is none.
func (s *Store) readAccounts() error {
	known := map[string]Account{}
	var list []Account
	if err := s.readFile(AccountFile, "accounts", &list); err != nil {
		return err
	}
	for _, a := range list {
		if err := checkAccount(&a); err != nil {
			return fmt.Errorf("%s, account %q: %w", s.path(AccountFile), a.Name, err)
		}
		known[a.Name] = a
	}
	s.accounts.Store(&known)
	return nil
}

func checkAccount(a *Account) error {
	if !strings.HasPrefix(a.Name, AccountPrefix) {
		return berth.Errorf(berth.Invalid, "name", "%.70q; want a name that begins with %s, such as %sci", a.Name, AccountPrefix, AccountPrefix)
	}
	if err := check(a.Owner, a.Role, a.Note); err != nil {
		return err
	}
	return check(a.Name, a.Role, a.Note)
}

// AddAccount makes a service account. Errors: Invalid if there cannot be such a one, Conflict if there is one of that name, if tokens
// of a user of that name are there, if one of another owner had the name and no operator makes it, or if the owner has as many as there can be.
func (s *Store) AddAccount(a Account, by service.Principal, now berth.Time) (Account, error) {
	if err := checkAccount(&a); err != nil {
		return a, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := maps.Clone(*s.accounts.Load())
	has, names := 0, 0
	for _, other := range known {
		if other.Owner != a.Owner || other.Name == a.Name {
			continue
		}
		if names++; other.Removed == 0 {
			has++
		}
	}
	was, is := known[a.Name]
	_, ofProvider := (*s.members.known.Load())[a.Name]
	_, owned := known[a.Owner]
	switch {
	case is && was.Removed == 0:
		return a, berth.Errorf(berth.Conflict, "name", "there is a service account %s already", a.Name)
	case is && was.Owner != a.Owner && !by.Can(service.Operator):
		return a, berth.Errorf(berth.Conflict, "name", "%s was a service account of another user, whose reservations may be there; take another name", a.Name)
	case owned:
		return a, berth.Errorf(berth.Invalid, "owner", "%s is a service account, which owns none; want a person", a.Owner)
	case ofProvider || slices.ContainsFunc(s.List(), func(e Entry) bool { return e.User == a.Name }):
		return a, berth.Errorf(berth.Conflict, "name", "there is a user %s already; take another name", a.Name)
	case has >= maxAccounts:
		return a, berth.Errorf(berth.Conflict, "owner", "%s has %d service accounts, which is the most there can be; berth service-account remove ends one", a.Owner, has)
	case names >= maxAccountNames:
		return a, berth.Errorf(berth.Conflict, "owner", "%s has used %d names, which is the most there can be; take one of a removed service account again", a.Owner, names)
	}
	a.Created, a.Removed = now, 0
	known[a.Name] = a
	return a, s.saveAccounts(known)
}

// Account returns the service account of a name, and false if there is none.
func (s *Store) Account(name string) (Account, bool) {
	a, known := (*s.accounts.Load())[name]
	if !known || a.Removed != 0 {
		return Account{}, false
	}
	return a, true
}

// OwnerOf returns the owner of the service account of a name, of a removed one too, since its reservations may be there; "" if there
// was none.
func (s *Store) OwnerOf(name string) string { return (*s.accounts.Load())[name].Owner }

// WasAccount reports whether a service account of a name was removed.
func (s *Store) WasAccount(name string) bool { return (*s.accounts.Load())[name].Removed != 0 }

// Accounts returns all service accounts by name.
func (s *Store) Accounts() []Account {
	all := slices.SortedFunc(maps.Values(*s.accounts.Load()), func(a, b Account) int { return strings.Compare(a.Name, b.Name) })
	return slices.DeleteFunc(all, func(a Account) bool { return a.Removed != 0 })
}

// AddAccountToken makes a token of a service account, with the account's role or the wanted one, whichever may do less, and returns it; it cannot be had again. Without a time
// at which it expires it is good for 90 days, and without scopes for AccountScopes. Errors: NotFound, Invalid if there cannot be such a
// one, Conflict if the account has as many as there can be.
func (s *Store) AddAccountToken(name string, w Wanted, now berth.Time) (secret string, e Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	account, known := s.Account(name)
	if !known {
		return "", e, NoAccount(name)
	}
	has := len(s.Of(name, now))
	if w.Renews != "" {
		was, err := s.AccountToken(name, w.Renews)
		if err != nil {
			return "", e, err
		}
		if w.Overlap == 0 && !was.ExpiredAt(now) {
			has-- // it makes room
		}
	}
	switch {
	case w.Scopes.All():
		w.Scopes = AccountScopes
	case !AccountScopes.Has(w.Scopes):
		return "", e, beyondAccount(w.Scopes)
	}
	if w.Expires == 0 {
		w.Expires = now.Add(accountTokenLasts)
	}
	if has >= maxAccountTokens {
		return "", e, berth.Errorf(berth.Conflict, "tokens", "%s has %d, which is the most there can be; revoke some", name, maxAccountTokens)
	}
	if w.Role == "" || (service.Principal{Role: w.Role}).Can(account.Role) {
		w.Role = account.Role
	}
	w.User, w.Sites, w.account = account.Name, w.Sites.And(account.Sites), true
	return s.add(&w, now)
}

// AccountToken returns a token of a service account. The error is NotFound.
func (s *Store) AccountToken(name, id string) (Entry, error) {
	for _, e := range s.known.Load().of {
		if e.ID == id && e.User == name && !e.IsSession() {
			return e, nil
		}
	}
	return Entry{}, berth.Errorf(berth.NotFound, "id", "no token %.70q of %s", id, name)
}

// renewed returns entries as they are once a token renews one of them, which expires then, with the feeds that were made with it.
func (s *Store) renewed(entries []Entry, w *Wanted, now berth.Time) ([]Entry, error) {
	at := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == w.Renews })
	if w.Overlap == 0 {
		_, err := s.endFeeds(func(f *Feed) bool { return f.Parent == w.Renews }, berth.Time(s.feeds.kept.Load()))
		return slices.Delete(entries, at, at+1), err
	}
	if end := now.Add(w.Overlap); entries[at].Expires == 0 || end < entries[at].Expires {
		entries[at].Expires = end
	}
	return entries, nil
}

// beyondAccount is the error about scopes for which a token of a service account is not good.
func beyondAccount(s Scopes) error {
	return berth.Errorf(berth.Invalid, "scopes", "%s; a token of a service account is for some of %s", s, AccountScopes)
}

// NoAccount is the error about a service account that is not there.
func NoAccount(name string) error {
	return berth.Errorf(berth.NotFound, "name", "no service account %.70q", name)
}

// RemoveAccount ends a service account with its tokens and feeds. Its name stays its owner's. The error is NotFound if there is none.
func (s *Store) RemoveAccount(name string, now berth.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := maps.Clone(*s.accounts.Load())
	a, is := known[name]
	if !is || a.Removed != 0 {
		return NoAccount(name)
	}
	// Its tokens first: without them it is worthless, whatever is interrupted.
	if err := s.save(slices.DeleteFunc(s.List(), func(e Entry) bool { return e.User == name })); err != nil {
		return err
	}
	if _, err := s.endFeeds(func(f *Feed) bool { return f.User == name }, berth.Time(s.feeds.kept.Load())); err != nil {
		return err
	}
	known[name] = Account{Name: name, Owner: a.Owner, Role: a.Role, Created: a.Created, Removed: max(now, 1)}
	return s.saveAccounts(known)
}

// saveAccounts writes the file, and then has the accounts count.
func (s *Store) saveAccounts(known map[string]Account) error {
	list := slices.SortedFunc(maps.Values(known), func(a, b Account) int { return strings.Compare(a.Name, b.Name) })
	if err := s.writeFile(AccountFile, "accounts", list); err != nil {
		return err
	}
	s.accounts.Store(&known)
	return nil
}
