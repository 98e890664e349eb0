package main

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/scenario"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/sites/adapters"
)

// setup is what a service runs on: what the flags say, then the configuration
// file, then the defaults.
type setup struct {
	data, listen, log string
	journal           string // URL of a database; empty for the journal in data
	keep              int
	keepHistory       berth.Duration
	access            []service.Access
	projects          service.Projects
	metricsToken      bool
	noticesTo         []netip.Prefix
	relay             *courier.Relay // nil if no notices are sent by e-mail
	tls               tlsFiles
	plain             bool
	standBy           bool
	reached           string        // address for others; empty if it follows from where it listens
	public            *url.URL      // nil if browsers reach the service where it listens
	config            engine.Config // sites that describe themselves have no pools in it yet
	adapters          map[string]sites.Adapter
	known             known
	transfers         []service.Transfer
	clock             func() time.Time // a test's; nil is the machine's
}

// load reads the configuration of serve and checks all that can be checked
// without asking any site.
func (flags *serveFlags) load(cmd *cobra.Command) (*setup, error) {
	s := &setup{data: flags.data, journal: flags.journal, listen: flags.listen, log: flags.log, keepHistory: flags.keepHistory, tls: flags.tls, plain: flags.plain, standBy: flags.standBy, reached: flags.reached, adapters: map[string]sites.Adapter{}}
	file, err := flags.open(cmd)
	if err != nil {
		return nil, err
	}
	at := "--listen"
	if file != nil {
		if s.fromFile(cmd, file) {
			at = file.Where("service.listen")
		}
		if err := adapters.Check(file); err != nil {
			return nil, err
		}
	}
	if err := checkJournal(s.journal); err != nil { // of a file it is checked
		return nil, err
	}
	if err := checkAddress(at, s.listen); err != nil {
		return nil, err
	}
	if err := s.tls.check(); err != nil {
		return nil, err
	}
	if !s.plain && s.exposed() {
		return nil, berth.Errorf(berth.Invalid, "listen", "%s: %s is not loopback, and without TLS tokens can be read on the network: want --tls-cert and --tls-key, 127.0.0.1 behind a proxy with TLS, or --plain-http to allow it", at, s.listen)
	}
	if s.public, err = flags.publicURL(cmd, file); err != nil {
		return nil, err
	}
	if s.config, err = serviceConfig(file); err != nil {
		return nil, err
	}
	if err := s.fromFlags(flags, file); err != nil {
		return nil, err
	}
	if err := s.checkStandBy(flags.reached); err != nil {
		return nil, err
	}
	in := &sites.Service{}
	if file != nil {
		in = &file.Service
	}
	if err := s.identify(in); err != nil {
		return nil, err
	}
	if in.Mail != nil {
		if s.relay, err = relayOf(in.Mail); err != nil {
			return nil, err
		}
	}
	return s, adapters.CheckEngine(s.config)
}

// open opens the configuration file, nil if there is none.
func (flags *serveFlags) open(cmd *cobra.Command) (*sites.File, error) {
	path := flags.config
	switch {
	case path != "" && flags.sites != "":
		return nil, usagef(cmd, "--sites: given beside --config, which is the same file; want one of the two")
	case path == "":
		path = flags.sites
	}
	if path == "" {
		return nil, nil //nolint:nilnil // no file is no mistake
	}
	file, err := sites.Open(path)
	if err != nil {
		return nil, err
	}
	return file, scenario.CheckNames(file)
}

// fromFile takes from the file what no flag says. It says whether the address to
// listen on is the file's.
func (s *setup) fromFile(cmd *cobra.Command, file *sites.File) (listens bool) {
	in := &file.Service
	take := func(flag string, to *string, value string) bool {
		if value == "" || cmd.Flags().Changed(flag) {
			return false
		}
		*to = value
		return true
	}
	take("data", &s.data, in.Data)
	take("journal", &s.journal, in.Journal)
	take("tls-cert", &s.tls.cert, in.TLSCert)
	take("tls-key", &s.tls.key, in.TLSKey)
	take("tls-client-ca", &s.tls.clientCA, in.TLSClientCA)
	s.plain = s.plain || in.PlainHTTP
	take("log", &s.log, in.Log)
	s.keep, s.metricsToken, s.noticesTo = in.Keep, in.Metrics == "token", in.NoticesTo
	if s.keepHistory == 0 {
		s.keepHistory = in.KeepHistory
	}
	for _, row := range file.Access {
		s.access = append(s.access, service.Access{Scope: row.Scope, Sites: service.NewSiteSet(row.Sites)})
	}
	s.projects = service.Projects{From: file.Projects.From, Open: file.Projects.Open}
	for _, p := range file.Projects.Accounts {
		s.projects.List = append(s.projects.List, service.Project{Account: p.Account, Users: p.Users, Groups: p.Groups, DefaultFor: p.DefaultFor})
	}
	maps.Copy(s.adapters, file.Adapters)
	for _, t := range file.Transfers {
		s.transfers = append(s.transfers, service.Transfer{From: t.From, To: t.To, Command: t.Command, Timeout: t.Timeout})
	}
	return take("listen", &s.listen, in.Listen)
}

// fromFlags adds the sites that flags name, and this machine if there is none.
func (s *setup) fromFlags(flags *serveFlags, file *sites.File) error {
	mine := ""
	for name, a := range s.adapters {
		if a.Kind == sites.Local {
			mine = name
		}
	}
	if flags.local == "" && flags.slurm == "" && file == nil {
		flags.local = "local"
	}
	add := func(flag, name string, a sites.Adapter) error {
		for i := range s.config.Sites {
			if s.config.Sites[i].Name == name {
				return berth.Errorf(berth.Invalid, flag, "%q: there is a site of this name already; want another name", name)
			}
		}
		s.config.Sites = append(s.config.Sites, berth.Site{Name: name, Managed: true})
		s.adapters[name] = a
		return nil
	}
	if flags.local != "" {
		if mine != "" {
			return berth.Errorf(berth.Invalid, "local", "%q: this machine is the site %q already, as the configuration file has it", flags.local, mine)
		}
		if err := add("local", flags.local, sites.Adapter{Kind: sites.Local}); err != nil {
			return err
		}
		mine = flags.local
	}
	if flags.shadow && flags.slurm == "" {
		return berth.Errorf(berth.Invalid, "shadow", "of what? --slurm NAME says which cluster to watch; in a file its adapter says watch: true")
	}
	if flags.slurm != "" {
		if err := add("slurm", flags.slurm, sites.Adapter{Kind: sites.Slurm, Watch: flags.shadow}); err != nil {
			return err
		}
	}
	if flags.cores != 0 {
		if mine == "" {
			return berth.Errorf(berth.Invalid, "cores", "%d of this machine, which is no site; want --local NAME with it", flags.cores)
		}
		a := s.adapters[mine]
		a.Cores = flags.cores
		s.adapters[mine] = a
	}
	return nil
}

// maxPassword is how long the password of a relay is at most.
const maxPassword = 1024

// relayOf returns how notices get to addresses of e-mail, with the password of its file.
func relayOf(m *sites.Mail) (*courier.Relay, error) {
	r := &courier.Relay{Address: m.Relay, TLS: m.TLS, User: m.User, From: m.From, Patience: time.Duration(m.Timeout) * time.Second, Domains: m.Domains, Own: m.OwnOnly}
	if m.PasswordFile != "" {
		text, err := os.ReadFile(m.PasswordFile)
		if err != nil {
			return nil, berth.Errorf(berth.Invalid, "mail", "password_file: %v; want a file that the service can read", err)
		}
		if r.Password = strings.TrimRight(string(text), "\r\n"); r.Password == "" || len(r.Password) > maxPassword || strings.ContainsAny(r.Password, "\r\n\x00") {
			return nil, berth.Errorf(berth.Invalid, "mail", "password_file %s: want one line of 1 to %d bytes", m.PasswordFile, maxPassword)
		}
	}
	return r, r.Check()
}

// checkAddress checks an address to listen on; where says who gave it.
func checkAddress(where, address string) error {
	_, port, err := net.SplitHostPort(address)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || strconv.FormatUint(n, 10) != port {
		return berth.Errorf(berth.Invalid, "listen", "%s: %q: want host and port, such as 127.0.0.1:7117", where, address)
	}
	return nil
}

// exposed reports whether tokens are sent to the service where others can read them.
func (s *setup) exposed() bool {
	host, _, _ := net.SplitHostPort(s.listen)
	return s.tls.cert == "" && !client.Loopback(host)
}

// tlsScheme begins the address of a service that speaks TLS.
const tlsScheme = "https://"

// scheme begins the address of the service.
func (s *setup) scheme() string {
	if s.tls.cert != "" {
		return tlsScheme
	}
	return "http://"
}

// warnings returns what is allowed and dangerous: tokens that can be read on the
// network, and tasks that run as root.
func (s *setup) warnings() []string {
	var found []string
	if s.exposed() {
		found = append(found, fmt.Sprintf("listens on %s without TLS, so tokens can be read on the network: listen on 127.0.0.1, behind a proxy with TLS", s.listen))
	}
	if plainJournal(s.journal) {
		found = append(found, fmt.Sprintf("the journal is reached at %s without TLS, so all that is promised can be read and changed on the network: add sslmode=verify-full to its URL", postgres.Name(s.journal)))
	}
	for _, name := range s.runsAsItself() {
		if s.known.roles.Default != "" && s.known.roles.Default != service.Viewer {
			found = append(found, fmt.Sprintf("default_role: %s lets every account of this machine run tasks at site %s as %s: set default_role: none, or give its adapter a map of users", s.known.roles.Default, name, userName()))
		}
		if os.Geteuid() == 0 {
			found = append(found, fmt.Sprintf("tasks at site %s run as root: start the service as an ordinary user, or give its adapter a map of users", name))
		}
	}
	return found
}

// String says what the service would run on.
func (s *setup) String() string {
	var names []string
	for i := range s.config.Sites {
		name := s.config.Sites[i].Name
		kind := s.adapters[name].Kind
		if kind == "" {
			kind = "no user reaches it"
		}
		names = append(names, fmt.Sprintf("%s (%s)", name, kind))
	}
	if s.journal != "" {
		return fmt.Sprintf("valid: data in %s, journal in %s, listens on %s, sites %s", s.data, postgres.Name(s.journal), s.listen, strings.Join(names, ", "))
	}
	return fmt.Sprintf("valid: data in %s, listens on %s, sites %s", s.data, s.listen, strings.Join(names, ", "))
}
