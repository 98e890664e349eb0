package service

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// SiteSet is some sites by name, of those that a principal may see and use. The zero
// value is all sites. It can be compared.
type SiteSet string

// noSites is the set without any site: a comma is in no name.
const noSites SiteSet = ","

// NewSiteSet returns the set of some sites; no names are all sites.
func NewSiteSet(names []string) SiteSet {
	if len(names) == 0 {
		return ""
	}
	return setOf(slices.Clone(names))
}

func setOf(names []string) SiteSet {
	if len(names) == 0 {
		return noSites
	}
	slices.Sort(names)
	return SiteSet(strings.Join(slices.Compact(names), ","))
}

// All reports whether it is all sites.
func (s SiteSet) All() bool { return s == "" }

// Names returns the sites in order, nil if it is all of them.
func (s SiteSet) Names() []string {
	if s == "" || s == noSites {
		return nil
	}
	return strings.Split(string(s), ",")
}

// Has reports whether a site is in the set.
func (s SiteSet) Has(site string) bool {
	return s == "" || s != noSites && slices.Contains(s.Names(), site)
}

// And returns the sites that are in both sets.
func (s SiteSet) And(o SiteSet) SiteSet {
	switch {
	case s.All():
		return o
	case o.All():
		return s
	}
	return setOf(slices.DeleteFunc(s.Names(), func(name string) bool { return !o.Has(name) }))
}

// Or returns the sites that are in one of the sets.
func (s SiteSet) Or(o SiteSet) SiteSet {
	if s.All() || o.All() {
		return ""
	}
	return setOf(append(s.Names(), o.Names()...))
}

// None reports whether there is no site in it.
func (s SiteSet) None() bool { return s == noSites }

// MarshalJSON writes the names, null for all sites.
func (s SiteSet) MarshalJSON() ([]byte, error) {
	if s == noSites {
		return []byte("[]"), nil
	}
	return json.Marshal(s.Names())
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *SiteSet) UnmarshalJSON(text []byte) error {
	var names []string
	if err := json.Unmarshal(text, &names); err != nil {
		return err
	}
	if *s = ""; names != nil {
		*s = setOf(names)
	}
	return nil
}

// sees reports whether a principal may see what became of a request: it is their own, or
// they are an operator, and no site that they may not see has to do with it.
func (p Principal) sees(r *berth.Request, allotments []berth.Allotment, refusal *berth.Refusal) bool {
	if !p.Owns(r.User) {
		return false
	}
	if p.Sites.All() {
		return true
	}
	if r.Site != "" && !p.Sites.Has(r.Site) || refusal != nil && refusal.Resource.Site != "" && !p.Sites.Has(refusal.Resource.Site) {
		return false
	}
	return !slices.ContainsFunc(allotments, func(a berth.Allotment) bool { return !p.Sites.Has(a.Resource.Site) })
}

// visible passes an answer on that was given, or asked for, under a key: of what the
// principal may not see by now, because their role or its sites have changed since, it
// says that there is none, and leaves offers out.
func (p Principal) visible(answer answering) answering {
	return func(a *Answer, err error) {
		if err == nil && p.User != "" {
			r := &a.Reservation
			if !p.sees(&r.Request, r.Allotments, r.Refusal) {
				answer(nil, noReservation(r.ID))
				return
			}
			own := *a
			own.Offers = slices.DeleteFunc(slices.Clone(a.Offers), func(o Offer) bool { return !p.sees(&o.Request, o.Allotments, nil) })
			a = &own
		}
		answer(a, err)
	}
}

// seenBy is Principal.sees of a card.
func (k *card) seenBy(p Principal) bool {
	var allotments []berth.Allotment
	if k.promise != nil {
		allotments = k.promise.Allotments
	}
	return p.sees(k.request, allotments, k.refusal)
}

// sitesFor returns the sites that a principal may use for a user: no others than that user may.
func (h *Host) sitesFor(by Principal, user string) SiteSet {
	if user == "" || user == by.User {
		return by.Sites
	}
	return by.Sites.And(SitesOf(h.options.Access, Principal{User: user}))
}

// within makes a request ask for no site but those that a principal may use for its user. The error is of code
// Denied if there are none.
func (h *Host) within(by Principal, r *berth.Request) error {
	may := h.sitesFor(by, r.User)
	if may == noSites {
		return noneOpen()
	}
	r.Role, r.Sites = string(by.Role), may.Names()
	return nil
}

// Access says which sites those of a scope see and use.
type Access struct {
	policy.Scope
	Sites SiteSet
}

// SitesOf returns the sites that a principal sees and uses by a list: those of the narrowest
// scope, of equals the last; all if no row is about them.
func SitesOf(list []Access, p Principal) SiteSet {
	var sites SiteSet
	narrowest := 0
	for i := range list {
		if rank := list[i].Covers(policy.Scope{Role: string(p.Role), User: p.User}); rank > 0 && rank >= narrowest {
			narrowest, sites = rank, list[i].Sites
		}
	}
	return sites
}

// noneOpen is the error for a principal who may use no site.
func noneOpen() error {
	return berth.Errorf(berth.Denied, "sites", "no site is open to this token and role; an operator can open some")
}

// noSite is the error for a site that does not exist or that the user may not see.
func noSite(name string) error { return berth.Errorf(berth.NotFound, "site", "no site %q", name) }
