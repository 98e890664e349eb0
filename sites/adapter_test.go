package sites_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sites"
)

func TestEveryKeyOfAdaptersAndTheService(t *testing.T) {
	f, err := read(`
sites:
- name: a
  adapter: {kind: slurm, zone: Europe/Berlin, every: 7s, conf: /etc/a.conf, bin: /opt/slurm/bin, timeout: 20s, unit: core, margin: 3m, no_limit: 7d, give_up_after: 1h, run_as: owner}
- name: rest
  adapter: {kind: slurm, rest: "https://head:6820", jwt: /etc/berth/slurm.jwt, ca: /etc/berth/ca.pem}
- name: late
  adapter: {kind: slurm, binding: late, name_ahead: 2h}
- name: plain
  pes: 4
- name: b
  adapter: {kind: local, zone: UTC, every: 2s, node: desk, cores: 3, grace: 5s, users: {ann: ann, "bob@x": robert}}
  storage: 1TB
service:
  data: /var/lib/berth
  listen: 127.0.0.1:0
  public: https://hpc.example.org/berth/
  log: json
  metrics: token
  keep: 17
  keep_history: 90d
  socket: /run/berth/berth.sock
  munge: main
  slurm_jwt: /etc/slurm/jwt_hs256.key
  default_role: viewer
  roles:
  - {role: operator, users: [slurm, "ann@EXAMPLE.ORG"], groups: [hpc admins]}
  - {role: none, users: ['EXAMPLE\guest']}
  oidc:
    issuer: https://id.example.org/realms/hpc
    client: berth
    secret: /etc/berth/oidc.secret
    device_client: berth-cli
    name: Example ID
    audiences: [hpc-api]
    scopes: [openid, email]
    user: email
    groups: realm_access.roles
    default_role: viewer
    roles:
    - {role: user, groups: [hpc]}
    skew: 20s
    ca: /etc/berth/ca.pem
  notices_to: [10.0.0.0/8, "::1"]
  mail: {relay: "smtp.example.org:587", tls: offered, user: berth, password_file: /etc/berth/mail, from: berth@example.org, timeout: 20s, domains: [example.org, "*"], own_only: true}
`)
	if err != nil {
		t.Fatal(err)
	}
	adapters := map[string]sites.Adapter{
		"a": {
			Kind: sites.Slurm, Zone: "Europe/Berlin", Every: 7, Conf: "/etc/a.conf", Bin: "/opt/slurm/bin", Timeout: 20,
			Unit: "core", Margin: 180, NoLimit: 7 * 86400, GiveUpAfter: 3600, RunAs: sites.RunAsOwner,
		},
		"rest": {Kind: sites.Slurm, Rest: "https://head:6820", JWT: "/etc/berth/slurm.jwt", CA: "/etc/berth/ca.pem"},
		"late": {Kind: sites.Slurm, Binding: berth.Late, NameAhead: 7200},
		"b":    {Kind: sites.Local, Zone: "UTC", Every: 2, Node: "desk", Cores: 3, Grace: 5, Users: map[string]string{"ann": "ann", "bob@x": "robert"}},
	}
	if diff := cmp.Diff(adapters, f.Adapters); diff != "" {
		t.Error(diff)
	}
	service := sites.Service{
		Data: "/var/lib/berth", Listen: "127.0.0.1:0", Public: "https://hpc.example.org/berth/", Log: "json", Metrics: "token", Keep: 17, KeepHistory: 90 * 86_400,
		Socket: "/run/berth/berth.sock", Munge: "main", SlurmJWT: "/etc/slurm/jwt_hs256.key", DefaultRole: "viewer",
		Roles: []sites.Role{{Role: "operator", Users: []string{"slurm", "ann@EXAMPLE.ORG"}, Groups: []string{"hpc admins"}}, {Role: "none", Users: []string{`EXAMPLE\guest`}}},
		OIDC: &sites.OIDC{
			Issuer: "https://id.example.org/realms/hpc", Client: "berth", Secret: "/etc/berth/oidc.secret", DeviceClient: "berth-cli", Name: "Example ID",
			Audiences: []string{"hpc-api"}, Scopes: []string{"openid", "email"}, User: "email", Groups: "realm_access.roles", DefaultRole: "viewer",
			Roles: []sites.Role{{Role: "user", Groups: []string{"hpc"}}}, Skew: 20, CA: "/etc/berth/ca.pem",
		},
		NoticesTo: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		Mail: &sites.Mail{
			Relay: "smtp.example.org:587", TLS: "offered", User: "berth", PasswordFile: "/etc/berth/mail", From: "berth@example.org", Timeout: 20,
			Domains: []string{"example.org", "*"}, OwnOnly: true,
		},
	}
	if diff := cmp.Diff(service, f.Service, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	all := []berth.Site{
		{Name: "a", Managed: true},
		{Name: "rest", Managed: true},
		{Name: "late", Managed: true},
		{Name: "plain", Pools: []berth.Pool{{Name: "pool", PEs: 4, Binding: berth.Early}}},
		{Name: "b", Managed: true, StorageMB: 1_000_000},
	}
	if diff := cmp.Diff(all, f.Sites); diff != "" {
		t.Error(diff)
	}
}

func TestDescribedNamesTheSiteThatHasNoPEsHere(t *testing.T) {
	f, err := read("sites:\n- {name: plain, pes: 4}\n- {name: b, adapter: {kind: local}}\n")
	if err != nil {
		t.Fatal(err)
	}
	var mistake *berth.Error
	if !errors.As(f.Described(), &mistake) || mistake.Code != berth.Invalid || mistake.Field != "sites[1].adapter" || !strings.Contains(mistake.Msg, "s.yaml:3:13: site b ") {
		t.Errorf("%v", f.Described())
	}
	if f, err = read("sites: [{name: plain, pes: 4}]"); err != nil || f.Described() != nil {
		t.Errorf("%v %v", err, f.Described())
	}
}

func TestAddedSitesLeaveTheRestAsItIs(t *testing.T) {
	const entry = "name: b\nadapter:\n  kind: slurm\n"
	for name, c := range map[string]struct{ before, after string }{
		"last key": {
			"# ours\nsites:\n  - name: a # first\n    pes: 4\n",
			"# ours\nsites:\n  - name: a # first\n    pes: 4\n  - name: b\n    adapter:\n      kind: slurm\n",
		},
		"no newline at the end": {
			"sites:\n- name: a\n  pes: 4",
			"sites:\n- name: a\n  pes: 4\n- name: b\n  adapter:\n    kind: slurm\n",
		},
		"another key behind, with its comment": {
			"sites:\n- name: a\n  pes: 4\n  # of a\n\n# who asks\nusers: # two\n- {id: u, priority: 1}\n",
			"sites:\n- name: a\n  pes: 4\n  # of a\n- name: b\n  adapter:\n    kind: slurm\n\n# who asks\nusers: # two\n- {id: u, priority: 1}\n",
		},
		"empty":        {"", "sites:\n  - name: b\n    adapter:\n      kind: slurm\n"},
		"comment only": {"# ours\n", "# ours\nsites:\n  - name: b\n    adapter:\n      kind: slurm\n"},
		"line ends of another system": {
			"sites:\r\n- name: a\r\n  pes: 4\r\n",
			"sites:\r\n- name: a\r\n  pes: 4\r\n- name: b\n  adapter:\n    kind: slurm\n",
		},
	} {
		got, err := sites.Add([]byte(c.before), "s.yaml", entry)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.after, string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWhatCannotBeAddedIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"sites: [{name: a, pes: 4}]":         "in brackets",
		"sites:\n- {name: b, pes: 4}":        "a second site of this name",
		"sites:\n- {name: a, pes: 0}":        "want a whole number",
		"users: [{id: a, priority: 1}]":      "needs at least one site",
		"sites:\n- {name: a, pes: 4}\n...\n": "cannot be added",
	} {
		out, err := sites.Add([]byte(text), "s.yaml", "name: b\nadapter: {kind: slurm}\n")
		var mistake *berth.Error
		if !errors.As(err, &mistake) || mistake.Code != berth.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want %s", text, out, err, want)
		}
	}
}

func TestMistakesAboutAnOpenIDProvider(t *testing.T) {
	for text, want := range map[string]string{
		"{client: a, default_role: user}":                                                     "service.oidc.issuer: s.yaml:2:16: missing",
		"{issuer: \"https://id.example.org\", default_role: user}":                            "service.oidc.client: s.yaml:2:16: missing",
		"{issuer: \"http://id.example.org\", client: a, default_role: user}":                  "want https://",
		"{issuer: \"https://u:p@id.example.org\", client: a, default_role: user}":             "want an address such as",
		"{issuer: \"https://id.example.org?a=b\", client: a, default_role: user}":             "want an address such as",
		"{issuer: \"https://id.example.org\", client: a b, default_role: user}":               "without spaces",
		"{issuer: \"https://id.example.org\", client: a}":                                     "gives no one a role",
		"{issuer: \"https://id.example.org\", client: a, default_role: none}":                 "gives no one a role",
		"{issuer: \"https://id.example.org\", client: a, default_role: user, skew: 1h}":       "want 1s to 10m",
		"{issuer: \"https://id.example.org\", client: a, default_role: user, scopes: []}":     "an empty list",
		"{issuer: \"https://id.example.org\", client: a, default_role: user, scopes: [a, a]}": "a second scope of this name",
		"{issuer: \"https://id.example.org\", client: a, default_role: user, group: a}":       "unknown key (did you mean groups?)",
	} {
		_, err := read("service:\n  listen: x\n  oidc: " + text + "\nsites: [{name: a, pes: 1}]\n")
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "s.yaml:3:9", "s.yaml:2:16"), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}
