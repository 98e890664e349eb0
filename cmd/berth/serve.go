package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/local"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/sites"
)

// serveFlags is what the command line of serve says.
type serveFlags struct {
	data   string
	listen string
	sites  string
	local  string
	slurm  string
	shadow bool
	cores  berth.Count
	log    string
}

// serveCommand returns berth serve.
func (a *app) serveCommand() *cobra.Command {
	flags := serveFlags{log: logForms[0]}
	cmd := &cobra.Command{
		Use:   "serve [--data DIR] [--listen ADDRESS]",
		Short: "Run the service: promises that are kept, over an API",
		Long: `Runs the service until it is told to stop (Ctrl-C, SIGTERM). What it has promised
is in DIR and survives whatever ends it; the first start writes the operator's
token to DIR/operator.token.

Sites: this machine's cores, unless --sites or --slurm name others. A site of a
sites file alone has nobody who carries its promises out; --local and --slurm
name sites that have.`,
		Example: `  berth serve
  berth serve --data /var/lib/berth --slurm cluster
  berth serve --data /var/lib/berth-shadow --slurm cluster --shadow
  berth serve --sites sites.yaml --listen 127.0.0.1:7117`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, &flags) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	dataFlag(cmd, &flags.data)
	f.StringVar(&flags.listen, "listen", "127.0.0.1:7117", "`ADDRESS` to listen on; port 0 takes a free one")
	f.StringVar(&flags.sites, "sites", "", "sites and policies, a YAML `FILE`")
	f.StringVar(&flags.local, "local", "", "`NAME` of this machine as a site that runs what is submitted (default: local, if no other site is named)")
	f.Var(&whole[berth.Count]{&flags.cores, 1, berth.MaxPEs}, "cores", "how many cores this machine hands out (default: those it may use)")
	f.StringVar(&flags.slurm, "slurm", "", "`NAME` of the Slurm cluster that this machine's commands reach")
	f.BoolVar(&flags.shadow, "shadow", false, "only watch the Slurm cluster: change nothing there, promise nothing, and compare (berth sites shadow NAME)")
	f.Var(&choice{&flags.log, "form", logForms}, "log", "form of the log on stderr: "+strings.Join(logForms, ", "))
	_ = cmd.MarkFlagFilename("sites", "yaml", "yml") // fails for unknown flags only
	complete(cmd, "log", logForms)
	return cmd
}

var logForms = []string{"text", "json"}

// shepherdCommand returns the hidden command that keeps a task of a local site.
func shepherdCommand() *cobra.Command {
	return &cobra.Command{
		Use: "shepherd", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := local.Shepherd(args); code != 0 {
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
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	if err := os.MkdirAll(flags.data, 0o700); err != nil {
		return berth.Errorf(berth.Invalid, "data", "%v", err)
	}
	log := a.logger(flags.log)
	config, err := serviceConfig(cmd, flags)
	if err != nil {
		return err
	}
	managers, release, err := openSites(ctx, flags, &config)
	if err != nil {
		return err
	}
	defer release()
	tokens, err := token.Open(flags.data, userName(), berth.Time(time.Now().Unix()))
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", flags.listen)
	if err != nil {
		return berth.Errorf(berth.Invalid, "listen", "%v", err)
	}
	defer func() { _ = listener.Close() }() // Shutdown has closed it
	store, err := sqlite.Open(flags.data, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if torn := store.Torn(); torn != nil {
		log.Warn("the last batch of the journal was torn and is dropped; nobody had been answered", "damage", torn)
	}
	host, err := service.Open(ctx, service.Options{Config: config, Journal: store, Version: version(), Log: log, Managers: managers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := host.Register(registry); err != nil {
		return err
	}
	server := api.Server(api.New(api.Options{Service: host, Tokens: tokens, Registry: registry, Log: log, Version: version()}))
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	a.greet(flags, listener.Addr().String(), &config)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case <-host.Stopped():
		err = host.Ready() // why it stopped
	case err = <-failed:
	}
	// Streams of events end with the host; everybody else gets his answer.
	limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- server.Shutdown(limit) }()
	closeErr := host.Close()
	return errors.Join(err, closeErr, <-stopped)
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

// serviceConfig returns the engine's configuration: that of the sites file, and
// the product's default where it says nothing.
func serviceConfig(cmd *cobra.Command, flags *serveFlags) (engine.Config, error) {
	g := &grid{}
	sim := newSimFlags()
	sim.preset = "default"
	if flags.sites != "" {
		file, err := sites.Open(flags.sites)
		if err != nil {
			return engine.Config{}, err
		}
		if err := checkNames(file); err != nil {
			return engine.Config{}, err
		}
		g.file = file
	}
	config, err := g.configure(cmd, sim)
	if err != nil {
		return config, err
	}
	config.Explain = true
	if g.file != nil {
		config.Sites = g.file.Sites
		if p := g.file.Policies.Place; p != "" {
			config.Place = p
		}
	}
	return config, nil
}

// openSites opens the sites that somebody manages and adds them to the
// configuration. release lets go of them.
func openSites(ctx context.Context, flags *serveFlags, config *engine.Config) (managers map[string]service.Manager, release func(), err error) {
	managers = map[string]service.Manager{}
	var open []func() error
	release = func() {
		for _, c := range open {
			_ = c() // what runs there runs on
		}
	}
	if flags.shadow && flags.slurm == "" {
		return nil, release, berth.Errorf(berth.Invalid, "shadow", "of what? --slurm NAME says which cluster to watch")
	}
	if flags.local == "" && len(config.Sites) == 0 && flags.slurm == "" {
		flags.local = "local"
	}
	if flags.local != "" {
		s, err := local.Open(local.Options{Site: flags.local, Dir: filepath.Join(flags.data, "local"), Cores: flags.cores})
		if err != nil {
			return nil, release, err
		}
		open = append(open, s.Close)
		if err := manage(ctx, flags.local, "local", s, site.UnitCore, berth.Late, time.Second, config, managers); err != nil {
			release()
			return nil, release, err
		}
	}
	if flags.slurm != "" {
		s := slurm.New(slurm.Options{Site: flags.slurm, Watch: flags.shadow})
		if err := manage(ctx, flags.slurm, "slurm", s, site.UnitNode, berth.Early, 5*time.Second, config, managers); err != nil {
			release()
			return nil, release, err
		}
		m := managers[flags.slurm]
		m.Shadow = flags.shadow
		managers[flags.slurm] = m
	}
	return managers, release, nil
}

// margin is how much earlier than needed promises are made real at a site, so
// that no job started before can reach into them.
const margin berth.Duration = 120

// manage adds a site to the configuration, as it describes itself.
func manage(ctx context.Context, name, kind string, adapter site.Observer, unit site.Unit, binding berth.Binding, every time.Duration, config *engine.Config, managers map[string]service.Manager) error {
	description, err := adapter.Describe(ctx)
	if err != nil {
		return fmt.Errorf("site %s: %w", name, err)
	}
	s, layout, err := site.Import(name, description, unit, binding)
	if err != nil {
		return err
	}
	s.Managed = true
	config.Sites = append(config.Sites, s)
	managers[name] = service.Manager{
		Kind: kind, Adapter: adapter, Layout: layout, Every: every, Horizon: description.Horizon(nil, margin),
	}
	return nil
}

// greet says on stdout where the service is and what to try next.
func (a *app) greet(flags *serveFlags, address string, config *engine.Config) {
	var names []string
	pes := berth.Count(0)
	for i := range config.Sites {
		names = append(names, config.Sites[i].Name)
		for _, p := range config.Sites[i].Pools {
			pes += p.PEs
		}
	}
	if flags.shadow {
		_, _ = fmt.Fprintf(a.stdout, `berth %s watches %d PEs of %s and tells at http://%s
Nothing is changed at %s and nothing is promised there. The operator's token is
in %s. In another terminal, try

    berth login http://%s --token-file %s
    berth sites shadow %s

`, version(), pes, strings.Join(names, ", "), address, flags.slurm, filepath.Join(flags.data, token.OperatorFile), address, filepath.Join(flags.data, token.OperatorFile), flags.slurm)
		return
	}
	_, _ = fmt.Fprintf(a.stdout, `berth %s serves %d PEs of %s at http://%s
The operator's token is in %s. In another terminal, try

    berth login http://%s --token-file %s
    berth reserve --npe 1 --duration 2m --deadline now+1hour
    berth list
    berth submit --npe 1 --duration 1m --deadline now+10min -- echo hello
    berth sites

`, version(), pes, strings.Join(names, ", "), address, filepath.Join(flags.data, token.OperatorFile), address, filepath.Join(flags.data, token.OperatorFile))
}
