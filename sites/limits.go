package sites

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/bytesize"
	"github.com/berth-hpc/berth/policy"
)

// Access says which sites those of a scope may see and use.
type Access struct {
	policy.Scope
	Sites []string // by name, as in the file; at least one
}

// noLimit is how a file says that there is none.
const noLimit = "none"

// limits reads the table of limits: each row is for a role, or for a user, an account, a QOS or a
// partition, and these perhaps for one role that asks.
func (r *reader) limits(v *value, path string) {
	scopes := map[policy.Scope]int{}
	r.list(v, path, "limits", func(v *value, path string) {
		var scope policy.Scope
		access := Access{}
		values := make([]int64, len(policy.LimitKinds))
		given := make([]bool, len(policy.LimitKinds))
		keys := []key{
			{"role", "", scanned(r, &scope.Role, "viewer, user or operator", oneOf("viewer", "user", "operator"))},
			{"user", "", scanned(r, &scope.User, "a user's id", label)},
			{"account", "", scanned(r, &scope.Account, "the name of an account", label)},
			{"qos", "", scanned(r, &scope.QOS, "the name of a QOS", label)},
			{"partition", "", func(v *value, path string) { r.limitedPartition(v, path, &scope.Partition) }},
			{"sites", "", func(v *value, path string) { r.accessible(v, path, &access) }},
		}
		for i, kind := range policy.LimitKinds {
			keys = append(keys, key{string(kind.Name), "", r.limit(kind, &values[i], &given[i])})
		}
		r.group(v, path, "a limit", keys...)
		r.scoped(v, path, scope)
		if first, twice := scopes[scope]; twice {
			r.fail(v.Place, path, "for the same as the row in line %d; write both in one", first)
		}
		scopes[scope] = v.Line
		for i := range given {
			if given[i] {
				r.Limits = append(r.Limits, policy.Limit{Scope: scope, Name: policy.LimitKinds[i].Name, Value: values[i]})
			}
		}
		if access.Scope = scope; len(access.Sites) > 0 {
			r.Access = append(r.Access, access)
		}
	})
}

// scoped looks at whom a row is for, and whether it may have what it gives.
func (r *reader) scoped(v *value, path string, scope policy.Scope) {
	if v.Kind != isMap {
		return
	}
	var of []string
	for _, name := range []string{"user", "account", "qos", "partition"} {
		if has(v, name) {
			of = append(of, name)
		}
	}
	known := func(m member) bool {
		_, limit := policy.LimitNamed(policy.LimitName(m.Key))
		return limit || m.Key == "sites"
	}
	if len(of) == 0 && !has(v, "role") && !slices.ContainsFunc(v.Members, func(m member) bool { return !known(m) }) {
		r.fail(v.Place, path, "for no one; name a role, such as role: user, or a user, an account, a QOS or a partition")
	}
	if len(of) > 1 {
		r.fail(v.Place, path, "for %s at once; write a row for each, since a request keeps to all of them", strings.Join(of, " and "))
		return
	}
	for _, m := range v.Members {
		switch {
		case m.Key == "user" && scope.User == policy.Every:
			r.fail(m.Place, path+".user", "is %q; a row without a user is for each user by themselves, so leave it out, and name a role", policy.Every)
		case scope.Account == "" && scope.QOS == "" && scope.Partition == "":
		case m.Key == "sites":
			r.fail(m.Place, path+".sites", "of %s; sites are for a role or a user", of[0])
		case !scope.Takes(policy.LimitName(m.Key)) && policy.LimitName(m.Key) == policy.LimitNoShow:
			r.fail(m.Place, path+"."+m.Key, "of a partition; it is about who asks, so limit it for a role, a user, an account or a QOS")
		case !scope.Takes(policy.LimitName(m.Key)) && policy.LimitName(m.Key) == policy.LimitReservations:
			r.fail(m.Place, path+"."+m.Key, "of a partition, which what is pending does not have yet; limit active there, or reservations of a role, a user, an account or a QOS")
		case !scope.Takes(policy.LimitName(m.Key)):
			r.fail(m.Place, path+"."+m.Key, "of %s; it is about how the service is asked, so limit it for a role or a user", of[0])
		}
	}
}

// limitedPartition reads the name of a partition, which a site of the file has unless sites
// describe themselves.
func (r *reader) limitedPartition(v *value, path string, to *string) {
	scanned(r, to, "the name of a partition", label)(v, path)
	var names []string
	for i := range r.Sites {
		site := &r.Sites[i]
		if r.Adapters[site.Name].Kind != "" {
			return
		}
		for k := range site.Partitions {
			if name := site.Partitions[k].Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	switch {
	case *to == "" || slices.Contains(names, *to) || *to == policy.Every && len(names) > 0:
	case len(names) == 0:
		r.wrong(v, path, "no site of this file has partitions; give one partitions, or limit a role, a user, an account or a QOS")
	default:
		r.wrong(v, path, "no site of this file has this partition; they have %s", strings.Join(names, ", "))
	}
}

// limit reads the value of a limit, or that there is none.
func (r *reader) limit(kind policy.LimitKind, to *int64, given *bool) func(v *value, path string) {
	return func(v *value, path string) {
		*given = true
		if v.Kind == isText && v.Text == noLimit {
			*to = policy.NoLimit
			return
		}
		switch kind.Unit {
		case policy.InSeconds:
			measured(r, to, durationExample, func(text string) (int64, error) {
				d, err := duration(text)
				return int64(d), err
			})(v, path)
		case policy.InCount:
			whole(r, to, 0, 1<<31-1)(v, path)
		case policy.InPermille:
			decimal(r, to, 1, 1000)(v, path)
		case policy.InPESeconds:
			least := int64(1)
			if kind.Name == policy.LimitIdle {
				least = 0
			}
			if whole(r, to, least, 1<<30)(v, path); *to > 0 {
				*to *= 3600
			}
		case policy.InRate:
			decimal(r, to, 1, maxRate*1000)(v, path)
		case policy.InBytes:
			measured(r, to, sizeExample, bytesize.Bytes)(v, path)
		default:
			panic("sites: a limit of unknown unit " + string(kind.Unit))
		}
	}
}

// accessible reads names of sites of the file, which come before.
func (r *reader) accessible(v *value, path string, access *Access) {
	r.list(v, path, "sites", func(v *value, path string) {
		var name string
		if scanned(r, &name, "a name", label)(v, path); name == "" {
			return
		}
		for i := range r.Sites {
			if r.Sites[i].Name == name {
				access.Sites = append(access.Sites, name)
				return
			}
		}
		r.wrong(v, path, "no site of this file; it has %s", strings.Join(siteNames(r.Sites), ", "))
	})
}

func siteNames(list []berth.Site) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return names
}

// moved tells where the limits of a key are written now, and returns the group without
// that key.
func (r *reader) moved(v *value, path, name, example string) *value {
	rest := *v
	rest.Members = slices.DeleteFunc(slices.Clone(v.Members), func(m member) bool {
		if m.Key != name {
			return false
		}
		r.fail(m.Place, path+"."+name, "limits have a table of their own; write it there, such as limits: [%s]", example)
		return true
	})
	return &rest
}
