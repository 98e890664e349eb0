package sites

import (
	"net/url"
	"strings"

	"github.com/berth-hpc/berth"
)

// OIDC is an OpenID provider by which users are known. A field that may be left out is empty, or 0.
type OIDC struct {
	Issuer string // its address, as its tokens have it
	Name   string // for people; empty for the host of Issuer
	Client string // the id of the service there
	// Secret is the path of the file with the secret of Client; empty for a public client.
	Secret string
	// DeviceClient is the id with which berth login asks for a code; empty for Client.
	DeviceClient string
	// Audiences are those of tokens that are taken, beside the clients.
	Audiences []string
	Scopes    []string // that are asked for; empty for openid and profile
	User      string   // the claim with the user's name; empty for preferred_username
	Groups    string   // the claim with the groups; empty for groups
	// DefaultRole is that of users that Roles does not name: viewer, user, operator or NoRole; empty for NoRole.
	DefaultRole string
	Roles       []Role
	Skew        berth.Duration // by how much clocks may differ; 0 for the default
	CA          string         // the path of the file with the authorities of the provider; empty for those of the machine
}

// maxSkew is by how much the clocks of a provider and of the service may differ at most.
const maxSkew berth.Duration = 600

// oidc reads an OpenID provider.
func (r *reader) oidc(v *value, path string, to **OIDC) {
	o := &OIDC{}
	words := func(to *[]string, what string) func(v *value, path string) {
		return func(v *value, path string) {
			seen := make(unique)
			r.list(v, path, what+"s", func(v *value, path string) {
				var one string
				scanned(r, &one, "the name of a "+what, oidcWord)(v, path)
				seen.add(r, v, path, what, one)
				*to = append(*to, one)
			})
		}
	}
	r.group(
		v, path, "an OpenID provider",
		key{"issuer", "name the address of the provider, such as https://id.example.org/realms/hpc", scanned(r, &o.Issuer, "an address such as https://id.example.org/realms/hpc", issuer)},
		key{"client", "name the id of the service at the provider", scanned(r, &o.Client, "the id of the service at the provider", oidcWord)},
		key{"secret", "", scanned(r, &o.Secret, "the file with the client's secret", filePath)},
		key{"device_client", "", scanned(r, &o.DeviceClient, "the id of berth login at the provider", oidcWord)},
		key{"name", "", scanned(r, &o.Name, "a name for people", label)},
		key{"audiences", "", words(&o.Audiences, "audience")},
		key{"scopes", "", words(&o.Scopes, "scope")},
		key{"user", "", scanned(r, &o.User, "the claim with the user's name", oidcWord)},
		key{"groups", "", scanned(r, &o.Groups, "the claim with the user's groups", oidcWord)},
		key{"default_role", "", scanned(r, &o.DefaultRole, roleWords, oneOf(accountRoles...))},
		key{"roles", "", func(v *value, path string) { r.roles(v, path, &o.Roles) }},
		key{"skew", "", measured(r, &o.Skew, "a duration such as 30s", skew)},
		key{"ca", "", scanned(r, &o.CA, "the file of the provider's authorities", filePath)},
	)
	if v.Kind == isMap && len(o.Roles) == 0 && (o.DefaultRole == "" || o.DefaultRole == NoRole) {
		r.fail(v.Place, path, "gives no one a role; add roles, or default_role: user")
	}
	*to = o
}

// oidcWord reads an id, a scope or a claim: printable ASCII without spaces.
func oidcWord(text string) (string, error) {
	if text == "" || len(text) > maxOIDCWord || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", berth.Errorf(berth.Invalid, "", "want 1 to %d printable ASCII characters without spaces", maxOIDCWord)
	}
	return text, nil
}

const maxOIDCWord = 256

// issuer reads the address of a provider. Without TLS it has to be on this machine: what it says is who users are.
func issuer(text string) (string, error) {
	u, err := url.Parse(text)
	const want = "want an address such as https://id.example.org/realms/hpc"
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return "", berth.Errorf(berth.Invalid, "", want)
	case u.Scheme == "http" && u.Hostname() != "127.0.0.1" && u.Hostname() != "::1" && u.Hostname() != "localhost":
		return "", berth.Errorf(berth.Invalid, "", "http:// can be changed on the way; want https://")
	}
	return text, nil
}

// skew reads by how much clocks may differ.
func skew(text string) (berth.Duration, error) {
	d, err := duration(text)
	if err == nil && (d < 1 || d > maxSkew) {
		return 0, berth.Errorf(berth.Invalid, "", "want 1s to 10m")
	}
	return d, err
}
