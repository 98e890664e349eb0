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

// limits reads the table of limits: each row is for a role, for a user, or for a user
// who is asked for by a role.
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
			{"sites", "", func(v *value, path string) { r.accessible(v, path, &access) }},
		}
		for i, kind := range policy.LimitKinds {
			keys = append(keys, key{string(kind.Name), "", r.limit(kind.Unit, &values[i], &given[i])})
		}
		r.group(v, path, "a limit", keys...)
		if v.Kind == isMap && !has(v, "role") && !has(v, "user") {
			r.fail(v.Place, path, "for no one; name a role, such as role: user, or a user")
		}
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

// limit reads the value of a limit, or that there is none.
func (r *reader) limit(unit policy.Unit, to *int64, given *bool) func(v *value, path string) {
	return func(v *value, path string) {
		*given = true
		if v.Kind == isText && v.Text == noLimit {
			*to = policy.NoLimit
			return
		}
		switch unit {
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
			if whole(r, to, 1, 1<<30)(v, path); *to > 0 {
				*to *= 3600
			}
		case policy.InRate:
			decimal(r, to, 1, maxRate*1000)(v, path)
		case policy.InBytes:
			measured(r, to, sizeExample, bytesize.Bytes)(v, path)
		default:
			panic("sites: a limit of unknown unit " + string(unit))
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
