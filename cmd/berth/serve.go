package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/laboratory"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/scenario"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/sites/adapters"
)

// serveFlags is what the command line of serve says.
type serveFlags struct {
	data    string
	journal string
	listen  string
	config  string
	sites   string // the older name of config
	local   string
	slurm   string
	shadow  bool
	cores   berth.Count
	log     string
	check   bool
	adopt   bool
	public  string // address for browsers, through a proxy
	link    bool   // print a login link
	standBy bool
	reached string // address for other servers and their clients

	tls   tlsFiles
	plain bool // HTTP beyond loopback

	keepHistory berth.Duration
}

// serveCommand returns berth serve.
func (a *app) serveCommand() *cobra.Command {
	flags := serveFlags{log: logForms[0]}
	cmd := &cobra.Command{
		Use:   "serve [--data DIR] [--listen ADDRESS]",
		Short: "Run the service with its API",
		Long: `Runs the service until it is told to stop (Ctrl-C, SIGTERM). What it has promised
is in DIR and survives whatever ends it; the first start writes the operator's
token to DIR/operator.token. With --journal the promises are in a PostgreSQL database
instead, which one service writes at a time. With --standby another one follows it,
answers who looks, and takes over within seconds when the first one ends.

Sites: this machine's cores, unless --config or --slurm name others. A site of the
configuration file without an adapter enforces nothing: promises are recorded only.
Flags win over the file.

A service touches no reservation that its data do not know. If a site has such
reservations at the start, of another service or of other data, nothing is promised
there: berth sites show lists them. Stop that service, or start this one with its
data. With --adopt what is not promised here is taken down.`,
		Example: `  berth serve
  berth serve --data /var/lib/berth --slurm cluster
  berth serve --data /var/lib/berth-shadow --slurm cluster --shadow
  berth serve --config /etc/berth/berth.yaml
  berth serve --config /etc/berth/berth.yaml --check`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, &flags) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	dataFlag(cmd, &flags.data)
	journalFlag(cmd, &flags.journal)
	f.StringVar(&flags.listen, "listen", "127.0.0.1:7117", "`ADDRESS` to listen on; port 0 takes a free one")
	f.StringVar(&flags.config, "config", "", "configuration: service, sites and policies, a YAML `FILE`")
	f.BoolVar(&flags.check, "check", false, "check flags and configuration, say so, and start nothing")
	f.StringVar(&flags.sites, "sites", "", "another name of --config")
	_ = f.MarkHidden("sites") // fails for unknown flags only
	f.StringVar(&flags.local, "local", "", "`NAME` of this machine as a site that runs what is submitted (default: local, if no other site is named)")
	f.Var(&whole[berth.Count]{&flags.cores, 1, berth.MaxPEs}, "cores", "how many cores this machine hands out (default: those it may use)")
	f.StringVar(&flags.slurm, "slurm", "", "`NAME` of the Slurm cluster that this machine's commands reach")
	f.BoolVar(&flags.shadow, "shadow", false, "only watch the Slurm cluster: change nothing there, promise nothing, and compare (berth sites shadow NAME)")
	f.BoolVar(&flags.adopt, "adopt", false, "take over the reservations that another service, or this one with other data, has made at the sites: what is not promised here is taken down, with the jobs in it")
	f.StringVar(&flags.public, "public", "", "`URL` at which browsers reach the service through a proxy, such as https://hpc.example.org/berth/")
	f.StringVar(&flags.tls.cert, "tls-cert", "", "speak TLS with the certificate in `FILE` (PEM, with its chain), which is read again when it changes")
	f.StringVar(&flags.tls.key, "tls-key", "", "`FILE` with the key of that certificate")
	f.StringVar(&flags.tls.clientCA, "tls-client-ca", "", "take connections only of clients with a certificate of an authority in `FILE`")
	f.BoolVar(&flags.plain, "plain-http", false, "listen beyond this machine without TLS: tokens can be read on the network")
	f.BoolVar(&flags.standBy, "standby", false, "where another service writes the journal, follow it and take over when it ends, instead of being refused; needs --journal")
	f.StringVar(&flags.reached, "advertise", "", "`URL` at which others reach this service when it leads (default: --public, else where it listens)")
	f.BoolVar(&flags.link, "link", false, "print a link that logs a browser on this machine in, once and within two minutes")
	f.Var(&span{value: &flags.keepHistory, least: sites.MinHistory}, "keep-history", "how long records are kept, such as 90d (default: for ever)")
	f.Var(&choice{&flags.log, "form", logForms}, "log", "form of the log on stderr: "+strings.Join(logForms, ", "))
	_ = cmd.MarkFlagFilename("config", "yaml", "yml") // fails for unknown flags only
	complete(cmd, "log", logForms)
	return cmd
}

var logForms = []string{"text", "json"}

// shepherdCommand returns the hidden command that keeps a task of a local site.
func shepherdCommand() *cobra.Command {
	return &cobra.Command{
		Use: "shepherd", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := adapters.Shepherd(args); code != 0 {
				return &exitError{code}
			}
			return nil
		},
	}
}

// exitError ends the program with a code that is not about an error.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit %d", e.code) }

// serve runs the service.
func (a *app) serve(cmd *cobra.Command, flags *serveFlags) (err error) {
	set, err := flags.load(cmd)
	if err != nil {
		return err
	}
	if err := checkData(set.data); err != nil {
		return err
	}
	if flags.check {
		if err := checkKeeps(set.data); err != nil {
			return err
		}
		if err := a.checkPromises(cmd.Context(), set); err != nil {
			return err
		}
		for _, text := range set.warnings() {
			a.say("warning: %s", text)
		}
		if text := set.known.providerText(cmd.Context()); text != "" {
			a.say("%s", text)
		}
		return a.show(set.String() + "\n")
	}
	set.clock = a.serviceClock
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	// Files of the service are for its user alone; tasks have the umask that the
	// service was started with.
	umask, back := a.privately()
	defer back()
	if err := os.MkdirAll(set.data, 0o700); err != nil {
		return cannotKeep(set.data, err)
	}
	if err := checkWritable(set.data); err != nil {
		return err
	}
	if set.journal == "" { // before the address is found to be taken: by whom says more
		if err := sqlite.Free(set.data); err != nil {
			return err
		}
	}
	log := a.logger(set.log)
	for _, text := range set.warnings() {
		log.Warn(text)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", set.listen)
	if err != nil {
		return berth.Errorf(berth.Invalid, "listen", "%v", err)
	}
	defer func() { _ = listener.Close() }() // Shutdown has closed it
	socket, err := set.known.listenSocket(ctx, set.data, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeListener(socket)) }()
	set.known.watchProvider(ctx, log)
	s := &serving{app: a, setup: set, flags: flags, log: log, umask: umask, listener: listener, socket: socket}
	if set.standBy {
		err = s.takeTurns(ctx, nil)
	} else {
		err = s.leadAtOnce(ctx)
	}
	if err != nil && ctx.Err() != nil && s.served == nil {
		log.Info("told to stop before it answered", "what ended", err)
		return &interrupted{"nothing was started"}
	}
	return err
}

// openStore opens the journal to be written. address is where the service is reached, for
// others that share it.
func (set *setup) openStore(ctx context.Context, address string, log *slog.Logger) (store, error) {
	if set.journal != "" {
		s, err := postgres.Open(ctx, set.journal, postgres.Options{Address: address, Clock: set.clock})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := sqlite.Open(set.data, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	if torn := s.Torn(); torn != nil {
		log.Warn("the last batch of the journal was torn and is dropped; no call had been answered", "damage", torn)
	}
	return s, nil
}

// openLaboratory opens what compares schedulers for users, by this program itself.
func openLaboratory(data string, log *slog.Logger) (*laboratory.Laboratory, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program for comparisons: %w", err)
	}
	return laboratory.Open(laboratory.Options{Folder: filepath.Join(data, "laboratory"), Program: []string{program, "lab", "--worker"}, Log: log})
}

const (
	// manyFiles is more than any service has open: 8,192 connections take some GB.
	manyFiles = 8192
	// ownFiles is how many files the service itself needs: the journal with its locks
	// and connections, the sites, and the commands that it starts there.
	ownFiles = 64
)

// maxConnections returns how many connections the service takes.
func maxConnections() int { return max(ownFiles, maxFiles()-ownFiles) }

// checkData refuses a data directory that other users can enter: journal.db says
// whose every reservation is. One that is not there yet is fine.
func checkData(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil // it is made, or cannot be, which says why
	}
	if err != nil {
		return berth.Errorf(berth.Invalid, "data", "%v", err)
	}
	if mode := info.Mode().Perm(); mode&private != 0 {
		return berth.Errorf(berth.Invalid, "data", "%s: mode %04o lets other users in; want 0700: chmod 700 %s", dir, mode, quoted(dir))
	}
	return checkOwner(dir, info)
}

// checkOwner refuses a data directory that belongs to another user, or in which something
// does: root would leave files there that its owner cannot read, and everybody else would
// meet a file that cannot be opened in the middle of a start.
func checkOwner(dir string, info fs.FileInfo) error {
	of := []fs.FileInfo{info}
	entries, _ := os.ReadDir(dir) // of a folder that cannot be read the owner tells why
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // else it has gone meanwhile
			of = append(of, info)
		}
	}
	for i, info := range of {
		uid, known := owner(info)
		if !known || uid == os.Geteuid() {
			continue
		}
		what, whose := dir, strconv.Itoa(uid)
		if i > 0 {
			what = filepath.Join(dir, info.Name())
		}
		if u, err := user.LookupId(whose); err == nil {
			whose = u.Username
		}
		return berth.Errorf(berth.Invalid, "data", "%s belongs to user %s, and the service runs as %s: run it as %s, or stop every service of it and give the directory over: chown -R %s %s",
			what, whose, userName(), whose, quoted(userName()), quoted(dir))
	}
	return nil
}

// checkKeeps proves that the data directory can be written, or made where it is not there yet, by the user who checks. What it
// writes is gone again.
func checkKeeps(dir string) error {
	at, err := filepath.Abs(dir)
	if err != nil {
		return berth.Errorf(berth.Invalid, "data", "%v", err)
	}
	for {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(at) == at {
			return checkWritable(at)
		}
		at = filepath.Dir(at)
	}
}

// databaseWait is how long a database that is asked for a check may take to answer.
const databaseWait = 10 * time.Second

// checkPromises proves that what is promised has a place in the configuration. Where the database does not answer that is said
// and is no mistake: nothing is wrong with the configuration.
func (a *app) checkPromises(ctx context.Context, set *setup) error {
	if set.journal == "" {
		switch there, err := sqlite.Exists(set.data); {
		case err != nil:
			return berth.Errorf(berth.Invalid, "data", "%v", err)
		case !there:
			return nil
		}
	}
	soon, cancel := context.WithTimeout(ctx, databaseWait)
	defer cancel()
	store, err := a.openJournal(soon, set.data, set.journal)
	if err == nil {
		err = errors.Join(service.Fits(ctx, store, set.config), store.Close())
	}
	switch wrong, coded := errors.AsType[*berth.Error](err); {
	case coded && wrong.Code == berth.Unavailable:
		a.say("warning: what is promised was not compared with the configuration: %v", err)
		return nil
	case coded && wrong.Code == berth.NotFound: // a start makes it
		return nil
	}
	return err
}

// checkWritable sees to it that something can be kept in the data directory, before a site
// is asked and anything there is touched.
func checkWritable(dir string) error {
	file, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return cannotKeep(dir, err)
	}
	_, err = file.Write(make([]byte, 4096)) // a block
	if err = errors.Join(err, file.Close(), os.Remove(file.Name())); err != nil {
		return cannotKeep(dir, err)
	}
	return nil
}

// cannotKeep says why nothing can be kept in a data directory, and what to do.
func cannotKeep(dir string, err error) error {
	const kept = "nothing there was changed"
	switch {
	case errors.Is(err, fs.ErrPermission):
		return berth.Errorf(berth.Invalid, "data", "%s: %s may not write there, %s: run the service as the owner, or chown -R %s %s (%v)",
			dir, userName(), kept, quoted(userName()), quoted(dir), err)
	case errors.Is(err, syscall.EROFS):
		return berth.Errorf(berth.Unavailable, "data", "%s: its file system is read-only, %s: mount it for writing and start again (%v)", dir, kept, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return berth.Errorf(berth.Unavailable, "data", "%s: no room is left, %s: make room and start again (%v)", dir, kept, err)
	}
	return berth.Errorf(berth.Invalid, "data", "%v", err)
}

// logger returns the log on stderr.
func (a *app) logger(form string) *slog.Logger {
	if form == "json" {
		return slog.New(slog.NewJSONHandler(a.stderr, nil))
	}
	return slog.New(slog.NewTextHandler(a.stderr, nil))
}

// userName returns who runs the program.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "operator"
}

// serviceConfig returns the engine's configuration: that of the file, and
// the product's default where it says nothing.
func serviceConfig(file *sites.File) (engine.Config, error) {
	options := scenario.NewOptions()
	options.Preset = "default"
	config, err := options.Configure(file)
	if err != nil {
		return config, err
	}
	config.Explain = true
	config.Limits = append(service.DefaultLimits(), config.Limits...)
	if file != nil {
		config.Sites = file.Sites
		if p := file.Policies.Place; p != "" {
			config.Place = p
		}
	}
	return config, nil
}

// greet says on stdout where the service is and what to try next.
func (a *app) greet(set *setup, address string, socket net.Listener) {
	address = set.scheme() + address
	config := &set.config
	var names []string
	pes := berth.Count(0)
	for i := range config.Sites {
		names = append(names, config.Sites[i].Name)
		for _, p := range config.Sites[i].Pools {
			pes += p.PEs
		}
	}
	known, first := set.wayIn(address, socket)
	watched := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !set.adapters[name].Watch })
	if len(watched) == len(names) {
		_, _ = fmt.Fprintf(a.stdout, `berth %s watches %d PEs of %s and tells at %s
Nothing is changed there and nothing is promised. %s
In another terminal, try

%s    berth sites shadow %s

`, version(), pes, strings.Join(names, ", "), address, known, first, names[0])
		return
	}
	_, _ = fmt.Fprintf(a.stdout, `berth %s serves %d PEs of %s at %s
%s In another terminal, try

%s    berth reserve --npe 1 --duration 2m --deadline now+1hour
    berth list
    berth submit --npe 1 --duration 1m --deadline now+10min -- echo hello
    berth sites

`, version(), pes, strings.Join(names, ", "), address, known, first)
}

// wayIn says how the account of the service is known there, and what it has to run first in another
// terminal, if anything. Over the socket it is an operator without a token.
func (s *setup) wayIn(address string, socket net.Listener) (known, first string) {
	secret := filepath.Join(s.data, token.OperatorFile)
	if socket == nil {
		return fmt.Sprintf("The operator's token is in %s.", secret), fmt.Sprintf("    berth login %s --token-file %s\n", address, secret)
	}
	server := "unix://" + socket.Addr().String()
	known = fmt.Sprintf("Your account needs no token on this machine: it is an operator over\n%s. The operator's token for elsewhere is in\n%s.", socket.Addr(), secret)
	login, err := readLogin()
	if err == nil && firstOf(os.Getenv(serverVar), login.Server, socketHere()) == server {
		return known, "" // commands find it by themselves
	}
	return known, fmt.Sprintf("    export %s=%s\n", serverVar, server)
}
