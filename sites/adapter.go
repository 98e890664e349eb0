package sites

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
)

// The kinds of adapter.
const (
	Local = "local" // this machine
	Slurm = "slurm" // a cluster under Slurm
)

// RunAsOwner has a service that is root's hand in the tasks of workflows as their owners.
const RunAsOwner = "owner"

// Adapter says how a site is reached that describes itself, and how it is taken
// in. A zero field leaves the choice to its opener.
type Adapter struct {
	Kind  string
	Zone  string         // of the site's people, as in the tz database
	Every berth.Duration // how often it is looked at
	Watch bool           // nothing is promised or changed there: shadow mode

	// Of a cluster under Slurm.
	Conf    string         // path of slurm.conf
	Bin     string         // folder of the commands
	Rest    string         // address of slurmrestd, which is asked instead of the commands
	JWT     string         // path of a file with a JSON web token for it
	CA      string         // path of a file with the authority of its certificate
	Timeout berth.Duration // of one command
	Unit    string         // what a PE is: "node" or "core"
	Margin  berth.Duration // how much earlier than needed a promise is made real
	// Binding is when a promise gets its nodes: when it is made (early) or before its start
	// (late), then NameAhead before that.
	Binding   berth.Binding
	NameAhead berth.Duration
	NoLimit   berth.Duration // how long jobs are taken to last in partitions without a limit
	RunAs     string         // as whom tasks of workflows are handed in: RunAsOwner; empty is that they are not
	// GiveUpAfter is how long it may refuse a promise for good before that fails.
	GiveUpAfter berth.Duration

	// Of this machine.
	Node  string            // what it is called
	Cores berth.Count       // how many are handed out
	Users map[string]string // accounts of this machine by users of Berth
	Grace berth.Duration    // from the signal that asks a task to end to the one that ends it
}

// Service says how the service runs. A zero field leaves the choice to it.
type Service struct {
	Data string // its directory
	// Journal is the URL of the database that keeps its journal; empty for its directory.
	Journal string
	Listen  string // the address
	// The files of a service that speaks TLS, in PEM; empty for plain HTTP.
	TLSCert     string
	TLSKey      string
	TLSClientCA string
	PlainHTTP   bool   // also beyond loopback
	Public      string // where browsers reach it through a proxy
	Log         string // form of the log: "text" or "json"
	// Metrics says who may read /metrics: "open" is everybody, "token" who has one.
	Metrics string
	Keep    int // how many requests that are over are remembered
	// KeepHistory is how long records are kept; 0 is for ever.
	KeepHistory berth.Duration

	// Socket is the path of the Unix socket; NoSocket is none.
	Socket string
	// Munge is the realm for which credentials of munge are taken; none are if it is empty.
	Munge string
	// SlurmJWT is the path of the key of Slurm's JSON web tokens; none are taken if it is empty.
	SlurmJWT string
	// DefaultRole is that of accounts that Roles does not name: viewer, user, operator or NoRole.
	DefaultRole string
	Roles       []Role
	// OIDC is the OpenID provider by which users are known; nil is none.
	OIDC *OIDC

	// NoticesTo are ranges of addresses inside the network that notices may be sent to, also without TLS.
	NoticesTo []netip.Prefix
	// Mail is how notices get to addresses of e-mail; nil is not at all.
	Mail *Mail
}

// Mail says how notices get to addresses of e-mail. Empty fields are as the service has them by default.
type Mail struct {
	Relay              string // host and port of the SMTP relay
	TLS                string // required, offered or none
	User, PasswordFile string
	From               string // address
	Timeout            berth.Duration
	Domains            []string // of addresses that may be sent to
	OwnOnly            bool     // only to the address that has the user's name before the @
}

// Words of a service's configuration for what there is not.
const (
	NoSocket = "none"
	NoRole   = "none"
)

// Role gives accounts of the machine, or users of a provider, a role.
type Role struct {
	Role          string // as DefaultRole
	Users, Groups []string
}

// MinHistory is how long records are kept at least.
const MinHistory berth.Duration = 3600

// Bounds of a service's settings.
const (
	maxKeep  = 100_000_000
	maxRate  = 1_000_000
	maxPath  = 4096
	maxUsers = 100_000
	// maxMailLength is the longest time for a message by e-mail: what RFC 5321 has for one command.
	maxMailLength berth.Duration = 300
)

const secondsExample = "a duration such as 5s"

// describedSite reads a site that its adapter describes.
func (r *reader) describedSite(v *value, path string, site *berth.Site, names unique) {
	site.Managed = true
	var a Adapter
	keys := []key{
		{"name", "a site needs a name", r.named(&site.Name, "site", names)},
		{"adapter", "", func(v *value, path string) { r.adapter(v, path, &a) }},
	}
	for _, name := range slices.Concat(poolKeys, []string{"pools", "partitions", "managed"}) {
		keys = append(keys, key{name, "", func(v *value, path string) {
			r.fail(v.Place, path, "the site's adapter tells it; leave out this key, or the adapter")
		}})
	}
	r.group(v, path, "a site", append(keys, r.offered(site)...)...)
	if site.Name != "" {
		r.Adapters[site.Name] = a
	}
}

func (r *reader) adapter(v *value, path string, a *Adapter) {
	own := map[string][]key{
		Slurm: {
			{"conf", "", scanned(r, &a.Conf, "the path of slurm.conf", filePath)},
			{"bin", "", scanned(r, &a.Bin, "the folder of Slurm's commands", filePath)},
			{"rest", "", scanned(r, &a.Rest, "the address of slurmrestd, such as unix:///run/slurmrestd.socket", label)},
			{"jwt", "", scanned(r, &a.JWT, "the path of a file with a JSON web token for slurmrestd", filePath)},
			{"ca", "", scanned(r, &a.CA, "the path of a file with the certificate authority of slurmrestd", filePath)},
			{"timeout", "", measured(r, &a.Timeout, secondsExample, duration)},
			{"unit", "", scanned(r, &a.Unit, "node or core", oneOf("node", "core"))},
			{"margin", "", measured(r, &a.Margin, durationExample, duration)},
			{"binding", "", r.binding(&a.Binding)},
			{"name_ahead", "", measured(r, &a.NameAhead, durationExample, duration)},
			{"no_limit", "", measured(r, &a.NoLimit, durationExample, duration)},
			{"give_up_after", "", measured(r, &a.GiveUpAfter, durationExample, duration)},
			{"watch", "", r.switched(&a.Watch)},
			{"run_as", "", scanned(r, &a.RunAs, "owner", oneOf(RunAsOwner))},
		},
		Local: {
			{"node", "", scanned(r, &a.Node, "a name", name)},
			{"cores", "", whole(r, &a.Cores, 1, berth.MaxPEs)},
			{"grace", "", measured(r, &a.Grace, secondsExample, duration)},
			{"users", "", func(v *value, path string) { r.accounts(v, path, a) }},
		},
	}
	keys := []key{
		{"kind", "an adapter needs its kind, local or slurm", scanned(r, &a.Kind, "local or slurm", oneOf(Local, Slurm))},
		{"zone", "", scanned(r, &a.Zone, "a time zone such as Europe/Berlin", label)},
		{"every", "", measured(r, &a.Every, secondsExample, duration)},
	}
	kind := word(v, "kind")
	if _, known := own[kind]; !known { // whatever it says then may belong to either
		kind = ""
	}
	for _, k := range []string{Slurm, Local} {
		for _, one := range own[k] {
			if kind != "" && k != kind {
				one.read = func(v *value, path string) { r.fail(v.Place, path, "for adapters of kind %s; this one is %s", k, kind) }
			}
			keys = append(keys, one)
		}
	}
	r.group(v, path, "an adapter", keys...)
	switch late := a.Binding == berth.Late; {
	case a.NameAhead > 0 && !late:
		r.fail(r.places[path+".name_ahead"], path+".name_ahead", "PEs are named ahead where they are bound late; add binding: late, or leave out name_ahead")
	case late && a.Unit == "core":
		r.fail(r.places[path+".binding"], path+".binding", "late binding names whole nodes; leave out unit: core, or bind early")
	case late && a.Watch:
		r.fail(r.places[path+".binding"], path+".binding", "a site that is only watched gets no reservations; leave out binding beside watch")
	}
}

// word returns the text of a key, or "".
func word(v *value, name string) string {
	for _, m := range v.Members {
		if m.Key == name {
			return m.Value.Text
		}
	}
	return ""
}

// accounts reads which account of the machine is whose.
func (r *reader) accounts(v *value, path string, a *Adapter) {
	const example = "accounts by user, such as {alice: alice}"
	if !r.is(v, path, isMap, example) {
		return
	}
	if len(v.Members) == 0 || len(v.Members) > maxUsers {
		r.fail(v.Place, path, "%d users; want 1 to %d, or leave the key out", len(v.Members), maxUsers)
	}
	a.Users = map[string]string{}
	for _, m := range v.Members {
		if _, twice := a.Users[m.Key]; twice {
			r.fail(m.Place, path+"."+m.Key, "the key is given twice")
			continue
		}
		account := ""
		scanned(r, &account, "the name of an account", name)(m.Value, path+"."+m.Key)
		if _, err := label(m.Key); err != nil {
			r.fail(m.Place, path+"."+m.Key, "%s", message(err))
		}
		a.Users[m.Key] = account
	}
}

func (r *reader) service(v *value, path string) {
	s := &r.Service
	v = r.moved(v, path, "rates", "{role: user, rate: 500, burst: 5000}")
	r.group(v, path, "the service",
		key{"data", "", scanned(r, &s.Data, "the service's directory", filePath)},
		key{"journal", "", scanned(r, &s.Journal, "the URL of a database such as postgres://berth@db.example.org/berth", databaseURL)},
		key{"listen", "", scanned(r, &s.Listen, "an address such as 127.0.0.1:7117", label)},
		key{"tls_cert", "", scanned(r, &s.TLSCert, "the file of a certificate", filePath)},
		key{"tls_key", "", scanned(r, &s.TLSKey, "the file of its key", filePath)},
		key{"tls_client_ca", "", scanned(r, &s.TLSClientCA, "the file of the authorities of clients", filePath)},
		key{"plain_http", "", r.switched(&s.PlainHTTP)},
		key{"public", "", scanned(r, &s.Public, "an address such as https://hpc.example.org/berth/", filePath)},
		key{"log", "", scanned(r, &s.Log, "text or json", oneOf("text", "json"))},
		key{"metrics", "", scanned(r, &s.Metrics, "open or token", oneOf("open", "token"))},
		key{"keep", "", whole(r, &s.Keep, 1, maxKeep)},
		key{"keep_history", "", measured(r, &s.KeepHistory, "a duration such as 90d", historyLength)},
		key{"socket", "", scanned(r, &s.Socket, "the path of a Unix socket, or none", filePath)},
		key{"munge", "", scanned(r, &s.Munge, "a name that credentials carry, such as that of the cluster", name)},
		key{"slurm_jwt", "", scanned(r, &s.SlurmJWT, "the path of the key of Slurm's JSON web tokens", filePath)},
		key{"default_role", "", scanned(r, &s.DefaultRole, roleWords, oneOf(accountRoles...))},
		key{"roles", "", func(v *value, path string) { r.roles(v, path, &s.Roles) }},
		key{"oidc", "", func(v *value, path string) { r.oidc(v, path, &s.OIDC) }},
		key{"notices_to", "", func(v *value, path string) {
			r.list(v, path, "ranges of addresses", func(v *value, path string) {
				var one netip.Prefix
				scanned(r, &one, "a range of addresses such as 10.0.0.0/8", addresses)(v, path)
				s.NoticesTo = append(s.NoticesTo, one)
			})
		}},
		key{"mail", "", r.mail},
	)
}

// mail reads how notices get to addresses of e-mail.
func (r *reader) mail(v *value, path string) {
	m := &Mail{}
	r.group(v, path, "mail",
		key{"relay", "want host and port of the SMTP relay, such as smtp.example.org:587", scanned(r, &m.Relay, "host and port such as smtp.example.org:587", label)},
		key{"tls", "", scanned(r, &m.TLS, "required, offered or none", oneOf("required", "offered", "none"))},
		key{"user", "", scanned(r, &m.User, "the user that the relay knows", label)},
		key{"password_file", "", scanned(r, &m.PasswordFile, "the file of the user's password", filePath)},
		key{"from", "want the address that notices come from, such as berth@example.org", scanned(r, &m.From, "an address such as berth@example.org", label)},
		key{"timeout", "", measured(r, &m.Timeout, "a duration such as 30s", mailLength)},
		key{"domains", "", func(v *value, path string) {
			seen := make(unique)
			r.list(v, path, "domains", func(v *value, path string) {
				var one string
				scanned(r, &one, `a domain such as example.org, or "*" for all`, label)(v, path)
				seen.add(r, v, path, "domain", one)
				m.Domains = append(m.Domains, one)
			})
		}},
		key{"own_only", "", r.switched(&m.OwnOnly)},
	)
	if v.Kind == isMap && has(v, "user") != has(v, "password_file") {
		r.fail(v.Place, path, "one of user and password_file without the other; want both, or none if the relay asks for none")
	}
	r.Service.Mail = m
}

// mailLength reads for how long a relay may take for a message.
func mailLength(text string) (berth.Duration, error) {
	d, err := duration(text)
	if err == nil && (d < 1 || d > maxMailLength) {
		return 0, berth.Errorf(berth.Invalid, "", "want 1s to 5m")
	}
	return d, err
}

// databaseURL reads the URL of a PostgreSQL database.
func databaseURL(text string) (string, error) {
	if _, err := filePath(text); err != nil || !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return "", berth.Errorf(berth.Invalid, "", "want the URL of a database such as postgres://berth@db.example.org/berth")
	}
	return text, nil
}

var accountRoles = []string{"viewer", "user", "operator", NoRole}

const roleWords = "viewer, user, operator or none"

// roles reads which accounts of the machine have which role.
func (r *reader) roles(v *value, path string, to *[]Role) {
	r.list(v, path, "roles", func(v *value, path string) {
		var role Role
		names := func(to *[]string, what string) func(v *value, path string) {
			return func(v *value, path string) {
				seen := make(unique)
				r.list(v, path, what+"s", func(v *value, path string) {
					var one string
					scanned(r, &one, "the name of a "+what, label)(v, path)
					seen.add(r, v, path, what, one)
					*to = append(*to, one)
				})
			}
		}
		r.group(v, path, "a role",
			key{"role", "want " + roleWords, scanned(r, &role.Role, roleWords, oneOf(accountRoles...))},
			key{"users", "", names(&role.Users, "user")},
			key{"groups", "", names(&role.Groups, "group")},
		)
		if v.Kind == isMap && !has(v, "users") && !has(v, "groups") {
			r.fail(v.Place, path, "for no one; name users or groups, or set default_role")
		}
		*to = append(*to, role)
	})
}

// historyLength reads how long records are kept. Below an hour they would be dropped
// while they are still looked at.
func historyLength(text string) (berth.Duration, error) {
	d, err := duration(text)
	if err == nil && d < MinHistory {
		return 0, berth.Errorf(berth.Invalid, "", "want at least 1h")
	}
	return d, err
}

// addresses reads a range of addresses, or one address.
func addresses(text string) (netip.Prefix, error) {
	if at, err := netip.ParseAddr(text); err == nil && at.Zone() == "" {
		return netip.PrefixFrom(at.Unmap(), at.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Masked() != p || p.Addr().Is4In6() {
		return p, berth.Errorf(berth.Invalid, "", "want an address such as 10.1.2.3, or a range such as 10.0.0.0/8 without bits behind the prefix")
	}
	return p, nil
}

// oneOf reads one of some words.
func oneOf(words ...string) func(text string) (string, error) {
	return func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", berth.Errorf(berth.Invalid, "", "want %s", strings.Join(words, " or "))
		}
		return text, nil
	}
}

// filePath reads a path; it asks only that it could be one.
func filePath(text string) (string, error) {
	if text == "" || len(text) > maxPath || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", berth.Errorf(berth.Invalid, "", "want a path of 1 to %d bytes on one line", maxPath)
	}
	return text, nil
}
