package sites

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/policy"
)

// Projects says which accounts users may name in their requests. The zero value restricts nothing.
type Projects struct {
	Accounts []Project // in the order of the file
	From     []string  // sites whose accounting knows more of it, in the order of the file
	Open     bool      // accounts that are not listed may be named by everyone, and a user of no project names none
}

// Project is an account with its members. The first account of a user is that of requests that name none, unless
// another one is DefaultFor them.
type Project struct {
	Account       string
	Users, Groups []string
	DefaultFor    []string
}

// maxMembers bounds the users and the groups of a project.
const maxMembers = 100_000

// projects reads who may name which account.
func (r *reader) projects(v *value, path string) {
	p := &r.Projects
	others := ""
	r.group(v, path, "projects",
		key{"accounts", "", func(v *value, path string) { r.projectAccounts(v, path) }},
		key{"from", "", func(v *value, path string) { r.accountants(v, path) }},
		key{"others", "", scanned(r, &others, "refused or allowed", oneOf("refused", "allowed"))},
	)
	if p.Open = others == "allowed"; v.Kind == isMap && !has(v, "accounts") && !has(v, "from") {
		r.fail(v.Place, path, "without accounts; name some, or a site whose accounting knows them by from")
	}
}

func (r *reader) projectAccounts(v *value, path string) {
	names, defaults := make(unique), make(unique)
	r.list(v, path, "accounts", func(v *value, path string) {
		var p Project
		members := func(to *[]string, what string) func(v *value, path string) {
			return func(v *value, path string) {
				seen := make(unique)
				r.list(v, path, what+"s", func(v *value, path string) {
					var one string
					scanned(r, &one, "the name of a "+what, label)(v, path)
					if seen.add(r, v, path, what, one); len(*to) == maxMembers {
						r.wrong(v, path, "more than %d %ss of a project", maxMembers, what)
					}
					*to = append(*to, one)
				})
			}
		}
		r.group(v, path, "a project",
			key{"account", "a project needs its account", func(v *value, path string) {
				scanned(r, &p.Account, "the name of an account", label)(v, path)
				switch p.Account {
				case "":
				case policy.Every:
					r.wrong(v, path, "want the name of one account")
				default:
					names.add(r, v, path, "project", p.Account)
				}
			}},
			key{"users", "", members(&p.Users, "user")},
			key{"groups", "", members(&p.Groups, "group")},
			key{"default_for", "", members(&p.DefaultFor, "user")},
		)
		if v.Kind == isMap && !has(v, "users") && !has(v, "groups") {
			r.fail(v.Place, path, "for no one; name users or groups")
		}
		for i, user := range p.DefaultFor {
			at := r.places[path+".default_for"]
			if first, taken := defaults[user]; taken {
				r.fail(at, path+".default_for", "%q has a default account already, in line %d", user, first)
			} else if defaults[user] = at.Line; len(p.Groups) == 0 && !slices.Contains(p.Users, user) {
				r.fail(at, path+".default_for", "%q is not among the users of the project; add them", p.DefaultFor[i])
			}
		}
		r.Projects.Accounts = append(r.Projects.Accounts, p)
	})
}

// accountants reads names of sites of the file that may know of accounts.
func (r *reader) accountants(v *value, path string) {
	seen := make(unique)
	r.list(v, path, "sites", func(v *value, path string) {
		var name string
		scanned(r, &name, "a name", label)(v, path)
		switch {
		case name == "":
		case !slices.Contains(siteNames(r.Sites), name):
			r.wrong(v, path, "no site of this file; it has %s", strings.Join(siteNames(r.Sites), ", "))
		case r.Adapters[name].Kind != Slurm:
			r.wrong(v, path, "a site without accounting; want one with the adapter slurm")
		default:
			seen.add(r, v, path, "site", name)
			r.Projects.From = append(r.Projects.From, name)
		}
	})
}

// prices reads what budgets are charged for PE-hours.
func (r *reader) prices(v *value, path string) {
	lines := map[policy.Price]int{}
	r.list(v, path, "prices", func(v *value, path string) {
		var p policy.Price
		r.group(v, path, "a price",
			key{"site", "", func(v *value, path string) {
				if scanned(r, &p.Site, "a name", label)(v, path); p.Site != "" && !slices.Contains(siteNames(r.Sites), p.Site) {
					r.wrong(v, path, "no site of this file; it has %s", strings.Join(siteNames(r.Sites), ", "))
				}
			}},
			key{"partition", "", func(v *value, path string) {
				if r.limitedPartition(v, path, &p.Partition); p.Partition == policy.Every {
					r.wrong(v, path, "want the name of one partition; a price of all is that of the site")
				}
			}},
			key{"qos", "", func(v *value, path string) {
				if scanned(r, &p.QOS, "the name of a QOS", label)(v, path); p.QOS == policy.Every {
					r.wrong(v, path, "want the name of one QOS; a price of all is that of the site")
				}
			}},
			key{"factor", "a price needs its factor", decimal(r, &p.Factor, 0, policy.MaxFactor)},
		)
		switch {
		case v.Kind != isMap:
			return
		case !has(v, "site") && !has(v, "partition") && !has(v, "qos"):
			r.fail(v.Place, path, "of nothing; name a site, a partition or a QOS")
		case has(v, "qos") && (has(v, "site") || has(v, "partition")):
			r.fail(v.Place, path, "of a QOS and of a place; write a row for each, since both are multiplied")
		}
		of := p
		of.Factor = 0
		if first, twice := lines[of]; twice {
			r.fail(v.Place, path, "for the same as the row in line %d; want one factor", first)
		}
		lines[of] = v.Line
		r.Prices = append(r.Prices, p)
	})
}
